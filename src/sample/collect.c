/* A recording as a profile: threads collect, the results are merged, the locations are named. */
#include "sample/collect.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "base/util.h"
#include "sample/collect-internal.h"

#define COLLECTORS_MAX 8

struct collect {
	struct session *session;
	const struct collect_options *options;
	struct profile *profile;
	struct collector *collectors;
	unsigned count;
	size_t chunks_taken;
	pthread_mutex_t lock;
	bool scan; /* the first pass is to be made, too */
	struct err *err;
	bool *keep_event;
	uint64_t from, to; /* times of the samples wanted */
	uint32_t *columns; /* by event: its first value type, or HASH_NONE */
	struct unnamed_list unnamed;
};

/* The events that the glob chooses, once, by index. */
static int choose_events(struct collect *collect)
{
	const char *glob = collect->options->event;
	uint32_t count;
	const struct session_event *event = session_events(collect->session, &count);

	if (!glob)
		return 0;
	collect->keep_event = calloc(count, sizeof(bool));
	if (!collect->keep_event)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		collect->keep_event[i] = str_glob(glob, event[i].name);
	return 0;
}

static int take_chunk(struct collect *collect, struct chunk *ret)
{
	const struct collect_options *options = collect->options;
	size_t mine, total;
	int r;

	pthread_mutex_lock(&collect->lock);
	mine = collect->chunks_taken++;
	pthread_mutex_unlock(&collect->lock);
	r = frontier_take(collect->session, mine, ret, &total);
	/* Until the total is known, the first pass tells how far it is. */
	if (r == 1 && total > 0 && options->progress) {
		pthread_mutex_lock(&collect->lock);
		options->progress(options->progress_arg, "reading samples",
				  (double)mine / (double)total);
		pthread_mutex_unlock(&collect->lock);
	}
	return r;
}

/* The first pass, when it was not made yet, or one of as many runners as there are collectors: it
 * takes chunks until none is left. */
static int run(void *arg, size_t index)
{
	struct collect *collect = arg;
	struct collector *collector;
	struct chunk chunk;
	int r;

	if (collect->scan && index == 0)
		return session_scan(collect->session, collect->err);
	collector = &collect->collectors[index - collect->scan];
	/* Here, so that what it allocates lies apart from what other threads write. */
	r = collector_init(collector, collect->session, collect->options);
	collector->keep_event = collect->keep_event;
	collector->from = collect->from;
	collector->to = collect->to;
	while (r == 0 && (r = take_chunk(collect, &chunk)) == 1)
		r = collector_run(collector, &chunk);
	return r;
}

static int read_samples(struct collect *collect)
{
	unsigned count = MIN(parallel_cpus(), COLLECTORS_MAX);
	int r;

	collect->scan = !collect->session->scanned;
	collect->session->frontier->wanted = collect->scan;
	if (!collect->scan)
		count = (unsigned)MIN(count, MAX(collect->session->chunks.len, 1u));
	collect->collectors = aligned_alloc(CACHE_LINE_BYTES, count * sizeof(*collect->collectors));
	if (!collect->collectors)
		return -ENOMEM;
	memset(collect->collectors, 0, count * sizeof(*collect->collectors));
	collect->count = count;
	r = parallel_for(count + collect->scan, count + collect->scan, run, collect);
	session_begin_pass(collect->session);
	for (unsigned i = 0; i < collect->count && r == 0; i++)
		r = sample_reader_finish(&collect->collectors[i].reader);
	return r;
}

static bool is_time(const struct session_event *event)
{
	return event->type == 1 && event->config <= 1; /* cpu-clock, task-clock */
}

/* Gives every event that has samples its two value types. */
static int make_columns(struct collect *collect)
{
	uint32_t count, used = 0, columns = 0;
	const struct session_event *events = session_events(collect->session, &count);
	char name[128];
	int r = 0;

	collect->columns = calloc(MAX(count, 1u), sizeof(*collect->columns));
	if (!collect->columns)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		used += events[i].samples > 0;
	for (uint32_t i = 0; i < count && r == 0; i++) {
		bool chosen = used ? events[i].samples > 0 : i == 0;
		const char *unit = is_time(&events[i]) ? "nanoseconds" : "events";
		int same = -1;

		collect->columns[i] = HASH_NONE;
		if (!chosen || (collect->keep_event && !collect->keep_event[i]))
			continue;
		if (used <= 1) {
			snprintf(name, sizeof(name), "%s",
				 is_time(&events[i]) ? "cpu" : events[i].name);
			if (events[i].type != 2)
				name[strcspn(name, ":")] = '\0';
			r = profile_add_value_type(collect->profile, "samples", "count");
		} else {
			same = profile_find_value(collect->profile, events[i].name);
			snprintf(name, sizeof(name), "%s_samples", events[i].name);
			if (same < 0)
				r = profile_add_value_type(collect->profile, name, "count");
			snprintf(name, sizeof(name), "%s", events[i].name);
		}
		if (same > 0) { /* two attributes of one event: the cores of a hybrid machine */
			collect->columns[i] = (uint32_t)same - 1;
			continue;
		}
		if (r >= 0)
			r = profile_add_value_type(collect->profile, name, unit);
		collect->columns[i] = columns;
		columns += 2;
		r = MIN(r, 0);
	}
	return r;
}

