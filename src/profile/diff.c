/* The rows of both profiles are found by (name, object) and summed side by side. */
#include "profile/diff.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/util.h"
#include "stats/proportion.h"

struct summing {
	struct profile_diff *diff;
	const struct profile *profile;
	bool new;
	uint32_t *of_line, *of_location; /* row + 1 */
	uint32_t unknown;                /* row of samples without frames */
};

static int find_row(struct summing *s, const char *name, size_t len, uint32_t mapping,
		    uint32_t *ret)
{
	const struct profile *p = s->profile;
	const struct strtab_entry *object =
		&p->strings.entries.data[p->mappings.data[mapping].filename];
	struct diff_row row = {0};
	uint64_t key;
	int r = strtab_intern(&s->diff->strings, name, len, &row.symbol);

	if (r == 0)
		r = strtab_intern(&s->diff->strings, object->text, object->len, &row.object);
	if (r < 0)
		return r;
	key = (uint64_t)row.symbol << 32 | row.object;
	if (u64_map_get(&s->diff->index, key, ret))
		return 0;
	if (s->diff->rows.len >= UINT32_MAX - 1)
		return -E2BIG;
	*ret = (uint32_t)s->diff->rows.len;
	r = u64_map_put(&s->diff->index, key, *ret);
	return r < 0 ? r : vec_push(&s->diff->rows, row);
}

static int row_of_address(struct summing *s, const struct profile_location *location, uint32_t *ret)
{
	const struct profile_mapping *m = &s->profile->mappings.data[location->mapping];
	const char *path = strtab_text(&s->profile->strings, m->filename);
	const char *base = strrchr(path, '/');
	struct str name = {0};
	int r;

	base = base && base[1] != '\0' ? base + 1 : path;
	str_printf(&name, "%s+0x%" PRIx64, base[0] != '\0' ? base : "[unknown]",
		   location->address - m->start + m->offset);
	r = str_status(&name);
	if (r == 0)
		r = find_row(s, str_text(&name), name.len, location->mapping, ret);
	str_fini(&name);
	return r;
}

static int rows_of_location(struct summing *s, uint32_t id)
{
	const struct profile *p = s->profile;
	const struct profile_location *location = &p->locations.data[id];
	uint32_t row;
	int r = 0;

	if (location->line_count == 0)
		r = row_of_address(s, location, &row);
	else
		row = 0;
	s->of_location[id] = row + 1;
	for (uint32_t i = 0; r == 0 && i < location->line_count; i++) {
		const struct profile_line *line = &p->lines.data[location->first_line + i];
		const struct profile_function *f = &p->functions.data[line->function];
		const struct strtab_entry *name =
			&p->strings.entries.data[f->name != 0 ? f->name : f->system_name];

		if (name->len > 0)
			r = find_row(s, name->text, name->len, location->mapping, &row);
		else
			r = row_of_address(s, location, &row);
		s->of_line[location->first_line + i] = row + 1;
	}
	return r;
}

struct weight {
	int64_t value, samples;
	uint32_t mark;
};

/* One frame of a sample; leaf: the sample fell there. */
static int add_frame(struct summing *s, uint32_t row, const struct weight *w, bool leaf)
{
	struct diff_row *of = &s->diff->rows.data[row];
	struct diff_side *side = s->new ? &of->new : &of->base;
	bool lost = false;

	if (leaf)
		lost = __builtin_add_overflow(side->self, w->value, &side->self) ||
		       __builtin_add_overflow(side->self_samples, w->samples, &side->self_samples);
	if (!lost && side->mark != w->mark)
		lost = __builtin_add_overflow(side->total, w->value, &side->total) ||
		       __builtin_add_overflow(side->total_samples, w->samples,
					      &side->total_samples);
	side->mark = w->mark;
	return lost ? -EOVERFLOW : 0;
}

static int add_stack(struct summing *s, uint32_t stack, const struct weight *w)
{
	const struct profile *p = s->profile;
	bool leaf = true;
	int r = 0;

	if (stack == 0)
		return add_frame(s, s->unknown, w, true);
	for (; r == 0 && stack != 0; stack = p->stacks.data[stack].parent) {
		uint32_t id = p->stacks.data[stack].location;
		const struct profile_location *location = &p->locations.data[id];

		if (s->of_location[id] == 0)
			r = rows_of_location(s, id);
		if (r == 0 && location->line_count == 0)
			r = add_frame(s, s->of_location[id] - 1, w, leaf);
		for (uint32_t i = 0; r == 0 && i < location->line_count; i++)
			r = add_frame(s, s->of_line[location->first_line + i] - 1, w,
				      leaf && i == 0);
		leaf = false;
	}
	return r;
}

