#include "sample/synth.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/util.h"
#include "base/vec.h"
#include "sample/bpf-info.h"
#include "sample/bpf-loaded.h"
#include "symbols/symbols.h"

#define PROC_TEXT_MAX (64U << 20)
#define RECORD_MAX    UINT16_MAX

struct synth_files {
	struct u64_map ids; /* hash of device and inode -> index into list */
	VEC(struct build_id) list;
};

/* The fields of a MMAP2 record behind the header. */
struct mmap2_body {
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	union {
		struct {
			uint32_t maj, min;
			uint64_t ino, ino_generation;
		} file;
		struct {
			uint8_t size, reserved[3], bytes[20];
		} build_id;
	};
	uint32_t prot, flags;
};

/* The sample_id trailer: fields in the kernel's order, zero but for pid, tid and the event's id. */
static size_t put_trailer(const struct synth *synth, char *at, uint32_t pid, uint32_t tid)
{
	char *start = at;
	uint32_t ids[2] = {pid, tid};

	if (synth->sample_type & PERF_SAMPLE_TID) {
		memcpy(at, ids, sizeof(ids));
		at += sizeof(ids);
	}
	if (synth->sample_type & PERF_SAMPLE_TIME)
		at = (char *)memset(at, 0, 8) + 8;
	if (synth->sample_type & PERF_SAMPLE_ID)
		at = (char *)memcpy(at, &synth->event_id, 8) + 8;
	if (synth->sample_type & PERF_SAMPLE_STREAM_ID)
		at = (char *)memset(at, 0, 8) + 8;
	if (synth->sample_type & PERF_SAMPLE_CPU)
		at = (char *)memset(at, 0, 8) + 8;
	if (synth->sample_type & PERF_SAMPLE_IDENTIFIER)
		at = (char *)memcpy(at, &synth->event_id, 8) + 8;
	return (size_t)(at - start);
}

/* header | body | text, padded to 8 | trailer */
static int put_record(struct synth *synth, uint32_t type, uint16_t misc, const void *body,
		      size_t body_size, const char *text, const uint32_t ids[2])
{
	char record[sizeof(struct perf_event_header) + 128 + 4096 + 64];
	size_t text_size = text ? strnlen(text, 4095) + 1 : 0,
	       whole = ALIGN_UP(text_size, (size_t)8);
	struct perf_event_header header = {.type = type, .misc = misc};
	char *at = record + sizeof(header);

	memcpy(at, body, body_size);
	at += body_size;
	memset(at, 0, whole);
	if (text)
		memcpy(at, text, text_size - 1);
	at += whole;
	at += put_trailer(synth, at, ids[0], ids[1]);
	header.size = (uint16_t)(at - record);
	memcpy(record, &header, sizeof(header));
	return synth->put(synth->arg, record, header.size);
}

static int put_comm(struct synth *synth, uint32_t pid, uint32_t tid, const char *comm)
{
	uint32_t ids[2] = {pid, tid};

	return put_record(synth, PERF_RECORD_COMM, 0, ids, sizeof(ids), comm, ids);
}

static int put_fork(struct synth *synth, uint32_t pid, uint32_t ppid, uint32_t tid)
{
	struct {
		uint32_t pid, ppid, tid, ptid;
		uint64_t time;
	} body = {pid, tid == pid ? ppid : pid, tid, tid == pid ? ppid : pid, 0};
	uint32_t ids[2] = {pid, tid};

	/* FORK_EXEC: its mappings follow and are not its parent's. */
	return put_record(synth, PERF_RECORD_FORK, PERF_RECORD_MISC_FORK_EXEC, &body, sizeof(body),
			  NULL, ids);
}

/*
 * Through the process's own root: it may live in another mount namespace. What was deleted or
 * replaced is still behind map_files, which takes privilege, and exe.
 */
static int read_build_id(const struct synth *synth, const struct mmap2_body *map, const char *path,
			 struct build_id *ret)
{
	static const char suffix[] = " (deleted)";
	size_t len = strlen(path);
	char full[4096 + 64], link[4096];
	ssize_t n;
	int r = -ENOENT;

