/*
 * Rules read from the code itself, for x86-64 functions that nothing describes (a C library built
 * without unwind tables, assembly): from the function's start to the address the instructions are
 * followed that move the stack pointer or save rbp and rbx. A branch ahead takes the state along to
 * its target; behind a return or a jump holds what was carried there, else what held before the
 * epilogue began.
 *
 * Functions begin at symbols; without those where direct calls lead, and behind the padding that
 * follows a function. What cannot be followed (the stack realigned, a switch of stacks) gives no
 * rule.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "symbols/unwind-internal.h"
#include "symbols/x86-length.h"

#define TEXT_MAX     (16u << 20)
#define FUNCTION_MAX (64u << 10)
#define BRANCHES_MAX 128
#define SP           4 /* in ModRM */
#define BP           5

struct code_start {
	uint64_t vaddr, end; /* end 0: as far as the next one */
};

struct unwind_code {
	struct elf_bytes text;
	uint64_t vaddr;
	VEC(struct code_start) starts;
};

struct stack_state {
	int32_t height;             /* CFA - rsp; 8 at the first instruction */
	int32_t frame;              /* CFA - rbp when rbp is the frame pointer, else 0 */
	int32_t saved_bp, saved_bx; /* CFA - where they are, 0: not saved */
	bool known;
};

struct branch {
	uint64_t target;
	struct stack_state state;
};

struct follow {
	const struct unwind_code *code;
	uint64_t at;
	struct stack_state now, body; /* body: before the epilogue */
	bool unreachable, in_epilogue, after_call;
	struct branch *branches; /* BRANCHES_MAX, of the caller */
	size_t count;
};

static int compare_starts(const void *a, const void *b)
{
	const struct code_start *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return x->end < y->end ? 1 : x->end > y->end ? -1 : 0; /* with a size first */
}

static int add_symbols(struct unwind_code *code, const struct elf_file *elf, const char *name)
{
	const struct elf_section *section = elf_section_named(elf, name);
	struct elf_bytes bytes = {0};
	struct reader r;
	int status = 0;

	if (!section || elf_section_bytes(elf, section, &bytes) < 0)
		return 0;
	r = elf_reader(elf, &bytes);
	while (status == 0 && reader_left(&r) >= 24) {
		struct code_start start;
		uint8_t info;

		reader_skip(&r, 4);
		info = reader_u8(&r);
		reader_skip(&r, 3);
		start.vaddr = reader_u64(&r);
		start.end = start.vaddr + reader_u64(&r);
		if (start.end == start.vaddr)
			start.end = 0;
		if ((info & 15) == STT_FUNC && start.vaddr - code->vaddr < code->text.size)
			status = vec_push(&code->starts, start);
	}
	elf_bytes_fini(&bytes);
	return status;
}

/* Where direct calls lead. */
static int add_call_targets(struct unwind_code *code)
{
	const uint8_t *text = code->text.data;
	struct x86_instruction in;
	int status = 0;

	for (size_t i = 0; status == 0 && i < code->text.size; i += in.length) {
		int32_t offset;
		uint64_t target;

		if (x86_decode(text + i, code->text.size - i, &in) < 0)
			in.length = 1; /* data between functions */
		else if (in.map == 0 && in.opcode == 0xe8) {
			memcpy(&offset, text + i + in.length - 4, sizeof(offset));
			target = code->vaddr + i + in.length + (uint64_t)(int64_t)offset;
			if (target - code->vaddr < code->text.size)
				status = vec_push(&code->starts, ((struct code_start){target, 0}));
		}
	}
	return status;
}