/* Period, times and the value that views show first. */
static int make_header(struct collect *collect)
{
	struct profile *profile = collect->profile;
	const struct session *session = collect->session;
	const struct session_stats *stats = &session->stats;
	uint32_t count;
	const struct session_event *events = session_events(session, &count);

	for (uint32_t i = 0; i < count; i++) {
		const struct profile_value_type *type;

		if (collect->columns[i] == HASH_NONE)
			continue;
		type = &profile->value_types.data[collect->columns[i] + 1];
		profile->default_type = type->type;
		profile->period_type = *type;
		profile->period = (int64_t)MIN(events[i].period, (uint64_t)INT64_MAX);
		if (events[i].frequency_hz && is_time(&events[i]))
			profile->period = (int64_t)(NSEC_PER_SEC / events[i].frequency_hz);
		break;
	}
	if (stats->last_time_ns > stats->first_time_ns)
		profile->duration_ns = (int64_t)MIN(stats->last_time_ns - stats->first_time_ns,
						    (uint64_t)INT64_MAX);
	if (session->clock_wall_ns && stats->first_time_ns)
		profile->time_ns = (int64_t)(session->clock_wall_ns +
					     (stats->first_time_ns - session->clock_event_ns));
	return 0;
}

static int merge_locations(struct collect *collect, const struct collector *from, uint32_t *map)
{
	for (size_t i = 1; i < from->locations.len; i++) {
		const struct collect_location *location = &from->locations.data[i];
		struct profile_location entry = {.address = location->address};
		size_t before = collect->profile->locations.len;
		int r = collect_mapping(collect->session, collect->profile, location->dso,
					location->context, NULL, &entry.mapping);

		if (r == 0)
			r = profile_location(collect->profile, &entry, NULL, &map[i]);
		if (r == 0 && map[i] == before)
			r = vec_push(&collect->unnamed.all,
				     ((struct unnamed){map[i], location->dso, location->context,
						       location->address}));
		if (r < 0)
			return r;
	}
	return 0;
}

static int merge_stacks(struct collect *collect, const struct collector *from,
			const uint32_t *locations, uint32_t *map)
{
	int r = 0;

	for (size_t i = 1; i < from->stacks.len && r == 0; i++)
		r = profile_stack(collect->profile, map[from->stacks.data[i].parent],
				  locations[from->stacks.data[i].location], &map[i]);
	return r;
}

/* The path, or ":ID" of one that no record names. */
static int cgroup_name(const struct session *session, uint64_t id, struct strtab *strings,
		       uint32_t *ret)
{
	const char *path = session_cgroup(session, id);
	char text[32];

	snprintf(text, sizeof(text), ":%llu", (unsigned long long)id);
	return strtab_intern_text(strings, path ? path : text, ret);
}

/* "pid:[4026531836]", as /proc/PID/ns shows it; inode 0: no label. */
static int namespace_label(struct strtab *strings, const char *key, const char *kind,
			   uint64_t inode, struct profile_label *set, uint32_t *count)
{
	struct profile_label label = {0};
	char text[48];
	int r;

	if (inode == 0)
		return 0;
	snprintf(text, sizeof(text), "%s:[%llu]", kind, (unsigned long long)inode);
	r = strtab_intern_text(strings, key, &label.key);
	if (r == 0)
		r = strtab_intern_text(strings, text, &label.text);
	if (r == 0)
		set[(*count)++] = label;
	return r;
}

