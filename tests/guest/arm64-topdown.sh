#!/bin/sh
# Top-down on a core that counts cycles and instructions only: the accounting it can give, nothing else.
# shellcheck shell=ash
. "$(dirname "$0")/../cli/lib.sh"
plan_begin

"$CULPRIT" topdown -- spin 20000000 >tree.txt 2>&1
sed 's/^/# /' tree.txt
check_match "the cycles per instruction are counted" '[0-9.]+ cycles per instruction' cat tree.txt
check_match "this core has no stall counters: no share of stalls is made up" 'missing: Frontend_Stalled: .*this core does not have it' cat tree.txt
check_match "nor one of branches" 'Branch_Mispredict_Rate +- +not supported' cat tree.txt
check_match "what it counts of what was wanted" 'It counts: cpu_cycles inst_retired; not: br_mis_pred_retired' cat tree.txt
check_match "the events that the core has" 'Its counters know: .*cpu_cycles' cat tree.txt
check_match "nothing is marked" 'No bottleneck is marked' cat tree.txt
check_match "-I" 'at [0-9.]+ s' "$CULPRIT" topdown -I 100 -- spin 200000000
check_match "the whole machine" 'cycles per instruction' "$CULPRIT" topdown -a -d 1
check_match "--cpi-stack: two cycles for each instruction, not divided" 'Not divided +2\.000 +100\.0%' "$CULPRIT" topdown --cpi-stack -- spin 20000000
check_status "the exit status passes through" 3 "$CULPRIT" topdown sh -c 'exit 3'
check_match "-r: runs that are alike to the cycle" '2\.000 cycles per instruction' "$CULPRIT" topdown -r 2 -- spin 20000000
check_match "--run: the recording and its report" ' spin ' "$CULPRIT" topdown --run -- spin 100000000
check_match "JSON has the CPI" '"cpi": [0-9]' "$CULPRIT" topdown --json -- spin 20000000

plan_end
