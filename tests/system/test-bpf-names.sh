#!/bin/bash
# The functions of BPF programs are named: of those that begin while a recording runs, of those that ran before, and in
# perf's recordings. Needs the right to load one, and a kernel that compiles them to machine code.
. "$(dirname "$0")/../cli/lib.sh"
plan_begin

program=$CULPRIT_TEST_PROGRAMS/bpf-busy
if ! "$program" 1 >said 2>&1; then
	skip "BPF programs" "none can be run here: $(head -n 1 said)"
	plan_end
	exit
fi
if [ "$(cat /proc/sys/net/core/bpf_jit_enable)" = 0 ] || ! "$CULPRIT" record -q -o data -- "$program" 100 2>/dev/null; then
	skip "BPF programs" "they are interpreted, or nothing can be recorded"
	plan_end
	exit
fi

# named NAME FILE: most samples are in the program, and it has its name
named() {
	"$CULPRIT" report -i "$2" --sort symbol --csv --percent-limit 0 >report 2>err
	if awk -F, '/bpf_prog_[0-9a-f]*_busy_loop/ { share += $2 } END { exit !(share > 0.5) }' report; then
		ok "$1"
	else
		not_ok "$1" "$(head -n 8 report)" "$(cat err)"
	fi
}

"$CULPRIT" record -q -g -o data -- "$program" 300
named "one that begins while recording" data

# The kernel's names are kept from here on: a program that comes later must be found nevertheless.
"$program" 20000 &
BACKGROUND=$!
trap 'status=$?; kill $BACKGROUND 2>/dev/null; cd /; rm -rf "$TEST_TMP"; exit $status' EXIT
until grep -q 'bpf_prog_.*busy_loop' /proc/kallsyms || ! kill -0 $BACKGROUND; do sleep 0.1; done
"$CULPRIT" record -q -g -d 300ms -p $BACKGROUND -o data
kill $BACKGROUND
wait $BACKGROUND 2>/dev/null
if grep -q 'bpf_prog_.*busy_loop' /proc/kallsyms || [ "$(cat /proc/sys/net/core/bpf_jit_kallsyms)" != 0 ]; then
	named "one that ran before, after it has gone" data
else
	skip "one that ran before" "net.core.bpf_jit_kallsyms is 0"
fi

if have perf && perf record -q -g -o data -- "$program" 300 >/dev/null 2>&1; then
	named "in perf's recording" data
else
	skip "in perf's recording" "perf cannot record here"
fi

# lines NAME COMMAND...: those of the program with types and lines, in what the command records into data for some seconds (its last
# argument); longer when the machine is so busy that it got few samples
lines() {
	local name=$1 seconds status=2
	shift
	for seconds in 0.5 2 6; do
		[ $status = 2 ] || break
		"$@" $seconds >/dev/null 2>&1
		"$CULPRIT" convert data --value samples --to firefox -o lines.json 2>err
		python3 "$TESTS_DIR/tools/bpf-lines.py" <lines.json >said
		status=$?
	done
	if [ $status = 0 ]; then ok "$name"; else not_ok "$name" "$(cat said err)"; fi
}

# names_as_perf NAME FILE: perf and culprit give the same numbers of samples to the same programs
names_as_perf() {
	perf script -i "$2" -F ip,sym 2>/dev/null | grep -oE 'bpf_prog_[0-9a-f]*_busy_(loop|inner)' | sort | uniq -c | awk '{ print $2, $1 }' >by-perf
	"$CULPRIT" convert "$2" --value samples --to folded -o - 2>err | sed 's/.*;//' | grep -E '^bpf_prog_[0-9a-f]*_busy_(loop|inner) ' | sort >by-culprit
	if [ -s by-perf ] && cmp -s by-perf by-culprit; then ok "$1"; else not_ok "$1" "$(diff by-perf by-culprit)"; fi
}

# Two functions, of which no symbol of the kernel's stays when the recording is read.
if ! "$program" 1 lines >said 2>&1; then
	skip "lines of BPF programs" "the kernel does not take them: $(head -n 1 said)"
	plan_end
	exit
fi
"$program" 60000 lines &
BACKGROUND=$!
until [ "$(grep -c 'bpf_prog_.*busy_' /proc/kallsyms)" != 0 ] || ! kill -0 $BACKGROUND; do sleep 0.1; done
lines "lines of a program that ran before" "$CULPRIT" record -q -g -a -F 2000 -o data -- sleep
mv data own
perfs=""
if have perf && perf record -q -a -F 2000 -o perfs -- sleep 1 >/dev/null 2>&1; then
	perfs=1
	lines "lines in perf's recording" perf record -q -a -g -F 2000 -o data -- sleep
fi
kill $BACKGROUND
wait $BACKGROUND 2>/dev/null
# What "lines" would record again is there.
mv own data
lines "the same lines after it has gone" true
if [ -n "$perfs" ]; then
	names_as_perf "names in perf's recording are perf's" perfs
	"$CULPRIT" record -q -F 2000 -o own -- "$program" 400 lines
	names_as_perf "names in our recording are perf's" own
else
	skip "names as perf gives them" "perf cannot record here"
fi
plan_end
