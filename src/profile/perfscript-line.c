/*
 * One line. Names of commands may hold spaces, digits and brackets: what decides is the first place
 * where everything that must follow a name does follow.
 */
#include <string.h>

#include "base/util.h"
#include "profile/perfscript-internal.h"

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static struct span trim(struct span span)
{
	while (span.len && is_space(span.at[0])) {
		span.at++;
		span.len--;
	}
	while (span.len && is_space(span.at[span.len - 1]))
		span.len--;
	return span;
}

/* Takes the next word off. */
static struct span take_word(struct span *rest)
{
	struct span word;

	*rest = trim(*rest);
	word.at = rest->at;
	word.len = 0;
	while (word.len < rest->len && !is_space(rest->at[word.len]))
		word.len++;
	rest->at += word.len;
	rest->len -= word.len;
	return word;
}

/* Digits at the beginning; returns how many. */
static size_t number(struct span span, uint64_t *ret)
{
	size_t i = 0;

	*ret = 0;
	while (i < span.len && is_digit(span.at[i])) {
		if (*ret > (UINT64_MAX - 9) / 10)
			return 0;
		*ret = *ret * 10 + (uint64_t)(span.at[i++] - '0');
	}
	return i;
}

/* "pid" or "pid/tid"; perf prints -1 for what is gone. */
static bool ids(struct span word, int64_t *ret_pid, int64_t *ret_tid)
{
	bool minus = word.len > 1 && word.at[0] == '-';
	struct span rest = {word.at + minus, word.len - minus};
	uint64_t pid, tid;
	size_t n = number(rest, &pid);

	if (n == 0 || pid > INT32_MAX)
		return false;
	/* A number alone is the thread's. */
	*ret_pid = -1;
	*ret_tid = minus ? -1 : (int64_t)pid;
	if (n == rest.len)
		return true;
	*ret_pid = *ret_tid;
	if (rest.at[n] != '/')
		return false;
	rest.at += n + 1;
	rest.len -= n + 1;
	if (rest.len && rest.at[0] == '-') {
		rest.at++;
		rest.len--;
	}
	n = number(rest, &tid);
	*ret_tid = (int64_t)tid;
	return n > 0 && n == rest.len && tid <= INT32_MAX;
}

static bool is_cpu(struct span word)
{
	uint64_t cpu;

	return word.len > 2 && word.at[0] == '[' && word.at[word.len - 1] == ']' &&
	       number((struct span){word.at + 1, word.len - 2}, &cpu) == word.len - 2;
}

/* "123.456789:" */
static bool is_time(struct span word)
{
	uint64_t part;
	size_t n = number(word, &part), m;

	if (n == 0 || n + 2 >= word.len || word.at[n] != '.' || word.at[word.len - 1] != ':')
		return false;
	m = number((struct span){word.at + n + 1, word.len - n - 2}, &part);
	return m > 0 && m == word.len - n - 2;
}

/* A word that ends in a colon, "cycles:u:", perhaps with a number before it. */
static bool event(struct span rest, struct script_head *ret)
{
	struct span word = take_word(&rest);
	uint64_t period = 0;

	if (word.len && number(word, &period) == word.len)
		word = take_word(&rest);
	else
		period = 0;
	if (word.len < 2 || word.at[word.len - 1] != ':' || is_time(word))
		return false;
	ret->event = (struct span){word.at, word.len - 1};
	ret->period = period;
	ret->rest = trim(rest);
	return true;
}

/* What follows the command's name. */
static bool behind_name(struct span rest, struct script_head *ret)
{
	struct span word = take_word(&rest), next;

	if (!ids(word, &ret->pid, &ret->tid))
		return false;
	next = rest;
	word = take_word(&next);
	if (is_cpu(word)) {
		rest = next;
		word = take_word(&next);
	}
	ret->timed = is_time(word);
	if (ret->timed)
		rest = next;
	/* A time without an event is one of -F comm,pid,time. */
	if (event(rest, ret))
		return true;
	ret->event = (struct span){"samples", 7};
	ret->rest = trim(rest);
	ret->period = 0;
	return ret->timed;
}

bool script_head(struct span line, struct script_head *ret)
{
	struct span all = trim(line);

	for (size_t i = 1; i < all.len; i++) {
		struct span name;

		if (!is_space(all.at[i - 1]) || is_space(all.at[i]))
			continue;
		name = trim((struct span){all.at, i});
		if (behind_name((struct span){all.at + i, all.len - i}, ret)) {
			ret->comm = name;
			return true;
		}
	}
	return false;
}

static size_t hex(struct span span, uint64_t *ret)
{
	size_t i = 0;

	*ret = 0;
	for (; i < span.len && i < 16; i++) {
		char c = span.at[i];

		if (is_digit(c))
			*ret = *ret << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			*ret = *ret << 4 | (uint64_t)(c - 'a' + 10);
		else
			break;
	}
	return i;
}

/* Takes the last bracket of the line, with those inside it: "(/bin/x (deleted))". */
static bool take_object(struct span *line, struct span *ret)
{
	size_t depth = 0, i = line->len;

	if (i == 0 || line->at[i - 1] != ')')
		return false;
	do {
		i--;
		if (line->at[i] == ')')
			depth++;
		else if (line->at[i] == '(')
			depth--;
	} while (i > 0 && depth > 0);
	if (depth > 0)
		return false;
	*ret = (struct span){line->at + i + 1, line->len - i - 2};
	line->len = i;
	*line = trim(*line);
	return true;
}

static struct span without_offset(struct span symbol)
{
	size_t i = symbol.len;
	uint64_t offset;

	while (i > 0 && symbol.at[i - 1] != '+')
		i--;
	if (i == 0 || symbol.len - i < 3 || memcmp(symbol.at + i, "0x", 2) != 0 ||
	    hex((struct span){symbol.at + i + 2, symbol.len - i - 2}, &offset) !=
		    symbol.len - i - 2)
		return symbol;
	symbol.len = i - 1;
	return symbol;
}

bool script_frame(struct span line, struct script_frame *ret)
{
	struct span rest = trim(line);
	size_t n = hex(rest, &ret->address);
	bool indented = line.len > 0 && is_space(line.at[0]);

	if (n == 0 || n == rest.len || !is_space(rest.at[n]))
		return false;
	rest.at += n;
	rest.len -= n;
	rest = trim(rest);
	if (!take_object(&rest, &ret->object)) {
		/* "add 12" may be anything. */
		if (!indented)
			return false;
		ret->object = (struct span){"[unknown]", 9};
	}
	ret->inlined = span_is(ret->object, "inlined");
	ret->symbol = without_offset(rest);
	if (ret->symbol.len == 0)
		ret->symbol = (struct span){"[unknown]", 9};
	if (ret->object.len == 0)
		ret->object = (struct span){"[unknown]", 9};
	return true;
}

bool script_source(struct span line)
{
	struct span text = trim(line);
	size_t i = text.len;

	if (text.len == 0 || !is_space(line.at[0]))
		return false;
	while (i > 0 && (is_digit(text.at[i - 1]) || text.at[i - 1] == '?'))
		i--;
	return i > 1 && i < text.len && text.at[i - 1] == ':';
}

bool script_line(struct span *text, struct span *ret)
{
	const char *newline;

	if (text->len == 0)
		return false;
	newline = memchr(text->at, '\n', text->len);
	ret->at = text->at;
	ret->len = newline ? (size_t)(newline - text->at) : text->len;
	text->at += ret->len + (newline != NULL);
	text->len -= ret->len + (newline != NULL);
	while (ret->len && ret->at[ret->len - 1] == '\r')
		ret->len--;
	return true;
}
