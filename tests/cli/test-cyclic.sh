#!/bin/bash
# culprit cyclic: every option, counts that add up, cyclictest's layout. Latencies are whatever the machine gives.
. "$(dirname "$0")/lib.sh"
plan_begin

CPU=$(taskset -pc $$ 2>/dev/null | sed 's/.*: //; s/[-,].*//')
: "${CPU:=0}"

# expect NAME WANT HAVE
expect() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "have '$3', want '$2'"; fi; }

"$CULPRIT" cyclic -a "$CPU" -t 3 -l 40 -i 500 -d 100 -q >text 2>warnings
expect "a line for each thread" 3 "$(grep -cE '^T: *[0-9]+ \( *[0-9]+\) P: *0 I:[0-9]+ C: +[0-9]+ Min: +[0-9]+ Act: +[0-9]+ Avg: +[0-9]+ Max: +[0-9]+ P50: +[0-9]+ P99: +[0-9]+ P99.9: +[0-9]+$' text)"
expect "each made its loops" 3 "$(grep -cE ' C: +40 ' text)"
expect "each has its own interval" "I:500 I:600 I:700" "$(grep -oE 'I:[0-9]+' text | tr '\n' ' ' | sed 's/ $//')"
check_match "ordinary threads: a warning" "no real-time policy" cat warnings

# histogram: rows + overflows = loops; every value is there
"$CULPRIT" cyclic --affinity="$CPU" --threads=2 --loops 60 --interval 500 --histogram 5 --quiet >hist 2>/dev/null
expect "rows of the histogram" 5 "$(grep -cE '^00000[0-4] [0-9]{6}	[0-9]{6}$' hist)"
sum() { awk -v c="$1" '/^0/ {s += $(c + 2)} /^# Histogram Overflows:/ {s += $(c + 4)} END {print s + 0}' hist; }
expect "no value is lost, thread 0" 60 "$(sum 0)"
expect "no value is lost, thread 1" 60 "$(sum 1)"
beyond=$(sed -n '/^# Values beyond/,$p' hist | awk '/^# [0-9]/ {a += $3; b += $4} END {print a + 0, b + 0}')
over=$(awk '/^# Histogram Overflows:/ {print $4 + 0, $5 + 0}' hist)
expect "values beyond the histogram are listed" "$over" "$beyond"
"$CULPRIT" cyclic -a "$CPU" -l 20 -H 4 -q --histfile out.hist >text 2>/dev/null
expect "--histfile takes the histogram, -H adds a column" 4 "$(grep -cE '^00000[0-3] [0-9]{6}	[0-9]{6}$' out.hist)"
expect "and the lines go to stdout" 1 "$(grep -c '^T:' text)"
"$CULPRIT" cyclic -a "$CPU" -l 5 --histofall=3 -q 2>/dev/null >text
expect "--histofall" 3 "$(grep -cE '^00000[0-2] ' text)"

# the limit
"$CULPRIT" cyclic -a "$CPU" -b 0 -l 5 -q >/dev/null 2>&1
expect "-b 0 is no limit" 0 $?
"$CULPRIT" cyclic -a "$CPU" -i 200us -b 1ns -q >text 2>/dev/null
expect "a limit that is passed: status 2" 2 $?
check_match "the thread is named" '^# Break thread: [0-9]+$' cat text
"$CULPRIT" cyclic -a "$CPU" --breaktrace 1h -l 5 -q >/dev/null 2>&1
expect "a limit that is not passed: status 0" 0 $?

# JSON and run files
if have jq; then
	"$CULPRIT" cyclic -a "$CPU" -l 30 --json -o run.json 2>/dev/null >out.json
	check "the document" jq -e '.kind == "cyclic" and .engine == "U" and (.cpus | length == 1) and .cpus[0].user.count == 30 and
		.cpus[0].user.min_ns <= .cpus[0].user.p50_ns and .cpus[0].user.p999_ns <= .cpus[0].user.max_ns and .lost == 0' out.json
	check "what was not measured is null" jq -e '.cpus[0].irq == null or .cpus[0].irq.count == null or .cpus[0].irq.count == 0' out.json
	check "it says what it cannot see" jq -e '.cannot_see | length > 0' out.json
	check "the run file holds the same" jq -e '.kind == "cyclic" and .cpus[0].user.count == 30' run.json
	"$CULPRIT" cyclic -a "$CPU" -l 10 --json=file.json -q >text 2>/dev/null
	check "--json=FILE" jq -e '.kind == "cyclic"' file.json
	expect "beside the text" 1 "$(grep -c '^T:' text)"
	"$CULPRIT" cyclic -a "$CPU" -l 10 --output other.json -q >/dev/null 2>&1
	check "--output" jq -e '.kind == "cyclic"' other.json
else
	skip "the JSON document" "jq is not installed"
fi

