/*
 * The owner's side: write down, change, put back.
 *
 * Undoing uses nothing but system calls and memory that is already there, so that the handler of a
 * fatal signal can do it. All journals of the process hang in one list for that handler; the list
 * is changed by the thread that measures only.
 */
#include "latency/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/util.h"
#include "base/vec.h"
#include "latency/journal-internal.h"

struct journal {
	const char *root;
	int fd; /* of the file, locked; -1: not made yet */
	char file[PATH_MAX];
	pid_t owner;
	VEC(struct journal_entry) entries;
	VEC(int) held;
	void (*on_restore)(void *arg);
	void *on_restore_arg;
	struct journal *next;
};

static struct journal *journals;

int journal_new(const char *root, struct journal **ret)
{
	struct journal *journal = calloc(1, sizeof(*journal));

	if (!journal)
		return -ENOMEM;
	journal->root = root ? root : "";
	journal->fd = -1;
	journal->owner = getpid();
	journal->next = journals;
	journals = journal;
	*ret = journal;
	return 0;
}

void journal_free(struct journal *journal)
{
	if (!journal)
		return;
	journal_restore(journal, NULL);
	for (struct journal **at = &journals; *at; at = &(*at)->next)
		if (*at == journal) {
			*at = journal->next;
			break;
		}
	if (journal->fd >= 0)
		close(journal->fd);
	vec_for_each(&journal->entries, entry) {
		free(entry->path);
		free(entry->old);
		free(entry->new_);
	}
	vec_fini(&journal->entries);
	vec_fini(&journal->held);
	free(journal);
}

/* --- writing down ---------------------------------------------------------------------------- */

/* Field 22 of /proc/self/stat: clock ticks after boot; the command name may hold anything. */
static uint64_t start_time(const char *root)
{
	char stat[1024], *at;
	unsigned long long ticks = 0;

	if (journal_read(root, "/proc/self/stat", stat, sizeof(stat)) < 0)
		return 0;
	at = strrchr(stat, ')');
	if (!at || sscanf(at + 1,
			  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
			  "%*d %*d %llu",
			  &ticks) != 1)
		return 0;
	return ticks;
}

/* A new file that only this process has, locked. Whoever repairs may unlink it between open and
 * lock; then another is made. */
static int create_locked(const char *folder, char *path, size_t size)
{
	static unsigned number;

	for (unsigned attempt = 0; attempt < 100; attempt++) {
		struct stat st;
		int fd;

		if ((size_t)snprintf(path, size, "%s/%d-%u.journal", folder, (int)getpid(),
				     number++) >= size)
			return -ENAMETOOLONG;
		fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			  0600);
		if (fd < 0 && errno == EEXIST)
			continue;
		if (fd < 0)
			return -errno;
		if (flock(fd, LOCK_EX) == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0)
			return fd;
		close(fd);
	}
	return -EEXIST;
}

static int append(struct journal *journal, struct str *line)
{
	int r = str_status(line);

	if (r < 0)
		return r;
	r = fd_write_all(journal->fd, line->data, line->len);
	if (r == 0 && fdatasync(journal->fd) < 0 && errno != EINVAL)
		r = -errno;
	return r;
}

static int open_file(struct journal *journal, struct err *err)
{
	char folder[PATH_MAX], boot[64];
	struct str line = {0};
	int r;

	if (journal->fd >= 0)
		return 0;
	/* Whoever restores last removes the folder: it may go between the two steps. */
	for (unsigned attempt = 0; attempt < 10; attempt++) {
		r = journal_folder(journal->root, true, folder, sizeof(folder), err);
		if (r < 0 && r != -ENOENT)
			return r;
		r = create_locked(folder, journal->file, sizeof(journal->file));
		if (r != -ENOENT)
			break;
	}
	if (r < 0)
		return err_set(err, r, "%s: %s", folder, strerrordesc_np(-r));
	journal->fd = r;
	journal_boot_id(journal->root, boot, sizeof(boot));
	str_printf(&line, "culprit-journal 1 %s %d %" PRIu64 "\n", boot[0] ? boot : "-",
		   (int)getpid(), start_time(journal->root));
	r = append(journal, &line);
	str_fini(&line);
	return r < 0 ? err_set(err, r, "%s: %s", journal->file, strerrordesc_np(-r)) : 0;
}

/* Remembers an entry, on disk first. The strings are copied. */
static int write_down(struct journal *journal, enum journal_kind kind, const char *path,
		      const char *old, const char *new_, struct err *err)
{
	static const char *const words[] = {"value", "option", "instance", "hold", "mount"};
	struct journal_entry entry = {.kind = kind};
	struct str line = {0};
	int r = open_file(journal, err);

	if (r < 0)
		return err_wrap(err, r, "nothing is changed without a journal");
	entry.path = strdup(path);
	entry.old = strdup(old ? old : "");
	entry.new_ = strdup(new_ ? new_ : "");
	str_puts(&line, words[kind]);
	str_putc(&line, ' ');
	journal_encode(&line, path);
	for (int i = 0; i < 2; i++) {
		const char *word = i ? new_ : old;

		if (!word)
			continue;
		str_putc(&line, ' ');
		journal_encode(&line, word);
	}
	str_putc(&line, '\n');
	r = entry.path && entry.old && entry.new_ ? append(journal, &line) : -ENOMEM;
	if (r == 0)
		r = vec_push(&journal->entries, entry);
	str_fini(&line);
	if (r < 0) {
		free(entry.path);
		free(entry.old);
		free(entry.new_);
		return err_set(err, r, "%s: %s", journal->file, strerrordesc_np(-r));
	}
	return 0;
}

