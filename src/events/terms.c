/*
 * "pmu/terms/": general terms (config=, period=, name= ...), the PMU's bit fields, its named
 * events, and names that belong to the core PMU: generic, cache, raw and vendor ones. Later terms
 * win.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "events/parse-internal.h"

struct term {
	char *name, *value; /* value NULL: none given */
	size_t pos;         /* in the text; SIZE_MAX: from a table */
};

struct terms {
	const struct parser *p;
	struct pmu *pmu;
	struct event *event;
	const char *table;     /* where the terms stand, when not in the text */
	char **name;           /* name= */
	bool in_alias;         /* a named event of the PMU is being laid out */
	VEC(struct term) open; /* fields of the named event that the user has to give ("core=?") */
};

static int term_error(const struct terms *terms, const struct term *term, const char *words)
{
	if (term->pos == SIZE_MAX)
		return err_set(terms->p->err, -EINVAL, "%s: '%s': %s",
			       terms->table ? terms->table : terms->pmu->name, term->name, words);
	return parse_error(terms->p, term->pos, "'%s': %s", term->name, words);
}

static int term_number(const struct terms *terms, const struct term *term, uint64_t *ret)
{
	unsigned long long number;
	int r = term->value ? parse_u64(term->value, 0, &number) : -EINVAL;

	if (r < 0)
		return term_error(terms, term,
				  r == -ERANGE ? "the number does not fit 64 bits"
					       : "expected a number, as =0x1f");
	*ret = number;
	return 0;
}

static int set_period(struct terms *terms, const struct term *term)
{
	uint64_t value = 0;
	int r = term_number(terms, term, &value);

	if (r < 0)
		return r;
	if (value == 0)
		return term_error(terms, term, "expected at least 1");
	terms->event->attr.freq = strcmp(term->name, "freq") == 0;
	terms->event->attr.sample_period = value; /* sample_freq is the same word */
	return 0;
}

static int set_config(struct terms *terms, const struct term *term)
{
	uint64_t value = 0;
	int r = term_number(terms, term, &value);

	if (r < 0)
		return r;
	if (strcmp(term->name, "config1") == 0)
		terms->event->attr.config1 = value;
	else if (strcmp(term->name, "config2") == 0)
		terms->event->attr.config2 = value;
	else
		terms->event->attr.config = value;
	return 0;
}

static int set_text(struct terms *terms, const struct term *term)
{
	char **slot = strcmp(term->name, "name") == 0 ? terms->name : &terms->event->callgraph;
	static const char *const graphs[] = {"fp", "dwarf", "lbr", "no"};
	bool known = slot == terms->name;

	if (!term->value || term->value[0] == '\0')
		return term_error(terms, term, "expected a value, as =word");
	for (size_t i = 0; !known && i < ARRAY_LEN(graphs); i++)
		known = strcmp(term->value, graphs[i]) == 0;
	if (!known)
		return term_error(terms, term, "expected fp, dwarf, lbr or no");
	free(*slot);
	*slot = strdup(term->value);
	return *slot ? 0 : -ENOMEM;
}

static int set_stack(struct terms *terms, const struct term *term)
{
	bool size = strcmp(term->name, "stack-size") == 0;
	uint64_t value = 0;
	int r = term_number(terms, term, &value);

	if (r < 0)
		return r;
	if (value > (size ? 65528 : UINT16_MAX))
		return term_error(terms, term, size ? "at most 65528" : "at most 65535");
	if (size)
		terms->event->attr.sample_stack_user = (uint32_t)value;
	else
		terms->event->attr.sample_max_stack = (uint16_t)value;
	return 0;
}

/* Terms that are on when they stand alone; "=0" is off. */
static int set_flag(struct terms *terms, const struct term *term)
{
	uint64_t on = 1;
	int r = term->value ? term_number(terms, term, &on) : 0;

	if (r < 0)
		return r;
	if (strcmp(term->name, "percore") == 0)
		terms->event->percore = on != 0;
	else if (strcmp(term->name, "inherit") == 0)
		terms->event->inherit = on != 0;
	else if (strcmp(term->name, "no-inherit") == 0)
		terms->event->inherit = on == 0;
	else if (strcmp(term->name, "overwrite") == 0)
		terms->event->attr.write_backward = on != 0;
	else if (strcmp(term->name, "no-overwrite") == 0)
		terms->event->attr.write_backward = on == 0;
	else
		terms->event->attr.aux_output = on != 0;
	return 0;
}

