/*
 * Arm's telemetry data: metrics by name, groups of metrics, and a methodology that says which
 * metrics or groups to look at behind which. A file is for one core from one revision on; of
 * several files of the same core the one nearest below its revision counts.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "events/metrics-internal.h"

/* --- small readers --------------------------------------------------------------------------- */

/* {"NAME": {...}, ...} behind its '{': each for every member that is an object. */
static int each_object(struct metrics_document *d,
		       int (*each)(struct metrics_document *d, const char *name))
{
	enum json_token token;
	int r = 0;

	while (r == 0 && (token = json_next(&d->reader)) == JSON_KEY) {
		const char *name = metrics_keep(d, 256);

		if (!name)
			return -ENOMEM;
		token = json_next(&d->reader);
		if (token == JSON_OBJECT)
			r = each(d, name);
		else
			r = json_skip(&d->reader, token) <= JSON_END ? -EBADMSG : 0;
		token = JSON_KEY;
	}
	return r < 0 ? r : token == JSON_OBJECT_END ? 0 : -EBADMSG;
}

/* ["A", "B"] behind its '[': a pair from -> each. */
static int read_pairs(struct metrics_document *d, const char *from, bool members)
{
	struct metrics *metrics = d->metrics;
	enum json_token token;
	int r = 0;

	while (r == 0 && (token = json_next(&d->reader)) == JSON_STRING) {
		struct metric_pair pair = {from, metrics_keep(d, 256)};

		if (!pair.to)
			r = -ENOMEM;
		else if (metrics->next.len + metrics->members.len < METRICS_MAX)
			r = members ? vec_push(&metrics->members, pair)
				    : vec_push(&metrics->next, pair);
	}
	return r < 0 ? r : token == JSON_ARRAY_END ? 0 : -EBADMSG;
}

/* ["A", "B"] behind its '[' as "A;B". */
static int read_joined(struct metrics_document *d, const char **ret)
{
	struct str out = {0};
	enum json_token token;

	while ((token = json_next(&d->reader)) == JSON_STRING)
		if (out.len < METRIC_BRIEF_MAX)
			str_printf(&out, "%s%s", out.len ? ";" : "", str_text(&d->reader.text));
	*ret = metrics_keep_str(d->metrics, &out);
	str_fini(&out);
	return token != JSON_ARRAY_END ? -EBADMSG : *ret ? 0 : -ENOMEM;
}

/* --- members of the document ----------------------------------------------------------------- */

struct product {
	uint64_t implementer, part, major, minor, slots;
	char name[64];
};

/* Whether this file is the best so far for the core; an earlier one is then forgotten. */
static bool choose(struct metrics_document *d, const struct product *product)
{
	struct metrics *metrics = d->metrics;
	const struct host_cpu_model *model = d->model;
	unsigned revision = (unsigned)((product->major & 0xf) << 4 | (product->minor & 0xf)),
		 wanted;
	bool better;

	if (model && model->known &&
	    (model->vendor != CPU_VENDOR_ARM ||
	     product->implementer != (model->midr >> 24 & 0xff) ||
	     product->part != (model->midr >> 4 & 0xfff)))
		return false;
	if (!model || !model->known || metrics->list.len == 0) {
		metrics->revision = revision;
		return true;
	}
	wanted = (unsigned)((model->midr >> 20 & 0xf) << 4 | (model->midr & 0xf));
	better = metrics->revision > wanted ? revision < metrics->revision
					    : revision <= wanted && revision > metrics->revision;
	if (better) {
		metrics->list.len = metrics->next.len = metrics->members.len = 0;
		metrics->codes.len = d->before = 0;
		hash_index_fini(&metrics->index);
		metrics->index = (struct hash_index){0};
		metrics->revision = revision;
	}
	return better;
}

