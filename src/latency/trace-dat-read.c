/*
 * trace.dat, versions 6 and 7. Version 6 is one sequence of parts; version 7 is a list of options,
 * each telling where a section stands, and sections may be compressed. Both lead to the same
 * struct: formats go to the decoder as they come, pages are decoded from where they lie.
 *
 * Every number of the file is untrusted: sizes are held against what is left, counts are never
 * allocated by, chunks of compressed pages are at most CHUNK_MAX_BYTES each.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compress.h"
#include "base/cpuset.h"
#include "base/file.h"
#include "base/util.h"
#include "latency/trace-dat-parts.h"
#include "latency/trace-dat.h"

#define CHUNK_MAX_BYTES   (4 << 20)
#define SECTION_MAX_BYTES (64 << 20)
#define OPTIONS_MAX       256 /* sections of options, or buffers, that one file may have */

/* --- version 6 ------------------------------------------------------------------------------- */

static int read_options_6(struct dat_reading *dat, struct reader *r)
{
	for (;;) {
		uint16_t id = reader_u16(r);
		size_t size;
		const uint8_t *data;

		if (r->failed)
			return dat_damaged(dat, r, "options");
		if (id == OPTION_DONE)
			return 0;
		data = dat_block(r, 4, &size);
		if (!data)
			return dat_damaged(dat, r, "options");
		if (id == OPTION_TRACECLOCK) {
			dat_take_clock(dat, data, size);
		} else if (id == OPTION_BUFFER && size >= 8) {
			struct reader option = reader_make(data, size, r->swap);

			if (vec_push(&dat->buffers, reader_u64(&option)) < 0)
				return -ENOMEM;
		}
	}
}

/* "options", "flyrecord" or "latency" (text, which holds no records). */
static int read_data_6(struct dat_reading *dat, struct reader *r, uint32_t cpus)
{
	for (;;) {
		const uint8_t *kind = reader_take(r, 10);
		int status = 0;

		if (!kind)
			return dat_damaged(dat, r, "kind of data");
		if (memcmp(kind, "options  ", 10) == 0) {
			status = read_options_6(dat, r);
			if (status < 0)
				return status;
			continue;
		}
		if (memcmp(kind, "latency  ", 10) == 0)
			return err_set(dat->err, -ENOTSUP,
				       "trace.dat: it holds text instead of records; import the "
				       "output of trace-cmd report");
		if (memcmp(kind, "flyrecord", 10) != 0)
			return dat_damaged(dat, r, "kind of data");
		for (uint32_t cpu = 0; status == 0 && cpu < cpus; cpu++) {
			uint64_t offset = reader_u64(r), size = reader_u64(r);

			if (r->failed)
				return dat_damaged(dat, r, "table of CPUs");
			status = dat_add_extent(dat, cpu, false, offset, size);
		}
		return status;
	}
}

static int read_6(struct dat_reading *dat, struct reader *r)
{
	size_t size;
	uint32_t cpus;
	int status = dat_read_header_info(dat, r);

	if (status == 0)
		status = dat_read_ftrace_formats(dat, r);
	if (status == 0)
		status = dat_read_event_formats(dat, r);
	if (status == 0)
		status = dat_read_functions(dat, r);
	if (status == 0 && !dat_block(r, 4, &size))
		status = dat_damaged(dat, r, "printk formats");
	if (status == 0)
		status = dat_read_comms(dat, r);
	if (status < 0)
		return status;
	cpus = reader_u32(r);
	status = read_data_6(dat, r, cpus);
	for (size_t i = 0; status == 0 && i < dat->buffers.len && i < OPTIONS_MAX; i++) {
		struct reader buffer = dat->file;

		reader_seek(&buffer,
			    dat->buffers.data[i] > SIZE_MAX ? SIZE_MAX : dat->buffers.data[i]);
		status = read_data_6(dat, &buffer, cpus);
	}
	return status;
}

/* --- version 7 ------------------------------------------------------------------------------- */

static int inflate(const struct dat_reading *dat, const uint8_t *data, size_t size, size_t plain,
		   struct str *out)
{
	int r;

	if (dat->compression == COMPRESSION_ZSTD) {
		r = zstd_decompress(data, size, plain, out, NULL);
	} else if (dat->compression == COMPRESSION_ZLIB) {
		r = gzip_inflate(data, size, plain, out, NULL);
	} else {
		r = -EBADMSG;
	}
	return r < 0 ? r : out->len == plain ? 0 : -EBADMSG;
}

struct section {
	struct str plain; /* holds what was compressed */
	struct reader reader;
	uint16_t id, flags;
};

