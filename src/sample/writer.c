#include "sample/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compress.h"
#include "base/file.h"
#include "base/util.h"
#include "base/vec.h"
#include "sample/writer-internal.h"

#define RECORD_FINISHED_ROUND 68
#define RECORD_COMPRESSED     81

/* Raw bytes packed into one COMPRESSED record: even incompressible data then fits its 16-bit size.
 */
#define COMPRESS_STEP 49152

#define SYNC_INTERVAL_NS NSEC_PER_SEC

static int write_header(struct writer *writer)
{
	return pwrite(writer->fd, &writer->header, sizeof(writer->header), 0) ==
			       sizeof(writer->header)
		       ? 0
		       : -errno;
}

/* header | ids of every event | attributes | records ... */
static int write_front(struct writer *writer)
{
	struct str front = {0};
	uint64_t offset = sizeof(writer->header);
	int r;

	str_append(&front, &writer->header, sizeof(writer->header));
	for (uint32_t i = 0; i < writer->event_count; i++)
		str_append(&front, writer->events[i].ids,
			   writer->events[i].id_count * sizeof(uint64_t));
	writer->header.attrs.offset = front.len;
	writer->header.attr_size = sizeof(struct perf_event_attr) + sizeof(struct perf_section);
	for (uint32_t i = 0; i < writer->event_count; i++) {
		struct perf_section ids = {offset, writer->events[i].id_count * sizeof(uint64_t)};

		str_append(&front, &writer->events[i].attr, sizeof(struct perf_event_attr));
		str_append(&front, &ids, sizeof(ids));
		offset += ids.size;
	}
	writer->header.attrs.size = front.len - writer->header.attrs.offset;
	writer->header.data.offset = front.len;
	writer->position = front.len;
	r = str_status(&front);
	if (r == 0) {
		memcpy(front.data, &writer->header, sizeof(writer->header));
		r = fd_write_all(writer->fd, front.data, front.len);
	}
	str_fini(&front);
	return r;
}

static int copy_events(struct writer *writer, const struct writer_event *events, uint32_t count)
{
	writer->events = calloc(count, sizeof(*writer->events));
	if (!writer->events)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		struct writer_event *copy = &writer->events[i];
		char *name = strdup(events[i].name);
		uint64_t *ids = malloc(MAX(1U, events[i].id_count) * sizeof(*ids));

		*copy = events[i];
		copy->name = name;
		copy->ids = ids;
		writer->event_count = i + 1;
		if (!name || !ids)
			return -ENOMEM;
		if (events[i].id_count > 0)
			memcpy(ids, events[i].ids, events[i].id_count * sizeof(*ids));
	}
	return 0;
}

static char *old_path(const char *path)
{
	char *old;

	return asprintf(&old, "%s.old", path) < 0 ? NULL : old;
}

/*
 * A file that is there is kept as path.old. Nothing but a regular file is moved: a folder or a
 * device (root could) stays where it is, and what a link points to is overwritten.
 */