static int read_product(struct metrics_document *d)
{
	struct product product = {0};
	const struct {
		const char *key;
		uint64_t *to;
	} numbers[] = {{"implementer", &product.implementer},
		       {"part_num", &product.part},
		       {"major_revision", &product.major},
		       {"minor_revision", &product.minor},
		       {"num_slots", &product.slots}};
	struct str version = {0};
	enum json_token token;

	while ((token = json_next(&d->reader)) == JSON_KEY) {
		uint64_t *to = NULL;
		bool name = strcmp(str_text(&d->reader.text), "product_name") == 0;

		for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
			if (strcmp(str_text(&d->reader.text), numbers[i].key) == 0)
				to = numbers[i].to;
		token = json_next(&d->reader);
		if ((token == JSON_STRING || token == JSON_NUMBER) && to)
			*to = strtoull(str_text(&d->reader.text), NULL, 0);
		else if (token == JSON_STRING && name)
			snprintf(product.name, sizeof(product.name), "%s",
				 str_text(&d->reader.text));
		else if (json_skip(&d->reader, token) == JSON_BAD)
			return -EBADMSG;
	}
	if (token != JSON_OBJECT_END)
		return -EBADMSG;
	d->other_cpu = !choose(d, &product);
	if (d->other_cpu)
		return 0;
	d->metrics->slots = product.slots <= 64 ? (unsigned)product.slots : 0;
	if (product.name[0])
		str_printf(&version, "%s r%up%u", product.name, (unsigned)(product.major & 0xf),
			   (unsigned)(product.minor & 0xf));
	d->metrics->version = metrics_keep_str(d->metrics, &version);
	str_fini(&version);
	return d->metrics->version ? 0 : -ENOMEM;
}

static int read_event(struct metrics_document *d, const char *name)
{
	struct metric_code code = {.name = name};
	enum json_token token;
	bool known = false;

	while ((token = json_next(&d->reader)) == JSON_KEY) {
		bool is_code = strcmp(str_text(&d->reader.text), "code") == 0;

		token = json_next(&d->reader);
		if (is_code && (token == JSON_STRING || token == JSON_NUMBER)) {
			char *end;

			code.code = strtoull(str_text(&d->reader.text), &end, 0);
			known = end != str_text(&d->reader.text);
		} else if (json_skip(&d->reader, token) == JSON_BAD) {
			return -EBADMSG;
		}
	}
	if (token != JSON_OBJECT_END)
		return -EBADMSG;
	return known && d->metrics->codes.len < METRICS_MAX ? vec_push(&d->metrics->codes, code)
							    : 0;
}

static int read_metric(struct metrics_document *d, const char *name)
{
	struct metric m = {.name = name,
			   .title = name,
			   .description = "",
			   .formula = NULL,
			   .groups = "",
			   .parent = "",
			   .threshold = "",
			   .unit = "",
			   .domain = "",
			   .sample = "",
			   .pmu = "",
			   .scale = 1};
	const struct {
		const char *key;
		const char **to;
	} texts[] = {{"title", &m.title},
		     {"description", &m.description},
		     {"formula", &m.formula},
		     {"units", &m.unit}};
	enum json_token token;
	int r = 0;

	while (r == 0 && (token = json_next(&d->reader)) == JSON_KEY) {
		bool sample = strcmp(str_text(&d->reader.text), "sample_events") == 0;
		const char **to = NULL;

		for (size_t i = 0; i < ARRAY_LEN(texts); i++)
			if (strcmp(str_text(&d->reader.text), texts[i].key) == 0)
				to = texts[i].to;
		token = json_next(&d->reader);
		if (token == JSON_STRING && to)
			r = (*to = metrics_keep(d, to == &m.formula ? METRIC_TEXT_MAX
								    : METRIC_BRIEF_MAX))
				    ? 0
				    : -ENOMEM;
		else if (token == JSON_ARRAY && sample)
			r = read_joined(d, &m.sample);
		else
			r = json_skip(&d->reader, token) == JSON_BAD ? -EBADMSG : 0;
		token = JSON_KEY;
	}
	if (r < 0 || token != JSON_OBJECT_END)
		return r < 0 ? r : -EBADMSG;
	m.percent = str_prefix(m.unit, "percent", NULL) != 0;
	d->metrics->layout = METRIC_ARM;
	return m.formula ? metrics_add(d, &m) : 0;
}

/* "metrics": {"GROUP": {"metrics": ["a", "b"]}} */
static int read_group(struct metrics_document *d, const char *name)
{
	enum json_token token;
	int r = 0;

	while (r == 0 && (token = json_next(&d->reader)) == JSON_KEY) {
		bool members = strcmp(str_text(&d->reader.text), "metrics") == 0;

		token = json_next(&d->reader);
		if (members && token == JSON_ARRAY)
			r = read_pairs(d, name, true);
		else
			r = json_skip(&d->reader, token) == JSON_BAD ? -EBADMSG : 0;
		token = JSON_KEY;
	}
	return r < 0 ? r : token == JSON_OBJECT_END ? 0 : -EBADMSG;
}

