/* The journal of knobs on a made-up machine: nothing that was changed stays changed. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "fake-root.h"
#include "harness/tap.h"
#include "latency/journal.h"

#define PERIOD    "/sys/kernel/tracing/osnoise/period_us"
#define SWITCHES  "/sys/kernel/tracing/osnoise/options"
#define CLOCK     "/sys/kernel/tracing/trace_clock"
#define INSTANCES "/sys/kernel/tracing/instances/"
#define BOOT_ID   "/proc/sys/kernel/random/boot_id"

static void machine(struct fake_root *root)
{
	unsetenv("XDG_RUNTIME_DIR"); /* also for users other than root the folder is below the root
				      */
	fake_root_make(root);
	fake_root_file(root, BOOT_ID, "0c0ffee0-0000-4000-8000-000000000001\n");
	fake_root_file(root, PERIOD, "1000000\n");
	fake_root_file(root, SWITCHES, "DEFAULTS OSNOISE_WORKLOAD NO_PANIC_ON_STOP\n");
	fake_root_file(root, CLOCK, "[local] global mono\n");
	fake_root_file(root, INSTANCES ".keep", "");
}

static const char *value(const struct fake_root *root, const char *path)
{
	static char texts[4][256];
	static unsigned next;
	char *text = texts[next++ % 4];
	char *data;
	size_t size;

	if (host_read(&root->host, path, 255, &data, &size, NULL) < 0)
		return "(missing)";
	snprintf(text, 256, "%.*s", (int)strcspn(data, "\n"), data);
	free(data);
	return text;
}

static bool exists(const struct fake_root *root, const char *path)
{
	char full[512];

	snprintf(full, sizeof(full), "%s%s", root->path, path);
	return access(full, F_OK) == 0;
}

/* How many journals stand in the folder. */
static int journals(const struct fake_root *root)
{
	char command[512];
	FILE *pipe;
	int count = -1;

	snprintf(command, sizeof(command), "ls %s/run/culprit 2>/dev/null | grep -c journal",
		 root->path);
	pipe = popen(command, "r");
	if (!pipe || fscanf(pipe, "%d", &count) != 1)
		count = -1;
	if (pipe)
		pclose(pipe);
	return count;
}

