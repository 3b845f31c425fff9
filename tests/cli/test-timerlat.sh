#!/bin/bash
. "$(dirname "$0")/lib.sh"
. "$TESTS_DIR/cli/latency-lib.sh"
plan_begin

engine=$(chosen_engine timerlat)
cpu=$(taskset -cp $$ | sed "s/.*[^0-9]//")
quick="-d 100ms"

# --- what everybody can run
# shellcheck disable=SC2086
measured "engine U measures without any right" "$CULPRIT" timerlat top --engine U $quick -p 500
out_has "the heading names the engine" "^timerlat, engine U \(user space\)"
out_has "what it cannot see is said" "cannot see: "
out_has "the unit stands in the heading" "Ret user: to user space \(us\)"
out_has "all CPUs have a line" "^ALL +[0-9]+ \|"
out_has "the worst has a line" "^worst: user [0-9.]+ us on CPU [0-9]+"
out_has "percentiles stand below" "p50 +p99 +p99\.9 +p99\.99"
out_has "losses are always said" "^[0-9]+ records lost, [0-9]+ dropped by full rings, [0-9]+ missed by recursion"
out_has "steal is always said" "^steal: "
out_has "PM QoS is not touched" "cpu_dma_latency: not touched"
out_lacks "no control characters go into a pipe" $'\033'
out_lacks "no minimum of 2^64 - 1" 18446744073709551615

measured "top is the default" "$CULPRIT" timerlat --engine U -d 50ms -q -n
out_has "nanoseconds when asked" "Ret user: to user space \(ns\)"

measured "JSON" "$CULPRIT" timerlat top --engine U -d 100ms --json -c "$cpu" -o run.json
json_has "the document has the keys of the contract" \
	'.kind == "timerlat" and .schema == 1 and .engine == "U" and .period_ns == 1000000 and .duration_ns > 0 and (.lost | type) == "number"
	and (.cpus | length) == 1 and .cpus[0].irq == null and .cpus[0].thread == null
	and (.cpus[0].user | .count > 0 and .min_ns <= .p50_ns and .p50_ns <= .p99_ns and .p99_ns <= .p999_ns and .p999_ns <= .max_ns)' out
json_has "the worst CPU is a field" ".worst.user.cpu == $cpu and .worst.user.max_ns == .cpus[0].user.max_ns" out
json_has "the run file keeps the histogram" '[.cpus[0].user.histogram[][1]] | add' run.json
json_has "the run file has the count of its histogram" '([.cpus[0].user.histogram[][1]] | add) == .cpus[0].user.count' run.json

measured "CSV" "$CULPRIT" timerlat top --engine U -d 50ms --csv
out_has "CSV has a header and a row for all" "^all,user,[0-9]+,"
measured "a histogram as CSV" "$CULPRIT" timerlat hist --engine U -d 50ms --csv
out_has "a row for each bucket" "^[0-9]+,user,[0-9]+,[0-9]+,[0-9]+$"

measured "a histogram" "$CULPRIT" timerlat hist --engine U -d 100ms --bucket-size 10 --entries 50
out_has "columns are named as rtla's" "^Index +Usr-000|^Index .*Usr-[0-9]{3}"
out_has "its summary has percentiles" "^p99\.9: "
measured "a bare histogram" "$CULPRIT" timerlat hist --engine U -c "$cpu" -d 50ms -b 5 -E 12 --no-header --no-summary --no-index --with-zeros
if [ "$(grep -cE '^ +[0-9]+$' out)" -eq 12 ] && [ "$(wc -l <out)" -eq 12 ]; then ok "12 rows and nothing else"; else not_ok "12 rows and nothing else" "$(cat out)"; fi

stopped "a threshold stops it with status 2" "$CULPRIT" timerlat top --engine U -d 20s --thread 1ns
out_has "user space alone gives no verdict" "No verdict: engine U does not see who runs in between"
out_has "samples over the limit are counted" "^[1-9][0-9]* user samples at or above"
stopped "without analysis" "$CULPRIT" timerlat top --engine U -d 20s -T 1ns --no-aa
out_lacks "none is printed" "No verdict"

