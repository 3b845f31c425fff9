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
#include "symbols/module-internal.h"
#include "symbols/unwind-internal.h"

#define SCAN_WINDOW    (1u << 20)
#define SIGRETURNS_MAX 16

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

		if (segment->type != PT_LOAD || !(segment->flags & PF_X))
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

/* Fills the table of an opened object; path NULL: not a file, so that it has no debug file. */
static int table_of_elf(const struct symbols *symbols, struct elf_file *elf, const char *path,
			struct unwind_table **ret, struct err *err)
{
	struct elf_file debug = {.fd = -1};
	struct unwind_table *table = NULL;
	char *debug_path = NULL;
	int r = table_new(elf, &table, err);

	if (r < 0)
		return r;
	r = compile_file(table, elf, false);
	if (r == 0 && table->rows.len == 0 && path &&
	    locate_debug(&symbols->places, elf, path, &debug, &debug_path) == 0) {
		r = compile_file(table, &debug, true);
		elf_close(&debug);
		free(debug_path);
	}
	if (r == 0)
		r = find_sigreturns(table, elf);
	if (r == 0 && table->rows.len == 0 && table->sigreturns.len == 0)
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

int unwind_table_of_image(const void *image, size_t size, struct unwind_table **ret,
			  struct err *err)
{
	struct elf_file elf = {.fd = -1};
	int r = elf_open_image(image, size, NULL, &elf, err);

	if (r < 0)
		return r;
	r = table_of_elf(NULL, &elf, NULL, ret, err);
	elf_close(&elf);
	return r;
}

int unwind_table_load(const struct symbols *symbols, const struct module_ref *ref,
		      struct unwind_table **ret, struct err *err)
{
	struct elf_file elf = {.fd = -1};
	struct str why = {0};
	char *path = NULL;
	size_t size;
	int r;

	if (ref->kind == MODULE_VDSO) {
		const void *image = ref->image ? ref->image : symbols_own_vdso(&size);

		if (!image)
			return -ENOENT;
		return unwind_table_of_image(image, ref->image ? ref->image_size : size, ret, err);
	}
	if (ref->kind != MODULE_ELF)
		return -ENOTSUP;
	r = locate_object(&symbols->places, ref, &elf, &path, &why);
	if (r < 0)
		r = err_set(err, r, "%s", str_text(&why));
	else
		r = table_of_elf(symbols, &elf, path, ret, err);
	elf_close(&elf);
	str_fini(&why);
	free(path);
	return r;
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
	free(table);
}

const struct unwind_rule *unwind_table_find(const struct unwind_table *table, uint64_t vaddr)
{
	uint64_t pc = vaddr - table->base;
	size_t low = 0, high = table->rows.len;
	uint32_t rule;

	if (vaddr < table->base || pc > UINT32_MAX)
		return NULL;
	while (low < high) {
		size_t middle = (low + high) / 2;

		if (table->rows.data[middle].pc <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	rule = low ? table->rows.data[low - 1].rule : 0;
	return rule ? &table->rules.data[rule] : NULL;
}

bool unwind_table_is_sigreturn(const struct unwind_table *table, uint64_t vaddr)
{
	for (size_t i = 0; i < table->sigreturns.len; i++)
		if (table->sigreturns.data[i] == vaddr)
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
