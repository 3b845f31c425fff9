/*
 * Functions and lines of BPF programs in a recording.
 *
 * KSYMBOL records say which function stood where from when to when. The features BPF_PROG_INFO and
 * BPF_BTF, which recorders add at the end, say it again, for programs that no such record told of
 * as well, and which lines the code was made of. BPF_EVENT records say when a program was there.
 *
 * Each function is an object of its own, "[bpf]" with the function's tag in place of a build id, so
 * that what the records and what the features say meets in one place.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "sample/bpf-info.h"
#include "sample/session-internal.h"

/* Of one recording: more than any machine has, so that damage stays small. */
#define FUNCTIONS_MAX  (1u << 18)
#define PLACES_MAX     (1u << 21)
#define FILE_BYTES_MAX (16u << 20) /* of names of source files, each read once */
#define BPF_LOADED     1
#define BPF_UNLOADED   2

struct known_types {
	struct btf btf;
	uint32_t id;
	struct reader bytes;
	bool read;
};

struct code_range {
	uint64_t start, end;
	uint32_t dso;
};

struct programs {
	struct session *session;
	VEC(struct known_types) types;
	struct u64_map types_index, files; /* by id; by types and offset: string */
	VEC(struct code_range) functions;  /* of the program at hand, sorted */
	size_t told;                       /* ksymbols of the records; the features' come behind */
	size_t file_bytes;
};

int session_bpf_feature(struct session *session, unsigned feature, const uint8_t *data, size_t size)
{
	struct str *to = feature == FEAT_BPF_PROG_INFO ? &session->bpf_infos : &session->bpf_types;

	/* Pipes may tell a feature twice; the last word counts. */
	str_clear(to);
	str_append(to, data, size);
	return str_status(to);
}

int session_bpf_event(struct session *session, const uint8_t *body, size_t size, uint64_t key)
{
	struct reader r = reader_make(body, size, session->header.swap);
	uint16_t what = reader_u16(&r);
	struct bpf_presence *presence;
	uint32_t id, index;
	int status = 0;

	reader_skip(&r, 2);
	id = reader_u32(&r);
	if (r.failed || (what != BPF_LOADED && what != BPF_UNLOADED))
		return 0;
	if (!u64_map_get(&session->bpf_presence_index, id, &index)) {
		index = (uint32_t)session->bpf_presences.len;
		status = vec_push(&session->bpf_presences,
				  ((struct bpf_presence){.until = UINT64_MAX}));
		if (status == 0)
			status = u64_map_put(&session->bpf_presence_index, id, index);
		if (status < 0)
			return status;
	}
	presence = &session->bpf_presences.data[index];
	if (what == BPF_LOADED)
		presence->from = key;
	else
		presence->until = key;
	return 0;
}

static int find_types(struct programs *programs)
{
	const struct str *section = &programs->session->bpf_types;
	struct reader r = reader_make(section->data, section->len, programs->session->header.swap);
	uint32_t count = reader_u32(&r);
	int status = 0;

	for (uint32_t i = 0; i < count && status == 0; i++) {
		struct known_types types = {.id = reader_u32(&r)};
		uint32_t size = reader_u32(&r);
		const uint8_t *data = reader_take(&r, size);

		if (!data)
			break;
		types.bytes = reader_make(data, size, false);
		status = u64_map_put(&programs->types_index, types.id,
				     (uint32_t)programs->types.len);
		if (status == 0)
			status = vec_push(&programs->types, types);
	}
	return status;
}

/* NULL: unknown; read when it is needed for the first time. */
static int types_of(struct programs *programs, uint32_t id, struct known_types **ret)
{
	struct known_types *types;
	uint32_t index;
	int r = 0;

	*ret = NULL;
	if (id == 0 || !u64_map_get(&programs->types_index, id, &index))
		return 0;
	types = &programs->types.data[index];
	if (!types->read)
		r = btf_read(types->bytes.data, types->bytes.size, &types->btf);
	types->read = true;
	*ret = types;
	return r == -ENOMEM ? r : 0; /* of damaged types there are no strings */
}

