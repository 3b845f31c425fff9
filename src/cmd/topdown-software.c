/*
 * Without counters: what the kernel accounts for. Time on the CPU in user mode and in the kernel,
 * time runnable but waiting for a CPU, time off it, faults, switches, and what the host took
 * ("stolen"). Of a command from wait4(2), of processes and intervals from
 * /proc/PID/{stat,schedstat, task/TID/status}, of the machine from /proc/stat and /proc/vmstat.
 */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/util.h"
#include "cmd/feature.h"
#include "cmd/topdown-software.h"

#define ROWS_MAX 16

struct view_row {
	const char *name, *unit;
	double value, share, error; /* NaN: none */
};

struct view {
	struct view_row rows[ROWS_MAX];
	size_t len;
};

struct watch {
	struct topdown_job *job;
	const char *missing;
	struct workload work;
	char **argv;
	int signals;
	double waited; /* for a CPU, by the command's first thread, s; NaN: not known */
};

/* --- showing --------------------------------------------------------------------------------- */

static void add_row(struct view *view, const char *name, const char *unit, double value,
		    double share)
{
	if (!isnan(value) && view->len < ROWS_MAX)
		view->rows[view->len++] = (struct view_row){name, unit, value, share, NAN};
}

static struct view make_view(const struct watch *w, const struct accounts *a)
{
	bool machine = w->job->options.all_cpus;
	double on = a->user + a->system;
	/* Of one thread; of the machine, of all its CPUs. */
	double whole = machine ? on + a->idle + a->steal : a->wall;
	struct view view = {.len = 0};

	whole = whole > 0 ? whole : NAN;
	add_row(&view, "elapsed", "s", a->wall, NAN);
	add_row(&view, "on CPU, user", "s", a->user, a->user / whole);
	add_row(&view, "on CPU, kernel", "s", a->system, a->system / whole);
	if (machine)
		add_row(&view, "idle", "s", a->idle, a->idle / whole);
	else
		add_row(&view, "off CPU (of one thread)", "s", MAX(a->wall - on, 0.0),
			MAX(1 - on / whole, 0.0));
	add_row(&view, "waiting for a CPU", "s", a->waiting, a->waiting / whole);
	add_row(&view, "minor page faults", "", a->minor, NAN);
	add_row(&view, "major page faults", "", a->major, NAN);
	add_row(&view, "switches", "", a->switches, NAN);
	add_row(&view, "switches, waiting", "", a->voluntary, NAN);
	add_row(&view, "switches, preempted", "", a->preempted, NAN);
	add_row(&view, "stolen by the host", "s", a->steal, machine ? a->steal / whole : NAN);
	return view;
}

/* The mean of runs, and its standard error; shares of the means. */
static void mean_of(const struct watch *w, const struct accounts *runs, size_t count,
		    struct view *ret)
{
	struct accounts mean;
	double *m = (double *)&mean;
	size_t words = sizeof(mean) / sizeof(double);
	struct view one;

	for (size_t i = 0; i < words; i++) {
		m[i] = 0;
		for (size_t k = 0; k < count; k++)
			m[i] += ((const double *)&runs[k])[i] / (double)count;
	}
	*ret = make_view(w, &mean);
	for (size_t i = 0; count > 1 && i < ret->len; i++) {
		double squares = 0;

		for (size_t k = 0; k < count; k++) {
			one = make_view(w, &runs[k]);
			squares += (one.rows[i].value - ret->rows[i].value) *
				   (one.rows[i].value - ret->rows[i].value);
		}
		ret->rows[i].error = sqrt(squares / (double)(count - 1) / (double)count);
	}
}

static void json_view(struct json *json, const char *key, const struct view *view)
{
	json_array(json, key);
	for (size_t i = 0; i < view->len; i++) {
		json_object(json, NULL);
		json_text(json, "name", view->rows[i].name);
		json_text(json, "unit", view->rows[i].unit);
		json_double(json, "value", view->rows[i].value);
		json_double(json, "stderr", view->rows[i].error);
		json_double(json, "value_share", view->rows[i].share);
		json_end_object(json);
	}
	json_end_array(json);
}

