/* The first pass: everything but the samples, and where the second pass can enter the file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "sample/session-internal.h"

/* Small recordings in pieces for all CPUs; of large ones the pieces' ends should not matter. The
 * recordings of fuzzers are smaller than any. */
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#define CHUNK_BYTES_MIN UINT64_C(1024)
#else
#define CHUNK_BYTES_MIN (UINT64_C(1) << 20)
#endif
#define CHUNK_BYTES_MAX (UINT64_C(4) << 20)
/* simpleperf copies /proc/kallsyms whole. */
#define KERNEL_SYMBOLS_MAX (64u << 20)

struct scan {
	struct session *session;
	struct walk walk;
	struct record record;
};

static void remember_problem(struct session *session, const char *text)
{
	if (session->stats.problem[0] == '\0')
		snprintf(session->stats.problem, sizeof(session->stats.problem), "%s", text);
}

/* When a record of the kernel happened. Records that the tool made up have time 0: "before all". */
static uint64_t record_key(const struct scan *scan)
{
	const struct session *session = scan->session;
	struct perfdata_sample_id id;

	if (!session->timed)
		return scan->record.sequence;
	if (!perfdata_sample_id_decode(
		    session_trailer_attr(session, scan->record.body, scan->record.body_size),
		    scan->record.body, scan->record.body_size, session->header.swap, &id))
		return 0;
	return id.time;
}

static void dso_extent(struct session *session, uint32_t id, const struct side_event *event)
{
	struct dso *dso = &session->objects.data[id]->dso;
	uint64_t limit = event->end;

	if (dso->limit == 0) {
		dso->first_start = event->start;
		dso->first_offset = event->pgoff;
	}
	if (dso->kind == MODULE_ELF || dso->kind == MODULE_VDSO)
		limit = event->pgoff + (event->end - event->start);
	if (limit != UINT64_MAX)
		dso->limit = MAX(dso->limit, limit);
}

static int scan_mmap(struct scan *scan)
{
	struct session *session = scan->session;
	const struct record *record = &scan->record;
	struct side_event event = {.kind = SIDE_MMAP};
	size_t jitdumps = session->jitdumps.len;
	struct perfdata_mmap map;
	int r;

	if (!perfdata_mmap_decode(record->header.type, record->header.misc, record->body,
				  record->body_size, session->header.swap, &map))
		return 0;
	r = session_dso_of_mmap(session, &map, record->header.misc, &event.pid, &event.dso);
	if (r < 0)
		return r;
	event.key = record_key(scan);
	event.start = map.start;
	event.end = map.len > UINT64_MAX - map.start ? UINT64_MAX : map.start + map.len;
	event.pgoff = map.pgoff;
	event.flag =
		session_dso(session, event.dso)->kind == MODULE_PERF_MAP && map_is_memory(map.path);
	if (session->jitdumps.len > jitdumps)
		session->jitdumps.data[jitdumps].key = session->timed ? event.key : 0;
	if (event.dso == session->kernel->id && !session->kernel_seen) {
		session->kernel_mapped = event.key;
		session->kernel_seen = true;
	}
	dso_extent(session, event.dso, &event);
	return frontier_add(session, &event);
}

static int scan_comm(struct scan *scan)
{
	struct session *session = scan->session;
	const struct record *record = &scan->record;
	struct side_event event = {.kind = SIDE_COMM};
	struct perfdata_comm comm;
	uint32_t string;
	int r;

	if (!perfdata_comm_decode(record->header.misc, record->body, record->body_size,
				  session->header.swap, &comm))
		return 0;
	r = strtab_intern_text(&session->strings, comm.comm, &string);
	if (r < 0)
		return r;
	event.key = record_key(scan);
	event.comm = string ? strtab_text(&session->strings, string) : NULL;
	event.pid = comm.pid;
	event.tid = comm.tid;
	event.flag = comm.exec;
	return frontier_add(session, &event);
}

