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
	} while (str_prefix(at, "                bytes", NULL));
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

/* A CPU profile in words of 4 or 8 bytes, of this machine's byte order or the other one. */
static void put_words(struct str *out, const uint64_t *words, size_t count, bool wide, bool swap)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t w = swap ? __builtin_bswap64(words[i]) : words[i];
		uint32_t n = swap ? __builtin_bswap32((uint32_t)words[i]) : (uint32_t)words[i];

		if (wide)
			str_append(out, &w, sizeof(w));
		else
			str_append(out, &n, sizeof(n));
	}
}

TEST(words_of_both_sizes_and_byte_orders)
{
	static const uint64_t words[] = {
		0, 3, 0,        2500,     0, /* header */
		5, 2, 0x401000, 0x402001,    /* a sample */
		7, 1, 0x403000,              /* another one */
		0, 1, 0,                     /* the end */
	};

	for (unsigned i = 0; i < 4; i++) {
		struct profile p;
		struct str text = {0};
		struct err err = {0};

		put_words(&text, words, ARRAY_LEN(words), i & 1, i & 2);
		str_puts(&text, "00400000-00500000 r-xp 00000000 08:01 12 /bin/app (deleted)\n");
		ASSERT(legacy_detect(text.data, text.len));
		ASSERT(legacy_read(text.data, text.len, &p, &err) == 0);
		EXPECT_INT(p.period, 2500000);
		EXPECT_INT(p.samples.len, 2);
		EXPECT_INT(p.values.data[0], 5);
		EXPECT_INT(p.values.data[3], 7 * 2500000);
		EXPECT_INT(p.locations.data[2].address, 0x402000);
		EXPECT_STR(text_of(&p, p.mappings.data[1].filename), "/bin/app (deleted)");
		EXPECT_INT(p.locations.data[2].mapping, 1);
		profile_fini(&p);
		/* Whatever is cut off is an error or ends the profile early, never more. */
		for (size_t cut = 0; cut < text.len; cut++)
			if (legacy_read(text.data, cut, &p, &err) == 0)
				profile_fini(&p);
			else
				EXPECT(err.text[0] != '\0');
		str_fini(&text);
	}
}

static void read_legacy(const char *text, struct profile *ret)
{
	struct err err = {0};

	if (!EXPECT_INT(legacy_read(text, strlen(text), ret, &err), 0))
		printf("# %s\n", err.text);
}

TEST(go_comments_name_inlined_functions)
{
	struct profile p;
	const struct profile_location *l;

	read_legacy("goroutine profile: total 3\n"
		    "2 @ 0x1001 0x1001 0x2001\n"
		    "# labels: {\"a\":\"b\"}\n"
		    "#\t0x1000\tmain.small+0x10\t/src/a.go:7\n"
		    "#\t0x1000\tmain.big+0x20\t/src/a.go:30\n"
		    "#\t0x1000\tmain.small+0x10\t/src/a.go:7\n"
		    "#\t0x1000\tmain.big+0x20\t/src/a.go:30\n"
		    "#\t0x2000\tmain.main+0x1\t/src/a.go:50\n"
		    "\n"
		    "1 @ 0x2001\n"
		    "#\t0x2000\tmain.main+0x1\t/src/a.go:50\n",
		    &p);
	EXPECT_STR(text_of(&p, p.value_types.data[0].type), "goroutine");
	EXPECT_INT(p.locations.len, 3);
	l = &p.locations.data[1];
	ASSERT(l->line_count == 2);
	EXPECT_INT(p.lines.data[l->first_line].line, 7);
	EXPECT_STR(text_of(&p, p.functions.data[p.lines.data[l->first_line + 1].function].name),
		   "main.big");
	EXPECT_INT(p.locations.data[2].line_count, 1);
	profile_fini(&p);
}

TEST(maps_with_variables_and_parts)
{
	struct profile p;

	read_legacy("heap profile: 1: 8 [1: 8] @ heapprofile\n"
		    "1: 8 [1: 8] @ 0x7f0000001001 0x450001 0x900001\n"
		    "MAPPED_LIBRARIES:\n"
		    "where=/opt\n"
		    "7f0000000000-7f0000002000: $where/lib.so.1\n"
		    "00400000-00420000 r-xp 00000000 08:01 1 /bin/app\n"
		    "00420000-00500000 r-xp 00020000 08:01 1 /bin/app\n"
		    "00500000-00600000 rw-p 00000000 08:01 1 /bin/app\n",
		    &p);
	EXPECT_INT(p.mappings.len, 4); /* none, the program, the library, all else */
	EXPECT_STR(text_of(&p, p.mappings.data[1].filename), "/bin/app");
	EXPECT_INT(p.mappings.data[1].limit, 0x500000);
	EXPECT_STR(text_of(&p, p.mappings.data[2].filename), "/opt/lib.so.1");
	EXPECT_INT(p.locations.data[1].mapping, 2);
	EXPECT_INT(p.locations.data[3].mapping, 3);
	EXPECT_INT(p.default_type, 0);
	profile_fini(&p);
}

