/*
 * Header, attributes and the small records of perf.data. Everything is read through struct reader,
 * so that a length that lies ends in "failed", never outside the bytes.
 */
#include "sample/perfdata.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

/*
 * The second version's magic is a number, so it shows the byte order; the first version's is a text
 * on all machines: there the header's size, a small number, shows it.
 */
static int header_magic(const uint8_t *data, size_t size, bool *ret_swap)
{
	uint64_t header_size = 0;

	if (memcmp(data, "PERFILE2", 8) == 0) {
		*ret_swap = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
		return 0;
	}
	if (memcmp(data, "2ELIFREP", 8) == 0) {
		*ret_swap = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
		return 0;
	}
	if (memcmp(data, "PERFFILE", 8) != 0)
		return -EINVAL;
	if (size >= 16)
		memcpy(&header_size, data + 8, sizeof(header_size));
	*ret_swap = header_size > UINT32_MAX;
	return 0;
}

int perfdata_header_decode(const void *data, size_t size, struct perfdata_header *ret,
			   struct err *err)
{
	struct perfdata_header header = {0};
	struct reader r;
	int known;

	if (size == 0)
		return err_set(err, -ENODATA, "empty file: nothing was recorded; record again");
	known = size < 8 ? -EINVAL : header_magic(data, size, &header.swap);
	if (known < 0)
		return err_set(err, known,
			       "not a perf.data file: no PERFILE2 at byte 0; give a file written "
			       "by record");
	r = reader_make(data, size, header.swap);
	reader_skip(&r, 8);
	header.size = reader_u64(&r);
	if (r.failed)
		return err_set(err, -ENODATA, "cut at byte %zu, inside its header; record again",
			       size);
	if (header.size == PERFDATA_PIPE_HEADER_BYTES) {
		header.pipe = true;
		*ret = header;
		return 0;
	}
	header.attr_size = reader_u64(&r);
	header.attrs.offset = reader_u64(&r);
	header.attrs.size = reader_u64(&r);
	header.data.offset = reader_u64(&r);
	header.data.size = reader_u64(&r);
	reader_skip(&r, 16); /* event types, of no use since 2.6.39 */
	/* Before 2.6.32 the header ended here. */
	for (size_t i = 0; i < ARRAY_LEN(header.features); i++)
		if (header.size > r.pos || header.size == 0)
			header.features[i] = reader_u64(&r);
	if (r.failed)
		return err_set(err, -ENODATA, "cut at byte %zu, inside its header; record again",
			       size);
	*ret = header;
	return 0;
}

bool perfdata_has_feature(const struct perfdata_header *header, unsigned bit)
{
	return bit < FEAT_BITS && (header->features[bit / 64] >> (bit % 64) & 1);
}

/*
 * Bit fields of C are laid out from the other end on big-endian machines: read the 8 bytes in
 * memory order and turn the bits of each byte around.
 */
static uint64_t attr_flags(const uint8_t *bytes, bool big_endian)
{
	uint64_t flags = 0;

	for (unsigned i = 0; i < 8; i++) {
		uint8_t byte = bytes[i];

		if (big_endian) {
			byte = (uint8_t)((byte & 0xf0) >> 4 | (byte & 0x0f) << 4);
			byte = (uint8_t)((byte & 0xcc) >> 2 | (byte & 0x33) << 2);
			byte = (uint8_t)((byte & 0xaa) >> 1 | (byte & 0x55) << 1);
		}
		flags |= (uint64_t)byte << (8 * i);
	}
	return flags;
}

bool perfdata_attr_decode(const void *data, size_t size, bool swap, struct perfdata_attr *ret)
{
	struct reader r = reader_make(data, size, swap);
	bool big_endian = swap == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
	struct perfdata_attr attr = {0};
	const uint8_t *bytes;
	uint64_t flags;

	attr.type = reader_u32(&r);
	attr.size = reader_u32(&r);
	attr.config = reader_u64(&r);
	attr.period_or_freq = reader_u64(&r);
	attr.sample_type = reader_u64(&r);
	attr.read_format = reader_u64(&r);
	bytes = reader_take(&r, 8);
	if (!bytes)
		return false;
	flags = attr_flags(bytes, big_endian);
	attr.inherit = flags >> 1 & 1;
	attr.freq = flags >> 10 & 1;
	attr.precise = flags >> 15 & 3;
	attr.sample_id_all = flags >> 18 & 1;
	attr.comm_exec = flags >> 24 & 1;
	attr.use_clockid = flags >> 25 & 1;
	/* What a smaller attribute lacks reads as 0. */
	if (attr.size != 0 && attr.size < r.size)
		r.size = MAX(attr.size, (uint32_t)r.pos);
	reader_skip(&r, 4 + 4 + 8 + 8);
	attr.branch_sample_type = reader_u64(&r);
	attr.regs_user = reader_u64(&r);
	attr.stack_user = reader_u32(&r);
	attr.clockid = (int32_t)reader_u32(&r);
	attr.regs_intr = reader_u64(&r);
	reader_skip(&r, 4);
	attr.max_stack = reader_u16(&r);
	*ret = attr;
	return true;
}