static int merge_labels(struct collect *collect, const struct collector *from, uint32_t *map)
{
	struct strtab *strings = &collect->profile->strings;
	uint32_t comm, pid, tid, cpu, cgroup;
	int r;

	if (strtab_intern_text(strings, "comm", &comm) < 0 ||
	    strtab_intern_text(strings, "pid", &pid) < 0 ||
	    strtab_intern_text(strings, "tid", &tid) < 0 ||
	    strtab_intern_text(strings, "cpu", &cpu) < 0 ||
	    strtab_intern_text(strings, "cgroup", &cgroup) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < from->labels.len; i++) {
		const struct collect_label *label = &from->labels.data[i];
		struct profile_label set[7] = {{.key = comm}, {.key = pid, .number = label->pid}};
		uint32_t count = 2;

		r = strtab_intern_text(strings, label->comm, &set[0].text);
		if (collect->options->tid)
			set[count++] = (struct profile_label){.key = tid, .number = label->tid};
		if (collect->options->cpu && label->cpu != UINT32_MAX)
			set[count++] = (struct profile_label){.key = cpu, .number = label->cpu};
		if (r == 0 && label->cgroup) {
			set[count].key = cgroup;
			r = cgroup_name(collect->session, label->cgroup, strings,
					&set[count++].text);
		}
		if (r == 0)
			r = namespace_label(strings, "pidns", "pid", label->pid_ns, set, &count);
		if (r == 0)
			r = namespace_label(strings, "cgroupns", "cgroup", label->cgroup_ns, set,
					    &count);
		if (r == 0)
			r = profile_label_set(collect->profile, set, count, &map[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

static int merge_cells(struct collect *collect, const struct collector *from,
		       const uint32_t *stacks, const uint32_t *labels)
{
	CLEANUP_FREE int64_t *values =
		calloc(MAX(collect->profile->value_types.len, 1u), sizeof(*values));
	int r = 0;

	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < from->cells.len && r == 0; i++) {
		const struct collect_cell *cell = &from->cells.data[i];
		uint32_t column = collect->columns[cell->event];

		if (column == HASH_NONE)
			continue;
		values[column] = cell->count;
		values[column + 1] = cell->period;
		r = profile_add(collect->profile, stacks[cell->stack], labels[cell->label], values);
		values[column] = values[column + 1] = 0;
	}
	return r;
}

static int merge_collector(struct collect *collect, const struct collector *from)
{
	CLEANUP_FREE uint32_t *locations = calloc(from->locations.len, sizeof(*locations));
	CLEANUP_FREE uint32_t *stacks = calloc(from->stacks.len, sizeof(*stacks));
	CLEANUP_FREE uint32_t *labels = calloc(MAX(from->labels.len, 1u), sizeof(*labels));
	int r;

	if (!locations || !stacks || !labels)
		return -ENOMEM;
	r = merge_locations(collect, from, locations);
	if (r == 0)
		r = merge_stacks(collect, from, locations, stacks);
	if (r == 0)
		r = merge_labels(collect, from, labels);
	return r < 0 ? r : merge_cells(collect, from, stacks, labels);
}

static int merge_all(struct collect *collect)
{
	int r = make_columns(collect);

	if (r == 0)
		r = make_header(collect);
	for (unsigned i = 0; i < collect->count && r == 0; i++) {
		r = merge_collector(collect, &collect->collectors[i]);
		/* Its names are in the profile now: give the memory back before the next grows it.
		 */
		collector_fini(&collect->collectors[i]);
		collect->collectors[i] = (struct collector){0};
	}
	return r;
}

static int collect_once(struct session *session, const struct collect_options *options,
			struct profile *profile, struct err *err)
{
	struct collect collect = {
		.session = session, .options = options, .profile = profile, .err = err};
	int r;

	pthread_mutex_init(&collect.lock, NULL);
	r = session_unwind_init(session, &options->symbols);
	if (r == 0)
		r = session_time_range(session, options->time, &collect.from, &collect.to, err);
	if (r == 0)
		r = choose_events(&collect);
	if (r == 0)
		r = read_samples(&collect);
	if (r == 0)
		r = merge_all(&collect);
	for (unsigned i = 0; i < collect.count; i++)
		collector_fini(&collect.collectors[i]);
	free(collect.collectors);
	if (r == 0 && !options->no_symbols)
		r = collect_names(session, options, profile, &collect.unnamed);
	vec_fini(&collect.unnamed.all);
	free(collect.keep_event);
	free(collect.columns);
	pthread_mutex_destroy(&collect.lock);
	return r;
}

int collect_profile(struct session *session, const struct collect_options *options,
		    struct profile *profile, struct err *err)
{
	int r = 0;

	/* What times are wanted may depend on all of them; namespaces have no timeline to follow.
	 */
	if (!session->scanned && (options->time || options->namespaces))
		r = session_scan(session, err);
	if (r == 0)
		r = collect_once(session, options, profile, err);
	if (r == -ESTALE && !session->scanned) {
		r = session_again(session, err);
		if (r == 0)
			r = collect_once(session, options, profile, err);
	}
	return r < 0 && session->scanned ? err_wrap(err, r, "collecting samples") : r;
}
