#!/bin/bash
# culprit latency: import, show, diff, check, plot.
. "$(dirname "$0")/lib.sh"
plan_begin

cat >top.txt <<'END'
                                     Timer Latency
  0 00:00:05   |          IRQ Timer Latency (us)        |         Thread Timer Latency (us)
CPU COUNT      |      cur       min       avg       max |      cur       min       avg       max
  0 #4622      |       54         7       156      6243 |      119        30       193      7660
  1 #4614      |       69        17       160      4302 |       85        45       193      7136
END
cat >hist.txt <<'END'
# RTLA timerlat histogram
# Time unit is microseconds (us)
# Duration:   0 00:00:10
Index   IRQ-000   Thr-000
1           900         0
2           100         0
5             0       990
9             0         9
70            0         1
over:         0         0
count:     1000      1000
min:          1         5
avg:          1         5
max:          2        70
END
sed 's/^9             0         9/9             0       509/; s/^5             0       990/5             0       490/' hist.txt >slow.txt
cat >trace.txt <<'END'
# tracer: timerlat
     stress-77    [004] d..h...   100.000020: #7 context    irq timer_latency     10000 ns
     stress-77    [004] d..h...   100.000023: irq_noise: local_timer:236 start 100.000019000 duration 3000 ns
     stress-77    [004] d...3..   100.000093: thread_noise: stress:77 start 100.000022000 duration 70000 ns
  timerlat/4-900  [004] .......   100.000096: #7 context thread timer_latency     86000 ns
END

# import and show
check_match "a table of rtla" "7660" "$CULPRIT" latency import top.txt
"$CULPRIT" latency import hist.txt -o hist.json >/dev/null
"$CULPRIT" latency import slow.txt --output slow.json >/dev/null
json_is() { # NAME FILE PYTHON
	check "$1" python3 -c "import json,sys
d = json.load(open(sys.argv[1]))
assert $3, d" "$2"
}
"$CULPRIT" latency show --json hist.json >show.json
json_is "the run file shows the same numbers" show.json \
	'd["kind"] == "timerlat" and d["cpus"][0]["thread"]["max_ns"] == 70000 and d["cpus"][0]["thread"]["count"] == 1000 and d["cpus"][0]["irq"]["min_ns"] == 1000'
json_is "percentiles come from the rows" show.json '5000 <= d["cpus"][0]["thread"]["p50_ns"] < 6000'
"$CULPRIT" latency import --json top.txt >top.json
json_is "percentiles of a table are unknown, not 0" top.json 'd["cpus"][0]["thread"]["p99_ns"] is None and d["cpus"][1]["irq"]["max_ns"] == 4302000'
check_match "--csv" "," "$CULPRIT" latency show --csv hist.json
check_match "show reads what import reads" "70" "$CULPRIT" latency show hist.txt
check_match "a trace is analysed: the culprit by name" "stress" "$CULPRIT" latency import trace.txt
for option in "-i 5" "--irq 5us" "-T 50" "--thread 50us" "--keep 3"; do
	# shellcheck disable=SC2086
	check_match "a trace with $option" "stress" "$CULPRIT" latency import $option trace.txt
done
(cat trace.txt && echo 'CPU:4 [LOST 3 EVENTS]') >lost.txt
check_status "lost records: incomplete" 3 "$CULPRIT" latency import lost.txt

# diff
check_match "diff of a run with itself finds nothing" "no" "$CULPRIT" latency diff hist.json hist.json
"$CULPRIT" latency diff --json hist.json slow.json >diff.json
json_is "diff finds the slower median" diff.json \
	'[r for r in d["quantiles"] if r["latency"] == "thread" and r["quantile"] == "p50"][0]["significant"] == "yes"'
