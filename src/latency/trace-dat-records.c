/*
 * trace.dat made of latency records: what engines without the kernel's tracers have in their rings
 * looks to trace-cmd and KernelShark as if those tracers had written it.
 *
 * The event formats are those of the kernel's tracers, with numbers of our own. Functions have only
 * names here, so each gets an address that the file's list of functions resolves again.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpuset.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/strtab.h"
#include "base/util.h"
#include "base/vec.h"
#include "latency/trace-dat-internal.h"
#include "latency/trace-dat-pages.h"
#include "latency/trace-dat.h"

#define FRAMES_MAX   256
#define COMM_BYTES   16
#define FUNCTIONS    UINT64_C(0xffffffff81000000) /* address of the first function */
#define FLAG_HARDIRQ 0x08

enum {
	ID_STACK = 4,
	ID_PRINT = 5,
	ID_OSNOISE = 16,
	ID_TIMERLAT = 17,
	ID_GAP = 101,
	ID_NMI,
	ID_IRQ,
	ID_SOFTIRQ,
	ID_THREAD,
	ID_SWITCH,
	ID_WORK,
	ID_HRTIMER,
};

#define FIELD(type, offset, size, is_signed) \
	"\tfield:" type ";\toffset:" #offset ";\tsize:" #size ";\tsigned:" #is_signed ";\n"
#define COMMON                                               \
	FIELD("unsigned short common_type", 0, 2, 0)         \
	FIELD("unsigned char common_flags", 2, 1, 0)         \
	FIELD("unsigned char common_preempt_count", 3, 1, 0) \
	FIELD("int common_pid", 4, 4, 1) "\n"
#define SPAN      FIELD("u64 start", 8, 8, 0) FIELD("u64 duration", 16, 8, 0)
#define SPAN_FMT  "start %llu.%09u duration %llu ns"
#define SPAN_ARGS "(REC->start) / 1000000000UL, (REC->start) % 1000000000UL, REC->duration"