	if (len < sizeof(suffix) || strcmp(path + len - (sizeof(suffix) - 1), suffix) != 0) {
		snprintf(full, sizeof(full), "%s/%u/root%s", synth->proc, map->pid, path);
		r = build_id_read(full, ret, NULL);
	}
	if (r < 0) {
		snprintf(full, sizeof(full), "%s/%u/map_files/%llx-%llx", synth->proc, map->pid,
			 (unsigned long long)map->addr, (unsigned long long)(map->addr + map->len));
		r = build_id_read(full, ret, NULL);
	}
	if (r < 0) {
		snprintf(full, sizeof(full), "%s/%u/exe", synth->proc, map->pid);
		n = readlink(full, link, sizeof(link));
		if (n == (ssize_t)len && memcmp(link, path, len) == 0)
			r = build_id_read(full, ret, NULL);
	}
	return r;
}

/* The build id of a mapped file, read once per device and inode. */
static struct build_id file_build_id(struct synth *synth, const struct mmap2_body *map,
				     const char *path)
{
	uint64_t key = hash_pair((uint64_t)map->file.maj << 32 | map->file.min, map->file.ino);
	struct build_id id = {0};
	uint32_t index;

	if (!synth->files)
		synth->files = calloc(1, sizeof(*synth->files));
	if (!synth->files || path[0] != '/')
		return id;
	if (u64_map_get(&synth->files->ids, key, &index))
		return synth->files->list.data[index];
	if (read_build_id(synth, map, path, &id) < 0)
		id.size = 0;
	index = (uint32_t)synth->files->list.len;
	if (vec_push(&synth->files->list, id) == 0)
		u64_map_put(&synth->files->ids, key, index);
	return id;
}

static int put_mmap2(struct synth *synth, struct mmap2_body *map, const char *path)
{
	uint32_t ids[2] = {map->pid, map->tid};
	uint16_t misc = PERF_RECORD_MISC_USER;

	if (!(map->prot & PROT_EXEC))
		misc |= PERF_RECORD_MISC_MMAP_DATA;
	if (synth->build_ids) {
		struct build_id id = file_build_id(synth, map, path);

		if (id.size > 0) {
			misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
			memset(&map->build_id, 0, sizeof(map->build_id));
			map->build_id.size = id.size;
			memcpy(map->build_id.bytes, id.bytes, id.size);
		}
	}
	return put_record(synth, PERF_RECORD_MMAP2, misc, map, sizeof(*map), path, ids);
}

/* "start-end perms offset major:minor inode   path"; false: not understood. */
static bool parse_map_line(char *line, struct mmap2_body *map, const char **ret_path)
{
	unsigned long long start, end, offset, inode;
	unsigned major, minor;
	char perms[5];
	int used = 0;

	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end, perms, &offset, &major,
		   &minor, &inode, &used) < 7)
		return false;
	map->addr = start;
	map->len = end - start;
	map->pgoff = offset;
	map->file.maj = major;
	map->file.min = minor;
	map->file.ino = inode;
	map->file.ino_generation = 0;
	map->prot = (perms[0] == 'r' ? PROT_READ : 0U) | (perms[1] == 'w' ? PROT_WRITE : 0U) |
		    (perms[2] == 'x' ? PROT_EXEC : 0U);
	map->flags = perms[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
	*ret_path = line[used] ? line + used : "//anon";
	return true;
}

