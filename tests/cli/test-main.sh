#!/bin/bash
# The dispatcher, help, version and completion.
. "$(dirname "$0")/lib.sh"
plan_begin

check_match "without a command the overview is shown" '^Usage: culprit COMMAND' "$CULPRIT"
check_match "--version works as people type it" '^culprit [0-9]+\.[0-9]+' "$CULPRIT" --version
check_match "--help works as people type it" '^Usage: culprit COMMAND' "$CULPRIT" --help
check_fails "an unknown command suggests the nearest" "did you mean 'version'" "$CULPRIT" versoin
check_fails "an unknown option suggests the nearest" 'did you mean --json' "$CULPRIT" version --jsn
check_fails "an unknown short option is named" 'unknown option -x' "$CULPRIT" version -x
check_fails "help of an unknown command" "no command 'nonsense'" "$CULPRIT" help nonsense
check_match "help explains a command" '^Usage: culprit version' "$CULPRIT" help version
check_match "help --roff is a man page" '^\.TH CULPRIT' "$CULPRIT" help --roff version
check_match "help --roff without a command is culprit(1)" '^\.SH COMMANDS' "$CULPRIT" help --roff
check_fails "completion without a shell" 'supported: bash' "$CULPRIT" completion

if have jq; then
	check "version --json is valid and names its features" sh -c \
		'"$0" version --json | jq -e ".kind == \"version\" and .schema == 1 and (.features | length > 0)" ' "$CULPRIT"
else
	skip "version --json is valid" "jq is not installed"
fi

"$CULPRIT" completion bash >completion.bash
check "the completion script is bash" bash -n completion.bash
cat >complete.sh <<'EOF'
. ./completion.bash
COMP_WORDS=(culprit "$@") COMP_CWORD=$#
_culprit
printf '%s\n' "${COMPREPLY[@]}"
EOF
check_match "commands complete" '^version$' bash complete.sh ver
check_match "options complete" '^--json$' bash complete.sh version --j

status=0
for command in $("$CULPRIT" version --json | sed -n '/"commands"/,$s/^[[:space:]]*"\([a-z]*\)",\{0,1\}$/\1/p'); do
	"$CULPRIT" "$command" --help >help.txt 2>&1 || status=1
	"$CULPRIT" help --roff "$command" >"$command.1"
	if have mandoc; then
		mandoc -T lint -W error "$command.1" >&2 || status=1
	fi
	# Every option of --help, spelled the same way, stands in the man page.
	sed -n 's/^  \(-[^ ]*\(, --[^ []*\)\{0,1\}\).*/\1/p' help.txt | tr ',' '\n' | tr -d ' ' >options.txt
	while read -r option; do
		option=${option%%[*}
		grep -qF -- "$(printf '%s' "$option" | sed 's/-/\\-/g')" "$command.1" || { echo "# $command: $option not in the man page"; status=1; }
	done <options.txt
done
if [ $status -eq 0 ]; then ok "each command's man page is sound and has every option"; else not_ok "each command's man page is sound and has every option"; fi

plan_end
