/* Putting one entry back, and the small readers and writers around it: system calls only. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/util.h"
#include "latency/journal-internal.h"

int journal_path(const char *root, const char *path, char *buf, size_t size)
{
	size_t root_len = strlen(root), len = strlen(path);

	if (root_len + len >= size)
		return -ENAMETOOLONG;
	memcpy(buf, root, root_len);
	memcpy(buf + root_len, path, len + 1);
	return 0;
}

int journal_read(const char *root, const char *path, char *buf, size_t size)
{
	char full[PATH_MAX];
	size_t len = 0;
	int r = journal_path(root, path, full, sizeof(full)), fd;

	if (r < 0)
		return r;
	fd = open(full, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (len < size - 1) {
		ssize_t n = read(fd, buf + len, size - 1 - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			r = -errno;
			close(fd);
			return r;
		}
		if (n == 0)
			break;
		len += (size_t)n;
	}
	close(fd);
	buf[len] = '\0';
	return 0;
}

/* One write: the kernel takes each write() as a whole value. */
int journal_write(const char *root, const char *path, const char *value)
{
	char full[PATH_MAX];
	size_t len = strlen(value);
	int r = journal_path(root, path, full, sizeof(full)), fd;
	ssize_t n;

	if (r < 0)
		return r;
	fd = open(full, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	do
		/* An empty value cannot be written by an empty write. */
		n = len ? write(fd, value, len) : write(fd, "\n", 1);
	while (n < 0 && errno == EINTR);
	r = n < 0 ? -errno : n < (ssize_t)len ? -EIO : 0;
	close(fd);
	return r;
}

char *journal_value_of(char *text)
{
	char *open = strchr(text, '['), *close = open ? strchr(open, ']') : NULL;
	size_t len;

	if (close) {
		*close = '\0';
		return open + 1;
	}
	while (isspace((unsigned char)*text))
		text++;
	len = strlen(text);
	while (len > 0 && isspace((unsigned char)text[len - 1]))
		text[--len] = '\0';
	return text;
}

bool journal_same_value(const char *a, const char *b)
{
	char *a_end, *b_end;
	long long a_number, b_number;

	if (strcmp(a, b) == 0)
		return true;
	if (*a == '\0' || *b == '\0')
		return false;
	a_number = strtoll(a, &a_end, 10);
	b_number = strtoll(b, &b_end, 10);
	return *a_end == '\0' && *b_end == '\0' && a_number == b_number;
}

int journal_option_state(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = list; *at;) {
		size_t word = strcspn(at, " \t\n");

		if (word == len && memcmp(at, name, len) == 0)
			return 1;
		if (word == len + 3 && memcmp(at, "NO_", 3) == 0 && memcmp(at + 3, name, len) == 0)
			return 0;
		at += word;
		at += strspn(at, " \t\n");
	}
	return -1;
}

/* An instance is busy while somebody still reads from it, and for a moment after a reader died. */
static int remove_instance(const char *root, const char *path)
{
	static const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
	char full[PATH_MAX];
	int r = journal_path(root, path, full, sizeof(full));

	for (int attempt = 0; r == 0 && attempt < 100; attempt++) {
		if (rmdir(full) == 0)
			return JOURNAL_RESTORED;
		if (errno == ENOENT)
			return JOURNAL_NOTHING;
		if (errno != EBUSY)
			return -errno;
		nanosleep(&pause, NULL);
	}
	return r < 0 ? r : -EBUSY;
}

/* Whoever works in it now keeps it. */
static int unmount(const char *root, const char *path)
{
	char full[PATH_MAX];
	int r = journal_path(root, path, full, sizeof(full));

	if (r < 0)
		return r;
	if (umount(full) == 0)
		return JOURNAL_RESTORED;
	return errno == EBUSY ? JOURNAL_CHANGED_SINCE : errno == EINVAL ? JOURNAL_NOTHING : -errno;
}

