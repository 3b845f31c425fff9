/*
 * culprit stat --regions: the counts of the regions that a program marks with libculprit.
 *
 * The library in the program counts by itself, thread by thread; culprit says what and where to
 * write (CULPRIT_EVENTS, CULPRIT_REGIONS), counts nothing beside it, so that all counters are the
 * regions', and puts the files of all processes together. Events go to the library as numbers,
 * under the name #N, since their own names may hold any sign.
 */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "cmd/stat.h"
#include "count/regions.h"
#include "view/table.h"
#include "view/text.h"

#define LIBRARY_EVENTS 8

struct stat_regions {
	char folder[64];
	char *names[LIBRARY_EVENTS];
	unsigned name_count;
};

static int event_numbers(const struct count_event *event, unsigned number, struct str *out)
{
	const struct perf_event_attr *attr = &event->attr;

	str_printf(out, "%s#%u=%x/%llx/%llx/%llx", number ? "," : "", number, attr->type,
		   (unsigned long long)attr->config, (unsigned long long)attr->config1,
		   (unsigned long long)attr->config2);
	if (attr->exclude_kernel || attr->exclude_user)
		str_puts(out, attr->exclude_kernel ? ":u" : ":k");
	return str_status(out);
}

/* -e LIST, as numbers for the library; job->set is only used to read the list. */
static int choose_events(struct stat_job *job, struct stat_regions *regions, struct err *err)
{
	struct str text = {0};
	int r = 0;

	r = stat_add_event_texts(job, job->options.events.data, job->options.events.len, err);
	if (r == 0 && job->set.events.len > LIBRARY_EVENTS)
		r = err_set(err, -E2BIG, "--regions counts at most %d events", LIBRARY_EVENTS);
	for (unsigned i = 0; i < job->set.events.len && r == 0; i++) {
		r = event_numbers(&job->set.events.data[i], i, &text);
		regions->names[i] = strdup(job->set.events.data[i].name);
		regions->name_count = i + 1;
		if (!regions->names[i])
			r = -ENOMEM;
	}
	count_set_fini(&job->set);
	job->set = (struct count_set){0};
	if (r == 0 && text.len > 0 && setenv("CULPRIT_EVENTS", str_text(&text), 1) < 0)
		r = -errno;
	str_fini(&text);
	return r;
}

int stat_regions_begin(struct stat_job *job, struct err *err)
{
	const struct stat_options *o = &job->options;
	struct stat_regions *regions;
	char pattern[80];

	if (!job->argv)
		return err_set(err, -EINVAL, "--regions needs a command");
	if (o->repeat > 1 || o->exact || o->interval_ns)
		return err_set(err, -EINVAL, "--regions does not go with --repeat, --exact or -I");
	if (o->csv || o->separator)
		return err_set(err, -EINVAL, "--regions prints text or --json");
	regions = job->regions = calloc(1, sizeof(*regions));
	if (!regions)
		return err_set(err, -ENOMEM, "out of memory");
	snprintf(regions->folder, sizeof(regions->folder), "/tmp/culprit-regions-XXXXXX");
	if (!mkdtemp(regions->folder)) {
		regions->folder[0] = '\0';
		return err_set(err, -errno, "a folder in /tmp: %s", strerrordesc_np(errno));
	}
	snprintf(pattern, sizeof(pattern), "%s/%%p", regions->folder);
	if (setenv("CULPRIT_REGIONS", pattern, 1) < 0)
		return err_set(err, -errno, "environment: %s", strerrordesc_np(errno));
	return choose_events(job, regions, err);
}

static void remove_folder(const char *path)
{
	DIR *dir = opendir(path);

	if (dir) {
		for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
			if (entry->d_name[0] != '.')
				unlinkat(dirfd(dir), entry->d_name, 0);
		closedir(dir);
	}
	rmdir(path);
}

void stat_regions_end(struct stat_job *job)
{
	struct stat_regions *regions = job->regions;

	if (!regions)
		return;
	if (regions->folder[0])
		remove_folder(regions->folder);
	for (unsigned i = 0; i < regions->name_count; i++)
		free(regions->names[i]);
	free(regions);
	job->regions = NULL;
}

/* "#0" and "#0:u" become the name that was asked for. */
static void event_name(const struct stat_regions *regions, const char *name, struct str *out)
{
	char *rest;
	unsigned long number;

	str_clear(out);
	if (name[0] == '#') {
		number = strtoul(name + 1, &rest, 10);
		if (rest != name + 1 && number < regions->name_count) {
			str_printf(out, "%s%s", regions->names[number], rest);
			return;
		}
	}
	text_clean(out, name, strlen(name));
}

