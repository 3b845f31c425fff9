/* Names of interrupts, from /proc/interrupts: "virtio1-req.0", for shared lines "i801_smbus, ehci".
 */
#pragma once

#include "base/err.h"
#include "base/vec.h"

struct irq_name {
	int number;
	char *name; /* owned */
};

struct irq_names {
	VEC(struct irq_name) rows; /* as in the file */
	int unknown;               /* a number that was looked for in vain; -1 none */
};

/* Reads the text of /proc/interrupts below root. */
int irq_names_load(const char *root, struct irq_names *ret, struct err *err);
int irq_names_parse(const char *text, struct irq_names *ret);
/* NULL unknown. Numbers that are new since are looked up again, once each in a row. */
const char *irq_names_find(struct irq_names *names, int number);
void irq_names_fini(struct irq_names *names);