/* Runs fn in a child and kills it the hard way, or by signo, or lets it exit (0). */
static void in_child(void (*fn)(struct journal *journal), const struct fake_root *root, int signo,
		     bool guarded)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct journal *journal;

		if (freopen("/dev/null", "w", stdout) == NULL ||
		    journal_new(root->path, &journal) < 0)
			_exit(3);
		if (signo) /* whoever started us may ignore it, as nohup does */
			signal(signo, SIG_DFL);
		if (guarded)
			journal_guard();
		fn(journal);
		if (signo)
			raise(signo);
		exit(0);
	}
	EXPECT(pid > 0 && waitpid(pid, &status, 0) == pid);
	EXPECT(signo ? WIFSIGNALED(status) && WTERMSIG(status) == signo
		     : WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void change_all(struct journal *journal)
{
	if (journal_set(journal, PERIOD, "500000", NULL) < 0 ||
	    journal_set_option(journal, SWITCHES, "OSNOISE_WORKLOAD", false, NULL) < 0 ||
	    journal_make_instance(journal, INSTANCES "culprit-0c0ffee0-1", NULL) < 0)
		_exit(4);
}

TEST(what_was_set_is_put_back)
{
	struct fake_root root;
	struct journal *journal;
	struct err err = {0};

	machine(&root);
	ASSERT(journal_new(root.path, &journal) == 0);
	EXPECT_INT(journal_set(journal, PERIOD, "500000", &err), 0);
	EXPECT_STR(value(&root, PERIOD), "500000");
	EXPECT_INT(journal_set(journal, PERIOD, "250000", &err), 0);
	EXPECT_INT(journal_set(journal, CLOCK, "mono", &err), 0);
	EXPECT_INT(journal_set_option(journal, SWITCHES, "OSNOISE_WORKLOAD", false, &err), 0);
	EXPECT_STR(value(&root, SWITCHES), "NO_OSNOISE_WORKLOAD");
	EXPECT_INT(journal_make_instance(journal, INSTANCES "one", &err), 0);
	EXPECT(exists(&root, INSTANCES "one"));
	EXPECT_INT(journals(&root), 1);
	EXPECT_INT(journal_restore(journal, &err), 0);
	EXPECT_STR(value(&root, PERIOD), "1000000");
	EXPECT_STR(value(&root, CLOCK), "local");
	EXPECT_STR(value(&root, SWITCHES), "OSNOISE_WORKLOAD");
	EXPECT(!exists(&root, INSTANCES "one"));
	EXPECT_INT(journals(&root), 0);
	journal_free(journal);
	fake_root_remove(&root);
}

TEST(nothing_to_change_leaves_nothing)
{
	struct fake_root root;
	struct journal *journal;

	machine(&root);
	ASSERT(journal_new(root.path, &journal) == 0);
	EXPECT_INT(journal_set(journal, PERIOD, "1000000", NULL), 0);
	EXPECT_INT(journal_set(journal, CLOCK, "local", NULL), 0);
	EXPECT_INT(journal_set_option(journal, SWITCHES, "PANIC_ON_STOP", false, NULL), 0);
	EXPECT_INT(journal_set_option(journal, SWITCHES, "NEWER_SWITCH", true, NULL), -ENOENT);
	EXPECT_INT(journal_set(journal, "/sys/kernel/tracing/nothing", "1", NULL), -ENOENT);
	EXPECT(!exists(&root, "/run/culprit"));
	journal_free(journal);
	fake_root_remove(&root);
}

TEST(what_others_changed_since_is_theirs)
{
	struct fake_root root;
	struct journal *journal;

	machine(&root);
	ASSERT(journal_new(root.path, &journal) == 0);
	EXPECT_INT(journal_set(journal, PERIOD, "500000", NULL), 0);
	fake_root_file(&root, PERIOD, "777\n");
	journal_free(journal);
	EXPECT_STR(value(&root, PERIOD), "777");
	EXPECT_INT(journals(&root), 0);
	fake_root_remove(&root);
}

TEST(idle_states_and_dma_latency)
{
	struct fake_root root;
	struct journal *journal;
	struct cpuset cpus = {0};
	char path[128];

	machine(&root);
	fake_root_file(&root, "/dev/cpu_dma_latency", "");
	ASSERT(journal_new(root.path, &journal) == 0);
	cpuset_add(&cpus, 1);
	EXPECT_INT(journal_limit_idle(journal, &cpus, 0, NULL), -ENOENT);
	for (int state = 0; state < 3; state++) {
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu1/cpuidle/state%d/disable",
			 state);
		fake_root_file(&root, path, state == 2 ? "1\n" : "0\n");
	}
	EXPECT_INT(journal_limit_idle(journal, &cpus, 0, NULL), 0);
	EXPECT_STR(value(&root, "/sys/devices/system/cpu/cpu1/cpuidle/state0/disable"), "0");
	EXPECT_STR(value(&root, "/sys/devices/system/cpu/cpu1/cpuidle/state1/disable"), "1");
	EXPECT_INT(journal_hold_dma_latency(journal, 7, NULL), 0);
	EXPECT(memcmp(value(&root, "/dev/cpu_dma_latency"), "\7", 2) == 0);
	journal_free(journal);
	EXPECT_STR(value(&root, "/sys/devices/system/cpu/cpu1/cpuidle/state1/disable"), "0");
	EXPECT_STR(value(&root, "/sys/devices/system/cpu/cpu1/cpuidle/state2/disable"), "1");
	fake_root_remove(&root);
}

