/*
 * The tables of a profile. Every table is an array of entries plus a hash index over it; the
 * fixed-size keys of the hot path (stacks, samples) are one or two words, so that adding a sample
 * to known stacks allocates nothing and touches one slot and one entry per frame.
 *
 * On failure nothing changes: an entry that could not be indexed is taken back.
 */
#include "profile/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

int profile_init(struct profile *profile)
{
	int r;

	*profile = (struct profile){0};
	r = strtab_init(&profile->strings);
	if (r == 0)
		r = vec_push(&profile->mappings, (struct profile_mapping){0});
	if (r == 0)
		r = vec_push(&profile->functions, (struct profile_function){0});
	if (r == 0)
		r = vec_push(&profile->locations, (struct profile_location){0});
	if (r == 0)
		r = vec_push(&profile->stacks, (struct profile_stack){0});
	if (r == 0)
		r = vec_push(&profile->label_sets, (struct profile_label_set){0});
	if (r < 0)
		profile_fini(profile);
	return r;
}

void profile_fini(struct profile *profile)
{
	strtab_fini(&profile->strings);
	vec_fini(&profile->value_types);
	vec_fini(&profile->mappings);
	vec_fini(&profile->functions);
	vec_fini(&profile->lines);
	vec_fini(&profile->locations);
	vec_fini(&profile->stacks);
	vec_fini(&profile->labels);
	vec_fini(&profile->label_sets);
	vec_fini(&profile->samples);
	vec_fini(&profile->values);
	vec_fini(&profile->comments);
	hash_index_fini(&profile->mapping_index);
	hash_index_fini(&profile->function_index);
	hash_index_fini(&profile->location_index);
	hash_index_fini(&profile->stack_index);
	hash_index_fini(&profile->label_index);
	hash_index_fini(&profile->sample_index);
	*profile = (struct profile){0};
}

int profile_make(int (*fill)(void *arg, struct profile *profile, struct err *err), void *arg,
		 struct profile *ret, struct err *err)
{
	struct profile profile;
	struct err words = {0};
	int r = profile_init(&profile);

	if (r < 0)
		return err_set(err, r, "out of memory");
	r = fill(arg, &profile, &words);
	if (r < 0) {
		profile_fini(&profile);
		return err_set(err, r, "%s", err_text(&words, r));
	}
	*ret = profile;
	return 0;
}

int profile_add_value_type(struct profile *profile, const char *type, const char *unit)
{
	struct profile_value_type value_type = {0};
	int r;

	if (profile->samples.len > 0)
		return -EINVAL;
	r = strtab_intern_text(&profile->strings, type, &value_type.type);
	if (r == 0)
		r = strtab_intern_text(&profile->strings, unit, &value_type.unit);
	if (r == 0)
		r = vec_push(&profile->value_types, value_type);
	return r;
}

/* Adds an entry and its index; the macro is for the entry's type, everything else is the same. */
#define TABLE_ADD(table, index, hash, entry, ret_id)                                            \
	({                                                                                      \
		int added_ = (table)->len >= HASH_NONE ? -E2BIG : vec_push((table), (entry));   \
		if (added_ == 0) {                                                              \
			added_ = hash_index_add((index), (hash), (uint32_t)((table)->len - 1)); \
			if (added_ < 0)                                                         \
				(table)->len--;                                                 \
			else                                                                    \
				*(ret_id) = (uint32_t)((table)->len - 1);                       \
		}                                                                               \
		added_;                                                                         \
	})

static bool mapping_equal(const void *owner, uint32_t id, const void *key)
{
	const struct profile_mapping *have = &((const struct profile *)owner)->mappings.data[id],
				     *want = key;

	return have->start == want->start && have->limit == want->limit &&
	       have->offset == want->offset && have->filename == want->filename &&
	       have->build_id == want->build_id && have->kind == want->kind;
}

