/* The value of a formula, its constant parts folded, its names. Recursion is bounded by the height
 * that the parser allows. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "events/expr-internal.h"

const char *expr_state_name(enum expr_state state)
{
	static const char *const names[] = {"measured",    "estimated",     "weak",
					    "not_counted", "not_supported", "invalid"};

	return names[state];
}

struct expr_value expr_number(double value)
{
	return (struct expr_value){.value = value};
}

struct expr_value expr_missing(enum expr_state state, const char *fmt, ...)
{
	struct expr_value value = {.value = NAN, .variance = NAN, .state = state};
	va_list args;

	va_start(args, fmt);
	vsnprintf(value.reason, sizeof(value.reason), fmt, args);
	va_end(args);
	return value;
}

unsigned expr_height(const struct expr *expr)
{
	return expr->height;
}

void expr_free(struct expr *expr)
{
	if (!expr)
		return;
	vec_fini(&expr->parts);
	arena_fini(&expr->arena);
	free(expr);
}

static struct expr_value worse(const struct expr_value *a, const struct expr_value *b)
{
	return b->state > a->state ? *b : *a;
}

static struct expr_value divide(const struct expr_value *a, const struct expr_value *b, enum op op)
{
	struct expr_value v = worse(a, b);

	if (b->value == 0 && op == OP_D_RATIO) {
		v.value = v.variance = 0;
		return v;
	}
	if (b->value == 0)
		return expr_missing(EXPR_INVALID, "division by 0");
	if (op == OP_MODULO) {
		v.value = fmod(a->value, b->value);
		v.variance = a->variance;
		return v;
	}
	v.value = a->value / b->value;
	v.variance = (a->variance + v.value * v.value * b->variance) / (b->value * b->value);
	return v;
}

static struct expr_value binary(enum op op, const struct expr_value *a, const struct expr_value *b)
{
	struct expr_value v = worse(a, b);
	double x = a->value, y = b->value;

	if (!expr_has_number(&v))
		return v;
	v.variance = a->variance + b->variance;
	switch (op) {
	case OP_ADD:
		v.value = x + y;
		break;
	case OP_SUBTRACT:
		v.value = x - y;
		break;
	case OP_MULTIPLY:
		v.value = x * y;
		v.variance = x * x * b->variance + y * y * a->variance;
		break;
	case OP_MIN:
	case OP_MAX:
		v.value = (op == OP_MIN) == (x < y) ? x : y;
		v.variance = (op == OP_MIN) == (x < y) ? a->variance : b->variance;
		break;
	case OP_LESS:
		v.value = x < y;
		v.variance = 0;
		break;
	case OP_GREATER:
		v.value = x > y;
		v.variance = 0;
		break;
	case OP_AT_MOST:
		v.value = x <= y;
		v.variance = 0;
		break;
	case OP_AT_LEAST:
		v.value = x >= y;
		v.variance = 0;
		break;
	case OP_AND:
		v.value = x != 0 && y != 0;
		v.variance = 0;
		break;
	case OP_OR:
		v.value = x != 0 || y != 0;
		v.variance = 0;
		break;
	case OP_XOR:
		v.value = (x != 0) != (y != 0);
		v.variance = 0;
		break;
	default:
		v = divide(a, b, op);
	}
	if (expr_has_number(&v) && !isfinite(v.value))
		return expr_missing(EXPR_INVALID, "the result is out of range");
	return v;
}

static void eval(const struct expr *expr, unsigned index, expr_resolver *resolve, void *ctx,
		 struct expr_value *ret)
{
	const struct part *part = &expr->parts.data[index];
	struct expr_value a, b;

	switch (part->op) {
	case OP_NUMBER:
		*ret = expr_number(part->number);
		return;
	case OP_ASK:
		*ret = expr_missing(EXPR_NOT_COUNTED, "%s is not known", part->name);
		resolve(ctx, part->ask, part->name, ret);
		if (expr_has_number(ret) && !isfinite(ret->value))
			*ret = expr_missing(EXPR_INVALID, "%s is not a number", part->name);
		return;
	case OP_NEGATE:
		eval(expr, part->a, resolve, ctx, ret);
		ret->value = -ret->value;
		return;
	case OP_IF:
		eval(expr, part->b, resolve, ctx, &b);
		if (!expr_has_number(&b)) {
			*ret = b;
			return;
		}
		eval(expr, b.value != 0 ? part->a : part->c, resolve, ctx, &a);
		*ret = worse(&a, &b);
		ret->value = a.value;
		ret->variance = a.variance;
		return;
	default:
		eval(expr, part->a, resolve, ctx, &a);
		eval(expr, part->b, resolve, ctx, &b);
		*ret = binary(part->op, &a, &b);
	}
}

void expr_eval(const struct expr *expr, expr_resolver *resolve, void *ctx, struct expr_value *ret)
{
	eval(expr, expr->root, resolve, ctx, ret);
}

static void fold_part(struct expr *expr, struct part *part, expr_resolver *constant, void *ctx)
{
	struct part *parts = expr->parts.data;
	struct expr_value v = expr_missing(EXPR_NOT_COUNTED, "open"), a, b;

	switch (part->op) {
	case OP_NUMBER:
		return;
	case OP_ASK:
		if (part->ask == EXPR_NAME)
			return;
		constant(ctx, part->ask, part->name, &v);
		break;
	case OP_IF:
		if (parts[part->b].op == OP_NUMBER) /* the other branch is reachable no more */
			*part = parts[parts[part->b].number != 0 ? part->a : part->c];
		return;
	case OP_NEGATE:
		if (parts[part->a].op == OP_NUMBER)
			v = expr_number(-parts[part->a].number);
		break;
	default:
		if (parts[part->a].op != OP_NUMBER || parts[part->b].op != OP_NUMBER)
			return;
		a = expr_number(parts[part->a].number);
		b = expr_number(parts[part->b].number);
		v = binary(part->op, &a, &b);
	}
	if (expr_has_number(&v) && isfinite(v.value))
		*part = (struct part){.op = OP_NUMBER, .number = v.value};
}

void expr_fold(struct expr *expr, expr_resolver *constant, void *ctx)
{
	for (size_t i = 0; i < expr->parts.len; i++) /* operands stand before operators */
		fold_part(expr, &expr->parts.data[i], constant, ctx);
}

bool expr_is_constant(const struct expr *expr, double *ret)
{
	const struct part *root = &expr->parts.data[expr->root];

	if (root->op != OP_NUMBER)
		return false;
	*ret = root->number;
	return true;
}

static void names(const struct expr *expr, unsigned index,
		  void (*visit)(void *ctx, const char *name), void *ctx)
{
	const struct part *part = &expr->parts.data[index];

	if (part->op == OP_ASK && part->ask == EXPR_NAME)
		visit(ctx, part->name);
	if (part->op >= OP_NEGATE)
		names(expr, part->a, visit, ctx);
	if (part->op > OP_NEGATE)
		names(expr, part->b, visit, ctx);
	if (part->op == OP_IF)
		names(expr, part->c, visit, ctx);
}

void expr_names(const struct expr *expr, void (*visit)(void *ctx, const char *name), void *ctx)
{
	names(expr, expr->root, visit, ctx);
}
