/*
 * The user's vendor files. Layouts understood, told apart by their keys:
 *
 *   intel/perfmon        {"Header": {...}, "Events": [{"EventCode", "UMask", "EventName", ...}]}
 *   perf's pmu-events    [{"EventCode", "UMask", "EventName", "Unit", "ConfigCode", ...}]
 *   Arm telemetry        {"product_configuration": {...}, "events": {"NAME": {"code", ...}}}
 *   ARM-software/data    {"events": [{"code", "name", "description"}]}
 *
 * All values may be texts or numbers. Which files belong to the CPU says mapfile.csv where there is
 * one (both layouts of it), else the part number inside an Arm file; other files all count.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json-read.h"
#include "base/util.h"
#include "events/vendor-internal.h"

#define FIELD_BYTES  1024
#define EVENTS_LIMIT 200000

enum field {
	F_NAME,
	F_CODE,
	F_UMASK,
	F_UMASK_EXT,
	F_CMASK,
	F_INVERT,
	F_EDGE,
	F_ANY,
	F_MSR_INDEX,
	F_MSR_VALUE,
	F_CONFIG,
	F_UNIT,
	F_COUNTER,
	F_BRIEF,
	F_DESCRIPTION,
	F_TITLE,
	F_DEPRECATED,
	F_COUNT,
};

static const struct {
	const char *key;
	enum field field;
} keys[] = {
	{"EventName", F_NAME},
	{"name", F_NAME},
	{"EventCode", F_CODE},
	{"code", F_CODE},
	{"UMask", F_UMASK},
	{"UMaskExt", F_UMASK_EXT},
	{"CounterMask", F_CMASK},
	{"Invert", F_INVERT},
	{"EdgeDetect", F_EDGE},
	{"AnyThread", F_ANY},
	{"MSRIndex", F_MSR_INDEX},
	{"MSRValue", F_MSR_VALUE},
	{"ConfigCode", F_CONFIG},
	{"Unit", F_UNIT},
	{"Counter", F_COUNTER},
	{"BriefDescription", F_BRIEF},
	{"description", F_DESCRIPTION},
	{"title", F_TITLE},
	{"Deprecated", F_DEPRECATED},
};

struct fields {
	char text[F_COUNT][FIELD_BYTES]; /* "" absent; long descriptions are cut */
};

struct document {
	struct vendor_files *files;
	const struct host_cpu_model *model; /* NULL: any */
	const char *table, *pmu;
	struct json_reader reader;
	struct fields fields;
	bool other_cpu; /* the file names a CPU that this is not */
};

/* --- names ----------------------------------------------------------------------------------- */

/* Capitals, '.' for ':': the spelling that both notations share. */
static void canonical(const char *name, char *buf, size_t size)
{
	size_t i;

	for (i = 0; name[i] && i + 1 < size; i++)
		buf[i] = name[i] == ':' ? '.' : (char)toupper((unsigned char)name[i]);
	buf[i] = '\0';
}

static bool same_name(const void *owner, uint32_t id, const void *key)
{
	const struct vendor_files *files = owner;
	char name[FIELD_BYTES];

	canonical(files->events.data[id].name, name, sizeof(name));
	return strcmp(name, key) == 0;
}

const struct file_event *vendor_files_find(const struct vendor_files *files, const char *name)
{
	char key[FIELD_BYTES];
	uint32_t id;

	canonical(name, key, sizeof(key));
	id = hash_index_find(&files->index, hash_bytes(key, strlen(key)), same_name, files, key);
	return id == HASH_NONE ? NULL : &files->events.data[id];
}

void vendor_files_fini(struct vendor_files *files)
{
	vec_fini(&files->events);
	hash_index_fini(&files->index);
	arena_fini(&files->arena);
	str_fini(&files->problems);
}

/* --- one event ------------------------------------------------------------------------------- */

/* The first number of "0xB7,0xBB"; false when there is none. */
static bool number(const char *text, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 0);
	return end != text && errno == 0 && text[0] != '-';
}

static void add_number(struct str *terms, const char *term, const char *text)
{
	uint64_t value;

	if (number(text, &value) && value != 0)
		str_printf(terms, ",%s=0x%" PRIx64, term, value);
}

/* Registers beside the counter's own: which field of config1 they are. */
static void add_msr(struct str *terms, const struct fields *f)
{
	uint64_t index, value;

	if (!number(f->text[F_MSR_INDEX], &index) || !number(f->text[F_MSR_VALUE], &value) ||
	    index == 0)
		return;
	if (index == 0x1a6 || index == 0x1a7)
		str_printf(terms, ",offcore_rsp=0x%" PRIx64, value);
	else if (index == 0x3f6)
		str_printf(terms, ",ldlat=0x%" PRIx64, value);
	else if (index == 0x3f7)
		str_printf(terms, ",frontend=0x%" PRIx64, value);
}

