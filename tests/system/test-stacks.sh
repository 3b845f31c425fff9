#!/bin/bash
# Stacks that are known by construction, of programs without frame pointers: C, C++, Rust and Go; shared, static, stripped;
# unwound while recording and from copies. 99 % must reach their root, and known depths must be exact. Then the
# copies are compared with perf's unwinding, sample by sample.
. "$(dirname "$0")/../cli/lib.sh"
plan_begin

programs=$TESTS_DIR/programs/stacks
if ! "$CULPRIT" record -q -e cpu-clock --call-graph dwarf -o probe -- true 2>why; then
	skip "stacks" "nothing can be recorded here: $(head -n 1 why)"
	plan_end
	exit
fi
flags="-O2 -fomit-frame-pointer"

# build NAME COMMAND...
built=""
build() {
	local name=$1
	shift
	if have "$1" && "$@" >"$name.log" 2>&1; then
		built="$built $name"
	else
		skip "$name" "cannot be built here: $(grep -m1 -i -E 'error|not found|cannot' "$name.log" || echo "no $1")"
	fi
}
# shellcheck disable=SC2086
{
	cc $flags -shared -fPIC -o liblibrary.so "$programs/library.c"
	build c-shared cc $flags -DLIBRARY -o c-shared "$programs/stacks.c" -L. -llibrary "-Wl,-rpath,$PWD" -lpthread
	build c-static cc $flags -static -o c-static "$programs/stacks.c" -lpthread
	build c-musl musl-gcc $flags -static -o c-musl "$programs/stacks.c"
	if [ -x c-musl ]; then # names by a debug file, which does not help unwinding
		objcopy --only-keep-debug c-musl c-musl.debug
		build c-musl-stripped objcopy --strip-all --add-gnu-debuglink=c-musl.debug c-musl c-musl-stripped
	fi
	build cxx g++ $flags -rdynamic -o cxx "$programs/stacks.cc" -lpthread
	[ -x cxx ] && build cxx-stripped strip -o cxx-stripped cxx
	build rust rustc -O -o rust "$programs/stacks.rs"
	build go env "GOCACHE=$CULPRIT_TEST_PROGRAMS/gocache" go build -o go "$programs/stacks.go"
	# Names come from the table that Go's own tracebacks need, unwinding from the code: strip leaves nothing else.
	[ -x go ] && build go-stripped strip -o go-stripped go
}

# recorded NAME MODE: into NAME.data and NAME.folded; longer when the machine is so busy that it got few samples
recorded() {
	local name=$1 mode=$2 seconds samples
	for seconds in 0.5 2 6; do
		"$CULPRIT" record -e cpu-clock -F 999 --call-graph "$mode" -o "$name.data" -- "./$name" $seconds >/dev/null 2>"$name.said" || return
		sed -n '/stacks are complete/s/^/# '"$name $mode"':/p' "$name.said"
		samples=$("$CULPRIT" report --json -i "$name.data" 2>/dev/null | sed -n 's/^\t"samples": \([0-9]*\),*$/\1/p')
		[ "${samples:-0}" -ge 100 ] && break
	done
	"$CULPRIT" convert "$name.data" -o "$name.folded" 2>/dev/null
}

# says NAME COMMAND...: like check, with the output shown either way
says() {
	local name=$1 output status
	shift
	output=$("$@" 2>&1)
	status=$?
	printf '%s\n' "$output" | sed 's/^\(# \)*/# /'
	if [ $status -eq 0 ]; then ok "$name"; else not_ok "$name"; fi
}

for name in $built; do
	recorded "$name" dwarf
	says "$name: unwound while recording, they reach their roots" python3 "$TESTS_DIR/tools/rooted.py" "$name.folded"
	recorded "$name" dwarf,raw,32768
	says "$name: from copies, too" python3 "$TESTS_DIR/tools/rooted.py" "$name.folded"
	if ! have perf; then
		skip "$name: as perf, sample by sample" "perf is not installed"
		continue
	fi
	"$CULPRIT_TEST_PROGRAMS/stack-dump" "$name.data" >ours.txt
	perf script -i "$name.data" --no-inline -F tid,time,ip --ns >perf.txt 2>/dev/null
	says "$name: as perf, sample by sample, or longer" python3 "$TESTS_DIR/tools/stacks_against_perf.py" ours.txt perf.txt 0.01
	rm -f "$name.data"
done
plan_end