int profile_mapping(struct profile *profile, const struct profile_mapping *mapping,
		    uint32_t *ret_id)
{
	uint64_t hash = hash_pair(hash_pair(mapping->start, mapping->limit) ^ mapping->offset,
				  hash_pair(mapping->filename, mapping->build_id) + mapping->kind);
	uint32_t id =
		hash_index_find(&profile->mapping_index, hash, mapping_equal, profile, mapping);
	struct profile_mapping *have;

	if (id == HASH_NONE)
		return TABLE_ADD(&profile->mappings, &profile->mapping_index, hash, *mapping,
				 ret_id);
	/* The hints promise something about every location of the mapping, so they hold when both
	 * say so. */
	have = &profile->mappings.data[id];
	have->has_functions &= mapping->has_functions;
	have->has_filenames &= mapping->has_filenames;
	have->has_line_numbers &= mapping->has_line_numbers;
	have->has_inline_frames &= mapping->has_inline_frames;
	*ret_id = id;
	return 0;
}

static bool function_equal(const void *owner, uint32_t id, const void *key)
{
	const struct profile_function *have = &((const struct profile *)owner)->functions.data[id],
				      *want = key;

	return have->name == want->name && have->system_name == want->system_name &&
	       have->filename == want->filename && have->start_line == want->start_line;
}

int profile_function(struct profile *profile, const struct profile_function *function,
		     uint32_t *ret_id)
{
	uint64_t hash = hash_pair(hash_pair(function->name, function->system_name),
				  hash_pair(function->filename, (uint64_t)function->start_line));
	uint32_t id =
		hash_index_find(&profile->function_index, hash, function_equal, profile, function);

	if (id == HASH_NONE)
		return TABLE_ADD(&profile->functions, &profile->function_index, hash, *function,
				 ret_id);
	*ret_id = id;
	return 0;
}

struct location_key {
	const struct profile_location *location;
	const struct profile_line *lines;
};

static bool location_equal(const void *owner, uint32_t id, const void *key)
{
	const struct profile *profile = owner;
	const struct profile_location *have = &profile->locations.data[id];
	const struct profile_location *want = ((const struct location_key *)key)->location;
	const struct profile_line *want_lines = ((const struct location_key *)key)->lines;

	if (have->address != want->address || have->mapping != want->mapping ||
	    have->line_count != want->line_count || have->folded != want->folded)
		return false;
	for (uint32_t i = 0; i < want->line_count; i++) {
		const struct profile_line *line = &profile->lines.data[have->first_line + i];

		if (line->function != want_lines[i].function || line->line != want_lines[i].line ||
		    line->column != want_lines[i].column)
			return false;
	}
	return true;
}

/* Appends lines to the table of lines. */
static int lines_add(struct profile *profile, const struct profile_line *lines, uint32_t count,
		     uint32_t *ret_first)
{
	int r;

	if (profile->lines.len + count >= UINT32_MAX)
		return -E2BIG;
	r = vec_reserve(&profile->lines, profile->lines.len + count);
	if (r < 0)
		return r;
	*ret_first = (uint32_t)profile->lines.len;
	for (uint32_t i = 0; i < count; i++)
		profile->lines.data[profile->lines.len++] = lines[i];
	return 0;
}

int profile_location(struct profile *profile, const struct profile_location *location,
		     const struct profile_line *lines, uint32_t *ret_id)
{
	struct location_key key = {.location = location, .lines = lines};
	uint64_t hash =
		hash_pair(location->address, location->mapping * UINT64_C(2) + location->folded);
	struct profile_location entry = *location;
	uint32_t id;
	int r;

	for (uint32_t i = 0; i < location->line_count; i++)
		hash = hash_pair(hash ^ lines[i].function,
				 (uint64_t)lines[i].line ^ (uint64_t)lines[i].column << 32);
	id = hash_index_find(&profile->location_index, hash, location_equal, profile, &key);
	if (id != HASH_NONE) {
		*ret_id = id;
		return 0;
	}
	r = lines_add(profile, lines, location->line_count, &entry.first_line);
	if (r < 0)
		return r;
	r = TABLE_ADD(&profile->locations, &profile->location_index, hash, entry, ret_id);
	if (r < 0)
		profile->lines.len = entry.first_line;
	return r;
}

