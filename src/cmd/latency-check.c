/* culprit latency check: the limits that a run has to keep, for people, scripts and CI. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/util.h"
#include "cmd/feature.h"
#include "cmd/latency.h"
#include "view/table.h"
#include "view/text.h"

struct verdicts {
	const struct latency_args *args;
	const struct latency_input *inputs;
	unsigned input_count;
	VEC(struct sla_result) results; /* input by input, rule by rule */
};

static const char *const state_names[] = {"kept", "exceeded", "unknown"};

static const struct sla_result *result_of(const struct verdicts *v, unsigned input, unsigned rule)
{
	return &v->results.data[input * v->args->sla.rules.len + rule];
}

static void put_value(double value, enum sla_unit unit, struct str *out)
{
	if (isnan(value))
		str_puts(out, "unknown");
	else if (unit == SLA_SHARE)
		str_printf(out, "%.5f%%", value * 100);
	else if (unit == SLA_NS)
		str_printf(out, "%.3f us", value / 1000);
	else
		str_printf(out, "%.0f", value);
}

static int make_table(const struct verdicts *v, struct table **ret)
{
	static const struct table_column columns[] = {
		{.key = "rule", .title = "RULE", .kind = CELL_TEXT},
		{.key = "state", .title = "STATE", .kind = CELL_TEXT},
		{.key = "value", .title = "WORST", .kind = CELL_TEXT},
		{.key = "cpu", .title = "CPU", .kind = CELL_COUNT},
		{.key = "file", .title = "FILE", .kind = CELL_TEXT},
		{.key = "reason", .title = "REASON", .kind = CELL_TEXT},
	};
	struct table *table;
	int r = table_new(columns, ARRAY_LEN(columns), &table);
	if (r < 0)
		return r;
	for (unsigned input = 0; input < v->input_count; input++) {
		for (unsigned i = 0; i < v->args->sla.rules.len; i++) {
			const struct sla_result *result = result_of(v, input, i);
			struct str value = {0};
			put_value(result->value, v->args->sla.rules.data[i].unit, &value);
			table_text(table, v->args->sla.rules.data[i].text);
			table_text(table, state_names[result->state]);
			table_text(table, str_text(&value));
			str_fini(&value);
			if (result->cpu >= 0)
				table_count(table, (uint64_t)result->cpu);
			else
				table_unknown(table);
			table_text(table, v->inputs[input].path);
			table_text(table, result->reason);
		}
	}
	r = table_status(table);
	if (r < 0)
		table_free(table);
	else
		*ret = table;
	return r;
}

static void put_json(const struct verdicts *v, struct json *json)
{
	json_document(json, "latency_check");
	json_array(json, "rules");
	for (unsigned input = 0; input < v->input_count; input++) {
		for (unsigned i = 0; i < v->args->sla.rules.len; i++) {
			const struct sla_rule *rule = &v->args->sla.rules.data[i];
			const struct sla_result *result = result_of(v, input, i);
			const char *key = rule->unit == SLA_NS      ? "value_ns"
					  : rule->unit == SLA_SHARE ? "value_share"
								    : "value";
			json_object(json, NULL);
			json_text(json, "file", v->inputs[input].path);
			json_text(json, "rule", rule->text);
			json_text(json, "state", state_names[result->state]);
			json_double(json, key, result->value);
			json_u64_if(json, "cpu", result->cpu >= 0, (uint64_t)result->cpu);
			json_text(json, "reason", *result->reason ? result->reason : NULL);
			json_end_object(json);
		}
	}
	json_end_array(json);
	json_end_object(json);
}

/* JUnit's XML: a suite a file, a case a rule; what is not known is an error, as it proves nothing.
 */
static int write_junit(const struct verdicts *v, const char *path, struct err *err)
{
	struct str out = {0};
	str_puts(&out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
	for (unsigned input = 0; input < v->input_count; input++) {
		unsigned failures = 0, errors = 0;
		for (unsigned i = 0; i < v->args->sla.rules.len; i++) {
			failures += result_of(v, input, i)->state == SLA_EXCEEDED;
			errors += result_of(v, input, i)->state == SLA_UNKNOWN;
		}
		str_puts(&out, "  <testsuite name=\"");
		text_xml(&out, v->inputs[input].path, strlen(v->inputs[input].path));
		str_printf(&out, "\" tests=\"%zu\" failures=\"%u\" errors=\"%u\">\n",
			   v->args->sla.rules.len, failures, errors);
		for (unsigned i = 0; i < v->args->sla.rules.len; i++) {
			const struct sla_rule *rule = &v->args->sla.rules.data[i];
			const struct sla_result *result = result_of(v, input, i);
			str_puts(&out, "    <testcase classname=\"latency\" name=\"");
			text_xml(&out, rule->text, strlen(rule->text));
			str_puts(&out, "\">");
			if (result->state == SLA_EXCEEDED) {
				str_puts(&out, "<failure message=\"");
				put_value(result->value, rule->unit, &out);
				str_printf(&out, " on CPU %d\"/>", result->cpu);
			} else if (result->state == SLA_UNKNOWN) {
				str_puts(&out, "<error message=\"");
				text_xml(&out, result->reason, strlen(result->reason));
				str_puts(&out, "\"/>");
			}
			str_puts(&out, "</testcase>\n");
		}
		str_puts(&out, "  </testsuite>\n");
	}
	str_puts(&out, "</testsuites>\n");
	int r = str_status(&out);
	if (r == 0)
		r = file_write_atomic(path, out.data, out.len, 0644, err);
	str_fini(&out);
	return r;
}

static int judge(const struct verdicts *v)
{
	int status = EXIT_DONE;
	vec_for_each(&v->results, result) {
		if (result->state == SLA_EXCEEDED)
			return EXIT_THRESHOLD;
		if (result->state == SLA_UNKNOWN)
			status = EXIT_INCOMPLETE;
	}
	return status;
}

static int print(const struct command *self, const struct verdicts *v)
{
	struct json json = {0};
	struct str out = {0};
	struct table *table = NULL;
	int r = v->args->json ? 0 : make_table(v, &table);
	if (r < 0)
		return cmd_fail(self, r, NULL);
	if (v->args->json)
		put_json(v, &json);
	else if (v->args->csv)
		table_print_csv(table, ',', &out);
	else
		latency_print_table(table, &out);
	table_free(table);
	const struct str *document = v->args->json ? &json.out : &out;
	int status = cmd_write_stdout(self, str_text(document), document->len);
	str_fini(&json.out);
	str_fini(&out);
	return status;
}

int latency_check_verb(const struct command *self, const struct latency_args *args,
		       struct latency_input *inputs, unsigned count)
{
	struct verdicts v = {.args = args, .inputs = inputs, .input_count = count};
	struct err err = {0};
	int status = EXIT_DONE, r = 0;
	if (!args->sla.rules.len)
		return cmd_failf(
			self,
			"check needs --sla RULES, as --sla 'thread.p99<=10us,thread.max<=50us'");
	for (unsigned input = 0; input < count; input++) {
		vec_for_each(&args->sla.rules, rule) {
			struct sla_result result;
			sla_check(rule, &inputs[input].run, &result);
			if (vec_push(&v.results, result) < 0)
				r = -ENOMEM;
		}
	}
	if (r == 0 && args->junit)
		r = write_junit(&v, args->junit, &err);
	status = r < 0 ? cmd_fail(self, r, &err) : print(self, &v);
	if (status == EXIT_DONE)
		status = judge(&v);
	vec_fini(&v.results);
	return status;
}
