/* The results as lines of text, when the program ends or asks for it. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "regions-internal.h"

uint64_t culprit_region_wall_ns(const struct thread *t, uint64_t value)
{
	if (t->tick_mult == 0)
		return value;
	return (uint64_t)(((unsigned __int128)value * t->tick_mult) >> t->tick_shift);
}

static void write_name(FILE *file, const char *name)
{
	for (; *name; name++) {
		unsigned char c = (unsigned char)*name;

		if (c < ' ' || c == '\\' || c == 127)
			fprintf(file, "\\x%02x", c);
		else
			fputc(c, file);
	}
}

static void write_events(FILE *file, const struct process *process, const struct thread *self)
{
	static const char *const states[] = {"counted", "not_supported", "not_counted"};
	const struct thread *t = self ? self : process->threads;

	fprintf(file, "event\twall\tcounted\tclock\t\n");
	for (unsigned i = 0; i < process->events.count; i++) {
		const struct event *event = &process->events.events[i];

		fputs("event\t", file);
		write_name(file, event->name);
		fprintf(file, "\t%s\t%s\t", states[event->state],
			event->state != EVENT_COUNTED ? "-"
			: t && t->counters.direct     ? "direct"
						      : "read");
		write_name(file, event->reason);
		fputc('\n', file);
	}
	fprintf(file, "cost\t%llu\t", (unsigned long long)process->pair_ns);
	if (process->pair_cycles)
		fprintf(file, "%llu\n", (unsigned long long)process->pair_cycles);
	else
		fputs("-\n", file);
}

static void write_thread(FILE *file, const struct thread *t)
{
	unsigned count = __atomic_load_n(&t->count, __ATOMIC_ACQUIRE);

	fprintf(file, "thread\t%d\t%llu\t%llu\n", t->tid, (unsigned long long)t->lost,
		(unsigned long long)t->stray_ends);
	for (unsigned i = 0; i < count; i++) {
		const struct region *region = region_at(t, i);
		uint64_t open = region->unbalanced + region->depth;

		if (region->calls == 0 && open == 0)
			continue;
		fputs("region\t", file);
		write_name(file, region->name);
		fprintf(file, "\t%llu\t%llu", (unsigned long long)region->calls,
			(unsigned long long)open);
		for (unsigned v = 0; v < t->value_count; v++)
			fprintf(file, "\t%llu\t%llu",
				(unsigned long long)(v ? region->total[v]
						       : culprit_region_wall_ns(t,
										region->total[0])),
				(unsigned long long)(v ? region->self[v]
						       : culprit_region_wall_ns(t,
										region->self[0])));
		fputc('\n', file);
	}
}

/* The path with %p as the process's number; a forked child without %p appends it, so as not to
 * overwrite its parent's file. */
static void result_path(const struct process *process, char *out, size_t size)
{
	size_t len = 0;
	bool numbered = false;

	for (const char *from = process->path; *from && len + 24 < size; from++) {
		if (from[0] == '%' && from[1] == 'p') {
			len += (size_t)snprintf(out + len, size - len, "%d", (int)getpid());
			numbered = true;
			from++;
		} else {
			out[len++] = *from;
		}
	}
	out[len] = '\0';
	if (!numbered && getpid() != process->pid)
		snprintf(out + len, size - len, ".%d", (int)getpid());
}

int culprit_regions_write_file(struct process *process, const struct thread *self)
{
	char path[4096];
	FILE *file;
	int r = 0;

	result_path(process, path, sizeof(path));
	file = fopen(path, "we");
	if (!file)
		return -errno;
	pthread_mutex_lock(&process->lock);
	fprintf(file, "culprit-regions\t1\nprocess\t%d\t", (int)getpid());
	write_name(file, program_invocation_short_name);
	fprintf(file, "\t%llu\n", (unsigned long long)process->lost_threads);
	write_events(file, process, self);
	for (const struct thread *t = process->threads; t; t = t->next)
		write_thread(file, t);
	fputs("end\n", file);
	pthread_mutex_unlock(&process->lock);
	if (fflush(file) != 0)
		r = -errno;
	fclose(file);
	return r;
}
