#include "symbols/elf-file-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compress.h"
#include "base/file.h"
#include "base/str.h"
#include "base/util.h"

#define SECTIONS_MAX (4u << 20)
#define UNPACKED_MAX (UINT64_C(2) << 30)
#define PAGE_BYTES   UINT64_C(4096)
#define MODULE_MAX   (64u << 20) /* of a kernel module, packed or not */

int elf_read(const struct elf_file *elf, uint64_t offset, uint64_t size, struct elf_bytes *ret)
{
	CLEANUP_FREE uint8_t *data = NULL;
	int r;

	if (offset > elf->size || size > elf->size - offset)
		return -ENODATA;
	if (elf->fd < 0) {
		*ret = (struct elf_bytes){.data = elf->image + offset, .size = size};
		return 0;
	}
	if (size > UNPACKED_MAX)
		return -EFBIG;
	data = malloc(size + 1);
	if (!data)
		return -ENOMEM;
	r = fd_pread_all(elf->fd, data, size, offset);
	if (r < 0)
		return r;
	data[size] = '\0';
	ret->data = data;
	ret->size = size;
	ret->owned = TAKE_PTR(data);
	return 0;
}

void elf_bytes_fini(struct elf_bytes *bytes)
{
	free(bytes->owned);
	*bytes = (struct elf_bytes){0};
}

static struct elf_section read_section(const struct elf_file *elf, struct reader *r)
{
	struct elf_section s;

	s.name = reader_u32(r);
	s.type = reader_u32(r);
	s.flags = elf_word(elf, r);
	s.addr = elf_word(elf, r);
	s.offset = elf_word(elf, r);
	s.size = elf_word(elf, r);
	s.link = reader_u32(r);
	s.info = reader_u32(r);
	elf_word(elf, r); /* alignment */
	s.entsize = elf_word(elf, r);
	return s;
}

static struct elf_segment read_segment(const struct elf_file *elf, struct reader *r)
{
	struct elf_segment s = {.type = reader_u32(r)};

	if (elf->is64)
		s.flags = reader_u32(r);
	s.offset = elf_word(elf, r);
	s.vaddr = elf_word(elf, r);
	elf_word(elf, r); /* physical address */
	s.filesz = elf_word(elf, r);
	s.memsz = elf_word(elf, r);
	if (!elf->is64)
		s.flags = reader_u32(r);
	s.align = elf_word(elf, r);
	return s;
}

struct header {
	uint64_t phoff, shoff;
	uint32_t phentsize, phnum, shentsize, shnum, shstrndx;
};

/* Section headers; a damaged table counts as none, program headers may still serve. */
static int load_sections(struct elf_file *elf, const struct header *h)
{
	uint32_t least = elf->is64 ? 64 : 40;
	struct elf_bytes table = {0};
	struct reader r;
	int status;

	if (h->shnum == 0 || h->shnum > SECTIONS_MAX || h->shentsize < least)
		return 0;
	status = elf_read(elf, h->shoff, (uint64_t)h->shnum * h->shentsize, &table);
	if (status < 0)
		return status == -ENOMEM ? status : 0;
	elf->sections = calloc(h->shnum, sizeof(*elf->sections));
	if (!elf->sections) {
		elf_bytes_fini(&table);
		return -ENOMEM;
	}
	r = elf_reader(elf, &table);
	for (uint32_t i = 0; i < h->shnum; i++) {
		reader_seek(&r, (size_t)i * h->shentsize);
		elf->sections[i] = read_section(elf, &r);
	}
	elf->nsections = h->shnum;
	elf_bytes_fini(&table);
	return 0;
}

static int load_section_names(struct elf_file *elf, uint32_t index)
{
	struct elf_bytes names = {0};
	int r;

	if (index == 0 || index >= elf->nsections || elf->sections[index].type == SHT_NOBITS)
		return 0;
	r = elf_section_bytes(elf, &elf->sections[index], &names);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (names.owned) {
		elf->section_names = names.owned;
	} else {
		elf->section_names = malloc(names.size + 1);
		if (!elf->section_names)
			return -ENOMEM;
		memcpy(elf->section_names, names.data, names.size);
		elf->section_names[names.size] = '\0';
	}
	elf->section_names_size = names.size;
	return 0;
}

