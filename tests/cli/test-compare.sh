#!/bin/bash
# culprit compare: verdicts on programs of known cost, the gate, and every option.
. "$(dirname "$0")/lib.sh"
: "${CULPRIT_TEST_PROGRAMS:?set it to the folder of the built tests/programs}"
SPIN=$CULPRIT_TEST_PROGRAMS/spin
plan_begin

# field FILE KEY: a top-level scalar of a JSON document
field() { sed -n "s/^\t\"$2\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p" "$1"; }

# expect NAME WANT HAVE
expect() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "have '$3', want '$2'"; fi; }

# Verdicts. Thirty times the work, so that a busy machine does not matter.
check "a comparison runs" sh -c '"$0" compare --json -r 12 --seed 1 -- "$1" 2000000 --vs "$1" 60000000 >slower.json' "$CULPRIT" "$SPIN"
expect "more work is slower" slower "$(field slower.json verdict)"
expect "every pair is counted" 12 "$(field slower.json pairs)"
expect "the document says what it is" compare "$(field slower.json kind)"
"$CULPRIT" compare --json -r 12 -- "$SPIN" 60000000 --vs "$SPIN" 2000000 >faster.json
expect "less work is faster" faster "$(field faster.json verdict)"
if have jq; then
	check "the change is large, inside its interval" jq -e \
		'.change_share > 1 and .change_share < 1000 and .change_low_share <= .change_share and .change_share <= .change_high_share' slower.json
	check "medians lie in their intervals" jq -e '[.a, .b] | all(.ci_low_ns <= .median_ns and .median_ns <= .ci_high_ns and .median_ns > 0)' slower.json
	check "every run is in the document" jq -e '(.runs | length == 12) and all(.runs[]; .a.wall_ns > 0 and (.first | IN("a", "b")))' slower.json
	check "what was not measured is null, not 0" jq -e '.counters_reason == null or all(.runs[]; .a.cycles == null and .b.ipc == null)' slower.json
	check "the order is drawn for each pair" jq -e '[.runs[].first] | (index("a") != null) and (index("b") != null) and . != ([range(6)] | map("a", "b")) and . != ([range(6)] | map("b", "a"))' slower.json
	check "each clock has both looks, and the verdict's is among them" jq -e '(.clocks | length == 4) and .clock as $c | .look as $l | .p as $p | any(.clocks[]; .clock == $c and .look == $l and .p == $p and .decided)' slower.json
	check "one thread: the time it was not kept waiting is at most wall time" jq -e 'all(.runs[].a; .undisturbed_ns == null or (.undisturbed_ns <= .wall_ns and .undisturbed_ns + .cpu_wait_ns >= .wall_ns * 0.5))' slower.json
	"$CULPRIT" compare --json -r 8 -S -- 'true | true' --vs "$SPIN 3000000; $SPIN 3000000; true" >children.json
	check "work of children: its waits for a CPU are not known, CPU time is the second clock" jq -e '.clocks[2].clock == "cpu_ns" and any(.runs[].b; .undisturbed_ns == null)' children.json
	"$CULPRIT" compare --json --output pipe -r 8 -- echo a --vs echo b >pipe.json
	check "--output pipe is timed too" jq -e 'all(.runs[]; .a.wall_ns > 0 and .b.wall_ns > 0)' pipe.json
	"$CULPRIT" compare --json -r 12 --seed 1 -- true --vs true | jq -c '[.runs[].first]' >order1
	jq -c '[.runs[].first]' slower.json >order2
	check "the same --seed draws the same order" cmp order1 order2
else
	skip "the JSON document" "jq is not installed"
fi
same=0
for _ in 1 2 3 4 5; do
	"$CULPRIT" compare --json -r 10 -- "$SPIN" 1000000 --vs "$SPIN" 1000000 >same.json
	[ "$(field same.json verdict)" = no_difference ] && same=$((same + 1))
done
if [ $same -ge 3 ]; then ok "a program against itself: no difference, at least 3 times of 5"; else not_ok "a program against itself" "$same of 5"; fi
"$CULPRIT" compare -r 10 -- true --vs true >text.txt
check_match "without a difference the smallest that could be shown is told" 'smallest that 10 pairs could have shown|is (slower|faster)' cat text.txt
check_match "too few pairs are told" 'Fewer than 8 pairs' "$CULPRIT" compare -r 3 -- true --vs true
check_match "the text gives verdict and interval" 'B is slower: .* more time.* \(95% interval' "$CULPRIT" compare -r 12 -- "$SPIN" 2000000 --vs "$SPIN" 60000000
check_match "and accounts for the change" 'CPU time accounts for|executes .* more instructions' "$CULPRIT" compare -r 12 -- "$SPIN" 2000000 --vs "$SPIN" 60000000

# The gate.
check_status "--max-regression: a regression is status 2" 2 "$CULPRIT" compare -r 12 --max-regression 5% -- "$SPIN" 2000000 --vs "$SPIN" 60000000
check_status "--max-regression: a larger allowance passes" 0 "$CULPRIT" compare -r 12 --max-regression 9000% -- "$SPIN" 2000000 --vs "$SPIN" 60000000
check_status "--max-regression: faster passes" 0 "$CULPRIT" compare -r 12 --max-regression 0.05 -- "$SPIN" 60000000 --vs "$SPIN" 2000000
check_fails "--max-regression 5 is ambiguous" 'write 5% for percent' "$CULPRIT" compare --max-regression 5 -- true --vs true
check_fails "--max-regression wants a share" 'takes a share' "$CULPRIT" compare --max-regression x -- true --vs true
"$CULPRIT" compare --json -r 9 --max-regression 9000% -- true --vs true >gate.json
expect "the document has the gate's answer" false "$(field gate.json regression)"

