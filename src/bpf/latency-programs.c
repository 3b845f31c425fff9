/* The loader of latency.bpf.c: the only file here that knows libbpf. */
#include "bpf/latency-programs.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <latency.skel.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "base/util.h"
#include "host/host.h"

#define BTF_PATH       "/sys/kernel/btf/vmlinux"
#define BTF_MAX        ((size_t)256 << 20)
#define SETTLE_STEP_NS (2 * NSEC_PER_MSEC)
#define KALLSYMS_MAX   ((size_t)256 << 20)

struct bpf_latency {
	struct latency_programs *programs;
	struct cpuset cpus;
	int *tids;
	struct lat_cpu *states;
	struct lat_record *slots;
	size_t states_bytes, slots_bytes;
	unsigned ring_slots, possible_cpus;
};

const char *bpf_latency_version(void)
{
	return libbpf_version_string() + (*libbpf_version_string() == 'v');
}

/* --- libbpf's words -------------------------------------------------------------------------- */

/* The first warning says what failed, the last line of a verifier's log says why. */
static __thread char first_words[200], last_words[300];

__attribute__((format(printf, 2, 0))) static int collect_words(enum libbpf_print_level level,
							       const char *fmt, va_list args)
{
	char text[1024], *line, *rest = text;

	if (level != LIBBPF_WARN)
		return 0;
	vsnprintf(text, sizeof(text), fmt, args);
	while ((line = strsep(&rest, "\n"))) {
		const char *words = line;

		str_prefix(line, "libbpf: ", &words);
		if (!*words || strstr(words, "-- END PROG LOAD LOG --") ||
		    strstr(words, "-- BEGIN PROG LOAD LOG --"))
			continue;
		if (!*first_words)
			snprintf(first_words, sizeof(first_words), "%s", words);
		else if (!strstr(words, "failed to load"))
			snprintf(last_words, sizeof(last_words), "%s", words);
	}
	return 0;
}

static libbpf_print_fn_t words_begin(void)
{
	*first_words = *last_words = '\0';
	return libbpf_set_print(collect_words);
}

static int words_end(libbpf_print_fn_t before, int r, struct err *err, const char *what)
{
	libbpf_set_print(before);
	if (r < 0)
		err_set(err, r, "%s: %s%s%s%s%s", what, strerror(-r), *first_words ? ": " : "",
			first_words, *last_words ? ": " : "", last_words);
	return r;
}

/* --- whether it can work --------------------------------------------------------------------- */

static int explain_refusal(int code, struct err *err)
{
	struct host host = {.root = ""};
	struct host_text lockdown = host_lockdown(&host);
	struct host_rights rights = host_rights(&host);
	struct utsname name;
	unsigned major = 0, minor = 0;

	if (lockdown.known && !strcmp(lockdown.value, "confidentiality"))
		return err_set(
			err, -EPERM,
			"the kernel is locked down (confidentiality): BPF may not read kernel "
			"memory; boot with lockdown=integrity, or measure with --engine U");
	if (uname(&name) == 0 && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
	    (major < 5 || (major == 5 && minor < 12)))
		return err_set(err, -EOPNOTSUPP,
			       "BPF with atomic operations needs Linux 5.12 or newer, this is %s",
			       name.release);
	if (access(BTF_PATH, R_OK))
		return err_set(err, -EOPNOTSUPP,
			       "the kernel has no type information: " BTF_PATH
			       " is missing (CONFIG_DEBUG_INFO_BTF)");
	if (code == -EPERM || code == -EACCES) {
		if (rights.known &&
		    !(host_can(&rights, HOST_CAP_SYS_ADMIN) ||
		      (host_can(&rights, HOST_CAP_BPF) && host_can(&rights, HOST_CAP_PERFMON))))
			return err_set(err, -EPERM,
				       "BPF needs CAP_BPF and CAP_PERFMON: run as root, or measure "
				       "with --engine U");
		return err_set(err, code,
			       "bpf() is refused although the capabilities are there: a seccomp "
			       "filter or security module of the container forbids it");
	}
	if (code == -ENOSYS)
		return err_set(err, code, "this kernel has no bpf() (CONFIG_BPF_SYSCALL)");
	return code < 0 ? err_set(err, code, "bpf(): %s", strerror(-code)) : 0;
}

int bpf_latency_probe(struct err *err)
{
	/* r0 = 0; exit */
	const struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	libbpf_print_fn_t before = libbpf_set_print(NULL);
	int fd = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "culprit_probe", "Dual BSD/GPL", insns,
			       ARRAY_LEN(insns), NULL);
	int code = fd < 0 ? -errno : 0;

	libbpf_set_print(before);
	if (fd >= 0)
		close(fd);
	return explain_refusal(code, err);
}

/* --- loading --------------------------------------------------------------------------------- */

/* Does the kernel's BTF have the string? Its strings stand in it as they are. */
static bool btf_has(const char *btf, size_t size, const char *name)
{
	char pattern[80];
	int len = snprintf(pattern + 1, sizeof(pattern) - 1, "%s", name);

	pattern[0] = '\0';
	return len > 0 && (size_t)len < sizeof(pattern) - 1 &&
	       memmem(btf, size, pattern, (size_t)len + 2) != NULL;
}

