#include "recording-builder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "harness/tap.h"
#include "sample/perfdata.h"

static char file_name[64];

static void put(struct builder *b, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		str_putc(&b->bytes, (char)(v >> 8 * (b->big ? bytes - 1 - i : i)));
}

void put8(struct builder *b, uint8_t v)
{
	put(b, v, 1);
}

void put16(struct builder *b, uint16_t v)
{
	put(b, v, 2);
}

void put32(struct builder *b, uint32_t v)
{
	put(b, v, 4);
}

void put64(struct builder *b, uint64_t v)
{
	put(b, v, 8);
}

void put_text(struct builder *b, const char *text, size_t size)
{
	for (size_t i = 0, len = strlen(text); i < size; i++)
		str_putc(&b->bytes, i < len ? text[i] : '\0');
}

void patch64(struct builder *b, size_t at, uint64_t v)
{
	struct builder field = {.big = b->big};

	put64(&field, v);
	memcpy(b->bytes.data + at, field.bytes.data, 8);
	str_fini(&field.bytes);
}

void record_begin(struct builder *b, uint32_t type, uint16_t misc)
{
	b->record = b->bytes.len;
	put32(b, type);
	put16(b, misc);
	put16(b, 0);
}

void record_end(struct builder *b)
{
	size_t size = b->bytes.len - b->record;

	b->bytes.data[b->record + 6] = (char)(b->big ? size >> 8 : size);
	b->bytes.data[b->record + 7] = (char)(b->big ? size : size >> 8);
}

void put_sample_id(struct builder *b, uint32_t pid, uint32_t tid, uint64_t time)
{
	if (b->sample_type & SAMPLE_TID) {
		put32(b, pid);
		put32(b, tid);
	}
	if (b->sample_type & SAMPLE_TIME)
		put64(b, time);
}

static void put_attr(struct builder *b, unsigned event)
{
	/* inherit: bit 1, freq: bit 10, sample_id_all: bit 18, comm_exec: bit 24; counted from the
	 * other end in each byte on big-endian machines. */
	uint8_t flags[8] = {(uint8_t)(b->inherit << 1), 1 << 2, 1 << 2, 1 << 0};
	uint8_t mirrored[8] = {(uint8_t)(b->inherit << 6), 1 << 5, 1 << 5, 1 << 7};

	put32(b, 1); /* software */
	put32(b, b->monotonic ? 96 : 64);
	put64(b, event ? event + 1 : 0); /* cpu-clock, page-faults, ... */
	put64(b, 99);
	put64(b, b->sample_type);
	put64(b, b->read_format);
	str_append(&b->bytes, b->big ? mirrored : flags, 8);
	for (int i = 0; i < 2; i++)
		put64(b, 0);
	if (!b->monotonic)
		return;
	b->bytes.data[b->bytes.len - 24 + 3] |= 1 << 1; /* use_clockid: bit 25 */
	for (int i = 0; i < 3; i++)
		put64(b, 0);
	put32(b, 0);
	put32(b, 1); /* CLOCK_MONOTONIC */
}

/* Of the attribute, beyond its first size. */
static size_t more(const struct builder *b)
{
	return b->monotonic ? 32 : 0;
}

void file_begin(struct builder *b, uint64_t sample_type)
{
	unsigned events = b->events ? b->events : 1;

	b->sample_type = sample_type;
	str_puts(&b->bytes, b->big ? "2ELIFREP" : "PERFILE2");
	put64(b, 104);
	put64(b, 64 + 16 + more(b));
	put64(b, 104 + 8 * events); /* attributes */
	put64(b, (80 + more(b)) * events);
	put64(b, 104 + (88 + more(b)) * events); /* data */
	put64(b, 0);
	for (int i = 0; i < 6; i++)
		put64(b, 0);
	for (unsigned i = 0; i < events; i++)
		put64(b, 7 + i);
	for (unsigned i = 0; i < events; i++) {
		put_attr(b, i);
		put64(b, 104 + 8 * i);
		put64(b, 8);
	}
	b->data = b->bytes.len;
}

void file_end(struct builder *b)
{
	patch64(b, 48, b->bytes.len - b->data);
}

size_t put_features(struct builder *b, const unsigned *features, size_t count,
		    void (*fill)(struct builder *b, unsigned feature))
{
	size_t table = b->bytes.len;

	for (size_t i = 0; i < 2 * count; i++)
		put64(b, 0);
	for (size_t i = 0; i < count; i++) {
		size_t at = b->bytes.len, byte = features[i] / 8;

		fill(b, features[i]);
		patch64(b, table + 16 * i, at);
		patch64(b, table + 16 * i + 8, b->bytes.len - at);
		b->bytes.data[72 + (b->big ? 7 - byte : byte)] |= (char)(1 << features[i] % 8);
	}
	return table + 16 * count;
}

void pipe_begin(struct builder *b, uint64_t sample_type)
{
	unsigned events = b->events ? b->events : 1;

	b->sample_type = sample_type;
	str_puts(&b->bytes, b->big ? "2ELIFREP" : "PERFILE2");
	put64(b, 16);
	for (unsigned i = 0; i < events; i++) {
		record_begin(b, REC_HEADER_ATTR, 0);
		put_attr(b, i);
		put64(b, 7 + i);
		record_end(b);
	}
}

void put_comm(struct builder *b, uint32_t pid, uint32_t tid, const char *comm, bool exec,
	      uint64_t time)
{
	record_begin(b, REC_COMM, exec ? REC_MISC_FLAG : 0);
	put32(b, pid);
	put32(b, tid);
	put_text(b, comm, 16);
	put_sample_id(b, pid, tid, time);
	record_end(b);
}

void put_fork(struct builder *b, uint32_t pid, uint32_t ppid, uint32_t tid, uint32_t ptid,
	      uint64_t time)
{
	record_begin(b, REC_FORK, 0);
	put32(b, pid);
	put32(b, ppid);
	put32(b, tid);
	put32(b, ptid);
	put64(b, time);
	put_sample_id(b, pid, tid, time);
	record_end(b);
}

void put_mmap(struct builder *b, uint16_t misc, uint32_t pid, uint64_t start, uint64_t len,
	      uint64_t pgoff, const char *path, uint64_t time)
{
	record_begin(b, REC_MMAP, misc);
	put32(b, pid);
	put32(b, pid);
	put64(b, start);
	put64(b, len);
	put64(b, pgoff);
	put_text(b, path, (strlen(path) + 8) & ~(size_t)7);
	put_sample_id(b, pid, pid, time);
	record_end(b);
}

void put_sample(struct builder *b, uint16_t misc, uint32_t pid, uint32_t tid, uint64_t time,
		uint64_t ip, const uint64_t *chain)
{
	size_t count = 0;

	record_begin(b, REC_SAMPLE, misc);
	put64(b, ip);
	put32(b, pid);
	put32(b, tid);
	if (b->sample_type & SAMPLE_TIME)
		put64(b, time);
	if (b->sample_type & SAMPLE_PERIOD)
		put64(b, 1000);
	if (b->sample_type & SAMPLE_CALLCHAIN) {
		while (chain && chain[count])
			count++;
		put64(b, count);
		for (size_t i = 0; i < count; i++)
			put64(b, chain[i]);
	}
	record_end(b);
}

const char *write_recording(const void *data, size_t size)
{
	int fd;

	snprintf(file_name, sizeof(file_name), "%s/recording", tap_dir());
	fd = open(file_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	EXPECT(fd >= 0 && fd_write_all(fd, data, size) == 0);
	if (fd >= 0)
		close(fd);
	return file_name;
}
