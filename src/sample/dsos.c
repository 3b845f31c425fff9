/* Objects: what a mapping's name means, and which build id it has. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "sample/session-internal.h"

struct dso_key {
	const char *path;
	enum module_kind kind;
	const struct build_id *id;
};

static bool dso_equal(const void *owner, uint32_t id, const void *key)
{
	const struct session *session = owner;
	const struct dso_key *want = key;
	const struct dso *dso = &session->objects.data[id]->dso;

	return dso->kind == want->kind && strcmp(dso->path, want->path) == 0 &&
	       dso->build_id.size == want->id->size &&
	       memcmp(dso->build_id.bytes, want->id->bytes, want->id->size) == 0;
}

/* What the recording tells of the file at the path, apart from its mappings. */
static const struct build_id *id_of_path(const struct session *session, const char *path)
{
	static const struct build_id unknown;
	uint32_t string = strtab_find(&session->strings, path, strlen(path)), index;

	return string != HASH_NONE && u64_map_get(&session->build_id_index, string, &index)
		       ? &session->build_ids.data[index].id
		       : &unknown;
}

static int push_object(struct session *session, struct session_object *object)
{
	int r;

	pthread_rwlock_wrlock(&session->frontier->told);
	r = vec_push(&session->objects, object);
	pthread_rwlock_unlock(&session->frontier->told);
	return r;
}

int session_dso_add(struct session *session, const char *path, enum module_kind kind,
		    const struct build_id *id, int pid, uint32_t *ret)
{
	static const struct build_id none;
	struct dso_key key = {path, kind, id ? id : &none};
	struct session_object *object;
	struct dso *dso;
	uint64_t hash;
	int r;

	if (key.id->size == 0 && kind != MODULE_PERF_MAP)
		key.id = id_of_path(session, path);
	hash = hash_pair(hash_bytes(path, strlen(path)),
			 hash_bytes(key.id->bytes, key.id->size) + kind);

	*ret = hash_index_find(&session->dso_index, hash, dso_equal, session, &key);
	if (*ret != HASH_NONE)
		return 0;
	object = arena_alloc(&session->arena, sizeof(*object));
	if (!object)
		return -ENOMEM;
	*object = (struct session_object){
		.dso = {.id = session_dso_count(session),
			.path = arena_strndup(&session->arena, path, strlen(path)),
			.kind = kind,
			.build_id = *key.id,
			.pid = pid}};
	dso = &object->dso;
	if (!dso->path)
		return -ENOMEM;
	r = push_object(session, object);
	if (r < 0)
		return r;
	*ret = dso->id;
	return hash_index_add(&session->dso_index, hash, dso->id);
}

int session_dsos_init(struct session *session)
{
	static const char *const names[] = {"[kernel.kallsyms]", "[guest.kernel.kallsyms]",
					    "[guest]", "[hypervisor]", "[truncated]"};
	struct dso **slots[] = {&session->kernel, &session->guest_kernel, &session->guest_user,
				&session->hypervisor, &session->cut};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		uint32_t id;
		int r = session_dso_add(session, names[i], i == 0 ? MODULE_KERNEL : MODULE_ELF,
					NULL, 0, &id);

		if (r < 0)
			return r;
		*slots[i] = &session->objects.data[id]->dso;
	}
	return 0;
}

void kernel_module_name(const char *path, char *buf, size_t size)
{
	const char *base = strrchr(path, '/'), *end;

	base = base ? base + 1 : path;
	if (*base == '[') {
		snprintf(buf, size, "%s", base);
		return;
	}
	end = strstr(base, ".ko");
	snprintf(buf, size, "[%.*s]", (int)(end ? end - base : (long)strlen(base)), base);
	for (char *at = buf; *at; at++)
		if (*at == '-')
			*at = '_';
}

static bool is_prefix(const char *text, const char *prefix)
{
	return str_prefix(text, prefix, NULL);
}

/* The first record of the kernel's text says where a symbol was at the time:
 * "[kernel.kallsyms]_text". */
static void kernel_text_seen(struct session *session, const struct perfdata_mmap *map)
{
	const char *symbol = strchr(map->path, ']');

	if (session->kernel_text || !symbol || map->pgoff < UINT64_C(0x80000000))
		return;
	session->kernel_text = map->pgoff;
	session->kernel_text_is_stext = strcmp(symbol, "]_stext") == 0;
}

