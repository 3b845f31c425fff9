#include "events/pmu.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/str.h"
#include "base/util.h"

#define DEVICES     "/sys/bus/event_source/devices"
#define SMALL_FILE  (64 * 1024)
#define ENTRIES_MAX 65536 /* of one directory: sysfs never has more */

/* --- bit fields ------------------------------------------------------------------------------ */

int pmu_format_parse(const char *text, uint8_t *ret_word, uint64_t *ret_mask)
{
	uint64_t mask = 0;
	uint8_t word = 0;
	const char *at;

	if (!str_prefix(text, "config", &at))
		return -EINVAL;
	if (*at >= '1' && *at < '0' + PMU_CONFIG_WORDS)
		word = (uint8_t)(*at++ - '0');
	if (*at != ':')
		return -EINVAL;
	do {
		unsigned long first, last;
		char *end;

		if (!isdigit((unsigned char)at[1]))
			return -EINVAL;
		first = last = strtoul(at + 1, &end, 10);
		if (*end == '-') {
			if (!isdigit((unsigned char)end[1]))
				return -EINVAL;
			last = strtoul(end + 1, &end, 10);
		}
		if (first > last || last > 63)
			return -EINVAL;
		mask |= (last == 63 ? ~UINT64_C(0) : (UINT64_C(1) << (last + 1)) - 1) &
			~((UINT64_C(1) << first) - 1);
		at = end;
	} while (*at == ',');
	at += strspn(at, " \t\n");
	if (*at != '\0')
		return -EINVAL;
	*ret_word = word;
	*ret_mask = mask;
	return 0;
}

uint64_t pmu_format_max(uint64_t mask)
{
	int bits = __builtin_popcountll(mask);

	return bits == 64 ? ~UINT64_C(0) : (UINT64_C(1) << bits) - 1;
}

int pmu_format_deposit(uint64_t mask, uint64_t value, uint64_t *word)
{
	if (value > pmu_format_max(mask))
		return -ERANGE;
	*word &= ~mask;
	while (mask) {
		uint64_t low = mask & -mask;

		if (value & 1)
			*word |= low;
		value >>= 1;
		mask ^= low;
	}
	return 0;
}

/* --- reading sysfs --------------------------------------------------------------------------- */

static int read_cpus(const struct host *host, struct pmu *pmu, const char *file)
{
	char path[PATH_MAX];
	size_t size;
	CLEANUP_FREE char *text = NULL;
	int r;

	snprintf(path, sizeof(path), DEVICES "/%s/%s", pmu->name, file);
	r = host_read(host, path, SMALL_FILE, &text, &size, NULL);
	if (r < 0)
		return r;
	if (text[strspn(text, " \n")] == '\0')
		return -ENODATA;
	return cpuset_parse(text, &pmu->cpus, NULL);
}

static int pmu_read(const struct host *host, const char *name, struct pmu *ret)
{
	struct pmu pmu = {0};
	char path[PATH_MAX];
	struct host_number type;

	snprintf(path, sizeof(path), DEVICES "/%s/type", name);
	type = host_number(host, path);
	if (!type.known || type.value < 0 || type.value > UINT32_MAX)
		return -ENOENT;
	pmu.type = (uint32_t)type.value;
	pmu.name = strdup(name);
	if (!pmu.name)
		return -ENOMEM;
	if (read_cpus(host, &pmu, "cpus") == 0)
		pmu.core = pmu.has_cpus = true;
	else if (read_cpus(host, &pmu, "cpumask") == 0)
		pmu.uncore = pmu.has_cpus = true;
	pmu.core |= strcmp(name, "cpu") == 0;
	*ret = pmu;
	return 0;
}

/* By name, runs of digits as numbers: uncore_imc_2 before uncore_imc_10. */
static int compare_names(const char *a, const char *b)
{
	while (*a && *b) {
		if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
			char *a_end, *b_end;
			unsigned long long x = strtoull(a, &a_end, 10), y = strtoull(b, &b_end, 10);

			if (x != y)
				return x < y ? -1 : 1;
			a = a_end;
			b = b_end;
		} else if (*a != *b) {
			return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
		} else {
			a++;
			b++;
		}
	}
	return *a ? 1 : *b ? -1 : 0;
}

static int compare_pmus(const void *left, const void *right)
{
	const struct pmu *a = left, *b = right;

	if (a->core != b->core)
		return a->core ? -1 : 1;
	/* cpu_core before cpu_atom: the fast ones first, as perf lists them. */
	if (a->core && a->type != b->type)
		return a->type < b->type ? -1 : 1;
	return compare_names(a->name, b->name);
}

static int scan(const struct host *host, struct pmu_set *set)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir;
	int r = 0;

	if (host_path(host, path, sizeof(path), DEVICES) < 0)
		return -ENAMETOOLONG;
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while (r == 0 && (entry = readdir(dir)) != NULL && set->pmus.len < ENTRIES_MAX) {
		struct pmu pmu;

		if (entry->d_name[0] == '.')
			continue;
		r = pmu_read(host, entry->d_name, &pmu);
		if (r == 0)
			r = vec_push(&set->pmus, pmu);
		else if (r == -ENOENT)
			r = 0;
	}
	closedir(dir);
	return r;
}

