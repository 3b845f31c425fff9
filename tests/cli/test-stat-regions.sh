#!/bin/bash
# libculprit and culprit stat --regions: nested regions, threads, fork, what was not ended, many regions.
. "$(dirname "$0")/lib.sh"
: "${CULPRIT_TEST_PROGRAMS:?set it to the folder of the built tests/programs}"
REGIONS=$CULPRIT_TEST_PROGRAMS/regions
plan_begin

# expect NAME WANT HAVE
expect() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "have '$3', want '$2'"; fi; }

# field FILE REGION NUMBER: a field of a region's line, summed over threads (2: calls, 3: not ended, 4: time)
field() { awk -F'\t' -v name="$2" -v n="$3" '$1 == "region" && $2 == name { sum += $(n + 1) } END { print sum + 0 }' "$1"; }

# The library alone.
LIBRARY=$(dirname "$CULPRIT")/lib/libculprit.a
if have nm && [ -r "$LIBRARY" ]; then
	expect "a program linked with it may have any name that does not begin with culprit" "" "$(nm --defined-only -g "$LIBRARY" 2>/dev/null | awk 'NF == 3 && $3 !~ /^(__odr_asan_gen_)?culprit_/ { print $3 }')"
else
	skip "a program linked with it may have any name" "no nm, or no static library beside the program"
fi
check_status "without CULPRIT_REGIONS the program runs as ever" 3 "$REGIONS" nested
check_status "an exit status is untouched" 3 env CULPRIT_REGIONS=nested.txt "$REGIONS" nested
check_match "the file says what it is" '^culprit-regions	1$' cat nested.txt
check_match "and is complete" '^end$' cat nested.txt
expect "nested: the outer region ran once" 1 "$(field nested.txt outer 2)"
expect "nested: the inner one 10 times" 10 "$(field nested.txt inner 2)"
check "nested: the outer time contains the inner" test "$(field nested.txt outer 4)" -ge "$(field nested.txt inner 4)"
expect "nested: outer without inner is the difference" "$(($(field nested.txt outer 4) - $(field nested.txt inner 4)))" "$(field nested.txt outer 5)"
CULPRIT_REGIONS=threads.txt "$REGIONS" threads 8
expect "threads: all eight ran the shared region" 8 "$(field threads.txt shared 2)"
expect "threads: each has a line of its own" 8 "$(grep -c '^thread' threads.txt)"
CULPRIT_REGIONS=threads.txt "$REGIONS" threads 600
expect "600 threads one after the other: none is lost" 600 "$(field threads.txt shared 2)"
expect "and their names are merged beyond the first 256" 257 "$(grep -c '^thread' threads.txt)"
mkdir forked
CULPRIT_REGIONS=forked/%p "$REGIONS" fork
expect "fork: parent and child write a file each" 2 "$(ls forked | wc -l)"
expect "fork: the child has its own passages" 3 "$(cat forked/* >both && field both child 2)"
expect "fork: what the parent began counts once" 1 "$(field both around 2)"
expect "fork: and is not reported as open in the child" 0 "$(field both around 3)"
CULPRIT_REGIONS=single "$REGIONS" fork
expect "fork: without %p the child's file has its number" 2 "$(ls -d single single.* | wc -l)"
CULPRIT_REGIONS=unbalanced.txt "$REGIONS" unbalanced
expect "a region ended by its outer one is reported" 1 "$(field unbalanced.txt b 3)"
expect "a region still open at exit is reported" 1 "$(field unbalanced.txt 'left open' 3)"
expect "ends without a begin are counted" 2 "$(awk -F'\t' '$1 == "thread" { print $4 }' unbalanced.txt)"
CULPRIT_REGIONS=many.txt "$REGIONS" many
expect "10000 regions: every one is there" 10000 "$(grep -c '^region' many.txt)"
expect "each with its three passages" 30000 "$(awk -F'\t' '$1 == "region" { n += $3 } END { print n }' many.txt)"
CULPRIT_REGIONS=recursive.txt "$REGIONS" recursive
expect "recursion: ten passages" 10 "$(field recursive.txt recursive 2)"
expect "recursion: time is not counted twice" "$(field recursive.txt recursive 4)" "$(field recursive.txt recursive 5)"
CULPRIT_REGIONS=deep.txt "$REGIONS" deep
expect "1000 deep: what was too deep is told" 872 "$(awk -F'\t' '$1 == "thread" { print $3 }' deep.txt)"
CULPRIT_REGIONS=switch.txt "$REGIONS" switch
expect "switch: one and two alternate" "6 5" "$(field switch.txt one 2) $(field switch.txt two 2)"
CULPRIT_REGIONS=sleep.txt CULPRIT_EVENTS=task-clock,page-faults:u,nonsense,context-switches "$REGIONS" sleep
check "sleep: wall time is 20 ms, task-clock is not" awk -F'\t' '$1 == "region" { exit !($5 >= 20000000 && $7 < 10000000) }' sleep.txt
check_match "an unknown event says so" '^event	nonsense	not_supported	-	not an event' cat sleep.txt
check_status "culprit_write() serves programs that end by _exit()" 7 env CULPRIT_REGIONS=write.txt "$REGIONS" write
expect "their regions are there" 10 "$(field write.txt inner 2)"

