/* What the header of a recording says, for people and as JSON. */
#pragma once

#include "base/json.h"
#include "base/str.h"
#include "sample/session.h"

/* "# what     text\n", the text without control characters; nothing for NULL and "". */
void view_header_line(struct str *out, const char *what, const char *text);
void view_header_text(const struct session *session, struct str *out);
/* The key "recording" of the open object; what is not known is null. */
void view_header_json(const struct session *session, struct json *json);
