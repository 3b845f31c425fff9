/*
 * jit-frames SECONDS: makes machine code while it runs, as a just-in-time compiler does: a chain of
 * functions that use the frame pointer for something else, each with a frame of another size. How
 * to unwind them stands in ./jit-PID.dump alone. They call each other, the last one takes its time
 * and calls back into this program. After half the time other code takes the same addresses.
 *
 * Every stack is main, run, jit_0 ... jit_N, and perhaps work. Status 77: not on this machine.
 */
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CANNOT_DO 77

#if defined(__x86_64__)
#define FUNCTIONS   12
#define CODE_BYTES  128 /* room of one function; 64 KiB of them */
#define LOOPS       20000
#define INDEX_BYTES 20
#define NOISE       0x5eaf00d /* what the frame pointer is used for */

struct bytes {
	uint8_t data[256];
	size_t len;
};

static void put(struct bytes *b, const void *data, size_t size)
{
	memcpy(b->data + b->len, data, size);
	b->len += size;
}

static void put8(struct bytes *b, uint8_t v)
{
	put(b, &v, sizeof(v));
}

static void put32(struct bytes *b, uint32_t v)
{
	put(b, &v, sizeof(v));
}

static void put64(struct bytes *b, uint64_t v)
{
	put(b, &v, sizeof(v));
}

static volatile uint64_t sum;

__attribute__((noinline)) static void work(void)
{
	for (int i = 0; i < LOOPS; i++)
		sum += (uint64_t)i;
}

/* push rbp; mov rbp, NOISE; sub rsp, frame; [loop]; call callee; add rsp, frame; pop rbp; ret */
static size_t make_code(uint8_t *at, uint32_t frame, uint64_t callee, int loops, size_t ends[4])
{
	struct bytes b = {0};

	put(&b, "\x55", 1);
	ends[0] = b.len;
	put(&b, "\x48\xc7\xc5", 3), put32(&b, NOISE);
	put(&b, "\x48\x81\xec", 3), put32(&b, frame);
	ends[1] = b.len;
	if (loops) {
		put(&b, "\xb9", 1), put32(&b, (uint32_t)loops); /* mov ecx, loops */
		put(&b, "\xff\xc9\x75\xfc", 4);                 /* dec ecx; jnz back */
	}
	put(&b, "\x48\xb8", 2), put64(&b, callee); /* mov rax, callee */
	put(&b, "\xff\xd0", 2);                    /* call rax */
	put(&b, "\x48\x81\xc4", 3), put32(&b, frame);
	ends[2] = b.len;
	put(&b, "\x5d", 1);
	ends[3] = b.len;
	put(&b, "\xc3", 1);
	memcpy(at, b.data, b.len);
	return b.len;
}

static void uleb(struct bytes *b, uint32_t value)
{
	while (value >= 0x80) {
		put8(b, (uint8_t)(value | 0x80));
		value >>= 7;
	}
	put8(b, (uint8_t)value);
}

static void pad(struct bytes *b, size_t from, size_t multiple)
{
	while ((b->len - from) % multiple)
		put8(b, 0); /* DW_CFA_nop */
}

/* advance_loc to an offset, then def_cfa_offset */
static void cfa_offset(struct bytes *b, size_t *at, size_t to, uint32_t offset)
{
	put8(b, (uint8_t)(0x40 | (to - *at)));
	put8(b, 0x0e);
	uleb(b, offset);
	*at = to;
}

