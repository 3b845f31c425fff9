#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "symbols/symtab-internal.h"

/* A hex number, 0x allowed; moves *p behind it. */
static bool parse_hex(const char **p, const char *end, uint64_t *ret)
{
	const char *at = *p;
	uint64_t value = 0;
	unsigned digits = 0;

	if (end - at > 2 && at[0] == '0' && (at[1] | 0x20) == 'x')
		at += 2;
	for (; at < end; at++) {
		char c = *at;
		unsigned digit;

		if (c >= '0' && c <= '9')
			digit = (unsigned)(c - '0');
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			digit = (unsigned)((c | 0x20) - 'a') + 10;
		else
			break;
		if (value >> 60)
			return false;
		value = value << 4 | digit;
		digits++;
	}
	*p = at;
	*ret = value;
	return digits > 0;
}

static void skip_blanks(const char **p, const char *end)
{
	while (*p < end && (**p == ' ' || **p == '\t'))
		(*p)++;
}

static bool parse_line(const char *p, const char *end, struct symtab_raw *ret)
{
	uint64_t start, size;
	const char *after;

	skip_blanks(&p, end);
	if (!parse_hex(&p, end, &start))
		return false;
	after = p;
	skip_blanks(&p, end);
	if (p == after || !parse_hex(&p, end, &size))
		return false;
	after = p;
	skip_blanks(&p, end);
	while (end > p && (end[-1] == '\r' || end[-1] == ' '))
		end--;
	if (p == after || p == end || size == 0 || size > UINT64_MAX - start ||
	    end - p > UINT16_MAX)
		return false;
	*ret = (struct symtab_raw){
		.start = start, .end = start + size, .name = p, .name_len = (uint32_t)(end - p)};
	return true;
}

int perf_map_load(const char *text, size_t size, struct symtab_builder *builder,
		  size_t *ret_bad_lines)
{
	const char *p = text, *end = text + size;
	size_t bad = 0;

	while (p < end) {
		const char *newline = memchr(p, '\n', (size_t)(end - p)),
			   *stop = newline ? newline : end;
		struct symtab_raw raw;

		/* A NUL inside would cut the name short of its length. */
		if (stop > p && (memchr(p, '\0', (size_t)(stop - p)) || !parse_line(p, stop, &raw)))
			bad++;
		else if (stop > p && symtab_builder_add(builder, &raw) < 0)
			return -ENOMEM;
		p = stop + 1;
	}
	*ret_bad_lines = bad;
	return 0;
}
