/* What the readers of legacy profiles share: text, and the samples before they become a profile. */
#pragma once

#include "base/scan.h"
#include "profile/legacy.h"

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
int legacy_add_addresses(struct legacy *l, struct scan text, unsigned first_caller);
int legacy_add_symbol(struct legacy *l, uint64_t address, struct scan name, struct scan file,
		      int64_t line);
int legacy_bad_line(struct legacy *l, const struct scan_lines *reader, const char *what);
/* The value types and the period. names: type, unit, type, unit ... NULL. */
int legacy_types(struct legacy *l, const char *const *names, const char *period_type,
		 const char *period_unit, int64_t period);

/* The rest of the text as memory map; what is none is skipped. */
int legacy_read_maps(struct legacy *l, struct scan_lines *reader);
bool legacy_is_maps_heading(const struct scan *line);

int legacy_read_cpu(struct legacy *l, struct scan_lines *reader);
int legacy_read_text(struct legacy *l, struct scan_lines *reader);
/* The lines of "--- symbol" up to the next heading. */
int legacy_read_symbols(struct legacy *l, struct scan_lines *reader);
/* A line of Go, "#	0x43d5c5	runtime.gopark+0xc5	/go/src/runtime/proc.go:398", or any
 * comment. */
int legacy_read_go_name(struct legacy *l, struct scan line);
/* "0x0000001a com.example.Name.method (File.java:7)" to the end of the text. */
int legacy_read_java_names(struct legacy *l, struct scan_lines *reader);

bool legacy_detect_cpu(const void *data, size_t size);
bool legacy_detect_text(const void *data, size_t size);
