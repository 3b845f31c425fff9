#include "symbols/locate-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/util.h"
#include "symbols/elf-symbols-internal.h"

#define PROC_FILE_MAX (64u << 20)

struct search {
	const struct places *places;
	const struct build_id *want;
	struct str path;       /* the candidate being tried */
	struct build_id other; /* a file was there, with this build id */
	bool differs, has_none;
	bool deleted; /* mapped as "(deleted)": what has its name now is another file */
	int first_error;
};

/* Takes " (deleted)" from the end of a mapping's name; whether it was there. */
static bool cut_deleted(char *path)
{
	static const char suffix[] = " (deleted)";
	size_t len = strlen(path);

	if (len < sizeof(suffix) || strcmp(path + len - (sizeof(suffix) - 1), suffix) != 0)
		return false;
	path[len - (sizeof(suffix) - 1)] = '\0';
	return true;
}

/* Tries search->path. 0 when it is the file that is wanted. */
static int try_path(struct search *search, struct elf_file *ret)
{
	struct elf_file elf = {.fd = -1};
	struct build_id have = {0};
	int r = str_status(&search->path);

	if (r == 0)
		r = elf_open(str_text(&search->path), &elf, NULL);
	if (r < 0) {
		if (!search->first_error || search->first_error == -ENOENT)
			search->first_error = r;
		return r;
	}
	if (search->want->size > 0) {
		bool none = elf_build_id(&elf, &have) < 0;

		if (none || !build_id_equal(&have, search->want)) {
			if (none)
				search->has_none = true;
			else
				search->other = have;
			search->differs = true;
			elf_close(&elf);
			return -ESTALE;
		}
	}
	*ret = elf;
	return 0;
}

#define try_printf(search, ret, ...)                      \
	({                                                \
		str_clear(&(search)->path);               \
		str_printf(&(search)->path, __VA_ARGS__); \
		try_path((search), (ret));                \
	})

/* The part of a "START-END perms off dev inode   path" line behind the numbers, or NULL. */
static char *maps_path(char *line)
{
	char *at = line;

	for (int field = 0; field < 5; field++) {
		at += strcspn(at, " ");
		at += strspn(at, " ");
	}
	return *at ? at : NULL;
}

/* Deleted and replaced files live on in /proc/PID/map_files. */
static int try_map_files(struct search *search, int pid, const char *path, struct elf_file *ret)
{
	const char *root = search->places->root;
	CLEANUP_FREE char *text = NULL;
	char name[64], *save = NULL;
	size_t size;
	int r = -ENOENT;

	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	str_clear(&search->path);
	str_printf(&search->path, "%s%s", root, name);
	if (file_read(str_text(&search->path), PROC_FILE_MAX, &text, &size, NULL) < 0)
		return -ENOENT;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *mapped = maps_path(line), *space;
		unsigned long long low, high;

		if (!mapped || sscanf(line, "%llx-%llx", &low, &high) != 2)
			continue;
		cut_deleted(mapped);
		space = strchr(line, ' ');
		if (strcmp(mapped, path) != 0 || !space)
			continue;
		r = try_printf(search, ret, "%s/proc/%d/map_files/%llx-%llx", root, pid, low, high);
		if (r == 0 || r == -ESTALE || r == -EPERM || r == -EACCES)
			break;
	}
	return r;
}

/* Without the right to map_files, a process's own program can still be read. */
static int try_exe(struct search *search, int pid, const char *path, struct elf_file *ret)
{
	const char *root = search->places->root;
	char link[4096];
	ssize_t n;

	str_clear(&search->path);
	str_printf(&search->path, "%s/proc/%d/exe", root, pid);
	if (str_status(&search->path) < 0)
		return -ENOMEM;
	n = readlink(str_text(&search->path), link, sizeof(link) - 1);
	if (n < 0)
		return -errno;
	link[n] = '\0';
	cut_deleted(link);
	return strcmp(link, path) == 0 ? try_path(search, ret) : -ENOENT;
}

static int try_build_id_caches(struct search *search, struct elf_file *ret)
{
	const char *root = search->places->root, *home = search->places->home;
	char hex[2 * BUILD_ID_MAX + 1];
	int r;

	if (search->want->size < 2)
		return -ENOENT;
	build_id_hex(search->want, hex);
	r = try_printf(search, ret, "%s/usr/lib/.build-id/%.2s/%s", root, hex, hex + 2);
	for (size_t i = 0; r < 0 && search->places->debug_dirs[i]; i++) {
		const char *dir = search->places->debug_dirs[i];

		r = try_printf(search, ret, "%s%s/.build-id/%.2s/%s/elf", root, dir, hex, hex + 2);
		if (r < 0)
			r = try_printf(search, ret, "%s%s/.build-id/%.2s/%s", root, dir, hex,
				       hex + 2);
	}
	if (r < 0 && home[0])
		r = try_printf(search, ret, "%s%s/.cache/debuginfod_client/%s/executable", root,
			       home, hex);
	return r;
}