static int compare_ksymbols(const void *a, const void *b)
{
	const struct ksymbol *x = a, *y = b;

	if (x->dso != y->dso)
		return x->dso < y->dso ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct code_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static int compare_places(const void *a, const void *b)
{
	const struct bpf_place *x = a, *y = b;

	if (x->dso != y->dso)
		return x->dso < y->dso ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

/* The last of count sorted symbols that begins at the address or before it; NULL: none. */
static const struct ksymbol *find_ksymbol(const struct session *session, size_t count, uint32_t dso,
					  uint64_t address)
{
	const struct ksymbol *all = session->ksymbols.data;
	struct ksymbol key = {.dso = dso, .start = address};
	size_t behind = partition_point(count, at, compare_ksymbols(&all[at], &key) <= 0);

	return behind > 0 && all[behind - 1].dso == dso ? &all[behind - 1] : NULL;
}

/* No record tells of the function: it is there from the program's load to its end. */
static int map_function(struct programs *programs, const struct bpf_info *info,
			const struct ksymbol *symbol)
{
	struct session *session = programs->session;
	struct side_event event = {.kind = SIDE_MMAP,
				   .pid = PID_KERNEL,
				   /* What came before it would be forgotten. */
				   .key = session->kernel_mapped,
				   .start = symbol->start,
				   .end = symbol->end,
				   .dso = symbol->dso};
	uint64_t until = UINT64_MAX;
	uint32_t index;
	int r;

	if (u64_map_get(&session->bpf_presence_index, info->id, &index)) {
		event.key = MAX(event.key, session->bpf_presences.data[index].from);
		until = session->bpf_presences.data[index].until;
	}
	r = frontier_add(session, &event);
	if (r < 0 || until == UINT64_MAX)
		return r;
	event.key = MAX(event.key, until);
	event.dso = session->kernel->id;
	return frontier_add(session, &event);
}

static int name_function(struct session *session, const struct bpf_info *info,
			 const struct bpf_function *function, const struct btf *btf, uint32_t *ret)
{
	struct str name = {0};
	int r;

	bpf_function_name(info, function, btf, &name);
	r = str_status(&name);
	if (r == 0)
		r = strtab_intern(&session->strings, name.data, name.len, ret);
	str_fini(&name);
	return r;
}

static int add_function(struct programs *programs, const struct bpf_info *info, uint32_t index,
			const struct btf *btf)
{
	struct session *session = programs->session;
	struct bpf_function function = bpf_info_function(info, index);
	struct ksymbol symbol = {.start = function.start, .end = function.start + function.size};
	struct build_id tag = {.size = BPF_TAG_BYTES};
	const struct ksymbol *told;
	int r;

	if (function.start == 0 || symbol.end <= symbol.start)
		return 0; /* the recorder was not told where it is */
	memcpy(tag.bytes, function.tag, BPF_TAG_BYTES);
	r = session_dso_add(session, "[bpf]", MODULE_KERNEL, &tag, 0, &symbol.dso);
	if (r == 0)
		r = vec_push(&programs->functions,
			     ((struct code_range){symbol.start, symbol.end, symbol.dso}));
	if (r < 0)
		return r;
	told = find_ksymbol(session, programs->told, symbol.dso, symbol.start);
	if (told && told->start == symbol.start)
		return 0;
	r = name_function(session, info, &function, btf, &symbol.name);
	if (r == 0)
		r = vec_push(&session->ksymbols, symbol);
	return r < 0 ? r : map_function(programs, info, &symbol);
}

/* A program's lines tend to be of few files: each name is looked at once. */
static int file_of(struct programs *programs, const struct known_types *types, uint32_t offset,
		   uint32_t *ret)
{
	uint64_t key = (uint64_t)(types - programs->types.data) << 32 | offset;
	const char *name;
	size_t len;
	int r;

	*ret = 0;
	if (u64_map_get(&programs->files, key, ret))
		return 0;
	name = btf_string(&types->btf, offset);
	len = name ? strlen(name) : 0;
	if (len == 0 || programs->file_bytes + len > FILE_BYTES_MAX)
		return 0;
	programs->file_bytes += len;
	r = strtab_intern(&programs->session->strings, name, len, ret);
	return r < 0 ? r : u64_map_put(&programs->files, key, *ret);
}

static const struct code_range *range_of(const struct programs *programs, uint64_t address)
{
	const struct code_range *all = programs->functions.data;
	size_t before = partition_point(programs->functions.len, at, all[at].start <= address);

	return before > 0 && address < all[before - 1].end ? &all[before - 1] : NULL;
}

static int add_lines(struct programs *programs, const struct bpf_info *info,
		     const struct known_types *types)
{
	struct session *session = programs->session;
	int r = 0;

	if (programs->functions.len > 1)
		qsort(programs->functions.data, programs->functions.len,
		      sizeof(*programs->functions.data), compare_ranges);
	for (uint32_t i = 0;
	     i < info->lines && session->bpf_places.len < PLACES_MAX && types && r == 0; i++) {
		struct bpf_line line = bpf_info_line(info, i);
		const struct code_range *range = range_of(programs, line.address);
		struct bpf_place place = {
			.address = line.address, .line = line.line, .column = line.column};

		if (!range)
			continue;
		place.dso = range->dso;
		r = file_of(programs, types, line.file, &place.file);
		if (r == 0)
			r = vec_push(&session->bpf_places, place);
	}
	return r;
}

static int add_program(struct programs *programs, const struct bpf_info *info)
{
	struct known_types *types;
	int r = types_of(programs, info->btf_id, &types);

	programs->functions.len = 0;
	for (uint32_t i = 0; i < info->functions && r == 0; i++) {
		if (programs->session->ksymbols.len - programs->told >= FUNCTIONS_MAX)
			break;
		r = add_function(programs, info, i, types ? &types->btf : NULL);
	}
	return r < 0 ? r : add_lines(programs, info, types);
}

static int add_programs(struct programs *programs)
{
	const struct str *section = &programs->session->bpf_infos;
	struct reader r = reader_make(section->data, section->len, programs->session->header.swap);
	uint32_t count = reader_u32(&r);
	struct bpf_info info;
	int status = find_types(programs);

	for (uint32_t i = 0; i < count && status == 0 && bpf_info_next(&r, &info); i++)
		status = add_program(programs, &info);
	return status;
}

int session_bpf_programs(struct session *session)
{
	struct programs programs = {.session = session, .told = session->ksymbols.len};
	int r = 0;

	if (session->ksymbols.len > 1)
		qsort(session->ksymbols.data, session->ksymbols.len,
		      sizeof(*session->ksymbols.data), compare_ksymbols);
	if (session->bpf_infos.len > 0)
		r = add_programs(&programs);
	if (session->ksymbols.len > programs.told)
		qsort(session->ksymbols.data, session->ksymbols.len,
		      sizeof(*session->ksymbols.data), compare_ksymbols);
	if (session->bpf_places.len > 1)
		qsort(session->bpf_places.data, session->bpf_places.len,
		      sizeof(*session->bpf_places.data), compare_places);
	vec_for_each(&programs.types, types)
		btf_fini(&types->btf);
	vec_fini(&programs.types);
	vec_fini(&programs.functions);
	u64_map_fini(&programs.types_index);
	u64_map_fini(&programs.files);
	str_fini(&session->bpf_infos);
	str_fini(&session->bpf_types);
	return r;
}

/* The line that the address belongs to: of the last place at or before it. */
static const struct bpf_place *find_place(const struct session *session, uint32_t dso,
					  uint64_t address)
{
	const struct bpf_place *all = session->bpf_places.data;
	struct bpf_place key = {.dso = dso, .address = address};
	size_t behind =
		partition_point(session->bpf_places.len, at, compare_places(&all[at], &key) <= 0);

	return behind > 0 && all[behind - 1].dso == dso ? &all[behind - 1] : NULL;
}

bool session_ksymbol_place(const struct session *session, const struct dso *dso, uint64_t address,
			   struct inline_frame *ret)
{
	const struct ksymbol *symbol =
		find_ksymbol(session, session->ksymbols.len, dso->id, address);
	const struct bpf_place *place;

	if (!symbol || address >= symbol->end)
		return false;
	*ret = (struct inline_frame){.function = strtab_text(&session->strings, symbol->name)};
	ret->raw_function = ret->function;
	place = find_place(session, dso->id, address);
	if (!place || place->address < symbol->start)
		return true;
	if (place->file)
		ret->file = strtab_text(&session->strings, place->file);
	ret->line = place->line;
	ret->column = place->column;
	return true;
}
