/*
 * The parts of the DWARF reader: sections that are read as far as they are used, units, entries
 * (DIEs), the tree of inlined functions, line tables.
 *
 * Sources: the DWARF 4 and 5 standards; the GNU extensions before them (split DWARF, dwz) as their
 * wiki pages describe them. Every offset that comes from a file is checked where it is used;
 * everything that grows is bounded by the bytes it was read from.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/vec.h"
#include "symbols/dwarf.h"
#include "symbols/elf-file-internal.h"

enum dwarf_section_id {
	DWARF_INFO,
	DWARF_ABBREV,
	DWARF_STR,
	DWARF_STR_OFFSETS,
	DWARF_LINE_STR,
	DWARF_LINE,
	DWARF_RANGES,
	DWARF_RNGLISTS,
	DWARF_ADDR,
	DWARF_ARANGES,
	DWARF_CU_INDEX,
	DWARF_SECTIONS,
};

/*
 * A section's bytes. Of files only the blocks that were asked for are in memory: the whole section
 * has its place in the address space, and loaded says which blocks are filled.
 */
struct dwarf_section {
	const uint8_t *data;
	uint8_t *map; /* NULL: data is whole */
	uint8_t *loaded;
	uint64_t offset; /* in the file */
	size_t size;
	void *owned;
};

struct dwarf_attr {
	uint16_t name, form;
	int32_t implicit; /* DW_FORM_implicit_const */
};

enum dwarf_kind {
	DWARF_KIND_OTHER,   /* its children may hold code */
	DWARF_KIND_NO_CODE, /* its children never do */
	DWARF_KIND_SUBPROGRAM,
	DWARF_KIND_INLINED,
};

struct dwarf_abbrev {
	uint64_t code;
	uint32_t first_attr;
	int32_t fixed; /* bytes of all attributes together, -1: varies */
	uint16_t attr_count, tag;
	uint8_t kind;
	bool children;
};

struct dwarf_abbrevs {
	uint64_t key;
	VEC(struct dwarf_abbrev) entries;
	VEC(struct dwarf_attr) attrs;
};

#define DWARF_NONE UINT32_MAX

/* One function or inlined call with code. */
struct dwarf_function {
	uint64_t entry; /* the offset in .debug_info that leads to its name */
	uint32_t parent, call_file, call_line;
	uint16_t call_column;
	bool inlined;
};

/* From start to the next piece's: the innermost function, DWARF_NONE in gaps. */
struct dwarf_piece {
	uint64_t start;
	uint32_t function;
};

struct dwarf_range {
	uint64_t low, high;
	uint32_t owner; /* function, or unit */
	uint32_t depth;
};

struct dwarf_range_list {
	VEC(struct dwarf_range) all;
};

struct dwarf_unit {
	uint64_t offset, end, first_entry; /* in .debug_info */
	uint64_t abbrev_offset;
	uint64_t low_pc; /* base of range lists */
	uint64_t stmt_list, str_offsets_base, addr_base, ranges_base, rnglists_base, dwo_id;
	const char *comp_dir, *dwo_name; /* in the arena */
	uint32_t abbrevs;                /* index + 1 */
	uint32_t lines;                  /* index + 1 */
	uint16_t version;
	uint8_t address_size, offset_size, type;
	bool root_read, has_lines, decoded, split_tried;
	struct dwarf_file *split_file; /* where the entries really are */
	uint32_t split_unit;           /* index there */
	struct dwarf_unit *skeleton;   /* of a unit of a split file */
	struct dwarf_file *main_file;  /* of a unit of a split file: where addresses are */
	VEC(struct dwarf_function) functions;
	VEC(struct dwarf_piece) pieces;
};

struct dwarf_row {
	uint32_t delta; /* from the sequence's start */
	uint32_t line;
	uint32_t file_column; /* file << 12 | column */
};

struct dwarf_sequence {
	uint64_t low, high;
	uint32_t first, count;
};

struct dwarf_line_file {
	const char *name; /* in a section */
	const char *path; /* put together when first asked for; in the arena */
	uint32_t dir;
};

struct dwarf_lines {
	uint16_t version;
	VEC(struct dwarf_row) rows;
	VEC(struct dwarf_sequence) sequences;
	VEC(const char *) dirs;
	VEC(struct dwarf_line_file) files;
};

/* One ELF file: the object or debug file itself, its dwz supplement, a .dwo or .dwp. */
struct dwarf_file {
	struct dwarf *dwarf;
	struct elf_file elf;
	char *path; /* may be NULL */
	bool split, scanned;
	struct dwarf_section sections[DWARF_SECTIONS];
	VEC(struct dwarf_unit) units; /* by offset */
	VEC(struct dwarf_abbrevs) abbrevs;
	VEC(struct dwarf_lines) lines;
	struct u64_map abbrev_map, line_map; /* to indices */
	struct u64_map name_map;             /* entry offset to index in dwarf.names */
	struct dwarf_file *supplement;
	bool supplement_tried;
};

struct dwarf_name {
	const char *raw, *name;
};

