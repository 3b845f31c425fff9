#!/bin/bash
# Every option of every command is exercised by that command's CLI test (or the system tests).
. "$(dirname "$0")/lib.sh"
plan_begin

for command in $("$CULPRIT" version --json | sed -n '/"commands"/,$s/^[[:space:]]*"\([a-z]*\)",\{0,1\}$/\1/p'); do
	case $command in
	help | version | completion) tests="$TESTS_DIR/cli/test-main.sh" ;;
	*) tests=$(ls "$TESTS_DIR/cli/test-$command.sh" "$TESTS_DIR/cli/test-$command"-*.sh "$TESTS_DIR/system/"*"$command"*.sh 2>/dev/null) ;;
	esac
	if [ -z "$tests" ]; then
		not_ok "$command has a CLI test"
		continue
	fi
	missing=
	while read -r short long; do
		[ "$short" = --help ] && continue
		found=
		for option in $short $long; do
			case $option in
			--*) pattern="(^|[^-[:alnum:]])$option([^-[:alnum:]]|\$)" ;;
			*) pattern="(^|[[:space:]\"'(])-[[:alnum:]]*${option#-}" ;;
			esac
			# shellcheck disable=SC2086
			grep -qE -- "$pattern" $tests && found=1
		done
		[ -n "$found" ] || missing="$missing $short${long:+/$long}"
	done <<-EOF
		$("$CULPRIT" "$command" --help | sed -n 's/^  \(-[^] ,[]\{1,\}\)\(, \(--[^ =[]*\)\)\{0,1\}.*/\1 \3/p')
	EOF
	if [ -z "$missing" ]; then ok "$command: every option is exercised"; else not_ok "$command: every option is exercised" "not exercised:$missing"; fi
done

plan_end
