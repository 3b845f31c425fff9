#!/bin/bash
# culprit record: every option, what the file says, the pass-through of the command, and errors.
. "$(dirname "$0")/lib.sh"
plan_begin

PROGRAMS=${CULPRIT_TEST_PROGRAMS:?set CULPRIT_TEST_PROGRAMS to the folder of tests/programs}
READER="$TESTS_DIR/tools/perfdata.py"
BACKGROUND=
trap 'status=$?; kill $BACKGROUND 2>/dev/null; cd /; rm -rf "$TEST_TMP"; exit $status' EXIT

record() { "$CULPRIT" record "$@"; }
quiet() { "$CULPRIT" record -q "$@"; }
# holds NAME FILE EXPRESSION: see tests/tools/perfdata.py
holds() { check "$1" python3 "$READER" "$2" "$3"; }
# start PROGRAM ARGS: in the background; its pid in PID
start() {
	"$@" &
	PID=$!
	BACKGROUND="$BACKGROUND $PID"
}
stop() { kill "$PID" 2>/dev/null; wait "$PID" 2>/dev/null; }

check_match "--help explains" "^Usage: culprit record" "$CULPRIT" record --help

if ! why=$(quiet -o probe -- true 2>&1); then
	skip "recording" "${why:-not possible here}"
	plan_end
	exit
fi

# the command passes through
check_status "exit status passes through" 7 "$CULPRIT" record -- sh -c 'exit 7'
check_status "death by a signal passes through" 143 "$CULPRIT" record -- sh -c 'kill -TERM $$'
check_status "a missing command is 127" 127 "$CULPRIT" record -- ./no-such-program
touch plain
check_status "a file that cannot run is 126" 126 "$CULPRIT" record -- ./plain
check_match "the error names the command" "cannot run './no-such-program': No such file" "$CULPRIT" record -- ./no-such-program
if [ "$(echo hello | record -- cat 2>/dev/null)" = hello ]; then ok "stdin and stdout pass through"; else not_ok "stdin and stdout pass through"; fi
if [ "$(record -- sh -c 'echo "$1|$2"' x 'a b' -n 2>/dev/null)" = 'a b|-n' ]; then ok "arguments of the command are its own"; else not_ok "arguments of the command are its own"; fi
if [ "$(quiet -- sed -n 's/^SigBlk:[[:space:]]*//p' /proc/self/status)" = 0000000000000000 ]; then ok "no signal is blocked in the command"; else not_ok "no signal is blocked in the command"; fi

# -o, -q, -v, and what is said
rm -f perf.data*
check "the default file is perf.data" sh -c "'$CULPRIT' record -- true && test -s perf.data"
quiet -- true
check "the old file is kept" test -s perf.data.old
for option in -o --output; do
	rm -f out
	check "$option" sh -c "'$CULPRIT' record $option out -- true && test -s out"
done
check_match "the end names the next command" "culprit report -i out" "$CULPRIT" record -o out -- true
check_match "it says the event, its rate and the skid" "cpu-clock, [0-9]+ Hz; a timer" "$CULPRIT" record -e cpu-clock -o out -- true
for option in -q --quiet; do
	if [ -z "$(record $option -o out -- true 2>&1)" ]; then ok "$option says nothing"; else not_ok "$option says nothing"; fi
done
for option in -v --verbose; do
	check_match "$option says what was opened" "rings of [0-9]+ KiB" "$CULPRIT" record $option -o out -- true
done
mode=$(stat -c %a out)
if [ "$mode" = 600 ]; then ok "the file is its owner's alone"; else not_ok "the file is its owner's alone" "$mode"; fi

