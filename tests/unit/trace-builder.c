#include "trace-builder.h"

#include <stdlib.h>
#include <string.h>

#include "base/compress.h"
#include "base/util.h"

#define COMMON                                                                 \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n" \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n" \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

const char trace_page_format[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				 "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				 "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				 "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

const char *const trace_formats[][2] = {
	{"ftrace",
	 "name: timerlat\nID: 17\nformat:\n" COMMON
	 "\tfield:unsigned int seqnum;\toffset:8;\tsize:4;\tsigned:0;\n"
	 "\tfield:int context;\toffset:12;\tsize:4;\tsigned:1;\n"
	 "\tfield:u64 timer_latency;\toffset:16;\tsize:8;\tsigned:0;\n\nprint fmt: \"\"\n"},
	{"osnoise", "name: irq_noise\nID: 449\nformat:\n" COMMON
		    "\tfield:u64 start;\toffset:8;\tsize:8;\tsigned:0;\n"
		    "\tfield:u64 duration;\toffset:16;\tsize:8;\tsigned:0;\n"
		    "\tfield:__data_loc char[] desc;\toffset:24;\tsize:4;\tsigned:1;\n"
		    "\tfield:int vector;\toffset:28;\tsize:4;\tsigned:1;\n"},
	{"osnoise", "name: thread_noise\nID: 451\nformat:\n" COMMON
		    "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:1;\n"
		    "\tfield:u64 start;\toffset:24;\tsize:8;\tsigned:0;\n"
		    "\tfield:u64 duration;\toffset:32;\tsize:8;\tsigned:0;\n"
		    "\tfield:pid_t pid;\toffset:40;\tsize:4;\tsigned:1;\n"},
	{"osnoise", "name: sample_threshold\nID: 447\nformat:\n" COMMON
		    "\tfield:u64 start;\toffset:8;\tsize:8;\tsigned:0;\n"
		    "\tfield:u64 duration;\toffset:16;\tsize:8;\tsigned:0;\n"
		    "\tfield:u64 interference;\toffset:24;\tsize:8;\tsigned:0;\n"},
	{"ftrace", "name: kernel_stack\nID: 4\nformat:\n" COMMON
		   "\tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n"
		   "\tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n"},
	{"ftrace", "name: print\nID: 5\nformat:\n" COMMON
		   "\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n"
		   "\tfield:char buf[];\toffset:16;\tsize:0;\tsigned:0;\n"},
	{"workqueue", "name: workqueue_execute_start\nID: 335\nformat:\n" COMMON
		      "\tfield:void * work;\toffset:8;\tsize:8;\tsigned:0;\n"
		      "\tfield:void * function;\toffset:16;\tsize:8;\tsigned:0;\n"},
	{"timer", "name: hrtimer_expire_entry\nID: 459\nformat:\n" COMMON
		  "\tfield:void * function;\toffset:8;\tsize:8;\tsigned:0;\n"},
	{"sched", "name: sched_wakeup\nID: 300\nformat:\n" COMMON},
};

const size_t trace_format_count = ARRAY_LEN(trace_formats);

void trace_put(struct trace_builder *b, size_t at, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		b->page[16 + at + (b->big ? size - 1 - i : i)] = (uint8_t)(value >> 8 * i);
}

void trace_word(struct trace_builder *b, unsigned type, uint32_t delta)
{
	trace_put(b, b->at, b->big ? (uint64_t)type << 27 | delta : (uint64_t)delta << 5 | type, 4);
	b->at += 4;
}

size_t trace_record(struct trace_builder *b, uint32_t delta, unsigned id, uint8_t flags, int pid,
		    size_t size)
{
	size_t start;

	if (size <= 112) {
		trace_word(b, (unsigned)size / 4, delta);
	} else {
		trace_word(b, 0, delta);
		trace_put(b, b->at, size + 4, 4);
		b->at += 4;
	}
	start = b->at;
	trace_put(b, start, id, 2);
	trace_put(b, start + 2, flags, 1);
	trace_put(b, start + 4, (uint32_t)pid, 4);
	b->at += size;
	return start;
}

void trace_finish(struct trace_builder *b, uint64_t time_ns, uint64_t commit_flags)
{
	struct trace_builder head = {.big = b->big};

	trace_put(&head, 0, time_ns, 8);
	trace_put(&head, 8, b->at | commit_flags, 8);
	memcpy(b->page, head.page + 16, 16);
}

void trace_timerlat(struct trace_builder *b, uint32_t delta, int pid, unsigned seq, int context,
		    uint64_t latency_ns)
{
	size_t at = trace_record(b, delta, 17, 0, pid, 24);

	trace_put(b, at + 8, seq, 4);
	trace_put(b, at + 12, (uint32_t)context, 4);
	trace_put(b, at + 16, latency_ns, 8);
}

void trace_irq_noise(struct trace_builder *b, uint32_t delta, const char *name, int vector,
		     uint64_t start_ns, uint64_t duration_ns)
{
	size_t len = strlen(name) + 1,
	       at = trace_record(b, delta, 449, 0, 0, ALIGN_UP(32 + len, 4));

	trace_put(b, at + 8, start_ns, 8);
	trace_put(b, at + 16, duration_ns, 8);
	trace_put(b, at + 24, len << 16 | 32, 4);
	trace_put(b, at + 28, (uint32_t)vector, 4);
	memcpy(b->page + 16 + at + 32, name, len);
}

void trace_thread_noise(struct trace_builder *b, uint32_t delta, const char *comm, int pid,
			uint64_t start_ns, uint64_t duration_ns)
{
	size_t at = trace_record(b, delta, 451, 0, pid, 44);

	memcpy(b->page + 16 + at + 8, comm, strlen(comm));
	trace_put(b, at + 24, start_ns, 8);
	trace_put(b, at + 32, duration_ns, 8);
	trace_put(b, at + 40, (uint32_t)pid, 4);
}

void trace_function_event(struct trace_builder *b, unsigned id, uint8_t flags, int pid,
			  size_t offset, uint64_t function)
{
	size_t at = trace_record(b, 1, id, flags, pid, offset + 8);

	trace_put(b, at + offset, function, 8);
}

/* --- trace.dat ------------------------------------------------------------------------------- */

struct dat_builder {
	struct str *out;
	bool big;
	const char *compression; /* NULL version 6 */
};

static void dat_number(struct str *out, bool big, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		str_putc(out, (char)(value >> 8 * (big ? size - 1 - i : i)));
}

static void dat_sized(struct str *out, bool big, const char *text, size_t size_bytes)
{
	dat_number(out, big, strlen(text), size_bytes);
	str_puts(out, text);
}

static void dat_page(unsigned cpu, bool big, struct trace_builder *b)
{
	*b = (struct trace_builder){.big = big};
	for (unsigned i = 0; i < 3; i++) {
		trace_timerlat(b, 1000, 158, i + 1, 0, 100 * (i + 1) + cpu);
		trace_irq_noise(b, 10, "local_timer", 236, 5, 7);
		trace_timerlat(b, 10, 200, i + 1, 1, 1000 * (i + 1) + cpu);
	}
	trace_finish(b, 1000000, 0);
}

static void dat_header(struct str *out, bool big)
{
	str_append(out, "header_page", 12);
	dat_sized(out, big, trace_page_format, 8);
	str_append(out, "header_event", 13);
	dat_sized(out, big, "", 8);
}

static void dat_ftrace(struct str *out, bool big)
{
	unsigned count = 0;

	for (size_t i = 0; i < trace_format_count; i++)
		count += strcmp(trace_formats[i][0], "ftrace") == 0;
	dat_number(out, big, count, 4);
	for (size_t i = 0; i < trace_format_count; i++)
		if (strcmp(trace_formats[i][0], "ftrace") == 0)
			dat_sized(out, big, trace_formats[i][1], 8);
}

static void dat_events(struct str *out, bool big)
{
	unsigned count = 0;

	for (size_t i = 0; i < trace_format_count; i++)
		count += strcmp(trace_formats[i][0], "ftrace") != 0;
	dat_number(out, big, count, 4);
	for (size_t i = 0; i < trace_format_count; i++) {
		if (strcmp(trace_formats[i][0], "ftrace") == 0)
			continue;
		str_append(out, trace_formats[i][0], strlen(trace_formats[i][0]) + 1);
		dat_number(out, big, 1, 4);
		dat_sized(out, big, trace_formats[i][1], 8);
	}
}

static void dat_functions(struct str *out, bool big)
{
	dat_sized(out, big, "ffffffff81000000 T start\nffffffff82000000 T end\n", 4);
}

static void dat_comms(struct str *out, bool big)
{
	dat_sized(out, big, "158 dd\n200 timerlat/0\n", 8);
}

static void dat_pack(const struct dat_builder *d, const void *data, size_t size, struct str *out)
{
	struct str packed = {0};
	int r = strcmp(d->compression, "zstd") == 0 ? zstd_compress(data, size, 3, &packed, NULL)
						    : gzip_deflate(data, size, 6, &packed, NULL);

	if (r < 0)
		abort();
	dat_number(out, d->big, packed.len, 4);
	dat_number(out, d->big, size, 4);
	str_append(out, packed.data, packed.len);
	str_fini(&packed);
}

/* Returns where the section stands. */
static uint64_t dat_section(const struct dat_builder *d, unsigned id, const struct str *data)
{
	bool plain = strcmp(d->compression, "none") == 0;
	uint64_t at = d->out->len;
	struct str body = {0};

	if (plain)
		str_append(&body, data->data, data->len);
	else
		dat_pack(d, data->data, data->len, &body);
	dat_number(d->out, d->big, id, 2);
	dat_number(d->out, d->big, !plain, 2);
	dat_number(d->out, d->big, 0, 4);
	dat_number(d->out, d->big, body.len, 8);
	str_append(d->out, body.data, body.len);
	str_fini(&body);
	return at;
}

static void dat_option(struct str *out, bool big, unsigned id, const struct str *data)
{
	dat_number(out, big, id, 2);
	dat_number(out, big, data->len, 4);
	str_append(out, data->data, data->len);
}

/* The pages' section; *option is the BUFFER option's data. */
static void dat_pages(const struct dat_builder *d, struct str *option)
{
	bool plain = strcmp(d->compression, "none") == 0;
	uint64_t at = d->out->len;
	struct trace_builder page;

	dat_number(d->out, d->big, 3, 2);
	dat_number(d->out, d->big, !plain, 2);
	dat_number(d->out, d->big, 0, 4);
	dat_number(d->out, d->big, 0, 8);
	dat_number(option, d->big, at, 8);
	str_append(option, "", 1);
	str_append(option, "local", 6);
	dat_number(option, d->big, 4096, 4);
	dat_number(option, d->big, 2, 4);
	for (unsigned cpu = 0; cpu < 2; cpu++) {
		dat_page(cpu, d->big, &page);
		at = d->out->len;
		if (plain) {
			str_append(d->out, page.page, 4096);
		} else {
			dat_number(d->out, d->big, 1, 4);
			dat_pack(d, page.page, 4096, d->out);
		}
		dat_number(option, d->big, cpu, 4);
		dat_number(option, d->big, at, 8);
		dat_number(option, d->big, d->out->len - at - (plain ? 0 : 4), 8);
	}
}

static void dat_build_7(const struct dat_builder *d)
{
	static const struct {
		unsigned id;
		void (*build)(struct str *out, bool big);
	} parts[] = {{16, dat_header},
		     {17, dat_ftrace},
		     {18, dat_events},
		     {19, dat_functions},
		     {21, dat_comms}};
	struct str options = {0}, option = {0}, where = {0};
	size_t pointer;
	uint64_t at;

	str_append(d->out, d->compression, strlen(d->compression) + 1);
	str_append(d->out, "1", 2);
	pointer = d->out->len;
	dat_number(d->out, d->big, 0, 8);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		str_clear(&option);
		parts[i].build(&option, d->big);
		at = dat_section(d, parts[i].id, &option);
		str_clear(&option);
		dat_number(&option, d->big, at, 8);
		dat_option(&options, d->big, parts[i].id, &option);
	}
	str_clear(&option);
	dat_pages(d, &option);
	dat_option(&options, d->big, 3, &option);
	str_clear(&option);
	dat_number(&option, d->big, 0, 8);
	dat_option(&options, d->big, 0, &option);
	at = dat_section(d, 0, &options);
	dat_number(&where, d->big, at, 8);
	memcpy(d->out->data + pointer, where.data, 8);
	str_fini(&options);
	str_fini(&option);
	str_fini(&where);
}

