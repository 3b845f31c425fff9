/*
 * The table of a module: where the call frame information lies, and lookups. A file without section
 * headers shows it by the program header GNU_EH_FRAME. An object that holds none may have a
 * separate debug file that does.
 */
#include "symbols/unwind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/util.h"
#include "symbols/dwarf-constants.h"
#include "symbols/elf-symbols-internal.h"
#include "symbols/module-internal.h"
#include "symbols/unwind-internal.h"

#define SCAN_WINDOW    (1u << 20)
#define SIGRETURNS_MAX 16
#define SCAN_TEXT_MAX  (64u << 20) /* where opening shall be quick; C libraries are smaller */

static int machine_arch(const struct elf_file *elf, enum unwind_arch *ret)
{
	if (!elf->is64 || elf->swap)
		return -ENOTSUP;
	if (elf->machine == EM_X86_64)
		*ret = UNWIND_X86_64;
	else if (elf->machine == EM_AARCH64)
		*ret = UNWIND_ARM64;
	else
		return -ENOTSUP;
	return 0;
}

static const struct elf_segment *segment_of_type(const struct elf_file *elf, uint32_t type)
{
	for (uint32_t i = 0; i < elf->nsegments; i++)
		if (elf->segments[i].type == type)
			return &elf->segments[i];
	return NULL;
}

/* .eh_frame by what .eh_frame_hdr says of it: up to the end of its segment. */
static int eh_frame_by_header(const struct elf_file *elf, struct elf_bytes *ret,
			      uint64_t *ret_vaddr)
{
	const struct elf_segment *segment = segment_of_type(elf, PT_GNU_EH_FRAME), *load = NULL;
	struct cfi_section header = {.swap = elf->swap};
	struct elf_bytes bytes;
	struct reader r;
	uint64_t start, end;
	uint8_t encoding;
	bool found;
	int error;

	if (!segment)
		return -ENOENT;
	error = elf_read(elf, segment->offset, MIN(segment->filesz, 64u), &bytes);
	if (error < 0)
		return error;
	header.data = bytes.data;
	header.size = bytes.size;
	header.vaddr = header.datarel = segment->vaddr;
	r = elf_reader(elf, &bytes);
	found = reader_u8(&r) == 1;
	encoding = reader_u8(&r);
	reader_skip(&r, 2);
	found = found && cfi_pointer(&header, &r, encoding, &start);
	elf_bytes_fini(&bytes);
	for (uint32_t i = 0; found && i < elf->nsegments; i++)
		if (elf->segments[i].type == PT_LOAD && start >= elf->segments[i].vaddr &&
		    start - elf->segments[i].vaddr < elf->segments[i].filesz)
			load = &elf->segments[i];
	if (!load)
		return -ENOENT;
	end = load->filesz - (start - load->vaddr);
	error = elf_read(elf, load->offset + (start - load->vaddr), end, ret);
	if (error == 0)
		*ret_vaddr = start;
	return error;
}

struct frames { /* the sections of one file */
	struct cfi_section sections[2];
	struct elf_bytes bytes[2];
	size_t count;
};

static void add_frames(const struct elf_file *elf, struct frames *frames, const char *name)
{
	const struct elf_section *section = elf_section_named(elf, name);
	const struct elf_section *got = elf_section_named(elf, ".got");
	bool debug = strcmp(name, ".debug_frame") == 0;
	struct elf_bytes *bytes = &frames->bytes[frames->count];
	uint64_t vaddr = section ? section->addr : 0;

	if (section && section->type != SHT_NOBITS) {
		if (elf_section_bytes(elf, section, bytes) < 0)
			return;
	} else if (debug || eh_frame_by_header(elf, bytes, &vaddr) < 0) {
		return;
	}
	frames->sections[frames->count++] = (struct cfi_section){.data = bytes->data,
								 .size = bytes->size,
								 .vaddr = vaddr,
								 .datarel = got ? got->addr : 0,
								 .swap = elf->swap,
								 .debug = debug};
}

/* separate: a debug file, in which .eh_frame is empty. */
static int compile_file(struct unwind_table *table, const struct elf_file *elf, bool separate)
{
	struct frames frames = {0};
	int r;

	if (!separate)
		add_frames(elf, &frames, ".eh_frame");
	add_frames(elf, &frames, ".debug_frame");
	r = cfi_compile(table, frames.sections, frames.count);
	for (size_t i = 0; i < frames.count; i++)
		elf_bytes_fini(&frames.bytes[i]);
	return r;
}

