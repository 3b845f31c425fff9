#!/bin/bash
# Stacks of programs without frame pointers, from copied stack bytes: recursion, a signal handler, a thread, callbacks
# through a library, shared and static. Nearly all reach main or the thread's start.
. "$(dirname "$0")/../cli/lib.sh"
plan_begin

if ! have perf || ! perf record -q --call-graph dwarf -o probe -- true >/dev/null 2>&1; then
	skip "unwinding" "perf cannot record here"
	plan_end
	exit
fi
cat >deep.c <<'END'
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
static volatile long sink;
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
__attribute__((noinline)) static int burn(int n) { for (int i = 0; i < 4000 + n; i++) sink += i * n; return (int)sink; }
__attribute__((noinline)) static int rec(int d) { volatile char pad[32]; pad[d & 31] = 1; if (!d) return burn(3); int r = rec(d - 1) + pad[d & 31]; sink += r; return r; }
static int cmp(const void *a, const void *b) { for (int i = 0; i < 30; i++) sink++; return *(const int *)a - *(const int *)b; }
__attribute__((noinline)) static void sorts(void) { int v[300]; for (int i = 0; i < 300; i++) v[i] = rand(); qsort(v, 300, 4, cmp); }
__attribute__((noinline)) static void aligned(int n) { _Alignas(64) volatile double v[16]; char *p = __builtin_alloca(n * 16); memset(p, n, n * 16); v[n & 15] = p[1]; burn(n); sink += v[n & 15]; }
static void handler(int s) { (void)s; for (int i = 0; i < 3; i++) burn(5); }
__attribute__((noinline)) static void work(double end) { while (now() < end) { rec(40); sorts(); aligned(7); for (int i = 0; i < 500; i++) sink += now(); } }
static void *thread(void *a) { work(now() + 1); return a; }
int main(void)
{
	struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_RESTART};
	struct itimerval every = {{0, 3000}, {0, 3000}};
	pthread_t t;
	sigaction(SIGPROF, &sa, 0); setitimer(ITIMER_PROF, &every, 0);
	pthread_create(&t, 0, thread, 0); work(now() + 1); pthread_join(t, 0);
	return 0;
}
END
cat >rooted.py <<'END'
import sys
good = total = signals = 0
for line in open(sys.argv[1]):
    stack, count = line.rsplit(" ", 1)
    frames = stack.split(";")
    total += int(count)
    if "handler" in frames:
        signals += int(count)
    if "main" in frames or "start_thread" in frames or "_dl_start" in stack or "exec" in stack:
        good += int(count)
print(f"# {100 * good / max(total, 1):.2f} % of the stacks reach main or the thread's start")
sys.exit(total == 0 or good < 0.99 * total or signals == 0)
END
for link in dynamic static; do
	if ! cc -O2 -fomit-frame-pointer $([ $link = static ] && echo -static) -o "deep-$link" deep.c -lpthread 2>/dev/null; then
		skip "$link: 99 % reach their root" "it does not link"
		continue
	fi
	perf record -q -F 999 --call-graph dwarf,16384 -o "$link.data" -- "./deep-$link" >/dev/null 2>&1
	"$CULPRIT" convert "$link.data" -o "$link.folded" 2>/dev/null
	check "$link: 99 % reach their root" python3 rooted.py "$link.folded"
done
perf record -q -F 999 --call-graph dwarf,512 -o cut.data -- ./deep-dynamic >/dev/null 2>&1
"$CULPRIT" convert cut.data -o cut.folded 2>cut.err
check "too few bytes: cut stacks get the root [truncated]" grep -q ';\[truncated\];' cut.folded
check "and one line says so" sh -c '[ "$(grep -c "leave the copied bytes" cut.err)" = 1 ]'
plan_end