static int scan_fork(struct scan *scan)
{
	struct session *session = scan->session;
	const struct record *record = &scan->record;
	struct side_event event = {.kind = SIDE_FORK};
	struct perfdata_task task;

	if (!perfdata_task_decode(record->body, record->body_size, session->header.swap, &task))
		return 0;
	event.key = record_key(scan);
	event.pid = task.pid;
	event.tid = task.tid;
	event.ppid = task.ppid;
	event.ptid = task.ptid;
	event.flag = record->header.misc & REC_MISC_FLAG;
	return frontier_add(session, &event);
}

/* "bpf_prog_0123456789abcdef_name": the tag tells the program as a build id tells an object. */
static void program_tag(const char *name, struct build_id *ret)
{
	const char *hex;
	char tag[17];

	if (!str_prefix(name, "bpf_prog_", &hex) || strlen(hex) < 16)
		return;
	snprintf(tag, sizeof(tag), "%.16s", hex);
	(void)build_id_parse(tag, ret);
}

/* Code comes and goes: registered it covers what stood there, unregistered it is the kernel's. */
static int scan_ksymbol(struct scan *scan)
{
	struct session *session = scan->session;
	struct side_event event = {.kind = SIDE_MMAP, .pid = PID_KERNEL};
	struct perfdata_ksymbol symbol;
	struct ksymbol kept = {0};
	struct build_id tag = {0};
	int r;

	if (!perfdata_ksymbol_decode(scan->record.body, scan->record.body_size,
				     session->header.swap, &symbol) ||
	    symbol.len == 0)
		return 0;
	event.key = record_key(scan);
	event.start = kept.start = symbol.addr;
	event.end = kept.end = symbol.addr + MIN(symbol.len, UINT64_MAX - symbol.addr);
	if (symbol.flags & KSYMBOL_UNREGISTER) {
		event.dso = session->kernel->id;
		return frontier_add(session, &event);
	}
	program_tag(symbol.name, &tag);
	r = session_dso_add(session, symbol.type == 1 ? "[bpf]" : "[kernel.ool]", MODULE_KERNEL,
			    &tag, 0, &event.dso);
	if (r < 0)
		return r;
	kept.dso = event.dso;
	r = strtab_intern_text(&session->strings, symbol.name, &kept.name);
	if (r == 0)
		r = vec_push(&session->ksymbols, kept);
	return r < 0 ? r : frontier_add(session, &event);
}

static int scan_cgroup(struct scan *scan)
{
	struct session *session = scan->session;
	struct perfdata_cgroup cgroup;
	uint32_t path;
	int r;

	if (!perfdata_cgroup_decode(scan->record.body, scan->record.body_size, session->header.swap,
				    &cgroup))
		return 0;
	r = strtab_intern_text(&session->strings, cgroup.path, &path);
	return r < 0 ? r : u64_map_put(&session->cgroups, cgroup.id, path);
}

static void scan_time_conversion(struct session *session, struct reader *r)
{
	uint64_t shift = reader_u64(r), mult = reader_u64(r), zero = reader_u64(r);

	if (r->failed || shift >= 64)
		return;
	session->time_shift = (unsigned)shift;
	session->time_mult = mult;
	session->time_zero = zero;
}

static void scan_counts(struct scan *scan)
{
	struct session_stats *stats = &scan->session->stats;
	struct reader r =
		reader_make(scan->record.body, scan->record.body_size, scan->session->header.swap);

	switch (scan->record.header.type) {
	case REC_LOST:
		reader_skip(&r, 8);
		stats->lost_records += reader_u64(&r);
		break;
	case REC_LOST_SAMPLES:
		scan->session->lost_sample_records += reader_u64(&r);
		break;
	case REC_THROTTLE:
		stats->throttled++;
		break;
	case REC_AUXTRACE:
		stats->trace_bytes += reader_u64(&r);
		break;
	case REC_TIME_CONV:
		scan_time_conversion(scan->session, &r);
		break;
	default:
		break;
	}
}

