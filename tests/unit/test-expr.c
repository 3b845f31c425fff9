/* The metric language: grammar, binding, folding, values without numbers, variances. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/util.h"
#include "events/expr.h"
#include "harness/tap.h"

struct names {
	char text[256];
};

static void visit(void *ctx, const char *name)
{
	struct names *names = ctx;

	strcat(strcat(names->text, names->text[0] ? " " : ""), name);
}

static void resolve(void *ctx, enum expr_ask ask, const char *name, struct expr_value *ret)
{
	static const struct {
		const char *name;
		double value;
	} known[] = {{"a", 2},
		     {"b", 3},
		     {"zero", 0},
		     {"idq.dsb_cycles:c1:e1", 7},
		     {"smt_on", 1},
		     {"cpu/event=0x8,cmask=0x2/", 11},
		     {"ocr.x:ocr_msr_val=0x1f", 5},
		     {"topdown-retiring", 13},
		     {"nan", NAN}};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (strcmp(known[i].name, name) == 0)
			*ret = expr_number(known[i].value);
	if (ask == EXPR_HAS_EVENT)
		*ret = expr_number(strcmp(name, "a") == 0);
	if (strcmp(name, "noisy") == 0)
		*ret = (struct expr_value){.value = 10, .variance = 4, .state = EXPR_ESTIMATED};
	if (strcmp(name, "weak") == 0)
		*ret = (struct expr_value){.value = 10, .variance = 1, .state = EXPR_WEAK};
}

static struct expr_value value_of(const char *text)
{
	struct expr_value value = expr_missing(EXPR_INVALID, "does not parse");
	struct expr *expr;

	if (expr_parse(text, &expr, NULL) == 0) {
		expr_eval(expr, resolve, NULL, &value);
		expr_free(expr);
	}
	return value;
}

static double number(const char *text)
{
	return value_of(text).value;
}

TEST(binding)
{
	EXPECT_NEAR(number("1 + 2 * 3"), 7, 0);
	EXPECT_NEAR(number("(1 + 2) * 3"), 9, 0);
	EXPECT_NEAR(number("8 - 3 - 2"), 3, 0);
	EXPECT_NEAR(number("8 / 4 / 2"), 1, 0);
	EXPECT_NEAR(number("-2 * -3"), 6, 0);
	EXPECT_NEAR(number("7 % 4"), 3, 0);
	EXPECT_NEAR(number("1 + 1 < 3 & 2 > 1"), 1, 0);
	EXPECT_NEAR(number("0 | 2 ^ 2"), 0, 0);
	EXPECT_NEAR(number("1 if 0 else 2 if 0 else 3"), 3, 0);
	EXPECT_NEAR(number("1 if a > b else 2"), 2, 0);
	EXPECT_NEAR(number("1e9 + .5"), 1e9 + .5, 0);
	EXPECT_NEAR(number("(a >= 2) + (a <= 2) + (a > = 3) + (b <= 2) + (a>=b)"), 2, 0);
	EXPECT_NEAR(number("a > 1 && b > 5 || zero"), 0, 0);
	EXPECT_NEAR(number("a > 1 && b > 2 || zero"), 1, 0);
	EXPECT_NEAR(number("min(a, b) + max(a, b) * d_ratio(a, zero)"), 2, 0);
}

TEST(names)
{
	EXPECT_NEAR(number("idq.dsb_cycles:c1:e1 + 1"), 8, 0);
	EXPECT_NEAR(number("cpu@event\\=0x8\\,cmask\\=0x2@ / 11"), 1, 0);
	EXPECT_NEAR(number("ocr.x:ocr_msr_val=0x1f * 2"), 10, 0);
	EXPECT_NEAR(number("cpu@event=0x8\\,cmask=0x2@ / 11"), 1, 0);
	EXPECT_NEAR(number("topdown\\-retiring"), 13, 0);
	EXPECT_NEAR(number("topdown\\\\-retiring"), 13, 0);
	EXPECT_NEAR(number("a if #smt_on else b"), 2, 0);
	EXPECT_NEAR(number("has_event(a) + has_event(b)"), 1, 0);
}

TEST(what_has_no_number_stays_without)
{
	EXPECT_INT(value_of("a / zero").state, EXPR_INVALID);
	EXPECT_INT(value_of("a % zero").state, EXPR_INVALID);
	EXPECT_INT(value_of("max(nan, 1)").state, EXPR_INVALID);
	EXPECT_INT(value_of("max(1, nan)").state, EXPR_INVALID);
	EXPECT_INT(value_of("min(missing, 1)").state, EXPR_NOT_COUNTED);
	EXPECT_STR(value_of("min(missing, 1)").reason, "missing is not known");
	EXPECT_INT(value_of("1 if nan else 2").state, EXPR_INVALID);
	EXPECT_INT(value_of("1 if nan < 1 else 2").state, EXPR_INVALID);
	EXPECT_INT(value_of("0 * missing").state, EXPR_NOT_COUNTED);
	EXPECT_INT(value_of("0 & missing").state, EXPR_NOT_COUNTED);
	EXPECT_INT(value_of("d_ratio(missing, zero)").state, EXPR_NOT_COUNTED);
	EXPECT_INT(value_of("d_ratio(1, nan)").state, EXPR_INVALID);
	EXPECT_INT(value_of("-missing").state, EXPR_NOT_COUNTED);
	EXPECT_INT(value_of("1e308 * 1e308").state, EXPR_INVALID);
	EXPECT(isnan(number("max(1, a / zero)")));
	EXPECT_NEAR(number("1 if a else missing"), 1, 0);
}

TEST(variance_and_state)
{
	EXPECT_NEAR(value_of("noisy + noisy").variance, 8, 0);
	EXPECT_NEAR(value_of("3 * noisy").variance, 36, 0);
	EXPECT_NEAR(value_of("noisy / 2").variance, 1, 1e-12);
	EXPECT_NEAR(value_of("1 / noisy").variance, 4e-4, 1e-12);
	EXPECT_NEAR(value_of("max(noisy, 3)").variance, 4, 0);
	EXPECT_NEAR(value_of("noisy if a else 1").variance, 4, 0);
	EXPECT_INT(value_of("noisy * a").state, EXPR_ESTIMATED);
	EXPECT_INT(value_of("noisy * weak").state, EXPR_WEAK);
	EXPECT_INT(value_of("1 if weak > 1 else 2").state, EXPR_WEAK);
}

/* For every operator and every pair of states: the result has a number exactly when both have one,
 * the worse of the two states, and a variance that follows. */
