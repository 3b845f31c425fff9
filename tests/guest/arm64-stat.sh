#!/bin/sh
# Counting on a real counter unit: exact counts, against perf in the same boot, and regions.
# shellcheck shell=ash
. "$(dirname "$0")/../cli/lib.sh"
plan_begin

# value FILE EVENT: of culprit's or perf's comma-separated output
ours() { awk -F, -v e="$2" '$3 == e || $2 == e || $1 == e { for (i = 1; i <= NF; i++) if ($i ~ /^[0-9][0-9.]*$/) { print $i; exit } }' "$1"; }

# near NAME HAVE WANT SHARE
near() {
	if awk -v a="$2" -v b="$3" -v s="$4" 'BEGIN { d = a - b; exit !(a != "" && b > 0 && (d < 0 ? -d : d) <= b * s) }'; then
		ok "$1"
	else
		not_ok "$1" "have '$2', want '$3' within a share of $4"
	fi
}

N=40000000
"$CULPRIT" stat -x , -e cycles:u,instructions:u spin $N 2>ours.csv
perf stat -x , -e cycles:u,instructions:u spin $N 2>perf.csv
sed 's/^/# culprit: /' ours.csv
sed 's/^/# perf:    /' perf.csv
near "instructions:u are those of the loop" "$(ours ours.csv instructions:u)" $((2 * N)) 0.001
near "instructions:u equal perf's" "$(ours ours.csv instructions:u)" "$(ours perf.csv instructions:u)" 0.001
near "cycles:u equal perf's" "$(ours ours.csv cycles:u)" "$(ours perf.csv cycles:u)" 0.001
check_match "the default events have values" '[0-9,]+ +instructions' "$CULPRIT" stat spin 1000000
check_status "the exit status passes through" 3 "$CULPRIT" stat sh -c 'exit 3'

# More events than counters: they take turns, and the estimate finds the truth.
i=instructions:u
"$CULPRIT" stat -x , -e $i,$i,$i,$i,$i,$i,$i,$i,$i,$i spin 200000000 2>many.csv
sed 's/^/# many: /' many.csv
near "instructions:u of a multiplexed run" "$(ours many.csv instructions:u)" 400000000 0.02

# Regions, read in user space.
"$CULPRIT" stat --regions -e cycles:u,instructions:u -- regions nested >/dev/null 2>regions.txt
sed 's/^/# /' regions.txt
check_match "regions read their counters in user space" 'counters read in user space' cat regions.txt
check_match "a region's cycles and instructions are counted" '^inner +1 +10 .* 0\.50$' cat regions.txt
echo 0 >/proc/sys/kernel/perf_user_access
"$CULPRIT" stat --regions -e cycles:u,instructions:u -- regions nested >/dev/null 2>regions.txt
check_match "without permission they are read by system calls" 'counters read by system calls' cat regions.txt
check_match "and count as well" '^inner +1 +10 .* 0\.50$' cat regions.txt
"$CULPRIT" stat --regions -e cycles:u,$i,$i,$i,$i,$i,$i,$i -- regions nested >/dev/null 2>regions.txt
sed 's/^/# /' regions.txt
check_match "an event that does not fit is not counted, and says so" 'not counted: no counter is free' cat regions.txt

check_match "the cost of regions is a fraction of system calls" '^region-overhead: ratio 0\.[0-4]' sh -c 'echo 1 >/proc/sys/kernel/perf_user_access; region-overhead | sed "s/^/# /" >&2; region-overhead'

plan_end