static int scan_attr(struct scan *scan)
{
	struct session *session = scan->session;
	struct reader r =
		reader_make(scan->record.body, scan->record.body_size, session->header.swap);
	struct perfdata_attr attr;
	uint32_t event;
	int status;

	if (!session->header.pipe ||
	    !perfdata_attr_decode(r.data, r.size, session->header.swap, &attr))
		return 0;
	status = session_add_event(session, &attr, &event);
	reader_skip(&r, attr.size ? attr.size : 64);
	while (status == 0 && reader_left(&r) >= 8 && !r.failed)
		status = session_add_event_id(session, reader_u64(&r), event);
	return status == -E2BIG ? 0 : status;
}

static int scan_event_update(struct scan *scan)
{
	struct reader r =
		reader_make(scan->record.body, scan->record.body_size, scan->session->header.swap);
	uint64_t what = reader_u64(&r), id = reader_u64(&r);
	struct event *event = session_event_by_id(scan->session, id);
	size_t left = reader_left(&r);

	if (r.failed || what != 2 || !event || left == 0 || r.data[r.pos] == '\0')
		return 0;
	snprintf(event->name, sizeof(event->name), "%.*s", (int)MIN(left, sizeof(event->name) - 1),
		 (const char *)r.data + r.pos);
	event->named = true;
	return frontier_disturb(scan->session);
}

static int scan_build_id(struct scan *scan)
{
	/* The record is an entry of the build-id table with its header. */
	struct reader r = reader_make(scan->record.body - 8, scan->record.body_size + 8,
				      scan->session->header.swap);
	struct perfdata_build_id entry;
	int status;

	if (!perfdata_build_id_next(&r, &entry))
		return 0;
	status = session_add_build_id(scan->session, &entry);
	return status < 0 ? status : frontier_disturb(scan->session);
}

static int scan_feature(struct scan *scan)
{
	struct reader r =
		reader_make(scan->record.body, scan->record.body_size, scan->session->header.swap);
	uint64_t feature = reader_u64(&r);

	if (r.failed || feature >= FEAT_BITS)
		return 0;
	return session_feature(scan->session, (unsigned)feature, r.data + r.pos, reader_left(&r));
}

/* simpleperf's copy of /proc/kallsyms: larger than what a record may be elsewhere. */
static int scan_kernel_symbols(struct scan *scan)
{
	struct session *session = scan->session;
	const struct record *record = &scan->record;
	struct reader r = reader_make(record->body, record->body_size, session->header.swap);
	uint64_t size = reader_u32(&r);
	CLEANUP_FREE char *text = NULL;
	ssize_t n;

	if (r.failed || session->kallsyms.len || scan->walk.packed ||
	    size > MIN(record->header.size - 12, KERNEL_SYMBOLS_MAX))
		return 0;
	text = malloc(MAX((size_t)size, 1u));
	if (!text)
		return -ENOMEM;
	n = input_read_at(scan->walk.fd, text, (size_t)size, record->offset + 12);
	if (n != (ssize_t)size)
		return n < 0 ? (int)n : 0;
	str_append(&session->kallsyms, text, strnlen(text, (size_t)size));
	return str_status(&session->kallsyms);
}

static int scan_event_ids(struct scan *scan)
{
	struct session *session = scan->session;
	struct reader r =
		reader_make(scan->record.body, scan->record.body_size, session->header.swap);
	uint64_t count = reader_u64(&r);
	int status = frontier_disturb(session);

	for (uint64_t i = 0; i < count && reader_left(&r) >= 16 && status == 0; i++) {
		uint64_t event = reader_u64(&r), id = reader_u64(&r);

		if (event < session->events.len)
			status = session_add_event_id(session, id, (uint32_t)event);
	}
	return status;
}

/* Times order the records when every event has them; else the order in the file does. */
static void decide_order(struct session *session)
{
	session->timed = session->events.len > 0;
	vec_for_each(&session->events, event)
		session->group_reads |= session_samples_groups(&event->attr);
	vec_for_each(&session->events, event)
		if (!(event->attr.sample_type & SAMPLE_TIME) || !event->attr.sample_id_all)
			session->timed = false;
}

