#!/bin/bash
# What perf writes in its many modes is read: the same samples and the same sums of periods as perf report gives.
. "$(dirname "$0")/../cli/lib.sh"
plan_begin

PROGRAMS=${CULPRIT_TEST_PROGRAMS:?set CULPRIT_TEST_PROGRAMS to the folder of tests/programs}
if ! have perf || ! perf record -q -e cpu-clock -o probe -- true 2>/dev/null; then
	skip "recordings by perf" "perf cannot record here"
	plan_end
	exit
fi

# The sum of the periods of every event by perf, and ours.
perf_sum() { perf report -i "$1" --stdio -g none --group 2>/dev/null | sed -n 's/^# Event count (approx.): //p' | awk '{ s += $1 } END { printf "%.0f\n", s }'; }
our_sum() {
	local event sum=0 all
	for event in $(perf evlist -i "$1" | sed 's/^# .*//; /^$/d; /^dummy/d'); do
		all=$("$CULPRIT" report --json -i "$1" --event "$event" 2>/dev/null | sed -n 's/^\t"all": \([0-9]*\),.*/\1/p')
		sum=$((sum + all))
	done
	echo $sum
}
same_sum() {
	local want have
	want=$(perf_sum "$2") have=$(our_sum "$2")
	if [ "${want:-0}" -gt 0 ] && [ "$want" = "$have" ]; then ok "$1"; else not_ok "$1" "perf $want, culprit $have"; fi
}

# NAME|OPTIONS
cat > modes <<'EOF'
plain|-e cpu-clock
several events|-e cpu-clock,page-faults
leader sampling|-e {cpu-clock,page-faults,context-switches}:S
cgroups and namespaces|-e cpu-clock --all-cgroups --namespaces
monotonic clock|-e cpu-clock -k CLOCK_MONOTONIC
context switches|-e cpu-clock --switch-events
compressed|-e cpu-clock -g -z
everything in the samples|-e cpu-clock -d --phys-data --sample-cpu --sample-identifier -W --call-graph dwarf,1024
BPF programs|-e cpu-clock --bpf-event
EOF
while IFS='|' read -r name options; do
	case $options in
	*--bpf-event*) ;;
	*) options="$options --no-bpf-event" ;; # looking for them takes perf a second
	esac
	# shellcheck disable=SC2086
	if perf record -q $options -F 499 -o "$name" -- "$PROGRAMS/shares" 0.2 2>why; then
		same_sum "$name: the same sum of periods as perf" "$name"
	else
		skip "$name" "perf: $(grep -m1 . why)"
	fi
done < modes

perf record -q --no-bpf-event -e cpu-clock -F 499 -g -o - -- "$PROGRAMS/shares" 0.2 2>/dev/null > piped
same_sum "pipe mode: the same sum of periods as perf" piped
if perf record -q --no-bpf-event --threads -a -e cpu-clock -F 499 -o threads.data -- "$PROGRAMS/shares" 0.2 2>/dev/null; then
	same_sum "a directory of per-thread files: the same sum of periods as perf" threads.data
else
	skip "a directory of per-thread files" "this perf has no --threads"
fi
check_match "leader sampling: every member of the group is an event" 'page-faults: [1-9]' "$CULPRIT" report -i "leader sampling"
if [ -f "cgroups and namespaces" ]; then
	check_match "cgroups: a key of rows" '^ *[0-9.]+% +/' "$CULPRIT" report --no-children -s cgroup -i "cgroups and namespaces"
	check_match "cgroups: a filter" '^ *100.00% .*shares' "$CULPRIT" report --no-children -s comm --cgroup '/*' -i "cgroups and namespaces"
	here=$(readlink /proc/self/ns/pid)
	there=$(readlink /proc/self/ns/cgroup)
	check_match "namespaces: keys of rows" "100.00% .*${here//[\[\]]/.}.*${there//[\[\]]/.}" \
		"$CULPRIT" report --no-children -s pidns,cgroupns -i "cgroups and namespaces"
	check_match "cgroups: a label" cgroup sh -c "'$CULPRIT' convert --cgroup -o - --to pprof-raw 'cgroups and namespaces' | strings"
fi
check_fails "namespaces that were not recorded" 'perf record --namespaces' "$CULPRIT" report -s pidns -i plain
check_fails "cgroups that were not recorded" 'perf record --all-cgroups' "$CULPRIT" report -s cgroup -i plain
check_match "monotonic clock: the clock and the time of day are known" '^# start +20[0-9][0-9]-' "$CULPRIT" report --header -i "monotonic clock"
plan_end
