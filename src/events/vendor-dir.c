/* Which of the user's vendor files belong to the CPU: events or metrics, each read by its owner. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/util.h"
#include "events/vendor-internal.h"

#define FILE_BYTES  (64u << 20)
#define MAP_BYTES   (1u << 20)
#define DEPTH_MAX   5
#define FILES_LIMIT 2000

struct scan {
	enum vendor_dir what;
	int (*take)(void *ctx, const char *path, const char *pmu,
		    const struct host_cpu_model *model);
	void *ctx;
	const struct host_cpu_model *model; /* NULL: files of any CPU, the map chose them */
	unsigned count;
};

static bool ends_with(const char *text, const char *end)
{
	size_t text_len = strlen(text), len = strlen(end);

	return text_len >= len && strcasecmp(text + text_len - len, end) == 0;
}

/* Metrics and other tables stand beside the events; perf has both in one folder, some in one file.
 */
static bool is_wanted(enum vendor_dir what, const char *name)
{
	return ends_with(name, ".json") && !strstr(name, "retire_latency") &&
	       !strstr(name, "schema") && (what == VENDOR_DIR_METRICS || !strstr(name, "metric"));
}

static int read_one(struct scan *scan, const char *path, const char *pmu)
{
	return ++scan->count > FILES_LIMIT ? 0 : scan->take(scan->ctx, path, pmu, scan->model);
}

/* Every file below, folders in the order of their names. */
static int read_tree(struct scan *scan, const char *path, const char *pmu, unsigned depth)
{
	struct dirent **entries;
	int count, r = 0;

	if (depth > DEPTH_MAX)
		return 0;
	count = scandir(path, &entries, NULL, alphasort);
	if (count < 0)
		return -errno;
	for (int i = 0; i < count; i++) {
		char full[PATH_MAX];
		struct stat st;

		if (r == 0 && entries[i]->d_name[0] != '.' &&
		    (size_t)snprintf(full, sizeof(full), "%s/%s", path, entries[i]->d_name) <
			    sizeof(full) &&
		    stat(full, &st) == 0) {
			if (S_ISDIR(st.st_mode))
				r = read_tree(scan, full, pmu, depth + 1);
			else if (S_ISREG(st.st_mode) && is_wanted(scan->what, entries[i]->d_name))
				r = read_one(scan, full, pmu);
			r = r == -ENOMEM ? r : 0;
		}
		free(entries[i]);
	}
	free(entries);
	return r;
}

/* --- mapfile.csv ----------------------------------------------------------------------------- */

#define COLUMNS 8

struct map_columns {
	int id, file, type, role;
};

static int split(char *line, char **cells)
{
	int count = 0;
	char *cell;

	while (count < COLUMNS && (cell = strsep(&line, ",")) != NULL) {
		cell[strcspn(cell, "\r\n")] = '\0';
		cells[count++] = cell;
	}
	return count;
}

/* intel/perfmon and perf name their columns; without a header it is perf's order. */
static bool read_header(char **cells, int count, struct map_columns *columns)
{
	bool header = false;

	*columns = (struct map_columns){0, 2, 3, -1};
	for (int i = 0; i < count; i++) {
		if (strcasecmp(cells[i], "Filename") == 0) {
			columns->file = i;
			header = true;
		}
		if (strcasecmp(cells[i], "EventType") == 0)
			columns->type = i;
		if (strcasecmp(cells[i], "Core Role Name") == 0)
			columns->role = i;
		header |= strcasecmp(cells[i], "Family-model") == 0;
	}
	return header;
}

static bool id_matches(const char *pattern, const char *id)
{
	char anchored[512], bare[64];
	char *stepping;
	regex_t regex;
	bool match;

	snprintf(anchored, sizeof(anchored), "^(%s)$", pattern);
	if (regcomp(&regex, anchored, REG_EXTENDED | REG_ICASE | REG_NOSUB) != 0)
		return false;
	/* Rows without a stepping are for all of them. */
	snprintf(bare, sizeof(bare), "%s", id);
	stepping = strncmp(bare, "0x", 2) == 0 ? NULL : strrchr(bare, '-');
	if (stepping)
		*stepping = '\0';
	match = regexec(&regex, id, 0, NULL, 0) == 0 || regexec(&regex, bare, 0, NULL, 0) == 0;
	regfree(&regex);
	return match;
}

/* Arm rows have variant and revision 0, and so must the register. */
static void model_id(const struct host_cpu_model *model, char *buf, size_t size)
{
	if (model->vendor == CPU_VENDOR_ARM)
		snprintf(buf, size, "0x%016llx", (unsigned long long)(model->midr & ~0xf0000full));
	else
		snprintf(buf, size, "%s", model->id);
}

/* --cpu NAME chooses rows by the folder: "skl" is /SKL/events/..., "adl-p" is /ADL/ and the role.
 */
static bool folder_is(const char *file, const char *cpu)
{
	size_t len = strcspn(cpu, "-");

	file += *file == '/';
	file += strncasecmp(file, "amdzen", 6) == 0 ? 3 : 0; /* perf's folders of AMD */
	return strncasecmp(file, cpu, len) == 0 && (file[len] == '/' || file[len] == '\0');
}

