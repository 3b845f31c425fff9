#!/bin/bash
# culprit report: rows, filters, call graphs and documents of folded stacks, pprof and recordings.
. "$(dirname "$0")/lib.sh"
plan_begin

cat > stacks.folded <<'EOF'
main;parse;read_k 10
main;parse 20
main;work;work;work 50
main;work;helper 15
idle 5
EOF

report() { "$CULPRIT" report "$@"; }

report -i stacks.folded > text
check "reads folded stacks" test -s text
sed -n '/^ *Total/,/^#/p' text | grep -v '^#' > rows
cat > want <<'EOF'
 Total    Self  Symbol
95.00%   0.00%  main
65.00%  50.00%  work
30.00%  20.00%  parse
15.00%  15.00%  helper
10.00%  10.00%  read_k
 5.00%   5.00%  idle
EOF
if diff want rows > difference; then ok "golden table, recursion counted once"; else not_ok "golden table, recursion counted once" "$(cat difference)"; fi
check_match "says what it holds" '^# holds +100 samples' cat text
check_match "names the next command" '^# next: .*culprit flame' cat text
check_match "an operand is the input" 'helper' report stacks.folded
check_match "--input=-" 'helper' report --input - < stacks.folded
check "--stdio is text" report -i stacks.folded --stdio
check_match "--no-children orders by self" '^ *50.00% +work$' report -i stacks.folded --no-children
check_match "--children" 'Total +Self' report -i stacks.folded --children
check_fails "--children with --no-children" 'exclude' report -i stacks.folded --children --no-children
check_match "-s comm,pid,tid,cpu,cgroup,pidns,cgroupns,dso,symbol,file" 'helper' report -i stacks.folded -s comm,pid,tid,cpu,cgroup,pidns,cgroupns,dso,symbol,file
check_fails "--sort names the keys" "'colour' is no key" report -i stacks.folded --sort colour
check_match "--cgroup keeps nothing of what has none" 'smaller or unwanted|^#$' report -i stacks.folded --cgroup '/x*'
check_fails "--time of folded stacks" 'only recordings tell times' report -i stacks.folded --time 1,2
check_match "--percent-limit hides" 'smaller or unwanted' report -i stacks.folded --percent-limit 20
[ "$(report -i stacks.folded --max-rows 2 | grep -cE '^ *[0-9.]+% ')" = 2 ] && ok "--max-rows" || not_ok "--max-rows"
[ "$(report -i stacks.folded -S 'wor*,idle' | grep -cE '^ *[0-9.]+% ')" = 2 ] && ok "-S globs" || not_ok "-S globs"
[ "$(report -i stacks.folded --symbol helper | grep -cE '^ *[0-9.]+% ')" = 1 ] && ok "--symbol" || not_ok "--symbol"
echo 'main;std::map<int, int*>::at[abi:cxx11] 3' > cxx.folded
check_match "a C++ name is taken as it is" '^100.00% .*cxx11' report -i cxx.folded -S 'std::map<int, int*>::at[abi:cxx11]'
[ "$(report -i stacks.folded --dso nothing | grep -cE '^ *[0-9.]+% ')" = 0 ] && ok "--dso filters" || not_ok "--dso filters"
[ "$(report -i stacks.folded --comm nothing | grep -cE '^ *[0-9.]+% ')" = 0 ] && ok "--comm filters" || not_ok "--comm filters"
check "--header" report -i stacks.folded --header
check "--inline" report -i stacks.folded --inline
check "--no-demangle" report -i stacks.folded --no-demangle
check "--no-cache" report -i stacks.folded --no-cache
check_fails "--max-size limits pipes" 'max-size' sh -c 'cat stacks.folded stacks.folded | "$CULPRIT" report -i - --max-size 16'
check_fails "--event that is not there" "no value type 'cycles'; there is: samples" report -i stacks.folded --event cycles
check "--event" report -i stacks.folded --event samples

echo 'main;write_[k] 3' > kernel.folded
check_match "kernel frames have their object" 'kernel.* write$' report -i kernel.folded

