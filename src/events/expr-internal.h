/* A formula as an array in which operands stand before their operators. */
#pragma once

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "events/expr.h"

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

/* Stands in a name without a backslash before it. */
static inline bool expr_name_char(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("_.:@?", c));
}