/* The stub that a signal handler returns to; some C libraries do not describe it. */
static int scan_window(struct unwind_table *table, const uint8_t *data, size_t size, uint64_t vaddr)
{
	static const uint8_t x86[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};
	static const uint8_t x86_short[] = {0xb8, 15, 0, 0, 0, 0x0f, 0x05};
	static const uint8_t arm[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};
	bool is_arm = table->arch == UNWIND_ARM64;
	const uint8_t *patterns[] = {is_arm ? arm : x86, is_arm ? arm : x86_short};
	size_t sizes[] = {is_arm ? sizeof(arm) : sizeof(x86),
			  is_arm ? sizeof(arm) : sizeof(x86_short)};

	for (int p = 0; p < (is_arm ? 1 : 2); p++)
		for (const uint8_t *at = data;
		     (at = memmem(at, size - (size_t)(at - data), patterns[p], sizes[p])); at++) {
			int r = table->sigreturns.len < SIGRETURNS_MAX
					? vec_push(&table->sigreturns,
						   vaddr + (uint64_t)(at - data))
					: 0;

			if (r < 0)
				return r;
		}
	return 0;
}

static int find_sigreturns(struct unwind_table *table, const struct elf_file *elf)
{
	int r = 0;

	for (uint32_t i = 0; i < elf->nsegments && r == 0; i++) {
		const struct elf_segment *segment = &elf->segments[i];

		if (segment->type != PT_LOAD || !(segment->flags & PF_X) ||
		    (table->search && segment->filesz > SCAN_TEXT_MAX))
			continue;
		for (uint64_t at = 0; at < segment->filesz && r == 0; at += SCAN_WINDOW) {
			uint64_t size = MIN(segment->filesz - at, SCAN_WINDOW + 16u);
			struct elf_bytes bytes;

			if (segment->offset + at < at ||
			    elf_read(elf, segment->offset + at, size, &bytes) < 0)
				break;
			r = scan_window(table, bytes.data, bytes.size, segment->vaddr + at);
			elf_bytes_fini(&bytes);
		}
	}
	return r;
}

static int table_new(const struct elf_file *elf, struct unwind_table **ret, struct err *err)
{
	struct unwind_table *table;
	enum unwind_arch arch;

	if (machine_arch(elf, &arch) < 0)
		return err_set(err, -ENOTSUP, "stacks of machine %u are not unwound", elf->machine);
	table = calloc(1, sizeof(*table));
	if (!table)
		return -ENOMEM;
	table->arch = arch;
	table->segments.fd = -1;
	*ret = table;
	return 0;
}

static void search_free(struct unwind_search *search)
{
	if (!search)
		return;
	elf_bytes_fini(&search->frame_bytes);
	elf_bytes_fini(&search->index_bytes);
	free(search);
}

/* The index behind the header: pairs of 4 bytes relative to the header, the only form in use. */
static bool parse_index(struct unwind_search *search, const struct elf_file *elf)
{
	struct cfi_section header = {.data = search->index_bytes.data,
				     .size = search->index_bytes.size,
				     .vaddr = search->index_vaddr,
				     .datarel = search->index_vaddr,
				     .swap = elf->swap};
	struct reader r = elf_reader(elf, &search->index_bytes);
	uint8_t version = reader_u8(&r), frame = reader_u8(&r), count = reader_u8(&r),
		entries = reader_u8(&r);
	uint64_t ignored, number;

	if (version != 1 || entries != (DW_EH_PE_datarel | DW_EH_PE_sdata4) ||
	    !cfi_pointer(&header, &r, frame, &ignored) || !cfi_pointer(&header, &r, count, &number))
		return false;
	search->index = r.data + r.pos;
	search->count = (size_t)MIN(number, (uint64_t)reader_left(&r) / 8);
	return search->count > 0 && search->count == number;
}

/*
 * Searches in .eh_frame instead of compiling it, if the linker made an index and there is no other
 * description (Go and C in one program: one in .debug_frame, one in .eh_frame).
 */
static int open_search(struct unwind_table *table, const struct elf_file *elf)
{
	const struct elf_segment *segment = segment_of_type(elf, PT_GNU_EH_FRAME);
	const struct elf_section *section = elf_section_named(elf, ".eh_frame");
	const struct elf_section *got = elf_section_named(elf, ".got");
	struct unwind_search *search;
	uint64_t vaddr = 0;
	int r;

	if (!segment || elf_section_named(elf, ".debug_frame") ||
	    elf_section_named(elf, ".zdebug_frame"))
		return 0;
	search = calloc(1, sizeof(*search));
	if (!search)
		return -ENOMEM;
	search->index_vaddr = segment->vaddr;
	r = elf_read(elf, segment->offset, segment->filesz, &search->index_bytes);
	if (r == 0 && section && section->type != SHT_NOBITS) {
		vaddr = section->addr;
		r = elf_section_bytes(elf, section, &search->frame_bytes);
	} else if (r == 0) {
		r = eh_frame_by_header(elf, &search->frame_bytes, &vaddr);
	}
	if (r < 0 || !parse_index(search, elf)) {
		search_free(search);
		return r == -ENOMEM ? r : 0;
	}
	search->frame = (struct cfi_section){.data = search->frame_bytes.data,
					     .size = search->frame_bytes.size,
					     .vaddr = vaddr,
					     .datarel = got ? got->addr : 0,
					     .swap = elf->swap};
	table->search = search;
	return 0;
}

