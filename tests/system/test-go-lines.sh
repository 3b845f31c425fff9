#!/bin/bash
# Go programs without symbols and DWARF: functions, inlined calls, files and lines come from the table that Go's own
# tracebacks use, and are what `go tool addr2line` and the DWARF of the same program say.
. "$(dirname "$0")/../cli/lib.sh"
plan_begin

frames=$CULPRIT_TEST_PROGRAMS/frames
if ! have go || ! have python3 || ! have readelf; then
	skip "lines of Go programs" "go, python3 or readelf is not installed"
	plan_end
	exit
fi
export GOCACHE=$CULPRIT_TEST_PROGRAMS/gocache GOFLAGS=-mod=mod GO111MODULE=off
if ! go build -o full "$TESTS_DIR/programs/inlines.go" >build.log 2>&1 ||
	! go build -ldflags="-s -w" -o bare "$TESTS_DIR/programs/inlines.go" >>build.log 2>&1; then
	skip "lines of Go programs" "cannot be built here: $(head -n 1 build.log)"
	plan_end
	exit
fi

# same NAME FULL BARE
same() {
	local said status
	said=$(python3 "$TESTS_DIR/tools/go_lines.py" "$frames" "$2" "$3" 4000 go 2>&1)
	status=$?
	printf '%s\n' "$said" | sed 's/^/# /'
	if [ $status -eq 0 ]; then ok "$1"; else not_ok "$1"; fi
}

same "built without symbols: as addr2line and as DWARF" full bare
if have strip; then
	strip -o stripped full
	same "stripped: as addr2line and as DWARF" full stripped
fi
# DWARF alone is gone: what it knew comes from the table, symbols from .symtab.
if have objcopy; then
	objcopy --strip-debug full symbols
	same "without DWARF, with symbols" full symbols
fi

# Where a program with C code lies differs from where its Go code does.
cat >cgo.go <<'END'
package main

// static int work(int n) { int s = 0; for (int i = 0; i < n; i++) s += i * i; return s; }
import "C"

func twice(n C.int) C.int { return C.work(n) + C.work(n+1) }

func main() { println(twice(10)) }
END
if go build -o cfull cgo.go >build.log 2>&1 && go build -ldflags="-s -w" -o cbare cgo.go >>build.log 2>&1; then
	same "with C code in it" cfull cbare
else
	skip "with C code in it" "cannot be built here: $(head -n 1 build.log)"
fi

plan_end
