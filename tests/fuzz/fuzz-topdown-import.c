/*
 * Recorded counts for culprit topdown: the first byte chooses the core, the rest is the file. What
 * is read is evaluated; a value has a number exactly when it is one.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/topdown.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void evaluate(struct topdown_counts *counts)
{
	struct topdown_result result;
	struct topdown_inputs inputs;
	struct topdown *topdown;

	topdown_counts_inputs(counts, &inputs);
	if (topdown_new(counts->table, &topdown, NULL) < 0)
		return;
	if (topdown_eval(topdown, &inputs, 9, &result) == 0) {
		for (size_t i = 0; i < counts->table->node_count; i++)
			if (expr_has_number(&result.nodes[i].value) ==
			    isnan(result.nodes[i].value.value))
				abort();
		topdown_result_fini(&result);
	}
	topdown_free(topdown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct topdown_counts counts = {0};
	struct err err;
	char *text;

	if (size == 0 || size > 1 << 16)
		return 0;
	counts.table = &topdown_tables[data[0] % topdown_tables_len];
	text = malloc(size);
	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	if (topdown_import_text(&counts, text, size - 1, "file", &err) == 0)
		evaluate(&counts);
	topdown_counts_fini(&counts);
	free(text);
	return 0;
}
