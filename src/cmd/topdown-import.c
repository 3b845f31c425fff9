/*
 * Recorded counts: lines of "EVENT COUNT [SHARE%] [+- ERROR]". An event may stand there several
 * times, once for each group it was counted in: a part of the tree then takes the occurrences that
 * stand nearest together, since those were counted together.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/util.h"
#include "cmd/topdown.h"
#include "count/value.h"

#define IMPORT_BYTES_MAX  (16u << 20)
#define IMPORT_LINES_MAX  20000
#define IMPORT_COUNTS_MAX 2000 /* every formula looks through all of them */
#define DISAGREEMENT      0.20 /* of the larger */

static const char *const literal_names[] = {"smt_on", "system_tsc_freq", "has_pmem"};

static bool grouped(const char *text, char sign)
{
	size_t digits = strspn(text, "0123456789");

	if (digits == 0 || digits > 3)
		return false;
	for (text += digits; *text == sign; text += 4)
		if (strspn(text + 1, "0123456789") != 3)
			return false;
	return *text == '\0';
}

/* 1234567, 1,234,567, 1.234.567 and 0.54. One dot or comma with three digits behind it could be
 * either, except that counts are whole: "1,234" is 1234, "1.234" is refused. */
static int parse_count(const char *text, double *ret)
{
	char digits[64];
	size_t len = 0;
	const char *dot = strchr(text, '.');
	bool groups = (strchr(text, ',') && grouped(text, ',')) ||
		      (dot && strchr(dot + 1, '.') && grouped(text, '.'));

	if (dot && !groups && grouped(text, '.'))
		return -EINVAL;
	for (; *text; text++) {
		if (groups && (*text == ',' || *text == '.'))
			continue;
		if (len == sizeof(digits) - 1)
			return -EINVAL;
		digits[len++] = *text;
	}
	digits[len] = '\0';
	if (parse_double(digits, ret) < 0 || !isfinite(*ret) || *ret < 0)
		return -EINVAL;
	return 0;
}

int topdown_counts_add(struct topdown_counts *counts, const struct topdown_count *count)
{
	return vec_push(&counts->counts, *count);
}

int topdown_counts_sum(struct topdown_counts *counts, const struct topdown_count *count)
{
	vec_for_each(&counts->counts, sum) {
		if (sum->event != count->event || sum->line != count->line)
			continue;
		/* A sum that lacks a run cannot stand beside sums that have it. */
		if (count->value.state > sum->value.state) {
			sum->value.state = count->value.state;
			memcpy(sum->value.reason, count->value.reason, sizeof(sum->value.reason));
		}
		sum->value.value += count->value.value;
		sum->value.variance += count->value.variance;
		sum->raw += count->raw;
		sum->enabled_ns += count->enabled_ns;
		sum->running_ns += count->running_ns;
		return 0;
	}
	return vec_push(&counts->counts, *count);
}

/* "(50.01%)", "50.01%": the share of the time in which it was counted. */
static int parse_share(const char *word, struct expr_value *value)
{
	char text[32];
	double share;
	size_t len = strlen(word);

	if (*word == '(') {
		word++;
		len -= 2;
	}
	if (len < 2 || len >= sizeof(text) || word[len - 1] != '%')
		return -EINVAL;
	memcpy(text, word, len - 1);
	text[len - 1] = '\0';
	if (parse_double(text, &share) < 0 || !(share >= 0 && share <= 100.5))
		return -EINVAL;
	share /= 100;
	if (share < 0.9995) {
		value->state = share < VALUE_WEAK_SHARE ? EXPR_WEAK : EXPR_ESTIMATED;
		snprintf(value->reason, sizeof(value->reason), "counted %.0f%% of the time",
			 100 * share);
	}
	return 0;
}

static int parse_rest(char *rest, struct expr_value *value)
{
	char *save = NULL;
	bool error = false;

	for (char *word = strtok_r(rest, " \t", &save); word; word = strtok_r(NULL, " \t", &save)) {
		double number;

		if (strcmp(word, "+-") == 0) {
			error = true;
		} else if (error) {
			if (parse_count(word, &number) < 0)
				return -EINVAL;
			value->variance = number * number;
			error = false;
		} else if (parse_share(word, value) < 0) {
			return -EINVAL;
		}
	}
	return error ? -EINVAL : 0;
}

