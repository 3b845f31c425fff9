#include "symbols/name-cache-internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/strtab.h"
#include "base/util.h"
#include "base/vec.h"

#define CHECKED_FROM  offsetof(struct name_cache_header, version)
#define ADDRESSES_MAX (1u << 20)

struct pending {
	uint64_t address;
	uint32_t first, count;
};

struct text_frame {
	uint32_t function, raw_function, file; /* ids of strings */
	uint32_t line, column_inlined;
};

struct name_cache {
	char *dir, *path;
	struct build_id id;
	uint64_t base;
	char *data;              /* of the file as it was read */
	struct name_table table; /* header NULL: nothing was there */
	char *source;
	uint64_t source_size, source_mtime_ns;
	bool broken; /* memory ran out while adding */
	VEC(struct pending) pending;
	VEC(struct text_frame) frames;
	struct strtab strings;
};

/* Each frame is of one address: a small file cannot ask for many frames again and again. */
static bool frames_in_order(const struct name_table *table)
{
	uint32_t addresses = table->header->addresses;

	for (uint32_t i = 0; i < addresses; i++)
		if (table->first[i] > table->first[i + 1])
			return false;
	return table->first[addresses] <= table->header->frames;
}

bool name_table_parse(const void *data, size_t size, struct name_table *ret)
{
	const struct name_cache_header *h = data;
	struct name_table table;
	uint64_t need;

	if (size < sizeof(*h) || h->magic != NAME_CACHE_MAGIC || h->version != NAME_CACHE_VERSION)
		return false;
	need = sizeof(*h) + (uint64_t)h->addresses * sizeof(uint64_t) +
	       ((uint64_t)h->addresses + 1) * sizeof(uint32_t) +
	       (uint64_t)h->frames * sizeof(struct name_cache_frame) + h->texts;
	if (need != size || h->texts == 0 || h->source >= h->texts ||
	    h->build_id_size > BUILD_ID_MAX ||
	    hash_bytes((const char *)data + CHECKED_FROM, size - CHECKED_FROM) != h->checksum)
		return false;
	table.header = h;
	table.addresses = (const void *)(h + 1);
	table.first = (const void *)(table.addresses + h->addresses);
	table.frames = (const void *)(table.first + h->addresses + 1);
	table.texts = (const void *)(table.frames + h->frames);
	if (table.texts[h->texts - 1] != '\0' || !frames_in_order(&table))
		return false;
	*ret = table;
	return true;
}

/* Text 0 is the empty one and stands for unknown. */
static const char *table_text(const struct name_table *table, uint32_t offset)
{
	return offset && offset < table->header->texts ? table->texts + offset : NULL;
}

static struct inline_frame table_frame(const struct name_table *table, uint32_t index)
{
	const struct name_cache_frame *frame = &table->frames[index];

	return (struct inline_frame){
		.function = table_text(table, frame->function),
		.raw_function = table_text(table, frame->raw_function),
		.file = table_text(table, frame->file),
		.line = frame->line,
		.column = frame->column_inlined >> 1,
		.inlined = frame->column_inlined & 1,
	};
}

int name_table_find(const struct name_table *table, uint64_t address, struct inline_frame *frames,
		    size_t max)
{
	size_t at = partition_point(table->header->addresses, i, table->addresses[i] <= address);
	uint32_t first, end;

	if (at == 0 || table->addresses[at - 1] != address)
		return -ENOENT;
	first = table->first[at - 1];
	end = table->first[at];
	for (uint32_t i = first; i < end && max > 0; i++)
		/* When there are more than fit, the outermost keeps its place. */
		frames[MIN(i - first, max - 1)] = table_frame(table, i);
	return (int)MIN(end - first, max);
}

int name_cache_find(const struct name_cache *cache, uint64_t address, struct inline_frame *frames,
		    size_t max)
{
	return cache->table.header ? name_table_find(&cache->table, address, frames, max) : -ENOENT;
}

static bool source_stat(const char *path, uint64_t *ret_size, uint64_t *ret_mtime_ns)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return false;
	*ret_size = (uint64_t)st.st_size;
	*ret_mtime_ns = (uint64_t)st.st_mtim.tv_sec * NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec;
	return true;
}

/* The table in the file, when it is whole, of this object and of the debug file that is there. */
static bool read_table(const struct name_cache *cache, char **ret_data, struct name_table *ret)
{
	const struct name_cache_header *h;
	uint64_t source_size, mtime_ns;
	struct name_table table;
	size_t size;

	if (file_read(cache->path, NAME_CACHE_FILE_MAX, ret_data, &size, NULL) < 0)
		return false;
	if (name_table_parse(*ret_data, size, &table)) {
		h = table.header;
		if (h->base == cache->base && h->build_id_size == cache->id.size &&
		    memcmp(h->build_id, cache->id.bytes, cache->id.size) == 0 &&
		    (!source_stat(table.texts + h->source, &source_size, &mtime_ns) ||
		     (source_size == h->source_size && mtime_ns == h->source_mtime_ns))) {
			*ret = table;
			return true;
		}
	}
	free(TAKE_PTR(*ret_data));
	return false;
}

