/*
 * A recording: who ran, what was mapped, and samples whose every frame knows its object. Each
 * sample is looked up at its own time, in the order of the file: ascending for one CPU, interleaved
 * between CPUs. Reads any perf.data (sample/perfdata.h decodes the bytes). Damaged or cut input
 * delivers what it holds; session_stats then says what is missing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "symbols/symbols.h"

/* An object file, JIT region or kernel that frames point into. Lives as long as the session. */
struct dso {
	uint32_t id; /* counts from 0 */
	const char *path;
	enum module_kind kind;
	struct build_id build_id;
	int pid;             /* one that mapped it, 0: none */
	const char *jitdump; /* PERF_MAP: of the same process, NULL: none */
	const char *file;    /* of a kernel module, NULL unknown */
	uint64_t limit;      /* the highest module address that was mapped, exclusive; 0 unknown */
	uint64_t first_start, first_offset; /* of its first mapping; 0, 0 unknown */
};

enum frame_context {
	FRAME_USER,
	FRAME_KERNEL,
	FRAME_HYPERVISOR,
	FRAME_GUEST_KERNEL,
	FRAME_GUEST_USER,
};

struct sample_frame {
	uint64_t ip; /* as sampled; for callers already moved into the call instruction (ip - 1) */
	const struct dso *dso; /* NULL: no mapping covers ip */
	uint64_t address; /* in the dso's module addresses (see enum module_kind); ip without a dso
			   */
	enum frame_context context;
};

struct sample {
	uint64_t time_ns, period, weight, address, id;
	uint64_t branch_count;
	uint32_t event; /* index into session events */
	int32_t pid, tid;
	uint32_t cpu;     /* UINT32_MAX unknown */
	const char *comm; /* at that time; interned: equal texts are equal pointers */
	const struct sample_frame *frames; /* leaf first; frames[0] is the sampled ip */
	uint32_t frame_count;
	bool truncated; /* the stack was cut (depth limit, copied bytes ran out) */
};

struct session_event {
	const char *name;
	uint64_t period, frequency_hz; /* one of them is 0 */
	uint64_t samples;
	uint32_t precise;
	uint32_t type;
	uint64_t config;
};

struct session_stats {
	uint64_t samples, records, unknown_records;
	uint32_t unknown_type; /* of the first of these */
	uint64_t trace_bytes;  /* of processor traces (AUX), which are not read */
	uint64_t lost_records; /* LOST: records that did not fit the ring */
	uint64_t lost_samples; /* LOST_SAMPLES and read_format lost */
	uint64_t throttled;
	uint64_t truncated_stacks;
	uint64_t
		unwound_stacks; /* found in copied stack bytes, now or while recording; of these: */
	uint64_t cut_stacks;    /* that leave the copied bytes */
	uint64_t lost_stacks;   /* that end in code whose callers nothing tells */
	bool unwound_live;      /* all this while recording; then also: */
	uint64_t frame_pointer_stacks; /* found partly by frame pointers */
	char lost_in[256];             /* where most were lost; "" unknown */
	uint64_t missing_bytes; /* the file is cut: bytes the header promised and that are not there
				 */
	bool unfinished;        /* the header was never completed; counts come from scanning */
	uint64_t first_time_ns, last_time_ns;
	char problem[256]; /* empty, or one line: where reading had to stop and why */
};

struct session_info { /* from the header's features; NULL or 0 when absent */
	const char *hostname, *os_release, *arch, *cpu_desc, *cmdline, *version;
	uint32_t cpus_online, cpus_configured;
	bool swapped, pipe, compressed;
	bool branches;         /* recorded with branch stacks */
	int32_t clock;         /* of the times, a clockid_t; -1 unknown */
	uint64_t wall_time_ns; /* of the first sample, since 1970; 0 unknown; after a pass */
};

/* One more thing that the header says, for people: topology, memory, PMUs, groups. */
struct session_fact {
	const char *key; /* "numa", "memory_kib"; a key of JSON */
	const char *text;
	uint64_t number;
	bool is_number; /* the text is the number and its unit */
};

struct session;

/* -EINVAL and words for what is no perf.data, -EISDIR, -ENODATA for an empty file. */
int session_open(const char *path, struct session **ret, struct err *err);

/* Told now and then what is being done ("reading samples") and how much of it is, 0 to 1. */
typedef void (*session_progress_fn)(void *arg, const char *what, double share);
/*
 * What the header tells: info (not wall_time_ns), facts and events, but neither their samples nor
 * statistics nor objects: whoever goes through the samples (session_run(), collect_profile()) looks
 * through the records before, or while. Streams have no header: theirs are looked through at once.
 * fn may be NULL.
 */
int session_open_header(const char *path, session_progress_fn fn, void *arg, struct session **ret,
			struct err *err);
/* fn may be NULL. */
int session_open_watched(const char *path, session_progress_fn fn, void *arg, struct session **ret,
			 struct err *err);
void session_close(struct session *session);

const struct session_info *session_info(const struct session *session);
/* In the order of the header's features. */
const struct session_fact *session_facts(const struct session *session, uint32_t *ret_count);
const struct session_event *session_events(const struct session *session, uint32_t *ret_count);

/*
 * Replays the recording once; fn's negative return stops it and is returned. The sample and its
 * frames are valid during the call only. Damage in the middle is not an error (see session_stats).
 */
int session_run(struct session *session, int (*fn)(void *arg, const struct sample *sample),
		void *arg, struct err *err);

const struct session_stats *session_stats(const struct session *session);
/* The path of a cgroup by its id, or NULL. */
const char *session_cgroup(const struct session *session, uint64_t id);
/* Records tell the namespaces of tasks; known after the first pass. */
bool session_has_namespaces(const struct session *session);
/* Some event's samples tell the cgroup. */
bool session_has_cgroups(const struct session *session);
/* The kernel symbols (kallsyms text) kept inside the recording, or NULL. */
const void *session_kallsyms(const struct session *session, size_t *ret_size);
/* The recorded machine's vdso, NULL when the recording does not hold it. */
const void *session_vdso(const struct session *session, size_t *ret_size);
uint32_t session_dso_count(const struct session *session);
const struct dso *session_dso(const struct session *session, uint32_t id);
