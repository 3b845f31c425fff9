#include "counters.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *name;
	uint32_t type;
	uint64_t config;
} known_events[] = {
	{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
	{"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
	{"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
	{"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{"branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
	{"bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES},
	{"ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES},
	{"stalled-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
	{"stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
	{"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
	{"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
	{"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
	{"faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
	{"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
	{"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
	{"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
	{"cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
	{"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
	{"migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
};

#define LEN(a)         (sizeof(a) / sizeof((a)[0]))
#define DEFAULT_EVENTS "task-clock,cycles,instructions"

/* "TYPE/CONFIG[/CONFIG1[/CONFIG2]]" in hexadecimal, or "rNNN". */
static bool parse_numbers(struct event *event, const char *text)
{
	uint64_t *const out[] = {&event->config, &event->config1, &event->config2};
	char *end;

	if (text[0] == 'r' && text[1]) {
		event->type = PERF_TYPE_RAW;
		event->config = strtoull(text + 1, &end, 16);
		return *end == '\0';
	}
	event->type = (uint32_t)strtoul(text, &end, 16);
	if (end == text || *end != '/')
		return false;
	for (unsigned i = 0; i < LEN(out) && *end == '/'; i++) {
		text = end + 1;
		*out[i] = strtoull(text, &end, 16);
		if (end == text)
			return false;
	}
	return *end == '\0';
}

static bool parse_modifiers(struct event *event, const char *text)
{
	bool user = false, kernel = false;

	for (; *text; text++) {
		if (*text == 'u')
			user = true;
		else if (*text == 'k')
			kernel = true;
		else
			return false;
	}
	event->exclude_user = kernel && !user;
	event->exclude_kernel = user && !kernel;
	return true;
}

static void parse_event(struct event *event, char *text)
{
	char *code = strchr(text, '='), *modifiers;

	snprintf(event->name, sizeof(event->name), "%.*s",
		 code ? (int)(code - text) : (int)strlen(text), text);
	code = code ? code + 1 : text;
	modifiers = strchr(code, ':');
	if (modifiers)
		*modifiers++ = '\0';
	event->state = EVENT_COUNTED;
	if (modifiers && !parse_modifiers(event, modifiers)) {
		event->state = EVENT_NOT_SUPPORTED;
		snprintf(event->reason, sizeof(event->reason), "modifier :%.20s is not known",
			 modifiers);
		return;
	}
	for (unsigned i = 0; i < LEN(known_events); i++)
		if (strcmp(code, known_events[i].name) == 0) {
			event->type = known_events[i].type;
			event->config = known_events[i].config;
			return;
		}
	if (!parse_numbers(event, code)) {
		event->state = EVENT_NOT_SUPPORTED;
		snprintf(event->reason, sizeof(event->reason),
			 "not an event that libculprit knows");
	}
}

void culprit_events_parse(struct event_list *list, const char *text)
{
	char *copy = strdup(text && *text ? text : DEFAULT_EVENTS), *save = NULL;

	*list = (struct event_list){0};
	if (!copy)
		return;
	for (char *word = strtok_r(copy, ",", &save); word && list->count < EVENTS_MAX;
	     word = strtok_r(NULL, ",", &save))
		parse_event(&list->events[list->count++], word);
	free(copy);
}

#if defined(__x86_64__)
static inline uint64_t counter_register(unsigned index)
{
	uint32_t low, high;

	__asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(index));
	return low | (uint64_t)high << 32;
}

static inline uint64_t timestamp(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return low | (uint64_t)high << 32;
}
#define HAVE_REGISTERS 1
#elif defined(__aarch64__)
/* Event counters have register names, not numbers: one case each. 31 is the cycle counter. */
static uint64_t counter_register(unsigned index)
{
	uint64_t value = 0;

#define COUNTER(n)                                                                   \
	case n:                                                                      \
		__asm__ volatile("isb\n\tmrs %0, pmevcntr" #n "_el0" : "=r"(value)); \
		break;
	switch (index) {
		COUNTER(0)
		COUNTER(1)
		COUNTER(2)
		COUNTER(3)
		COUNTER(4)
		COUNTER(5) COUNTER(6) COUNTER(7) COUNTER(8) COUNTER(9) COUNTER(10) COUNTER(11)
			COUNTER(12) COUNTER(13) COUNTER(14) COUNTER(15) COUNTER(16) COUNTER(17)
				COUNTER(18) COUNTER(19) COUNTER(20) COUNTER(21) COUNTER(22)
					COUNTER(23) COUNTER(24) COUNTER(25) COUNTER(26) COUNTER(27)
						COUNTER(28) COUNTER(29) COUNTER(30) case 31
		    : __asm__ volatile("isb\n\tmrs %0, pmccntr_el0"
				       : "=r"(value));
		break;
	}
#undef COUNTER
	return value;
}

static inline uint64_t timestamp(void)
{
	uint64_t value;

	__asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(value));
	return value;
}
#define HAVE_REGISTERS 1
#else
#define HAVE_REGISTERS 0
#endif

static bool user_access_allowed(void)
{
#if defined(__aarch64__)
	FILE *file = fopen("/proc/sys/kernel/perf_user_access", "re");
	int allowed = 0;

	if (!file)
		return false;
	if (fscanf(file, "%d", &allowed) != 1)
		allowed = 0;
	fclose(file);
	return allowed == 1;
#else
	return false;
#endif
}

static int event_open(const struct event *event, int group_fd)
{
	struct perf_event_attr attr = {
		.type = event->type,
		.size = sizeof(attr),
		.config = event->config,
		.config1 = event->config1,
		.config2 = event->config2,
		.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |
			       PERF_FORMAT_TOTAL_TIME_RUNNING,
		.pinned = group_fd < 0,
		.exclude_user = event->exclude_user,
		.exclude_kernel = event->exclude_kernel,
		.exclude_hv = 1,
	};
	bool hardware = event->type != PERF_TYPE_SOFTWARE && event->type != PERF_TYPE_TRACEPOINT;
	int fd;

	/* arm64: bit 1 of config1 asks for reading from user space, bit 0 for 64 bits of cycles. */
	if (hardware && attr.config1 == 0 && user_access_allowed()) {
		attr.config1 =
			attr.type == PERF_TYPE_HARDWARE && attr.config == PERF_COUNT_HW_CPU_CYCLES
				? 3
				: 2;
		fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, group_fd,
				  PERF_FLAG_FD_CLOEXEC);
		if (fd >= 0)
			return fd;
		attr.config1 = 0;
	}
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, group_fd, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static void drop(struct event *event, int error)
{
	event->state = EVENT_NOT_SUPPORTED;
	snprintf(event->reason, sizeof(event->reason), "%s",
		 error == -ENOENT || error == -EOPNOTSUPP || error == -ENODEV
			 ? "this machine does not have it"
		 : error == -EACCES || error == -EPERM
			 ? "not permitted: sysctl kernel.perf_event_paranoid=2 or less"
			 : strerror(-error));
}

/* One event alone: user mode only when the kernel's share is forbidden. */
static void probe_one(struct event *event)
{
	int fd = event_open(event, -1);

	if ((fd == -EACCES || fd == -EPERM) && !event->exclude_kernel && !event->exclude_user) {
		event->exclude_kernel = true;
		fd = event_open(event, -1);
		if (fd >= 0)
			strncat(event->name, ":u", sizeof(event->name) - strlen(event->name) - 1);
	}
	if (fd >= 0)
		close(fd);
	else
		drop(event, fd);
}

/* Do the counters really run? A pinned group that does not fit reads nothing. */
static int try_group(const struct event_list *list)
{
	struct counters c;
	uint64_t values[EVENTS_MAX];
	int r = culprit_counters_open(&c, list);

	if (r < 0)
		return r;
	r = c.count == 0 || culprit_counters_read(&c, values) ? 0 : -EBUSY;
	culprit_counters_close(&c);
	return r;
}

void culprit_events_probe(struct event_list *list)
{
	for (unsigned i = 0; i < list->count; i++)
		if (list->events[i].state == EVENT_COUNTED)
			probe_one(&list->events[i]);
	/* The last hardware event goes until the rest fits. */
	for (unsigned i = list->count; i-- > 0 && try_group(list) < 0;) {
		struct event *event = &list->events[i];

		if (event->state != EVENT_COUNTED || event->type == PERF_TYPE_SOFTWARE)
			continue;
		event->state = EVENT_NOT_COUNTED;
		snprintf(event->reason, sizeof(event->reason),
			 "no counter is free for it beside the others");
	}
}

int culprit_counters_open(struct counters *c, const struct event_list *list)
{
	long page = sysconf(_SC_PAGESIZE);
	int r = 0;

	*c = (struct counters){.direct = true};
	for (unsigned i = 0; i < list->count && r >= 0; i++) {
		void *map;

		if (list->events[i].state != EVENT_COUNTED)
			continue;
		r = event_open(&list->events[i], c->count ? c->fds[0] : -1);
		if (r < 0)
			break;
		map = mmap(NULL, (size_t)page, PROT_READ, MAP_SHARED, r, 0);
		c->fds[c->count] = r;
		c->pages[c->count] = map == MAP_FAILED ? NULL : map;
		c->event_of[c->count++] = i;
		if (map == MAP_FAILED)
			c->direct = false;
	}
	if (r < 0) {
		culprit_counters_close(c);
		return r;
	}
	c->tick_mult = 0;
	if (HAVE_REGISTERS && c->count > 0 && c->pages[0] && c->pages[0]->cap_user_time &&
	    c->pages[0]->time_shift < 32) {
		c->tick_mult = c->pages[0]->time_mult;
		c->tick_shift = c->pages[0]->time_shift;
	}
	for (unsigned i = 0; i < c->count; i++) {
		const struct event *event = &list->events[c->event_of[i]];
		const struct perf_event_mmap_page *pc = c->pages[i];

		if (pc && !pc->cap_user_rdpmc &&
		    !(event->type == PERF_TYPE_SOFTWARE &&
		      event->config == PERF_COUNT_SW_TASK_CLOCK && pc->cap_user_time))
			c->direct = false;
	}
	return 0;
}

void culprit_counters_close(struct counters *c)
{
	long page = sysconf(_SC_PAGESIZE);

	for (unsigned i = c->count; i-- > 0;) {
		if (c->pages[i])
			munmap(c->pages[i], (size_t)page);
		close(c->fds[i]);
	}
	*c = (struct counters){0};
}

#if HAVE_REGISTERS
static inline void barrier(void)
{
	__asm__ volatile("" ::: "memory");
}

/* time_enabled of a task's event is the time the task was running: its task clock. */
static inline uint64_t enabled_now(const volatile struct perf_event_mmap_page *pc)
{
	uint64_t cycles = timestamp(), quotient, remainder;

	if (pc->cap_user_time_short)
		cycles = pc->time_cycles + ((cycles - pc->time_cycles) & pc->time_mask);
	quotient = cycles >> pc->time_shift;
	remainder = cycles & ((UINT64_C(1) << pc->time_shift) - 1);
	return pc->time_enabled + pc->time_offset + quotient * pc->time_mult +
	       ((remainder * pc->time_mult) >> pc->time_shift);
}

static inline bool read_direct(const volatile struct perf_event_mmap_page *pc, uint64_t *ret)
{
	uint32_t sequence, index;
	unsigned unused_bits;
	uint64_t value, raw;

	do {
		sequence = pc->lock;
		barrier();
		if (__builtin_expect(!pc->cap_user_rdpmc, 0)) {
			value = enabled_now(pc);
		} else {
			index = pc->index;
			if (__builtin_expect(index == 0, 0))
				return false;
			unused_bits = 64u - pc->pmc_width;
			value = (uint64_t)pc->offset;
			raw = counter_register(index - 1) << unused_bits;
			value += (uint64_t)((int64_t)raw >> unused_bits);
		}
		barrier();
	} while (__builtin_expect(pc->lock != sequence, 0));
	*ret = value;
	return true;
}

uint64_t culprit_counters_ticks(const struct counters *c)
{
	(void)c;
	return timestamp();
}
#else
static inline bool read_direct(const volatile struct perf_event_mmap_page *pc, uint64_t *ret)
{
	(void)pc;
	(void)ret;
	return false;
}

uint64_t culprit_counters_ticks(const struct counters *c)
{
	(void)c;
	return 0;
}
#endif

static __attribute__((noinline)) bool read_group(const struct counters *c, uint64_t *values)
{
	uint64_t words[3 + EVENTS_MAX];
	ssize_t got = read(c->fds[0], words, sizeof(words));

	if (got < (ssize_t)((3 + c->count) * sizeof(*words)) || words[0] != c->count ||
	    words[2] == 0) {
		memset(values, 0, c->count * sizeof(*values));
		return false;
	}
	memcpy(values, words + 3, c->count * sizeof(*values));
	return true;
}

bool culprit_counters_read(const struct counters *c, uint64_t *values)
{
	unsigned i = 0;

	if (c->direct)
		while (i < c->count && read_direct(c->pages[i], &values[i]))
			i++;
	return i == c->count || read_group(c, values);
}
