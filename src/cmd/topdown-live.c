/*
 * Live top-down: the counters of this machine for a command, processes or everything.
 *
 * A command can be run again. Then the nodes wanted are cut into batches whose events fit the free
 * counters at once, one run each; and by default (--drill) only level 1, or levels 1 and 2 when
 * they fit together, is counted first, then what lies below the mark, as far as marks go. What
 * cannot be run again is counted in one go, its events taking turns.
 *
 * Where nothing can be counted it is said what is missing, and times, faults and switches are
 * shown.
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
#include "base/util.h"
#include "cmd/topdown-live.h"

#define RUNS_MAX 48 /* of drilling, without the repeats of each */

/* --- values ---------------------------------------------------------------------------------- */

struct adder {
	const struct live *live;
	const struct topdown_tree *tree;
	struct topdown_row *row;
};

static int add_value(void *ctx, unsigned event, const struct expr_value *value,
		     const struct count_value *counted)
{
	const struct adder *a = ctx;
	struct topdown_count count = {event,        a->live->section,    *value,
				      counted->raw, counted->enabled_ns, counted->running_ns};
	int r = 0;

	if (a->live->job->half_core && a->tree->table->percore && value->state < EXPR_WEAK) {
		count.value.state = EXPR_WEAK;
		snprintf(count.value.reason, sizeof(count.value.reason),
			 "only one of the two threads that share the core's slots was counted");
	}
	if (a->row->repeats)
		r = topdown_counts_add(&a->row->repeats[a->live->repeat], &count);
	return r < 0 ? r : topdown_counts_sum(&a->row->counts, &count);
}

static int take_values(struct live *live, int pass)
{
	int r = 0;

	for (unsigned t = 0; t < live->tree_count; t++) {
		struct live_tree *lt = &live->trees[t];

		for (unsigned row = 0; lt->session && row < lt->tree->rows.len && r == 0; row++) {
			struct adder adder = {live, lt->tree, &lt->tree->rows.data[row]};

			r = topdown_set_values(&lt->ts, lt->session, row, pass, add_value, &adder);
		}
	}
	return r;
}

static int show_interval(struct live *live, int pass, struct err *err)
{
	int r;

	for (unsigned t = 0; t < live->tree_count; t++)
		vec_for_each(&live->trees[t].tree->rows, row)
			row->counts.counts.len = 0;
	r = take_values(live, pass);
	if (r == 0)
		r = topdown_side_evaluate(live->job, live->side);
	if (r < 0)
		return err_set(err, r, "out of memory");
	for (unsigned t = 0; t < live->tree_count; t++)
		if (live->trees[t].session)
			count_session_restart(live->trees[t].session);
	return topdown_show(live->job, err);
}

/* --- runs ------------------------------------------------------------------------------------ */

static int for_each_session(struct live *live, int (*call)(struct count_session *session))
{
	int first = 0;

	for (unsigned t = 0; t < live->tree_count; t++) {
		int r = live->trees[t].session ? call(live->trees[t].session) : 0;

		if (r < 0 && first == 0)
			first = r;
	}
	return first;
}

static uint64_t slice_ns(const struct live *live)
{
	uint64_t least = NSEC_PER_SEC;

	for (unsigned t = 0; t < live->tree_count; t++)
		if (live->trees[t].session)
			least = MIN(least, count_session_slice_ns(live->trees[t].session));
	return least;
}

/* Sleeps until due or a signal; true when it is time to stop (there is no command to pass it to).
 */
