/*
 * Runs call frame instructions. One function's instructions describe its rows one after another;
 * each becomes a row when the address moves on. Instructions that are not understood end the
 * function early: from there on its rows have a rule that says so.
 */
#include <string.h>

#include "base/util.h"
#include "symbols/dwarf-constants.h"
#include "symbols/unwind-internal.h"

#define STATES_MAX 32 /* remember_state nests; compilers use one */

enum {
	RA,
	FP,
	BX
};

struct machine {
	struct unwind_table *table;
	const struct cfi_cie *cie;
	struct reader r;
	uint64_t address, end;
	struct cfi_state now, initial, *stack; /* stack: STATES_MAX, of the caller */
	unsigned depth;
	bool failed;
	int error;
	bool lookup; /* no rows are made: the state at pc is looked for */
	bool found;
	uint64_t pc;
};

static int column_of(const struct machine *m, uint64_t reg)
{
	bool arm = m->table->arch == UNWIND_ARM64;

	if (reg == m->cie->ra_register)
		return RA;
	if (reg == (arm ? UNWIND_ARM_FP : UNWIND_X86_BP))
		return FP;
	return reg == (arm ? UNWIND_ARM_X19 : UNWIND_X86_BX) ? BX : -1;
}

static void set_column(struct machine *m, uint64_t reg, enum unwind_saved kind, uint64_t base,
		       int64_t offset)
{
	int column = column_of(m, reg);

	if (column < 0)
		return;
	m->now.columns[column].kind = (uint8_t)(base > 31 ? UNWIND_UNKNOWN : kind);
	m->now.columns[column].base = (uint8_t)(base & 31);
	m->now.columns[column].offset = offset;
}

static int64_t scaled(const struct machine *m, uint64_t factor)
{
	int64_t value;

	/* Too large for a rule in any case. */
	return __builtin_mul_overflow((int64_t)factor, m->cie->data_align, &value) ? INT64_MAX
										   : value;
}

static void set_cfa(struct machine *m, uint64_t reg, int64_t offset)
{
	m->now.cfa = reg > 31 ? UNWIND_CFA_UNKNOWN : UNWIND_CFA_REG;
	m->now.cfa_reg = (uint8_t)(reg & 31);
	m->now.cfa_offset = offset;
	m->now.cfa_add = 0;
}

/* breg N, or bregx; true with the register and the offset. */
static bool breg(struct reader *r, uint64_t *ret_reg, int64_t *ret_offset)
{
	uint8_t op = reader_u8(r);

	if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
		*ret_reg = op - DW_OP_breg0;
	else if (op == DW_OP_bregx)
		*ret_reg = reader_uleb(r);
	else
		return false;
	*ret_offset = reader_sleb(r);
	return !r->failed && *ret_reg <= 31;
}

/* "+ (rip & 15 >= N) * 8": the second half of a PLT stub has pushed the relocation's number. */
static bool plt_tail(struct reader *r, int64_t *ret_threshold)
{
	static const uint8_t before[] = {DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and},
			     after[] = {DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus};
	const uint8_t *at = reader_take(r, sizeof(before) + 1 + sizeof(after));

	if (!at || reader_left(r) > 0 || memcmp(at, before, sizeof(before)) != 0 ||
	    memcmp(at + sizeof(before) + 1, after, sizeof(after)) != 0 ||
	    at[sizeof(before)] < DW_OP_lit0 || at[sizeof(before)] > DW_OP_lit31)
		return false;
	*ret_threshold = at[sizeof(before)] - DW_OP_lit0;
	return true;
}

static void cfa_expression(struct machine *m)
{
	uint64_t size = reader_uleb(&m->r), reg;
	const uint8_t *bytes = size > reader_left(&m->r) ? NULL : reader_take(&m->r, (size_t)size);
	struct cfi_state *now = &m->now;
	struct reader r, plt;
	uint8_t op;

	now->cfa = UNWIND_CFA_UNKNOWN;
	if (!bytes) {
		m->failed = true;
		return;
	}
	r = reader_make(bytes, (size_t)size, m->r.swap);
	if (!breg(&r, &reg, &now->cfa_offset))
		return;
	now->cfa_reg = (uint8_t)reg;
	now->cfa_add = 0;
	if (reader_left(&r) == 0) {
		now->cfa = UNWIND_CFA_REG;
		return;
	}
	plt = r;
	if (m->table->arch == UNWIND_X86_64 && plt_tail(&plt, &now->cfa_add)) {
		now->cfa = UNWIND_CFA_PLT;
		return;
	}
	op = reader_u8(&r);
	if (op != DW_OP_deref)
		return;
	if (reader_left(&r) > 0) {
		if (reader_u8(&r) != DW_OP_plus_uconst)
			return;
		now->cfa_add = (int64_t)reader_uleb(&r);
	}
	if (!r.failed && reader_left(&r) == 0)
		now->cfa = UNWIND_CFA_DEREF;
}