/* Of a sample that scan_samples left. */
static void scan_time(struct scan *scan)
{
	struct frontier *frontier = scan->session->frontier;
	struct reader r = reader_make(scan->record.body, scan->record.body_size, false);
	uint64_t time;

	if (frontier->time_at == 0)
		return;
	reader_skip(&r, frontier->time_at - 8); /* the record's header is behind us */
	time = reader_u64(&r);
	if (!r.failed)
		frontier->latest = MAX(frontier->latest, time);
}

static int scan_record(struct scan *scan)
{
	struct session *session = scan->session;
	const struct record *record = &scan->record;
	uint32_t type = record->header.type;

	session->stats.records++;
	if (!record_type_name(type) && session->stats.unknown_records++ == 0)
		session->stats.unknown_type = type;
	if (type == REC_HEADER_ATTR) {
		int r = scan_attr(scan);

		decide_order(session);
		return r;
	}
	if (session->events.len == 0 && type < 64)
		return 0; /* nothing says how to read it */
	switch (type) {
	case REC_SAMPLE:
		session->stats.samples++;
		scan_time(scan);
		return 0;
	case REC_FINISHED_ROUND:
		return frontier_round(session, record->offset);
	case REC_MMAP:
	case REC_MMAP2:
		return scan_mmap(scan);
	case REC_COMM:
		return scan_comm(scan);
	case REC_FORK:
		return scan_fork(scan);
	case REC_KSYMBOL:
		return scan_ksymbol(scan);
	case REC_BPF_EVENT:
		return session_bpf_event(session, scan->record.body, scan->record.body_size,
					 record_key(scan));
	case REC_NAMESPACES:
		return session_namespaces_add(session, scan->record.body, scan->record.body_size,
					      record_key(scan));
	case REC_CGROUP:
		return scan_cgroup(scan);
	case REC_BUILD_ID:
		return scan_build_id(scan);
	case REC_SIMPLEPERF_KERNEL_SYMBOLS:
		return scan_kernel_symbols(scan);
	case REC_SIMPLEPERF_EVENT_ID:
		return scan_event_ids(scan);
	case REC_EVENT_UPDATE:
		return scan_event_update(scan);
	case REC_HEADER_FEATURE:
		return session->header.pipe ? scan_feature(scan) : 0;
	default:
		scan_counts(scan);
		return 0;
	}
}

/* Of samples the first pass wants the number and the latest time alone. */
static void scan_samples(struct scan *scan, uint64_t limit)
{
	struct session *session = scan->session;
	struct frontier *frontier = session->frontier;
	uint64_t count = session->events.len > 0
				 ? walk_skip_samples(&scan->walk, limit, frontier->time_at,
						     &frontier->latest)
				 : 0;

	session->stats.records += count;
	session->stats.samples += count;
}

/* From one place to the next, some megabytes on: what lies between will be read again, later. */
static void pass(struct scan *scan, struct chunk *stretch)
{
	struct session *session = scan->session;
	const struct input_file *input = &session->input.files.data[stretch->file];

	stretch->end = scan->record.offset;
	session_release(session, stretch);
	if (session->progress)
		session->progress(session->progress_arg, "looking through the records",
				  (double)stretch->end / (double)input->size);
	stretch->offset = stretch->end;
	stretch->sequence = scan->record.sequence;
}

static int scan_range(struct scan *scan, struct chunk *chunk, uint64_t end)
{
	struct session *session = scan->session;
	uint64_t bytes = MIN(MAX((end - chunk->offset) / 64, CHUNK_BYTES_MIN), CHUNK_BYTES_MAX);
	struct chunk stretch = *chunk;
	bool packed = false;
	int r;

	for (;;) {
		scan_samples(scan, stretch.offset + bytes);
		r = walk_next(&scan->walk, &scan->record);
		if (r != 1)
			break;
		packed |= scan->walk.packed;
		if (scan->record.offset - stretch.offset >= bytes) {
			pass(scan, &stretch);
			chunk->end = stretch.end;
			if (!packed && !session->group_reads)
				r = frontier_add_chunk(session, chunk);
			if (!packed && !session->group_reads)
				*chunk = stretch;
		}
		if (r >= 0)
			r = scan_record(scan);
		if (r < 0)
			break;
	}
	session->info.compressed |= packed;
	return r;
}