static const struct {
	const char *name;
	int (*set)(struct terms *terms, const struct term *term);
} general_terms[] = {
	{"config", set_config},   {"config1", set_config},    {"config2", set_config},
	{"period", set_period},   {"freq", set_period},       {"name", set_text},
	{"call-graph", set_text}, {"stack-size", set_stack},  {"max-stack", set_stack},
	{"percore", set_flag},    {"inherit", set_flag},      {"no-inherit", set_flag},
	{"overwrite", set_flag},  {"no-overwrite", set_flag}, {"aux-output", set_flag},
};

static int set_field(struct terms *terms, const struct pmu_format *format, const struct term *term)
{
	struct perf_event_attr *attr = &terms->event->attr;
	uint64_t words[PMU_CONFIG_WORDS] = {attr->config, attr->config1, attr->config2}, value = 1;
	char words_text[96];
	int r;

	if (terms->in_alias && term->value && strcmp(term->value, "?") == 0) {
		struct term open = {.name = strdup(term->name), .pos = term->pos};

		if (!open.name || vec_push(&terms->open, open) < 0) {
			free(open.name);
			return -ENOMEM;
		}
		return 0;
	}
	r = term->value ? term_number(terms, term, &value) : 0;
	if (r < 0)
		return r;
	if (pmu_format_deposit(format->mask, value, &words[format->word]) < 0) {
		snprintf(words_text, sizeof(words_text), "0x%llx is too large, at most 0x%llx",
			 (unsigned long long)value,
			 (unsigned long long)pmu_format_max(format->mask));
		return term_error(terms, term, words_text);
	}
	attr->config = words[0];
	attr->config1 = words[1];
	attr->config2 = words[2];
	/* A field the user gives fills the hole of the named event. */
	for (size_t i = 0; !terms->in_alias && i < terms->open.len; i++)
		if (strcmp(terms->open.data[i].name, term->name) == 0)
			terms->open.data[i].pos = 0;
	return 0;
}

static int apply_terms(struct terms *terms, const char *text, size_t pos);

/* A named event of the PMU is its terms, with a scale and a unit. */
static int use_alias(struct terms *terms, const struct pmu_alias *alias)
{
	int r;

	terms->in_alias = true;
	r = apply_terms(terms, alias->terms, SIZE_MAX);
	terms->in_alias = false;
	if (r < 0)
		return r;
	terms->event->scale = alias->scale;
	terms->event->per_package = alias->per_package;
	terms->event->snapshot = alias->snapshot;
	free(terms->event->unit);
	terms->event->unit = strdup(alias->unit);
	return terms->event->unit ? 0 : -ENOMEM;
}

/* Generic, cache and raw names inside a core PMU: cpu_core/cycles/, cpu/r1a8/. */
static bool use_generic(struct terms *terms, const struct term *term)
{
	const struct generic_event *generic = generic_event_find(term->name);
	struct perf_event_attr *attr = &terms->event->attr;
	uint64_t config;
	char *end;

	if (!terms->pmu->core || term->value)
		return false;
	if (generic && generic->kind == EVENT_HARDWARE) {
		attr->type = PERF_TYPE_HARDWARE;
		attr->config = generic->config;
	} else if (cache_event_parse(term->name, &config) == 0) {
		attr->type = PERF_TYPE_HW_CACHE;
		attr->config = config;
	} else {
		if (term->name[0] != 'r' || !isxdigit((unsigned char)term->name[1]) ||
		    strlen(term->name) > 17)
			return false;
		config = strtoull(term->name + 1, &end, 16);
		if (*end != '\0')
			return false;
		attr->config = config;
		return true;
	}
	if (terms->event->partial)
		attr->config |= (uint64_t)terms->pmu->type << 32;
	return true;
}

