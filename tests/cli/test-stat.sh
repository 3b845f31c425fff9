#!/bin/bash
# culprit stat: every option, the pass-through of the command, and agreement with perf stat where it is there.
. "$(dirname "$0")/lib.sh"
plan_begin

# value NAME FILE: the value of an event in -x, output
value() { awk -F, -v n="$1" '$3 == n { print $1 }' "$2"; }
json() { python3 -c "import json,sys; d=json.load(open('$1')); $2"; }

cat >work.sh <<-'EOF'
	i=0
	while [ $i -lt ${1:-3000} ]; do i=$((i + 1)); done
EOF

check_match "--help explains" "^Usage: culprit stat" "$CULPRIT" stat --help

# the command passes through
check_status "exit status passes through" 7 "$CULPRIT" stat -- sh -c 'exit 7'
check_status "death by a signal passes through" 143 "$CULPRIT" stat -- sh -c 'kill -TERM $$'
check_status "a missing command is 127" 127 "$CULPRIT" stat -- ./no-such-program
touch plain
check_status "a file that cannot run is 126" 126 "$CULPRIT" stat -- ./plain
check_match "the error names the command" "cannot run './no-such-program': No such file" "$CULPRIT" stat -- ./no-such-program
if [ "$(echo hello | "$CULPRIT" stat -o out -- cat)" = hello ]; then ok "stdin and stdout pass through"; else not_ok "stdin and stdout pass through"; fi
if [ "$("$CULPRIT" stat -o out -- sh -c 'echo "$1|$2"' x 'a b' -n)" = 'a b|-n' ]; then ok "arguments of the command are its own"; else not_ok "arguments of the command are its own"; fi

# what the table says
"$CULPRIT" stat -- sh work.sh 2>table
check_match "CPUs utilized" 'task-clock +# +[0-9.]+ CPUs utilized' cat table
check_match "rates" 'page-faults +# +[0-9.]+ .?/sec' cat table
check_match "elapsed, user, system" '[0-9]\.[0-9]{9} s elapsed' cat table
check_match "the default set has cache misses" 'cache-misses' cat table
if grep -q 'not supported' table; then
	check_match "hardware events give the true reason" 'no hardware counters|no such event|not permitted' cat table
	if grep -qE '^ +0 +cycles' table; then not_ok "0 is never shown for unknown"; else ok "0 is never shown for unknown"; fi
else
	check_match "instructions per cycle" 'insn per cycle' cat table
	ok "0 is never shown for unknown"
fi

# machine forms
"$CULPRIT" stat --json -e task-clock,page-faults,cycles -- true >s.json
check "--json parses and has the keys" json s.json '
assert d["kind"] == "stat" and d["schema"] == 1 and d["runs"] == 1
assert d["wall_ns"] > 0 and d["user_ns"] >= 0 and d["sys_ns"] >= 0
e = {x["name"].split(":")[0]: x for x in d["events"]}
assert e["task-clock"]["state"] == "measured" and e["task-clock"]["unit"] == "ns"
assert e["page-faults"]["value"] == e["page-faults"]["raw"] > 0
assert e["page-faults"]["enabled_ns"] == e["page-faults"]["running_ns"] > 0
c = e["cycles"]
assert c["state"] == "measured" or (c["value"] is None and c["reason"])
m = {x["name"]: x for x in d["metrics"]}
assert m["cpus_utilized"]["together"] is True and m["cpus_utilized"]["value"] > 0'
check "-j is --json" sh -c "'$CULPRIT' stat -j -e page-faults -- true | python3 -m json.tool"
"$CULPRIT" stat --csv -d -- true >s.csv
check "--csv has a header and constant columns" python3 -c "
import csv
rows = list(csv.reader(open('s.csv')))
assert rows[0][:4] == ['time_ns', 'where', 'kind', 'name'], rows[0]
assert all(len(r) == len(rows[0]) for r in rows)
assert any(r[3] == 'L1-dcache-load-misses' for r in rows)"
check_match "machine output ignores the locale" '^[0-9]+\.[0-9]+,msec,task-clock,[0-9]+,100\.00,[0-9]+\.[0-9]+,CPUs utilized$' \
	env LC_ALL=de_DE.UTF-8 "$CULPRIT" stat -x, -e task-clock -- true
