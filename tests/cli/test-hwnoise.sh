#!/bin/bash
. "$(dirname "$0")/lib.sh"
. "$TESTS_DIR/cli/latency-lib.sh"
plan_begin

engine=$(chosen_engine hwnoise)
cpu=$(taskset -cp $$ | sed "s/.*[^0-9]//")

measured "engine U, or the reason why not" "$CULPRIT" hwnoise top -d 300ms --period 100000 --runtime 50000
out_has "the heading names the engine" "^hwnoise, engine [KBU]"
out_has "columns" "^CPU +Period +Runtime +Noise +%Aval +MaxNoise +MaxSingle +Unexplained +NMI"
out_lacks "kinds that are no hardware are left out" "Softirq"
measured "JSON" "$CULPRIT" hwnoise top -c "$cpu" -H "$cpu" -d 300ms -p 100000 -r 50000 -T 2 --json -o run.json
json_has "the keys of the contract" '.kind == "hwnoise" and .cpus[0].runtime_ns > 0 and (.cpus[0].hw | type) == "number"' out
json_has "nothing that the kernel knows of is among the culprits" '[.culprits[].kind] | all(. == "unexplained" or . == "nmi" or . == "steal")' out
json_has "the run file" '.kind == "hwnoise"' run.json
measured "CSV" "$CULPRIT" hwnoise top --cpus "$cpu" --house-keeping "$cpu" --duration 300ms -p 100000 -r 50000 --csv --output again.json
measured "a histogram" "$CULPRIT" hwnoise hist -c "$cpu" -d 300ms -p 100000 -r 50000 --threshold 1 --nano --bucket-size 500 --entries 20 -D
out_has "in nanoseconds" "time unit is nanoseconds|^0 samples"
measured "a bare one" "$CULPRIT" hwnoise hist -c "$cpu" -d 300ms -p 100000 -r 50000 -T 100ns -n -b 100 -E 10 --no-header --no-summary --no-index --with-zeros --debug
[ "$(wc -l <out)" -eq 10 ] && ok "10 rows" || not_ok "10 rows" "$(cat out)"
stopped "a single gap stops it" "$CULPRIT" hwnoise top --engine U -d 20s --stop 1 -T 100ns -q --quiet --warm-up 10ms
stopped "the noise of a period stops it" "$CULPRIT" hwnoise top --engine U -d 20s -p 100000 -r 50000 --stop-total 1 -T 100ns
stopped "short forms, actions" "$CULPRIT" hwnoise top --engine U -d 20s -p 100000 -r 50000 -s 1 -S 1 -T 100ns --on-threshold 'shell,command=true' --on-end 'shell,command=true'
check_fails "no trace mode" "top or hist" "$CULPRIT" hwnoise trace
check_fails "a runtime that is too short" "between 100 us and the period" "$CULPRIT" hwnoise top -r 50
check_fails "a filter without event" "needs an event before it" "$CULPRIT" hwnoise top --filter x
check_fails "a trigger without event" "needs an event before it" "$CULPRIT" hwnoise top --trigger x
check_fails "an event that is none" "not SYSTEM or SYSTEM:EVENT" "$CULPRIT" hwnoise top -e :x --event :x
check_fails "a bad priority" "between -20 and 19" "$CULPRIT" hwnoise top -P o:40 --priority o:40
check_match "a control group that is not there" "nosuchgroup" "$CULPRIT" hwnoise top -d 100ms -C/nosuchgroup --cgroup=/nosuchgroup
if [ "$engine" = B ] || [ "$engine" = K ]; then
	stopped "a trace" "$CULPRIT" hwnoise top -a 1 --auto 1 -d 60s -t=hw.txt --trace=hw.txt --trace-buffer-size 256
	[ -s hw.txt ] && ok "it is there" || not_ok "it is there" "$(cat messages)"
else
	skip "a trace" "only engine $engine runs here"
fi
plan_end