static bool kernel_has_symbol(const char *name)
{
	char *text = NULL, pattern[80];
	size_t size;
	bool found = false;

	if (file_read("/proc/kallsyms", KALLSYMS_MAX, &text, &size, NULL) == 0) {
		snprintf(pattern, sizeof(pattern), " %s\n", name);
		found = strstr(text, pattern) != NULL;
		free(text);
	}
	return found;
}

static bool is_realtime(void)
{
	struct host host = {.root = ""};
	struct host_number rt = host_number(&host, "/sys/kernel/realtime");
	struct utsname name;

	return (rt.known && rt.value == 1) ||
	       (uname(&name) == 0 && strstr(name.version, "PREEMPT_RT"));
}

static bool is_light(const char *name)
{
	return !strcmp(name, "timer_expires") || !strcmp(name, "waking") ||
	       !strcmp(name, "switches");
}

static bool wants_program(const struct bpf_latency_options *options, const char *name, bool rt,
			  bool steal_symbol)
{
	if (!strcmp(name, "timer_starts"))
		return options->remote && options->timerlat;
	if (!strcmp(name, "waking"))
		return options->timerlat;
	if (!strcmp(name, "find_steal_ksym"))
		return options->full && steal_symbol;
	if (!strcmp(name, "find_steal_rq"))
		return options->full && !steal_symbol;
	if (!strcmp(name, "softirq_begin") || !strcmp(name, "softirq_end"))
		return options->full && !rt;
	return options->full || is_light(name);
}

static int choose_programs(struct bpf_latency *set, const struct bpf_latency_options *options,
			   struct err *err)
{
	bool rt = is_realtime(), steal_symbol;
	struct bpf_program *program;
	size_t size;
	char *btf;
	int r;

	r = file_read(BTF_PATH, BTF_MAX, &btf, &size, err);
	if (r < 0)
		return r;
	steal_symbol = btf_has(btf, size, "steal_time") && kernel_has_symbol("steal_time");
	bpf_object__for_each_program(program, set->programs->obj)
	{
		const char *event = bpf_program__section_name(program);
		char type[80];
		bool load;

		str_prefix(event, "tp_btf/", &event);
		snprintf(type, sizeof(type), "btf_trace_%s", event);
		load = wants_program(options, bpf_program__name(program), rt, steal_symbol);
		if (load && !btf_has(btf, size, type)) {
			load = false;
			if (is_light(bpf_program__name(program)))
				r = err_set(err, -EOPNOTSUPP, "the kernel has no tracepoint %s",
					    event);
		}
		bpf_program__set_autoload(program, load);
	}
	free(btf);
	return r < 0 ? r : 0;
}

static int configure(struct bpf_latency *set, const struct bpf_latency_options *options)
{
	struct latency_programs *p = set->programs;
	unsigned measured = cpuset_count(&set->cpus);
	int possible = libbpf_num_possible_cpus();
	struct stat ns;
	int r;

	if (possible < 0)
		return possible;
	if (stat("/proc/self/ns/pid", &ns))
		return -errno;
	p->rodata->cfg_timerlat = options->timerlat;
	p->rodata->cfg_full = options->full;
	p->rodata->cfg_trace = options->trace && options->full;
	p->rodata->cfg_remote = options->remote;
	p->rodata->cfg_ring_mask = options->ring_slots - 1;
	p->rodata->cfg_irq_limit = options->irq_limit_ns;
	p->rodata->cfg_thread_limit = options->thread_limit_ns;
	p->rodata->cfg_stack = options->stack_ns;
	p->rodata->cfg_ns_dev = ns.st_dev;
	p->rodata->cfg_ns_ino = ns.st_ino;
	p->rodata->cfg_last = set->possible_cpus = (unsigned)possible;
	set->states_bytes =
		ALIGN_UP(((size_t)possible + 1) * sizeof(struct lat_cpu), (size_t)getpagesize());
	set->slots_bytes =
		ALIGN_UP((size_t)measured * options->ring_slots * sizeof(struct lat_record),
			 (size_t)getpagesize());
	r = bpf_map__set_max_entries(p->maps.cpus, (unsigned)possible + 1);
	if (r == 0)
		r = bpf_map__set_max_entries(p->maps.stacks, (unsigned)possible);
	if (r == 0)
		r = bpf_map__set_max_entries(p->maps.ring, measured * options->ring_slots);
	return r;
}

static int map_memory(struct bpf_latency *set)
{
	struct latency_programs *p = set->programs;
	void *states, *slots;

	states = mmap(NULL, set->states_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		      bpf_map__fd(p->maps.cpus), 0);
	if (states == MAP_FAILED)
		return -errno;
	set->states = states;
	slots = mmap(NULL, set->slots_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		     bpf_map__fd(p->maps.ring), 0);
	if (slots == MAP_FAILED)
		return -errno;
	set->slots = slots;
	return 0;
}

