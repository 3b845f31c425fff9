#!/bin/sh
# Engine K on a kernel that has the tracers: its numbers against the raw trace of the same run, rtla
# beside it, engine B on the same kernel, and nothing left behind after kill -9.
# shellcheck shell=ash
. "$(dirname "$0")/../cli/lib.sh"
plan_begin

tracing=/sys/kernel/tracing

# All global settings and whatever was left behind.
knobs() {
	for file in "$tracing"/osnoise/* "$tracing"/tracing_thresh "$tracing"/hwlat_detector/*; do
		[ -f "$file" ] && echo "${file#"$tracing"/} $(cat "$file")"
	done
	ls $tracing/instances
	ls /run/culprit 2>/dev/null
}

knobs_are_old() {
	knobs >knobs.now
	if cmp -s knobs.old knobs.now; then ok "$1"; else not_ok "$1" "$(diff knobs.old knobs.now)"; fi
}

# run NAME COMMAND...: status 0 or 3; output in ./out
run() {
	local name=$1 status
	shift
	"$@" >out 2>messages
	status=$?
	if [ $status -eq 0 ] || [ $status -eq 3 ]; then ok "$name"; else not_ok "$name" "status $status" "$(cat messages)" "$(tail -n 20 out)"; fi
}

# cpu context count min int(average) max, of culprit's CSV and of a trace's text
of_csv() { awk -F, '$1 ~ /^[0-9]+$/ { printf "%d %s %d %d %d %d\n", $1, $2, $3, $4, int($5), $10 }' "$1" | sort; }
of_trace() {
	awk '
		/ context .* timer_latency / { for (i = 1; i < NF; i++) { if ($i == "context") c = $(i + 1); if ($i == "timer_latency") v = $(i + 1) } take() }
		/ timerlat: .*timer_latency:/ { split($0, a, "context:"); c = a[2] + 0 ? (a[2] + 0 == 1 ? "thread" : "user") : "irq"; split($0, a, "timer_latency:"); v = a[2] + 0; take() }
		function take(   i, k) {
			for (i = 1; i < NF; i++) if ($i ~ /^\[[0-9]+\]$/) break
			k = substr($i, 2) + 0 " " c
			if (!(k in n) || v < min[k]) min[k] = v
			if (!(k in n) || v > max[k]) max[k] = v
			n[k]++; sum[k] += v
		}
		END { for (k in n) printf "%s %d %d %d %d\n", k, n[k], min[k], int(sum[k] / n[k]), max[k] }' "$1" | sort
}

same_numbers() {
	if [ -s "$2" ] && cmp -s "$2" "$3"; then ok "$1"; else not_ok "$1" "culprit:" "$(cat "$2")" "trace:" "$(cat "$3")"; fi
}

knobs >knobs.old

# --- the raw trace of the same run
run "timerlat measures" "$CULPRIT" timerlat top -k -q -p 5000 -d 2s --csv --trace-buffer-size 4096 \
	--on-end trace,file=run.txt --on-end trace,file=run.dat
of_csv out >ours
of_trace run.txt >theirs
same_numbers "counts, min, average and max are those of the trace's text" ours theirs
trace-cmd report run.dat >report.txt 2>report.err
of_trace report.txt >theirs
same_numbers "trace-cmd report opens trace.dat and tells the same" ours theirs
run "the trace is imported" "$CULPRIT" latency import run.dat -o imported.json
knobs_are_old "the settings are as before"

run "osnoise measures" "$CULPRIT" osnoise top -q -p 500000 -r 400000 -d 2s --csv --trace-buffer-size 4096 --on-end trace,file=run.txt
awk -F, '$1 ~ /^[0-9]+$/ { printf "%d %d %d %d %d %d %d %d\n", $1, $2, $3, $4, $8, $9, $10, $12 }' out | sort >ours
# RUNTIME NOISE % MAX HW NMI IRQ SIRQ THREAD: lines of periods have no colon behind their time's
awk '$1 ~ /^osnoise\// && NF == 13 && $5 ~ /^[0-9]+$/ {
		c = substr($2, 2) + 0; n[c]++; run[c] += $5 * 1000; noise[c] += $6 * 1000; hw[c] += $9; nmi[c] += $10; irq[c] += $11; thread[c] += $13 }
	END { for (c in n) printf "%d %d %d %d %d %d %d %d\n", c, n[c], run[c], noise[c], hw[c], nmi[c], irq[c], thread[c] }' run.txt | sort >theirs
same_numbers "periods, runtime, noise and counts are those of the trace's text" ours theirs
run "hwnoise measures" "$CULPRIT" hwnoise top -q -p 500000 -r 300000 -d 1s --csv
if awk -F, '$1 ~ /^[0-9]+$/ { if ($3 > 0 && $10 + $11 + $12 == 0) n++ } END { exit n != 2 }' out; then
	ok "with interrupts off nothing but hardware is noise"
else
	not_ok "with interrupts off nothing but hardware is noise" "$(cat out)"
fi

# --- a threshold
"$CULPRIT" timerlat top -k -q -p 5000 -d 20s -a 1 --trace=stop.txt >out 2>messages
status=$?
if [ $status -eq 2 ] && grep -q 'timer_latency' stop.txt && grep -q 'timerlat_irq' stop.txt; then
	ok "a threshold stops it, with the trace and the stack"
else
	not_ok "a threshold stops it, with the trace and the stack" "status $status" "$(cat messages)" "$(grep -v '=> 0' stop.txt | tail -n 40)"
fi
check_match "and the analysis takes it apart" 'CPU [01]' cat out

# --- rtla beside it sees every sample that culprit sees, and more before and after
rtla timerlat top -q -p 5000 -d 100 >rtla.txt 2>&1 &
rtla=$!
while ! grep -q '^timerlat$' $tracing/instances/*/current_tracer 2>/dev/null && kill -0 $rtla 2>/dev/null; do sleep 0.1; done
run "timerlat measures beside rtla" "$CULPRIT" timerlat top -k -q -p 5000 -d 1s --csv
sleep 1
kill -INT $rtla
wait $rtla
of_csv out >ours
# CPU COUNT | cur min avg max | cur min avg max; microseconds, cut
if awk 'FNR == NR { if ($1 ~ /^[0-9]+$/ && $2 ~ /^#/) { gsub(/[#|]/, " "); n[$1] = $2; mn[$1 " irq"] = $4; mx[$1 " irq"] = $6; mn[$1 " thread"] = $8; mx[$1 " thread"] = $10 } next }
	{ k = $1 " " $2; if (!(k in mx) || n[$1] < $3 || mn[k] > int($4 / 1000) || mx[k] < int($6 / 1000)) bad = 1; rows++ }
	END { exit bad || rows != 4 }' rtla.txt ours; then
	ok "rtla's counts and extremes contain ours"
else
	not_ok "rtla's counts and extremes contain ours" "$(cat ours)" "$(cat rtla.txt)"
fi
knobs_are_old "the settings are as before rtla"

# --- engine B on the same kernel: twice the tracer, BPF in between. An emulated machine on a busy one
# stalls now and then, so it may try again.
between() {
	"$CULPRIT" timerlat top --engine K -k -q -p 10000 -d 1500ms --csv >k1 2>messages &&
		"$CULPRIT" timerlat top --engine B -q -p 10000 -d 1500ms --csv >b 2>>messages &&
		"$CULPRIT" timerlat top --engine K -k -q -p 10000 -d 1500ms --csv >k2 2>>messages || return 1
	awk -F, '$1 == "all" && $2 == "irq" { f++; n[f] = $3; p[f] = $6 } END {
		low = p[1] < p[3] ? p[1] : p[3]; high = p[1] > p[3] ? p[1] : p[3]; few = n[1] < n[3] ? n[1] : n[3]; many = n[1] + n[3] - few
		exit !(f == 3 && n[2] >= 0.9 * few && n[2] <= 1.1 * many && p[2] >= low / 3 && p[2] <= high * 3) }' k1 b k2
}
if between || between || between; then
	ok "engine B agrees with engine K"
