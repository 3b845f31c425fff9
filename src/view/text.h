/*
 * Text for people: UTF-8 decoding that never fails, width on a terminal, cutting, escaping.
 *
 * Names come from files that anybody may have written. Whatever is shown goes through text_clean()
 * or text_xml(): bytes that are not UTF-8 and control characters become U+FFFD, so that a symbol
 * can neither move the cursor nor end a tag.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* Decodes one code point of text[0..left), left > 0. Returns its bytes; a bad sequence is one byte
 * and U+FFFD. */
size_t text_decode(const char *text, size_t left, uint32_t *ret_code);

/* Columns on a terminal: 0 for combining marks, 2 for East Asian wide characters and emoji. */
unsigned text_code_width(uint32_t code);
unsigned text_width(const char *text);

/* Appends the text as valid UTF-8 without control characters. */
void text_clean(struct str *out, const char *text, size_t len);

/* As text_clean(), and when wider than max columns with ".." in place of its middle. max 0: uncut.
 */
void text_cut_middle(struct str *out, const char *text, unsigned max);

/* As text_clean(), with & < > " and ' escaped: for XML and HTML, content and quoted attributes. */
void text_xml(struct str *out, const char *text, size_t len);

/* 1234567 as 1,234,567. */
void text_group(struct str *out, uint64_t value);
