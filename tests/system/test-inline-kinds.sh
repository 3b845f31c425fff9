#!/bin/bash
# Inlined functions and lines of one program with its debug information in every form that compilers and tools give it:
# DWARF 2 to 5, 64-bit, split (.dwo, .dwp), type units, packed, squeezed by dwz, link-time optimized, in sections. Where
# the code is the same, so must all answers be; else they are llvm-symbolizer's.
. "$(dirname "$0")/../cli/lib.sh"
plan_begin

frames=$CULPRIT_TEST_PROGRAMS/frames
sources=$TESTS_DIR/programs/inlines
llvm=$(command -v llvm-symbolizer)
if ! have python3 || ! have readelf || ! have objcopy; then
	skip "forms of debug information" "python3 or binutils are not installed"
	plan_end
	exit
fi

# build DIR COMPILER OPTION...: DIR/program, its objects and .dwo files in DIR
build() {
	local dir=$1 compiler=$2
	shift 2
	mkdir -p "$dir"
	# shellcheck disable=SC2086
	(
		cd "$dir" && "$compiler" -O2 "$@" -c "$sources/main.cc" && "$compiler" -O2 "$@" -c "$sources/other.cc" &&
			"$compiler" -O2 "$@" ${LINK:-} -o program main.o other.o
	) >build.log 2>&1 && return
	skip "$dir" "cannot be built here: $(head -n 1 build.log)"
	return 1
}

# as_llvm NAME PROGRAM
as_llvm() {
	local said status
	if [ -z "$llvm" ]; then
		skip "$1: as llvm-symbolizer" "it is not installed"
		return
	fi
	said=$(python3 "$TESTS_DIR/tools/inlines.py" "$frames" "$2" 1000 "$llvm" 2>&1)
	status=$?
	printf '%s\n' "$said" | sed 's/^/# /'
	if [ $status -eq 0 ]; then ok "$1: as llvm-symbolizer"; else not_ok "$1: as llvm-symbolizer"; fi
}

# as_plain NAME PROGRAM: what is said of the plain program, of the same code
as_plain() {
	objcopy -O binary -j .text "$2" code 2>/dev/null
	if ! cmp -s code "$compiler-code"; then
		as_llvm "$1" "$2"
		return
	fi
	"$frames" "$2" <places >said
	if cmp -s said "$compiler-said"; then
		ok "$1: as the plain program"
	else
		not_ok "$1: as the plain program" "$(diff said "$compiler-said" | head -n 6)"
	fi
}

# made NAME OPTION...: builds it and compares
made() {
	local name=$1
	shift
	build "$compiler-$name" "$compiler" "$@" && as_plain "$compiler $name" "$compiler-$name/program"
}

# packaged TOOL DIR: a .dwp of a split program, then without its .dwo files
packaged() {
	if have "$1" && (cd "$2" && timeout 10 "$1" -e program -o program.dwp) >build.log 2>&1 && [ -s "$2/program.dwp" ]; then
		rm -f "$2"/*.dwo
		as_plain "$2 in a package of $1" "$2/program"
	else
		skip "$2 in a package of $1" "it cannot make one here: $(head -n 1 build.log)"
	fi
}

# changed NAME COMMAND...: the plain program, changed by a tool that is given the name of the result last
changed() {
	local name=$1
	shift
	if "$@" "$compiler-$name" >build.log 2>&1; then
		as_plain "$compiler $name" "$compiler-$name"
	else
		skip "$compiler $name" "$(head -n 1 build.log)"
	fi
}

squeezed() { dwz -o "$2" "$1"; }

# common PROGRAM: two copies of it, whose common part dwz puts into a third file
common() {
	cp "$1" one && cp "$1" two
	if dwz -m common one two >build.log 2>&1 && [ -s common ]; then
		as_plain "two programs with a common part by dwz" one
	else
		skip "two programs with a common part by dwz" "$(head -n 1 build.log)"
	fi
}

for compiler in g++ clang++; do
	if ! have $compiler; then
		skip "$compiler" "it is not installed"
		continue
	fi
	build $compiler-plain $compiler -gdwarf-5 || continue
	plain=$compiler-plain/program
	objcopy -O binary -j .text $plain $compiler-code
	python3 "$TESTS_DIR/tools/random_code.py" $plain 1000 >places
	"$frames" $plain <places >$compiler-said
	as_llvm "$compiler plain" $plain

	made dwarf4 -gdwarf-4
	made dwarf64 -gdwarf-5 -gdwarf64
	made split4 -gdwarf-4 -gsplit-dwarf
	made split5 -gdwarf-5 -gsplit-dwarf
	made split-types -gdwarf-5 -gsplit-dwarf -fdebug-types-section
	# llvm-dwp does not end on what gcc writes in version 5, and binutils' dwp knows version 4 only.
	packaged dwp $compiler-split4
	if [ $compiler = clang++ ]; then
		packaged llvm-dwp $compiler-split5
		made split-single -gdwarf-5 -gsplit-dwarf=single
	else
		made types -gdwarf-4 -fdebug-types-section
		made split-packed -gdwarf-5 -gsplit-dwarf -gz
		changed zlib objcopy --compress-debug-sections=zlib-gabi $plain
		changed zdebug objcopy --compress-debug-sections=zlib-gnu $plain
		changed zstd objcopy --compress-debug-sections=zstd $plain
		changed dwz squeezed $plain
		common $plain
	fi

	# Other code.
	for name in dwarf3 lto sections least O3; do
		case $name in
		dwarf3) options=-gdwarf-3 ;;
		lto) options="-g -flto" ;;
		sections) options="-g -ffunction-sections" ;;
		least) options=-g1 ;;
		O3) options="-g -O3" ;;
		esac
		# shellcheck disable=SC2086
		LINK=$([ $name = sections ] && echo -Wl,--gc-sections) build "$compiler-$name" $compiler $options &&
			as_llvm "$compiler $name" "$compiler-$name/program"
	done
done
if have clang++ && build blocks clang++ -g -fbasic-block-sections=all; then
	as_llvm "every block in a section of its own" blocks/program
fi

plan_end
