/*
 * Text profiles, a line per sample. What the values mean is in the first line and, for contention,
 * in the lines "attribute = value" that follow it.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "profile/legacy-internal.h"

/* Java samples its heap once in 512 KiB and does not say so. */
#define JAVA_HEAP_PERIOD 524288

static bool skip_line(const struct scan *line)
{
	return scan_len(*line) == 0 || *line->at == '#';
}

static bool is_count_heading(struct scan s, struct scan *ret_type)
{
	const char *from = s.at;
	int64_t total;

	while (s.at < s.end && (*s.at == '_' || (*s.at >= '0' && *s.at <= '9') ||
				((*s.at | 0x20) >= 'a' && (*s.at | 0x20) <= 'z')))
		s.at++;
	*ret_type = (struct scan){from, s.at};
	return s.at > from && scan_take(&s, " profile: total ") && scan_i64(&s, &total);
}

bool legacy_detect_text(const void *data, size_t size)
{
	static const char *const headings[] = {
		"heap profile:", "--- heapz",  "--- contention", "--- mutex:",
		"--- threadz",   "--- Thread", "--- symbol",
	};
	struct scan_lines reader = {.rest = scan_of(size ? data : "", MIN(size, 4096))};
	struct scan line, type;

	if (size == 0)
		return false;
	while (scan_trimmed_line(&reader, &line))
		if (!skip_line(&line))
			break;
	if (reader.number == 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(headings); i++)
		if (scan_starts(line, headings[i]))
			return true;
	return is_count_heading(line, &type);
}

/* The memory map, after whatever else; line is the last one read. */
static int read_rest(struct legacy *l, struct scan_lines *reader, struct scan line)
{
	while (!legacy_is_maps_heading(&line))
		if (!scan_trimmed_line(reader, &line))
			return 0;
	return legacy_read_maps(l, reader);
}

static int too_large(struct legacy *l, const struct scan_lines *reader)
{
	return err_set(l->err, -EOVERFLOW, "line %zu: a value beyond 64 bits", reader->number);
}

static bool to_i64(double x, int64_t *ret)
{
	if (!(x > -9.2e18 && x < 9.2e18))
		return false;
	*ret = (int64_t)x;
	return true;
}

/*
 * An allocation of S bytes is seen with the probability 1 - exp(-S / period), when bytes are
 * sampled as a Poisson process: what was seen stands for that much more.
 */
static bool unsample(int64_t *count, int64_t *bytes, int64_t period)
{
	double scale;

	if (*count == 0 || *bytes == 0) {
		*count = *bytes = 0;
		return true;
	}
	if (period <= 1)
		return true;
	scale = 1 / (1 - exp(-((double)*bytes / (double)*count) / (double)period));
	return to_i64((double)*count * scale, count) && to_i64((double)*bytes * scale, bytes);
}

struct heap {
	bool sampled, allocations;
	int64_t period;
};

/* "N: BYTES [N: BYTES] @": objects in use, then all that were allocated. */
static bool heap_counts(struct scan *s, int64_t *counts)
{
	static const char *const signs[] = {":", "[", ":", "]"};

	for (unsigned i = 0; i < 4; i++) {
		scan_blanks(s);
		if (!scan_i64(s, &counts[i]))
			return false;
		scan_blanks(s);
		if (!scan_take(s, signs[i]))
			return false;
	}
	scan_blanks(s);
	return scan_take(s, "@");
}

static int heap_heading(struct legacy *l, struct scan_lines *reader, struct scan line,
			struct heap *heap)
{
	static const char *const all[] = {"alloc_objects", "count",         "alloc_space",
					  "bytes",         "inuse_objects", "count",
					  "inuse_space",   "bytes",         NULL};
	static const char *const in_use[] = {"objects", "count", "space", "bytes", NULL};
	struct scan kind;
	int64_t c[4];

