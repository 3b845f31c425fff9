/*
 * Names for people, by libiberty: C++ (Itanium), Rust (v0 and legacy) and D. This is the only file
 * that knows libiberty.
 *
 * Mangled names are untrusted. Substitutions can make a short name print 2^n bytes, so text is
 * taken through libiberty's callbacks and given up beyond TEXT_MAX with a longjmp: in callback mode
 * the demanglers hold nothing but stack. Their recursion limits stay on; names of more than about
 * 1000 bytes, which those limits refuse, are tried without up to LONG_NAME_MAX, where the stack
 * they can use is still small. Names that are none of the three, or damaged, are NULL: the caller
 * shows them whole.
 */
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "symbols/symbols.h"

#define TEXT_MAX      (64 * 1024)
#define LONG_NAME_MIN 1000
#define LONG_NAME_MAX 4096
#define D_NAME_MAX    1024
#define D_BACKREFS    24

#define STYLE (DMGL_PARAMS | DMGL_ANSI)

struct sink {
	struct str text;
	jmp_buf too_long;
};

typedef int (*demangle_callback_fn)(const char *mangled, int options, demangle_callbackref callback,
				    void *opaque);

static void collect(const char *text, size_t len, void *opaque)
{
	struct sink *sink = opaque;

	if (len > TEXT_MAX - sink->text.len)
		longjmp(sink->too_long, 1);
	str_append(&sink->text, text, len);
	if (str_status(&sink->text) < 0)
		longjmp(sink->too_long, 1);
}

static bool run(demangle_callback_fn fn, const char *name, int options, struct sink *sink)
{
	if (setjmp(sink->too_long))
		return false;
	return fn(name, options, collect, sink) && sink->text.len > 0;
}

static char *demangle_with(demangle_callback_fn fn, const char *name, int options)
{
	struct sink sink = {0};
	char *text = NULL;

	if (!run(fn, name, options, &sink) || str_take(&sink.text, &text) < 0)
		text = NULL;
	str_fini(&sink.text);
	return text;
}

static char *demangle_cplus(const char *name)
{
	char *text = demangle_with(cplus_demangle_v3_callback, name, STYLE);
	size_t len;

	if (text)
		return text;
	len = strlen(name);
	if (len < LONG_NAME_MIN || len > LONG_NAME_MAX)
		return NULL;
	return demangle_with(cplus_demangle_v3_callback, name, STYLE | DMGL_NO_RECURSE_LIMIT);
}

/* libiberty has no callback for D; back references ('Q') are what can make its text explode. */
static char *demangle_d(const char *name)
{
	size_t len = 0, backrefs = 0;

	for (; name[len]; len++)
		if (name[len] == 'Q' && ++backrefs > D_BACKREFS)
			return NULL;
	return len <= D_NAME_MAX ? dlang_demangle(name, STYLE) : NULL;
}

static char *demangle_base(const char *name)
{
	char *text = NULL;

	if (name[0] == '_' && (name[1] == 'R' || name[1] == 'Z'))
		text = demangle_with(rust_demangle_callback, name, STYLE);
	if (!text && name[0] == '_' && name[1] == 'R' && strlen(name) > LONG_NAME_MIN &&
	    strlen(name) <= LONG_NAME_MAX)
		text = demangle_with(rust_demangle_callback, name, STYLE | DMGL_NO_RECURSE_LIMIT);
	if (!text && name[0] == '_' && (name[1] == 'Z' || name[1] == 'G'))
		text = demangle_cplus(name);
	if (!text && name[0] == '_' && name[1] == 'D')
		text = demangle_d(name);
	return text;
}

char *demangle(const char *raw_name)
{
	const char *at = strchr(raw_name, '@');
	char *base, *text;
	struct str out = {0};

	if (raw_name[0] != '_' || strlen(raw_name) < 3)
		return NULL;
	if (!at)
		return demangle_base(raw_name);
	/* "@plt" and "@@VERSION" stand behind the mangled name and are kept. */
	base = strndup(raw_name, (size_t)(at - raw_name));
	if (!base)
		return NULL;
	text = demangle_base(base);
	free(base);
	if (!text)
		return NULL;
	str_puts(&out, text);
	str_puts(&out, at);
	free(text);
	if (str_take(&out, &text) < 0)
		text = NULL;
	str_fini(&out);
	return text;
}
