/* A table while it is made: unwind.c finds the bytes, unwind-cfi.c finds the functions in them and
 * unwind-rows.c runs their instructions. */
#pragma once

#include <pthread.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/vec.h"
#include "symbols/elf-file-internal.h"
#include "symbols/unwind.h"

struct unwind_table {
	enum unwind_arch arch;
	uint64_t base;
	VEC(struct unwind_row) rows;
	VEC(struct unwind_rule) rules; /* rule 0: none */
	struct elf_file segments;      /* program headers only, closed */
	VEC(uint64_t) sigreturns;
	struct hash_index rule_index; /* while it is made */
	struct unwind_search *search; /* instead of rows, see unwind_table_open() */
	struct unwind_lazy *lazy;     /* the code itself, NULL: not asked for it */
};

/* The code of functions that nothing describes, read when the first one is met. */
struct unwind_lazy {
	pthread_mutex_t lock;
	char *path;
	uint64_t size; /* of the file: another one is not read */
	struct unwind_code *code;
	bool tried;
};

/* unwind-code.c: x86-64 only, -ENOTSUP else. */
int unwind_code_new(const struct elf_file *elf, struct unwind_code **ret);
void unwind_code_free(struct unwind_code *code);
bool unwind_code_rule(const struct unwind_code *code, uint64_t vaddr, struct unwind_rule *ret);

struct cfi_section {
	const uint8_t *data;
	size_t size;
	uint64_t vaddr;   /* of data */
	uint64_t datarel; /* base of DW_EH_PE_datarel */
	bool swap, debug; /* debug: .debug_frame */
};

/* The linker's index of .eh_frame: pairs of a function's start and its FDE, both relative to the
 * index itself, in order. */
struct unwind_search {
	struct elf_bytes frame_bytes, index_bytes;
	struct cfi_section frame;
	uint64_t index_vaddr;
	const uint8_t *index; /* 8 bytes each */
	size_t count;
};

/* unwind_table_open() of an image, which must outlive the table. */
int unwind_search_of_image(const void *image, size_t size, struct unwind_table **ret);

#define CFI_COLUMNS 3 /* RA, FP, BX */

/* What holds at one address. */
struct cfi_state {
	uint8_t cfa, cfa_reg;
	int64_t cfa_offset, cfa_add;
	struct {
		uint8_t kind, base;
		int64_t offset;
	} columns[CFI_COLUMNS];
};

struct cfi_cie {
	const struct cfi_section *section;
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra_register;
	uint8_t encoding;
	bool augmented, signal, bad;
	struct cfi_state initial;
};

struct cfi_fde {
	uint64_t start;
	uint64_t length;
	uint32_t cie;
	uint32_t order; /* in which it was found: earlier sections win */
	const uint8_t *code;
	uint32_t code_size;
};

/* A pointer encoded as in .eh_frame; false (and the reader failed) for what cannot be known. */
bool cfi_pointer(const struct cfi_section *section, struct reader *r, uint8_t encoding,
		 uint64_t *ret);

/* Adds the rows of all functions of the sections; the first section wins where two tell. */
int cfi_compile(struct unwind_table *table, const struct cfi_section *sections, size_t count);

/* The state behind the initial instructions of a CIE; false when they are not understood. */
bool cfi_initial(const struct unwind_table *table, struct cfi_cie *cie, const uint8_t *code,
		 size_t size);
/* Appends the rows of a function and its end; end: exclusive. */
int cfi_run(struct unwind_table *table, const struct cfi_cie *cie, const struct cfi_fde *fde,
	    uint64_t end);
/* The rule at an address of a function, without rows. */
void cfi_rule_at(const struct unwind_table *table, const struct cfi_cie *cie,
		 const struct cfi_fde *fde, uint64_t pc, struct unwind_rule *ret);
/* The same by the offset of its FDE in a section; false when it is not of that function. */
bool cfi_rule_of(const struct unwind_table *table, const struct cfi_section *section,
		 uint64_t offset, uint64_t pc, struct unwind_rule *ret);
int cfi_add_row(struct unwind_table *table, uint64_t address, uint32_t rule);
