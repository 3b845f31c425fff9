#!/bin/bash
# culprit list: kinds, filters, formats of output, vendor tables, probing; and attributes as perf's.
. "$(dirname "$0")/lib.sh"
plan_begin
export CULPRIT_EVENTS_DIR=

check_match "--help explains filters" "A FILTER is one of the kinds" "$CULPRIT" list --help

check_match "hardware events have their encoding" '^cycles +hardware +type=0 config=0x0 ' "$CULPRIT" list hw
check_match "cache events" '^L1-dcache-load-misses +cache +type=3 config=0x10000 ' "$CULPRIT" list cache
check_match "software events" '^context-switches +software +type=1 config=0x3 ' "$CULPRIT" list sw
check_match "a glob" '^dTLB-store-misses ' "$CULPRIT" list 'dTLB-*misses'
check_match "a part of a name, whatever the case" '^LLC-load-misses ' "$CULPRIT" list cache llc-LOAD
check_match "perf's word for a kind" '^page-faults ' "$CULPRIT" list sw fault
check_fails "nothing matches" 'nothing matches no-such-event' "$CULPRIT" list --events-dir '' sw no-such-event
check_fails "outputs exclude each other" 'exclude each other' "$CULPRIT" list --json --csv
check_fails "--probe is about this machine" 'names another CPU' "$CULPRIT" list --probe --cpu skl
if [ "$("$CULPRIT" list hw | grep -c software)" = 0 ]; then ok "a kind narrows"; else not_ok "a kind narrows"; fi

"$CULPRIT" list --csv sw tool >list.csv
check_match "--csv has a header of keys" '^name,kind,encoding,counters,description,table,deprecated,probe,reason,unit,groups,needs,threshold$' cat list.csv
check_match "--csv leaves unknown cells empty" '^duration_time,tool,,' cat list.csv
check_match "--details has paragraphs" '^    encoding +type=1 config=0x1$' "$CULPRIT" list --details task-clock
check_match "-d is --details" '^    what +Time the task ran' "$CULPRIT" list -d task-clock

if have jq; then
	"$CULPRIT" list --json sw --probe >list.json
	check "--json is one document" jq -e '.kind == "list" and .schema == 1 and (.events | length > 10)' list.json
	check "--probe says whether each works" jq -e '[.events[] | .probe] | all(. == "works" or . == "user only" or . == "fails")' list.json
	check "--probe: task-clock works" jq -e '.events[] | select(.name == "task-clock") | .probe != "fails"' list.json
	"$CULPRIT" list --json hw --probe >hw.json
	check "--probe words every failure" jq -e '[.events[] | select(.probe == "fails") | .reason | length > 5] | all' hw.json
else
	skip "--json" "jq is not installed"
fi

# The user's vendor files, by option and by environment.
mkdir -p vendor/XYZ/events
cat >vendor/mapfile.csv <<'END'
Family-model,Version,Filename,EventType,Core Type,Native Model ID,Core Role Name
Nobody-6-55,V1,/XYZ/events/core.json,core,,,
END
cat >vendor/XYZ/events/core.json <<'END'
{"Header": {"Info": "test"}, "Events": [
 {"EventCode": "0xd1", "UMask": "0x08", "EventName": "MEM_LOAD_RETIRED.L1_MISS", "BriefDescription": "Loads that missed.",
  "Counter": "0,1,2,3", "Deprecated": "0"},
 {"EventCode": "0x3c", "UMask": "0x00", "EventName": "OLD.ONE", "Deprecated": "1"}]}
END
check_match "--events-dir and --cpu read vendor files" '^MEM_LOAD_RETIRED.L1_MISS +vendor +cpu/event=0xd1,umask=0x8/ +0,1,2,3 +Loads that missed' \
	"$CULPRIT" list --events-dir vendor --cpu xyz l1_miss
check_match "a deprecated event is marked" '^OLD.ONE  \(deprecated\)$' env CULPRIT_EVENTS_DIR=vendor "$CULPRIT" list --cpu xyz --details old
check_match "a map without this CPU is told" 'has no row for' "$CULPRIT" list --events-dir vendor vendor

# metrics and their groups, built in and of vendor files
cat >vendor/metrics.json <<'END'
{"Metrics": [{"MetricName": "faults_per_ms", "BriefDescription": "Faults in a millisecond.", "UnitOfMeasure": "per ms",
  "Events": [{"Name": "page-faults", "Alias": "a"}], "Constants": [{"Name": "DURATIONTIMEINMILLISECONDS", "Alias": "b"}],
  "Formula": "a / b", "MetricGroup": "Mine;Faults"}]}