/* A register's rule; value: the expression gives the value, else where it lies. */
static void register_expression(struct machine *m, bool value)
{
	uint64_t reg = reader_uleb(&m->r), size = reader_uleb(&m->r), base = 0;
	const uint8_t *bytes = size > reader_left(&m->r) ? NULL : reader_take(&m->r, (size_t)size);
	enum unwind_saved kind = UNWIND_UNKNOWN;
	struct reader r, again;
	int64_t offset = 0;

	if (!bytes) {
		m->failed = true;
		return;
	}
	r = reader_make(bytes, (size_t)size, m->r.swap);
	again = r;
	if (breg(&r, &base, &offset) && reader_left(&r) == 0 && !value) {
		kind = UNWIND_AT_REG;
	} else if (reader_u8(&again) == DW_OP_plus_uconst) { /* the CFA is on the stack */
		offset = (int64_t)reader_uleb(&again);
		base = 0;
		if (!again.failed && reader_left(&again) == 0)
			kind = value ? UNWIND_CFA_VALUE : UNWIND_AT_CFA;
	}
	set_column(m, reg, kind, base & 31, offset);
}

static bool fits(int64_t value)
{
	return value >= INT32_MIN && value <= INT32_MAX;
}

static struct unwind_place place_of(const struct cfi_state *state, int column)
{
	uint8_t kind = state->columns[column].kind;
	bool based = kind == UNWIND_AT_REG || kind == UNWIND_IN_REG;
	bool offset = kind == UNWIND_AT_CFA || kind == UNWIND_AT_REG || kind == UNWIND_CFA_VALUE;

	if (offset && !fits(state->columns[column].offset))
		return (struct unwind_place){.kind = UNWIND_UNKNOWN};
	return (struct unwind_place){.kind = kind,
				     .base = based ? state->columns[column].base : 0,
				     .offset = offset ? (int32_t)state->columns[column].offset : 0};
}

static bool rule_equal(const void *owner, uint32_t id, const void *key)
{
	const struct unwind_table *table = owner;

	return memcmp(&table->rules.data[id], key, sizeof(struct unwind_rule)) == 0;
}

static void make_rule(const struct cfi_state *state, bool signal, struct unwind_rule *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->flags = signal ? UNWIND_SIGNAL : 0;
	if (state->cfa != UNWIND_CFA_UNKNOWN && fits(state->cfa_offset) && fits(state->cfa_add)) {
		ret->cfa = state->cfa;
		ret->cfa_reg = state->cfa_reg;
		ret->cfa_offset = (int32_t)state->cfa_offset;
		ret->cfa_add = (int32_t)state->cfa_add;
	}
	ret->ra = place_of(state, RA);
	ret->fp = place_of(state, FP);
	ret->bx = place_of(state, BX);
}

static int intern_rule(struct unwind_table *table, const struct cfi_state *state, bool signal,
		       uint32_t *ret)
{
	struct unwind_rule rule;
	uint64_t hash;
	int r;

	make_rule(state, signal, &rule);
	hash = hash_bytes(&rule, sizeof(rule));
	*ret = hash_index_find(&table->rule_index, hash, rule_equal, table, &rule);
	if (*ret != HASH_NONE)
		return 0;
	*ret = (uint32_t)table->rules.len;
	r = vec_push(&table->rules, rule);
	return r < 0 ? r : hash_index_add(&table->rule_index, hash, *ret);
}

