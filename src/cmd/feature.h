/* What is built in, for 'culprit version', and the head that every JSON document has. */
#pragma once

#include <stddef.h>

#include "base/json.h"

struct feature {
	const char *name, *purpose;
	const char *(*version)(void);
};

extern const struct feature features[];
extern const size_t features_len;

/* Opens the top object: {"culprit": VERSION, "schema": 1, "kind": kind, ... */
void json_document(struct json *json, const char *kind);
