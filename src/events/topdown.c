/* Finding tables, events and nodes; the names that people and other tools use for events. */
#include "events/topdown.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "base/util.h"
#include "events/topdown-internal.h"

const struct topdown_table *topdown_table_find(const char *cpu)
{
	size_t len = strlen(cpu);

	for (size_t i = 0; i < topdown_tables_len && len > 0; i++)
		for (const char *at = topdown_tables[i].cpus; *at; at += strspn(at, " ")) {
			size_t word = strcspn(at, " ");

			if (word == len && strncasecmp(at, cpu, len) == 0)
				return &topdown_tables[i];
			at += word;
		}
	return NULL;
}

int topdown_event_find(const struct topdown_table *table, const char *name)
{
	/* sorted by the compiler of the tables */
	size_t first =
		partition_point(table->event_count, at, strcmp(table->events[at].name, name) < 0);

	return first < table->event_count && strcmp(table->events[first].name, name) == 0
		       ? (int)first
		       : -1;
}

int topdown_node_find(const struct topdown_table *table, const char *name)
{
	for (size_t i = 0; i < table->node_count; i++)
		if (strcasecmp(table->nodes[i].name, name) == 0)
			return (int)i;
	for (size_t i = 0; i < table->node_count; i++)
		if (strcasecmp(table->nodes[i].title, name) == 0)
			return (int)i;
	return -1;
}

/* "cpu_core/NAME,cmask=0x6/u" becomes "name:cmask=0x6". */
static void strip_pmu(char *name)
{
	char *slash = strchr(name, '/'), *end = slash ? strrchr(name, '/') : NULL;

	if (!slash || end == slash)
		return;
	*end = '\0';
	memmove(name, slash + 1, strlen(slash + 1) + 1);
	for (char *c = name; *c; c++)
		if (*c == ',')
			*c = ':';
	if (strncmp(name, "event=", 6) == 0) /* an encoding says nothing about names */
		name[0] = '\0';
}

/* Takes ":u", ":k", ":uk", ":ukhH", ":pp" and perf's ":S" and ":D" off the end; not ":c1", ":e1".
 */
static void strip_modifiers(char *name)
{
	char *colon = strrchr(name, ':');

	if (colon && colon[1 + strspn(colon + 1, "ukhghpdsi")] == '\0')
		*colon = '\0';
}

/* ":cmask=0x6" and ":cmask=6" are ":c6"; ":edge", ":edge=0x1" are ":e1". */
static void shorten_terms(char *name, size_t size)
{
	char copy[256], *save = NULL;
	unsigned long long number;
	size_t len = 0;

	snprintf(copy, sizeof(copy), "%s", name);
	for (char *part = strtok_r(copy, ":", &save); part; part = strtok_r(NULL, ":", &save)) {
		const char *value = "";

		if (str_prefix(part, "name=", NULL))
			continue;
		if (str_prefix(part, "cmask=", &value) && parse_u64(value, 0, &number) == 0)
			len += (size_t)snprintf(name + len, size - len, ":c%llu", number);
		else if (strcmp(part, "edge") == 0 ||
			 (str_prefix(part, "edge=", &value) && parse_u64(value, 0, &number) == 0 &&
			  number == 1))
			len += (size_t)snprintf(name + len, size - len, ":e1");
		else if (str_prefix(part, "offcore_rsp=", &value))
			len += (size_t)snprintf(name + len, size - len, ":ocr_msr_val=%s", value);
		else
			len += (size_t)snprintf(name + len, size - len, "%s%s", len ? ":" : "",
						part);
		if (len >= size)
			len = size - 1;
	}
}

static int find_alias(const struct topdown_table *table, const char *name, unsigned *ret_factor)
{
	for (size_t i = 0; i < table->alias_count; i++)
		if (strcmp(table->aliases[i].name, name) == 0) {
			*ret_factor = table->aliases[i].factor;
			return topdown_event_find(table, table->aliases[i].event);
		}
	*ret_factor = 1;
	return topdown_event_find(table, name);
}

