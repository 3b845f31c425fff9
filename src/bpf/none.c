/* In place of latency-programs.c in a build without BPF: says so. */
#include <errno.h>
#include <stddef.h>

#include "bpf/latency-programs.h"

const char *bpf_latency_version(void)
{
	return "not built";
}

int bpf_latency_probe(struct err *err)
{
	return err_set(
		err, -EOPNOTSUPP,
		"this culprit was built without BPF: install clang, bpftool and libbpf-dev and "
		"build again with -Dbpf=enabled");
}

int bpf_latency_open(const struct bpf_latency_options *options, struct bpf_latency **ret,
		     struct err *err)
{
	return bpf_latency_probe(err);
}

void bpf_latency_activate(struct bpf_latency *set)
{
}

int bpf_latency_settle(struct bpf_latency *set, unsigned timeout_ms)
{
	return -EOPNOTSUPP;
}

struct lat_cpu *bpf_latency_cpu(const struct bpf_latency *set, unsigned cpu)
{
	return NULL;
}

struct lat_record *bpf_latency_ring(const struct bpf_latency *set, unsigned cpu)
{
	return NULL;
}

unsigned *bpf_latency_frozen(struct bpf_latency *set)
{
	return NULL;
}

void bpf_latency_detach(struct bpf_latency *set)
{
}

bool bpf_latency_cost(const struct bpf_latency *set, unsigned i, struct bpf_latency_cost *ret)
{
	return false;
}

void bpf_latency_free(struct bpf_latency *set)
{
}
