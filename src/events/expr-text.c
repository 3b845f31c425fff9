/* Formulas as texts: names replaced in them, names written so that they are read back. */
#include <ctype.h>
#include <string.h>

#include "events/expr-internal.h"

size_t expr_name_length(const char *text)
{
	size_t len = 0;
	bool equals = false; /* behind ':', and between two '@' */

	if (isdigit((unsigned char)*text) || *text == '.')
		return 0;
	while (expr_name_char(text[len]) || text[len] == '\\' || (equals && text[len] == '=')) {
		if (text[len] == '\\' && text[len + 1] == '\\')
			len++;
		if (text[len] == '\\' && text[++len] == '\0')
			break;
		equals = text[len] == '@' ? !equals : equals || text[len] == ':';
		len++;
	}
	return len;
}

void expr_put_name(struct str *out, const char *name)
{
	bool suffix = false;

	for (size_t i = 0; name[i]; i++) {
		suffix |= name[i] == ':';
		if (name[i] == '/')
			str_putc(out, '@');
		else if (!expr_name_char(name[i]) && !(suffix && name[i] == '='))
			str_printf(out, "\\%c", name[i]);
		else if (i == 0 && (isdigit((unsigned char)name[i]) || name[i] == '.'))
			str_printf(out, "\\%c", name[i]);
		else
			str_putc(out, name[i]);
	}
}

static size_t number_length(const char *text)
{
	size_t len = strspn(text, "0123456789.");

	if (len > 0 && (text[len] == 'e' || text[len] == 'E')) {
		size_t digits = strspn(text + len + 1 + (text[len + 1] == '-'), "0123456789");

		if (digits > 0)
			len += 1 + (text[len + 1] == '-') + digits;
	}
	return len;
}

static bool is_word(const char *name, size_t len)
{
	static const char *const words[] = {
		"if",      "else",      "min",          "max",
		"d_ratio", "has_event", "source_count", "strcmp_cpuid_str"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i]) == len && memcmp(words[i], name, len) == 0)
			return true;
	return false;
}

int expr_rewrite(const char *text,
		 int (*rename)(void *ctx, const char *name, size_t len, struct str *out), void *ctx,
		 struct str *out)
{
	while (*text) {
		size_t literal = *text == '#', len = expr_name_length(text + literal) + literal;
		int r = 0;

		if (len <= literal) {
			len = number_length(text);
			len = len ? len : 1;
			str_append(out, text, len);
		} else if (is_word(text, len)) {
			str_append(out, text, len);
		} else {
			r = rename(ctx, text, len, out);
		}
		if (r < 0)
			return r;
		text += len;
	}
	return str_status(out);
}
