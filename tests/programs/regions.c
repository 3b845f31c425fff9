/*
 * Regions of every kind, for the tests: regions
 * nested|threads|fork|unbalanced|many|recursive|switch|exec-write|deep
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "culprit.h"

static void spin(unsigned long count)
{
	for (volatile unsigned long i = 0; i < count; i++)
		;
}

static void nested(void)
{
	culprit_begin("outer");
	spin(1000000);
	for (int i = 0; i < 10; i++) {
		culprit_begin("inner");
		spin(200000);
		culprit_end("inner");
	}
	culprit_end("outer");
}

static void *thread_main(void *arg)
{
	char name[32];

	culprit_begin("shared");
	snprintf(name, sizeof(name), "own %d", *(int *)arg);
	culprit_begin(name);
	spin(100000);
	culprit_end(name);
	culprit_end("shared");
	return NULL;
}

static void threads(int count)
{
	pthread_t ids[8];
	int numbers[8];

	for (int round = 0; round < count; round += 8) {
		for (int i = 0; i < 8; i++) {
			numbers[i] = i;
			if (pthread_create(&ids[i], NULL, thread_main, &numbers[i]) != 0)
				abort();
		}
		for (int i = 0; i < 8; i++)
			pthread_join(ids[i], NULL);
	}
}

static void forked(void)
{
	pid_t pid;

	culprit_begin("around");
	culprit_begin("parent");
	spin(100000);
	culprit_end("parent");
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		culprit_end("around"); /* begun in the parent: must not count */
		for (int i = 0; i < 3; i++) {
			culprit_begin("child");
			spin(100000);
			culprit_end("child");
		}
		exit(0);
	}
	waitpid(pid, NULL, 0);
	culprit_end("around");
}

static void unbalanced(void)
{
	culprit_end("never begun");
	culprit_begin("a");
	culprit_begin("b");
	culprit_end("a"); /* b was not ended */
	culprit_end("a"); /* stray */
	culprit_begin("left open");
}

static void many(void)
{
	char name[32];

	for (int i = 0; i < 30000; i++) {
		snprintf(name, sizeof(name), "region %d", i % 10000);
		culprit_begin(name);
		culprit_end(name);
	}
}

static void recursive(int depth)
{
	culprit_begin("recursive");
	spin(10000);
	if (depth > 1)
		recursive(depth - 1);
	culprit_end("recursive");
}

static void switched(void)
{
	culprit_switch("one");
	for (int i = 0; i < 5; i++) {
		spin(10000);
		culprit_switch("two");
		spin(20000);
		culprit_switch("one");
	}
	culprit_end("one");
}

static void wait_a_little(void)
{
	struct timespec ts = {0, 20000000};

	culprit_begin("sleep");
	nanosleep(&ts, NULL);
	culprit_end("sleep");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "nested";

	if (strcmp(what, "nested") == 0)
		nested();
	else if (strcmp(what, "threads") == 0)
		threads(argc > 2 ? atoi(argv[2]) : 8);
	else if (strcmp(what, "fork") == 0)
		forked();
	else if (strcmp(what, "unbalanced") == 0)
		unbalanced();
	else if (strcmp(what, "many") == 0)
		many();
	else if (strcmp(what, "recursive") == 0)
		recursive(10);
	else if (strcmp(what, "deep") == 0)
		recursive(1000);
	else if (strcmp(what, "switch") == 0)
		switched();
	else if (strcmp(what, "sleep") == 0)
		wait_a_little();
	else if (strcmp(what, "write") == 0) {
		nested();
		culprit_write();
		_exit(7);
	} else if (strcmp(what, "odd-names") == 0) {
		culprit_begin("tab\there, newline\n, \\ and ,\"quotes\"");
		culprit_end("tab\there, newline\n, \\ and ,\"quotes\"");
	}
	return what[0] == 'n' ? 3 : 0; /* a status to pass on */
}
