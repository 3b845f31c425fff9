#include "harness/tap.h"

#include <fnmatch.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static struct tap_test *first_test, **last_test = &first_test;
static unsigned expects, failures;
static char skip_reason[256];
static char own_dir[] = "/tmp/culprit-test-XXXXXX";
static pid_t dir_owner; /* 0: there is none; forked children leave it alone */

void tap_register(struct tap_test *test)
{
	*last_test = test;
	last_test = &test->next;
}

bool tap_expect(bool ok, const char *file, int line, const char *fmt, ...)
{
	va_list args;

	expects++;
	if (ok)
		return true;
	failures++;
	printf("# %s:%d: ", file, line);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
	return false;
}

void tap_skip(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(skip_reason, sizeof(skip_reason), fmt, args);
	va_end(args);
}

const char *tap_data_dir(void)
{
	const char *dir = getenv("CULPRIT_TEST_DATA");

	return dir && *dir && access(dir, R_OK | X_OK) == 0 ? dir : NULL;
}

const char *tap_data(const char *name)
{
	static char paths[4][4096];
	static unsigned turn;
	char *path = paths[turn++ % 4];

	if (!tap_data_dir())
		return NULL;
	snprintf(path, sizeof(paths[0]), "%s/%s", tap_data_dir(), name);
	return access(path, R_OK) == 0 ? path : NULL;
}

/* Async-signal-safe. */
__attribute__((destructor)) static void remove_dir(void)
{
	pid_t child;

	if (dir_owner != getpid())
		return;
	child = _Fork();
	if (child == 0) {
		execl("/bin/rm", "rm", "-rf", own_dir, (char *)NULL);
		_exit(127);
	}
	if (child > 0)
		waitpid(child, NULL, 0);
	dir_owner = 0;
}

static void ended_by(int signal)
{
	remove_dir();
	raise(signal); /* handled once: now it does what it does */
}

const char *tap_dir(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGABRT, SIGSEGV, SIGBUS};
	struct sigaction action = {.sa_handler = ended_by, .sa_flags = (int)SA_RESETHAND}, old;

	if (dir_owner)
		return own_dir;
	if (!mkdtemp(own_dir))
		abort();
	dir_owner = getpid();
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		/* what a sanitizer or a test handles stays with it */
		if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
			sigaction(signals[i], &action, NULL);
	return own_dir;
}

int tap_shell(const char *fmt, ...)
{
	char command[8192];
	va_list args;

	va_start(args, fmt);
	vsnprintf(command, sizeof(command), fmt, args);
	va_end(args);
	return system(command); /* NOLINT(cert-env33-c): tests run the tools of the machine */
}

static bool selected(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (fnmatch(argv[i], name, 0) == 0)
			return true;
	return argc <= 1;
}

int main(int argc, char **argv)
{
	unsigned number = 0, failed = 0, count = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (struct tap_test *test = first_test; test; test = test->next)
		count += selected(test->name, argc, argv);
	printf("TAP version 13\n1..%u\n", count);
	for (struct tap_test *test = first_test; test; test = test->next) {
		if (!selected(test->name, argc, argv))
			continue;
		expects = failures = 0;
		skip_reason[0] = '\0';
		test->run();
		if (expects == 0 && !skip_reason[0]) {
			printf("# %s expects nothing\n", test->name);
			failures = 1;
		}
		failed += failures > 0;
		if (failures > 0)
			printf("not ok %u - %s\n", ++number, test->name);
		else if (skip_reason[0])
			printf("ok %u - %s # SKIP %s\n", ++number, test->name, skip_reason);
		else
			printf("ok %u - %s\n", ++number, test->name);
	}
	return failed > 0;
}
