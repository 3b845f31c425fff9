#include "latency/proc-deltas.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "base/vec.h"

struct delta {
	char name[64];
	unsigned long long count;
};

/* The column of a CPU in the header "  CPU0  CPU1", -1 none; offline CPUs have no column. */
static int column_of(const char *text, unsigned cpu)
{
	int column = 0;

	for (const char *at = text; *at && *at != '\n'; column++) {
		char *end;

		at += strspn(at, " \t");
		if (strncmp(at, "CPU", 3))
			return -1;
		if (strtoul(at + 3, &end, 10) == cpu && end != at + 3)
			return column;
		at = end + strspn(end, " \t");
	}
	return -1;
}

static int columns_of(const char *text)
{
	int columns = 0;

	for (const char *at = text; *at && *at != '\n'; at++)
		columns += !strncmp(at, "CPU", 3);
	return columns;
}

/* The row of a label ("LOC:"), behind the colon; NULL none. */
static const char *row_of(const char *text, const char *label, size_t len)
{
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		line += strspn(line, " ");
		if (!strncmp(line, label, len) && line[len] == ':')
			return line + len + 1;
	}
	return NULL;
}

/* The number in a column of a row, and where the columns end; false: the row has fewer. */
static bool number_at(const char *row, int column, int columns, unsigned long long *ret,
		      const char **ret_rest)
{
	bool found = false;

	for (int i = 0; i < columns; i++) {
		char *end;
		unsigned long long value = strtoull(row, &end, 10);

		if (end == row)
			break;
		if (i == column) {
			*ret = value;
			found = true;
		}
		row = end;
	}
	*ret_rest = row;
	return found;
}

/* "PCI-MSIX 1-edge  eth0-rx": eth0-rx. "Local timer interrupts": itself. Nothing: the label. */
static void name_row(const char *rest, const char *label, size_t label_len, struct delta *delta)
{
	size_t len, at;

	rest += strspn(rest, " \t");
	len = strcspn(rest, "\n");
	while (len && isspace((unsigned char)rest[len - 1]))
		len--;
	if (!len) {
		snprintf(delta->name, sizeof(delta->name), "%.*s", (int)label_len, label);
		return;
	}
	for (at = len; at >= 2 && !(rest[at - 1] == ' ' && rest[at - 2] == ' '); at--)
		;
	if (at < 2 || !isdigit((unsigned char)*label))
		at = 0;
	snprintf(delta->name, sizeof(delta->name), "%.*s", (int)(len - at), rest + at);
}

static int most_first(const void *va, const void *vb)
{
	const struct delta *a = va, *b = vb;

	return a->count < b->count ? 1 : a->count > b->count ? -1 : strcmp(a->name, b->name);
}

int proc_deltas(const char *before, const char *after, unsigned cpu, unsigned most, struct str *out)
{
	int column = column_of(after, cpu), columns = columns_of(after);
	int old_column = column_of(before, cpu), old_columns = columns_of(before);
	VEC(struct delta) deltas = {0};
	int r = 0;

	if (column < 0 || old_column < 0)
		return 0;
	for (const char *line = strchr(after, '\n'); line && r == 0; line = strchr(line, '\n')) {
		const char *label = line + 1 + strspn(line + 1, " "), *old, *rest;
		size_t len = strcspn(label, ":\n");
		unsigned long long now = 0, then = 0;
		struct delta delta = {0};

		line++;
		if (!*line || label[len] != ':' ||
		    !number_at(label + len + 1, column, columns, &now, &rest))
			continue;
		name_row(rest, label, len, &delta);
		old = row_of(before, label, len);
		if (old && !number_at(old, old_column, old_columns, &then, &rest))
			then = 0;
		if (now <= then)
			continue;
		delta.count = now - then;
		r = vec_push(&deltas, delta);
	}
	if (r == 0 && deltas.len) {
		qsort(deltas.data, deltas.len, sizeof(*deltas.data), most_first);
		for (size_t i = 0; i < MIN(deltas.len, most); i++)
			str_printf(out, "%s%s %llu", i ? ", " : "", deltas.data[i].name,
				   deltas.data[i].count);
		r = str_status(out);
	}
	if (r == 0)
		r = (int)deltas.len;
	vec_fini(&deltas);
	return r;
}