static int load(struct bpf_latency *set, const struct bpf_latency_options *options, struct err *err)
{
	libbpf_print_fn_t before = words_begin();
	int r;

	set->programs = latency_programs__open();
	if (!set->programs)
		return words_end(before, -errno, err, "open the BPF programs");
	r = choose_programs(set, options, err);
	if (r < 0) {
		libbpf_set_print(before);
		return r;
	}
	r = configure(set, options);
	if (r == 0)
		r = latency_programs__load(set->programs);
	if (r == 0)
		r = map_memory(set);
	if (r == 0)
		r = latency_programs__attach(set->programs);
	return words_end(before, r, err, "load the BPF programs");
}

int bpf_latency_open(const struct bpf_latency_options *options, struct bpf_latency **ret,
		     struct err *err)
{
	struct bpf_latency *set = calloc(1, sizeof(*set));
	int r = -ENOMEM;

	if (!set)
		return r;
	set->cpus = *options->cpus;
	set->ring_slots = options->ring_slots;
	set->tids = calloc(cpuset_count(options->cpus) + 1, sizeof(*set->tids));
	if (set->tids) {
		memcpy(set->tids, options->tids, cpuset_count(options->cpus) * sizeof(*set->tids));
		r = load(set, options, err);
	}
	if (r < 0) {
		bpf_latency_free(set);
		return r;
	}
	*ret = set;
	return 0;
}

void bpf_latency_activate(struct bpf_latency *set)
{
	unsigned i = 0;

	cpuset_for_each(&set->cpus, cpu) {
		struct lat_cpu *c = &set->states[cpu];

		c->ring_base = i * set->ring_slots;
		c->ns_tid = set->tids[i++];
		c->counter = 1;
		__atomic_store_n(&c->active, 1, __ATOMIC_RELEASE);
	}
}

static void drop_finders(struct bpf_latency *set)
{
	struct latency_programs *p = set->programs;

	bpf_link__destroy(p->links.find_steal_rq);
	bpf_link__destroy(p->links.find_steal_ksym);
	p->links.find_steal_rq = p->links.find_steal_ksym = NULL;
}

int bpf_latency_settle(struct bpf_latency *set, unsigned timeout_ms)
{
	uint64_t end = clock_monotonic_ns() + timeout_ms * NSEC_PER_MSEC;
	const struct timespec step = {.tv_nsec = SETTLE_STEP_NS};
	bool seen, steal;

	for (;;) {
		seen = steal = true;
		cpuset_for_each(&set->cpus, cpu) {
			seen &= __atomic_load_n(&set->states[cpu].tid, __ATOMIC_RELAXED) != 0;
			steal &= __atomic_load_n(&set->states[cpu].steal_address,
						 __ATOMIC_RELAXED) != 0;
		}
		/* where it can be found it is found by the switch that shows the thread */
		if (seen || clock_monotonic_ns() >= end)
			break;
		nanosleep(&step, NULL);
	}
	if (seen && !steal)
		nanosleep(&step, NULL);
	drop_finders(set);
	return seen ? 0 : -ETIMEDOUT;
}

struct lat_cpu *bpf_latency_cpu(const struct bpf_latency *set, unsigned cpu)
{
	return &set->states[cpu];
}

struct lat_record *bpf_latency_ring(const struct bpf_latency *set, unsigned cpu)
{
	unsigned i = 0;

	cpuset_for_each(&set->cpus, at) {
		if ((unsigned)at == cpu)
			break;
		i++;
	}
	return set->slots + (size_t)i * set->ring_slots;
}

unsigned *bpf_latency_frozen(struct bpf_latency *set)
{
	return &set->states[set->possible_cpus].active;
}

void bpf_latency_detach(struct bpf_latency *set)
{
	if (!set->programs)
		return;
	latency_programs__detach(set->programs);
	/* a program that runs now still ends: it takes no longer than this */
	nanosleep(&(struct timespec){.tv_nsec = SETTLE_STEP_NS}, NULL);
}

bool bpf_latency_cost(const struct bpf_latency *set, unsigned i, struct bpf_latency_cost *ret)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, set->programs->obj)
	{
		struct bpf_prog_info info = {0};
		unsigned size = sizeof(info);
		const char *event = bpf_program__section_name(program);

		if (!bpf_program__autoload(program) || i--)
			continue;
		if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size))
			memset(&info, 0, sizeof(info));
		str_prefix(event, "tp_btf/", &event);
		snprintf(ret->name, sizeof(ret->name), "%s", bpf_program__name(program));
		snprintf(ret->event, sizeof(ret->event), "%s", event);
		ret->runs = info.run_cnt;
		ret->run_ns = info.run_time_ns;
		ret->misses = info.recursion_misses;
		return true;
	}
	return false;
}

void bpf_latency_free(struct bpf_latency *set)
{
	if (!set)
		return;
	latency_programs__destroy(set->programs);
	if (set->states)
		munmap(set->states, set->states_bytes);
	if (set->slots)
		munmap(set->slots, set->slots_bytes);
	free(set->tids);
	free(set);
}