static int load_segments(struct elf_file *elf, const struct header *h)
{
	uint32_t least = elf->is64 ? 56 : 32;
	struct elf_bytes table = {0};
	struct reader r;
	int status;

	if (h->phnum == 0 || h->phnum > SECTIONS_MAX || h->phentsize < least)
		return 0;
	status = elf_read(elf, h->phoff, (uint64_t)h->phnum * h->phentsize, &table);
	if (status < 0)
		return status == -ENOMEM ? status : 0;
	elf->segments = calloc(h->phnum, sizeof(*elf->segments));
	if (!elf->segments) {
		elf_bytes_fini(&table);
		return -ENOMEM;
	}
	r = elf_reader(elf, &table);
	for (uint32_t i = 0; i < h->phnum; i++) {
		reader_seek(&r, (size_t)i * h->phentsize);
		elf->segments[i] = read_segment(elf, &r);
	}
	elf->nsegments = h->phnum;
	elf_bytes_fini(&table);
	return 0;
}

/* Counts that do not fit in 16 bits stand in section header 0. */
static void extended_counts(struct elf_file *elf, struct header *h)
{
	struct elf_bytes bytes = {0};
	struct elf_section first;
	struct reader r;

	if (h->shoff == 0 || (h->shnum != 0 && h->phnum != PN_XNUM && h->shstrndx != SHN_XINDEX))
		return;
	if (elf_read(elf, h->shoff, elf->is64 ? 64 : 40, &bytes) < 0)
		return;
	r = elf_reader(elf, &bytes);
	first = read_section(elf, &r);
	if (h->shnum == 0)
		h->shnum = (uint32_t)MIN(first.size, (uint64_t)SECTIONS_MAX + 1);
	if (h->phnum == PN_XNUM)
		h->phnum = first.info;
	if (h->shstrndx == SHN_XINDEX)
		h->shstrndx = first.link;
	elf_bytes_fini(&bytes);
}

static int load_headers(struct elf_file *elf, struct err *err)
{
	struct elf_bytes bytes = {0};
	struct header h = {0};
	struct reader r;
	int status;

	if (elf_read(elf, 0, MIN(elf->size, sizeof(Elf64_Ehdr)), &bytes) < 0)
		return err_set(err, -EIO, "cannot be read");
	if (bytes.size < sizeof(Elf32_Ehdr) || memcmp(bytes.data, ELFMAG, SELFMAG) != 0 ||
	    (bytes.data[EI_CLASS] != ELFCLASS32 && bytes.data[EI_CLASS] != ELFCLASS64) ||
	    (bytes.data[EI_DATA] != ELFDATA2LSB && bytes.data[EI_DATA] != ELFDATA2MSB)) {
		elf_bytes_fini(&bytes);
		return err_set(err, -ENOEXEC, "not an ELF file");
	}
	elf->is64 = bytes.data[EI_CLASS] == ELFCLASS64;
	elf->swap =
		(bytes.data[EI_DATA] == ELFDATA2MSB) == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
	r = elf_reader(elf, &bytes);
	reader_seek(&r, EI_NIDENT);
	elf->type = reader_u16(&r);
	elf->machine = reader_u16(&r);
	reader_u32(&r);    /* version */
	elf_word(elf, &r); /* entry */
	h.phoff = elf_word(elf, &r);
	h.shoff = elf_word(elf, &r);
	reader_u32(&r); /* flags */
	reader_u16(&r); /* size of this header */
	h.phentsize = reader_u16(&r);
	h.phnum = reader_u16(&r);
	h.shentsize = reader_u16(&r);
	h.shnum = reader_u16(&r);
	h.shstrndx = reader_u16(&r);
	status = r.failed ? -ENOEXEC : 0;
	elf_bytes_fini(&bytes);
	if (status < 0)
		return err_set(err, status, "the ELF header is cut off");
	extended_counts(elf, &h);
	status = load_segments(elf, &h);
	if (status == 0)
		status = load_sections(elf, &h);
	if (status == 0)
		status = load_section_names(elf, h.shstrndx);
	return status < 0 ? err_set(err, status, "%s", strerrordesc_np(-status)) : 0;
}

