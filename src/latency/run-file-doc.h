/*
 * What the reading of a run file is made of: the way to the value for error messages, scalars by
 * tables, nests by callbacks, histograms with a budget of memory.
 */
#pragma once

#include "base/err.h"
#include "base/json-read.h"
#include "latency/run-file-internal.h"

#define DOC_WAY_MAX   12
#define DOC_KEY_BYTES 64

struct doc {
	struct json_reader json;
	struct latency_run *run;
	struct err *err;
	uint64_t buckets; /* allocated so far */
	struct {
		char key[DOC_KEY_BYTES]; /* "": the element index of an array */
		unsigned index;
	} way[DOC_WAY_MAX];
	unsigned depth;
};

/* One key of an object whose value's first token is token. 1: not a key of it. */
typedef int (*doc_member_fn)(struct doc *doc, const char *key, enum json_token token, void *object);
/* One element whose first token is token. */
typedef int (*doc_element_fn)(struct doc *doc, enum json_token token, void *object);

/* -EBADMSG with "the.way[3].here: what"; and the reader's own words. */
int doc_fail(struct doc *doc, const char *what);
int doc_broken(struct doc *doc);

int doc_u64(struct doc *doc, enum json_token token, uint64_t *ret); /* at most INT64_MAX */
int doc_int(struct doc *doc, enum json_token token, int64_t low, int64_t high, int64_t *ret);
bool doc_is_utf8(const char *text);
int doc_name(struct doc *doc, enum json_token token, uint32_t *ret);
int doc_field(struct doc *doc, const struct field *f, enum json_token token, void *object);
/* 1: no row of the table has the key. */
int doc_tabled(struct doc *doc, const struct field_table *table, const char *key,
	       enum json_token token, void *object);

/* Behind "{"; and from it. */
int doc_members(struct doc *doc, doc_member_fn member, void *object);
int doc_object(struct doc *doc, enum json_token token, doc_member_fn member, void *object);
int doc_elements(struct doc *doc, enum json_token token, unsigned max, doc_element_fn element,
		 void *object);

struct doc_values { /* as read; put into a histogram once complete */
	struct histogram h;
	uint64_t count, min, max;
	unsigned __int128 sum;
	bool has_min, has_max, has_sum, has_buckets;
	int64_t last_bucket; /* starts at -1 */
};

/* Keys that series and sources share. 1: none of them. */
int doc_values(struct doc *doc, const char *key, enum json_token token, struct doc_values *values);
/* Puts what was read together; the histogram moves into *into. */
int doc_values_finish(struct doc *doc, struct doc_values *values, struct histogram *into);
int doc_series(struct doc *doc, enum json_token token, struct latency_series *series);
