#include "base/protobuf.h"

#include <errno.h>

static int damaged(const struct reader *r, size_t pos, struct err *err)
{
	return err_set(err, -EBADMSG, "%s at byte %zu",
		       r->fail_pos >= r->size ? "truncated" : "bad number", pos);
}

/* A tag or a number: the position of failure is that of its first byte. */
static int next_varint(struct reader *r, uint64_t *ret, struct err *err)
{
	size_t pos = r->pos;
	uint64_t value = reader_uleb(r);

	if (r->failed)
		return damaged(r, pos, err);
	*ret = value;
	return 0;
}

int proto_next(struct reader *r, struct proto_field *ret, struct err *err)
{
	struct proto_field field = {.start = r->pos};
	uint64_t tag = 0, len = 0;
	int code;

	if (reader_left(r) == 0)
		return 0;
	code = next_varint(r, &tag, err);
	if (code < 0)
		return code;
	if (tag >> 3 == 0 || tag >> 32 != 0)
		return err_set(err, -EBADMSG, "bad field number at byte %zu", field.start);
	field.number = (uint32_t)(tag >> 3);
	field.pos = r->pos;
	switch (tag & 7) {
	case PROTO_VARINT:
		code = next_varint(r, &field.value, err);
		if (code < 0)
			return code;
		break;
	case PROTO_FIXED64:
		field.value = reader_u64(r);
		break;
	case PROTO_FIXED32:
		field.value = reader_u32(r);
		break;
	case PROTO_BYTES:
		code = next_varint(r, &len, err);
		if (code < 0)
			return code;
		if (len > reader_left(r))
			return err_set(err, -EBADMSG,
				       "field %u at byte %zu says %llu bytes, only %zu are left",
				       field.number, field.start, (unsigned long long)len,
				       reader_left(r));
		field.pos = r->pos;
		reader_skip(r, (size_t)len);
		break;
	default:
		return err_set(err, -EBADMSG, "field %u at byte %zu has the unknown wire type %u",
			       field.number, field.start, (unsigned)(tag & 7));
	}
	if (r->failed)
		return err_set(err, -EBADMSG, "truncated at byte %zu", field.start);
	field.type = (enum proto_type)(tag & 7);
	field.end = r->pos;
	*ret = field;
	return 1;
}

struct reader proto_message(const struct reader *outer, const struct proto_field *field)
{
	struct reader inner = reader_make(outer->data, field->end, outer->swap);

	inner.pos = field->pos;
	return inner;
}

int proto_next_number(const struct reader *outer, const struct proto_field *field, size_t *cursor,
		      uint64_t *ret, struct err *err)
{
	struct reader r = proto_message(outer, field);
	int code;

	if (*cursor >= field->end)
		return 0;
	if (field->type == PROTO_VARINT) {
		*cursor = field->end;
		*ret = field->value;
		return 1;
	}
	if (field->type != PROTO_BYTES)
		return err_set(err, -EBADMSG, "field %u at byte %zu is not a number", field->number,
			       field->start);
	r.pos = *cursor;
	code = next_varint(&r, ret, err);
	if (code < 0)
		return code;
	*cursor = r.pos;
	return 1;
}

void proto_put_varint(struct str *out, uint64_t value)
{
	uint8_t bytes[10];
	size_t len = 0;

	for (; value >= 0x80; value >>= 7)
		bytes[len++] = (uint8_t)(value | 0x80);
	bytes[len++] = (uint8_t)value;
	str_append(out, bytes, len);
}

void proto_put_number(struct str *out, uint32_t number, uint64_t value)
{
	proto_put_varint(out, (uint64_t)number << 3 | PROTO_VARINT);
	proto_put_varint(out, value);
}

void proto_put_nonzero(struct str *out, uint32_t number, uint64_t value)
{
	if (value != 0)
		proto_put_number(out, number, value);
}

void proto_put_bytes(struct str *out, uint32_t number, const void *bytes, size_t len)
{
	proto_put_varint(out, (uint64_t)number << 3 | PROTO_BYTES);
	proto_put_varint(out, len);
	str_append(out, bytes, len);
}
