#!/bin/sh
# Top-down on a core that counts cycles and instructions only: the accounting it can give, nothing else.
# shellcheck shell=ash
. "$(dirname "$0")/../cli/lib.sh"
plan_begin

"$CULPRIT" topdown -- spin 20000000 >tree.txt 2>&1
sed 's/^/# /' tree.txt
check_match "the cycles per instruction are counted" '[0-9.]+ cycles per instruction' cat tree.txt
check_match "this core never stalls, and its stall counters say so" 'Frontend_Stalled +0\.0% ' cat tree.txt
check_match "no branches were counted: their rate is no number" 'refused: Branch_Mispredict_Rate: division by 0' cat tree.txt
check_match "nothing is marked" 'No bottleneck is marked' cat tree.txt
check_match "-I" 'at [0-9.]+ s' "$CULPRIT" topdown -I 100 -- spin 200000000
check_match "the whole machine" 'cycles per instruction' "$CULPRIT" topdown -a -d 1
check_match "--cpi-stack: two cycles for each instruction, all of them base" 'Base +2\.000 +100\.0%' "$CULPRIT" topdown --cpi-stack -- spin 20000000
check_status "the exit status passes through" 3 "$CULPRIT" topdown sh -c 'exit 3'
check_match "JSON has the CPI" '"cpi": [0-9]' "$CULPRIT" topdown --json -- spin 20000000

plan_end
