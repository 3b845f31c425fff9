#include "latency/trace-format.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

/* --- text ------------------------------------------------------------------------------------ */

struct line {
	const char *text;
	size_t len;
};

static bool next_line(const char **at, const char *end, struct line *ret)
{
	const char *stop;

	if (*at >= end)
		return false;
	stop = memchr(*at, '\n', (size_t)(end - *at));
	if (!stop)
		stop = end;
	*ret = (struct line){*at, (size_t)(stop - *at)};
	*at = stop < end ? stop + 1 : end;
	return true;
}

/* The number behind "key:" in a line. */
static bool line_number(const struct line *line, const char *key, uint32_t *ret)
{
	size_t len = strlen(key);
	uint64_t value = 0;
	const char *end = line->text + line->len;
	const char *at = line->len ? memmem(line->text, line->len, key, len) : NULL;

	if (!at || at + len >= end || !isdigit((unsigned char)at[len]))
		return false;
	for (at += len; at < end && isdigit((unsigned char)*at); at++) {
		value = value * 10 + (uint64_t)(*at - '0');
		if (value > INT_MAX)
			return false;
	}
	*ret = (uint32_t)value;
	return true;
}

/* "	field:unsigned long caller[8];	offset:16;	size:64;	signed:0;" */
static bool parse_field(const struct line *line, struct trace_field *ret)
{
	static const char key[] = "field:";
	const char *at = line->len ? memmem(line->text, line->len, key, sizeof(key) - 1) : NULL;
	const char *end, *name;
	uint32_t is_signed = 0;

	if (!at)
		return false;
	at += sizeof(key) - 1;
	end = memchr(at, ';', line->len - (size_t)(at - line->text));
	if (!end || !line_number(line, "offset:", &ret->offset) ||
	    !line_number(line, "size:", &ret->size))
		return false;
	line_number(line, "signed:", &is_signed);
	ret->is_signed = is_signed != 0;
	while (at < end && isspace((unsigned char)*at))
		at++;
	ret->data_loc = end - at > 10 && memcmp(at, "__data_loc", 10) == 0;
	name = memchr(at, '[',
		      (size_t)(end - at)); /* __data_loc char[] desc: behind the brackets */
	if (name && !(ret->data_loc && name[1] == ']'))
		end = name;
	while (end > at && isspace((unsigned char)end[-1]))
		end--;
	for (name = end; name > at && (isalnum((unsigned char)name[-1]) || name[-1] == '_');)
		name--;
	snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(end - name), name);
	return ret->name[0] != '\0';
}

int trace_format_parse(const char *text, size_t size, const char *system, struct trace_format *ret,
		       struct err *err)
{
	const char *at = text, *end = text + size;
	struct line line;
	bool named = false, numbered = false;

	memset(ret, 0, sizeof(*ret));
	snprintf(ret->system, sizeof(ret->system), "%s", system);
	while (next_line(&at, end, &line)) {
		if (line.len > 6 && memcmp(line.text, "name: ", 6) == 0) {
			snprintf(ret->name, sizeof(ret->name), "%.*s", (int)MIN(line.len - 6, 63),
				 line.text + 6);
			named = true;
		} else if (line.len > 4 && memcmp(line.text, "ID: ", 4) == 0) {
			numbered = line_number(&line, "ID: ", &ret->id);
		} else if (line.len > 10 && memcmp(line.text, "print fmt:", 10) == 0) {
			break;
		} else if (ret->field_count < TRACE_FIELDS_MAX &&
			   parse_field(&line, &ret->fields[ret->field_count])) {
			ret->field_count++;
		}
	}
	if (!named || !numbered)
		return err_set(err, -EBADMSG, "not an event format: no name or number");
	return 0;
}

const struct trace_field *trace_format_field(const struct trace_format *format, const char *name)
{
	for (unsigned i = 0; i < format->field_count; i++)
		if (strcmp(format->fields[i].name, name) == 0)
			return &format->fields[i];
	return NULL;
}

/* --- fields ---------------------------------------------------------------------------------- */

static uint64_t load(const uint8_t *at, size_t size, bool swap)
{
	uint64_t value = 0;
	uint32_t v32;
	uint16_t v16;

	switch (size) {
	case 1:
		return *at;
	case 2:
		memcpy(&v16, at, 2);
		return swap ? __builtin_bswap16(v16) : v16;
	case 4:
		memcpy(&v32, at, 4);
		return swap ? __builtin_bswap32(v32) : v32;
	default:
		memcpy(&value, at, 8);
		return swap ? __builtin_bswap64(value) : value;
	}
}

bool trace_field_number(const struct trace_field *field, const struct trace_bytes *bytes,
			uint64_t *ret)
{
	size_t size = field->size;
	uint64_t value;

	if ((size != 1 && size != 2 && size != 4 && size != 8) || size > bytes->size ||
	    field->offset > bytes->size - size)
		return false;
	value = load(bytes->data + field->offset, size, bytes->swap);
	if (field->is_signed && size < 8) {
		unsigned shift = 64 - 8 * (unsigned)size;

		value = (uint64_t)((int64_t)(value << shift) >> shift);
	}
	*ret = value;
	return true;
}

