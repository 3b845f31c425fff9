/*
 * One stack costs a cache lookup and a few loads a frame: rules are kept by address, so that
 * mappings and tables are searched once for each address that is seen.
 *
 * Loops are impossible: every step moves up the stack but those out of signal frames, which are
 * counted, and no chain is longer than its buffer.
 */
#include "sample/unwinder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/util.h"
#include "sample/session-internal.h"

#define SLOTS       8192 /* a power of two */
#define CHAIN_MAX   16384
#define SIGNALS_MAX 64

/* perf's numbers of registers. */
#define X86_REG_IP 8
#define ARM_REG_PC 32

#define ABI_64 2

enum slot_kind {
	SLOT_FREE,
	SLOT_UNMAPPED,
	SLOT_BARE, /* mapped, and nothing describes the code */
	SLOT_RULE,
};

struct unwind_slot {
	uint64_t ip;
	const struct unwind_rule *rule;
	uint32_t root;
	uint8_t kind;
	bool exact;
};

static struct unwind_table *const no_table = (struct unwind_table *)-1;

void unwind_modules_fini(struct unwind_modules *modules)
{
	if (!modules->tables)
		return;
	for (uint32_t i = 0; i < modules->count; i++)
		if (modules->tables[i].table != no_table)
			unwind_table_free(modules->tables[i].table);
	free(modules->tables);
	symbols_free(modules->symbols);
	pthread_mutex_destroy(&modules->lock);
	modules->tables = NULL;
}

int session_unwind_init(struct session *session, const struct symbols_options *options)
{
	struct unwind_modules *modules = &session->unwind;
	int r;

	if (modules->tables)
		return 0;
	modules->count = session_dso_count(session);
	modules->tables = calloc(MAX(modules->count, 1u), sizeof(*modules->tables));
	if (!modules->tables)
		return -ENOMEM;
	pthread_mutex_init(&modules->lock, NULL);
	r = symbols_new(options, &modules->symbols);
	if (r < 0)
		unwind_modules_fini(modules);
	return r;
}

static enum unwind_arch arch_of(const struct session *session, const struct perfdata_attr *attr)
{
	const char *arch = session->info.arch;

	if (arch)
		return strncmp(arch, "aarch64", 7) == 0 || strncmp(arch, "arm", 3) == 0
			       ? UNWIND_ARM64
			       : UNWIND_X86_64;
	return attr->regs_user >> ARM_REG_PC & 1 ? UNWIND_ARM64 : UNWIND_X86_64;
}

/* The vdso of this kernel serves recordings of this kernel. */
static bool same_kernel(const struct session *session)
{
	struct utsname here;

	return uname(&here) == 0 &&
	       (!session->info.os_release || strcmp(here.release, session->info.os_release) == 0) &&
	       (!session->info.arch || strcmp(here.machine, session->info.arch) == 0);
}

static struct unwind_table *load(const struct session *session, const struct dso *dso)
{
	struct module_ref ref = {
		.kind = dso->kind, .path = dso->path, .build_id = dso->build_id, .pid = dso->pid};
	struct unwind_table *table;

	if ((dso->kind != MODULE_ELF && dso->kind != MODULE_VDSO) ||
	    (dso->kind == MODULE_VDSO && !same_kernel(session)))
		return no_table;
	return unwind_table_load(session->unwind.symbols, &ref, &table, NULL) < 0 ? no_table
										  : table;
}

/* NULL when there is none. */
static const struct unwind_table *table_of(struct session *session, const struct dso *dso)
{
	struct unwind_modules *modules = &session->unwind;
	struct unwind_table *table;

	if (dso->id >= modules->count)
		return NULL;
	table = modules->tables[dso->id].table;
	if (!table) {
		pthread_mutex_lock(&modules->lock);
		table = modules->tables[dso->id].table;
		if (!table)
			modules->tables[dso->id].table = table = load(session, dso);
		pthread_mutex_unlock(&modules->lock);
	}
	return table == no_table ? NULL : table;
}

static void fill(struct session *session, const struct task *task, enum unwind_arch arch,
		 struct unwind_slot *slot)
{
	uint64_t lookup = slot->exact ? slot->ip : slot->ip - 1, offset;
	const struct map *map = map_store_find(&session->tasks.maps, task->root, lookup);
	const struct unwind_table *table;

