/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The types that the programs use: a few fields of kernel structs each, relocated when loading
 * (CO-RE). The kernel's UAPI headers are not needed to build.
 */
#pragma once

typedef unsigned char u8, __u8;
typedef unsigned short u16, __u16, __be16;
typedef unsigned int u32, __u32, __be32, __wsum;
typedef unsigned long long u64, __u64, __be64;
typedef signed char s8, __s8;
typedef short s16, __s16;
typedef int s32, __s32;
typedef long long s64, __s64;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_F_MMAPABLE = 1U << 10,
};

struct bpf_pidns_info {
	u32 pid, tgid;
};

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define READ_ONCE(x)         (*(const volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, value) (*(volatile typeof(x) *)&(x) = (value))

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct hrtimer {
	s64 _softexpires;
	void *function;
};

struct work_struct {
	void *func;
};

struct rq {
	u64 prev_steal_time_rq;
};

struct cfs_rq {
	struct rq *rq;
};

struct sched_entity {
	struct cfs_rq *cfs_rq;
};

struct task_struct {
	int pid;
	int prio;
	char comm[16];
	struct sched_entity se;
};

struct kvm_steal_time {
	u64 steal;
};

#pragma clang attribute pop

extern const struct kvm_steal_time steal_time __ksym __weak;