/* A section's header and its contents, inflated into section->plain where compressed. */
static int open_section(struct dat_reading *dat, uint64_t offset, struct section *ret)
{
	struct reader r = dat->file;
	uint64_t size;
	uint32_t packed, plain;
	const uint8_t *data;
	int status;

	reader_seek(&r, offset > SIZE_MAX ? SIZE_MAX : (size_t)offset);
	ret->id = reader_u16(&r);
	ret->flags = reader_u16(&r);
	reader_u32(&r); /* its description */
	size = reader_u64(&r);
	if (r.failed || size > reader_left(&r))
		return dat_damaged(dat, &r, "section");
	if (!(ret->flags & 1)) {
		data = reader_take(&r, (size_t)size);
		ret->reader = reader_make(data, (size_t)size, r.swap);
		return 0;
	}
	packed = reader_u32(&r);
	plain = reader_u32(&r);
	data = reader_take(&r, packed);
	if (!data || plain > SECTION_MAX_BYTES)
		return dat_damaged(dat, &r, "compressed section");
	status = inflate(dat, data, packed, plain, &ret->plain);
	if (status < 0)
		return status == -ENOMEM ? status : dat_damaged(dat, &r, "compressed section");
	ret->reader = reader_make(ret->plain.data, ret->plain.len, r.swap);
	return 0;
}

/* Where the pages of one instance lie. */
static int read_buffer_option(struct dat_reading *dat, struct reader *r)
{
	uint64_t offset = reader_u64(r);
	struct reader head = dat->file;
	const char *clock;
	uint32_t cpus;
	uint16_t flags;
	int status = 0;

	reader_cstr(r); /* the instance's name */
	clock = reader_cstr(r);
	reader_u32(r); /* size of a page */
	cpus = reader_u32(r);
	reader_seek(&head, offset > SIZE_MAX ? SIZE_MAX : (size_t)offset);
	reader_u16(&head);
	flags = reader_u16(&head);
	if (r->failed || head.failed)
		return dat_damaged(dat, r, "buffer");
	dat_take_clock(dat, (const uint8_t *)clock, strlen(clock));
	for (uint32_t i = 0; status == 0 && i < cpus; i++) {
		uint32_t cpu = reader_u32(r);
		uint64_t at = reader_u64(r), size = reader_u64(r);

		if (r->failed)
			return dat_damaged(dat, r, "buffer");
		status = dat_add_extent(dat, cpu, flags & 1, at, size);
	}
	return status;
}

/* One section of options; *ret_next is where the next one stands, 0 none. */
static int read_options_7(struct dat_reading *dat, struct reader *r, uint64_t *ret_next)
{
	*ret_next = 0;
	while (reader_left(r) > 0) {
		uint16_t id = reader_u16(r);
		size_t size;
		const uint8_t *data = dat_block(r, 4, &size);
		struct reader option = reader_make(data, data ? size : 0, r->swap);
		int status = 0;

		if (!data)
			return dat_damaged(dat, r, "options");
		if (id == OPTION_DONE) {
			*ret_next = size >= 8 ? reader_u64(&option) : 0;
			return 0;
		}
		if (id == OPTION_TRACECLOCK)
			dat_take_clock(dat, data, size);
		else if (id == OPTION_BUFFER)
			status = read_buffer_option(dat, &option);
		else if (id < ARRAY_LEN(dat->sections) && size >= 8)
			dat->sections[id] = reader_u64(&option);
		if (status < 0)
			return status;
	}
	return 0;
}

static int read_compression(struct dat_reading *dat, struct reader *r)
{
	const char *name = reader_cstr(r), *version = reader_cstr(r);

	if (!name || !version)
		return dat_damaged(dat, r, "name of the compression");
	if (strcmp(name, "zstd") == 0)
		dat->compression = COMPRESSION_ZSTD;
	else if (strcmp(name, "zlib") == 0)
		dat->compression = COMPRESSION_ZLIB;
	else if (strcmp(name, "none") != 0 && *name != '\0')
		return err_set(dat->err, -ENOTSUP,
			       "trace.dat: compressed by %.32s, which is not known", name);
	return 0;
}

static int read_7(struct dat_reading *dat, struct reader *r)
{
	static const struct {
		enum dat_option_id id;
		int (*read)(struct dat_reading *dat, struct reader *r);
	} parts[] = {
		{OPTION_HEADER_INFO, dat_read_header_info},
		{OPTION_FTRACE_EVENTS, dat_read_ftrace_formats},
		{OPTION_EVENT_FORMATS, dat_read_event_formats},
		{OPTION_KALLSYMS, dat_read_functions},
		{OPTION_CMDLINES, dat_read_comms},
	};
	uint64_t next;
	int status = read_compression(dat, r);

	next = reader_u64(r);
	if (status == 0 && r->failed)
		status = dat_damaged(dat, r, "place of the options");
	for (unsigned i = 0; status == 0 && next != 0; i++) {
		struct section section = {.id = 0};

		if (i == OPTIONS_MAX)
			return err_set(dat->err, -EBADMSG, "trace.dat: options without an end");
		status = open_section(dat, next, &section);
		if (status == 0)
			status = read_options_7(dat, &section.reader, &next);
		str_fini(&section.plain);
	}
	for (size_t i = 0; status == 0 && i < ARRAY_LEN(parts); i++) {
		struct section section = {.id = 0};

		if (dat->sections[parts[i].id] == 0 && i > 0)
			continue;
		status = open_section(dat, dat->sections[parts[i].id], &section);
		if (status == 0)
			status = parts[i].read(dat, &section.reader);
		str_fini(&section.plain);
	}
	return status;
}

