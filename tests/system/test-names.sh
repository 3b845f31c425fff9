#!/bin/bash
# Names by symbol tables alone, of random addresses of large programs: against llvm-symbolizer, perf and objdump. The
# program's own table, a debug file's, what a library exports, MiniDebugInfo; arm64, and ARM with Thumb code.
. "$(dirname "$0")/../cli/lib.sh"
plan_begin

frames=$CULPRIT_TEST_PROGRAMS/frames
if ! have python3 || ! have objcopy || ! have readelf || ! have objdump; then
	skip "names of large programs" "python3 or binutils are not installed"
	plan_end
	exit
fi
llvm=$(command -v llvm-symbolizer)
perf=$(command -v perf) # a wrapper of some distributions has no program for this kernel
[ -n "$perf" ] && ! perf version >/dev/null 2>&1 && perf=
[ -n "$llvm" ] || echo "# llvm-symbolizer is not installed"
[ -n "$perf" ] || echo "# perf is not installed"

# agrees NAME PROGRAM SYMBOLS COUNT
agrees() {
	local said status others=()
	[ -n "$llvm" ] && others=("$llvm" ${perf:+"$perf"})
	said=$(python3 "$TESTS_DIR/tools/names.py" "$frames" "$2" "$3" "$4" "${others[@]}" 2>&1)
	status=$?
	printf '%s\n' "$said" | sed 's/^/# /'
	if [ $status -eq 0 ]; then ok "$1"; else not_ok "$1"; fi
}

# text_of FILE: address and size of its .text
text_of() { readelf -SW "$1" | sed -n 's/.* \.text *PROGBITS *\([0-9a-f]*\) [0-9a-f]* \([0-9a-f]*\) .*/\1 \2/p'; }

# random_code FILE COUNT
random_code() { python3 "$TESTS_DIR/tools/random_code.py" "$@"; }

libc=$(ldd "$(command -v objcopy)" | awk '$1 ~ /^libc\.so/ { print $3 }')
id=$(readelf -nW "$libc" 2>/dev/null | sed -n 's/.*Build ID: //p')
debug=/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug
if [ -r "$debug" ]; then
	objcopy --strip-debug "$debug" libc.symbols 2>/dev/null
	agrees "the C library and its debug file" "$libc" libc.symbols 5000
	# With the debug file or without, what the library exports is called the same.
	objcopy --remove-section=.note.gnu.build-id --remove-section=.gnu_debuglink "$libc" bare
	random_code "$libc" 5000 >places
	"$frames" bare <places | cut -f1 >exported
	"$frames" "$libc" <places | cut -f1 >all
	paste exported all | awk -F'\t' '$1 != "" { n++; same += $1 == $2 } END { print same " of " n; exit !(n > 1000 && same >= 0.99 * n) }' >said
	status=$?
	if [ $status -eq 0 ]; then ok "exported names stay ($(cat said))"; else not_ok "exported names stay" "$(cat said)"; fi
else
	skip "the C library and its debug file" "libc6-dbg is not installed"
fi

python=$(command -v python3.11-dbg python3-dbg | head -n 1)
if [ -n "$python" ] && readelf -SW "$python" | grep -q '\.symtab'; then
	python=$(readlink -f "$python")
	objcopy --strip-debug "$python" python.symbols
	agrees "a program with a symbol table" "$python" python.symbols 5000
	if have xz; then
		cp python.symbols mini.dbg
		xz -0 mini.dbg
		strip --remove-section=.note.gnu.build-id -o mini python.symbols
		objcopy --add-section .gnu_debugdata=mini.dbg.xz mini
		random_code mini 4000 >places
		"$frames" mini <places >by_mini
		"$frames" python.symbols <places >by_table
		check "MiniDebugInfo names like the table itself" cmp by_mini by_table
	fi
else
	skip "a program with a symbol table" "python3-dbg is not installed"
fi

library=
[ -n "$llvm" ] && library=$(ldd "$llvm" | awk '$1 ~ /^libLLVM/ { print $3; exit }')
[ -n "$library" ] || library=$(ldconfig -p 2>/dev/null | awk '$1 == "libstdc++.so.6" { print $NF; exit }')
if [ -n "$library" ]; then
	agrees "a C++ library by what it exports" "$library" "$library" 5000
else
	skip "a C++ library by what it exports" "neither libLLVM nor libstdc++ is there"
fi

cat >small.c <<'END'
#include <stdio.h>
#include <stdlib.h>
int main(int c, char **v) { printf("%d %s\n", c, v[0]); return abs(atoi(v[0])); }
END
if have aarch64-linux-gnu-gcc && aarch64-linux-gnu-gcc -O2 -static -o arm64 small.c 2>build.log; then
	agrees "a static program for arm64" "$PWD/arm64" "$PWD/arm64" 2000
else
	skip "a static program for arm64" "it cannot be built here: $(head -n 1 build.log 2>/dev/null)"
fi

cat >thumb.c <<'END'
__attribute__((noinline)) int square(int x) { return x * x + 3; }
__attribute__((noinline, target("arm"))) int arm(int x) { return x * x - 3; }
int weak(int x) __attribute__((weak, alias("square")));
int _start(int x) { return arm(x) + weak(x) + 0x7654321; }
END
if [ -n "$llvm" ] && have clang && have aarch64-linux-gnu-ld && clang --target=thumbv7-linux-gnueabihf -O1 -mthumb -c thumb.c 2>build.log &&
	aarch64-linux-gnu-ld -m armelf_linux_eabi -o thumb thumb.o 2>build.log; then
	text_of thumb | while read -r start size; do seq $((0x$start)) $((0x$start + 0x$size - 1)); done | xargs printf '0x%x\n' >places
	"$frames" thumb <places | cut -f1 >ours
	"$llvm" --obj=thumb --functions=linkage <places | awk -v RS= -F'\n' '{ sub(/^\?\?$/, "", $1); print $1 }' >theirs
	check "Thumb and ARM code in one program" cmp ours theirs
else
	skip "Thumb and ARM code in one program" "it cannot be built here: $(head -n 1 build.log 2>/dev/null)"
fi

plan_end
