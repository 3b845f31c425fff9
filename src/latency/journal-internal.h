/* What the two halves of the journal share: entries, the folder, putting one entry back. */
#pragma once

#include "latency/journal.h"

#define JOURNAL_VALUE_BYTES 1024
#define JOURNAL_PATH_BYTES  512

enum journal_kind {
	JOURNAL_VALUE,
	JOURNAL_OPTION,
	JOURNAL_INSTANCE,
	JOURNAL_HOLD,
	JOURNAL_MOUNT,
};

struct journal_entry {
	enum journal_kind kind;
	bool done;
	char *path;       /* without the root */
	char *old, *new_; /* OPTION: name, and "0" or "1" as it was; HOLD: new_ alone */
};

enum journal_outcome {
	JOURNAL_RESTORED,
	JOURNAL_CHANGED_SINCE, /* not ours any more */
	JOURNAL_NOTHING,       /* already as it was, or gone */
};

/* Async-signal-safe. An outcome, or a negative errno. dry: only tells what it would do. */
int journal_undo(const char *root, const struct journal_entry *entry, bool dry);

/* The value of a knob's text, in place: the choice in brackets, or the text without blanks around.
 */
char *journal_value_of(char *text);
/* Equal as text or as numbers. */
bool journal_same_value(const char *a, const char *b);
/* root + path into buf, async-signal-safe. */
int journal_path(const char *root, const char *path, char *buf, size_t size);
/* Reads at most size - 1 bytes. Async-signal-safe. */
int journal_read(const char *root, const char *path, char *buf, size_t size);
int journal_write(const char *root, const char *path, const char *value);
/* -1 not in the list, else whether the switch is on. */
int journal_option_state(const char *list, const char *name);

void journal_encode(struct str *out, const char *word);
/* In place. */
void journal_decode(char *word);
/* The folder of journals with the root in front; write: made when missing. -errno. */
int journal_folder(const char *root, bool write, char *buf, size_t size, struct err *err);
/* The boot id, "" unknown. */
void journal_boot_id(const char *root, char *buf, size_t size);
