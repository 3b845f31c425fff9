#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpuset.h"
#include "base/json.h"
#include "base/util.h"
#include "latency/run-file-doc.h"

#define BUCKETS_BUDGET (32U << 20) /* 8 bytes each, over all histograms */
#define TEXT_BYTES_MAX (64U << 10)

int doc_fail(struct doc *doc, const char *what)
{
	struct str way = {0};

	for (unsigned i = 0; i < doc->depth; i++) {
		if (doc->way[i].key[0])
			str_printf(&way, "%s%s", i ? "." : "", doc->way[i].key);
		else
			str_printf(&way, "[%u]", doc->way[i].index);
	}
	err_set(doc->err, -EBADMSG, "%s: %s", str_text(&way), what);
	str_fini(&way);
	return -EBADMSG;
}

int doc_broken(struct doc *doc)
{
	return json_reader_why(&doc->json, doc->err);
}

static bool push_key(struct doc *doc, const char *key)
{
	if (doc->depth == DOC_WAY_MAX)
		return false;
	snprintf(doc->way[doc->depth].key, DOC_KEY_BYTES, "%s", key);
	doc->depth++;
	return true;
}

/* --- scalars ------------------------------------------------------------------------------- */

int doc_u64(struct doc *doc, enum json_token token, uint64_t *ret)
{
	unsigned long long value;
	int r;

	if (token != JSON_NUMBER)
		return doc_fail(doc, "not a number");
	r = parse_u64(str_text(&doc->json.text), 10, &value);
	if (r == -ERANGE || (r == 0 && value > INT64_MAX))
		return doc_fail(doc, "the number is too large");
	if (r < 0)
		return doc_fail(doc, "not a whole number from 0 on");
	*ret = value;
	return 0;
}

static int to_i64(struct doc *doc, enum json_token token, int64_t *ret)
{
	const char *text = str_text(&doc->json.text), *digits = text + (text[0] == '-');
	unsigned long long value;

	if (token != JSON_NUMBER)
		return doc_fail(doc, "not a number");
	if (parse_u64(digits, 10, &value) < 0 || value > INT64_MAX)
		return doc_fail(doc, "not a whole number of 64 bits");
	*ret = digits == text ? (int64_t)value : -(int64_t)value;
	return 0;
}

bool doc_is_utf8(const char *text)
{
	size_t left = strlen(text), n;

	for (; left > 0; left -= n, text += n) {
		n = json_utf8_sequence(text, left);
		if (n == 0)
			return false;
	}
	return true;
}

int doc_name(struct doc *doc, enum json_token token, uint32_t *ret)
{
	if (token != JSON_STRING)
		return doc_fail(doc, "not a text");
	if (doc->json.text.len > TEXT_BYTES_MAX)
		return doc_fail(doc, "the text is too long");
	/* what was written is: bad bytes would become equal names */
	if (!doc_is_utf8(str_text(&doc->json.text)))
		return doc_fail(doc, "not UTF-8");
	/* up to a NUL, as every text of the model */
	return strtab_intern_text(&doc->run->names, str_text(&doc->json.text), ret);
}

int doc_int(struct doc *doc, enum json_token token, int64_t low, int64_t high, int64_t *ret)
{
	int64_t value = 0;
	int r = to_i64(doc, token, &value);

	if (r == 0 && (value < low || value > high))
		return doc_fail(doc, "the number is out of range");
	if (r == 0)
		*ret = value;
	return r;
}

