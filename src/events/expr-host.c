#include "events/expr-host.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"

#define DEVICES "/sys/bus/event_source/devices"

static bool seen_before(const struct host_topology *topology, size_t index, bool cores)
{
	const struct host_cpu *cpu = &topology->cpus.data[index];

	for (size_t i = 0; i < index; i++) {
		const struct host_cpu *other = &topology->cpus.data[i];

		if (other->online && other->socket == cpu->socket && other->die == cpu->die &&
		    (!cores || other->core == cpu->core))
			return true;
	}
	return false;
}

static bool socket_before(const struct host_topology *topology, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (topology->cpus.data[i].online &&
		    topology->cpus.data[i].socket == topology->cpus.data[index].socket)
			return true;
	return false;
}

static void read_topology(const struct host *host, struct expr_host *ret)
{
	struct host_topology topology;

	if (host_topology_read(host, &topology, NULL) < 0)
		return;
	ret->cpus = (unsigned)topology.cpus.len;
	ret->cpus_online = (unsigned)cpuset_count(&topology.online);
	ret->threads_per_core = topology.threads_per_core;
	for (size_t i = 0; i < topology.cpus.len; i++) {
		if (!topology.cpus.data[i].online)
			continue;
		ret->cores += !seen_before(&topology, i, true);
		ret->dies += !seen_before(&topology, i, false);
		ret->packages += !socket_before(&topology, i);
	}
	host_topology_fini(&topology);
}

/* Arm: caps/slots of the first core PMU; 0 there means that the core does not tell. */
static unsigned read_slots(const struct host *host)
{
	char path[300];
	struct dirent *entry;
	unsigned slots = 0;
	DIR *dir;

	if (host_path(host, path, sizeof(path), DEVICES) < 0 || !(dir = opendir(path)))
		return 0;
	while (slots == 0 && (entry = readdir(dir)) != NULL) {
		struct host_number number;

		if (strncmp(entry->d_name, "armv", 4) != 0)
			continue;
		snprintf(path, sizeof(path), DEVICES "/%.200s/caps/slots", entry->d_name);
		number = host_number(host, path);
		if (number.known && number.value > 0 && number.value < 256)
			slots = (unsigned)number.value;
	}
	closedir(dir);
	return slots;
}

void expr_host_read(const struct host *host, const struct host_cpu_model *model,
		    struct expr_host *ret)
{
	struct host_number smt = host_number(host, "/sys/devices/system/cpu/smt/active");
	CLEANUP_FREE char *table = NULL;
	size_t size;
	int r;

	*ret = (struct expr_host){.model = model, .smt_on = -1};
	read_topology(host, ret);
	ret->slots = read_slots(host);
	if (smt.known)
		ret->smt_on = smt.value != 0;
	else if (ret->threads_per_core > 0)
		ret->smt_on = ret->threads_per_core > 1;
	/* the firmware's table of memory that stays without power */
	r = host_read(host, "/sys/firmware/acpi/tables/NFIT", 1 << 20, &table, &size, NULL);
	ret->has_pmem = r >= 0 || r == -EACCES || r == -EFBIG;
}

/* --- asking ---------------------------------------------------------------------------------- */

static void answer(bool known, double value, const char *name, struct expr_value *ret)
{
	*ret = known ? expr_number(value)
		     : expr_missing(EXPR_NOT_COUNTED, "#%.40s is not known", name);
}

static void literal(const struct expr_host *h, const char *name, struct expr_value *ret)
{
	const struct {
		const char *name;
		unsigned value;
	} counts[] = {{"num_cpus", h->cpus},
		      {"num_cpus_online", h->cpus_online},
		      {"num_cores", h->cores},
		      {"num_dies", h->dies},
		      {"num_packages", h->packages},
		      {"threads_per_core", h->threads_per_core},
		      {"slots", h->slots}};

	for (size_t i = 0; i < ARRAY_LEN(counts); i++)
		if (strcasecmp(name, counts[i].name) == 0) {
			answer(counts[i].value > 0, counts[i].value, name, ret);
			return;
		}
	if (strcasecmp(name, "smt_on") == 0)
		answer(h->smt_on >= 0, h->smt_on, name, ret);
	else if (strcasecmp(name, "core_wide") == 0)
		answer(h->smt_on >= 0 || h->system_wide, h->system_wide || h->smt_on == 0, name,
		       ret);
	else if (strcasecmp(name, "system_tsc_freq") == 0)
		answer(h->tsc_hz > 0, h->tsc_hz, name, ret);
	else if (strcasecmp(name, "has_pmem") == 0)
		answer(h->has_pmem >= 0, h->has_pmem, name, ret);
	else if (strcasecmp(name, "ebs_mode") == 0)
		answer(true, 0, name, ret);
	else
		*ret = expr_missing(EXPR_NOT_SUPPORTED, "#%.40s means nothing here", name);
}

/* Arm: the same part, at least this variant and revision. Others: a pattern of the whole id, with
 * or without the stepping. */
static bool is_cpu(const struct host_cpu_model *model, const char *name)
{
	char anchored[512], bare[sizeof(model->id)], *stepping;
	const uint64_t revision = 0xf0000f;
	regex_t regex;
	bool match;

	if (model->vendor == CPU_VENDOR_ARM) {
		char *end;
		uint64_t midr = strtoull(name, &end, 16);

		return *end == '\0' && (midr & ~revision) == (model->midr & ~revision) &&
		       (model->midr & revision) >= (midr & revision);
	}
	snprintf(anchored, sizeof(anchored), "^(%.480s)$", name);
	if (regcomp(&regex, anchored, REG_EXTENDED | REG_ICASE | REG_NOSUB) != 0)
		return false;
	snprintf(bare, sizeof(bare), "%s", model->id);
	stepping = strrchr(bare, '-');
	if (stepping)
		*stepping = '\0';
	match = regexec(&regex, model->id, 0, NULL, 0) == 0 ||
		regexec(&regex, bare, 0, NULL, 0) == 0;
	regfree(&regex);
	return match;
}

void expr_host_constant(void *ctx, enum expr_ask ask, const char *name, struct expr_value *ret)
{
	const struct expr_host *h = ctx;

	if (ask == EXPR_LITERAL)
		literal(h, name, ret);
	else if (ask == EXPR_CPUID && h->model && h->model->known)
		*ret = expr_number(is_cpu(h->model, name));
	else if (ask == EXPR_CPUID)
		*ret = expr_missing(EXPR_NOT_COUNTED, "the CPU is not known");
}
