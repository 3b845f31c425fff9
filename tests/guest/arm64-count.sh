#!/bin/sh
# The counting engine on a real counter unit: against perf, against known truth, with phases, exact runs.
# shellcheck shell=ash
. "$(dirname "$0")/../cli/lib.sh"
plan_begin

# field FILE N NAME: column N of the first event NAME in a CSV
field() { awk -F, -v n="$3" -v c="$2" '$3 == "event" && $4 == n { print $c; exit }' "$1"; }
# near A B SHARE: |A - B| <= SHARE * B
near() { awk -v a="$1" -v b="$2" -v s="$3" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(b > 0 && d <= s * b) }'; }

# user-mode counts against perf in the same boot
perf stat -x, -e cycles:u,instructions:u spin 2000000 2>perf.csv
"$CULPRIT" stat --csv -o ours.csv -e cycles:u,instructions:u -- spin 2000000
for event in cycles:u instructions:u; do
	a=$(awk -F, -v n=$event '$3 == n { print $1 }' perf.csv) b=$(field ours.csv 5 $event)
	if near "$b" "$a" 0.001; then ok "$event within 0.1 % of perf ($a, $b)"; else not_ok "$event within 0.1 % of perf" "perf $a, ours $b"; fi
done
i=$(field ours.csv 5 instructions:u)
if near "$i" 4000000 0.01; then ok "the known number of instructions"; else not_ok "the known number of instructions" "$i of 4000000"; fi

# the default set: a ratio of one group, absent events with the reason
"$CULPRIT" stat --json -o default.json -- spin 1000000
check_match "instructions per cycle of one group" '"name": "ipc"' cat default.json
check_match "absent events say so" 'no such event' cat default.json

# more events than counters on a program with phases: 20 runs
events=instructions:uD,instructions:kD
for n in 1 2 3 4 5 6; do events=$events,instructions:u,instructions:k; done
seed=0
while [ $seed -lt 20 ]; do
	seed=$((seed + 1))
	"$CULPRIT" stat --csv -o "run$seed.csv" -e $events -- phased $seed 50 >/dev/null 2>>errors
	# rows: two truths, then the estimates; the first estimate of each mode
	awk -F, '$3 == "event" { n++
		if (n == 1) tu = $5; if (n == 2) tk = $5
		if (n >= 3 && n <= 4) { t = n == 3 ? tu : tk
			if ($11 != "estimated" && $11 != "weak") { print "state", $11, $13; next }
			d = $5 - t; if (d < 0) d = -d
			s = $8 * $9 / $10 - t; if (s < 0) s = -s
			print "est", d / t, s / t, (d <= 2 * $7 + 1e-4 * t), $10 / $9 } }' "run$seed.csv" >>estimates
done
cat errors
if grep -v ^est estimates; then not_ok "every event gets an estimate"; else ok "every event gets an estimate"; fi
awk '$1 == "est" { n++; ours += $2; time += $3; inside += $4; share += $5 }
	END { printf "ours %.4f%% time %.3f%% inside %d of %d, share %.0f%%\n", 100 * ours / n, 100 * time / n, inside, n, 100 * share / n
		exit !(n == 40 && ours <= time / 2) }' estimates >summary
if [ $? -eq 0 ]; then ok "error at most half of time scaling's: $(cat summary)"; else not_ok "error at most half of time scaling's" "$(cat summary)" "$(head -n 50 estimates)"; fi
if awk '$1 == "est" { inside += $4; n++ } END { exit !(inside >= n * 0.9) }' estimates; then
	ok "the truth lies within two standard errors"
else
	not_ok "the truth lies within two standard errors" "$(cat summary)" "$(cat estimates)"
fi

# exact: nothing shared, the same as an unshared run
"$CULPRIT" stat --csv -o alone.csv -e instructions:u,cycles:u -- phased 3 40 >/dev/null
exact=instructions:u,cycles:u
for n in 1 2 3 4 5 6 7 8; do exact=$exact,instructions:u; done
"$CULPRIT" stat --exact --csv -o exact.csv -e $exact -- phased 3 40 >/dev/null 2>>exact.errors
seen() { cat exact.errors alone.csv exact.csv; }
a=$(field alone.csv 5 instructions:u) b=$(field exact.csv 5 instructions:u)
if near "$b" "$a" 0.001; then ok "--exact agrees with an unshared run ($a, $b)"; else not_ok "--exact agrees with an unshared run" "$a, $b" "$(seen)"; fi
if [ -s exact.csv ] && ! grep -qE 'estimated|weak|not_counted' exact.csv; then ok "--exact estimates nothing"; else not_ok "--exact estimates nothing" "$(seen)"; fi

# whenever the kernel's turns fall into the trials: many plans, every number counted all the time
tries=0 shared=0
while [ $tries -lt 15 ]; do
	tries=$((tries + 1))
	"$CULPRIT" stat --exact --csv -o again.csv -e $exact -- spin 20000 2>>exact.errors
	awk -F, '$3 == "event" && $11 != "measured"' again.csv >again.shared
	[ -s again.csv ] && [ ! -s again.shared ] && continue
	shared=$((shared + 1))
	cp again.csv exact.csv
done
if [ $shared -eq 0 ]; then ok "$tries exact plans share nothing"; else not_ok "$tries exact plans share nothing" "$shared of them do" "$(seen)"; fi

# a group that cannot fit is told before the run, with a split
group='{instructions:u,instructions:u,instructions:u,instructions:u,instructions:u,instructions:u,instructions:u,instructions:u}'
if "$CULPRIT" stat -e "$group" -- true 2>out; then ok "a group too large does not fail the command"; else not_ok "a group too large does not fail the command" "$(cat out)"; fi
check_match "and is told with the split" 'needs more counters than are free.*try \{' cat out

plan_end
