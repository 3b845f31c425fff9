/*
 * libpfm4 by dlopen: its tables know the manuals' names of the CPUs up to its release. The library
 * is asked to encode tables of CPUs other than the one it runs on (LIBPFM_ENCODE_INACTIVE), which
 * is how
 * --cpu works and how a virtual machine without a PMU still understands the names.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "events/vendor-internal.h"

#define PFM_NAME_BYTES 256
#define PFM_TABLES_MAX 512
#define PFM_PMU_END    1024 /* beyond the last table of any release; missing numbers are skipped */

/*
 * The library's ABI, version 4, as far as it is used: its header is not needed to build. Each
 * struct carries its size, by which the library keeps old callers working.
 */
enum {
	PFM_SUCCESS = 0,
	PFM_ERR_NOTFOUND = -4,
	PFM_PLM_ALL = 1 | 8 | 16, /* kernel, user, hypervisor */
	PFM_OS_PERF_EVENT = 1,
	PFM_OS_PERF_EVENT_EXT = 2,
	PFM_PMU_TYPE_CORE = 1,
	PFM_PMU_TYPE_OS_GENERIC = 3,
	PFM_ATTR_UMASK = 1,
};

struct pfm_pmu_info {
	const char *name, *desc;
	size_t size;
	int pmu, type, nevents, first_event, max_encoding, num_cntrs, num_fixed_cntrs;
	unsigned is_present : 1, is_dfl : 1, reserved : 30;
};

struct pfm_event_info {
	const char *name, *desc, *equiv;
	size_t size;
	uint64_t code;
	int pmu, dtype, idx, nattrs, reserved;
	unsigned flags;
};

struct pfm_attr_info {
	const char *name, *desc, *equiv;
	size_t size;
	uint64_t code;
	int type, idx, ctrl;
	unsigned flags;
	uint64_t value;
};

struct pfm_encode_arg {
	struct perf_event_attr *attr;
	char **fstr;
	size_t size;
	int idx, cpu, flags;
};

struct pfm {
	void *library;
	int (*initialize)(void);
	void (*terminate)(void);
	const char *(*strerror)(int);
	int (*get_pmu_info)(int, struct pfm_pmu_info *);
	int (*get_event_next)(int);
	int (*get_event_info)(int, int, struct pfm_event_info *);
	int (*get_os_event_encoding)(const char *, int, int, void *);
	int (*get_event_attr_info)(int, int, int, struct pfm_attr_info *);

	int tables[PFM_TABLES_MAX]; /* the ones asked, core first */
	unsigned table_count;

	/* of the last event handed out; the library may know a longer attr than we do */
	union {
		struct perf_event_attr attr;
		char room[512];
	};
	char name[PFM_NAME_BYTES], table[PFM_NAME_BYTES];
	char counters[32];
	struct str description;
};

/* Our short names and the tables that serve them, best first. Steppings of one core share a table.
 */
static const struct {
	const char *cpu, *tables[3];
} cpu_tables[] = {
	{"nhm", {"nhm"}},
	{"wsm", {"wsm_dp", "wsm"}},
	{"snb", {"snb"}},
	{"jkt", {"snb_ep"}},
	{"ivb", {"ivb"}},
	{"ivt", {"ivb_ep"}},
	{"hsw", {"hsw"}},
	{"hsx", {"hsw_ep"}},
	{"bdw", {"bdw"}},
	{"bdx", {"bdw_ep"}},
	{"skl", {"skl"}},
	{"skx", {"skx"}},
	{"clx", {"clx"}},
	{"icl", {"icl"}},
	{"tgl", {"icl"}},
	{"rkl", {"icl"}},
	{"icx", {"icx"}},
	{"spr", {"spr"}},
	{"emr", {"emr", "spr"}},
	{"gnr", {"gnr"}},
	{"adl-p", {"adl_glc"}},
	{"adl-e", {"adl_grt"}},
	{"slm", {"slm"}},
	{"glm", {"glm"}},
	{"knl", {"knl"}},
	{"snr", {"tmt"}},
	{"ehl", {"tmt"}},
	{"zen1", {"amd64_fam17h_zen1"}},
	{"zen2", {"amd64_fam17h_zen2"}},
	{"zen3", {"amd64_fam19h_zen3"}},
	{"zen4", {"amd64_fam19h_zen4"}},
	{"zen5", {"amd64_fam1ah_zen5"}},
	{"a53", {"arm_ac53"}},
	{"a55", {"arm_ac55"}},
	{"a57", {"arm_ac57"}},
	{"a72", {"arm_ac72"}},
	{"a73", {"arm_ac73"}},
	{"a76", {"arm_ac76"}},
	{"n1", {"arm_n1"}},
	{"n2", {"arm_n2"}},
	{"v1", {"arm_v1"}},
	{"v2", {"arm_v2"}},
	{"v3", {"arm_v3"}},
	{"n3", {"arm_n3"}},
};

void pfm_cpu_names(struct str *out)
{
	for (size_t i = 0; i < ARRAY_LEN(cpu_tables); i++)
		str_printf(out, "%s%s", i ? " " : "", cpu_tables[i].cpu);
}

