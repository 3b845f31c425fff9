#include "sample/recorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/util.h"
#include "sample/kernel-symbols.h"
#include "sample/recorder-internal.h"
#include "sample/synth.h"

#define TICK_NS        NSEC_PER_SEC
#define READ_VALUES    3 /* value, id, lost */
#define STACKS_VERSION 1

enum poll_source {
	POLL_RING,
	POLL_SIGNAL,
	POLL_TIMER,
};

/* Writing failed in the middle: what is in the file by then stays readable. */
static int output_failed(const char *output, int r, struct err *err)
{
	return err_set(err, r,
		       "%s: %s; what was written until then can be read: culprit report -i %s",
		       output, strerrordesc_np(-r), output);
}

static void enable(const struct recorder *recorder, bool on)
{
	vec_for_each(&recorder->fds, entry)
		ioctl(entry->fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

static int put_synthesized(void *arg, const void *record, size_t size)
{
	struct iovec piece = {(void *)(uintptr_t)record, size};
	struct recorder *recorder = arg;

	if (recorder->live)
		return recorder_live_put(recorder, record);
	return writer_records(recorder->writer, &piece, 1);
}

static int open_bpf(struct recorder *recorder, struct synth *synth)
{
	bool kernel = false;
	int r;

	vec_for_each(&recorder->attrs, attr)
		kernel |= !attr->exclude_kernel;
	if (!kernel)
		return 0;
	r = bpf_loaded_new(&recorder->bpf);
	if (r == 0)
		r = bpf_loaded_read(recorder->bpf);
	return r < 0 ? r : synth_bpf(synth, recorder->bpf);
}

static int synthesize(struct recorder *recorder)
{
	const struct recorder_options *options = &recorder->options;
	struct synth synth = {
		.proc = "/proc",
		.sys = "/sys",
		.sample_type = recorder->attrs.data[0].sample_type,
		.event_id = recorder->fds.data[0].id,
		.data_maps = recorder->attrs.data[0].mmap_data,
		.build_ids = recorder->attrs.data[0].build_id,
		.put = put_synthesized,
		.arg = recorder,
	};
	int r;

	r = synth_kernel(&synth);
	if (r == 0)
		r = open_bpf(recorder, &synth);
	if (r == 0 && options->system_wide)
		r = synth_all(&synth);
	for (size_t i = 0; r == 0 && i < options->pid_count; i++) {
		r = synth_process(&synth, options->pids[i]);
		r = r == -ESRCH ? 0 : r;
	}
	for (size_t i = 0; r == 0 && i < options->tid_count; i++) {
		/* /proc/TID answers for any thread, with its process's maps. */
		r = synth_process(&synth, options->tids[i]);
		r = r == -ESRCH ? 0 : r;
	}
	synth_fini(&synth);
	return r;
}

static int open_writer(struct recorder *recorder, struct err *err)
{
	uint32_t count = (uint32_t)recorder->attrs.len;
	CLEANUP_FREE struct writer_event *events = calloc(count, sizeof(*events));
	CLEANUP_FREE uint64_t *ids = calloc(recorder->fds.len, sizeof(*ids));
	size_t used = 0;
	int r;

	if (!events || !ids)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		events[i] = (struct writer_event){.attr = recorder->attrs.data[i],
						  .name = recorder->names.data[i],
						  .ids = ids + used};
		if (recorder->options.callgraph == CALLGRAPH_DWARF)
			live_file_attr(&events[i].attr);
		vec_for_each(&recorder->fds, entry) {
			if (entry->event == i)
				ids[used++] = entry->id;
		}
		events[i].id_count = (uint32_t)(ids + used - events[i].ids);
	}
	r = tally_init(&recorder->tally, &events[0].attr, count);
	for (size_t i = 0; r == 0 && count > 1 && i < recorder->fds.len; i++)
		r = tally_add_id(&recorder->tally, recorder->fds.data[i].id,
				 recorder->fds.data[i].event);
	if (r < 0)
		return r;
	return writer_open(recorder->options.output, events, count, recorder->options.zstd_level,
			   recorder->ring_bytes, &recorder->writer, err);
}

static int poll_add(struct recorder *recorder, int fd, enum poll_source source, size_t index)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uint64_t)source << 32 | index};

	return epoll_ctl(recorder->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int open_poll(struct recorder *recorder, struct err *err)
{
	int r = 0;

	recorder->epoll = epoll_create1(EPOLL_CLOEXEC);
	recorder->signals = signalfd(-1, &recorder->options.ends, SFD_CLOEXEC | SFD_NONBLOCK);
	recorder->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (recorder->epoll < 0 || recorder->signals < 0 || recorder->timer < 0)
		return err_set(err, -errno, "epoll, signalfd or timerfd: %s",
			       strerrordesc_np(errno));
	for (size_t i = 0; r == 0 && i < recorder->rings.len; i++)
		r = poll_add(recorder, recorder->rings.data[i].fd, POLL_RING, i);
	if (r == 0)
		r = poll_add(recorder, recorder->signals, POLL_SIGNAL, 0);
	if (r == 0)
		r = poll_add(recorder, recorder->timer, POLL_TIMER, 0);
	return r < 0 ? err_set(err, r, "epoll: %s", strerrordesc_np(-r)) : 0;
}

int recorder_open(const struct recorder_options *options, struct recorder **ret, struct err *err)
{
	struct recorder *recorder = calloc(1, sizeof(*recorder));
	int r;

	if (!recorder)
		return -ENOMEM;
	recorder->options = *options;
	recorder->epoll = recorder->signals = recorder->timer = -1;
	r = recorder_open_events(recorder, err);
	if (r == 0)
		r = open_poll(recorder, err);
	if (r == 0 && recorder->stack_bytes > 0)
		r = recorder_live_open(recorder);
	if (r == 0)
		r = open_writer(recorder, err);
	if (r == 0) {
		/* On before the existing processes are read: who starts meanwhile announces itself.
		 */
		if (!recorder->on_exec && options->delay_ns == 0)
			enable(recorder, true);
		r = synthesize(recorder);
		if (r == 0)
			r = writer_finished_round(recorder->writer);
		if (r < 0)
			output_failed(options->output, r, err);
	}
	if (r < 0) {
		recorder_close(recorder);
		return r;
	}
	*ret = recorder;
	return 0;
}

void recorder_discard(struct recorder *recorder)
{
	writer_discard(recorder->writer);
}

void recorder_close(struct recorder *recorder)
{
	if (!recorder)
		return;
	vec_for_each(&recorder->rings, ring)
		ring_close(ring);
	vec_for_each(&recorder->fds, entry)
		close(entry->fd);
	cleanup_close(&recorder->epoll);
	cleanup_close(&recorder->signals);
	cleanup_close(&recorder->timer);
	recorder_live_close(recorder);
	writer_close(recorder->writer);
	bpf_loaded_free(recorder->bpf);
	tally_fini(&recorder->tally);
	vec_fini(&recorder->attrs);
	vec_fini(&recorder->names);
	vec_fini(&recorder->fds);
	vec_fini(&recorder->rings);
	vec_fini(&recorder->polled);
	vec_fini(&recorder->targets);
	free(recorder);
}

/*
 * One pass over all rings: what is new goes to the file with one write for all of them (the pieces
 * point into the rings) and is counted, then the kernel gets the room back. The end of a pass is
 * the end of a round.
 */
static int drain_as_it_is(struct recorder *recorder)
{
	size_t count = recorder->rings.len;
	struct iovec pieces[128];
	size_t bytes[64];
	int r = 0;

	for (size_t first = 0; r == 0 && first < count; first += ARRAY_LEN(bytes)) {
		size_t batch = MIN(count - first, ARRAY_LEN(bytes)), used = 0;

		for (size_t i = 0; i < batch; i++) {
			bytes[i] = ring_peek(&recorder->rings.data[first + i], &pieces[used]);
			used += bytes[i] == 0 ? 0 : pieces[used + 1].iov_len > 0 ? 2 : 1;
		}
		if (used == 0)
			continue;
		r = writer_records(recorder->writer, pieces, (unsigned)used);
		for (size_t i = 0; r == 0 && i < used; i++)
			r = tally_bytes(&recorder->tally, pieces[i].iov_base, pieces[i].iov_len);
		for (size_t i = 0; r == 0 && i < batch; i++)
			if (bytes[i] > 0)
				ring_consume(&recorder->rings.data[first + i], bytes[i]);
	}
	return r;
}

/* last: nothing is written to the rings any more. */
static int drain(struct recorder *recorder, bool last)
{
	int r = recorder->live ? recorder_live_drain(recorder, last) : drain_as_it_is(recorder);

	if (r == 0)
		r = writer_finished_round(recorder->writer);
	return r == 0 ? writer_sync(recorder->writer) : r;
}

/* Ticks once a second, or earlier for the end of the delay or the duration. */
static int arm_timer(const struct recorder *recorder, uint64_t next_ns)
{
	struct itimerspec spec = {
		.it_value = {.tv_sec = (time_t)(next_ns / NSEC_PER_SEC),
			     .tv_nsec = (long)(next_ns % NSEC_PER_SEC)},
	};

	return timerfd_settime(recorder->timer, TFD_TIMER_ABSTIME, &spec, NULL) < 0 ? -errno : 0;
}

struct run_state {
	uint64_t begin_ns, enable_ns, end_ns; /* end_ns UINT64_MAX: open */
	bool enabled, done;
	size_t hung_up; /* rings whose every task has ended */
};

static int on_timer(struct recorder *recorder, struct run_state *state)
{
	uint64_t now = clock_monotonic_ns(), ticks, next;
	int r;

	if (read(recorder->timer, &ticks, sizeof(ticks)) < 0 && errno != EAGAIN)
		return -errno;
	if (!state->enabled && now >= state->enable_ns) {
		enable(recorder, true);
		state->enabled = true;
		recorder->start_ns = now;
		if (recorder->options.duration_ns > 0)
			state->end_ns = now + recorder->options.duration_ns;
	}
	if (now >= state->end_ns) {
		state->done = true;
		return 0;
	}
	r = drain(recorder, false);
	if (r < 0)
		return r;
	if (recorder->options.status)
		recorder->options.status(recorder->options.status_arg, recorder);
	next = MIN(now + TICK_NS, state->end_ns);
	return arm_timer(recorder, state->enabled ? next : MIN(next, state->enable_ns));
}

static void on_signal(struct recorder *recorder, struct run_state *state, bool (*ended)(void *arg),
		      void *arg)
{
	struct signalfd_siginfo info;

	while (read(recorder->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			state->done |= ended && ended(arg);
			continue;
		}
		recorder->signal = (int)info.ssi_signo;
		recorder->signal_from_terminal = info.ssi_code == SI_KERNEL;
		state->done = true;
	}
}

/*
 * A descriptor hangs up when its task and all that it started have ended. Another one of the same
 * ring takes its place; when none is left, the ring is done.
 */
static void on_hang_up(struct recorder *recorder, struct run_state *state, size_t ring)
{
	size_t *polled = &recorder->polled.data[ring];

	epoll_ctl(recorder->epoll, EPOLL_CTL_DEL, recorder->fds.data[*polled].fd, NULL);
	while (++*polled < recorder->fds.len)
		if (recorder->fds.data[*polled].ring == ring &&
		    poll_add(recorder, recorder->fds.data[*polled].fd, POLL_RING, ring) == 0)
			return;
	state->hung_up++;
	state->done |= state->hung_up == recorder->rings.len && recorder->options.workload == 0;
}

static int handle(struct recorder *recorder, struct run_state *state,
		  const struct epoll_event *events, int count, bool (*ended)(void *arg), void *arg)
{
	bool data = false;
	int r = 0;

	for (int i = 0; r == 0 && i < count; i++) {
		size_t index = (uint32_t)events[i].data.u64;

		switch ((enum poll_source)(events[i].data.u64 >> 32)) {
		case POLL_RING:
			data = true;
			if (events[i].events & (EPOLLHUP | EPOLLERR))
				on_hang_up(recorder, state, index);
			break;
		case POLL_SIGNAL:
			on_signal(recorder, state, ended, arg);
			break;
		case POLL_TIMER:
			r = on_timer(recorder, state);
			break;
		}
	}
	return r == 0 && data ? drain(recorder, false) : r;
}

int recorder_run(struct recorder *recorder, bool (*ended)(void *arg), void *arg, struct err *err)
{
	const struct recorder_options *options = &recorder->options;
	struct run_state state = {.begin_ns = clock_monotonic_ns(), .end_ns = UINT64_MAX};
	int r;

	recorder->start_ns = state.begin_ns;
	state.enable_ns = state.begin_ns + options->delay_ns;
	state.enabled = options->delay_ns == 0;
	if (state.enabled && options->duration_ns > 0)
		state.end_ns = state.begin_ns + options->duration_ns;
	if (options->delay_ns > 0 && !recorder->on_exec)
		vec_for_each(&recorder->fds, entry)
			if (entry->event == 0)
				ioctl(entry->fd, PERF_EVENT_IOC_ENABLE,
				      0); /* the side band, from the start */
	r = on_timer(recorder, &state);
	while (r == 0 && !state.done) {
		struct epoll_event events[32];
		int n = epoll_wait(recorder->epoll, events, ARRAY_LEN(events), -1);

		if (n < 0 && errno != EINTR)
			r = -errno;
		else if (n > 0)
			r = handle(recorder, &state, events, n, ended, arg);
	}
	if (r < 0)
		output_failed(options->output, r, err);
	return r;
}

/* Samples that the kernel could not put into the ring, by event; told to readers as LOST_SAMPLES.
 */
static uint64_t read_lost(struct recorder *recorder)
{
	uint64_t total = 0;

	if (!(recorder->attrs.data[0].read_format & PERF_FORMAT_LOST) ||
	    (recorder->attrs.data[0].read_format & PERF_FORMAT_GROUP))
		return 0;
	vec_for_each(&recorder->fds, entry) {
		uint64_t values[READ_VALUES] = {0};
		struct {
			uint64_t lost;
			char trailer[64];
		} body = {0};
		size_t trailer = 0;

		if (read(entry->fd, values, sizeof(values)) != sizeof(values) || values[2] == 0)
			continue;
		total += values[2];
		body.lost = values[2];
		for (uint64_t bits = recorder->attrs.data[0].sample_type &
				     (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
				      PERF_SAMPLE_IDENTIFIER);
		     bits; bits &= bits - 1)
			trailer += sizeof(uint64_t);
		if (recorder->attrs.data[0].sample_type & PERF_SAMPLE_IDENTIFIER)
			memcpy(body.trailer + trailer - sizeof(uint64_t), &entry->id,
			       sizeof(uint64_t));
		writer_record(recorder->writer, PERF_RECORD_LOST_SAMPLES, 0, &body,
			      sizeof(body.lost) + trailer);
	}
	return total;
}

static int put_kernel_symbols(struct recorder *recorder, struct recorder_result *result)
{
	struct str text = {0}, section = {0};
	struct err err = {0};
	int r;

	r = kernel_symbols_excerpt(recorder->tally.kernel_ips.data, recorder->tally.kernel_ips.len,
				   &text, &err);
	if (r < 0) {
		result->kernel_symbols_missing = true;
		snprintf(result->remark, sizeof(result->remark),
			 "kernel frames stay without names: %s", err_text(&err, r));
		r = r == -ENOMEM ? r : 0;
	} else if (text.len > 0) {
		r = kernel_symbols_section(&text, &section);
		if (r == 0)
			r = writer_feature(recorder->writer, FEATURE_CULPRIT, section.data,
					   section.len);
	}
	str_fini(&text);
	str_fini(&section);
	return r;
}

/* For readers elsewhere, and later: the lines of the BPF programs that were sampled. */
static int put_bpf_programs(struct recorder *recorder)
{
	struct tally *tally = &recorder->tally;
	struct str infos = {0}, types = {0};
	int r;

	if (!recorder->bpf || tally->kernel_ips.len == 0)
		return 0;
	r = bpf_loaded_read(recorder->bpf);
	if (r == 0)
		r = bpf_loaded_sections(recorder->bpf, tally->kernel_ips.data,
					tally->kernel_ips.len, &infos, &types);
	if (r == 0 && infos.len > 0)
		r = writer_feature(recorder->writer, FEATURE_BPF_PROG_INFO, infos.data, infos.len);
	if (r == 0 && types.len > 0)
		r = writer_feature(recorder->writer, FEATURE_BPF_BTF, types.data, types.len);
	str_fini(&infos);
	str_fini(&types);
	return r;
}

static void count_stacks(const struct recorder *recorder, struct recorder_result *result)
{
	const struct live_stats *stats = recorder->live ? live_stats(recorder->live) : NULL;
	struct str words = {0};

	result->stack_bytes = recorder->stack_bytes;
	if (!stats)
		return;
	result->stacks = stats->stacks;
	result->cut_stacks = stats->cut;
	result->lost_stacks = stats->lost;
	result->frame_pointer_stacks = stats->by_frame_pointer;
	live_explain(recorder->live, &words);
	snprintf(result->lost_in, sizeof(result->lost_in), "%s", str_text(&words));
	str_fini(&words);
}

/* What readers cannot count from the chains. */
static int put_stack_counts(struct recorder *recorder, const struct recorder_result *result)
{
	uint32_t head[] = {STACKS_VERSION, result->stack_bytes};
	uint64_t counts[] = {result->stacks, result->cut_stacks, result->lost_stacks,
			     result->frame_pointer_stacks};
	struct str section = {0};
	int r;

	if (recorder->options.callgraph != CALLGRAPH_DWARF)
		return 0;
	str_append(&section, head, sizeof(head));
	str_append(&section, counts, sizeof(counts));
	str_append(&section, result->lost_in, strlen(result->lost_in) + 1);
	r = str_status(&section);
	if (r == 0)
		r = writer_feature(recorder->writer, FEATURE_CULPRIT_STACKS, section.data,
				   section.len);
	str_fini(&section);
	return r;
}

static int finish_file(struct recorder *recorder, struct recorder_result *result)
{
	uint64_t times[2];
	int r;

	result->lost = read_lost(recorder);
	count_stacks(recorder, result);
	r = put_stack_counts(recorder, result);
	if (r == 0)
		r = put_kernel_symbols(recorder, result);
	if (r == 0)
		r = put_bpf_programs(recorder);
	if (r == 0)
		r = writer_standard_features(recorder->writer, recorder->options.argc,
					     recorder->options.argv);
	times[0] = recorder->tally.first_time_ns;
	times[1] = recorder->tally.last_time_ns;
	if (r == 0 && recorder->tally.samples > 0)
		r = writer_feature(recorder->writer, FEATURE_SAMPLE_TIME, times, sizeof(times));
	return r;
}

int recorder_finish(struct recorder *recorder, struct recorder_result *ret, struct err *err)
{
	struct recorder_result result = {
		.signal = recorder->signal,
		.signal_from_terminal = recorder->signal_from_terminal,
	};
	int r, finished;

	enable(recorder, false);
	r = drain(recorder, true);
	if (r == 0)
		r = finish_file(recorder, &result);
	/* Also after a failure: the records that are there get a sound header. */
	finished = writer_finish(recorder->writer);
	r = r < 0 ? r : finished;
	result.samples = recorder->tally.samples;
	result.lost = MAX(result.lost, recorder->tally.lost_records);
	result.throttled = recorder->tally.throttled;
	result.first_time_ns = recorder->tally.first_time_ns;
	result.last_time_ns = recorder->tally.last_time_ns;
	result.file_bytes = writer_bytes(recorder->writer);
	result.raw_bytes = writer_raw_bytes(recorder->writer);
	result.ring_bytes = recorder->ring_bytes;
	result.rings_shrunk = recorder->rings_shrunk;
	*ret = result;
	return r < 0 ? output_failed(recorder->options.output, r, err) : 0;
}

uint64_t recorder_file_bytes(const struct recorder *recorder)
{
	return writer_bytes(recorder->writer);
}

uint64_t recorder_elapsed_ns(const struct recorder *recorder)
{
	return clock_monotonic_ns() - recorder->start_ns;
}