static int add_format(struct pmu *pmu, const char *name, const char *text)
{
	struct pmu_format format = {0};

	if (pmu_format_parse(text, &format.word, &format.mask) < 0)
		return 0;
	format.name = strdup(name);
	if (!format.name || vec_push(&pmu->formats, format) < 0) {
		free(format.name);
		return -ENOMEM;
	}
	return 0;
}

static int compare_formats(const void *a, const void *b)
{
	return strcmp(((const struct pmu_format *)a)->name, ((const struct pmu_format *)b)->name);
}

static int compare_aliases(const void *a, const void *b)
{
	return compare_names(((const struct pmu_alias *)a)->name,
			     ((const struct pmu_alias *)b)->name);
}

static void sort_lists(struct pmu *pmu)
{
	if (pmu->formats.len)
		qsort(pmu->formats.data, pmu->formats.len, sizeof(*pmu->formats.data),
		      compare_formats);
	if (pmu->aliases.len)
		qsort(pmu->aliases.data, pmu->aliases.len, sizeof(*pmu->aliases.data),
		      compare_aliases);
}

/* The fields of the core PMU where the kernel shows none (a guest without one): text and tables can
 * still be understood, and opening says what is missing. */
static int assume_core(const struct host_cpu_model *model, struct pmu_set *set)
{
	static const char *const intel[][2] = {
		{"event", "config:0-7"},   {"umask", "config:8-15"},
		{"edge", "config:18"},     {"pc", "config:19"},
		{"any", "config:21"},      {"inv", "config:23"},
		{"cmask", "config:24-31"}, {"in_tx", "config:32"},
		{"in_tx_cp", "config:33"}, {"offcore_rsp", "config1:0-63"},
		{"ldlat", "config1:0-15"}, {"frontend", "config1:0-23"},
	};
	static const char *const amd[][2] = {
		{"event", "config:0-7,32-35"}, {"umask", "config:8-15"},  {"edge", "config:18"},
		{"inv", "config:23"},          {"cmask", "config:24-31"},
	};
	static const char *const arm[][2] = {{"event", "config:0-15"}, {"long", "config1:0"}};
	bool is_amd = model->vendor == CPU_VENDOR_AMD, is_arm = model->vendor == CPU_VENDOR_ARM;
	const char *const(*table)[2] = is_amd ? amd : is_arm ? arm : intel;
	size_t count = is_amd ? ARRAY_LEN(amd) : is_arm ? ARRAY_LEN(arm) : ARRAY_LEN(intel);
	struct pmu pmu = {.type = PERF_TYPE_RAW, .core = true, .assumed = true, .loaded = true};
	int r = 0;

	pmu.name = strdup("cpu");
	if (!pmu.name || vec_push(&set->pmus, pmu) < 0) {
		free(pmu.name);
		return -ENOMEM;
	}
	for (size_t i = 0; r == 0 && i < count; i++)
		r = add_format(&set->pmus.data[set->pmus.len - 1], table[i][0], table[i][1]);
	sort_lists(&set->pmus.data[set->pmus.len - 1]);
	return r;
}

static unsigned count_core(const struct pmu_set *set)
{
	unsigned count = 0;

	for (size_t i = 0; i < set->pmus.len; i++)
		count += set->pmus.data[i].core;
	return count;
}

int pmu_set_read(const struct host *host, const struct host_cpu_model *model, struct pmu_set *ret,
		 struct err *err)
{
	struct pmu_set set = {0};
	int r = scan(host, &set);

	if (r == 0 && count_core(&set) == 0)
		r = assume_core(model, &set);
	if (r < 0) {
		pmu_set_fini(&set);
		return err_set(err, r, "%s: %s", DEVICES, strerrordesc_np(-r));
	}
	qsort(set.pmus.data, set.pmus.len, sizeof(*set.pmus.data), compare_pmus);
	set.core_count = count_core(&set);
	set.hybrid = set.core_count > 1;
	*ret = set;
	return 0;
}

static void pmu_fini(struct pmu *pmu)
{
	vec_for_each(&pmu->formats, format)
		free(format->name);
	vec_for_each(&pmu->aliases, alias) {
		free(alias->name);
		free(alias->terms);
		free(alias->unit);
	}
	vec_fini(&pmu->formats);
	vec_fini(&pmu->aliases);
	free(pmu->name);
}

void pmu_set_fini(struct pmu_set *set)
{
	vec_for_each(&set->pmus, pmu)
		pmu_fini(pmu);
	vec_fini(&set->pmus);
}

struct pmu *pmu_find(struct pmu_set *set, const char *name)
{
	vec_for_each(&set->pmus, pmu)
		if (strcmp(pmu->name, name) == 0)
			return pmu;
	return NULL;
}

/* name is text, or text followed by an instance number ("_3", or hexadecimal digits for PMUs that
 * are named after an address). */