check_match "-x with another separator" '^[0-9]+;;page-faults;[0-9]+;100\.00;' "$CULPRIT" stat -x ';' -e page-faults -- true
check_match "--field-separator" '^[0-9]+:' "$CULPRIT" stat --field-separator : -e page-faults -- true

# against perf: the same work, the same columns
if have perf && perf stat -x, -e page-faults true >/dev/null 2>&1; then
	for events in "task-clock,context-switches,cpu-migrations,page-faults,cycles" "sched:sched_process_fork,page-faults"; do
		perf stat -x, -e "$events" sh -c 'for i in 1 2 3 4 5; do sh work.sh 300; done' 2>perf.csv || continue
		"$CULPRIT" stat -x, -e "$events" -- sh -c 'for i in 1 2 3 4 5; do sh work.sh 300; done' 2>ours.csv
		if [ "$(awk -F, '{print NF, $2, $3}' perf.csv)" = "$(awk -F, '{print NF, $2, $3}' ours.csv)" ]; then
			ok "-x has perf's columns ($events)"
		else
			not_ok "-x has perf's columns ($events)" "$(paste perf.csv ours.csv)"
		fi
		for event in page-faults sched:sched_process_fork; do
			a=$(value $event perf.csv) b=$(value $event ours.csv)
			[ -n "$a" ] || continue
			if [ $((a * 100)) -ge $((b * 95 - 500)) ] && [ $((a * 95 - 500)) -le $((b * 100)) ]; then
				ok "$event agrees with perf ($a, $b)"
			else
				not_ok "$event agrees with perf" "perf $a, ours $b"
			fi
		done
	done
	perf stat -a -A -x, -e cpu-clock sleep 0.1 2>perf.csv
	"$CULPRIT" stat -a -A -x, -e cpu-clock -- sleep 0.1 2>ours.csv
	if [ "$(cut -d, -f1,3,4 perf.csv)" = "$(cut -d, -f1,3,4 ours.csv)" ]; then ok "-A has perf's columns"; else not_ok "-A has perf's columns" "$(paste perf.csv ours.csv)"; fi
	for how in --per-socket --per-core --per-node; do
		perf stat -a $how -x, -e cpu-clock sleep 0.05 2>perf.csv
		"$CULPRIT" stat -a $how -x, -e cpu-clock -- sleep 0.05 2>ours.csv
		if [ "$(cut -d, -f1,2,4,5 perf.csv)" = "$(cut -d, -f1,2,4,5 ours.csv)" ]; then ok "$how has perf's columns"; else not_ok "$how has perf's columns" "$(paste perf.csv ours.csv)"; fi
	done
	perf stat -r 3 -x, -e page-faults true 2>perf.csv
	"$CULPRIT" stat -r 3 -x, -e page-faults -- true 2>ours.csv
	if [ "$(awk -F, '{print NF}' perf.csv)" = "$(awk -F, '{print NF}' ours.csv)" ]; then ok "-r has perf's columns"; else not_ok "-r has perf's columns" "$(paste perf.csv ours.csv)"; fi
else
	skip "agreement with perf stat" "perf is not installed, or may not count"
fi

# where
if "$CULPRIT" stat -a -e cpu-clock -- true >/dev/null 2>&1 && "$CULPRIT" stat -a -x, -e cpu-clock -- true 2>&1 | grep -q '^[0-9]'; then
	cpus=$(getconf _NPROCESSORS_ONLN)
	"$CULPRIT" stat --all-cpus --json -e cpu-clock -- sleep 0.2 >s.json
	check "-a counts every CPU" json s.json "