# How often.
"$CULPRIT" compare --json --min-time 1ms --max-time 1ms --warmup 0 -- true --vs true >short.json
expect "--min-time: at least 10 pairs" 10 "$(field short.json pairs)"
expect "--max-time as long as --min-time: one look, with all of the level" "1 0.01" "$(field short.json looks) $(field short.json level)"
"$CULPRIT" compare --json --min-time 20ms --max-time 80ms --resolution 0% -- true --vs true >longer.json
case "$(field longer.json verdict) $(field longer.json looks) $(field longer.json level)" in
"no_difference 3 0.0025" | faster* | slower*) ok "undecided: it goes on up to --max-time, the level shared among the looks" ;;
*) not_ok "undecided: it goes on up to --max-time" "$(grep -E '"(verdict|looks|level)"' longer.json)" ;;
esac
"$CULPRIT" compare --json --min-time 20ms --max-time 80ms --resolution 5000% -- true --vs true >coarse.json
expect "--resolution: it does not go on for what it could have told" 1 "$(field coarse.json looks)"
check_fails "--resolution wants a share" '--resolution takes a share' "$CULPRIT" compare --resolution x -- true --vs true
expect "--warmup 0 is possible" 0 "$(field short.json warmup_pairs)"
"$CULPRIT" compare -r 3 -w 2 --prepare 'echo x >>prepared' -- true --vs true >/dev/null
expect "--prepare runs before every run, -w 2 warms up with two pairs" 10 "$(wc -l <prepared)"
check_fails "a failing --prepare ends it" 'prepare failed \(status 3\)' "$CULPRIT" compare -r 3 --prepare 'exit 3' -- true --vs true
check_fails "--seed wants a number" 'seed takes a number' "$CULPRIT" compare --seed x -- true --vs true

# The commands.
check "one word is split, quotes respected" "$CULPRIT" compare -r 2 -- "test 'a b' = \"a b\"" --vs 'test a\ b = "a b"'
check_fails "an open quote is told" 'unbalanced quote' "$CULPRIT" compare -r 2 -- "echo 'a" --vs true
check "--shell runs pipelines" "$CULPRIT" compare -r 2 --shell -- 'echo a | grep -q a' --vs 'true; true'
check "-S is --shell" "$CULPRIT" compare -r 2 -S -- 'true | true' --vs true
check_fails "a failing command is an error" 'B failed with status 1' "$CULPRIT" compare -r 2 -- true --vs false
check "-i accepts it" "$CULPRIT" compare -r 2 -i -- true --vs false
check "--ignore-failure is -i" "$CULPRIT" compare -r 2 --ignore-failure -- false --vs false
check_fails "a killed command is an error" 'killed by signal 9' "$CULPRIT" compare -r 2 -i -- true --vs sh -c 'kill -9 $$'
check_status "a missing command is 127" 127 "$CULPRIT" compare -r 2 -- true --vs ./no-such-program
echo text >not-executable
check_status "a file that cannot run is 126" 126 "$CULPRIT" compare -r 2 -- true --vs ./not-executable x
check_fails "without --vs" 'no --vs' "$CULPRIT" compare -- true
check_fails "without B" 'B: no command' "$CULPRIT" compare -- true --vs
check "standard input is empty" "$CULPRIT" compare -r 2 -- sh -c '! read -r line' --vs true
"$CULPRIT" compare -r 2 -w 0 --output inherit -- echo seen --vs true >inherit.txt
expect "--output inherit shows the output" 2 "$(grep -c '^seen$' inherit.txt)"
"$CULPRIT" compare -r 2 -- echo seen --vs true >null.txt
expect "by default it is thrown away" 0 "$(grep -c '^seen$' null.txt)"
check "--output pipe is a pipe" "$CULPRIT" compare -r 2 --output pipe -- sh -c 'test -p /dev/stdout' --vs seq 100000
check_fails "--output wants one of three" 'null, inherit or pipe' "$CULPRIT" compare --output file -- true --vs true
check "SIGPIPE is not ignored in the commands" "$CULPRIT" compare -r 2 -- sh -c 'yes | head -n 1' --vs true

check_match "--help explains the verdict" "Two clocks" "$CULPRIT" compare --help

# CSV.
"$CULPRIT" compare --csv -r 9 -- true --vs true >out.csv
expect "--csv: a header and one row for each metric" 15 "$(wc -l <out.csv)"
check_match "--csv: fixed columns" '^metric,a_median,a_ci_low,a_ci_high,b_median,.*,verdict' cat out.csv
expect "--csv: each row has all columns" 12 "$(awk -F, '{print NF}' out.csv | sort -u | tr '\n' ' ' | tr -d ' ')"
check_fails "--json and --csv" 'exclude each other' "$CULPRIT" compare --json --csv -- true --vs true

plan_end
