#!/bin/bash
# A recording that ends badly: kill -9, a full disk, a size limit, a lost folder. What was written stays readable.
. "$(dirname "$0")/../cli/lib.sh"
plan_begin

PROGRAMS=${CULPRIT_TEST_PROGRAMS:?set CULPRIT_TEST_PROGRAMS to the folder of tests/programs}
READER="$TESTS_DIR/tools/perfdata.py"
INCOMPLETE=3 # culprit report's exit status for it
BACKGROUND= MOUNTED=
trap 'status=$?; kill -9 $BACKGROUND 2>/dev/null; [ -z "$MOUNTED" ] || umount "$MOUNTED"; cd /; rm -rf "$TEST_TMP"; exit $status' EXIT

if ! why=$("$CULPRIT" record -q -o probe -- true 2>&1); then
	skip "recording" "${why:-not possible here}"
	plan_end
	exit
fi
holds() { check "$1" python3 "$READER" "$2" "$3"; }

for mode in "" -z; do
	name=${mode:+compressed, }
	# shellcheck disable=SC2086
	"$CULPRIT" record -q $mode -g -e cpu-clock -F 999 -o killed -- "$PROGRAMS/shares" 30 2>/dev/null &
	recorder=$!
	sleep 2.3
	child=$(pgrep -P $recorder)
	kill -9 $recorder "$child"
	wait $recorder 2>/dev/null
	holds "${name}kill -9: the file holds what was flushed" killed 'not d.complete and len(d.samples) > 300'
	check_status "${name}kill -9: culprit report reads it and says it is incomplete" $INCOMPLETE "$CULPRIT" report -i killed
	check_match "${name}kill -9: the functions are named" 'alpha' "$CULPRIT" report -i killed
done

if [ "$(id -u)" -eq 0 ] && mkdir full && mount -t tmpfs -o size=256k tmpfs full 2>/dev/null; then
	MOUNTED=$PWD/full
	for mode in "" -z1; do
		name=${mode:+compressed, }
		# shellcheck disable=SC2086
		check_fails "${name}full disk: the error says so" "full/out: No space left on device" timeout 60 \
			"$CULPRIT" record -q $mode -g -e cpu-clock -F 20000 -o full/out -- "$PROGRAMS/shares" 20
		holds "${name}full disk: what was written is sound" full/out 'len(d.samples) > 500 and d.cut == 0'
		check_match "${name}full disk: culprit report reads it" 'alpha' "$CULPRIT" report -i full/out
		rm -f full/out*
	done
	"$CULPRIT" record -q -g -e cpu-clock -F 20000 -o full/out -- sh -c "echo \$\$ >pid; exec '$PROGRAMS/shares' 20" 2>/dev/null
	if kill "$(cat pid)" 2>/dev/null; then not_ok "full disk: the command does not stay behind"; else ok "full disk: the command does not stay behind"; fi
	umount full && MOUNTED=
else
	skip "full disk" "mounting a tmpfs needs root"
fi

(
	ulimit -f 200
	"$CULPRIT" record -q -g -e cpu-clock -F 20000 -o limited -- "$PROGRAMS/shares" 20
) 2>error
status=$?
if [ $status -eq 1 ]; then ok "a file size limit is an error, not a death"; else not_ok "a file size limit is an error, not a death" "status $status" "$(cat error)"; fi
check_match "the size limit is named" "limited: File too large" cat error
holds "what was written under the size limit is sound" limited 'len(d.samples) > 300'

# SIGTERM and SIGINT during a whole-machine recording: complete, quickly, and by itself
if "$CULPRIT" record -q -a -d 50ms -o probe 2>/dev/null; then
	for signal in INT TERM HUP; do
		(trap - INT; exec "$CULPRIT" record -q -a -g -o ended) &
		recorder=$!
		sleep 0.7
		kill -s $signal $recorder
		wait $recorder
		holds "SIG$signal: the file is complete" ended 'd.complete and len(d.samples) > 100 and 250 in d.features'
		check_status "SIG$signal: culprit report finds nothing missing" 0 "$CULPRIT" report -i ended
	done
fi

# a process that ends while it is watched
"$PROGRAMS/shares" 0.4 2 &
BACKGROUND=$!
check_status "the watched process ends: so does the recording" 0 timeout 20 "$CULPRIT" record -q -p $! -e cpu-clock -o gone
holds "and the file is complete" gone 'd.complete and len(d.samples) > 100'

plan_end