static bool is_instance(const char *name, const char *text)
{
	const char *rest;

	if (!str_prefix(name, text, &rest))
		return false;
	if (*rest == '\0')
		return true;
	rest += *rest == '_';
	return *rest != '\0' && rest[strspn(rest, "0123456789abcdef")] == '\0' &&
	       (rest[-1] == '_' || isdigit((unsigned char)*rest));
}

bool pmu_matches(const struct pmu *pmu, const char *text)
{
	const char *bare;

	if (strpbrk(text, "*?["))
		return str_glob(text, pmu->name);
	if (is_instance(pmu->name, text))
		return true;
	return str_prefix(pmu->name, "uncore_", &bare) && is_instance(bare, text);
}

/* --- formats and aliases --------------------------------------------------------------------- */

static int read_formats(const struct host *host, struct pmu *pmu, DIR *dir)
{
	struct dirent *entry;
	int r = 0;

	while (r == 0 && (entry = readdir(dir)) != NULL && pmu->formats.len < ENTRIES_MAX) {
		size_t size;
		CLEANUP_FREE char *text = NULL;

		if (entry->d_name[0] == '.' ||
		    file_read_at(dirfd(dir), entry->d_name, SMALL_FILE, &text, &size, NULL) < 0)
			continue;
		r = add_format(pmu, entry->d_name, text);
	}
	return r;
}

/* NAME.scale, NAME.unit, NAME.per-pkg and NAME.snapshot describe the event NAME. */
static int read_alias_extra(DIR *dir, struct pmu_alias *alias)
{
	static const char *const suffixes[] = {"scale", "unit", "per-pkg", "snapshot"};

	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
		char name[NAME_MAX + 1];
		size_t size;
		CLEANUP_FREE char *text = NULL;

		if ((size_t)snprintf(name, sizeof(name), "%s.%s", alias->name, suffixes[i]) >=
			    sizeof(name) ||
		    file_read_at(dirfd(dir), name, SMALL_FILE, &text, &size, NULL) < 0)
			continue;
		text[strcspn(text, "\n")] = '\0';
		if (i == 0 && parse_double(text, &alias->scale) < 0)
			alias->scale = 1;
		if (i == 1) {
			free(alias->unit);
			alias->unit = TAKE_PTR(text);
		}
		alias->per_package |= i == 2 && text[0] == '1';
		alias->snapshot |= i == 3 && text[0] == '1';
	}
	return 0;
}

static bool is_alias_extra(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && (strcmp(dot, ".scale") == 0 || strcmp(dot, ".unit") == 0 ||
		       strcmp(dot, ".per-pkg") == 0 || strcmp(dot, ".snapshot") == 0);
}

static int read_aliases(const struct host *host, struct pmu *pmu, DIR *dir)
{
	struct dirent *entry;

	while ((entry = readdir(dir)) != NULL && pmu->aliases.len < ENTRIES_MAX) {
		struct pmu_alias alias = {.scale = 1};
		size_t size;

		if (entry->d_name[0] == '.' || is_alias_extra(entry->d_name) ||
		    file_read_at(dirfd(dir), entry->d_name, SMALL_FILE, &alias.terms, &size, NULL) <
			    0)
			continue;
		alias.terms[strcspn(alias.terms, "\n")] = '\0';
		alias.name = strdup(entry->d_name);
		alias.unit = strdup("");
		if (alias.name && alias.unit)
			read_alias_extra(dir, &alias);
		if (!alias.name || !alias.unit || vec_push(&pmu->aliases, alias) < 0) {
			free(alias.name);
			free(alias.unit);
			free(alias.terms);
			return -ENOMEM;
		}
	}
	return 0;
}

static int read_directory(const struct host *host, struct pmu *pmu, const char *name,
			  int (*read)(const struct host *, struct pmu *, DIR *))
{
	char path[PATH_MAX];
	DIR *dir;
	int r;

	if (host_path(host, path, sizeof(path), DEVICES "/%s/%s", pmu->name, name) < 0)
		return -ENAMETOOLONG;
	dir = opendir(path);
	if (!dir)
		return 0; /* not every PMU has one */
	r = read(host, pmu, dir);
	closedir(dir);
	return r;
}

int pmu_load(const struct host *host, struct pmu *pmu, struct err *err)
{
	int r;

	if (pmu->loaded)
		return 0;
	pmu->loaded = true;
	r = read_directory(host, pmu, "format", read_formats);
	if (r == 0)
		r = read_directory(host, pmu, "events", read_aliases);
	if (r < 0)
		return err_set(err, r, "PMU %s: %s", pmu->name, strerrordesc_np(-r));
	sort_lists(pmu);
	return 0;
}

const struct pmu_format *pmu_format_find(const struct pmu *pmu, const char *name)
{
	for (size_t i = 0; i < pmu->formats.len; i++)
		if (strcmp(pmu->formats.data[i].name, name) == 0)
			return &pmu->formats.data[i];
	return NULL;
}

const struct pmu_alias *pmu_alias_find(const struct pmu *pmu, const char *name)
{
	for (size_t i = 0; i < pmu->aliases.len; i++)
		if (strcasecmp(pmu->aliases.data[i].name, name) == 0)
			return &pmu->aliases.data[i];
	return NULL;
}
