#include "cmd/input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#include "base/compress.h"
#include "base/file.h"
#include "base/util.h"
#include "profile/firefox.h"
#include "profile/legacy.h"
#include "profile/pprof.h"
#include "profile/speedscope.h"
#include "symbols/symbols.h"

#define FIFO_WAIT_MS 5000

/* The bytes of an input: mapped when it is a regular file, else read into memory. */
struct content {
	const char *path, *name;
	const uint8_t *data;
	size_t size;
	struct file_map map;
	char *owned;
	struct str plain; /* decompressed */
	bool folder;
};

static void content_fini(struct content *content)
{
	file_map_close(&content->map);
	free(content->owned);
	str_fini(&content->plain);
}

const char *input_format_name(enum input_format format)
{
	switch (format) {
	case INPUT_RECORDING:
		return "recording";
	case INPUT_PPROF:
		return "pprof";
	case INPUT_FOLDED:
		return "folded";
	case INPUT_LEGACY:
		return "legacy";
	case INPUT_SCRIPT:
		return "perf-script";
	case INPUT_SPEEDSCOPE:
		return "speedscope";
	case INPUT_FIREFOX:
		return "firefox";
	default:
		return "unknown";
	}
}

/* Everything that fd gives, at most max bytes. */
static int read_stream(int fd, size_t max, struct content *content, struct err *err)
{
	int r = fd_read_all(fd, max, &content->owned, &content->size);

	if (r == -EFBIG)
		return err_set(err, r,
			       "%s: more than %zu MB from a pipe; --max-size raises the limit",
			       content->name, max >> 20);
	if (r < 0)
		return err_set(err, r, "%s: %s", content->name, strerrordesc_np(-r));
	content->data = (const uint8_t *)content->owned;
	return 0;
}

static int content_from_fd(int fd, size_t max, struct content *content, struct err *err)
{
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return err_set(err, -errno, "%s: %s", content->name, strerrordesc_np(errno));
	content->folder = S_ISDIR(st.st_mode);
	if (content->folder)
		return 0;
	if (!S_ISREG(st.st_mode) || lseek(fd, 0, SEEK_CUR) > 0)
		return read_stream(fd, max, content, err);
	r = file_map_fd(fd, &content->map);
	if (r < 0)
		return err_set(err, r, "%s: %s", content->name, strerrordesc_np(-r));
	content->data = content->map.data;
	content->size = content->map.size;
	return 0;
}