static int parse_line(struct topdown_counts *counts, char *line, unsigned number, struct err *err)
{
	struct expr_value value = expr_number(0);
	char *save = NULL, *name, *count, *rest;
	unsigned factor;
	int event;

	line[strcspn(line, "#\r")] = '\0';
	name = strtok_r(line, " \t", &save);
	count = name ? strtok_r(NULL, " \t", &save) : NULL;
	rest = count ? strtok_r(NULL, "", &save) : NULL;
	if (!name)
		return 0;
	if (!count)
		return err_set(err, -EINVAL, "line %u: no count behind '%s'", number, name);
	value.variance = NAN;
	event = topdown_event_match(counts->table, name, &factor);
	if (strcmp(count, "<not") ==
	    0) { /* "<not counted>", "<not supported>", as perf prints it */
		bool supported = !rest || strncmp(rest, "supported>", 10) != 0;

		value = expr_missing(supported ? EXPR_NOT_COUNTED : EXPR_NOT_SUPPORTED,
				     "%s was not %s", name, supported ? "counted" : "supported");
	} else if (parse_count(count, &value.value) < 0) {
		return err_set(err, -EINVAL, "line %u: '%s' is not a count", number, count);
	} else if (rest && parse_rest(rest, &value) < 0) {
		return err_set(err, -EINVAL,
			       "line %u: behind the count only SHARE%% and +- ERROR may stand",
			       number);
	}
	for (size_t i = 0; i < ARRAY_LEN(literal_names); i++)
		if (strcmp(name, literal_names[i]) == 0) {
			counts->literals[i] = value;
			return 0;
		}
	if (event < 0) {
		if (counts->unknown++ == 0)
			snprintf(counts->first_unknown, sizeof(counts->first_unknown), "%s", name);
		return 0;
	}
	value.value /= factor;
	value.variance /= (double)factor * factor;
	return topdown_counts_add(counts, &(struct topdown_count){.event = (unsigned)event,
								  .line = number,
								  .value = value}) < 0
		       ? err_set(err, -ENOMEM, "out of memory")
		       : 0;
}

/* In a file that gives errors or shares, a count with neither was counted all the time: it has no
 * error of sampling. In a file without any, nothing is known. */
static void settle_errors(struct topdown_counts *counts)
{
	bool given = false;

	vec_for_each(&counts->counts, count)
		given |= expr_has_number(&count->value) &&
			 (count->value.state != EXPR_MEASURED || !isnan(count->value.variance));
	vec_for_each(&counts->counts, count)
		if (given && count->value.state == EXPR_MEASURED && isnan(count->value.variance))
			count->value.variance = 0;
}

int topdown_import_text(struct topdown_counts *counts, char *text, size_t size, const char *name,
			struct err *err)
{
	unsigned number = 0;
	int r = 0;

	counts->literals[0] = expr_number(0);
	counts->literals[1] = expr_missing(EXPR_NOT_COUNTED, "system_tsc_freq is not in the file");
	counts->literals[2] = expr_missing(EXPR_NOT_COUNTED, "has_pmem is not in the file");
	if (memchr(text, '\0', size))
		return err_set(err, -EINVAL, "%s: not a text file", name);
	for (char *line = text, *end; line && r == 0; line = end) {
		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		if (++number > IMPORT_LINES_MAX)
			r = err_set(err, -E2BIG, "more than %d lines", IMPORT_LINES_MAX);
		else
			r = parse_line(counts, line, number, err);
		if (r == 0 && counts->counts.len > IMPORT_COUNTS_MAX)
			r = err_set(err, -E2BIG, "more than %d counts of %s", IMPORT_COUNTS_MAX,
				    counts->table->set);
	}
	if (r < 0)
		return err_wrap(err, r, "%s", name);
	settle_errors(counts);
	if (counts->counts.len == 0)
		return err_set(err, -ENODATA, "%s: no event of %s in it%s%s", name,
			       counts->table->set, counts->unknown ? "; it has " : "",
			       counts->first_unknown);
	return 0;
}

