#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "sample/session-internal.h"

#define EVENTS_MAX    65536
#define EVENT_IDS_MAX (2u << 20)
/* An attribute section larger than this describes no machine that exists. */
#define ATTRS_MAX_BYTES (16u << 20)

int session_add_event(struct session *session, const struct perfdata_attr *attr,
		      uint32_t *ret_index)
{
	struct event event = {.attr = *attr};
	int r;

	if (session->events.len >= EVENTS_MAX)
		return -E2BIG;
	perfdata_event_name(attr, event.name, sizeof(event.name));
	if (attr->use_clockid && session->info.clock < 0)
		session->info.clock = attr->clockid;
	r = vec_push(&session->events, event);
	if (r < 0)
		return r;
	*ret_index = (uint32_t)session->events.len - 1;
	return 0;
}

int session_add_event_id(struct session *session, uint64_t id, uint32_t event)
{
	if (session->id_count >= EVENT_IDS_MAX)
		return 0;
	session->id_count++;
	return u64_map_put(&session->event_ids, id, event);
}

struct event *session_event_by_id(struct session *session, uint64_t id)
{
	uint32_t index;

	return u64_map_get(&session->event_ids, id, &index) ? &session->events.data[index] : NULL;
}

static uint64_t word_at(const uint8_t *body, size_t size, size_t offset, bool swap)
{
	uint64_t word = 0;

	if (offset + 8 <= size)
		memcpy(&word, body + offset, 8);
	return swap ? __builtin_bswap64(word) : word;
}

/* Several events share one sample_type, or all of them have IDENTIFIER: that is how the id is
 * found. */
uint32_t session_sample_event(const struct session *session, const uint8_t *body, size_t size,
			      struct last_event *last)
{
	uint64_t type, id;
	uint32_t index;
	size_t offset = 0;

	if (session->events.len < 2)
		return 0;
	type = session->events.data[0].attr.sample_type;
	if (!(type & SAMPLE_IDENTIFIER)) {
		if (!(type & SAMPLE_ID))
			return 0;
		offset = 8 * (size_t)__builtin_popcountll(
				     type & (SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_ADDR));
	}
	id = word_at(body, size, offset, session->header.swap);
	if (!last->known || last->id != id) {
		bool found = u64_map_get(&session->event_ids, id, &index);

		*last = (struct last_event){.id = id, .event = found ? index : 0, .known = true};
	}
	return last->event;
}

const struct perfdata_attr *session_trailer_attr(const struct session *session, const uint8_t *body,
						 size_t size)
{
	const struct perfdata_attr *attr = &session->events.data[0].attr;
	uint32_t index;

	if (session->events.len > 1 && attr->sample_type & SAMPLE_IDENTIFIER && size >= 8 &&
	    u64_map_get(&session->event_ids, word_at(body, size, size - 8, session->header.swap),
			&index))
		return &session->events.data[index].attr;
	return attr;
}

static int read_ids(struct session *session, const struct perfdata_section *ids, uint32_t event)
{
	const struct input_file *file = &session->input.files.data[0];
	uint8_t buffer[4096];
	int r = 0;

	for (uint64_t done = 0;
	     done + 8 <= ids->size && r == 0 && session->id_count < EVENT_IDS_MAX;) {
		ssize_t n = input_read_at(file->fd, buffer, MIN(sizeof(buffer), ids->size - done),
					  ids->offset + done);

		if (n < 8)
			break;
		for (ssize_t at = 0; at + 8 <= n && r == 0; at += 8)
			r = session_add_event_id(
				session,
				word_at(buffer, (size_t)n, (size_t)at, session->header.swap),
				event);
		done += (uint64_t)n & ~UINT64_C(7);
	}
	return r;
}

static int read_attrs(struct session *session, struct err *err)
{
	const struct input_file *file = &session->input.files.data[0];
	const struct perfdata_header *header = &session->header;
	uint64_t size = header->attrs.size, entry = header->attr_size;
	CLEANUP_FREE uint8_t *data = NULL;
	ssize_t n;

	if (entry < 64 + 16 || entry > 4096 || size < entry || size > ATTRS_MAX_BYTES)
		return err_set(err, -EBADMSG,
			       "the header at byte 16 gives %llu bytes of attributes of %llu bytes "
			       "each; the file is damaged",
			       (unsigned long long)size, (unsigned long long)entry);
	data = malloc((size_t)size);
	if (!data)
		return -ENOMEM;
	n = input_read_at(file->fd, data, (size_t)size, header->attrs.offset);
	if (n < (ssize_t)entry)
		return err_set(err, -ENODATA,
			       "cut at byte %llu, before its events at byte %llu; record again",
			       (unsigned long long)file->size,
			       (unsigned long long)header->attrs.offset);
	for (size_t at = 0; at + entry <= (size_t)n; at += (size_t)entry) {
		struct perfdata_section ids;
		struct perfdata_attr attr;
		uint32_t event;
		int r;

		if (!perfdata_attr_decode(data + at, (size_t)entry - 16, header->swap, &attr))
			continue;
		ids.offset = word_at(data, (size_t)n, at + (size_t)entry - 16, header->swap);
		ids.size = word_at(data, (size_t)n, at + (size_t)entry - 8, header->swap);
		r = session_add_event(session, &attr, &event);
		if (r == 0)
			r = read_ids(session, &ids, event);
		if (r < 0)
			return r;
	}
	return 0;
}

int session_publish_events(struct session *session)
{
	session->public_events.len = 0;
	vec_for_each(&session->events, event) {
		struct session_event public = {
			.name = event->name,
			.precise = event->attr.precise,
			.type = event->attr.type,
			.config = event->attr.config,
		};
		int r;

		if (event->attr.freq)
		public.frequency_hz = event->attr.period_or_freq;
		else public.period = event->attr.period_or_freq;
		r = vec_push(&session->public_events, public);
		if (r < 0)
			return r;
	}
	return 0;
}

