/* stat --explain: a metric's formula, the numbers in it, and how each of them came about. */
#include <math.h>
#include <stdlib.h>

#include "base/util.h"
#include "cmd/stat-formula.h"

struct explain {
	const struct stat_metric *metric;
	const struct expr_value *inputs;
	bool numbers; /* instead of names */
};

static void put_number(double value, struct str *out)
{
	if (value == floor(value) && fabs(value) < 1e15)
		str_printf(out, "%.0f", value);
	else
		str_printf(out, "%.6g", value);
}

/* name: as it stands in the formula, escapes included. */
static int put_name(void *ctx, const char *name, size_t len, struct str *out)
{
	const struct explain *e = ctx;
	struct str plain = {0};
	int i;

	for (size_t k = 0; k < len; k++)
		if (name[k] != '\\')
			str_putc(&plain, name[k] == '@' ? '/' : name[k]);
	i = stat_leaf_find(e->metric, str_text(&plain));
	if (!e->numbers || i < 0 || e->metric->leaves[i].kind == STAT_LEAF_METRIC)
		str_puts(out, str_text(&plain));
	else if (expr_has_number(&e->inputs[i]))
		put_number(e->inputs[i].value, out);
	else
		str_putc(out, '?');
	str_fini(&plain);
	return 0;
}

static void print_formula(const struct stat_job *job, struct explain *e, const char *formula,
			  bool numbers)
{
	struct str text = {0};

	e->numbers = numbers;
	expr_rewrite(formula, put_name, e, &text);
	fprintf(job->out, "  = %s", str_text(&text));
	if (e->metric->scale != 1 && formula == e->metric->formula)
		fprintf(job->out, ", times %g", e->metric->scale);
	str_fini(&text);
}

static void print_value(const struct stat_job *job, const struct stat_metric *metric,
			const struct count_ratio *ratio)
{
	if (isnan(ratio->value)) {
		fprintf(job->out, "\n  = unknown (%s)\n", ratio->reason);
		return;
	}
	fprintf(job->out, " = %.4f%s%s", ratio->value, metric->unit[0] == '%' ? "" : " ",
		metric->unit);
	if (ratio->stderr_ > 0)
		fprintf(job->out, " +- %.4f", ratio->stderr_);
	fprintf(job->out, "\n  %s\n",
		ratio->together ? "all of it was counted over the same time"
				: "its parts were counted at different times");
}

static void print_event(const struct stat_job *job, unsigned event, const struct count_value *value)
{
	char text[64];

	snprintf(text, sizeof(text), "%.0f", value->value);
	fprintf(job->out, "    %-32s %20s %s", job->set.events.data[event].name,
		value_has_number(value) ? text : "-", value_state_name(value->state));
	if (value->state == VALUE_ESTIMATED || value->state == VALUE_WEAK)
		fprintf(job->out, " +- %.0f, counted %llu in %.1f%% of the time", value->stderr_,
			(unsigned long long)value->raw, 100 * value_share(value));
	fprintf(job->out, "%s%s\n", value->reason[0] ? ": " : "", value->reason);
}

static void print_leaf(const struct stat_job *job, struct explain *e, const struct stat_leaf *leaf,
		       const struct expr_value *input, const struct count_value *values)
{
	switch (leaf->kind) {
	case STAT_LEAF_METRIC:
		fprintf(job->out, "  %s\n  ", leaf->name);
		print_formula(job, e, leaf->formula, false);
		fputs("\n  ", job->out);
		print_formula(job, e, leaf->formula, true);
		fputc('\n', job->out);
		break;
	case STAT_LEAF_EVENTS:
		for (size_t k = 0; k < leaf->count; k++) {
			unsigned event = stat_leaf_event(job, e->metric, leaf, (unsigned)k);

			print_event(job, event, &values[event]);
		}
		break;
	default:
		if (expr_has_number(input))
			fprintf(job->out, "    %-32s %20.9f s\n", leaf->name, input->value);
		else
			fprintf(job->out, "    %-32s %20s %s\n", leaf->name, "-", input->reason);
	}
}

static void explain_one(const struct stat_job *job, const struct stat_metric *metric,
			const struct stat_result *result, const struct count_ratio *ratio)
{
	CLEANUP_FREE struct expr_value *inputs = calloc(metric->leaf_count + 1, sizeof(*inputs));
	struct explain e = {.metric = metric, .inputs = inputs};

	if (!inputs)
		return;
	stat_metric_inputs(job, metric, result->values, result, inputs);
	fprintf(job->out, "\n %s%s%s\n", metric->name, metric->description[0] ? ": " : "",
		metric->description);
	print_formula(job, &e, metric->formula, false);
	fputc('\n', job->out);
	print_formula(job, &e, metric->formula, true);
	print_value(job, metric, ratio);
	for (unsigned i = 0; i < metric->leaf_count; i++)
		print_leaf(job, &e, &metric->leaves[i], &inputs[i], result->values);
}

void stat_explain(const struct stat_job *job, const struct stat_result *result)
{
	for (size_t m = 0; m < job->metrics.len; m++)
		if (job->metrics.data[m].explain)
			explain_one(job, &job->metrics.data[m], result, &result->ratios[m]);
}