	slot->rule = NULL;
	slot->kind = SLOT_UNMAPPED;
	if (!map)
		return;
	slot->kind = SLOT_BARE;
	table = table_of(session, session->dsos.data[map->dso]);
	if (!table || unwind_table_arch(table) != arch)
		return;
	offset = lookup - map->start + map->pgoff;
	slot->rule = unwind_table_find(table, unwind_table_vaddr(table, offset));
	/* A handler returns to the stub's first byte: no call is before it. */
	if (!slot->rule &&
	    unwind_table_is_sigreturn(
		    table, unwind_table_vaddr(table, slot->ip - map->start + map->pgoff)))
		slot->rule = &unwind_signal_rule;
	if (slot->rule)
		slot->kind = SLOT_RULE;
}

struct stack_walk {
	struct unwinder *unwinder;
	const struct task *task;
	enum unwind_arch arch;
	struct unwind_memory memory;
	struct unwind_regs regs;
	size_t len; /* of the chain */
};

static const struct unwind_slot *find_slot(const struct stack_walk *walk, uint64_t ip, bool exact)
{
	struct unwinder *unwinder = walk->unwinder;
	struct unwind_slot *slot =
		&unwinder->slots[hash_pair(ip, (uint64_t)walk->task->root << 1 | exact) &
				 (SLOTS - 1)];

	if (slot->kind == SLOT_FREE || slot->ip != ip || slot->root != walk->task->root ||
	    slot->exact != exact) {
		slot->ip = ip;
		slot->root = walk->task->root;
		slot->exact = exact;
		fill(unwinder->session, walk->task, walk->arch, slot);
	}
	return slot;
}

/* True when a call may have come from there. */
static bool plausible(const struct stack_walk *walk, uint64_t ip)
{
	return ip > 1 && find_slot(walk, ip, false)->kind >= SLOT_BARE;
}

/*
 * A running function that nothing describes: written in assembly, made by a JIT, or not there at
 * all. By frame pointer when that leads to code; a function without a frame has its return address
 * on top of the stack or in the link register.
 */
static enum unwind_result step_bare_leaf(struct stack_walk *walk)
{
	struct unwind_regs by_fp = walk->regs;
	enum unwind_result result = unwind_step_fp(walk->arch, &walk->memory, &by_fp);
	unsigned lr = UNWIND_ARM_LR, sp = UNWIND_X86_SP;
	uint64_t ip;

	if (result == UNWIND_NEXT && plausible(walk, by_fp.ip)) {
		walk->regs = by_fp;
		return UNWIND_NEXT;
	}
	if (walk->arch == UNWIND_ARM64) {
		ip = walk->regs.r[lr] & ((UINT64_C(1) << 48) - 1);
		if (!(walk->regs.known >> lr & 1) || ip == walk->regs.ip)
			return result;
	} else if (!unwind_read(&walk->memory, walk->regs.r[sp], &ip)) {
		return result;
	}
	if (!plausible(walk, ip))
		return result == UNWIND_NEXT ? UNWIND_LOST : result;
	walk->regs.ip = ip;
	if (walk->arch == UNWIND_X86_64)
		walk->regs.r[sp] += 8;
	return UNWIND_NEXT;
}

static enum unwind_result step(struct stack_walk *walk, const struct unwind_slot *slot, bool leaf)
{
	const struct unwind_rule *rule = slot->rule;

	if (rule && (rule->cfa != UNWIND_CFA_UNKNOWN || rule->flags & UNWIND_SIGNAL ||
		     rule->ra.kind == UNWIND_UNDEFINED))
		return unwind_step(rule, walk->arch, &walk->memory, &walk->regs, leaf);
	if (leaf)
		return step_bare_leaf(walk);
	return unwind_step_fp(walk->arch, &walk->memory, &walk->regs);
}

static enum unwind_result walk_stack(struct stack_walk *walk)
{
	uint64_t *chain = walk->unwinder->chain;
	enum unwind_result result;
	unsigned signals = 0;
	bool exact = true, leaf = true;

	for (;;) {
		const struct unwind_slot *slot = find_slot(walk, walk->regs.ip, exact);
		bool signal = slot->rule && slot->rule->flags & UNWIND_SIGNAL;

		if (slot->kind == SLOT_UNMAPPED && !leaf)
			return UNWIND_LOST;
		if (walk->len + 2 > CHAIN_MAX || (signal && signals++ == SIGNALS_MAX))
			return UNWIND_CUT;
		if (exact || signal) /* an address and not a return address follows */
			chain[walk->len++] = CONTEXT_USER;
		chain[walk->len++] = walk->regs.ip;
		result = step(walk, slot, leaf);
		if (result != UNWIND_NEXT)
			return result;
		exact = leaf = signal;
	}
}

