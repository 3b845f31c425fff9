/* What the readers of legacy profiles share: text, and the samples before they become a profile. */
#pragma once

#include "profile/legacy.h"

/* Text [at, end) that a scanner moves through. */
struct span {
	const char *at, *end;
};

/* Lines of [at, end), blanks around them taken off; number counts from 1. */
struct line_reader {
	const char *at, *end;
	size_t number;
};

bool next_line(struct line_reader *reader, struct span *ret_line);
bool span_is_empty(const struct span *s);
void span_blanks(struct span *s);
void span_trim(struct span *s);
/* True, and behind it, when the text goes on with that. */
bool span_word(struct span *s, const char *word);
bool span_has(const struct span *s, const char *text);
bool span_starts(const struct span *s, const char *text);
/* Numbers: false (and nothing moved) when there is none or it is too large. */
bool span_i64(struct span *s, int64_t *ret);
bool span_hex(struct span *s, uint64_t *ret);     /* digits alone */
bool span_address(struct span *s, uint64_t *ret); /* 0x and digits */

#define LEGACY_VALUES 4

struct legacy_sample {
	size_t first; /* in addresses, leaf first */
	uint32_t count;
	bool has_block;
	int64_t values[LEGACY_VALUES], block_bytes;
};

struct legacy_symbol {
	uint64_t address;
	uint32_t order, function;
	int64_t line;
};

struct legacy {
	struct profile *profile;
	struct err *err;
	VEC(uint64_t) addresses;
	VEC(struct legacy_sample) samples;
	VEC(struct profile_mapping) mappings;
	struct u64_map named;              /* address to its first symbol */
	VEC(struct legacy_symbol) symbols; /* lines of an address in order: innermost first */
	bool no_addresses;                 /* Java: the number of a named frame means nothing */
	bool symbolized;                   /* "--- symbol": callers are within the call already */
};

/* A sample without frames; the last sample's frames and values may still be added. */
int legacy_add_sample(struct legacy *l);
int legacy_add_address(struct legacy *l, uint64_t address);
/* All addresses of the text. Those from the index first_caller on are return addresses. */
int legacy_add_addresses(struct legacy *l, struct span text, unsigned first_caller);
int legacy_add_symbol(struct legacy *l, uint64_t address, struct span name, struct span file,
		      int64_t line);
int legacy_bad_line(struct legacy *l, const struct line_reader *reader, const char *what);
/* The value types and the period. names: type, unit, type, unit ... NULL. */
int legacy_types(struct legacy *l, const char *const *names, const char *period_type,
		 const char *period_unit, int64_t period);

/* The rest of the text as memory map; what is none is skipped. */
int legacy_read_maps(struct legacy *l, struct line_reader *reader);
bool legacy_is_maps_heading(const struct span *line);

int legacy_read_cpu(struct legacy *l, struct line_reader *reader);
int legacy_read_text(struct legacy *l, struct line_reader *reader);
/* The lines of "--- symbol" up to the next heading. */
int legacy_read_symbols(struct legacy *l, struct line_reader *reader);
/* A line of Go, "#	0x43d5c5	runtime.gopark+0xc5	/go/src/runtime/proc.go:398", or any
 * comment. */
int legacy_read_go_name(struct legacy *l, struct span line);
/* "0x0000001a com.example.Name.method (File.java:7)" to the end of the text. */
int legacy_read_java_names(struct legacy *l, struct line_reader *reader);

bool legacy_detect_cpu(const void *data, size_t size);
bool legacy_detect_text(const void *data, size_t size);
