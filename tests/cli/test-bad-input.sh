#!/bin/bash
# What is no recording, or a damaged one: one line, no crash, no hang, little memory.
. "$(dirname "$0")/lib.sh"
plan_begin

# An instrumented build reserves address space without end.
limit=600000
if ! (ulimit -v $limit && "$CULPRIT" version) >/dev/null 2>&1; then limit=unlimited; fi

# patch FILE FROM OFFSET BYTES: FILE is FROM with the bytes (printf's escapes) there
patch() { cp "$2" "$1" && printf "%b" "$4" | dd of="$1" bs=1 seek="$3" conv=notrunc 2>/dev/null; }

# refused NAME STATUSES REGEX FILE: report, flame and convert, in 10 seconds, within 256 MB
refused() {
	local name=$1 statuses=$2 regex=$3 file=$4 command status wrong="" options
	for command in report flame convert; do
		options="-o out.svg"
		[ $command = report ] && options=
		# shellcheck disable=SC2086
		(ulimit -v $limit && exec timeout 10 "$CULPRIT" $command "$file" $options) >out 2>err
		status=$?
		case " $statuses " in
		*" $status "*) ;;
		*) wrong="$wrong $command: status $status;" ;;
		esac
		[ "$(grep -vc 'warning' err)" -le 1 ] && grep -qE "$regex" err || wrong="$wrong $command: $(cat err);"
	done
	if [ -z "$wrong" ]; then ok "$name"; else not_ok "$name" "$wrong"; fi
}

: >empty
refused "an empty file" 1 'empty: is empty' empty
head -c 50000 /dev/urandom >random
refused "random bytes" 1 'unknown format' random
head -c 50000 /dev/zero >zeros
refused "zeros" 1 'unknown format' zeros
{
	printf PERFILE2
	head -c 50000 /dev/urandom
} >magic
refused "the magic and random bytes" "1 3" 'magic: ' magic
mkdir folder
refused "a directory" 1 'folder: is a directory' folder
mkfifo silent
refused "a named pipe that nobody writes" 1 'silent: named pipe without a writer' silent
refused "no file" 1 'nothing: No such file' nothing
refused "a device" 1 'is empty' /dev/null
refused "endless zeros" 1 'more than 192 MB' /dev/zero
head -c 400000000 /dev/zero | gzip -1 >bomb.gz
refused "a bomb" 1 'more than 192 MB' bomb.gz
{
	printf '\037\213'
	cat random
} >broken.gz
refused "damaged gzip" 1 'broken.gz: gzip: damaged' broken.gz

if "$CULPRIT" record -q -e cpu-clock -g -o good.data -- sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done' 2>err; then
	huge='\0377\0377\0377\0377\0377\0377\0377\0177'
	data=$(od -An -tu8 -j 40 -N 8 good.data | tr -d ' ')
	size=$(od -An -tu8 -j 48 -N 8 good.data | tr -d ' ')
	patch lie good.data 24 "$huge"
	refused "attributes far behind the end" 1 'lie: ' lie
	patch lie good.data 32 "$huge"
	refused "endless attributes" 1 'lie: the header at byte 16' lie
	patch lie good.data 40 "$huge"
	refused "data far behind the end" "1 3" 'lie: cut' lie
	patch lie good.data 48 "$huge"
	refused "endless data" 3 'lie: ' lie
	patch lie good.data $((data + 6)) '\0\0'
	refused "a record of size 0" "1 3" 'lie: a record of size 0 at byte' lie
	patch lie good.data $((data + 6)) '\0377\0377'
	refused "a record's size that lies" "1 3" 'lie: ' lie
	patch lie good.data $((data + size + 8)) "$huge"
	refused "an endless feature" 3 'lie: cut at byte .*not there: ' lie

	# A pipe and a file that grows.
	cat good.data | "$CULPRIT" report -i - --csv >piped.csv 2>/dev/null
	"$CULPRIT" report -i good.data --csv >whole.csv 2>/dev/null
	check "from a pipe, the same" cmp piped.csv whole.csv
	mkfifo fifo
	cat good.data >fifo &
	check_match "from a named pipe" ' sh ' timeout 20 "$CULPRIT" report -i fifo
	head -c $((data + size / 2)) good.data >growing
	{
		tail -c +$((data + size / 2 + 1)) good.data | while IFS= read -r -N 4096 part; do printf '%s' "$part"; done >>growing
	} 2>/dev/null &
	timeout 10 "$CULPRIT" report -i growing >out 2>err
	status=$?
	if [ $status -eq 0 ] || [ $status -eq 3 ]; then ok "a file that grows while it is read"; else not_ok "a file that grows while it is read" "status $status" "$(cat err)"; fi
	wait
else
	skip "damaged recordings" "no recording here: $(head -n 1 err)"
fi

# What record refuses.
check_fails "an output in no folder" "no/such: its folder does not exist; create it first" "$CULPRIT" record -o no/such -- true
check_fails "an output that is a folder" 'folder: not a regular file' "$CULPRIT" record -o folder -- true
check_fails "every 0 events" "--count: '0' is not" "$CULPRIT" record -c 0 -- true
check_fails "an event like nothing" "unknown event 'qqqqzzzz'; 'culprit list' shows" "$CULPRIT" record -e qqqqzzzz -- true
check_match "one line about each command begins in lower case, without a full stop" '^0$' sh -c \
	'"$CULPRIT" --help | grep -E "^  [a-z]" | grep -cE "^  [a-z-]+ +[A-Z]|\.$"'

plan_end