static bool make_terms(const struct fields *f, struct str *terms)
{
	uint64_t code, umask = 0, ext = 0;

	if (number(f->text[F_CONFIG], &code)) {
		str_printf(terms, "config=0x%" PRIx64, code);
		return true;
	}
	if (!number(f->text[F_CODE], &code))
		return false;
	(void)number(f->text[F_UMASK], &umask);
	(void)number(f->text[F_UMASK_EXT], &ext);
	umask |= ext << 8;
	str_printf(terms, "event=0x%" PRIx64, code);
	if (umask)
		str_printf(terms, ",umask=0x%" PRIx64, umask);
	add_number(terms, "cmask", f->text[F_CMASK]);
	add_number(terms, "inv", f->text[F_INVERT]);
	add_number(terms, "edge", f->text[F_EDGE]);
	add_number(terms, "any", f->text[F_ANY]);
	add_msr(terms, f);
	return true;
}

/* The name in /sys of the unit of a vendor file: "iMC" is uncore_imc, "CBO" is uncore_cbox. */
static void unit_pmu(const char *unit, char *buf, size_t size)
{
	static const char *const same[] = {"cpu_core", "cpu_atom", "cpu"};
	static const struct {
		const char *unit, *pmu;
	} renamed[] = {{"CBO", "cbox"}, {"QPI LL", "qpi"}, {"SBO", "sbox"}, {"IMPH-U", "arb"}};
	size_t at;

	buf[0] = '\0';
	if (unit[0] == '\0' || strcasecmp(unit, "NA") == 0)
		return;
	for (size_t i = 0; i < ARRAY_LEN(same); i++)
		if (strcmp(unit, same[i]) == 0) {
			snprintf(buf, size, "%s", unit);
			return;
		}
	for (size_t i = 0; i < ARRAY_LEN(renamed); i++)
		if (strcasecmp(unit, renamed[i].unit) == 0)
			unit = renamed[i].pmu;
	at = (size_t)snprintf(buf, size, strncasecmp(unit, "uncore_", 7) == 0 ? "" : "uncore_");
	for (; *unit && at + 1 < size; unit++)
		buf[at++] = *unit == ' ' ? '_' : (char)tolower((unsigned char)*unit);
	buf[at] = '\0';
}

static const char *keep(struct vendor_files *files, const char *text)
{
	return text[0] ? arena_strndup(&files->arena, text, strlen(text)) : "";
}

static int fill_event(struct document *d, const char *pmu, const char *terms,
		      struct file_event *ret)
{
	struct vendor_files *files = d->files;
	const struct fields *f = &d->fields;

	*ret = (struct file_event){
		.name = keep(files, f->text[F_NAME]),
		.description = keep(files, f->text[F_BRIEF][0]   ? f->text[F_BRIEF]
					   : f->text[F_TITLE][0] ? f->text[F_TITLE]
								 : f->text[F_DESCRIPTION]),
		.counters = keep(files, f->text[F_COUNTER]),
		.pmu = keep(files, pmu),
		.terms = keep(files, terms),
		.table = d->table,
		.deprecated = f->text[F_DEPRECATED][0] == '1',
	};
	return !ret->name || !ret->description || !ret->counters || !ret->pmu || !ret->terms
		       ? -ENOMEM
		       : 0;
}

/* The first entry of a name is found; others of the same name hang behind it, one for each PMU. */
static int add_event(struct document *d)
{
	struct vendor_files *files = d->files;
	const struct fields *f = &d->fields;
	struct str terms = {0};
	struct file_event event;
	char key[FIELD_BYTES], pmu[64];
	uint32_t found, id = (uint32_t)files->events.len;
	uint64_t hash;
	int r;

	if (f->text[F_NAME][0] == '\0' || files->events.len >= EVENTS_LIMIT ||
	    !make_terms(f, &terms)) {
		str_fini(&terms);
		return 0;
	}
	unit_pmu(f->text[F_UNIT], pmu, sizeof(pmu));
	if (pmu[0] == '\0')
		snprintf(pmu, sizeof(pmu), "%s", d->pmu);
	canonical(f->text[F_NAME], key, sizeof(key));
	hash = hash_bytes(key, strlen(key));
	found = hash_index_find(&files->index, hash, same_name, files, key);
	for (uint32_t at = found; at != HASH_NONE; at = files->events.data[at].next - 1) {
		found = at;
		if (strcmp(files->events.data[at].pmu, pmu) == 0) {
			str_fini(&terms);
			return 0;
		}
		if (files->events.data[at].next == 0)
			break;
	}
	r = str_status(&terms) < 0 ? -ENOMEM : fill_event(d, pmu, str_text(&terms), &event);
	if (r == 0)
		r = vec_push(&files->events, event);
	if (r == 0 && found != HASH_NONE)
		files->events.data[found].next = id + 1;
	else if (r == 0)
		r = hash_index_add(&files->index, hash, id);
	str_fini(&terms);
	return r;
}

/* --- documents ------------------------------------------------------------------------------- */

static void keep_field(struct document *d, enum field field)
{
	size_t len = str_utf8_cut(str_text(&d->reader.text), FIELD_BYTES - 1);

	memcpy(d->fields.text[field], str_text(&d->reader.text), len);
	d->fields.text[field][len] = '\0';
}

