/*
 * Stacks of any registers, bytes and rules, and any records through the unwinder that works while
 * recording: walks end, chains fit, and what comes out are whole records whose samples decode.
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "sample/live.h"
#include "sample/perfdata.h"
#include "sample/stack-walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEAD       (8 + 8 * 33)
#define RULES_MAX  32
#define REGS_X86   UINT64_C(0xff0fff)
#define CHAIN_ROOM 16384

struct rules {
	const uint8_t *data;
	size_t count;
	unsigned asked;
};

/* One of the rules of the input for every address; the same for the same address. */
static void find(void *arg, uint64_t ip, bool exact, struct stack_code *ret)
{
	struct rules *rules = arg;
	uint64_t which = (ip ^ exact) % (rules->count + 3);

	rules->asked++;
	if (which < 3) {
		ret->kind = (enum stack_code_kind)(STACK_UNMAPPED + which);
		return;
	}
	ret->kind = STACK_RULE;
	memcpy(&ret->rule, rules->data + (which - 3) * sizeof(ret->rule), sizeof(ret->rule));
	ret->rule.cfa_reg &= 31;
	ret->rule.ra.base &= 31;
	ret->rule.fp.base &= 31;
	ret->rule.bx.base &= 31;
}

static void walk(const uint8_t *data, size_t size)
{
	enum unwind_arch arch = data[0] & 1 ? UNWIND_ARM64 : UNWIND_X86_64;
	uint64_t mask = arch == UNWIND_ARM64 ? (UINT64_C(1) << 33) - 1 : REGS_X86;
	size_t count = MIN((size_t)data[1] % RULES_MAX, (size - HEAD) / sizeof(struct unwind_rule));
	struct rules rules = {data + HEAD, count, 0};
	static struct stack_walker walker; /* its slots are large: kept, under another number */
	size_t used = HEAD + count * sizeof(struct unwind_rule);
	struct unwind_memory memory = {.data = data + used, .size = size - used};
	struct unwind_regs regs;
	enum unwind_result result;

	if (!stack_regs(arch, mask, data + 8, false, &regs))
		abort();
	memory.start = regs.r[arch == UNWIND_ARM64 ? UNWIND_ARM_SP : UNWIND_X86_SP];
	walker.find = find;
	walker.arg = &rules;
	walker.arch = arch;
	walker.space++;
	if (!walker.slots && stack_walker_init(&walker) < 0)
		return;
	stack_walk_begin(&walker, NULL, 0, true);
	result = stack_walk(&walker, &regs, &memory);
	if (result == UNWIND_NEXT || walker.len == 0 || walker.len > CHAIN_ROOM)
		abort();
}

static void check_output(const struct perf_event_attr *attr, const struct str *out)
{
	struct perf_event_attr file_attr = *attr;
	struct perfdata_attr decoded;
	static uint64_t scratch[8192];
	size_t at = 0;

	live_file_attr(&file_attr);
	if (!perfdata_attr_decode(&file_attr, sizeof(file_attr), false, &decoded))
		abort();
	while (at < out->len) {
		struct perf_event_header header;
		struct perfdata_sample sample;

		memcpy(&header, out->data + at, sizeof(header));
		if (header.size < sizeof(header) || header.size > out->len - at)
			abort();
		if (header.type == PERF_RECORD_SAMPLE &&
		    !perfdata_sample_decode(&decoded, (const uint8_t *)out->data + at + 8,
					    header.size - 8u, header.misc, false, scratch,
					    ARRAY_LEN(scratch), &sample))
			abort();
		at += header.size;
	}
}

static void record(const uint8_t *data, size_t size)
{
	static const char *const no_dirs[] = {NULL};
	struct symbols_options options = {.root = "/nonexistent", .debug_dirs = no_dirs};
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER |
			       PERF_SAMPLE_STACK_USER,
		.sample_regs_user = REGS_X86,
		.sample_stack_user = 512,
		.sample_id_all = 1,
	};
	CLEANUP_FREE uint64_t *copy = malloc(UINT16_MAX + 1);
	struct str out = {0};
	struct live *live;

	if (data[0] & 2)
		attr.sample_type |= PERF_SAMPLE_RAW | PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_WEIGHT;
	if (!copy || live_new(&attr, &options, data[0] & 4, &live) < 0)
		return;
	/* u16 size, u8 type, u8 misc, body */
	for (size_t at = 1; at + 4 <= size;) {
		struct perf_event_header *header = (void *)copy;
		size_t body = MIN((size_t)(data[at] | data[at + 1] << 8), size - at - 4);

		body = MIN(body, (size_t)65520) & ~(size_t)7;
		*header = (struct perf_event_header){.type = data[at + 2],
						     .misc = (uint16_t)(data[at + 3] << 8 | 2),
						     .size = (uint16_t)(body + 8)};
		memcpy(copy + 1, data + at + 4, body);
		(void)live_record_time(live, header);
		if (live_record(live, header, &out) < 0)
			abort();
		at += 4 + body;
	}
	if (!(data[0] & 4))
		check_output(&attr, &out);
	str_clear(&out);
	live_explain(live, &out);
	str_fini(&out);
	live_free(live);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size >= HEAD && data[0] & 0x80)
		walk(data, size);
	else if (size > 0)
		record(data, size);
	return 0;
}
