/*
 * The bytes of perf.data: header, attributes, features, records. Pure decoding, no files: every
 * function gets bytes and says what they hold. docs/formats/perf-data.md describes the format and
 * what is skipped.
 *
 * Both byte orders; attributes of any size (unknown tails are ignored); the magics PERFILE2 and
 * PERFFILE. Facts come from linux/perf_event.h and the kernel's perf.data-file-format.txt.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "symbols/symbols.h"

#define PERFDATA_HEADER_BYTES      104
#define PERFDATA_PIPE_HEADER_BYTES 16

/* Kernel records. */
enum {
	REC_MMAP = 1,
	REC_LOST = 2,
	REC_COMM = 3,
	REC_EXIT = 4,
	REC_THROTTLE = 5,
	REC_UNTHROTTLE = 6,
	REC_FORK = 7,
	REC_READ = 8,
	REC_SAMPLE = 9,
	REC_MMAP2 = 10,
	REC_AUX = 11,
	REC_ITRACE_START = 12,
	REC_LOST_SAMPLES = 13,
	REC_SWITCH = 14,
	REC_SWITCH_CPU_WIDE = 15,
	REC_NAMESPACES = 16,
	REC_KSYMBOL = 17,
	REC_BPF_EVENT = 18,
	REC_CGROUP = 19,
	REC_TEXT_POKE = 20,
	REC_AUX_OUTPUT_HW_ID = 21,
	REC_CALLCHAIN_DEFERRED = 22,
	REC_KERNEL_MAX = 23,
	/* Records of the tools. */
	REC_HEADER_ATTR = 64,
	REC_HEADER_EVENT_TYPE = 65,
	REC_TRACING_DATA = 66,
	REC_BUILD_ID = 67,
	REC_FINISHED_ROUND = 68,
	REC_ID_INDEX = 69,
	REC_AUXTRACE_INFO = 70,
	REC_AUXTRACE = 71,
	REC_AUXTRACE_ERROR = 72,
	REC_EVENT_UPDATE = 78,
	REC_TIME_CONV = 79,
	REC_HEADER_FEATURE = 80,
	REC_COMPRESSED = 81,
	REC_FINISHED_INIT = 82,
	REC_COMPRESSED2 = 83,
	REC_USER_MAX = 90,
	/* simpleperf's own; their sizes are 32 bits wide, in misc and size. */
	REC_SIMPLEPERF = 32768,
	REC_SIMPLEPERF_KERNEL_SYMBOLS = 32769, /* u32 size, the text of kallsyms */
	REC_SIMPLEPERF_EVENT_ID = 32774,       /* u64 count of pairs: index of the event, id */
	REC_SIMPLEPERF_CALLCHAIN = 32775,      /* notes of its unwinder: samples hold the result */
	REC_SIMPLEPERF_MAX = 32784,
};

/* Feature bits. */
enum {
	FEAT_TRACING_DATA = 1,
	FEAT_BUILD_ID = 2,
	FEAT_HOSTNAME = 3,
	FEAT_OSRELEASE = 4,
	FEAT_VERSION = 5,
	FEAT_ARCH = 6,
	FEAT_NRCPUS = 7,
	FEAT_CPUDESC = 8,
	FEAT_CPUID = 9,
	FEAT_TOTAL_MEM = 10,
	FEAT_CMDLINE = 11,
	FEAT_EVENT_DESC = 12,
	FEAT_CPU_TOPOLOGY = 13,
	FEAT_NUMA_TOPOLOGY = 14,
	FEAT_BRANCH_STACK = 15,
	FEAT_PMU_MAPPINGS = 16,
	FEAT_GROUP_DESC = 17,
	FEAT_AUXTRACE = 18,
	FEAT_STAT = 19,
	FEAT_CACHE = 20,
	FEAT_SAMPLE_TIME = 21,
	FEAT_MEM_TOPOLOGY = 22,
	FEAT_CLOCKID = 23,
	FEAT_DIR_FORMAT = 24,
	FEAT_BPF_PROG_INFO = 25,
	FEAT_BPF_BTF = 26,
	FEAT_COMPRESSED = 27,
	FEAT_CPU_PMU_CAPS = 28,
	FEAT_CLOCK_DATA = 29,
	FEAT_HYBRID_TOPOLOGY = 30,
	FEAT_PMU_CAPS = 31,
	FEAT_SIMPLEPERF_FILE = 128,
	FEAT_SIMPLEPERF_META_INFO = 129,
	FEAT_SIMPLEPERF_FILE2 = 132,
	/* Our own: u32 version (1), u32 kind (1: kallsyms), u64 raw size, one zstd frame. */
	FEAT_CULPRIT_SYMBOLS = 250,
	/* Stacks unwound while recording: u32 version (1), u32 bytes copied of each, u64 stacks,
	   cut, lost, found partly by frame pointers; text of where most were lost. */
	FEAT_CULPRIT_STACKS = 251,
	FEAT_CULPRIT_VDSO = 252,
	FEAT_BITS = 256,
};

