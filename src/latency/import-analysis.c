/* rtla's automatic analysis as verdicts. Labels are found by their words: mails lose tabs and line
 * breaks. */
#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "latency/analysis-internal.h"
#include "latency/import-internal.h"

#define FRAMES_MAX   256
#define PARTS_MAX    4096
#define VERDICTS_MAX 65536

/* Which list the lines without a label belong to. */
enum section {
	SECTION_NONE,
	SECTION_BLOCKING,
	SECTION_STACK,
	SECTION_CLASS /* + enum noise_class */
};

/* "12.50 us" behind the label, wherever it stands. */
static int64_t value_behind(struct scan text)
{
	for (const char *at = text.at; at < text.end; at++) {
		struct scan number = {at, text.end};
		int64_t nano;
		if (*at < '0' || *at > '9' || (at > text.at && (at[-1] == ':' || at[-1] == '.')))
			continue;
		if (scan_nano(&number, &nano) && scan_skip(&number, "us"))
			return nano / 1000000; /* micro: 1e-9 us are 1e-6 ns */
		while (at + 1 < text.end && at[1] >= '0' && at[1] <= '9')
			at++;
	}
	return LATENCY_UNKNOWN_NS;
}

static struct latency_verdict *open_verdict(struct importer *importer)
{
	struct latency_run *run = importer->run;
	if (run->verdict_count == VERDICTS_MAX)
		return NULL;
	struct latency_verdict *grown =
		realloc(run->verdicts, (run->verdict_count + 1) * sizeof(*run->verdicts));
	if (!grown)
		return NULL;
	run->verdicts = grown;
	struct latency_verdict *verdict = &grown[run->verdict_count++];
	*verdict = latency_verdict_empty();
	importer->verdict = verdict;
	importer->section = SECTION_NONE;
	return verdict;
}

