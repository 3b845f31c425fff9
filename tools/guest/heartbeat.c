/*
 * Writes its argument to standard output once a second, above every other thread: as long as it is
 * heard, the kernel and at least one CPU run, whatever the programs do.
 */
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	const struct sched_param param = {.sched_priority = sched_get_priority_max(SCHED_FIFO)};
	const struct timespec second = {.tv_sec = 1};

	if (argc != 2)
		return 1;
	mlockall(MCL_CURRENT | MCL_FUTURE);
	sched_setscheduler(0, SCHED_FIFO, &param);
	while (write(STDOUT_FILENO, argv[1], strlen(argv[1])) > 0)
		nanosleep(&second, NULL);
	return 0;
}
