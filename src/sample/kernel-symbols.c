#include "sample/kernel-symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/compress.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/util.h"
#include "base/vec.h"
#include "sample/explain.h"
#include "symbols/kallsyms.h"

#define KALLSYMS_PATH    "/proc/kallsyms"
#define KALLSYMS_MAX     (256U << 20)
#define MODULES_MAX      (4U << 20)
#define BPF_PROGRAMS_MAX 65536
#define CACHE_MAGIC      UINT64_C(0x31736d79536c6143) /* "CalSyms1" */
#define SECTION_VERSION  1
#define SECTION_KALLSYMS 1
#define SECTION_LEVEL    3

/*
 * The cache: header, then count entries sorted by address, then the lines' texts ("T name" or
 * "t name\t[module]"), NUL-terminated.
 */
struct cache_header {
	uint64_t magic, key, count, text_bytes;
};

struct cache_entry {
	uint64_t address;
	uint32_t text;  /* offset into the texts */
	uint32_t order; /* line number: keeps the kernel's order among equal addresses */
};

struct kernel_table {
	const struct cache_entry *entries;
	const char *texts;
	size_t count, text_bytes;
	struct file_map map; /* when it came from the cache */
	struct str built;    /* when it was made now */
};

static void table_fini(struct kernel_table *table)
{
	file_map_close(&table->map);
	str_fini(&table->built);
}

/* True when the bytes are a cache for this key, whose offsets all hold. */
static bool table_from_bytes(struct kernel_table *table, const void *data, size_t size,
			     uint64_t key)
{
	const struct cache_header *header = data;

	if (size < sizeof(*header) || header->magic != CACHE_MAGIC || header->key != key ||
	    header->count > (size - sizeof(*header)) / sizeof(struct cache_entry) ||
	    header->text_bytes !=
		    size - sizeof(*header) - header->count * sizeof(struct cache_entry) ||
	    header->text_bytes == 0)
		return false;
	table->entries = (const struct cache_entry *)(header + 1);
	table->texts = (const char *)(table->entries + header->count);
	table->count = header->count;
	table->text_bytes = header->text_bytes;
	return table->texts[table->text_bytes - 1] == '\0';
}