/* A name of the vendor's tables that has terms: cpu/inst_retired.any/. */
static int use_vendor(struct terms *terms, const struct term *term)
{
	struct vendor *vendor;
	struct vendor_event found;
	struct perf_event_attr *attr = &terms->event->attr;
	int r;

	if (term->value || term->pos == SIZE_MAX)
		return -ENOENT;
	r = event_env_vendor(terms->p->env, &vendor, terms->p->err);
	if (r == 0)
		r = vendor_find(vendor, term->name, &found, NULL);
	if (r < 0)
		return r;
	if (found.pmu[0] ? !pmu_matches(terms->pmu, found.pmu) : !terms->pmu->core)
		return -ENOENT;
	if (found.terms) {
		CLEANUP_FREE char *copy = strdup(found.terms);

		return copy ? apply_terms(terms, copy, SIZE_MAX) : -ENOMEM;
	}
	attr->config = found.attr->config;
	attr->config1 = found.attr->config1;
	attr->config2 = found.attr->config2;
	return 0;
}

static int unknown_term(struct terms *terms, const struct term *term)
{
	struct str words = {0};
	int r;

	str_printf(&words, "the PMU %s has no such field or event; its fields:", terms->pmu->name);
	vec_for_each(&terms->pmu->formats, format)
		str_printf(&words, " %s", format->name);
	if (terms->pmu->formats.len == 0)
		str_puts(&words, " none");
	r = term_error(terms, term, str_text(&words));
	str_fini(&words);
	return r;
}

static int apply_term(struct terms *terms, const struct term *term)
{
	const struct pmu_format *format = pmu_format_find(terms->pmu, term->name);
	const struct pmu_alias *alias = pmu_alias_find(terms->pmu, term->name);
	int r;

	for (size_t i = 0; i < ARRAY_LEN(general_terms); i++)
		if (strcmp(general_terms[i].name, term->name) == 0)
			return general_terms[i].set(terms, term);
	if (format)
		return set_field(terms, format, term);
	if (alias && !term->value && !terms->in_alias)
		return use_alias(terms, alias);
	if (use_generic(terms, term))
		return 0;
	r = use_vendor(terms, term);
	return r == -ENOENT ? unknown_term(terms, term) : r;
}

/* Cuts "name=value," from *at; values may be quoted by ' and then hold anything. */
static int next_term(const struct terms *terms, char **at, char *start, size_t pos,
		     struct term *ret)
{
	char *text = *at, *end;

	text += strspn(text, " \t");
	*ret = (struct term){.name = text,
			     .pos = pos == SIZE_MAX ? pos : pos + (size_t)(text - start)};
	end = text + strcspn(text, "=,");
	if (end == text) {
		ret->name = start;
		return term_error(terms, ret, "expected a term: a field, an event or name=value");
	}
	if (*end == '=') {
		*end++ = '\0';
		ret->value = end;
		if (*end == '\'') {
			char *close = strchr(end + 1, '\'');

			if (!close)
				return term_error(terms, ret, "the ' is never closed");
			ret->value = end + 1;
			*close = '\0';
			end = close + 1;
			if (*end && *end != ',')
				return term_error(terms, ret, "expected ',' behind the closing '");
		} else {
			end += strcspn(end, ",");
		}
	}
	*at = *end ? end + 1 : NULL;
	*end = '\0';
	for (char *tail = text + strlen(text); tail > text && isspace((unsigned char)tail[-1]);)
		*--tail = '\0';
	return 0;
}

static int apply_terms(struct terms *terms, const char *text, size_t pos)
{
	CLEANUP_FREE char *copy = strdup(text);
	char *at = copy;
	int r = 0;

	if (!copy)
		return -ENOMEM;
	while (r == 0 && at) {
		struct term term;

		r = next_term(terms, &at, copy, pos, &term);
		if (r == 0)
			r = apply_term(terms, &term);
	}
	return r;
}

