/*
 * Writing folded stacks. Different stacks may give one text (two addresses of a function, two
 * labels), so lines are gathered by text first and sorted afterwards: the output is the same for
 * equal profiles.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "profile/folded.h"

struct line_sum {
	int64_t values[2];
};

struct folded_writer {
	const struct profile *profile;
	const struct folded_options *options;
	uint32_t columns[2];
	unsigned width;
	struct strtab lines;
	VEC(struct line_sum) sums; /* by id of the line */
	VEC(uint32_t) path;        /* stacks from leaf to root */
	struct str line;
};

/* A line must not begin like a comment, and a name of blanks would be taken for none. */
static void put_name(struct str *line, const char *name, size_t len)
{
	bool blank = true;

	for (size_t i = 0; i < len; i++)
		blank &= name[i] == ' ' || name[i] == '\t';
	if (blank) {
		str_puts(line, "[unknown]");
		return;
	}
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)name[i];

		if (c == ';')
			c = ':';
		else if ((c < ' ' && c != '\t') || c == 0x7f || (c == '#' && line->len == 0))
			c = '?';
		str_putc(line, (char)c);
	}
}

static void put_string(struct folded_writer *w, uint32_t string)
{
	const struct strtab_entry *entry = &w->profile->strings.entries.data[string];

	put_name(&w->line, entry->text, entry->len);
}

static const char *suffix_of(enum profile_kind kind)
{
	switch (kind) {
	case PROFILE_KERNEL:
	case PROFILE_GUEST:
		return "_[k]";
	case PROFILE_JIT:
		return "_[j]";
	default:
		return "";
	}
}

static void put_object(struct folded_writer *w, const struct profile_mapping *mapping)
{
	const char *name = strtab_text(&w->profile->strings, mapping->filename);
	const char *base = strrchr(name, '/');

	base = base && base[1] != '\0' ? base + 1 : name;
	if (base[0] == '[') {
		put_name(&w->line, base, strlen(base));
		return;
	}
	if (base[0] == '\0')
		base = "unknown";
	str_putc(&w->line, '[');
	put_name(&w->line, base, strlen(base));
	str_putc(&w->line, ']');
}

static void put_separator(struct folded_writer *w)
{
	if (w->line.len > 0)
		str_putc(&w->line, ';');
}

static void put_location(struct folded_writer *w, uint32_t id)
{
	const struct profile *p = w->profile;
	const struct profile_location *location = &p->locations.data[id];
	const struct profile_mapping *mapping = &p->mappings.data[location->mapping];
	const char *suffix = w->options->annotate ? suffix_of(mapping->kind) : "";

	if (location->line_count == 0) {
		put_separator(w);
		put_object(w, mapping);
		str_puts(&w->line, suffix);
		return;
	}
	for (uint32_t i = location->line_count; i-- > 0;) {
		const struct profile_line *line = &p->lines.data[location->first_line + i];
		const struct profile_function *function = &p->functions.data[line->function];
		uint32_t name = function->name != 0 ? function->name : function->system_name;
		bool inlined = i + 1 < location->line_count;

		put_separator(w);
		if (name == 0)
			put_object(w, mapping);
		else
			put_string(w, name);
		if (w->options->annotate)
			str_puts(&w->line, inlined && suffix[0] == '\0' ? "_[i]" : suffix);
	}
}

static void put_root(struct folded_writer *w, uint32_t labels)
{
	const struct profile *p = w->profile;
	const char *comm = profile_label_text(p, labels, "comm");
	int64_t pid, tid;

	if (w->options->root == FOLDED_ROOT_NONE)
		return;
	if (comm)
		put_name(&w->line, comm, strlen(comm));
	if (w->options->root == FOLDED_ROOT_COMM)
		return;
	if (profile_label_number(p, labels, "pid", &pid))
		str_printf(&w->line, "-%lld", (long long)pid);
	if (w->options->root == FOLDED_ROOT_TID && profile_label_number(p, labels, "tid", &tid))
		str_printf(&w->line, "/%lld", (long long)tid);
}