static int undo_value(const char *root, const struct journal_entry *entry, bool dry)
{
	char text[JOURNAL_VALUE_BYTES], *now;
	int r = journal_read(root, entry->path, text, sizeof(text));

	if (r == -ENOENT || r == -ENODEV)
		return JOURNAL_NOTHING; /* a CPU or module that has gone */
	if (r < 0)
		return r;
	now = journal_value_of(text);
	if (journal_same_value(now, entry->old))
		return JOURNAL_NOTHING;
	if (!journal_same_value(now, entry->new_))
		return JOURNAL_CHANGED_SINCE;
	r = dry ? 0 : journal_write(root, entry->path, entry->old);
	return r < 0 ? r : JOURNAL_RESTORED;
}

static int undo_option(const char *root, const struct journal_entry *entry, bool dry)
{
	char text[JOURNAL_VALUE_BYTES], word[128] = "NO_";
	bool was = entry->new_[0] == '1';
	size_t len = strlen(entry->old);
	int r = journal_read(root, entry->path, text, sizeof(text)), state;

	if (r == -ENOENT)
		return JOURNAL_NOTHING;
	if (r < 0)
		return r;
	state = journal_option_state(text, entry->old);
	if (state < 0 || state == was)
		return JOURNAL_NOTHING;
	if (len + 4 > sizeof(word))
		return -EINVAL;
	memcpy(word + (was ? 0 : 3), entry->old, len + 1);
	r = dry ? 0 : journal_write(root, entry->path, word);
	return r < 0 ? r : JOURNAL_RESTORED;
}

int journal_undo(const char *root, const struct journal_entry *entry, bool dry)
{
	char full[PATH_MAX];

	switch (entry->kind) {
	case JOURNAL_VALUE:
		return undo_value(root, entry, dry);
	case JOURNAL_OPTION:
		return undo_option(root, entry, dry);
	case JOURNAL_INSTANCE:
		if (!dry)
			return remove_instance(root, entry->path);
		return journal_path(root, entry->path, full, sizeof(full)) == 0 &&
				       access(full, F_OK) == 0
			       ? JOURNAL_RESTORED
			       : JOURNAL_NOTHING;
	case JOURNAL_HOLD:
		return JOURNAL_NOTHING; /* ended with the process */
	case JOURNAL_MOUNT:
		return dry ? JOURNAL_RESTORED : unmount(root, entry->path);
	}
	return -EINVAL;
}

void journal_encode(struct str *out, const char *word)
{
	if (*word == '\0')
		str_puts(out, "%00"); /* decodes to nothing */
	for (; *word; word++) {
		if ((unsigned char)*word <= ' ' || *word == '%' || *word == 127)
			str_printf(out, "%%%02x", (unsigned char)*word);
		else
			str_putc(out, *word);
	}
}

void journal_decode(char *word)
{
	char *to = word;

	for (; *word; word++) {
		char digits[3] = {0};

		if (*word == '%' && isxdigit((unsigned char)word[1]) &&
		    isxdigit((unsigned char)word[2])) {
			memcpy(digits, word + 1, 2);
			*to++ = (char)strtol(digits, NULL, 16);
			word += 2;
		} else {
			*to++ = *word;
		}
	}
	*to = '\0';
}

/* Only a folder of our own that nobody else may write: its contents are written into the kernel. */
static int trusted(const char *folder, struct err *err)
{
	struct stat st;

	if (lstat(folder, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return err_set(err, -EPERM,
			       "%s is not a folder that only this user may write: remove it",
			       folder);
	return 0;
}

/* Root's journals lie where they end with the boot; a user's where the session keeps such things.
 */
int journal_folder(const char *root, bool write, char *buf, size_t size, struct err *err)
{
	const char *user = geteuid() == 0 ? NULL : getenv("XDG_RUNTIME_DIR");
	int r = 0;

	if ((size_t)snprintf(buf, size, "%s%s/culprit", root,
			     user && user[0] == '/' ? user : "/run") >= size)
		return -ENAMETOOLONG;
	if (write)
		r = dir_make(buf, 0700, err);
	return r < 0 ? r : trusted(buf, err);
}

void journal_boot_id(const char *root, char *buf, size_t size)
{
	char *value;

	if (journal_read(root, "/proc/sys/kernel/random/boot_id", buf, size) < 0)
		buf[0] = '\0';
	value = journal_value_of(buf);
	memmove(buf, value, strlen(value) + 1);
}