static int synth_maps(struct synth *synth, pid_t pid)
{
	CLEANUP_FREE char *text = NULL;
	char path[64], *line, *next;
	size_t size;
	int r;

	snprintf(path, sizeof(path), "%s/%d/maps", synth->proc, (int)pid);
	if (file_read(path, PROC_TEXT_MAX, &text, &size, NULL) < 0)
		return 0; /* ended, or not ours to read */
	for (line = text; *line; line = next) {
		struct mmap2_body map = {.pid = (uint32_t)pid, .tid = (uint32_t)pid};
		const char *name;

		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		/* "r-xp" stands at a fixed place only after the addresses: a cheap look before
		 * parsing. */
		if (!synth->data_maps && !strstr(line, "x"))
			continue;
		if (!parse_map_line(line, &map, &name) ||
		    !(map.prot & PROT_EXEC || synth->data_maps))
			continue;
		r = put_mmap2(synth, &map, name);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool read_line(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, buf, size - 1) : -1;

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return true;
}

/* The parent from /proc/PID/stat: behind the name's last ')'. */
static uint32_t parent_of(const struct synth *synth, pid_t pid)
{
	char path[64], stat[512], *at;

	snprintf(path, sizeof(path), "%s/%d/stat", synth->proc, (int)pid);
	if (!read_line(path, stat, sizeof(stat)))
		return 0;
	at = strrchr(stat, ')');
	return at && strlen(at) > 4 ? (uint32_t)strtoul(at + 4, NULL, 10) : 0;
}

static int synth_thread(struct synth *synth, pid_t pid, pid_t tid, uint32_t ppid)
{
	char path[96], comm[64];
	int r;

	snprintf(path, sizeof(path), "%s/%d/task/%d/comm", synth->proc, (int)pid, (int)tid);
	if (!read_line(path, comm, sizeof(comm)))
		return 0;
	r = put_fork(synth, (uint32_t)pid, ppid, (uint32_t)tid);
	return r < 0 ? r : put_comm(synth, (uint32_t)pid, (uint32_t)tid, comm);
}

int synth_process(struct synth *synth, pid_t pid)
{
	struct dirent *entry;
	uint32_t ppid;
	char path[64];
	DIR *tasks;
	int r;

	snprintf(path, sizeof(path), "%s/%d/task", synth->proc, (int)pid);
	tasks = opendir(path);
	if (!tasks)
		return errno == ENOENT ? -ESRCH : -errno;
	ppid = parent_of(synth, pid);
	r = synth_thread(synth, pid, pid, ppid);
	if (r == 0)
		r = synth_maps(synth, pid);
	while (r == 0 && (entry = readdir(tasks)) != NULL) {
		pid_t tid = atoi(entry->d_name);

		if (tid > 0 && tid != pid)
			r = synth_thread(synth, pid, tid, ppid);
	}
	closedir(tasks);
	return r;
}

int synth_all(struct synth *synth)
{
	DIR *proc = opendir(synth->proc);
	struct dirent *entry;
	int r = 0;

	if (!proc)
		return -errno;
	while (r >= 0 && (entry = readdir(proc)) != NULL) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		r = synth_process(synth, atoi(entry->d_name));
		if (r == -ESRCH || r == -EACCES || r == -EPERM)
			r = 0;
	}
	closedir(proc);
	return r;
}

static bool notes_build_id(const char *path, struct build_id *ret)
{
	CLEANUP_FREE char *notes = NULL;
	size_t size;

	return file_read(path, 1 << 16, &notes, &size, NULL) == 0 &&
	       build_id_from_notes(notes, size, ret) == 0;
}

static int put_kernel_map(struct synth *synth, uint64_t start, uint64_t size, uint64_t pgoff,
			  const char *name, const struct build_id *id)
{
	struct mmap2_body map = {
		.pid = UINT32_MAX, .addr = start, .len = size, .pgoff = pgoff, .prot = PROT_EXEC};
	uint16_t misc = PERF_RECORD_MISC_KERNEL;
	uint32_t ids[2] = {UINT32_MAX, 0};

	if (id->size > 0) {
		misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
		map.build_id.size = id->size;
		memcpy(map.build_id.bytes, id->bytes, id->size);
	}
	return put_record(synth, PERF_RECORD_MMAP2, misc, &map, sizeof(map), name, ids);
}

/* "name size refs deps state 0xaddress": addresses are 0 where kptr_restrict hides them. */
static int synth_modules(struct synth *synth)
{
	CLEANUP_FREE char *text = NULL;
	char path[128], *line, *next;
	size_t size;
	int r = 0;

	snprintf(path, sizeof(path), "%s/modules", synth->proc);
	if (file_read(path, PROC_TEXT_MAX, &text, &size, NULL) < 0)
		return 0;
	for (line = text; r == 0 && *line; line = next) {
		unsigned long long bytes, address;
		struct build_id id = {0};
		char name[64], object[80];

		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		if (sscanf(line, "%63s %llu %*s %*s %*s %llx", name, &bytes, &address) < 3 ||
		    address == 0)
			continue;
		snprintf(path, sizeof(path), "%s/module/%s/notes/.note.gnu.build-id", synth->sys,
			 name);
		if (!notes_build_id(path, &id))
			id.size = 0;
		snprintf(object, sizeof(object), "[%s]", name);
		r = put_kernel_map(synth, address, bytes, 0, object, &id);
	}
	return r;
}

