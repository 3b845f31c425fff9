# shellcheck shell=bash
# Shared by the tests of timerlat, osnoise and hwnoise: runs end with 0, or with 3 where a busy machine
# lost records; numbers are those of whatever the machine did, so only what must hold is looked at.

# measured NAME COMMAND...: status 0 or 3; the output is in ./out, messages in ./messages
measured() {
	local name=$1 status
	shift
	"$@" >out 2>messages
	status=$?
	if [ "$status" -eq 0 ] || [ "$status" -eq 3 ]; then ok "$name"; else not_ok "$name" "status $status of: $*" "$(cat messages)" "$(tail -n 30 out)"; fi
}

# stopped NAME COMMAND...: a threshold was reached
stopped() {
	local name=$1 status
	shift
	"$@" >out 2>messages
	status=$?
	if [ "$status" -eq 2 ]; then ok "$name"; else not_ok "$name" "status $status, want 2, of: $*" "$(cat messages)" "$(tail -n 30 out)"; fi
}

# out_has NAME REGEX [FILE]
out_has() {
	local file=${3-out}
	if grep -qE -- "$2" "$file"; then ok "$1"; else not_ok "$1" "no line matches '$2' in:" "$(head -n 60 "$file")"; fi
}

out_lacks() {
	local file=${3-out}
	if grep -qE -- "$2" "$file"; then not_ok "$1" "a line matches '$2' in:" "$(grep -E -- "$2" "$file")"; else ok "$1"; fi
}

# json_has NAME JQ_EXPRESSION FILE
json_has() {
	if ! have jq; then
		skip "$1" "no jq"
	elif jq -e "$2" "$3" >/dev/null 2>jq.err; then
		ok "$1"
	else
		not_ok "$1" "false or failed: jq '$2'" "$(cat jq.err)" "$(head -c 2000 "$3")"
	fi
}

# The engine that is chosen here: K, B, L or U.
chosen_engine() {
	"$CULPRIT" "$1" top -d 50ms --json 2>/dev/null | sed -n 's/.*"engine": "\([KBLU]\)".*/\1/p' | head -n 1
}

# as_nobody COMMAND...: as an ordinary user without rights
as_nobody() {
	setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all -- "$@"
}

can_be_nobody() { [ "$(id -u)" = 0 ] && have setpriv && as_nobody "$CULPRIT" version >/dev/null 2>&1; }