int cfi_add_row(struct unwind_table *table, uint64_t address, uint32_t rule)
{
	struct unwind_row row = {(uint32_t)(address - table->base), rule};
	struct unwind_row *last;

	/* A later function may begin before the end of the last one. */
	while (table->rows.len > 0 && table->rows.data[table->rows.len - 1].pc >= row.pc)
		table->rows.len--;
	last = table->rows.len ? &table->rows.data[table->rows.len - 1] : NULL;
	if (last ? last->rule == rule : rule == 0)
		return 0;
	return vec_push(&table->rows, row);
}

static void emit(struct machine *m)
{
	uint32_t rule;

	if (!m->end || m->error)
		return;
	m->error = intern_rule(m->table, &m->now, m->cie->signal, &rule);
	if (m->error == 0)
		m->error = cfi_add_row(m->table, m->address, rule);
}

/* The state that was built up holds until target. */
static void move_to(struct machine *m, uint64_t target)
{
	if (m->lookup)
		m->found = m->pc < target;
	else
		emit(m);
	m->address = target;
}

static void advance(struct machine *m, uint64_t delta)
{
	uint64_t target;

	if (__builtin_mul_overflow(delta, m->cie->code_align, &delta) ||
	    __builtin_add_overflow(m->address, delta, &target)) {
		m->failed = true;
		return;
	}
	if (delta > 0)
		move_to(m, target);
}

static void restore(struct machine *m, uint64_t reg)
{
	int column = column_of(m, reg);

	if (column >= 0)
		m->now.columns[column] = m->initial.columns[column];
}

static void restore_state(struct machine *m)
{
	if (m->depth == 0)
		m->failed = true;
	else
		m->now = m->stack[--m->depth];
}

static void remember_state(struct machine *m)
{
	if (m->depth == STATES_MAX)
		m->failed = true;
	else
		m->stack[m->depth++] = m->now;
}

static void set_loc(struct machine *m)
{
	uint64_t target;

	if (!cfi_pointer(m->cie->section, &m->r, m->cie->encoding, &target) ||
	    target < m->address) {
		m->failed = true;
		return;
	}
	if (target > m->address)
		move_to(m, target);
}

static void run_cfa(struct machine *m, uint8_t op)
{
	struct reader *r = &m->r;
	uint64_t reg;

	switch (op) {
	case DW_CFA_def_cfa:
		reg = reader_uleb(r);
		set_cfa(m, reg, (int64_t)reader_uleb(r));
		break;
	case DW_CFA_def_cfa_sf:
		reg = reader_uleb(r);
		set_cfa(m, reg, scaled(m, (uint64_t)reader_sleb(r)));
		break;
	case DW_CFA_def_cfa_register:
		reg = reader_uleb(r);
		set_cfa(m, reg, m->now.cfa_offset);
		break;
	case DW_CFA_def_cfa_offset:
		set_cfa(m, m->now.cfa_reg, (int64_t)reader_uleb(r));
		break;
	case DW_CFA_def_cfa_offset_sf:
		set_cfa(m, m->now.cfa_reg, scaled(m, (uint64_t)reader_sleb(r)));
		break;
	default:
		cfa_expression(m);
		break;
	}
}

static void run_register(struct machine *m, uint8_t op)
{
	struct reader *r = &m->r;
	uint64_t reg = reader_uleb(r);

	switch (op) {
	case DW_CFA_offset_extended:
		set_column(m, reg, UNWIND_AT_CFA, 0, scaled(m, reader_uleb(r)));
		break;
	case DW_CFA_offset_extended_sf:
		set_column(m, reg, UNWIND_AT_CFA, 0, scaled(m, (uint64_t)reader_sleb(r)));
		break;
	case DW_CFA_GNU_negative_offset_extended:
		set_column(m, reg, UNWIND_AT_CFA, 0, scaled(m, 0 - reader_uleb(r)));
		break;
	case DW_CFA_val_offset:
		set_column(m, reg, UNWIND_CFA_VALUE, 0, scaled(m, reader_uleb(r)));
		break;
	case DW_CFA_val_offset_sf:
		set_column(m, reg, UNWIND_CFA_VALUE, 0, scaled(m, (uint64_t)reader_sleb(r)));
		break;
	case DW_CFA_register:
		set_column(m, reg, UNWIND_IN_REG, reader_uleb(r), 0);
		break;
	case DW_CFA_undefined:
		set_column(m, reg, UNWIND_UNDEFINED, 0, 0);
		break;
	case DW_CFA_same_value:
		set_column(m, reg, UNWIND_SAME, 0, 0);
		break;
	default:
		restore(m, reg);
		break;
	}
}