static int find_event(const struct stat_regions *regions, const struct regions *found,
		      const char *want)
{
	struct str name = {0};
	int at = -1;

	for (unsigned i = 1; i < found->event_count && at < 0; i++) {
		const char *rest;

		event_name(regions, strtab_text(&found->names, found->events[i].name), &name);
		if (found->events[i].state == REGIONS_COUNTED &&
		    str_prefix(str_text(&name), want, &rest) && (*rest == '\0' || *rest == ':'))
			at = (int)i;
	}
	str_fini(&name);
	return at;
}

static double ipc_of(const struct regions_row *row, int instructions, int cycles)
{
	if (instructions < 0 || cycles < 0 || row->total[cycles] == 0)
		return NAN;
	return (double)row->total[instructions] / (double)row->total[cycles];
}

static bool is_time(const char *name)
{
	return strncmp(name, "task-clock", 10) == 0 || strncmp(name, "cpu-clock", 9) == 0;
}

struct columns {
	struct table_column list[8 + 2 * REGIONS_VALUES_MAX];
	char titles[REGIONS_VALUES_MAX][48];
	unsigned count, events[REGIONS_VALUES_MAX], event_count;
};

static void make_columns(const struct stat_regions *regions, const struct regions *found, bool ipc,
			 struct columns *c)
{
	struct str name = {0};

	c->list[c->count++] = (struct table_column){
		.key = "region", .title = "region", .kind = CELL_TEXT, .max_width = 48};
	if (found->by_thread)
		c->list[c->count++] =
			(struct table_column){.key = "tid", .title = "thread", .kind = CELL_COUNT};
	else
		c->list[c->count++] = (struct table_column){
			.key = "threads", .title = "threads", .kind = CELL_COUNT};
	c->list[c->count++] =
		(struct table_column){.key = "calls", .title = "calls", .kind = CELL_COUNT};
	c->list[c->count++] =
		(struct table_column){.key = "wall", .title = "time", .kind = CELL_TIME_NS};
	c->list[c->count++] = (struct table_column){
		.key = "self", .title = "without inner", .kind = CELL_TIME_NS};
	for (unsigned i = 1; i < found->event_count; i++) {
		char *title = c->titles[c->event_count];

		if (found->events[i].state != REGIONS_COUNTED)
			continue;
		event_name(regions, strtab_text(&found->names, found->events[i].name), &name);
		snprintf(title, sizeof(c->titles[0]), "%s", str_text(&name));
		c->list[c->count++] =
			(struct table_column){.key = title,
					      .title = title,
					      .kind = is_time(title) ? CELL_TIME_NS : CELL_COUNT};
		c->events[c->event_count++] = i;
	}
	if (ipc)
		c->list[c->count++] = (struct table_column){
			.key = "ipc", .title = "per cycle", .kind = CELL_DOUBLE, .digits = 2};
	str_fini(&name);
}

static int print_table(const struct stat_job *job, const struct regions *found, struct str *out)
{
	int instructions = find_event(job->regions, found, "instructions");
	int cycles = find_event(job->regions, found, "cycles");
	bool ipc = instructions > 0 && cycles > 0;
	struct table_style style = {0};
	struct columns *c = calloc(1, sizeof(*c));
	struct table *table;
	int r;

	if (!c)
		return -ENOMEM;
	make_columns(job->regions, found, ipc, c);
	r = table_new(c->list, c->count, &table);
	if (r < 0)
		goto out;
	for (size_t i = 0; i < found->rows.len; i++) {
		const struct regions_row *row = &found->rows.data[i];

		table_text(table, strtab_text(&found->names, row->name));
		table_count(table, found->by_thread ? (uint64_t)row->tid : row->threads);
		table_count(table, row->calls);
		table_count(table, row->total[0]);
		table_count(table, row->self[0]);
		for (unsigned e = 0; e < c->event_count; e++)
			table_count(table, row->total[c->events[e]]);
		if (ipc)
			table_double(table, ipc_of(row, instructions, cycles));
	}
	table_sort(table, 3, true);
	r = table_status(table);
	if (r == 0)
		table_print_text(table, &style, out);
	table_free(table);
out:
	free(c);
	return r;
}

