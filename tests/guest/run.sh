#!/bin/bash
# Runs one test script inside a guest:  run.sh FRONTEND SCRIPT.sh [OPTIONS of the front end]
#
# The script runs under the guest's busybox shell, sources tests/cli/lib.sh as the CLI tests do and prints
# TAP, which is passed on. A guest that cannot be had here skips the whole script with the reason.
set -u
tests=$(cd "$(dirname "$0")/.." && pwd)
frontend=$tests/../tools/$1 script=$2
shift 2
reason=$(mktemp)
trap 'rm -f "$reason"' EXIT
options=()
for option in "$@"; do
	case $option in
	*.c) options+=("$tests/programs/$option") ;;
	*) options+=("$option") ;;
	esac
done

"$frontend" --timeout 800 "${options[@]}" \
	--with "$tests/cli/lib.sh:guest/tests/cli/lib.sh" --with "$tests/guest/$script:guest/tests/guest/$script" \
	-- "CULPRIT=/usr/bin/culprit sh /guest/tests/guest/$script" 2>"$reason"
status=$?
if [ $status -eq 77 ]; then
	echo "1..0 # SKIP $(tail -n 1 "$reason")"
	exit 0
fi
sed 's/^/# /' "$reason"
if [ $status -ne 0 ] && [ $status -ne 1 ]; then
	echo "Bail out! the guest ended with status $status"
fi
exit $status
