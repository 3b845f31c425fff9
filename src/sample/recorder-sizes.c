/*
 * How large the rings are and how much of each stack is copied. A copy takes its full size in the
 * ring, however little of the stack there is (the kernel does not write the rest): at 999 Hz copies
 * of 64 KiB are 64 MB a second and CPU. So when stacks are unwound while recording, rings hold half
 * a second of them if they may, and where the mlock limit forbids it copies are smaller.
 */
#include <sys/resource.h>
#include <unistd.h>

#include "base/util.h"
#include "host/host.h"
#include "sample/recorder-internal.h"

#define RING_BYTES        (UINT64_C(1) << 20)
#define LIVE_RING_BYTES   (UINT64_C(32) << 20)
#define LIVE_RINGS_BYTES  (UINT64_C(256) << 20) /* of all CPUs */
#define MEMORY_PART       16
#define RAW_STACK_BYTES   8192
#define LIVE_STACK_MIN    8192
#define LIVE_STACK_MAX    65528
#define LIVE_RING_SAMPLES 64

/* What the mlock limits leave for each of the rings; without the right to lock more. */
static uint64_t lockable(uint64_t rings)
{
	static const struct host this_host = {.root = ""};
	struct host_number paranoid = host_perf_paranoid(&this_host);
	struct host_number mlock_kb = host_perf_mlock_kb(&this_host);
	struct host_rights rights = host_rights(&this_host);
	uint64_t online = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN), total;
	struct rlimit limit;

	if (host_can(&rights, HOST_CAP_IPC_LOCK) || (paranoid.known && paranoid.value < 0))
		return UINT64_MAX;
	if (!mlock_kb.known || mlock_kb.value < 0 || getrlimit(RLIMIT_MEMLOCK, &limit) < 0)
		return RING_BYTES;
	if (limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	total = (uint64_t)mlock_kb.value * 1024 * online + limit.rlim_cur;
	total /= rings;
	return total - MIN(total, (uint64_t)sysconf(_SC_PAGESIZE)); /* the control page */
}

static uint64_t live_ring_bytes(uint64_t rings)
{
	uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t most = MIN(MIN(memory / MEMORY_PART, LIVE_RINGS_BYTES) / rings, LIVE_RING_BYTES);
	uint64_t bytes = RING_BYTES;

	most = MIN(most, lockable(rings));
	while (bytes * 2 <= most)
		bytes *= 2;
	return bytes;
}

void recorder_choose_sizes(struct recorder *recorder)
{
	const struct recorder_options *options = &recorder->options;
	bool raw = options->callgraph == CALLGRAPH_DWARF_RAW;
	bool live = options->callgraph == CALLGRAPH_DWARF || raw;
	uint64_t rings = MAX(cpuset_count(&recorder->cpus), 1u), bytes;

	recorder->ring_bytes = options->ring_bytes ? options->ring_bytes
			       : live              ? live_ring_bytes(rings)
						   : RING_BYTES;
	recorder->stack_bytes = options->stack_bytes;
	if (!live) {
		recorder->stack_bytes = 0;
	} else if (!options->stack_bytes && raw) {
		recorder->stack_bytes = RAW_STACK_BYTES;
	} else if (!options->stack_bytes) {
		bytes = recorder->ring_bytes / LIVE_RING_SAMPLES;
		bytes = MAX(MIN(bytes, (uint64_t)LIVE_STACK_MAX), (uint64_t)LIVE_STACK_MIN);
		recorder->stack_bytes = (uint32_t)bytes & ~7u;
	}
}