static void json_head(struct topdown_job *job, const char *missing)
{
	struct json *json = &job->json;

	json_document(json, "topdown");
	json_text(json, "cpu_model", job->cpu_model);
	json_text(json, "formula_set", NULL);
	json_text(json, "missing", missing);
	json_u64(json, "repeats", MAX(job->options.repeat, 1u));
	json_array(json, "nodes");
	json_end_array(json);
	json_null(json, "cpi");
	json_array(json, "cpi_stack");
	json_end_array(json);
	if (job->options.interval_ns)
		json_array(json, "intervals");
}

static void show_json(struct topdown_job *job, const char *missing, const struct view *a,
		      const struct view *b)
{
	if (!job->header_done)
		json_head(job, missing);
	if (job->options.interval_ns) {
		json_object(&job->json, NULL);
		json_u64(&job->json, "time_ns", job->time_ns);
	}
	json_view(&job->json, "software", a);
	if (b)
		json_view(&job->json, "software_b", b);
	if (job->options.interval_ns)
		json_end_object(&job->json);
}

static void csv_view(const struct topdown_job *job, const struct view *view, const char *side,
		     struct str *out)
{
	for (size_t i = 0; i < view->len; i++) {
		const struct view_row *row = &view->rows[i];

		str_printf(out, "%llu,%s%s%s,%s,%.9g,", (unsigned long long)job->time_ns,
			   strchr(row->name, ',') ? "\"" : "", row->name,
			   strchr(row->name, ',') ? "\"" : "", row->unit, row->value);
		if (!isnan(row->error))
			str_printf(out, "%.6g", row->error);
		str_putc(out, ',');
		if (!isnan(row->share))
			str_printf(out, "%.6g", row->share);
		str_printf(out, ",%s\n", side);
	}
}

static void text_value(const struct view_row *row, struct str *out)
{
	int digits = row->unit[0] == 's' ? 3 : 0;

	str_printf(out, " %14.*f %-1s", digits, row->value, row->unit);
	if (!isnan(row->error))
		str_printf(out, " +- %.*f", digits, row->error);
	if (!isnan(row->share))
		str_printf(out, " %7.1f%%", 100 * row->share);
}

static void text_view(const struct topdown_job *job, const char *missing, const struct view *a,
		      const struct view *b, struct str *out)
{
	if (!job->header_done && job->side_count == 2)
		str_printf(out, "\n  A: %s\n  B: %s\n", str_text(&job->sides[0].title),
			   str_text(&job->sides[1].title));
	else if (!job->header_done)
		str_printf(out, "\n  %s\n", str_text(&job->sides[0].title));
	if (!job->header_done)
		str_printf(out,
			   "\n  No top-down tree: %s.\n  What the kernel accounts for instead:\n",
			   missing);
	if (job->options.interval_ns)
		str_printf(out, "\n  at %.3f s\n", (double)job->time_ns / 1e9);
	str_putc(out, '\n');
	for (size_t i = 0; i < a->len; i++) {
		str_printf(out, "    %-28s", a->rows[i].name);
		text_value(&a->rows[i], out);
		if (b && i < b->len) {
			str_puts(out, "   |");
			text_value(&b->rows[i], out);
		}
		while (out->len && out->data[out->len - 1] == ' ')
			out->data[--out->len] = '\0';
		str_putc(out, '\n');
	}
}

static void show(struct topdown_job *job, const char *missing, const struct view *a,
		 const struct view *b)
{
	struct str out = {0};

	if (job->options.json) {
		show_json(job, missing, a, b);
	} else if (job->options.csv) {
		if (!job->header_done)
			str_puts(&out, "time_ns,name,unit,value,stderr,value_share,side\n");
		csv_view(job, a, b ? "a" : "", &out);
		if (b)
			csv_view(job, b, "b", &out);
	} else {
		text_view(job, missing, a, b, &out);
	}
	job->header_done = true;
	if (out.len)
		cmd_write_stdout(job->self, str_text(&out), out.len);
	str_fini(&out);
}