/* record_header.misc */
#define REC_MISC_CPUMODE      7
#define REC_MISC_KERNEL       1
#define REC_MISC_USER         2
#define REC_MISC_HV           3
#define REC_MISC_GUEST_KERNEL 4
#define REC_MISC_GUEST_USER   5
#define REC_MISC_FLAG         (1 << 13) /* MMAP: data, COMM: exec, FORK: synthesized without maps */
#define REC_MISC_BUILD_ID     (1 << 14) /* MMAP2: a build id instead of the inode */

/* Bits of sample_type that this decoder tests. */
#define SAMPLE_IP            (1u << 0)
#define SAMPLE_TID           (1u << 1)
#define SAMPLE_TIME          (1u << 2)
#define SAMPLE_ADDR          (1u << 3)
#define SAMPLE_READ          (1u << 4)
#define SAMPLE_CALLCHAIN     (1u << 5)
#define SAMPLE_ID            (1u << 6)
#define SAMPLE_CPU           (1u << 7)
#define SAMPLE_PERIOD        (1u << 8)
#define SAMPLE_STREAM_ID     (1u << 9)
#define SAMPLE_RAW           (1u << 10)
#define SAMPLE_BRANCH_STACK  (1u << 11)
#define SAMPLE_REGS_USER     (1u << 12)
#define SAMPLE_STACK_USER    (1u << 13)
#define SAMPLE_WEIGHT        (1u << 14)
#define SAMPLE_DATA_SRC      (1u << 15)
#define SAMPLE_IDENTIFIER    (1u << 16)
#define SAMPLE_TRANSACTION   (1u << 17)
#define SAMPLE_REGS_INTR     (1u << 18)
#define SAMPLE_PHYS_ADDR     (1u << 19)
#define SAMPLE_AUX           (1u << 20)
#define SAMPLE_CGROUP        (1u << 21)
#define SAMPLE_DATA_PAGE     (1u << 22)
#define SAMPLE_CODE_PAGE     (1u << 23)
#define SAMPLE_WEIGHT_STRUCT (1u << 24)

#define READ_TIME_ENABLED (1u << 0)
#define READ_TIME_RUNNING (1u << 1)
#define READ_ID           (1u << 2)
#define READ_GROUP        (1u << 3)
#define READ_LOST         (1u << 4)

#define BRANCH_CALL_STACK (UINT64_C(1) << 11)
#define BRANCH_HW_INDEX   (UINT64_C(1) << 17)
#define BRANCH_COUNTERS   (UINT64_C(1) << 19)

/* Callchain entries from here up are context markers, not addresses. */
#define CONTEXT_FIRST         ((uint64_t)-4095)
#define CONTEXT_HV            ((uint64_t)-32)
#define CONTEXT_KERNEL        ((uint64_t)-128)
#define CONTEXT_USER          ((uint64_t)-512)
#define CONTEXT_USER_DEFERRED ((uint64_t)-640)
#define CONTEXT_GUEST         ((uint64_t)-2048)
#define CONTEXT_GUEST_KERNEL  ((uint64_t)-2176)
#define CONTEXT_GUEST_USER    ((uint64_t)-2560)

struct perfdata_section {
	uint64_t offset, size;
};

struct perfdata_header {
	bool swap, pipe;
	uint64_t size, attr_size;
	struct perfdata_section attrs, data;
	uint64_t features[FEAT_BITS / 64];
};

struct perfdata_attr {
	uint32_t type, size;
	uint64_t config, period_or_freq, sample_type, read_format, branch_sample_type;
	uint64_t regs_user, regs_intr;
	uint32_t precise, stack_user;
	int32_t clockid;    /* when use_clockid */
	uint16_t max_stack; /* 0: the kernel's default, 127 */
	bool freq, inherit, comm_exec, sample_id_all, use_clockid;
};

struct record_header {
	uint32_t type;
	uint16_t misc;
	uint64_t size; /* whole record; 0: invalid */
};

/* The fields of sample_id, at the end of the kernel's other records. */
struct perfdata_sample_id {
	int32_t pid, tid;
	uint64_t time, id;
	uint32_t cpu;
	bool has_time;
};

/* Pointers go into the record (or into ips); absent parts are NULL and 0. */
struct perfdata_sample {
	uint64_t ip, time, addr, id, stream_id, period, weight, data_src, transaction, phys_addr,
		cgroup;
	uint64_t data_page_size, code_page_size;
	int32_t pid, tid;
	uint32_t cpu;
	uint16_t misc;
	bool has_ip, has_time, has_period;
	const uint64_t *chain; /* native order, aligned; context markers included */
	size_t chain_len;
	const uint8_t *raw;
	size_t raw_size;
	const uint8_t *branches; /* branch_count entries of from, to, flags; file order */
	uint64_t branch_count;
	uint64_t user_abi, intr_abi;
	const uint8_t *user_regs, *intr_regs; /* one u64 per bit of attr.regs_*, file order */
	const uint8_t *stack;
	uint64_t stack_size, stack_room; /* the bytes that are filled, of those that there was room
					    for */
	/* Where the chain (with its count) and the copies (user registers and stack) lie in the
	 * record's body; 0, 0: absent. */
	size_t chain_at, chain_end, copies_at, copies_end;
	/* Readings of a group with ids: entries of group_words u64, file order; value, id, ... */
	const uint8_t *group;
	uint64_t group_count;
	unsigned group_words;
	uint64_t lost; /* read_format LOST, highest value of the group */
	bool has_lost;
};

