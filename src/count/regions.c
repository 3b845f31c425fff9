#include "count/regions.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/util.h"

#define FIELDS_MAX (3 + 2 * REGIONS_VALUES_MAX + 1)
#define FILE_MAX   (256u << 20)

struct field {
	const char *text;
	size_t len;
};

/* One file on its way into the result. */
struct parser {
	struct regions *into;
	struct err *err;
	struct field fields[FIELDS_MAX];
	unsigned field_count, line;
	unsigned columns[REGIONS_VALUES_MAX],
		column_count; /* counted events of this file, in order */
	int tid;
	bool in_thread, ended;
	struct str name;
};

int regions_init(struct regions *regions, bool by_thread)
{
	*regions = (struct regions){.by_thread = by_thread};
	return strtab_init(&regions->names);
}

void regions_fini(struct regions *regions)
{
	strtab_fini(&regions->names);
	hash_index_fini(&regions->index);
	vec_fini(&regions->rows);
}

static int bad(struct parser *p, const char *what)
{
	return err_set(p->err, -EBADMSG, "line %u: %s", p->line, what);
}

static bool field_is(const struct parser *p, unsigned i, const char *text)
{
	return i < p->field_count && p->fields[i].len == strlen(text) &&
	       memcmp(p->fields[i].text, text, p->fields[i].len) == 0;
}

