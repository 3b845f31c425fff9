#!/bin/bash
# culprit topdown: the tree of every family (golden files), published counts and their digits,
# counts that cannot be true, and every option.
. "$(dirname "$0")/lib.sh"
HERE=$TESTS_DIR/cli/topdown
plan_begin

# expect NAME WANT HAVE
expect() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "have '$3', want '$2'"; fi; }
# shares FILE NODE...: the values in percent, one digit, from a JSON document
shares() {
	local file=$1
	shift
	for node in "$@"; do
		awk -v node="\"$node\"" '/"name":/ { here = index($0, node) > 0 } here && /"raw_share":/ {
			gsub(/[",]/, ""); if ($2 == "null") print "-"; else printf "%.1f\n", 100 * $2; exit }' "$file"
	done | tr '\n' ' ' | sed 's/ $//'
}
topdown() { "$CULPRIT" topdown "$@"; }

# Golden trees: one for each family.
for counts in "$HERE"/*.counts; do
	cpu=$(basename "$counts" .counts)
	if out=$(cd "$HERE" && diff "$cpu.tree" <("$CULPRIT" topdown --cpu "$cpu" --import "$cpu.counts") 2>&1); then ok "tree of $cpu"; else not_ok "tree of $cpu" "$out"; fi
done

# Published outputs of perf: the counts give the printed digits.
cat >spr <<-END
	TOPDOWN.SLOTS:u 3245820
	topdown-retiring:u 564859
	topdown-fe-bound:u 1370999
	topdown-be-bound:u 603271
	topdown-bad-spec:u 744874
	INT_MISC.UOP_DROPPING:u 12661
END
topdown --cpu spr --import spr --json >spr.json
expect "case 01: Sapphire Rapids with dropped operations" "18.4 17.2 23.1 41.4" "$(shares spr.json backend_bound retiring bad_speculation frontend_bound)"
metrics() { printf 'slots %s\ntopdown-retiring %s\ntopdown-bad-spec %s\ntopdown-fe-bound %s\ntopdown-be-bound %s\n' "$@" >counts; topdown --cpu icx --import counts --json >icx.json; shares icx.json retiring bad_speculation frontend_bound backend_bound; }
expect "case 03: Ice Lake, starved groups" "11.7 7.1 32.0 49.2" "$(metrics 71229087 8336760 5066320 22769750 35080387)"
expect "case 04: Ice Lake, five runs: sum by sum, not means of different kinds" "32.5 13.9 35.3 18.4" "$(metrics 22511903971150 7377211958188 3145247374138 8018664899041 4167103609622)"
expect "case 05: grouped digits, run 1" "60.6 25.5 5.9 7.9" "$(metrics 289.245.492.485 179.258.216.211 75.430.267.605 17.593.012.308 23.494.753.955)"
expect "case 05: grouped digits, run 2" "35.9 51.9 9.0 3.3" "$(metrics 110,012,224,180 46,249,288,201 66,840,325,235 11,551,676,669 4,200,795,487)"
check_match "case 05: a sum 17% above the slots is weak, with the cause" 'weak: .*17\.1% above the slots' topdown --cpu icx --import counts
check_match "case 05: and marks nothing" 'No bottleneck is marked' topdown --cpu icx --import counts
expect "case 05: run 3" "43.1 43.1 7.9 5.8" "$(metrics 126172157990 55613976450 55596409379 10209440926 7530072334)"
expect "case 05: run 4" "53.0 30.0 10.8 6.2" "$(metrics 96357040585 55076267037 31139434659 11234677820 6477665317)"
expect "case 07: a sum 11% above the slots" "17.4 53.8 0.6 28.2" "$(metrics 1718355823412 333238633815 1027585489317 11428105361 538164217329)"
check_match "case 07: is weak, with the cause" 'weak: .*11\.2% above the slots' topdown --cpu icx --import counts
check_match "case 07: and marks nothing" 'No bottleneck is marked' topdown --cpu icx --import counts
pipeline() { # disp ops fe be smt cycles
	printf 'de_src_op_disp.all %s (50.01%%)\nls_not_halted_cyc %s (50.01%%)\nex_ret_ops %s (50.01%%)\n' "$1" "$6" "$2" >counts
	printf 'de_no_dispatch_per_slot.smt_contention %s (50.00%%)\nls_not_halted_cyc %s (50.00%%)\n' "$5" "$7" >>counts
	printf 'de_no_dispatch_per_slot.no_ops_from_frontend %s (49.99%%)\nls_not_halted_cyc %s (49.99%%)\n' "$3" "$8" >>counts
	printf 'de_no_dispatch_per_slot.backend_stalls %s (75.00%%)\nls_not_halted_cyc %s (75.00%%)\n' "$4" "$9" >>counts
	topdown --cpu zen4 --import counts --json >pipeline.json
	shares pipeline.json bad_speculation retiring smt_contention frontend_bound backend_bound
}
expect "case 08: Zen 4, every group with its own cycles" "5.8 36.3 0.0 56.2 1.7" \
	"$(pipeline 74722674738 64382628404 99571510280 2964589640 87109879 29557874567 29522675914 29508518726 29528187809)"
check_match "case 08: the five parts add up to 100.1%, and stand as they are" 'level 1 adds up to 100\.1%' topdown --cpu zen4 --import counts
expect "case 10: Zen 4, computing" "2.0 81.0 0.0 2.1 14.9" \
	"$(pipeline 219730483625 214351198437 5543991665 39403115284 0 44116386583 44116386583 44116420605 44117209499)"
cat >zen4 <<-END
	ex_ret_brn_misp 21958894 (19.97%)
	de_src_op_disp.all 20284275971 (19.97%)
	resyncs_or_nc_redirects 51318 (19.97%)
	ls_not_halted_cyc 4895089444 (19.97%)
	ex_ret_ops 18657737631 (19.97%)
	ex_no_retire.load_not_complete 681847357 (20.10%)
	de_no_dispatch_per_slot.backend_stalls 3602363546 (20.10%)
	ex_no_retire.not_complete 1068036530 (20.10%)
	ls_not_halted_cyc 4894584247 (20.10%)
	ex_ret_ucode_ops 8854312 (19.97%)
	ls_not_halted_cyc 4895098597 (19.97%)
	ex_ret_ops 18620594832 (19.97%)
	de_no_dispatch_per_slot.no_ops_from_frontend 5460578458 (19.98%)
	cpu/de_no_dispatch_per_slot.no_ops_from_frontend,cmask=0x6/ 563718873 (19.98%)
	ls_not_halted_cyc 4894729709 (19.98%)
	de_no_dispatch_per_slot.smt_contention 79739703 (39.95%)
	ls_not_halted_cyc 4894939755 (39.95%)
END
topdown --cpu zen4 --import zen4 --json >zen4.json
expect "case 11: Zen 4, five groups, each with its own cycles" "5.5 5.5 0.0 63.5 12.3 7.8 4.4 63.4 0.0 18.6 11.5 7.1 0.3" \
	"$(shares zen4.json bad_speculation mispredicts pipeline_restarts retiring backend_bound memory_bound cpu_bound fastpath microcode frontend_bound frontend_latency frontend_bandwidth smt_contention)"
check_match "case 11: a fifth of the time is weak" 'counted 20% of the time' topdown --cpu zen4 --import zen4

# What cannot be true is refused, with the cause.
printf 'CPU_CLK_UNHALTED.THREAD 1000\nIDQ_UOPS_NOT_DELIVERED.CORE 400\nUOPS_ISSUED.ANY 600000\nUOPS_RETIRED.RETIRE_SLOTS 2000\nINT_MISC.RECOVERY_CYCLES 10\n' >impossible
check_match "case 12: impossible shares are refused, with the cause" 'refused: .*Bad_Speculation would be 14951%: impossible' topdown --cpu skl --import impossible
topdown --cpu skl --import impossible --json >impossible.json
expect "case 12: as null, not as numbers" "- - - -" "$(shares impossible.json frontend_bound bad_speculation backend_bound retiring)"
check "case 12: and nothing is marked" sh -c '! grep -q "\"bottleneck\": true" impossible.json'
printf 'slots 0\ntopdown-retiring 0\ntopdown-bad-spec 0\ntopdown-fe-bound 0\ntopdown-be-bound 0\n' >zero
check_match "no slots: division by 0 is no number" 'refused: .*division by 0' topdown --cpu spr --import zero
printf 'slots 100\ntopdown-retiring <not counted>\ntopdown-bad-spec 10\ntopdown-fe-bound 10\ntopdown-be-bound 10\n' >absent
check_match "not counted stays not counted" 'missing: .*topdown-retiring was not counted' topdown --cpu spr --import absent
printf 'ls_not_halted_cyc 1000\nex_ret_ops 2000\nex_ret_ops 4000\n' >twice
check_match "an event that disagrees with itself is weak" 'ex_ret_ops was counted as 2000 and as 4000' topdown --cpu zen5 --import twice

# --metrics: the user's files in every layout, and recordings that every node has a value in.
check "the recordings are those that the script makes" "$HERE/make-recordings.py" --check
recorded=$HERE/recorded
check_match "--metrics: perfmon's tree and version" 'Intel TMA 9\.9 \(perfmon\.json\)' topdown --metrics "$HERE/metrics/perfmon.json" --cpu spr --import "$recorded/spr.counts"
check_match "what cannot be read is told" 'passed over: cannot_be_read: column' topdown --metrics "$HERE/metrics/perfmon.json" --cpu spr --import "$recorded/spr.counts"
topdown --metrics "$HERE/metrics/perfmon.json" --cpu spr --import "$recorded/spr.counts" --json >user.json
topdown --cpu spr --import "$recorded/spr.counts" --json >own.json
nodes="frontend_bound bad_speculation backend_bound retiring fetch_latency heavy_operations icache_misses ms_switches"
expect "the same values as the table that is built in" "$(shares own.json $nodes)" "$(shares user.json $nodes)"
check_match "perf's layout, without --cpu" 'Backend_Bound_Memory +11\.7%' topdown --metrics "$HERE/metrics/perf.json" --import "$recorded/zen4.counts"
check_match "rates are no shares" 'Mispredicts_Pti +[0-9.]+ +per_1k_instr' topdown --metrics "$HERE/metrics/perf.json" --cpu zen4 --import "$recorded/zen4.counts"
check_match "a hybrid's small cores" 'Bad_Speculation +3\.0%' topdown --metrics "$HERE/metrics/perf-hybrid.json" --cpu adl-e --import "$recorded/adl-e.counts"
check_match "Arm: a folder, the file of the revision" 'Neoverse N2 r0p2 \(neoverse-n2\.json\)' topdown --metrics "$HERE/metrics/arm" --cpu n2-r0p1 --import "$recorded/n2-r0p1.counts"
check_match "with the same tree on both revisions" 'Retiring +35\.0%' topdown --metrics "$HERE/metrics/arm" --cpu n2-r0p1 --import "$recorded/n2-r0p1.counts"
check_match "its decision tree" '^    SIMD_Percentage' topdown --metrics "$HERE/metrics/arm" --cpu n2 --import "$recorded/n2.counts" --all
check_match "a rate explained" 'value: 2\.28571 MPKI, measured' topdown --metrics "$HERE/metrics/arm" --cpu n2 --import "$recorded/n2.counts" --explain branch_mpki
check_match "a rate in CSV" '^0,branch_mpki,frontend_bound,2,MPKI,2\.28' topdown --metrics "$HERE/metrics/arm" --cpu n2 --import "$recorded/n2.counts" --csv
check_fails "--metrics: no such file" 'No such file' topdown --metrics nowhere --cpu spr --import spr
check_fails "--metrics: no metrics in it" 'no metrics' topdown --metrics "$HERE/../../fuzz/corpus/metrics" --cpu zen4 --import zen4
printf '[{"MetricName":"top","MetricExpr":"a","MetricGroup":"TopdownL1","ScaleUnit":"100%%"},{"MetricName":"a","MetricExpr":"b"},{"MetricName":"b","MetricExpr":"a"}]' >loop.json
check_fails "a formula that needs itself" 'needs itself: top > a > b > a' topdown --metrics loop.json --import spr
refused=$(for counts in "$recorded"/*.counts; do topdown --cpu "$(basename "$counts" .counts)" --import "$counts" --all | grep -E 'refused|not counted|\(weak\)'; done)
expect "every node of every table has a value in its recording" "" "$refused"

# Options.
check_match "--list-cpus" '^zen5 +AMD pipeline utilization, Zen 5' topdown --list-cpus
check_match "-l 1: the same mark as deeper down the branch" 'Backend_Bound .*<==' topdown --cpu icl --import "$HERE/icl.counts" -l 1
check_match "--level 2" 'Memory_Bound .*<==' topdown --cpu icl --import "$HERE/icl.counts" --level 2
check_match "--all shows what is missing" 'Store_Latency +- +not counted' topdown --cpu spr --import spr --all
check_match "--nodes takes patterns" 'Memory_Bound' topdown --cpu icl --import "$HERE/icl.counts" --nodes 'mem*,retiring'
check "--nodes shows nothing else" sh -c '! "$0" topdown --cpu icl --import "$1" --nodes "mem*" | grep -q "Core_Bound"' "$CULPRIT" "$HERE/icl.counts"
check_fails "--nodes: a wrong name" "has no node 'nope'" topdown --cpu icl --import "$HERE/icl.counts" --nodes nope
check_match "--explain gives the formula" 'topdown-fe-bound / S4' topdown --cpu spr --import spr --explain frontend_bound
check_match "with the counts" 'INT_MISC.UOP_DROPPING +12661  measured' topdown --cpu spr --import spr --explain frontend_bound
check_match "and the value" 'value: 41\.36%, measured' topdown --cpu spr --import spr --explain Frontend_Bound
check_fails "--explain: a wrong name" "has no node 'nope'" topdown --cpu spr --import spr --explain nope
check_match "--cpi-stack" 'Memory +0\.[0-9]+ ' topdown --cpu icl --import "$HERE/icl.counts" --cpi-stack
topdown --cpu icl --import "$HERE/icl.counts" --json >icl.json
if have jq; then
	check "the CPI stack adds up to the measured CPI" jq -e '([.cpi_stack[] | select(.depth == 0).cpi] | add) as $s | ($s - .cpi) | fabs < 1e-9' icl.json
	check "the document has its keys" jq -e '.kind == "topdown" and .cpu_model == "icl" and (.formula_set | length > 0) and all(.nodes[]; has("parent") and has("level") and has("threshold_share") and has("state") and has("reason") and has("stderr_share"))' icl.json
	check "one bottleneck, below thresholds that hold" jq -e '[.nodes[] | select(.bottleneck)] | length == 1 and .[0].over_threshold' icl.json
	check "errors are carried" jq -e '.nodes[] | select(.name == "memory_bound") | .stderr_share > 0 and .stderr_share < 0.1' icl.json
else
	skip "the JSON document" "jq is not installed"
fi
sed 's/^cycles .*/cycles 20000000000/' "$HERE/icl.counts" >slower
check_match "--vs: two stacks" '\(\+100\.0%\)' topdown --cpu icl --import "$HERE/icl.counts" --cpi-stack --vs slower
check_match "--vs: two trees, marks of both" 'Memory_Bound .*\+0\.0 slots +<== A B' topdown --cpu icl --import "$HERE/icl.counts" --vs slower
topdown --cpu icl --import "$HERE/icl.counts" --vs slower --json >vs.json
have jq && check "--vs: both sides in JSON" jq -e '[.trees[].side] == ["a", "b"] and .trees[1].cpi == 2 * .trees[0].cpi' vs.json
check_match "--vs: both sides in CSV" '^0,memory_bound,.*,b,,$' topdown --cpu icl --import "$HERE/icl.counts" --vs slower --csv
check_fails "--vs FILE is for recorded counts" 'goes with --import' topdown --vs slower -- true
check_fails "--vs has no --explain" 'no second side' topdown --cpu icl --import "$HERE/icl.counts" --vs slower --explain retiring
expect "--csv: a header and a row for each node" 13 "$(topdown --cpu icl --import "$HERE/icl.counts" --csv | wc -l)"
check_match "--csv: the values" '^0,backend_bound,,1,slots,0\.73' topdown --cpu icl --import "$HERE/icl.counts" --csv
check_fails "--csv and -j exclude each other" 'exclude' topdown --cpu icl --import "$HERE/icl.counts" --csv -j
check_match "standard input" 'Retiring +17\.2%' sh -c '"$0" topdown --cpu spr --import - <spr' "$CULPRIT"
check_fails "an unknown core" "no table for 'z80'" topdown --cpu z80 --import spr
check_fails "a file without the core" 'needs --cpu NAME' topdown --import spr
check_fails "a file of another core" 'no event of AMD' topdown --cpu zen4 --import spr
check_fails "no file" 'No such file' topdown --cpu spr --import nowhere
echo "slots 12x" >bad
check_fails "a wrong count" "bad: line 1: '12x' is not a count" topdown --cpu spr --import bad
echo "slots 1.234" >bad
check_fails "a count that could be read in two ways" "'1.234' is not a count" topdown --cpu spr --import bad
echo "slots" >bad
check_fails "no count" "no count behind 'slots'" topdown --cpu spr --import bad
echo "slots 12 often" >bad
check_fails "words behind the count" 'only SHARE% and \+- ERROR' topdown --cpu spr --import bad
yes 'slots 12' | head -n 2001 >bad
check_fails "too many counts" 'more than 2000 counts' topdown --cpu spr --import bad
head -c 1000 /dev/zero >bad
check_fails "no text" 'not a text file' topdown --cpu spr --import bad

# Live. With counters the tree, without them what is missing and the kernel's accounts.
either='level 1 adds up|cycles per instruction|No top-down tree: .*[a-z]'
check_status "the command's exit status passes through" 3 "$CULPRIT" topdown -- sh -c 'exit 3'
check_match "a command" "$either" topdown -- sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done'
check_match "--metrics: live, or what is missing" "$either|no metric is level 1" topdown --metrics "$HERE/metrics/perf.json" -- true
check_match "-a -d: the whole machine for a time" "$either" topdown -a -d 200ms
check_match "--all-cpus --duration" "$either" topdown --all-cpus --duration 200ms
check_match "-I --interval-count" "$either" topdown -I 50 --interval-count 2 -- sleep 1
check_match "--interval-print" "$either" topdown --interval-print 50 -- sleep 0.2
check_match "--no-multiplex" "$either" topdown --no-multiplex -- true
check_match "-p" "$either|no counters of the core|no table|no top-down events|no counter can" topdown -p $$ -d 100ms
check_fails "--pid: no such process" 'no process 2147483646' topdown --pid 2147483646
check_match "--json without counters has keys all the same" '"cpi_stack"' topdown --json -- true
check_match "--csv" '^(time_ns|name),' topdown --csv -- true
check_match "--drill" "$either" topdown --drill -l 1 -- true
check_match "-r" "$either" topdown -r 3 -- true
check_match "--repeat --json" '"repeats": 2' topdown --repeat 2 --json -- true
check_match "two commands beside each other" '^  B: sleep 0$' topdown -- true --vs sleep 0
check_match "--cpi-stack of two commands" '^  A: true$' topdown --cpi-stack -- true --vs sleep 0
check_match "-a --per-core" "$either" topdown -a --per-core -d 100ms
check_match "-a --per-thread" "$either" topdown -a --per-thread -d 100ms
check_match "-I and -p" 'at 0\.[0-9]+ s|no counter can' topdown -I 50 --interval-count 1 -p $$
check_match "Ctrl-C ends the machine's time, and the result is shown" "$either" timeout -s INT 1 "$CULPRIT" topdown -a
check_match "-I --json: a document with intervals" '"intervals"' topdown -I 50 --interval-count 2 --json -a
check_match "--run records and shows the report" '^culprit record .*-- ' topdown --run -- sh -c 'i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done'
check "--run leaves the recording" test -s perf.data
check_fails "--run has no --json" 'does not go with' topdown --run --json -- true
check_fails "--per-core needs -a" 'needs -a' topdown --per-core -- true
check_fails "--per-thread needs -p or -a" 'needs -p or -a' topdown --per-thread -- true
check_fails "--per-core and --per-thread" 'exclude' topdown -a --per-core --per-thread
check_fails "--repeat needs a command" 'needs a command' topdown -r 2 -a
check_fails "--drill and --all" 'chooses the nodes' topdown --drill --all -- true
check_fails "--drill needs something to count again" 'a command or --duration' topdown --drill -a
check_fails "--vs without a second command" 'between two commands' topdown -- true --vs
check_fails "--vs and -a" 'two commands' topdown -a -- true --vs true
check_fails "--drill and a file" 'are what they are' topdown --cpu spr --import spr --drill
check_status "a command that does not exist" 127 "$CULPRIT" topdown -- ./nowhere
check_fails "nothing to count" 'say what to count' topdown
check_fails "--cpu is for files" 'needs --import' topdown --cpu spr -- true
check_fails "--no-multiplex needs a command" 'needs a command' topdown --no-multiplex -a
check_fails "--interval-count needs -I" 'needs -I' topdown --interval-count 2 -a
check_fails "-a and -p exclude each other" 'exclude' topdown -a -p 1

plan_end
