# Sourced by benchmarks: runs of commands, their times and memory.

# measure NAME RUNS COMMAND...: "wall seconds, CPU seconds, peak kilobytes" of each run into NAME.runs. A command that
# takes longer than LIMIT seconds (default 300) is ended and counts as LIMIT.
measure() {
	local name=$1 runs=$2
	shift 2
	: >"$name.runs"
	for ((i = 0; i < runs; i++)); do
		python3 - "$name.runs" "${LIMIT:-300}" "$@" <<-'EOP'
			import os, resource, signal, subprocess, sys, time
			start = time.monotonic()
			with open(os.devnull, "wb") as null:
			    child = subprocess.Popen(sys.argv[3:], stdout=null, stderr=null, start_new_session=True)
			try:
			    status = child.wait(float(sys.argv[2]))
			except subprocess.TimeoutExpired:
			    os.killpg(child.pid, signal.SIGKILL)
			    child.wait()
			    status = 0
			wall = time.monotonic() - start
			usage = resource.getrusage(resource.RUSAGE_CHILDREN)
			if status not in (0,):
			    sys.exit(f"{sys.argv[3]} ended with status {status}")
			with open(sys.argv[1], "a") as runs:
			    print(f"{wall:.4f} {usage.ru_utime + usage.ru_stime:.4f} {usage.ru_maxrss}", file=runs)
		EOP
	done
}

# median NAME COLUMN
median() { cut -d" " -f"$2" "$1.runs" | sort -n | sed -n "$((($(wc -l <"$1.runs") + 1) / 2))p"; }

# record_load FILE: frame-pointer stacks of the whole machine with something to sample: a build-like mix of processes,
# threads and system calls.
record_load() {
	local pid
	for ((i = 0; i < 40; i++)); do
		find /usr/share /usr/lib -name '*.so*' 2>/dev/null | sort | md5sum
		head -c 20000000 /dev/zero | gzip -1 | md5sum
		python3 -c 'import json; print(len(json.dumps([[i, str(i)] for i in range(200000)])))'
	done >/dev/null 2>&1 &
	pid=$!
	# perf 6.1 aborts now and then when it writes its build ids.
	for ((i = 0; i < 3; i++)); do
		perf record -q --no-bpf-event -a -g -F 2000 -o "$1" -- sleep 5 2>/dev/null && break
	done
	kill $pid 2>/dev/null || true
	wait $pid 2>/dev/null || true
}

# Takes a file out of the page cache.
forget() { dd of="$1" oflag=nocache conv=notrunc,fdatasync count=0 2>/dev/null; }

# table TITLE NAME...: the medians of each name.
table() {
	local name
	printf '%-28s %12s %12s %12s\n' "$1" "wall s" "CPU s" "peak MB"
	shift
	for name; do
		printf '%-28s %12s %12s %12s\n' "$name" "$(median "$name" 1)" "$(median "$name" 2)" "$(($(median "$name" 3) / 1024))"
	done
}
