#!/bin/bash
# The text of perf script as an input: our own cases, and real texts against what stackcollapse scripts made of them.
. "$(dirname "$0")/lib.sh"
plan_begin

folded() { "$CULPRIT" convert "$@" --to folded; }

cat >script.txt <<'END'
# ========
# cmdline : perf record -g
# ========
#
my prog 7 12/34 [001] 123.456789:     250000 cpu-clock:uhH:
	          401b97 inner(int, char (*)(int))+0x1f (/bin/with space (deleted))
  a.c:12
	          401b94 outer+0x1c (inlined)
	          401b94 main+0x1c (/bin/prog)

:-1    -1 [000] 123.5:     250000 cpu-clock:uhH:
	ffffffff81000000 [unknown] ([kernel.kallsyms])
	          401b94 [unknown] ([unknown])

add 99 124.000000:     500000 cpu-clock:uhH:      7fa68b1f2d84 _dl_start+0x4 (/lib/ld.so)
add 99 125.000000:     500000 cpu-clock:uhH:

	          401b94 _ZN3abc3fooEv+0x3 (/bin/prog)
END
cat >want.folded <<'END'
:-1;[unknown];[kernel.kallsyms] 1
add;_dl_start 1
add;abc::foo() 1
my prog 7;main;outer;inner(int, char (*)(int)) 1
END
folded script.txt --value samples --root comm >have.folded
check "samples, stacks, inlined frames, names" diff want.folded have.folded
check_match "periods are the value shown" '^my prog 7;main;outer;inner.* 250000$' "$CULPRIT" convert script.txt --to folded --root comm
check_match "a number alone is the thread's, the pair has the process" '^my prog 7-12;' "$CULPRIT" convert script.txt --to folded --root pid
check_match "no demangling of what is not mangled; --event chooses" '_dl_start' "$CULPRIT" convert script.txt --to folded --event 'cpu-*'
check_fails() { if "$@" >out 2>err; then return 1; else grep -q "no sample is of the event 'cycles'" err; fi; }
check "an event that is not there" check_fails "$CULPRIT" convert script.txt --to folded --event cycles
check_match "report" 'main' "$CULPRIT" report -i script.txt
check "flame" bash -c "'$CULPRIT' flame -i script.txt -o out.svg && grep -q 'abc::foo' out.svg"
check "--debuginfod" "$CULPRIT" convert script.txt --to folded --debuginfod 1
check "a pipe" bash -c "'$CULPRIT' convert - --to folded --value samples --root comm <script.txt | diff want.folded -"
check "--from perf-script" bash -c "'$CULPRIT' convert script.txt --from perf-script --to folded --value samples --root comm | diff want.folded -"
printf 'a 1 1.0: cycles:\n\t12 x (y)\n\t13 x (y)\n\t14 x (y)\nnonsense\n' >odd.txt
check "a line that is neither is told" bash -c "'$CULPRIT' convert odd.txt --to folded 2>&1 >/dev/null | grep -q '1 of 5 lines .* the first is line 5'"
printf 'a 1 1.0: cycles:\n\t12 x (y)\n\na 1 2.0: page-faults:\n\t12 z (y)\n' >two.txt
check "two events have values of their own" bash -c "'$CULPRIT' convert two.txt --to folded --value page-faults_samples --root comm | grep -qx 'a;z 1'"

# agree NAME TEXT EXPECTED [DIFFERENT]: DIFFERENT stacks may differ
agree() {
	local different
	folded "$2" --root comm >ours.folded 2>err
	different=$("$TESTS_DIR/tools/folded-agree.py" ours.folded "$3" | tee agree.out | sed -n '$s/.* \([0-9]*\) differ/\1/p')
	if [ "${different:-none}" = "${4:-0}" ]; then ok "$1 agrees ($(tail -1 agree.out))"; else not_ok "$1 agrees" "$(cut -c1-400 agree.out)" "$(cat err)"; fi
}

dir=${CULPRIT_TEST_DATA:-/none}/sampling
if [ -d "$dir/flamegraph_perfscript" ] && have python3; then
	# The script forgets the last sample (dd, java-01, vertx), strips quotes from a regular expression (js), and has an
	# empty name where the text has none and ours says the object (vertx).
	while read -r name different; do
		agree "$name" "$dir/flamegraph_perfscript/$name.txt" "$dir/flamegraph_perfscript/$name-collapsed-kernel.txt" "$different"
	done <<-END
		perf-cycles-instructions-01 0
		perf-dd-stacks-01 1
		perf-funcab-cmd-01 0
		perf-java-stacks-01 1
		perf-java-stacks-02 0
		perf-js-stacks-01 2
		perf-rust-Yamakaky-dcpu 0
		perf-vertx-stacks-01 3
	END
	agree example-perf-stacks "$dir/flamegraph_perfscript/example-perf-stacks.txt.gz" "$dir/flamegraph_perfscript/example-perf-stacks-collapsed.txt"
	for name in cpp-stacks-std-function go-stacks single-line-stacks; do
		agree "$name" "$dir/inferno_perfscript/$name.txt" "$dir/inferno_perfscript/$name-collapsed.txt"
	done
	agree sourcepawn-jitdump "$dir/inferno_perfscript/sourcepawn-jitdump.txt" "$dir/inferno_perfscript/sourcepawn-jitdump-collapsed-jit.txt"
	# perf took Rust names for C++ and left their escapes ($LT$) in the text; inferno mends that.
	agree single-event "$dir/inferno_perfscript/single-event.txt" "$dir/inferno_perfscript/single-event-collapsed.txt" 2
	bad=
	for file in "$dir"/speedscope/*.linux-perf.txt "$dir"/firefox/*perf*.gz "$dir"/inferno_perfscript/empty-line.txt; do
		case $file in *.trace.gz) continue ;; esac
		folded "$file" >out 2>err && [ -s out ] && [ ! -s err ] || bad="$bad $(basename "$file"): $(cat err)"
	done
	if [ -z "$bad" ]; then ok "texts of other collections are read without a remark"; else not_ok "texts of other collections" "$bad"; fi
else
	skip "real texts" "no test data, or no python3"
fi

plan_end