# --- actions, in order, until one fails
stopped "actions on a threshold" "$CULPRIT" timerlat top --engine U -d 20s -T 1ns --on-threshold 'shell,command=echo one >>acts' \
	--on-threshold 'shell,command=echo two, three >>acts' --on-end 'shell,command=echo end >>acts'
if [ "$(cat acts)" = "one
two, three
end" ]; then ok "they are done in order"; else not_ok "they are done in order" "$(cat acts)"; fi
check_fails "the first failure ends them" "the command 'exit 3' returned 3" "$CULPRIT" timerlat top --engine U -d 20s -T 1ns \
	--on-threshold 'shell,command=exit 3' --on-threshold 'shell,command=echo never >>never'
[ ! -e never ] && ok "and the next is not done" || not_ok "and the next is not done"
sleep 60 &
sleeper=$!
stopped "a signal" "$CULPRIT" timerlat top --engine U -d 20s -T 1ns --on-threshold "signal,num=9,pid=$sleeper"
wait $sleeper
[ $? -eq 137 ] && ok "it arrived" || not_ok "it arrived"
stopped "measuring goes on" "$CULPRIT" timerlat top --engine U -d 300ms -T 1ns --on-threshold continue --on-threshold 'shell,command=echo again >>again'
if [ "$(wc -l <again)" -ge 2 ]; then ok "and stops again"; else not_ok "and stops again" "$(cat again)"; fi
stopped "tasks are dumped" "$CULPRIT" timerlat top --engine U -d 20s -T 1ns --dump-tasks
out_has "what runs then is named" "Runnable on the measured CPUs" messages
measured "a warm-up is thrown away" "$CULPRIT" timerlat top --engine U -d 100ms --warm-up 200ms -T 1s --json
json_has "its samples are not counted" '.duration_ns < 5000000000 and ([.cpus[].user.count] | max) < 4000' out

# --- options that are refused, with the reason
check_fails "a period out of range" "period of 50 us: it is between 100 and 1000000 us" "$CULPRIT" timerlat top --period 50
check_fails "an unknown engine" "no engine 'X'" "$CULPRIT" timerlat top --engine X
check_fails "an unknown mode" "'tpo': top, hist or trace expected" "$CULPRIT" timerlat tpo
check_fails "a CPU that is not there" "CPU 4095 is not online" "$CULPRIT" timerlat top --cpus 4095 -d 1s
check_fails "no list of CPUs" "not a list of CPUs" "$CULPRIT" timerlat top -c x
check_fails "a bad priority" "between 1 and 99" "$CULPRIT" timerlat top --priority f:100
check_fails "a bad policy" "none of o, r, f, d" "$CULPRIT" timerlat top -P x:1
check_fails "a deadline that cannot be" "no shorter" "$CULPRIT" timerlat top -P d:2000:1000
check_fails "an index is needed" "needs --with-zeros" "$CULPRIT" timerlat hist --no-index
check_fails "entries out of range" "between 10 and 9999999" "$CULPRIT" timerlat hist -E 5
check_fails "options of hist" "belong to 'timerlat hist'" "$CULPRIT" timerlat top -b 5
check_fails "two workloads" "exclude each other" "$CULPRIT" timerlat top -u -k
check_fails "two formats" "exclude each other" "$CULPRIT" timerlat top --json --csv
check_fails "an unknown action" "none of trace" "$CULPRIT" timerlat top --on-threshold dance
check_fails "an action without its value" "shell needs command=" "$CULPRIT" timerlat top --on-threshold shell
check_fails "a signal to nobody" "signal needs num=N and pid=" "$CULPRIT" timerlat top --on-threshold signal,num=9
check_fails "a filter without event" "needs an event before it" "$CULPRIT" timerlat top --filter 'pid == 1'
check_fails "a trigger without event" "needs an event before it" "$CULPRIT" timerlat top --trigger stacktrace
check_fails "no event" "not SYSTEM or SYSTEM:EVENT" "$CULPRIT" timerlat top --event :
check_fails "a time that is none" "not a time such as" "$CULPRIT" timerlat top --duration soon
check_fails "dma latency out of range" "between 0 and 10000 us" "$CULPRIT" timerlat top --dma-latency 20000
check_fails "analysis of nothing" "exclude each other" "$CULPRIT" timerlat top --aa-only 10 --no-aa
check_fails "an idle state that is none" "not the number of an idle state" "$CULPRIT" timerlat top --deepest-idle-state x
check_fails "kernel threads on another engine are refused" "engine U .*-k" "$CULPRIT" timerlat top --engine U -k
check_fails "threads of others on another engine are refused" "engine U .*-U" "$CULPRIT" timerlat top --engine U --user-load
if [ "$engine" != K ]; then
	check_fails "kernel threads where no engine has them" "no engine can measure this here: .*-k \(kernel threads\)" \
		"$CULPRIT" timerlat top --kernel-threads -d 1s
fi

# --- with rights: the interrupt, the thread, who was in the way
if [ "$engine" = B ] || [ "$engine" = K ]; then
	measured "all three latencies" "$CULPRIT" timerlat top -d 1s -P f:80 --user-threads --aligned 10 -D --json -o full.json
	out_has "-D says which engine and why" "engine [KB]: " messages
	json_has "each comes after the one before it" \
		'[.cpus[] | .irq.min_ns >= 0 and .irq.p50_ns <= .thread.p50_ns and .thread.p50_ns <= .user.p50_ns] | all' out
	json_has "sources are named" '.culprits | length > 0 and all(.kind and .name)' out
	measured "without the interrupts' columns" "$CULPRIT" timerlat top -d 200ms --no-irq
	out_lacks "they are left out" "IRQ: expiry"
	measured "without the threads' columns" "$CULPRIT" timerlat hist -d 200ms --no-thread
	out_lacks "they are left out" "Thr-0"
	stopped "-a stops, explains and traces" "$CULPRIT" timerlat top --auto 1 -d 60s
	out_has "the analysis has its lines" "^## CPU [0-9]+, wake-up [0-9]+"
	out_has "it ends in a culprit or says why not" "^  (Culprit: .* \([0-9]+ %\)|No verdict: )"
	out_has "the trace is text" "(timerlat_latency|timer_latency|irq_noise)" timerlat_trace.txt
	out_has "where it went is said" "trace written to timerlat_trace.txt" messages
	stopped "the analysis alone" "$CULPRIT" timerlat top --aa-only 1 -d 60s
	out_lacks "no table" "^ALL"
	stopped "a trace into a file of one's own" "$CULPRIT" timerlat hist --irq 1ns --stack 1 -t=mine.txt -d 60s --trace-buffer-size 256
	[ -s mine.txt ] && ok "it is there" || not_ok "it is there" "$(cat messages)"
	stopped "a trace as an action" "$CULPRIT" timerlat hist -i 1ns -s 1 -d 60s --trace --on-threshold trace,file=act.txt
	[ -s act.txt ] && ok "it is there" || not_ok "it is there" "$(cat messages)"
	stopped "the mode trace" "$CULPRIT" timerlat trace -T 1ns -d 60s -c "$cpu"
	[ -s timerlat_trace.txt ] && ok "writes the text" || not_ok "writes the text"
	measured "own CPUs for the reading" "$CULPRIT" timerlat top -c "$cpu" --house-keeping "$cpu" -d 200ms -H "$cpu"
	measured "a policy of its own is obtained and said" "$CULPRIT" timerlat top -P o:5 -d 200ms
	out_has "by name" "policy: other:5|SCHED_OTHER"
else
	skip "the interrupt, the thread, who was in the way" "only engine $engine runs here"
fi

# Events need tracefs, whatever engine measures.
if [ "$(id -u)" = 0 ] && "$CULPRIT" timerlat top -d 100ms -e sched:sched_switch -q >/dev/null 2>messages; then
	stopped "events into the trace" "$CULPRIT" timerlat top -T 1us -d 20s -t ev.txt --event sched:sched_switch --filter 'prev_pid != 0' \
		-e irq:irq_handler_entry --trigger stacktrace:1
	out_has "they are in it" "sched_switch" ev.txt
else
	skip "events into the trace" "tracefs cannot be used: $(head -n 1 messages)"
fi

# What changes the system says so and puts it back.
if [ -w /dev/cpu_dma_latency ]; then
	before=$(od -An -tx4 /dev/cpu_dma_latency)
	measured "PM QoS is held when asked" "$CULPRIT" timerlat top --engine U -d 200ms --dma-latency 10 --on-end 'shell,command=od -An -tx4 /dev/cpu_dma_latency >held'
	out_has "and said" "cpu_dma_latency: 10 us"
	[ "$(od -An -tx4 /dev/cpu_dma_latency)" = "$before" ] && ok "and given back" || not_ok "and given back"
else
	skip "PM QoS is held when asked" "no /dev/cpu_dma_latency"
fi
if [ -e "/sys/devices/system/cpu/cpu$cpu/cpuidle/state1/disable" ] && [ "$(id -u)" = 0 ]; then
	before=$(cat "/sys/devices/system/cpu/cpu$cpu/cpuidle/state1/disable")
	measured "idle states are limited" "$CULPRIT" timerlat top --engine U -c "$cpu" -d 200ms --deepest-idle-state 0
	[ "$(cat "/sys/devices/system/cpu/cpu$cpu/cpuidle/state1/disable")" = "$before" ] && ok "and given back" || not_ok "and given back"
else
	check_match "idle states that are not there" "idle-state" "$CULPRIT" timerlat top --engine U -d 100ms --deepest-idle-state 0
fi
check_match "a control group that is not there is named" "nosuchgroup" "$CULPRIT" timerlat top --engine U -d 100ms --cgroup=/nosuchgroup
measured "our own control group" "$CULPRIT" timerlat top --engine U -d 100ms -C

# ^C ends it as the time does.
"$CULPRIT" timerlat top --engine U -d 60s --on-end 'shell,command=echo ended >ended' >out 2>messages &
pid=$!
for _ in $(seq 300); do
	[ "$(awk '/SigBlk/{print substr($2, 16)}' /proc/$pid/status 2>/dev/null)" != 0 ] && [ "$(ls /proc/$pid/task | wc -l)" -gt 1 ] && break
	sleep 0.1
done
kill -INT $pid
wait $pid
status=$?
if [ $status -eq 0 ] || [ $status -eq 3 ]; then ok "^C ends it in order"; else not_ok "^C ends it in order" "status $status" "$(cat messages)"; fi
[ -e ended ] && ok "and what is to be done at the end is done" || not_ok "and what is to be done at the end is done"

# An ordinary user gets numbers, and a reason.
if can_be_nobody; then
	as_nobody "$CULPRIT" timerlat top -d 200ms >out 2>messages
	status=$?
	if [ $status -eq 0 ] || [ $status -eq 3 ]; then ok "an ordinary user gets numbers"; else not_ok "an ordinary user gets numbers" "status $status" "$(cat messages)"; fi
	out_has "from engine U" "engine U"
	out_has "and the reasons" "not B: "
	out_has "and the policy" "policy: (other|fifo)"
else
	skip "an ordinary user gets numbers" "cannot become nobody here"
fi

# a kernel that is locked down, as the file in securityfs says it
if [ "$(id -u)" = 0 ] && [ -d /sys/kernel/security ] && unshare -m true 2>/dev/null; then
	locked() {
		# shellcheck disable=SC2016
		unshare -m sh -c 'mount -t tmpfs none /sys/kernel/security && echo "none integrity [confidentiality]" >/sys/kernel/security/lockdown && exec "$@"' sh "$@"
	}
	check_fails "lockdown: engine B says why not" "locked down \(confidentiality\).*--engine U" locked "$CULPRIT" timerlat top -d 1s --engine B
	check_match "lockdown: engine U measures" "^timerlat, engine U" locked "$CULPRIT" timerlat top -q -d 1s --engine U
else
	skip "lockdown" "needs root and a mount namespace"
fi

plan_end
