/*
 * What report, flame and diff have in common: an input opened as a profile together with what is
 * known about it, and the words for what was lost.
 */
#pragma once

#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "cmd/command.h"
#include "cmd/input.h"
#include "cmd/names.h"
#include "profile/profile.h"
#include "sample/session.h"

struct view_input_options {
	const char *path;  /* "-": standard input */
	const char *time;  /* "FROM,TO": a part of a recording; NULL: all */
	const char *event; /* one event of several, or a value type; NULL: the default one */
	uint64_t max_bytes;
	bool tid, cpu, cgroup, namespaces, no_demangle, no_inlines;
	struct names_options names;
};

/* The rows that every command with "struct view_input_options input" in its options has. */
#define OPT_VIEW_INPUT(type)                                                                      \
	OPT_TEXT(0, "time", "FROM,TO", type, input.time,                                          \
		 "Only samples of a recording between these times: seconds as perf script shows " \
		 "them, "                                                                         \
		 "+seconds from the first sample, or percent of the recording ('10%,50%'). An "   \
		 "empty side is open."),                                                          \
		OPT_SIZE(0, "max-size", "SIZE", type, input.max_bytes,                            \
			 "Limit for what has to be held in memory: compressed input and pipes. "  \
			 "Default: "                                                              \
			 "192M."),                                                                \
		OPT_FLAG(0, "no-demangle", type, input.no_demangle,                               \
			 "Show C++ and Rust names as they stand in the object."),                 \
		OPT_NAMES(type, input.names)

struct view_input {
	const char *path;
	struct profile profile;
	struct input_info info;
	struct session *session; /* of a recording, for its header; NULL */
	uint32_t value;          /* index of the value type to show */
};

/* Reads the input and prints remarks about it to stderr. 0, or a negative errno and words. */
int view_input_open(const struct command *self, const struct view_input_options *options,
		    struct view_input *ret, struct err *err);
void view_input_close(struct view_input *input);

/* Data is missing: cut, damaged or never finished. */
bool view_input_incomplete(const struct view_input *input);

/* The number of samples; false when the input does not tell. */
bool view_input_samples(const struct view_input *input, uint64_t *ret_samples);

/* "nanoseconds", "samples", "bytes": what the shown value is counted in. */
const char *view_input_unit(const struct view_input *input);

/* "19,982 samples of cpu-clock, 3 lost, 12 stacks cut": never silent about a loss. */
void view_input_summary(const struct view_input *input, struct str *out);

/* Keys "samples", "lost", "throttled", "truncated_stacks", "missing_bytes", "events" of the open
 * object. */
void view_input_json(const struct view_input *input, struct json *json);
