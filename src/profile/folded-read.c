#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "profile/folded.h"

/* Digits after the point that are looked at; the rest is below any count's meaning. */
#define FRACTION_DIGITS 6
#define FRACTION_ONE    1000000

struct count {
	int64_t whole;
	uint32_t fraction; /* millionths */
};

struct line {
	const char *text;
	size_t len; /* of the stack, counts taken off */
	struct count counts[2];
	unsigned count_count; /* numbers at the end: 0, 1, 2 */
};

struct folded_reader {
	const char *next, *end;
	struct profile *profile;
	struct folded_info info;
	unsigned width;
	uint32_t carry[2];
	uint32_t kind_mapping[PROFILE_GUEST + 1];
	VEC(struct profile_line) group; /* frames of one location, outermost first */
	enum profile_kind group_kind;
};

static bool parse_count(const char *text, size_t len, struct count *ret)
{
	struct count count = {0};
	uint32_t scale = FRACTION_ONE / 10;
	size_t i = 0;

	for (; i < len && text[i] >= '0' && text[i] <= '9'; i++)
		if (__builtin_mul_overflow(count.whole, 10, &count.whole) ||
		    __builtin_add_overflow(count.whole, text[i] - '0', &count.whole))
			return false;
	if (i == 0)
		return false;
	if (i < len && text[i] == '.') {
		size_t first = ++i;

		for (; i < len && text[i] >= '0' && text[i] <= '9'; i++, scale /= 10)
			count.fraction += scale * (uint32_t)(text[i] - '0');
		if (i == first)
			return false;
	}
	*ret = count;
	return i == len;
}

/* Takes one number off the end of the line: true when it stands behind a space. */
static bool cut_count(const char *text, size_t *len, struct count *ret)
{
	const char *space = memrchr(text, ' ', *len);
	const char *tab = memrchr(text, '\t', *len);

	if (!space || (tab && tab > space))
		space = tab;
	if (!space || !parse_count(space + 1, (size_t)(text + *len - space) - 1, ret))
		return false;
	*len = (size_t)(space - text);
	while (*len > 0 && (text[*len - 1] == ' ' || text[*len - 1] == '\t'))
		--*len;
	return true;
}

/* The next line that says something; both counts are looked for. False at the end. */
static bool next_line(struct folded_reader *r, uint64_t *number, struct line *ret)
{
	while (r->next < r->end) {
		const char *text = r->next;
		const char *end = memchr(text, '\n', (size_t)(r->end - text));
		size_t len = (size_t)((end ? end : r->end) - text);

		r->next = end ? end + 1 : r->end;
		++*number;
		while (len > 0 &&
		       (text[len - 1] == '\r' || text[len - 1] == ' ' || text[len - 1] == '\t'))
			len--;
		if (len == 0 || (len >= 2 && text[0] == '#' && text[1] == ' ') ||
		    (len == 1 && text[0] == '#'))
			continue;
		*ret = (struct line){.text = text, .len = len};
		if (cut_count(text, &ret->len, &ret->counts[0])) {
			size_t one = ret->len;

			ret->count_count = 1;
			if (cut_count(text, &one, &ret->counts[1]) && one > 0)
				ret->count_count = 2;
		}
		return true;
	}
	return false;
}

/* Two columns when every line that ends in one count ends in two. */
static unsigned find_width(const struct folded_reader *reader)
{
	struct folded_reader r = *reader;
	uint64_t number = 0;
	unsigned width = 1;
	struct line line;

	while (next_line(&r, &number, &line)) {
		if (line.count_count == 1)
			return 1;
		width = MAX(width, line.count_count);
	}
	return width;
}

/* Takes the suffix off; *ret_inline for _[i]. */
static enum profile_kind cut_kind(const char *name, size_t *len, bool *ret_inline)
{
	const char *suffix = name + *len - 4;

	*ret_inline = false;
	if (*len <= 4 || suffix[0] != '_' || suffix[1] != '[' || suffix[3] != ']')
		return PROFILE_USER;
	switch (suffix[2]) {
	case 'k':
		*len -= 4;
		return PROFILE_KERNEL;
	case 'j':
		*len -= 4;
		return PROFILE_JIT;
	case 'i':
		*len -= 4;
		*ret_inline = true;
		return PROFILE_USER;
	default:
		return PROFILE_USER;
	}
}

static int kind_mapping(struct folded_reader *r, enum profile_kind kind, uint32_t *ret)
{
	struct profile_mapping mapping = {.kind = kind, .has_functions = true};
	int code;

	if (kind == PROFILE_USER || r->kind_mapping[kind] != 0) {
		*ret = r->kind_mapping[kind];
		return 0;
	}
	code = strtab_intern_text(&r->profile->strings,
				  kind == PROFILE_KERNEL ? "[kernel]" : "[JIT]", &mapping.filename);
	if (code == 0)
		code = profile_mapping(r->profile, &mapping, &r->kind_mapping[kind]);
	if (code == 0)
		*ret = r->kind_mapping[kind];
	return code;
}

/* The frames gathered become a location, and it the next node of the stack. */
static int end_group(struct folded_reader *r, uint32_t *stack)
{
	struct profile_location location = {.line_count = (uint32_t)r->group.len};
	uint32_t id;
	int code;

	if (r->group.len == 0)
		return 0;
	for (size_t i = 0, j = r->group.len - 1; i < j; i++, j--) {
		struct profile_line line = r->group.data[i];

		r->group.data[i] = r->group.data[j];
		r->group.data[j] = line;
	}
	code = kind_mapping(r, r->group_kind, &location.mapping);
	if (code == 0)
		code = profile_location(r->profile, &location, r->group.data, &id);
	if (code == 0)
		code = profile_stack(r->profile, *stack, id, stack);
	r->group.len = 0;
	return code;
}

