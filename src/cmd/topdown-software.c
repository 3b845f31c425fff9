/* Without counters: what is missing, and what the kernel's own accounts say. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/util.h"
#include "cmd/feature.h"
#include "cmd/topdown.h"
#include "cmd/workload.h"

struct accounts {
	double user, system, idle, steal; /* of all CPUs, ticks */
	bool known;
};

static struct accounts machine_accounts(void)
{
	CLEANUP_FREE char *text = NULL;
	struct accounts a = {.known = false};
	double nice, iowait, irq, softirq;
	size_t size;

	if (file_read("/proc/stat", 1 << 20, &text, &size, NULL) < 0 ||
	    sscanf(text, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &a.user, &nice, &a.system, &a.idle,
		   &iowait, &irq, &softirq, &a.steal) != 8)
		return a;
	a.user += nice;
	a.system += irq + softirq;
	a.idle += iowait;
	a.known = true;
	return a;
}

static double seconds(const struct timeval *tv)
{
	return (double)tv->tv_sec + (double)tv->tv_usec / 1e6;
}

struct row {
	const char *name, *unit;
	double value, share; /* NaN: none */
};

static void show(struct topdown_job *job, const char *missing, const struct row *rows, size_t len)
{
	struct str out = {0};

	if (job->options.json) {
		json_document(&job->json, "topdown");
		json_text(&job->json, "cpu_model", job->cpu_model);
		json_text(&job->json, "formula_set", NULL);
		json_text(&job->json, "missing", missing);
		json_array(&job->json, "nodes");
		json_end_array(&job->json);
		json_null(&job->json, "cpi");
		json_array(&job->json, "cpi_stack");
		json_end_array(&job->json);
		json_array(&job->json, "software");
		for (size_t i = 0; i < len; i++) {
			json_object(&job->json, NULL);
			json_text(&job->json, "name", rows[i].name);
			json_text(&job->json, "unit", rows[i].unit);
			json_double(&job->json, "value", rows[i].value);
			json_double(&job->json, "value_share", rows[i].share);
			json_end_object(&job->json);
		}
		json_end_array(&job->json);
		json_end_object(&job->json);
		str_puts(&out, str_text(&job->json.out));
	} else if (job->options.csv) {
		str_puts(&out, "name,unit,value,value_share\n");
		for (size_t i = 0; i < len; i++) {
			str_printf(&out, "%s,%s,%.9g,", rows[i].name, rows[i].unit, rows[i].value);
			if (!isnan(rows[i].share))
				str_printf(&out, "%.6g", rows[i].share);
			str_putc(&out, '\n');
		}
	} else {
		str_printf(&out,
			   "\n  %s\n\n  No top-down tree: %s.\n  What the kernel accounts for "
			   "instead:\n\n",
			   str_text(&job->title), missing);
		for (size_t i = 0; i < len; i++) {
			str_printf(&out, "    %-28s %14.*f %-8s", rows[i].name,
				   rows[i].unit[0] == 's' ? 3 : 0, rows[i].value, rows[i].unit);
			if (!isnan(rows[i].share))
				str_printf(&out, " %5.1f%%", 100 * rows[i].share);
			while (out.len && out.data[out.len - 1] == ' ')
				out.data[--out.len] = '\0';
			str_putc(&out, '\n');
		}
	}
	cmd_write_stdout(job->self, str_text(&out), out.len);
	str_fini(&out);
}

static int command_view(struct topdown_job *job, const char *missing, struct err *err)
{
	struct accounts before = machine_accounts(), after;
	struct workload work;
	sigset_t set;
	double wall, user, sys, ticks = (double)sysconf(_SC_CLK_TCK);
	int r;

	r = workload_start(&work, job->argv, err);
	if (r < 0) {
		job->exit_status = workload_exec_status(r);
		return r;
	}
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL); /* the command has it too, and its end is awaited */
	workload_reap(&work, true);
	after = machine_accounts();
	wall = (double)(work.end_ns - work.start_ns) / 1e9;
	user = seconds(&work.usage.ru_utime);
	sys = seconds(&work.usage.ru_stime);
	{
		struct row rows[] = {
			{"elapsed", "s", wall, NAN},
			{"on CPU, user", "s", user, user / wall},
			{"on CPU, kernel", "s", sys, sys / wall},
			{"off CPU (of one thread)", "s", MAX(wall - user - sys, 0.0),
			 MAX(1 - (user + sys) / wall, 0.0)},
			{"minor page faults", "", (double)work.usage.ru_minflt, NAN},
			{"major page faults", "", (double)work.usage.ru_majflt, NAN},
			{"switches, waiting", "", (double)work.usage.ru_nvcsw, NAN},
			{"switches, preempted", "", (double)work.usage.ru_nivcsw, NAN},
			{"stolen by the host", "s", (after.steal - before.steal) / ticks, NAN},
		};

		show(job, missing, rows, ARRAY_LEN(rows) - (before.known && after.known ? 0 : 1));
	}
	job->exit_status =
		WIFSIGNALED(work.status) ? 128 + WTERMSIG(work.status) : WEXITSTATUS(work.status);
	return 0;
}

/* The whole machine, for the time asked for or until Ctrl-C. */
static int machine_view(struct topdown_job *job, const char *missing, struct err *err)
{
	uint64_t ns = job->options.duration_ns ? job->options.duration_ns : NSEC_PER_SEC;
	struct timespec wait = {(time_t)(ns / NSEC_PER_SEC), (long)(ns % NSEC_PER_SEC)};
	struct accounts a = machine_accounts(), b;
	double all, ticks = (double)sysconf(_SC_CLK_TCK);

	nanosleep(&wait, NULL);
	b = machine_accounts();
	if (!a.known || !b.known)
		return err_set(err, -ENOENT, "%s, and /proc/stat cannot be read", missing);
	all = MAX(b.user + b.system + b.idle + b.steal - a.user - a.system - a.idle - a.steal, 1.0);
	{
		struct row rows[] = {
			{"on CPU, user", "s", (b.user - a.user) / ticks, (b.user - a.user) / all},
			{"on CPU, kernel", "s", (b.system - a.system) / ticks,
			 (b.system - a.system) / all},
			{"idle", "s", (b.idle - a.idle) / ticks, (b.idle - a.idle) / all},
			{"stolen by the host", "s", (b.steal - a.steal) / ticks,
			 (b.steal - a.steal) / all},
		};

		show(job, missing, rows, ARRAY_LEN(rows));
	}
	return 0;
}

int topdown_software(struct topdown_job *job, const char *missing, struct err *err)
{
	char why[ERR_TEXT_BYTES];

	snprintf(why, sizeof(why), "%s", missing); /* it may stand in err */
	if (job->options.explain || job->options.nodes)
		return err_set(err, -ENOENT, "%.900s", why);
	if (job->argv)
		return command_view(job, why, err);
	if (job->options.all_cpus)
		return machine_view(job, why, err);
	return err_set(err, -ENOENT, "%.900s", why);
}
