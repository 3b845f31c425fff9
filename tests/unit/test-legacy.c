/*
 * Profiles from before profile.proto. Real files are compared, byte by byte, with what pprof prints
 * for them (TESTDATA.string), after equal stacks, which our model adds up, are added there as well.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/str.h"
#include "base/util.h"
#include "harness/tap.h"
#include "profile/gperftools.h"
#include "profile/legacy.h"

static const char *text_of(const struct profile *p, uint32_t id)
{
	return strtab_text(&p->strings, id);
}

/* Go's %.4v of a duration. */
static void put_duration(struct str *out, int64_t ns)
{
	char text[64];
	int64_t s = ns / 1000000000;

	if (s >= 3600)
		snprintf(text, sizeof(text), "%" PRId64 "h%" PRId64 "m", s / 3600, s / 60 % 60);
	else
		snprintf(text, sizeof(text), "%" PRId64 "m%" PRId64 "s", s / 60, s % 60);
	str_printf(out, "Duration: %.4s\n", text);
}

static void put_samples(struct str *out, const struct profile *p)
{
	size_t width = p->value_types.len;

	for (size_t i = 0; i < p->samples.len; i++) {
		const struct profile_label_set *set =
			&p->label_sets.data[p->samples.data[i].labels];

		for (size_t j = 0; j < width; j++)
			str_printf(out, " %10" PRId64, p->values.data[i * width + j]);
		str_puts(out, ": ");
		for (uint32_t s = p->samples.data[i].stack; s != 0; s = p->stacks.data[s].parent)
			str_printf(out, "%u ", p->stacks.data[s].location);
		str_putc(out, '\n');
		for (uint32_t j = 0; j < set->count; j++) {
			const struct profile_label *label = &p->labels.data[set->first + j];

			str_printf(out, "                %s:[%" PRId64 "]\n",
				   text_of(p, label->key), label->number);
		}
	}
}

static void put_locations(struct str *out, const struct profile *p)
{
	for (uint32_t i = 1; i < p->locations.len; i++) {
		const struct profile_location *l = &p->locations.data[i];

		str_printf(out, "%6u: 0x%" PRIx64 " ", i, l->address);
		if (l->mapping != 0)
			str_printf(out, "M=%u ", l->mapping);
		for (uint32_t j = 0; j < l->line_count; j++) {
			const struct profile_line *line = &p->lines.data[l->first_line + j];
			const struct profile_function *f = &p->functions.data[line->function];

			str_printf(out, "%s%s %s:%" PRId64 ":%" PRId64 " s=%" PRId64,
				   j > 0 ? "\n             " : "", text_of(p, f->name),
				   text_of(p, f->filename), line->line, line->column,
				   f->start_line);
		}
		str_putc(out, '\n');
	}
}

/* What pprof's Profile.String() prints. */
static void print_profile(struct str *out, const struct profile *p)
{
	str_printf(out, "PeriodType: %s %s\nPeriod: %" PRId64 "\n", text_of(p, p->period_type.type),
		   text_of(p, p->period_type.unit), p->period);
	if (p->duration_ns != 0)
		put_duration(out, p->duration_ns);
	str_puts(out, "Samples:\n");
	for (size_t i = 0; i < p->value_types.len; i++)
		str_printf(out, "%s%s/%s", i > 0 ? " " : "",
			   text_of(p, p->value_types.data[i].type),
			   text_of(p, p->value_types.data[i].unit));
	str_putc(out, '\n');
	put_samples(out, p);
	str_puts(out, "Locations\n");
	put_locations(out, p);
	str_puts(out, "Mappings\n");
	for (uint32_t i = 1; i < p->mappings.len; i++) {
		const struct profile_mapping *m = &p->mappings.data[i];

		str_printf(out, "%u: 0x%" PRIx64 "/0x%" PRIx64 "/0x%" PRIx64 " %s %s \n", i,
			   m->start, m->limit, m->offset, text_of(p, m->filename),
			   text_of(p, m->build_id));
	}
}

struct golden_sample {
	int64_t values[4];
	unsigned width;
	const char *stack; /* and labels: up to end */
	size_t len;
};

