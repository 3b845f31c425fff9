/*
 * Recursive descent into a flat array of parts. Depth is limited while parsing, so nothing that was
 * parsed can exhaust the stack later.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "events/expr-internal.h"

#define DEPTH_MAX 100
#define PARTS_MAX 10000

struct parser {
	struct expr *expr;
	const char *text, *at;
	unsigned depth;
	struct err *err;
};

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

/* A name's bytes with escapes undone; its length in the text is consumed. */
static int parse_name(struct parser *p, const char **ret)
{
	char buf[512];
	size_t len = 0;
	bool equals = false; /* behind ':', and between two '@' */

	for (; expr_name_char(*p->at) || *p->at == '\\' || (equals && *p->at == '='); p->at++) {
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

		if (end == p->at || !isfinite(number) || expr_name_char(*end))
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
	if (strncmp(p->at, word, len) != 0 || expr_name_char(p->at[len]))
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