report -i stacks.folded -g --ascii -S main > graph
cat > want <<'EOF'
95.00%  0.00%  main
    |- 65.0% work
    |      |- 50.0% work
    |      |        work
    |      `- 15.0% helper
    `- 30.0% parse
           `- 10.0% read_k
EOF
grep -vE '^#|^ *Total|^$' graph > have
if diff want have > difference; then ok "golden call graph"; else not_ok "golden call graph" "$(cat difference)"; fi
check_match "-g callee, perf's spelling" '30.0% main|30.0% +parse' report -i stacks.folded -g callee -S 'parse' --ascii
check_match "-G: who calls it" '`- 15.0% work' report -i stacks.folded -G -S helper --ascii
check_match "--inverted" '`- 15.0% work' report -i stacks.folded --inverted -S helper --ascii
check_match "--call-graph=caller,fractal,1" '31.6% parse' report -i stacks.folded --call-graph=caller,fractal,1 -S main --ascii
[ "$(report -i stacks.folded --call-graph=none | grep -c '|-')" = 0 ] && ok "--call-graph=none" || not_ok "--call-graph=none"
check_fails "--call-graph=sideways" "'sideways' is not" report -i stacks.folded --call-graph=sideways
check_match "box characters in UTF-8" '└─' env LC_ALL=C.UTF-8 "$CULPRIT" report -i stacks.folded -g -S main
check_match "--no-children -g: callers of self" '`- 15.0% work' report -i stacks.folded --no-children -g --ascii

if have jq; then
	check "--json is a document" sh -c '"$CULPRIT" report -i stacks.folded --json | jq -e "
		.kind == \"report\" and .schema == 1 and .samples == 100 and .lost == null and (.rows | length) == 6
		and .rows[0].symbol == \"work\" and .rows[0].self == 50 and .rows[0].total == 65
		and .rows[0].self_share == 0.5 and .rows[0].total_share == 0.65 and .rows[0].comm == null
		and (.rows | map(.self) == (map(.self) | sort | reverse)) and (.events | type) == \"array\""'
else
	skip "--json is a document" "no jq"
fi
check_match "--csv has a header row" '^total_share,self_share,comm,pid,tid,cpu,cgroup,pidns,cgroupns,dso,symbol,file,self,total$' report -i stacks.folded --csv
check_match "--csv rows" '^0.65,0.5,.*,work,.*,50,65$' report -i stacks.folded --csv
check_fails "--json with --csv" 'exclude' report -i stacks.folded --json --csv
check_fails "no such file" 'absent.data: No such file' report -i absent.data
check_fails "a directory" 'is a directory' report -i .
: > empty
check "--help" report --help
check_fails "an empty file" 'is empty' report -i empty
check_fails "default input is perf.data" 'perf.data' report

