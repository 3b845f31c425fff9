/*
 * jitdump files, which just-in-time compilers write for perf (node --perf-prof, Julia, LLVM, the
 * JVM with an agent): code as it was placed, moved and named, and the lines it was made of. The
 * format is described in the kernel's tools/perf/Documentation/jitdump-specification.txt.
 *
 * Addresses are used again when code is thrown away, so that only address and time together name
 * it. Each piece of code therefore has a range of its own in an address space of the file
 * (base, base + size), and a place says from when on a range of the process held which piece.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/vec.h"

struct jitdump_line {
	uint64_t offset; /* in the code */
	const char *file;
	uint32_t line;
};

struct jitdump_code {
	const char *name; /* NUL-terminated */
	uint64_t base, size;
	size_t first_line, line_count; /* in jitdump.lines, by offset */
	const uint8_t *frame;          /* its .eh_frame, NULL: none */
	uint32_t frame_bytes;
};

/* Loaded or moved there. */
struct jitdump_place {
	uint64_t time, address, size;
	uint32_t code; /* index */
};

/* Texts and frames live in the bytes that were parsed. */
struct jitdump {
	VEC(struct jitdump_code) codes;   /* base ascends */
	VEC(struct jitdump_place) places; /* as in the file */
	VEC(struct jitdump_line) lines;
	struct u64_map by_index; /* the compiler's number to the latest code of it */
	uint64_t start_time;     /* of the header: by the records' clock or, with V8, another one */
	uint64_t first_time;     /* of the first record; 0: there is none */
	bool arch_time;          /* that clock counts cycles; else nanoseconds of CLOCK_MONOTONIC */
	size_t bad_records;
	bool swap;        /* in the other byte order than this machine's */
	uint16_t machine; /* of ELF, EM_X86_64 */
	/* What is told before the code that it belongs to: */
	uint64_t lines_address;
	size_t first_line;
	const uint8_t *frame;
	uint32_t frame_bytes;
	bool closed; /* the compiler has ended */
};

#define JITDUMP_HEADER_BYTES 40

bool jitdump_detect(const void *data, size_t size);

/*
 * Initializes and fills *ret, which the caller frees in every case. Damaged records are counted and
 * left out; a record that is cut ends the file: the compiler may still have been writing. -EBADMSG
 * for what is no jitdump, -ENOMEM.
 */
int jitdump_parse(const void *data, size_t size, struct jitdump *ret);
/*
 * The same in pieces. The header: at least JITDUMP_HEADER_BYTES, *ret_records is where the records
 * begin. Then records: whole ones are taken, *ret_used says how many bytes; -EBADMSG when what
 * follows is none. What points into a piece is the caller's to move or to drop: names, frames and
 * counts of lines of the codes, the frame of the dump itself, and all lines by
 * jitdump_drop_lines().
 */
int jitdump_begin(const void *data, size_t size, struct jitdump *ret, uint64_t *ret_records);
int jitdump_records(struct jitdump *dump, const void *data, size_t size, size_t *ret_used);
void jitdump_drop_lines(struct jitdump *dump);
void jitdump_fini(struct jitdump *dump);

/* The line of an address in the file's space; NULL unknown. */
const struct jitdump_line *jitdump_find_line(const struct jitdump *dump, uint64_t address,
					     const struct jitdump_code **ret_code);

/*
 * The bytes of a process's jitdump file, where the process sees it or at that path, below root;
 * -ENOENT and the like. *ret_data is the caller's; *ret_path (may be NULL) too.
 */
int jitdump_read(const char *root, int pid, const char *path, char **ret_data, size_t *ret_size,
		 char **ret_path);
