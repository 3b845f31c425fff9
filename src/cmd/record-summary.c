/* What record says at the end: how much, how precisely, what is missing, and what to do next. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/util.h"
#include "cmd/command.h"
#include "cmd/record.h"

#define STACK_BYTES_MAX  65528
#define LARGE_RING_BYTES (4u << 20)

static const char *skid_text(const struct perf_event_attr *attr)
{
	static const char *const precise[] = {
		"not precise: addresses may lie some tens of instructions behind the event (skid)",
		"precise: constant skid, usually one instruction",
		"precise: asked for no skid",
		"precise: no skid",
	};

	if (attr->type == PERF_TYPE_SOFTWARE &&
	    (attr->config == PERF_COUNT_SW_CPU_CLOCK || attr->config == PERF_COUNT_SW_TASK_CLOCK))
		return "a timer: code that runs with interrupts off is charged to the place where "
		       "they come on again";
	if (attr->type == PERF_TYPE_SOFTWARE || attr->type == PERF_TYPE_TRACEPOINT ||
	    attr->type == PERF_TYPE_BREAKPOINT)
		return "exact: the kernel samples at the event itself";
	return precise[attr->precise_ip];
}

static void put_count(struct str *out, uint64_t count)
{
	char digits[24];
	size_t len = (size_t)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)count);

	for (size_t i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			str_putc(out, ',');
		str_putc(out, digits[i]);
	}
}

static void put_rate(struct str *out, const struct perf_event_attr *attr)
{
	if (attr->freq)
		str_printf(out, "%llu Hz", (unsigned long long)attr->sample_freq);
	else
		str_printf(out, "every %llu", (unsigned long long)attr->sample_period);
}

static void put_losses(const struct command *self, const struct record_job *job)
{
	const struct recorder_result *result = &job->result;
	struct str line = {0};

	if (result->lost > 0) {
		put_count(&line, result->lost);
		str_printf(&line,
			   " samples were lost (%.2f%%): the file could not be written fast "
			   "enough; use a larger -m, a lower -F, or a faster disk",
			   100.0 * (double)result->lost / (double)(result->lost + result->samples));
		cmd_warnf(self, "%s", str_text(&line));
	}
	if (result->throttled > 0)
		cmd_warnf(self,
			  "the kernel throttled sampling %llu times; use a lower -F, or raise "
			  "kernel.perf_event_max_sample_rate",
			  (unsigned long long)result->throttled);
	if (result->rings_shrunk)
		cmd_warnf(self,
			  "ring buffers are only %llu KiB per CPU: kernel.perf_event_mlock_kb "
			  "allows no more; sudo sysctl "
			  "kernel.perf_event_mlock_kb=8192",
			  (unsigned long long)(result->ring_bytes / 1024));
	if (result->remark[0])
		cmd_warnf(self, "%s", result->remark);
	str_fini(&line);
}

/* "3,210 of 3,214 stacks are complete", and what is wrong with the others. */
static void put_stacks(const struct record_job *job)
{
	const struct recorder_result *result = &job->result;
	bool most = result->stack_bytes >= STACK_BYTES_MAX;
	bool small = result->ring_bytes < LARGE_RING_BYTES;
	bool raw = job->options.callgraph == CALLGRAPH_DWARF_RAW;
	uint64_t whole = result->stacks - result->cut_stacks - result->lost_stacks;
	struct str line = {0};

	if (result->stack_bytes == 0 || result->stacks == 0)
		return;
	put_count(&line, whole);
	str_puts(&line, " of ");
	put_count(&line, result->stacks);
	str_printf(&line, " stacks are complete (%.2f%%)",
		   100.0 * (double)whole / (double)result->stacks);
	if (result->cut_stacks > 0) {
		str_puts(&line, "; ");
		put_count(&line, result->cut_stacks);
		str_printf(&line, " are deeper than the %u bytes that are copied",
			   result->stack_bytes);
		if (most)
			str_puts(&line, ", the most there can be");
		else
			str_printf(&line, ": --call-graph dwarf,%s65528%s", raw ? "raw," : "",
				   small ? " -m 8M, as root" : "");
	}
	if (result->lost_stacks > 0) {
		str_puts(&line, "; ");
		put_count(&line, result->lost_stacks);
		str_printf(&line, " end early, most in %s", result->lost_in);
	}
	fprintf(stderr, "  %s\n", str_text(&line));
	str_fini(&line);
}

static void put_events(const struct record_job *job)
{
	vec_for_each(&job->events, event) {
		struct str line = {0};

		str_printf(&line, "  %s, ", event->name);
		put_rate(&line, &event->attr);
		str_printf(&line, "; %s", skid_text(&event->attr));
		fprintf(stderr, "%s\n", str_text(&line));
		str_fini(&line);
	}
}

void record_print_summary(const struct command *self, const struct record_job *job)
{
	const struct recorder_result *result = &job->result;
	struct str line = {0};
	char span[32];

	put_losses(self, job);
	put_count(&line, result->samples);
	if (result->samples > 0)
		str_printf(&line, " sample%s over %s", result->samples == 1 ? "" : "s",
			   duration_text(result->last_time_ns - result->first_time_ns, span,
					 sizeof(span)));
	else
		str_puts(&line, " samples");
	if (result->file_bytes < 1000000)
		str_printf(&line, ", %.1f KB in %s", (double)result->file_bytes / 1e3,
			   job->options.output);
	else
		str_printf(&line, ", %.1f MB in %s", (double)result->file_bytes / 1e6,
			   job->options.output);
	if (job->options.zstd_level > 0 && result->file_bytes > 0)
		str_printf(&line, " (%.1f times smaller than raw)",
			   (double)result->raw_bytes / (double)result->file_bytes);
	fprintf(stderr, "culprit record: %s\n", str_text(&line));
	put_events(job);
	put_stacks(job);
	if (job->no_pmu)
		fprintf(stderr, "  no hardware counters here (cycles is not supported): the timer "
				"stands in; 'culprit doctor' says why\n");
	if (job->user_only)
		fprintf(stderr, "  only user space: kernel.perf_event_paranoid forbids the kernel "
				"to this user; sudo sysctl "
				"kernel.perf_event_paranoid=1\n");
	if (job->frequency_cut)
		fprintf(stderr,
			"  the frequency was lowered to kernel.perf_event_max_sample_rate\n");
	if (result->samples == 0)
		fprintf(stderr, "  nothing was sampled: it ran too short, or was never on a CPU\n");
	if (job->options.verbose)
		fprintf(stderr, "  rings of %llu KiB per CPU\n",
			(unsigned long long)(result->ring_bytes / 1024));
	fprintf(stderr, "next: culprit report%s%s\n",
		strcmp(job->options.output, "perf.data") == 0 ? "" : " -i ",
		strcmp(job->options.output, "perf.data") == 0 ? "" : job->options.output);
	str_fini(&line);
}