static int field_u64(struct parser *p, unsigned i, uint64_t *ret)
{
	uint64_t value = 0;

	if (i >= p->field_count || p->fields[i].len == 0)
		return bad(p, "a number is missing");
	for (size_t k = 0; k < p->fields[i].len; k++) {
		unsigned digit = (unsigned char)p->fields[i].text[k] - '0';

		if (digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return bad(p, "not a number");
	}
	*ret = value;
	return 0;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A text with its \xNN taken back. */
static int field_name(struct parser *p, unsigned i, uint32_t *ret)
{
	const struct field *f = &p->fields[i];

	if (i >= p->field_count)
		return bad(p, "a name is missing");
	str_clear(&p->name);
	for (size_t k = 0; k < f->len; k++) {
		int high, low;

		if (f->text[k] != '\\') {
			str_putc(&p->name, f->text[k]);
			continue;
		}
		if (f->len - k < 4 || f->text[k + 1] != 'x')
			return bad(p, "a broken \\ in a name");
		high = hex_digit(f->text[k + 2]);
		low = hex_digit(f->text[k + 3]);
		if (high < 0 || low < 0)
			return bad(p, "a broken \\ in a name");
		str_putc(&p->name, (char)(high << 4 | low));
		k += 3;
	}
	if (str_status(&p->name) < 0)
		return -ENOMEM;
	return strtab_intern(&p->into->names, str_text(&p->name), p->name.len, ret);
}

/* event NAME STATE HOW REASON */
static int add_event(struct parser *p)
{
	static const char *const states[] = {"counted", "not_supported", "not_counted"};
	struct regions *r = p->into;
	struct regions_event event = {.direct = field_is(p, 3, "direct")};
	unsigned at, state;
	int result = field_name(p, 1, &event.name);

	if (result == 0)
		result = field_name(p, 4, &event.reason);
	if (result < 0)
		return result;
	for (state = 0; state < ARRAY_LEN(states) && !field_is(p, 2, states[state]); state++)
		;
	if (state == ARRAY_LEN(states))
		return bad(p, "an event's state is not known");
	event.state = (enum regions_state)state;
	for (at = 0; at < r->event_count && r->events[at].name != event.name; at++)
		;
	if (at == REGIONS_VALUES_MAX || p->column_count == REGIONS_VALUES_MAX)
		return bad(p, "too many events");
	if (at == r->event_count)
		r->events[r->event_count++] = event;
	else if (event.state != REGIONS_COUNTED)
		r->events[at] = event; /* what one process could not count, the sum does not know */
	else
		r->events[at].direct &= event.direct;
	if (event.state == REGIONS_COUNTED)
		p->columns[p->column_count++] = at;
	return 0;
}

struct row_key {
	uint32_t name;
	int tid;
};

static bool row_equal(const void *owner, uint32_t id, const void *key)
{
	const struct regions *r = owner;
	const struct row_key *k = key;

	return r->rows.data[id].name == k->name && r->rows.data[id].tid == k->tid;
}

static int find_row(struct regions *r, const struct row_key *key, struct regions_row **ret)
{
	uint64_t hash = hash_pair(key->name, (uint64_t)(unsigned)key->tid);
	uint32_t id = hash_index_find(&r->index, hash, row_equal, r, key);
	struct regions_row row = {.name = key->name, .tid = key->tid};

	if (id == HASH_NONE) {
		if (r->rows.len >= REGIONS_ROWS_MAX)
			return -E2BIG;
		id = (uint32_t)r->rows.len;
		if (vec_push(&r->rows, row) < 0)
			return -ENOMEM;
		if (hash_index_add(&r->index, hash, id) < 0) {
			r->rows.len--;
			return -ENOMEM;
		}
	}
	*ret = &r->rows.data[id];
	return 0;
}

/* region NAME CALLS UNBALANCED (TOTAL SELF)... */
static int add_region(struct parser *p)
{
	struct row_key key = {.tid = p->into->by_thread ? p->tid : 0};
	uint64_t calls = 0, unbalanced = 0, values[2 * REGIONS_VALUES_MAX];
	struct regions_row *row = NULL;
	int r = field_name(p, 1, &key.name);

	if (r == 0 && !p->in_thread)
		return bad(p, "a region outside a thread");
	if (r == 0)
		r = field_u64(p, 2, &calls);
	if (r == 0)
		r = field_u64(p, 3, &unbalanced);
	if (r == 0 && p->field_count != 4 + 2 * p->column_count)
		return bad(p, "values and events do not match");
	for (unsigned i = 0; i < 2 * p->column_count && r == 0; i++)
		r = field_u64(p, 4 + i, &values[i]);
	if (r == 0)
		r = find_row(p->into, &key, &row);
	if (r != 0 || !row)
		return r == -E2BIG ? err_set(p->err, r, "line %u: more than %d regions", p->line,
					     REGIONS_ROWS_MAX)
				   : r;
	row->calls += calls;
	row->unbalanced += unbalanced;
	row->threads++;
	for (unsigned i = 0; i < p->column_count; i++) {
		row->total[p->columns[i]] += values[2 * i];
		row->self[p->columns[i]] += values[2 * i + 1];
	}
	return 0;
}

static int add_thread(struct parser *p)
{
	uint64_t tid = 0, lost = 0, stray = 0;
	int r = field_u64(p, 1, &tid);

	if (r == 0)
		r = field_u64(p, 2, &lost);
	if (r == 0)
		r = field_u64(p, 3, &stray);
	if (r == 0 && tid > INT_MAX)
		return bad(p, "not a thread's number");
	if (r < 0)
		return r;
	p->tid = (int)tid;
	p->in_thread = true;
	p->into->lost += lost;
	p->into->stray_ends += stray;
	return 0;
}

static int add_line(struct parser *p)
{
	struct regions *r = p->into;
	uint64_t number = 0;
	int result;

	if (p->line == 1)
		return field_is(p, 0, "culprit-regions") && field_is(p, 1, "1")
			       ? 0
			       : bad(p, "not a file of libculprit (version 1)");
	if (p->ended)
		return bad(p, "something behind the end");
	if (field_is(p, 0, "region"))
		return add_region(p);
	if (field_is(p, 0, "thread"))
		return add_thread(p);
	if (field_is(p, 0, "event"))
		return p->in_thread ? bad(p, "an event after the regions") : add_event(p);
	if (field_is(p, 0, "process")) {
		r->processes++;
		result = field_u64(p, 3, &number);
		r->lost_threads += result == 0 ? number : 0;
		return result;
	}
	if (field_is(p, 0, "cost")) {
		result = field_u64(p, 1, &number);
		if (result == 0 && r->pair_ns == 0) {
			r->pair_ns = number;
			if (!field_is(p, 2, "-"))
				result = field_u64(p, 2, &r->pair_cycles);
		}
		return result;
	}
	p->ended = field_is(p, 0, "end");
	return 0; /* lines of later versions that add something are passed over */
}

static int split(struct parser *p, const char *line, size_t len)
{
	p->field_count = 0;
	for (size_t from = 0;; from++) {
		const char *tab = memchr(line + from, '\t', len - from);
		size_t end = tab ? (size_t)(tab - line) : len;

		if (p->field_count == FIELDS_MAX)
			return bad(p, "too many fields");
		p->fields[p->field_count++] = (struct field){line + from, end - from};
		from = end;
		if (!tab)
			return 0;
	}
}

int regions_add(struct regions *regions, const char *data, size_t size, struct err *err)
{
	struct parser p = {.into = regions, .err = err};
	int r = 0;

	while (size > 0 && r == 0) {
		const char *newline = memchr(data, '\n', size);
		size_t len = newline ? (size_t)(newline - data) : size;

		p.line++;
		r = split(&p, data, len);
		if (r == 0)
			r = add_line(&p);
		len += newline != NULL;
		data += len;
		size -= len;
	}
	if (r == 0 && !p.ended)
		r = bad(&p, "the end is missing");
	str_fini(&p.name);
	return r;
}

int regions_add_directory(struct regions *regions, const char *path, unsigned *ret_files,
			  struct err *err)
{
	DIR *dir = opendir(path);
	unsigned files = 0;
	int r = 0;

	if (!dir)
		return err_set(err, -errno, "%s: %s", path, strerrordesc_np(errno));
	for (const struct dirent *entry; r == 0 && (entry = readdir(dir)) != NULL;) {
		char *data;
		size_t size;

		if (entry->d_name[0] == '.')
			continue;
		r = file_read_at(dirfd(dir), entry->d_name, FILE_MAX, &data, &size, err);
		if (r < 0)
			break;
		r = regions_add(regions, data, size, err);
		if (r < 0)
			err_wrap(err, r, "%s", entry->d_name);
		free(data);
		files++;
	}
	closedir(dir);
	if (r == 0)
		*ret_files = files;
	return r;
}