int pmu_terms_apply(const struct parser *p, struct pmu *pmu, const char *text, size_t pos,
		    const char *table, struct event *event, char **name)
{
	struct terms terms = {.p = p, .pmu = pmu, .event = event, .table = table, .name = name};
	int r = text[strspn(text, " \t")] ? apply_terms(&terms, text, pos) : 0;

	vec_for_each(&terms.open, open) {
		if (r == 0 && open->pos != 0)
			r = pos == SIZE_MAX
				    ? err_set(p->err, -EINVAL, "%s: needs a value for '%s'",
					      pmu->name, open->name)
				    : parse_error(p, pos, "the event needs a value: add %s=N",
						  open->name);
		free(open->name);
	}
	vec_fini(&terms.open);
	return r;
}

/* --- PMUs ------------------------------------------------------------------------------------ */

static int no_such_pmu(const struct parser *p, const struct pmu_set *set, const char *name,
		       size_t pos)
{
	struct str words = {0};
	const char *last = "";
	int r;

	for (size_t i = 0; i < set->pmus.len && i < 64; i++) {
		const char *pmu = set->pmus.data[i].name;
		size_t stem = strcspn(pmu, "0123456789");

		/* One of many instances is enough. */
		if (set->pmus.data[i].assumed || (stem > 4 && strncmp(pmu, last, stem) == 0))
			continue;
		str_printf(&words, " %s", pmu);
		last = pmu;
	}
	r = err_set(p->err, -ENOENT,
		    "events '%.200s', character %zu: no PMU '%.100s' on this machine; it has:%s",
		    p->text, pos + 1, name, words.len ? str_text(&words) : " none");
	str_fini(&words);
	return r;
}

/* The name of an event that stands for one of several PMUs shows which. */
static int event_text(const struct pmu *pmu, bool exact, const char *terms, const char *letters,
		      const char *whole, char **ret)
{
	struct str text = {0};

	if (exact || !pmu->core)
		str_puts(&text, whole);
	else
		str_printf(&text, "%s/%s/%s", pmu->name, terms, letters);
	return str_take(&text, ret);
}

int pmu_event(const struct parser *p, const struct pmu_set *set, struct pmu *pmu, const char *terms,
	      size_t pos, struct event *ret, struct cpuset *cpus, char **ret_given)
{
	int r = pmu_load(event_env_host(p->env), pmu, p->err);

	if (r < 0)
		return r;
	event_init(p, EVENT_PMU, ret);
	ret->attr.type = pmu->type;
	event_set_pmu(ret, set, pmu, cpus);
	r = pmu_terms_apply(p, pmu, terms, pos, NULL, ret, ret_given);
	if (r < 0) {
		free(ret->unit);
		free(ret->callgraph);
	}
	return r;
}

static int add_pmu_event(const struct parser *p, struct pmu_set *set, struct pmu *pmu, bool exact,
			 const char *terms, size_t terms_pos, const char *letters,
			 size_t letters_pos, const char *whole)
{
	struct event event;
	struct cpuset cpus;
	CLEANUP_FREE char *given = NULL, *text = NULL;
	int r = pmu_event(p, set, pmu, terms, terms_pos, &event, &cpus, &given);

	if (r < 0)
		return r;
	if (!given)
		r = event_text(pmu, exact, terms, letters, whole, &text);
	if (r == 0)
		r = event_add_modified(p, &event, given ? given : text, pmu->name, event.unit,
				       letters, letters_pos);
	free(event.unit);
	free(event.callgraph);
	return r;
}

int parse_pmu_event(const struct parser *p, const char *name, size_t pmu_pos, const char *terms,
		    size_t terms_pos, const char *letters, size_t letters_pos, const char *whole)
{
	struct pmu_set *set;
	struct pmu *exact;
	int added = 0, r = event_env_pmus(p->env, &set, p->err);

	if (r < 0)
		return r;
	exact = pmu_find(set, name);
	/* "cpu" means the cores, whatever their PMUs are called. */
	for (size_t i = 0; r == 0 && i < set->pmus.len; i++) {
		struct pmu *pmu = &set->pmus.data[i];
		bool cores = !exact && strcmp(name, "cpu") == 0 && pmu->core;

		if (exact ? pmu != exact : !cores && !pmu_matches(pmu, name))
			continue;
		r = add_pmu_event(p, set, pmu, exact != NULL, terms, terms_pos, letters,
				  letters_pos, whole);
		added++;
	}
	return r == 0 && !added ? no_such_pmu(p, set, name, pmu_pos) : r;
}