static int compare_entries(const void *a, const void *b)
{
	const struct cache_entry *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Turns kallsyms text into the cache's form. -EACCES when every address is hidden. */
static int table_build(struct kernel_table *table, char *text, uint64_t key)
{
	struct cache_header header = {.magic = CACHE_MAGIC, .key = key};
	VEC(struct cache_entry) entries = {0};
	struct str texts = {0};
	bool hidden = true;
	int r = 0;

	for (char *line = text, *next; r == 0 && *line; line = next) {
		struct cache_entry entry = {.text = (uint32_t)texts.len,
					    .order = (uint32_t)entries.len};
		char *rest;

		next = strchrnul(line, '\n');
		entry.address = strtoull(line, &rest, 16);
		if (*rest == ' ') {
			str_append(&texts, rest + 1, (size_t)(next - rest - 1));
			str_putc(&texts, '\0');
			hidden &= entry.address == 0;
			r = vec_push(&entries, entry);
		}
		next += *next == '\n';
	}
	if (r == 0 && hidden)
		r = -EACCES;
	if (r == 0) {
		qsort(entries.data, entries.len, sizeof(*entries.data), compare_entries);
		header.count = entries.len;
		header.text_bytes = texts.len;
		str_append(&table->built, &header, sizeof(header));
		str_append(&table->built, entries.data, entries.len * sizeof(*entries.data));
		str_append(&table->built, texts.data, texts.len);
		r = str_status(&texts) < 0 ? -ENOMEM : str_status(&table->built);
	}
	vec_fini(&entries);
	str_fini(&texts);
	if (r == 0 && !table_from_bytes(table, table->built.data, table->built.len, key))
		r = -EBADMSG;
	return r;
}

/* Which BPF programs are loaded: their numbers are never used again. 0 without the right to ask. */
static uint64_t bpf_programs(void)
{
	union bpf_attr attr = {0};
	uint64_t hash = 0;

	for (unsigned i = 0; i < BPF_PROGRAMS_MAX; i++) {
		if (syscall(SYS_bpf, BPF_PROG_GET_NEXT_ID, &attr, sizeof(attr)) < 0)
			break;
		attr.start_id = attr.next_id;
		hash = hash_pair(hash, attr.next_id);
	}
	return hash;
}

/* What the addresses depend on: this boot, and the modules and BPF programs at their places. */
static int cache_key(uint64_t *ret)
{
	CLEANUP_FREE char *boot = NULL, *modules = NULL;
	size_t boot_size, modules_size = 0;

	if (file_read("/proc/sys/kernel/random/boot_id", 128, &boot, &boot_size, NULL) < 0)
		return -ENOENT;
	if (file_read("/proc/modules", MODULES_MAX, &modules, &modules_size, NULL) < 0)
		modules_size = 0;
	*ret = hash_pair(hash_bytes(boot, boot_size),
			 modules_size ? hash_bytes(modules, modules_size) : 0);
	*ret = hash_pair(*ret, bpf_programs());
	return 0;
}

static int table_open(struct kernel_table *table, struct err *err)
{
	CLEANUP_FREE char *text = NULL;
	char dir[PATH_MAX - 32], path[PATH_MAX];
	bool cached = cache_dir(dir, sizeof(dir));
	uint64_t key = 0;
	size_t size;
	int r;

	snprintf(path, sizeof(path), "%s/kallsyms", dir);
	cached = cached && cache_key(&key) == 0;
	if (cached && file_map_open(path, &table->map, NULL) == 0) {
		if (table_from_bytes(table, table->map.data, table->map.size, key))
			return 0;
		file_map_close(&table->map);
	}
	r = file_read(KALLSYMS_PATH, KALLSYMS_MAX, &text, &size, err);
	if (r == 0)
		r = table_build(table, text, key);
	if (r == -EACCES)
		return explain_hidden_kernel(r, err);
	/* A cache that cannot be kept costs time, nothing else. */
	if (r == 0 && cached && dir_make(dir, 0700, NULL) == 0)
		(void)file_write_atomic(path, table->built.data, table->built.len, 0600, NULL);
	return r;
}

/* All names at one address; returns the index behind them. */
static size_t put_address(const struct kernel_table *table, size_t i, struct str *out)
{
	uint64_t address = table->entries[i].address;

	for (; i < table->count && table->entries[i].address == address; i++)
		if (table->entries[i].text < table->text_bytes)
			str_printf(out, "%016llx %s\n", (unsigned long long)address,
				   table->texts + table->entries[i].text);
	return i;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The lines around every address (sorted): its symbol's, and those that bound it. */
static void put_neighbourhood(const struct kernel_table *table, const uint64_t *addresses,
			      size_t count, struct str *out)
{
	size_t written = 0; /* entries before this one are in out */

	for (size_t i = 0; i < count; i++) {
		size_t at =
			partition_point(table->count, e, table->entries[e].address <= addresses[i]);

		if (at-- == 0)
			continue;
		while (at > 0 && table->entries[at - 1].address == table->entries[at].address)
			at--;
		if (at >= written)
			written = put_address(table, at, out);
		if (written < table->count && table->entries[written - 1].address <= addresses[i])
			written = put_address(table, written, out);
	}
}

int kernel_symbols_excerpt(uint64_t *addresses, size_t count, struct str *out, struct err *err)
{
	struct kernel_table table = {0};
	struct str near = {0};
	int r;

	if (count == 0)
		return 0;
	r = table_open(&table, err);
	if (r == 0) {
		qsort(addresses, count, sizeof(*addresses), compare_u64);
		put_neighbourhood(&table, addresses, count, &near);
		r = str_status(&near);
	}
	if (r == 0)
		r = kallsyms_excerpt(str_text(&near), near.len, addresses, count, out);
	table_fini(&table);
	str_fini(&near);
	return r;
}

int kernel_symbols_section(const struct str *text, struct str *out)
{
	uint32_t head[2] = {SECTION_VERSION, SECTION_KALLSYMS};
	uint64_t raw_size = text->len;

	str_append(out, head, sizeof(head));
	str_append(out, &raw_size, sizeof(raw_size));
	return zstd_compress(text->data, text->len, SECTION_LEVEL, out, NULL);
}
