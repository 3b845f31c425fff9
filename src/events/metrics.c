/* The store of vendor metrics, and the documents they come from. */
#include "events/metrics.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/util.h"
#include "events/expr.h"
#include "events/metrics-internal.h"
#include "events/vendor-internal.h"

#define FILE_BYTES     (64u << 20)
#define PROBLEMS_BYTES 4096

const char *metrics_keep(struct metrics_document *d, size_t max)
{
	const char *text = str_text(&d->reader.text);

	return arena_strndup(&d->metrics->arena, text, str_utf8_cut(text, max));
}

const char *metrics_keep_str(struct metrics *metrics, const struct str *text)
{
	return str_status(text) < 0 ? NULL
				    : arena_strndup(&metrics->arena, str_text(text), text->len);
}

static void problem(struct metrics *metrics, const char *what, const char *why)
{
	if (metrics->problems.len < PROBLEMS_BYTES)
		str_printf(&metrics->problems, "%s%s: %s", metrics->problems.len ? "; " : "", what,
			   why);
}

/* --- finding --------------------------------------------------------------------------------- */

static uint64_t hash_name(const char *name)
{
	char lower[256];
	size_t len = 0;

	for (; name[len] && len < sizeof(lower); len++)
		lower[len] = (char)tolower((unsigned char)name[len]);
	return hash_bytes(lower, len);
}

static bool same_name(const void *owner, uint32_t id, const void *key)
{
	return strcasecmp(((const struct metrics *)owner)->list.data[id].name, key) == 0;
}

/* The entry of this PMU, else the last of the name; NULL: the name is new. */
static struct metric *find_exactly(const struct metrics *metrics, const char *name, const char *pmu,
				   bool *ret_same)
{
	uint32_t id = hash_index_find(&metrics->index, hash_name(name), same_name, metrics, name);
	struct metric *found = id == HASH_NONE ? NULL : &metrics->list.data[id];

	*ret_same = found && (pmu[0] == '\0' || strcmp(found->pmu, pmu) == 0);
	while (found && !*ret_same && found->next) {
		found = &metrics->list.data[found->next - 1];
		*ret_same = strcmp(found->pmu, pmu) == 0;
	}
	return found;
}

const struct metric *metrics_find(const struct metrics *metrics, const char *name, const char *pmu)
{
	bool same;
	const struct metric *found = find_exactly(metrics, name, pmu, &same);
	char longer[256];

	if (found && (same || found->pmu[0] == '\0'))
		return found;
	if ((size_t)snprintf(longer, sizeof(longer), "tma_%s", name) >= sizeof(longer))
		return NULL;
	found = find_exactly(metrics, longer, pmu, &same);
	return found && (same || found->pmu[0] == '\0') ? found : NULL;
}

int metrics_add(struct metrics_document *d, struct metric *metric)
{
	struct metrics *metrics = d->metrics;
	struct expr *expr = NULL;
	struct err err = {""};
	struct metric *found;
	bool same;
	int r;

	if (metrics->list.len >= METRICS_MAX)
		return 0;
	r = expr_parse(metric->formula, &expr, &err);
	metric->height = r < 0 ? 0 : expr_height(expr);
	expr_free(expr);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		problem(metrics, metric->name, err_text(&err, r));
		return 0;
	}
	found = find_exactly(metrics, metric->name, metric->pmu, &same);
	if (found && (same || strcmp(found->pmu, metric->pmu) == 0))
		return 0;
	if (found)
		found->next = (uint32_t)metrics->list.len + 1;
	r = vec_push(&metrics->list, *metric);
	if (r < 0 || found)
		return r;
	return hash_index_add(&metrics->index, hash_name(metric->name),
			      (uint32_t)metrics->list.len - 1);
}

void metrics_fini(struct metrics *metrics)
{
	vec_fini(&metrics->list);
	vec_fini(&metrics->next);
	vec_fini(&metrics->members);
	vec_fini(&metrics->codes);
	hash_index_fini(&metrics->index);
	arena_fini(&metrics->arena);
	str_fini(&metrics->problems);
}

/* --- documents ------------------------------------------------------------------------------- */

static int read_list(struct metrics_document *d)
{
	enum json_token token;
	int r = 0;

	while (r == 0 && (token = json_next(&d->reader)) != JSON_ARRAY_END) {
		if (token == JSON_OBJECT)
			r = metrics_read_entry(d);
		else
			r = json_skip(&d->reader, token) <= JSON_END ? -EBADMSG : 0;
	}
	return r;
}

