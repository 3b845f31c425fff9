#!/bin/sh
# The commands on a kernel that has the tracers: engine K is chosen, the numbers fit rtla's columns.
# shellcheck shell=ash
. "$(dirname "$0")/../cli/lib.sh"
plan_begin

# Wake-ups each 5 ms: each millisecond they take a third of an emulated CPU on a fast machine, and all of it on a slow one.

check_match "the kernel's tracer is chosen" '^timerlat, engine K \(kernel tracer\): the best there is' "$CULPRIT" timerlat top -p 5000 -d 2s -k
"$CULPRIT" timerlat top -p 5000 -d 3s -k --csv >top.csv 2>messages
status=$?
if [ $status -eq 0 ] || [ $status -eq 3 ]; then ok "timerlat runs"; else not_ok "timerlat runs" "status $status" "$(cat messages)"; fi
# cpu,context,count,min,avg,p50,p99,p999,p9999,max,negative
check "both CPUs have samples of both contexts, in order" awk -F, '
	$1 != "all" && $1 != "cpu" { rows++; if ($3 < 100 || $4 > $6 || $6 > $7 || $7 > $8 || $8 > $10) bad++ }
	END { exit !(rows == 4 && bad == 0) }' top.csv
"$CULPRIT" timerlat top -p 5000 -a 1 -d 60s -k >aa.txt 2>messages
status=$?
if [ $status -eq 2 ]; then ok "a threshold stops it"; else not_ok "a threshold stops it" "status $status" "$(cat messages)" "$(tail -n 20 aa.txt)"; fi
check_match "the stop is analysed" '^## CPU [0-9]+, wake-up [0-9]+' cat aa.txt
check_match "with a culprit, or the reason why there is none" '^  (Culprit: |No verdict: )' cat aa.txt
check_match "the trace is written" 'timer_latency' cat timerlat_trace.txt
"$CULPRIT" osnoise top -d 3s --csv >noise.csv 2>messages
status=$?
if [ $status -eq 0 ] || [ $status -eq 3 ]; then ok "osnoise runs"; else not_ok "osnoise runs" "status $status" "$(cat messages)"; fi
check "noise is within the runtime" awk -F, 'NR > 1 { if ($3 <= 0 || $4 > $3 || $10 == 0) bad++; rows++ } END { exit !(rows == 2 && bad == 0) }' noise.csv
check_match "hwnoise runs" '^hwnoise, engine K' "$CULPRIT" hwnoise top -d 3s