static int load(struct pfm *pfm)
{
	const struct {
		const char *name;
		void **slot;
	} symbols[] = {
		{"pfm_initialize", (void **)&pfm->initialize},
		{"pfm_terminate", (void **)&pfm->terminate},
		{"pfm_strerror", (void **)&pfm->strerror},
		{"pfm_get_pmu_info", (void **)&pfm->get_pmu_info},
		{"pfm_get_event_next", (void **)&pfm->get_event_next},
		{"pfm_get_event_info", (void **)&pfm->get_event_info},
		{"pfm_get_os_event_encoding", (void **)&pfm->get_os_event_encoding},
		{"pfm_get_event_attr_info", (void **)&pfm->get_event_attr_info},
	};
	char *before;
	int r;

	pfm->library = dlopen("libpfm.so.4", RTLD_NOW | RTLD_LOCAL);
	if (!pfm->library)
		return -ENOENT;
	for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
		*symbols[i].slot = dlsym(pfm->library, symbols[i].name);
		if (!*symbols[i].slot)
			return -ENOENT;
	}
	/* The switch is read once, while the library starts. */
	before = getenv("LIBPFM_ENCODE_INACTIVE");
	(void)setenv("LIBPFM_ENCODE_INACTIVE", "1", 1);
	r = pfm->initialize();
	if (!before)
		(void)unsetenv("LIBPFM_ENCODE_INACTIVE");
	return r == PFM_SUCCESS ? 0 : -ENOENT;
}

static bool table_info(const struct pfm *pfm, int pmu, struct pfm_pmu_info *ret)
{
	*ret = (struct pfm_pmu_info){.size = sizeof(*ret)};
	return pfm->get_pmu_info(pmu, ret) == PFM_SUCCESS;
}

static void add_table(struct pfm *pfm, int pmu)
{
	for (unsigned i = 0; i < pfm->table_count; i++)
		if (pfm->tables[i] == pmu)
			return;
	if (pfm->table_count < PFM_TABLES_MAX)
		pfm->tables[pfm->table_count++] = pmu;
}

static bool add_named(struct pfm *pfm, const char *name)
{
	struct pfm_pmu_info info;

	for (int pmu = 0; pmu < PFM_PMU_END; pmu++)
		if (table_info(pfm, pmu, &info) && strcmp(info.name, name) == 0) {
			add_table(pfm, pmu);
			return true;
		}
	return false;
}

/* Tables by our short name of a CPU, or by the library's own name. */
static void add_cpu(struct pfm *pfm, const char *cpu)
{
	for (size_t i = 0; i < ARRAY_LEN(cpu_tables); i++) {
		if (strcmp(cpu_tables[i].cpu, cpu) != 0)
			continue;
		for (size_t t = 0; t < ARRAY_LEN(cpu_tables[i].tables); t++)
			if (cpu_tables[i].tables[t] && add_named(pfm, cpu_tables[i].tables[t]))
				return;
	}
	(void)add_named(pfm, cpu);
}

/* What the library found on this machine, the generic kernel events left out. */
static void add_present(struct pfm *pfm)
{
	struct pfm_pmu_info info;

	for (int pmu = 0; pmu < PFM_PMU_END; pmu++)
		if (table_info(pfm, pmu, &info) && info.is_present && info.nevents > 0 &&
		    info.type != PFM_PMU_TYPE_OS_GENERIC && strcmp(info.name, "perf_raw") != 0)
			add_table(pfm, pmu);
}

int pfm_open(const char *uarch, const char *cpu, struct pfm **ret, struct err *err)
{
	struct pfm *pfm = calloc(1, sizeof(*pfm));

	if (!pfm)
		return err_set(err, -ENOMEM, "out of memory");
	if (load(pfm) < 0) {
		pfm_close(pfm);
		return err_set(
			err, -ENOENT,
			"vendor names need libpfm4, which is not installed (Debian: libpfm4)");
	}
	if (cpu)
		add_cpu(pfm, cpu);
	else if (uarch)
		add_cpu(pfm, uarch);
	if (!cpu)
		add_present(pfm);
	if (pfm->table_count == 0) {
		struct str names = {0};
		int r;

		pfm_cpu_names(&names);
		r = cpu ? err_set(err, -ENOENT,
				  "libpfm4 has no table of the CPU '%s'; it may have: %s", cpu,
				  str_text(&names))
			: err_set(err, -ENOENT, "libpfm4 has no table of this CPU");
		str_fini(&names);
		pfm_close(pfm);
		return r;
	}
	*ret = pfm;
	return 0;
}

void pfm_close(struct pfm *pfm)
{
	if (!pfm)
		return;
	if (pfm->library && pfm->terminate)
		pfm->terminate();
	if (pfm->library)
		dlclose(pfm->library);
	str_fini(&pfm->description);
	free(pfm);
}