	(void)scan_take(&line, "heap profile:");
	if (!heap_counts(&line, c))
		return legacy_bad_line(l, reader, "the totals of the heap profile are damaged");
	scan_blanks(&line);
	kind = line;
	while (line.at < line.end && *line.at != '/')
		line.at++;
	kind.end = line.at;
	kind = scan_trim(kind);
	if (scan_take(&line, "/") && scan_len(line) > 0 && !scan_i64(&line, &heap->period))
		return legacy_bad_line(l, reader, "the sampling period is damaged");
	heap->sampled = true;
	if (scan_starts(kind, "heap_v2") || scan_starts(kind, "heapz_v2")) {
		;
	} else if (scan_starts(kind, "heapprofile") || scan_starts(kind, "growthz") ||
		   scan_starts(kind, "fragmentationz")) {
		heap->period = 1;
		heap->sampled = false;
	} else if (kind.end - kind.at == 4 && scan_starts(kind, "heap")) {
		heap->period /= 2; /* Go writes twice its rate */
	} else {
		return legacy_bad_line(l, reader, "unknown kind of heap profile");
	}
	heap->allocations = !scan_starts(kind, "growthz") && !scan_starts(kind, "fragmentationz") &&
			    ((c[2] != c[0] && c[2] != 0) || (c[3] != c[1] && c[3] != 0));
	return legacy_types(l, heap->allocations ? all : in_use, "space", "bytes", heap->period);
}

static int heap_pair(struct legacy *l, struct scan_lines *reader, const struct heap *heap,
		     const int64_t *counts, int64_t *values)
{
	struct legacy_sample *sample = &l->samples.data[l->samples.len - 1];

	values[0] = counts[0];
	values[1] = counts[1];
	if (counts[0] == 0)
		return counts[1] == 0 ? 0 : legacy_bad_line(l, reader, "bytes without an object");
	sample->block_bytes = counts[1] / counts[0];
	if (heap->sampled && !unsample(&values[0], &values[1], heap->period))
		return too_large(l, reader);
	return 0;
}

static int heap_sample(struct legacy *l, struct scan_lines *reader, const struct heap *heap,
		       struct scan line)
{
	struct legacy_sample *sample;
	int64_t c[4];
	int r;

	if (!heap_counts(&line, c))
		return legacy_bad_line(l, reader, "no sample of a heap profile");
	r = legacy_add_sample(l);
	if (r < 0)
		return r;
	sample = &l->samples.data[l->samples.len - 1];
	sample->has_block = true;
	if (heap->allocations)
		r = heap_pair(l, reader, heap, c + 2, sample->values);
	if (r == 0)
		r = heap_pair(l, reader, heap, c, sample->values + (heap->allocations ? 2 : 0));
	return r < 0 ? r : legacy_add_addresses(l, line, 0);
}

static int read_heap(struct legacy *l, struct scan_lines *reader, struct scan line)
{
	struct heap heap = {0};
	int r = heap_heading(l, reader, line, &heap);

	while (r == 0 && scan_trimmed_line(reader, &line)) {
		if (legacy_is_maps_heading(&line))
			break;
		if (skip_line(&line))
			r = legacy_read_go_name(l, line);
		else
			r = heap_sample(l, reader, &heap, line);
	}
	return r < 0 ? r : read_rest(l, reader, line);
}

struct attributes {
	int64_t cycles_per_second, period, ms;
	bool java, resolution;
	char unit[16];
};

/* "attribute = value"; false when the line is none. */
static bool read_attribute(struct scan line, struct attributes *a)
{
	const char *sign = memchr(line.at, '=', (size_t)(line.end - line.at));
	struct scan key, value;

	if (!sign)
		return false;
	key = (struct scan){line.at, sign};
	value = (struct scan){sign + 1, line.end};
	key = scan_trim(key);
	value = scan_trim(value);
	if (scan_starts(key, "cycles/second"))
		return scan_i64(&value, &a->cycles_per_second);
	if (scan_starts(key, "sampling period"))
		return scan_i64(&value, &a->period);
	if (scan_starts(key, "ms since reset"))
		return scan_i64(&value, &a->ms);
	if (scan_starts(key, "format"))
		a->java = scan_starts(value, "java");
	if (scan_starts(key, "resolution")) {
		a->resolution = true;
		snprintf(a->unit, sizeof(a->unit), "%.*s",
			 (int)MIN(value.end - value.at, (ptrdiff_t)sizeof(a->unit) - 1), value.at);
	}
	return true;
}

/* The values of a sample, as the reader of its kind makes them. */
typedef bool (*pair_fn)(const struct attributes *a, int64_t first, int64_t second,
			struct legacy_sample *sample);

static bool contention_pair(const struct attributes *a, int64_t cycles, int64_t count,
			    struct legacy_sample *sample)
{
	int64_t *v = sample->values;

