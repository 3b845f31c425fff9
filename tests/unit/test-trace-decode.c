/* Event formats, ring buffer pages and the records made of them; the pages are written by hand, in
 * both byte orders. The formats are those of a PREEMPT_RT kernel, where real ones are given. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/util.h"
#include "harness/tap.h"
#include "latency/trace-decode.h"

#define COMMON                                                                 \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n" \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n" \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

static const char page_format[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				  "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				  "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				  "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

static const char *const formats[][2] = {
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

/* --- writing pages --------------------------------------------------------------------------- */

struct builder {
	uint8_t page[4096];
	size_t at; /* behind the header */
	bool big;
};

static void put(struct builder *b, size_t at, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		b->page[16 + at + (b->big ? size - 1 - i : i)] = (uint8_t)(value >> 8 * i);
}

static void word(struct builder *b, unsigned type, uint32_t delta)
{
	put(b, b->at, b->big ? (uint64_t)type << 27 | delta : (uint64_t)delta << 5 | type, 4);
	b->at += 4;
}

/* A record with its common part; returns where its bytes start. */
static size_t record(struct builder *b, uint32_t delta, unsigned id, uint8_t flags, int pid,
		     size_t size)
{
	size_t start;

	if (size <= 112) {
		word(b, (unsigned)size / 4, delta);
	} else {
		word(b, 0, delta);
		put(b, b->at, size + 4, 4);
		b->at += 4;
	}
	start = b->at;
	put(b, start, id, 2);
	put(b, start + 2, flags, 1);
	put(b, start + 4, (uint32_t)pid, 4);
	b->at += size;
	return start;
}

static void finish(struct builder *b, uint64_t time_ns, uint64_t commit_flags)
{
	struct builder head = {.big = b->big};

	put(&head, 0, time_ns, 8);
	put(&head, 8, b->at | commit_flags, 8);
	memcpy(b->page, head.page + 16, 16);
}

static void timerlat(struct builder *b, uint32_t delta, int pid, unsigned seq, int context,
		     uint64_t latency_ns)
{
	size_t at = record(b, delta, 17, 0, pid, 24);

	put(b, at + 8, seq, 4);
	put(b, at + 12, (uint32_t)context, 4);
	put(b, at + 16, latency_ns, 8);
}

static void irq_noise(struct builder *b, uint32_t delta, const char *name, int vector,
		      uint64_t start_ns, uint64_t duration_ns)
{
	size_t len = strlen(name) + 1, at = record(b, delta, 449, 0, 0, ALIGN_UP(32 + len, 4));

	put(b, at + 8, start_ns, 8);
	put(b, at + 16, duration_ns, 8);
	put(b, at + 24, len << 16 | 32, 4);
	put(b, at + 28, (uint32_t)vector, 4);
	memcpy(b->page + 16 + at + 32, name, len);
}

static void thread_noise(struct builder *b, uint32_t delta, const char *comm, int pid,
			 uint64_t start_ns, uint64_t duration_ns)
{
	size_t at = record(b, delta, 451, 0, pid, 44);

	memcpy(b->page + 16 + at + 8, comm, strlen(comm));
	put(b, at + 24, start_ns, 8);
	put(b, at + 32, duration_ns, 8);
	put(b, at + 40, (uint32_t)pid, 4);
}

static void function_event(struct builder *b, unsigned id, uint8_t flags, int pid, size_t offset,
			   uint64_t function)
{
	size_t at = record(b, 1, id, flags, pid, offset + 8);

	put(b, at + offset, function, 8);
}

/* --- reading them ---------------------------------------------------------------------------- */

struct seen {
	struct latency_sink sink;
	struct str text;
};

