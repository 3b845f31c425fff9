/*
 * Vendor metrics: any document in any layout. What parses becomes a table, which is evaluated with
 * odd counts; a value has a number exactly when it is one.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "events/topdown-load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void count_of(void *ctx, unsigned event, int section, struct expr_value *ret)
{
	static const double odd[] = {0, 1, 1e18, 3.5, 1e308};

	if (event % 7 != 6)
		*ret = expr_number(odd[event % 5]);
	if (event % 7 == 5)
		ret->variance = NAN;
}

static void evaluate(const struct topdown_table *table)
{
	struct topdown_inputs inputs = {.count = count_of};
	struct topdown_result result;
	struct topdown *topdown;

	if (topdown_new(table, &topdown, NULL) < 0)
		return; /* formulas together too large */
	if (topdown_eval(topdown, &inputs, 9, &result) == 0) {
		for (size_t i = 0; i < table->node_count; i++)
			if (expr_has_number(&result.nodes[i].value) ==
			    isnan(result.nodes[i].value.value))
				abort();
		topdown_result_fini(&result);
	}
	topdown_free(topdown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const cpus[] = {NULL, "spr", "zen4", "n2", "adl-e"};
	struct topdown_loaded *loaded = NULL;
	struct metrics metrics = {0};
	struct err err;

	if (size == 0)
		return 0;
	(void)metrics_parse(&metrics, (const char *)data + 1, size - 1, "file", NULL, &err);
	if (topdown_load(&metrics, cpus[data[0] % 5], &loaded, &err) == 0) {
		evaluate(topdown_loaded_table(loaded));
		topdown_loaded_free(loaded);
	}
	metrics_fini(&metrics);
	return 0;
}