/* The registers of the sample by DWARF's numbers. False when ip or sp is not among them. */
static bool read_regs(const struct session *session, const struct perfdata_attr *attr,
		      const struct raw_sample *raw, enum unwind_arch arch, struct unwind_regs *ret)
{
	/* perf: ax bx cx dx si di bp sp ip, then flags and segments, r8-r15 from 16 on */
	static const uint8_t x86_order[] = {0, 3, 2, 1, 4, 5, 6, 7};
	const uint8_t *at = raw->sample.user_regs;
	unsigned ip = arch == UNWIND_ARM64 ? ARM_REG_PC : X86_REG_IP;
	bool have_ip = false;

	memset(ret, 0, sizeof(*ret));
	for (unsigned bit = 0; bit < 64; bit++) {
		unsigned reg = 32;
		uint64_t value;

		if (!(attr->regs_user >> bit & 1))
			continue;
		memcpy(&value, at, 8);
		at += 8;
		if (session->header.swap)
			value = __builtin_bswap64(value);
		if (bit == ip) {
			ret->ip = value;
			have_ip = true;
		} else if (arch == UNWIND_ARM64) {
			reg = bit;
		} else if (bit < 8) {
			reg = x86_order[bit];
		} else if (bit >= 16 && bit < 24) {
			reg = bit - 8;
		}
		if (reg < 32) {
			ret->r[reg] = value;
			ret->known |= UINT32_C(1) << reg;
		}
	}
	return have_ip && ret->known >> (arch == UNWIND_ARM64 ? UNWIND_ARM_SP : UNWIND_X86_SP) & 1;
}

static int unwinder_init(struct unwinder *unwinder, struct session *session)
{
	int r = session_unwind_init(session, NULL);

	if (r < 0)
		return r;
	unwinder->session = session;
	unwinder->slots = calloc(SLOTS, sizeof(*unwinder->slots));
	unwinder->chain = malloc(CHAIN_MAX * sizeof(*unwinder->chain));
	if (unwinder->slots && unwinder->chain)
		return 0;
	unwinder_fini(unwinder);
	return -ENOMEM;
}

void unwinder_fini(struct unwinder *unwinder)
{
	free(unwinder->slots);
	free(unwinder->chain);
	unwinder->slots = NULL;
	unwinder->chain = NULL;
}

/* The kernel's part of the chain stays. */
static size_t copy_kernel_part(uint64_t *chain, const struct perfdata_sample *sample)
{
	unsigned mode = sample->misc & REC_MISC_CPUMODE;
	bool user = mode == REC_MISC_USER || (mode == 0 && !(sample->ip >> 63));
	size_t len = 0;

	for (size_t i = 0; i < sample->chain_len && len < CHAIN_MAX / 2; i++) {
		uint64_t ip = sample->chain[i];

		if (ip == CONTEXT_USER || ip == CONTEXT_USER_DEFERRED)
			break;
		if (ip >= CONTEXT_FIRST)
			user = false;
		if (!user)
			chain[len++] = ip;
	}
	return len;
}

int unwinder_run(struct unwinder *unwinder, struct session *session, const struct raw_sample *raw,
		 struct raw_sample *ret)
{
	const struct perfdata_attr *attr = &session->events.data[raw->event].attr;
	struct stack_walk walk = {.unwinder = unwinder, .task = raw->task};
	enum unwind_result result;

	*ret = *raw;
	if (!raw->sample.stack || !raw->sample.user_regs || raw->sample.user_abi != ABI_64)
		return 0;
	if (!unwinder->slots) {
		int r = unwinder_init(unwinder, session);

		if (r < 0)
			return r;
	}
	walk.arch = arch_of(session, attr);
	if (!read_regs(session, attr, raw, walk.arch, &walk.regs))
		return 0;
	walk.memory = (struct unwind_memory){
		.start = walk.regs.r[walk.arch == UNWIND_ARM64 ? UNWIND_ARM_SP : UNWIND_X86_SP],
		.data = raw->sample.stack,
		.size = (size_t)raw->sample.stack_size,
		.swap = session->header.swap};
	walk.len = copy_kernel_part(unwinder->chain, &raw->sample);
	result = walk_stack(&walk);
	unwinder->unwound++;
	unwinder->cut += result == UNWIND_CUT;
	unwinder->lost += result == UNWIND_LOST;
	ret->sample.chain = unwinder->chain;
	ret->sample.chain_len = walk.len;
	ret->sample.stack = NULL;
	ret->unwound = true;
	ret->cut = result != UNWIND_END;
	return 0;
}
