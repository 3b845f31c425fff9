#!/bin/sh
# compare with counters: the verdict, and instructions as its reason.
# shellcheck shell=ash
. "$(dirname "$0")/../cli/lib.sh"
plan_begin

"$CULPRIT" compare -r 12 -- spin 2000000 --vs spin 2100000 >compare.txt 2>&1
sed 's/^/# /' compare.txt
check_match "5% more work is slower" '^B is slower: ' cat compare.txt
check_match "it executes more instructions" '^It executes [345]\.[0-9]*% more instructions' cat compare.txt
"$CULPRIT" compare -r 12 -- spin 2000000 --vs spin 2000000 >same.txt 2>&1
sed 's/^/# /' same.txt
check_match "the same program: no difference" '^No difference' cat same.txt

plan_end