static int content_open(const char *path, size_t max, struct content *content, struct err *err)
{
	CLEANUP_CLOSE int fd = -1;
	struct stat st;

	if (strcmp(path, "-") == 0)
		return content_from_fd(STDIN_FILENO, max, content, err);
	/* A named pipe without a writer must not hold the command forever. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode)) {
		struct pollfd wait = {.fd = fd, .events = POLLIN};

		if (poll(&wait, 1, FIFO_WAIT_MS) == 0)
			return err_set(
				err, -ENODATA,
				"%s: named pipe without a writer for %d s; start the writer first",
				path, FIFO_WAIT_MS / 1000);
	}
	if (fd >= 0)
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	if (fd < 0)
		return err_set(err, -errno, "%s: %s", path, strerrordesc_np(errno));
	return content_from_fd(fd, max, content, err);
}

static bool is_recording(const void *data, size_t size)
{
	return size >= 8 && (memcmp(data, "PERFILE2", 8) == 0 || memcmp(data, "2ELIFREP", 8) == 0 ||
			     memcmp(data, "PERFFILE", 8) == 0);
}

/* Takes the wrapping off, once. A recording, even a large or damaged one, is left to its own
 * reader. */
static int content_unpack(struct content *content, size_t max, struct err *err)
{
	struct err words = {0};
	int r;

	if (content->size >= 2 && memcmp(content->data, "\x1f\x8b", 2) == 0)
		r = gzip_inflate(content->data, content->size, max, &content->plain, &words);
	else if (content->size >= 4 && memcmp(content->data, "\x28\xb5\x2f\xfd", 4) == 0)
		r = zstd_decompress(content->data, content->size, max, &content->plain, &words);
	else
		return 0;
	if (r < 0 && is_recording(content->plain.data, content->plain.len))
		r = 0;
	if (r == -EFBIG)
		return err_set(
			err, r,
			"%s: more than %zu MB when decompressed; --max-size raises the limit",
			content->name, max >> 20);
	if (r < 0)
		return err_set(err, r, "%s: %s", content->name, err_text(&words, r));
	content->data = (const uint8_t *)content->plain.data;
	content->size = content->plain.len;
	return 0;
}

/* What well-known files that are no profile of ours are, for the message. */
static const char *foreign_format(const struct content *content, unsigned min_len)
{
	static const struct {
		const char *magic;
		unsigned len;
		const char *what;
	} known[] = {
		{"\x7f"
		 "ELF",
		 4, "an ELF object"},
		{"FLR\0", 4, "a Java Flight Recorder recording"},
		{"PeriodType:", 11, "the text of pprof -raw"},
		{"{", 1, "JSON"},
		{"<", 1, "XML or HTML"},
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (known[i].len >= min_len && content->size >= known[i].len &&
		    memcmp(content->data, known[i].magic, known[i].len) == 0)
			return known[i].what;
	return NULL;
}

static enum input_format detect(const struct content *content)
{
	if (content->folder || is_recording(content->data, content->size))
		return INPUT_RECORDING;
	if (legacy_detect(content->data, content->size))
		return INPUT_LEGACY;
	/* Stacks may begin with <closure> or {lambda}: only long signs count before a look. */
	if (foreign_format(content, 8))
		return INPUT_DETECT;
	if (speedscope_detect(content->data, content->size))
		return INPUT_SPEEDSCOPE;
	if (firefox_detect(content->data, content->size))
		return INPUT_FIREFOX;
	if (perfscript_detect(content->data, content->size))
		return INPUT_SCRIPT;
	if (folded_detect(content->data, content->size))
		return INPUT_FOLDED;
	if (pprof_detect(content->data, content->size))
		return INPUT_PPROF;
	return INPUT_DETECT;
}

static int unknown_format(const struct content *content, struct err *err)
{
	const char *foreign = foreign_format(content, 1);

	if (content->size == 0)
		return err_set(err, -ENODATA, "%s: is empty", content->name);
	return err_set(err, -EBADMSG,
		       "%s: %s%s; perf.data, pprof, gperftools, folded stacks, speedscope, Firefox "
		       "profiles and the text of perf script can be read",
		       content->name, foreign ? "this is " : "unknown format",
		       foreign ? foreign : "");
}

static int read_script(const struct content *content, const struct collect_options *collect,
		       struct profile *profile, struct perfscript_info *info, struct err *err)
{
	const struct perfscript_options options = {
		.demangle = collect->symbols.no_demangle ? NULL : demangle,
		.event = collect->event,
		.tid = collect->tid,
	};

	return perfscript_read(content->data, content->size, &options, profile, info, err);
}

static int read_content(const struct content *content, const struct input_options *options,
			size_t max, struct profile *profile, struct input_info *info,
			struct err *err)
{
	struct err words = {0};
	int r;

	info->format = options->format == INPUT_DETECT ? detect(content) : options->format;
	switch (info->format) {
	case INPUT_PPROF:
		r = pprof_read(content->data, content->size, max, profile, &words);
		break;
	case INPUT_FOLDED:
		r = folded_read(content->data, content->size, profile, &info->folded, &words);
		break;
	case INPUT_LEGACY:
		r = legacy_read(content->data, content->size, profile, &words);
		break;
	case INPUT_SCRIPT:
		r = read_script(content, &options->collect, profile, &info->script, &words);
		break;
	case INPUT_SPEEDSCOPE:
		r = speedscope_read(content->data, content->size, profile, &words);
		break;
	case INPUT_FIREFOX:
		r = firefox_read(content->data, content->size, options->collect.tid, profile,
				 &words);
		break;
	case INPUT_RECORDING:
		r = input_recording(content->path, content->owned,
				    content->owned ? content->size : 0, &options->collect, profile,
				    &info->session, &words);
		break;
	default:
		return unknown_format(content, err);
	}
	if (r < 0 && info->format == INPUT_RECORDING && !content->owned)
		return err_set(err, r, "%s", err_text(&words, r)); /* says the path itself */
	return r < 0 ? err_set(err, r, "%s: %s", content->name, err_text(&words, r)) : 0;
}

int input_profile(const char *path, const struct input_options *options, struct profile *ret,
		  struct input_info *ret_info, struct err *err)
{
	size_t max = options->max_bytes ? (size_t)options->max_bytes : (size_t)INPUT_MAX_BYTES;
	struct content content = {.path = path,
				  .name = strcmp(path, "-") == 0 ? "standard input" : path};
	struct input_info info = {0};
	int r = content_open(path, max, &content, err);

	if (r == 0)
		r = content_unpack(&content, max, err);
	if (r == 0)
		r = read_content(&content, options, max, ret, &info, err);
	content_fini(&content);
	if (r == 0 && ret_info)
		*ret_info = info;
	return r;
}
