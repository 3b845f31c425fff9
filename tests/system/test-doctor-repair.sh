#!/bin/bash
# culprit doctor --repair, alone: every measurement of latency that starts meanwhile would repair first.
. "$(dirname "$0")/../cli/lib.sh"
plan_begin

# what a killed measurement left: a journal whose owner is dead
knob=/proc/sys/kernel/printk_ratelimit_burst
if [ "$(id -u)" = 0 ] && [ -w $knob ] && mkdir -p /run/culprit; then
	old=$(cat $knob) journal=/run/culprit/test-doctor.journal
	{
		echo "culprit-journal 1 $(cat /proc/sys/kernel/random/boot_id) 4194305 1"
		echo "value $knob $old $((old + 1))"
	} >$journal
	echo $((old + 1)) >$knob
	check_match "leftovers are told" "leftovers +1 settings" "$CULPRIT" doctor --area latency
	check "--repair" "$CULPRIT" doctor --area latency --repair
	check_match "and puts back" "^$old\$" cat $knob
	check "and the journal is gone" test ! -e $journal
	echo "$old" >$knob
	rm -f $journal
else
	skip "--repair" "needs root and a writable /proc/sys"
fi

plan_end