	v[0] = count;
	v[1] = cycles;
	if (a->period <= 0)
		return true;
	/* In this order: the results are to be those of pprof to the nanosecond. */
	if (a->cycles_per_second > 0 &&
	    !to_i64((double)cycles * (double)a->period / ((double)a->cycles_per_second / 1e9),
		    &v[1]))
		return false;
	return !__builtin_mul_overflow(count, a->period, &v[0]);
}

static bool java_heap_pair(const struct attributes *a, int64_t bytes, int64_t count,
			   struct legacy_sample *sample)
{
	(void)a;
	sample->values[0] = count;
	sample->values[1] = bytes;
	sample->has_block = true;
	sample->block_bytes = count != 0 ? bytes / count : 0;
	return unsample(&sample->values[0], &sample->values[1], JAVA_HEAP_PERIOD);
}

static bool java_contention_pair(const struct attributes *a, int64_t delay, int64_t count,
				 struct legacy_sample *sample)
{
	int64_t period = a->period > 0 ? a->period : 1;

	return !__builtin_mul_overflow(count, period, &sample->values[0]) &&
	       !__builtin_mul_overflow(delay, period, &sample->values[1]);
}

/* "FIRST SECOND @ addresses"; false when the line is none. */
static bool is_pair(struct scan *s, int64_t *ret_first, int64_t *ret_second)
{
	if (!scan_i64(s, ret_first))
		return false;
	scan_blanks(s);
	if (!scan_i64(s, ret_second))
		return false;
	scan_blanks(s);
	return scan_take(s, "@");
}

static int add_pair(struct legacy *l, struct scan_lines *reader, const struct attributes *a,
		    pair_fn pair, struct scan line)
{
	int64_t first, second;
	int r;

	if (!is_pair(&line, &first, &second))
		return legacy_bad_line(l, reader, "no sample of two values and addresses");
	r = legacy_add_sample(l);
	if (r < 0)
		return r;
	if (!pair(a, first, second, &l->samples.data[l->samples.len - 1]))
		return too_large(l, reader);
	return legacy_add_addresses(l, line, a->java ? UINT_MAX : 0);
}

static int read_java_pairs(struct legacy *l, struct scan_lines *reader, const struct attributes *a,
			   pair_fn pair, struct scan line, bool more)
{
	struct scan_lines before = *reader;
	int64_t first, second;
	int r = 0;

	l->no_addresses = true;
	for (; r == 0 && more; more = scan_trimmed_line(reader, &line)) {
		struct scan s = line;

		if (!skip_line(&line)) {
			if (!is_pair(&s, &first, &second))
				break;
			r = add_pair(l, reader, a, pair, line);
		}
		before = *reader;
	}
	if (r < 0)
		return r;
	/* The line that is no sample is a name already. */
	if (more)
		before.rest.at = line.at;
	else
		before = *reader;
	return legacy_read_java_names(l, &before);
}

static int java_types(struct legacy *l, bool heap, const struct attributes *a)
{
	const char *unit = a->resolution ? a->unit : heap ? "bytes" : "nanoseconds";
	const char *const in_use[] = {"inuse_objects", "count", "inuse_space", unit, NULL};
	const char *const waits[] = {"contentions", "count", "delay", unit, NULL};

	if (heap)
		return legacy_types(l, in_use, "", "", 0);
	return legacy_types(l, waits, "contentions", "count", a->period);
}

/* Contention of C++, Go and Java, and the heap of Java. */
static int read_pairs(struct legacy *l, struct scan_lines *reader, struct scan line)
{
	static const char *const types[] = {"contentions", "count", "delay", "nanoseconds", NULL};
	struct attributes a = {.period = 1};
	bool heap = scan_starts(line, "--- heapz"), more;
	int r;

	while ((more = scan_trimmed_line(reader, &line)))
		if (scan_len(line) > 0 && (scan_starts(line, "---") || !read_attribute(line, &a)))
			break;
	if (more && memchr(line.at, '=', (size_t)(line.end - line.at)) && *line.at != '-')
		return legacy_bad_line(l, reader, "the attribute is no number");
	if (__builtin_mul_overflow(a.ms, 1000000, &l->profile->duration_ns) || a.ms < 0)
		return legacy_bad_line(l, reader, "the time since reset is out of range");
	if (heap && !a.java)
		return legacy_bad_line(l, reader, "a heapz profile that is not of Java");
	if (a.java) {
		r = java_types(l, heap, &a);
		return r < 0 ? r
			     : read_java_pairs(l, reader, &a,
					       heap ? java_heap_pair : java_contention_pair, line,
					       more);
	}
	r = legacy_types(l, types, "contentions", "count", a.period);
	for (; r == 0 && more; more = scan_trimmed_line(reader, &line)) {
		if (scan_starts(line, "---") || legacy_is_maps_heading(&line))
			break;
		if (skip_line(&line))
			r = legacy_read_go_name(l, line);
		else
			r = add_pair(l, reader, &a, contention_pair, line);
	}
	return r < 0 || !more ? r : read_rest(l, reader, line);
}