v = d['events'][0]['value']
assert 0.9 * $cpus * d['wall_ns'] < v < 1.1 * $cpus * d['wall_ns'], (v, d['wall_ns'])"
	"$CULPRIT" stat -C 0 --json -e cpu-clock -- sleep 0.1 >s.json
	check "-C counts one CPU" json s.json "assert 0.8 * d['wall_ns'] < d['events'][0]['value'] < 1.2 * d['wall_ns']"
	check_match "--cpu takes a list" 'CPUs 0-0' "$CULPRIT" stat --cpu 0-0 -e cpu-clock -- true
	"$CULPRIT" stat -a --no-aggr --json -e cpu-clock -- true >s.json
	check "--no-aggr has one row per CPU" json s.json "assert [e['cpu'] for e in d['events']] == sorted(e['cpu'] for e in d['events']) and len(d['events']) == $cpus"
	cgroups=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	cgroup=$cgroups/culprit-test-$$
	if [ -n "$cgroups" ] && mkdir "$cgroup" 2>/dev/null; then
		"$CULPRIT" stat --for-each-cgroup "culprit-test-$$,/" --json -e cpu-clock -- sh -c "echo \$\$ >$cgroup/cgroup.procs && sh '$PWD/work.sh' 60000; echo \$\$ >$cgroups/cgroup.procs" >s.json
		check "--for-each-cgroup separates cgroups" json s.json "
e = {x['where']: x for x in d['events']}
assert e['culprit-test-$$']['value'] > 1e6, e
assert e['/']['value'] > e['culprit-test-$$']['value'], e"
		(sleep 0.3; rmdir "$cgroup") &
		"$CULPRIT" stat --for-each-cgroup "culprit-test-$$" --json -e cpu-clock -- sleep 0.8 >s.json
		wait
		check "a cgroup that disappears ends with the reason" json s.json "assert 'removed' in d['events'][0]['reason'], d"
	else
		skip "--for-each-cgroup separates cgroups" "cannot make a cgroup here"
	fi
	check_fails "--for-each-cgroup with a wrong name" "no cgroup 'no/such'" "$CULPRIT" stat --for-each-cgroup no/such -- true
else
	skip "-a, -C, -A, --for-each-cgroup" "counting whole CPUs is not permitted here"
fi
sh work.sh 100000000 &
victim=$!
sleep 0.1
"$CULPRIT" stat -p $victim --timeout 200 --json -e task-clock >s.json
check "-p counts a running process" json s.json "assert 1e6 < d['events'][0]['value'] < 1.1 * d['wall_ns'], d"
"$CULPRIT" stat --pid $victim --per-thread -x, -e task-clock --timeout 100 2>out.csv
check_match "--per-thread has a row for each thread" "^sh-$victim,[0-9.]+,msec,task-clock" cat out.csv
"$CULPRIT" stat -t $victim --json -e task-clock -- sleep 0.1 >s.json
check "-t counts a running thread while a command runs" json s.json "assert d['events'][0]['value'] > 1e6 and d['wall_ns'] > 9e7"
check_match "--tid" "thread $victim" "$CULPRIT" stat --tid $victim -e task-clock --timeout 50
kill $victim
wait $victim 2>/dev/null
sleep 0.3 &
start=$(date +%s%N)
"$CULPRIT" stat -p $! -e task-clock 2>out
spent=$((($(date +%s%N) - start) / 1000000))
if [ $spent -lt 2000 ]; then ok "-p ends with its process"; else not_ok "-p ends with its process" "$spent ms"; fi
check_fails "-p with a process that is not there" "no process 999999999" "$CULPRIT" stat -p 999999999
check_fails "-p and -a exclude each other" "do not go with" "$CULPRIT" stat -p 1 -a
"$CULPRIT" stat --no-inherit --json -e page-faults -- sh -c 'sh -c :; sh -c :; :' >a.json
"$CULPRIT" stat --json -e page-faults -- sh -c 'sh -c :; sh -c :; :' >b.json
check "-i leaves children out" python3 -c "
import json
a, b = (json.load(open(f))['events'][0]['value'] for f in ('a.json', 'b.json'))
assert a * 1.5 < b, (a, b)"
check "-i as a short option" "$CULPRIT" stat -i -e page-faults -- true