if have perf && perf record -q -F 999 -g -o perf.data -- sh -c 'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; : | sort' 2>/dev/null; then
	check_match "a recording by perf: the event stands in the header" '^# event .*999 Hz' report
	check_match "--header of a recording" '^# command' report --header
	check_match "--header says what the machine has" '^# header +memory_kib: [0-9]+ KiB' report --header
	check_match "--time takes a part" '^# holds' report --time 10%,60%
	check_fails "--time that is none" 'seconds as perf script' report --time soon
	check_match "--json has the header" '"memory_kib": [0-9]+' report --json
	check_fails "--event that was not recorded" 'there is: ' report --event nothing
	perf report --stdio --no-children -g none --percent-limit 1 --sort comm,dso,symbol 2>/dev/null |
		sed -E 's/( +-)+ *$//' | sed -nE 's/^ *([0-9.]+)% +([^ ]+) +([^ ]+) +\[(.)\] +(.*[^ ]) *$/\1 \2 \3 \5/p' > peer
	report --no-children --json --sort comm,dso,symbol > ours.json
	wrong=$(while read -r percent comm dso symbol; do
		case $symbol in 0x*) continue ;; esac
		mine=$(jq -r --arg c "$comm" --arg d "$dso" --arg s "$symbol" \
			'[.rows[] | select(.comm == $c and (.dso // "" | split("/") | last) == ($d | split("/") | last) and .symbol == $s) | .self_share] | add // 0' ours.json)
		# One address may have several names (free, cfree); any row of that object and share will do then.
		[ "$mine" != 0 ] || mine=$(jq -r --arg c "$comm" --arg d "$dso" --argjson p "$percent" \
			'[.rows[] | select(.comm == $c and (.dso // "" | split("/") | last) == ($d | split("/") | last)
			  and (.self_share * 100 - $p | fabs) < 0.02) | .self_share] | first // 0' ours.json)
		awk -v a="$percent" -v b="$mine" -v n="$symbol" 'BEGIN { d = a - 100 * b; if (d > 1 || d < -1) print n, a, 100 * b }'
	done < peer)
	if [ ! -s peer ]; then
		skip "rows above 1 % agree with perf report" "perf printed no rows"
	elif [ -z "$wrong" ]; then
		ok "rows above 1 % agree with perf report ($(wc -l < peer) rows)"
	else
		not_ok "rows above 1 % agree with perf report" "$wrong"
	fi
	report -i perf.data --inline --no-cache >uncached.out 2>uncached.err
	[ -d "$CULPRIT_CACHE/names" ] && not_ok "--no-cache writes nothing" || ok "--no-cache writes nothing"
	report -i perf.data --inline >first.out 2>first.err
	for damaged in "$CULPRIT_CACHE"/names/*; do
		[ -f "$damaged" ] && cp "$damaged" kept-names && report -i perf.data --inline >second.out 2>/dev/null && break
	done
	if [ -f kept-names ]; then
		head -c 1000 kept-names >"$damaged"
		report -i perf.data --inline >third.out 2>/dev/null
		check "names from the cache are those from debug information" cmp uncached.out second.out
		check "a damaged cache changes nothing" cmp uncached.out third.out
	else
		skip "names from the cache" "nothing that was sampled has debug information and a build id"
	fi
	# The data section's place and size stand at byte 40 of the header.
	read -r offset size < <(od -An -t u8 -j 40 -N 16 perf.data)
	head -c $((offset + size * 2 / 3)) perf.data > cut.data
	report -i cut.data > cut.out 2> cut.err
	status=$?
	if [ $status -eq 3 ] && [ -s cut.out ] && [ -s cut.err ]; then
		ok "a cut recording: rows, a warning and status 3"
	else
		not_ok "a cut recording: rows, a warning and status 3" "status $status" "$(cat cut.err)" "$(head -5 cut.out)"
	fi
	check "status 3 stands in the man page" sh -c '"$CULPRIT" help --roff report | grep -q "cut, damaged"'
	if have jq; then
		check "JSON of a cut recording says so" sh -c '"$CULPRIT" report -i cut.data --json 2>/dev/null | jq -e .incomplete'
	fi
else
	skip "recordings" "perf cannot record here"
fi

if [ -n "${CULPRIT_TEST_DATA:-}" ] && [ -d "$CULPRIT_TEST_DATA/sampling/pprof" ]; then
	bad=
	for file in "$CULPRIT_TEST_DATA"/sampling/perfdata/*.data "$CULPRIT_TEST_DATA"/sampling/pprof/*.prof; do
		[ -f "$file" ] || continue
		timeout 20 "$CULPRIT" report -i "$file" > out 2> err
		status=$?
		case $status in 0 | 3) ;; 1) [ "$(grep -vc warning: err)" -eq 1 ] || bad="$bad $(basename "$file"):$(wc -l < err)-lines" ;; *) bad="$bad $(basename "$file"):$status" ;; esac
	done
	if [ -z "$bad" ]; then ok "real files are read or refused in one line"; else not_ok "real files are read or refused in one line" "$bad"; fi
else
	skip "real files are read or refused in one line" "no test data"
fi

plan_end