static int take(struct latency_sink *sink, const struct latency_record *r)
{
	struct str *out = &((struct seen *)sink)->text;

	str_printf(out, "%u@%llu ", r->cpu, (unsigned long long)r->time_ns);
	switch (r->kind) {
	case LATENCY_SAMPLE:
		str_printf(out, "%s #%llu %lld %d %s", latency_context_name(r->sample.context),
			   (unsigned long long)r->sample.seq, (long long)r->sample.latency_ns,
			   r->pid, r->comm ? r->comm : "?");
		break;
	case LATENCY_NOISE:
		str_printf(out, "%s %s:%d %s %lld+%lld", noise_class_name(r->noise.class),
			   r->noise.name, r->noise.number,
			   r->noise.function ? r->noise.function : "-",
			   (long long)r->noise.start_ns, (long long)r->noise.duration_ns);
		break;
	case LATENCY_GAP:
		str_printf(out, "gap %lld+%llu of %llu explained %llu", (long long)r->gap.start_ns,
			   (unsigned long long)r->gap.duration_ns,
			   (unsigned long long)r->gap.interferences,
			   (unsigned long long)r->gap.explained_ns);
		break;
	case LATENCY_STACK:
		for (unsigned i = 0; i < r->stack.count; i++)
			str_printf(out, "%s%s", i ? ";" : "", r->stack.frames[i]);
		str_puts(out, r->stack.cut ? " cut" : "");
		break;
	case LATENCY_STOPPED:
		str_puts(out, "stopped");
		break;
	case LATENCY_LOST:
		str_printf(out, "lost %llu", (unsigned long long)r->lost.events);
		break;
	case LATENCY_WORK:
		str_printf(out, "work %s", r->work.function);
		break;
	default:
		str_printf(out, "kind %d", r->kind);
	}
	str_putc(out, '\n');
	return 0;
}

static const char *function_name(void *arg, uint64_t address)
{
	return address == 0xffffffff81000010   ? "tick_sched_timer"
	       : address == 0xffffffff81000020 ? "vmstat_update"
					       : NULL;
}

static struct trace_decoder *decoder_of(bool big)
{
	const struct trace_names names = {NULL, NULL, function_name};
	struct trace_page_layout layout;
	struct trace_decoder *decoder;

	if (trace_page_layout_parse(page_format, strlen(page_format), big, &layout, NULL) < 0 ||
	    trace_decoder_new(&layout, &names, &decoder) < 0)
		abort();
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		bool last = i + 1 == ARRAY_LEN(formats);

		EXPECT_INT(trace_decoder_event(decoder, formats[i][0], formats[i][1],
					       strlen(formats[i][1]), NULL),
			   !last);
	}
	return decoder;
}

static void expect_records(struct trace_decoder *decoder, struct builder *b, const char *want)
{
	struct seen seen = {.sink.take = take};
	struct err err = {0};
	int r = trace_decoder_page(decoder, 1, b->page, sizeof(b->page), &seen.sink, &err);

	EXPECT(r >= 0);
	EXPECT_STR(str_text(&seen.text), want);
	str_fini(&seen.text);
}

static void samples_and_noise(bool big)
{
	struct trace_decoder *decoder = decoder_of(big);
	struct builder b = {.big = big};

	EXPECT_INT(trace_decoder_comms(decoder, "158 dd\n12 two words\nbad\n", 24), 0);
	timerlat(&b, 5, 158, 13, 0, 32190);
	function_event(&b, 459, 0, 158, 8, 0xffffffff81000020); /* not in an interrupt */
	function_event(&b, 459, 8, 158, 8, 0xffffffff81000010);
	irq_noise(&b, 10, "local_timer", 236, 1000, 49223);
	irq_noise(&b, 10, "i:r q", -1, 2000, 1);
	function_event(&b, 335, 0, 77, 16, 0xffffffff81000020);
	thread_noise(&b, 10, "kworker/1:0", 77, 3000, 16014);
	thread_noise(&b, 10, "dd", 158, 3100, 7);
	timerlat(&b, 0, 0, 13, 1, 99650);
	record(&b, 0, 300, 0, 1, 8); /* unknown event */
	timerlat(&b, 3, 77, 14, 2, 99651);
	finish(&b, 1000000, 0);
	expect_records(decoder, &b,
		       "1@1000005 irq #13 32190 158 dd\n"
		       "1@1000017 irq local_timer:236 tick_sched_timer 1000+49223\n"
		       "1@1000027 irq i:r q:-1 - 2000+1\n"
		       "1@1000028 work vmstat_update\n"
		       "1@1000038 thread kworker/1:0:77 vmstat_update 3000+16014\n"
		       "1@1000048 thread dd:158 - 3100+7\n"
		       "1@1000048 thread #13 99650 0 <idle>\n"
		       "1@1000051 user #14 99651 77 kworker/1:0\n");
	trace_decoder_free(decoder);
}