static bool is_core_pmu(const char *name, size_t len)
{
	return (len == 3 && memcmp(name, "cpu", 3) == 0) ||
	       (len > 4 && memcmp(name, "cpu_", 4) == 0) ||
	       (len > 5 && memcmp(name, "armv8", 5) == 0);
}

void topdown_event_canonical(const char *text, char *name, size_t size)
{
	const char *slash = strchr(text, '/');
	size_t len = 0;

	for (; text[len] && len + 1 < size; len++)
		name[len] = (char)tolower((unsigned char)text[len]);
	name[len] = '\0';
	if (slash && (!is_core_pmu(name, (size_t)(slash - text)) ||
		      str_prefix(name + (slash - text) + 1, "event=", NULL)))
		return; /* another PMU's, or an encoding: the whole is its name */
	strip_pmu(name);
	shorten_terms(name, size);
}

/* One suffix as a term or a modifier. */
static int put_suffix(const char *suffix, size_t len, char *terms, size_t size, char *modifier)
{
	static const struct {
		const char *suffix, *term;
	} numbers[] = {{"c", "cmask"}, {"e", "edge"}, {"i", "inv"}, {"u", "umask"}};
	char value[32];

	if (len == 12 && strncasecmp(suffix, "perf_metrics", len) == 0)
		return 0; /* says how it is read, not what is counted */
	if (len == 3 && strncasecmp(suffix, "sup", 3) == 0)
		*modifier = 'k';
	else if (len == 4 && strncasecmp(suffix, "user", 4) == 0)
		*modifier = 'u';
	for (size_t i = 0; i < ARRAY_LEN(numbers) && *modifier == '\0'; i++) {
		unsigned long long number;

		if (suffix[0] != numbers[i].suffix[0] || len < 2 || len > sizeof(value))
			continue;
		snprintf(value, sizeof(value), "%.*s", (int)len - 1, suffix + 1);
		if (parse_u64(value, 0, &number) < 0)
			continue;
		snprintf(terms + strlen(terms), size - strlen(terms), ",%s=%s", numbers[i].term,
			 value);
		return 0;
	}
	return *modifier ? 0 : -ENOTSUP;
}

int topdown_event_perf_text(const char *name, const char *pmu, char *text, size_t size)
{
	const char *colon = strchr(name, '/') ? NULL : strchr(name, ':');
	char terms[256] = "", modifier = '\0';

	if (!colon)
		return (size_t)snprintf(text, size, "%s", name) < size ? 0 : -ENOTSUP;
	for (const char *at = colon; *at == ':';) {
		size_t len = strcspn(at + 1, ":");
		int r = put_suffix(at + 1, len, terms, sizeof(terms), &modifier);

		if (r < 0 || strlen(terms) + 64 > sizeof(terms))
			return -ENOTSUP;
		at += len + 1;
	}
	if (terms[0] == '\0' && !modifier)
		snprintf(text, size, "%.*s", (int)(colon - name), name);
	else
		snprintf(text, size, "%s/%.*s%s/%s", pmu, (int)(colon - name), name, terms,
			 modifier == 'k'   ? "k"
			 : modifier == 'u' ? "u"
					   : "");
	return 0;
}

int topdown_event_match(const struct topdown_table *table, const char *text, unsigned *ret_factor)
{
	char name[256];
	int found;

	*ret_factor = 1;
	if (strlen(text) >= sizeof(name))
		return -1;
	for (size_t i = 0; i <= strlen(text); i++)
		name[i] = (char)tolower((unsigned char)text[i]);
	strip_pmu(name);
	found = find_alias(table, name, ret_factor);
	if (found < 0) {
		strip_modifiers(name);
		found = find_alias(table, name, ret_factor);
	}
	if (found < 0) {
		shorten_terms(name, sizeof(name));
		found = find_alias(table, name, ret_factor);
	}
	return found;
}

double topdown_shown(double share)
{
	return share < 0 ? 0 : share > 1 ? 1 : share;
}