/*
 * The start of the kernel's text: the address of _text, or _stext. It stands in the first lines of
 * kallsyms (symbols are listed by address there), so a small read does.
 */
static uint64_t kernel_text_start(const struct synth *synth)
{
	char path[64], head[65536];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/kallsyms", synth->proc);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, head, sizeof(head) - 1);
	close(fd);
	for (char *line = head; n > 0 && line < head + n;) {
		char *end = memchr(line, '\n', (size_t)(head + n - line)), *space, *stop;
		uint64_t address;

		if (!end)
			break;
		*end = '\0';
		address = strtoull(line, &stop, 16);
		space = *stop == ' ' && stop[1] ? strchr(stop + 1, ' ') : NULL;
		if (space && (strcmp(space + 1, "_text") == 0 || strcmp(space + 1, "_stext") == 0))
			return address;
		line = end + 1;
	}
	return 0;
}

/*
 * How much of the memory from there on is the kernel's text, as /proc/iomem says it ("start-end :
 * Kernel code", zeros for those who may not know). perf gives code beyond it, as BPF programs are,
 * to no one when the text is said to go on to the end of memory; so it is said only where the size
 * is not known.
 */
static uint64_t kernel_text_size(const struct synth *synth, uint64_t start)
{
	CLEANUP_FREE char *text = NULL;
	unsigned long long first, last;
	char path[64], *at;
	size_t size;

	snprintf(path, sizeof(path), "%s/iomem", synth->proc);
	if (file_read(path, PROC_TEXT_MAX, &text, &size, NULL) < 0)
		return UINT64_MAX - start;
	at = strstr(text, " : Kernel code");
	while (at && at > text && at[-1] != '\n')
		at--;
	if (!at || sscanf(at, " %llx-%llx", &first, &last) != 2 || last <= first ||
	    last - first >= UINT64_MAX - start)
		return UINT64_MAX - start;
	return last - first + 1;
}

int synth_kernel(struct synth *synth)
{
	uint64_t start = kernel_text_start(synth);
	struct build_id id = {0};
	char path[64];
	int r;

	if (start == 0)
		return 0; /* hidden by kptr_restrict: said by the recorder */
	snprintf(path, sizeof(path), "%s/kernel/notes", synth->sys);
	if (!notes_build_id(path, &id))
		id.size = 0;
	/* Modules come after and take their ranges out of this one. */
	r = put_kernel_map(synth, start, kernel_text_size(synth, start), start,
			   "[kernel.kallsyms]_text", &id);
	return r < 0 ? r : synth_modules(synth);
}

static int put_bpf_function(void *arg, const struct bpf_info *info, uint32_t index,
			    const char *name)
{
	struct bpf_function function = bpf_info_function(info, index);
	struct {
		uint64_t address;
		uint32_t size;
		uint16_t type, flags;
	} symbol = {function.start, (uint32_t)function.size, PERF_RECORD_KSYMBOL_TYPE_BPF, 0};
	struct {
		uint16_t type, flags;
		uint32_t id;
		uint8_t tag[BPF_TAG_BYTES];
	} event = {.type = PERF_BPF_EVENT_PROG_LOAD, .id = info->id};
	struct synth *synth = arg;
	uint32_t ids[2] = {0};
	int r = put_record(synth, PERF_RECORD_KSYMBOL, 0, &symbol, sizeof(symbol), name, ids);

	if (r < 0 || index > 0)
		return r;
	memcpy(event.tag, info->tag, sizeof(event.tag));
	return put_record(synth, PERF_RECORD_BPF_EVENT, 0, &event, sizeof(event), NULL, ids);
}

int synth_bpf(struct synth *synth, const struct bpf_loaded *loaded)
{
	return bpf_loaded_functions(loaded, put_bpf_function, synth);
}

void synth_fini(struct synth *synth)
{
	if (!synth->files)
		return;
	u64_map_fini(&synth->files->ids);
	vec_fini(&synth->files->list);
	free(synth->files);
	synth->files = NULL;
}
