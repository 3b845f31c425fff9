/*
 * Opens anything that can be seen as a profile: a recording (perf.data), pprof, folded stacks, the
 * text of perf script, speedscope and Firefox profiles; plain, gzip or zstd. The content decides
 * what it is, never the name.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/folded.h"
#include "profile/perfscript.h"
#include "profile/profile.h"
#include "sample/collect.h"

enum input_format {
	INPUT_DETECT,
	INPUT_RECORDING,
	INPUT_PPROF,
	INPUT_FOLDED,
	INPUT_LEGACY, /* of gperftools, old Go, Java: profile/legacy.h */
	INPUT_SCRIPT, /* the text of perf script: profile/perfscript.h */
	INPUT_SPEEDSCOPE,
	INPUT_FIREFOX, /* processed or Gecko's: profile/firefox.h */
};

#define INPUT_MAX_BYTES (UINT64_C(192) << 20)

struct input_options {
	enum input_format format; /* INPUT_DETECT: look at the content */
	/*
	 * Limit for what has to be held in memory: decompressed files, pprof messages, and
	 * everything from a pipe. 0: INPUT_MAX_BYTES. Regular files of folded text and recordings
	 * have no limit.
	 */
	uint64_t max_bytes;
	struct collect_options collect; /* recordings; event and tid: text of perf script too */
};

struct input_info {
	enum input_format format;
	struct folded_info folded;     /* INPUT_FOLDED */
	struct perfscript_info script; /* INPUT_SCRIPT */
	struct session_stats session;  /* INPUT_RECORDING: what was lost or is missing */
};

/*
 * path "-" is standard input, which may be a pipe; a recording may be a folder. Initializes and
 * fills *ret; it and *ret_info (may be NULL) are untouched on failure. Errors begin with the path
 * ("standard input" for "-").
 */
int input_profile(const char *path, const struct input_options *options, struct profile *ret,
		  struct input_info *ret_info, struct err *err);

/* "recording", "pprof", "folded", "legacy", "perf-script", "speedscope", "firefox". */
const char *input_format_name(enum input_format format);

struct command;

/* The remarks that the command owes its user about what was read, as warnings on stderr. */
void input_warn(const struct command *self, const char *path, const struct input_info *info);
/* The same for a recording that is open already. */
void input_warn_recording(const struct command *self, const char *name,
			  const struct session_stats *stats);

/* True when the input ended early or was damaged: the result stands, but EXIT_INCOMPLETE is due. */
bool input_incomplete(const struct input_info *info);

/*
 * The part of input_profile() for recordings: path is a file or a folder; with size > 0 data are
 * the bytes (of what could be read only once). Errors name the path, or nothing when there are
 * data.
 */
int input_recording(const char *path, const void *data, size_t size,
		    const struct collect_options *options, struct profile *ret,
		    struct session_stats *ret_stats, struct err *err);