/* --- changing -------------------------------------------------------------------------------- */

int journal_set(struct journal *journal, const char *path, const char *value, struct err *err)
{
	char text[JOURNAL_VALUE_BYTES], copy[JOURNAL_VALUE_BYTES], *old, *now;
	int r = journal_read(journal->root, path, text, sizeof(text));

	if (r < 0)
		return err_set(err, r, "%s: %s", path, strerrordesc_np(-r));
	old = journal_value_of(text);
	if (journal_same_value(old, value))
		return 0;
	r = write_down(journal, JOURNAL_VALUE, path, old, value, err);
	if (r < 0)
		return r;
	r = journal_write(journal->root, path, value);
	if (r < 0)
		return err_set(err, r, "%s: cannot change %s to %s: %s", path, old, value,
			       strerrordesc_np(-r));
	/* The kernel may have its own way to write the same: that is what undoing will find. */
	if (journal_read(journal->root, path, copy, sizeof(copy)) < 0)
		return 0;
	now = journal_value_of(copy);
	return journal_same_value(now, value)
		       ? 0
		       : write_down(journal, JOURNAL_VALUE, path, old, now, err);
}

int journal_set_option(struct journal *journal, const char *path, const char *name, bool on,
		       struct err *err)
{
	char list[JOURNAL_VALUE_BYTES], word[128];
	int r = journal_read(journal->root, path, list, sizeof(list)), state;

	if (r < 0)
		return err_set(err, r, "%s: %s", path, strerrordesc_np(-r));
	state = journal_option_state(list, name);
	if (state < 0)
		return err_set(err, -ENOENT, "%s has no %s: this kernel is too old for it", path,
			       name);
	if (state == on)
		return 0;
	r = write_down(journal, JOURNAL_OPTION, path, name, state ? "1" : "0", err);
	if (r < 0)
		return r;
	snprintf(word, sizeof(word), "%s%s", on ? "" : "NO_", name);
	r = journal_write(journal->root, path, word);
	return r < 0 ? err_set(err, r, "%s: %s: %s", path, word, strerrordesc_np(-r)) : 0;
}

int journal_make_instance(struct journal *journal, const char *path, struct err *err)
{
	char full[PATH_MAX];
	int r = journal_path(journal->root, path, full, sizeof(full));

	if (r == 0)
		r = write_down(journal, JOURNAL_INSTANCE, path, NULL, NULL, err);
	if (r < 0)
		return r;
	if (mkdir(full, 0700) < 0) {
		r = -errno;
		journal->entries.data[journal->entries.len - 1].done = true;
		return err_set(err, r, "%s: %s", path, strerrordesc_np(-r));
	}
	return 0;
}

int journal_mount(struct journal *journal, const char *type, const char *path, struct err *err)
{
	char full[PATH_MAX];
	int r = journal_path(journal->root, path, full, sizeof(full));

	if (r == 0)
		r = write_down(journal, JOURNAL_MOUNT, path, NULL, NULL, err);
	if (r == 0 && mount(type, full, type, 0, NULL) < 0) {
		r = -errno;
		journal->entries.data[journal->entries.len - 1].done = true;
		return err_set(err, r, "%s cannot be mounted on %s: %s", type, path,
			       strerrordesc_np(-r));
	}
	return r;
}

int journal_lock(struct journal *journal, const char *path, struct err *err)
{
	char full[PATH_MAX];
	int r = journal_path(journal->root, path, full, sizeof(full)), fd;

	if (r < 0)
		return r;
	fd = open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, -errno, "%s: %s", path, strerrordesc_np(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		close(fd);
		return err_set(err, -EBUSY,
			       "another culprit is using the kernel's tracers: their settings are "
			       "the whole machine's, so only one can run at a time");
	}
	r = vec_push(&journal->held, fd);
	if (r < 0)
		close(fd);
	return r;
}

int journal_hold_dma_latency(struct journal *journal, unsigned value_us, struct err *err)
{
	static const char path[] = "/dev/cpu_dma_latency";
	char full[PATH_MAX], text[32];
	int32_t value = (int32_t)value_us;
	int fd, r;

	snprintf(text, sizeof(text), "%u", value_us);
	r = journal_path(journal->root, path, full, sizeof(full));
	if (r == 0)
		r = write_down(journal, JOURNAL_HOLD, path, NULL, text, err);
	if (r < 0)
		return r;
	fd = open(full, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, -errno, "%s: %s", path, strerrordesc_np(errno));
	r = fd_write_all(fd, &value, sizeof(value));
	if (r == 0)
		r = vec_push(&journal->held, fd);
	if (r < 0) {
		close(fd);
		return err_set(err, r, "%s: %s", path, strerrordesc_np(-r));
	}
	return 0;
}

