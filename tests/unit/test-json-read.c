/* The JSON reader: tokens, texts, errors with their place. */
#include <errno.h>

#include "base/json-read.h"
#include "base/util.h"
#include "harness/tap.h"

/* The tokens of a document as letters, texts in quotes; an error ends it with "!". */
static const char *tokens(const char *text, size_t len)
{
	static char out[1024];
	static const char letters[] = ".{}[]kstTFN";
	struct json_reader reader = json_reader_make(text, len);
	enum json_token token;
	size_t at = 0;

	do {
		token = json_next(&reader);
		if (token == JSON_KEY || token == JSON_STRING || token == JSON_NUMBER)
			at += (size_t)snprintf(out + at, sizeof(out) - at, "%s%s",
					       str_text(&reader.text),
					       token == JSON_KEY ? ":" : " ");
		else
			at += (size_t)snprintf(out + at, sizeof(out) - at, "%c",
					       token == JSON_BAD ? '!' : letters[token]);
	} while (token > JSON_END && at < sizeof(out) - 300);
	json_reader_fini(&reader);
	return out;
}

#define TOKENS(text) tokens(text, strlen(text))

TEST(documents)
{
	EXPECT_STR(TOKENS("{}"), "{}.");
	EXPECT_STR(TOKENS(" [ ] "), "[].");
	EXPECT_STR(TOKENS("7"), "7 .");
	EXPECT_STR(TOKENS("\xef\xbb\xbf[1,2]"), "[1 2 ].");
	EXPECT_STR(TOKENS("{\"a\":1,\"b\":[true,false,null,-0.5e+3],\"c\":{\"d\":\"x\"}}"),
		   "{a:1 b:[TFN-0.5e+3 ]c:{d:x }}.");
	EXPECT_STR(TOKENS("\"\\u00e9\\ud83d\\ude00\\n\\/\\\"\""),
		   "\xc3\xa9\xf0\x9f\x98\x80\n/\" .");
	EXPECT_STR(TOKENS("\"\\ud83d\""), "\xef\xbf\xbd .");
	EXPECT_STR(TOKENS("\"\\ude00x\""), "\xef\xbf\xbdx .");
}

TEST(malformed_documents)
{
	static const char *const rows[] = {
		"",       "{",         "[",        "[1",        "[1,",         "[1,]",
		"{\"a\"", "{\"a\":",   "{\"a\":1", "{\"a\":1,", "{\"a\":1,}",  "{1:2}",
		"[1 2]",  "{\"a\" 1}", "]",        "}",         "[}",          "{]",
		"01",     "1.",        ".5",       "-",         "1e",          "1e+",
		"tru",    "nul",       "\"",       "\"\\x\"",   "\"\\u12g4\"", "\"\\u12",
		"\"\t\"", "1 2",       "[1],",     "'a'",       "+1",          "NaN",
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *out = TOKENS(rows[i]);

		tap_expect(out[0] && out[strlen(out) - 1] == '!', __FILE__, __LINE__, "%s: %s",
			   rows[i], out);
	}
	EXPECT_STR(tokens("\"a\0b\"", 5), "!");
}

TEST(depth_is_bounded)
{
	char text[2 * JSON_DEPTH_MAX + 3];
	struct json_reader reader;
	enum json_token token;
	struct err err;

	memset(text, '[', JSON_DEPTH_MAX);
	memset(text + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
	reader = json_reader_make(text, 2 * JSON_DEPTH_MAX);
	while ((token = json_next(&reader)) > JSON_END)
		;
	EXPECT_INT(token, JSON_END);
	memset(text, '[', JSON_DEPTH_MAX + 1);
	reader = json_reader_make(text, sizeof(text));
	while ((token = json_next(&reader)) > JSON_END)
		;
	EXPECT_INT(token, JSON_BAD);
	EXPECT_INT(json_reader_why(&reader, &err), -EBADMSG);
	EXPECT_STR(err.text, "byte 64: nested too deep");
	json_reader_fini(&reader);
}

TEST(skipping_values)
{
	const char *text = "{\"a\":[1,{\"b\":[2]}],\"c\":3}";
	struct json_reader reader = json_reader_make(text, strlen(text));

	EXPECT_INT(json_next(&reader), JSON_OBJECT);
	EXPECT_INT(json_next(&reader), JSON_KEY);
	EXPECT_INT(json_skip(&reader, json_next(&reader)), JSON_ARRAY_END);
	EXPECT_INT(json_next(&reader), JSON_KEY);
	EXPECT_STR(str_text(&reader.text), "c");
	EXPECT_INT(json_skip(&reader, json_next(&reader)), JSON_NUMBER);
	EXPECT_INT(json_next(&reader), JSON_OBJECT_END);
	EXPECT_INT(json_next(&reader), JSON_END);
	json_reader_fini(&reader);
	text = "[[1,2";
	reader = json_reader_make(text, strlen(text));
	EXPECT_INT(json_skip(&reader, json_next(&reader)), JSON_BAD);
	json_reader_fini(&reader);
}