static const struct {
	const char *system, *name;
	unsigned id;
	const char *fields, *print;
} formats[] = {
	{"ftrace", "kernel_stack", ID_STACK,
	 FIELD("int size", 8, 4, 1) FIELD("unsigned long caller[8]", 16, 64, 0),
	 "\"\\t=> %ps\\n\\t=> %ps\\n\\t=> %ps\\n\" \"\\t=> %ps\\n\\t=> %ps\\n\\t=> %ps\\n\" "
	 "\"\\t=> %ps\\n\\t=> %ps\\n\", (void *)REC->caller[0], (void *)REC->caller[1], "
	 "(void *)REC->caller[2], (void *)REC->caller[3], (void *)REC->caller[4], "
	 "(void *)REC->caller[5], (void *)REC->caller[6], (void *)REC->caller[7]"},
	{"ftrace", "print", ID_PRINT,
	 FIELD("unsigned long ip", 8, 8, 0) FIELD("char buf[]", 16, 0, 0),
	 "\"%ps: %s\", (void *)REC->ip, REC->buf"},
	{"ftrace", "osnoise", ID_OSNOISE,
	 FIELD("u64 noise", 8, 8, 0) FIELD("u64 runtime", 16, 8, 0) FIELD(
		 "u64 max_sample", 24, 8, 0) FIELD("unsigned int hw_count", 32, 4, 0)
		 FIELD("unsigned int nmi_count", 36, 4, 0) FIELD("unsigned int irq_count", 40, 4, 0)
			 FIELD("unsigned int softirq_count", 44, 4, 0)
				 FIELD("unsigned int thread_count", 48, 4, 0),
	 "\"noise:%llu\\tmax_sample:%llu\\thw:%u\\tnmi:%u\\tirq:%u\\tsoftirq:%u\\tthread:%u\\n\", "
	 "REC->noise, REC->max_sample, REC->hw_count, REC->nmi_count, REC->irq_count, "
	 "REC->softirq_count, REC->thread_count"},
	{"ftrace", "timerlat", ID_TIMERLAT,
	 FIELD("unsigned int seqnum", 8, 4, 0) FIELD("int context", 12, 4, 1)
		 FIELD("u64 timer_latency", 16, 8, 0),
	 "\"seq:%u\\tcontext:%d\\ttimer_latency:%llu\\n\", REC->seqnum, REC->context, "
	 "REC->timer_latency"},
	{"osnoise", "sample_threshold", ID_GAP, SPAN FIELD("u64 interference", 24, 8, 0),
	 "\"" SPAN_FMT " interference %llu\", " SPAN_ARGS ", REC->interference"},
	{"osnoise", "nmi_noise", ID_NMI, SPAN, "\"" SPAN_FMT "\", " SPAN_ARGS},
	{"osnoise", "irq_noise", ID_IRQ,
	 SPAN FIELD("__data_loc char[] desc", 24, 4, 1) FIELD("int vector", 28, 4, 1),
	 "\"%s:%d " SPAN_FMT "\", __get_str(desc), REC->vector, " SPAN_ARGS},
	{"osnoise", "softirq_noise", ID_SOFTIRQ, SPAN FIELD("int vector", 24, 4, 1),
	 "\"%8s:%d " SPAN_FMT "\", __print_symbolic(REC->vector, { 0, \"HI\" }, { 1, \"TIMER\" }, "
	 "{ 2, \"NET_TX\" }, { 3, \"NET_RX\" }, { 4, \"BLOCK\" }, { 5, \"IRQ_POLL\" }, "
	 "{ 6, \"TASKLET\" }, { 7, \"SCHED\" }, { 8, \"HRTIMER\" }, { 9, \"RCU\" }), "
	 "REC->vector, " SPAN_ARGS},
	{"osnoise", "thread_noise", ID_THREAD,
	 FIELD("char comm[16]", 24, 16, 1) SPAN FIELD("pid_t pid", 40, 4, 1),
	 "\"%8s:%d " SPAN_FMT "\", REC->comm, REC->pid, " SPAN_ARGS},
	{"sched", "sched_switch", ID_SWITCH,
	 FIELD("char prev_comm[16]", 8, 16, 1) FIELD("pid_t prev_pid", 24, 4, 1)
		 FIELD("int prev_prio", 28, 4, 1) FIELD("long prev_state", 32, 8, 1)
			 FIELD("char next_comm[16]", 40, 16, 1) FIELD("pid_t next_pid", 56, 4, 1)
				 FIELD("int next_prio", 60, 4, 1),
	 "\"prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%ld ==> next_comm=%s next_pid=%d "
	 "next_prio=%d\", REC->prev_comm, REC->prev_pid, REC->prev_prio, REC->prev_state, "
	 "REC->next_comm, REC->next_pid, REC->next_prio"},
	{"workqueue", "workqueue_execute_start", ID_WORK,
	 FIELD("void * work", 8, 8, 0) FIELD("void * function", 16, 8, 0),
	 "\"work struct %p: function %ps\", REC->work, REC->function"},
	{"timer", "hrtimer_expire_entry", ID_HRTIMER, FIELD("void * function", 8, 8, 0),
	 "\"function=%ps\", REC->function"},
};

