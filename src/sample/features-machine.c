/*
 * The features that describe the machine and the recording for people: topology, memory, PMUs,
 * caches, groups. Each becomes one fact, a line of text; a section whose lengths lie becomes none.
 */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "sample/session-internal.h"

#define FACTS_MAX      64
#define FACT_MAX_BYTES (16u << 10) /* a thousand CPUs listed one by one */

#define BPF_INFO_ID   4 /* of struct bpf_prog_info */
#define BPF_INFO_NAME 64
#define BPF_NAME_LEN  16

struct fact_reader {
	const struct session *session;
	struct reader r;
	struct str out;
};

static int add_fact(struct session *session, const char *key, const struct str *text,
		    uint64_t number, bool is_number)
{
	struct session_fact fact = {.key = key, .number = number, .is_number = is_number};
	size_t len = text->len;
	const char *copy;

	if (str_status(text) < 0)
		return -ENOMEM;
	if (len == 0 || session->facts.len >= FACTS_MAX)
		return 0;
	/* Pipes may tell a feature twice; the last word counts. */
	vec_for_each(&session->facts, old)
		if (strcmp(old->key, key) == 0) {
			*old = session->facts.data[--session->facts.len];
			break;
		}
	if (len > FACT_MAX_BYTES)
		len = str_utf8_cut(text->data, FACT_MAX_BYTES);
	copy = arena_strndup(&session->arena, text->data, len);
	if (!copy)
		return -ENOMEM;
	fact.text = copy;
	return vec_push(&session->facts, fact);
}

static void put_string(struct fact_reader *f)
{
	size_t len;
	const char *text = perfdata_feature_string(&f->r, &len);

	if (text)
		str_append(&f->out, text, len);
}

/* count parts, each read and put by put(), with first before the first and between before each
 * other one. */
static void put_each(struct fact_reader *f, uint64_t count, const char *first, const char *between,
		     void (*put)(struct fact_reader *f))
{
	for (uint64_t i = 0; i < count && !f->r.failed; i++) {
		str_puts(&f->out, i ? between : first);
		put(f);
	}
}

/* u32 count, then as many parts. */
static void put_counted(struct fact_reader *f, const char *first, const char *between,
			void (*put)(struct fact_reader *f))
{
	put_each(f, reader_u32(&f->r), first, between, put);
}

static void cpu_topology(struct fact_reader *f)
{
	struct reader *r = &f->r;
	uint32_t cpus = f->session->info.cpus_configured;

	put_counted(f, "sockets ", ", ", put_string);
	put_counted(f, "; cores ", ", ", put_string);
	/* Core and socket of each CPU, which the lists say as well; then, since 5.0, dies. */
	if (r->failed || cpus == 0 || reader_left(r) / 8 < cpus)
		return;
	reader_skip(r, (size_t)cpus * 8);
	if (reader_left(r) >= 4)
		put_counted(f, "; dies ", ", ", put_string);
}

static void put_node(struct fact_reader *f)
{
	uint32_t node = reader_u32(&f->r);
	uint64_t total = reader_u64(&f->r);

	reader_skip(&f->r, 8); /* free */
	str_printf(&f->out, "node %u: %llu MiB, CPUs ", node, (unsigned long long)(total >> 10));
	put_string(f);
}

static void numa_topology(struct fact_reader *f)
{
	put_counted(f, "", "; ", put_node);
}

static void put_pmu(struct fact_reader *f)
{
	uint32_t type = reader_u32(&f->r);

	put_string(f);
	str_printf(&f->out, " %u", type);
}

static void pmu_mappings(struct fact_reader *f)
{
	put_counted(f, "", ", ", put_pmu);
}

