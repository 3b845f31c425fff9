#!/bin/sh
# Stacks on arm64: without frame pointers, unwound while recording and from copies, and by frame pointers. The program signs its
# return addresses and so does the CPU.
# shellcheck shell=ash
. "$(dirname "$0")/../cli/lib.sh"
plan_begin

# rooted FOLDED: of the stacks 98 of 100 (and two more, of few samples) have main or a thread's start; below burn_rec there are 41 rec
rooted() {
	awk '
	{
		count = $NF
		if (one == 0 || count < one) one = count
		total += count
		sub(/ [0-9]+$/, "")
		if ($0 ~ /;(main|start_thread|_start|__libc_start_main.*|execve|exec.*|begin_new_exec|thread_start|__clone3?|clone)(;|$)/) good += count
		else print "# " $0
		if ($0 ~ /;burn_rec(;|$)/) {
			known += count
			if (gsub(/;rec(\.[a-z0-9.]+)?/, "&") != 41) { wrong += count; print "# wrong depth: " $0 }
		}
	}
	END {
		printf "# %d samples, %.2f %% reach a root; %d with a known depth, %d wrong\n", total / one, 100 * good / total, known / one, wrong / one
		exit total < 30 * one || known == 0 || total - good > 0.02 * total + 2 * one || wrong > 0.01 * known
	}' "$1"
}

# paced MODE FILE: records the program, longer when the machine is busy
paced() {
	for seconds in 2 8; do
		"$CULPRIT" record -e cpu-clock -F 199 --call-graph "$1" -o "$2" -- stacks $seconds >/dev/null 2>said
		sed 's/^/# /' said
		samples=$("$CULPRIT" report --json -i "$2" 2>/dev/null | sed -n 's/^\t"samples": \([0-9]*\),*$/\1/p')
		[ "${samples:-0}" -ge 200 ] && return
	done
}

check_match "the CPU signs addresses" ' paca' grep Features /proc/cpuinfo
paced dwarf live.data
"$CULPRIT" convert live.data -o live.folded 2>/dev/null
rooted live.folded && ok "unwound while recording, they reach their roots" || not_ok "unwound while recording, they reach their roots"
check_match "through signal handlers, too" ';handler;' cat live.folded
paced dwarf,raw,16384 raw.data
"$CULPRIT" convert raw.data -o raw.folded 2>/dev/null
rooted raw.folded && ok "from copies, too" || not_ok "from copies, too"
paced fp fp.data
"$CULPRIT" convert fp.data -o fp.folded 2>/dev/null
check_match "frame pointers of the kernel's chain" '(main|start_thread);.*work;.*burn' cat fp.folded
check_match "perf reads what was unwound" 'burn' perf script -i live.data
small=$(wc -c <live.data) large=$(wc -c <raw.data)
if [ $((small * 5)) -lt "$large" ]; then ok "and it is small ($small of $large bytes)"; else not_ok "and it is small" "$small of $large bytes"; fi

# Interrupts between the two processors have texts instead of numbers: whole, as /proc/interrupts has them. Each counter that is opened
# on CPU 1 calls a function there.
"$CULPRIT" osnoise top --engine B -c 1 -q -d 4s -o noise.json >out 2>said &
noise=$!
while kill -0 $noise 2>/dev/null; do
	"$CULPRIT" stat -C 1 -e task-clock sleep 0.1 >/dev/null 2>&1
done
wait $noise
sed 's/^/# /' said
grep -o '"name": "[^"]* interrupts"' noise.json | sed 's/"name": //; s/"//g' | sort -u >named
sed -n 's/^ *IPI[0-9]*:[ 0-9]*\(.*\)$/\1/p' /proc/interrupts | sort -u >known
check_match "function calls from the other CPU have their name" '^Function call interrupts$' cat named
check "every name is one of /proc/interrupts" sh -c 'while read -r name; do grep -qxF "$name" known || exit 1; done <named'

plan_end
