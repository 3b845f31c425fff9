/*
 * Writing symbolized CPU profiles of gperftools. First every frame gets its name and, when it may
 * keep it, its address; then each object with further frames gets a range of invented addresses
 * above all others; then symbols, records and map are written.
 */
#include "profile/gperftools.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

/* Above are the kernel's addresses, which google-pprof leaves out of stacks. */
#define ADDRESS_MAX   (UINT64_C(1) << 62)
#define INVENTED_STEP 16
#define INVENTED_MIN  UINT64_C(0x10000000)
#define PAGE          UINT64_C(0x1000)
#define NO_FRAME      UINT32_MAX

struct frame {
	uint64_t address;       /* 0: to be invented */
	uint32_t name, mapping; /* name: in names; 0 none */
};

struct range {
	uint64_t next, start, limit;
	uint32_t frames;
};

struct writer {
	const struct profile *profile;
	struct str *out;
	struct strtab names;
	struct str name;
	VEC(struct frame) frames;
	struct u64_map by_name;    /* mapping, name: the frame of invented address */
	struct u64_map by_address; /* real ones that are given away */
	uint32_t *of_line, *of_location;
	struct range *ranges; /* by mapping */
	uint64_t highest;     /* of the real addresses and mappings */
	uint32_t value;
	VEC(uint64_t) pcs;
	uint64_t second, first; /* of all records so far */
	bool same_second, some;
};

static bool has_range(const struct profile_mapping *m)
{
	return m->start < m->limit && m->limit <= ADDRESS_MAX;
}

/* Whether readers would find that the address belongs to that mapping and no other. */
static bool is_found(const struct profile *p, uint64_t address, uint32_t mapping)
{
	const struct profile_mapping *own = &p->mappings.data[mapping];

	if (has_range(own) ? address < own->start || address >= own->limit : own->filename != 0)
		return false;
	for (uint32_t i = 0; i < p->mappings.len; i++) {
		const struct profile_mapping *m = &p->mappings.data[i];

		if (i != mapping && has_range(m) && address >= m->start && address < m->limit)
			return false;
	}
	return true;
}

static void put_clean(struct str *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '-' && i > 0 && text[i - 1] == '-')
			str_putc(out, ' ');
		str_putc(out, (c < ' ' && c != '\t') || c == 0x7f ? '?' : (char)c);
	}
}

static int intern_function(struct writer *w, const struct profile_function *function, uint32_t *ret)
{
	const struct strtab *strings = &w->profile->strings;
	uint32_t name = function->name != 0 ? function->name : function->system_name;
	const char *text = strtab_text(strings, name);
	int r;

	str_clear(&w->name);
	if (text[strspn(text, " \t")] != '\0')
		put_clean(&w->name, text, strings->entries.data[name].len);
	else
		str_puts(&w->name, "[unknown]");
	r = str_status(&w->name);
	return r < 0 ? r : strtab_intern(&w->names, str_text(&w->name), w->name.len, ret);
}

/* object+0xoffset */
static int intern_address(struct writer *w, const struct profile_location *location, uint32_t *ret)
{
	const struct profile_mapping *m = &w->profile->mappings.data[location->mapping];
	const char *object = strtab_text(&w->profile->strings, m->filename);
	const char *base = strrchr(object, '/');
	int r;

	str_clear(&w->name);
	base = base && base[1] != '\0' ? base + 1 : object;
	if (base[0] != '\0')
		put_clean(&w->name, base, strlen(base));
	else
		str_puts(&w->name, "[unknown]");
	str_printf(&w->name, "+0x%" PRIx64, location->address - m->start + m->offset);
	r = str_status(&w->name);
	return r < 0 ? r : strtab_intern(&w->names, str_text(&w->name), w->name.len, ret);
}

static int add_frame(struct writer *w, struct frame frame, uint32_t *ret)
{
	uint64_t key = (uint64_t)frame.mapping << 32 | frame.name;
	int r;

	if (frame.address == 0 && u64_map_get(&w->by_name, key, ret))
		return 0;
	if (w->frames.len >= NO_FRAME - 1)
		return -E2BIG;
	*ret = (uint32_t)w->frames.len;
	if (frame.address == 0) {
		w->ranges[frame.mapping].frames++;
		r = u64_map_put(&w->by_name, key, *ret);
	} else {
		w->highest = MAX(w->highest, frame.address);
		r = u64_map_put(&w->by_address, frame.address, *ret);
	}
	return r < 0 ? r : vec_push(&w->frames, frame);
}

