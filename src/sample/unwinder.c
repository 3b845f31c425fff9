#include "sample/unwinder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/util.h"
#include "sample/jit-unwind.h"
#include "sample/session-internal.h"

#define ABI_64       2
#define ADDRESS_MASK ((UINT64_C(1) << 48) - 1)

static struct unwind_table *const no_table = (struct unwind_table *)-1;

void session_unwind_fini(struct session *session)
{
	struct unwind_modules *modules = &session->unwind;

	if (!modules->symbols)
		return;
	vec_for_each(&session->objects, object) {
		if ((*object)->unwind != no_table)
			unwind_table_free((*object)->unwind);
		jit_unwind_free((*object)->jit);
	}
	symbols_free(modules->symbols);
	pthread_mutex_destroy(&modules->lock);
	modules->symbols = NULL;
}

int session_unwind_init(struct session *session, const struct symbols_options *options)
{
	struct unwind_modules *modules = &session->unwind;
	int r;

	if (modules->symbols)
		return 0;
	r = symbols_new(options, &modules->symbols);
	if (r == 0)
		pthread_mutex_init(&modules->lock, NULL);
	return r;
}

static enum unwind_arch arch_of(const struct session *session, const struct perfdata_attr *attr)
{
	const char *arch = session->info.arch;

	if (arch)
		return strncmp(arch, "aarch64", 7) == 0 || strncmp(arch, "arm", 3) == 0
			       ? UNWIND_ARM64
			       : UNWIND_X86_64;
	return attr->regs_user >> 32 & 1 /* pc */ ? UNWIND_ARM64 : UNWIND_X86_64;
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

	if (dso->kind == MODULE_VDSO)
		ref.image = session_vdso(session, &ref.image_size);
	if ((dso->kind != MODULE_ELF && dso->kind != MODULE_VDSO) ||
	    (dso->kind == MODULE_VDSO && !ref.image && dso->build_id.size == 0 &&
	     !same_kernel(session)))
		return no_table;
	return unwind_table_open(session->unwind.symbols, &ref, &table, NULL) < 0 ? no_table
										  : table;
}

/* NULL when there is none. */
static const struct unwind_table *table_of(struct session *session, struct session_object *object)
{
	struct unwind_modules *modules = &session->unwind;
	struct unwind_table *table = object->unwind;

	if (!table) {
		pthread_mutex_lock(&modules->lock);
		table = object->unwind;
		if (!table)
			object->unwind = table = load(session, &object->dso);
		pthread_mutex_unlock(&modules->lock);
	}
	return table == no_table ? NULL : table;
}

/*
 * How the compiler of the code says to unwind it, NULL when it does not. Which jitdump belongs to
 * memory that is told of nowhere else is known at the end of the first pass.
 */
static struct jit_unwind *jit_of(struct session *session, struct session_object *object)
{
	struct unwind_modules *modules = &session->unwind;
	const struct dso *dso = &object->dso;
	const char *path = dso->kind == MODULE_JITDUMP ? dso->path
			   : dso->kind == MODULE_PERF_MAP
				   ? __atomic_load_n(&dso->jitdump, __ATOMIC_ACQUIRE)
				   : NULL;
	struct jit_unwind *jit = object->jit;

	if (!path || jit)
		return jit;
	pthread_mutex_lock(&modules->lock);
	jit = object->jit;
	if (!jit && jit_unwind_new(dso->pid, path, &jit) == 0) {
		(void)jit_unwind_update(jit);
		jit_unwind_close(jit);
		object->jit = jit;
	}
	pthread_mutex_unlock(&modules->lock);
	return jit;
}

static void find_code(void *arg, uint64_t ip, bool exact, struct stack_code *ret)
{
	struct unwinder *unwinder = arg;
	struct session *session = unwinder->session;
	enum unwind_arch arch = unwinder->walker.arch;
	struct session_object *object;
	struct jit_unwind *jit;
	uint64_t address;
	struct map map;

	if (!session_find_map(session, unwinder->task->root, exact ? ip : ip - 1, &map, &object))
		return;
	address = ip - map.start + map.pgoff;
	stack_code_of_table(table_of(session, object), arch, address, exact, ret);
	jit = jit_of(session, object);
	if (!jit)
		return;
	/* When it was placed is known, or else what was placed last counts. */
	if (object->dso.kind == MODULE_JITDUMP
		    ? jit_unwind_rule_of_code(jit, arch, address - !exact, &ret->rule)
		    : jit_unwind_rule(jit, arch, jit_unwind_epoch(jit, UINT64_MAX), ip - !exact,
				      &ret->rule))
		ret->kind = STACK_RULE;
}

static int unwinder_init(struct unwinder *unwinder, struct session *session)
{
	int r = session_unwind_init(session, NULL);

	if (r == 0)
		r = stack_walker_init(&unwinder->walker);
	unwinder->session = session;
	unwinder->walker.find = find_code;
	unwinder->walker.arg = unwinder;
	return r;
}

void unwinder_fini(struct unwinder *unwinder)
{
	stack_walker_fini(&unwinder->walker);
}