TEST(every_operator_carries_states)
{
	static const char *const operators[] = {
		"%s + %s", "%s - %s", "%s * %s",     "%s / %s",     "%s %% %s",
		"%s < %s", "%s > %s", "%s <= %s",    "%s >= %s",    "%s & %s",
		"%s | %s", "%s ^ %s", "min(%s, %s)", "max(%s, %s)", "d_ratio(%s, %s)"};
	static const struct {
		const char *name;
		enum expr_state state;
	} operands[] = {{"a", EXPR_MEASURED},         {"noisy", EXPR_ESTIMATED},
			{"weak", EXPR_WEAK},          {"missing", EXPR_NOT_COUNTED},
			{"(1 / zero)", EXPR_INVALID}, {"nan", EXPR_INVALID}};
	char text[64];

	for (size_t o = 0; o < ARRAY_LEN(operators); o++)
		for (size_t x = 0; x < ARRAY_LEN(operands); x++)
			for (size_t y = 0; y < ARRAY_LEN(operands); y++) {
				enum expr_state worse = MAX(operands[x].state, operands[y].state);
				struct expr_value v;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
				snprintf(text, sizeof(text), operators[o], operands[x].name,
					 operands[y].name);
#pragma GCC diagnostic pop
				v = value_of(text);
				tap_expect(v.state == worse &&
						   expr_has_number(&v) == !isnan(v.value) &&
						   (!expr_has_number(&v) || v.variance >= 0),
					   __FILE__, __LINE__, "%s: %s, %g", text,
					   expr_state_name(v.state), v.value);
			}
	for (size_t x = 0; x < ARRAY_LEN(operands); x++) {
		snprintf(text, sizeof(text), "1 if %s else 2", operands[x].name);
		EXPECT_INT(value_of(text).state, operands[x].state);
		EXPECT(isnan(number(text)) == (operands[x].state > EXPR_WEAK));
		snprintf(text, sizeof(text), "-%s", operands[x].name);
		EXPECT_INT(value_of(text).state, operands[x].state);
	}
}

