/*
 * The wire format of protocol buffers (https://protobuf.dev/programming-guides/encoding/), both
 * ways.
 *
 * Reading: a message is a struct reader; positions count from the start of the outermost bytes in
 * nested messages too, so that errors name a byte of the whole input. Groups are refused.
 */
#pragma once

#include "base/bytes.h"
#include "base/err.h"
#include "base/str.h"

enum proto_type {
	PROTO_VARINT = 0,
	PROTO_FIXED64 = 1,
	PROTO_BYTES = 2,
	PROTO_FIXED32 = 5,
};

struct proto_field {
	uint32_t number;
	enum proto_type type;
	size_t start;    /* position of the tag */
	uint64_t value;  /* numbers */
	size_t pos, end; /* PROTO_BYTES: where the content lies */
};

/* 1 and the next field, 0 at the end of the message, -EBADMSG with the position worded. */
int proto_next(struct reader *r, struct proto_field *ret, struct err *err);
/* The content of a PROTO_BYTES field as a message of its own. */
struct reader proto_message(const struct reader *outer, const struct proto_field *field);
/*
 * Walks a repeated number that may be packed or not: 1 and the next value of the field, 0 when
 * there is no more. *cursor starts as field->pos.
 */
int proto_next_number(const struct reader *outer, const struct proto_field *field, size_t *cursor,
		      uint64_t *ret, struct err *err);

/* Writing. Failure of memory stays in out->status. */
void proto_put_varint(struct str *out, uint64_t value);
/* A field of the type varint; 0 is written as well. */
void proto_put_number(struct str *out, uint32_t number, uint64_t value);
/* The same, left out when 0, as proto3 does. */
void proto_put_nonzero(struct str *out, uint32_t number, uint64_t value);
void proto_put_bytes(struct str *out, uint32_t number, const void *bytes, size_t len);
