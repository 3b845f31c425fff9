#!/bin/bash
# Stacks through code that was made while the program ran, has no frame pointers, and is described by the program's jitdump alone:
# unwound while recording and from copies, of a program that begins while recording and of one that ran before.
. "$(dirname "$0")/../cli/lib.sh"
plan_begin

program=$CULPRIT_TEST_PROGRAMS/jit-frames
"$program" 0 >said 2>&1
if [ $? = 77 ] || ! "$CULPRIT" record -q -e cpu-clock --call-graph dwarf -o probe -- true 2>why; then
	skip "stacks of generated code" "not on this machine: $(cat said why | head -n 1)"
	plan_end
	exit
fi

# enough COMMAND...: records into data for some seconds (the last argument); longer when the machine is so busy that it got few samples
enough() {
	local seconds samples
	for seconds in 0.5 2 6; do
		"$@" $seconds >/dev/null 2>err || return
		samples=$("$CULPRIT" report --json -i data 2>/dev/null | sed -n 's/^\t"samples": \([0-9]*\),*$/\1/p')
		[ "${samples:-0}" -ge 100 ] && return
	done
}

# whole NAME FILE: nearly all stacks reach main, each function with all its callers; enough of them end in the last one
whole() {
	"$CULPRIT" convert "$2" --value samples --to folded -o folded 2>err
	if awk '{
			n = $NF; total += n; chain = "main;run"
			for (i = 0; i < 12; i++) chain = chain ";jit_" i
			if ($0 ~ "main;run") rooted += n
			if ($0 ~ "jit_") code += n
			if (index($0, chain)) complete += n
		} END {
			print total, "samples", rooted, "rooted", code, "in code", complete, "complete"
			exit !(total >= 50 && rooted >= 0.97 * total - 3 && code >= 0.9 * total - 3 && complete >= 0.98 * code - 1)
		}' folded >counted; then
		ok "$1"
	else
		not_ok "$1" "$(cat counted)" "$(head -n 20 folded)"
	fi
}

for mode in dwarf dwarf,raw; do
	enough "$CULPRIT" record -q -e cpu-clock -F 999 --call-graph $mode -o data -- "$program"
	whole "--call-graph $mode" data
	"$program" 60 &
	BACKGROUND=$!
	trap 'status=$?; kill $BACKGROUND 2>/dev/null; cd /; rm -rf "$TEST_TMP"; exit $status' EXIT
	until [ "$(stat -c %s jit-$BACKGROUND.dump 2>/dev/null || echo 0)" -gt 2000 ] ||
		! kill -0 $BACKGROUND; do sleep 0.1; done
	enough "$CULPRIT" record -q -e cpu-clock -F 999 --call-graph $mode -p $BACKGROUND -o data -d
	whole "--call-graph $mode, of a program that ran before" data
	kill $BACKGROUND
	wait $BACKGROUND 2>/dev/null
done

rm -f data
have perf && enough perf record -q -k mono -e cpu-clock -F 999 --call-graph dwarf -o data -- "$program"
if [ -s data ]; then
	whole "in perf's recording" data
else
	skip "in perf's recording" "perf cannot record here"
fi
plan_end