# the file
quiet -o out -- "$PROGRAMS/shares" 0.3
holds "the file is sound and complete" out 'd.complete and d.cut == 0 and len(d.samples) > 200 and d.lost == 0'
holds "it says where it was made" out "d.string_feature(3) == '$(uname -n)' and d.string_feature(4) == '$(uname -r)' and d.string_feature(6) == '$(uname -m)'"
holds "it says with which command" out 'b"shares" in d.features[11]'
holds "only the command is in it" out 'len(d.pids()) == 1 and d.thread_names() == {"shares"}'
holds "it has the command's mappings" out 'any(m["path"].endswith("/shares") for m in d.maps) and any("libc" in m["path"] for m in d.maps)'
if python3 "$READER" out 'd.attrs[0]["flags"] >> 34 & 1' 2>/dev/null; then
	holds "mappings carry build ids" out 'all(len(m["build_id"]) == 40 for m in d.maps if m["path"].endswith("/shares"))'
else
	skip "mappings carry build ids" "this kernel does not give them"
fi
holds "times lie within the recording" out 'min(s["time"] for s in d.samples) == struct.unpack("<QQ", d.features[21])[0]'
if [ "$(id -u)" -eq 0 ] && ! grep -q '^0*0 ' /proc/kallsyms; then
	quiet -g -o kernel -- dd if=/dev/zero of=/dev/null bs=64k count=20000 2>/dev/null
	holds "kernel symbols of its samples are in it" kernel 'any(not s["user"] for s in d.samples) and " T " in d.kernel_symbols()'
	holds "every kernel address has a symbol before it" kernel '
(lambda starts: all(any(a <= ip for a in starts) for s in d.samples for ip in s["chain"] if 1 << 63 <= ip < (1 << 64) - 4096))(
[int(line.split()[0], 16) for line in d.kernel_symbols().splitlines()])'
else
	skip "kernel symbols of its samples are in it" "kernel addresses are hidden from this user"
fi

# events and rates
for option in -F --freq; do
	quiet -e cpu-clock $option 200 -o out -- "$PROGRAMS/shares" 0.5
	holds "$option 200 for half a second" out 'd.attrs[0]["freq"] and d.attrs[0]["period"] == 200 and 85 <= len(d.samples) <= 130'
done
for option in -c --count; do
	quiet -e cpu-clock $option 10000000 -o out -- "$PROGRAMS/shares" 0.5
	holds "$option 10 ms for half a second" out 'not d.attrs[0]["freq"] and d.attrs[0]["period"] == 10000000 and 42 <= len(d.samples) <= 65'
done
limit=$(cat /proc/sys/kernel/perf_event_max_sample_rate)
quiet -e cpu-clock -F max -o out -- true
holds "-F max" out "d.attrs[0]['period'] == $limit"
check_fails "a frequency above the limit" "perf_event_max_sample_rate, which is $limit" "$CULPRIT" record -F $((limit * 2)) -o out -- true
check_fails "frequency 0" "'0' is not a number of samples" "$CULPRIT" record -F 0 -- true
check_fails "--freq with --count" "exclude each other" "$CULPRIT" record -F 99 -c 1000 -- true
for option in -e --event; do
	quiet $option page-faults:u -c 1 -o out -- sh -c 'true | cat'
	holds "$option page-faults, each" out 'd.attrs[0]["type"] == 1 and d.attrs[0]["config"] == 2 and len(d.samples) > 20 and all(s["user"] for s in d.samples)'
done
quiet -e cpu-clock:u,task-clock -e page-faults -F 500 -o out -- "$PROGRAMS/shares" 0.3
holds "several events" out '[a["name"] for a in d.attrs][0].startswith("cpu-clock:u") and len(d.attrs) == 3 and {s["event"] for s in d.samples} >= {0, 1} and d.attrs[0]["exclude_kernel"]'
holds "each event has its rate of samples" out 'all(110 <= sum(s["event"] == e for s in d.samples) <= 190 for e in (0, 1))'
check_fails "an event that does not exist" "no-such-event" "$CULPRIT" record -e no-such-event -- true
if [ -d /sys/bus/event_source/devices/cpu/events ] && quiet -e cycles -o out -- true 2>/dev/null; then
	quiet -o out -- "$PROGRAMS/shares" 0.1
	holds "the default event is cycles" out 'd.attrs[0]["type"] == 0 and d.attrs[0]["config"] == 0'
