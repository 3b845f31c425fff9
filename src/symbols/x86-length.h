/*
 * How long an x86-64 instruction is: prefixes, opcode, ModRM, displacement, immediate (Intel SDM
 * volume 2, chapter 2 and the opcode maps of appendix A). Nothing else of it is known.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define X86_LENGTH_MAX 15

struct x86_instruction {
	uint8_t length, opcode_at; /* of the first opcode byte, behind prefixes and REX */
	uint8_t rex;               /* 0: none */
	uint8_t map;               /* 0: one byte, 1: 0F, 2: 0F 38, 3: 0F 3A; VEX and EVEX: +16 */
	uint8_t opcode, modrm;     /* modrm: 0 when there is none */
};

/* 0 or -EBADMSG: cut, or not an instruction of 64-bit mode. */
int x86_decode(const uint8_t *code, size_t size, struct x86_instruction *ret);
