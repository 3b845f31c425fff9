/*
 * chain N [MS]: N links of fork and exec, each burning MS (default 100) milliseconds of CPU time;
 * link K calls itself link-K, and runs the next one as its child, which it waits for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shares.h"

uint64_t link_work(uint64_t x);

static volatile uint64_t sink;

KEEP uint64_t link_work(uint64_t x)
{
	SHARES_FRAME();
	return shares_burn(x, SHARES_UNIT) + 1;
}

int main(int argc, char **argv)
{
	int left = argc > 1 ? atoi(argv[1]) : 3, status = 0;
	uint64_t ns = (argc > 2 ? (uint64_t)atoi(argv[2]) : 100) * 1000000, x = 1;
	char name[16], next[16];
	pid_t child;

	snprintf(name, sizeof(name), "link-%d", left);
	prctl(PR_SET_NAME, name);
	while (shares_cpu_ns(CLOCK_PROCESS_CPUTIME_ID) < ns)
		x = link_work(x);
	sink = x;
	if (left <= 1)
		return 0;
	child = fork();
	if (child == 0) {
		snprintf(next, sizeof(next), "%d", left - 1);
		execl("/proc/self/exe", argv[0], next, argc > 2 ? argv[2] : "100", (char *)NULL);
		_exit(127);
	}
	return child < 0 || waitpid(child, &status, 0) < 0 || status != 0;
}
