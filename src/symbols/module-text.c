/* Modules that are text: the kernel (kallsyms) and perf maps. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "symbols/jitdump-internal.h"
#include "symbols/kallsyms.h"
#include "symbols/module-internal.h"

#define KALLSYMS_MAX (256u << 20)
#define PERF_MAP_MAX (1u << 30)

static int read_sysctl(const struct symbols *symbols, const char *name, int unknown)
{
	char path[4096], *text = NULL;
	size_t size;
	int value = unknown;

	snprintf(path, sizeof(path), "%s/proc/sys/kernel/%s", symbols->root, name);
	if (file_read(path, 64, &text, &size, NULL) == 0)
		value = atoi(text);
	free(text);
	return value;
}

static void explain_hidden(const struct symbols *symbols, struct module *module, bool live)
{
	int restrict_level = read_sysctl(symbols, "kptr_restrict", -1);

	if (!live)
		module_set_status(module,
				  "kernel: the saved kallsyms holds no addresses: record as root, "
				  "or with sysctl "
				  "kernel.kptr_restrict=0 and kernel.perf_event_paranoid=1");
	else if (restrict_level >= 2)
		module_set_status(
			module,
			"kernel: addresses are hidden (kernel.kptr_restrict is %d): sysctl "
			"kernel.kptr_restrict=1, "
			"and run as root",
			restrict_level);
	else if (restrict_level == 1)
		module_set_status(module,
				  "kernel: addresses are hidden (kernel.kptr_restrict is 1): run "
				  "as root, or sysctl "
				  "kernel.kptr_restrict=0 kernel.perf_event_paranoid=1");
	else
		module_set_status(
			module,
			"kernel: addresses are hidden (kernel.perf_event_paranoid is %d): run "
			"as root, or sysctl "
			"kernel.perf_event_paranoid=1",
			read_sysctl(symbols, "perf_event_paranoid", 2));
}

/* Whether the running kernel is the recorded one; unknown ids accept anything. */
static bool kernel_differs(const struct symbols *symbols, const struct build_id *want,
			   struct module *module)
{
	char path[4096], *notes = NULL, have_hex[2 * BUILD_ID_MAX + 1],
			 want_hex[2 * BUILD_ID_MAX + 1];
	struct build_id have = {0};
	size_t size;

	if (want->size == 0)
		return false;
	snprintf(path, sizeof(path), "%s/sys/kernel/notes", symbols->root);
	if (file_read(path, 1u << 20, &notes, &size, NULL) == 0)
		(void)build_id_from_notes(notes, size, &have);
	free(notes);
	if (have.size == 0 || build_id_equal(&have, want))
		return false;
	build_id_hex(&have, have_hex);
	build_id_hex(want, want_hex);
	module_set_status(
		module,
		"kernel: the running kernel (build id %s) is not the recorded one (%s), and the "
		"recording holds no "
		"kernel symbols: give the recorded machine's kallsyms",
		have_hex, want_hex);
	return true;
}

static int load_kernel_text(const struct symbols *symbols, struct module *module, const char *text,
			    size_t size, bool live)
{
	struct symtab_builder builder = {0};
	struct kallsyms kallsyms = {0};
	int r = kallsyms_parse(text, size, &kallsyms);

	if (r < 0)
		return r;
	module->bad_lines = kallsyms.bad_lines;
	if (kallsyms.hidden)
		explain_hidden(symbols, module, live);
	else
		r = kallsyms_load(&kallsyms, &builder);
	if (r == 0)
		r = module_finish(symbols, module, &builder, SYMTAB_INNERMOST);
	if (r == 0 && module->tab.count == 0 && !module->status)
		module_set_status(module, "kernel: %s holds no code symbols",
				  module->file ? module->file : "the saved kallsyms");
	symtab_builder_fini(&builder);
	kallsyms_fini(&kallsyms);
	return r;
}

int module_load_kernel(const struct symbols *symbols, const struct module_ref *ref,
		       struct module *module)
{
	CLEANUP_FREE char *text = NULL;
	char path[4096];
	struct err err = {0};
	size_t size;
	int r;

	if (ref->image)
		return load_kernel_text(symbols, module, ref->image, ref->image_size, false);
	snprintf(path, sizeof(path), "%s%s", symbols->root,
		 ref->path ? ref->path : "/proc/kallsyms");
	if (!ref->path && kernel_differs(symbols, &ref->build_id, module))
		return 0;
	r = file_read(path, KALLSYMS_MAX, &text, &size, &err);
	if (r < 0) {
		module_set_status(module, "kernel: %s", err_text(&err, r));
		return r == -ENOMEM ? r : 0;
	}
	module->file = strdup(path);
	return load_kernel_text(symbols, module, text, size, !ref->path);
}

