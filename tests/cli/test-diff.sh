#!/bin/bash
# culprit diff: shares of functions in two profiles, what is significant, and pictures of it.
. "$(dirname "$0")/lib.sh"
plan_begin

data=${CULPRIT_TEST_DATA:-}

printf 'main;parse 500\nmain;work 490\nmain;once 10\n' >base.folded
printf 'main;parse 1400\nmain;work 580\nmain;once 20\n' >new.folded
check_match "the largest change first" '^ *50.00% +70.00% +20.00% +yes +.*parse$' "$CULPRIT" diff base.folded new.folded
check_match "what shrank" '^ *49.00% +29.00% +-20.00% +yes +.*work$' "$CULPRIT" diff base.folded new.folded
check_match "an equal share is no change" '^ *1.00% +1.00% +0.00% +no +.*once$' "$CULPRIT" diff base.folded new.folded --percent-limit 0
check "--significant" bash -c "'$CULPRIT' diff base.folded new.folded --significant --percent-limit 0 | grep -c yes | grep -qx 2 && ! '$CULPRIT' diff base.folded new.folded --significant --percent-limit 0 | grep -q once"
check_match "--max-rows says what is missing" '2 rows not shown' "$CULPRIT" diff base.folded new.folded --max-rows 1
check_match "--total: callers have all" '^ *100.00% +100.00% +0.00% +no +.*main$' "$CULPRIT" diff base.folded new.folded --total --percent-limit 0
check_match "--csv" '^base_share,new_share,delta_share,significant,p,dso,symbol,base,new$' "$CULPRIT" diff base.folded new.folded --csv
check_status "--threshold: a regression" 2 "$CULPRIT" diff base.folded new.folded --threshold 10
check_status "--threshold: none that large" 0 "$CULPRIT" diff base.folded new.folded --threshold 30
check_status "what shrinks is no regression" 0 "$CULPRIT" diff base.folded base.folded --threshold 0.1
check_fails "--time of folded stacks" 'only recordings tell times' "$CULPRIT" diff base.folded new.folded --time ',50%'
printf 'a 1\nb 1\n' >small.folded
printf 'a 2\nb 1\n' >small2.folded
check_match "a few samples tell nothing" 'no +.*a$' "$CULPRIT" diff small.folded small2.folded
if have python3; then
	check "--json" bash -c "'$CULPRIT' diff base.folded new.folded --json | python3 -c '
import json, sys
d = json.load(sys.stdin)
assert d[\"kind\"] == \"diff\" and d[\"base\"][\"all\"] == 1000 and d[\"new\"][\"samples\"] == 2000, d
rows = {r[\"symbol\"]: r for r in d[\"rows\"]}
assert set(rows) == {\"parse\", \"work\", \"once\"}, rows
p = rows[\"parse\"]
assert abs(p[\"delta_share\"] - 0.2) < 1e-12 and p[\"significant\"] is True and p[\"dso\"] is None
assert rows[\"once\"][\"significant\"] is False and rows[\"once\"][\"p\"] > 0.9
assert abs(sum(r[\"new_share\"] for r in d[\"rows\"]) - 1) < 1e-9
'"
	check "without numbers of samples significance is unknown" bash -c "
		printf 'heap profile: 1: 10 [1: 10] @ heapprofile\n1: 10 [1: 10] @ 0x10\n' >a.heap
		'$CULPRIT' diff a.heap a.heap --json | python3 -c '
import json, sys
assert [r[\"significant\"] for r in json.load(sys.stdin)[\"rows\"]] == [None]'"
else
	skip "--json" "no python3"
fi
check "--flame to SVG" bash -c "'$CULPRIT' diff base.folded new.folded --flame d.svg >/dev/null && grep -q '</svg>' d.svg"
check "--flame to HTML" bash -c "'$CULPRIT' diff base.folded new.folded --flame d.html >/dev/null && grep -qi '</html>' d.html"
check "pprof against folded, --event and --max-size" bash -c "'$CULPRIT' convert new.folded -o new.pb.gz && '$CULPRIT' diff base.folded new.pb.gz --event samples --max-size 1M | grep -q 'yes.*parse'"
check "--no-demangle" "$CULPRIT" diff --no-demangle base.folded new.folded
check "--no-cache" "$CULPRIT" diff --no-cache base.folded new.folded
check "--debuginfod" "$CULPRIT" diff --debuginfod 1 base.folded new.folded
check_match "--help" '^Usage: culprit diff' "$CULPRIT" diff --help
check_fails "one profile" 'BASE NEW' "$CULPRIT" diff base.folded
check_fails "a missing file" 'missing: ' "$CULPRIT" diff base.folded missing
check_fails "--json and --csv" 'exclude' "$CULPRIT" diff base.folded new.folded --json --csv
check_fails "an event that is not there" "there is: samples" "$CULPRIT" diff base.folded new.folded --event cycles
check_fails "other units" 'cannot be compared' bash -c "printf 'heap profile: 1: 10 [1: 10] @ heapprofile\n1: 10 [1: 10] @ 0x10\n' >a.heap; '$CULPRIT' diff base.folded a.heap"
if [ -z "$data" ]; then
	skip "a recording with itself" "no CULPRIT_TEST_DATA"
else
	check "a recording with itself: no change" bash -c "'$CULPRIT' diff '$data/sampling/perfdata/sleep.data' '$data/sampling/perfdata/sleep.data' --csv | awk -F, 'NR > 1 && (\$3 != 0 || \$4 == \"yes\") { exit 1 } END { exit NR < 2 }'"
fi

plan_end
