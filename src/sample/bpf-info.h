/*
 * BPF programs as the kernel and recordings describe them: struct bpf_prog_info with the arrays
 * that it points to (linux/bpf.h), kept by recorders in the header's feature BPF_PROG_INFO, and the
 * types that programs were loaded with, BTF (the kernel's Documentation/bpf/btf.rst), in the
 * feature BPF_BTF. Pure decoding: everything points into the bytes that were given.
 *
 * An entry of BPF_PROG_INFO: u32 bytes of the structure, u32 bytes of the arrays, u64 bits that
 * tell which arrays are there (enum bpf_array_bit), the structure, whose pointers are offsets into
 * what follows, and the arrays. An entry of BPF_BTF: u32 id, u32 bytes, the bytes. Both features
 * begin with a u32 count.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/str.h"
#include "base/vec.h"

#define BPF_TAG_BYTES 8

enum bpf_array_bit {
	BPF_ARRAY_JITED_INSNS,
	BPF_ARRAY_XLATED_INSNS,
	BPF_ARRAY_MAP_IDS,
	BPF_ARRAY_JITED_KSYMS,
	BPF_ARRAY_JITED_FUNC_LENS,
	BPF_ARRAY_FUNC_INFO,
	BPF_ARRAY_LINE_INFO,
	BPF_ARRAY_JITED_LINE_INFO,
	BPF_ARRAY_PROG_TAGS,
};

/* Where struct bpf_prog_info has its fields; kernels append new ones. */
enum bpf_info_field {
	BPF_INFO_ID = 4,
	BPF_INFO_TAG = 8,
	BPF_INFO_JITED_BYTES = 16,
	BPF_INFO_XLATED_BYTES = 20,
	BPF_INFO_JITED_INSNS = 24,
	BPF_INFO_NR_MAP_IDS = 52,
	BPF_INFO_NAME = 64,
	BPF_INFO_NR_KSYMS = 104,
	BPF_INFO_NR_FUNC_LENS = 108,
	BPF_INFO_KSYMS = 112,
	BPF_INFO_FUNC_LENS = 120,
	BPF_INFO_BTF_ID = 128,
	BPF_INFO_FUNC_INFO_BYTES = 132,
	BPF_INFO_FUNC_INFO = 136,
	BPF_INFO_NR_FUNC_INFO = 144,
	BPF_INFO_NR_LINE_INFO = 148,
	BPF_INFO_LINE_INFO = 152,
	BPF_INFO_JITED_LINES = 160,
	BPF_INFO_NR_JITED_LINES = 168,
	BPF_INFO_LINE_BYTES = 172,
	BPF_INFO_JITED_LINE_BYTES = 176,
	BPF_INFO_NR_TAGS = 180,
	BPF_INFO_TAGS = 184,
	BPF_INFO_NAME_BYTES = 16,
};

struct bpf_array {
	const uint8_t *data;
	uint32_t count, each; /* entries, bytes of one */
};

struct bpf_info {
	uint32_t id, btf_id; /* btf_id 0: loaded without types */
	const uint8_t *tag;  /* BPF_TAG_BYTES */
	char name[BPF_INFO_NAME_BYTES + 1];
	uint32_t functions, lines; /* that can be asked for */
	struct bpf_array starts, lengths, types, tags, line_info, jited_lines;
	bool swap;
};

struct bpf_function {
	uint64_t start, size; /* in the kernel's memory */
	const uint8_t *tag;   /* BPF_TAG_BYTES */
	uint32_t type;        /* in the program's BTF; 0 unknown */
};

struct bpf_line {
	uint64_t address; /* of its first instruction of machine code */
	uint32_t file;    /* a string of the program's BTF */
	uint32_t line, column;
};

/* The next entry of BPF_PROG_INFO (r behind the count); false at the end and at damage. Arrays that
 * do not lie within the entry count as absent. */
bool bpf_info_next(struct reader *r, struct bpf_info *ret);
/* index below info->functions: the program's own first, then those that it calls. */
struct bpf_function bpf_info_function(const struct bpf_info *info, uint32_t index);
/* index below info->lines. */
struct bpf_line bpf_info_line(const struct bpf_info *info, uint32_t index);

struct btf {
	const uint8_t *strings;
	size_t string_bytes;
	VEC(uint32_t) names; /* strings, by type id - 1 */
};

/* Types in either byte order. -EBADMSG for what is no BTF, -ENOMEM. The caller frees what is in
 * *ret in every case. */
int btf_read(const void *data, size_t size, struct btf *ret);
void btf_fini(struct btf *btf);
/* NUL-terminated, below 4 KiB; NULL for what is none. */
const char *btf_string(const struct btf *btf, uint32_t offset);
/* The name of a type or function; NULL for what has none. */
const char *btf_type_name(const struct btf *btf, uint32_t id);

/* The name by which the kernel's own records and symbols know a function: bpf_prog_TAG_name. btf
 * may be NULL. Appended. */
void bpf_function_name(const struct bpf_info *info, const struct bpf_function *function,
		       const struct btf *btf, struct str *out);
