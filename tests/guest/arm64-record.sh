#!/bin/sh
# Sampling by counter overflow on a real counter unit.
# shellcheck shell=ash
. "$(dirname "$0")/../cli/lib.sh"
plan_begin

# 160 million cycles, one sample every 1000003: 159 or 160, unless some overflow comes late.
check "a command is recorded by cycles" "$CULPRIT" record -e cycles:u -c 1000003 -o cycles.data -- spin 40000000
"$CULPRIT" report -i cycles.data --json >report.json 2>report.err
sed 's/^/# /' report.err
samples=$(sed -n 's/^\t"samples": \([0-9]*\),*$/\1/p' report.json)
if [ "${samples:-0}" -ge 155 ] && [ "${samples:-0}" -le 161 ]; then ok "a sample every million cycles ($samples of 160)"; else not_ok "a sample every million cycles" "$samples of 160"; fi
check_match "they fall into the loop" '"symbol": "(main|spin)' cat report.json
check_match "none was lost" '"lost": 0' cat report.json
check_match "perf reads the file" 'cycles:u' perf report --stdio -i cycles.data
check "call stacks by frame pointers" "$CULPRIT" record -g -e cycles -c 1000003 -o stacks.data -- spin 20000000
check_match "are shown" 'spin' "$CULPRIT" report -i stacks.data -g caller

plan_end