elif [ ! -s b ]; then
	skip "engine B agrees with engine K" "$(tail -n 1 messages)"
else
	not_ok "engine B agrees with engine K" "$(cat messages)" "$(grep '^all' k1 b k2)"
fi

# --- loops without pause on all CPUs, of a real-time priority, which nothing throttles: nobody else gets a CPU
throttled=$(cat /proc/sys/kernel/sched_rt_runtime_us)
echo -1 >/proc/sys/kernel/sched_rt_runtime_us
for engine in K B; do
	"$CULPRIT" osnoise top --engine $engine -P f:50 -p 1s -r 1s -q -d 1s >out 2>messages
	status=$?
	if { [ $status -eq 0 ] || [ $status -eq 3 ]; } && tr -s '\n ' ' ' <out | grep -q 'left the one that reads no CPU'; then
		ok "engine $engine ends although its threads leave no CPU to anybody"
	else
		not_ok "engine $engine ends although its threads leave no CPU to anybody" "status $status" "$(cat messages)" "$(tail -n 20 out)"
	fi
done
echo "$throttled" >/proc/sys/kernel/sched_rt_runtime_us

# --- kill -9 in the middle, each start repairing what the one before left
# begun PID: its tracer runs, on CPUs (until it begins it holds all back)
begun() {
	while ! { grep -qE '^(timerlat|osnoise)$' $tracing/instances/culprit-*-"$1"/current_tracer && grep -q '[0-9]' $tracing/osnoise/cpus; } 2>/dev/null && kill -0 "$1" 2>/dev/null; do sleep 0.1; done
}
for tool in timerlat osnoise hwnoise; do
	"$CULPRIT" $tool top -q -p 1000000 --engine K -d 60s >/dev/null 2>&1 &
	killed=$!
	begun $killed
	kill -9 $killed
	wait $killed 2>/dev/null
	[ $tool = timerlat ] || continue
	# what was killed has left the tracer at its period: up to a second passes before rtla's
	for seconds in 2 8; do
		rtla timerlat top -q -p 1000 -d $seconds >rtla.txt 2>&1
		grep -qE '^ +1 +#[1-9]' rtla.txt && break
	done
	if grep -qE '^ +1 +#[1-9]' rtla.txt; then ok "rtla works after kill -9"; else not_ok "rtla works after kill -9" "$(cat rtla.txt)"; fi
done
"$CULPRIT" timerlat top -q -p 5000 --engine K -k -d 60s >/dev/null 2>&1 &
ended=$!
begun $ended
kill -TERM $ended
wait $ended
knobs_are_old "kill -9 and signals leave nothing behind once culprit started again"

plan_end
