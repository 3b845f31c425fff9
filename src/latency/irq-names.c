#include "latency/irq-names.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/util.h"
#include "host/host.h"

#define INTERRUPTS_MAX ((size_t)64 << 20)

/* "  36:  0 1079287  PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0": the name stands behind the
 * last two blanks that follow each other. */
static int parse_line(const char *line, size_t len, struct irq_names *into)
{
	char *end;
	long number;
	size_t at = len;
	struct irq_name row;

	while (len && isspace((unsigned char)*line))
		line++, len--;
	if (!len || !isdigit((unsigned char)*line))
		return 0;
	number = strtol(line, &end, 10);
	if (*end != ':' || number > INT32_MAX)
		return 0;
	while (len && isspace((unsigned char)line[len - 1]))
		len--;
	for (at = len; at >= 2 && !(line[at - 1] == ' ' && line[at - 2] == ' '); at--)
		;
	if (at < 2 || isdigit((unsigned char)line[at]) ||
	    line + at <= end) /* no action: the last column is a count */
		return 0;
	row = (struct irq_name){.number = (int)number, .name = strndup(line + at, len - at)};
	if (!row.name || vec_push(&into->rows, row)) {
		free(row.name);
		return -ENOMEM;
	}
	return 0;
}

int irq_names_parse(const char *text, struct irq_names *ret)
{
	struct irq_names names = {.unknown = -1};
	int r = 0;

	for (const char *line = text, *next; *line && r == 0; line = next) {
		size_t len = strcspn(line, "\n");

		next = line + len + (line[len] == '\n');
		r = parse_line(line, len, &names);
	}
	if (r < 0)
		irq_names_fini(&names);
	else
		*ret = names;
	return r;
}

int irq_names_load(const char *root, struct irq_names *ret, struct err *err)
{
	const struct host host = {.root = root};
	char *text;
	size_t size;
	int r = host_read(&host, "/proc/interrupts", INTERRUPTS_MAX, &text, &size, err);

	if (r < 0)
		return r;
	r = irq_names_parse(text, ret);
	free(text);
	return r;
}

static const char *find(const struct irq_names *names, int number)
{
	vec_for_each(&names->rows, row) {
		if (row->number == number)
			return row->name;
	}
	return NULL;
}

const char *irq_names_find(struct irq_names *names, int number)
{
	const char *name = find(names, number);
	struct irq_names now;

	if (name || names->unknown == number)
		return name;
	if (irq_names_load("", &now, NULL) == 0) {
		irq_names_fini(names);
		*names = now;
		name = find(names, number);
	}
	if (!name)
		names->unknown = number;
	return name;
}

void irq_names_fini(struct irq_names *names)
{
	vec_for_each(&names->rows, row)
		free(row->name);
	vec_fini(&names->rows);
}