int doc_field(struct doc *doc, const struct field *f, enum json_token token, void *object)
{
	void *at = (char *)object + f->offset;
	int64_t number = 0;
	int r;

	switch (f->kind) {
	case FIELD_POSITIVE:
		if (token == JSON_NULL) {
			*(uint64_t *)at = 0;
			return 0;
		}
		return doc_u64(doc, token, at);
	case FIELD_U64:
		return doc_u64(doc, token, at);
	case FIELD_TIME:
		if (token == JSON_NULL) {
			*(int64_t *)at = LATENCY_UNKNOWN_NS;
			return 0;
		}
		return to_i64(doc, token, at);
	case FIELD_UINT:
		r = doc_int(doc, token, 0, CPUSET_MAX - 1, &number);
		if (r == 0)
			*(unsigned *)at = (unsigned)number;
		return r;
	case FIELD_INT:
		if (token == JSON_NULL) {
			*(int *)at = -1;
			return 0;
		}
		r = doc_int(doc, token, INT32_MIN, INT32_MAX, &number);
		if (r == 0)
			*(int *)at = (int)number;
		return r;
	case FIELD_BOOL:
		if (token != JSON_TRUE && token != JSON_FALSE)
			return doc_fail(doc, "neither true nor false");
		*(bool *)at = token == JSON_TRUE;
		return 0;
	case FIELD_NAME:
		if (token == JSON_NULL) {
			*(uint32_t *)at = 0;
			return 0;
		}
		return doc_name(doc, token, at);
	}
	return 1;
}

int doc_tabled(struct doc *doc, const struct field_table *table, const char *key,
	       enum json_token token, void *object)
{
	for (unsigned i = 0; i < table->count; i++)
		if (strcmp(table->fields[i].key, key) == 0)
			return doc_field(doc, &table->fields[i], token, object);
	return 1;
}

/* --- nests --------------------------------------------------------------------------------- */

static int skip(struct doc *doc, enum json_token token)
{
	return json_skip(&doc->json, token) == JSON_BAD ? doc_broken(doc) : 0;
}

int doc_members(struct doc *doc, doc_member_fn member, void *object)
{
	enum json_token token;

	while ((token = json_next(&doc->json)) == JSON_KEY) {
		char key[DOC_KEY_BYTES];
		int r;

		if (!push_key(doc, str_text(&doc->json.text)))
			return doc_fail(doc, "nested too deep");
		memcpy(key, doc->way[doc->depth - 1].key, sizeof(key));
		token = json_next(&doc->json);
		if (token == JSON_BAD)
			return doc_broken(doc);
		r = member(doc, key, token, object);
		if (r == 1)
			r = skip(doc, token);
		if (r < 0)
			return r;
		doc->depth--;
	}
	return token == JSON_OBJECT_END ? 0 : doc_broken(doc);
}

int doc_object(struct doc *doc, enum json_token token, doc_member_fn member, void *object)
{
	if (token != JSON_OBJECT)
		return doc_fail(doc, "not an object");
	return doc_members(doc, member, object);
}

int doc_elements(struct doc *doc, enum json_token token, unsigned max, doc_element_fn element,
		 void *object)
{
	if (token != JSON_ARRAY)
		return doc_fail(doc, "not an array");
	if (!push_key(doc, ""))
		return doc_fail(doc, "nested too deep");
	doc->way[doc->depth - 1].index = 0;
	while ((token = json_next(&doc->json)) != JSON_ARRAY_END) {
		unsigned level = doc->depth;
		int r;

		if (token <= JSON_END)
			return doc_broken(doc);
		if (doc->way[level - 1].index == max)
			return doc_fail(doc, "too many elements");
		r = element(doc, token, object);
		if (r < 0)
			return r;
		doc->depth = level;
		doc->way[level - 1].index++;
	}
	doc->depth--;
	return 0;
}

/* --- histograms ---------------------------------------------------------------------------- */

static int read_pair(struct doc *doc, enum json_token token, void *object)
{
	struct doc_values *values = object;
	uint64_t low = 0, count = 0;
	unsigned bucket, before;
	int r;

	if (token != JSON_ARRAY)
		return doc_fail(doc, "not a pair [value, count]");
	r = doc_u64(doc, json_next(&doc->json), &low);
	if (r == 0)
		r = doc_u64(doc, json_next(&doc->json), &count);
	if (r < 0)
		return r;
	if (json_next(&doc->json) != JSON_ARRAY_END)
		return doc_fail(doc, "not a pair [value, count]");
	bucket = histogram_bucket_of(low);
	if (histogram_bucket_low(bucket) != low)
		return doc_fail(doc, "not the first value of a bucket");
	if ((int64_t)bucket <= values->last_bucket)
		return doc_fail(doc, "the buckets are out of order");
	values->last_bucket = bucket;
	before = values->h.bucket_count;
	if (doc->buckets + bucket >= BUCKETS_BUDGET + before)
		return doc_fail(doc, "the histograms need too much memory");
	r = histogram_add_n(&values->h, low, count);
	doc->buckets += values->h.bucket_count - before;
	return r == -EOVERFLOW ? doc_fail(doc, "the number is too large") : r;
}