TEST(the_next_start_repairs_after_a_kill)
{
	struct fake_root root;
	struct journal_report report;
	struct journal *journal;

	machine(&root);
	/* One that lives meanwhile is left alone. */
	ASSERT(journal_new(root.path, &journal) == 0);
	EXPECT_INT(journal_make_instance(journal, INSTANCES "alive", NULL), 0);
	in_child(change_all, &root, SIGKILL, true);
	EXPECT_STR(value(&root, PERIOD), "500000");
	EXPECT_INT(journals(&root), 2);

	EXPECT_INT(journal_repair(root.path, JOURNAL_DRY, &report, NULL), 0);
	EXPECT_INT(report.files, 1);
	EXPECT_INT(report.restored, 3);
	EXPECT_STR(value(&root, PERIOD), "500000");
	journal_report_fini(&report);

	EXPECT_INT(journal_repair(root.path, 0, &report, NULL), 0);
	EXPECT_INT(report.files, 1);
	EXPECT_INT(report.restored, 3);
	EXPECT_INT(report.failed, 0);
	EXPECT(strstr(str_text(&report.text), PERIOD ": 1000000 again\n") != NULL);
	EXPECT_STR(value(&root, PERIOD), "1000000");
	EXPECT_STR(value(&root, SWITCHES), "OSNOISE_WORKLOAD");
	EXPECT(!exists(&root, INSTANCES "culprit-0c0ffee0-1"));
	EXPECT(exists(&root, INSTANCES "alive"));
	EXPECT_INT(journals(&root), 1);
	journal_report_fini(&report);
	journal_free(journal);
	fake_root_remove(&root);
}

TEST(a_repair_keeps_what_others_changed)
{
	struct fake_root root;
	struct journal_report report;

	machine(&root);
	in_child(change_all, &root, SIGKILL, false);
	fake_root_file(&root, PERIOD, "777\n");
	EXPECT_INT(journal_repair(root.path, 0, &report, NULL), 0);
	EXPECT_INT(report.kept, 1);
	EXPECT_INT(report.restored, 2);
	EXPECT_STR(value(&root, PERIOD), "777");
	EXPECT_INT(journals(&root), 0);
	journal_report_fini(&report);
	fake_root_remove(&root);
}

TEST(another_boot_has_forgotten_everything)
{
	struct fake_root root;
	struct journal_report report;

	machine(&root);
	in_child(change_all, &root, SIGKILL, false);
	fake_root_file(&root, BOOT_ID, "0c0ffee0-0000-4000-8000-000000000002\n");
	EXPECT_INT(journal_repair(root.path, 0, &report, NULL), 0);
	EXPECT_INT(report.files, 0);
	EXPECT_STR(value(&root, PERIOD), "500000");
	EXPECT_INT(journals(&root), 0);
	journal_report_fini(&report);
	fake_root_remove(&root);
}

TEST(signals_and_exit_restore_when_guarded)
{
	static const int signals[] = {0, SIGTERM, SIGINT, SIGHUP, SIGQUIT};
	struct fake_root root;

	machine(&root);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		in_child(change_all, &root, signals[i], true);
		EXPECT_STR(value(&root, PERIOD), "1000000");
		EXPECT(!exists(&root, INSTANCES "culprit-0c0ffee0-1"));
		EXPECT_INT(journals(&root), 0);
		fake_root_file(&root, SWITCHES, "DEFAULTS OSNOISE_WORKLOAD NO_PANIC_ON_STOP\n");
	}
	fake_root_remove(&root);
}