static void print_notes(const struct stat_job *job, const struct regions *found, struct str *out)
{
	struct str name = {0};
	bool direct = true;

	for (unsigned i = 1; i < found->event_count; i++) {
		const struct regions_event *event = &found->events[i];

		direct &= event->state != REGIONS_COUNTED || event->direct;
		if (event->state == REGIONS_COUNTED)
			continue;
		event_name(job->regions, strtab_text(&found->names, event->name), &name);
		str_printf(out, "%s: %s: ", str_text(&name),
			   event->state == REGIONS_NOT_SUPPORTED ? "not supported" : "not counted");
		text_clean(out, strtab_text(&found->names, event->reason),
			   strlen(strtab_text(&found->names, event->reason)));
		str_putc(out, '\n');
	}
	for (size_t i = 0; i < found->rows.len; i++) {
		const struct regions_row *row = &found->rows.data[i];

		if (row->unbalanced > 0) {
			const char *text = strtab_text(&found->names, row->name);

			str_puts(out, "region '");
			text_clean(out, text, strlen(text));
			str_printf(out, "' was begun and not ended %llu times\n",
				   (unsigned long long)row->unbalanced);
		}
	}
	if (found->stray_ends)
		str_printf(out, "%llu ends had no begin\n", (unsigned long long)found->stray_ends);
	if (found->lost)
		str_printf(out,
			   "%llu passages could not be measured (nested too deep, or no counter)\n",
			   (unsigned long long)found->lost);
	if (found->lost_threads)
		str_printf(out, "%llu threads could not open their counters\n",
			   (unsigned long long)found->lost_threads);
	str_printf(out, "An empty region costs %llu ns", (unsigned long long)found->pair_ns);
	if (found->pair_cycles)
		str_printf(out, ", %llu cycles", (unsigned long long)found->pair_cycles);
	str_printf(out, " (counters read %s)\n", direct ? "in user space" : "by system calls");
	str_fini(&name);
}

static void json_rows(const struct stat_job *job, const struct regions *found, struct json *json)
{
	struct str name = {0};

	for (size_t k = 0; k < found->rows.len; k++) {
		const struct regions_row *row = &found->rows.data[k];
		const struct strtab_entry *text = &found->names.entries.data[row->name];

		json_object(json, NULL);
		json_text_n(json, "name", text->text, text->len);
		if (found->by_thread)
			json_i64(json, "tid", row->tid);
		else
			json_u64(json, "threads", row->threads);
		json_u64(json, "calls", row->calls);
		json_u64(json, "unbalanced", row->unbalanced);
		json_u64(json, "wall_ns", row->total[0]);
		json_u64(json, "self_wall_ns", row->self[0]);
		json_array(json, "events");
		for (unsigned i = 1; i < found->event_count; i++) {
			bool counted;

			event_name(job->regions, strtab_text(&found->names, found->events[i].name),
				   &name);
			json_object(json, NULL);
			json_text(json, "name", str_text(&name));
			counted = found->events[i].state == REGIONS_COUNTED;
			json_u64_if(json, "value", counted, row->total[i]);
			json_u64_if(json, "self", counted, row->self[i]);
			json_end_object(json);
		}
		json_end_array(json);
		json_end_object(json);
	}
	str_fini(&name);
}

static void json_regions(const struct stat_job *job, const struct regions *found, struct json *json)
{
	static const char *const states[] = {"measured", "not_supported", "not_counted"};
	struct str name = {0};

	json_array(json, "regions");
	json_rows(job, found, json);
	json_end_array(json);
	json_array(json, "region_events");
	for (unsigned i = 1; i < found->event_count; i++) {
		const struct regions_event *event = &found->events[i];

		event_name(job->regions, strtab_text(&found->names, event->name), &name);
		json_object(json, NULL);
		json_text(json, "name", str_text(&name));
		json_text(json, "state", states[event->state]);
		json_bool(json, "user_space", event->direct);
		json_text(json, "reason",
			  event->reason ? strtab_text(&found->names, event->reason) : NULL);
		json_end_object(json);
	}
	json_end_array(json);
	json_u64(json, "region_processes", found->processes);
	json_u64(json, "region_lost", found->lost);
	json_u64(json, "region_stray_ends", found->stray_ends);
	json_u64(json, "region_cost_ns", found->pair_ns);
	json_u64_if(json, "region_cost_cycles", found->pair_cycles > 0, found->pair_cycles);
	str_fini(&name);
}

int stat_regions_show(struct stat_job *job, struct err *err)
{
	struct regions found;
	struct str out = {0};
	unsigned files = 0;
	int r = regions_init(&found, job->options.regions_by_thread);

	if (r == 0)
		r = regions_add_directory(&found, job->regions->folder, &files, err);
	if (r == 0 && files == 0)
		cmd_warnf(job->self,
			  "the command wrote no regions: it does not call libculprit, or did not "
			  "come to its exit (culprit_write() writes earlier)");
	if (r == 0 && job->options.format == STAT_JSON) {
		json_regions(job, &found, &job->json);
	} else if (r == 0 && files > 0) {
		r = print_table(job, &found, &out);
		str_putc(&out, '\n');
		print_notes(job, &found, &out);
		fprintf(job->out, "\n%s\n", str_text(&out));
	}
	str_fini(&out);
	regions_fini(&found);
	return r;
}
