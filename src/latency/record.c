#include "latency/record.h"

#include "base/util.h"

static const char *const class_names[] = {"unexplained", "nmi", "irq", "softirq", "thread"};
static const char *const context_names[] = {"irq", "thread", "user"};

const char *noise_class_name(enum noise_class class)
{
	return (unsigned)class < ARRAY_LEN(class_names) ? class_names[class] : "unknown";
}

const char *latency_context_name(enum latency_context context)
{
	return (unsigned)context < ARRAY_LEN(context_names) ? context_names[context] : "unknown";
}