/* The members of one event, behind its '{'. */
static int read_event(struct document *d, const char *name)
{
	enum json_token token;

	memset(&d->fields, 0, sizeof(d->fields));
	if (name)
		snprintf(d->fields.text[F_NAME], FIELD_BYTES, "%s", name);
	while ((token = json_next(&d->reader)) == JSON_KEY) {
		enum field field = F_COUNT;

		for (size_t i = 0; i < ARRAY_LEN(keys); i++)
			if (strcasecmp(keys[i].key, str_text(&d->reader.text)) == 0)
				field = keys[i].field;
		token = json_next(&d->reader);
		if ((token == JSON_STRING || token == JSON_NUMBER) && field < F_COUNT &&
		    !(name && field == F_NAME))
			keep_field(d, field);
		else if (json_skip(&d->reader, token) == JSON_BAD)
			return -EBADMSG;
	}
	return token == JSON_OBJECT_END ? add_event(d) : -EBADMSG;
}

static int read_event_array(struct document *d)
{
	enum json_token token;
	int r = 0;

	while (r == 0 && (token = json_next(&d->reader)) != JSON_ARRAY_END) {
		if (token == JSON_OBJECT)
			r = read_event(d, NULL);
		else
			r = json_skip(&d->reader, token) <= JSON_END ? -EBADMSG : 0;
	}
	return r;
}

static int read_event_map(struct document *d)
{
	enum json_token token;
	int r = 0;

	while (r == 0 && (token = json_next(&d->reader)) == JSON_KEY) {
		char name[FIELD_BYTES];

		snprintf(name, sizeof(name), "%s", str_text(&d->reader.text));
		token = json_next(&d->reader);
		if (token == JSON_OBJECT)
			r = read_event(d, name);
		else
			r = json_skip(&d->reader, token) <= JSON_END ? -EBADMSG : 0;
		token = JSON_KEY;
	}
	return r < 0 ? r : token == JSON_OBJECT_END ? 0 : -EBADMSG;
}

/* Arm: the part the file is about. */
static int read_product(struct document *d)
{
	uint64_t implementer = 0, part = 0;
	enum json_token token;

	while ((token = json_next(&d->reader)) == JSON_KEY) {
		bool is_implementer = strcmp(str_text(&d->reader.text), "implementer") == 0;
		bool is_part = strcmp(str_text(&d->reader.text), "part_num") == 0;

		token = json_next(&d->reader);
		if ((token == JSON_STRING || token == JSON_NUMBER) && (is_implementer || is_part))
			(void)number(str_text(&d->reader.text), is_part ? &part : &implementer);
		else if (json_skip(&d->reader, token) == JSON_BAD)
			return -EBADMSG;
	}
	if (token != JSON_OBJECT_END)
		return -EBADMSG;
	if (d->model && d->model->known &&
	    (d->model->vendor != CPU_VENDOR_ARM || implementer != (d->model->midr >> 24 & 0xff) ||
	     part != (d->model->midr >> 4 & 0xfff)))
		d->other_cpu = true;
	return 0;
}

static int read_top_object(struct document *d)
{
	enum json_token token;
	int r = 0;

	while (r == 0 && !d->other_cpu && (token = json_next(&d->reader)) == JSON_KEY) {
		bool events = strcasecmp(str_text(&d->reader.text), "events") == 0;
		bool product = strcmp(str_text(&d->reader.text), "product_configuration") == 0;

		token = json_next(&d->reader);
		if (events && token == JSON_ARRAY)
			r = read_event_array(d);
		else if (events && token == JSON_OBJECT)
			r = read_event_map(d);
		else if (product && token == JSON_OBJECT)
			r = read_product(d);
		else
			r = json_skip(&d->reader, token) <= JSON_END ? -EBADMSG : 0;
		token = JSON_KEY;
	}
	return r < 0 || d->other_cpu ? r : token == JSON_OBJECT_END ? 0 : -EBADMSG;
}

int vendor_files_parse(struct vendor_files *files, const char *text, size_t size, const char *table,
		       const char *pmu, const struct host_cpu_model *model, struct err *err)
{
	struct document *d = calloc(1, sizeof(*d));
	enum json_token token;
	int r;

	if (!d)
		return err_set(err, -ENOMEM, "out of memory");
	*d = (struct document){
		.files = files,
		.model = model,
		.table = keep(files, table),
		.pmu = keep(files, pmu),
		.reader = json_reader_make(text, size),
	};
	token = json_next(&d->reader);
	if (!d->table || !d->pmu)
		r = -ENOMEM;
	else if (token == JSON_ARRAY)
		r = read_event_array(d);
	else if (token == JSON_OBJECT)
		r = read_top_object(d);
	else
		r = -EBADMSG;
	if (r == -EBADMSG && token != JSON_BAD && !d->reader.problem)
		r = err_set(err, -EBADMSG, "%s: no list of events", table);
	else if (r == -EBADMSG)
		r = err_wrap(err, json_reader_why(&d->reader, err), "%s", table);
	else if (r < 0)
		(void)err_set(err, r, "%s: out of memory", table);
	json_reader_fini(&d->reader);
	free(d);
	return r;
}
