/*
 * How a recording is read: two passes over the file.
 *
 * The first pass (scan.c) walks the record headers once, decodes everything except samples into
 * side events, and notes where the file can be entered. The side events are then replayed in time
 * order (tasks.c) into timelines: which name a thread had, which address space a process had, at
 * any time. The second pass (session-run.c) decodes samples wherever they lie, in parallel, and
 * asks the timelines. Sample order thus does not matter, and memory does not grow with the number
 * of samples. Where the rounds of the recorder tell how far the timelines are known, the second
 * pass follows the first at a distance (frontier.h), so that the disk is read once and all the
 * time.
 */
#pragma once

#include "base/arena.h"
#include "base/hash.h"
#include "base/strtab.h"
#include "sample/frontier.h"
#include "sample/input.h"
#include "sample/live.h"
#include "sample/maps.h"
#include "sample/perfdata.h"
#include "sample/session.h"
#include "sample/unwinder.h"
#include "sample/walk.h"

/* Address spaces that belong to no process. */
#define PID_KERNEL       (-1)
#define PID_GUEST_KERNEL (-2)

enum side_kind {
	SIDE_MMAP,
	SIDE_COMM,
	SIDE_FORK,
	SIDE_CODE, /* an MMAP of what a jitdump tells, inside memory */
};

struct side_event {
	uint64_t key; /* time, or the record's number when the recording has no times */
	union {
		struct {
			uint64_t start, end, pgoff;
		};
		const char *comm; /* of the session's strings; NULL: "" */
	};
	int32_t pid, tid, ppid, ptid;
	uint32_t dso;
	uint32_t sequence; /* keeps the file's order among equal keys */
	uint8_t kind;
	bool flag; /* COMM: exec, FORK: maps are not inherited, MMAP: memory without a file */
};

struct space_version { /* of a process, from key on */
	uint64_t key;
	uint32_t root;
};

struct comm_version { /* of a thread, from key on */
	uint64_t key;
	const char *comm;
};

struct memory_range {
	uint64_t start, end;
};

struct process {
	VEC(struct space_version) versions;
	/* Memory that was told, sorted, apart: to be told again (each mprotect does) says nothing,
	 * and must not take away the code that is in it. */
	VEC(struct memory_range) memory;
	bool exec; /* the next mapping begins a new address space */
};

struct thread {
	VEC(struct comm_version) versions;
};

struct tasks {
	struct map_store maps;
	VEC(struct process) processes;
	VEC(struct thread) threads;
	struct u64_map process_index, thread_index; /* by pid, by tid */
};

/* Who ran at a time, valid for keys in [from, until). */
struct task {
	uint64_t from, until;
	uint32_t root, kernel_root, guest_root;
	const char *comm; /* NULL: unknown */
};

/* Brings them into the order in which they happened. */
void tasks_sort(struct side_event *events, size_t count);
/* Events in their order; those of a later call are not older. */
int tasks_replay(struct tasks *tasks, const struct side_event *events, size_t count);
void tasks_fini(struct tasks *tasks);
void tasks_at(const struct tasks *tasks, int32_t pid, int32_t tid, uint64_t key, struct task *ret);

struct event {
	struct perfdata_attr attr;
	char name[96];
	bool named;
};

/* A range of one file that can be read on its own. */
struct chunk {
	uint32_t file;
	uint64_t offset, end, sequence;
};

/* Code that the kernel made while it ran: each program is an object of its own, because another
 * may have stood at its address before. */
struct ksymbol {
	uint64_t start, end;
	uint32_t name, dso;
};

/* A BPF program came and went, as BPF_EVENT records tell. */
struct bpf_presence {
	uint64_t from, until; /* 0 and UINT64_MAX: not told */
};

/* What code of a BPF program, from an address on, was made of. */
struct bpf_place {
	uint64_t address;
	uint32_t dso, file, line, column; /* file: string, 0 unknown */
};

/* A task's namespaces from key on; 0: not told. */
struct namespaces_version {
	uint64_t key;
	int32_t tid;
	uint32_t order; /* in the file */
	uint64_t pid_ns, cgroup_ns;
};

