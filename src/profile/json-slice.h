/*
 * JSON documents whose parts come in any order, without a tree: a slice is one value of the
 * document, left as text until its turn. Walking a slice gives the slices inside it. The document
 * is checked once as a whole, so that walks can neither fail nor run out of it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json-read.h"
#include "base/str.h"

struct json_slice {
	const char *at; /* NULL: no such value */
	size_t size;
};

struct json_walk {
	struct json_reader reader;
	struct str key; /* of the value just given; objects only */
	bool object;
};

/* The value of a whole document; -EBADMSG with the byte that is wrong, -ENOMEM. */
int json_slice_document(const void *data, size_t size, struct json_slice *ret, struct err *err);

/* Of anything but objects and arrays: nothing is inside. */
struct json_walk json_walk_make(struct json_slice slice);
bool json_walk_next(struct json_walk *walk, struct json_slice *ret);
void json_walk_fini(struct json_walk *walk);

/*
 * The values of keys, each the last one when a key is there twice; what is not there stays as it
 * is. One pass, however many keys.
 */
struct json_member {
	const char *key;
	struct json_slice *to;
};

void json_slice_members(struct json_slice object, const struct json_member *members, size_t count);
/* The same for one key; no value when there is none. */
struct json_slice json_slice_member(struct json_slice object, const char *key);

/* False when it is no number. */
bool json_slice_number(struct json_slice slice, double *ret);
/* A text, or the spelling of a number; false for everything else. Replaces what is in *ret. */
bool json_slice_text(struct json_slice slice, struct str *ret);

/* The number of a JSON_NUMBER token: exact when it is whole, within int64, and has no fraction. */
struct json_amount {
	double value;
	int64_t whole;
	bool is_whole;
};

struct json_amount json_amount_of(const char *text);

/*
 * Amounts as whole numbers in another unit: what rounding takes from one is carried to the next, so
 * that the total is right to within one. False when it is not finite or leaves int64.
 */
struct json_carry {
	double scale, rest;
};

bool json_carry_add(struct json_carry *carry, struct json_amount amount, int64_t *ret);

/*
 * Which of the keys the document's top object has, as bits; the search ends when all are found or
 * the text is damaged. 0 for what is no object.
 */
unsigned json_top_keys(const void *data, size_t size, const char *const *keys, unsigned count);
