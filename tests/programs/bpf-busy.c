/*
 * bpf-busy MILLISECONDS [lines]: loads a BPF program that takes its time and runs it over and over.
 * Its function is called bpf_prog_TAG_busy_loop. With "lines" the program has types and lines:
 * busy_loop calls bpf_prog_TAG_busy_inner, which does all the work, two thirds of it at line 100
 * and one third at line 200 of busy.bpf.c. Status 77: this machine does not let it.
 */
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STEPS       4000 /* some 28 KB of machine code */
#define REPEAT      1000
#define CANNOT_DO   77
#define PACKET_SIZE 64

static long bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

/* The strings of the types, and where they begin. */
static const char strings[] = "\0int\0busy_loop\0busy_inner\0busy.bpf.c\0return x;";

enum {
	STRING_INT = 1,
	STRING_LOOP = 5,
	STRING_INNER = 15,
	STRING_FILE = 26,
	STRING_TEXT = 37
};

enum {
	TYPE_INT = 1,
	TYPE_PROTO,
	TYPE_LOOP,
	TYPE_INNER
};

static int load_types(void)
{
	struct {
		struct btf_header header;
		struct btf_type integer;
		uint32_t encoding;
		struct btf_type proto, loop, inner;
		char strings[sizeof(strings)];
	} types = {
		.header = {.magic = BTF_MAGIC,
			   .version = BTF_VERSION,
			   .hdr_len = sizeof(types.header)},
		.integer = {.name_off = STRING_INT, .info = BTF_KIND_INT << 24, .size = 4},
		.encoding = BTF_INT_SIGNED << 24 | 32,
		.proto = {.info = BTF_KIND_FUNC_PROTO << 24, .type = TYPE_INT},
		.loop = {.name_off = STRING_LOOP, .info = BTF_KIND_FUNC << 24, .type = TYPE_PROTO},
		.inner = {.name_off = STRING_INNER,
			  .info = BTF_KIND_FUNC << 24,
			  .type = TYPE_PROTO},
	};
	union bpf_attr attr;

	memcpy(types.strings, strings, sizeof(strings));
	types.header.type_len = (uint32_t)(offsetof(typeof(types), strings) - sizeof(types.header));
	types.header.str_off = types.header.type_len;
	types.header.str_len = sizeof(strings);
	memset(&attr, 0, sizeof(attr));
	attr.btf = (uintptr_t)&types;
	attr.btf_size = (uint32_t)(sizeof(types.header) + types.header.type_len + sizeof(strings));
	return (int)bpf(BPF_BTF_LOAD, &attr);
}

#define LINE(number) ((number) << 10 | 7)

/* 0: a call, 1: exit, 2: the callee, as long as the other program. */
static int load_lines(void)
{
	static struct bpf_insn code[STEPS + 4];
	static const struct bpf_func_info functions[] = {{0, TYPE_LOOP}, {2, TYPE_INNER}};
	static const struct bpf_line_info lines[] = {
		{0, STRING_FILE, STRING_TEXT, LINE(10)},
		{2, STRING_FILE, STRING_TEXT, LINE(100)},
		{2 + STEPS * 2 / 3, STRING_FILE, STRING_TEXT, LINE(200)},
	};
	int types = load_types();
	union bpf_attr attr;

	if (types < 0)
		return types;
	code[0] =
		(struct bpf_insn){.code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_CALL, .imm = 1};
	code[1] = (struct bpf_insn){.code = BPF_JMP | BPF_EXIT};
	code[2] = (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = 1};
	for (int i = 3; i < STEPS + 3; i++)
		code[i] = (struct bpf_insn){.code = BPF_ALU64 | BPF_MUL | BPF_K, .imm = 3};
	code[STEPS + 3] = (struct bpf_insn){.code = BPF_JMP | BPF_EXIT};
	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
	attr.insns = (uintptr_t)code;
	attr.insn_cnt = STEPS + 4;
	attr.license = (uintptr_t) "GPL";
	strcpy(attr.prog_name, "busy_loop");
	attr.prog_btf_fd = (uint32_t)types;
	attr.func_info_rec_size = sizeof(functions[0]);
	attr.func_info = (uintptr_t)functions;
	attr.func_info_cnt = sizeof(functions) / sizeof(functions[0]);
	attr.line_info_rec_size = sizeof(lines[0]);
	attr.line_info = (uintptr_t)lines;
	attr.line_info_cnt = sizeof(lines) / sizeof(lines[0]);
	return (int)bpf(BPF_PROG_LOAD, &attr);
}

static int load(void)
{
	static struct bpf_insn code[STEPS + 2];
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	code[0] = (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = 1};
	for (int i = 1; i <= STEPS; i++)
		code[i] = (struct bpf_insn){.code = BPF_ALU64 | BPF_MUL | BPF_K, .imm = 3};
	code[STEPS + 1] = (struct bpf_insn){.code = BPF_JMP | BPF_EXIT};
	attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
	attr.insns = (uintptr_t)code;
	attr.insn_cnt = STEPS + 2;
	attr.license = (uintptr_t) "GPL";
	strcpy(attr.prog_name, "busy_loop");
	return (int)bpf(BPF_PROG_LOAD, &attr);
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
	static char packet[PACKET_SIZE];
	double end = now_ms() + (argc > 1 ? atof(argv[1]) : 0);
	int fd = argc > 2 ? load_lines() : load();

	if (fd < 0) {
		perror("BPF_PROG_LOAD");
		return CANNOT_DO;
	}
	do {
		union bpf_attr run;

		memset(&run, 0, sizeof(run));
		run.test.prog_fd = (uint32_t)fd;
		run.test.data_in = (uintptr_t)packet;
		run.test.data_size_in = sizeof(packet);
		run.test.repeat = REPEAT;
		if (bpf(BPF_PROG_TEST_RUN, &run) < 0) {
			perror("BPF_PROG_TEST_RUN");
			return CANNOT_DO;
		}
	} while (now_ms() < end);
	return 0;
}