/* --- pages ----------------------------------------------------------------------------------- */

struct untimed {
	struct latency_sink sink;
	struct latency_sink *to;
};

static int take_untimed(struct latency_sink *sink, const struct latency_record *record)
{
	struct latency_record copy = *record;

	copy.time_ns = 0;
	return ((struct untimed *)sink)->to->take(((struct untimed *)sink)->to, &copy);
}

/* Whole pages; a shorter rest belongs to nobody. */
static int decode_pages(struct dat_reading *dat, unsigned cpu, const uint8_t *data, size_t size,
			struct latency_sink *sink, size_t *given)
{
	for (size_t at = 0; size - at >= dat->layout.page_size; at += dat->layout.page_size) {
		int r = trace_decoder_page(dat->decoder, cpu, data + at, dat->layout.page_size,
					   sink, dat->err);

		if (r < 0)
			return r == -EBADMSG ? err_wrap(dat->err, r, "trace.dat") : r;
		*given += (size_t)r;
	}
	return 0;
}

static int decode_chunks(struct dat_reading *dat, const struct dat_extent *extent,
			 struct latency_sink *sink, size_t *given)
{
	/* The size does not count the number of chunks in front of them. */
	size_t size = MIN((size_t)extent->size + 4, dat->file.size - (size_t)extent->offset);
	struct reader r = reader_make(dat->file.data + extent->offset, size, dat->file.swap);
	uint32_t chunks = reader_u32(&r);
	int status = 0;

	for (uint32_t i = 0; status == 0 && i < chunks; i++) {
		uint32_t packed = reader_u32(&r), plain = reader_u32(&r);
		const uint8_t *data = reader_take(&r, packed);
		struct str pages = {0};

		if (!data || plain > CHUNK_MAX_BYTES ||
		    (status = inflate(dat, data, packed, plain, &pages)) == -EBADMSG)
			status =
				err_set(dat->err, -EBADMSG,
					"trace.dat: CPU %u: damaged compressed pages", extent->cpu);
		if (status == 0)
			status = decode_pages(dat, extent->cpu, (const uint8_t *)pages.data,
					      pages.len, sink, given);
		str_fini(&pages);
	}
	return status;
}

static int decode_all(struct dat_reading *dat, struct latency_sink *sink, size_t *given)
{
	struct untimed untimed = {{take_untimed}, sink};
	int r = 0;

	if (dat->no_times)
		sink = &untimed.sink;
	for (size_t i = 0; r == 0 && i < dat->extents.len; i++) {
		const struct dat_extent *extent = &dat->extents.data[i];

		r = extent->compressed
			    ? decode_chunks(dat, extent, sink, given)
			    : decode_pages(dat, extent->cpu, dat->file.data + extent->offset,
					   (size_t)extent->size, sink, given);
	}
	return r;
}

/* --- the file -------------------------------------------------------------------------------- */

static int read_file(struct dat_reading *dat)
{
	static const uint8_t magic[] = {0x17, 0x08, 0x44, 't', 'r', 'a', 'c', 'i', 'n', 'g'};
	struct reader r = dat->file;
	const uint8_t *start = reader_take(&r, sizeof(magic));
	const char *version = reader_cstr(&r);

	if (!start || memcmp(start, magic, sizeof(magic)) != 0)
		return err_set(dat->err, -EINVAL, "not a trace.dat file: it starts otherwise");
	if (!version || (strcmp(version, "6") != 0 && strcmp(version, "7") != 0))
		return err_set(dat->err, -ENOTSUP,
			       "trace.dat: version %.8s; 6 and 7 can be read (trace-cmd convert "
			       "makes them)",
			       version ? version : "unknown");
	dat->big_endian = reader_u8(&r) != 0;
	dat->file.swap = r.swap = dat->big_endian != (BYTE_ORDER == BIG_ENDIAN);
	reader_u8(&r);  /* bytes of a long */
	reader_u32(&r); /* of a page; header_page tells it for the records */
	if (r.failed)
		return dat_damaged(dat, &r, "header");
	return *version == '6' ? read_6(dat, &r) : read_7(dat, &r);
}

int trace_dat_parse(const void *data, size_t size, struct latency_sink *sink, struct err *err)
{
	struct dat_reading *dat = calloc(1, sizeof(*dat));
	size_t given = 0;
	int r;

	if (!dat)
		return -ENOMEM;
	dat->file = reader_make(data, size, false);
	dat->err = err;
	r = read_file(dat);
	if (r == 0)
		r = decode_all(dat, sink, &given);
	trace_decoder_free(dat->decoder);
	kernel_names_fini(&dat->names);
	vec_fini(&dat->extents);
	vec_fini(&dat->buffers);
	free(dat);
	return r < 0 ? r : (int)MIN(given, (size_t)INT32_MAX);
}

int trace_dat_read(const char *path, struct latency_sink *sink, struct err *err)
{
	struct file_map map;
	int r = file_map_open(path, &map, err);

	if (r < 0)
		return r;
	r = trace_dat_parse(map.data, map.size, sink, err);
	file_map_close(&map);
	return r < 0 ? err_wrap(err, r, "%s", path) : r;
}