static int add_frame(struct folded_reader *r, const char *name, size_t len, uint32_t *stack)
{
	struct profile_function function = {0};
	struct profile_line line = {0};
	bool inlined;
	enum profile_kind kind = cut_kind(name, &len, &inlined);
	int code = 0;

	if (!inlined || r->group.len == 0) {
		code = end_group(r, stack);
		r->group_kind = kind;
	}
	if (len == 0) {
		name = "[unknown]";
		len = strlen(name);
	}
	if (code == 0)
		code = strtab_intern(&r->profile->strings, name, len, &function.name);
	function.system_name = function.name;
	if (code == 0)
		code = profile_function(r->profile, &function, &line.function);
	return code < 0 ? code : vec_push(&r->group, line);
}

/* Rounded to whole numbers; what is left over waits for the next line. */
static bool take_count(struct folded_reader *r, unsigned column, const struct count *count,
		       int64_t *ret)
{
	uint32_t sum = r->carry[column] + count->fraction;

	r->info.fractions |= count->fraction != 0;
	r->carry[column] = sum % FRACTION_ONE;
	return !__builtin_add_overflow(count->whole, (int64_t)(sum / FRACTION_ONE), ret);
}

static int add_line(struct folded_reader *r, const struct line *line)
{
	const char *at = line->text, *end = line->text + line->len;
	int64_t values[2] = {0};
	uint32_t stack = 0;
	int code = 0;

	while (code == 0) {
		const char *semicolon = memchr(at, ';', (size_t)(end - at));

		code = add_frame(r, at, (size_t)((semicolon ? semicolon : end) - at), &stack);
		if (!semicolon)
			break;
		at = semicolon + 1;
	}
	if (code == 0)
		code = end_group(r, &stack);
	for (unsigned i = 0; code == 0 && i < r->width; i++)
		if (!take_count(r, i, &line->counts[r->width - 1 - i], &values[i]))
			code = -EOVERFLOW;
	return code < 0 ? code : profile_add(r->profile, stack, 0, values);
}

static int read_lines(struct folded_reader *r, struct err *err)
{
	uint64_t number = 0;
	struct line line;
	int code = 0;

	while (code == 0 && next_line(r, &number, &line)) {
		const char *reason = NULL;

		r->info.lines++;
		if (line.count_count < r->width)
			reason = "no count at the end";
		else if (line.len == 0)
			reason = "no stack before the count";
		if (reason) {
			if (r->info.bad_lines++ == 0) {
				r->info.first_bad_line = number;
				r->info.first_bad_reason = reason;
			}
			continue;
		}
		if (r->width == 2) {
			struct count ignored;

			(void)cut_count(line.text, &line.len, &ignored);
		}
		code = add_line(r, &line);
	}
	if (code == -EOVERFLOW)
		return err_set(err, code, "line %llu: the counts add up to more than 64 bits",
			       (unsigned long long)number);
	if (code < 0)
		return err_wrap(err, code, "line %llu", (unsigned long long)number);
	if (r->info.lines == 0)
		return err_set(err, -ENODATA, "no data: no line with a stack");
	if (r->info.lines == r->info.bad_lines)
		return err_set(err, -EBADMSG, "line %llu: %s; no line is a folded stack",
			       (unsigned long long)r->info.first_bad_line,
			       r->info.first_bad_reason);
	return 0;
}

static int add_value_types(struct folded_reader *r)
{
	int code;

	if (r->width == 1)
		return profile_add_value_type(r->profile, "samples", "count");
	r->info.two_columns = true;
	code = profile_add_value_type(r->profile, "before", "count");
	return code < 0 ? code : profile_add_value_type(r->profile, "after", "count");
}

static int fill(void *arg, struct profile *profile, struct err *err)
{
	struct folded_reader *r = arg;
	int code;

	r->profile = profile;
	r->width = find_width(r);
	code = add_value_types(r);
	if (code == 0)
		code = read_lines(r, err);
	vec_fini(&r->group);
	return code;
}

int folded_read(const void *data, size_t size, struct profile *ret, struct folded_info *ret_info,
		struct err *err)
{
	const char *text = size > 0 ? data : "";
	struct folded_reader reader = {.next = text, .end = text + size};
	int r = profile_make(fill, &reader, ret, err);

	if (r == 0 && ret_info)
		*ret_info = reader.info;
	return r;
}

bool folded_detect(const void *data, size_t size)
{
	struct folded_reader r = {.next = data};
	size_t window = MIN(size, (size_t)65536);
	uint64_t number = 0;
	unsigned good = 0, all = 0;
	struct line line;

	if (size == 0)
		return false;
	for (size_t i = 0; i < MIN(window, (size_t)256); i++)
		if (r.next[i] >= 0 && r.next[i] < '\t')
			return false;
	r.end = r.next + window;
	while (all < 20 && next_line(&r, &number, &line)) {
		/* The last line of the window may be cut. */
		if (r.next == r.end && size > window && all > 0)
			break;
		all++;
		good += line.count_count > 0 && line.len > 0;
	}
	return good > 0 && good * 2 >= all;
}