static int try_servers(struct search *search, struct elf_file *ret)
{
	CLEANUP_FREE char *path = debuginfod_fetch(search->places->servers, search->want, true);

	return path ? try_printf(search, ret, "%s", path) : -ENOENT;
}

static void explain(const struct search *search, const char *path, struct str *why)
{
	char want[2 * BUILD_ID_MAX + 1], have[2 * BUILD_ID_MAX + 1];

	build_id_hex(search->want, want);
	if (search->differs && search->other.size) {
		build_id_hex(&search->other, have);
		str_printf(why,
			   "%s: the file was replaced since (build id %s, recorded %s); install "
			   "the recorded "
			   "build or its debug symbols",
			   path, have, want);
	} else if (search->differs) {
		str_printf(why,
			   "%s: the file has no build id, recorded %s; it cannot be told whether "
			   "it is the same",
			   path, want);
	} else if (search->deleted && !search->want->size) {
		str_printf(why,
			   "%s: was deleted or replaced while it ran, its build id is not known; "
			   "read the recording while the process lives",
			   path);
	} else {
		int error = search->first_error ? search->first_error : -ENOENT;

		str_printf(why, "%s: %s", path,
			   error == -ENOEXEC ? "not an ELF file" : strerrordesc_np(-error));
		if (search->want->size)
			str_printf(why, ", and no copy of build id %s in the caches", want);
	}
}

/* "[heap]", "//anon", "anon_inode:..." and the like; "/memfd:" and "/SYSV" have at least a
 * map_files entry. */
static bool in_memory(const char *path)
{
	return path[0] == '\0' || path[0] == '[' || (path[0] == '/' && path[1] == '/') ||
	       strncmp(path, "anon_inode:", 11) == 0;
}

static int find_object(struct search *search, const char *path, int pid, struct elf_file *ret)
{
	const char *root = search->places->root;
	/* By its name alone a deleted file cannot be told from what replaced it. */
	bool by_name = !search->deleted || search->want->size > 0;
	int r = -ENOENT;

	if (!in_memory(path)) {
		if (pid > 0 && path[0] == '/') {
			if (by_name)
				r = try_printf(search, ret, "%s/proc/%d/root%s", root, pid, path);
			if (r < 0)
				r = try_map_files(search, pid, path, ret);
			if (r < 0)
				r = try_exe(search, pid, path, ret);
		}
		if (r < 0 && by_name)
			r = try_printf(search, ret, "%s%s", root, path);
	}
	if (r < 0)
		r = try_build_id_caches(search, ret);
	return r < 0 ? try_servers(search, ret) : r;
}

int locate_object(const struct places *places, const struct module_ref *ref, struct elf_file *ret,
		  char **ret_path, struct str *why)
{
	struct search search = {.places = places, .want = &ref->build_id};
	char *path = strdup(ref->path ? ref->path : "");
	int r;

	if (!path)
		return -ENOMEM;
	search.deleted = cut_deleted(path);
	r = find_object(&search, path, ref->pid, ret);
	if (r == 0) {
		r = str_take(&search.path, ret_path);
		if (r < 0)
			elf_close(ret);
	} else if (in_memory(path)) {
		str_printf(why, "%s: memory without a file: there are no symbols for it",
			   path[0] ? path : "[unknown]");
	} else {
		explain(&search, path, why);
	}
	str_fini(&search.path);
	free(path);
	return r;
}

/* A debug file is of the object when it is of the same machine, has the symbols, and proves its
 * origin. */
static bool debug_fits(const struct elf_file *object, const struct build_id *id,
		       const struct elf_file *debug, const uint32_t *crc)
{
	struct build_id have;
	uint32_t sum;

	if (debug->machine != object->machine || debug->is64 != object->is64 ||
	    debug->swap != object->swap)
		return false;
	if (id->size && elf_build_id(debug, &have) == 0)
		return build_id_equal(id, &have);
	return crc && elf_crc32(debug, &sum) == 0 && sum == *crc;
}

static int try_debug(struct str *path, const struct elf_file *object, const struct build_id *id,
		     const uint32_t *crc, struct elf_file *ret)
{
	struct elf_file debug;

	if (str_status(path) < 0 || elf_open(str_text(path), &debug, NULL) < 0)
		return -ENOENT;
	if (!debug_fits(object, id, &debug, crc)) {
		elf_close(&debug);
		return -ESTALE;
	}
	*ret = debug;
	return 0;
}