static void put_group(struct fact_reader *f)
{
	static const char anonymous[] = "{anon_group}";
	size_t name_len = 0;
	const char *name = perfdata_feature_string(&f->r, &name_len);
	uint32_t leader = reader_u32(&f->r), members = reader_u32(&f->r);
	size_t end = MIN(f->session->events.len, (size_t)leader + members);

	bool named = name_len > 0 &&
		     (name_len != sizeof(anonymous) - 1 || memcmp(name, anonymous, name_len) != 0);

	if (named)
		str_printf(&f->out, "%.*s ", (int)name_len, name);
	str_putc(&f->out, '{');
	for (size_t i = leader; i < end; i++)
		str_printf(&f->out, "%s%s", i > leader ? "," : "", f->session->events.data[i].name);
	str_putc(&f->out, '}');
}

static void group_desc(struct fact_reader *f)
{
	put_counted(f, "", "; ", put_group);
}

static void put_cache(struct fact_reader *f)
{
	struct reader *r = &f->r;
	struct str *out = &f->out;
	uint32_t level = reader_u32(r), line = reader_u32(r);

	reader_skip(r, 4); /* sets */
	str_printf(out, "L%u ", level);
	str_printf(out, "%u-way ", reader_u32(r));
	put_string(f);
	str_putc(out, ' ');
	put_string(f);
	str_printf(out, " lines of %u, CPUs ", line);
	put_string(f);
}

static void caches(struct fact_reader *f)
{
	if (reader_u32(&f->r) == 1) /* the version */
		put_counted(f, "", "; ", put_cache);
}

static void sample_time(struct fact_reader *f)
{
	struct reader *r = &f->r;
	struct str *out = &f->out;
	uint64_t first = reader_u64(r), last = reader_u64(r);

	str_printf(out, "%.6f to %.6f s", (double)first / 1e9, (double)last / 1e9);
}

/* The blocks of memory of a node, as their count: their numbers say nothing to a reader. */
static void put_blocks(struct fact_reader *f)
{
	struct reader *r = &f->r;
	uint64_t node = reader_u64(r), bits, blocks = 0;

	reader_skip(r, 8); /* the same number once more */
	bits = reader_u64(r);
	if (bits / 64 > reader_left(r) / 8)
		r->failed = true;
	for (uint64_t word = 0; word < (bits + 63) / 64 && !r->failed; word++)
		blocks += (uint64_t)__builtin_popcountll(reader_u64(r));
	str_printf(&f->out, "node %llu: %llu", (unsigned long long)node,
		   (unsigned long long)blocks);
}

static void mem_topology(struct fact_reader *f)
{
	uint64_t version = reader_u64(&f->r), block = reader_u64(&f->r), count = reader_u64(&f->r);

	if (version != 1)
		return;
	str_printf(&f->out, "blocks of %llu MiB", (unsigned long long)(block >> 20));
	put_each(f, count, "; ", ", ", put_blocks);
}

static void bpf_programs(struct fact_reader *f)
{
	struct reader *r = &f->r;
	struct str *out = &f->out;
	uint32_t count = reader_u32(r);

	for (uint32_t i = 0; i < count && !r->failed; i++) {
		uint32_t info_len = reader_u32(r), data_len = reader_u32(r);
		const uint8_t *info;
		struct reader inner;
		uint32_t id;

		reader_skip(r, 8); /* which arrays follow */
		info = reader_take(r, info_len);
		reader_skip(r, data_len);
		if (r->failed || info_len < BPF_INFO_NAME + BPF_NAME_LEN)
			continue;
		inner = reader_make(info, info_len, r->swap);
		reader_skip(&inner, BPF_INFO_ID);
		id = reader_u32(&inner);
		str_printf(out, "%s%u %.*s", out->len ? ", " : "", id, BPF_NAME_LEN,
			   (const char *)info + BPF_INFO_NAME);
	}
}

static void bpf_types(struct fact_reader *f)
{
	struct reader *r = &f->r;
	struct str *out = &f->out;
	uint32_t count = reader_u32(r);
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < count && !r->failed; i++) {
		uint32_t size;

		reader_skip(r, 4); /* id */
		size = reader_u32(r);
		reader_skip(r, size);
		bytes += size;
	}
	str_printf(out, "%u descriptions, %llu bytes", count, (unsigned long long)bytes);
}