# failures that users of other tools reported (the numbers are those of the unit tests)
check_match "failure 45: a command line in quotes is told apart from a file that is missing" "cannot run 'ls -l': No such file.*without the quotes" "$CULPRIT" stat 'ls -l'
check_status "failure 45: and is 127" 127 "$CULPRIT" stat 'ls -l'
for how in "-e task-clock" "-e task-clock,cycles -r 2" "-M page_fault_rate" "-I 20 -e task-clock"; do
	# shellcheck disable=SC2086
	"$CULPRIT" stat --csv $how -- sh -c 'sleep 0.05'
done >all.csv 2>/dev/null
check "failure 43: the columns of CSV are constant, named and of a version" python3 -c "
import csv
rows = list(csv.reader(open('all.csv')))
head = rows[0]
assert head[-1] == 'schema' and rows.count(head) == 4, head
assert all(len(r) == len(head) for r in rows), rows
assert all(r[-1] == '1' for r in rows if r != head), rows"
for locale in de_DE.UTF-8 de_DE.utf8 C.UTF-8; do
	LC_ALL=$locale LANG=$locale "$CULPRIT" stat --json -e task-clock -r 2 -- true >>locale.json
	LC_ALL=$locale LANG=$locale "$CULPRIT" stat -x';' -e task-clock -- true 2>>locale.csv
	LC_ALL=$locale LANG=$locale "$CULPRIT" stat -x, -e task-clock -- true 2>>locale.csv
done
check "failure 42: a locale with decimal commas changes no machine output" python3 -c "
import json
text = open('locale.json').read()
at, docs = 0, 0
while at < len(text.rstrip()):
    d, at = json.JSONDecoder().raw_decode(text, at + len(text[at:]) - len(text[at:].lstrip()))
    docs += 1
    assert d['metrics'][0]['value'] > 0
assert docs == 3
for line in open('locale.csv'):
    assert float(line.split(';' if ';' in line else ',')[0]) > 0, line"
if grep -rn 'setlocale(' "$REPO_DIR/src" | grep -v LC_CTYPE >out; then not_ok "failure 42: no part of the program takes the locale's numbers" "$(cat out)"; else ok "failure 42: no part of the program takes the locale's numbers"; fi

# what
check_match "-M counts what a metric needs" '[0-9.]+ faults/sec  page_fault_rate' "$CULPRIT" stat -M page_fault_rate -- sh work.sh
check_match "--metrics takes several" 'CPUs utilized' "$CULPRIT" stat --metrics ipc,cpus_utilized -- true
check_fails "an unknown metric suggests one" "did you mean 'ipc'" "$CULPRIT" stat -M ipx -- true
check_match "--explain shows the numbers" '= [0-9]+ / \([0-9.e-]+ \* 1e9\) = 0?\.?[0-9.]+ CPUs utilized' "$CULPRIT" stat --explain cpus_utilized -- true
"$CULPRIT" stat -M page_fault_rate,ipc,cpus_utilized --json -e task-clock -- sh work.sh >s.json
check "-M beside -e shares its events, and says why there is no number" json s.json "
m = {x['name']: x for x in d['metrics'] if x['formula']}
e = {x['name']: x for x in d['events']}
assert [x['name'] for x in d['events']].count('task-clock') == 1, d
want = e['page-faults']['value'] / e['task-clock']['value'] * 1e9
assert abs(m['page_fault_rate']['value'] - want) < 1e-6 * want, (m, want)
assert abs(m['cpus_utilized']['value'] - e['task-clock']['value'] / d['wall_ns']) < 1e-6, m
assert m['ipc']['value'] is not None or m['ipc']['reason'], m"
mkdir metrics
cat >metrics/mine_metrics.json <<'END'
{"Metrics": [
 {"MetricName": "faults_per_ms", "UnitOfMeasure": "per ms", "MetricGroup": "Mine", "BriefDescription": "Faults in a millisecond.",
  "Events": [{"Name": "page-faults", "Alias": "a"}], "Constants": [{"Name": "DURATIONTIMEINMILLISECONDS", "Alias": "b"}], "Formula": "a / b"},
 {"MetricName": "absent", "MetricGroup": "Mine", "Events": [{"Name": "NO_SUCH.EVENT", "Alias": "a"}], "Constants": [], "Formula": "a / 2"}]}
