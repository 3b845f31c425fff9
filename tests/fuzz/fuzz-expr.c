/* The metric language: any text; what parses is folded, listed and evaluated with odd values. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "events/expr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void resolve(void *ctx, enum expr_ask ask, const char *name, struct expr_value *ret)
{
	unsigned sum = (unsigned)ask;

	for (; *name; name++)
		sum = sum * 31 + (unsigned char)*name;
	if (sum % 5)
		*ret = expr_number(sum % 5 == 1 ? 0 : sum % 5 == 2 ? NAN : (double)sum);
}

static void visit(void *ctx, const char *name)
{
	*(size_t *)ctx += strlen(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct expr_value value, first = expr_number(0);
	struct expr *expr;
	size_t names = 0;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (expr_parse(text, &expr, NULL) == 0) {
		for (int i = 0; i < 2; i++) {
			expr_names(expr, visit, &names);
			expr_eval(expr, resolve, NULL, &value);
			if (isnan(value.value) == expr_has_number(&value))
				abort();
			if (i == 0)
				first = value;
			else if (expr_has_number(&value) != expr_has_number(&first) ||
				 (expr_has_number(&value) && value.value != first.value))
				abort(); /* folding changes what is asked for, never the value */
			expr_fold(expr, resolve, NULL);
		}
		expr_free(expr);
	}
	free(text);
	return 0;
}