TEST(samples_and_noise_little_endian)
{
	samples_and_noise(false);
}

TEST(samples_and_noise_big_endian)
{
	samples_and_noise(true);
}

TEST(times_extended_and_absolute)
{
	struct trace_decoder *decoder = decoder_of(false);
	struct builder b = {0};

	word(&b, 30, 3); /* extend: 2 << 27 | 3 */
	put(&b, b.at, 2, 4);
	b.at += 4;
	timerlat(&b, 1, 0, 1, 0, 10);
	word(&b, 31, 7); /* stamp: 1 << 27 | 7, the upper five bits of the page's time kept */
	put(&b, b.at, 1, 4);
	b.at += 4;
	timerlat(&b, 1, 0, 2, 0, 20);
	word(&b, 29, 5); /* a discarded record of 8 bytes behind its length */
	put(&b, b.at, 12, 4);
	b.at += 12;
	timerlat(&b, 1, 0, 3, 0, 30);
	word(&b, 29, 0); /* the rest is empty */
	b.at += 12;
	finish(&b, 0x0800000000000100, 0);
	expect_records(decoder, &b,
		       "1@576460752571859204 irq #1 10 0 <idle>\n"
		       "1@576460752437641224 irq #2 20 0 <idle>\n"
		       "1@576460752437641230 irq #3 30 0 <idle>\n");
	trace_decoder_free(decoder);
}

TEST(gaps_are_explained_by_what_lies_inside)
{
	struct trace_decoder *decoder = decoder_of(false);
	struct builder b = {0};
	size_t at;

	irq_noise(&b, 1, "before", 1, 900, 50);
	irq_noise(&b, 1, "inside", 1, 1100, 30);
	thread_noise(&b, 1, "inside", 5, 1000, 70);
	for (int i = 0; i < 2; i++) {
		at = record(&b, 1, 447, 0, 9, 32);
		put(&b, at + 8, 1000, 8);
		put(&b, at + 16, 500, 8);
		put(&b, at + 24, i ? 0 : 2, 8);
	}
	finish(&b, 0, 0);
	expect_records(decoder, &b,
		       "1@1 irq before:1 - 900+50\n"
		       "1@2 irq inside:1 - 1100+30\n"
		       "1@3 thread inside:5 - 1000+70\n"
		       "1@4 gap 1000+500 of 2 explained 100\n"
		       "1@5 gap 1000+500 of 0 explained 0\n");
	trace_decoder_free(decoder);
}

TEST(stacks_stops_and_losses)
{
	struct trace_decoder *decoder = decoder_of(false);
	struct builder b = {0};
	static const char stop[] = "stop tracing hit on cpu 6\n";
	size_t at;

	at = record(&b, 1, 4, 0, 9, 16 + 4 * 8);
	put(&b, at + 8, 4, 4);
	put(&b, at + 16, 0xffffffff81000010, 8);
	put(&b, at + 24, 0x1234, 8); /* the third and fourth are padding */
	at = record(&b, 1, 4, 0, 9, 16 + 8);
	put(&b, at + 8, 100, 4); /* more than the record holds */
	put(&b, at + 16, 0xffffffff81000020, 8);
	at = record(&b, 1, 5, 0, 9, ALIGN_UP(16 + sizeof(stop), 4));
	memcpy(b.page + 16 + at + 16, stop, sizeof(stop));
	at = record(&b, 1, 5, 0, 9, 120); /* a long record; another text */
	memcpy(b.page + 16 + at + 16, "hello", 6);
	put(&b, b.at, 42, 8);
	finish(&b, 100, UINT64_C(3) << 30);
	expect_records(decoder, &b,
		       "1@100 lost 42\n"
		       "1@101 tick_sched_timer;0x1234\n"
		       "1@102 vmstat_update cut\n"
		       "6@103 stopped\n");
	trace_decoder_free(decoder);
}