int unwind_code_new(const struct elf_file *elf, struct unwind_code **ret)
{
	const struct elf_segment *segment = NULL;
	struct unwind_code *code;
	int r;

	for (uint32_t i = 0; i < elf->nsegments && !segment; i++)
		if (elf->segments[i].type == PT_LOAD && elf->segments[i].flags & PF_X)
			segment = &elf->segments[i];
	if (!segment || segment->filesz > TEXT_MAX || elf->machine != EM_X86_64)
		return -ENOTSUP;
	code = calloc(1, sizeof(*code));
	if (!code)
		return -ENOMEM;
	code->vaddr = segment->vaddr;
	r = elf_read(elf, segment->offset, segment->filesz, &code->text);
	if (r == 0)
		r = add_symbols(code, elf, ".symtab");
	if (r == 0 && code->starts.len == 0)
		r = add_symbols(code, elf, ".dynsym");
	if (r == 0 && !elf_section_named(elf, ".symtab"))
		r = add_call_targets(code);
	if (r < 0) {
		unwind_code_free(code);
		return r;
	}
	if (code->starts.len > 1)
		qsort(code->starts.data, code->starts.len, sizeof(*code->starts.data),
		      compare_starts);
	*ret = code;
	return 0;
}

void unwind_code_free(struct unwind_code *code)
{
	if (!code)
		return;
	elf_bytes_fini(&code->text);
	vec_fini(&code->starts);
	free(code);
}

static int64_t displacement(const uint8_t *at, size_t size)
{
	int32_t word;

	if (size == 1)
		return (int8_t)*at;
	memcpy(&word, at, sizeof(word));
	return word;
}

static void push(struct follow *f, int reg)
{
	f->in_epilogue = false;
	f->now.height += 8;
	if (reg == BP && !f->now.saved_bp)
		f->now.saved_bp = f->now.height;
	if (reg == 3 && !f->now.saved_bx)
		f->now.saved_bx = f->now.height;
}

static void pop(struct follow *f, int reg)
{
	if (reg == BP && f->now.saved_bp == f->now.height)
		f->now.saved_bp = f->now.frame = 0;
	if (reg == 3 && f->now.saved_bx == f->now.height)
		f->now.saved_bx = 0;
	f->now.height -= 8;
}

static void begin_epilogue(struct follow *f)
{
	if (!f->in_epilogue)
		f->body = f->now;
	f->in_epilogue = true;
}

/* add, sub, and, mov or lea with rsp as the destination. */
static void move_sp(struct follow *f, const struct x86_instruction *in, const uint8_t *bytes)
{
	uint8_t modrm = in->modrm, rm = modrm & 7, reg = modrm >> 3 & 7;
	size_t last = in->opcode == 0x81 ? 4 : 1;
	int64_t value = displacement(bytes + in->length - last, last);

	if ((in->opcode == 0x83 || in->opcode == 0x81) && modrm >> 6 == 3 && rm == SP &&
	    !(in->rex & 1)) {
		if (reg == 0)
			begin_epilogue(f);
		f->in_epilogue &= reg == 0;
		if (reg == 0)
			f->now.height -= (int32_t)value;
		else if (reg == 5)
			f->now.height += (int32_t)value;
		else if (reg != 7)
			f->now.known = f->now.frame != 0; /* realigned: rbp tells */
	} else if ((in->opcode == 0x89 && modrm == 0xe5 && !(in->rex & 5)) ||
		   (in->opcode == 0x8b && modrm == 0xec && !(in->rex & 5))) { /* rbp = rsp */
		f->now.frame = f->now.height;
	} else if ((in->opcode == 0x89 && modrm == 0xec && !(in->rex & 5)) ||
		   (in->opcode == 0x8b && modrm == 0xe5 && !(in->rex & 5))) { /* rsp = rbp */
		begin_epilogue(f);
		f->now.known &= f->now.frame != 0;
		f->now.height = f->now.frame;
	} else if (in->opcode == 0x8d && reg == SP && !(in->rex & 4)) {
		last = modrm >> 6 == 1 ? 1 : 4;
		value = displacement(bytes + in->length - last, last);
		if (rm == SP && modrm >> 6 != 0 && bytes[in->opcode_at + 2] == 0x24) {
			if (value > 0)
				begin_epilogue(f);
			f->now.height -= (int32_t)value;
		} else if (rm == BP && modrm >> 6 != 0 && f->now.frame && !(in->rex & 1)) {
			f->now.height = f->now.frame - (int32_t)value;
		} else {
			f->now.known = false;
		}
	} else if ((in->opcode == 0x89 && modrm >> 6 == 3 && rm == SP && !(in->rex & 1)) ||
		   (in->opcode == 0x8b && reg == SP && !(in->rex & 4))) {
		f->now.known = false; /* another stack */
	} else if ((in->opcode == 0x29 || in->opcode == 0x2b) && modrm >> 6 == 3 &&
		   (in->opcode == 0x29 ? rm : reg) == SP) {
		f->now.known = f->now.frame != 0; /* grown by an amount that only rbp survives */
	}
}