struct dwarf {
	struct dwarf_options options;
	struct dwarf_file main;
	VEC(struct dwarf_file *) others;
	struct dwarf_range_list ranges; /* of units, by low */
	VEC(uint64_t) reach;            /* the highest end of ranges[0..i] */
	VEC(struct dwarf_name) names;
	struct arena *arena;
	struct dwarf_file *package; /* the .dwp */
	bool package_tried;
	bool incomplete; /* a split or supplementary file was not found */
};

/* dwarf-section.c. file->elf is taken over; dwo: the sections' names end in .dwo. */
int dwarf_file_init(struct dwarf_file *file, struct dwarf *dwarf, struct elf_file *elf,
		    const char *path, bool dwo);
void dwarf_file_fini(struct dwarf_file *file);
/* A reader at offset that ends after len bytes (or with the section); failed when offset is
 * outside.
 */
struct reader dwarf_reader(struct dwarf_file *file, enum dwarf_section_id id, uint64_t offset,
			   uint64_t len);
/* NULL when there is no string. Valid while the file is open, for INFO until dwarf_forget(). */
const char *dwarf_string(struct dwarf_file *file, enum dwarf_section_id id, uint64_t offset);
/* Gives the memory of a part of .debug_info back; it is read again when it is needed. */
void dwarf_forget(struct dwarf_file *file, uint64_t offset, uint64_t end);
const struct elf_section *dwarf_elf_section(const struct elf_file *elf, const char *name);

/* dwarf-entry.c */
struct dwarf_value {
	uint64_t number;
	const char *text; /* DW_FORM_string */
	uint16_t form;    /* 0: absent */
};

/* The attributes that are of interest, and forms 0 for those that are absent. */
struct dwarf_entry {
	const struct dwarf_abbrev *abbrev;
	struct dwarf_value name, linkage, low, high, ranges, origin, specification, sibling;
	struct dwarf_value call_file, call_line, call_column;
	struct dwarf_value comp_dir, stmt_list, str_offsets_base, addr_base, ranges_base;
	struct dwarf_value rnglists_base, dwo_name, dwo_id;
	bool declaration;
};

int dwarf_abbrevs_load(struct dwarf_file *file, struct dwarf_unit *unit);
const struct dwarf_abbrev *dwarf_abbrev_find(const struct dwarf_abbrevs *table, uint64_t code);
/* Reads the attributes behind the code. */
void dwarf_entry_read(const struct dwarf_abbrevs *table, const struct dwarf_unit *unit,
		      const struct dwarf_abbrev *abbrev, struct reader *r, struct dwarf_entry *ret);
void dwarf_entry_skip(const struct dwarf_abbrevs *table, const struct dwarf_unit *unit,
		      const struct dwarf_abbrev *abbrev, struct reader *r);
/* One value of a form; used for line tables too. */
struct dwarf_value dwarf_value_read(const struct dwarf_unit *unit, uint16_t form, int32_t implicit,
				    struct reader *r);
const char *dwarf_value_text(struct dwarf_file *file, const struct dwarf_unit *unit,
			     const struct dwarf_value *value);
bool dwarf_value_address(struct dwarf_file *file, const struct dwarf_unit *unit,
			 const struct dwarf_value *value, uint64_t *ret);
/* The file and offset that a reference means. */
bool dwarf_value_reference(struct dwarf_file *file, const struct dwarf_unit *unit,
			   const struct dwarf_value *value, struct dwarf_file **ret_file,
			   uint64_t *ret_offset);

/* dwarf-unit.c */
int dwarf_units_scan(struct dwarf_file *file);
struct dwarf_unit *dwarf_unit_at(struct dwarf_file *file, uint64_t offset);
int dwarf_unit_read_root(struct dwarf_file *file, struct dwarf_unit *unit,
			 struct dwarf_entry *ret_root);
/* Fills dwarf.ranges. */
int dwarf_index_build(struct dwarf *dwarf);

/* dwarf-range.c. Ranges of an entry are appended while budget lasts. */
int dwarf_entry_ranges(struct dwarf_file *file, const struct dwarf_unit *unit,
		       const struct dwarf_entry *entry, uint32_t owner, uint32_t depth,
		       uint64_t *budget, struct dwarf_range_list *ranges);

/* dwarf-split.c: the unit and file that hold a skeleton's entries; the same ones when it is none.
 */
struct dwarf_unit *dwarf_unit_whole(struct dwarf_file *file, struct dwarf_unit *unit,
				    struct dwarf_file **ret_file);
/* The dwz supplement, NULL when there is none. */
struct dwarf_file *dwarf_supplement(struct dwarf_file *file);

/* dwarf-tree.c: functions and pieces, once. */
int dwarf_unit_decode(struct dwarf_file *file, struct dwarf_unit *unit);

/* dwarf-line.c: the unit's line table, NULL when it has none. */
struct dwarf_lines *dwarf_lines_of(struct dwarf_file *file, struct dwarf_unit *unit);
const struct dwarf_row *dwarf_lines_find(const struct dwarf_lines *lines, uint64_t address);
const char *dwarf_lines_path(struct dwarf *dwarf, struct dwarf_lines *lines, const char *comp_dir,
			     uint32_t file);