/* Where the chain's user part begins: behind its marker. 0: there is none. */
static size_t user_part(const struct perfdata_sample *sample)
{
	for (size_t i = 0; i < sample->chain_len; i++)
		if (sample->chain[i] == CONTEXT_USER || sample->chain[i] == CONTEXT_USER_DEFERRED)
			return i + 1;
	return 0;
}

/* The return address that the leaf has not saved; false when it has, or may have. */
static bool unsaved_return(struct unwinder *unwinder, const struct perfdata_attr *attr,
			   const struct perfdata_sample *sample, uint64_t leaf, uint64_t *ret)
{
	struct session *session = unwinder->session;
	uint64_t below = attr->regs_user & ((UINT64_C(1) << UNWIND_ARM_LR) - 1), lr;
	struct stack_code code = {.kind = STACK_UNMAPPED};
	struct session_object *object;
	struct map map;

	memcpy(&lr, sample->user_regs + 8 * __builtin_popcountll(below), sizeof(lr));
	if (session->header.swap)
		lr = __builtin_bswap64(lr);
	lr &= ADDRESS_MASK; /* it may be signed */
	find_code(unwinder, leaf, true, &code);
	*ret = lr;
	return code.kind == STACK_RULE && code.rule.ra.kind == UNWIND_SAME && lr > 1 &&
	       session_find_map(session, unwinder->task->root, lr - 1, &map, &object);
}

/*
 * Frame pointers of arm64: a function that calls nothing makes no frame, and the chain then goes
 * from it to the caller of its caller. Its caller is in the link register, when the recording has
 * it (perf's has, and culprit's) and the leaf's call frame information says that it is not saved.
 */
static int add_leaf_caller(struct unwinder *unwinder, const struct perfdata_attr *attr,
			   const struct raw_sample *raw, struct raw_sample *ret)
{
	const struct perfdata_sample *sample = &raw->sample;
	struct stack_walker *walker = &unwinder->walker;
	size_t leaf = user_part(sample);
	uint64_t caller;

	if (leaf == 0 || leaf >= sample->chain_len || sample->chain_len >= STACK_CHAIN_MAX)
		return 0;
	unwinder->task = raw->task;
	walker->arch = UNWIND_ARM64;
	if (!unsaved_return(unwinder, attr, sample, sample->chain[leaf], &caller) ||
	    (leaf + 1 < sample->chain_len && sample->chain[leaf + 1] == caller))
		return 0;
	memcpy(walker->chain, sample->chain, (leaf + 1) * sizeof(*walker->chain));
	walker->chain[leaf + 1] = caller;
	memcpy(walker->chain + leaf + 2, sample->chain + leaf + 1,
	       (sample->chain_len - leaf - 1) * sizeof(*walker->chain));
	ret->sample.chain = walker->chain;
	ret->sample.chain_len = sample->chain_len + 1;
	return 0;
}

/* A recording of chains by frame pointers with the link register of arm64. */
static bool has_link_register(const struct session *session, const struct perfdata_attr *attr)
{
	return attr->regs_user >> UNWIND_ARM_LR & 1 && session->info.arch &&
	       strcmp(session->info.arch, "aarch64") == 0;
}

int unwinder_run(struct unwinder *unwinder, struct session *session, const struct raw_sample *raw,
		 struct raw_sample *ret)
{
	const struct perfdata_attr *attr = raw->attr;
	const struct perfdata_sample *sample = &raw->sample;
	struct stack_walker *walker = &unwinder->walker;
	unsigned mode = sample->misc & REC_MISC_CPUMODE;
	struct unwind_memory memory;
	struct unwind_regs regs;
	enum unwind_result result;

	*ret = *raw;
	if (!sample->user_regs || sample->user_abi != ABI_64 ||
	    (!sample->stack && !has_link_register(session, attr)))
		return 0;
	if (!walker->slots) {
		int r = unwinder_init(unwinder, session);

		if (r < 0)
			return r;
	}
	if (!sample->stack)
		return add_leaf_caller(unwinder, attr, raw, ret);
	walker->arch = arch_of(session, attr);
	walker->space = raw->task->root;
	unwinder->task = raw->task;
	if (!stack_regs(walker->arch, attr->regs_user, sample->user_regs, session->header.swap,
			&regs))
		return 0;
	memory = (struct unwind_memory){
		.start = regs.r[walker->arch == UNWIND_ARM64 ? UNWIND_ARM_SP : UNWIND_X86_SP],
		.data = sample->stack,
		.size = (size_t)sample->stack_size,
		.swap = session->header.swap};
	stack_walk_begin(walker, sample->chain, sample->chain_len,
			 mode == REC_MISC_USER || (mode == 0 && !(sample->ip >> 63)));
	result = stack_walk(walker, &regs, &memory);
	unwinder->unwound++;
	unwinder->cut += result == UNWIND_CUT;
	unwinder->lost += result == UNWIND_LOST;
	ret->sample.chain = walker->chain;
	ret->sample.chain_len = walker->len;
	ret->sample.stack = NULL;
	ret->unwound = true;
	ret->cut = result != UNWIND_END;
	return 0;
}