static int limit_idle_cpu(struct journal *journal, unsigned cpu, int deepest, unsigned *states,
			  struct err *err)
{
	char full[PATH_MAX], path[JOURNAL_PATH_BYTES];

	for (int state = 0;; state++, (*states)++) {
		int r;

		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%u/cpuidle/state%d/disable", cpu, state);
		r = journal_path(journal->root, path, full, sizeof(full));
		if (r < 0 || access(full, F_OK) < 0)
			return r;
		if (state <= deepest)
			continue;
		r = journal_set(journal, path, "1", err);
		if (r < 0)
			return r;
	}
}

int journal_limit_idle(struct journal *journal, const struct cpuset *cpus, int deepest,
		       struct err *err)
{
	unsigned states = 0;

	cpuset_for_each(cpus, cpu) {
		int r = limit_idle_cpu(journal, (unsigned)cpu, deepest, &states, err);

		if (r < 0)
			return r;
	}
	if (states == 0)
		return err_set(err, -ENOENT,
			       "no idle states to choose from: the CPUs have no "
			       "/sys/devices/system/cpu/cpuN/cpuidle (no cpuidle driver; in a "
			       "virtual machine the hypervisor idles)");
	return 0;
}

/* --- putting back ---------------------------------------------------------------------------- */

void journal_on_restore(struct journal *journal, void (*fn)(void *arg), void *arg)
{
	journal->on_restore = fn;
	journal->on_restore_arg = arg;
}

static void undo_own(struct journal *journal, size_t i, size_t *failed, size_t *ret_first,
		     int *ret_error)
{
	struct journal_entry *entry = &journal->entries.data[i];
	int r = entry->done ? 0 : journal_undo(journal->root, entry, false);

	entry->done = r >= 0;
	if (r < 0 && (*failed)++ == 0) {
		*ret_first = i;
		*ret_error = r;
	}
}

/* Async-signal-safe. The number of entries that could not be undone; *ret_first is one of them.
 * Locks are held until all is as it was; only unmounting needs them gone. */
static size_t restore_quietly(struct journal *journal, size_t *ret_first, int *ret_error)
{
	size_t failed = 0;

	if (journal->owner != getpid())
		return 0; /* a child between fork and exec */
	if (journal->on_restore)
		journal->on_restore(journal->on_restore_arg);
	journal->on_restore = NULL;
	for (size_t i = journal->entries.len; i-- > 0;)
		if (journal->entries.data[i].kind != JOURNAL_MOUNT)
			undo_own(journal, i, &failed, ret_first, ret_error);
	for (size_t i = 0; i < journal->held.len; i++)
		close(journal->held.data[i]);
	journal->held.len = 0;
	for (size_t i = journal->entries.len; i-- > 0;)
		if (journal->entries.data[i].kind == JOURNAL_MOUNT)
			undo_own(journal, i, &failed, ret_first, ret_error);
	if (failed == 0 && journal->fd >= 0)
		unlink(journal->file);
	return failed;
}

int journal_restore(struct journal *journal, struct err *err)
{
	size_t first = 0;
	int error = 0;

	if (restore_quietly(journal, &first, &error) > 0)
		return err_set(err, error, "%s cannot be put back: %s",
			       journal->entries.data[first].path, strerrordesc_np(-error));
	if (journal->fd >= 0) {
		char *name = strrchr(journal->file, '/');

		close(journal->fd);
		journal->fd = -1;
		*name = '\0';
		rmdir(journal->file); /* unless others have theirs there */
	}
	vec_for_each(&journal->entries, entry) {
		free(entry->path);
		free(entry->old);
		free(entry->new_);
	}
	journal->entries.len = 0;
	return 0;
}

static void restore_all(void)
{
	size_t first;
	int error;

	for (struct journal *journal = journals; journal; journal = journal->next)
		restore_quietly(journal, &first, &error);
}

static void on_fatal_signal(int signo)
{
	restore_all();
	signal(signo, SIG_DFL);
	raise(signo);
}

void journal_guard(void)
{
	static const int signals[] = {SIGHUP, SIGINT,  SIGQUIT, SIGILL,  SIGABRT, SIGFPE,
				      SIGBUS, SIGSEGV, SIGTERM, SIGXCPU, SIGXFSZ, SIGALRM};
	static bool guarding;

	if (!guarding)
		atexit(restore_all);
	guarding = true;
	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		struct sigaction action, ours = {.sa_handler = on_fatal_signal};

		if (sigaction(signals[i], NULL, &action) == 0 && action.sa_handler == SIG_DFL)
			sigaction(signals[i], &ours, NULL);
	}
}