static bool sleep_until(struct live *live, uint64_t due)
{
	uint64_t now = clock_monotonic_ns();
	uint64_t left = due > now ? due - now : 0;
	struct timespec wait = {(time_t)(left / NSEC_PER_SEC), (long)(left % NSEC_PER_SEC)};
	struct pollfd fd = {live->signals, POLLIN, 0};
	struct signalfd_siginfo info;
	bool stop = false;

	if (ppoll(&fd, 1, &wait, NULL) <= 0)
		return false;
	while (read(live->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		live->interrupted = true;
		if (live->work.pid > 0 &&
		    info.ssi_signo != SIGINT) /* the terminal tells it of ^C */
			workload_kill(&live->work, (int)info.ssi_signo);
		stop |= live->work.pid == 0;
	}
	return stop;
}

static int wait_for_end(struct live *live, int pass, struct err *err)
{
	const struct topdown_options *o = &live->job->options;
	uint64_t start = clock_monotonic_ns(),
		 next = o->interval_ns ? start + o->interval_ns : UINT64_MAX;
	uint64_t stop = o->duration_ns ? start + o->duration_ns : UINT64_MAX, shown = 0;
	bool stopping = false;
	int r = 0;

	while (r == 0 && !stopping && !workload_reap(&live->work, false)) {
		uint64_t now = clock_monotonic_ns(), due = now + slice_ns(live);

		if (live->work.pid == 0)
			due = MIN(due, now + 100 * NSEC_PER_MSEC);
		stopping = sleep_until(live, MIN(MIN(due, next), stop));
		for_each_session(live, count_session_read);
		now = clock_monotonic_ns();
		live->job->time_ns = now - start;
		if (now >= next) {
			r = show_interval(live, pass, err);
			next = now + o->interval_ns;
			stopping |= o->interval_count && ++shown >= o->interval_count;
		}
		stopping |= now >= stop || topdown_target_ended(live->job);
	}
	if (live->work.pid > 0 && !live->work.ended) {
		workload_kill(&live->work, SIGTERM);
		live->work.stopped = true;
		workload_reap(&live->work, true);
	}
	live->side->wall_ns = clock_monotonic_ns() - start;
	return r;
}

static int open_sessions(struct live *live, int pass, struct err *err)
{
	const struct topdown_machine *machine = live->job->machine;
	struct count_place self = {.pid = live->work.pid, .cpu = -1, .cgroup = -1};
	struct count_session_options how = {.inherit = true,
					    .keep_slices = true,
					    .enable_on_exec = live->command,
					    .pass = pass};
	int r = 0;

	for (unsigned t = 0; t < live->tree_count && r == 0; t++) {
		struct live_tree *lt = &live->trees[t];

		if (lt->ts.len == 0 || pass >= lt->ts.set.passes)
			continue;
		r = count_session_open(&lt->ts.set, machine->ops, machine->ops_ctx,
				       live->command ? &self : lt->places.places.data,
				       live->command ? 1 : (unsigned)lt->places.places.len,
				       (unsigned)lt->tree->rows.len, &how, &lt->session, err);
	}
	if (r == 0 && !live->command)
		r = for_each_session(live, count_session_enable);
	return r;
}

static void close_sessions(struct live *live)
{
	for (unsigned t = 0; t < live->tree_count; t++) {
		count_session_close(live->trees[t].session);
		live->trees[t].session = NULL;
	}
}

/* One run of what is counted, or the time asked for. */
static int run_once(struct live *live, int pass, struct err *err)
{
	char **argv = live->side->argv;
	int r = 0;

	live->work = (struct workload){.release = -1};
	if (argv)
		r = workload_hold(&live->work, argv, err);
	if (r == 0)
		r = open_sessions(live, pass, err);
	if (r == 0 && argv) {
		r = workload_release(&live->work, argv, err);
		if (r < 0)
			live->job->exit_status = workload_exec_status(r);
	} else if (r < 0 && live->work.pid > 0) {
		workload_kill(&live->work, SIGKILL);
		workload_reap(&live->work, true);
	}
	if (r == 0)
		r = wait_for_end(live, pass, err);
	if (r == 0) {
		for_each_session(live, count_session_disable);
		for_each_session(live, count_session_read);
		live->side->runs++;
		if (!live->job->options.interval_ns && take_values(live, pass) < 0)
			r = err_set(err, -ENOMEM, "out of memory");
	}
	close_sessions(live);
	return r;
}

static bool may_run_on(const struct live *live)
{
	return !live->interrupted && !(live->work.ended && WIFSIGNALED(live->work.status));
}

/* Every batch of every tree, each as often as -r says. */
static int run_batches(struct live *live, struct err *err)
{
	uint64_t repeats = MAX(live->job->options.repeat, 1u);
	size_t batches = 0;
	int r = 0;

	for (unsigned t = 0; t < live->tree_count; t++)
		batches = MAX(batches, live->trees[t].batches.len);
	for (size_t b = 0; b < batches && r == 0 && may_run_on(live); b++) {
		int passes = 1;
		bool fits;

		for (unsigned t = 0; t < live->tree_count && r == 0; t++) {
			struct live_tree *lt = &live->trees[t];

			if (b < lt->batches.len)
				r = topdown_make_set(live, lt, &lt->batches.data[b], &fits, err);
			else
				topdown_set_fini(&lt->ts);
			if (b < lt->batches.len && r == 0)
				passes = MAX(passes, live->command || live->side->argv
							     ? lt->ts.set.passes
							     : 1);
		}
		for (int pass = 0; pass < passes && r == 0; pass++, live->section++)
			for (live->repeat = 0; live->repeat < repeats && r == 0 && may_run_on(live);
			     live->repeat++)
				r = run_once(live, pass, err);
		for (unsigned t = 0; t < live->tree_count && live->batched; t++)
			if (b < live->trees[t].batches.len)
				topdown_batch_known(&live->trees[t],
						    &live->trees[t].batches.data[b]);
	}
	return r;
}

static int count_and_drill(struct live *live, struct err *err)
{
	const struct topdown_options *o = &live->job->options;
	bool more = true;
	int r = 0;

	for (unsigned t = 0; t < live->tree_count && r == 0; t++)
		r = topdown_first_batches(live, &live->trees[t], err);
	while (r == 0 && more) {
		r = run_batches(live, err);
		if (r < 0 || o->interval_ns)
			break;
		if (topdown_side_evaluate(live->job, live->side) < 0)
			return err_set(err, -ENOMEM, "out of memory");
		more = false;
		if (!live->drills || !may_run_on(live) ||
		    live->side->runs >= RUNS_MAX * MAX(o->repeat, 1u))
			break;
		for (unsigned t = 0; t < live->tree_count && r == 0; t++)
			r = topdown_next_batches(live, &live->trees[t], &more, err);
		for (unsigned t = 0; t < live->tree_count && r == 0 && !more; t++)
			r = topdown_cpi_batch(&live->trees[t], &more, err);
	}
	return r;
}

/* --- the whole ------------------------------------------------------------------------------- */

/* Whether SMT is on is known now: formulas hang on the events of the branch that holds alone. */
static void fold_smt(const struct topdown_job *job, struct live_tree *lt)
{
	const struct topdown_tree *tree = lt->tree;
	bool none[NODES_MAX] = {false}, events[TOPDOWN_EVENTS_MAX] = {false};

	topdown_events(tree->topdown, none, job->smt && !job->half_core, false, events);
	memset(events, 0, sizeof(events));
	topdown_add_events(tree, "INSTRUCTIONS", NULL, events);
	lt->cpi_known = memchr(events, true, sizeof(events)) == NULL; /* there is nothing to know */
}

/* Counts one side. */
static int count_side(struct topdown_job *job, struct topdown_side *side, int signals,
		      struct err *err)
{
	const struct topdown_options *o = &job->options;
	CLEANUP_FREE struct live *live = calloc(1, sizeof(*live));
	int r = 0;

	if (!live)
		return err_set(err, -ENOMEM, "out of memory");
	*live = (struct live){.job = job, .side = side, .signals = signals, .section = 1};
	live->command = side->argv && !o->all_cpus && !o->pids;
	live->drills = o->drill || (live->command && !o->interval_ns && !o->level && !o->all &&
				    !o->nodes && !o->explain && !o->no_multiplex);
	live->batched =
		live->drills || o->no_multiplex || (o->explain && live->command && !o->interval_ns);
	topdown_target_title(job, side);
	for (unsigned t = 0; t < side->tree_count && r == 0; t++) {
		struct live_tree *lt = &live->trees[live->tree_count];

		lt->tree = &side->trees[t];
		if (lt->tree->table->node_count > NODES_MAX ||
		    lt->tree->table->event_count > TOPDOWN_EVENTS_MAX)
			r = err_set(err, -E2BIG, "the table of %s is too large",
				    lt->tree->table->set);
		if (r == 0)
			fold_smt(job, lt);
		if (r == 0)
			r = topdown_target_places(job, lt->tree, &lt->places, err);
		live->tree_count++;
	}
	if (r == 0)
		r = count_and_drill(live, err);
	if (r == 0 && live->work.ended && !live->work.stopped) {
		int status = WIFSIGNALED(live->work.status) ? 128 + WTERMSIG(live->work.status)
							    : WEXITSTATUS(live->work.status);

		job->exit_status = status ? status : job->exit_status;
	}
	for (unsigned t = 0; t < live->tree_count; t++) {
		if (r == 0 && !live->batched) /* groups that were split, and the like */
			str_puts(&job->notes, str_text(&live->trees[t].ts.set.notes));
		topdown_set_fini(&live->trees[t].ts);
		vec_fini(&live->trees[t].places.places);
		vec_fini(&live->trees[t].batches);
	}
	return r;
}

/* Why the counters cannot be used, in words; 0 when they can. */
static int check_counters(struct topdown_job *job, struct err *err)
{
	const struct topdown_machine *machine = job->machine;
	struct host_number paranoid = host_perf_paranoid(machine->host);
	struct host_rights rights = host_rights(machine->host);
	bool user_only = paranoid.known && paranoid.value >= 2 && !host_can_perfmon(&rights);
	struct counters_free free_counters;

	for (unsigned t = 0; t < job->sides[0].tree_count; t++)
		job->sides[0].trees[t].pmu.user_only = user_only;
	if (user_only && job->options.all_cpus)
		return err_set(err, -EACCES,
			       "counting the whole machine needs CAP_PERFMON (perf_event_paranoid "
			       "is %lld)",
			       (long long)paranoid.value);
	counters_probe(machine->ops, machine->ops_ctx, user_only, &free_counters);
	if (free_counters.status == -EACCES || free_counters.status == -EPERM)
		return err_set(err, free_counters.status,
			       "the kernel forbids counting (perf_event_paranoid is %lld); sudo "
			       "sysctl kernel.perf_event_paranoid=2 allows it",
			       (long long)(paranoid.known ? paranoid.value : -1));
	if (free_counters.status < 0)
		return err_set(err, free_counters.status, "no counter can be opened: %s",
			       strerrordesc_np(-free_counters.status));
	if (user_only)
		str_puts(&job->notes, "User mode only: counting the kernel needs CAP_PERFMON.\n");
	return 0;
}

/* Which of the events of a table without slots this core has: why there is no tree. */
static void note_events(struct topdown_job *job, const struct topdown_tree *tree)
{
	struct str have = {0}, lack = {0};

	if (topdown_node_find(tree->table, "retiring") >= 0 || tree->rows.len == 0)
		return;
	for (unsigned e = 0; e < tree->table->event_count; e++) {
		bool counted = false, asked = false;

		vec_for_each(&tree->rows.data[0].counts.counts, count)
			if (count->event == e) {
				asked = true;
				counted |= expr_has_number(&count->value);
			}
		if (asked)
			str_printf(counted ? &have : &lack, " %s", tree->table->events[e].title);
	}
	str_printf(&job->notes,
		   "This core counts no slots, so there is no tree. It counts:%s%s%s\n",
		   have.len ? str_text(&have) : " nothing of what is wanted",
		   lack.len ? "; not:" : "", str_text(&lack));
	str_clear(&have);
	topdown_list_events(job->machine->host, tree, &have);
	if (have.len)
		str_printf(&job->notes, "Its counters know:%s\n", str_text(&have));
	str_fini(&have);
	str_fini(&lack);
}

/* Who else has counters, and whether they can be believed. */
static void note_machine(struct topdown_job *job)
{
	const struct host *host = job->machine->host;
	struct host_number watchdog = host_nmi_watchdog(host);
	struct host_text hypervisor = host_hypervisor(host);
	bool shared = false, refused = false;

	for (unsigned t = 0; t < job->sides[0].tree_count; t++)
		vec_for_each(&job->sides[0].trees[t].rows, row) {
			vec_for_each(&row->counts.counts, count)
				shared |= count->running_ns < count->enabled_ns &&
					  !job->sides[0].trees[t].pmu.partial;
			for (size_t i = 0;
			     row->result.nodes && i < job->sides[0].trees[t].table->node_count; i++)
				refused |= row->result.nodes[i].value.state == EXPR_INVALID;
		}
	if (watchdog.known && watchdog.value == 1 &&
	    (shared || job->sides[0].runs > MAX(job->options.repeat, 1u)))
		str_puts(&job->notes, "The NMI watchdog holds one counter: sudo sysctl "
				      "kernel.nmi_watchdog=0 frees it.\n");
	if (refused && hypervisor.known && strcmp(hypervisor.value, "none") != 0)
		str_printf(&job->notes,
			   "This is a virtual machine (%s): its counters need not be what they are "
			   "called.\n",
			   hypervisor.value);
}

static void note_runs(struct topdown_job *job)
{
	const struct topdown_side *side = &job->sides[0];
	uint64_t repeats = MAX(job->options.repeat, 1u);

	for (unsigned t = 0; t < side->tree_count; t++)
		note_events(job, &side->trees[t]);
	if (side->runs > repeats)
		str_printf(&job->notes,
			   "Counted in %u runs, for the events of one branch after the other.\n",
			   side->runs);
	if (repeats > 1)
		str_printf(
			&job->notes,
			"Each value is from the counts of %llu runs summed up; +- is the standard "
			"error between the runs.\n",
			(unsigned long long)repeats);
	note_machine(job);
	if (job->half_core)
		str_puts(&job->notes,
			 "SMT is on, and the slots of this core belong to both its threads: what "
			 "the other thread does is missing here. -a, or -a --per-core, counts "
			 "both.\n");
}

static int count_sides(struct topdown_job *job, struct err *err)
{
	sigset_t set;
	int signals, r = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (job->side_count == 2)
		topdown_side_copy(&job->sides[0], &job->sides[1]);
	for (unsigned s = 0; s < job->side_count && r == 0; s++)
		r = count_side(job, &job->sides[s], signals, err);
	close(signals);
	return r;
}

int topdown_live(struct topdown_job *job, struct err *err)
{
	int r = topdown_detect(job, err);

	if (r == 0)
		r = check_counters(job, err);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return topdown_software(job, err_text(err, r), err);
	for (unsigned t = 0; t < job->sides[0].tree_count && r == 0; t++)
		r = topdown_tree_choose(job, &job->sides[0].trees[t], err);
	if (r == 0)
		r = count_sides(job, err);
	if (r < 0 || job->options.interval_ns)
		return r == 0 && topdown_show_end(job) != EXIT_DONE ? -EPIPE : r;
	note_runs(job);
	r = job->options.explain ? topdown_explain(job, err) : topdown_show(job, err);
	return r == 0 && topdown_show_end(job) != EXIT_DONE ? -EPIPE : r;
}
