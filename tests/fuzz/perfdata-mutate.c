/*
 * Changes recordings record by record: bodies are mutated, records get another type, are repeated,
 * moved and dropped, and the sizes and offsets of the file follow. One change in four is of any
 * kind anywhere; so are all changes of files in the other byte order or of the first version.
 */
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define GROWTH      64
#define RECORDS_MAX 4096
#define PIPE_HEADER 16
#define FILE_HEADER 104

/* Where the file header has its numbers. */
enum {
	HEADER_SIZE = 8,
	ATTRS_OFFSET = 24,
	ATTRS_SIZE = 32,
	DATA_OFFSET = 40,
	DATA_SIZE = 48,
	FEATURES = 72
};

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

struct recording {
	uint8_t *data;
	size_t size, max;
	bool pipe;
	size_t start, end; /* of the records */
	size_t records[RECORDS_MAX], count;
	uint64_t state; /* of the random numbers */
};

static uint64_t get(const struct recording *r, size_t at)
{
	uint64_t value;

	memcpy(&value, r->data + at, sizeof(value));
	return value;
}

static void add(struct recording *r, size_t at, size_t delta)
{
	uint64_t value = get(r, at) + delta;

	memcpy(r->data + at, &value, sizeof(value));
}

static size_t below(struct recording *r, size_t limit)
{
	r->state = r->state * 6364136223846793005u + 1442695040888963407u;
	return limit ? (r->state >> 33) % limit : 0;
}

static struct perf_event_header header_at(const struct recording *r, size_t at)
{
	struct perf_event_header header;

	memcpy(&header, r->data + at, sizeof(header));
	return header;
}

static bool open_recording(struct recording *r)
{
	if (r->size < PIPE_HEADER || memcmp(r->data, "PERFILE2", 8) != 0)
		return false;
	r->pipe = get(r, HEADER_SIZE) == PIPE_HEADER;
	r->start = PIPE_HEADER;
	r->end = r->size;
	if (!r->pipe) {
		if (r->size < FILE_HEADER || get(r, DATA_OFFSET) > r->size ||
		    get(r, DATA_SIZE) > r->size - get(r, DATA_OFFSET))
			return false;
		r->start = get(r, DATA_OFFSET);
		r->end = r->start + get(r, DATA_SIZE);
	}
	for (size_t at = r->start; r->count < RECORDS_MAX && r->end - at >= 8;) {
		struct perf_event_header header = header_at(r, at);

		if (header.size < sizeof(header) || header.size > r->end - at)
			break;
		r->records[r->count++] = at;
		at += header.size;
	}
	return r->count > 0;
}

static unsigned feature_count(const struct recording *r)
{
	unsigned count = 0;

	for (size_t i = 0; i < 4; i++)
		count += (unsigned)__builtin_popcountll(get(r, FEATURES + 8 * i));
	return count;
}

/* Replaces bytes among the records; what lies behind moves, and the file tells so. */
static bool splice(struct recording *r, size_t at, size_t remove, const uint8_t *bytes, size_t len)
{
	size_t delta = len - remove, table;

	if (len > remove && len - remove > r->max - r->size)
		return false;
	memmove(r->data + at + len, r->data + at + remove, r->size - at - remove);
	if (len)
		memcpy(r->data + at, bytes, len);
	r->size += delta;
	r->end += delta;
	if (r->pipe)
		return true;
	add(r, DATA_SIZE, delta);
	if (get(r, ATTRS_OFFSET) > at)
		add(r, ATTRS_OFFSET, delta);
	table = r->end;
	for (unsigned i = 0; i < feature_count(r) && r->size - table >= 16; i++, table += 16)
		if (get(r, table) > at)
			add(r, table, delta);
	return true;
}

static void mutate_body(struct recording *r, size_t at, size_t growth)
{
	struct perf_event_header header = header_at(r, at);
	size_t size = header.size - sizeof(header), now;
	uint8_t *copy = calloc(1, header.size + growth + 8);

	if (!copy || size + growth == 0) {
		free(copy);
		return;
	}
	memcpy(copy, r->data + at, header.size);
	now = LLVMFuzzerMutate(copy + sizeof(header), size, size + growth);
	if (growth == 0)
		now = size;
	now = (now + sizeof(header) + 7) & ~(size_t)7;
	if (now <= UINT16_MAX) {
		header.size = (uint16_t)now;
		memcpy(copy, &header, sizeof(header));
		(void)splice(r, at, size + sizeof(header), copy, now);
	}
	free(copy);
}

/* Types of the kernel, and those of perf. */
static void change_type(struct recording *r, size_t at)
{
	uint32_t type = below(r, 2) ? 64 + (uint32_t)below(r, 22) : 1 + (uint32_t)below(r, 22);

	memcpy(r->data + at, &type, sizeof(type));
}

static void repeat(struct recording *r, size_t from, size_t to)
{
	size_t size = header_at(r, from).size;
	uint8_t *copy = malloc(size);

	if (copy) {
		memcpy(copy, r->data + from, size);
		(void)splice(r, to, 0, copy, size);
	}
	free(copy);
}

/* Attributes and feature sections are changed where they are. */
static void mutate_outside(struct recording *r)
{
	size_t which = r->pipe ? 0 : below(r, feature_count(r) + 1),
	       at = which ? r->end + (which - 1) * 16 : ATTRS_OFFSET;
	uint64_t offset, size;

	if (r->pipe || at > r->size - 16)
		return;
	offset = get(r, at);
	size = get(r, at + 8);
	if (offset <= r->size && size <= r->size - offset && size > 0)
		LLVMFuzzerMutate(r->data + offset, size, size);
}

static void change(struct recording *r)
{
	size_t at = r->records[below(r, r->count)], other = r->records[below(r, r->count)];

	switch (below(r, 7)) {
	case 0:
	case 1:
		mutate_body(r, at, 0);
		break;
	case 2:
		mutate_body(r, at, GROWTH);
		break;
	case 3:
		change_type(r, at);
		break;
	case 4:
		repeat(r, at, other);
		break;
	case 5:
		(void)splice(r, at, header_at(r, at).size, NULL, 0);
		break;
	default:
		mutate_outside(r);
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	static struct recording r;

	r = (struct recording){.data = data, .size = size, .max = max_size, .state = seed};
	if (seed % 4 == 0 || size > max_size || !open_recording(&r))
		return LLVMFuzzerMutate(data, size, max_size);
	change(&r);
	return r.size;
}