struct name_cache *name_cache_open(const char *dir, const struct build_id *id, uint64_t base)
{
	struct name_cache *cache;
	char hex[2 * BUILD_ID_MAX + 1];

	if (!dir || id->size < 4)
		return NULL;
	cache = calloc(1, sizeof(*cache));
	if (!cache)
		return NULL;
	build_id_hex(id, hex);
	cache->id = *id;
	cache->base = base;
	cache->dir = strdup(dir);
	if (!cache->dir || asprintf(&cache->path, "%s/%s", dir, hex) < 0) {
		cache->path = NULL;
		name_cache_free(cache);
		return NULL;
	}
	/* What is used is kept longest. */
	if (read_table(cache, &cache->data, &cache->table))
		(void)utimensat(AT_FDCWD, cache->path, NULL, 0);
	return cache;
}

static void drop_pending(struct name_cache *cache)
{
	vec_fini(&cache->pending);
	vec_fini(&cache->frames);
	strtab_fini(&cache->strings);
	cache->strings = (struct strtab){0};
}

void name_cache_free(struct name_cache *cache)
{
	if (!cache)
		return;
	drop_pending(cache);
	free(cache->dir);
	free(cache->path);
	free(cache->data);
	free(cache->source);
	free(cache);
}

void name_cache_source(struct name_cache *cache, const char *path)
{
	const struct name_cache_header *h = cache->table.header;

	free(cache->source);
	cache->source = strdup(path);
	if (!cache->source || !source_stat(path, &cache->source_size, &cache->source_mtime_ns)) {
		cache->broken = true;
		return;
	}
	/* The texts stay: answers that were given point into them. */
	if (h &&
	    (h->source_size != cache->source_size || h->source_mtime_ns != cache->source_mtime_ns))
		cache->table.header = NULL;
}

static int intern(struct name_cache *cache, const char *text, uint32_t *ret)
{
	*ret = 0;
	return text ? strtab_intern_text(&cache->strings, text, ret) : 0;
}

void name_cache_add(struct name_cache *cache, uint64_t address, const struct inline_frame *frames,
		    size_t count)
{
	struct pending entry = {address, (uint32_t)cache->frames.len, (uint32_t)count};
	int r = 0;

	if (cache->broken || cache->pending.len >= ADDRESSES_MAX)
		return;
	if (cache->strings.entries.len == 0)
		r = strtab_init(&cache->strings);
	for (size_t i = 0; i < count && r == 0; i++) {
		struct text_frame frame = {.line = frames[i].line,
					   .column_inlined =
						   frames[i].column << 1 | frames[i].inlined};

		r = intern(cache, frames[i].function, &frame.function);
		if (r == 0)
			r = intern(cache, frames[i].raw_function, &frame.raw_function);
		if (r == 0)
			r = intern(cache, frames[i].file, &frame.file);
		if (r == 0)
			r = vec_push(&cache->frames, frame);
	}
	if (r == 0)
		r = vec_push(&cache->pending, entry);
	cache->broken = r < 0;
}

/* What the file holds now is kept beside what is new: another process may have written it. */
static void absorb_file(struct name_cache *cache)
{
	struct inline_frame frames[64];
	struct name_table table;
	char *data = NULL;

	if (!read_table(cache, &data, &table))
		return;
	if (table.header->source_size == cache->source_size &&
	    table.header->source_mtime_ns == cache->source_mtime_ns)
		for (uint32_t i = 0; i < table.header->addresses; i++) {
			int count = name_table_find(&table, table.addresses[i], frames,
						    ARRAY_LEN(frames));

			if (count >= 0 && count < (int)ARRAY_LEN(frames))
				name_cache_add(cache, table.addresses[i], frames, (size_t)count);
		}
	free(data);
}