else
	check_fails "without counters, cycles says so and what else" "use -e cpu-clock" "$CULPRIT" record -e cycles -o out -- true
	check_match "without counters the timer stands in" "no hardware counters here" "$CULPRIT" record -o out -- true
fi
if [ -r /sys/kernel/tracing/events/sched/sched_process_exec/id ] && quiet -e sched:sched_process_exec -o out -- true 2>/dev/null; then
	quiet -e sched:sched_process_exec -o out -- sh -c '/bin/true; /bin/true'
	holds "a tracepoint, each, with its data" out 'len(d.samples) == 3 and b"/bin/true" in d.samples[1]["raw"]'
	quiet -e sched:sched_process_exec --filter 'filename == "/bin/true"' -o out -- sh -c '/bin/true; /bin/true'
	holds "--filter" out 'len(d.samples) == 2'
	check_fails "a filter that the kernel refuses" "refuses the filter" "$CULPRIT" record -e sched:sched_process_exec --filter 'nofield == 1' -o out -- true
else
	skip "tracepoints and --filter" "tracefs is not readable by this user"
fi
check_fails "a filter without its event" "give -e first" "$CULPRIT" record --filter 'pid == 1' -- true

# call stacks
quiet -g -e cpu-clock -o out -- "$PROGRAMS/shares" 0.3
holds "-g records call chains" out 'd.attrs[0]["sample_type"] & CHAIN and sum(len(s["chain"]) >= 4 for s in d.samples if s["user"]) > 0.9 * len(d.samples)'
quiet --call-graph fp -e cpu-clock -o out -- "$PROGRAMS/shares" 0.1
holds "--call-graph fp" out 'd.attrs[0]["sample_type"] & CHAIN and not d.attrs[0]["sample_type"] & STACK'
quiet -g --call-graph no -e cpu-clock -o out -- "$PROGRAMS/shares" 0.1
holds "--call-graph no" out 'not d.attrs[0]["sample_type"] & CHAIN'
quiet --call-graph dwarf -e cpu-clock -o out -- "$PROGRAMS/shares" 0.1
holds "--call-graph dwarf writes chains and no copies" out 'd.attrs[0]["stack"] == 0 and d.attrs[0]["regs"] == 0 and sum(len(s["chain"]) > 4 for s in d.samples) > len(d.samples) / 2'
check_match "and its counts of stacks" '# stacks .* complete, unwound while recording' "$CULPRIT" report --header -i out
check_match "in JSON, too" '"unwound_stacks": [1-9]' "$CULPRIT" report --json -i out
"$CULPRIT" record --call-graph dwarf,64 -e cpu-clock -o out -- "$PROGRAMS/shares" 0.1 >/dev/null 2>said
check_match "stacks that are cut are counted, with what to do" 'are deeper than the 64 bytes that are copied: --call-graph dwarf,65528' cat said
"$CULPRIT" record --call-graph dwarf,raw,64 -e cpu-clock -o out -- "$PROGRAMS/shares" 0.1 >/dev/null 2>said
check_match "in copies that are kept, too" 'are deeper than the 64 bytes that are copied: --call-graph dwarf,raw,65528' cat said
quiet --call-graph dwarf,raw -e cpu-clock -o out -- "$PROGRAMS/shares" 0.1
holds "--call-graph dwarf,raw copies 8 KiB" out 'd.attrs[0]["stack"] == 8192 and any(len(s["stack"]) == 8192 and s["regs"] for s in d.samples)'
quiet --call-graph dwarf,raw,1024 -e cpu-clock -o out -- "$PROGRAMS/shares" 0.1
holds "--call-graph dwarf,raw,1024" out 'd.attrs[0]["stack"] == 1024 and any(0 < s["stack_used"] <= 1024 for s in d.samples)'
check_fails "a stack size that cannot be" "multiple of 8" "$CULPRIT" record --call-graph dwarf,1001 -- true
check_fails "an unknown call graph" "expected fp, dwarf" "$CULPRIT" record --call-graph magic -- true
if quiet --call-graph lbr -o out -- "$PROGRAMS/shares" 0.1 2>error; then
	holds "--call-graph lbr" out 'd.attrs[0]["sample_type"] & BRANCH'
