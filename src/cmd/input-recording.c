/* Recordings as input, and what the user must hear about an input of any kind. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/file.h"
#include "base/str.h"
#include "base/util.h"
#include "cmd/command.h"
#include "cmd/input.h"

static int collect(const char *path, const struct collect_options *options, struct profile *ret,
		   struct session_stats *ret_stats, struct err *err)
{
	struct session *session;
	struct profile profile;
	int r = session_open_header(path, options->progress, options->progress_arg, &session, err);

	if (r < 0)
		return r;
	r = profile_init(&profile);
	if (r == 0) {
		r = collect_profile(session, options, &profile, err);
		if (r < 0) {
			profile_fini(&profile);
			err_wrap(err, r, "%s", path);
		} else {
			*ret_stats = *session_stats(session);
			*ret = profile;
		}
	}
	session_close(session);
	return r;
}

int input_recording(const char *path, const void *data, size_t size,
		    const struct collect_options *options, struct profile *ret,
		    struct session_stats *ret_stats, struct err *err)
{
	CLEANUP_CLOSE int fd = -1;
	struct err words = {0};
	char name[40];
	int r;

	if (size == 0)
		return collect(path, options, ret, ret_stats, err);
	/* The reader goes through a recording twice; an unnamed file in memory lets it. */
	fd = memfd_create("recording", MFD_CLOEXEC);
	if (fd < 0)
		return err_set(err, -errno, "no room for a copy: %s", strerrordesc_np(errno));
	r = fd_write_all(fd, data, size);
	if (r < 0)
		return err_set(err, r, "no room for a copy: %s", strerrordesc_np(-r));
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	r = collect(name, options, ret, ret_stats, &words);
	if (r < 0) {
		const char *text = err_text(&words, r), *rest = text;

		if (str_prefix(text, name, &rest))
			rest += strspn(rest, ": ");
		return err_set(err, r, "%s", rest);
	}
	return 0;
}

static void warn_folded(const struct command *self, const char *name,
			const struct folded_info *info)
{
	if (info->bad_lines > 0)
		cmd_warnf(self, "%s: %llu of %llu lines left out; the first is line %llu: %s", name,
			  (unsigned long long)info->bad_lines, (unsigned long long)info->lines,
			  (unsigned long long)info->first_bad_line, info->first_bad_reason);
	if (info->fractions)
		cmd_warnf(self,
			  "%s: counts with fractions are rounded; the total is right to within 1",
			  name);
}

#define MISSING_MAX_BYTES (UINT64_C(1) << 50)

void input_warn_recording(const struct command *self, const char *name,
			  const struct session_stats *stats)
{
	/* A damaged length may promise more than any disk holds. */
	unsigned long long missing =
		stats->missing_bytes < MISSING_MAX_BYTES ? stats->missing_bytes : 0;

	if (stats->problem[0] != '\0' && missing)
		cmd_warnf(self, "%s: %s (%llu %s missing)", name, stats->problem, missing,
			  missing == 1 ? "byte" : "bytes");
	else if (stats->problem[0] != '\0')
		cmd_warnf(self, "%s: %s", name, stats->problem);
	else if (missing)
		cmd_warnf(self, "%s: cut off: %llu bytes are missing; the result is what is there",
			  name, missing);
	if (stats->lost_samples > 0 || stats->lost_records > 0)
		cmd_warnf(self,
			  "%s: lost while recording: %llu samples, %llu other records; record with "
			  "larger buffers or a lower frequency",
			  name, (unsigned long long)stats->lost_samples,
			  (unsigned long long)stats->lost_records);
	if (stats->trace_bytes > 0)
		cmd_warnf(self,
			  "%s: %llu bytes of processor trace are skipped: only samples are read; "
			  "'perf script' decodes the trace",
			  name, (unsigned long long)stats->trace_bytes);
	if (stats->unknown_records > 0)
		cmd_warnf(self,
			  "%s: %llu records of unknown kinds are skipped, the first of type %u; a "
			  "newer culprit may know them",
			  name, (unsigned long long)stats->unknown_records, stats->unknown_type);
	/* The report's header has the count; a warning is for what changes the picture. */
	if ((stats->cut_stacks + stats->lost_stacks) * 100 > stats->unwound_stacks)
		cmd_warnf(self,
			  "%s: of %llu unwound stacks %llu leave the copied bytes (copy more: "
			  "--call-graph dwarf,SIZE) and %llu end in code without unwind "
			  "information%s%s%s",
			  name, (unsigned long long)stats->unwound_stacks,
			  (unsigned long long)stats->cut_stacks,
			  (unsigned long long)stats->lost_stacks,
			  stats->lost_in[0] ? " (most in " : "", stats->lost_in,
			  stats->lost_in[0] ? ")" : "");
	else if (stats->truncated_stacks * 100 > stats->samples)
		cmd_warnf(self, "%s: %.1f %% of the stacks are cut at their root", name,
			  100.0 * (double)stats->truncated_stacks / (double)stats->samples);
}

void input_warn(const struct command *self, const char *path, const struct input_info *info)
{
	const char *name = strcmp(path, "-") == 0 ? "standard input" : path;

	if (info->format == INPUT_FOLDED)
		warn_folded(self, name, &info->folded);
	else if (info->format == INPUT_RECORDING)
		input_warn_recording(self, name, &info->session);
	else if (info->format == INPUT_SCRIPT && info->script.bad_lines > 0)
		cmd_warnf(self,
			  "%s: %llu of %llu lines are neither samples nor frames and are left out; "
			  "the first is line %llu",
			  name, (unsigned long long)info->script.bad_lines,
			  (unsigned long long)info->script.lines,
			  (unsigned long long)info->script.first_bad_line);
}

bool input_incomplete(const struct input_info *info)
{
	return info->format == INPUT_RECORDING &&
	       (info->session.problem[0] != '\0' || info->session.missing_bytes > 0);
}
