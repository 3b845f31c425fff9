/* What record does before anything is opened for good: options against each other, events, targets.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"
#include "base/util.h"
#include "cmd/record.h"
#include "sample/explain.h"

#define DEFAULT_HZ        4000
#define PRECISE_MAX       3
#define TRACEPOINT_PERIOD 1

static const struct host this_host = {.root = ""};

static int check_options(const struct record_job *job, struct err *err)
{
	const struct record_options *options = &job->options;
	bool processes = options->pids.len > 0 || options->tids.len > 0 || options->user;

	if (options->period > 0 && (options->frequency_hz > 0 || options->frequency_max))
		return err_set(
			err, -EINVAL,
			"--freq and --count exclude each other: a frequency, or every N events");
	if (options->system_wide && processes)
		return err_set(err, -EINVAL,
			       "--all-cpus records every process: leave out --pid, --tid and "
			       "--uid, or --all-cpus");
	if (job->has_command && processes)
		return err_set(err, -EINVAL, "either a command or --pid, --tid, --uid, not both");
	if (strcmp(options->output, "-") == 0)
		return err_set(err, -EINVAL,
			       "--output -: a recording is a file, not a pipe; give a name");
	return 0;
}

/* All processes whose effective user is uid. */
static int add_user_processes(struct record_ids *pids, uid_t uid, struct err *err)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	struct stat st;
	int r = 0;

	if (!proc)
		return err_set(err, -errno, "/proc: %s", strerrordesc_np(errno));
	while (r == 0 && (entry = readdir(proc)) != NULL)
		if (isdigit((unsigned char)entry->d_name[0]) &&
		    fstatat(dirfd(proc), entry->d_name, &st, 0) == 0 && st.st_uid == uid &&
		    atoi(entry->d_name) != (int)getpid())
			r = vec_push(pids, atoi(entry->d_name));
	closedir(proc);
	return r;
}

static int find_user(struct record_job *job, struct err *err)
{
	const char *name = job->options.user;
	unsigned long long number;
	struct passwd *entry;
	uid_t uid;
	int r;

	if (!name)
		return 0;
	entry = getpwnam(name);
	if (entry)
		uid = entry->pw_uid;
	else if (parse_u64(name, 10, &number) == 0 && number < UINT32_MAX)
		uid = (uid_t)number;
	else
		return err_set(err, -ENOENT, "user '%s' does not exist", name);
	r = add_user_processes(&job->options.pids, uid, err);
	if (r == 0 && job->options.pids.len == 0)
		r = err_set(err, -ESRCH, "user '%s' has no processes", name);
	return r;
}

/* Opens the event on ourselves and closes it again: 0 or the negative errno. */
static int try_open(struct perf_event_attr attr)
{
	long fd;

	attr.size = sizeof(attr);
	attr.disabled = 1;
	attr.sample_type = PERF_SAMPLE_IP;
	if (attr.sample_period == 0) {
		attr.freq = 1;
		attr.sample_freq = 1;
	}
	fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	close((int)fd);
	return 0;
}

static bool kernel_is_forbidden(void)
{
	struct host_number paranoid = host_perf_paranoid(&this_host);
	struct host_rights rights = host_rights(&this_host);

	return !host_can_perfmon(&rights) && (!paranoid.known || paranoid.value >= 2);
}

/* The highest precision that the kernel takes, from the one in attr downwards. */
static int lower_precision(struct perf_event_attr *attr)
{
	int r = try_open(*attr);

	while ((r == -EOPNOTSUPP || r == -EINVAL || r == -ENOENT) && attr->precise_ip > 0) {
		attr->precise_ip--;
		r = try_open(*attr);
	}
	return r;
}

/* cycles as precisely as possible, else the timer. */
static int add_default_event(struct record_job *job)
{
	struct recorder_event event = {
		.name = "cycles",
		.group = -1,
		.attr = {.type = PERF_TYPE_HARDWARE,
			 .config = PERF_COUNT_HW_CPU_CYCLES,
			 .precise_ip = PRECISE_MAX,
			 .exclude_guest = 1},
	};
	static const char *const names[] = {"cycles", "cycles:p", "cycles:pp", "cycles:ppp"};
	static const char *const user_names[] = {"cycles:u", "cycles:up", "cycles:upp",
						 "cycles:uppp"};
	int r;

	event.attr.exclude_kernel = event.attr.exclude_hv = job->user_only;
	r = lower_precision(&event.attr);
	event.name = (job->user_only ? user_names : names)[event.attr.precise_ip];
	if (r < 0 && r != -EACCES && r != -EPERM) {
		job->no_pmu = true;
		event.attr = (struct perf_event_attr){.type = PERF_TYPE_SOFTWARE,
						      .config = PERF_COUNT_SW_CPU_CLOCK};
		event.attr.exclude_kernel = event.attr.exclude_hv = job->user_only;
		event.name = job->user_only ? "cpu-clock:u" : "cpu-clock";
	}
	job->default_event = true;
	return vec_push(&job->events, event);
}

