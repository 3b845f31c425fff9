# shellcheck shell=bash disable=SC2034
# Helpers of the CLI tests, sourced first:  . "$(dirname "$0")/lib.sh"
#
# A test prints TAP. $CULPRIT is the binary under test; the working directory is an empty temporary
# folder, removed at the end. $CULPRIT_TEST_DATA (may be unset) is the folder of real input files.

set -u
export LC_ALL=C
: "${CULPRIT:?set CULPRIT to the culprit binary}"
TESTS_DIR=$(cd "$(dirname "$0")/.." && pwd)
REPO_DIR=$(cd "$TESTS_DIR/.." && pwd)
TAP_COUNT=0
TAP_FAILED=0
TEST_TMP=$(mktemp -d "${TMPDIR:-/tmp}/culprit-test.XXXXXX")
cd "$TEST_TMP" || exit 99
export CULPRIT_CACHE=$TEST_TMP/.cache
# perf copies what it recorded into a folder; without this into the user's ~/.debug.
export PERF_CONFIG=$TEST_TMP/.perfconfig
printf '[buildid]\n\tdir = %s/.buildid\n' "$TEST_TMP" >"$PERF_CONFIG"
trap 'status=$?; cd /; rm -rf "$TEST_TMP"; exit $status' EXIT
trap 'exit 130' INT TERM

plan_begin() { echo "TAP version 13"; }

ok() {
	TAP_COUNT=$((TAP_COUNT + 1))
	echo "ok $TAP_COUNT - $1"
}

# not_ok NAME [TEXT...]: the texts say what was seen
not_ok() {
	local name=$1
	shift
	TAP_COUNT=$((TAP_COUNT + 1))
	TAP_FAILED=$((TAP_FAILED + 1))
	echo "not ok $TAP_COUNT - $name"
	[ $# -eq 0 ] || printf '%s\n' "$*" | head -n 40 | sed 's/^/# /'
}

skip() {
	TAP_COUNT=$((TAP_COUNT + 1))
	echo "ok $TAP_COUNT - $1 # SKIP $2"
}

# check NAME COMMAND...: passes when the command succeeds; its output is shown when it does not
check() {
	local name=$1 output
	shift
	if output=$("$@" 2>&1); then ok "$name"; else not_ok "$name" "status $? of: $*" "$output"; fi
}

# check_status NAME STATUS COMMAND...
check_status() {
	local name=$1 want=$2 output status
	shift 2
	output=$("$@" 2>&1)
	status=$?
	if [ "$status" -eq "$want" ]; then ok "$name"; else not_ok "$name" "status $status, want $want, of: $*" "$output"; fi
}

# check_match NAME REGEX COMMAND...: the command's output (both streams) has a line matching the ERE
check_match() {
	local name=$1 regex=$2 output
	shift 2
	output=$("$@" 2>&1)
	if printf '%s\n' "$output" | grep -qE -- "$regex"; then ok "$name"; else not_ok "$name" "no line matches '$regex' in the output of: $*" "$output"; fi
}

# check_fails NAME REGEX COMMAND...: exit status 1, and one line on stderr that matches
check_fails() {
	local name=$1 regex=$2 output status
	shift 2
	output=$("$@" 2>&1 >/dev/null)
	status=$?
	if [ "$status" -ne 1 ]; then
		not_ok "$name" "status $status, want 1, of: $*" "$output"
	elif [ "$(printf '%s\n' "$output" | wc -l)" -ne 1 ] || ! printf '%s\n' "$output" | grep -qE -- "$regex"; then
		not_ok "$name" "want one line matching '$regex' from: $*" "$output"
	else
		ok "$name"
	fi
}

# limited KILOBYTES COMMAND...: with at most this much address space. Sanitizers map terabytes of shadow
# memory ($CULPRIT_SANITIZED): there it runs without the limit.
limited() {
	local kilobytes=$1
	shift
	(
		[ -n "${CULPRIT_SANITIZED-}" ] || ulimit -v "$kilobytes"
		exec "$@"
	)
}

have() { command -v "$1" >/dev/null 2>&1; }

plan_end() {
	echo "1..$TAP_COUNT"
	[ "$TAP_FAILED" -eq 0 ]
}