static const char page_format[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				  "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				  "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				  "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
static const char header_event[] = "# compressed entry header\n"
				   "\ttype_len    :    5 bits\n"
				   "\ttime_delta  :   27 bits\n"
				   "\tarray       :   32 bits\n\n"
				   "\tpadding     : type == 29\n"
				   "\ttime_extend : type == 30\n"
				   "\ttime_stamp : type == 31\n"
				   "\tdata max type_len  == 28\n";

/* --- what is collected ------------------------------------------------------------------------ */

struct dat {
	struct latency_sink sink;
	VEC(struct dat_pages *) cpus; /* by number, NULL: nothing yet */
	struct strtab functions;
	struct strtab comms;
	struct u64_map comm_of; /* pid to an id in comms */
	VEC(int) pids;          /* in order of appearance */
};

static struct dat_pages *pages_of(struct dat *dat, unsigned cpu)
{
	if (cpu >= CPUSET_MAX)
		return NULL;
	while (dat->cpus.len <= cpu)
		if (vec_push(&dat->cpus, NULL) < 0)
			return NULL;
	if (!dat->cpus.data[cpu])
		dat->cpus.data[cpu] = calloc(1, sizeof(*dat->cpus.data[cpu]));
	return dat->cpus.data[cpu];
}

/* --- fields ---------------------------------------------------------------------------------- */

static void set(struct dat_record *raw, size_t offset, uint64_t value, size_t size)
{
	uint32_t v32 = (uint32_t)value;
	uint16_t v16 = (uint16_t)value;

	memcpy(raw->bytes + offset,
	       size == 8   ? (const void *)&value
	       : size == 4 ? (const void *)&v32
			   : (const void *)&v16,
	       size);
	raw->size = MAX(raw->size, offset + size);
}

static void begin(struct dat_record *raw, unsigned id, uint8_t flags, int pid)
{
	memset(raw, 0, sizeof(*raw));
	set(raw, 0, id, 2);
	raw->bytes[2] = flags;
	set(raw, 4, (uint32_t)MAX(pid, 0), 4);
}

static void set_comm(struct dat_record *raw, size_t offset, const char *comm)
{
	size_t len = comm ? strnlen(comm, COMM_BYTES - 1) : 0;

	if (len)
		memcpy(raw->bytes + offset, comm, len);
	raw->size = MAX(raw->size, offset + COMM_BYTES);
}

/* 0: no memory. */
static uint64_t address_of(struct dat *dat, const char *function)
{
	char name[128];
	uint32_t id;

	snprintf(name, sizeof(name), "%s", *function ? function : "unknown");
	for (char *at = name; *at; at++)
		if ((unsigned char)*at <= ' ')
			*at = '_';
	if (strtab_intern_text(&dat->functions, name, &id) < 0)
		return 0;
	return FUNCTIONS + (uint64_t)id * 16;
}

static int learn(struct dat *dat, int pid, const char *comm)
{
	uint32_t have, id;
	bool known;
	int r;

	if (pid <= 0 || !comm || *comm == '\0')
		return 0;
	known = u64_map_get(&dat->comm_of, (uint64_t)pid, &have);
	if (known && strcmp(strtab_text(&dat->comms, have), comm) == 0)
		return 0;
	r = strtab_intern_text(&dat->comms, comm, &id);
	if (r == 0)
		r = u64_map_put(&dat->comm_of, (uint64_t)pid, id);
	return r < 0 || known ? r : vec_push(&dat->pids, pid);
}

/* --- records --------------------------------------------------------------------------------- */

/* The function that a noise names, as an event of its own in front; a kworker's only where its work
 * does not stand there already. */
static int put_function(struct dat *dat, struct dat_pages *cpu, const struct latency_record *record,
			bool timer)
{
	bool work = record->kind == LATENCY_WORK;
	int pid = work || timer ? record->pid : record->noise.number;
	uint64_t address = address_of(dat, work ? record->work.function : record->noise.function);
	struct dat_record raw;

	if (address == 0)
		return -ENOMEM;
	if (!timer && !work && cpu->work == address && cpu->work_pid == pid)
		return 0;
	if (!timer) {
		cpu->work = address;
		cpu->work_pid = pid;
	}
	begin(&raw, timer ? ID_HRTIMER : ID_WORK, timer ? FLAG_HARDIRQ : 0, pid);
	set(&raw, timer ? 8 : 16, address, 8);
	dat_pages_put(cpu, record->time_ns, &raw);
	return 0;
}

static void set_span(struct dat_record *raw, int64_t start_ns, int64_t duration_ns)
{
	set(raw, 8, (uint64_t)MAX(start_ns, 0), 8);
	set(raw, 16, (uint64_t)MAX(duration_ns, 0), 8);
}

static int put_noise(struct dat *dat, struct dat_pages *cpu, const struct latency_record *record)
{
	static const unsigned ids[NOISE_CLASSES] = {ID_GAP, ID_NMI, ID_IRQ, ID_SOFTIRQ, ID_THREAD};
	const char *name = record->noise.name ? record->noise.name : "unknown";
	size_t len = MIN(strlen(name), (size_t)63) + 1;
	enum noise_class class = record->noise.class;
	struct dat_record raw;
	int r = 0;

	if (record->noise.function && (class == NOISE_IRQ || class == NOISE_THREAD))
		r = put_function(dat, cpu, record, class == NOISE_IRQ);
	if (r < 0 || (unsigned)class >= NOISE_CLASSES)
		return r;
	begin(&raw, ids[class], 0, record->pid);
	set_span(&raw, record->noise.start_ns, record->noise.duration_ns);
	switch (class) {
	case NOISE_UNEXPLAINED:
		set(&raw, 24, 0, 8);
		break;
	case NOISE_IRQ:
		set(&raw, 24, len << 16 | 32, 4);
		set(&raw, 28, (uint32_t)record->noise.number, 4);
		memcpy(raw.bytes + 32, name, len - 1);
		raw.size = 32 + len;
		break;
	case NOISE_SOFTIRQ:
		set(&raw, 24, (uint32_t)record->noise.number, 4);
		break;
	case NOISE_THREAD:
		set_comm(&raw, 24, name);
		set(&raw, 40, (uint32_t)record->noise.number, 4);
		r = learn(dat, record->noise.number, name);
		break;
	default:
		break;
	}
	dat_pages_put(cpu, record->time_ns, &raw);
	return r;
}

static int put_stack(struct dat *dat, struct dat_pages *cpu, const struct latency_record *record)
{
	unsigned count = MIN(record->stack.count, (unsigned)FRAMES_MAX);
	struct dat_record raw;

	begin(&raw, ID_STACK, 0, record->pid);
	set(&raw, 8, count, 4);
	/* The format promises eight. */
	raw.size = 16 + 8 * (size_t)MAX(count, 8u);
	for (unsigned i = 0; i < count; i++) {
		uint64_t address = address_of(dat, record->stack.frames[i]);

		if (address == 0)
			return -ENOMEM;
		set(&raw, 16 + 8 * (size_t)i, address, 8);
	}
	dat_pages_put(cpu, record->time_ns, &raw);
	return 0;
}

static int put_switch(struct dat *dat, struct dat_pages *cpu, const struct latency_record *record)
{
	struct dat_record raw;

	begin(&raw, ID_SWITCH, 0, record->pid);
	set_comm(&raw, 8, record->comm);
	set(&raw, 24, (uint32_t)MAX(record->pid, 0), 4);
	set_comm(&raw, 40, record->switched.next_comm);
	set(&raw, 56, (uint32_t)record->switched.next_pid, 4);
	set(&raw, 60, (uint32_t)record->switched.next_prio, 4);
	dat_pages_put(cpu, record->time_ns, &raw);
	return learn(dat, record->switched.next_pid, record->switched.next_comm);
}

static int put_text(struct dat_pages *cpu, const struct latency_record *record)
{
	struct dat_record raw;
	int len;

	begin(&raw, ID_PRINT, 0, record->pid);
	len = record->kind == LATENCY_STOPPED
		      ? snprintf((char *)raw.bytes + 16, 64, "stop tracing hit on cpu %u\n",
				 record->cpu)
		      : snprintf((char *)raw.bytes + 16, 64, "steal: %" PRIu64 " ns\n",
				 record->steal.duration_ns);
	raw.size = 16 + (size_t)len + 1;
	dat_pages_put(cpu, record->time_ns, &raw);
	return 0;
}

static void put_period(struct dat_pages *cpu, const struct latency_record *record)
{
	struct dat_record raw;

	begin(&raw, ID_OSNOISE, 0, record->pid);
	set(&raw, 8, record->period.noise_ns / NSEC_PER_USEC, 8);
	set(&raw, 16, record->period.runtime_ns / NSEC_PER_USEC, 8);
	set(&raw, 24, record->period.max_single_ns / NSEC_PER_USEC, 8);
	for (size_t class = 0; class < NOISE_CLASSES; class ++)
		set(&raw, 32 + 4 * class, record->period.count[class], 4);
	dat_pages_put(cpu, record->time_ns, &raw);
}

static int take(struct latency_sink *sink, const struct latency_record *record)
{
	struct dat *dat = (struct dat *)sink;
	struct dat_pages *cpu = pages_of(dat, record->cpu);
	struct dat_record raw;
	int r;

	if (!cpu)
		return -ENOMEM;
	r = learn(dat, record->pid, record->comm);
	if (r < 0)
		return r;
	switch (record->kind) {
	case LATENCY_SAMPLE:
		begin(&raw, ID_TIMERLAT, 0, record->pid);
		set(&raw, 8, record->sample.seq, 4);
		set(&raw, 12, record->sample.context, 4);
		set(&raw, 16, (uint64_t)record->sample.latency_ns, 8);
		dat_pages_put(cpu, record->time_ns, &raw);
		break;
	case LATENCY_NOISE:
		r = put_noise(dat, cpu, record);
		break;
	case LATENCY_GAP:
		begin(&raw, ID_GAP, 0, record->pid);
		set_span(&raw, record->gap.start_ns, (int64_t)record->gap.duration_ns);
		set(&raw, 24, record->gap.interferences, 8);
		dat_pages_put(cpu, record->time_ns, &raw);
		break;
	case LATENCY_PERIOD:
		put_period(cpu, record);
		break;
	case LATENCY_STACK:
		r = put_stack(dat, cpu, record);
		break;
	case LATENCY_SWITCH:
		r = put_switch(dat, cpu, record);
		break;
	case LATENCY_WORK:
		r = put_function(dat, cpu, record, false);
		break;
	case LATENCY_STEAL:
	case LATENCY_STOPPED:
		r = put_text(cpu, record);
		break;
	case LATENCY_LOST:
		dat_pages_finish(cpu);
		cpu->commit_flags = DAT_MISSED | (record->lost.events ? DAT_MISSED_KNOWN : 0);
		cpu->lost = record->lost.events;
		break;
	case LATENCY_HWLAT:
		break; /* the kernel's tracer alone makes these */
	}
	return r < 0 ? r : str_status(&cpu->done);
}

/* --- the file -------------------------------------------------------------------------------- */

static void put_format(struct str *out, size_t i)
{
	struct str text = {0};

	str_printf(&text, "name: %s\nID: %u\nformat:\n" COMMON "%s\nprint fmt: %s\n",
		   formats[i].name, formats[i].id, formats[i].fields, formats[i].print);
	dat_sized(out, text.data, text.len, 8);
	str_fini(&text);
}

static void put_formats(struct str *out)
{
	uint32_t ftrace = 0, systems = 0;

	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		ftrace += strcmp(formats[i].system, "ftrace") == 0;
		systems += i > 0 && strcmp(formats[i].system, formats[i - 1].system) != 0;
	}
	dat_number(out, ftrace, 4);
	for (size_t i = 0; i < ftrace; i++)
		put_format(out, i);
	dat_number(out, systems, 4);
	for (size_t i = ftrace, end; i < ARRAY_LEN(formats); i = end) {
		for (end = i + 1; end < ARRAY_LEN(formats) &&
				  strcmp(formats[end].system, formats[i].system) == 0;)
			end++;
		str_append(out, formats[i].system, strlen(formats[i].system) + 1);
		dat_number(out, end - i, 4);
		for (size_t f = i; f < end; f++)
			put_format(out, f);
	}
}