static void carry(struct follow *f, uint64_t target)
{
	size_t kept = 0;

	if (f->count == BRANCHES_MAX) { /* those that were passed go */
		for (size_t i = 0; i < f->count; i++)
			if (f->branches[i].target > f->at)
				f->branches[kept++] = f->branches[i];
		f->count = kept;
	}
	if (target > f->at && f->count < BRANCHES_MAX)
		f->branches[f->count++] = (struct branch){target, f->now};
}

static void take_along(struct follow *f, uint64_t target)
{
	f->in_epilogue = false;
	carry(f, target);
}

static void leave_block(struct follow *f)
{
	f->unreachable = true;
	if (f->in_epilogue)
		f->now = f->body;
	f->in_epilogue = false;
}

static void two_byte(struct follow *f, const struct x86_instruction *in, const uint8_t *bytes)
{
	if (in->opcode >= 0x80 && in->opcode <= 0x8f)
		take_along(f,
			   f->at + in->length + (uint64_t)displacement(bytes + in->length - 4, 4));
	else if (in->opcode == 0x0b) /* ud2 */
		leave_block(f);
}

static void one_instruction(struct follow *f, const struct x86_instruction *in,
			    const uint8_t *bytes)
{
	uint64_t next = f->at + in->length;
	int reg = in->rex & 1 ? -1 : in->opcode & 7;

	if (in->map == 1)
		two_byte(f, in, bytes);
	if (in->map != 0)
		return;
	switch (in->opcode) {
	case 0x50 ... 0x57:
		push(f, reg);
		break;
	case 0x58 ... 0x5f:
		begin_epilogue(f);
		pop(f, reg);
		break;
	case 0x68:
	case 0x6a:
	case 0x9c:
		push(f, -1);
		break;
	case 0x9d:
		pop(f, -1);
		break;
	case 0x70 ... 0x7f:
		take_along(f, next + (uint64_t)displacement(bytes + in->length - 1, 1));
		break;
	case 0xe8:
		f->in_epilogue = false;
		break;
	case 0xe9:
	case 0xeb:
		carry(f, next + (uint64_t)displacement(bytes + in->length -
							       (in->opcode == 0xeb ? 1 : 4),
						       in->opcode == 0xeb ? 1 : 4));
		leave_block(f);
		break;
	case 0xc9: /* leave */
		begin_epilogue(f);
		f->now.known &= f->now.frame != 0;
		f->now.height = f->now.frame;
		pop(f, BP);
		break;
	case 0xc2:
	case 0xc3:
	case 0xf4:
		leave_block(f);
		break;
	case 0xff:
		if ((in->modrm >> 3 & 7) == 4) /* jmp */
			leave_block(f);
		else if ((in->modrm >> 3 & 7) == 6)
			push(f, -1);
		else if ((in->modrm >> 3 & 7) == 2) /* call */
			f->in_epilogue = false;
		break;
	case 0x29:
	case 0x2b:
	case 0x81:
	case 0x83:
	case 0x89:
	case 0x8b:
	case 0x8d:
		if (in->rex & 8)
			move_sp(f, in, bytes);
		break;
	default:
		break;
	}
}

