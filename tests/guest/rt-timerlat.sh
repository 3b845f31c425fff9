#!/bin/sh
# The commands on a kernel that has the tracers: engine K is chosen, the numbers fit rtla's columns.
# shellcheck shell=ash
. "$(dirname "$0")/../cli/lib.sh"
plan_begin

check_match "the kernel's tracer is chosen" '^timerlat, engine K \(kernel tracer\): the best there is' "$CULPRIT" timerlat top -d 2s -k
"$CULPRIT" timerlat top -d 3s -k --csv >top.csv 2>messages
status=$?
if [ $status -eq 0 ] || [ $status -eq 3 ]; then ok "timerlat runs"; else not_ok "timerlat runs" "status $status" "$(cat messages)"; fi
# cpu,context,count,min,avg,p50,p99,p999,p9999,max,negative
check "both CPUs have samples of both contexts, in order" awk -F, '
	$1 != "all" && $1 != "cpu" { rows++; if ($3 < 100 || $4 > $6 || $6 > $7 || $7 > $8 || $8 > $10) bad++ }
	END { exit !(rows == 4 && bad == 0) }' top.csv
"$CULPRIT" timerlat top -a 1 -d 60s -k >aa.txt 2>messages
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
check_match "the tracer's own settings are back" '^nop' cat /sys/kernel/tracing/current_tracer
check "no instance is left" sh -c '! ls -d /sys/kernel/tracing/instances/culprit-* 2>/dev/null'
check_match "rtla works afterwards" '^ +1 +#[0-9]+' rtla timerlat top -q -d 2
check_match "BPF on the same kernel" '^timerlat, engine B' "$CULPRIT" timerlat top --engine B -d 3s

plan_end
