/*
 * bpf-busy MILLISECONDS: loads a BPF program that takes its time and runs it over and over. Its
 * function is called bpf_prog_TAG_busy_loop. Status 77: this machine does not let it.
 */
#include <linux/bpf.h>
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
	int fd = load();

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