static void run_extended(struct machine *m, uint8_t op)
{
	switch (op) {
	case DW_CFA_nop:
	case DW_CFA_GNU_window_save: /* arm64: toggles the signing of return addresses */
	case 0x2c:                   /* the same with the address signed too */
		break;
	case DW_CFA_set_loc:
		set_loc(m);
		break;
	case DW_CFA_advance_loc1:
		advance(m, reader_u8(&m->r));
		break;
	case DW_CFA_advance_loc2:
		advance(m, reader_u16(&m->r));
		break;
	case DW_CFA_advance_loc4:
		advance(m, reader_u32(&m->r));
		break;
	case DW_CFA_remember_state:
		remember_state(m);
		break;
	case DW_CFA_restore_state:
		restore_state(m);
		break;
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_def_cfa_register:
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
	case DW_CFA_def_cfa_expression:
		run_cfa(m, op);
		break;
	case DW_CFA_offset_extended:
	case DW_CFA_offset_extended_sf:
	case DW_CFA_GNU_negative_offset_extended:
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
	case DW_CFA_register:
	case DW_CFA_undefined:
	case DW_CFA_same_value:
	case DW_CFA_restore_extended:
		run_register(m, op);
		break;
	case DW_CFA_expression:
	case DW_CFA_val_expression:
		register_expression(m, op == DW_CFA_val_expression);
		break;
	case DW_CFA_GNU_args_size:
		(void)reader_uleb(&m->r);
		break;
	default:
		m->failed = true;
		break;
	}
}

/* False when something was not understood; what went before is done. */
static bool run(struct machine *m)
{
	while (reader_left(&m->r) > 0 && !m->r.failed && !m->failed && !m->error && !m->found &&
	       (!m->end || m->address < m->end)) {
		uint8_t op = reader_u8(&m->r), low = op & 0x3f;

		switch (op & 0xc0) {
		case DW_CFA_advance_loc:
			advance(m, low);
			break;
		case DW_CFA_offset:
			set_column(m, low, UNWIND_AT_CFA, 0, scaled(m, reader_uleb(&m->r)));
			break;
		case DW_CFA_restore:
			restore(m, low);
			break;
		default:
			run_extended(m, op);
			break;
		}
	}
	return !m->failed && !m->r.failed;
}

bool cfi_initial(const struct unwind_table *table, struct cfi_cie *cie, const uint8_t *code,
		 size_t size)
{
	struct unwind_table same = {.arch = table->arch};
	struct cfi_state stack[STATES_MAX];
	struct machine m = {
		.stack = stack,
		.table = &same,
		.cie = cie,
		.r = reader_make(code, size, cie->section->swap),
	};

	if (!run(&m))
		return false;
	cie->initial = m.now;
	return true;
}

int cfi_run(struct unwind_table *table, const struct cfi_cie *cie, const struct cfi_fde *fde,
	    uint64_t end)
{
	struct cfi_state stack[STATES_MAX];
	struct machine m = {
		.stack = stack,
		.table = table,
		.cie = cie,
		.r = reader_make(fde->code, fde->code_size, cie->section->swap),
		.address = fde->start,
		.end = end,
		.now = cie->initial,
		.initial = cie->initial,
	};

	if (!run(&m))
		m.now = (struct cfi_state){0};
	if (m.address < end)
		emit(&m);
	return m.error ? m.error : cfi_add_row(table, end, 0);
}

void cfi_rule_at(const struct unwind_table *table, const struct cfi_cie *cie,
		 const struct cfi_fde *fde, uint64_t pc, struct unwind_rule *ret)
{
	struct unwind_table same = {.arch = table->arch};
	struct cfi_state stack[STATES_MAX];
	struct machine m = {
		.stack = stack,
		.table = &same,
		.cie = cie,
		.r = reader_make(fde->code, fde->code_size, cie->section->swap),
		.address = fde->start,
		.end = fde->start + fde->length,
		.now = cie->initial,
		.initial = cie->initial,
		.lookup = true,
		.pc = pc,
	};

	if (!run(&m))
		m.now = (struct cfi_state){0};
	make_rule(&m.now, cie->signal, ret);
}
