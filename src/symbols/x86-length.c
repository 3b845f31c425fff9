#include "symbols/x86-length.h"

#include <errno.h>
#include <stdbool.h>

#include "base/bytes.h"

enum {
	PLAIN = 0,
	MODRM = 1,
	IMM8 = 2,
	IMMZ = 4, /* 4 bytes, 2 with the operand-size prefix */
	REL32 = 8,
	IMM16 = 16,
	BAD = 128,
};

static unsigned one_byte(uint8_t op)
{
	if (op < 0x40)
		return (op & 7) < 4 ? MODRM : (op & 7) == 4 ? IMM8 : (op & 7) == 5 ? IMMZ : BAD;
	if (op < 0x60)
		return PLAIN;
	switch (op) {
	case 0x60 ... 0x62:
	case 0x82:
	case 0x9a:
	case 0xce:
	case 0xd4 ... 0xd6:
	case 0xea:
		return BAD;
	case 0x63:
	case 0x84 ... 0x8f:
	case 0xd0 ... 0xd3:
	case 0xd8 ... 0xdf:
	case 0xf6 ... 0xf7: /* the immediate depends on ModRM */
	case 0xfe ... 0xff:
		return MODRM;
	case 0x68:
	case 0xa9:
		return IMMZ;
	case 0x69:
	case 0x81:
	case 0xc7:
		return MODRM | IMMZ;
	case 0x6a:
	case 0x70 ... 0x7f:
	case 0xa8:
	case 0xb0 ... 0xb7:
	case 0xcd:
	case 0xe0 ... 0xe7:
	case 0xeb:
		return IMM8;
	case 0x6b:
	case 0x80:
	case 0x83:
	case 0xc0 ... 0xc1:
	case 0xc6:
		return MODRM | IMM8;
	case 0xb8 ... 0xbf: /* 8 bytes with REX.W */
		return IMMZ;
	case 0xc2:
	case 0xca:
		return IMM16;
	case 0xc8:
		return IMM16 | IMM8;
	case 0xe8 ... 0xe9:
		return REL32;
	default:
		return PLAIN;
	}
}

static unsigned two_bytes(uint8_t op)
{
	switch (op) {
	case 0x05 ... 0x09:
	case 0x0b:
	case 0x0e:
	case 0x30 ... 0x37:
	case 0x77:
	case 0xa0 ... 0xa2:
	case 0xa8 ... 0xaa:
	case 0xc8 ... 0xcf:
		return PLAIN;
	case 0x80 ... 0x8f:
		return REL32;
	case 0x70 ... 0x73:
	case 0xa4:
	case 0xac:
	case 0xba:
	case 0xc2:
	case 0xc4 ... 0xc6:
		return MODRM | IMM8;
	default:
		return MODRM;
	}
}

static unsigned shape(uint8_t map, uint8_t op)
{
	switch (map & 15) {
	case 0:
		return one_byte(op);
	case 1:
		return two_bytes(op);
	case 3:
		return MODRM | IMM8;
	default:
		return MODRM;
	}
}

/* ModRM, SIB and displacement. */
static uint8_t skip_modrm(struct reader *r)
{
	uint8_t modrm = reader_u8(r), mod = modrm >> 6, rm = modrm & 7;
	uint8_t base = rm;

	if (mod == 3)
		return modrm;
	if (rm == 4)
		base = reader_u8(r) & 7;
	if (mod == 1)
		reader_skip(r, 1);
	else if (mod == 2 || (mod == 0 && base == 5))
		reader_skip(r, 4);
	return modrm;
}

static bool is_prefix(uint8_t byte)
{
	switch (byte) {
	case 0x26:
	case 0x2e:
	case 0x36:
	case 0x3e:
	case 0x64 ... 0x67:
	case 0xf0:
	case 0xf2:
	case 0xf3:
		return true;
	default:
		return false;
	}
}

/* The opcode with its map; escapes and VEX are prefixes of a kind. */
static void read_opcode(struct reader *r, uint8_t first, struct x86_instruction *ret)
{
	if (first == 0x0f) {
		ret->map = 1;
		ret->opcode = reader_u8(r);
		if (ret->opcode == 0x38 || ret->opcode == 0x3a) {
			ret->map = ret->opcode == 0x38 ? 2 : 3;
			ret->opcode = reader_u8(r);
		}
	} else if (first == 0xc5) {
		reader_skip(r, 1);
		ret->map = 16 + 1;
		ret->opcode = reader_u8(r);
	} else if (first == 0xc4) {
		ret->map = (uint8_t)(16 + (reader_u8(r) & 15));
		reader_skip(r, 1);
		ret->opcode = reader_u8(r);
	} else if (first == 0x62) {
		ret->map = (uint8_t)(16 + (reader_u8(r) & 7));
		reader_skip(r, 2);
		ret->opcode = reader_u8(r);
	} else {
		ret->opcode = first;
	}
}

int x86_decode(const uint8_t *code, size_t size, struct x86_instruction *ret)
{
	struct reader r = reader_make(code, size < X86_LENGTH_MAX ? size : X86_LENGTH_MAX, false);
	struct x86_instruction in = {0};
	bool half = false, short_address = false, group;
	unsigned kind;
	uint8_t byte;

	for (byte = reader_u8(&r); is_prefix(byte) && !r.failed; byte = reader_u8(&r)) {
		half |= byte == 0x66;
		short_address |= byte == 0x67;
	}
	if ((byte & 0xf0) == 0x40) {
		in.rex = byte;
		byte = reader_u8(&r);
	}
	in.opcode_at = (uint8_t)(r.pos - !r.failed);
	read_opcode(&r, byte, &in);
	kind = shape(in.map, in.opcode);
	if (kind & BAD)
		return -EBADMSG;
	if (kind & MODRM)
		in.modrm = skip_modrm(&r);
	/* test has an immediate, the others of its group have none */
	group = in.map == 0 && (in.opcode == 0xf6 || in.opcode == 0xf7) && (in.modrm & 0x30) == 0;
	if (group)
		kind |= in.opcode == 0xf6 ? IMM8 : IMMZ;
	if (kind & IMM16)
		reader_skip(&r, 2);
	if (kind & IMM8)
		reader_skip(&r, 1);
	if (kind & REL32)
		reader_skip(&r, 4);
	if (kind & IMMZ) {
		bool wide = in.map == 0 && (in.opcode & 0xf8) == 0xb8 && in.rex & 8;

		reader_skip(&r, wide ? 8 : half && !(in.rex & 8) ? 2 : 4);
	}
	if (in.map == 0 && in.opcode >= 0xa0 && in.opcode <= 0xa3)
		reader_skip(&r, short_address ? 4 : 8);
	if (r.failed)
		return -EBADMSG;
	in.length = (uint8_t)r.pos;
	*ret = in;
	return 0;
}
