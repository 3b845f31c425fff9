/*
 * Shared by the files of culprit doctor. A check is a row; an area is a file of checks. To add
 * checks of another area: write doctor-AREA.c with an "int doctor_AREA(struct doctor *)" and add it
 * to doctor_areas[] in doctor.c.
 */
#pragma once

#include "base/vec.h"
#include "host/host.h"

enum doctor_state {
	DOCTOR_OK,
	DOCTOR_WARN,    /* works, but less than it could */
	DOCTOR_FAIL,    /* something of the area cannot work */
	DOCTOR_UNKNOWN, /* could not be found out; why says so */
};

struct doctor_check {
	const char *name, *area; /* static texts */
	enum doctor_state state;
	char value[160];  /* "" unknown */
	char why[256];    /* what it means here, one sentence */
	char remedy[256]; /* one line to type or do; "" none needed */
};

struct doctor {
	struct host host;
	struct host_cpu_model model;
	struct host_rights rights;
	struct host_text hypervisor, container;
	const char *area; /* of the file that runs */
	VEC(struct doctor_check) checks;
};

/* Adds a row of the current area; the formatted text is its value. -ENOMEM is kept for the end. */
struct doctor_check *doctor_add(struct doctor *doctor, const char *name, enum doctor_state state,
				const char *value_fmt, ...) __attribute__((format(printf, 4, 5)));
void doctor_why(struct doctor_check *check, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void doctor_remedy(struct doctor_check *check, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The row of what could not be found out. */
struct doctor_check *doctor_unknown(struct doctor *doctor, const char *name, const char *why);
/* A file of the machine, at most 1 MiB; "" when it cannot be read, NULL without memory. The caller
 * frees. */
char *doctor_read_file(const struct doctor *doctor, const char *path);

void doctor_counting(struct doctor *doctor);
void doctor_rights(struct doctor *doctor);
void doctor_limits(struct doctor *doctor);
void doctor_latency(struct doctor *doctor);
void doctor_isolation(struct doctor *doctor); /* a part of latency */

/* --- the self-test of the counters, doctor-selftest.c ---------------------------------------- */

struct selftest {
	int status;            /* 0, or why the counters could not be opened */
	uint64_t instructions; /* counted */
	uint64_t cycles;
	uint64_t expected;   /* instructions that the loop has; 0: no loop for this architecture */
	uint64_t iterations; /* each takes at least a cycle on any core that exists, bar two at once
			      */
	uint64_t time_ns;    /* on the CPU */
	uint64_t enabled_ns, running_ns;
	bool user_rdpmc;    /* the kernel lets this thread read the counter by itself */
	unsigned pmc_width; /* bits, 0: not told */
};

/* A loop of known length under cycles:u and instructions:u, about 10 ms. */
void selftest_run(struct selftest *ret);
/* What is wrong with what was counted, in words; false when nothing is. */
bool selftest_judge(const struct selftest *test, char *buf, size_t size);
