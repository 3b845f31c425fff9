/* What both writers of trace.dat files need. */
#pragma once

#include <endian.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum trace_dat_option {
	DAT_DONE = 0,
	DAT_CPUSTAT = 2,
	DAT_TRACECLOCK = 4,
	DAT_UNAME = 5,
	DAT_CPUCOUNT = 8,
	DAT_VERSION = 9,
};

/* A number of size bytes in this machine's order. */
void dat_number(struct str *out, uint64_t value, size_t size);
/* A block with its size in front. */
void dat_sized(struct str *out, const void *data, size_t size, size_t size_bytes);
/* Magic, version 6, byte order, sizes of a long and of a page. */
void dat_start(struct str *out, size_t page_size);
void dat_option(struct str *out, enum trace_dat_option id, const void *data, size_t size);
/* The system's name and our version. */
void dat_options_of_machine(struct str *out);
/* Where the pages of cpus CPUs will stand is reserved; returns where the table begins. */
size_t dat_reserve_table(struct str *out, unsigned cpus);