int profile_location_set_lines(struct profile *profile, uint32_t location,
			       const struct profile_line *lines, uint32_t line_count)
{
	uint32_t first;
	int r;

	if (location == 0 || location >= profile->locations.len)
		return -EINVAL;
	r = lines_add(profile, lines, line_count, &first);
	if (r < 0)
		return r;
	profile->locations.data[location].first_line = first;
	profile->locations.data[location].line_count = line_count;
	return 0;
}

static bool stack_equal(const void *owner, uint32_t id, const void *key)
{
	const struct profile_stack *have = &((const struct profile *)owner)->stacks.data[id],
				   *want = key;

	return have->parent == want->parent && have->location == want->location;
}

int profile_stack(struct profile *profile, uint32_t parent, uint32_t location, uint32_t *ret_id)
{
	struct profile_stack stack = {.parent = parent, .location = location};
	uint64_t hash = hash_pair(parent, location);
	uint32_t id = hash_index_find(&profile->stack_index, hash, stack_equal, profile, &stack);

	if (id == HASH_NONE)
		return TABLE_ADD(&profile->stacks, &profile->stack_index, hash, stack, ret_id);
	*ret_id = id;
	return 0;
}

static int order_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_text(const struct strtab *strings, uint32_t a, uint32_t b)
{
	const struct strtab_entry *x = &strings->entries.data[a], *y = &strings->entries.data[b];
	int r;

	if (a == b)
		return 0;
	r = memcmp(x->text, y->text, MIN(x->len, y->len));
	return r != 0 ? r : order_u64(x->len, y->len);
}

static int compare_labels(const void *a, const void *b, void *arg)
{
	const struct profile_label *x = a, *y = b;
	const struct strtab *strings = arg;
	int r = compare_text(strings, x->key, y->key);

	if (r == 0)
		r = compare_text(strings, x->text, y->text);
	if (r == 0)
		r = x->number < y->number ? -1 : x->number > y->number;
	if (r == 0)
		r = compare_text(strings, x->number_unit, y->number_unit);
	return r;
}

static bool label_set_equal(const void *owner, uint32_t id, const void *key)
{
	const struct profile *profile = owner;
	const struct profile_label_set *have = &profile->label_sets.data[id], *want = key;
	const struct profile_label *a = profile->labels.data + have->first,
				   *b = profile->labels.data + want->first;

	if (have->count != want->count)
		return false;
	for (uint32_t i = 0; i < want->count; i++)
		if (a[i].key != b[i].key || a[i].text != b[i].text || a[i].number != b[i].number ||
		    a[i].number_unit != b[i].number_unit)
			return false;
	return true;
}

int profile_label_set(struct profile *profile, const struct profile_label *labels, uint32_t count,
		      uint32_t *ret_id)
{
	/* The set is put in order where it will stay; a known one is taken back. */
	struct profile_label_set set = {.first = (uint32_t)profile->labels.len, .count = count};
	uint64_t hash = count;
	uint32_t id;
	int r;

	if (count == 0) {
		*ret_id = 0;
		return 0;
	}
	if (profile->labels.len + count >= UINT32_MAX)
		return -E2BIG;
	r = vec_reserve(&profile->labels, profile->labels.len + count);
	if (r < 0)
		return r;
	memcpy(profile->labels.data + set.first, labels, count * sizeof(*labels));
	if (count > 1)
		qsort_r(profile->labels.data + set.first, count, sizeof(*labels), compare_labels,
			&profile->strings);
	for (uint32_t i = 0; i < count; i++) {
		const struct profile_label *label = &profile->labels.data[set.first + i];

		hash = hash_pair(hash ^ ((uint64_t)label->key << 32 | label->text),
				 (uint64_t)label->number ^ (uint64_t)label->number_unit << 32);
	}
	id = hash_index_find(&profile->label_index, hash, label_set_equal, profile, &set);
	if (id == HASH_NONE) {
		r = TABLE_ADD(&profile->label_sets, &profile->label_index, hash, set, ret_id);
		if (r == 0)
			profile->labels.len += count;
		return r;
	}
	*ret_id = id;
	return 0;
}