else
	check_match "--call-graph lbr says what is missing" "branch.*(LBR|lbr).*fp" cat error
fi

# targets
start "$PROGRAMS/shares" 20 2
sleep 0.2
tid=$(ls "/proc/$PID/task" | sed -n 2p)
for option in -p --pid; do
	for duration in -d --duration; do
		quiet $option "$PID" $duration 600ms -e cpu-clock -o out
		holds "$option with $duration: the process with all its threads" out "d.pids() == {$PID} and d.thread_names() >= {'burner-0', 'burner-1'} and d.seconds() < 0.9"
	done
done
holds "an attached process has its mappings" out "any(m['pid'] == $PID and m['path'].endswith('/shares') for m in d.maps)"
for option in -t --tid; do
	quiet $option "$tid" -d 300ms -e cpu-clock -o out
	holds "$option: one thread" out "d.tids() == {$tid}"
done
"$PROGRAMS/leaderless" 1500 &
sleep 0.1
quiet -p $! -e cpu-clock -o out
holds "-p goes on while any thread runs, and ends with the last" out 'd.seconds() > 1.0'
quiet -C 0 -p "$PID" -e cpu-clock -d 200ms -o out
holds "-C with -p" out 'len(d.pids()) <= 1'
if quiet -a -d 100ms -o out 2>error; then
	for option in -a --all-cpus; do
		quiet $option -e cpu-clock -F 999 -d 400ms -o out
		holds "$option sees everything" out "$PID in d.pids() and len({s['cpu'] for s in d.samples}) == $(nproc) and d.lost == 0"
	done
	holds "-a names the processes that were there" out "any(c['comm'] == 'burner-0' for c in d.comms) and any(c['pid'] == 1 for c in d.comms) and any(m['kernel'] for m in d.maps)"
	for option in -C --cpu; do
		quiet $option 0 -e cpu-clock -d 300ms -o out
		holds "$option 0" out "{s['cpu'] for s in d.samples} == {0}"
	done
	quiet -e cpu-clock -d 200ms -o out
	holds "without a target it is the whole machine" out "$PID in d.pids() and d.attrs[0]['sample_type'] & CPU"
	quiet -a -e cpu-clock -o out -- "$PROGRAMS/shares" 0.1
	holds "-a with a command ends with it" out "$PID in d.pids() and len(d.pids()) > 1 and d.seconds() < 2"
else
	check_match "-a is refused with setting and remedy" "perf_event_paranoid is [0-9]+" cat error
	skip "-a, -C, --all-cpus, --cpu" "$(cat error)"
fi
check_fails "a CPU that is not there" "CPU 4000 is not online" "$CULPRIT" record -C 4000 -d 100ms -o out
stop
check_fails "a process that does not exist" "process $PID does not exist" "$CULPRIT" record -p "$PID" -d 1s -o out
check_fails "a thread that does not exist" "$PID does not exist" "$CULPRIT" record -t "$PID" -d 1s -o out
check_fails "a pid that is none" "not a list of process ids" "$CULPRIT" record -p x12 -o out
check_fails "-a with -p" "leave out --pid" "$CULPRIT" record -a -p 1 -o out
check_fails "a command with -p" "either a command or --pid" "$CULPRIT" record -p 1 -o out -- true
check_fails "a user that does not exist" "user 'no-such-user' does not exist" "$CULPRIT" record -u no-such-user -o out
if [ "$(id -u)" -eq 0 ]; then
	cp "$PROGRAMS/shares" .
	chmod 755 . shares
	start setpriv --reuid=65534 --regid=65534 --clear-groups ./shares 20
	user=65534
else
	start "$PROGRAMS/shares" 20
	user=$(id -un)
fi
sleep 0.2
for option in -u --uid; do
	quiet $option $user -e cpu-clock -d 300ms -o out
	holds "$option $user" out "$PID in d.pids() and 1 not in d.pids()"