static int sum_samples(struct summing *s, uint32_t value)
{
	const struct profile *p = s->profile;
	int64_t *all = s->new ? &s->diff->new_all : &s->diff->base_all;
	int64_t *samples = s->new ? &s->diff->new_samples : &s->diff->base_samples;
	int count = profile_find_value(p, "samples");
	int r = find_row(s, "[unknown]", strlen("[unknown]"), 0, &s->unknown);

	for (size_t i = 0; r == 0 && i < p->samples.len; i++) {
		const int64_t *values = p->values.data + i * p->value_types.len;
		struct weight w = {.value = values[value], .mark = (uint32_t)i + 1};

		if (w.value <= 0)
			continue;
		w.samples = count >= 0 ? MAX(values[count], INT64_C(0)) : 0;
		if (__builtin_add_overflow(*all, w.value, all) ||
		    __builtin_add_overflow(*samples, w.samples, samples))
			return -EOVERFLOW;
		r = add_stack(s, p->samples.data[i].stack, &w);
	}
	return r;
}

static int sum_profile(struct profile_diff *diff, const struct profile *p, uint32_t value, bool new)
{
	struct summing s = {.diff = diff, .profile = p, .new = new};
	int r = -ENOMEM;

	if (value >= p->value_types.len)
		return -EINVAL;
	s.of_line = calloc(p->lines.len + 1, sizeof(*s.of_line));
	s.of_location = calloc(p->locations.len + 1, sizeof(*s.of_location));
	if (s.of_line && s.of_location)
		r = sum_samples(&s, value);
	free(s.of_line);
	free(s.of_location);
	return r;
}

static int order_rows(const void *a, const void *b, void *arg)
{
	const struct diff_row *x = a, *y = b;
	const struct strtab *strings = arg;
	double dx = fabs(x->delta_share), dy = fabs(y->delta_share);
	int r;

	if (dx != dy && !isnan(dx) && !isnan(dy))
		return dx > dy ? -1 : 1;
	r = strcmp(strtab_text(strings, x->symbol), strtab_text(strings, y->symbol));
	return r != 0 ? r
		      : strcmp(strtab_text(strings, x->object), strtab_text(strings, y->object));
}

static int test_rows(struct profile_diff *diff, bool total)
{
	size_t count = diff->rows.len;
	double *p = malloc((count + 1) * sizeof(*p));
	bool *selected = calloc(count + 1, sizeof(*selected));
	int r = p && selected ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < count; i++) {
		struct diff_row *row = &diff->rows.data[i];

		row->p = proportion_test(
				 (double)(total ? row->base.total_samples : row->base.self_samples),
				 (double)diff->base_samples,
				 (double)(total ? row->new.total_samples : row->new.self_samples),
				 (double)diff->new_samples)
				 .p;
		p[i] = row->p;
	}
	if (r == 0)
		r = false_discovery_select(p, count, DIFF_FALSE_DISCOVERIES, selected);
	for (size_t i = 0; r == 0 && i < count; i++)
		diff->rows.data[i].significant = selected[i];
	free(p);
	free(selected);
	return r;
}

static double share(int64_t value, int64_t all)
{
	return all > 0 ? (double)value / (double)all : NAN;
}

/* Only rows that the comparison is about: callers alone have no self time. */
static void finish_rows(struct profile_diff *diff, bool total)
{
	size_t kept = 0;

	for (size_t i = 0; i < diff->rows.len; i++) {
		struct diff_row row = diff->rows.data[i];

		row.base_share = share(total ? row.base.total : row.base.self, diff->base_all);
		row.new_share = share(total ? row.new.total : row.new.self, diff->new_all);
		row.delta_share = row.new_share - row.base_share;
		row.p = NAN;
		if (total ? row.base.total > 0 || row.new.total > 0
			  : row.base.self > 0 || row.new.self > 0)
			diff->rows.data[kept++] = row;
	}
	diff->rows.len = kept;
}

int profile_diff(const struct profile *base, uint32_t base_value, const struct profile *new,
		 uint32_t new_value, bool total, struct profile_diff *ret)
{
	struct profile_diff diff = {0};
	int r = strtab_init(&diff.strings);

	if (r == 0)
		r = sum_profile(&diff, base, base_value, false);
	if (r == 0)
		r = sum_profile(&diff, new, new_value, true);
	if (r == 0) {
		diff.tested = diff.base_samples > 0 && diff.new_samples > 0;
		finish_rows(&diff, total);
	}
	if (r == 0 && diff.tested)
		r = test_rows(&diff, total);
	if (r < 0) {
		profile_diff_fini(&diff);
		return r;
	}
	if (diff.rows.len > 1)
		qsort_r(diff.rows.data, diff.rows.len, sizeof(*diff.rows.data), order_rows,
			&diff.strings);
	*ret = diff;
	return 0;
}

void profile_diff_fini(struct profile_diff *diff)
{
	strtab_fini(&diff->strings);
	vec_fini(&diff->rows);
	u64_map_fini(&diff->index);
	*diff = (struct profile_diff){0};
}
