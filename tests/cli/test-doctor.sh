#!/bin/bash
# culprit doctor: every check is a row with a state, a meaning and, where it is not ok, a remedy.
. "$(dirname "$0")/lib.sh"
plan_begin

check_match "--help explains the states" '^States: ok; warn' "$CULPRIT" doctor --help
check_match "the table has its columns" '^STATE +AREA +CHECK +VALUE +WHAT IT MEANS' "$CULPRIT" doctor
check_match "the PMU is looked for" '^(ok|fail) +counting +pmu ' "$CULPRIT" doctor
check_match "the level of paranoia" '^(ok|warn|fail|unknown) +rights +perf_event_paranoid ' "$CULPRIT" doctor
check_match "one area" '^(ok|warn) +limits +open_files ' "$CULPRIT" doctor --area limits
if "$CULPRIT" doctor --area limits | grep -q ' counting '; then not_ok "--area leaves out the others"; else ok "--area leaves out the others"; fi
check_fails "an unknown area names those there are" "no area 'nonsense'; there are counting, rights, limits" "$CULPRIT" doctor --area nonsense
check_fails "operands are refused" "unexpected 'pmu'" "$CULPRIT" doctor pmu
check_fails "outputs exclude each other" 'exclude each other' "$CULPRIT" doctor --json --csv
check_match "--csv has a header of keys" '^state,area,name,value,why,remedy$' "$CULPRIT" doctor --csv

if have jq; then
	"$CULPRIT" doctor --json >doctor.json
	check "--json is one document" jq -e '.kind == "doctor" and .schema == 1 and (.checks | length >= 12)' doctor.json
	check "states are of the four" jq -e '[.checks[].state] | all(. == "ok" or . == "warn" or . == "fail" or . == "unknown")' doctor.json
	check "every check says what it means" jq -e '[.checks[].why | length > 5] | all' doctor.json
	check "what is unknown has no value" jq -e '[.checks[] | select(.state == "unknown") | .value == null] | all' doctor.json
	check "every failure has a remedy" jq -e '[.checks[] | select(.state == "fail") | .remedy | length > 5] | all' doctor.json
	check "names are unique" jq -e '[.checks[].name] | length == (unique | length)' doctor.json
	if jq -e '[.checks[].state] | any(. == "fail")' doctor.json >/dev/null; then want=2; else want=0; fi
	check_status "--strict tells by its status" $want "$CULPRIT" doctor --strict
	if jq -e '.checks[] | select(.name == "pmu") | .state == "ok"' doctor.json >/dev/null; then
		check "with a PMU there is a self-test and a trial" jq -e '[.checks[].name] | index("self_test") and index("counters_free")' doctor.json
	else
		check "without a PMU nothing is said about its counters" jq -e '[.checks[].name] | index("self_test") == null' doctor.json
	fi
	paranoid=$(cat /proc/sys/kernel/perf_event_paranoid 2>/dev/null)
	if [ -n "$paranoid" ]; then
		check "the level is the kernel's" jq -e --arg p "$paranoid" '.checks[] | select(.name == "perf_event_paranoid") | .value == $p' doctor.json
	fi
	if [ "$(id -u)" = 0 ] && have setpriv; then
		# nobody may not be allowed to reach the build folder
		cp "$CULPRIT" ./culprit && chmod 755 . culprit
		if setpriv --reuid 65534 --regid 65534 --clear-groups ./culprit doctor --json >user.json 2>/dev/null; then
			check "a user without rights is told how to get them" jq -e '.checks[] | select(.name == "capabilities") | .state == "warn" and (.remedy | contains("setcap"))' user.json
		else
			skip "a user without rights" "the program cannot be run as another user here"
		fi
	else
		skip "a user without rights" "needs root and setpriv"
	fi
else
	skip "--json" "jq is not installed"
fi

"$CULPRIT" doctor --area latency --json >latency.json
check "--area latency: every row has a state, and what is not ok a reason" python3 - latency.json <<'END'
import json, sys
checks = json.load(open(sys.argv[1]))["checks"]
names = {c["name"] for c in checks}
assert {"kernel tracers", "BPF", "preemption model", "isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity",
        "RT throttling", "NMI watchdog", "frequency governor", "idle states", "SMT", "clocksource",
        "transparent huge pages", "SMI counter", "leftovers"} <= names, names
assert all(c["area"] == "latency" for c in checks)
assert all(c["why"] for c in checks if c["state"] != "ok"), checks
assert all(c["value"] for c in checks if c["state"] != "unknown"), checks
END

plan_end
