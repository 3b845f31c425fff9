/*
 * Recursive descent into a flat array of parts, one evaluator over it. Depth is limited while
 * parsing, so nothing that was parsed can exhaust the stack later.
 */
#include "events/expr.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/util.h"
#include "base/vec.h"

#define DEPTH_MAX 100
#define PARTS_MAX 10000

enum op {
	OP_NUMBER,
	OP_ASK,
	OP_NEGATE,
	OP_ADD,
	OP_SUBTRACT,
	OP_MULTIPLY,
	OP_DIVIDE,
	OP_MODULO,
	OP_LESS,
	OP_GREATER,
	OP_AT_MOST,
	OP_AT_LEAST,
	OP_AND,
	OP_XOR,
	OP_OR,
	OP_MIN,
	OP_MAX,
	OP_D_RATIO,
	OP_IF, /* a if b else c */
};

struct part {
	enum op op;
	enum expr_ask ask;
	double number;
	const char *name;
	unsigned a, b, c;
};

struct expr {
	struct arena arena;
	VEC(struct part) parts;
	unsigned root, height;
};

struct parser {
	struct expr *expr;
	const char *text, *at;
	unsigned depth;
	struct err *err;
};

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

static int fail(struct parser *p, const char *expected)
{
	return err_set(p->err, -EINVAL, "column %zu: expected %s", (size_t)(p->at - p->text) + 1,
		       expected);
}

static void blanks(struct parser *p)
{
	while (isspace((unsigned char)*p->at))
		p->at++;
}

static int add(struct parser *p, struct part part)
{
	if (p->expr->parts.len >= PARTS_MAX)
		return err_set(p->err, -E2BIG, "more than %d parts", PARTS_MAX);
	if (vec_push(&p->expr->parts, part) < 0)
		return err_set(p->err, -ENOMEM, "out of memory");
	return (int)p->expr->parts.len - 1;
}

static int parse_if(struct parser *p);

static bool name_char(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("_.:@?", c));
}

/* A name's bytes with escapes undone; its length in the text is consumed. */
static int parse_name(struct parser *p, const char **ret)
{
	char buf[512];
	size_t len = 0;
	bool equals = false; /* behind ':', and between two '@' */

	for (; name_char(*p->at) || *p->at == '\\' || (equals && *p->at == '='); p->at++) {
		if (*p->at == '\\' && *++p->at == '\\')
			p->at++; /* JSON text that was not unescaped */
		if (*p->at == '\0' || len == sizeof(buf) - 1)
			return fail(p, *p->at ? "a shorter name" : "a character after \\");
		equals = *p->at == '@' ? !equals : equals || *p->at == ':';
		buf[len++] = *p->at == '@' ? '/' : *p->at;
	}
	if (len == 0)
		return fail(p, "a name");
	*ret = arena_strndup(&p->expr->arena, buf, len);
	return *ret ? 0 : err_set(p->err, -ENOMEM, "out of memory");
}

static int expect(struct parser *p, char c)
{
	char text[] = {'\'', c, '\'', '\0'};

	blanks(p);
	if (*p->at != c)
		return fail(p, text);
	p->at++;
	return 0;
}

static int parse_two(struct parser *p, enum op op)
{
	int a, b = 0, r = expect(p, '(');

	if (r < 0)
		return r;
	a = parse_if(p);
	if (a < 0 || (r = expect(p, ',')) < 0 || (b = parse_if(p)) < 0 || (r = expect(p, ')')) < 0)
		return a < 0 ? a : r < 0 ? r : b;
	return add(p, (struct part){.op = op, .a = (unsigned)a, .b = (unsigned)b});
}

static int parse_question(struct parser *p, enum expr_ask ask)
{
	struct part part = {.op = OP_ASK, .ask = ask};
	int r = expect(p, '(');

	blanks(p);
	if (r < 0 || (r = parse_name(p, &part.name)) < 0 || (r = expect(p, ')')) < 0)
		return r;
	return add(p, part);
}

static int parse_word(struct parser *p)
{
	static const struct {
		const char *name;
		enum op op;
		enum expr_ask ask;
	} functions[] = {{"min", OP_MIN, 0},
			 {"max", OP_MAX, 0},
			 {"d_ratio", OP_D_RATIO, 0},
			 {"has_event", OP_ASK, EXPR_HAS_EVENT},
			 {"source_count", OP_ASK, EXPR_SOURCE_COUNT},
			 {"strcmp_cpuid_str", OP_ASK, EXPR_CPUID}};
	struct part part = {.op = OP_ASK, .ask = EXPR_NAME};
	const char *start = p->at;
	int r = parse_name(p, &part.name);

	if (r < 0)
		return r;
	if (strcmp(part.name, "if") == 0 || strcmp(part.name, "else") == 0) {
		p->at = start;
		return fail(p, "a value");
	}
	blanks(p);
	for (size_t i = 0; *p->at == '(' && i < ARRAY_LEN(functions); i++)
		if (strcmp(part.name, functions[i].name) == 0)
			return functions[i].op == OP_ASK ? parse_question(p, functions[i].ask)
							 : parse_two(p, functions[i].op);
	return add(p, part);
}