struct perfdata_mmap {
	int32_t pid, tid;
	uint64_t start, len, pgoff;
	uint32_t prot; /* 0 unknown (MMAP) */
	bool data;     /* mapped without PROT_EXEC */
	struct build_id build_id;
	const char *path; /* in the record, NUL-terminated */
};

struct perfdata_task { /* FORK and EXIT */
	int32_t pid, ppid, tid, ptid;
	uint64_t time;
};

struct perfdata_comm {
	int32_t pid, tid;
	bool exec;
	const char *comm;
};

#define KSYMBOL_UNREGISTER 1

struct perfdata_ksymbol {
	uint64_t addr;
	uint32_t len;
	uint16_t type, flags; /* type 1: BPF, 2: other code out of line; KSYMBOL_UNREGISTER */
	const char *name;
};

/* A task and the inode numbers of its namespaces, 0 unknown. */
struct perfdata_namespaces {
	int32_t pid, tid;
	uint64_t pid_ns, cgroup_ns;
};

struct perfdata_cgroup {
	uint64_t id;
	const char *path; /* "/system.slice/x.service" */
};

/* data: at least the first size bytes of the file; -EINVAL when it is no perf.data, -ENODATA when
 * cut. */
int perfdata_header_decode(const void *data, size_t size, struct perfdata_header *ret,
			   struct err *err);
bool perfdata_has_feature(const struct perfdata_header *header, unsigned bit);

/* An attribute of size bytes (its own size field says how many are meant); false when it is too
 * short. */
bool perfdata_attr_decode(const void *data, size_t size, bool swap, struct perfdata_attr *ret);

/* data: at least 8 bytes. */
static inline struct record_header perfdata_record_header(const uint8_t *data, bool swap)
{
	struct record_header header;
	uint16_t half[2];
	uint32_t type;

	memcpy(&type, data, sizeof(type));
	memcpy(half, data + sizeof(type), sizeof(half));
	header.type = swap ? __builtin_bswap32(type) : type;
	header.misc = swap ? __builtin_bswap16(half[0]) : half[0];
	header.size = swap ? __builtin_bswap16(half[1]) : half[1];
	if (header.type > REC_SIMPLEPERF) {
		header.size |= (uint64_t)header.misc << 16;
		header.misc = 0;
	}
	if (header.size < 8)
		header.size = 0;
	return header;
}
/* True for a header that can start a record; used where the end of the data is unknown. */
bool record_header_plausible(const struct record_header *header);
/* "MMAP2", or NULL for a type that is not known. */
const char *record_type_name(uint32_t type);

/* body: the record behind its header. */
bool perfdata_sample_id_decode(const struct perfdata_attr *attr, const uint8_t *body, size_t size,
			       bool swap, struct perfdata_sample_id *ret);
/*
 * Decodes a sample. A chain that is swapped or unaligned is copied to scratch (of scratch_len
 * entries, enough for 64 KiB records: 8192). False when a length inside leads past the record's
 * end; fields before that are valid and the rest is absent.
 */
bool perfdata_sample_decode(const struct perfdata_attr *attr, const uint8_t *body, size_t size,
			    uint16_t misc, bool swap, uint64_t *scratch, size_t scratch_len,
			    struct perfdata_sample *ret);

bool perfdata_mmap_decode(uint32_t type, uint16_t misc, const uint8_t *body, size_t size, bool swap,
			  struct perfdata_mmap *ret);
bool perfdata_task_decode(const uint8_t *body, size_t size, bool swap, struct perfdata_task *ret);
bool perfdata_comm_decode(uint16_t misc, const uint8_t *body, size_t size, bool swap,
			  struct perfdata_comm *ret);
bool perfdata_cgroup_decode(const uint8_t *body, size_t size, bool swap,
			    struct perfdata_cgroup *ret);
bool perfdata_namespaces_decode(const uint8_t *body, size_t size, bool swap,
				struct perfdata_namespaces *ret);
bool perfdata_ksymbol_decode(const uint8_t *body, size_t size, bool swap,
			     struct perfdata_ksymbol *ret);

/* The name of a generic event; "" in buf never. */
void perfdata_event_name(const struct perfdata_attr *attr, char *buf, size_t size);
/* "u32 length, text, padding" of the features; NULL when it does not fit. Not copied. */
const char *perfdata_feature_string(struct reader *r, size_t *ret_len);
/* The next of a build-id table's entries: fields and a path inside the bytes; false at the end. */
struct perfdata_build_id {
	int32_t pid;
	uint16_t misc;
	struct build_id build_id;
	const char *path;
	size_t path_len;
};
bool perfdata_build_id_next(struct reader *r, struct perfdata_build_id *ret);
