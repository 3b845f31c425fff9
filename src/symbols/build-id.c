/* Build ids: the NT_GNU_BUILD_ID note that linkers put into a file to tell one build from another.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/util.h"
#include "symbols/elf-symbols-internal.h"
#include "symbols/symbols.h"

int build_id_in_notes(const void *notes, size_t size, bool swap, struct build_id *ret)
{
	struct reader r = reader_make(notes, size, swap);

	while (reader_left(&r) >= 12) {
		uint32_t name_size = reader_u32(&r), desc_size = reader_u32(&r),
			 type = reader_u32(&r);
		const uint8_t *name, *desc;

		if (name_size > size || desc_size > size)
			return -ENOENT;
		name = reader_take(&r, name_size);
		reader_skip(&r, MIN(reader_left(&r), ALIGN_UP(name_size, 4u) - name_size));
		desc = reader_take(&r, desc_size);
		if (r.failed)
			return -ENOENT;
		reader_skip(&r, MIN(reader_left(&r), ALIGN_UP(desc_size, 4u) - desc_size));
		if (type == NT_GNU_BUILD_ID && name_size == 4 && memcmp(name, "GNU", 4) == 0 &&
		    desc_size > 0) {
			struct build_id id = {
				.size = (uint8_t)MIN(desc_size, (uint32_t)BUILD_ID_MAX)};

			memcpy(id.bytes, desc, id.size);
			*ret = id;
			return 0;
		}
	}
	return -ENOENT;
}

int build_id_from_notes(const void *notes, size_t size, struct build_id *ret)
{
	return build_id_in_notes(notes, size, false, ret);
}

int build_id_read(const char *path, struct build_id *ret, struct err *err)
{
	struct elf_file elf = {.fd = -1};
	int r = elf_open(path, &elf, err);

	if (r < 0)
		return r;
	r = elf_build_id(&elf, ret);
	elf_close(&elf);
	return r < 0 ? err_set(err, r, "%s: no build id", path) : 0;
}

void build_id_hex(const struct build_id *id, char out[2 * BUILD_ID_MAX + 1])
{
	static const char digits[] = "0123456789abcdef";
	size_t n = MIN(id->size, BUILD_ID_MAX);

	for (size_t i = 0; i < n; i++) {
		out[2 * i] = digits[id->bytes[i] >> 4];
		out[2 * i + 1] = digits[id->bytes[i] & 0xf];
	}
	out[2 * n] = '\0';
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

int build_id_parse(const char *hex, struct build_id *ret)
{
	struct build_id id = {0};
	size_t len = strlen(hex);

	if (len == 0 || len % 2 || len > 2 * BUILD_ID_MAX)
		return -EINVAL;
	for (size_t i = 0; i < len; i += 2) {
		int high = hex_digit(hex[i]), low = hex_digit(hex[i + 1]);

		if (high < 0 || low < 0)
			return -EINVAL;
		id.bytes[id.size++] = (uint8_t)(high << 4 | low);
	}
	*ret = id;
	return 0;
}

/* Recordings pad short ids with zeros to 20 bytes: trailing zeros say nothing. */
bool build_id_equal(const struct build_id *a, const struct build_id *b)
{
	struct build_id x = {0}, y = {0};

	memcpy(x.bytes, a->bytes, MIN(a->size, BUILD_ID_MAX));
	memcpy(y.bytes, b->bytes, MIN(b->size, BUILD_ID_MAX));
	return memcmp(x.bytes, y.bytes, BUILD_ID_MAX) == 0;
}
