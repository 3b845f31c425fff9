/*
 * The metric language: the grammars of perf's MetricExpr and of perfmon's Formula in one.
 *
 *	expr   = or ["if" or "else" expr]            the else nests to the right
 *	or     = xor *("|" xor) ; xor = and *("^" and) ; and = less *("&" less)    logical, 0 or 1;
 *	                                                "||" and "&&" are the same
 *	less   = sum *(("<" / ">" / "<=" / ">=") sum) ; sum = product *(("+" / "-") product)
 *	product = unary *(("*" / "/" / "%") unary) ; unary = *"-" primary
 *	primary = number | name | "#" name | "(" expr ")"
 *	        | ("min" / "max" / "d_ratio") "(" expr "," expr ")"
 *	        | ("has_event" / "source_count" / "strcmp_cpuid_str") "(" name ")"
 *	name   = letters, digits, _ . : @ ? and "\," "\=" "\-" ; a ":key=value" suffix and terms
 *	         between two "@" need no "\" before "="
 *
 * "@" inside a name stands for "/". What a name means (event, metric, constant) is the resolver's
 * business.
 *
 * A value is never without its state. There is no way from a missing or impossible value back to a
 * number: NaN goes through every operator, min and max included, and an "if" whose condition has no
 * number has none itself. d_ratio(a, b) is 0 for b = 0; a / 0 and a % 0 are invalid.
 *
 * Variances are of first order and take the operands as independent; an expression that uses an
 * input twice is better served by shifting inputs one at a time (topdown_eval does).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

enum expr_state {
	EXPR_MEASURED,
	EXPR_ESTIMATED,
	EXPR_WEAK, /* the last state with a number */
	EXPR_NOT_COUNTED,
	EXPR_NOT_SUPPORTED,
	EXPR_INVALID,
};

#define EXPR_REASON_BYTES 160

struct expr_value {
	double value;    /* NaN in the states without a number */
	double variance; /* NaN: not known */
	enum expr_state state;
	char reason[EXPR_REASON_BYTES]; /* "" when there is nothing to say */
};

static inline bool expr_has_number(const struct expr_value *value)
{
	return value->state <= EXPR_WEAK;
}

const char *expr_state_name(enum expr_state state); /* as in JSON: "measured", "not_counted" */
struct expr_value expr_number(double value);        /* exact */
struct expr_value expr_missing(enum expr_state state, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

enum expr_ask {
	EXPR_NAME,         /* the value of a name */
	EXPR_LITERAL,      /* #name, asked without the # */
	EXPR_HAS_EVENT,    /* 1 or 0 */
	EXPR_SOURCE_COUNT, /* instances of the event's PMU */
	EXPR_CPUID,        /* 1 when the name matches this machine's CPU */
};

/* Fills *ret; a name that is not known is EXPR_NOT_COUNTED or EXPR_NOT_SUPPORTED with a reason. */
typedef void expr_resolver(void *ctx, enum expr_ask ask, const char *name, struct expr_value *ret);

struct expr;

/* -EINVAL with the column and what was expected; -E2BIG beyond 100 levels or 10000 parts. */
int expr_parse(const char *text, struct expr **ret, struct err *err);
void expr_free(struct expr *expr);
/* Levels of nesting: what evaluation takes of the stack, where formulas use formulas. */
unsigned expr_height(const struct expr *expr);

/*
 * Computes what is constant and drops dead branches of "if" for good. constant() is asked for
 * literals, has_event, source_count and strcmp_cpuid_str only; an answer without a number leaves
 * the question open.
 */
void expr_fold(struct expr *expr, expr_resolver *constant, void *ctx);
/* True, and the value, when nothing is left to ask. */
bool expr_is_constant(const struct expr *expr, double *ret);

/* Calls visit for every name that can still be asked for (EXPR_NAME), repeated ones too. */
void expr_names(const struct expr *expr, void (*visit)(void *ctx, const char *name), void *ctx);

void expr_eval(const struct expr *expr, expr_resolver *resolve, void *ctx, struct expr_value *ret);

/* --- formulas as texts --- */

/* The bytes of the name that starts here, escapes included; 0: none does. */
size_t expr_name_length(const char *text);
/* A name as a formula has it: '/' becomes '@', what is not a letter of names gets a '\\'. */
void expr_put_name(struct str *out, const char *name);
/*
 * Copies a formula; rename() appends what shall stand in place of each name ("#name" for literals,
 * escapes as they are), and may fail. Functions, "if", "else" and numbers stay.
 */
int expr_rewrite(const char *text,
		 int (*rename)(void *ctx, const char *name, size_t len, struct str *out), void *ctx,
		 struct str *out);
