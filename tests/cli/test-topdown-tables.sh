#!/bin/bash
# The checker of the top-down tables: every mistake that it promises to find is found.
. "$(dirname "$0")/lib.sh"
ROOT=$TESTS_DIR/..
plan_begin

cat >good.txt <<'END'
set A table for the test
cpu t1 t2
vendor arm
pmu p
width 4

let CYCLES = cycles
let SLOTS = 4 * CYCLES
let INSTRUCTIONS = insts

node Frontend_Bound < top slots
	value fetch / SLOTS
	over 15%
node Retiring < top slots
	value 1 - frontend_bound
	over 70%
node Memory_Bound < Retiring slots
	value memory / SLOTS
	over 10% with parent
node Core_Bound < Retiring slots
	value retiring - memory_bound
	over 10% with parent
closed 1 = frontend_bound retiring
closed retiring = memory_bound core_bound

event cycles 0x11
event insts 0x08
event fetch 0x23
event memory 0x24
END
for name in Frontend_Bound Retiring Memory_Bound Core_Bound; do echo "$name | means | helps"; done >meanings.txt
compile() { python3 "$ROOT/tools/compile-topdown.py" out.c meanings.txt "$@"; }
# refused NAME PATTERN SED...: the table with that change
refused() {
	local name=$1 pattern=$2
	shift 2
	sed "$@" good.txt >bad.txt
	check_fails "$name" "$pattern" compile bad.txt
}

check "a table that is right" compile good.txt
check_match "becomes C" 'nodes_0\[\]' cat out.c
refused "a name that is nothing" "nothing is called 'fetsch'" 's/value fetch/value fetsch/'
refused "a formula that is none" 'Frontend_Bound|frontend_bound: ' 's/value fetch .*/value fetch \/ \/ SLOTS/'
refused "what is not in the language" 'is not in the language' 's/value fetch .*/value fetch ** 2/'
refused "percent where a fraction belongs" 'fractions of 1, not percent' 's/value fetch /value 100 * fetch /'
refused "a threshold that is no percentage" 'between 0% and 100%' 's/over 15%/over 150%/'
refused "a threshold without a unit" 'is not understood' 's/over 15%/over 0.15/'
refused "no threshold" 'has no threshold' '/over 15%/d'
refused "no value" 'has no value' '/value fetch/d'
refused "a parent that is not there" 'the parent Retirin does not stand before' 's/Memory_Bound < Retiring/Memory_Bound < Retirin/'
refused "a unit that is none" 'unit slotses' 's/top slots$/top slotses/'
refused "a node twice" 'stands there twice' 's/node Core_Bound/node Memory_Bound/'
refused "an event twice" 'event fetch stands there twice' 's/event memory/event fetch/'
refused "an event that nothing uses" 'is not used' '$aevent more 0x99'
refused "a formula that needs itself" 'depends on itself: ' 's/value 1 - frontend_bound/value core_bound + memory_bound/'
refused "a sum that does not close" 'core_bound = .*, not retiring' 's/value retiring - memory_bound/value retiring - memory_bound \/ 2/'
refused "a sum of what is no share of slots" 'cannot be summed' 's/Memory_Bound < Retiring slots/Memory_Bound < Retiring clocks/'
refused "a part that is not below the whole" 'is not a child of retiring' 's/closed retiring = memory_bound/closed retiring = frontend_bound/'
refused "an alias of nothing" 'alias x' '/^let CYC/ialias x = y'
refused "no name of a core" "no line 'cpu'" '/^cpu/d'
refused "a line that is none" "is not understood" '$afoo bar'
sed 's/^cpu.*/cpu t2/; s/^set.*/set Another/' good.txt >second.txt
check_fails "a core in two tables" 'the CPU t2 is in two tables' compile good.txt second.txt
echo "Nothing | means | helps" >>meanings.txt
check_fails "a meaning that no node has" 'no table has Nothing' compile good.txt
sed -i '/^Nothing/d; /^Core_Bound/d' meanings.txt
check_fails "a node without a meaning" 'Core_Bound has no meaning' compile good.txt
echo "Core_Bound | means | helps" >>meanings.txt
printf 'set Like\ncpu t3\nlike good levels 1\n' >like.txt
check_match "a table like another: its first level" 'nodes_1\[\]' sh -c 'python3 "$0" out.c meanings.txt good.txt like.txt && cat out.c' "$ROOT/tools/compile-topdown.py"
expect_lines=$(grep -c '"Memory_Bound"' out.c)
if [ "$expect_lines" = 1 ]; then ok "without what lies below, and its events"; else not_ok "without what lies below" "$expect_lines"; fi
printf 'set Like\ncpu t3\nlike good\nnode Memory_Bound < Frontend_Bound slots\n\tvalue memory / SLOTS\n\tover 1%%\n' >like.txt
check_fails "a node does not move" 'has another parent' compile good.txt like.txt

plan_end
