#!/bin/sh
# doctor and list on a real counter unit: six programmable counters and the cycle counter.
# shellcheck shell=ash
. "$(dirname "$0")/../cli/lib.sh"
plan_begin

check_match "the PMU is found" '^ok +counting +pmu +armv8_' "$CULPRIT" doctor
check_match "the counters tell the truth" '^ok +counting +self_test .*GHz' "$CULPRIT" doctor
check_match "counters are counted by trial" '^ok +counting +counters_free +[1-7]' "$CULPRIT" doctor
check_match "the hypervisor is seen" '^warn +counting +hypervisor +qemu' "$CULPRIT" doctor
check_status "nothing fails" 0 "$CULPRIT" doctor --strict
check_match "cycles works" '^cycles .* works' "$CULPRIT" list hw --probe
check_match "the kernel's own name works" '/cpu_cycles/ .* works' "$CULPRIT" list pmu --probe
check_match "an event the CPU lacks says so" '^ref-cycles .* fails +this CPU' "$CULPRIT" list hw --probe
check_match "the fields of the PMU are listed" '/event=/ +format +config:0-15' "$CULPRIT" list format
check_match "a raw code is counted" '[1-9][0-9,]* +r11' "$CULPRIT" stat -e r11 spin 1000

plan_end