static int kernel_dso(struct session *session, const struct perfdata_mmap *map, uint16_t misc,
		      uint32_t *ret)
{
	char name[256];
	struct dso *dso;
	int r;

	if (is_prefix(map->path, "[kernel.kallsyms]") || is_prefix(map->path, "[kernel]")) {
		if (map->build_id.size)
			session->kernel->build_id = map->build_id;
		kernel_text_seen(session, map);
		*ret = session->kernel->id;
		return 0;
	}
	kernel_module_name(map->path, name, sizeof(name));
	if ((misc & REC_MISC_CPUMODE) == REC_MISC_GUEST_KERNEL)
		return session_dso_add(session, name, MODULE_ELF, &map->build_id, 0, ret);
	r = session_dso_add(session, name, MODULE_KERNEL, &map->build_id, 0, ret);
	if (r < 0 || map->path[0] != '/')
		return r;
	dso = &session->objects.data[*ret]->dso;
	if (!dso->file)
		dso->file = arena_strndup(&session->arena, map->path, strlen(map->path));
	return dso->file ? 0 : -ENOMEM;
}

int session_dso_of_mmap(struct session *session, const struct perfdata_mmap *map, uint16_t misc,
			int32_t *ret_pid, uint32_t *ret_dso)
{
	unsigned mode = misc & REC_MISC_CPUMODE;
	char name[64];

	*ret_pid = map->pid;
	if (mode == REC_MISC_GUEST_KERNEL || is_prefix(map->path, "[guest.kernel")) {
		*ret_pid = PID_GUEST_KERNEL;
		if (is_prefix(map->path, "[guest.kernel")) {
			*ret_dso = session->guest_kernel->id;
			return 0;
		}
		return kernel_dso(session, map, misc, ret_dso);
	}
	if (map->pid == PID_KERNEL || mode == REC_MISC_KERNEL ||
	    is_prefix(map->path, "[kernel.kallsyms]")) {
		*ret_pid = PID_KERNEL;
		return kernel_dso(session, map, misc, ret_dso);
	}
	if (is_prefix(map->path, "[vdso"))
		return session_dso_add(session, "[vdso]", MODULE_VDSO, &map->build_id, map->pid,
				       ret_dso);
	if (map_is_memory(map->path)) {
		snprintf(name, sizeof(name), "/tmp/perf-%d.map", map->pid);
		return session_dso_add(session, name, MODULE_PERF_MAP, NULL, map->pid, ret_dso);
	}
	if (map_is_jit_symbol_file(map))
		return session_dso_add(session, map->path, MODULE_PERF_MAP, NULL, map->pid,
				       ret_dso);
	if (jitdump_is_path(map->path)) {
		struct jitdump_seen seen = {
			.pid = map->pid,
			.path = arena_strndup(&session->arena, map->path, strlen(map->path))};

		if (!seen.path || vec_push(&session->jitdumps, seen) < 0)
			return -ENOMEM;
	}
	return session_dso_add(session, map->path, MODULE_ELF, &map->build_id, map->pid, ret_dso);
}

int session_add_build_id(struct session *session, const struct perfdata_build_id *entry)
{
	struct known_build_id known = {.id = entry->build_id};
	char name[256];
	int r;

	if (entry->path_len == 0)
		return 0;
	if ((entry->misc & REC_MISC_CPUMODE) == REC_MISC_KERNEL && entry->path_len < sizeof(name) &&
	    !(entry->path_len >= 17 && memcmp(entry->path, "[kernel.kallsyms]", 17) == 0)) {
		char path[256];

		snprintf(path, sizeof(path), "%.*s", (int)entry->path_len, entry->path);
		kernel_module_name(path, name, sizeof(name));
		r = strtab_intern_text(&session->strings, name, &known.path);
	} else {
		r = strtab_intern(&session->strings, entry->path, entry->path_len, &known.path);
	}
	if (r == 0)
		r = u64_map_put(&session->build_id_index, known.path,
				(uint32_t)session->build_ids.len);
	return r < 0 ? r : vec_push(&session->build_ids, known);
}

void session_dsos_finish(struct session *session)
{
	vec_for_each(&session->objects, slot) {
		struct dso *dso = &(*slot)->dso;

		if (dso->kind != MODULE_PERF_MAP) {
			if (dso->build_id.size == 0)
				dso->build_id = *id_of_path(session, dso->path);
			continue;
		}
		vec_for_each(&session->jitdumps, seen)
			if (seen->pid == dso->pid)
				/* Readers may be under way. */
				__atomic_store_n(&dso->jitdump, seen->path, __ATOMIC_RELEASE);
	}
}