END
cat >metrics/perf_metrics.json <<'END'
[{"MetricName": "faults_twice", "MetricExpr": "2 * faults_per_ms", "ScaleUnit": "10per_100us", "MetricGroup": "Mine"},
 {"MetricName": "if_alone", "MetricExpr": "NO_SUCH.EVENT if #num_cpus_online > 5000 else page\\-faults", "MetricGroup": "Fold"}]
END
"$CULPRIT" stat --events-dir metrics -M Mine --json -- sh work.sh >s.json
check "-M takes a group of vendor files, metrics made of metrics, and units" json s.json "
m = {x['name']: x for x in d['metrics']}
faults = [x['value'] for x in d['events'] if x['name'] == 'page-faults'][0]
want = faults / (d['wall_ns'] / 1e6)
assert abs(m['faults_per_ms']['value'] - want) < 1e-6 * want, (m, want)
assert abs(m['faults_twice']['value'] - 20 * want) < 1e-4 * want and m['faults_twice']['unit'] == 'per_100us', m
assert m['absent']['value'] is None and m['absent']['state'] == 'not_supported' and 'NO_SUCH' in m['absent']['reason'], m"
check_match "a branch of a formula that is dead needs no event" '^ +[0-9.]+ +if_alone$' env CULPRIT_EVENTS_DIR=metrics "$CULPRIT" stat -M if_alone -- true
check_match "--explain goes through metrics made of metrics" 'page-faults / \(duration_time \* 1000\)' "$CULPRIT" stat --events-dir metrics --explain faults_twice -- true
check_match "-M takes a glob" 'context_switch_rate' "$CULPRIT" stat -M '*_rate' -- true
check_match "-M takes a formula" '[0-9]+ +max\(page-faults,1\) / 2' "$CULPRIT" stat -M 'max(page-faults,1) / 2,ipc' -- true
check_fails "a formula that is wrong says where" "column" "$CULPRIT" stat -M 'page-faults / * 2' -- true
"$CULPRIT" stat -x, -M page_fault_rate -- true 2>out.csv
check_match "-x has metrics in their own rows, as perf" '^,,,,,[0-9.]+,faults/sec  page_fault_rate$' cat out.csv
check_match "-d adds cache events" 'LLC-load-misses' "$CULPRIT" stat --detailed -- true
check_match "-d -d adds TLBs" 'iTLB-load-misses' "$CULPRIT" stat -d -d -- true
"$CULPRIT" stat -n -- true 2>out
if grep -q elapsed out && ! grep -q task-clock out; then ok "-n counts nothing but the time"; else not_ok "-n counts nothing but the time" "$(cat out)"; fi
check "--null" "$CULPRIT" stat --null -- true
check_fails "an unknown event is an error" "no-such-event" "$CULPRIT" stat -e no-such-event -- true
check_match "the tool's own clocks" 'ns +duration_time' "$CULPRIT" stat -e duration_time,user_time -- true
check_match "groups and wildcards are read as in perf" 'page-faults' "$CULPRIT" stat -e '{task-clock,page-faults}' -- true
check_match "--event may be given again" 'page-faults' "$CULPRIT" stat --event task-clock --event page-faults -- true