# how it sleeps
for options in "-A" "-A 100" "--aligned=50" "-r" "--relative" "-c 1" "--clock 0" "-N" "--nsecs" "-M" "--refresh_on_max" "-d 0" "--distance 10us"; do
	# shellcheck disable=SC2086
	check "cyclic $options" "$CULPRIT" cyclic -a "$CPU" -l 10 $options -q
done
"$CULPRIT" cyclic -a "$CPU" -l 10 -N -q >text 2>/dev/null
check "-N: nanoseconds" awk '{for (i = 1; i <= NF; i++) if ($i == "Max:") exit !($(i + 1) >= 1000)}' text
check "-D ends it" "$CULPRIT" cyclic -a "$CPU" -D 200ms -q
check "--duration too" "$CULPRIT" cyclic -a "$CPU" --duration 0.2 -q
"$CULPRIT" cyclic -S -l 5 -q >text 2>/dev/null
expect "-S: a thread for each CPU" "$(nproc)" "$(grep -c '^T:' text)"
expect "with the same interval" 1 "$(grep -oE 'I:[0-9]+' text | sort -u | wc -l)"
"$CULPRIT" cyclic --smp -l 5 -q >text 2>/dev/null
expect "--smp too" "$(nproc)" "$(grep -c '^T:' text)"
"$CULPRIT" cyclic -t -l 5 -q >text 2>/dev/null
expect "-t alone: as many threads as CPUs" "$(nproc)" "$(grep -c '^T:' text)"

# policies
for policy in other normal batch idle; do
	check "--policy $policy" "$CULPRIT" cyclic -a "$CPU" -l 5 --policy $policy -q
done
if "$CULPRIT" cyclic -a "$CPU" -p 1 -l 1 -q >/dev/null 2>why; then
	"$CULPRIT" cyclic -a "$CPU" --priority 80 -l 20 -q >text 2>warnings
	check_match "-p: real time" '^T: 0 \( *[0-9]+\) P:80 ' cat text
	if grep -q "no real-time policy" warnings; then not_ok "no warning then" "$(cat warnings)"; else ok "no warning then"; fi
	check "--policy rr" "$CULPRIT" cyclic -a "$CPU" -p 2 --policy rr -l 5 -q
else
	skip "real-time priorities" "$(head -n 1 why)"
	check_match "the refusal names a cause" 'policy fifo, priority 1: .*(CAP_SYS_NICE|budget|gVisor|seccomp)' cat why
fi
if "$CULPRIT" cyclic -a "$CPU" -m -l 5 -q >/dev/null 2>why; then
	ok "-m"
	check "--mlockall" "$CULPRIT" cyclic -a "$CPU" --mlockall -l 5 -q
else
	check_match "-m that fails says why" 'lock memory' cat why
fi
if [ -w /dev/cpu_dma_latency ]; then
	check "--latency" "$CULPRIT" cyclic -a "$CPU" --latency 10 -l 10 -q
else
	check_fails "--latency without the right" 'cpu_dma_latency' "$CULPRIT" cyclic -a "$CPU" --latency 10 -l 10 -q
fi
"$CULPRIT" cyclic -a "$CPU" --smi -l 5 -q >text 2>warnings
if grep -q "SMIs cannot be counted" warnings; then
	check_match "--smi: unknown is a dash" ' SMI: +-$' cat text
else
	check_match "--smi: a number" ' SMI: +[0-9]+$' cat text
fi

# ended by a signal: the result is printed
"$CULPRIT" cyclic -a "$CPU" -q >text 2>/dev/null &
pid=$!
# a shell's background processes ignore ^C until they ask for it: ask until it is heard
while [ "$(cat /proc/$pid/comm 2>/dev/null)" = bash ]; do sleep 0.1; done
while kill -INT $pid 2>/dev/null; do sleep 0.3; done
wait $pid
expect "^C ends it with status 0" 0 $?
expect "and the result" 1 "$(grep -c '^T:' text)"

# what is refused
check_fails "priority 100" "1 to 99" "$CULPRIT" cyclic -p 100
check_fails "fifo without priority" "needs a priority" "$CULPRIT" cyclic --policy fifo
check_fails "other with priority" "no priority" "$CULPRIT" cyclic --policy other -p 3
check_fails "an unknown policy" "fifo or rr" "$CULPRIT" cyclic --policy best
check_fails "interval 1 us" "at least 10 us" "$CULPRIT" cyclic -i 1
check_fails "0 threads" "1 to" "$CULPRIT" cyclic -t 0
check_fails "no such clock" "CLOCK_MONOTONIC" "$CULPRIT" cyclic -c 7
check_fails "a CPU that is not there" "CPU 4000" "$CULPRIT" cyclic -a 4000 -l 1
check_fails "an operand" "no operands" "$CULPRIT" cyclic -l 1 word
check_fails "--latency out of range" "0 to 10000" "$CULPRIT" cyclic --latency 99999
check_fails "a bad duration" "-D takes a time" "$CULPRIT" cyclic -D 3x
check_fails "a histogram of nothing" "1 to" "$CULPRIT" cyclic -h 0

plan_end