/* The map is where the process sees it: in its root, under its own idea of its id. */
static int read_perf_map(const struct symbols *symbols, const struct module_ref *ref,
			 struct module *module, char **ret_text, size_t *ret_size)
{
	int inner = locate_inner_pid(&symbols->places, ref->pid), r = -ENOENT;
	char paths[3][4096];
	size_t n = 0;

	if (ref->path) {
		snprintf(paths[n++], sizeof(paths[0]), "%s%s", symbols->root, ref->path);
	} else {
		snprintf(paths[n++], sizeof(paths[0]), "%s/proc/%d/root/tmp/perf-%d.map",
			 symbols->root, ref->pid, inner);
		snprintf(paths[n++], sizeof(paths[0]), "%s/tmp/perf-%d.map", symbols->root,
			 ref->pid);
		if (inner != ref->pid)
			snprintf(paths[n++], sizeof(paths[0]), "%s/proc/%d/root/tmp/perf-%d.map",
				 symbols->root, ref->pid, ref->pid);
	}
	for (size_t i = 0; r < 0 && r != -ENOMEM && i < n; i++) {
		struct stat st;

		if (stat(paths[i], &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		r = file_read(paths[i], PERF_MAP_MAX, ret_text, ret_size, NULL);
		if (r == 0) {
			free(module->file); /* of a jitdump */
			module->file = strdup(paths[i]);
		}
	}
	if (r < 0)
		module_set_status(
			module,
			"%s: %s; start the program so that it writes one (java: a perf-map "
			"agent or -XX:+DumpPerfMapAtExit, "
			"node: --perf-basic-prof, python: -X perf)",
			paths[n > 1 ? 1 : 0], strerrordesc_np(-r));
	return r;
}

/* What a compiler wrote into its jitdump, before the perf map: both have a name for the same code.
 */
static int load_jitdump(const struct symbols *symbols, const struct module_ref *ref,
			struct module *module, struct symtab_builder *builder)
{
	size_t size, bad = 0;
	char *data = NULL;
	int r;

	if (!ref->jitdump)
		return 0;
	r = jitdump_read(symbols->root, ref->pid, ref->jitdump, &data, &size, &module->file);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	r = jitdump_load(data, size, builder, &bad);
	module->bad_lines += bad;
	if (r == -EBADMSG) {
		module_set_status(module, "%s: is no jitdump", ref->jitdump);
		free(data);
		return 0;
	}
	return r < 0 ? (free(data), r) : symtab_builder_own(builder, data);
}

static int load_map_text(const struct symbols *symbols, const struct module_ref *ref,
			 struct module *module, struct symtab_builder *builder)
{
	const char *text = ref->image;
	size_t size = ref->image_size, bad = 0;
	char *owned = NULL;
	int r;

	if (!text) {
		r = read_perf_map(symbols, ref, module, &owned, &size);
		if (r < 0)
			return r == -ENOMEM ? r : 0;
		r = symtab_builder_own(builder, owned);
		if (r < 0)
			return r;
		text = owned;
	}
	r = jitdump_detect(text, size) ? jitdump_load(text, size, builder, &bad)
				       : perf_map_load(text, size, builder, &bad);
	module->bad_lines += bad;
	return r;
}

int module_load_perf_map(const struct symbols *symbols, const struct module_ref *ref,
			 struct module *module)
{
	struct symtab_builder builder = {0};
	int r = load_jitdump(symbols, ref, module, &builder);

	if (r == 0)
		r = load_map_text(symbols, ref, module, &builder);
	if (r == 0)
		r = module_finish(symbols, module, &builder, SYMTAB_LATEST);
	if (r == 0 && module->tab.count == 0 && !module->status)
		module_set_status(module, "%s: no line of it could be understood (%zu lines)",
				  module->file ? module->file : "perf map", module->bad_lines);
	symtab_builder_fini(&builder);
	return r;
}

int module_load_jitdump(const struct symbols *symbols, const struct module_ref *ref,
			struct module *module)
{
	struct symtab_builder builder = {0};
	size_t size = ref->image_size;
	const char *data = ref->image;
	int r = 0;

	if (!data) {
		r = jitdump_read(symbols->root, ref->pid, ref->path, &module->jit_text, &size,
				 &module->file);
		data = module->jit_text;
	}
	if (r == 0)
		r = jitdump_parse(data, size, &module->jit);
	if (r < 0)
		return r;
	module->bad_lines = module->jit.bad_records;
	r = jitdump_add_codes(&module->jit, &builder);
	if (r == 0)
		r = module_finish(symbols, module, &builder, SYMTAB_LATEST);
	symtab_builder_fini(&builder);
	return r;
}
