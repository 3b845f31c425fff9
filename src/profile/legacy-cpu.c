/*
 * The binary CPU profile: words of one size and byte order, which the five words of the header give
 * away (0, 3 words follow, 0 or 1 for Java, the sampling period in microseconds, 0). Then records
 * "count, depth, addresses from the leaf" up to the record 0, 1, 0, and text.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/util.h"
#include "profile/legacy-internal.h"

#define PERIOD_MAX_US (UINT64_C(1) << 40)

struct words {
	struct reader reader;
	bool wide;
};

static uint64_t word(struct words *w)
{
	return w->wide ? reader_u64(&w->reader) : reader_u32(&w->reader);
}

struct cpu_header {
	struct words words; /* behind the header */
	uint64_t period_us;
	bool java;
};

static bool read_header(const void *data, size_t size, struct cpu_header *ret)
{
	for (unsigned i = 0; i < 4; i++) {
		struct words w = {reader_make(data, size, i & 1), i >= 2};
		uint64_t zero = word(&w), length = word(&w), java = word(&w), period = word(&w),
			 padding = word(&w);

		if (w.reader.failed || zero != 0 || length != 3 || java > 1 || period == 0 ||
		    period > PERIOD_MAX_US || padding != 0)
			continue;
		*ret = (struct cpu_header){w, period, java == 1};
		return true;
	}
	return false;
}

bool legacy_detect_cpu(const void *data, size_t size)
{
	struct cpu_header header;

	return read_header(data, size, &header);
}

static int bad_record(struct legacy *l, size_t at, const char *what)
{
	return err_set(l->err, -EBADMSG, "the record at byte %zu of the CPU profile %s", at, what);
}

static int read_record(struct legacy *l, struct words *w, const struct cpu_header *header,
		       bool *ret_end)
{
	size_t at = w->reader.pos;
	uint64_t count = word(w), depth = word(w), address = 0;
	struct legacy_sample *sample;
	int r;

	if (w->reader.failed || depth > reader_left(&w->reader) / (w->wide ? 8 : 4))
		return bad_record(l, at, "is cut off");
	r = legacy_add_sample(l);
	for (uint64_t i = 0; r == 0 && i < depth; i++) {
		address = word(w);
		if (i > 0 && !header->java && !l->symbolized)
			address--;
		r = legacy_add_address(l, address);
	}
	if (r < 0)
		return r;
	sample = &l->samples.data[l->samples.len - 1];
	*ret_end = count == 0 && depth == 1 && address == 0;
	/* In the symbolized form records of nothing are there for the sake of some reader. */
	if (*ret_end || (count == 0 && l->symbolized)) {
		l->addresses.len = sample->first;
		l->samples.len--;
		return 0;
	}
	if (count > INT64_MAX ||
	    __builtin_mul_overflow((int64_t)count, l->profile->period, &sample->values[1]))
		return bad_record(l, at, "has a count beyond 64 bits of nanoseconds");
	sample->values[0] = (int64_t)count;
	return 0;
}

static void remove_second(struct legacy *l, struct legacy_sample *sample)
{
	uint64_t *addresses = l->addresses.data + sample->first;

	memmove(addresses + 1, addresses + 2, (sample->count - 2) * sizeof(*addresses));
	sample->count--;
}

/* The address that is second in at least want samples, if there is one (want > half of them):
 * the vote of pairs finds the only candidate, which is then counted. */
static bool common_second(const struct legacy *l, size_t want, uint64_t *ret)
{
	size_t votes = 0, count = 0;

	vec_for_each(&l->samples, s) {
		uint64_t address = s->count > 1 ? l->addresses.data[s->first + 1] : 0;

		if (s->count < 2)
			continue;
		if (votes == 0)
			*ret = address;
		votes += address == *ret ? 1 : (size_t)-1;
	}
	vec_for_each(&l->samples, s)
		count += s->count > 1 && l->addresses.data[s->first + 1] == *ret;
	return count > 0 && count >= want;
}

/*
 * A second frame that (nearly) all samples share is the signal handler's; there may be two. And the
 * leaf may be there twice, from the signal's context and from unwinding, less one.
 */
static void strip_signal_frames(struct legacy *l)
{
	size_t want = l->samples.len - l->samples.len / 32;
	uint64_t second = 0;

	for (unsigned i = 0; i < 2 && common_second(l, want, &second); i++)
		vec_for_each(&l->samples, s)
			if (s->count > 1 && l->addresses.data[s->first + 1] == second)
				remove_second(l, s);
	vec_for_each(&l->samples, s)
		if (s->count > 1 &&
		    l->addresses.data[s->first] == l->addresses.data[s->first + 1] + 1)
			remove_second(l, s);
}

int legacy_read_cpu(struct legacy *l, struct scan_lines *lines)
{
	static const char *const types[] = {"samples", "count", "cpu", "nanoseconds", NULL};
	struct scan_lines rest = *lines;
	struct cpu_header header;
	struct words *w = &header.words;
	bool end = false;
	int r;

	if (!read_header(lines->rest.at, scan_len(lines->rest), &header))
		return err_set(l->err, -EBADMSG, "the header of the CPU profile is damaged");
	r = legacy_types(l, types, "cpu", "nanoseconds", (int64_t)header.period_us * 1000);
	while (r == 0 && !end && reader_left(&w->reader) > 0)
		r = read_record(l, w, &header, &end);
	if (r < 0)
		return r;
	rest.rest.at = (const char *)w->reader.data + w->reader.pos;
	l->no_addresses = header.java;
	if (header.java)
		return legacy_read_java_names(l, &rest);
	if (!l->symbolized)
		strip_signal_frames(l);
	return legacy_read_maps(l, &rest);
}