/* The function that really has the code keeps the address; those inlined into it get others. */
static int add_location(struct writer *w, uint32_t id)
{
	const struct profile *p = w->profile;
	const struct profile_location *location = &p->locations.data[id];
	struct frame frame = {.mapping = location->mapping};
	uint64_t address = location->address;
	uint32_t taken;
	int r = 0;

	if (address >= ADDRESS_MAX || u64_map_get(&w->by_address, address, &taken) ||
	    !is_found(p, address, location->mapping))
		address = 0;
	if (location->line_count == 0) {
		frame.address = address;
		if (address == 0)
			r = intern_address(w, location, &frame.name);
		return r < 0 ? r : add_frame(w, frame, &w->of_location[id]);
	}
	for (uint32_t i = 0; r == 0 && i < location->line_count; i++) {
		uint32_t at = location->first_line + i;

		frame.address = i + 1 == location->line_count ? address : 0;
		r = intern_function(w, &p->functions.data[p->lines.data[at].function], &frame.name);
		if (r == 0)
			r = add_frame(w, frame, &w->of_line[at]);
	}
	w->of_location[id] = 0;
	return r;
}

static int add_frames(struct writer *w)
{
	const struct profile *p = w->profile;
	int r = 0;

	for (size_t i = 0; i < p->locations.len; i++)
		w->of_location[i] = NO_FRAME;
	vec_for_each(&p->mappings, m)
		if (has_range(m))
			w->highest = MAX(w->highest, m->limit);
	for (size_t i = 1; r == 0 && i < p->stacks.len; i++)
		if (w->of_location[p->stacks.data[i].location] == NO_FRAME)
			r = add_location(w, p->stacks.data[i].location);
	return r;
}

/* A page lies between two ranges, lest they be taken for parts of one. */
static void invent_addresses(struct writer *w)
{
	uint64_t next = ALIGN_UP(MAX(w->highest + 1, INVENTED_MIN), PAGE);

	for (size_t i = 0; i < w->profile->mappings.len; i++) {
		struct range *range = &w->ranges[i];

		if (range->frames == 0)
			continue;
		range->start = range->next = next;
		range->limit = ALIGN_UP(next + (uint64_t)range->frames * INVENTED_STEP, PAGE);
		next = range->limit + PAGE;
	}
	vec_for_each(&w->frames, frame) {
		if (frame->address != 0)
			continue;
		frame->address = w->ranges[frame->mapping].next;
		w->ranges[frame->mapping].next += INVENTED_STEP;
	}
}

static void put_symbols(struct writer *w)
{
	const struct profile *p = w->profile;
	uint32_t program = 0;

	vec_for_each(&p->mappings, m)
		if (program == 0 && strtab_text(&p->strings, m->filename)[0] == '/')
			program = m->filename;
	str_puts(w->out, "--- symbol\nbinary=");
	if (program != 0)
		put_clean(w->out, strtab_text(&p->strings, program),
			  p->strings.entries.data[program].len);
	else
		str_puts(w->out, "unknown");
	str_putc(w->out, '\n');
	vec_for_each(&w->frames, frame)
		if (frame->name != 0)
			str_printf(w->out, "0x%016" PRIx64 " %s\n", frame->address,
				   strtab_text(&w->names, frame->name));
	str_puts(w->out, "---\n--- profile\n");
}

static void put_word(struct writer *w, uint64_t word)
{
	str_append(w->out, &word, sizeof(word));
}

static int collect_pcs(struct writer *w, uint32_t stack)
{
	const struct profile *p = w->profile;
	int r = 0;

	w->pcs.len = 0;
	for (; r == 0 && stack != 0; stack = p->stacks.data[stack].parent) {
		uint32_t id = p->stacks.data[stack].location;
		const struct profile_location *location = &p->locations.data[id];

		if (location->line_count == 0)
			r = vec_push(&w->pcs, w->frames.data[w->of_location[id]].address);
		for (uint32_t i = 0; r == 0 && i < location->line_count; i++) {
			uint32_t frame = w->of_line[location->first_line + i];

			r = vec_push(&w->pcs, w->frames.data[frame].address);
		}
	}
	return r;
}

/* A sample without frames has that of no name. */
static int put_record(struct writer *w, uint32_t stack, int64_t count)
{
	int r = collect_pcs(w, stack);

	if (r == 0 && w->pcs.len == 0)
		r = vec_push(&w->pcs, w->frames.data[0].address);
	if (r < 0)
		return r;
	w->pcs.len = MIN(w->pcs.len, (size_t)GPERFTOOLS_DEPTH_MAX);
	w->same_second &= w->pcs.len > 1 && (!w->some || w->pcs.data[1] == w->second);
	w->some = true;
	w->first = w->pcs.data[0];
	w->second = w->pcs.len > 1 ? w->pcs.data[1] : 0;
	put_word(w, (uint64_t)count);
	put_word(w, w->pcs.len);
	str_append(w->out, w->pcs.data, w->pcs.len * sizeof(*w->pcs.data));
	return 0;
}

