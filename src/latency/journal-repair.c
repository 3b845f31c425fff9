/*
 * The heir's side: undoing what the journals of dead processes tell, and instances that nobody
 * wrote down.
 *
 * A journal is dead when its lock can be taken, belongs to this boot, and is read from a folder
 * that only this user may write. Its paths are still held to the places that a measurement changes,
 * so that a damaged file cannot write elsewhere.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/util.h"
#include "base/vec.h"
#include "latency/journal-internal.h"

#define JOURNAL_MAX_BYTES (1 << 20)

struct repair {
	const char *root;
	unsigned flags;
	struct journal_report *report;
	int error; /* the first failure */
};

static bool allowed(const char *path)
{
	static const char *const folders[] = {"/sys/kernel/tracing/", "/sys/kernel/debug/tracing/",
					      "/sys/devices/system/cpu/", "/proc/sys/",
					      "/dev/cpu_dma_latency"};

	for (size_t i = 0; i < ARRAY_LEN(folders); i++)
		if (str_prefix(path, folders[i], NULL) && !strstr(path, "/../"))
			return true;
	return false;
}

/* Splits a line in place. False: not an entry that may be undone. */
static bool parse_entry(char *line, struct journal_entry *ret)
{
	static const struct {
		const char *word;
		enum journal_kind kind;
		int words;
	} kinds[] = {
		{"value", JOURNAL_VALUE, 3},       {"option", JOURNAL_OPTION, 3},
		{"instance", JOURNAL_INSTANCE, 1}, {"hold", JOURNAL_HOLD, 2},
		{"mount", JOURNAL_MOUNT, 1},
	};
	char *save, *kind = strtok_r(line, " ", &save), *words[3] = {NULL, NULL, NULL};

	for (size_t i = 0; kind && i < ARRAY_LEN(kinds); i++) {
		if (strcmp(kind, kinds[i].word) != 0)
			continue;
		for (int w = 0; w < kinds[i].words; w++) {
			words[w] = strtok_r(NULL, " ", &save);
			if (!words[w])
				return false;
			journal_decode(words[w]);
		}
		*ret = (struct journal_entry){
			.kind = kinds[i].kind, .path = words[0], .old = words[1], .new_ = words[2]};
		return allowed(words[0]);
	}
	return false;
}

static void undo_entry(struct repair *repair, const struct journal_entry *entry)
{
	struct journal_report *report = repair->report;
	int r;

	r = journal_undo(repair->root, entry, repair->flags & JOURNAL_DRY);
	if (r < 0) {
		report->failed++;
		repair->error = repair->error ? repair->error : r;
		str_printf(&report->text, "%s cannot be put back: %s\n", entry->path,
			   strerrordesc_np(-r));
	} else if (r == JOURNAL_CHANGED_SINCE) {
		report->kept++;
	} else if (r == JOURNAL_RESTORED) {
		report->restored++;
		switch (entry->kind) {
		case JOURNAL_INSTANCE:
			str_printf(&report->text, "%s removed\n", entry->path);
			break;
		case JOURNAL_MOUNT:
			str_printf(&report->text, "%s unmounted\n", entry->path);
			break;
		case JOURNAL_OPTION:
			str_printf(&report->text, "%s: %s%s again\n", entry->path,
				   entry->new_[0] == '1' ? "" : "NO_", entry->old);
			break;
		default:
			str_printf(&report->text, "%s: %s again\n", entry->path, entry->old);
		}
	}
}

/* Whether everything it told could be undone. */
static bool undo_file(struct repair *repair, char *text)
{
	char boot[64], head_boot[64] = "", *line, *end;
	unsigned before = repair->report->failed;
	VEC(struct journal_entry) entries = {0};

	end = strchr(text, '\n');
	if (!end || sscanf(text, "culprit-journal 1 %63s", head_boot) != 1)
		return true; /* died before it changed anything */
	journal_boot_id(repair->root, boot, sizeof(boot));
	if (strcmp(head_boot, boot[0] ? boot : "-") != 0)
		return true; /* of another boot: the kernel has forgotten all of it */
	repair->report->files++;
	for (line = end + 1; (end = strchr(line, '\n')) != NULL; line = end + 1) {
		struct journal_entry entry;

		*end = '\0';
		if (!parse_entry(line, &entry))
			continue;
		if (vec_push(&entries, entry) < 0) {
			repair->error = -ENOMEM;
			repair->report->failed++;
			break;
		}
	}
	for (size_t i = entries.len; i-- > 0;)
		undo_entry(repair, &entries.data[i]);
	vec_fini(&entries);
	return repair->report->failed == before;
}