TEST(instances_that_nobody_wrote_down)
{
	struct fake_root root;
	struct journal_report report;
	char mine[128];

	machine(&root);
	snprintf(mine, sizeof(mine), INSTANCES "culprit-0c0ffee0-%d", (int)getpid());
	fake_root_file(&root, "/proc/12/comm", "bash\n");
	for (int i = 0; i < 4; i++) {
		const char *const paths[] = {INSTANCES "culprit-0c0ffee0-4711-flight",
					     INSTANCES "timerlat_top", INSTANCES "osnoise_hist",
					     INSTANCES "somebody"};
		char full[512];

		snprintf(full, sizeof(full), "%s%s", root.path, paths[i]);
		EXPECT_INT(mkdir(full, 0700), 0);
	}
	EXPECT_INT(journal_repair(root.path, 0, &report, NULL), 0);
	EXPECT_INT(report.instances, 1);
	journal_report_fini(&report);
	EXPECT(exists(&root, INSTANCES "timerlat_top"));
	fake_root_file(&root, "/proc/13/comm", "rtla\n"); /* it runs: leave it alone */
	EXPECT_INT(journal_repair(root.path, JOURNAL_RTLA, &report, NULL), 0);
	EXPECT_INT(report.instances, 0);
	journal_report_fini(&report);
	fake_root_file(&root, "/proc/13/comm", "timerlat/0\n"); /* a kernel thread */
	EXPECT_INT(journal_repair(root.path, JOURNAL_RTLA, &report, NULL), 0);
	EXPECT_INT(report.instances, 2);
	journal_report_fini(&report);
	EXPECT(exists(&root, INSTANCES "somebody"));
	EXPECT(!exists(&root, INSTANCES "timerlat_top"));
	fake_root_remove(&root);
}

TEST(damaged_and_foreign_journals)
{
	struct fake_root root;
	struct journal_report report;
	char full[512];

	machine(&root);
	fake_root_file(&root, "/etc/target", "old\n");
	fake_root_file(&root, "/run/culprit/1-0.journal",
		       "culprit-journal 1 0c0ffee0-0000-4000-8000-000000000001 1 1\n"
		       "value " PERIOD " 5 1000000\n"
		       "value /etc/target evil old\n"
		       "value /proc/sys/../../etc/target evil old\n"
		       "value\nvalue x\nnonsense %zz\n"
		       "value " CLOCK " glo%62al local\n"
		       "value " PERIOD " 6 1000000");
	fake_root_file(&root, "/run/culprit/2-0.journal", "");
	snprintf(full, sizeof(full), "%s/run/culprit", root.path);
	EXPECT_INT(chmod(full, 0777), 0);
	EXPECT_INT(journal_repair(root.path, 0, &report, NULL), -EPERM);
	EXPECT_STR(value(&root, PERIOD), "1000000");
	journal_report_fini(&report);
	EXPECT_INT(chmod(full, 0700), 0);
	EXPECT_INT(journal_repair(root.path, 0, &report, NULL), 0);
	EXPECT_INT(report.restored, 2);
	EXPECT_STR(value(&root, "/etc/target"), "old");
	EXPECT_STR(value(&root, PERIOD), "5"); /* the torn last line was never acted upon */
	EXPECT_STR(value(&root, CLOCK), "global");
	EXPECT_INT(journals(&root), 0);
	journal_report_fini(&report);
	fake_root_remove(&root);
}

static void busy(void *arg)
{
	*(int *)arg += 1;
}

TEST(what_keeps_things_busy_is_closed_first)
{
	struct fake_root root;
	struct journal *journal, *second;
	int closed = 0;

	machine(&root);
	ASSERT(journal_new(root.path, &journal) == 0 && journal_new(root.path, &second) == 0);
	EXPECT_INT(journal_lock(journal, "/sys/kernel/tracing", NULL), 0);
	EXPECT_INT(journal_lock(second, "/sys/kernel/tracing", NULL), -EBUSY);
	journal_on_restore(journal, busy, &closed);
	EXPECT_INT(journal_restore(journal, NULL), 0);
	EXPECT_INT(journal_restore(journal, NULL), 0);
	EXPECT_INT(closed, 1);
	EXPECT_INT(journal_lock(second, "/sys/kernel/tracing", NULL), 0);
	journal_free(second);
	journal_free(journal);
	fake_root_remove(&root);
}