done
stop

start "$PROGRAMS/chain" 3 400
sleep 0.1
quiet -p "$PID" -e cpu-clock -o out
holds "-p follows children that are started later, until the end" out 'd.thread_names() >= {"link-3", "link-2", "link-1"}'
for option in -i --no-inherit; do
	quiet $option -e cpu-clock -o out -- "$PROGRAMS/chain" 2 100
	holds "$option leaves children out" out 'len(d.pids()) == 1 and "link-2" in d.thread_names()'
done
quiet -e cpu-clock -o out -- "$PROGRAMS/chain" 3 100
holds "children are recorded, each under its own name" out 'd.thread_names() >= {"link-3", "link-2", "link-1"} and len(d.pids()) == 3'
quiet -e cpu-clock -o out -- "$PROGRAMS/shares" 0.2 3
holds "new threads are recorded" out 'd.thread_names() >= {"burner-0", "burner-1", "burner-2"} and len(d.pids()) == 1'

# time
for option in -D --delay; do
	quiet $option 300 -e cpu-clock -o out -- "$PROGRAMS/shares" 0.8
	holds "$option 300: samples begin later, mappings do not" out '
min(s["time"] for s in d.samples) - min(c["time"] for c in d.comms if c["exec"]) > 290e6 and any(m["path"].endswith("/shares") for m in d.maps)'
done
check_status "-d ends the command" 0 timeout 20 "$CULPRIT" record -d 200ms -o out -- sleep 100
check_fails "a duration that is none" "abc" "$CULPRIT" record -d abc -o out

# rings and compression
for option in -m --mmap-pages; do
	check_match "$option 16" "rings of 64 KiB" "$CULPRIT" record -v $option 16 -o out -- true
	check_match "$option 512K" "rings of 512 KiB" "$CULPRIT" record -v $option 512K -o out -- true
done
check_fails "a ring that cannot be" "is not a number of pages" "$CULPRIT" record -m many -- true
quiet -g -e cpu-clock -F 2000 -m 1 -o out -- "$PROGRAMS/shares" 0.5
holds "a ring of one page suffices when it is drained in time" out 'len(d.samples) + d.lost >= 900'
for option in -z -z5 "--compression-level=3"; do
	quiet $option -g -e cpu-clock -o out -- "$PROGRAMS/shares" 0.3
	holds "$option" out 'd.counts[COMPRESSED] > 0 and 27 in d.features and len(d.samples) > 900 and d.complete'
done
check_fails "a level that is none" "not a zstd level" "$CULPRIT" record -z99 -- true

# signals
for signal in INT TERM; do
	start "$CULPRIT" record -q -e cpu-clock -o out -- "$PROGRAMS/shares" 30 # the shell ignores INT for it: so does not culprit
	sleep 0.5
	child=$(pgrep -P "$PID")
	kill -s $signal "$PID"
	wait "$PID"
	holds "after SIG$signal the file is complete" out 'd.complete and len(d.samples) > 100'
	if [ -n "$child" ] && ! kill "$child" 2>/dev/null; then ok "SIG$signal ends the command too"; else not_ok "SIG$signal ends the command too"; fi
done

# places where it cannot write
check_fails "a folder that does not exist" "nowhere/out: its folder does not exist" "$CULPRIT" record -o nowhere/out -- true
mkdir folder
check_fails "a pipe as the file" "not a pipe" "$CULPRIT" record -o - -- true
check_fails "a folder as the file" "folder: not a regular file" "$CULPRIT" record -o folder -- true
check "the folder stays where it is" test -d folder
ln -s /dev/null null
"$CULPRIT" record -q -o null -- true >/dev/null 2>&1
check "a link stays where it is" test -L null
check "/dev/null stays what it is" test -c /dev/null
echo "not mine" >precious
"$CULPRIT" record -q -o precious -- ./no-such-program 2>/dev/null
check_match "a command that cannot start costs no old file" "not mine" cat precious

plan_end
