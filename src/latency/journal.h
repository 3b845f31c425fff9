/*
 * The journal of knobs: what a measurement changes in the system, and how it is put back.
 *
 * Before a change its old value is appended to a file of this process in /run/culprit (for users
 * without that folder: $XDG_RUNTIME_DIR/culprit), so that whoever comes next can undo the changes
 * of a process that was killed. Nothing is changed that could not be written down first.
 *
 *	culprit-journal 1 BOOT_ID PID START_TIME
 *	value PATH OLD NEW
 *	option PATH NAME 0|1		what NAME was in a list of switches
 *	instance PATH			a tracefs instance that was made
 *	hold PATH VALUE			a file that is held open; nothing to undo
 *	mount PATH			a file system that was mounted
 *
 * Words are percent-encoded. A last line without its newline was never followed by a change. The
 * owner holds a lock on the file while it lives, so a file that can be locked belongs to the dead.
 * Undoing goes backwards, and only where the value still is the one that was set: what somebody
 * else has changed since is theirs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpuset.h"
#include "base/err.h"
#include "base/str.h"

struct journal;

/*
 * root is put before every path ("" the machine itself; borrowed). The file is made with the first
 * entry: a measurement that changes nothing leaves nothing. A process may have several.
 */
int journal_new(const char *root, struct journal **ret);
/* Restores, then frees. NULL is fine. */
void journal_free(struct journal *journal);

/* Sets a file to value; does nothing when it already is. Of a list with one choice in brackets
 * ("[local] global") the choice is the value. */
int journal_set(struct journal *journal, const char *path, const char *value, struct err *err);
/* Turns one switch of a list of switches on or off ("OSNOISE_WORKLOAD", off: "NO_..."). -ENOENT
 * when the list has no such switch. */
int journal_set_option(struct journal *journal, const char *path, const char *name, bool on,
		       struct err *err);
/* Makes a tracefs instance, a folder that is removed at the end. */
int journal_make_instance(struct journal *journal, const char *path, struct err *err);
/* Mounts a file system of the kernel (tracefs), unmounted at the end unless others use it then. */
int journal_mount(struct journal *journal, const char *type, const char *path, struct err *err);
/* Until the journal is restored this is the only culprit that uses the kernel's tracers: locks
 * their folder. -EBUSY when another does. */
int journal_lock(struct journal *journal, const char *path, struct err *err);
/* Holds /dev/cpu_dma_latency at most at value microseconds until the end. */
int journal_hold_dma_latency(struct journal *journal, unsigned value_us, struct err *err);
/* Disables idle states deeper than state number deepest (-1: all of them) on the CPUs. -ENOENT
 * when there are no idle states to choose from. */
int journal_limit_idle(struct journal *journal, const struct cpuset *cpus, int deepest,
		       struct err *err);

/*
 * Called before restoring, to close what keeps an instance busy. From a fatal signal's handler it
 * is called too: it may use nothing but async-signal-safe functions. One per journal; NULL: none.
 */
void journal_on_restore(struct journal *journal, void (*fn)(void *arg), void *arg);
/* Puts everything back, last change first. Returns the first failure, after trying all; what
 * failed stays in the file. */
int journal_restore(struct journal *journal, struct err *err);

/*
 * From now on all journals of this process are also restored by exit() and by signals that would
 * kill it (those still at their default action when this is called).
 */
void journal_guard(void);

enum journal_repair_flags {
	JOURNAL_DRY = 1 << 0,  /* only tell */
	JOURNAL_RTLA = 1 << 1, /* also remove instances that a dead rtla left */
};

struct journal_report {
	unsigned files;    /* journals of dead processes */
	unsigned restored; /* changes undone (JOURNAL_DRY: that would be) */
	unsigned kept;     /* values that somebody else has changed since */
	unsigned failed;
	unsigned instances; /* removed ones without a journal: stale, or rtla's */
	struct str text;    /* a line for each of these, ending in a newline */
};

/*
 * Undoes what dead processes left behind. 0 also when there was nothing; -EACCES and the like when
 * something may not be put back by this user (report says what).
 */
int journal_repair(const char *root, unsigned flags, struct journal_report *ret, struct err *err);
void journal_report_fini(struct journal_report *report);