static void repair_file(struct repair *repair, int folder, const char *name)
{
	CLEANUP_CLOSE int fd = openat(folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	CLEANUP_FREE char *text = NULL;
	size_t size;

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return; /* its owner lives, or another repairs it now */
	if (fd_read_all(fd, JOURNAL_MAX_BYTES, &text, &size) < 0)
		return;
	if (undo_file(repair, text) && !(repair->flags & JOURNAL_DRY))
		unlinkat(folder, name, 0);
}

static int repair_files(struct repair *repair, struct err *err)
{
	char path[PATH_MAX];
	int r = journal_folder(repair->root, false, path, sizeof(path), err);
	DIR *folder;

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	folder = opendir(path);
	if (!folder)
		return errno == ENOENT
			       ? 0
			       : err_set(err, -errno, "%s: %s", path, strerrordesc_np(errno));
	for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
		size_t len = strlen(entry->d_name);

		if (len > 8 && strcmp(entry->d_name + len - 8, ".journal") == 0)
			repair_file(repair, dirfd(folder), entry->d_name);
	}
	closedir(folder);
	if (!(repair->flags & JOURNAL_DRY))
		rmdir(path); /* unless somebody's journal stands there */
	return 0;
}

/* --- instances without a journal ------------------------------------------------------------- */

/* Is a process whose program is called rtla (or by one of its tools' names) running? */
static bool rtla_runs(const char *root)
{
	char path[PATH_MAX];
	bool runs = false;
	DIR *proc;

	if (journal_path(root, "/proc", path, sizeof(path)) < 0)
		return true;
	proc = opendir(path);
	if (!proc)
		return true;
	for (struct dirent *entry; !runs && (entry = readdir(proc)) != NULL;) {
		char comm[64], name[JOURNAL_PATH_BYTES], *text;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(name, sizeof(name), "/proc/%s/comm", entry->d_name);
		if (journal_read(root, name, comm, sizeof(comm)) < 0)
			continue;
		text = journal_value_of(comm);
		runs = strcmp(text, "rtla") == 0 || strcmp(text, "timerlat") == 0 ||
		       strcmp(text, "osnoise") == 0 || strcmp(text, "hwnoise") == 0;
	}
	closedir(proc);
	return runs;
}

static bool of_rtla(const char *name)
{
	static const char *const names[] = {"timerlat_top",   "timerlat_hist", "timerlat_aa",
					    "timerlat_trace", "osnoise_top",   "osnoise_hist",
					    "osnoise_trace"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/* "culprit-BOOT-PID[-...]" of a process that is no more. */
static bool of_dead_culprit(const char *root, const char *name)
{
	char path[JOURNAL_PATH_BYTES], full[PATH_MAX];
	const char *rest;
	char *end;
	long pid;

	if (!str_prefix(name, "culprit-", &rest) || !(rest = strchr(rest, '-')))
		return false;
	pid = strtol(rest + 1, &end, 10);
	if (pid <= 0 || (*end != '\0' && *end != '-'))
		return false;
	snprintf(path, sizeof(path), "/proc/%ld", pid);
	return journal_path(root, path, full, sizeof(full)) == 0 && access(full, F_OK) < 0 &&
	       errno == ENOENT;
}

/* A busy one is in use after all, by a process that this one cannot see (another PID namespace). */
static void sweep_instance(struct repair *repair, const char *path)
{
	char full[PATH_MAX];

	if (journal_path(repair->root, path, full, sizeof(full)) < 0)
		return;
	if (!(repair->flags & JOURNAL_DRY) && rmdir(full) < 0) {
		if (errno != EBUSY && errno != ENOENT) {
			repair->report->failed++;
			repair->error = repair->error ? repair->error : -errno;
		}
		return;
	}
	repair->report->instances++;
	str_printf(&repair->report->text, "%s removed\n", path);
}

static void sweep_folder(struct repair *repair, const char *tracefs)
{
	char path[JOURNAL_PATH_BYTES * 2], full[PATH_MAX];
	int rtla = -1;
	DIR *folder;

	snprintf(path, sizeof(path), "%s/instances", tracefs);
	if (journal_path(repair->root, path, full, sizeof(full)) < 0 || !(folder = opendir(full)))
		return;
	for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
		bool stale = of_dead_culprit(repair->root, entry->d_name);

		if (!stale && (repair->flags & JOURNAL_RTLA) && of_rtla(entry->d_name)) {
			if (rtla < 0)
				rtla = rtla_runs(repair->root);
			stale = !rtla;
		}
		if (!stale)
			continue;
		snprintf(path, sizeof(path), "%s/instances/%s", tracefs, entry->d_name);
		sweep_instance(repair, path);
	}
	closedir(folder);
}

int journal_repair(const char *root, unsigned flags, struct journal_report *ret, struct err *err)
{
	struct repair repair = {.root = root ? root : "", .flags = flags, .report = ret};
	int r;

	memset(ret, 0, sizeof(*ret));
	r = repair_files(&repair, err);
	if (r < 0)
		return r;
	sweep_folder(&repair, "/sys/kernel/tracing");
	r = str_status(&ret->text);
	if (r == 0 && repair.error)
		r = err_set(err, repair.error, "not everything could be put back: %s",
			    strerrordesc_np(-repair.error));
	return r;
}

void journal_report_fini(struct journal_report *report)
{
	str_fini(&report->text);
}