# culprit stat --regions.
check_status "stat --regions passes the exit status on" 3 "$CULPRIT" stat --regions -- "$REGIONS" nested
check_match "stat --regions: a row for each region" '^inner +1 +10 ' "$CULPRIT" stat --regions -- "$REGIONS" nested
check_match "the cost of an empty region is told" 'An empty region costs [0-9]+ ns' "$CULPRIT" stat --regions -- "$REGIONS" nested
check_match "--per-thread: a row for each thread" '^own 7 ' "$CULPRIT" stat --regions --per-thread -- "$REGIONS" threads
check_match "unbalanced regions are named" "region 'b' was begun and not ended 1 times" "$CULPRIT" stat --regions -- "$REGIONS" unbalanced
check_match "stray ends too" '2 ends had no begin' "$CULPRIT" stat --regions -- "$REGIONS" unbalanced
check_match "parent and child are put together" '^child +1 +3 ' "$CULPRIT" stat --regions -- "$REGIONS" fork
check_match "-e chooses the events" 'calls +time +without inner +page-faults$' "$CULPRIT" stat --regions -e page-faults -- "$REGIONS" nested
check_match "a program without regions is told" 'wrote no regions' "$CULPRIT" stat --regions -- true
check_fails "too many events" 'at most 8 events' "$CULPRIT" stat --regions -e page-faults,page-faults,page-faults,page-faults,page-faults,page-faults,page-faults,page-faults,page-faults -- true
check_fails "no command" 'needs a command' "$CULPRIT" stat --regions -a
check_fails "no CSV" 'text or --json' "$CULPRIT" stat --regions --csv -- true
check_fails "no repeats" 'does not go with' "$CULPRIT" stat --regions -r 2 -- true
if have jq; then
	"$CULPRIT" stat --regions --json -e task-clock -- "$REGIONS" nested >regions.json
	check "--json has the regions" jq -e '.regions | length == 2 and (map(select(.name == "inner"))[0] | .calls == 10 and .wall_ns > 0 and .events[0].name == "task-clock" and .events[0].value > 0)' regions.json
	"$CULPRIT" stat --regions --json -- "$REGIONS" odd-names >odd.json
	check "odd names survive" jq -e '.regions[0].name == "tab\there, newline\n, \\ and ,\"quotes\""' odd.json
	"$CULPRIT" stat --regions --json -e cycles -- "$REGIONS" nested >cycles.json
	check "what is not supported is null with its reason" jq -e '(.region_events[0].state == "measured") or (.regions[0].events[0].value == null and (.region_events[0].reason | length > 5))' cycles.json
else
	skip "the JSON document" "jq is not installed"
fi
expect "no files are left in /tmp" 0 "$(find /tmp -maxdepth 1 -name 'culprit-regions-*' -newer nested.txt 2>/dev/null | wc -l)"

plan_end