static void put_names(struct dat *dat, struct str *out)
{
	struct str lines = {0};

	for (size_t id = 1; id < dat->functions.entries.len; id++)
		str_printf(&lines, "%016" PRIx64 " t %s\n", FUNCTIONS + (uint64_t)id * 16,
			   strtab_text(&dat->functions, (uint32_t)id));
	if (lines.len)
		str_printf(&lines, "%016" PRIx64 " t end_of_functions\n",
			   FUNCTIONS + (uint64_t)dat->functions.entries.len * 16);
	dat_sized(out, lines.data, lines.len, 4);
	dat_number(out, 0, 4); /* printk formats: none */
	str_clear(&lines);
	vec_for_each(&dat->pids, pid) {
		uint32_t id;

		if (u64_map_get(&dat->comm_of, (uint64_t)*pid, &id))
			str_printf(&lines, "%d %s\n", *pid, strtab_text(&dat->comms, id));
	}
	dat_sized(out, lines.data, lines.len, 8);
	str_fini(&lines);
}

static void put_head(struct dat *dat, const char *clock, struct str *out)
{
	unsigned cpus = (unsigned)dat->cpus.len;
	struct str text = {0};
	size_t table;
	uint64_t at;

	dat_start(out, DAT_PAGE_BYTES);
	str_append(out, "header_page", 12);
	dat_sized(out, page_format, sizeof(page_format) - 1, 8);
	str_append(out, "header_event", 13);
	dat_sized(out, header_event, sizeof(header_event) - 1, 8);
	put_formats(out);
	put_names(dat, out);
	dat_number(out, cpus, 4);
	str_append(out, "options  ", 10);
	str_printf(&text, "[%s]", clock);
	dat_option(out, DAT_TRACECLOCK, str_text(&text), text.len + 1);
	dat_options_of_machine(out);
	str_clear(&text);
	dat_number(&text, cpus, 4);
	dat_option(out, DAT_CPUCOUNT, text.data, text.len);
	dat_number(out, DAT_DONE, 2);
	table = dat_reserve_table(out, cpus);
	at = ALIGN_UP(out->len, (size_t)DAT_PAGE_BYTES);
	str_clear(&text);
	for (unsigned cpu = 0; cpu < cpus; cpu++) {
		size_t size = dat->cpus.data[cpu] ? dat->cpus.data[cpu]->done.len : 0;

		dat_number(&text, at, 8);
		dat_number(&text, size, 8);
		at += size;
	}
	if (str_status(&text) == 0 && str_status(out) == 0 && text.len)
		memcpy(out->data + table, text.data, text.len);
	while (out->len % DAT_PAGE_BYTES && str_status(out) == 0)
		str_putc(out, '\0');
	str_fini(&text);
}