# when
"$CULPRIT" stat -r 5 --json -e page-faults,task-clock -- true >s.json
check "-r gives means and errors" json s.json "
assert d['runs'] == 5 and d['wall_stderr_ns'] > 0
t = d['events'][1]
assert t['stderr'] > 0 and abs(t['value'] * 5 - t['raw']) < 6, t"
check_match "--repeat shows the spread" '\(3 runs\)' "$CULPRIT" stat --repeat 3 -e page-faults -- true
check_match "--exact counts" 'elapsed' "$CULPRIT" stat --exact -- true
check_match "--pinned counts" 'task-clock' "$CULPRIT" stat --pinned -- true
"$CULPRIT" stat -I 50 --interval-count 3 --json -e task-clock -- sleep 5 >s.json
check "-I and --interval-count" json s.json "
assert len(d['intervals']) == 3, d
assert all(0.02e9 < i['wall_ns'] < 0.5e9 for i in d['intervals'])"
check_match "-I prints perf's columns with -x" '^ +0\.[0-9]{9},[0-9.]+,msec,task-clock,' "$CULPRIT" stat --interval-print 50 -x, -e task-clock -- sleep 0.12
check_match "-I text" '^ +0\.[0-9]{6} .*task-clock' "$CULPRIT" stat -I 50 -e task-clock -- sleep 0.12
check_fails "-I and -r exclude each other" "does not go with" "$CULPRIT" stat -I 100 -r 3 -- true
"$CULPRIT" stat -D 200 --json -e task-clock -- sh work.sh 400000 >s.json
check "-D leaves the start out" json s.json "
v, whole = d['events'][0]['value'], d['user_ns'] + d['sys_ns']
assert 0 < v < whole - 2e7, (v, whole)"
"$CULPRIT" stat --delay -1 --json -e task-clock -- true >s.json
check "--delay -1 starts disabled, and says so instead of 0" json s.json "
e = d['events'][0]
assert e['state'] == 'not_counted' and e['value'] is None and e['reason'], e"
check_status "--timeout ends the command, status 0" 0 "$CULPRIT" stat --timeout 100 -e task-clock -- sleep 5
mkfifo ctl ack
"$CULPRIT" stat -D -1 --control fifo:ctl,ack --json -e task-clock -- sh work.sh 400000 >s.json &
exec 8>ctl 9<ack
echo ping >&8
read -r -t 5 answer <&9
if [ "$answer" = ack ]; then ok "--control answers ack"; else not_ok "--control answers ack" "$answer"; fi
echo enable >&8
read -r -t 5 answer <&9
sleep 0.1
echo disable >&8
read -r -t 5 answer <&9
wait $!
exec 8>&- 9<&-
check "--control switches counting on and off" json s.json "
v = d['events'][0]['value']
assert 1e5 < v < d['wall_ns'] * 0.95, (v, d['wall_ns'])"
check_match "--control fd:" 'task-clock' sh -c "printf 'enable\n' | '$CULPRIT' stat -D -1 --control fd:0 -e task-clock -- sh work.sh 200000"
check_fails "--control with nonsense" "say fd:" "$CULPRIT" stat --control pipe:3 -- true

# output
"$CULPRIT" stat -o file -e page-faults -- true
"$CULPRIT" stat --output file --append -e page-faults -- true
if [ "$(grep -c 'page-faults' file)" -eq 2 ]; then ok "-o and --append"; else not_ok "-o and --append" "$(cat file)"; fi
check_fails "-o that cannot be written" "no-dir/file: No such file" "$CULPRIT" stat -o no-dir/file -- true
check_match "-B groups digits" '[0-9],[0-9]{3} +page-faults' "$CULPRIT" stat -B -e page-faults -- python3 -c 'bytearray(20000000)'
check "--big-num" "$CULPRIT" stat --big-num -e page-faults -- true
check_match "--no-big-num does not" '^ +[0-9]{4,} +page-faults' "$CULPRIT" stat --no-big-num -e page-faults -- python3 -c 'bytearray(20000000)'
check_match "-v shows groups" 'group 0' "$CULPRIT" stat -v -e page-faults -- true
check_match "--verbose" 'raw counts' "$CULPRIT" stat --verbose -e page-faults -- true
check_fails "nothing to count" "Give a command" "$CULPRIT" stat

# not root: what may not be counted says why
if [ "$(id -u)" = 0 ] && have setpriv && [ "$(cat /proc/sys/kernel/perf_event_paranoid 2>/dev/null || echo 0)" -ge 2 ]; then
	cp "$CULPRIT" ./culprit && chmod 755 . culprit
	check_match "without rights: user mode, said so" 'user mode only|not permitted' setpriv --reuid 65534 --regid 65534 --clear-groups ./culprit stat -- true
else
	skip "without rights: user mode, said so" "needs root and kernel.perf_event_paranoid of 2 or more"
fi

plan_end
