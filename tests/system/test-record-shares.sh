#!/bin/bash
# Programs of known shares (60/30/10, and 40 through the call chain), recorded by culprit and read by culprit
# and perf; and both readers agree on recordings of both.
. "$(dirname "$0")/../cli/lib.sh"
plan_begin

PROGRAMS=${CULPRIT_TEST_PROGRAMS:?set CULPRIT_TEST_PROGRAMS to the folder of tests/programs}
SHARES="$TESTS_DIR/tools/shares.py"

if ! why=$("$CULPRIT" record -q -o probe -- true 2>&1); then
	skip "recording" "${why:-not possible here}"
	plan_end
	exit
fi

record() { "$CULPRIT" record -q -g -F 3999 "$@"; }
# known NAME FILE COMM NAME=SELF/TOTAL...: culprit's report has these shares
known() {
	local name=$1 file=$2
	shift 2
	check "$name" sh -c 'culprit=$1 file=$2 tool=$3; shift 3; "$culprit" report -i "$file" --json | python3 "$tool" known "$@"' sh \
		"$CULPRIT" "$file" "$SHARES" "$@"
}
have_perf() { have perf && perf --version >/dev/null 2>&1; }
agree() { if have_perf; then check "$1" python3 "$SHARES" agree "$CULPRIT" "$2"; else skip "$1" "perf is not installed"; fi; }

for program in shares shares-fixed; do
	record -o "$program.data" -- "$PROGRAMS/$program" 1.5
	known "$program: 60/30/10" "$program.data" "$program" alpha=60/60 beta=30/40 delta=10/10 outer=0/100 main=0/100
	agree "$program: perf report on our file agrees" "$program.data"
done
if [ -x "$PROGRAMS/shares-cxx" ]; then
	record -o cxx.data -- "$PROGRAMS/shares-cxx" 1.5
	known "C++: 60/30/10" cxx.data shares-cxx 'work::Alpha<unsigned long>::run(unsigned long)=60/60' \
		'work::Beta::run(unsigned long)=30/40' 'work::Beta::small(unsigned long, double)=10/10' 'work::outer(unsigned long)=0/100'
	agree "C++: perf report on our file agrees" cxx.data
else
	skip "C++: 60/30/10" "no C++ compiler"
fi
if have rustc; then
	cat >rusty.rs <<-'END'
		/// Hides a value from the optimizer; std::hint::black_box came with 1.66.
		fn opaque(x: u64) -> u64 { unsafe { std::ptr::read_volatile(&x) } }
		mod work {
		    fn burn(mut x: u64, count: u64) -> u64 {
		        for _ in 0..count * 20000 {
		            x = super::opaque(x.wrapping_mul(6364136223846793005).wrapping_add(1));
		        }
		        x
		    }
		    #[inline(never)]
		    pub fn alpha(x: u64) -> u64 { burn(x, 60) + 1 }
		    pub struct Beta;
		    impl Beta {
		        #[inline(never)]
		        pub fn run(&self, x: u64) -> u64 { delta(burn(x, 30)) + 3 }
		    }
		    #[inline(never)]
		    fn delta(x: u64) -> u64 { burn(x, 10) + 2 }
		}
		fn main() {
		    let start = std::time::Instant::now();
		    let mut x = 1;
		    while start.elapsed().as_millis() < 1500 {
		        x = opaque(work::Beta.run(work::alpha(x)) + 4);
		    }
		}
	END
	for mangling in legacy v0; do
		if rustc -C opt-level=2 -C force-frame-pointers=yes -C "symbol-mangling-version=$mangling" \
			$([ $mangling = legacy ] && echo -Z unstable-options) -o "rusty-$mangling" rusty.rs 2>rustc.log ||
			rustc -C opt-level=2 -C force-frame-pointers=yes -o "rusty-$mangling" rusty.rs 2>rustc.log; then
			record -o rust.data -- "./rusty-$mangling"
			beta='rusty::work::Beta::run'
			[ $mangling = v0 ] && beta='<rusty::work::Beta>::run'
			known "Rust, $mangling names: 60/30/10" rust.data "rusty-$mangling" rusty::work::alpha=60/60 "$beta=30/40" rusty::work::delta=10/10
		else
			skip "Rust, $mangling names: 60/30/10" "rustc fails: $(head -n 1 rustc.log)"
		fi
	done
else
	skip "Rust: 60/30/10" "rustc is not installed"
fi

record -o threads.data -- "$PROGRAMS/shares" 0.7 4
for thread in 0 1 2 3; do
	known "thread $thread of 4: 60/30/10 of its quarter" threads.data "burner-$thread" alpha=15/15 beta=7.5/10 delta=2.5/2.5
done
agree "threads: perf report on our file agrees" threads.data
record -o chain.data -- sh -c "'$PROGRAMS/chain' 4 250 && '$PROGRAMS/chain' 1 250"
known "fork and exec: each link under its name" chain.data link-2 link_work=20/20
known "fork and exec: the same name twice" chain.data link-1 link_work=40/40
agree "fork and exec: perf report on our file agrees" chain.data
for level in 1 9; do
	record -z$level -o zstd.data -- "$PROGRAMS/shares" 0.8
	known "compressed, level $level: 60/30/10" zstd.data shares alpha=60/60 beta=30/40 delta=10/10
done
agree "compressed: perf report on our file agrees" zstd.data
if have_perf; then
	for file in threads chain zstd; do
		check "perf script reads $file.data without a complaint" sh -c "perf script -i $file.data 2>&1 >/dev/null | grep . && exit 1; exit 0"
		check "perf report --header-only reads $file.data without a complaint" sh -c "perf report -i $file.data --header-only 2>&1 >/dev/null | grep . && exit 1; exit 0"
		check "perf evlist reads $file.data" sh -c "perf evlist -i $file.data | grep -q ."
	done
fi
cat >loop.py <<-'END'
	import time
	end = time.process_time() + 1
	def spin(n):
	    return sum(i * i for i in range(n))
	while time.process_time() < end:
	    spin(10000)
END
record -o python.data -- python3 loop.py
agree "Python: perf report on our file agrees" python.data
if have node; then
	cat >loop.js <<-'END'
		const end = Date.now() + 1000;
		let x = 0;
		while (Date.now() < end) for (let i = 0; i < 100000; i++) x = (x * 31 + i) % 1000003;
	END
	record -o node.data -- node loop.js
	agree "Node: perf report on our file agrees" node.data
else
	skip "Node: perf report on our file agrees" "node is not installed"
fi

plan_end
