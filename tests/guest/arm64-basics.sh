#!/bin/sh
# Culprit starts on arm64, and this guest has the hardware counters that other tests rely on.
# shellcheck shell=ash
. "$(dirname "$0")/../cli/lib.sh"
plan_begin

check_match "culprit version runs on arm64" '^culprit [0-9]' "$CULPRIT" version
check_match "the machine is arm64" '^aarch64$' uname -m
check_match "the kernel drives a counter unit" 'counters available' dmesg
check_match "user space may read counters by itself" '^1$' cat /proc/sys/kernel/perf_user_access
check_status "an exit status comes through" 1 "$CULPRIT" no-such-command
check "the test program runs" spin 1000

plan_end
