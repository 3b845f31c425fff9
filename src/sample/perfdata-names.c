/* Names and tables of the header's features: event names, strings, build ids. */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "sample/perfdata.h"

static const char *const hardware[] = {
	"cycles",
	"instructions",
	"cache-references",
	"cache-misses",
	"branches",
	"branch-misses",
	"bus-cycles",
	"stalled-cycles-frontend",
	"stalled-cycles-backend",
	"ref-cycles",
};
static const char *const software[] = {
	"cpu-clock",        "task-clock",   "page-faults",  "context-switches",
	"cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
	"emulation-faults", "dummy",        "bpf-output",   "cgroup-switches",
};
static const char *const cache[] = {"L1-dcache", "L1-icache", "LLC", "dTLB",
				    "iTLB",      "branch",    "node"};
static const char *const cache_op[] = {"load", "store", "prefetch"};

void perfdata_event_name(const struct perfdata_attr *attr, char *buf, size_t size)
{
	uint64_t config = attr->config;

	switch (attr->type) {
	case 0:
		config &= UINT32_MAX; /* the upper half names the PMU of hybrid machines */
		if (config < ARRAY_LEN(hardware)) {
			snprintf(buf, size, "%s", hardware[config]);
			return;
		}
		break;
	case 1:
		if (config < ARRAY_LEN(software)) {
			snprintf(buf, size, "%s", software[config]);
			return;
		}
		break;
	case 2:
		snprintf(buf, size, "tracepoint:%llu", (unsigned long long)config);
		return;
	case 3:
		config &= UINT32_MAX;
		if ((config & 0xff) < ARRAY_LEN(cache) &&
		    (config >> 8 & 0xff) < ARRAY_LEN(cache_op)) {
			snprintf(buf, size, "%s-%s%s", cache[config & 0xff],
				 cache_op[config >> 8 & 0xff],
				 config >> 16 & 0xff ? "-misses" : "s");
			return;
		}
		break;
	case 4:
		snprintf(buf, size, "r%llx", (unsigned long long)config);
		return;
	default:
		break;
	}
	snprintf(buf, size, "type%u/config=0x%llx/", attr->type, (unsigned long long)config);
}

const char *perfdata_feature_string(struct reader *r, size_t *ret_len)
{
	size_t size = reader_u32(r);
	const char *text = (const char *)reader_take(r, size);

	if (!text)
		return NULL;
	*ret_len = strnlen(text, size);
	return text;
}

bool perfdata_build_id_next(struct reader *r, struct perfdata_build_id *ret)
{
	struct perfdata_build_id entry = {0};
	struct record_header header;
	size_t start = r->pos;
	const uint8_t *bytes;

	if (r->failed || reader_left(r) < 8 + 4 + 24)
		return false;
	header = perfdata_record_header(r->data + start, r->swap);
	if (header.size < 8 + 4 + 24 || header.size > reader_left(r))
		return false;
	reader_skip(r, 8);
	entry.misc = header.misc;
	entry.pid = (int32_t)reader_u32(r);
	bytes = reader_take(r, 24);
	if (!bytes)
		return false;
	/* The 21st byte is the size since 5.13 (misc says so); before, ids were always 20 bytes. */
	entry.build_id.size = header.misc & (1 << 15) ? MIN(bytes[20], BUILD_ID_MAX) : BUILD_ID_MAX;
	memcpy(entry.build_id.bytes, bytes, entry.build_id.size);
	while (!(header.misc & (1 << 15)) && entry.build_id.size > 8 &&
	       entry.build_id.size % 4 == 0 &&
	       memcmp(entry.build_id.bytes + entry.build_id.size - 4, "\0\0\0\0", 4) == 0)
		entry.build_id.size -= 4; /* shorter ids were padded with zeros */
	entry.path = (const char *)r->data + r->pos;
	entry.path_len = strnlen(entry.path, start + (size_t)header.size - r->pos);
	reader_seek(r, start + (size_t)header.size);
	*ret = entry;
	return true;
}