TEST(folding_drops_dead_branches)
{
	struct names before = {""}, after = {""};
	struct expr *expr;
	double value;

	ASSERT(expr_parse("(x_any / 2 if #smt_on else x) + (y if has_event(b) else 2 * 3)", &expr,
			  NULL) == 0);
	expr_names(expr, visit, &before);
	expr_fold(expr, resolve, NULL);
	expr_names(expr, visit, &after);
	EXPECT_STR(before.text, "x_any x y");
	EXPECT_STR(after.text, "x_any");
	EXPECT(!expr_is_constant(expr, &value));
	expr_free(expr);
	ASSERT(expr_parse("4 * (2 if 1 > 2 else 1 / 4)", &expr, NULL) == 0);
	expr_fold(expr, resolve, NULL);
	EXPECT(expr_is_constant(expr, &value) && value == 1);
	expr_free(expr);
}

static int rename_name(void *ctx, const char *name, size_t len, struct str *out)
{
	if (len == 3 && memcmp(name, "bad", 3) == 0)
		return -ELOOP;
	str_printf(out, "<%.*s>", (int)len, name);
	return 0;
}

TEST(formulas_as_texts)
{
	struct str out = {0};
	struct names names = {""};
	struct expr *expr;

	EXPECT_INT(expr_rewrite("100 * min(a.b:c1:x=0x2, 1e9) if #smt_on > .5e-3 else "
				"cpu@E\\,u\\=1@ + topdown\\-x - 4k",
				rename_name, NULL, &out),
		   0);
	EXPECT_STR(str_text(&out), "100 * min(<a.b:c1:x=0x2>, 1e9) if <#smt_on> > .5e-3 else "
				   "<cpu@E\\,u\\=1@> + <topdown\\-x> - 4<k>");
	str_clear(&out);
	EXPECT_INT(expr_rewrite("1 + bad", rename_name, NULL, &out), -ELOOP);
	str_clear(&out);
	expr_put_name(&out, "cpu/event=0x3c,cmask=1/k");
	EXPECT_STR(str_text(&out), "cpu@event\\=0x3c\\,cmask\\=1@k");
	EXPECT_INT(expr_parse(str_text(&out), &expr, NULL), 0);
	expr_names(expr, visit, &names);
	EXPECT_STR(names.text, "cpu/event=0x3c,cmask=1/k");
	EXPECT_INT(expr_height(expr), 1);
	expr_free(expr);
	str_clear(&out);
	expr_put_name(&out, "1st.event:c1:umask=0x4");
	EXPECT_STR(str_text(&out), "\\1st.event:c1:umask=0x4");
	str_fini(&out);
}

TEST(wrong_text)
{
	static const char *const wrong[] = {"",       "1 +",        "(1",     "1)",   "a b",
					    "min(1)", "min(1,2,3)", "1 if 2", "if",   "1 if else 2",
					    "a =< b", "a == b",     "1..2",   "12ab", "has_event()",
					    "#",      "a\\"};
	struct expr *expr;
	struct err err = {""};
	char deep[3000];

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		tap_expect(expr_parse(wrong[i], &expr, &err) == -EINVAL, __FILE__, __LINE__, "%s",
			   wrong[i]);
	EXPECT_INT(expr_parse("1 + + 2", &expr, &err), -EINVAL);
	EXPECT_STR(err.text, "column 5: expected a name");
	memset(deep, '(', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	EXPECT_INT(expr_parse(deep, &expr, NULL), -E2BIG);
	memset(deep, '-', sizeof(deep) - 1);
	EXPECT_INT(expr_parse(deep, &expr, NULL), -E2BIG);
}