/* Field 0: the function's start, 1: its FDE. */
static uint64_t index_word(const struct unwind_search *search, size_t i, unsigned field)
{
	int32_t word;

	memcpy(&word, search->index + 8 * i + 4 * field, sizeof(word));
	return search->index_vaddr + (uint64_t)(int64_t)word;
}

static bool search_rule(const struct unwind_table *table, uint64_t vaddr, struct unwind_rule *ret)
{
	const struct unwind_search *search = table->search;
	size_t behind = partition_point(search->count, at, index_word(search, at, 0) <= vaddr);

	return behind > 0 &&
	       cfi_rule_of(table, &search->frame,
			   index_word(search, behind - 1, 1) - search->frame.vaddr, vaddr, ret);
}

static void lazy_free(struct unwind_lazy *lazy)
{
	if (!lazy)
		return;
	unwind_code_free(lazy->code);
	pthread_mutex_destroy(&lazy->lock);
	free(lazy->path);
	free(lazy);
}

static int lazy_new(const struct elf_file *elf, const char *path, struct unwind_lazy **ret)
{
	struct unwind_lazy *lazy = calloc(1, sizeof(*lazy));

	if (!lazy)
		return -ENOMEM;
	pthread_mutex_init(&lazy->lock, NULL);
	lazy->size = elf->size;
	lazy->path = strdup(path);
	if (!lazy->path) {
		lazy_free(lazy);
		return -ENOMEM;
	}
	*ret = lazy;
	return 0;
}

static bool lazy_rule(struct unwind_lazy *lazy, uint64_t vaddr, struct unwind_rule *ret)
{
	struct elf_file elf = {.fd = -1};

	pthread_mutex_lock(&lazy->lock);
	if (!lazy->tried && elf_open(lazy->path, &elf, NULL) == 0) {
		if (elf.size == lazy->size)
			(void)unwind_code_new(&elf, &lazy->code);
		elf_close(&elf);
	}
	lazy->tried = true;
	pthread_mutex_unlock(&lazy->lock);
	return lazy->code && unwind_code_rule(lazy->code, vaddr, ret);
}

/* Fills the table of an opened object; path NULL: not a file, so that it has no debug file. */
static int table_of_elf(const struct symbols *symbols, struct elf_file *elf, const char *path,
			bool search, struct unwind_table **ret, struct err *err)
{
	struct elf_file debug = {.fd = -1};
	struct unwind_table *table = NULL;
	char *debug_path = NULL;
	int r = table_new(elf, &table, err);

	if (!table)
		return r;
	if (search)
		r = open_search(table, elf);
	if (r == 0 && !table->search)
		r = compile_file(table, elf, false);
	if (r == 0 && !table->search && table->rows.len == 0 && path &&
	    locate_debug(&symbols->places, elf, path, &debug, &debug_path) == 0) {
		r = compile_file(table, &debug, true);
		elf_close(&debug);
		free(debug_path);
	}
	if (r == 0)
		r = find_sigreturns(table, elf);
	if (r == 0 && search && path && table->arch == UNWIND_X86_64)
		r = lazy_new(elf, path, &table->lazy);
	if (r == 0 && !unwind_table_describes(table) && !table->lazy && table->sigreturns.len == 0)
		r = err_set(err, -ENODATA, "no call frame information");
	if (r < 0) {
		unwind_table_free(table);
		return r;
	}
	table->segments.segments = TAKE_PTR(elf->segments);
	table->segments.nsegments = elf->nsegments;
	elf->nsegments = 0;
	*ret = table;
	return 0;
}

static int table_of_image(const void *image, size_t size, bool search, struct unwind_table **ret,
			  struct err *err)
{
	struct elf_file elf = {.fd = -1};
	int r = elf_open_image(image, size, NULL, &elf, err);

	if (r < 0)
		return r;
	r = table_of_elf(NULL, &elf, NULL, search, ret, err);
	elf_close(&elf);
	return r;
}

int unwind_search_of_image(const void *image, size_t size, struct unwind_table **ret)
{
	return table_of_image(image, size, true, ret, NULL);
}

