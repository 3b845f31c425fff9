#include "latency/trace-dat-parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpuset.h"
#include "base/util.h"

int dat_damaged(const struct dat_reading *dat, const struct reader *at, const char *what)
{
	return err_set(dat->err, -EBADMSG, "trace.dat: %s: damaged at byte %zu", what,
		       at->failed ? at->fail_pos : at->pos);
}

static const char *function_of(void *arg, uint64_t address)
{
	struct dat_reading *dat = arg;

	return kernel_names_find(&dat->names, address);
}

/* A block with its size in front. */
const uint8_t *dat_block(struct reader *r, unsigned size_bytes, size_t *ret_size)
{
	uint64_t size = size_bytes == 8 ? reader_u64(r) : reader_u32(r);

	*ret_size = (size_t)size;
	return reader_take(r, size > SIZE_MAX ? SIZE_MAX : (size_t)size);
}

static bool expect(struct reader *r, const char *word, size_t size)
{
	const uint8_t *at = reader_take(r, size);

	return at && memcmp(at, word, size) == 0;
}

int dat_read_header_info(struct dat_reading *dat, struct reader *r)
{
	const struct trace_names names = {dat, NULL, function_of};
	const uint8_t *text;
	size_t size;
	int status;

	if (dat->decoder || !expect(r, "header_page", 12) || !(text = dat_block(r, 8, &size)))
		return dat_damaged(dat, r, "header_page");
	status = trace_page_layout_parse((const char *)text, size, dat->big_endian, &dat->layout,
					 dat->err);
	if (status < 0)
		return err_wrap(dat->err, status, "trace.dat");
	if (!expect(r, "header_event", 13) || !dat_block(r, 8, &size))
		return dat_damaged(dat, r, "header_event");
	return trace_decoder_new(&dat->layout, &names, &dat->decoder);
}

/* Formats that are of no use are skipped, whatever they hold. */
static int take_format(struct dat_reading *dat, const char *system, struct reader *r)
{
	size_t size;
	const uint8_t *text = dat_block(r, 8, &size);
	int status;

	if (!text)
		return dat_damaged(dat, r, "event formats");
	status = trace_decoder_event(dat->decoder, system, (const char *)text, size, NULL);
	return status == -ENOMEM ? status : 0;
}

int dat_read_ftrace_formats(struct dat_reading *dat, struct reader *r)
{
	uint32_t count = reader_u32(r);
	int status = 0;

	for (uint32_t i = 0; status == 0 && i < count; i++)
		status = take_format(dat, "ftrace", r);
	return status == 0 && r->failed ? dat_damaged(dat, r, "event formats") : status;
}

int dat_read_event_formats(struct dat_reading *dat, struct reader *r)
{
	uint32_t systems = reader_u32(r);
	int status = 0;

	for (uint32_t s = 0; status == 0 && s < systems; s++) {
		const char *system = reader_cstr(r);
		uint32_t count = reader_u32(r);

		if (!system || r->failed)
			return dat_damaged(dat, r, "event systems");
		for (uint32_t i = 0; status == 0 && i < count; i++)
			status = take_format(dat, system, r);
	}
	return status == 0 && r->failed ? dat_damaged(dat, r, "event systems") : status;
}

int dat_read_functions(struct dat_reading *dat, struct reader *r)
{
	size_t size;
	const uint8_t *text = dat_block(r, 4, &size);
	char *copy;
	int status;

	if (!text)
		return dat_damaged(dat, r, "function names");
	if (dat->names.text || size == 0)
		return 0;
	copy = malloc(size + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, text, size);
	copy[size] = '\0';
	status = kernel_names_take(copy, size, &dat->names);
	return status == -ENOMEM ? status : 0;
}

int dat_read_comms(struct dat_reading *dat, struct reader *r)
{
	size_t size;
	const uint8_t *text = dat_block(r, 8, &size);

	if (!text)
		return dat_damaged(dat, r, "thread names");
	return trace_decoder_comms(dat->decoder, (const char *)text, size);
}

/* The chosen clock stands in brackets, or alone. */
void dat_take_clock(struct dat_reading *dat, const uint8_t *data, size_t size)
{
	static const char *const other[] = {"counter", "uptime", "x86-tsc", "ppc-tb"};
	const char *text = (const char *)data, *open = memchr(text, '[', size);
	const char *close = open ? memchr(open, ']', size - (size_t)(open - text)) : NULL;
	size_t len = close ? (size_t)(close - open - 1) : strnlen(text, size);

	text = close ? open + 1 : text;
	for (size_t i = 0; i < ARRAY_LEN(other); i++)
		dat->no_times |= len == strlen(other[i]) && memcmp(text, other[i], len) == 0;
}

int dat_add_extent(struct dat_reading *dat, unsigned cpu, bool compressed, uint64_t offset,
		   uint64_t size)
{
	if (size == 0)
		return 0;
	if (cpu >= CPUSET_MAX || offset > dat->file.size || size > dat->file.size - offset)
		return err_set(dat->err, -EBADMSG,
			       "trace.dat: the pages of CPU %u lie outside the file", cpu);
	dat->extents_bytes += size;
	if (dat->extents_bytes > dat->file.size) /* else a small file could cost hours */
		return err_set(dat->err, -EBADMSG, "trace.dat: the pages of CPUs overlap");
	return vec_push(&dat->extents, ((struct dat_extent){cpu, compressed, offset, size}));
}
