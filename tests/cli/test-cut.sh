#!/bin/bash
# Recordings cut anywhere: what is there is shown, what is missing is said, the status is 3.
. "$(dirname "$0")/lib.sh"

plan_begin

# number FILE OFFSET: the 8-byte number there
number() { od -An -tu8 -j "$2" -N 8 "$1" | tr -d ' \n'; }

# features FILE: the bits that are set in its header
features() {
	local bit=0 byte i
	for byte in $(od -An -tu1 -v -j 72 -N 32 "$1"); do
		for i in 0 1 2 3 4 5 6 7; do
			[ $((byte >> i & 1)) -eq 0 ] || echo $((bit + i))
		done
		bit=$((bit + 8))
	done
}

# cut FILE OFFSET: runs report on the first OFFSET bytes; sets $status, out and err are files
cut_at() {
	head -c "$2" "$1" >cut.data
	"$CULPRIT" report -i cut.data >out 2>err
	status=$?
}

# try FILE LABEL
try() {
	local file=$1 label=$2 size data_start data_end rows all section feature start bytes wrong="" name
	size=$(stat -c %s "$file")
	data_start=$(number "$file" 40)
	data_end=$((data_start + $(number "$file" 48)))
	"$CULPRIT" report -i "$file" >whole 2>/dev/null
	all=$(grep -c '^[^#]' whole)

	for at in 1 7 8 16 103 104; do
		cut_at "$file" "$at"
		[ $status -eq 1 ] && [ "$(wc -l <err)" -eq 1 ] || wrong="$wrong $at"
	done
	if [ -z "$wrong" ]; then ok "$label: cut inside the header: refused in one line"; else not_ok "$label: cut inside the header" "at:$wrong"; fi

	wrong=""
	for at in "$data_start" $((data_start + 4)) $(((data_start + data_end) / 2)) $((data_end - 1)); do
		cut_at "$file" "$at"
		[ $status -eq 3 ] && grep -q 'cut .*missing' err || wrong="$wrong $at"
	done
	if [ -z "$wrong" ]; then ok "$label: cut inside the data"; else not_ok "$label: cut inside the data" "at:$wrong" "$(cat err)"; fi

	wrong=""
	section=$data_end
	for feature in $(features "$file"); do
		start=$(number "$file" "$section")
		bytes=$(number "$file" $((section + 8)))
		section=$((section + 16))
		[ "$bytes" -gt 0 ] || continue
		for at in $((section - 16)) $((section - 1)) "$start" $((start + bytes / 2)) $((start + bytes - 1)); do
			cut_at "$file" "$at"
			rows=$(grep -c '^[^#]' out)
			[ $status -eq 3 ] && grep -q "cut at byte $at, behind the samples, which are all there; not there: .*missing)" err &&
				[ "$rows" -ge $((all > 0)) ] || wrong="$wrong $feature@$at"
		done
	done
	if [ -z "$wrong" ]; then ok "$label: cut inside the features: all samples, and what is missing"; else not_ok "$label: cut inside the features" "feature@byte:$wrong" "$(cat err)"; fi

	cut_at "$file" $((size - 1))
	for name in flame convert; do
		"$CULPRIT" "$name" cut.data -o "out.$name.svg" >/dev/null 2>err
		status=$?
		if [ $status -eq 3 ] && [ -s "out.$name.svg" ] && [ "$(grep -c 'behind the samples' err)" -eq 1 ]; then
			ok "$label: $name of it: a picture, one warning and status 3"
		else
			not_ok "$label: $name of it" "status $status" "$(cat err)"
		fi
	done

	cp "$file" old.data
	printf '\0\0\0\0\0\0\0\0' | dd of=old.data bs=1 seek=48 conv=notrunc 2>/dev/null
	"$CULPRIT" report -i old.data >out 2>err
	status=$?
	if [ $status -eq 3 ] && [ "$(grep -c 'not finished' err)" -eq 1 ]; then
		ok "$label: never finished: said once, status 3"
	else
		not_ok "$label: never finished" "status $status" "$(cat err)"
	fi
}

if "$CULPRIT" record -q -e cpu-clock -g -o ours.data -- sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done' 2>err; then
	try ours.data "our file"
else
	skip "cuts of our file" "no recording here: $(head -n 1 err)"
fi

theirs="${CULPRIT_TEST_DATA:-}/sampling/perfdata/sleep.data"
if [ -r "$theirs" ]; then
	try "$theirs" "another tool's file"
else
	skip "cuts of another tool's file" "CULPRIT_TEST_DATA is not set"
fi

plan_end
