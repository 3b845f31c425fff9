/* The text of -e into events of the set. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/util.h"
#include "cmd/stat.h"

static int tracepoint_id(const char *name, struct perf_event_attr *attr)
{
	static const char *const roots[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	const char *colon = strchr(name, ':');

	for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
		CLEANUP_FREE char *text = NULL;
		char path[256];
		size_t size;

		snprintf(path, sizeof(path), "%s/events/%.*s/%s/id", roots[i], (int)(colon - name),
			 name, colon + 1);
		if (file_read(path, 64, &text, &size, NULL) < 0)
			continue;
		attr->type = PERF_TYPE_TRACEPOINT;
		attr->config = strtoull(text, NULL, 10);
		return 0;
	}
	return -ENOENT;
}

int stat_add_event_text(struct stat_job *job, const char *text, struct err *err)
{
	CLEANUP_FREE char *copy = strdup(text);
	char *save = NULL;

	for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		struct count_event event = {.scale = 1, .user_group = -1, .name = word};
		char *colon = strchr(word, ':');
		size_t len = colon ? (size_t)(colon - word) : strlen(word);
		CLEANUP_FREE char *base = strndup(word, len);

		if (stat_known_event(base, &event.attr) == 0) {
			for (const char *m = colon ? colon + 1 : ""; *m; m++)
				if (*m == 'u')
					event.attr.exclude_kernel = event.attr.exclude_hv = 1;
				else if (*m == 'k')
					event.attr.exclude_user = event.attr.exclude_hv = 1;
				else if (*m == 'D')
					event.attr.pinned = 1;
		} else if (!colon || tracepoint_id(word, &event.attr) < 0) {
			return err_set(err, -EINVAL, "-e: unknown event '%s'", word);
		}
		event.kind = count_kind_of(&event.attr);
		if (count_set_add(&job->set, &event) < 0)
			return -ENOMEM;
	}
	return 0;
}
