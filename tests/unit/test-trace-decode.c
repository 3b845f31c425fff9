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
#include "trace-builder.h"

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

	if (trace_page_layout_parse(trace_page_format, strlen(trace_page_format), big, &layout,
				    NULL) < 0 ||
	    trace_decoder_new(&layout, &names, &decoder) < 0)
		abort();
	for (size_t i = 0; i < trace_format_count; i++) {
		bool last = i + 1 == trace_format_count;

		EXPECT_INT(trace_decoder_event(decoder, trace_formats[i][0], trace_formats[i][1],
					       strlen(trace_formats[i][1]), NULL),
			   !last);
	}
	return decoder;
}

static void expect_records(struct trace_decoder *decoder, struct trace_builder *b, const char *want)
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
	struct trace_builder b = {.big = big};

	EXPECT_INT(trace_decoder_comms(decoder, "158 dd\n12 two words\nbad\n", 24), 0);
	trace_timerlat(&b, 5, 158, 13, 0, 32190);
	trace_function_event(&b, 459, 0, 158, 8, 0xffffffff81000020); /* not in an interrupt */
	trace_function_event(&b, 459, 8, 158, 8, 0xffffffff81000010);
	trace_irq_noise(&b, 10, "local_timer", 236, 1000, 49223);
	trace_irq_noise(&b, 10, "i:r q", -1, 2000, 1);
	trace_function_event(&b, 335, 0, 77, 16, 0xffffffff81000020);
	trace_thread_noise(&b, 10, "kworker/1:0", 77, 3000, 16014);
	trace_thread_noise(&b, 10, "dd", 158, 3100, 7);
	trace_timerlat(&b, 0, 0, 13, 1, 99650);
	trace_record(&b, 0, 300, 0, 1, 8); /* unknown event */
	trace_timerlat(&b, 3, 77, 14, 2, 99651);
	trace_finish(&b, 1000000, 0);
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
	struct trace_builder b = {0};

	trace_word(&b, 30, 3); /* extend: 2 << 27 | 3 */
	trace_put(&b, b.at, 2, 4);
	b.at += 4;
	trace_timerlat(&b, 1, 0, 1, 0, 10);
	trace_word(&b, 31, 7); /* stamp: 1 << 27 | 7, the upper five bits of the page's time kept */
	trace_put(&b, b.at, 1, 4);
	b.at += 4;
	trace_timerlat(&b, 1, 0, 2, 0, 20);
	trace_word(&b, 29, 5); /* a discarded record of 8 bytes behind its length */
	trace_put(&b, b.at, 12, 4);
	b.at += 12;
	trace_timerlat(&b, 1, 0, 3, 0, 30);
	trace_word(&b, 29, 0); /* the rest is empty */
	b.at += 12;
	trace_finish(&b, 0x0800000000000100, 0);
	expect_records(decoder, &b,
		       "1@576460752571859204 irq #1 10 0 <idle>\n"
		       "1@576460752437641224 irq #2 20 0 <idle>\n"
		       "1@576460752437641230 irq #3 30 0 <idle>\n");
	trace_decoder_free(decoder);
}

TEST(gaps_are_explained_by_what_lies_inside)
{
	struct trace_decoder *decoder = decoder_of(false);
	struct trace_builder b = {0};
	size_t at;

	trace_irq_noise(&b, 1, "before", 1, 900, 50);
	trace_irq_noise(&b, 1, "inside", 1, 1100, 30);
	trace_thread_noise(&b, 1, "inside", 5, 1000, 70);
	for (int i = 0; i < 2; i++) {
		at = trace_record(&b, 1, 447, 0, 9, 32);
		trace_put(&b, at + 8, 1000, 8);
		trace_put(&b, at + 16, 500, 8);
		trace_put(&b, at + 24, i ? 0 : 2, 8);
	}
	trace_finish(&b, 0, 0);
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
	struct trace_builder b = {0};
	static const char stop[] = "stop tracing hit on cpu 6\n";
	size_t at;

	at = trace_record(&b, 1, 4, 0, 9, 16 + 4 * 8);
	trace_put(&b, at + 8, 4, 4);
	trace_put(&b, at + 16, 0xffffffff81000010, 8);
	trace_put(&b, at + 24, 0x1234, 8); /* the third and fourth are padding */
	at = trace_record(&b, 1, 4, 0, 9, 16 + 8);
	trace_put(&b, at + 8, 100, 4); /* more than the record holds */
	trace_put(&b, at + 16, 0xffffffff81000020, 8);
	at = trace_record(&b, 1, 5, 0, 9, ALIGN_UP(16 + sizeof(stop), 4));
	memcpy(b.page + 16 + at + 16, stop, sizeof(stop));
	at = trace_record(&b, 1, 5, 0, 9, 120); /* a long record; another text */
	memcpy(b.page + 16 + at + 16, "hello", 6);
	trace_put(&b, b.at, 42, 8);
	trace_finish(&b, 100, UINT64_C(3) << 30);
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
	struct trace_builder good = {0}, b;

	trace_timerlat(&good, 5, 158, 13, 0, 32190);
	trace_finish(&good, 0, 0);
	EXPECT_INT(trace_decoder_page(decoder, 1, good.page, 15, &seen.sink, NULL), -EBADMSG);
	EXPECT_INT(trace_decoder_page(decoder, 1, good.page, 40, &seen.sink, NULL), -EBADMSG);
	b = good;
	trace_finish(&b, 0, 4080);
	EXPECT_INT(trace_decoder_page(decoder, 1, b.page, 4096, &seen.sink, NULL), -EBADMSG);
	memset(&b, 0, sizeof(b));
	trace_word(&b, 28, 0); /* longer than the page says */
	b.at = 8;
	trace_finish(&b, 0, 0);
	EXPECT_INT(trace_decoder_page(decoder, 1, b.page, 4096, &seen.sink, NULL), -EBADMSG);
	memset(&b, 0, sizeof(b));
	trace_record(&b, 0, 17, 0, 1, 8); /* too short for a sample */
	trace_finish(&b, 0, 0);
	EXPECT_INT(trace_decoder_page(decoder, 1, b.page, 4096, &seen.sink, NULL), -EBADMSG);
	memset(&b, 0, sizeof(b));
	trace_word(&b, 0, 0); /* a length that does not even count itself */
	trace_put(&b, b.at, 3, 4);
	b.at = 8;
	trace_finish(&b, 0, 0);
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
	EXPECT_INT(trace_page_layout_parse(trace_page_format, strlen(trace_page_format), false,
					   &layout, NULL),
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
