/*
 * Merging: every table of src is walked once and its entries are interned into dst; arrays of u32
 * remember what became of each id. Parents come before children in the table of stacks, so one pass
 * translates the whole tree.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "profile/profile.h"

struct translation {
	struct profile *dst;
	const struct profile *src;
	uint32_t *strings, *mappings, *functions, *locations, *stacks, *labels;
	uint32_t *values; /* value type of src -> value type of dst */
};

static int ids_new(size_t len, uint32_t **ret)
{
	*ret = malloc(len * sizeof(**ret) + 1);
	return *ret ? 0 : -ENOMEM;
}

static void translation_fini(struct translation *t)
{
	free(t->strings);
	free(t->mappings);
	free(t->functions);
	free(t->locations);
	free(t->stacks);
	free(t->labels);
	free(t->values);
}

static int translate_strings(struct translation *t)
{
	int r = ids_new(t->src->strings.entries.len, &t->strings);

	for (size_t i = 0; r == 0 && i < t->src->strings.entries.len; i++) {
		const struct strtab_entry *entry = &t->src->strings.entries.data[i];

		r = strtab_intern(&t->dst->strings, entry->text, entry->len, &t->strings[i]);
	}
	return r;
}

/* Finds each value type of src in dst; an empty dst takes those of src. */
static int translate_values(struct translation *t)
{
	const struct profile *src = t->src;
	struct profile *dst = t->dst;
	size_t count = src->value_types.len;
	bool fresh = dst->value_types.len == 0 && dst->samples.len == 0;
	int r = ids_new(count, &t->values);

	for (size_t i = 0; r == 0 && fresh && i < count; i++)
		r = profile_add_value_type(
			dst, strtab_text(&src->strings, src->value_types.data[i].type),
			strtab_text(&src->strings, src->value_types.data[i].unit));
	if (r < 0)
		return r;
	if (dst->value_types.len != count)
		return -EINVAL;
	for (size_t i = 0; i < count; i++) {
		uint32_t type = t->strings[src->value_types.data[i].type];
		uint32_t unit = t->strings[src->value_types.data[i].unit];
		size_t at = 0;

		/* Two types of one name are told apart by their place. */
		if (dst->value_types.data[i].type == type && dst->value_types.data[i].unit == unit)
			at = i;
		else
			while (at < count && (dst->value_types.data[at].type != type ||
					      dst->value_types.data[at].unit != unit))
				at++;
		for (size_t earlier = 0; earlier < i; earlier++)
			if (t->values[earlier] == at)
				return -EINVAL;
		if (at == count)
			return -EINVAL;
		t->values[i] = (uint32_t)at;
	}
	return 0;
}

static int translate_mappings(struct translation *t)
{
	int r = ids_new(t->src->mappings.len, &t->mappings);

	if (r == 0)
		t->mappings[0] = 0;
	for (size_t i = 1; r == 0 && i < t->src->mappings.len; i++) {
		struct profile_mapping mapping = t->src->mappings.data[i];

		mapping.filename = t->strings[mapping.filename];
		mapping.build_id = t->strings[mapping.build_id];
		r = profile_mapping(t->dst, &mapping, &t->mappings[i]);
	}
	return r;
}

static int translate_functions(struct translation *t)
{
	int r = ids_new(t->src->functions.len, &t->functions);

	if (r == 0)
		t->functions[0] = 0;
	for (size_t i = 1; r == 0 && i < t->src->functions.len; i++) {
		struct profile_function function = t->src->functions.data[i];

		function.name = t->strings[function.name];
		function.system_name = t->strings[function.system_name];
		function.filename = t->strings[function.filename];
		r = profile_function(t->dst, &function, &t->functions[i]);
	}
	return r;
}

static int translate_locations(struct translation *t)
{
	VEC(struct profile_line) lines = {0};
	int r = ids_new(t->src->locations.len, &t->locations);

	if (r == 0)
		t->locations[0] = 0;
	for (size_t i = 1; r == 0 && i < t->src->locations.len; i++) {
		struct profile_location location = t->src->locations.data[i];

		lines.len = 0;
		r = vec_reserve(&lines, location.line_count);
		for (uint32_t j = 0; r == 0 && j < location.line_count; j++) {
			lines.data[j] = t->src->lines.data[location.first_line + j];
			lines.data[j].function = t->functions[lines.data[j].function];
		}
		location.mapping = t->mappings[location.mapping];
		if (r == 0)
			r = profile_location(t->dst, &location, lines.data, &t->locations[i]);
	}
	vec_fini(&lines);
	return r;
}