#define try_debug_printf(path, object, id, crc, ret, ...)        \
	({                                                       \
		str_clear(path);                                 \
		str_printf((path), __VA_ARGS__);                 \
		try_debug((path), (object), (id), (crc), (ret)); \
	})

static int debug_by_build_id(const struct places *places, const struct elf_file *object,
			     const struct build_id *id, struct str *path, struct elf_file *ret)
{
	char hex[2 * BUILD_ID_MAX + 1];
	int r = -ENOENT;

	if (id->size < 2)
		return -ENOENT;
	build_id_hex(id, hex);
	for (size_t i = 0; r < 0 && places->debug_dirs[i]; i++) {
		const char *dir = places->debug_dirs[i];

		r = try_debug_printf(path, object, id, NULL, ret, "%s%s/.build-id/%.2s/%s.debug",
				     places->root, dir, hex, hex + 2);
		if (r < 0)
			r = try_debug_printf(path, object, id, NULL, ret,
					     "%s%s/.build-id/%.2s/%s/debug", places->root, dir, hex,
					     hex + 2);
	}
	if (r < 0 && places->home[0])
		r = try_debug_printf(path, object, id, NULL, ret,
				     "%s%s/.cache/debuginfod_client/%s/debuginfo", places->root,
				     places->home, hex);
	return r;
}

/* Beside the object, in .debug/ beside it, and under each debug directory at the object's own path.
 */
static int debug_by_link(const struct places *places, const struct elf_file *object,
			 const struct build_id *id, const char *object_path, struct str *path,
			 struct elf_file *ret)
{
	const char *slash = strrchr(object_path, '/'), *inner = object_path;
	size_t root_len = strlen(places->root);
	char link[256];
	uint32_t crc;
	int dir_len = slash ? (int)MIN(slash - object_path, 4096) : 0;
	int r;

	if (!slash || elf_debuglink(object, link, &crc) < 0)
		return -ENOENT;
	r = try_debug_printf(path, object, id, &crc, ret, "%.*s/.debug/%s", dir_len, object_path,
			     link);
	if (r < 0 && strcmp(slash + 1, link) != 0)
		r = try_debug_printf(path, object, id, &crc, ret, "%.*s/%s", dir_len, object_path,
				     link);
	/* The path as the process that owns the file sees it. */
	if (strncmp(inner, places->root, root_len) == 0)
		inner += root_len;
	if (strncmp(inner, "/proc/", 6) == 0) {
		const char *after = strstr(inner, "/root/");

		inner = after ? after + 5 : inner;
	}
	dir_len = (int)MAX(0, MIN(slash - inner, 4096));
	for (size_t i = 0; r < 0 && places->debug_dirs[i]; i++)
		r = try_debug_printf(path, object, id, &crc, ret, "%s%s%.*s/%s", places->root,
				     places->debug_dirs[i], dir_len, inner, link);
	return r;
}

static int debug_from_servers(const struct places *places, const struct elf_file *object,
			      const struct build_id *id, struct str *path, struct elf_file *ret)
{
	CLEANUP_FREE char *fetched = debuginfod_fetch(places->servers, id, false);

	return fetched ? try_debug_printf(path, object, id, NULL, ret, "%s", fetched) : -ENOENT;
}

int locate_debug(const struct places *places, const struct elf_file *object,
		 const char *object_path, struct elf_file *ret, char **ret_path)
{
	struct str path = {0};
	struct build_id id = {0};
	int r;

	(void)elf_build_id(object, &id);
	r = debug_by_build_id(places, object, &id, &path, ret);
	if (r < 0)
		r = debug_by_link(places, object, &id, object_path, &path, ret);
	if (r < 0)
		r = debug_from_servers(places, object, &id, &path, ret);
	if (r == 0) {
		r = str_take(&path, ret_path);
		if (r < 0)
			elf_close(ret);
	}
	str_fini(&path);
	return r;
}

int locate_inner_pid(const struct places *places, int pid)
{
	CLEANUP_FREE char *text = NULL;
	char path[4096];
	const char *line;
	size_t size;
	int inner = pid;

	snprintf(path, sizeof(path), "%s/proc/%d/status", places->root, pid);
	if (file_read(path, PROC_FILE_MAX, &text, &size, NULL) < 0)
		return pid;
	line = strstr(text, "\nNSpid:");
	if (!line)
		return pid;
	line += 7;
	for (const char *end = line + strcspn(line, "\n"); line < end;) {
		char *after;
		long value = strtol(line, &after, 10);

		if (after == line || after > end)
			break;
		if (value > 0 && value <= INT32_MAX)
			inner = (int)value;
		line = after;
	}
	return inner;
}