/* The frames of one thread; ends with the next heading in *line, or *more false. */
static int read_thread(struct legacy *l, struct scan_lines *reader, struct scan *line, bool *more)
{
	bool same = false;
	int r = legacy_add_sample(l);
	struct legacy_sample *sample;

	while (r == 0 && (*more = scan_trimmed_line(reader, line))) {
		if (scan_starts(*line, "---") || legacy_is_maps_heading(line))
			break;
		if (scan_find(*line, "same as previous thread"))
			same = true;
		else
			r = legacy_add_addresses(l, *line, 1);
	}
	if (r < 0)
		return r;
	sample = &l->samples.data[l->samples.len - 1];
	sample->values[0] = 1;
	if (sample->count > 0 && !same)
		return 0;
	l->addresses.len = sample->first;
	l->samples.len--;
	if (l->samples.len > 0)
		sample[-1].values[0]++;
	return 0;
}

static int read_threads(struct legacy *l, struct scan_lines *reader, struct scan line)
{
	static const char *const types[] = {"thread", "count", NULL};
	int r = legacy_types(l, types, "thread", "count", 1);
	bool more = true;

	if (r == 0 && scan_starts(line, "--- threadz"))
		while ((more = scan_trimmed_line(reader, &line)))
			if (legacy_is_maps_heading(&line) || scan_starts(line, "-"))
				break;
	while (r == 0 && more && scan_starts(line, "--- Thread "))
		r = read_thread(l, reader, &line, &more);
	if (r == 0 && more && !legacy_is_maps_heading(&line) &&
	    !scan_starts(line, "---- no stack trace for"))
		return legacy_bad_line(l, reader, "no thread of a thread profile");
	return r < 0 || !more ? r : read_rest(l, reader, line);
}

static int read_counts(struct legacy *l, struct scan_lines *reader, struct scan line)
{
	const char *types[] = {NULL, "count", NULL};
	char name[64];
	struct scan type;
	int r;

	if (!is_count_heading(line, &type) || type.end - type.at >= (ptrdiff_t)sizeof(name))
		return legacy_bad_line(l, reader, "unknown kind of profile");
	snprintf(name, sizeof(name), "%.*s", (int)(type.end - type.at), type.at);
	types[0] = name;
	r = legacy_types(l, types, name, "count", 1);
	while (r == 0 && scan_trimmed_line(reader, &line)) {
		int64_t count;

		if (scan_starts(line, "---") || legacy_is_maps_heading(&line))
			return read_rest(l, reader, line);
		if (skip_line(&line)) {
			r = legacy_read_go_name(l, line);
			continue;
		}
		if (!scan_i64(&line, &count))
			return legacy_bad_line(l, reader, "no count");
		scan_blanks(&line);
		if (!scan_take(&line, "@"))
			return legacy_bad_line(l, reader, "no @ behind the count");
		r = legacy_add_sample(l);
		if (r < 0)
			return r;
		l->samples.data[l->samples.len - 1].values[0] = count;
		r = legacy_add_addresses(l, line, 0);
	}
	return r;
}

int legacy_read_text(struct legacy *l, struct scan_lines *reader)
{
	struct scan line;

	do {
		if (!scan_trimmed_line(reader, &line))
			return legacy_bad_line(l, reader, "no profile");
	} while (skip_line(&line));
	if (scan_starts(line, "heap profile:"))
		return read_heap(l, reader, line);
	if (scan_starts(line, "--- heapz") || scan_starts(line, "--- contention") ||
	    scan_starts(line, "--- mutex:"))
		return read_pairs(l, reader, line);
	if (scan_starts(line, "--- thread") || scan_starts(line, "--- Thread "))
		return read_threads(l, reader, line);
	return read_counts(l, reader, line);
}