check_match "diff --csv" "^latency,quantile" "$CULPRIT" latency diff --csv hist.json slow.json
check_status "--gate: a regression is status 2" 2 "$CULPRIT" latency diff --gate 10 hist.json slow.json
check_status "--gate: none is status 0" 0 "$CULPRIT" latency diff --gate 10 slow.json hist.json
check_fails "diff takes two" "two runs are compared" "$CULPRIT" latency diff hist.json

# check
check_status "limits kept: 0" 0 "$CULPRIT" latency check --sla 'thread.p99<=10us,thread.max<=70us,irq.max<=2us' hist.json
check_status "limit exceeded: 2" 2 "$CULPRIT" latency check --sla 'thread.max<=50us' hist.json
check_status "what is unknown proves nothing: 3" 3 "$CULPRIT" latency check --sla 'thread.p99<=10ms' top.txt
check_status "an incomplete run proves nothing: 3" 3 "$CULPRIT" latency check --sla 'thread.max<=1s' lost.txt
"$CULPRIT" latency check --sla 'thread.max<=50us' --sla 'thread.p99<=9s,user.max<=1us' --junit junit.xml --json hist.json >sla.json
json_is "check --json" sla.json '[r["state"] for r in d["rules"]] == ["exceeded", "kept", "unknown"]'
check "JUnit XML has a failure and an error" python3 - <<'END'
import xml.etree.ElementTree as x
s = x.parse("junit.xml").getroot().find("testsuite")
assert s.get("tests") == "3" and s.get("failures") == "1" and s.get("errors") == "1"
assert len(s.findall("testcase/failure")) == 1 and len(s.findall("testcase/error")) == 1
END
check_match "check --csv" "^rule,state" "$CULPRIT" latency check --csv --sla 'thread.max<=70us' hist.json
check_fails "check needs rules" "needs --sla" "$CULPRIT" latency check hist.json
check_fails "a rule that is none" "rule 'thread.p99<=10': .*needs a unit" "$CULPRIT" latency check --sla 'thread.p99<=10' hist.json

# plot
"$CULPRIT" latency plot hist.json slow.json -o plot.svg
check "the SVG is XML with both runs" python3 - <<'END'
import xml.etree.ElementTree as x
text = open("plot.svg").read()
x.fromstring(text)
assert "hist.json" in text and "slow.json" in text and "Thread" in text and "IRQ" in text
END
"$CULPRIT" latency plot hist.json -o plot.html
check_match "the HTML page has the picture and a table" "<table>" cat plot.html
check_fails "plot needs a file to write" "plot needs -o" "$CULPRIT" latency plot hist.json

# mistakes
check_fails "no verb" "one of import, show, diff, check, plot" "$CULPRIT" latency
check_fails "an unknown verb" "'shew'" "$CULPRIT" latency shew hist.json
check_fails "an option of another verb" "--sla belongs to check" "$CULPRIT" latency show --sla 'thread.max<=1us' hist.json
check_fails "a missing file" "nothing.json" "$CULPRIT" latency show nothing.json
echo '{"culprit": "1", "schema": 1, "kind": "timerlat", "cpus": [{"cpu": "x"}]}' >bad.json
check_fails "a damaged run file names the key" "cpu" "$CULPRIT" latency show bad.json
echo hello >hello.txt
check_fails "text without a measurement is refused with what can be read" "no measurement in it" "$CULPRIT" latency import hello.txt

# everything that was collected is read with numbers, or refused with a reason
if [ -d "${CULPRIT_TEST_DATA:-/nonexistent}/latency_cases" ]; then
	for file in "$CULPRIT_TEST_DATA"/latency_cases/*; do
		"$CULPRIT" latency import --json "$file" >out.json 2>error
		status=$?
		case $status in
		0 | 3) json_is "${file##*/} is read" out.json '"cpus" in d' ;;
		*) if [ "$(wc -l <error)" = 1 ]; then ok "${file##*/} is refused: $(cut -c1-150 error)"; else not_ok "${file##*/}" "status $status" "$(cat error)"; fi ;;
		esac
	done
else
	skip "collected measurements" "no test data"
fi

plan_end
