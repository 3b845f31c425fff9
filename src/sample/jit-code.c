/*
 * Code of just-in-time compilers as mappings: from the moment it was loaded or moved to a place,
 * the place holds it. Addresses that are used again thus have the name that was right at the time.
 *
 * The file's clock must be made that of the recording. Files are written with CLOCK_MONOTONIC or
 * count cycles; recordings use CLOCK_MONOTONIC (culprit's own), the kernel's own clock (perf's
 * default) or another. A process maps its file when it begins it, and what it compiles at once is
 * written at once: the time of that mapping in the recording stands beside that of the header, or
 * of the first record where the header has another clock (V8's is the time of day). When the
 * process began before the recording, only equal clocks and cycles whose conversion the recording
 * knows help; code that no time can be told of is named by what was placed last
 * (symbols/module-text.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/util.h"
#include "sample/session-internal.h"
#include "symbols/jitdump.h"

/* What is written earlier than the file was mapped, or that much later, has another clock. */
#define SAME_EARLY_NS NSEC_PER_SEC
#define SAME_LATE_NS  (3600 * NSEC_PER_SEC)
/* The header belongs to the records' clock when they begin that soon. */
#define HEADER_NS (60 * NSEC_PER_SEC)

struct clock_change {
	const struct session *session;
	bool cycles;
	int64_t delta;
};

static uint64_t in_events_clock(const struct clock_change *change, uint64_t time)
{
	const struct session *session = change->session;

	if (change->cycles) {
		uint64_t whole = time >> session->time_shift,
			 part = time & ((UINT64_C(1) << session->time_shift) - 1);

		time = session->time_zero + whole * session->time_mult +
		       (part * session->time_mult >> session->time_shift);
	}
	time += (uint64_t)change->delta;
	/* What the recorder knew beforehand is at 0: code that is older comes right behind. */
	return change->delta < 0 && (int64_t)time <= 0 ? 1 : MAX(time, 1u);
}

static bool monotonic_events(const struct session *session)
{
	vec_for_each(&session->events, event)
		if (!event->attr.use_clockid || event->attr.clockid != CLOCK_MONOTONIC)
			return false;
	return true;
}

/* False when nothing relates the two clocks. */
static bool relate_clocks(const struct session *session, const struct jitdump *dump,
			  const struct jitdump_seen *seen, struct clock_change *ret)
{
	bool same;

	*ret = (struct clock_change){.session = session, .cycles = dump->arch_time};
	if (dump->arch_time && session->time_mult == 0)
		return false;
	/* The conversion leads to the kernel's own clock. */
	same = dump->arch_time ? !session->events.data[0].attr.use_clockid
			       : monotonic_events(session);
	if (seen->key > 0 && dump->first_time > 0) {
		uint64_t first = in_events_clock(ret, dump->first_time),
			 start = in_events_clock(ret, dump->start_time);

		if (start > first || first - start > HEADER_NS)
			start = first;
		if (!same || first + SAME_EARLY_NS < seen->key ||
		    (first > seen->key && first - seen->key > SAME_LATE_NS))
			ret->delta = (int64_t)(seen->key - start);
		return true;
	}
	return same;
}

static int add_places(struct session *session, const struct jitdump *dump,
		      const struct jitdump_seen *seen, uint32_t dso)
{
	struct clock_change change;
	int r = 0;

	if (!relate_clocks(session, dump, seen, &change))
		return 0;
	for (size_t i = 0; r == 0 && i < dump->places.len; i++) {
		const struct jitdump_place *place = &dump->places.data[i];
		const struct jitdump_code *code = &dump->codes.data[place->code];
		struct side_event event = {.kind = SIDE_CODE,
					   .key = in_events_clock(&change, place->time),
					   .pid = seen->pid,
					   .start = place->address,
					   .end = place->address + place->size,
					   .pgoff = code->base,
					   .dso = dso};

		r = frontier_add(session, &event);
	}
	return r;
}

static bool seen_before(const struct session *session, size_t index)
{
	const struct jitdump_seen *all = session->jitdumps.data;

	for (size_t i = 0; i < index; i++)
		if (all[i].pid == all[index].pid && strcmp(all[i].path, all[index].path) == 0)
			return true;
	return false;
}

int session_jit_code(struct session *session)
{
	int r = 0;

	if (!session->timed)
		return 0;
	for (size_t i = 0; r == 0 && i < session->jitdumps.len; i++) {
		const struct jitdump_seen *seen = &session->jitdumps.data[i];
		struct jitdump dump = {0};
		char *data = NULL;
		uint32_t dso;
		size_t size;

		if (seen_before(session, i) ||
		    jitdump_read("", seen->pid, seen->path, &data, &size, NULL) < 0)
			continue;
		if (jitdump_parse(data, size, &dump) == 0) {
			r = session_dso_add(session, seen->path, MODULE_JITDUMP, NULL, seen->pid,
					    &dso);
			if (r == 0)
				r = add_places(session, &dump, seen, dso);
		}
		jitdump_fini(&dump);
		free(data);
	}
	return r;
}
