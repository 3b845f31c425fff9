#!/bin/bash
# tools/sum-tests.py: how a test program ended counts, whatever it printed.
. "$(dirname "$0")/lib.sh"
SUM=$REPO_DIR/tools/sum-tests.py
if ! have python3; then
	echo "1..0 # SKIP python3 is not installed"
	exit 0
fi
plan_begin

# logs NAME RESULT STATUS FAILURE: a program with two subtests, and one without any that passed
logs() {
	cat >"$1.junit.xml" <<END
<?xml version='1.0' encoding='utf-8'?>
<testsuites tests="3" errors="0" failures="${4:+1}">
<testsuite name="p.p:guest / boots" tests="2" errors="0" failures="${4:+1}" skipped="0">
<testcase name="1 - it starts" classname="p.p:guest / boots" />
<testcase name="2 - it answers" classname="p.p:guest / boots">$4</testcase>
<system-out>ok 1 - it starts</system-out></testsuite>
<testsuite name="p" tests="2" errors="0" failures="0" skipped="1">
<testcase name="p:unit / plain" classname="p" /><testcase name="p:unit / other" classname="p"><skipped /></testcase>
</testsuite></testsuites>
END
	sed -i 's/failures=""/failures="0"/' "$1.junit.xml"
	cat >"$1.json" <<END
{"name": "p:guest / boots", "stdout": "", "result": "$2", "returncode": $3}
{"name": "p:unit / plain", "result": "${5:-OK}", "returncode": 0}
{"name": "p:unit / other", "result": "SKIP", "returncode": 77}
END
}

logs good OK 0 ''
check_match "all good" '^3 passed, 0 failed, 1 skipped$' "$SUM" good.junit.xml
for status in 99 124; do
	logs ended ERROR $status ''
	check_match "status $status with every subtest ok is a failure, and named" \
		"^FAILED p:guest / boots: ERROR, status $status\$" "$SUM" ended.junit.xml
done
check_status "and the status says so" 1 "$SUM" ended.junit.xml
logs slow TIMEOUT -15 ''
check_status "a timeout is a failure" 1 "$SUM" slow.junit.xml
"$SUM" slow.junit.xml >slow.txt
check_match "and counted" '^3 passed, 1 failed, 1 skipped$' cat slow.txt
logs plain OK 0 '' TIMEOUT
"$SUM" plain.junit.xml >plain.txt
check_match "a program without subtests is not counted as passed as well" '^2 passed, 1 failed, 1 skipped$' cat plain.txt
logs sub FAIL 1 '<failure />'
"$SUM" sub.junit.xml >sub.txt
check_match "a failed subtest is counted once" '^2 passed, 1 failed, 1 skipped$' cat sub.txt
check_match "and named" '^FAILED p.p:guest / boots: 2 - it answers$' cat sub.txt
"$SUM" good.junit.xml ended.junit.xml >both.txt
check_match "files are summed" '^6 passed, 1 failed, 2 skipped$' cat both.txt
rm ended.json
check_status "without the log beside it nothing is known of the ends" 1 "$SUM" ended.junit.xml
check_status "a cut file is a failure" 1 sh -c 'head -c 300 good.junit.xml >cut.junit.xml; "$0" cut.junit.xml' "$SUM"

plan_end