/* Kernel modules lie packed in some distributions: NAME.ko.xz, .ko.zst, .ko.gz. */
static bool is_packed_module(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot && dot - path > 3 && memcmp(dot - 3, ".ko", 3) == 0;
}

static int open_packed_module(const char *path, struct elf_file *ret, struct err *err)
{
	struct str plain = {0};
	char *data, *image;
	size_t size, len;
	int r = file_read(path, MODULE_MAX, &data, &size, err);

	if (r < 0)
		return r;
	if (size > 4 && memcmp(data, "\x28\xb5\x2f\xfd", 4) == 0)
		r = zstd_decompress(data, size, MODULE_MAX, &plain, err);
	else if (size > 4 && memcmp(data,
				    "\xfd"
				    "7zXZ",
				    5) == 0)
		r = xz_decompress(data, size, MODULE_MAX, &plain, err);
	else
		r = gzip_inflate(data, size, MODULE_MAX, &plain, err);
	free(data);
	len = plain.len;
	if (r == 0)
		r = str_take(&plain, &image);
	str_fini(&plain);
	if (r < 0)
		return r;
	r = elf_open_image(image, len, image, ret, err);
	if (r < 0)
		free(image);
	return r;
}

int elf_open(const char *path, struct elf_file *ret, struct err *err)
{
	struct elf_file elf = {.fd = -1};
	struct stat st;
	int r;

	/* O_NONBLOCK: the path comes from recorded data; a FIFO in its place must not hang us. */
	elf.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (elf.fd < 0)
		return err_set(err, -errno, "%s: %s", path, strerrordesc_np(errno));
	if (fstat(elf.fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(elf.fd);
		return err_set(err, -EINVAL, "%s: not a regular file", path);
	}
	elf.size = (uint64_t)st.st_size;
	r = load_headers(&elf, err);
	if (r < 0) {
		elf_close(&elf);
		if (r == -ENOEXEC && is_packed_module(path))
			r = open_packed_module(path, ret, err);
		return r < 0 ? err_wrap(err, r, "%s", path) : 0;
	}
	*ret = elf;
	return 0;
}

int elf_open_image(const void *image, size_t size, void *take, struct elf_file *ret,
		   struct err *err)
{
	struct elf_file elf = {.fd = -1, .image = image, .size = size};
	int r = load_headers(&elf, err);

	if (r < 0) {
		elf_close(&elf);
		return r;
	}
	elf.owned_image = take;
	*ret = elf;
	return 0;
}

void elf_close(struct elf_file *elf)
{
	if (elf->fd >= 0)
		close(elf->fd);
	free(elf->owned_image);
	free(elf->sections);
	free(elf->segments);
	free(elf->section_names);
	*elf = (struct elf_file){.fd = -1};
}

const char *elf_section_name(const struct elf_file *elf, const struct elf_section *section)
{
	return section->name < elf->section_names_size ? elf->section_names + section->name : "";
}

const struct elf_section *elf_section_named(const struct elf_file *elf, const char *name)
{
	for (uint32_t i = 1; i < elf->nsections; i++)
		if (strcmp(elf_section_name(elf, &elf->sections[i]), name) == 0)
			return &elf->sections[i];
	return NULL;
}

static int unpack_zlib(const uint8_t *data, size_t size, uint64_t unpacked, struct elf_bytes *ret)
{
	CLEANUP_FREE uint8_t *out = NULL;
	int r;

	/* Deflate cannot shrink by more than about 1:1032: a larger claim is a lie that would cost
	 * memory. */
	if (unpacked > UNPACKED_MAX || unpacked / 1100 > size)
		return -EBADMSG;
	out = malloc(unpacked + 1);
	if (!out)
		return -ENOMEM;
	r = zlib_inflate_raw_size(data, size, out, unpacked);
	if (r < 0)
		return r;
	out[unpacked] = '\0';
	ret->data = out;
	ret->size = unpacked;
	ret->owned = TAKE_PTR(out);
	return 0;
}

static int unpack_zstd(const uint8_t *data, size_t size, uint64_t unpacked, struct elf_bytes *ret)
{
	struct str out = {0};
	char *text = NULL;
	size_t len;
	int r;

	r = zstd_decompress(data, size, MIN(unpacked, UNPACKED_MAX), &out, NULL);
	len = out.len;
	if (r >= 0 && len != unpacked)
		r = -EBADMSG;
	if (r >= 0)
		r = str_take(&out, &text);
	str_fini(&out);
	if (r < 0)
		return r;
	*ret = (struct elf_bytes){.data = (const uint8_t *)text, .size = len, .owned = text};
	return 0;
}

static int unpack(const struct elf_file *elf, bool gnu_style, const struct elf_bytes *packed,
		  struct elf_bytes *ret)
{
	struct reader r = elf_reader(elf, packed);
	uint32_t type = ELFCOMPRESS_ZLIB;
	uint64_t size;

	if (gnu_style) { /* "ZLIB" and the size in big-endian order */
		reader_skip(&r, 4);
		r.swap = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
		size = reader_u64(&r);
	} else {
		type = reader_u32(&r);
		if (elf->is64)
			reader_u32(&r);
		size = elf_word(elf, &r);
		elf_word(elf, &r); /* alignment */
	}
	if (r.failed)
		return -EBADMSG;
	if (type == ELFCOMPRESS_ZLIB)
		return unpack_zlib(packed->data + r.pos, reader_left(&r), size, ret);
	if (type == 2) /* ELFCOMPRESS_ZSTD, absent from older elf.h */
		return unpack_zstd(packed->data + r.pos, reader_left(&r), size, ret);
	return -ENOTSUP;
}

int elf_section_bytes(const struct elf_file *elf, const struct elf_section *section,
		      struct elf_bytes *ret)
{
	struct elf_bytes bytes = {0}, plain = {0};
	bool gnu_style;
	int r;

	if (section->type == SHT_NOBITS)
		return -ENODATA;
	r = elf_read(elf, section->offset, section->size, &bytes);
	if (r < 0)
		return r;
	gnu_style = bytes.size > 12 && memcmp(bytes.data, "ZLIB", 4) == 0 &&
		    str_prefix(elf_section_name(elf, section), ".zdebug", NULL);
	if (!gnu_style && !(section->flags & SHF_COMPRESSED)) {
		*ret = bytes;
		return 0;
	}
	r = unpack(elf, gnu_style, &bytes, &plain);
	elf_bytes_fini(&bytes);
	if (r == 0)
		*ret = plain;
	return r;
}

bool elf_vaddr_to_offset(const struct elf_file *elf, uint64_t vaddr, uint64_t *ret_offset)
{
	for (uint32_t i = 0; i < elf->nsegments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type == PT_LOAD && vaddr >= s->vaddr && vaddr - s->vaddr < s->filesz) {
			*ret_offset = s->offset + (vaddr - s->vaddr);
			return true;
		}
	}
	return false;
}

/*
 * A mapping starts at a page, so it also shows file bytes before and behind its segment: the offset
 * may lie outside every segment proper. Code is what is sampled: executable segments are asked
 * first, exact ones before rounded ones.
 */
bool elf_offset_to_vaddr(const struct elf_file *elf, uint64_t offset, uint64_t *ret_vaddr)
{
	for (int pass = 0; pass < 4; pass++) {
		bool want_exec = pass < 2, rounded = pass & 1;

		for (uint32_t i = 0; i < elf->nsegments; i++) {
			const struct elf_segment *s = &elf->segments[i];
			uint64_t low = s->offset, high = s->offset + s->filesz;

			if (s->type != PT_LOAD || !(s->flags & PF_X) == want_exec || high < low)
				continue;
			if (rounded) {
				low &= ~(PAGE_BYTES - 1);
				high = high > UINT64_MAX - PAGE_BYTES ? high
								      : ALIGN_UP(high, PAGE_BYTES);
			}
			if (offset >= low && offset < high) {
				*ret_vaddr = s->vaddr + (offset - s->offset);
				return true;
			}
		}
	}
	return false;
}