static int read_groups(struct metrics_document *d, const char *kind)
{
	if (strcmp(kind, "metrics") == 0)
		return each_object(d, read_group);
	return json_skip(&d->reader, JSON_OBJECT) == JSON_BAD ? -EBADMSG : 0;
}

/* {"name": "frontend_bound", "next_items": [...]}; the name may stand behind the items. */
static int read_step(struct metrics_document *d)
{
	struct metrics *metrics = d->metrics;
	size_t before = metrics->next.len;
	const char *name = NULL;
	enum json_token token;
	int r = 0;

	while (r == 0 && (token = json_next(&d->reader)) == JSON_KEY) {
		bool is_name = strcmp(str_text(&d->reader.text), "name") == 0;
		bool items = strcmp(str_text(&d->reader.text), "next_items") == 0;

		token = json_next(&d->reader);
		if (is_name && token == JSON_STRING)
			r = (name = metrics_keep(d, 256)) ? 0 : -ENOMEM;
		else if (items && token == JSON_ARRAY)
			r = read_pairs(d, NULL, false);
		else
			r = json_skip(&d->reader, token) == JSON_BAD ? -EBADMSG : 0;
		token = JSON_KEY;
	}
	if (r == 0 && token != JSON_OBJECT_END)
		r = -EBADMSG;
	if (!name || r < 0)
		metrics->next.len = before;
	for (size_t i = before; i < metrics->next.len; i++)
		metrics->next.data[i].from = name;
	return r;
}

/* "decision_tree": {"root_nodes": [...], "metrics": [{...}]}; "" leads to the roots */
static int read_tree(struct metrics_document *d)
{
	enum json_token token;
	int r = 0;

	while (r == 0 && (token = json_next(&d->reader)) == JSON_KEY) {
		bool roots = strcmp(str_text(&d->reader.text), "root_nodes") == 0;
		bool steps = strcmp(str_text(&d->reader.text), "metrics") == 0;

		token = json_next(&d->reader);
		if (roots && token == JSON_ARRAY) {
			r = read_pairs(d, "", false);
		} else if (steps && token == JSON_ARRAY) {
			while (r == 0 && (token = json_next(&d->reader)) == JSON_OBJECT)
				r = read_step(d);
			if (r == 0 && token != JSON_ARRAY_END)
				r = -EBADMSG;
		} else {
			r = json_skip(&d->reader, token) == JSON_BAD ? -EBADMSG : 0;
		}
		token = JSON_KEY;
	}
	return r < 0 ? r : token == JSON_OBJECT_END ? 0 : -EBADMSG;
}

static int read_methodology_member(struct metrics_document *d, const char *key)
{
	if (strcmp(key, "decision_tree") == 0)
		return read_tree(d);
	return json_skip(&d->reader, JSON_OBJECT) == JSON_BAD ? -EBADMSG : 0;
}

static int read_methodology(struct metrics_document *d, const char *name)
{
	if (strcmp(name, "topdown_methodology") == 0)
		return each_object(d, read_methodology_member);
	return json_skip(&d->reader, JSON_OBJECT) == JSON_BAD ? -EBADMSG : 0;
}

int metrics_read_arm(struct metrics_document *d, const char *key)
{
	static const struct {
		const char *key;
		int (*each)(struct metrics_document *d, const char *name); /* NULL: the product */
	} members[] = {{"product_configuration", NULL},
		       {"events", read_event},
		       {"metrics", read_metric},
		       {"groups", read_groups},
		       {"methodologies", read_methodology}};

	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		enum json_token token;
		int r;

		if (strcmp(members[i].key, key) != 0)
			continue;
		token = json_next(&d->reader);
		if (token != JSON_OBJECT)
			r = json_skip(&d->reader, token) <= JSON_END ? -EBADMSG : 0;
		else
			r = members[i].each ? each_object(d, members[i].each) : read_product(d);
		return r < 0 ? r : 1;
	}
	return 0;
}