/* --- watching -------------------------------------------------------------------------------- */

static bool is_over(const struct watch *w, bool interrupted)
{
	return w->work.pid > 0 ? w->work.ended : interrupted || topdown_target_ended(w->job);
}

static bool read_signals(struct watch *w)
{
	struct signalfd_siginfo info;
	bool interrupted = false;

	while (read(w->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		interrupted = true;
		if (w->work.pid > 0 && info.ssi_signo != SIGINT) /* the terminal tells it of ^C */
			workload_kill(&w->work, (int)info.ssi_signo);
	}
	return interrupted;
}

/* Reaps the command. As long as it is not reaped the kernel still tells how long it had waited. */
static void reap(struct watch *w, bool block)
{
	CLEANUP_FREE char *text = NULL;
	siginfo_t info = {0};
	double on, waited;
	char path[64];
	size_t size;

	if (w->work.pid == 0 || w->work.ended)
		return;
	if (waitid(P_PID, (id_t)w->work.pid, &info, WEXITED | WNOWAIT | (block ? 0 : WNOHANG)) ==
		    0 &&
	    info.si_pid == w->work.pid) {
		snprintf(path, sizeof(path), "/proc/%d/schedstat", w->work.pid);
		if (file_read(path, 256, &text, &size, NULL) == 0 &&
		    sscanf(text, "%lf %lf", &on, &waited) == 2)
			w->waited = waited / 1e9;
	}
	workload_reap(&w->work, block);
}

/* Until the command ends, the processes do, the time is over, or Ctrl-C; with a view an interval.
 */
static void wait_for_end(struct watch *w, struct accounts *last)
{
	const struct topdown_options *o = &w->job->options;
	uint64_t start = clock_monotonic_ns(), shown = 0;
	uint64_t next = o->interval_ns ? start + o->interval_ns : UINT64_MAX;
	uint64_t stop = o->duration_ns ? start + o->duration_ns : UINT64_MAX;
	struct accounts before = *last;
	bool interrupted = false, stopping = false;

	reap(w, false);
	while (!stopping && !is_over(w, interrupted)) {
		uint64_t now = clock_monotonic_ns(), due = MIN(next, stop), left;
		struct pollfd fd = {w->signals, POLLIN, 0};
		struct timespec wait;

		if (w->work.pid == 0)
			due = MIN(due, now + 100 * NSEC_PER_MSEC);
		left = due > now ? MIN(due - now, 3600 * NSEC_PER_SEC) : 0;
		wait = (struct timespec){(time_t)(left / NSEC_PER_SEC),
					 (long)(left % NSEC_PER_SEC)};
		if (ppoll(&fd, 1, &wait, NULL) > 0)
			interrupted |= read_signals(w);
		now = clock_monotonic_ns();
		w->job->time_ns = now - start;
		if (now >= next) {
			struct accounts at = accounts_now(w->job, w->work.pid),
					spent = accounts_between(&before, &at);
			struct view view = make_view(w, &spent);

			show(w->job, w->missing, &view, NULL);
			before = at;
			next = now + o->interval_ns;
			stopping |= o->interval_count && ++shown >= o->interval_count;
		}
		stopping |= now >= stop;
		if (w->work.pid == 0 && !stopping)
			*last = accounts_now(w->job, w->work.pid); /* while the processes live */
		reap(w, false);
	}
	if (w->work.pid > 0 && !w->work.ended) {
		workload_kill(&w->work, SIGTERM);
		w->work.stopped = true;
		reap(w, true);
	}
}

static void note_status(struct topdown_job *job, const struct workload *work)
{
	int status = WIFSIGNALED(work->status) ? 128 + WTERMSIG(work->status)
					       : WEXITSTATUS(work->status);

	if (!work->stopped && status)
		job->exit_status = status;
}

/* One run of a command, or one watch of what runs. */
static int watch_once(struct watch *w, struct accounts *ret, struct err *err)
{
	struct accounts start, last, end;
	bool command = w->argv && !w->job->options.all_cpus && !w->job->options.pids;
	int r = 0;

	w->work = (struct workload){.release = -1};
	w->waited = NAN;
	if (!command)
		start = accounts_now(w->job, w->work.pid);
	if (w->argv)
		r = workload_start(&w->work, w->argv, err);
	if (r < 0) {
		w->job->exit_status = workload_exec_status(r);
		return r;
	}
	if (command)
		start = accounts_now(w->job, w->work.pid);
	last = start;
	wait_for_end(w, &last);
	end = command || topdown_target_ended(w->job) ? last : accounts_now(w->job, w->work.pid);
	if (w->argv)
		note_status(w->job, &w->work);
	if (command) {
		struct accounts machine = unknown_accounts();

		accounts_of_machine(&machine);
		*ret = accounts_of_command(&w->work, w->waited,
					   MAX(machine.steal - start.steal, 0.0));
	} else {
		end.wall = (double)clock_monotonic_ns() / 1e9;
		*ret = accounts_between(&start, &end);
	}
	return 0;
}

static int watch_side(struct watch *w, struct topdown_side *side, struct view *ret, struct err *err)
{
	size_t repeats = MAX(w->job->options.repeat, 1u), done = 0;
	CLEANUP_FREE struct accounts *runs = calloc(repeats, sizeof(*runs));
	int r = runs ? 0 : err_set(err, -ENOMEM, "out of memory");

	w->argv = side->argv;
	topdown_target_title(w->job, side);
	while (r == 0 && done < repeats) {
		r = watch_once(w, &runs[done], err);
		done++;
	}
	side->runs = (unsigned)done;
	if (r == 0)
		mean_of(w, runs, done, ret);
	return r;
}

static int watch_all(struct topdown_job *job, const char *missing, struct err *err)
{
	struct watch w = {.job = job, .missing = missing, .signals = -1};
	struct view views[2] = {{.len = 0}};
	sigset_t set;
	int r = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	w.signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	for (unsigned s = 0; s < job->side_count && r == 0; s++)
		r = watch_side(&w, &job->sides[s], &views[s], err);
	close(w.signals);
	if (r == 0 && (!job->options.interval_ns || !job->header_done))
		show(job, missing, &views[0], job->side_count == 2 ? &views[1] : NULL);
	return r;
}

/* The processes of -p exist? */
static int check_processes(const struct topdown_job *job, struct err *err)
{
	CLEANUP_FREE char *list = job->options.pids ? strdup(job->options.pids) : NULL;
	char *save = NULL;

	for (char *word = list ? strtok_r(list, ",", &save) : NULL; word;
	     word = strtok_r(NULL, ",", &save)) {
		unsigned long long pid;

		if (parse_u64(word, 10, &pid) < 0 || pid == 0 || pid > INT32_MAX)
			return err_set(err, -EINVAL, "-p: '%s' is not a process number", word);
		if (kill((pid_t)pid, 0) < 0 && errno == ESRCH)
			return err_set(err, -ESRCH, "no process %llu", pid);
	}
	return 0;
}

int topdown_software(struct topdown_job *job, const char *missing, struct err *err)
{
	struct topdown_record record = {0};
	char why[ERR_TEXT_BYTES];
	struct str line = {0};
	int r;

	snprintf(why, sizeof(why), "%s", missing); /* it may stand in err */
	if (job->options.explain || job->options.nodes)
		return err_set(err, -ENOENT, "%.900s", why);
	r = check_processes(job, err);
	if (r == 0)
		r = watch_all(job, why, err);
	if (r < 0)
		return r;
	if (job->options.json)
		return topdown_show_end(job) == EXIT_DONE ? 0 : -EPIPE;
	if (!job->options.csv && !job->options.interval_ns && job->side_count == 1 &&
	    topdown_record_line(job, &job->sides[0], &record) == 0) {
		str_puts(&line, "\n  Find the code: ");
		topdown_record_text(&record, &line);
		str_putc(&line, '\n');
		cmd_write_stdout(job->self, str_text(&line), line.len);
	}
	topdown_record_fini(&record);
	str_fini(&line);
	return 0;
}