/* Symbols of an object as the recording brings them. */
enum recorded_type {
	RECORDED_KERNEL,
	RECORDED_KERNEL_MODULE,
	RECORDED_ELF,
};

struct recorded_symbol {
	uint64_t start, size;
	uint32_t name; /* string */
};

struct recorded_object {
	uint32_t type; /* enum recorded_type, or another: addresses are file offsets */
	uint64_t min_vaddr, file_offset; /* of its code; UINT64_MAX unknown */
	size_t first, count;             /* of its symbols, sorted */
};

/* The read_format counter of samples that an event lost; it only grows. */
struct lost_counter {
	uint64_t id, lost;
};

struct lost_counters {
	VEC(struct lost_counter) all;
	struct u64_map index;
};

struct known_build_id {
	uint32_t path; /* string */
	struct build_id id;
};

struct session_object {
	struct dso dso;
	_Atomic(struct unwind_table *) unwind; /* NULL: not asked for yet */
	_Atomic(struct jit_unwind *) jit;      /* of a compiler's code; NULL: none, so far */
};

/* A process mapped its jitdump file, so that recordings tell of it. */
struct jitdump_seen {
	uint64_t key; /* when; 0: before the recording */
	int32_t pid;
	const char *path; /* in the arena */
};

struct session {
	struct input input;
	struct perfdata_header header;
	struct session_info info;
	VEC(struct session_fact) facts;
	struct session_stats stats;
	struct arena arena;
	struct strtab strings;

	VEC(struct event) events;
	VEC(struct session_event) public_events;
	struct u64_map event_ids;
	uint32_t id_count;
	bool timed;
	bool group_reads; /* samples read the counters of a group */

	VEC(struct session_object *) objects; /* by dso id */
	struct hash_index dso_index;
	struct dso *kernel, *guest_kernel, *guest_user, *hypervisor,
		*cut; /* cut: the unknown root of a cut stack */
	VEC(struct known_build_id) build_ids;
	struct u64_map build_id_index; /* by the string of the path */
	VEC(struct jitdump_seen) jitdumps;
	bool kernel_seen;
	uint64_t kernel_mapped; /* key of the first mapping of the kernel: it covers all of its
				   space */
	uint64_t kernel_text;   /* where _text (or _stext) was, 0 unknown */
	bool kernel_text_is_stext;
	/* From cycles to the kernel's clock: zero + (cycles * mult >> shift); mult 0: unknown. */
	uint64_t time_zero, time_mult;
	unsigned time_shift;
	VEC(struct ksymbol) ksymbols;    /* sorted after the scan */
	struct str bpf_infos, bpf_types; /* the features, until the end of the scan */
	VEC(struct bpf_presence) bpf_presences;
	struct u64_map bpf_presence_index; /* by the program's number */
	VEC(struct bpf_place) bpf_places;  /* sorted after the scan */
	VEC(struct recorded_symbol) recorded_symbols;
	VEC(struct recorded_object) recorded_objects;
	struct u64_map recorded_index; /* by the string of the path */
	bool calls_in_chains;          /* callers are addresses of calls, not return addresses */

	VEC(struct side_event) side; /* until the tasks are told */
	struct frontier *frontier;
	bool scanned; /* the first pass is over */
	struct tasks tasks;
	VEC(struct chunk) chunks;
	struct str kallsyms, vdso;
	VEC(struct namespaces_version) namespaces; /* sorted after the scan */
	struct u64_map cgroups;                    /* by id: string of the path */
	struct unwind_modules unwind;
	struct lost_counters lost;
	uint64_t lost_sample_records;
	session_progress_fn progress; /* may be NULL */
	void *progress_arg;
	uint64_t sampled_first_ns, sampled_last_ns; /* as the header says; 0 unknown */
	uint64_t clock_wall_ns, clock_event_ns;     /* the same moment by two clocks; 0 unknown */
};

/* One reader of the second pass; each thread has its own. */
struct task_slot {
	int32_t pid, tid;
	struct task task;
	const char *comm;
};

#define TASK_SLOTS 256
/* A sample is good until as many more were delivered; for its pointers see raw_sample.stays. */
#define SAMPLES_AHEAD 16