static int read_sum(struct doc *doc, enum json_token token, struct doc_values *values)
{
	const char *at = str_text(&doc->json.text);
	unsigned __int128 sum = 0;

	if (token == JSON_NULL)
		return 0;
	if (token != JSON_NUMBER && token != JSON_STRING)
		return doc_fail(doc, "not a number");
	if (strlen(at) > 36 || *at == '\0')
		return doc_fail(doc, "the number is too large");
	for (; *at; at++) {
		if (*at < '0' || *at > '9')
			return doc_fail(doc, "not a whole number from 0 on");
		sum = sum * 10 + (unsigned)(*at - '0');
	}
	values->sum = sum;
	values->has_sum = true;
	return 0;
}

int doc_values(struct doc *doc, const char *key, enum json_token token, struct doc_values *values)
{
	uint64_t *into = strcmp(key, "min_ns") == 0   ? &values->min
			 : strcmp(key, "max_ns") == 0 ? &values->max
						      : NULL;
	int r;

	if (into) {
		if (token == JSON_NULL)
			return 0;
		r = doc_u64(doc, token, into);
		if (r == 0 && into == &values->min)
			values->has_min = true;
		else if (r == 0)
			values->has_max = true;
		return r;
	}
	if (strcmp(key, "sum_ns") == 0)
		return read_sum(doc, token, values);
	if (strcmp(key, "histogram") == 0) {
		values->has_buckets = true;
		return doc_elements(doc, token, UINT32_MAX, read_pair, values);
	}
	return 1;
}

int doc_values_finish(struct doc *doc, struct doc_values *values, struct histogram *into)
{
	struct histogram *h = &values->h;

	if (values->has_buckets && h->count > values->count)
		return doc_fail(doc, "the histogram holds more values than the count");
	if (values->has_min && values->has_max && values->min > values->max)
		return doc_fail(doc, "the minimum is above the maximum");
	if (values->count > 0 && values->has_max && h->count > 0 && values->max < h->max)
		return doc_fail(doc, "the maximum is below the last bucket");
	if (values->count > 0 && values->has_min && h->count > 0 &&
	    values->min > histogram_bucket_high(histogram_bucket_of(h->min)))
		return doc_fail(doc, "the minimum is above the first bucket");
	h->count = values->count;
	if (values->has_min)
		h->min = values->min;
	h->max = values->has_max ? values->max : MAX(h->max, h->min);
	if (values->has_sum)
		h->sum = values->sum;
	histogram_fini(into);
	*into = *h;
	*h = (struct histogram){0};
	return 0;
}

struct series_reading {
	struct latency_series *series;
	struct doc_values values;
};

static int series_member(struct doc *doc, const char *key, enum json_token token, void *object)
{
	struct series_reading *reading = object;
	int r;

	if (strcmp(key, "count") == 0)
		return doc_u64(doc, token, &reading->values.count);
	r = doc_tabled(doc, &series_fields, key, token, reading->series);
	return r == 1 ? doc_values(doc, key, token, &reading->values) : r;
}

int doc_series(struct doc *doc, enum json_token token, struct latency_series *series)
{
	struct series_reading reading = {.series = series, .values = {.last_bucket = -1}};
	struct doc_values *values = &reading.values;
	int r;

	if (token == JSON_NULL)
		return 0;
	r = doc_object(doc, token, series_member, &reading);
	if (r == 0 && series->above_last > values->count)
		r = doc_fail(doc, "above_last is more than the count");
	if (r == 0)
		r = doc_values_finish(doc, values, &series->values);
	if (r == 0 && values->count > 0) {
		series->distribution = values->has_buckets;
		series->has_max = values->has_max;
		series->unknown_min = !values->has_min;
		series->unknown_average = !values->has_sum;
	}
	histogram_fini(&values->h);
	return r;
}
