/* A machine made of a few files in a temporary directory, for tests of host and events. */
#pragma once

#include "host/host.h"

struct fake_root {
	char path[64];
	struct host host;
};

/* Both abort the program on failure: a test without its machine tells nothing. */
void fake_root_make(struct fake_root *root);
void fake_root_file(const struct fake_root *root, const char *path, const char *text);
void fake_root_remove(struct fake_root *root);

/* Machines used by several tests. */
void fake_root_intel(struct fake_root *root);  /* one core PMU, uncore, power, msr, tracefs */
void fake_root_hybrid(struct fake_root *root); /* cpu_core on 0-3, cpu_atom on 4-7 */
void fake_root_arm(struct fake_root *root);    /* Neoverse-N1, armv8_pmuv3_0 */