/* Reads one sample of the text: numbers, a colon, and the rest with indented lines. */
static const char *golden_sample(const char *at, struct golden_sample *ret)
{
	*ret = (struct golden_sample){0};
	while (*at == ' ' && ret->width < 4) {
		char *end;

		ret->values[ret->width++] = strtoll(at, &end, 10);
		at = end;
	}
	ret->stack = at;
	do {
		at = strchr(at, '\n');
		at = at ? at + 1 : ret->stack + strlen(ret->stack);
	} while (strncmp(at, "                bytes", 21) == 0);
	ret->len = (size_t)(at - ret->stack);
	return at;
}

/* The text with samples of equal stacks added up. */
static void add_equal_samples(const char *golden, struct str *out)
{
	VEC(struct golden_sample) samples = {0};
	const char *at = strstr(golden, "Samples:\n");

	at = at ? strchr(at + strlen("Samples:\n"), '\n') : NULL;
	if (!EXPECT(at != NULL))
		return;
	at++;
	str_append(out, golden, (size_t)(at - golden));
	while (*at == ' ') {
		struct golden_sample next, *same = NULL;

		at = golden_sample(at, &next);
		vec_for_each(&samples, s)
			if (s->len == next.len && memcmp(s->stack, next.stack, s->len) == 0)
				same = s;
		for (unsigned i = 0; same && i < next.width; i++)
			same->values[i] += next.values[i];
		if (!same)
			EXPECT_INT(vec_push(&samples, next), 0);
	}
	vec_for_each(&samples, s) {
		for (unsigned i = 0; i < s->width; i++)
			str_printf(out, " %10" PRId64, s->values[i]);
		str_append(out, s->stack, s->len);
	}
	str_puts(out, at);
	vec_fini(&samples);
}

static void expect_text(const char *have, const char *want, const char *name)
{
	size_t line = 1;

	if (strcmp(have, want) == 0) {
		EXPECT(true);
		return;
	}
	while (*have != '\0' && *have == *want) {
		line += *have == '\n';
		have++;
		want++;
	}
	tap_expect(false, __FILE__, __LINE__, "%s: line %zu: have \"%.40s\", want \"%.40s\"", name,
		   line, have, want);
}

static void compare_with_golden(const char *input, const char *golden)
{
	struct file_map data = {0};
	struct str have = {0}, want = {0};
	struct profile profile;
	struct err err = {0};
	char *text = NULL;
	size_t len;

	EXPECT_INT(file_map_open(input, &data, &err), 0);
	EXPECT_INT(file_read(golden, 1 << 20, &text, &len, &err), 0);
	EXPECT(legacy_detect(data.data, data.size));
	if (EXPECT_INT(legacy_read(data.data, data.size, &profile, &err), 0)) {
		print_profile(&have, &profile);
		add_equal_samples(text, &want);
		expect_text(str_text(&have), str_text(&want), input);
		profile_fini(&profile);
	} else {
		printf("# %s: %s\n", input, err.text);
	}
	str_fini(&have);
	str_fini(&want);
	free(text);
	file_map_close(&data);
}

static void golden(const char *name)
{
	char path[256];
	const char *input, *want;

	snprintf(path, sizeof(path), "sampling/pprof/%s", name);
	input = tap_data(path);
	snprintf(path, sizeof(path), "sampling/pprof/%s.string", name);
	want = tap_data(path);
	if (!input || !want) {
		snprintf(path, sizeof(path),
			 "profiles/google_pprof/pprof-or-legacy/profile__testdata__%s", name);
		input = tap_data(path);
		snprintf(path, sizeof(path),
			 "profiles/google_pprof/pprof-golden-string/profile__testdata__%s.string",
			 name);
		want = tap_data(path);
	}
	SKIP_IF(!input || !want, "no test data");
	compare_with_golden(input, want);
}

#define GOLDEN(id, name)      \
	TEST(golden_##id)     \
	{                     \
		golden(name); \
	}

GOLDEN(cpu_of_cpp, "cppbench.cpu")
GOLDEN(cpu_of_go, "gobench.cpu")
GOLDEN(cpu_of_go_crc32, "go.crc32.cpu")
GOLDEN(cpu_of_java, "java.cpu")
GOLDEN(heap_of_cpp, "cppbench.heap")
GOLDEN(heap_of_go, "gobench.heap")
GOLDEN(heap_of_java, "java.heap")
GOLDEN(contention_of_cpp, "cppbench.contention")
GOLDEN(threads, "cppbench.thread")
GOLDEN(threads_with_creators, "cppbench.thread.all")
GOLDEN(threads_without_names, "cppbench.thread.none")
GOLDEN(thread_creation_of_go, "go.godoc.thread")