/* One name of one table to pfm->attr. The library's error code. */
static int encode(struct pfm *pfm, const char *table, const char *name)
{
	struct pfm_encode_arg arg = {.attr = &pfm->attr, .size = sizeof(arg)};
	char text[2 * PFM_NAME_BYTES];

	if ((size_t)snprintf(text, sizeof(text), "%s::%s", table, name) >= sizeof(text))
		return PFM_ERR_NOTFOUND;
	pfm->attr = (struct perf_event_attr){.size = sizeof(pfm->attr)};
	return pfm->get_os_event_encoding(text, PFM_PLM_ALL, PFM_OS_PERF_EVENT_EXT, &arg);
}

static void counters_text(const struct pfm_pmu_info *info, const struct pfm_event_info *event,
			  char *buf, size_t size)
{
	/* The library tells how many counters the PMU has, not which of them an event may use. */
	buf[0] = '\0';
	if (info->type == PFM_PMU_TYPE_CORE && info->num_cntrs > 0)
		snprintf(buf, size, "of %d", info->num_cntrs);
}

static void hand_out(struct pfm *pfm, const struct pfm_pmu_info *info, struct vendor_event *ret)
{
	snprintf(pfm->table, sizeof(pfm->table), "libpfm4 %s", info->name);
	*ret = (struct vendor_event){
		.name = pfm->name,
		.description = str_text(&pfm->description),
		.counters = pfm->counters,
		.table = pfm->table,
		.pmu = "",
		.attr = &pfm->attr,
	};
}

int pfm_find(struct pfm *pfm, const char *name, struct vendor_event *ret, struct err *err)
{
	int worst = PFM_ERR_NOTFOUND;

	if (strlen(name) >= sizeof(pfm->name) || strstr(name, "::"))
		return -ENOENT;
	for (unsigned i = 0; i < pfm->table_count; i++) {
		struct pfm_pmu_info info;
		int r;

		if (!table_info(pfm, pfm->tables[i], &info))
			continue;
		r = encode(pfm, info.name, name);
		if (r == PFM_SUCCESS) {
			str_clear(&pfm->description);
			pfm->counters[0] = '\0';
			strcpy(pfm->name, name);
			hand_out(pfm, &info, ret);
			return 0;
		}
		/* The event is there but an attribute is not: that is worth saying. */
		if (r != PFM_ERR_NOTFOUND)
			worst = r;
	}
	if (worst == PFM_ERR_NOTFOUND)
		return -ENOENT;
	return err_set(err, -ENOENT, "libpfm4 says: %s", pfm->strerror(worst));
}

struct each {
	struct pfm *pfm;
	const struct pfm_pmu_info *info;
	int (*fn)(void *arg, const struct vendor_event *event);
	void *arg;
};

/* name[:mask] with its description. */
static int emit(const struct each *each, const struct pfm_event_info *event, const char *mask,
		const char *mask_text)
{
	struct pfm *pfm = each->pfm;
	struct vendor_event out;
	bool encoded;

	if ((size_t)snprintf(pfm->name, sizeof(pfm->name), "%s%s%s", event->name, mask ? ":" : "",
			     mask ? mask : "") >= sizeof(pfm->name))
		return 0;
	encoded = encode(pfm, each->info->name, pfm->name) == PFM_SUCCESS;
	str_clear(&pfm->description);
	str_puts(&pfm->description, event->desc ? event->desc : "");
	if (mask_text && mask_text[0])
		str_printf(&pfm->description, "%s%s", event->desc && event->desc[0] ? ": " : "",
			   mask_text);
	counters_text(each->info, event, pfm->counters, sizeof(pfm->counters));
	hand_out(pfm, each->info, &out);
	if (!encoded)
		out.attr = NULL; /* needs masks of several kinds at once */
	return each->fn(each->arg, &out);
}

static int emit_event(const struct each *each, int index)
{
	struct pfm_event_info event = {.size = sizeof(event)};
	bool masks = false;
	int r = 0;

	if (each->pfm->get_event_info(index, PFM_OS_PERF_EVENT, &event) != PFM_SUCCESS)
		return 0;
	for (int i = 0; r >= 0 && i < event.nattrs; i++) {
		struct pfm_attr_info attr = {.size = sizeof(attr)};

		if (each->pfm->get_event_attr_info(index, i, PFM_OS_PERF_EVENT, &attr) !=
			    PFM_SUCCESS ||
		    attr.type != PFM_ATTR_UMASK)
			continue;
		masks = true;
		if (!attr.equiv) /* another name of a mask that is listed */
			r = emit(each, &event, attr.name, attr.desc);
	}
	return masks || r < 0 ? r : emit(each, &event, NULL, NULL);
}

int pfm_each(struct pfm *pfm, int (*fn)(void *arg, const struct vendor_event *event), void *arg)
{
	int r = 0;

	for (unsigned i = 0; r >= 0 && i < pfm->table_count; i++) {
		struct pfm_pmu_info info;
		struct each each = {pfm, &info, fn, arg};

		if (!table_info(pfm, pfm->tables[i], &info))
			continue;
		for (int index = info.first_event; r >= 0 && index != -1;
		     index = pfm->get_event_next(index))
			r = emit_event(&each, index);
	}
	return r < 0 ? r : 0;
}
