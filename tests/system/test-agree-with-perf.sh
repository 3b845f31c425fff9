#!/bin/bash
# perf report and culprit report read the same files, of both recorders: every row above 1 % agrees within 1 point,
# self and total.
. "$(dirname "$0")/../cli/lib.sh"
plan_begin

PROGRAMS=${CULPRIT_TEST_PROGRAMS:?set CULPRIT_TEST_PROGRAMS to the folder of tests/programs}
BACKGROUND=
trap 'status=$?; kill $BACKGROUND 2>/dev/null; cd /; rm -rf "$TEST_TMP"; exit $status' EXIT

for tool in perf python3; do
	if ! "$tool" --version >/dev/null 2>&1; then
		skip "the same rows as perf" "$tool is not installed"
		plan_end
		exit
	fi
done
if ! why=$("$CULPRIT" record -q -o probe -- true 2>&1); then
	skip "the same rows as perf" "${why:-recording is not possible here}"
	plan_end
	exit
fi

# By perf; it may crash while another recorder runs on this machine, so it gets three tries.
by_perf() {
	local try
	for try in 1 2 3; do
		( perf record -q -g -F 1999 --no-bpf-event -o theirs.data "$@" ) >perf.log 2>&1 && return 0
	done
	return 1
}

# both NAME COMMAND...
both() {
	local name=$1
	shift
	if "$CULPRIT" record -q -g -F 1999 -o ours.data -- "$@" >record.log 2>&1; then
		check "$name, recorded by culprit" python3 "$TESTS_DIR/tools/agree.py" "$CULPRIT" ours.data
	else
		not_ok "$name, recorded by culprit" "$(cat record.log)"
	fi
	if by_perf -- "$@"; then
		check "$name, recorded by perf" python3 "$TESTS_DIR/tools/agree.py" "$CULPRIT" theirs.data
	else
		skip "$name, recorded by perf" "perf record fails: $(tail -n 1 perf.log)"
	fi
}

cat >job.py <<'END'
import hashlib, json, re, time
end = time.process_time() + 0.7
def spin(n):
    return sum(i * i for i in range(n))
while time.process_time() < end:
    spin(5000)
    json.dumps(list(range(2000)))
    hashlib.sha256(b"x" * 100000).digest()
    re.sub("a+", "b", "caat" * 5000)
END
cat >job.js <<'END'
function hash(n) { let h = 0; for (let i = 0; i < n; i++) h = (h * 31 + i) | 0; return h; }
function order(n) { const a = []; for (let i = 0; i < n; i++) a.push((i * 7919) % n); a.sort((x, y) => x - y); return a[0]; }
const end = Date.now() + 700;
let s = 0;
while (Date.now() < end) s += hash(200000) + order(3000);
END

both "8 threads" "$PROGRAMS/shares" 0.15 8
both "fork and exec" sh -c "'$PROGRAMS/chain' 4 150; ls -R /usr/include >/dev/null; '$PROGRAMS/chain' 1 150"
both "Python" python3 job.py
if have node; then
	both "Node" node job.js
	both "Node with names of its JIT" node --perf-basic-prof job.js
	if "$CULPRIT" report -i ours.data | grep -q 'perf-[0-9]*.map *JS:.*hash'; then
		ok "its functions are named"
	elif grep -q hash /tmp/perf-[0-9]*.map 2>/dev/null; then
		not_ok "its functions are named" "$("$CULPRIT" report -i ours.data | head -n 20)"
	else
		skip "its functions are named" "this node writes no perf map"
	fi
	"$CULPRIT" report -i ours.data --csv | sed -n 's/.*,\(\/tmp\/perf-[0-9]*\.map\),.*/\1/p' | sort -u | while read -r map; do rm -f "$map"; done
	if "$CULPRIT" record -q -g -o jit.data -- node --perf-prof job.js >/dev/null 2>&1 && ls jit-[0-9]*.dump >/dev/null 2>&1; then
		check "names from a jitdump, without perf inject, by time" sh -c '"$CULPRIT" report -i jit.data --percent-limit 0 | grep -q "jit-[0-9]*.dump *JS:.*hash"'
		check "lines of a jitdump" sh -c '"$CULPRIT" convert jit.data --to firefox | grep -q "\"[^\"]*/job.js\""'
	else
		skip "names from a jitdump, without perf inject" "this node writes no jitdump"
	fi
else
	skip "Node" "node is not installed"
fi

if "$CULPRIT" record -q -a -d 50ms -o probe 2>/dev/null; then
	"$PROGRAMS/shares" 5 2 &
	BACKGROUND=$!
	sh -c "while :; do '$PROGRAMS/chain' 2 50; done" &
	BACKGROUND="$BACKGROUND $!"
	"$CULPRIT" record -q -a -g -F 1999 -d 1s -o ours.data
	check "the whole machine, recorded by culprit" python3 "$TESTS_DIR/tools/agree.py" "$CULPRIT" ours.data
	if by_perf -a -- sleep 1; then
		check "the whole machine, recorded by perf" python3 "$TESTS_DIR/tools/agree.py" "$CULPRIT" theirs.data
	else
		skip "the whole machine, recorded by perf" "perf record fails: $(tail -n 1 perf.log)"
	fi
else
	skip "the whole machine" "not permitted to this user"
fi

plan_end
