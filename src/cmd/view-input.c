#include "cmd/view-input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/util.h"
#include "cmd/progress.h"
#include "cmd/view-header.h"
#include "view/text.h"

/* A plain recording is opened here, so that its header can be shown; everything else is
 * input_profile's. */
static bool is_recording(const char *path)
{
	CLEANUP_CLOSE int fd = -1;
	struct stat st;
	char magic[8];

	/* A pipe must not be opened twice: its writer would find no reader in between. */
	if (strcmp(path, "-") == 0 || stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd >= 0 && fd_pread_all(fd, magic, sizeof(magic), 0) == 0 &&
	       (memcmp(magic, "PERFILE2", 8) == 0 || memcmp(magic, "2ELIFREP", 8) == 0 ||
		memcmp(magic, "PERFFILE", 8) == 0);
}

struct watch {
	const struct command *self;
	struct progress progress;
};

static void warn_object(void *arg, const char *text)
{
	struct watch *watch = arg;

	progress_clear(&watch->progress);
	cmd_warnf(watch->self, "%s", text);
}

static int unknown_event(const struct session *session, const char *event, struct err *err)
{
	uint32_t count;
	const struct session_event *events = session_events(session, &count);
	struct str names = {0};
	int r;

	for (uint32_t i = 0; i < count; i++) {
		if (str_glob(event, events[i].name)) {
			str_fini(&names);
			return 0;
		}
		str_printf(&names, "%s%s", i ? ", " : "", events[i].name);
	}
	r = err_set(err, -ENOENT, "no event '%s' was recorded; there is: %s", event,
		    str_text(&names));
	str_fini(&names);
	return r;
}

static int open_recording(struct watch *watch, const struct view_input_options *options,
			  struct view_input *input, struct err *err)
{
	struct names_places places;
	struct collect_options collect = {
		.tid = options->tid,
		.cpu = options->cpu,
		.cgroup = options->cgroup,
		.namespaces = options->namespaces,
		.event = options->event,
		.time = options->time,
		.no_inlines = options->no_inlines,
		.symbols = {.no_demangle = options->no_demangle},
		.warn = warn_object,
		.warn_arg = watch,
		.progress = progress_show,
		.progress_arg = &watch->progress,
	};
	int r = session_open_header(input->path, progress_show, &watch->progress, &input->session,
				    err);

	names_apply(watch->self, &options->names, &places, &collect.symbols);
	if (r < 0)
		return r;
	input->info.format = INPUT_RECORDING;
	if (options->cgroup && !session_has_cgroups(input->session))
		return err_set(err, -ENOENT,
			       "%s: samples tell no cgroups; record with perf record --all-cgroups",
			       input->path);
	if (options->event)
		r = unknown_event(input->session, options->event, err);
	if (r == 0)
		r = profile_init(&input->profile);
	if (r < 0)
		return r;
	r = collect_profile(input->session, &collect, &input->profile, err);
	if (r == 0 && options->namespaces && !session_has_namespaces(input->session))
		r = err_set(err, -ENOENT,
			    "no record tells of namespaces; record with perf record --namespaces");
	input->info.session = *session_stats(input->session);
	if (r < 0)
		profile_fini(&input->profile);
	return r < 0 ? err_wrap(err, r, "%s", input->path) : 0;
}

/* Of a recording --event already chose; elsewhere it names a value type. */
static int choose_value(const struct view_input_options *options, struct view_input *input,
			struct err *err)
{
	const struct profile *profile = &input->profile;
	struct str names = {0};
	int r;

	input->value = profile_default_value(profile);
	if (!options->event || input->info.format == INPUT_RECORDING)
		return 0;
	r = profile_find_value(profile, options->event);
	if (r >= 0) {
		input->value = (uint32_t)r;
		return 0;
	}
	for (size_t i = 0; i < profile->value_types.len; i++)
		str_printf(&names, "%s%s", i ? ", " : "",
			   strtab_text(&profile->strings, profile->value_types.data[i].type));
	r = err_set(err, -ENOENT, "%s: no value type '%s'; there is: %s", input->path,
		    options->event, str_text(&names));
	str_fini(&names);
	return r;
}

int view_input_open(const struct command *self, const struct view_input_options *options,
		    struct view_input *ret, struct err *err)
{
	struct view_input input = {.path = options->path};
	struct names_places places;
	struct input_options plain = {
		.max_bytes = options->max_bytes,
		.collect = {.tid = options->tid,
			    .cpu = options->cpu,
			    .cgroup = options->cgroup,
			    .namespaces = options->namespaces,
			    .time = options->time,
			    .no_inlines = options->no_inlines,
			    .symbols = {.no_demangle = options->no_demangle},
			    .progress = progress_show},
	};
	struct watch watch = {.self = self};
	int r;

	progress_begin(&watch.progress, input.path);
	plain.collect.progress_arg = &watch.progress;

	if (!is_recording(input.path))
		names_apply(self, &options->names, &places, &plain.collect.symbols);
	if (is_recording(input.path)) {
		r = open_recording(&watch, options, &input, err);
		progress_clear(&watch.progress);
		if (r < 0) {
			session_close(input.session);
			return r;
		}
	} else {
		r = input_profile(input.path, &plain, &input.profile, &input.info, err);
		progress_clear(&watch.progress);
		if (r < 0)
			return r;
	}
	if (options->time && input.info.format != INPUT_RECORDING) {
		view_input_close(&input);
		return err_set(err, -EINVAL, "%s: --time: only recordings tell times",
			       options->path);
	}
	r = choose_value(options, &input, err);
	if (r < 0) {
		view_input_close(&input);
		return r;
	}
	/* On stderr: the report on stdout may be read by a program. */
	if (input.session)
		input_warn_recording(self, input.path, &input.info.session);
	else
		input_warn(self, input.path, &input.info);
	*ret = input;
	return 0;
}

void view_input_close(struct view_input *input)
{
	profile_fini(&input->profile);
	session_close(input->session);
	*input = (struct view_input){0};
}

bool view_input_incomplete(const struct view_input *input)
{
	const struct session_stats *stats = &input->info.session;

	return stats->missing_bytes > 0 || stats->unfinished || stats->problem[0] != '\0';
}

bool view_input_samples(const struct view_input *input, uint64_t *ret_samples)
{
	int value;
	int64_t total;

	if (input->info.format == INPUT_RECORDING) {
		*ret_samples = input->info.session.samples;
		return true;
	}
	value = profile_find_value(&input->profile, "samples");
	if (value < 0 || profile_total(&input->profile, (uint32_t)value, &total) < 0 || total < 0)
		return false;
	*ret_samples = (uint64_t)total;
	return true;
}

static const char *value_text(const struct view_input *input, bool unit)
{
	const struct profile *profile = &input->profile;
	const struct profile_value_type *type;

	if (input->value >= profile->value_types.len)
		return "";
	type = &profile->value_types.data[input->value];
	return strtab_text(&profile->strings, unit ? type->unit : type->type);
}

const char *view_input_unit(const struct view_input *input)
{
	const char *unit = value_text(input, true), *type = value_text(input, false);

	if (strcmp(unit, "count") == 0 || unit[0] == '\0')
		return type[0] ? type : "samples";
	return unit;
}

/* ", 2 stacks cut"; the thing in the singular. */
static void put_loss(struct str *out, uint64_t count, const char *thing, const char *what)
{
	if (count == 0)
		return;
	str_puts(out, ", ");
	text_group(out, count);
	str_printf(out, " %s%s %s", thing, count == 1 ? "" : "s", what);
}

void view_input_summary(const struct view_input *input, struct str *out)
{
	const struct session_stats *stats = &input->info.session;
	uint64_t samples;
	uint32_t count = 0;
	const struct session_event *events =
		input->session ? session_events(input->session, &count) : NULL;

	if (view_input_samples(input, &samples)) {
		text_group(out, samples);
		str_puts(out, samples == 1 ? " sample" : " samples");
	} else {
		str_printf(out, "%s of %s", view_input_unit(input), value_text(input, false));
	}
	for (uint32_t i = 0; i < count; i++) {
		str_puts(out, i ? ", " : " of ");
		text_clean(out, events[i].name, strlen(events[i].name));
	}
	put_loss(out, stats->lost_samples, "sample", "lost");
	put_loss(out, stats->lost_records, "record", "lost");
	put_loss(out, stats->throttled, "time", "throttled");
	put_loss(out, stats->truncated_stacks, "stack", "cut");
	put_loss(out, stats->missing_bytes, "byte", "of the file missing");
	put_loss(out, input->info.folded.bad_lines, "line", "left out");
}

static void event_json(const struct session_event *event, struct json *json)
{
	json_object(json, NULL);
	json_text(json, "name", event->name);
	json_u64_if(json, "period", event->period > 0, event->period);
	json_u64_if(json, "frequency_hz", event->frequency_hz > 0, event->frequency_hz);
	json_u64(json, "precise", event->precise);
	json_u64(json, "samples", event->samples);
	json_end_object(json);
}

void view_input_json(const struct view_input *input, struct json *json)
{
	const struct session_stats *stats = &input->info.session;
	bool recording = input->info.format == INPUT_RECORDING, known;
	const struct profile *profile = &input->profile;
	uint64_t samples = 0;
	uint32_t count = 0;
	const struct session_event *events =
		input->session ? session_events(input->session, &count) : NULL;

	known = view_input_samples(input, &samples);
	json_u64_if(json, "samples", known, samples);
	json_u64_if(json, "lost", recording, stats->lost_samples + stats->lost_records);
	json_u64_if(json, "throttled", recording, stats->throttled);
	json_u64_if(json, "truncated_stacks", recording, stats->truncated_stacks);
	/* Of stacks that were copied; null when none was. */
	known = recording && stats->unwound_stacks > 0;
	json_u64_if(json, "unwound_stacks", known, stats->unwound_stacks);
	json_u64_if(json, "cut_stacks", known, stats->cut_stacks);
	json_u64_if(json, "lost_stacks", known, stats->lost_stacks);
	json_u64_if(json, "frame_pointer_stacks", known && stats->unwound_live,
		    stats->frame_pointer_stacks);
	json_u64_if(json, "missing_bytes", recording, stats->missing_bytes);
	json_u64_if(json, "trace_bytes_skipped", recording, stats->trace_bytes);
	json_u64_if(json, "unknown_records", recording, stats->unknown_records);
	json_bool(json, "incomplete", view_input_incomplete(input));
	json_text(json, "value", value_text(input, false));
	json_text(json, "unit", value_text(input, true));
	if (input->session)
		view_header_json(input->session, json);
	json_array(json, "events");
	for (uint32_t i = 0; i < count; i++)
		event_json(&events[i], json);
	for (size_t i = 0; i < profile->value_types.len && !input->session; i++) {
		json_object(json, NULL);
		json_text(json, "name",
			  strtab_text(&profile->strings, profile->value_types.data[i].type));
		json_end_object(json);
	}
	json_end_array(json);
}