/* The last reading of each counter of sampled groups: read-groups.c. */
struct group_counters {
	VEC(uint64_t) values;
	struct u64_map index;
};

/* The event of the last sample: the next tends to be of the same. */
struct last_event {
	uint64_t id;
	uint32_t event;
	bool known;
};

struct sample_reader {
	struct session *session;
	struct walk walk;
	struct raw_sample *ring; /* of SAMPLES_AHEAD */
	unsigned turn;
	struct last_event last_event;
	uint64_t *scratch, *branch_chain;
	struct task_slot *slots;
	struct strtab names; /* of threads that the recording does not name */
	uint64_t *event_samples;
	struct unwinder unwinder;
	uint64_t samples, truncated, first_time, last_time, bad_samples;
	struct lost_counters lost;
	struct group_counters groups;
};

struct raw_sample {
	struct perfdata_sample sample;
	const struct perfdata_attr *attr; /* of the event that took the sample */
	uint32_t event;
	uint64_t key;
	const struct task *task;
	struct task task_then; /* what task points to */
	const char *comm;
	bool stays;   /* all that it points to stays until its chunk is done */
	bool unwound; /* the chain was found in the copied stack bytes */
	bool cut;     /* and does not reach its root */
};

typedef int (*raw_sample_fn)(void *arg, const struct raw_sample *sample);

/* time-range.c: "FROM,TO" as times of the records, both inclusive; NULL: everything. */
int session_time_range(struct session *session, const char *text, uint64_t *ret_from,
		       uint64_t *ret_to, struct err *err);

/* read-groups.c */
bool session_samples_groups(const struct perfdata_attr *attr);
/* The sample once for each member of its group whose counter has grown. */
int group_counters_deliver(struct group_counters *counters, const struct session *session,
			   const struct raw_sample *raw, raw_sample_fn fn, void *arg);
void group_counters_fini(struct group_counters *counters);

/* session.c */
int session_publish_events(struct session *session);
/* Forgets all but the input, and scans it. */
int session_again(struct session *session, struct err *err);
struct event *session_event_by_id(struct session *session, uint64_t id);
int session_add_event(struct session *session, const struct perfdata_attr *attr,
		      uint32_t *ret_index);
int session_add_event_id(struct session *session, uint64_t id, uint32_t event);
/* last: of the same reader. */
uint32_t session_sample_event(const struct session *session, const uint8_t *body, size_t size,
			      struct last_event *last);
const struct perfdata_attr *session_trailer_attr(const struct session *session, const uint8_t *body,
						 size_t size);

/* chain.c */
/* The user part of the chain from branch records that follow the calls; false when there are none.
 * chain: cap words that live as long as the sample. */
bool chain_of_branches(const struct perfdata_attr *attr, bool swap, struct perfdata_sample *sample,
		       uint64_t *chain, size_t cap);
/* As many branch records as the hardware has: what came before them is gone. */
bool chain_fills_branches(const struct perfdata_sample *sample);
/* Takes the markers off the end behind which no address follows: 0 none, 1 the stack was cut, more:
 * its callers are not known (sample/live.h). */
unsigned chain_take_markers(struct perfdata_sample *sample);
bool chain_has_user_part(const struct perfdata_sample *sample);

/* features.c: one feature's bytes; damage is ignored, it only says less. */
int session_feature(struct session *session, unsigned feature, const uint8_t *data, size_t size);
int session_features_read(struct session *session);

/* features-machine.c: what a feature says for people, if anything; damage is ignored. */
int session_feature_fact(struct session *session, unsigned feature, const struct reader *r);
/* The text is copied. */
int session_text_fact(struct session *session, const char *key, const char *value);

/* dsos.c */
int session_dso_of_mmap(struct session *session, const struct perfdata_mmap *map, uint16_t misc,
			int32_t *ret_pid, uint32_t *ret_dso);
int session_dso_add(struct session *session, const char *path, enum module_kind kind,
		    const struct build_id *id, int pid, uint32_t *ret);
int session_dsos_init(struct session *session);
void session_dsos_finish(struct session *session);
int session_add_build_id(struct session *session, const struct perfdata_build_id *entry);