static int parse_events(struct record_job *job, struct err *err)
{
	int r = event_env_new(&(struct event_env_options){.host = &this_host}, &job->env, err);

	for (size_t i = 0; r == 0 && i < job->options.event_texts.len; i++) {
		const char *filter =
			i < job->options.filters.len ? job->options.filters.data[i] : NULL;

		r = events_parse(job->options.event_texts.data[i], job->env, &job->list, err);
		if (r == 0 && filter)
			r = event_list_add_filter(&job->list, filter, err);
	}
	return r;
}

static int take_event(struct record_job *job, const struct event *event, struct err *err)
{
	struct recorder_event taken = {
		.name = event->name,
		.attr = event->attr,
		.filter = event->filter,
		.cpus = event->cpus,
		.group = event->group,
		.sample_read = event->sample_read,
	};

	if (event->kind == EVENT_TOOL)
		return err_set(err, -EINVAL,
			       "%s cannot be sampled: it is a measurement of 'culprit stat'",
			       event->name);
	if (event->no_pmu)
		return explain_event_open(&event->attr, event->name, 0, -1, -ENOENT, err);
	if (!event->levels_given && job->user_only && event->kind != EVENT_TRACEPOINT)
		taken.attr.exclude_kernel = taken.attr.exclude_hv = 1;
	if (event->max_precise)
		(void)lower_precision(&taken.attr);
	return vec_push(&job->events, taken);
}

/* Periods and frequencies: the event's own term, then -c, then -F, then the default. */
static int set_rates(struct record_job *job, struct err *err)
{
	struct host_number limit = host_perf_max_sample_rate(&this_host);
	uint64_t hz = job->options.frequency_hz;

	if (job->options.frequency_max && !limit.known)
		return err_set(err, -ENOENT,
			       "--freq max: kernel.perf_event_max_sample_rate cannot be read: %s",
			       limit.why);
	if (job->options.frequency_max)
		hz = (uint64_t)limit.value;
	vec_for_each(&job->events, event) {
		struct perf_event_attr *attr = &event->attr;

		if (attr->sample_period > 0)
			continue;
		if (job->options.period > 0) {
			attr->sample_period = job->options.period;
		} else if (hz == 0 && (attr->type == PERF_TYPE_TRACEPOINT ||
				       attr->type == PERF_TYPE_BREAKPOINT)) {
			attr->sample_period = TRACEPOINT_PERIOD;
		} else {
			attr->freq = 1;
			attr->sample_freq = hz > 0 ? hz : DEFAULT_HZ;
			if (hz == 0 && limit.known && limit.value < DEFAULT_HZ) {
				attr->sample_freq = (uint64_t)MAX(limit.value, (int64_t)1);
				job->frequency_cut = true;
			}
		}
	}
	return 0;
}

static int prepare_events(struct record_job *job, struct err *err)
{
	int r = 0;

	job->user_only = kernel_is_forbidden();
	if (job->options.event_texts.len == 0) {
		r = add_default_event(job);
	} else {
		r = parse_events(job, err);
		for (size_t i = 0; r == 0 && i < job->list.events.len; i++)
			r = take_event(job, &job->list.events.data[i], err);
	}
	return r == 0 ? set_rates(job, err) : r;
}

int record_prepare(struct record_job *job, struct err *err)
{
	const struct record_options *options = &job->options;
	struct recorder_options *out = &job->recorder_options;
	bool targets;
	int r;

	r = check_options(job, err);
	if (r == 0)
		r = find_user(job, err);
	if (r == 0)
		r = prepare_events(job, err);
	if (r < 0)
		return r;
	targets = job->has_command || options->pids.len > 0 || options->tids.len > 0;
	*out = (struct recorder_options){
		.events = job->events.data,
		.event_count = (uint32_t)job->events.len,
		.output = options->output,
		.system_wide = options->system_wide || !targets,
		.cpus = options->cpus_given ? &options->cpus : NULL,
		.pids = options->pids.data,
		.pid_count = options->pids.len,
		.tids = options->tids.data,
		.tid_count = options->tids.len,
		.inherit = !options->no_inherit,
		.callgraph = options->callgraph,
		.stack_bytes = options->stack_bytes,
		.delay_ns = options->delay_ns,
		.duration_ns = options->duration_ns,
		.ring_bytes = options->ring_bytes,
		.zstd_level = options->zstd_level,
	};
	return 0;
}

void record_job_fini(struct record_job *job)
{
	recorder_close(job->recorder);
	vec_fini(&job->events);
	event_list_fini(&job->list);
	event_env_free(job->env);
	vec_fini(&job->options.event_texts);
	vec_fini(&job->options.filters);
	vec_fini(&job->options.pids);
	vec_fini(&job->options.tids);
}
