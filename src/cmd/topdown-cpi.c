/*
 * The CPI stack: cycles for each instruction, divided as the slots were. Of every cycle's slots a
 * share retired (the base), a share was lost at the front, and so on; the same shares of the cycles
 * are said to be spent so. Level 1 is brought to the measured CPI when its parts do not add up to
 * exactly 1. Below it, parts counted in cycles are brought to the part they belong to.
 */
#include <math.h>
#include <string.h>

#include "base/util.h"
#include "cmd/topdown.h"

static const char *part_name(const struct topdown_node *node)
{
	static const char *const names[][2] = {{"retiring", "Base"},
					       {"frontend_bound", "Front end"},
					       {"bad_speculation", "Bad speculation"},
					       {"memory_bound", "Memory"},
					       {"core_bound", "Core"},
					       {"cpu_bound", "Core"},
					       {"smt_contention", "Other thread"}};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(node->name, names[i][0]) == 0)
			return names[i][1];
	return node->title;
}

static double share_of(const struct topdown_result *result, size_t i)
{
	const struct topdown_value *v = &result->nodes[i];

	return expr_has_number(&v->value) ? topdown_shown(v->value.value) : NAN;
}

static double children_sum(const struct topdown_table *table, const struct topdown_result *result,
			   int parent)
{
	double sum = 0;
	bool any = false;

	for (size_t i = 0; i < table->node_count; i++)
		if (table->nodes[i].parent == parent) {
			any = true;
			sum += share_of(result, i);
		}
	return any ? sum : NAN;
}

static void add(struct topdown_cpi_part *parts, unsigned *len, const char *name, double cpi,
		unsigned depth)
{
	if (*len < TOPDOWN_CPI_MAX)
		parts[(*len)++] = (struct topdown_cpi_part){name, cpi, depth};
}

/* The children of a node that are all known take its cycles among them. */
static void add_children(const struct topdown_table *table, const struct topdown_result *result,
			 int parent, double cpi, unsigned depth, struct topdown_cpi_part *parts,
			 unsigned *len)
{
	double sum = children_sum(table, result, parent);

	if (!(sum > 0))
		return;
	for (size_t i = 0; i < table->node_count; i++)
		if (table->nodes[i].parent == parent)
			add(parts, len, part_name(&table->nodes[i]),
			    cpi * share_of(result, i) / sum, depth);
}

static bool has(const struct topdown_table *table, const char *name, int *ret)
{
	*ret = topdown_node_find(table, name);
	return *ret >= 0;
}

/* Stalled cycles only (no slots): what is not stalled is the base. */
static unsigned stalled_stack(const struct topdown_table *table,
			      const struct topdown_result *result, struct topdown_cpi_part *parts)
{
	double cpi = result->cpi.value, fe, be;
	unsigned len = 0;
	int f, b;

	if (!has(table, "frontend_stalled", &f) || !has(table, "backend_stalled", &b))
		return 0;
	fe = share_of(result, (size_t)f);
	be = share_of(result, (size_t)b);
	if (isnan(fe + be)) {
		add(parts, &len, "Not divided", cpi, 0);
		return len;
	}
	add(parts, &len, "Base", cpi * MAX(0, 1 - fe - be), 0);
	add(parts, &len, "Front end", cpi * fe / MAX(1, fe + be), 0);
	add(parts, &len, "Back end", cpi * be / MAX(1, fe + be), 0);
	return len;
}

unsigned topdown_cpi_stack(const struct topdown_table *table, const struct topdown_result *result,
			   struct topdown_cpi_part parts[TOPDOWN_CPI_MAX])
{
	static const char *const order[] = {"retiring", "frontend_bound", "bad_speculation",
					    "backend_bound", "smt_contention"};
	double cpi = result->cpi.value, sum = children_sum(table, result, -1);
	unsigned len = 0;
	int node;

	if (!expr_has_number(&result->cpi))
		return 0;
	if (!has(table, "retiring", &node))
		return stalled_stack(table, result, parts);
	if (!(sum > 0)) {
		add(parts, &len, "Not divided", cpi, 0);
		return len;
	}
	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		double part;