int unwind_table_of_image(const void *image, size_t size, struct unwind_table **ret,
			  struct err *err)
{
	return table_of_image(image, size, false, ret, err);
}

/* From the one that was recorded; unknown ids accept any. */
static bool vdso_differs(const void *image, size_t size, const struct build_id *want)
{
	struct elf_file elf = {.fd = -1};
	struct build_id have;
	bool differs;

	if (want->size == 0 || elf_open_image(image, size, NULL, &elf, NULL) < 0)
		return false;
	differs = elf_build_id(&elf, &have) == 0 && !build_id_equal(&have, want);
	elf_close(&elf);
	return differs;
}

static int table_of_ref(const struct symbols *symbols, const struct module_ref *ref, bool search,
			struct unwind_table **ret, struct err *err)
{
	struct elf_file elf = {.fd = -1};
	struct str why = {0};
	char *path = NULL;
	size_t size = 0;
	int r;

	if (ref->kind == MODULE_VDSO) {
		const void *image = ref->image ? ref->image : symbols_own_vdso(&size);

		size = ref->image ? ref->image_size : size;
		if (!image || (!ref->image && vdso_differs(image, size, &ref->build_id)))
			return -ENOENT;
		return unwind_table_of_image(image, size, ret, err);
	}
	if (ref->kind != MODULE_ELF)
		return -ENOTSUP;
	r = locate_object(&symbols->places, ref, &elf, &path, &why);
	if (r < 0)
		r = err_set(err, r, "%s", str_text(&why));
	else
		r = table_of_elf(symbols, &elf, path, search, ret, err);
	elf_close(&elf);
	str_fini(&why);
	free(path);
	return r;
}

int unwind_table_load(const struct symbols *symbols, const struct module_ref *ref,
		      struct unwind_table **ret, struct err *err)
{
	return table_of_ref(symbols, ref, false, ret, err);
}

int unwind_table_open(const struct symbols *symbols, const struct module_ref *ref,
		      struct unwind_table **ret, struct err *err)
{
	return table_of_ref(symbols, ref, true, ret, err);
}

void unwind_table_free(struct unwind_table *table)
{
	if (!table)
		return;
	vec_fini(&table->rows);
	vec_fini(&table->rules);
	vec_fini(&table->sigreturns);
	hash_index_fini(&table->rule_index);
	elf_close(&table->segments);
	search_free(table->search);
	lazy_free(table->lazy);
	free(table);
}

const struct unwind_rule *unwind_table_find(const struct unwind_table *table, uint64_t vaddr)
{
	uint64_t pc = vaddr - table->base;
	size_t behind;
	uint32_t rule;

	if (vaddr < table->base || pc > UINT32_MAX)
		return NULL;
	behind = partition_point(table->rows.len, at, table->rows.data[at].pc <= pc);
	rule = behind ? table->rows.data[behind - 1].rule : 0;
	return rule ? &table->rules.data[rule] : NULL;
}

bool unwind_table_rule(const struct unwind_table *table, uint64_t vaddr, struct unwind_rule *ret)
{
	const struct unwind_rule *rule;

	if (table->search) {
		if (search_rule(table, vaddr, ret))
			return true;
	} else if ((rule = unwind_table_find(table, vaddr)) != NULL) {
		*ret = *rule;
		return true;
	}
	return table->lazy && !unwind_table_is_sigreturn(table, vaddr) &&
	       lazy_rule(table->lazy, vaddr, ret);
}

bool unwind_table_describes(const struct unwind_table *table)
{
	return table->search || table->rows.len > 0;
}

bool unwind_table_is_sigreturn(const struct unwind_table *table, uint64_t vaddr)
{
	/* A stub has two instructions, the second is the system call. */
	uint64_t last = table->arch == UNWIND_ARM64 ? 4 : 7;

	for (size_t i = 0; i < table->sigreturns.len; i++)
		if (vaddr >= table->sigreturns.data[i] && vaddr - table->sigreturns.data[i] <= last)
			return true;
	return false;
}

uint64_t unwind_table_vaddr(const struct unwind_table *table, uint64_t offset)
{
	uint64_t vaddr;

	return elf_offset_to_vaddr(&table->segments, offset, &vaddr) ? vaddr : offset;
}

enum unwind_arch unwind_table_arch(const struct unwind_table *table)
{
	return table->arch;
}

const struct unwind_row *unwind_table_rows(const struct unwind_table *table, size_t *ret_count,
					   uint64_t *ret_base)
{
	*ret_count = table->rows.len;
	*ret_base = table->base;
	return table->rows.data;
}

const struct unwind_rule *unwind_table_rules(const struct unwind_table *table, size_t *ret_count)
{
	*ret_count = table->rules.len;
	return table->rules.data;
}