static int scan_file(struct scan *scan, uint32_t file, uint64_t offset, uint64_t end)
{
	struct session *session = scan->session;
	const struct input_file *input = &session->input.files.data[file];
	struct chunk chunk = {.file = file, .offset = offset, .end = offset};
	int r;

	walk_range(&scan->walk, input, offset, end, 0);
	r = scan_range(scan, &chunk, end);
	if (r < 0)
		return r;
	session->stats.missing_bytes += scan->walk.missing_bytes;
	session_check_input(session);
	if (scan->walk.problem[0])
		remember_problem(session, scan->walk.problem);
	chunk.end = scan->walk.offset;
	return chunk.end > chunk.offset ? frontier_add_chunk(session, &chunk) : 0;
}

static bool no_features(const struct perfdata_header *header)
{
	uint64_t all = 0;

	for (size_t i = 0; i < ARRAY_LEN(header->features); i++)
		all |= header->features[i];
	return all == 0;
}

/* Where the records of the first file end, and what the header promised beyond the file's end. */
static uint64_t data_end(struct session *session, struct walk *walk, uint64_t *ret_start)
{
	const struct input_file *file = &session->input.files.data[0];
	const struct perfdata_section *data = &session->header.data;
	uint64_t end;
	bool unfinished;

	*ret_start = session->header.pipe ? PERFDATA_PIPE_HEADER_BYTES : data->offset;
	/* Recorders write the features last: without any, records may lie behind the size as well.
	 */
	unfinished = !session->header.pipe && session->input.files.len == 1 &&
		     (data->size == 0 || no_features(&session->header));
	walk->open_end = session->header.pipe || data->size == 0 || unfinished;
	if (unfinished) {
		session->stats.unfinished = true;
		remember_problem(
			session,
			"the recording was not finished: counts come from what is there, names of "
			"events and build ids may be missing");
	}
	end = data->size > UINT64_MAX - data->offset ? UINT64_MAX : data->offset + data->size;
	if (walk->open_end && (session->header.pipe || end <= file->size))
		return file->size;
	if (end > file->size) {
		session->stats.missing_bytes = end - MAX(file->size, data->offset);
		end = file->size;
	}
	return end;
}

static int scan_files(struct scan *scan)
{
	struct session *session = scan->session;
	uint64_t start, end = data_end(session, &scan->walk, &start),
			promised = session->stats.missing_bytes;
	int r = start < end ? scan_file(scan, 0, start, end) : 0;

	if (promised) /* counted from the header, or behind the data, already */
		session->stats.missing_bytes = promised;
	for (uint32_t i = 1; i < session->input.files.len && r == 0; i++) {
		scan->walk.open_end = true;
		r = scan_file(scan, i, 0, session->input.files.data[i].size);
	}
	return r;
}

static int scan_all(struct session *session, struct err *err)
{
	struct scan scan = {.session = session};
	int r;

	decide_order(session);
	frontier_begin(session);
	r = walk_init(&scan.walk, -1, 0, 0, session->header.swap);
	if (r == 0)
		r = scan_files(&scan);
	walk_fini(&scan.walk);
	if (r == 0 && session->events.len == 0)
		return err_set(err, -ENODATA, "no events: %s",
			       session->stats.problem[0]
				       ? session->stats.problem
				       : "the stream ends before it describes any");
	if (r == 0 && session->input.problem[0])
		remember_problem(session, session->input.problem);
	if (r == 0)
		r = session_jit_code(session);
	if (r == 0)
		r = session_bpf_programs(session);
	session_dsos_finish(session);
	session_namespaces_finish(session);
	if (r == 0)
		r = frontier_finish(session);
	session->stats.lost_samples = session->lost_sample_records;
	if (r == 0)
		r = session_publish_events(session);
	return r;
}

int session_scan(struct session *session, struct err *err)
{
	int r = scan_all(session, err);

	session->scanned = r == 0;
	frontier_complete(session, r);
	return r;
}