static bool is_padding(const struct x86_instruction *in)
{
	return (in->map == 0 && (in->opcode == 0x90 || in->opcode == 0xcc)) ||
	       (in->map == 1 && in->opcode == 0x1f);
}

static bool is_call(const struct x86_instruction *in)
{
	return in->map == 0 &&
	       (in->opcode == 0xe8 || (in->opcode == 0xff && (in->modrm >> 3 & 7) == 2));
}

/* Behind a call that does not return (and the padding) stands the next function. */
static bool begins_function(const struct x86_instruction *in)
{
	bool push = in->map == 0 && in->opcode >= 0x50 && in->opcode <= 0x57;
	bool sub_sp = in->map == 0 && (in->opcode == 0x83 || in->opcode == 0x81) &&
		      in->modrm == 0xec && in->rex & 8;
	bool endbr = in->map == 1 && in->opcode == 0x1e && in->modrm == 0xfa;

	return push || sub_sp || endbr;
}

/* What was carried to this address; false when nothing was. */
static bool arrive(struct follow *f)
{
	for (size_t i = f->count; i-- > 0;)
		if (f->branches[i].target == f->at) {
			if (f->unreachable)
				f->now = f->branches[i].state;
			f->unreachable = f->in_epilogue = false;
			return true;
		}
	return false;
}

/* The state before the instruction that the address lies in: callers are looked up inside the call.
 */
static bool state_at(struct follow *f, const struct code_start *start, uint64_t vaddr)
{
	static const struct stack_state entry = {.height = 8, .known = true};
	const struct unwind_code *code = f->code;
	struct x86_instruction in;

	f->now = f->body = entry;
	for (f->at = start->vaddr;; f->at += in.length) {
		size_t offset = (size_t)(f->at - code->vaddr);

		if (x86_decode(code->text.data + offset, code->text.size - offset, &in) < 0)
			return false;
		if (!arrive(f) && !start->end && f->at % 16 == 0 &&
		    (f->unreachable || (f->after_call && begins_function(&in))))
			f->now = entry; /* most likely another function */
		if (f->at + in.length > vaddr)
			break;
		if (is_padding(&in))
			continue;
		f->unreachable = false;
		f->after_call = is_call(&in);
		one_instruction(f, &in, code->text.data + offset);
	}
	return f->now.known && (f->now.height >= 8 || f->now.frame);
}

static struct unwind_place saved(int32_t where)
{
	return where ? (struct unwind_place){.kind = UNWIND_AT_CFA, .offset = -where}
		     : (struct unwind_place){.kind = UNWIND_SAME};
}

bool unwind_code_rule(const struct unwind_code *code, uint64_t vaddr, struct unwind_rule *ret)
{
	struct branch branches[BRANCHES_MAX];
	struct follow follow = {.code = code, .branches = branches};
	size_t behind = partition_point(code->starts.len, at, code->starts.data[at].vaddr <= vaddr);
	const struct code_start *start;

	if (behind == 0 || vaddr - code->vaddr >= code->text.size)
		return false;
	start = &code->starts.data[behind - 1];
	while (start > code->starts.data && start[-1].vaddr == start->vaddr)
		start--;
	if (vaddr - start->vaddr > FUNCTION_MAX || (start->end && vaddr >= start->end) ||
	    !state_at(&follow, start, vaddr))
		return false;
	memset(ret, 0, sizeof(*ret));
	ret->flags = UNWIND_GUESSED;
	ret->cfa = UNWIND_CFA_REG;
	ret->cfa_reg = follow.now.frame ? UNWIND_X86_BP : UNWIND_X86_SP;
	ret->cfa_offset = follow.now.frame ? follow.now.frame : follow.now.height;
	ret->ra = (struct unwind_place){.kind = UNWIND_AT_CFA, .offset = -8};
	ret->fp = saved(follow.now.saved_bp);
	ret->bx = saved(follow.now.saved_bx);
	return true;
}