/* "/lib/modules/6.1/kernel/fs/nls-utf8.ko.xz" -> "[nls_utf8]", the name that kallsyms uses. */
void kernel_module_name(const char *path, char *buf, size_t size);

/* recorded-names.c: the features FILE and FILE2; damage only says less. */
int session_recorded_files(struct session *session, struct reader *r);
int session_recorded_files2(struct session *session, struct reader *r);
bool session_has_recorded_names(const struct session *session, const struct dso *dso);
/* The name as the object has it, for an address as frames have it; NULL unknown. */
const char *session_recorded_name(const struct session *session, const struct dso *dso,
				  uint64_t address);
/* Code that a JIT made, in a file of its symbols: its addresses are those of the process. */
bool map_is_jit_symbol_file(const struct perfdata_mmap *map);

/* jit-code.c: side events for the code in jitdump files that the recording knows of. */
int session_jit_code(struct session *session);

/* bpf-programs.c: the features BPF_PROG_INFO and BPF_BTF, kept for the end of the scan. */
int session_bpf_feature(struct session *session, unsigned feature, const uint8_t *data,
			size_t size);
/* A BPF_EVENT record. */
int session_bpf_event(struct session *session, const uint8_t *body, size_t size, uint64_t key);
/* Functions and lines of the programs; side events for those that no KSYMBOL record tells of. */
int session_bpf_programs(struct session *session);
/* The function of a BPF program that has the address, and its place in the source; false: none. */
bool session_ksymbol_place(const struct session *session, const struct dso *dso, uint64_t address,
			   struct inline_frame *ret);

/* namespaces.c: a NAMESPACES record; the end of the first pass; what was told last of a thread, or
 * of its process, by then (NULL: nothing). */
int session_namespaces_add(struct session *session, const uint8_t *body, size_t size, uint64_t key);
void session_namespaces_finish(struct session *session);
const struct namespaces_version *session_namespaces_at(const struct session *session, int32_t pid,
						       int32_t tid, uint64_t key);

/* scan.c: the first pass; done once. */
int session_scan(struct session *session, struct err *err);

/* unwinder.c: where unwinding looks for objects; the first call counts. NULL: the defaults. */
int session_unwind_init(struct session *session, const struct symbols_options *options);

/* session-run.c */
/* Says so when a file was cut, or its disk failed, while it was read. */
void session_check_input(struct session *session);
int sample_reader_init(struct sample_reader *reader, struct session *session);
void sample_reader_fini(struct sample_reader *reader);
/* All samples of a chunk; fn's negative return stops it. */
int sample_reader_run(struct sample_reader *reader, const struct chunk *chunk, raw_sample_fn fn,
		      void *arg);
/* The chunk was read: its mapped pages are not needed any more. */
void session_release(const struct session *session, const struct chunk *chunk);
/* Forgets what earlier readers counted; before the second pass. */
void session_begin_pass(struct session *session);
/* Adds what the reader counted to the session's statistics. */
int sample_reader_finish(struct sample_reader *reader);

struct frame_walk {
	struct sample_frame *frames;
	uint32_t count, cap;
	bool truncated;
};

/* The sampled address, and where its callers begin in the chain. */
struct leaf {
	enum frame_context context, caller_context;
	size_t skip; /* entries of the chain that stand for the leaf */
	bool exact;  /* the next address is one, not a return address */
};

void session_leaf(const struct raw_sample *raw, struct leaf *ret);
/* Appends the frames of the callers (at most chain_len + 1 of them), innermost first; sets
 * truncated. */
void session_callers(const struct session *session, const struct raw_sample *raw,
		     const struct leaf *leaf, struct frame_walk *walk);
/* The mapping that covers the address, and its object, as they were told so far. */
bool session_find_map(const struct session *session, uint32_t root, uint64_t address,
		      struct map *ret_map, struct session_object **ret_object);
/* lookup: an address inside the instruction (return addresses minus 1). */
struct sample_frame session_resolve(const struct session *session, const struct task *task,
				    uint64_t lookup, enum frame_context context);