static int write_file(struct dat *dat, const char *clock, const char *path)
{
	struct str head = {0};
	int fd, r;

	for (size_t cpu = 0; cpu < dat->cpus.len; cpu++)
		if (dat->cpus.data[cpu])
			dat_pages_finish(dat->cpus.data[cpu]);
	put_head(dat, clock, &head);
	r = str_status(&head);
	fd = r < 0 ? -1 : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (r == 0)
		r = fd < 0 ? -errno : fd_write_all(fd, head.data, head.len);
	for (size_t cpu = 0; r == 0 && cpu < dat->cpus.len; cpu++) {
		struct dat_pages *pages = dat->cpus.data[cpu];

		r = pages ? str_status(&pages->done) : 0;
		if (r == 0 && pages && pages->done.len)
			r = fd_write_all(fd, pages->done.data, pages->done.len);
	}
	if (fd >= 0 && close(fd) < 0 && r == 0)
		r = -errno;
	str_fini(&head);
	return r;
}

int trace_dat_write_records(int (*each)(void *arg, struct latency_sink *sink), void *arg,
			    const char *clock, const char *path, struct err *err)
{
	struct dat dat = {.sink = {take}};
	int r = strtab_init(&dat.functions);

	if (r == 0)
		r = strtab_init(&dat.comms);
	if (r == 0)
		r = each(arg, &dat.sink);
	if (r >= 0)
		r = write_file(&dat, clock, path);
	for (size_t cpu = 0; cpu < dat.cpus.len; cpu++) {
		if (dat.cpus.data[cpu])
			str_fini(&dat.cpus.data[cpu]->done);
		free(dat.cpus.data[cpu]);
	}
	vec_fini(&dat.cpus);
	vec_fini(&dat.pids);
	u64_map_fini(&dat.comm_of);
	strtab_fini(&dat.comms);
	strtab_fini(&dat.functions);
	return r < 0 ? err_set(err, r, "%s: %s", path, strerrordesc_np(-r)) : 0;
}