bool record_header_plausible(const struct record_header *header)
{
	return header->size >= 8 && header->type != 0 &&
	       (header->type < 40 || (header->type >= 64 && header->type < 128) ||
		(header->type >= REC_SIMPLEPERF && header->type < REC_SIMPLEPERF_MAX));
}

const char *record_type_name(uint32_t type)
{
	static const char *const kernel[] = {
		NULL,
		"MMAP",
		"LOST",
		"COMM",
		"EXIT",
		"THROTTLE",
		"UNTHROTTLE",
		"FORK",
		"READ",
		"SAMPLE",
		"MMAP2",
		"AUX",
		"ITRACE_START",
		"LOST_SAMPLES",
		"SWITCH",
		"SWITCH_CPU_WIDE",
		"NAMESPACES",
		"KSYMBOL",
		"BPF_EVENT",
		"CGROUP",
		"TEXT_POKE",
		"AUX_OUTPUT_HW_ID",
		"CALLCHAIN_DEFERRED",
	};
	static const char *const tools[] = {
		"HEADER_ATTR",    "HEADER_EVENT_TYPE", "TRACING_DATA",  "BUILD_ID",
		"FINISHED_ROUND", "ID_INDEX",          "AUXTRACE_INFO", "AUXTRACE",
		"AUXTRACE_ERROR", "THREAD_MAP",        "CPU_MAP",       "STAT_CONFIG",
		"STAT",           "STAT_ROUND",        "EVENT_UPDATE",  "TIME_CONV",
		"HEADER_FEATURE", "COMPRESSED",        "FINISHED_INIT", "COMPRESSED2",
		"BPF_METADATA",
	};

	if (type < ARRAY_LEN(kernel))
		return kernel[type];
	if (type >= 64 && type - 64 < ARRAY_LEN(tools))
		return tools[type - 64];
	return type > REC_SIMPLEPERF && type < REC_SIMPLEPERF_MAX ? "SIMPLEPERF" : NULL;
}

bool perfdata_sample_id_decode(const struct perfdata_attr *attr, const uint8_t *body, size_t size,
			       bool swap, struct perfdata_sample_id *ret)
{
	uint64_t type = attr->sample_type;
	struct perfdata_sample_id id = {.pid = -1, .tid = -1, .cpu = UINT32_MAX};
	struct reader r = reader_make(body, size, swap);
	size_t bytes;

	if (!attr->sample_id_all)
		return false;
	bytes = 8 * (size_t)(!!(type & SAMPLE_TID) + !!(type & SAMPLE_TIME) + !!(type & SAMPLE_ID) +
			     !!(type & SAMPLE_STREAM_ID) + !!(type & SAMPLE_CPU) +
			     !!(type & SAMPLE_IDENTIFIER));
	if (bytes > size)
		return false;
	reader_seek(&r, size - bytes);
	if (type & SAMPLE_TID) {
		id.pid = (int32_t)reader_u32(&r);
		id.tid = (int32_t)reader_u32(&r);
	}
	if (type & SAMPLE_TIME) {
		id.time = reader_u64(&r);
		id.has_time = true;
	}
	if (type & SAMPLE_ID)
		id.id = reader_u64(&r);
	if (type & SAMPLE_STREAM_ID)
		reader_skip(&r, 8);
	if (type & SAMPLE_CPU) {
		id.cpu = reader_u32(&r);
		reader_skip(&r, 4);
	}
	if (type & SAMPLE_IDENTIFIER)
		id.id = reader_u64(&r);
	*ret = id;
	return !r.failed;
}

/*
 * size, three zero bytes, 20 bytes padded with zeros. Kernels set the flag by mistake when another
 * recorder asks for build ids at the same time: the bytes then are device and inode numbers.
 */