static void compression(struct fact_reader *f)
{
	struct reader *r = &f->r;
	struct str *out = &f->out;
	uint32_t type, level, ratio;

	reader_skip(r, 4); /* version */
	type = reader_u32(r);
	level = reader_u32(r);
	ratio = reader_u32(r);
	str_printf(out, "%s, level %u, %u : 1", type == 1 ? "zstd" : "unknown", level, ratio);
}

static void put_cap(struct fact_reader *f)
{
	put_string(f);
	str_putc(&f->out, '=');
	put_string(f);
}

static void cpu_pmu_caps(struct fact_reader *f)
{
	put_counted(f, "", ", ", put_cap);
}

/* What a PMU can do stands before its name. */
static void put_pmu_caps(struct fact_reader *f)
{
	struct fact_reader caps = {.session = f->session, .r = f->r};

	cpu_pmu_caps(&caps);
	f->r = caps.r;
	put_string(f);
	str_printf(&f->out, ": %s", str_text(&caps.out));
	str_fini(&caps.out);
}

static void pmu_caps(struct fact_reader *f)
{
	put_counted(f, "", "; ", put_pmu_caps);
}

static void put_core_type(struct fact_reader *f)
{
	put_string(f);
	str_puts(&f->out, ": CPUs ");
	put_string(f);
}

static void hybrid_topology(struct fact_reader *f)
{
	put_counted(f, "", "; ", put_core_type);
}

/* Sections of one number. */
static const struct {
	unsigned feature;
	const char *key, *unit;
} numbers[] = {
	{FEAT_TOTAL_MEM, "memory_kib", " KiB"},
	{FEAT_CLOCKID, "clock_resolution_ns", " ns"},
	{FEAT_DIR_FORMAT, "directory_format", ""},
};

static const struct {
	unsigned feature;
	const char *key;
	void (*read)(struct fact_reader *f);
} texts[] = {
	{FEAT_CPUID, "cpu_id", put_string},
	{FEAT_CPU_TOPOLOGY, "cpu_topology", cpu_topology},
	{FEAT_NUMA_TOPOLOGY, "numa", numa_topology},
	{FEAT_PMU_MAPPINGS, "pmus", pmu_mappings},
	{FEAT_GROUP_DESC, "groups", group_desc},
	{FEAT_CACHE, "caches", caches},
	{FEAT_SAMPLE_TIME, "sampled", sample_time},
	{FEAT_MEM_TOPOLOGY, "memory_blocks", mem_topology},
	{FEAT_BPF_PROG_INFO, "bpf_programs", bpf_programs},
	{FEAT_BPF_BTF, "bpf_types", bpf_types},
	{FEAT_COMPRESSED, "compression", compression},
	{FEAT_CPU_PMU_CAPS, "cpu_pmu_caps", cpu_pmu_caps},
	{FEAT_HYBRID_TOPOLOGY, "core_types", hybrid_topology},
	{FEAT_PMU_CAPS, "pmu_caps", pmu_caps},
};

int session_feature_fact(struct session *session, unsigned feature, const struct reader *r)
{
	struct fact_reader f = {.session = session, .r = *r};
	int status = 0;

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		uint64_t number;

		if (numbers[i].feature != feature)
			continue;
		number = reader_u64(&f.r);
		str_printf(&f.out, "%llu%s", (unsigned long long)number, numbers[i].unit);
		if (!f.r.failed)
			status = add_fact(session, numbers[i].key, &f.out, number, true);
	}
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		if (texts[i].feature != feature)
			continue;
		texts[i].read(&f);
		if (!f.r.failed)
			status = add_fact(session, texts[i].key, &f.out, 0, false);
	}
	str_fini(&f.out);
	return status;
}

int session_text_fact(struct session *session, const char *key, const char *value)
{
	struct str text = {0};
	int r;

	str_puts(&text, value);
	r = add_fact(session, key, &text, 0, false);
	str_fini(&text);
	return r;
}