static void dat_build_6(const struct dat_builder *d)
{
	struct trace_builder page;
	uint64_t at;

	dat_header(d->out, d->big);
	dat_ftrace(d->out, d->big);
	dat_events(d->out, d->big);
	dat_functions(d->out, d->big);
	dat_sized(d->out, d->big, "", 4);
	dat_comms(d->out, d->big);
	dat_number(d->out, d->big, 2, 4);
	str_append(d->out, "options  ", 10);
	dat_number(d->out, d->big, 4, 2);
	dat_sized(d->out, d->big, "[local] global", 4);
	dat_number(d->out, d->big, 0, 2);
	str_append(d->out, "flyrecord", 10);
	at = ALIGN_UP(d->out->len + 32, 4096);
	for (unsigned cpu = 0; cpu < 2; cpu++) {
		dat_number(d->out, d->big, at + 4096 * cpu, 8);
		dat_number(d->out, d->big, 4096, 8);
	}
	while (d->out->len < at)
		str_putc(d->out, 0);
	for (unsigned cpu = 0; cpu < 2; cpu++) {
		dat_page(cpu, d->big, &page);
		str_append(d->out, page.page, 4096);
	}
}

void trace_dat_build(char version, const char *compression, bool big, struct str *out)
{
	const struct dat_builder d = {out, big, compression};

	str_append(out, "\x17\x08\x44tracing", 10);
	str_putc(out, version);
	str_putc(out, 0);
	str_putc(out, big);
	str_putc(out, 8);
	dat_number(out, big, 4096, 4);
	if (version == '7')
		dat_build_7(&d);
	else
		dat_build_6(&d);
	if (str_status(out) < 0)
		abort();
}