static void decode_map_build_id(const uint8_t *id, struct build_id *ret)
{
	uint8_t size = id[0];

	if (size == 0 || size > BUILD_ID_MAX || id[1] | id[2] | id[3])
		return;
	for (unsigned i = size; i < BUILD_ID_MAX; i++)
		if (id[4 + i])
			return;
	ret->size = size;
	memcpy(ret->bytes, id + 4, size);
}

bool perfdata_mmap_decode(uint32_t type, uint16_t misc, const uint8_t *body, size_t size, bool swap,
			  struct perfdata_mmap *ret)
{
	struct reader r = reader_make(body, size, swap);
	struct perfdata_mmap map = {0};

	map.pid = (int32_t)reader_u32(&r);
	map.tid = (int32_t)reader_u32(&r);
	map.start = reader_u64(&r);
	map.len = reader_u64(&r);
	map.pgoff = reader_u64(&r);
	map.data = misc & REC_MISC_FLAG;
	if (type == REC_MMAP2) {
		const uint8_t *id = reader_take(&r, 24);

		if (id && misc & REC_MISC_BUILD_ID)
			decode_map_build_id(id, &map.build_id);
		map.prot = reader_u32(&r);
		reader_skip(&r, 4);
	}
	map.path = reader_cstr(&r);
	if (r.failed)
		return false;
	*ret = map;
	return true;
}

bool perfdata_task_decode(const uint8_t *body, size_t size, bool swap, struct perfdata_task *ret)
{
	struct reader r = reader_make(body, size, swap);
	struct perfdata_task task;

	task.pid = (int32_t)reader_u32(&r);
	task.ppid = (int32_t)reader_u32(&r);
	task.tid = (int32_t)reader_u32(&r);
	task.ptid = (int32_t)reader_u32(&r);
	task.time = reader_u64(&r);
	if (r.failed)
		return false;
	*ret = task;
	return true;
}

bool perfdata_comm_decode(uint16_t misc, const uint8_t *body, size_t size, bool swap,
			  struct perfdata_comm *ret)
{
	struct reader r = reader_make(body, size, swap);
	struct perfdata_comm comm = {.exec = misc & REC_MISC_FLAG};

	comm.pid = (int32_t)reader_u32(&r);
	comm.tid = (int32_t)reader_u32(&r);
	comm.comm = reader_cstr(&r);
	if (r.failed)
		return false;
	*ret = comm;
	return true;
}

bool perfdata_ksymbol_decode(const uint8_t *body, size_t size, bool swap,
			     struct perfdata_ksymbol *ret)
{
	struct reader r = reader_make(body, size, swap);
	struct perfdata_ksymbol symbol;

	symbol.addr = reader_u64(&r);
	symbol.len = reader_u32(&r);
	symbol.type = reader_u16(&r);
	symbol.flags = reader_u16(&r);
	symbol.name = reader_cstr(&r);
	if (r.failed)
		return false;
	*ret = symbol;
	return true;
}

/* Pairs of device and inode, in the kernel's order: net, uts, ipc, pid, user, mnt, cgroup. */
bool perfdata_namespaces_decode(const uint8_t *body, size_t size, bool swap,
				struct perfdata_namespaces *ret)
{
	enum {
		PID_NAMESPACE = 3,
		CGROUP_NAMESPACE = 6
	};
	struct reader r = reader_make(body, size, swap);
	struct perfdata_namespaces namespaces = {.pid = (int32_t)reader_u32(&r),
						 .tid = (int32_t)reader_u32(&r)};
	uint64_t count = reader_u64(&r);

	for (uint64_t i = 0; i < count && i <= CGROUP_NAMESPACE && !r.failed; i++) {
		uint64_t inode;

		reader_skip(&r, 8); /* the device: the same for all */
		inode = reader_u64(&r);
		if (i == PID_NAMESPACE)
			namespaces.pid_ns = inode;
		else if (i == CGROUP_NAMESPACE)
			namespaces.cgroup_ns = inode;
	}
	if (r.failed)
		return false;
	*ret = namespaces;
	return true;
}

bool perfdata_cgroup_decode(const uint8_t *body, size_t size, bool swap,
			    struct perfdata_cgroup *ret)
{
	struct reader r = reader_make(body, size, swap);
	struct perfdata_cgroup cgroup;

	cgroup.id = reader_u64(&r);
	cgroup.path = reader_cstr(&r);
	if (r.failed)
		return false;
	*ret = cgroup;
	return true;
}