static int session_load(struct session *session, struct err *err)
{
	const struct input_file *file = &session->input.files.data[0];
	uint8_t raw[PERFDATA_HEADER_BYTES];
	ssize_t n = input_read_at(file->fd, raw, sizeof(raw), 0);
	int r;

	if (n < 0)
		return err_set(err, (int)n, "reading: %s", strerror((int)-n));
	r = perfdata_header_decode(raw, (size_t)n, &session->header, err);
	if (r < 0)
		return r;
	session->info.swapped = session->header.swap;
	session->info.clock = -1;
	session->info.pipe = session->header.pipe;
	if (session->header.pipe)
		return 0;
	r = read_attrs(session, err);
	if (r == 0 && session->header.data.size > 0)
		r = session_features_read(session);
	return r < 0 ? r : session_publish_events(session);
}

/* All but the input and who is told of progress. */
static int session_begin(struct session *session, struct err *err)
{
	int r = frontier_new(&session->frontier);

	if (r == 0)
		r = strtab_init(&session->strings);
	if (r == 0)
		r = session_dsos_init(session);
	return r < 0 ? r : session_load(session, err);
}

static void session_end(struct session *session)
{
	session_unwind_fini(session);
	frontier_free(session->frontier);
	arena_fini(&session->arena);
	strtab_fini(&session->strings);
	vec_fini(&session->events);
	vec_fini(&session->public_events);
	vec_fini(&session->facts);
	u64_map_fini(&session->event_ids);
	vec_fini(&session->objects);
	hash_index_fini(&session->dso_index);
	vec_fini(&session->jitdumps);
	vec_fini(&session->build_ids);
	u64_map_fini(&session->build_id_index);
	vec_fini(&session->ksymbols);
	str_fini(&session->bpf_infos);
	str_fini(&session->bpf_types);
	vec_fini(&session->bpf_presences);
	u64_map_fini(&session->bpf_presence_index);
	vec_fini(&session->bpf_places);
	vec_fini(&session->recorded_symbols);
	vec_fini(&session->recorded_objects);
	u64_map_fini(&session->recorded_index);
	vec_fini(&session->side);
	tasks_fini(&session->tasks);
	vec_fini(&session->chunks);
	str_fini(&session->kallsyms);
	str_fini(&session->vdso);
	u64_map_fini(&session->cgroups);
	vec_fini(&session->namespaces);
	vec_fini(&session->lost.all);
	u64_map_fini(&session->lost.index);
}

int session_again(struct session *session, struct err *err)
{
	struct session fresh = {.input = session->input,
				.progress = session->progress,
				.progress_arg = session->progress_arg};
	int r;

	session_end(session);
	*session = fresh;
	r = session_begin(session, err);
	return r < 0 ? r : session_scan(session, err);
}

static int open_session(const char *path, bool scan, session_progress_fn fn, void *arg,
			struct session **ret, struct err *err)
{
	struct session *session = calloc(1, sizeof(*session));
	int r;

	if (!session)
		return -ENOMEM;
	session->progress = fn;
	session->progress_arg = arg;
	r = input_open(path, &session->input, err);
	if (r == 0)
		r = session_begin(session, err);
	/* Of a stream the records are all that tells of it. */
	if (r == 0 && (scan || session->header.pipe))
		r = session_scan(session, err);
	if (r < 0) {
		session_close(session);
		return err_wrap(err, r, "%s", path);
	}
	*ret = session;
	return 0;
}

int session_open_header(const char *path, session_progress_fn fn, void *arg, struct session **ret,
			struct err *err)
{
	return open_session(path, false, fn, arg, ret, err);
}

int session_open_watched(const char *path, session_progress_fn fn, void *arg, struct session **ret,
			 struct err *err)
{
	return open_session(path, true, fn, arg, ret, err);
}

int session_open(const char *path, struct session **ret, struct err *err)
{
	return session_open_watched(path, NULL, NULL, ret, err);
}

void session_close(struct session *session)
{
	if (!session)
		return;
	session_end(session);
	input_close(&session->input);
	free(session);
}

const struct session_info *session_info(const struct session *session)
{
	return &session->info;
}

const struct session_fact *session_facts(const struct session *session, uint32_t *ret_count)
{
	*ret_count = (uint32_t)session->facts.len;
	return session->facts.data;
}

const struct session_event *session_events(const struct session *session, uint32_t *ret_count)
{
	*ret_count = (uint32_t)session->public_events.len;
	return session->public_events.data;
}

const struct session_stats *session_stats(const struct session *session)
{
	return &session->stats;
}

const void *session_kallsyms(const struct session *session, size_t *ret_size)
{
	*ret_size = session->kallsyms.len;
	return session->kallsyms.len ? session->kallsyms.data : NULL;
}

const void *session_vdso(const struct session *session, size_t *ret_size)
{
	*ret_size = session->vdso.len;
	return session->vdso.len ? session->vdso.data : NULL;
}

uint32_t session_dso_count(const struct session *session)
{
	return (uint32_t)session->objects.len;
}

const struct dso *session_dso(const struct session *session, uint32_t id)
{
	return id < session->objects.len ? &session->objects.data[id]->dso : NULL;
}

const char *session_cgroup(const struct session *session, uint64_t id)
{
	uint32_t string;

	return u64_map_get(&session->cgroups, id, &string) ? strtab_text(&session->strings, string)
							   : NULL;
}

bool session_has_cgroups(const struct session *session)
{
	vec_for_each(&session->events, event)
		if (event->attr.sample_type & SAMPLE_CGROUP)
			return true;
	return false;
}