static const char *row_pmu(const char *type, const char *role)
{
	if (!strstr(type, "hybrid"))
		return "";
	return strcasestr(role, "atom") ? "cpu_atom" : strcasestr(role, "core") ? "cpu_core" : "";
}

static int read_row(struct scan *scan, const char *dir, char **cells, int count,
		    const struct map_columns *columns, const char *id, const char *cpu, bool *found)
{
	const char *file, *type, *role;
	char full[PATH_MAX];

	if (count <= columns->file || count <= columns->type)
		return 0;
	file = cells[columns->file];
	type = cells[columns->type];
	role = columns->role >= 0 && count > columns->role ? cells[columns->role] : "";
	if (cpu ? !folder_is(file, cpu) : !id_matches(cells[columns->id], id))
		return 0;
	/* perf's rows are folders with everything in it; perfmon's metrics have rows of their own
	 */
	if (strstr(file, "..") ||
	    (scan->what == VENDOR_DIR_EVENTS
		     ? strstr(type, "metric") != NULL
		     : ends_with(file, ".json") && !strstr(type, "metric")) ||
	    (size_t)snprintf(full, sizeof(full), "%s/%s", dir, file) >= sizeof(full))
		return 0;
	*found = true;
	return ends_with(file, ".json") ? read_one(scan, full, row_pmu(type, role))
					: read_tree(scan, full, "", 1);
}

/* 1: the map was there and chose files; 0: there is no map. */
static int read_map(struct scan *scan, const char *dir, const struct host_cpu_model *model,
		    const char *cpu, struct err *err)
{
	char path[PATH_MAX], id[64], *lines, *line;
	size_t size;
	CLEANUP_FREE char *text = NULL;
	struct map_columns columns = {0, 2, 3, -1};
	bool first = true, found = false;
	int r = 0;

	if ((size_t)snprintf(path, sizeof(path), "%s/mapfile.csv", dir) >= sizeof(path) ||
	    file_read(path, MAP_BYTES, &text, &size, NULL) < 0)
		return 0;
	model_id(model, id, sizeof(id));
	scan->model = NULL; /* the map decides */
	lines = text;
	while (r == 0 && (line = strsep(&lines, "\n")) != NULL) {
		char *cells[COLUMNS];
		int count;

		if (line[0] == '#' || line[0] == '\0')
			continue;
		count = split(line, cells);
		if (first && read_header(cells, count, &columns)) {
			first = false;
			continue;
		}
		first = false;
		r = read_row(scan, dir, cells, count, &columns, id, cpu, &found);
	}
	if (r == 0 && !found)
		return err_set(err, -ENOENT, "%s has no row for %s", path, cpu ? cpu : id);
	return r < 0 ? r : 1;
}

/* "n2-r0p1"; without a revision the newest is meant. */
static uint64_t named_midr(const char *cpu)
{
	const char *revision = strstr(cpu, "-r");
	char part[32];
	uint64_t midr;

	snprintf(part, sizeof(part), "%.*s", revision ? (int)(revision - cpu) : 31, cpu);
	midr = host_arm_midr(part);
	if (midr && revision && isdigit((unsigned char)revision[2]) && revision[3] == 'p' &&
	    isdigit((unsigned char)revision[4]))
		return midr | (uint64_t)(revision[2] - '0') << 20 | (uint64_t)(revision[4] - '0');
	return midr ? midr | 0xf0000f : 0;
}

int vendor_dir_each(const char *dir, enum vendor_dir what, const struct host_cpu_model *model,
		    const char *cpu,
		    int (*take)(void *ctx, const char *path, const char *pmu,
				const struct host_cpu_model *model),
		    void *ctx, struct err *err)
{
	/* --cpu without a map still tells which of Arm's files are meant; others name no CPU. */
	struct host_cpu_model named = {.known = true, .midr = cpu ? named_midr(cpu) : 0};
	struct scan scan = {.what = what, .take = take, .ctx = ctx, .model = cpu ? &named : model};
	int r;

	named.vendor = named.midr ? CPU_VENDOR_ARM : CPU_VENDOR_UNKNOWN;
	r = read_map(&scan, dir, model, cpu, err);

	if (r < 0)
		return r;
	if (r == 0)
		r = read_tree(&scan, dir, "", 0);
	if (r < 0)
		return err_set(err, r, "vendor files in %s: %s", dir, strerrordesc_np(-r));
	return 0;
}

static int take_events(void *ctx, const char *path, const char *pmu,
		       const struct host_cpu_model *model)
{
	struct vendor_files *files = ctx;
	const char *base = strrchr(path, '/');
	size_t size;
	CLEANUP_FREE char *text = NULL;
	struct err err = {0};
	int r = file_read(path, FILE_BYTES, &text, &size, &err);

	if (r == 0)
		r = vendor_files_parse(files, text, size, base ? base + 1 : path, pmu, model, &err);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		str_printf(&files->problems, "%s%s", files->problems.len ? "; " : "",
			   err_text(&err, r));
	return 0;
}

int vendor_files_read(struct vendor_files *files, const char *dir,
		      const struct host_cpu_model *model, const char *cpu, struct err *err)
{
	return vendor_dir_each(dir, VENDOR_DIR_EVENTS, model, cpu, take_events, files, err);
}
