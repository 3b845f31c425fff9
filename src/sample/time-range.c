/* "FROM,TO": a part of a recording by the times of its samples. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "sample/session-internal.h"

static int no_more(void *arg, const struct raw_sample *raw)
{
	(void)arg;
	(void)raw;
	return 0;
}

/* The times of the first and of the last sample: the header may tell, else all are read. */
static int sample_times(struct session *session, uint64_t *ret_first, uint64_t *ret_last)
{
	struct sample_reader reader;
	int r;

	if (session->sampled_last_ns > 0) {
		*ret_first = session->sampled_first_ns;
		*ret_last = session->sampled_last_ns;
		return 0;
	}
	r = sample_reader_init(&reader, session);
	for (size_t i = 0; i < session->chunks.len && r == 0; i++)
		r = sample_reader_run(&reader, &session->chunks.data[i], no_more, NULL);
	if (r == 0) {
		*ret_first = reader.samples ? MIN(reader.first_time, reader.last_time) : 0;
		*ret_last = reader.last_time;
	}
	sample_reader_fini(&reader);
	return r;
}

/* "26466.754084": digits beyond nanoseconds are dropped. */
static bool parse_seconds(const char *text, const char *end, uint64_t *ret_ns)
{
	uint64_t ns = 0, unit = NSEC_PER_SEC;

	if (text == end)
		return false;
	for (; text < end && isdigit((unsigned char)*text); text++)
		if (__builtin_mul_overflow(ns, 10, &ns) ||
		    __builtin_add_overflow(ns, (uint64_t)(*text - '0'), &ns))
			return false;
	if (__builtin_mul_overflow(ns, NSEC_PER_SEC, &ns))
		return false;
	if (text < end && *text == '.')
		for (text++; text < end && isdigit((unsigned char)*text); text++) {
			unit /= 10;
			if (__builtin_add_overflow(ns, unit * (uint64_t)(*text - '0'), &ns))
				return false;
		}
	*ret_ns = ns;
	return text == end;
}

static bool parse_bound(const char *text, const char *end, uint64_t first, uint64_t last,
			uint64_t *ret)
{
	uint64_t value;
	bool relative = text < end && *text == '+', percent = text < end && end[-1] == '%';

	if (text == end)
		return true; /* open: as it is */
	if (!parse_seconds(text + relative, end - percent, &value) || (relative && percent))
		return false;
	/* 100 % is 100 seconds' worth of nanoseconds here. */
	if (percent)
		value = (uint64_t)((double)(last - first) * ((double)value / (100.0 * 1e9)));
	*ret = value;
	if ((relative || percent) && __builtin_add_overflow(value, first, ret))
		*ret = UINT64_MAX;
	return true;
}

int session_time_range(struct session *session, const char *text, uint64_t *ret_from,
		       uint64_t *ret_to, struct err *err)
{
	uint64_t first = 0, last = 0, from = 0, to = UINT64_MAX;
	const char *comma;
	int r;

	if (!text) {
		*ret_from = 0;
		*ret_to = UINT64_MAX;
		return 0;
	}
	vec_for_each(&session->events, event)
		if (!(event->attr.sample_type & SAMPLE_TIME))
			return err_set(err, -ENODATA, "the samples have no times");
	r = sample_times(session, &first, &last);
	if (r < 0)
		return r;
	comma = strchrnul(text, ',');
	if (!parse_bound(text, comma, first, last, &from) ||
	    !parse_bound(comma + (*comma != '\0'), text + strlen(text), first, last, &to))
		return err_set(
			err, -EINVAL,
			"times '%s': give FROM,TO in seconds as perf script shows them, +seconds "
			"from the first sample, or percent of the recording",
			text);
	if (from > to)
		return err_set(err, -EINVAL, "times '%s': the end lies before the beginning", text);
	*ret_from = from;
	*ret_to = to;
	return 0;
}
