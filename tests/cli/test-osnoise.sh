#!/bin/bash
. "$(dirname "$0")/lib.sh"
. "$TESTS_DIR/cli/latency-lib.sh"
plan_begin

engine=$(chosen_engine osnoise)
cpu=$(taskset -cp $$ | sed "s/.*[^0-9]//")

measured "engine U measures without any right" "$CULPRIT" osnoise top --engine U -d 300ms --period 100000 --runtime 50000
out_has "the heading names the engine" "^osnoise, engine U"
out_has "rtla's columns" "^CPU +Period +Runtime +Noise +%Aval +MaxNoise +MaxSingle +Unexplained"
out_has "steal stands beside them" "Steal"
out_has "what is unexplained is called so" "^Unexplained: nothing the kernel knows of ran"
out_has "the worst has a line" "^worst: a gap of "
out_lacks "no control characters go into a pipe" $'\033'

measured "JSON" "$CULPRIT" osnoise top --engine U -c "$cpu" -d 300ms -p 100000 -r 50000 -T 2 --json --output run.json
json_has "the keys of the contract" '.kind == "osnoise" and (.cpus | length) == 1 and (.cpus[0] | .runtime_ns > 0 and .noise_ns >= 0
	and .available_share <= 1 and .available_share > 0 and has("hw") and has("nmi") and has("irq") and has("softirq") and has("thread")
	and has("max_noise_ns") and has("max_single_ns")) and (.culprits | type) == "array"' out
json_has "what the engine does not see is null, not 0" '.cpus[0].irq == null' out
json_has "the run file can be read" '.threshold_ns == 2000' run.json
measured "CSV" "$CULPRIT" osnoise top --engine U -d 300ms -p 100000 -r 50000 --csv
out_has "its header" "^cpu,periods,runtime_ns,noise_ns,available_share"
measured "a histogram" "$CULPRIT" osnoise hist --engine U -c "$cpu" -d 300ms -p 100000 -r 50000 --threshold 500000 -b 10 -E 20 --no-header
out_has "an empty one says so" "^0 samples above 500000(\.0)? us|^count:"
measured "its rows" "$CULPRIT" osnoise hist --engine U -c "$cpu" -d 300ms -p 100000 -r 50000 -T 100ns --bucket-size 1 --entries 10 --no-header --no-summary --no-index --with-zeros -n
[ "$(wc -l <out)" -eq 10 ] && ok "all 10, and nothing else" || not_ok "all 10, and nothing else" "$(cat out)"
stopped "a single gap stops it" "$CULPRIT" osnoise top --engine U -d 20s --stop 1 -T 100ns
stopped "the noise of a period stops it" "$CULPRIT" osnoise top --engine U -d 20s -p 100000 --stop-total 1 -T 100ns
stopped "the short forms" "$CULPRIT" osnoise top --engine U -d 20s -p 100000 -s 1 -S 1 -T 100ns -q --nano --warm-up 50ms
stopped "actions" "$CULPRIT" osnoise top --engine U -d 20s -s 1 -T 100ns --on-threshold 'shell,command=echo hit >>acts' --on-end 'shell,command=echo end >>acts'
[ "$(cat acts)" = "hit
end" ] && ok "are done" || not_ok "are done" "$(cat acts)"

check_fails "a runtime longer than the period" "runtime of 2000000 us in a period of 1000000 us" "$CULPRIT" osnoise top -r 2000000
check_fails "a threshold of 0" "every reading of the clock would be noise" "$CULPRIT" osnoise top -T 0
check_fails "a period out of range" "between 1 and 10000000 us" "$CULPRIT" osnoise top -p 20s
check_fails "engine L measures no noise" "engine L" "$CULPRIT" osnoise top --engine L -d 1s
check_fails "a filter without event" "needs an event before it" "$CULPRIT" osnoise top --filter x
check_fails "a trigger without event" "needs an event before it" "$CULPRIT" osnoise top --trigger x

if [ "$engine" = B ] || [ "$engine" = K ]; then
	# Somebody who takes the CPU by force is found and stands before all other threads.
	measured "own policy, CPU and group" "$CULPRIT" osnoise top -c "$cpu" --cpus "$cpu" -H "$cpu" --house-keeping "$cpu" -P o:0 --priority o:0 -C --cgroup -d 1s -D --debug --json
	json_has "interruptions are counted by kind and name" '.cpus[0].irq > 0 and (.culprits | map(select(.kind == "irq")) | length > 0)' out
	out_has "-D says why" "engine [KB]" messages
	stopped "-a stops and traces" "$CULPRIT" osnoise top -a 1 --auto 1 -d 60s --trace-buffer-size 512
	[ -s osnoise_trace.txt ] && ok "the trace is there" || not_ok "the trace is there" "$(cat messages)"
	stopped "the mode trace, into a file" "$CULPRIT" osnoise trace -s 1 -T 1 -d 60s --trace=mine.txt --quiet
	[ -s mine.txt ] && ok "the trace is there" || not_ok "the trace is there" "$(cat messages)"
	stopped "-t with a name" "$CULPRIT" osnoise top -s 1 -T 1 -d 60s -t mine2.txt
	[ -s mine2.txt ] && ok "the trace is there" || not_ok "the trace is there" "$(cat messages)"
	if [ "$(id -u)" = 0 ] && "$CULPRIT" osnoise top -d 100ms --event sched:sched_switch >/dev/null 2>messages; then
		stopped "with events" "$CULPRIT" osnoise top -s 1 -T 1 -d 60s -t ev.txt -e sched:sched_switch
		[ -s ev.txt ] && ok "the trace is there" || not_ok "the trace is there" "$(cat messages)"
	else
		skip "with events" "tracefs cannot be used"
	fi
else
	skip "who was in the way" "only engine $engine runs here"
fi
if can_be_nobody; then
	as_nobody "$CULPRIT" osnoise top -d 300ms -p 100000 -r 50000 >out 2>messages
	out_has "an ordinary user gets gaps, and the reason" "engine U"
else
	skip "an ordinary user gets gaps, and the reason" "cannot become nobody here"
fi
plan_end
