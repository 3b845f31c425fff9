/*
 * The flight recorder: what the rings still hold when the measurement has ended, all CPUs in time
 * order.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/util.h"
#include "latency/engine-own.h"
#include "latency/record-text.h"
#include "latency/trace-dat.h"

struct place {
	uint64_t time, position;
	unsigned cpu; /* index */
};

static int by_time(const void *va, const void *vb)
{
	const struct place *a = va, *b = vb;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	if (a->cpu != b->cpu)
		return a->cpu < b->cpu ? -1 : 1;
	return a->position < b->position ? -1 : a->position > b->position;
}

static int collect(struct latency_engine *engine, struct place **ret, size_t *ret_count)
{
	VEC(struct place) places = {0};
	struct lat_record record;
	int r = 0;

	for (unsigned i = 0; i < engine->cpu_count && r == 0; i++) {
		struct ring *ring = &engine->cpus[i].ring;
		uint64_t head = *ring->head, slots = (uint64_t)ring->mask + 1;

		for (uint64_t at = head > slots ? head - slots : 0; at < head && r == 0; at++)
			if (lat_ring_peek(ring, at, &record))
				r = vec_push(&places, ((struct place){record.time, at, i}));
	}
	if (r < 0) {
		vec_fini(&places);
		return r;
	}
	if (places.len)
		qsort(places.data, places.len, sizeof(*places.data), by_time);
	*ret = places.data;
	*ret_count = places.len;
	return 0;
}

int own_each(struct latency_engine *engine, struct latency_sink *sink)
{
	struct place *places;
	struct lat_record record;
	size_t count;
	int r = collect(engine, &places, &count);

	if (r < 0)
		return r;
	for (unsigned i = 0; i < engine->cpu_count; i++) {
		engine->cpus[i].has_period = false;
		engine->cpus[i].frames_have = 0;
		*engine->cpus[i].running = '\0';
	}
	for (size_t i = 0; i < count && r == 0; i++) {
		struct own_cpu *cpu = &engine->cpus[places[i].cpu];

		if (lat_ring_peek(&cpu->ring, places[i].position, &record))
			r = own_translate(engine, cpu, &record, sink);
	}
	free(places);
	return r;
}

struct text_sink {
	struct latency_sink sink;
	FILE *out;
};

static int write_text(struct latency_sink *sink, const struct latency_record *record)
{
	record_text(record, ((struct text_sink *)sink)->out);
	return 0;
}

static int each(void *arg, struct latency_sink *sink)
{
	return own_each(arg, sink);
}

int own_trace(struct latency_engine *engine, const char *path, struct err *err)
{
	struct text_sink text = {.sink.take = write_text};
	size_t len = strlen(path);
	int r;

	if (len > 4 && !strcmp(path + len - 4, ".dat"))
		return trace_dat_write_records(each, engine, "mono", path, err);
	text.out = fopen(path, "we");
	if (!text.out)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	fprintf(text.out, "# tracer: culprit engine %c\n#\n# clock: CLOCK_MONOTONIC\n",
		latency_engine_letter(engine->id));
	r = own_each(engine, &text.sink);
	if (fclose(text.out) && r == 0)
		r = -errno;
	return r < 0 ? err_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}