TEST(errors_name_the_line)
{
	static const struct {
		const char *text, *words;
	} bad[] = {
		{"heap profile: 1: 2\n", "line 1: the totals"},
		{"heap profile: 1: 2 [1: 2] @ lawn\n", "line 1: unknown kind of heap"},
		{"heap profile: 1: 2 [1: 2] @ heap/99999999999999999999\n", "line 1: the sampling"},
		{"heap profile: 1: 2 [1: 2] @ heap/4\n\n0: 2 [1: 2] @\n", "line 3: bytes without"},
		{"--- contentionz 1 ---\nsampling period = x\n", "line 2: the attribute"},
		{"--- mutex:\ncycles/second=1\nsampling period=9223372036854775807\n1 2 @ 0x1\n",
		 "line 4: a value beyond"},
		{"--- threadz 1 ---\n--- what\n", "line 2: no thread"},
		{"goroutine profile: total 1\nx @ 0x1\n", "line 2: no count"},
		{"--- heapz 1 ---\nresolution = bytes\n", "not of Java"},
		{"--- symbol\n0x1 a\n", "line 2: no profile follows"},
		{"--- symbol\n---\n--- profile\nabc", "the header of the CPU profile"},
		{"", "line 0: no profile"},
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct profile p;
		struct err err = {0};
		int r = legacy_read(bad[i].text, strlen(bad[i].text), &p, &err);

		EXPECT(r < 0);
		if (!EXPECT(strstr(err.text, bad[i].words) != NULL))
			printf("# %zu: %s\n", i, err.text);
		if (r == 0)
			profile_fini(&p);
	}
}

static uint32_t intern(struct profile *p, const char *text)
{
	uint32_t id = 0;

	EXPECT_INT(strtab_intern_text(&p->strings, text, &id), 0);
	return id;
}

/* A location of up to two names, innermost first, that is called from stack. */
static uint32_t push(struct profile *p, uint32_t stack, uint32_t mapping, uint64_t address,
		     const char *inner, const char *outer)
{
	struct profile_location location = {.mapping = mapping, .address = address};
	struct profile_line lines[2] = {0};
	const char *names[] = {inner, outer};
	uint32_t id = 0;

	for (unsigned i = 0; i < 2 && names[i]; i++) {
		struct profile_function f = {.name = intern(p, names[i])};

		EXPECT_INT(profile_function(p, &f, &lines[i].function), 0);
		location.line_count++;
	}
	EXPECT_INT(profile_location(p, &location, lines, &id), 0);
	EXPECT_INT(profile_stack(p, stack, id, &stack), 0);
	return stack;
}

TEST(what_is_written_for_gperftools_is_read_back)
{
	struct profile_mapping app = {.start = 0x400000, .limit = 0x500000},
			       kernel = {.start = 0xffffffff80000000,
					 .limit = UINT64_MAX,
					 .kind = PROFILE_KERNEL};
	struct profile p, again;
	struct str text = {0};
	struct err err = {0};
	uint32_t a, k, stack;

	ASSERT(profile_init(&p) == 0);
	EXPECT_INT(profile_add_value_type(&p, "samples", "count"), 0);
	app.filename = intern(&p, "/bin/app");
	kernel.filename = intern(&p, "[kernel.kallsyms]");
	EXPECT_INT(profile_mapping(&p, &app, &a), 0);
	EXPECT_INT(profile_mapping(&p, &kernel, &k), 0);
	stack = push(&p, 0, a, 0x401000, "operator--", "main");
	stack = push(&p, stack, a, 0x402000, NULL, NULL);
	EXPECT_INT(profile_add(&p, push(&p, stack, k, 0xffffffff81000000, "sys_read", NULL), 0,
			       &(int64_t){3}),
		   0);
	/* The address of another function, as of another process. */
	EXPECT_INT(profile_add(&p, push(&p, 0, a, 0x401000, "other", NULL), 0, &(int64_t){4}), 0);
	EXPECT_INT(profile_add(&p, 0, 0, &(int64_t){5}), 0);
	ASSERT(gperftools_write(&p, -1, &text, &err) == 0);
	ASSERT(legacy_read(text.data, text.len, &again, &err) == 0);
	str_clear(&text);
	print_profile(&text, &again);
	expect_text(str_text(&text),
		    "PeriodType: cpu nanoseconds\nPeriod: 1000\nSamples:\n"
		    "samples/count cpu/nanoseconds\n"
		    "          3       3000: 1 2 3 4 \n"
		    "          4       4000: 5 \n"
		    "          5       5000: 6 \n"
		    "Locations\n"
		    "     1: 0x10004000 M=3 sys_read :0:0 s=0\n"
		    "     2: 0x402000 M=1 \n"
		    "     3: 0x10002000 M=2 operator-- :0:0 s=0\n"
		    "     4: 0x401000 M=1 main :0:0 s=0\n"
		    "     5: 0x10002010 M=2 other :0:0 s=0\n"
		    "     6: 0x10000000 [unknown] :0:0 s=0\n"
		    "Mappings\n"
		    "1: 0x400000/0x500000/0x0 /bin/app  \n"
		    "2: 0x10002000/0x10003000/0x0 /bin/app  \n"
		    "3: 0x10004000/0x10005000/0x0 [kernel.kallsyms]  \n",
		    "gperftools");
	EXPECT_INT(again.mappings.data[3].kind, PROFILE_KERNEL);
	str_fini(&text);
	profile_fini(&again);
	profile_fini(&p);
}
