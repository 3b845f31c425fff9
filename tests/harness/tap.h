/*
 * The in-tree test harness: prints TAP 13.
 *
 *	TEST(cpuset_parses_ranges)
 *	{
 *		EXPECT_INT(cpuset_parse("0-3", &set, NULL), 0);
 *		SKIP_IF(access(path, R_OK) != 0, "no test data");
 *	}
 *
 * Tests register themselves in file order; main() is in tap.c. A failed EXPECT prints where and
 * what and goes on; ASSERT leaves the test. Arguments of the program are globs that select tests. A
 * test with no EXPECT at all fails: it tested nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct tap_test {
	const char *name;
	void (*run)(void);
	struct tap_test *next;
};

void tap_register(struct tap_test *test);
bool tap_expect(bool ok, const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void tap_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The folder of real input files with expected results: $CULPRIT_TEST_DATA, or NULL when there is
 * none. */
const char *tap_data_dir(void);
/* "<folder>/<name>" in a static buffer (one per call, four in rotation), or NULL when it cannot be
 * read. */
const char *tap_data(const char *name);

/* A folder of this program in /tmp, made when first asked for and removed with all that is in it
 * when the program ends, by a signal too. */
const char *tap_dir(void);
/* Runs a command of the shell, as system(). */
int tap_shell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#define TEST(name_)                                                         \
	static void test_##name_(void);                                     \
	__attribute__((constructor)) static void register_##name_(void)     \
	{                                                                   \
		static struct tap_test test = {#name_, test_##name_, NULL}; \
		tap_register(&test);                                        \
	}                                                                   \
	static void test_##name_(void)

#define EXPECT(cond) tap_expect((cond), __FILE__, __LINE__, "%s", #cond)
#define EXPECT_INT(have, want)                                                                    \
	({                                                                                        \
		long long have_ = (long long)(have), want_ = (long long)(want);                   \
		tap_expect(have_ == want_, __FILE__, __LINE__, "%s: have %lld, want %lld", #have, \
			   have_, want_);                                                         \
	})
#define EXPECT_STR(have, want)                                                              \
	({                                                                                  \
		const char *have_ = (have), *want_ = (want);                                \
		tap_expect(have_ &&want_ &&strcmp(have_, want_) == 0, __FILE__, __LINE__,   \
			   "%s: have \"%s\", want \"%s\"", #have, have_ ? have_ : "(null)", \
			   want_ ? want_ : "(null)");                                       \
	})
#define EXPECT_NEAR(have, want, tolerance)                                                       \
	({                                                                                       \
		double have_ = (have), want_ = (want), tolerance_ = (tolerance);                 \
		tap_expect(have_ >= want_ - tolerance_ && have_ <= want_ + tolerance_, __FILE__, \
			   __LINE__, "%s: have %.9g, want %.9g +- %.3g", #have, have_, want_,    \
			   tolerance_);                                                          \
	})
#define ASSERT(cond)               \
	do {                       \
		if (!EXPECT(cond)) \
			return;    \
	} while (0)
#define SKIP(...)                      \
	do {                           \
		tap_skip(__VA_ARGS__); \
		return;                \
	} while (0)
#define SKIP_IF(cond, ...)                 \
	do {                               \
		if (cond)                  \
			SKIP(__VA_ARGS__); \
	} while (0)