/* "local_timer:236   4.93 us": what was in the way, and how long. */
static int add_source(struct importer *importer, struct scan line)
{
	struct latency_verdict *verdict = importer->verdict;
	struct latency_run *run = importer->run;
	struct scan rest = line, word = scan_word(&rest);
	/* a comm may hold blanks: the source ends with ":number" */
	const char *colon = NULL;
	for (const char *at = word.at; at < line.end; at++) {
		if (*at == ':' && at + 1 < line.end && at[1] >= '0' && at[1] <= '9')
			colon = at;
	}
	if (!colon)
		return 0;
	struct scan number = {colon + 1, line.end};
	uint64_t value;
	if (!scan_u64(&number, &value) || value > INT32_MAX)
		return 0;
	uint32_t name;
	int r = strtab_intern(&run->names, word.at, (size_t)(colon - word.at), &name);
	if (r < 0)
		return r;
	int64_t duration = value_behind(number);
	if (importer->section == SECTION_BLOCKING) {
		verdict->blocking_comm = name;
		verdict->blocking_pid = (int)value;
		return 1;
	}
	if (importer->section < SECTION_CLASS || verdict->part_count == PARTS_MAX)
		return 0;
	struct latency_part *grown =
		realloc(verdict->parts, (verdict->part_count + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	verdict->parts = grown;
	grown[verdict->part_count++] = (struct latency_part){
		.class = (enum noise_class)(importer->section - SECTION_CLASS),
		.number = (int)value,
		.name = name,
		.start_ns = LATENCY_UNKNOWN_NS,
		.duration_ns = duration};
	return 1;
}

static int add_frame(struct importer *importer, struct scan frame)
{
	struct latency_verdict *verdict = importer->verdict;
	struct scan word = scan_word(&frame);
	if (verdict->stack_count == FRAMES_MAX)
		return 1;
	uint32_t *grown = realloc(verdict->stack, (verdict->stack_count + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	verdict->stack = grown;
	int r = strtab_intern(&importer->run->names, word.at, scan_len(word),
			      &grown[verdict->stack_count]);
	if (r < 0)
		return r;
	verdict->stack_count++;
	return 1;
}

static void previous_interference(struct importer *importer, struct latency_verdict *verdict,
				  int64_t value)
{
	struct latency_part *part = value == LATENCY_UNKNOWN_NS ? NULL : calloc(1, sizeof(*part));
	if (!part)
		return;
	*part = (struct latency_part){.class = NOISE_IRQ,
				      .number = -1,
				      .start_ns = LATENCY_UNKNOWN_NS,
				      .duration_ns = value};
	if (strtab_intern_text(&importer->run->names, "previous interrupt", &part->name) < 0)
		part->name = 0;
	free(verdict->before);
	verdict->before = part;
	verdict->before_count = 1;
}

/* Takes the labels of a line; true when there was one. */
static bool take_labels(struct importer *importer, struct scan line)
{
	static const struct {
		const char *words;
		enum noise_class class;
	} sums[] = {
		{"NMI interference", NOISE_NMI},
		{"Softirq interference", NOISE_SOFTIRQ},
		{"Thread interference", NOISE_THREAD},
		{"IRQ interference", NOISE_IRQ},
	};
	struct latency_verdict *verdict = importer->verdict;
	const char *at;
	if ((at = scan_find(line, "Previous IRQ interference"))) {
		previous_interference(importer, verdict, value_behind((struct scan){at, line.end}));
		importer->section = SECTION_NONE;
		return true;
	}
	if ((at = scan_find(line, "IRQ handler delay"))) {
		verdict->delay_ns = value_behind((struct scan){at, line.end});
		verdict->from_idle = scan_find(line, "exit from idle") != NULL;
		importer->section = SECTION_NONE;
		return true;
	}
	if ((at = scan_find(line, "Timerlat IRQ duration"))) {
		verdict->timer_irq_ns = value_behind((struct scan){at, line.end});
		return true;
	}
	if (scan_find(line, "Blocking thread stack trace")) {
		importer->section = SECTION_STACK;
		return true;
	}
	if ((at = scan_find(line, "Blocking thread"))) {
		verdict->blocking_ns = value_behind((struct scan){at, line.end});
		importer->section = SECTION_BLOCKING;
		return true;
	}
	for (unsigned i = 0; i < ARRAY_LEN(sums); i++) {
		if ((at = scan_find(line, sums[i].words))) {
			int64_t value = value_behind((struct scan){at, line.end});
			verdict->class_ns[sums[i].class] = value;
			importer->section = SECTION_CLASS + sums[i].class;
			return true;
		}
	}
	if ((at = scan_find(line, "Thread latency"))) {
		verdict->total_ns = value_behind((struct scan){at, line.end});
		importer->section = SECTION_NONE;
		return true;
	}
	if (scan_find(line, "Max timerlat IRQ latency from idle"))
		return true;
	if ((at = scan_find(line, "IRQ latency"))) {
		int64_t value = value_behind((struct scan){at, line.end});
		if (scan_find(
			    line,
			    "(100%)")) { /* the total of a wake-up that never reached the thread */
			verdict->context = LATENCY_IRQ;
			verdict->total_ns = value;
		} else {
			verdict->irq_latency_ns = value;
		}
		importer->section = SECTION_NONE;
		return true;
	}
	return false;
}

/* "## CPU 3 hit stop tracing, analyzing it ##": a line may hold two. */
static int take_headings(struct importer *importer, struct scan line)
{
	int found = 0;
	for (struct scan rest = line; (rest.at = scan_find(rest, "CPU ")) != NULL;) {
		struct scan number = {rest.at + strlen("CPU "), line.end};
		uint64_t cpu;
		rest.at = number.at;
		if (!scan_u64(&number, &cpu) || cpu > 1u << 20 ||
		    !scan_skip(&number, "hit stop tracing"))
			continue;
		import_begin(importer, PART_ANALYSIS);
		struct latency_verdict *verdict = open_verdict(importer);
		if (!verdict)
			return -ENOMEM;
		verdict->cpu = (unsigned)cpu;
		importer->run->stopped = true;
		importer->run->stopped_cpu = (unsigned)cpu;
		found = 1;
	}
	return found;
}

int import_rtla_analysis_line(struct importer *importer, struct scan line)
{
	struct scan text = scan_trim(line);
	int r = take_headings(importer, text);
	if (r)
		return r;
	if (scan_find(text, "rtla timerlat hit stop tracing")) {
		importer->run->stopped = true;
		return 1;
	}
	/* older versions analyse one CPU without naming it above */
	bool begins = scan_find(text, "IRQ handler delay") ||
		      scan_find(text, "Previous IRQ interference");
	struct latency_verdict *verdict = importer->verdict;
	if (begins && (!verdict || verdict->total_ns != LATENCY_UNKNOWN_NS)) {
		import_begin(importer, PART_ANALYSIS);
		if (!open_verdict(importer))
			return -ENOMEM;
		importer->verdict->cpu = importer->run->stopped_cpu;
	}
	if (!importer->verdict)
		return 0;
	if (importer->section == SECTION_STACK &&
	    (scan_skip(&text, "->") || scan_skip(&text, "=>")))
		return add_frame(importer, text);
	if (take_labels(importer, text))
		return 1;
	if (text.at < text.end && *text.at == '-' && text.end[-1] == '-')
		return 1;
	return importer->section == SECTION_NONE ? 0 : add_source(importer, text);
}

/* A line that rtla left out is a sum of nothing. */
static int64_t known(int64_t ns)
{
	return ns == LATENCY_UNKNOWN_NS ? 0 : ns;
}

static void complete(struct latency_verdict *verdict)
{
	if (verdict->context == LATENCY_IRQ) {
		/* tracing stopped inside the interrupt, so the delay is that of an older one, or 0
		 */
		verdict->irq_latency_ns = verdict->total_ns;
		verdict->delay_ns = LATENCY_UNKNOWN_NS;
		return;
	}
	int64_t sum = known(verdict->delay_ns) + known(verdict->timer_irq_ns) +
		      known(verdict->blocking_ns);
	for (unsigned class = NOISE_NMI; class < NOISE_CLASSES; class ++) {
		verdict->class_ns[class] = known(verdict->class_ns[class]);
		sum += verdict->class_ns[class];
	}
	for (unsigned i = 0; i < verdict->before_count; i++) /* told as "up to" */
		verdict->before[i].duration_ns =
			MIN(verdict->before[i].duration_ns, known(verdict->delay_ns));
	verdict->rest_ns = verdict->total_ns - sum;
}

int import_analysis_finish(struct latency_run *run)
{
	const struct analysis_clock fine = {0};
	unsigned kept = 0;
	int r = 0;
	for (unsigned i = 0; i < run->verdict_count; i++) {
		struct latency_verdict *verdict = &run->verdicts[i];
		if (verdict->total_ns == LATENCY_UNKNOWN_NS) {
			free(verdict->before);
			free(verdict->parts);
			free(verdict->stack);
			continue;
		}
		complete(verdict);
		if (r == 0)
			r = analysis_conclude(run, &fine, NULL, verdict);
		run->verdicts[kept++] = *verdict;
	}
	run->verdict_count = kept;
	return r;
}
