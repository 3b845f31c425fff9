/*
 * Changes ELF files without breaking them: the bytes of one section are mutated in place, or at
 * the end of the file when they grow, and the section's header follows. An inserted byte would
 * otherwise move everything behind it away from the offsets that the headers give, and nothing
 * beyond the headers would ever be reached. One change in four is of any kind anywhere.
 */
#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define GROWTH 64

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

struct image {
	uint8_t *data;
	size_t size;
	bool is64, swap;
	uint64_t shoff, shnum, shentsize;
};

static uint64_t number(const struct image *image, size_t at, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)image->data[at + i] << 8 * (image->swap ? bytes - 1 - i : i);
	return value;
}

static void set_number(struct image *image, size_t at, unsigned bytes, uint64_t value)
{
	for (unsigned i = 0; i < bytes; i++)
		image->data[at + i] = (uint8_t)(value >> 8 * (image->swap ? bytes - 1 - i : i));
}

static bool open_image(struct image *image)
{
	if (image->size < sizeof(Elf64_Ehdr) || memcmp(image->data, ELFMAG, SELFMAG) != 0)
		return false;
	image->is64 = image->data[EI_CLASS] == ELFCLASS64;
	image->swap = image->data[EI_DATA] == ELFDATA2MSB;
	if (image->is64) {
		image->shoff = number(image, offsetof(Elf64_Ehdr, e_shoff), 8);
		image->shentsize = sizeof(Elf64_Shdr);
		image->shnum = number(image, offsetof(Elf64_Ehdr, e_shnum), 2);
	} else {
		image->shoff = number(image, offsetof(Elf32_Ehdr, e_shoff), 4);
		image->shentsize = sizeof(Elf32_Shdr);
		image->shnum = number(image, offsetof(Elf32_Ehdr, e_shnum), 2);
	}
	return image->shnum > 0 && image->shoff <= image->size &&
	       image->shnum * image->shentsize <= image->size - image->shoff;
}

/* Where a section's header has a field. */
static size_t field(const struct image *image, uint64_t section, size_t in64, size_t in32)
{
	return image->shoff + section * image->shentsize + (image->is64 ? in64 : in32);
}

#define FIELD(image_, section_, name_) \
	field(image_, section_, offsetof(Elf64_Shdr, name_), offsetof(Elf32_Shdr, name_))

static bool choose_section(const struct image *image, unsigned random, uint64_t *ret)
{
	unsigned word = image->is64 ? 8 : 4;

	for (uint64_t tries = 0; tries < image->shnum; tries++) {
		uint64_t section = (random + tries) % image->shnum,
			 offset = number(image, FIELD(image, section, sh_offset), word),
			 size = number(image, FIELD(image, section, sh_size), word);

		if (number(image, FIELD(image, section, sh_type), 4) == SHT_NOBITS || size == 0 ||
		    offset > image->size || size > image->size - offset)
			continue;
		*ret = section;
		return true;
	}
	return false;
}

static size_t mutate_section(struct image *image, uint64_t section, size_t max_size)
{
	unsigned word = image->is64 ? 8 : 4;
	size_t offset = number(image, FIELD(image, section, sh_offset), word),
	       size = number(image, FIELD(image, section, sh_size), word), now;
	uint8_t *copy = malloc(size + GROWTH);

	if (!copy)
		return image->size;
	memcpy(copy, image->data + offset, size);
	now = LLVMFuzzerMutate(copy, size, size + GROWTH);
	if (now > size && now <= max_size - image->size) {
		offset = image->size;
		image->size += now;
		set_number(image, FIELD(image, section, sh_offset), word, offset);
	} else if (now > size) {
		now = size;
	}
	set_number(image, FIELD(image, section, sh_size), word, now);
	memcpy(image->data + offset, copy, now);
	free(copy);
	return image->size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	struct image image = {.data = data, .size = size};
	uint64_t section;

	if (seed % 4 == 0 || size > max_size || !open_image(&image) ||
	    !choose_section(&image, seed / 4, &section))
		return LLVMFuzzerMutate(data, size, max_size);
	return mutate_section(&image, section, max_size);
}