static int translate_stacks(struct translation *t)
{
	int r = ids_new(t->src->stacks.len, &t->stacks);

	if (r == 0)
		t->stacks[0] = 0;
	for (size_t i = 1; r == 0 && i < t->src->stacks.len; i++) {
		const struct profile_stack *stack = &t->src->stacks.data[i];

		r = profile_stack(t->dst, t->stacks[stack->parent], t->locations[stack->location],
				  &t->stacks[i]);
	}
	return r;
}

static int translate_labels(struct translation *t)
{
	VEC(struct profile_label) labels = {0};
	int r = ids_new(t->src->label_sets.len, &t->labels);

	if (r == 0)
		t->labels[0] = 0;
	for (size_t i = 1; r == 0 && i < t->src->label_sets.len; i++) {
		const struct profile_label_set *set = &t->src->label_sets.data[i];

		r = vec_reserve(&labels, set->count);
		for (uint32_t j = 0; r == 0 && j < set->count; j++) {
			struct profile_label label = t->src->labels.data[set->first + j];

			label.key = t->strings[label.key];
			label.text = t->strings[label.text];
			label.number_unit = t->strings[label.number_unit];
			labels.data[j] = label;
		}
		if (r == 0)
			r = profile_label_set(t->dst, labels.data, set->count, &t->labels[i]);
	}
	vec_fini(&labels);
	return r;
}

static int add_samples(struct translation *t)
{
	size_t width = t->src->value_types.len;
	int64_t *values = malloc(width * sizeof(*values) + 1);
	int r = values ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < t->src->samples.len; i++) {
		for (size_t j = 0; j < width; j++)
			values[t->values[j]] = t->src->values.data[i * width + j];
		r = profile_add(t->dst, t->stacks[t->src->samples.data[i].stack],
				t->labels[t->src->samples.data[i].labels], values);
	}
	free(values);
	return r;
}

/* The parts of the header that must agree. */
static int check_header(const struct translation *t)
{
	const struct profile *dst = t->dst, *src = t->src;
	bool fresh = dst->samples.len == 0;

	if (dst->period_type.type != 0 && src->period_type.type != 0 &&
	    (dst->period_type.type != t->strings[src->period_type.type] ||
	     dst->period_type.unit != t->strings[src->period_type.unit]))
		return -EINVAL;
	if (!fresh && (dst->drop_frames != t->strings[src->drop_frames] ||
		       dst->keep_frames != t->strings[src->keep_frames]))
		return -EINVAL;
	return 0;
}

static int merge_header(struct translation *t, bool fresh)
{
	struct profile *dst = t->dst;
	const struct profile *src = t->src;
	int r = 0;

	if (dst->period_type.type == 0 && src->period_type.type != 0) {
		dst->period_type.type = t->strings[src->period_type.type];
		dst->period_type.unit = t->strings[src->period_type.unit];
	}
	dst->period = MAX(dst->period, src->period);
	if (src->time_ns != 0 && (dst->time_ns == 0 || src->time_ns < dst->time_ns))
		dst->time_ns = src->time_ns;
	if (__builtin_add_overflow(dst->duration_ns, src->duration_ns, &dst->duration_ns))
		return -EOVERFLOW;
	if (dst->default_type == 0)
		dst->default_type = t->strings[src->default_type];
	if (dst->doc_url == 0)
		dst->doc_url = t->strings[src->doc_url];
	if (fresh) {
		dst->drop_frames = t->strings[src->drop_frames];
		dst->keep_frames = t->strings[src->keep_frames];
	}
	for (size_t i = 0; r == 0 && i < src->comments.len; i++) {
		uint32_t comment = t->strings[src->comments.data[i]];
		bool known = false;

		for (size_t j = 0; j < dst->comments.len; j++)
			known |= dst->comments.data[j] == comment;
		if (!known)
			r = vec_push(&dst->comments, comment);
	}
	return r;
}

int profile_merge(struct profile *dst, const struct profile *src)
{
	struct translation t = {.dst = dst, .src = src};
	bool fresh = dst->samples.len == 0;
	int r;

	if (dst == src)
		return -EINVAL;
	r = translate_strings(&t);
	if (r == 0)
		r = check_header(&t);
	if (r == 0)
		r = translate_values(&t);
	if (r == 0)
		r = translate_mappings(&t);
	if (r == 0)
		r = translate_functions(&t);
	if (r == 0)
		r = translate_locations(&t);
	if (r == 0)
		r = translate_stacks(&t);
	if (r == 0)
		r = translate_labels(&t);
	if (r == 0)
		r = add_samples(&t);
	if (r == 0)
		r = merge_header(&t, fresh);
	translation_fini(&t);
	return r;
}