int topdown_import(struct topdown_counts *counts, const char *path, struct err *err)
{
	CLEANUP_FREE char *text = NULL;
	size_t size;
	int r = file_read(strcmp(path, "-") == 0 ? "/dev/stdin" : path, IMPORT_BYTES_MAX, &text,
			  &size, err);

	return r < 0 ? r : topdown_import_text(counts, text, size, path, err);
}

/* The first occurrence of an event from a line on. */
static const struct topdown_count *at_or_after(const struct topdown_counts *counts, unsigned event,
					       unsigned line, bool exact)
{
	vec_for_each(&counts->counts, count)
		if (count->event == event && (exact ? count->line == line : count->line >= line))
			return count;
	return NULL;
}

static void count_of(void *ctx, unsigned event, int section, struct expr_value *ret)
{
	const struct topdown_counts *counts = ctx;
	const struct topdown_count *found = at_or_after(
		counts, event, section < 0 ? 0 : (unsigned)section, section >= 0 && counts->by_run);
	double low = INFINITY, high = 0;

	if (!found && section >= 0)
		found = at_or_after(counts, event, 0, false);
	if (!found)
		return;
	*ret = found->value;
	vec_for_each(&counts->counts, count)
		if (count->event == event && expr_has_number(&count->value)) {
			low = MIN(low, count->value.value);
			high = MAX(high, count->value.value);
		}
	if (!counts->by_run && ret->state < EXPR_WEAK && high - low > DISAGREEMENT * high) {
		ret->state = EXPR_WEAK;
		snprintf(ret->reason, sizeof(ret->reason),
			 "%s was counted as %.0f and as %.0f in different groups",
			 counts->table->events[event].title, low, high);
	}
}

/* Lines: where the window starts that holds all the events and is shortest, the first of equals.
 * Runs: the last that counted all of them. */
static int section_of_run(const struct topdown_counts *counts, const unsigned *events, size_t len)
{
	int best = -1;

	vec_for_each(&counts->counts, start) {
		bool all = true;

		for (size_t i = 0; i < len && all; i++) {
			const struct topdown_count *count =
				at_or_after(counts, events[i], start->line, true);

			all = count && expr_has_number(&count->value);
		}
		if (all)
			best = (int)start->line;
	}
	return best;
}

/* From the last line backwards, with where each event stands next. */
static int section_of(void *ctx, const unsigned *events, size_t len)
{
	const struct topdown_counts *counts = ctx;
	const struct topdown_count *next[TOPDOWN_EVENTS_MAX] = {NULL};
	unsigned best_span = UINT32_MAX;
	int best = -1;

	if (counts->by_run)
		return section_of_run(counts, events, len);
	for (size_t k = counts->counts.len; k-- > 0;) {
		const struct topdown_count *start = &counts->counts.data[k];
		unsigned last = start->line;
		bool all = true;

		if (start->event < TOPDOWN_EVENTS_MAX)
			next[start->event] = start;
		for (size_t i = 0; i < len && all; i++) {
			const struct topdown_count *count =
				events[i] < TOPDOWN_EVENTS_MAX ? next[events[i]] : NULL;

			all = count && expr_has_number(&count->value);
			last = all ? MAX(last, count->line) : last;
		}
		if (all && last - start->line <= best_span) { /* the first of equals */
			best_span = last - start->line;
			best = (int)start->line;
		}
	}
	return best;
}

static void literal_of(void *ctx, const char *name, struct expr_value *ret)
{
	const struct topdown_counts *counts = ctx;
	const struct expr_value *smt = &counts->literals[0];

	for (size_t i = 0; i < ARRAY_LEN(literal_names); i++)
		if (strcasecmp(name, literal_names[i]) == 0)
			*ret = counts->literals[i];
	if (strcasecmp(name, "core_wide") == 0 && expr_has_number(smt) && smt->value == 0)
		*ret = expr_number(1); /* a thread is its core */
}

void topdown_counts_inputs(struct topdown_counts *counts, struct topdown_inputs *ret)
{
	*ret = (struct topdown_inputs){counts, count_of, section_of, literal_of,
				       expr_has_number(&counts->literals[0]) &&
					       counts->literals[0].value != 0};
}

void topdown_counts_fini(struct topdown_counts *counts)
{
	vec_fini(&counts->counts);
}
