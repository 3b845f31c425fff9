/* The table of Go's runtime in every layout, made here; and a whole program, when there is a Go. */
#include "base/str.h"
#include "base/util.h"
#include "harness/tap.h"
#include "symbols/gopclntab.h"

static const struct {
	uint64_t entry;
	const char *name;
} functions[] = {
	{0x1000, "main.main"}, {0x1040, "main.(*T).Run"}, {0x1100, ""}, {0x1180, "runtime.goexit"}};

#define END 0x1200

struct shape {
	uint32_t magic;
	unsigned ptr_size;
	bool swap;
};

static void put(struct str *out, uint64_t value, unsigned size, bool swap)
{
	for (unsigned i = 0; i < size; i++)
		str_putc(out, (char)(value >> 8 * (swap ? size - 1 - i : i)));
}

static void patch(struct str *out, size_t at, uint64_t value, unsigned size, bool swap)
{
	struct str bytes = {0};

	put(&bytes, value, size, swap);
	memcpy(out->data + at, bytes.data, size);
	str_fini(&bytes);
}

/* text: what entries are relative to, in the layouts that have it. */
static void build(struct str *out, const struct shape *shape, uint64_t text)
{
	bool relative = shape->magic == 0xfffffff0 || shape->magic == 0xfffffff1,
	     split = shape->magic != 0xfffffffb;
	unsigned words = relative ? 8 : split ? 7 : 1, size = relative ? 4 : shape->ptr_size;
	size_t list, name_at[ARRAY_LEN(functions)], names = 0;

	put(out, shape->magic, 4, shape->swap);
	put(out, 0, 2, false);
	put(out, 1, 1, false);
	put(out, shape->ptr_size, 1, false);
	for (unsigned i = 0; i < words; i++)
		put(out, i == 0 ? ARRAY_LEN(functions) : 0, shape->ptr_size, shape->swap);
	if (split) {
		names = out->len;
		for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
			name_at[i] = out->len - names;
			str_append(out, functions[i].name, strlen(functions[i].name) + 1);
		}
	}
	list = out->len;
	for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
		put(out, functions[i].entry - text, size, shape->swap);
		put(out, 0, size, shape->swap); /* where the record is: below */
	}
	put(out, END - text, size, shape->swap);
	for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
		patch(out, list + (2 * i + 1) * size, out->len - (split ? list : 0), size,
		      shape->swap);
		put(out, functions[i].entry - text, size, shape->swap);
		put(out, split ? name_at[i] : 0, 4, shape->swap);
		if (!split) {
			patch(out, out->len - 4, out->len, 4, shape->swap);
			str_append(out, functions[i].name, strlen(functions[i].name) + 1);
		}
	}
	if (relative) {
		patch(out, 8 + 3 * shape->ptr_size, names, shape->ptr_size, shape->swap);
		patch(out, 8 + 7 * shape->ptr_size, list, shape->ptr_size, shape->swap);
	} else if (split) {
		patch(out, 8 + 2 * shape->ptr_size, names, shape->ptr_size, shape->swap);
		patch(out, 8 + 6 * shape->ptr_size, list, shape->ptr_size, shape->swap);
	}
}

static const char *name_at(const struct symtab *tab, uint64_t address)
{
	struct symbol symbol;

	return symtab_lookup(tab, address, &symbol) ? symbol.raw_name : "?";
}

static const struct shape shapes[] = {
	{0xfffffffb, 8, false}, {0xfffffffb, 4, true}, {0xfffffffa, 8, false},
	{0xfffffff0, 8, false}, {0xfffffff1, 8, true}, {0xfffffff1, 4, false},
};

TEST(every_layout)
{
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		uint64_t text =
			shapes[i].magic == 0xfffffff0 || shapes[i].magic == 0xfffffff1 ? 0x1000 : 0;
		struct symtab_builder builder = {0};
		struct str bytes = {0};
		struct symtab tab;

		build(&bytes, &shapes[i], text);
		const struct go_table table = {.data = (const uint8_t *)bytes.data,
					       .size = bytes.len,
					       .swap = shapes[i].swap,
					       .text = text};
		EXPECT_INT(go_table_load(&table, &builder), 0);
		ASSERT(symtab_finish(&builder, SYMTAB_INNERMOST, &tab) == 0);
		tab.no_demangle = true;
		EXPECT_STR(name_at(&tab, 0xfff), "?");
		EXPECT_STR(name_at(&tab, 0x1000), "main.main");
		EXPECT_STR(name_at(&tab, 0x10ff), "main.(*T).Run");
		EXPECT_STR(name_at(&tab, 0x1120), "?"); /* it has no name */
		EXPECT_STR(name_at(&tab, 0x11ff), "runtime.goexit");
		EXPECT_STR(name_at(&tab, 0x1200), "?");
		symtab_fini(&tab);
		symtab_builder_fini(&builder);
		str_fini(&bytes);
	}
}

/* Cut anywhere: what is whole has its name, nothing is read behind the end. */
TEST(cut_tables)
{
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		struct str bytes = {0};

		build(&bytes, &shapes[i], 0x1000);
		for (size_t size = 0; size < bytes.len; size++) {
			struct symtab_builder builder = {0};
			const struct go_table table = {.data = (const uint8_t *)bytes.data,
						       .size = size,
						       .swap = shapes[i].swap,
						       .text = 0x1000};

			EXPECT_INT(go_table_load(&table, &builder), 0);
			EXPECT(builder.raw.len < ARRAY_LEN(functions));
			symtab_builder_fini(&builder);
		}
		str_fini(&bytes);
	}
}
