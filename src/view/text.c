#include "view/text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

#define REPLACEMENT       0xfffdU
#define REPLACEMENT_BYTES "\xef\xbf\xbd"

size_t text_decode(const char *text, size_t left, uint32_t *ret_code)
{
	const unsigned char *p = (const unsigned char *)text;
	uint32_t code, least;
	size_t len;

	*ret_code = REPLACEMENT;
	if (p[0] < 0x80) {
		*ret_code = p[0];
		return 1;
	}
	if (p[0] >= 0xc2 && p[0] < 0xe0) {
		len = 2;
		least = 0x80;
	} else if (p[0] >= 0xe0 && p[0] < 0xf0) {
		len = 3;
		least = 0x800;
	} else if (p[0] >= 0xf0 && p[0] < 0xf5) {
		len = 4;
		least = 0x10000;
	} else {
		return 1;
	}
	if (len > left)
		return 1;
	code = p[0] & (0x7fU >> len);
	for (size_t i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 1;
		code = code << 6 | (p[i] & 0x3fU);
	}
	if (code < least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 1;
	*ret_code = code;
	return len;
}

struct code_range {
	uint32_t first, last;
};

static bool in_ranges(const struct code_range *ranges, size_t count, uint32_t code)
{
	for (size_t i = 0; i < count; i++)
		if (code >= ranges[i].first && code <= ranges[i].last)
			return true;
	return false;
}

/* The blocks of Unicode whose characters take no column or two; names of programs need no finer
 * table. */
unsigned text_code_width(uint32_t code)
{
	static const struct code_range zero[] = {
		{0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},   {0x610, 0x61a},
		{0x64b, 0x65f},   {0x200b, 0x200f}, {0x202a, 0x202e}, {0x2060, 0x2064},
		{0x20d0, 0x20f0}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xe0100, 0xe01ef},
	};
	static const struct code_range two[] = {
		{0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0x33ff},   {0x3400, 0x4dbf},
		{0x4e00, 0x9fff},   {0xa000, 0xa4cf},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},
		{0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x1f300, 0x1f64f},
		{0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd},
	};

	if (code < 0x300)
		return 1;
	if (in_ranges(zero, ARRAY_LEN(zero), code))
		return 0;
	return in_ranges(two, ARRAY_LEN(two), code) ? 2 : 1;
}

unsigned text_width(const char *text)
{
	size_t left = strlen(text);
	unsigned width = 0;

	while (left > 0) {
		uint32_t code;
		size_t n = text_decode(text, left, &code);

		width += text_code_width(code);
		text += n;
		left -= n;
	}
	return width;
}

static bool is_control(uint32_t code)
{
	/* C0, DEL, C1, line separators, and the marks that reorder text: all can make a name look
	 * like something else. U+FFFE and U+FFFF are no characters in XML. */
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 ||
	       (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
	       code == 0xfffe || code == 0xffff;
}

/* Appends one decoded character, bytes as it stands in the text. */
static void put_code(struct str *out, const char *bytes, size_t len, uint32_t code)
{
	if (code == REPLACEMENT || is_control(code))
		str_puts(out, REPLACEMENT_BYTES);
	else
		str_append(out, bytes, len);
}

void text_clean(struct str *out, const char *text, size_t len)
{
	while (len > 0) {
		size_t run = 0, n;
		uint32_t code;

		while (run < len && text[run] >= 0x20 && text[run] < 0x7f)
			run++;
		str_append(out, text, run);
		text += run;
		len -= run;
		if (len == 0)
			break;
		n = text_decode(text, len, &code);
		put_code(out, text, n, code);
		text += n;
		len -= n;
	}
}

/* Bytes of the longest end of text that is at most max columns wide. */
static size_t tail_bytes(const char *text, size_t len, unsigned max)
{
	unsigned width = text_width(text), seen = 0;
	size_t at = 0;

	while (at < len && width - seen > max) {
		uint32_t code;

		at += text_decode(text + at, len - at, &code);
		seen += text_code_width(code);
	}
	return len - at;
}

static size_t head_bytes(const char *text, size_t len, unsigned max)
{
	unsigned seen = 0;
	size_t at = 0;

	while (at < len) {
		uint32_t code;
		size_t n = text_decode(text + at, len - at, &code);

		if (seen + text_code_width(code) > max)
			break;
		seen += text_code_width(code);
		at += n;
	}
	return at;
}

void text_cut_middle(struct str *out, const char *text, unsigned max)
{
	size_t len = strlen(text), head, tail;

	if (max == 0 || text_width(text) <= max) {
		text_clean(out, text, len);
		return;
	}
	if (max < 4) {
		text_clean(out, text, head_bytes(text, len, max));
		return;
	}
	head = head_bytes(text, len, (max - 2 + 1) / 2);
	tail = tail_bytes(text, len, (max - 2) / 2);
	text_clean(out, text, head);
	str_puts(out, "..");
	text_clean(out, text + len - tail, tail);
}

void text_xml(struct str *out, const char *text, size_t len)
{
	while (len > 0) {
		uint32_t code;
		size_t n = text_decode(text, len, &code);

		switch (code) {
		case '&':
			str_puts(out, "&amp;");
			break;
		case '<':
			str_puts(out, "&lt;");
			break;
		case '>':
			str_puts(out, "&gt;");
			break;
		case '"':
			str_puts(out, "&quot;");
			break;
		case '\'':
			str_puts(out, "&#39;");
			break;
		default:
			put_code(out, text, n, code);
		}
		text += n;
		len -= n;
	}
}

void text_group(struct str *out, uint64_t value)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value);

	for (int i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			str_putc(out, ',');
		str_putc(out, digits[i]);
	}
}