		if (!has(table, order[i], &node))
			continue;
		part = cpi * share_of(result, (size_t)node) / sum;
		if (strcmp(order[i], "backend_bound") == 0 &&
		    children_sum(table, result, node) > 0 &&
		    topdown_node_find(table, "memory_bound") >= 0) {
			double below = children_sum(table, result, node);

			for (size_t c = 0; c < table->node_count; c++) {
				double child = part * share_of(result, c) / below;

				if (table->nodes[c].parent != node)
					continue;
				add(parts, &len, part_name(&table->nodes[c]), child, 0);
				if (strcmp(table->nodes[c].name, "memory_bound") == 0)
					add_children(table, result, (int)c, child, 1, parts, &len);
			}
		} else {
			add(parts, &len,
			    strcmp(order[i], "backend_bound") == 0 ? "Back end"
								   : part_name(&table->nodes[node]),
			    part, 0);
		}
	}
	return len;
}

#define BAR 40

/* The sign that stands for the i-th part in the bar and before its name. */
static char sign_of(const struct topdown_cpi_part *parts, unsigned i)
{
	static const char signs[] = "#=x+o%~*";
	unsigned at = 0;

	for (unsigned k = 0; k < i; k++)
		at += parts[k].depth == 0;
	return parts[i].depth ? ' ' : signs[at % (sizeof(signs) - 1)];
}

/* One sign for each part, as wide as the part. */
static void bar(const struct topdown_cpi_part *parts, unsigned len, double full, struct str *out)
{
	double at = 0;
	unsigned drawn = 0;

	str_puts(out, "  [");
	for (unsigned i = 0; i < len; i++) {
		if (parts[i].depth > 0)
			continue;
		at += parts[i].cpi;
		for (; drawn < (unsigned)lround(BAR * at / full) && drawn < BAR; drawn++)
			str_putc(out, sign_of(parts, i));
	}
	for (; drawn < BAR; drawn++)
		str_putc(out, ' ');
	str_puts(out, "]");
}

static const struct topdown_cpi_part *same(const struct topdown_cpi_part *parts, unsigned len,
					   const struct topdown_cpi_part *wanted)
{
	for (unsigned i = 0; i < len; i++)
		if (strcmp(parts[i].name, wanted->name) == 0)
			return &parts[i];
	return NULL;
}

void topdown_cpi_text(const struct topdown_table *table, const struct topdown_result *a,
		      const struct topdown_result *b, struct str *out)
{
	struct topdown_cpi_part pa[TOPDOWN_CPI_MAX], pb[TOPDOWN_CPI_MAX];
	unsigned la = topdown_cpi_stack(table, a, pa), lb = b ? topdown_cpi_stack(table, b, pb) : 0;
	double full = MAX(la ? a->cpi.value : 0, lb ? b->cpi.value : 0);

	if (la == 0 || (b && lb == 0)) {
		str_printf(out, "  No CPI stack: %s.\n", la == 0 ? a->cpi.reason : b->cpi.reason);
		return;
	}
	str_printf(out, "  Cycles per instruction%s\n", b ? ": first and second" : "");
	bar(pa, la, full, out);
	str_printf(out, " %.3f\n", a->cpi.value);
	if (b) {
		bar(pb, lb, full, out);
		str_printf(out, " %.3f  (%+.1f%%)\n", b->cpi.value,
			   100 * (b->cpi.value / a->cpi.value - 1));
	}
	str_putc(out, '\n');
	for (unsigned i = 0; i < la; i++) {
		const struct topdown_cpi_part *other = b ? same(pb, lb, &pa[i]) : NULL;

		str_printf(out, "  %c %*s%-*s %8.3f", sign_of(pa, i), (int)(2 * pa[i].depth), "",
			   24 - (int)(2 * pa[i].depth), pa[i].name, pa[i].cpi);
		if (other)
			str_printf(out, " %8.3f   %+.3f\n", other->cpi, other->cpi - pa[i].cpi);
		else
			str_printf(out, "   %5.1f%%\n", 100 * pa[i].cpi / a->cpi.value);
	}
	str_printf(out, "    %-24s %8.3f", "CPI", a->cpi.value);
	if (b)
		str_printf(out, " %8.3f   %+.3f", b->cpi.value, b->cpi.value - a->cpi.value);
	str_putc(out, '\n');
}