bool trace_field_text(const struct trace_field *field, const struct trace_bytes *bytes, char *buf,
		      size_t size)
{
	size_t offset = field->offset, len = field->size;

	if (field->data_loc) { /* length in the upper, offset in the lower half */
		if (offset > bytes->size || bytes->size - offset < 4)
			return false;
		len = load(bytes->data + offset, 4, bytes->swap);
		offset = len & 0xffff;
		len >>= 16;
	} else if (len == 0 && offset <= bytes->size) {
		len = bytes->size - offset;
	}
	if (offset > bytes->size || len > bytes->size - offset)
		return false;
	len = strnlen((const char *)bytes->data + offset, len);
	len = MIN(len, size - 1);
	memcpy(buf, bytes->data + offset, len);
	buf[len] = '\0';
	return true;
}

/* --- pages ----------------------------------------------------------------------------------- */

enum {
	TYPE_PADDING = 29,
	TYPE_TIME_EXTEND = 30,
	TYPE_TIME_STAMP = 31,
};

#define COMMIT_MASK   UINT64_C(0xfffff)
#define MISSED_EVENTS (UINT64_C(1) << 31)
#define MISSED_STORED (UINT64_C(1) << 30)
#define TIME_BITS     27 /* of a record's time, above them the extension */
#define STAMP_UPPER   (UINT64_C(0xf8) << 56)

int trace_page_layout_parse(const char *text, size_t size, bool big_endian,
			    struct trace_page_layout *ret, struct err *err)
{
	const char *at = text, *end = text + size;
	struct trace_page_layout layout = {.big_endian = big_endian,
					   .swap = big_endian != (BYTE_ORDER == BIG_ENDIAN)};
	struct line line;
	bool commit = false, data = false;

	while (next_line(&at, end, &line)) {
		struct trace_field field;

		/* "field: local_t commit;": a blank behind the colon, unlike in events */
		if (!parse_field(&line, &field))
			continue;
		if (strcmp(field.name, "commit") == 0) {
			commit = true;
			layout.commit_offset = field.offset;
			layout.commit_size = field.size;
		} else if (strcmp(field.name, "data") == 0) {
			data = true;
			layout.data_offset = field.offset;
			layout.page_size = (size_t)field.offset + field.size;
		}
	}
	if (!commit || !data || (layout.commit_size != 4 && layout.commit_size != 8) ||
	    layout.commit_offset < 8 ||
	    layout.data_offset < layout.commit_offset + layout.commit_size ||
	    layout.page_size < 128 || layout.page_size > 1 << 20)
		return err_set(err, -EBADMSG, "not a description of ring buffer pages");
	*ret = layout;
	return 0;
}

int trace_page_open(const struct trace_page_layout *layout, const void *bytes, size_t size,
		    struct trace_page *ret)
{
	const uint8_t *data = bytes;
	uint64_t commit, used;

	if (size < layout->data_offset)
		return -EBADMSG;
	commit = load(data + layout->commit_offset, layout->commit_size, layout->swap);
	used = commit & COMMIT_MASK;
	if (used > size - layout->data_offset)
		return -EBADMSG;
	*ret = (struct trace_page){
		.layout = layout,
		.data = data + layout->data_offset,
		.size = used,
		.time_ns = load(data, 8, layout->swap),
		.lost = (commit & MISSED_EVENTS) != 0,
	};
	if (ret->lost && (commit & MISSED_STORED) &&
	    size - layout->data_offset - used >= layout->commit_size)
		ret->lost_events = load(ret->data + used, layout->commit_size, layout->swap);
	return 0;
}

int trace_page_next(struct trace_page *page, struct trace_bytes *ret)
{
	const struct trace_page_layout *layout = page->layout;

	while (page->size - page->pos >= 4) {
		const uint8_t *at = page->data + page->pos;
		size_t left = page->size - page->pos, head = 4, len;
		uint32_t word = (uint32_t)load(at, 4, layout->swap), extra = 0;
		unsigned type = layout->big_endian ? word >> TIME_BITS : word & 31;
		uint64_t delta = layout->big_endian ? word & ((1u << TIME_BITS) - 1) : word >> 5;

		if (type == 0 || type >= TYPE_PADDING) {
			if (type == TYPE_PADDING && delta == 0)
				return 0; /* the rest of the page is empty */
			if (left < 8)
				return -EBADMSG;
			head = 8;
			extra = (uint32_t)load(at + 4, 4, layout->swap);
		}
		if (type == TYPE_TIME_EXTEND || type == TYPE_TIME_STAMP) {
			uint64_t time = ((uint64_t)extra << TIME_BITS) + delta;

			/* A stamp is the time itself, without its uppermost bits. */
			page->time_ns = type == TYPE_TIME_EXTEND
						? page->time_ns + time
						: (page->time_ns & STAMP_UPPER) | time;
			page->pos += 8;
			continue;
		}
		page->time_ns += delta;
		if (type != 0 && type != TYPE_PADDING) {
			len = type * 4;
		} else { /* the length counts its own word */
			if (extra < 4)
				return -EBADMSG;
			len = extra - 4;
		}
		if (len > left - head)
			return -EBADMSG;
		page->pos += MIN(ALIGN_UP(head + len, (size_t)4), left);
		if (type == TYPE_PADDING)
			continue; /* a record that was discarded */
		*ret = (struct trace_bytes){at + head, len, layout->swap};
		return 1;
	}
	return 0;
}
