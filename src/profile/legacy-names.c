/* The names that some legacy profiles carry: "--- symbol" sections, Java's lists, Go's comments. */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "base/util.h"
#include "profile/legacy-internal.h"

/* True the first time that it sees the address. */
static bool first_name(struct legacy *l, uint64_t address, int *ret_status)
{
	uint32_t known;

	if (u64_map_get(&l->named, address, &known))
		return false;
	*ret_status = u64_map_put(&l->named, address, (uint32_t)l->symbols.len);
	return *ret_status == 0;
}

/* A name, in which "- -" stands for "--". */
static int add_symbol_name(struct legacy *l, uint64_t address, struct scan name)
{
	struct str text = {0};
	int r;

	name = scan_trim(name);
	while (name.at < name.end) {
		if (name.end - name.at > 2 && name.at[1] == ' ' && name.at[0] == '-' &&
		    name.at[2] == '-') {
			str_putc(&text, '-');
			name.at += 2;
		} else {
			str_putc(&text, *name.at++);
		}
	}
	r = str_status(&text);
	if (r == 0)
		r = legacy_add_symbol(l, address,
				      (struct scan){str_text(&text), str_text(&text) + text.len},
				      (struct scan){str_text(&text), str_text(&text)}, 0);
	str_fini(&text);
	return r;
}

/* "outer--inlined--innermost": the last is the innermost. */
static int add_names(struct legacy *l, uint64_t address, struct scan names)
{
	int r = 0;

	while (r == 0) {
		const char *from = names.end;

		while (from - names.at >= 2 && !(from[-1] == '-' && from[-2] == '-'))
			from--;
		if (from - names.at < 2)
			from = names.at;
		if (from < names.end)
			r = add_symbol_name(l, address, (struct scan){from, names.end});
		if (from == names.at)
			break;
		names.end = from - 2;
	}
	return r;
}

int legacy_read_symbols(struct legacy *l, struct scan_lines *reader)
{
	struct scan line;
	uint64_t address;
	int r = 0;

	while (r == 0 && scan_trimmed_line(reader, &line)) {
		if (scan_starts(line, "---"))
			return 0;
		if (!scan_address(&line, &address)) /* binary=... */
			continue;
		line = scan_trim(line);
		if (scan_len(line) > 0 && first_name(l, address, &r))
			r = add_names(l, address, line);
	}
	return r < 0 ? r : legacy_bad_line(l, reader, "no profile follows the symbols");
}

static bool ends_with(const struct scan *s, char c)
{
	return s->end > s->at && s->end[-1] == c;
}

/* Takes ":LINE" off the end; false when it is not there. */
static bool take_line_number(struct scan *s, int64_t *ret)
{
	const char *colon = memrchr(s->at, ':', (size_t)(s->end - s->at));
	struct scan number;

	if (!colon)
		return false;
	number = (struct scan){colon + 1, s->end};
	if (!scan_i64(&number, ret) || scan_len(number) > 0)
		return false;
	s->end = colon;
	if (*ret < 0)
		*ret = 0;
	return true;
}

/* "name (file:line)", "name (/path/of/library)", or a name alone. */
static int add_java_name(struct legacy *l, uint64_t address, struct scan s)
{
	static const char none[] = "", stub[] = "STUB";
	struct scan name = s, file = {none, none};
	const char *base, *from = NULL;
	int64_t line = 0;

	if (ends_with(&s, ')'))
		for (const char *c = s.at + 1; c + 1 < s.end; c++)
			if (*c == '(' && (c[-1] == ' ' || c[-1] == '\t'))
				from = c;
	if (from) {
		name.end = from;
		name = scan_trim(name);
		file = (struct scan){from + 1, s.end - 1};
		if (!take_line_number(&file, &line)) {
			base = memrchr(file.at, '/', (size_t)(file.end - file.at));
			file.at = base ? base + 1 : file.at;
		}
	} else if (scan_find(s, "generated stub/JIT")) {
		name = (struct scan){stub, stub + strlen(stub)};
	}
	return legacy_add_symbol(l, address, name, file, line);
}

int legacy_read_java_names(struct legacy *l, struct scan_lines *reader)
{
	struct scan line;
	uint64_t address;
	int r = 0;

	while (r == 0 && scan_trimmed_line(reader, &line)) {
		if (!scan_address(&line, &address))
			continue;
		line = scan_trim(line);
		if (scan_len(line) > 0 && first_name(l, address, &r))
			r = add_java_name(l, address, line);
	}
	return r;
}

/* Inlined functions follow each other with one address; a recursion repeats what is known. */
static bool goes_on(const struct legacy *l, uint64_t address, const struct legacy_symbol *symbol)
{
	const struct legacy_symbol *last = l->symbols.data + l->symbols.len;

	for (; last > l->symbols.data && last[-1].address == address; last--)
		if (last[-1].function == symbol->function && last[-1].line == symbol->line)
			return false;
	return last < l->symbols.data + l->symbols.len;
}

int legacy_read_go_name(struct legacy *l, struct scan line)
{
	struct scan name, file;
	struct legacy_symbol symbol;
	const char *plus;
	uint64_t address, offset;
	int64_t number = 0;
	int r = 0;

	if (!scan_take(&line, "#"))
		return 0;
	scan_blanks(&line);
	if (!scan_address(&line, &address))
		return 0;
	line = scan_trim(line);
	plus = memmem(line.at, (size_t)(line.end - line.at), "+0x", 3);
	if (!plus || plus == line.at)
		return 0;
	name = (struct scan){line.at, plus};
	file = (struct scan){plus + 1, line.end};
	if (!scan_address(&file, &offset))
		return 0;
	file = scan_trim(file);
	(void)take_line_number(&file, &number);
	if (!first_name(l, address, &r)) {
		if (r < 0)
			return r;
		r = legacy_add_symbol(l, address, name, file, number);
		if (r < 0)
			return r;
		symbol = l->symbols.data[--l->symbols.len];
		return goes_on(l, address, &symbol) ? vec_push(&l->symbols, symbol) : 0;
	}
	return legacy_add_symbol(l, address, name, file, number);
}