static bool sample_equal(const void *owner, uint32_t id, const void *key)
{
	const struct profile_sample *have = &((const struct profile *)owner)->samples.data[id],
				    *want = key;

	return have->stack == want->stack && have->labels == want->labels;
}

static int sample_new(struct profile *profile, uint64_t hash, const struct profile_sample *sample,
		      const int64_t *values)
{
	size_t width = profile->value_types.len, at = profile->samples.len * width;
	uint32_t id;
	int r = vec_reserve(&profile->values, at + width);

	if (r == 0)
		r = TABLE_ADD(&profile->samples, &profile->sample_index, hash, *sample, &id);
	if (r < 0)
		return r;
	if (width > 0)
		memcpy(profile->values.data + at, values, width * sizeof(*values));
	profile->values.len = at + width;
	return 0;
}

int profile_add(struct profile *profile, uint32_t stack, uint32_t labels, const int64_t *values)
{
	struct profile_sample sample = {.stack = stack, .labels = labels};
	uint64_t hash = hash_pair(stack, labels);
	uint32_t id = hash_index_find(&profile->sample_index, hash, sample_equal, profile, &sample);
	size_t width = profile->value_types.len;
	int64_t *sums, sum;

	if (id == HASH_NONE)
		return sample_new(profile, hash, &sample, values);
	sums = profile->values.data + id * width;
	for (size_t i = 0; i < width; i++)
		if (__builtin_add_overflow(sums[i], values[i], &sum))
			return -EOVERFLOW;
	for (size_t i = 0; i < width; i++)
		sums[i] += values[i];
	return 0;
}

uint32_t profile_default_value(const struct profile *profile)
{
	for (size_t i = 0; profile->default_type != 0 && i < profile->value_types.len; i++)
		if (profile->value_types.data[i].type == profile->default_type)
			return (uint32_t)i;
	return profile->value_types.len > 0 ? (uint32_t)profile->value_types.len - 1 : 0;
}

int profile_find_value(const struct profile *profile, const char *type)
{
	for (size_t i = 0; i < profile->value_types.len; i++)
		if (strcmp(strtab_text(&profile->strings, profile->value_types.data[i].type),
			   type) == 0)
			return (int)i;
	return -ENOENT;
}

int profile_total(const struct profile *profile, uint32_t value, int64_t *ret_total)
{
	size_t width = profile->value_types.len;
	int64_t total = 0;

	if (value >= width)
		return -EINVAL;
	for (size_t i = 0; i < profile->samples.len; i++)
		if (__builtin_add_overflow(total, profile->values.data[i * width + value], &total))
			return -EOVERFLOW;
	*ret_total = total;
	return 0;
}

static const struct profile_label *find_label(const struct profile *profile, uint32_t label_set,
					      const char *key, bool text)
{
	const struct profile_label_set *set;

	if (label_set >= profile->label_sets.len)
		return NULL;
	set = &profile->label_sets.data[label_set];
	for (uint32_t i = 0; i < set->count; i++) {
		const struct profile_label *label = &profile->labels.data[set->first + i];

		if ((label->text != 0) == text &&
		    strcmp(strtab_text(&profile->strings, label->key), key) == 0)
			return label;
	}
	return NULL;
}

const char *profile_label_text(const struct profile *profile, uint32_t label_set, const char *key)
{
	const struct profile_label *label = find_label(profile, label_set, key, true);

	return label ? strtab_text(&profile->strings, label->text) : NULL;
}

bool profile_label_number(const struct profile *profile, uint32_t label_set, const char *key,
			  int64_t *ret)
{
	const struct profile_label *label = find_label(profile, label_set, key, false);

	if (label)
		*ret = label->number;
	return label != NULL;
}