# --- options that need this kernel, or root of a whole machine. Where it is newer, what it lacks may be there.
# measures NAME COMMAND...: status 0 or 3, output in ./out
measures() {
	local name=$1 status
	shift
	"$@" >out 2>messages
	status=$?
	if [ $status -eq 0 ] || [ $status -eq 3 ]; then ok "$name"; else not_ok "$name" "status $status" "$(cat messages)"; fi
}
# either NAME REGEX COMMAND...: it measures, or is refused for this reason
either() {
	local name=$1 regex=$2 status
	shift 2
	"$@" >out 2>messages
	status=$?
	if [ $status -eq 0 ] || [ $status -eq 3 ] || { [ $status -eq 1 ] && grep -qE "$regex" messages; }; then ok "$name"; else not_ok "$name" "status $status" "$(cat messages)"; fi
}
short="-q -p 5000 -d 200ms"
# shellcheck disable=SC2086
{
	check_fails "deadline: pinned kernel threads are refused, with the remedy" 'timerlat/0: policy deadline: .*exclusive cpuset.*sched_rt_runtime_us' "$CULPRIT" timerlat top -k $short -P d:1ms:5ms
	check_fails "deadline: our own too, of one CPU as well" 'CPU 0: policy deadline: .*exclusive cpuset' "$CULPRIT" timerlat top --engine U -c 0 $short -P d:1ms:5ms
	throttled=$(cat /proc/sys/kernel/sched_rt_runtime_us)
	echo -1 >/proc/sys/kernel/sched_rt_runtime_us
	measures "deadline: our own, without admission" "$CULPRIT" timerlat top --engine U $short -P d:1ms:5ms
	check_match "and the heading says so" 'policy: deadline 1000/5000 us' tr -s '\n ' ' ' <out
	measures "deadline: kernel threads; no idle states; a trace with filter and trigger" "$CULPRIT" timerlat trace -k $short -P d:1ms:5ms \
		--dma-latency 0 -e sched:sched_switch --filter 'next_prio < 100' --trigger 'hist:key=next_pid'
	echo "$throttled" >/proc/sys/kernel/sched_rt_runtime_us
	check_match "the states are told" 'cpu_dma_latency: 0 us' cat out
	check_match "the trigger's histogram is kept" 'hitcount' cat sched_sched_switch_hist.txt
	check_match "the trace has what the filter passes" 'sched_switch: .* next_prio=-?[0-9]?[0-9]$' cat timerlat_trace.txt
	mkdir -p /sys/fs/cgroup/lat
	either "cgroup of kernel threads" 'into no cgroup but the root; user threads \(-u\) can be moved' "$CULPRIT" timerlat top -k $short -C/lat
	check_fails "a cgroup that takes no threads" 'lat: it takes no single threads; write "threaded"' "$CULPRIT" timerlat top --engine U $short -Clat
	echo threaded >/sys/fs/cgroup/lat/cgroup.type
	"$CULPRIT" timerlat top --engine U -q -p 5000 -d 60s -Clat >out 2>messages &
	culprit=$!
	# its threads are in there, one of each CPU
	while [ "$(wc -l </sys/fs/cgroup/lat/cgroup.threads)" -lt 2 ] && kill -0 $culprit 2>/dev/null; do sleep 0.1; done
	check_match "the threads of ours are in the cgroup" "^2$" wc -l </sys/fs/cgroup/lat/cgroup.threads
	kill -INT $culprit
	wait $culprit
	if [ ! -e /sys/kernel/tracing/osnoise/per_cpu/cpu0/timerlat_fd ]; then
		check_fails "threads of others need timerlat_fd" 'no user threads \(timerlat_fd' "$CULPRIT" timerlat top -U $short
	fi
	either "aligned kernel threads" 'timerlat_align_us is missing' "$CULPRIT" timerlat top -k -A 100 $short
	either "idle states" 'no idle states to choose from' "$CULPRIT" timerlat top -k --deepest-idle-state 0 $short
	# without the switch for interrupts hwlat has to do
	tr ' ' '\n' </sys/kernel/tracing/osnoise/options | grep -v IRQ_DISABLE | tr '\n' ' ' >options
	mount --bind options /sys/kernel/tracing/osnoise/options
	measures "hwnoise by the hwlat tracer" "$CULPRIT" hwnoise top -q -p 200ms -r 150ms -d 500ms
	umount /sys/kernel/tracing/osnoise/options
	check_match "which it says" 'tracer: hwlat' cat out
}

check_match "the tracer's own settings are back" '^nop' cat /sys/kernel/tracing/current_tracer
check "no instance is left" sh -c '! ls -d /sys/kernel/tracing/instances/culprit-* 2>/dev/null'
check_match "rtla works afterwards" '^ +1 +#[0-9]+' rtla timerlat top -q -p 5000 -d 2
"$CULPRIT" timerlat top -u -p 5000 -q -d 2s >out 2>messages
if [ -e /sys/kernel/tracing/osnoise/per_cpu/cpu0/timerlat_fd ]; then
	check_match "user threads" '^timerlat, engine K' cat out
else
	check_match "user threads need timerlat_fd, or BPF" '^timerlat, engine B \(BPF\): not K: .*no user threads \(timerlat_fd, Linux 6.5\)' tr -s '\n ' ' ' <out
fi

plan_end