static int keep_old(struct writer *writer, struct err *err)
{
	CLEANUP_FREE char *old = NULL;
	struct stat st;

	if (stat(writer->path, &st) == 0 && !S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "%s: not a regular file, as a recording needs to be",
			       writer->path);
	if (lstat(writer->path, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	old = old_path(writer->path);
	if (!old)
		return -ENOMEM;
	if (rename(writer->path, old) < 0)
		return err_set(err, -errno, "%s: cannot be kept as %s: %s", writer->path, old,
			       strerrordesc_np(errno));
	writer->kept_old = true;
	return 0;
}

static int open_file(struct writer *writer, struct err *err)
{
	int r = keep_old(writer, err);

	if (r < 0)
		return r;
	writer->fd = open(writer->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (writer->fd < 0 && errno == ENOENT)
		return err_set(err, -ENOENT, "%s: its folder does not exist; create it first",
			       writer->path);
	if (writer->fd < 0)
		return err_set(err, -errno, "%s: %s", writer->path, strerrordesc_np(errno));
	return 0;
}

int writer_open(const char *path, const struct writer_event *events, uint32_t event_count,
		int zstd_level, size_t ring_bytes, struct writer **ret, struct err *err)
{
	struct writer *writer = calloc(1, sizeof(*writer));
	int r;

	if (!writer)
		return -ENOMEM;
	writer->fd = -1;
	writer->zstd_level = zstd_level;
	writer->ring_bytes = ring_bytes;
	memcpy(&writer->header.magic, "PERFILE2", 8);
	writer->header.size = sizeof(writer->header);
	r = copy_events(writer, events, event_count);
	if (r == 0 && zstd_level > 0)
		r = zstd_writer_new(zstd_level, &writer->zstd);
	if (r == 0) {
		writer->path = strdup(path);
		r = writer->path ? open_file(writer, err) : -ENOMEM;
	}
	if (r == 0) {
		r = write_front(writer);
		if (r < 0)
			err_set(err, r, "%s: %s", path, strerrordesc_np(-r));
	}
	if (r < 0) {
		writer_close(writer);
		return r;
	}
	writer->synced_ns = clock_monotonic_ns();
	*ret = writer;
	return 0;
}

void writer_close(struct writer *writer)
{
	if (!writer)
		return;
	if (writer->fd >= 0)
		close(writer->fd);
	for (uint32_t i = 0; i < writer->event_count; i++) {
		free((void *)(uintptr_t)writer->events[i].name);
		free((void *)(uintptr_t)writer->events[i].ids);
	}
	free(writer->events);
	vec_for_each(&writer->features, feature)
		str_fini(&feature->bytes);
	vec_fini(&writer->features);
	zstd_writer_free(writer->zstd);
	str_fini(&writer->raw);
	str_fini(&writer->packed);
	free(writer->path);
	free(writer);
}

void writer_discard(struct writer *writer)
{
	char *old = writer->kept_old ? old_path(writer->path) : NULL;

	unlink(writer->path);
	if (old)
		rename(old, writer->path);
	free(old);
}

/* The end of the last whole record that lies between start and end in the file. */
static uint64_t whole_records(const struct writer *writer, uint64_t start, uint64_t end)
{
	struct perf_event_header header;

	while (end - start >= sizeof(header) &&
	       fd_pread_all(writer->fd, &header, sizeof(header), start) == 0 &&
	       header.size >= sizeof(header) && header.size <= end - start)
		start += header.size;
	return start;
}

/*
 * Writes pieces, which are whole records, at the end. On failure (a full disk) the file is cut back
 * to the last whole record that is in it.
 */
static int append(struct writer *writer, struct iovec *pieces, unsigned count)
{
	uint64_t start = writer->position;

	while (count > 0) {
		ssize_t n = pwritev(writer->fd, pieces, (int)MIN(count, 1024U),
				    (off_t)writer->position);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int r = -errno;

			writer->failed = r;
			writer->position = whole_records(writer, start, writer->position);
			if (ftruncate(writer->fd, (off_t)writer->position) < 0)
				return r;
			return r;
		}
		writer->position += (uint64_t)n;
		while (count > 0 && (size_t)n >= pieces->iov_len) {
			n -= (ssize_t)pieces->iov_len;
			pieces++;
			count--;
		}
		if (count > 0) {
			pieces->iov_base = (char *)pieces->iov_base + n;
			pieces->iov_len -= (size_t)n;
		}
	}
	return 0;
}

/*
 * How much goes into the next COMPRESSED record: whole records, so that a file that is cut ends
 * with one, unless one is too large for it; *within then says how much of that is left.
 */
static size_t compress_step(const char *data, size_t size, size_t *within)
{
	size_t step = MIN(*within, (size_t)COMPRESS_STEP);
	struct perf_event_header header;

	*within -= step;
	while (*within == 0 && size - step >= sizeof(header)) {
		memcpy(&header, data + step, sizeof(header));
		if (header.size < sizeof(header) || header.size > size - step)
			return MIN(size, (size_t)COMPRESS_STEP);
		if (step + header.size > COMPRESS_STEP && step > 0)
			break;
		*within = header.size - MIN((size_t)header.size, (size_t)COMPRESS_STEP);
		step += header.size - *within;
	}
	return step;
}

static int append_compressed(struct writer *writer)
{
	size_t done = 0, within = 0;
	int r = 0;

	str_clear(&writer->packed);
	while (r == 0 && done < writer->raw.len) {
		size_t step =
			compress_step(writer->raw.data + done, writer->raw.len - done, &within);
		size_t at = writer->packed.len;
		struct perf_event_header header = {.type = RECORD_COMPRESSED};

		str_append(&writer->packed, &header, sizeof(header));
		r = zstd_writer_compress(writer->zstd, writer->raw.data + done, step,
					 &writer->packed);
		header.size = (uint16_t)(writer->packed.len - at);
		if (r == 0)
			memcpy(writer->packed.data + at, &header, sizeof(header));
		done += step;
	}
	str_clear(&writer->raw);
	if (r == 0) {
		struct iovec piece = {writer->packed.data, writer->packed.len};

		r = append(writer, &piece, 1);
	}
	return r;
}

int writer_records(struct writer *writer, const struct iovec *pieces, unsigned count)
{
	struct iovec copy[64];
	unsigned used = 0;
	int r = writer->failed;

	for (unsigned i = 0; r == 0 && i < count; i++) {
		writer->raw_bytes += pieces[i].iov_len;
		if (writer->zstd) {
			str_append(&writer->raw, pieces[i].iov_base, pieces[i].iov_len);
			r = str_status(&writer->raw);
			continue;
		}
		copy[used++] = pieces[i];
		if (used == ARRAY_LEN(copy)) {
			r = append(writer, copy, used);
			used = 0;
		}
	}
	if (r < 0)
		return r;
	if (writer->zstd)
		return writer->raw.len > 0 ? append_compressed(writer) : 0;
	return append(writer, copy, used);
}

int writer_record(struct writer *writer, uint32_t type, uint16_t misc, const void *body,
		  size_t size)
{
	static const char zeros[8];
	size_t whole = ALIGN_UP(sizeof(struct perf_event_header) + size, (size_t)8);
	struct perf_event_header header = {.type = type, .misc = misc, .size = (uint16_t)whole};
	struct iovec pieces[] = {
		{&header, sizeof(header)},
		{(void *)(uintptr_t)body, size},
		{(void *)(uintptr_t)zeros, whole - sizeof(header) - size},
	};

	if (whole > UINT16_MAX)
		return -E2BIG;
	return writer_records(writer, pieces, ARRAY_LEN(pieces));
}

int writer_finished_round(struct writer *writer)
{
	struct perf_event_header header = {.type = RECORD_FINISHED_ROUND, .size = sizeof(header)};
	struct iovec piece = {&header, sizeof(header)};

	if (writer->failed < 0)
		return writer->failed;
	return append(writer, &piece, 1); /* never compressed: readers look for it between chunks */
}

int writer_sync(struct writer *writer)
{
	uint64_t now = clock_monotonic_ns();

	if (now - writer->synced_ns < SYNC_INTERVAL_NS)
		return 0;
	writer->synced_ns = now;
	writer->header.data.size = writer->position - writer->header.data.offset;
	return write_header(writer);
}

int writer_feature(struct writer *writer, enum perf_feature feature, const void *bytes, size_t size)
{
	struct writer_feature entry = {.feature = feature};

	str_append(&entry.bytes, bytes, size);
	if (str_status(&entry.bytes) < 0 || vec_push(&writer->features, entry) < 0) {
		str_fini(&entry.bytes);
		return -ENOMEM;
	}
	return 0;
}

static int compare_features(const void *a, const void *b)
{
	return (int)((const struct writer_feature *)a)->feature -
	       (int)((const struct writer_feature *)b)->feature;
}

int writer_finish(struct writer *writer)
{
	struct str table = {0}, bodies = {0};
	size_t count = writer->features.len;
	uint64_t start = writer->position;
	struct iovec pieces[2];
	int r;

	writer->header.data.size = start - writer->header.data.offset;
	if (count > 0)
		qsort(writer->features.data, count, sizeof(*writer->features.data),
		      compare_features);
	vec_for_each(&writer->features, feature) {
		struct perf_section section = {start + count * sizeof(section) + bodies.len,
					       feature->bytes.len};

		str_append(&table, &section, sizeof(section));
		str_append(&bodies, feature->bytes.data, feature->bytes.len);
		writer->header.features[feature->feature / 64] |= UINT64_C(1)
								  << feature->feature % 64;
	}
	r = str_status(&table) < 0 || str_status(&bodies) < 0 ? -ENOMEM : 0;
	pieces[0] = (struct iovec){table.data, table.len};
	pieces[1] = (struct iovec){bodies.data, bodies.len};
	if (r == 0)
		r = append(writer, pieces, 2);
	if (r < 0) {
		memset(writer->header.features, 0, sizeof(writer->header.features));
		writer->position = start;
		if (ftruncate(writer->fd, (off_t)start) < 0)
			r = -errno;
	}
	if (write_header(writer) < 0 && r == 0)
		r = -EIO;
	str_fini(&table);
	str_fini(&bodies);
	return r;
}

uint64_t writer_bytes(const struct writer *writer)
{
	return writer->position;
}

uint64_t writer_raw_bytes(const struct writer *writer)
{
	return writer->raw_bytes;
}