static int put_records(struct writer *w, struct err *err)
{
	const struct profile *p = w->profile;
	int r = 0;

	w->same_second = true;
	for (size_t i = 0; r == 0 && i < p->samples.len; i++) {
		int64_t count = p->values.data[i * p->value_types.len + w->value];

		if (count < 0)
			return err_set(err, -ERANGE,
				       "a value is negative, which the format cannot hold");
		if (count > 0)
			r = put_record(w, p->samples.data[i].stack, count);
	}
	/* A second frame that all stacks share is taken for the signal handler's and removed by
	 * google-pprof, unless there is a stack without; it may count nothing. */
	if (w->some && w->same_second) {
		put_word(w, 0);
		put_word(w, 1);
		put_word(w, w->first);
	}
	put_word(w, 0);
	put_word(w, 1);
	put_word(w, 0);
	return r;
}

static void put_map(struct writer *w, uint64_t start, uint64_t limit, uint64_t offset,
		    uint32_t filename)
{
	const struct strtab *strings = &w->profile->strings;

	str_printf(w->out, "%08" PRIx64 "-%08" PRIx64 " r-xp %08" PRIx64 " 00:00 0 ", start, limit,
		   offset);
	for (const char *c = strtab_text(strings, filename); *c != '\0'; c++)
		str_putc(w->out, (unsigned char)*c < ' ' ? '?' : *c);
	str_putc(w->out, '\n');
}

static void put_maps(struct writer *w)
{
	const struct profile *p = w->profile;

	for (size_t i = 1; i < p->mappings.len; i++) {
		const struct profile_mapping *m = &p->mappings.data[i];

		if (has_range(m))
			put_map(w, m->start, m->limit, m->offset, m->filename);
		if (w->ranges[i].frames > 0 && m->filename != 0)
			put_map(w, w->ranges[i].start, w->ranges[i].limit, 0, m->filename);
	}
}

/* Microseconds for each count: the period, else what the times say, else the least there is. */
static uint64_t period_us(const struct profile *p, uint32_t value)
{
	const char *unit = strtab_text(&p->strings, p->period_type.unit);
	int cpu = profile_find_value(p, "cpu");
	int64_t counts = 0, ns = 0;

	if (p->period > 0 && strcmp(unit, "nanoseconds") == 0)
		return (uint64_t)MAX(p->period / 1000, INT64_C(1));
	if (p->period > 0 && strcmp(unit, "microseconds") == 0)
		return (uint64_t)p->period;
	if (cpu >= 0 &&
	    strcmp(strtab_text(&p->strings, p->value_types.data[cpu].unit), "nanoseconds") == 0 &&
	    profile_total(p, value, &counts) == 0 && profile_total(p, (uint32_t)cpu, &ns) == 0 &&
	    counts > 0 && ns / counts >= 1000)
		return (uint64_t)(ns / counts / 1000);
	return 1;
}

static int choose_value(const struct profile *p, int value, uint32_t *ret, struct err *err)
{
	if (p->value_types.len == 0 || value >= (int)p->value_types.len)
		return err_set(err, -EINVAL, "the profile has no such value");
	if (value < 0)
		value = profile_find_value(p, "samples");
	for (size_t i = 0; value < 0 && i < p->value_types.len; i++)
		if (strcmp(strtab_text(&p->strings, p->value_types.data[i].unit), "count") == 0)
			value = (int)i;
	*ret = value < 0 ? profile_default_value(p) : (uint32_t)value;
	return 0;
}

static int write_all(struct writer *w, struct err *err)
{
	const struct profile *p = w->profile;
	struct frame unknown = {0};
	uint32_t id;
	int r;

	w->of_line = calloc(p->lines.len + 1, sizeof(*w->of_line));
	w->of_location = calloc(p->locations.len + 1, sizeof(*w->of_location));
	w->ranges = calloc(p->mappings.len + 1, sizeof(*w->ranges));
	r = w->of_line && w->of_location && w->ranges ? strtab_init(&w->names) : -ENOMEM;
	if (r == 0)
		r = strtab_intern_text(&w->names, "[unknown]", &unknown.name);
	if (r == 0)
		r = add_frame(w, unknown, &id);
	if (r == 0)
		r = add_frames(w);
	if (r < 0)
		return r;
	invent_addresses(w);
	put_symbols(w);
	put_word(w, 0);
	put_word(w, 3);
	put_word(w, 0);
	put_word(w, period_us(p, w->value));
	put_word(w, 0);
	r = put_records(w, err);
	put_maps(w);
	return r < 0 ? r : str_status(w->out);
}

int gperftools_write(const struct profile *profile, int value, struct str *out, struct err *err)
{
	struct writer w = {.profile = profile, .out = out};
	struct err words = {0};
	int r = choose_value(profile, value, &w.value, err);

	if (r < 0)
		return r;
	r = write_all(&w, &words);
	strtab_fini(&w.names);
	str_fini(&w.name);
	vec_fini(&w.frames);
	u64_map_fini(&w.by_name);
	u64_map_fini(&w.by_address);
	free(w.of_line);
	free(w.of_location);
	free(w.ranges);
	vec_fini(&w.pcs);
	return r < 0 ? err_set(err, r, "%s", err_text(&words, r)) : 0;
}