static int add_values(struct folded_writer *w, const int64_t *values)
{
	struct line_sum *sum;
	uint32_t id;
	int r = str_status(&w->line);

	if (r == 0)
		r = strtab_intern(&w->lines, str_text(&w->line), w->line.len, &id);
	while (r == 0 && w->sums.len <= id)
		r = vec_push(&w->sums, (struct line_sum){0});
	if (r < 0)
		return r;
	sum = &w->sums.data[id];
	for (unsigned i = 0; i < w->width; i++)
		if (__builtin_add_overflow(sum->values[i], values[w->columns[i]], &sum->values[i]))
			return -EOVERFLOW;
	return 0;
}

static int add_sample(struct folded_writer *w, size_t index)
{
	const struct profile *p = w->profile;
	const struct profile_sample *sample = &p->samples.data[index];
	int r = 0;

	str_clear(&w->line);
	w->path.len = 0;
	for (uint32_t stack = sample->stack; r == 0 && stack != 0;
	     stack = p->stacks.data[stack].parent)
		r = vec_push(&w->path, stack);
	if (r < 0)
		return r;
	put_root(w, sample->labels);
	for (size_t i = w->path.len; i-- > 0;)
		put_location(w, p->stacks.data[w->path.data[i]].location);
	if (w->line.len == 0)
		str_puts(&w->line, "[unknown]");
	return add_values(w, p->values.data + index * p->value_types.len);
}

static int compare_lines(const void *a, const void *b, void *arg)
{
	const struct strtab *lines = arg;
	const struct strtab_entry *x = &lines->entries.data[*(const uint32_t *)a];
	const struct strtab_entry *y = &lines->entries.data[*(const uint32_t *)b];
	int r = memcmp(x->text, y->text, MIN(x->len, y->len));

	return r != 0 ? r : x->len < y->len ? -1 : x->len > y->len;
}

static int write_sorted(struct folded_writer *w, struct str *out)
{
	VEC(uint32_t) order = {0};
	int r = 0;

	for (uint32_t id = 0; r == 0 && id < w->sums.len; id++)
		if (w->sums.data[id].values[0] != 0 || w->sums.data[id].values[1] != 0)
			r = vec_push(&order, id);
	if (order.len > 1)
		qsort_r(order.data, order.len, sizeof(*order.data), compare_lines, &w->lines);
	for (size_t i = 0; r == 0 && i < order.len; i++) {
		const struct strtab_entry *line = &w->lines.entries.data[order.data[i]];

		str_append(out, line->text, line->len);
		for (unsigned j = 0; j < w->width; j++)
			str_printf(out, " %lld", (long long)w->sums.data[order.data[i]].values[j]);
		str_putc(out, '\n');
	}
	vec_fini(&order);
	return r < 0 ? r : str_status(out);
}

/* Which values become columns. */
static int choose_columns(struct folded_writer *w, struct err *err)
{
	const struct profile *p = w->profile;
	int value = w->options->value, before = profile_find_value(p, "before"),
	    after = profile_find_value(p, "after");

	w->width = 1;
	if (p->value_types.len == 0 || value >= (int)p->value_types.len)
		return err_set(err, -EINVAL, "the profile has no such value");
	if (value >= 0) {
		w->columns[0] = (uint32_t)value;
	} else if (p->value_types.len == 2 && before == 0 && after == 1) {
		w->width = 2;
		w->columns[1] = 1;
	} else {
		w->columns[0] = profile_default_value(p);
	}
	return 0;
}

int folded_write(const struct profile *profile, const struct folded_options *options,
		 struct str *out, struct err *err)
{
	struct folded_writer w = {.profile = profile, .options = options};
	int r = choose_columns(&w, err);

	if (r < 0)
		return r;
	r = strtab_init(&w.lines);
	for (size_t i = 0; r == 0 && i < profile->samples.len; i++)
		r = add_sample(&w, i);
	if (r == 0)
		r = write_sorted(&w, out);
	strtab_fini(&w.lines);
	vec_fini(&w.sums);
	vec_fini(&w.path);
	str_fini(&w.line);
	if (r == -EOVERFLOW)
		return err_set(err, r, "the values of one line add up to more than 64 bits");
	return r < 0 ? err_set(err, r, "out of memory for the folded text") : 0;
}