TEST(damage_is_refused)
{
	struct trace_decoder *decoder = decoder_of(false);
	struct seen seen = {.sink.take = take};
	struct builder good = {0}, b;

	timerlat(&good, 5, 158, 13, 0, 32190);
	finish(&good, 0, 0);
	EXPECT_INT(trace_decoder_page(decoder, 1, good.page, 15, &seen.sink, NULL), -EBADMSG);
	EXPECT_INT(trace_decoder_page(decoder, 1, good.page, 40, &seen.sink, NULL), -EBADMSG);
	b = good;
	finish(&b, 0, 4080);
	EXPECT_INT(trace_decoder_page(decoder, 1, b.page, 4096, &seen.sink, NULL), -EBADMSG);
	memset(&b, 0, sizeof(b));
	word(&b, 28, 0); /* longer than the page says */
	b.at = 8;
	finish(&b, 0, 0);
	EXPECT_INT(trace_decoder_page(decoder, 1, b.page, 4096, &seen.sink, NULL), -EBADMSG);
	memset(&b, 0, sizeof(b));
	record(&b, 0, 17, 0, 1, 8); /* too short for a sample */
	finish(&b, 0, 0);
	EXPECT_INT(trace_decoder_page(decoder, 1, b.page, 4096, &seen.sink, NULL), -EBADMSG);
	memset(&b, 0, sizeof(b));
	word(&b, 0, 0); /* a length that does not even count itself */
	put(&b, b.at, 3, 4);
	b.at = 8;
	finish(&b, 0, 0);
	EXPECT_INT(trace_decoder_page(decoder, 1, b.page, 4096, &seen.sink, NULL), -EBADMSG);
	EXPECT_STR(str_text(&seen.text), "");
	str_fini(&seen.text);
	trace_decoder_free(decoder);
}

TEST(formats_that_are_none)
{
	struct trace_format format;
	struct trace_page_layout layout;
	static const char no_data[] = "field: local_t commit; offset:8; size:8; signed:1;\n";

	EXPECT_INT(trace_format_parse("", 0, "x", &format, NULL), -EBADMSG);
	EXPECT_INT(trace_format_parse("name: x\nID: \n", 13, "x", &format, NULL), -EBADMSG);
	EXPECT_INT(trace_format_parse("name: x\nID: 7", 13, "x", &format, NULL), 0);
	EXPECT_INT(format.id, 7);
	EXPECT_INT(format.field_count, 0);
	EXPECT_INT(trace_page_layout_parse(no_data, strlen(no_data), false, &layout, NULL),
		   -EBADMSG);
}

/* "@@FMT system:event" before each format file of a real PREEMPT_RT kernel */
TEST(formats_of_a_real_kernel)
{
	const char *path = tap_data("latency_cases/34-own-event-formats.txt");
	struct trace_page_layout layout;
	struct trace_decoder *decoder;
	char *text, *at;
	size_t size;
	unsigned known = 0;

	SKIP_IF(!path, "no test data");
	ASSERT(file_read(path, 1 << 20, &text, &size, NULL) == 0);
	EXPECT_INT(trace_page_layout_parse(page_format, strlen(page_format), false, &layout, NULL),
		   0);
	EXPECT_INT(trace_decoder_new(&layout, NULL, &decoder), 0);
	for (at = strstr(text, "@@FMT "); at;) {
		char *next = strstr(at + 1, "@@FMT "), *name = at + 6, *body = strchr(name, '\n');

		name[strcspn(name, ":")] = '\0';
		known +=
			trace_decoder_event(decoder, name, body,
					    next ? (size_t)(next - body) : strlen(body), NULL) == 1;
		at = next;
	}
	EXPECT_INT(known, 9);
	trace_decoder_free(decoder);
	free(text);
}