static int parse_primary(struct parser *p)
{
	int r, inner;

	blanks(p);
	if (*p->at == '(') {
		p->at++;
		inner = parse_if(p);
		r = inner < 0 ? inner : expect(p, ')');
		return r < 0 ? r : inner;
	}
	if (*p->at == '#') {
		struct part part = {.op = OP_ASK, .ask = EXPR_LITERAL};

		p->at++;
		r = parse_name(p, &part.name);
		return r < 0 ? r : add(p, part);
	}
	if (isdigit((unsigned char)*p->at) || *p->at == '.') {
		char *end;
		double number = strtod(p->at, &end);

		if (end == p->at || !isfinite(number) || name_char(*end))
			return fail(p, "a number");
		p->at = end;
		return add(p, (struct part){.op = OP_NUMBER, .number = number});
	}
	return parse_word(p);
}

static int parse_unary(struct parser *p)
{
	int a;

	blanks(p);
	if (*p->at != '-')
		return parse_primary(p);
	if (++p->depth > DEPTH_MAX)
		return err_set(p->err, -E2BIG, "more than %d levels", DEPTH_MAX);
	p->at++;
	a = parse_unary(p);
	p->depth--;
	return a < 0 ? a : add(p, (struct part){.op = OP_NEGATE, .a = (unsigned)a});
}

/* Binary operators from loose to tight; all nest to the left. */
static const struct {
	char sign;
	enum op op;
} levels[][3] = {
	{{'|', OP_OR}},
	{{'^', OP_XOR}},
	{{'&', OP_AND}},
	{{'<', OP_LESS}, {'>', OP_GREATER}},
	{{'+', OP_ADD}, {'-', OP_SUBTRACT}},
	{{'*', OP_MULTIPLY}, {'/', OP_DIVIDE}, {'%', OP_MODULO}},
};

/* Behind the first character of an operator: "||", "&&", ">=" and "> =". */
static enum op finish_sign(struct parser *p, enum op op)
{
	char first = *p->at++;

	if ((op == OP_OR || op == OP_AND) && *p->at == first)
		p->at++;
	if (op != OP_LESS && op != OP_GREATER)
		return op;
	if (p->at[strspn(p->at, " ")] != '=')
		return op;
	p->at += strspn(p->at, " ") + 1;
	return op == OP_LESS ? OP_AT_MOST : OP_AT_LEAST;
}

static int parse_level(struct parser *p, unsigned level)
{
	int a = level == ARRAY_LEN(levels) ? parse_unary(p) : parse_level(p, level + 1);

	while (a >= 0 && level < ARRAY_LEN(levels)) {
		enum op op = OP_NUMBER;
		int b;

		blanks(p);
		for (unsigned i = 0; i < 3; i++)
			if (levels[level][i].sign && levels[level][i].sign == *p->at)
				op = levels[level][i].op;
		if (op == OP_NUMBER)
			break;
		op = finish_sign(p, op);
		b = parse_level(p, level + 1);
		a = b < 0 ? b : add(p, (struct part){.op = op, .a = (unsigned)a, .b = (unsigned)b});
	}
	return a;
}

static bool keyword(struct parser *p, const char *word)
{
	size_t len = strlen(word);

	blanks(p);
	if (strncmp(p->at, word, len) != 0 || name_char(p->at[len]))
		return false;
	p->at += len;
	return true;
}

static int parse_if(struct parser *p)
{
	int a, b, c;

	if (++p->depth > DEPTH_MAX)
		return err_set(p->err, -E2BIG, "more than %d levels", DEPTH_MAX);
	a = parse_level(p, 0);
	if (a >= 0 && keyword(p, "if")) {
		b = parse_level(p, 0);
		if (b < 0)
			return b;
		if (!keyword(p, "else"))
			return fail(p, "'else'");
		c = parse_if(p);
		if (c < 0)
			return c;
		a = add(p,
			(struct part){
				.op = OP_IF, .a = (unsigned)a, .b = (unsigned)b, .c = (unsigned)c});
	}
	p->depth--;
	return a;
}

/* The height of the tree: left-nested chains ("a+a+a...") are deep without recursion in parsing. */
static int measure(struct expr *expr, struct err *err)
{
	unsigned *height = calloc(expr->parts.len, sizeof(*height));

	if (!height)
		return err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < expr->parts.len; i++) {
		const struct part *part = &expr->parts.data[i];
		unsigned h = 0;

		if (part->op >= OP_NEGATE) /* operands always stand before their operator */
			h = MAX(h, height[part->a]);
		if (part->op > OP_NEGATE)
			h = MAX(h, height[part->b]);
		if (part->op == OP_IF)
			h = MAX(h, height[part->c]);
		height[i] = h + 1;
		expr->height = MAX(expr->height, h + 1);
	}
	free(height);
	return expr->height > 10 * DEPTH_MAX
		       ? err_set(err, -E2BIG, "more than %d levels", 10 * DEPTH_MAX)
		       : 0;
}

unsigned expr_height(const struct expr *expr)
{
	return expr->height;
}

int expr_parse(const char *text, struct expr **ret, struct err *err)
{
	struct expr *expr = calloc(1, sizeof(*expr));
	struct parser p = {.expr = expr, .text = text, .at = text, .err = err};
	int root;

	if (!expr)
		return err_set(err, -ENOMEM, "out of memory");
	root = parse_if(&p);
	blanks(&p);
	if (root >= 0 && *p.at)
		root = fail(&p, "an operator or the end");
	if (root >= 0) {
		int r = measure(expr, err);

		expr->root = (unsigned)root;
		root = MIN(r, 0);
	}
	if (root < 0) {
		expr_free(expr);
		return root;
	}
	*ret = expr;
	return 0;
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
