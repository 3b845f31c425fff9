#!/bin/bash
# Runs one test script inside a guest:  run.sh FRONTEND SCRIPT.sh [OPTIONS of the front end]
#
# The script runs under the guest's busybox shell, sources tests/cli/lib.sh as the CLI tests do and prints
# TAP, which is passed on. A guest that cannot be had here skips the whole script with the reason.
#
# A guest that falls silent, or whose output does not arrive whole, is started again, twice; what it had said and
# where its CPUs were is printed as comments. If its own heartbeat had stopped the last time, this machine cannot
# emulate it and the script is skipped; a guest that is alive while its programs hang is a failure.
set -u
tests=$(cd "$(dirname "$0")/.." && pwd)
frontend=$tests/../tools/$1 script=$2
shift 2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
options=()
for option in "$@"; do
	case $option in
	*.c) options+=("$tests/programs/$option") ;;
	*) options+=("$option") ;;
	esac
done

for try in 1 2 3; do
	"$frontend" --timeout 800 --silence 150 "${options[@]}" \
		--with "$tests/cli/lib.sh:guest/tests/cli/lib.sh" --with "$tests/guest/$script:guest/tests/guest/$script" \
		-- "CULPRIT=/usr/bin/culprit sh /guest/tests/guest/$script" >"$scratch/output" 2>"$scratch/reason"
	status=$?
	lost=
	[ $status -gt 1 ] || grep -q '^1\.\.' "$scratch/output" || lost=1
	[ $status -eq 122 ] || [ $status -eq 123 ] || [ -n "$lost" ] || break
	sed "s/^/# start $try: /" "$scratch/output" "$scratch/reason"
done
case $status in
77) echo "1..0 # SKIP $(tail -n 1 "$scratch/reason")" && exit 0 ;;
123) echo "1..0 # SKIP cannot be emulated here: $(tail -n 1 "$scratch/reason")" && exit 0 ;;
122 | 124) echo "Bail out! the guest's programs hang: $(tail -n 1 "$scratch/reason")" ;;
*)
	cat "$scratch/output"
	sed 's/^/# /' "$scratch/reason"
	[ $status -le 1 ] || echo "Bail out! the guest ended with status $status"
	[ -z "$lost" ] || { echo "Bail out! the guest's output did not arrive whole" && status=1; }
	;;
esac
exit $status
