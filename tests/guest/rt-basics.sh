#!/bin/sh
# Culprit starts on a PREEMPT_RT kernel, and this guest has the tracers that latency tests rely on.
# shellcheck shell=ash
. "$(dirname "$0")/../cli/lib.sh"
plan_begin

check_match "culprit version runs" '^culprit [0-9]' "$CULPRIT" version
check_match "the kernel is PREEMPT_RT" 'PREEMPT_RT' uname -v
for tracer in timerlat osnoise hwlat; do
	check_match "the $tracer tracer is there" "(^| )$tracer( |\$)" cat /sys/kernel/tracing/available_tracers
done
check_match "rtla measures timer latency" '^ +1 +#[0-9]+' rtla timerlat top -q -d 2
check_match "culprit counts" 'task-clock' "$CULPRIT" stat true

plan_end