static int compare_pending(const void *a, const void *b)
{
	const struct pending *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

/* Sorted by address, each once: the newest answer comes first. */
static void settle(struct name_cache *cache)
{
	size_t used = 0;

	qsort(cache->pending.data, cache->pending.len, sizeof(*cache->pending.data),
	      compare_pending);
	for (size_t i = 0; i < cache->pending.len; i++)
		if (used == 0 ||
		    cache->pending.data[i].address != cache->pending.data[used - 1].address)
			cache->pending.data[used++] = cache->pending.data[i];
	cache->pending.len = used;
}

/* Offsets of all strings in the texts to come. */
static uint32_t *place_texts(const struct name_cache *cache, uint64_t *ret_size)
{
	uint32_t *offsets = calloc(cache->strings.entries.len, sizeof(*offsets));
	uint64_t size = 0;

	for (size_t i = 0; offsets && i < cache->strings.entries.len; i++) {
		offsets[i] = (uint32_t)size;
		size += cache->strings.entries.data[i].len + 1;
		if (size > NAME_CACHE_FILE_MAX) {
			free(offsets);
			return NULL;
		}
	}
	*ret_size = size;
	return offsets;
}

static void put_frames(const struct name_cache *cache, const uint32_t *offsets, struct str *out)
{
	vec_for_each(&cache->pending, entry)
		for (uint32_t i = 0; i < entry->count; i++) {
			const struct text_frame *from = &cache->frames.data[entry->first + i];
			const struct name_cache_frame frame = {
				offsets[from->function], offsets[from->raw_function],
				offsets[from->file], from->line, from->column_inlined};

			str_append(out, &frame, sizeof(frame));
		}
}

/* The whole file, its checksum in place. */
static int put_file(const struct name_cache *cache, uint32_t source, struct str *out)
{
	struct name_cache_header header = {
		.magic = NAME_CACHE_MAGIC,
		.version = NAME_CACHE_VERSION,
		.build_id_size = cache->id.size,
		.base = cache->base,
		.source_size = cache->source_size,
		.source_mtime_ns = cache->source_mtime_ns,
		.addresses = (uint32_t)cache->pending.len,
	};
	uint64_t texts;
	uint32_t *offsets = place_texts(cache, &texts);
	int r;

	if (!offsets)
		return -EFBIG;
	memcpy(header.build_id, cache->id.bytes, cache->id.size);
	header.texts = (uint32_t)texts;
	header.source = offsets[source];
	vec_for_each(&cache->pending, entry)
		header.frames += entry->count;
	str_append(out, &header, sizeof(header));
	vec_for_each(&cache->pending, entry)
		str_append(out, &entry->address, sizeof(entry->address));
	header.frames = 0;
	vec_for_each(&cache->pending, entry) {
		str_append(out, &header.frames, sizeof(header.frames));
		header.frames += entry->count;
	}
	str_append(out, &header.frames, sizeof(header.frames));
	put_frames(cache, offsets, out);
	vec_for_each(&cache->strings.entries, string)
		str_append(out, string->text, string->len + 1);
	free(offsets);
	r = str_status(out);
	if (r == 0 && out->len > NAME_CACHE_FILE_MAX)
		r = -EFBIG;
	if (r == 0) {
		header.checksum = hash_bytes(out->data + CHECKED_FROM, out->len - CHECKED_FROM);
		memcpy(out->data + offsetof(struct name_cache_header, checksum), &header.checksum,
		       sizeof(header.checksum));
	}
	return r;
}

void name_cache_save(struct name_cache *cache)
{
	struct str out = {0};
	uint32_t source;

	if (cache->pending.len > 0 && cache->source && !cache->broken) {
		absorb_file(cache);
		settle(cache);
		if (!cache->broken && intern(cache, cache->source, &source) == 0 &&
		    put_file(cache, source, &out) == 0 && dir_make(cache->dir, 0700, NULL) == 0 &&
		    file_replace(cache->path, out.data, out.len, 0600) == 0)
			name_cache_prune(cache->dir, NAME_CACHE_TOTAL_MAX);
		str_fini(&out);
	}
	drop_pending(cache);
}

struct cached_file {
	char name[64];
	uint64_t used_ns, size;
};

static int compare_used(const void *a, const void *b)
{
	const struct cached_file *x = a, *y = b;

	return x->used_ns < y->used_ns ? -1 : x->used_ns > y->used_ns;
}

void name_cache_prune(const char *dir, uint64_t limit)
{
	VEC(struct cached_file) files = {0};
	const struct dirent *entry;
	DIR *stream = opendir(dir);
	uint64_t total = 0;
	struct stat st;

	while (stream && (entry = readdir(stream))) {
		struct cached_file file = {0};

		if (strlen(entry->d_name) >= sizeof(file.name) ||
		    fstatat(dirfd(stream), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		strcpy(file.name, entry->d_name);
		file.used_ns =
			(uint64_t)st.st_mtim.tv_sec * NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec;
		file.size = (uint64_t)st.st_size;
		total += file.size;
		if (vec_push(&files, file) < 0)
			break;
	}
	if (total > limit) {
		qsort(files.data, files.len, sizeof(*files.data), compare_used);
		vec_for_each(&files, file) {
			if (total <= limit)
				break;
			if (unlinkat(dirfd(stream), file->name, 0) == 0)
				total -= file->size;
		}
	}
	vec_fini(&files);
	if (stream)
		closedir(stream);
}
