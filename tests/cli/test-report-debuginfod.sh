#!/bin/bash
# Names from a debuginfod server on the loopback interface.
. "$(dirname "$0")/lib.sh"
plan_begin

export DEBUGINFOD_CACHE_PATH=$TEST_TMP/client
for tool in debuginfod gcc objcopy strip; do
	have $tool || { skip "debuginfod" "$tool is not installed"; plan_end; exit; }
done
cat >job.c <<'END'
static volatile long sum;
__attribute__((noinline)) static void hidden_work(long n) { for (long i = 0; i < n; i++) sum += i * (sum | 1); }
int main(void) { for (int i = 0; i < 100; i++) hidden_work(1000000); return 0; }
END
gcc -O1 -g -Wl,--build-id -o job job.c && mkdir files && objcopy --only-keep-debug job files/job.debug && strip -s job ||
	{ skip "debuginfod" "cannot make a stripped program"; plan_end; exit; }
if ! "$CULPRIT" record -q -e cpu-clock -o job.data -- ./job 2>err; then
	skip "debuginfod" "cannot record here"
	plan_end
	exit
fi
named() { "$CULPRIT" report -i job.data "$@" 2>err | grep -q hidden_work; }
report() { "$CULPRIT" report -i job.data "$@" 2>&1; }
if DEBUGINFOD_URLS=http://127.0.0.1:9 named; then not_ok "nobody is asked unasked"; else ok "nobody is asked unasked"; fi
check_match "--debuginfod without servers says so" 'DEBUGINFOD_URLS is not set' env -u DEBUGINFOD_URLS "$CULPRIT" report -i job.data --debuginfod 5
# Nobody listens on the discard port: the report comes all the same.
check "a server that is not there" env DEBUGINFOD_URLS=http://127.0.0.1:9 "$CULPRIT" report -i job.data --debuginfod 5

port='' server=''
for try in 1 2 3; do
	port=$((20000 + (RANDOM + try) % 20000))
	debuginfod -p "$port" -d "$TEST_TMP/index.sqlite" -F "$TEST_TMP/files" -t 1 >server.log 2>&1 &
	server=$!
	for ((i = 0; i < 100; i++)); do
		kill -0 $server 2>/dev/null || break
		# What is asked for too early would be remembered as missing.
		rm -rf "$DEBUGINFOD_CACHE_PATH"
		DEBUGINFOD_URLS=http://127.0.0.1:$port named --debuginfod 10 && break 2
		sleep 0.2
	done
	kill $server 2>/dev/null
	wait $server 2>/dev/null
	server=
done
if [ -n "$server" ]; then
	ok "names from the server"
	kill $server
	wait $server 2>/dev/null
	if DEBUGINFOD_URLS=http://127.0.0.1:$port named --debuginfod 10; then ok "kept for when it is gone"; else not_ok "kept for when it is gone" "$(report --debuginfod 10)"; fi
elif ldconfig -p 2>/dev/null | grep -q libdebuginfod.so.1; then
	not_ok "names from the server" "$(tail -5 server.log)" "$(report --debuginfod 10)"
else
	skip "names from the server" "libdebuginfod is not installed"
fi

plan_end