/* perfmon: which version of the method. */
static int read_header(struct metrics_document *d)
{
	enum json_token token;

	while ((token = json_next(&d->reader)) == JSON_KEY) {
		bool version = strcmp(str_text(&d->reader.text), "TmaVersion") == 0;
		struct str text = {0};

		token = json_next(&d->reader);
		if (version && token == JSON_STRING && d->reader.text.len > 0) {
			str_printf(&text, "TMA %.40s", str_text(&d->reader.text));
			d->metrics->version = metrics_keep_str(d->metrics, &text);
			str_fini(&text);
			if (!d->metrics->version)
				return -ENOMEM;
		} else if (json_skip(&d->reader, token) == JSON_BAD) {
			return -EBADMSG;
		}
	}
	return token == JSON_OBJECT_END ? 0 : -EBADMSG;
}

static int read_object(struct metrics_document *d)
{
	enum json_token token = JSON_BAD;
	int r = 0;

	while (r >= 0 && !d->other_cpu && (token = json_next(&d->reader)) == JSON_KEY) {
		char key[64];
		bool list;

		snprintf(key, sizeof(key), "%s", str_text(&d->reader.text));
		r = metrics_read_arm(d, key);
		if (r != 0)
			continue;
		list = strcmp(key, "Metrics") == 0;
		token = json_next(&d->reader);
		if (list && token == JSON_ARRAY)
			r = read_list(d);
		else if (strcmp(key, "Header") == 0 && token == JSON_OBJECT)
			r = read_header(d);
		else
			r = json_skip(&d->reader, token) <= JSON_END ? -EBADMSG : 0;
	}
	if (r < 0 || d->other_cpu)
		return MIN(r, 0);
	return token == JSON_OBJECT_END ? 0 : -EBADMSG;
}

int metrics_parse(struct metrics *metrics, const char *text, size_t size, const char *file,
		  const struct host_cpu_model *model, struct err *err)
{
	struct metrics_document d = {.metrics = metrics,
				     .model = model,
				     .file = file,
				     .reader = json_reader_make(text, size),
				     .before = metrics->list.len};
	enum json_token token = json_next(&d.reader);
	int r = token == JSON_ARRAY    ? read_list(&d)
		: token == JSON_OBJECT ? read_object(&d)
				       : -EBADMSG;

	if (!metrics->version)
		metrics->version = "";
	if (!metrics->file || metrics->list.len > d.before)
		metrics->file = arena_strndup(&metrics->arena, file, strlen(file));
	if (!metrics->file)
		r = -ENOMEM;
	if (r == -EBADMSG && token != JSON_BAD && !d.reader.problem)
		r = err_set(err, -EBADMSG, "%s: no list of metrics", file);
	else if (r == -EBADMSG)
		r = err_wrap(err, json_reader_why(&d.reader, err), "%s", file);
	else if (r < 0)
		(void)err_set(err, r, "%s: out of memory", file);
	metrics->files += metrics->list.len > d.before;
	json_reader_fini(&d.reader);
	return r;
}

/* --- files ----------------------------------------------------------------------------------- */

static int take_file(void *ctx, const char *path, const char *pmu,
		     const struct host_cpu_model *model)
{
	struct metrics *metrics = ctx;
	const char *base = strrchr(path, '/');
	CLEANUP_FREE char *text = NULL;
	struct err err = {""};
	size_t size;
	int r = file_read(path, FILE_BYTES, &text, &size, &err);

	if (r == 0)
		r = metrics_parse(metrics, text, size, base ? base + 1 : path, model, &err);
	if (r < 0 && r != -ENOMEM)
		problem(metrics, base ? base + 1 : path, err_text(&err, r));
	return r == -ENOMEM ? r : 0;
}

int metrics_read(struct metrics *metrics, const char *path, const struct host_cpu_model *model,
		 const char *cpu, struct err *err)
{
	CLEANUP_FREE char *text = NULL;
	const char *base;
	struct stat st;
	size_t size;
	int r;

	if (stat(path, &st) < 0)
		return err_set(err, -errno, "%s: %s", path, strerrordesc_np(errno));
	base = strrchr(path, '/');
	if (S_ISDIR(st.st_mode)) {
		r = vendor_dir_each(path, VENDOR_DIR_METRICS, model, cpu, take_file, metrics, err);
	} else {
		r = file_read(path, FILE_BYTES, &text, &size, err);
		if (r == 0)
			r = metrics_parse(metrics, text, size, base ? base + 1 : path, NULL, err);
	}
	if (r < 0)
		return r;
	if (metrics->list.len == 0)
		return err_set(err, -ENOENT, "%s: no metrics%s%s%s%.300s", path, cpu ? " for " : "",
			       cpu ? cpu : "", metrics->problems.len ? "; " : "",
			       str_text(&metrics->problems));
	return 0;
}