END
mkdir flat
cp vendor/metrics.json flat/
check_match "metrics have their formula" '^branch_mpki +metric +branch-misses / instructions \* 1000 ' "$CULPRIT" list metric
check_match "a group lists its metrics" '^MPKI +group .*branch_mpki, cache_mpki' "$CULPRIT" list group
check_match "the name of a group finds its metrics" '^l1d_mpki ' "$CULPRIT" list metric MPKI
check_match "metrics of vendor files" '^faults_per_ms +metric +page-faults / \(duration_time \* 1000\) +- +Faults in' "$CULPRIT" list --events-dir flat 'faults*'
check_match "and their groups" '^Mine +group .*1 metric: faults_per_ms' "$CULPRIT" list --events-dir flat group mine
check_match "--details says what a metric needs" '^    needs +page-faults, duration_time$' "$CULPRIT" list --details --events-dir flat metric faults_per_ms
if have jq; then
	"$CULPRIT" list --json --events-dir flat metric >metrics.json
	check "--json has formula, unit, groups and needs" jq -e '.events[] | select(.name == "faults_per_ms")
		| .unit == "per ms" and .groups == "Mine;Faults" and .needs == "page-faults, duration_time" and (.encoding | length > 5)' metrics.json
else
	skip "--json has formula, unit, groups and needs" "jq is not installed"
fi

if "$CULPRIT" list --cpu skl vendor 2>/dev/null | grep -q MEM_LOAD_RETIRED; then
	check_match "--cpu lists another CPU's names" '^MEM_LOAD_RETIRED:L1_MISS +vendor +type=4 config=0x8d1' "$CULPRIT" list --cpu skl l1_miss
	check_match "--cpu of a table name" '^RETIRED_OPS +vendor' "$CULPRIT" list --cpu amd64_fam19h_zen4 retired_ops
	check_match "an unknown CPU names those there are" "no table of the CPU 'nonsense'; it may have: .*skl" "$CULPRIT" list --cpu nonsense
	check_match "--event takes names of another CPU" 'config=0x8d1' "$CULPRIT" list --cpu skl -e mem_load_retired.l1_miss
else
	skip "vendor names of another CPU" "libpfm4 is not installed"
fi

check_match "--event shows a group" '^cycles:u +hardware +type=0 config=0x0 exclude_kernel exclude_hv .*group 0 \(leader\)' "$CULPRIT" list --event '{cycles:u,faults}'
check_fails "--event words what is wrong" "character 8: expected an event" "$CULPRIT" list -e 'cycles,,faults'
check_fails "--event takes no filters" 'takes no filters' "$CULPRIT" list -e cycles hw
check_fails "an unknown event suggests" "unknown event 'cyclse' \(did you mean cycles" "$CULPRIT" list -e cyclse

# The same text gives the attribute that perf opens (exclude_guest apart: its default moved over time).
perf_attr() {
	perf stat -vv -e "$1" true 2>&1 | python3 -c '
import re, sys
rows = set()
for block in re.findall(r"^perf_event_attr:\n(.*?)^---", sys.stdin.read(), re.S | re.M):
    kv = dict(re.findall(r"^\s+(\S+)\s+(\S+)", block, re.M))
    kv.update(re.findall(r"\{ (\w+), config\d \}\s+(\S+)", block))
    n = lambda name: int(kv.get(name, "0"), 0)
    rows.add(" type=%d config=0x%x excl=%d%d%d%d%d precise=%d pinned=%d exclusive=%d bp=%d:%d" % (n("type"), n("config"), n("exclude_user"),
        n("exclude_kernel"), n("exclude_hv"), n("exclude_idle"), n("exclude_host"), n("precise_ip"), n("pinned"), n("exclusive"), n("bp_type"), n("bp_len")))
print("\n".join(sorted(rows)))'
}
our_attr() {
	"$CULPRIT" list --csv -e "$1" | python3 -c '
import csv, sys
rows = set()
for row in csv.DictReader(sys.stdin):
    words = row["encoding"].split()
    kv = dict(w.split("=") for w in words if "=" in w)
    f = lambda name: int(name in words)
    rows.add(" type=%d config=0x%x excl=%d%d%d%d%d precise=%d pinned=%d exclusive=%d bp=%d:%d" % (int(kv["type"]), int(kv["config"], 0), f("exclude_user"),
        f("exclude_kernel"), f("exclude_hv"), f("exclude_idle"), f("exclude_host"), int(kv.get("precise_ip", 0)), f("pinned"), f("exclusive"),
        int(kv.get("bp_type", 0)), int(kv.get("bp_len", 0))))
print("\n".join(sorted(rows)))'
}
if have perf && have python3; then
	while read -r text; do
		perf=$(perf_attr "$text") ours=$(our_attr "$text")
		if [ -z "$perf" ]; then
			skip "attributes of $text are perf's" "perf opens nothing for it here"
		elif [ "$perf" = "$ours" ]; then
			ok "attributes of $text are perf's"
		else
			not_ok "attributes of $text are perf's" "perf:$perf" "ours:$ours"
		fi
	done <<'END'
cpu-clock
task-clock:u
page-faults:k
context-switches:uk
faults:ukh
cs:I
task-clock:D
{cpu-clock,faults:u}
{cs,migrations}:D
{cs,faults}:u
dummy:H
dummy:G
sched:sched_switch
irq:softirq_*
mem:0x1000:w
mem:0x1000/8:rw:u
msr/tsc/
1:3
END
else
	skip "attributes are perf's" "perf or python3 is not installed"
fi

plan_end