/* .eh_frame of one function, as if it stood behind the code, and its index. */
static void make_frame(struct bytes *b, size_t code, uint32_t frame, const size_t ends[4])
{
	size_t at = 0, start, code_room = (code + 7) & ~(size_t)7;
	uint32_t length;

	put32(b, 20);
	put32(b, 0);
	put(b, "\1zR\0\1\x78\x10\1\x1b", 9); /* pcrel, sdata4 */
	put(b, "\x0c\7\x08\x90\1\0\0", 7);   /* def_cfa rsp + 8; return address at -8 */
	start = b->len;
	put32(b, 0);
	put32(b, (uint32_t)b->len); /* back to the first entry */
	put32(b, (uint32_t) - (int)(code_room + b->len));
	put32(b, (uint32_t)code);
	put8(b, 0);
	cfa_offset(b, &at, ends[0], 16);
	put(b, "\x86\2", 2); /* rbp at -16 */
	cfa_offset(b, &at, ends[1], 16 + frame);
	cfa_offset(b, &at, ends[2], 16);
	cfa_offset(b, &at, ends[3], 8);
	put8(b, 0xc6); /* rbp is the caller's again */
	pad(b, start, 8);
	length = (uint32_t)(b->len - start - 4);
	memcpy(b->data + start, &length, sizeof(length));
	put32(b, 0);
	start = b->len;
	put(b, "\1\x1b\3\x3b", 4);
	put32(b, (uint32_t) - (int)b->len);
	put32(b, 1);
	put32(b, (uint32_t) - (int)(code_room + start));
	put32(b, (uint32_t)(24 - (int)start));
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void put_record(FILE *dump, uint32_t id, size_t body)
{
	uint32_t head[2] = {id, (uint32_t)(16 + body)};
	uint64_t now = now_ns();

	fwrite(head, sizeof(head), 1, dump);
	fwrite(&now, sizeof(now), 1, dump);
}

static void dump_function(FILE *dump, const uint8_t *code, size_t size, const struct bytes *frame,
			  unsigned index)
{
	uint64_t sizes[3] = {frame->len, INDEX_BYTES, 0};
	uint32_t ids[2] = {(uint32_t)getpid(), (uint32_t)getpid()};
	uint64_t place[4] = {(uintptr_t)code, (uintptr_t)code, size, index};
	char name[32];

	put_record(dump, 4, sizeof(sizes) + frame->len);
	fwrite(sizes, sizeof(sizes), 1, dump);
	fwrite(frame->data, frame->len, 1, dump);
	snprintf(name, sizeof(name), "jit_%u", index % FUNCTIONS);
	put_record(dump, 0, sizeof(ids) + sizeof(place) + strlen(name) + 1 + size);
	fwrite(ids, sizeof(ids), 1, dump);
	fwrite(place, sizeof(place), 1, dump);
	fwrite(name, strlen(name) + 1, 1, dump);
	fwrite(code, size, 1, dump);
}

/* generation: other frames each time, at the same addresses. */
static void compile(uint8_t *memory, FILE *dump, unsigned generation)
{
	for (unsigned i = FUNCTIONS; i-- > 0;) {
		uint8_t *code = memory + i * CODE_BYTES;
		bool last = i + 1 == FUNCTIONS;
		uint64_t callee = last ? (uintptr_t)work : (uintptr_t)(code + CODE_BYTES);
		uint32_t frame = 16 * (1 + (i * 5 + generation * 3) % 11);
		struct bytes described = {0};
		size_t ends[4];
		size_t size = make_code(code, frame, callee, last ? LOOPS : 0, ends);

		make_frame(&described, size, frame, ends);
		dump_function(dump, code, size, &described, generation * FUNCTIONS + i);
	}
	fflush(dump);
}

static FILE *open_dump(void)
{
	uint32_t head[6] = {0x4a695444, 1, 40, EM_X86_64, 0, (uint32_t)getpid()};
	uint64_t times[2] = {now_ns(), 0};
	char path[64];
	FILE *dump;

	snprintf(path, sizeof(path), "jit-%d.dump", getpid());
	dump = fopen(path, "w+");
	if (!dump)
		return NULL;
	fwrite(head, sizeof(head), 1, dump);
	fwrite(times, sizeof(times), 1, dump);
	fflush(dump);
	/* Tells recorders of the file. */
	mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0);
	return dump;
}

__attribute__((noinline)) static void run(void (*code)(void), uint64_t until)
{
	while (now_ns() < until)
		code();
	sum++; /* no tail call */
}

int main(int argc, char **argv)
{
	uint64_t half = (uint64_t)((argc > 1 ? atof(argv[1]) : 0) * 5e8);
	uint8_t *memory = mmap(NULL, 65536, PROT_READ | PROT_WRITE | PROT_EXEC,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	FILE *dump = open_dump();
	void (*code)(void);

	if (!dump || memory == MAP_FAILED) {
		perror("executable memory, or a file here");
		return CANNOT_DO;
	}
	memcpy(&code, &memory, sizeof(code));
	for (unsigned generation = 0; generation < 2; generation++) {
		compile(memory, dump, generation);
		run(code, now_ns() + half);
	}
	fclose(dump);
	return 0;
}
#else
int main(void)
{
	return CANNOT_DO;
}
#endif
