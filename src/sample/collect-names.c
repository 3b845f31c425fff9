/*
 * Names for the locations of a collected profile. Addresses are sorted by object, so that each
 * object is loaded once, by whichever thread comes first, and gives all its names in one go.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/file.h"
#include "base/parallel.h"
#include "base/util.h"
#include "sample/collect-internal.h"
#include "sample/kernel-symbols.h"

#define WARN_OBJECTS_MAX 3
#define TELL_EACH        64 /* addresses between words of progress */
#define INLINES_MAX      32 /* frames of one location that are kept */

struct group {
	size_t first, count; /* in the list */
	const char *status;
	size_t named;
	bool from_file;                   /* a kernel module, by its file */
	bool stripped;                    /* it only names what it exports */
	VEC(struct inline_frame) inlines; /* of its addresses, one after another */
	VEC(char *) demangled;            /* names that the recording brought */
};

/* The functions inlined at an address, in its group's inlines; count 0: not known. */
struct span {
	uint32_t first, count;
};

struct naming {
	struct session *session;
	const struct collect_options *options;
	pthread_mutex_t lock; /* of what progress is told */
	size_t count, done;
	struct symbols *symbols;
	struct unnamed *list;
	struct symbol *found; /* name NULL: not found */
	struct span *spans;   /* as found; NULL: not wanted */
	VEC(struct group) groups;
	bool same_kernel; /* the recording's kernel is the one that runs here */
	bool no_demangle;
	int64_t kernel_delta;   /* from recorded to local kernel addresses */
	struct str kernel_text; /* kallsyms of the addresses; "": not had */
};

static bool local_text(const char *want, uint64_t *ret)
{
	CLEANUP_FILE FILE *file = fopen("/proc/kallsyms", "re");
	char line[256], name[128];
	unsigned long long address;

	/* _text and _stext are among the first; per-cpu symbols may come before them. */
	for (unsigned i = 0; file && i < 20000 && fgets(line, sizeof(line), file); i++)
		if (sscanf(line, "%llx %*c %127s", &address, name) == 2 &&
		    strcmp(name, want) == 0) {
			*ret = address;
			return address != 0;
		}
	return false;
}

static bool local_build_id(struct build_id *ret)
{
	CLEANUP_FREE char *notes = NULL;
	size_t size;

	return file_read("/sys/kernel/notes", 1 << 16, &notes, &size, NULL) == 0 &&
	       build_id_from_notes(notes, size, ret) == 0;
}

/*
 * Names of this machine's kernel are used only for a recording of the same kernel: by build id,
 * else by release and host; an unfinished recording, which knows neither, by where the kernel's
 * text was.
 */
static void compare_kernels(struct naming *naming)
{
	const struct session *session = naming->session;
	const struct session_info *info = &session->info;
	const char *symbol = session->kernel_text_is_stext ? "_stext" : "_text";
	struct build_id local = {0};
	struct utsname here;
	uint64_t text = 0;
	bool known = session->kernel_text && local_text(symbol, &text);

	if (session->kernel->build_id.size && local_build_id(&local))
		naming->same_kernel = local.size >= session->kernel->build_id.size &&
				      memcmp(local.bytes, session->kernel->build_id.bytes,
					     session->kernel->build_id.size) == 0;
	else if (info->os_release && uname(&here) == 0)
		naming->same_kernel =
			strcmp(here.release, info->os_release) == 0 &&
			(!info->hostname || strcmp(here.nodename, info->hostname) == 0);
	else
		naming->same_kernel = known && text == session->kernel_text;
	if (known)
		naming->kernel_delta = (int64_t)(text - session->kernel_text);
}

/* Of another kernel, whose symbols the recording does not hold: the module's own file, when it is
 * the one that was recorded. */
static int load_module_file(struct naming *naming, const struct dso *dso, struct module **ret)
{
	struct module_ref ref = {.kind = MODULE_ELF, .path = dso->file, .build_id = dso->build_id};

	if (!dso->file || dso->build_id.size == 0)
		return 0;
	return symbols_module(naming->symbols, &ref, ret);
}

static int load(struct naming *naming, const struct dso *dso, struct module **ret,
		bool *ret_from_file)
{
	struct module_ref ref = {.kind = dso->kind,
				 .path = dso->path,
				 .build_id = dso->build_id,
				 .pid = dso->pid,
				 .jitdump = dso->jitdump};

	*ret = NULL;
	if (dso->kind == MODULE_KERNEL) {
		ref.path = NULL;
		ref.build_id = (struct build_id){0};
		ref.image = session_kallsyms(naming->session, &ref.image_size);
		if (!ref.image && naming->kernel_text.len > 0) {
			ref.image = naming->kernel_text.data;
			ref.image_size = naming->kernel_text.len;
		}
		*ret_from_file = !ref.image && !naming->same_kernel;
		if (*ret_from_file)
			return load_module_file(naming, dso, ret);
	} else if (dso->kind == MODULE_VDSO) {
		/* By its build id, when it is known, this kernel's is refused or taken. */
		ref.image = session_vdso(naming->session, &ref.image_size);
		if (!ref.image && !naming->same_kernel && dso->build_id.size == 0)
			return 0;
	} else if (dso->path[0] == '[') {
		return 0;
	} else if (dso->build_id.size == 0 && session_has_recorded_names(naming->session, dso)) {
		return 0; /* what lies at that path here is something else, probably */
	}
	return symbols_module(naming->symbols, &ref, ret);
}

static bool kernel_address(const struct naming *naming, const struct dso *dso, uint64_t *address)
{
	if (naming->session->kallsyms.len || naming->kernel_delta == 0)
		return true;
	if (dso != naming->session->kernel)
		return false; /* where modules were loaded then is not known */
	*address += (uint64_t)naming->kernel_delta;
	return true;
}

/* The lines of the running kernel's symbols that are needed, from the sorted copy that recorders
 * keep: reading all of /proc/kallsyms may take longer than all the rest. */
static int excerpt_kernel(struct naming *naming)
{
	const struct symbols_options *options = &naming->options->symbols;
	VEC(uint64_t) addresses = {0};
	int r = 0;

	if (!naming->same_kernel || naming->session->kallsyms.len || !options->cache_dir ||
	    (options->root && *options->root))
		return 0;
	vec_for_each(&naming->groups, group) {
		const struct unnamed *list = naming->list + group->first;
		const struct dso *dso = session_dso(naming->session, list->dso - 1);

		for (size_t i = 0; i < group->count && r == 0 && dso->kind == MODULE_KERNEL; i++) {
			uint64_t address = list[i].address;

			if (kernel_address(naming, dso, &address))
				r = vec_push(&addresses, address);
		}
	}
	if (r == 0)
		r = kernel_symbols_excerpt(addresses.data, addresses.len, &naming->kernel_text,
					   NULL);
	vec_fini(&addresses);
	if (r < 0) /* whoever reads the whole says why it cannot be */
		str_clear(&naming->kernel_text);
	return r == -ENOMEM ? r : 0;
}

static int find_inlines(struct naming *naming, struct group *group, struct module *module,
			size_t index)
{
	struct inline_frame frames[INLINES_MAX];
	int count = module_inlines(module, naming->list[index].address, frames, INLINES_MAX), r = 0;

	if (count <= 0)
		return count;
	naming->spans[index] = (struct span){(uint32_t)group->inlines.len, (uint32_t)count};
	for (int i = 0; i < count && r == 0; i++)
		r = vec_push(&group->inlines, frames[i]);
	return r;
}

/* What nothing here names: by the symbols in the recording. */
static int name_recorded(struct naming *naming, struct group *group)
{
	const struct session *session = naming->session;
	const struct dso *dso = session_dso(session, naming->list[group->first].dso - 1);

	for (size_t i = group->first; i < group->first + group->count; i++) {
		struct symbol *found = &naming->found[i];
		char *text;

		if (found->name)
			continue;
		found->raw_name = session_recorded_name(session, dso, naming->list[i].address);
		if (!found->raw_name)
			continue;
		found->name = found->raw_name;
		group->named++;
		text = naming->no_demangle ? NULL : demangle(found->raw_name);
		if (!text)
			continue;
		if (vec_push(&group->demangled, text) < 0) {
			free(text);
			return -ENOMEM;
		}
		found->name = text;
	}
	return 0;
}

static void tell_progress(struct naming *naming, size_t more)
{
	if (!naming->options->progress)
		return;
	pthread_mutex_lock(&naming->lock);
	naming->done += more;
	naming->options->progress(naming->options->progress_arg, "naming functions",
				  (double)naming->done / (double)naming->count);
	pthread_mutex_unlock(&naming->lock);
}

static int name_group(void *arg, size_t index)
{
	struct naming *naming = arg;
	struct group *group = &naming->groups.data[index];
	const struct dso *dso = session_dso(naming->session, naming->list[group->first].dso - 1);
	struct module *module;
	int r = load(naming, dso, &module, &group->from_file);

	if (r < 0)
		return r;
	if (!module)
		return name_recorded(naming, group);
	group->status = module_status(module);
	group->stripped = module_stripped(module);
	for (size_t i = group->first; i < group->first + group->count && r == 0; i++) {
		uint64_t address = naming->list[i].address;

		if (group->from_file)
			address += module_text_offset(module) - dso->first_start;
		else if (dso->kind == MODULE_KERNEL && !kernel_address(naming, dso, &address))
			continue;
		if (module_lookup(module, address, &naming->found[i]))
			group->named++;
		else
			naming->found[i].name = NULL;
		if (naming->spans && (dso->kind == MODULE_ELF || dso->kind == MODULE_JITDUMP))
			r = find_inlines(naming, group, module, i);
		if ((i - group->first) % TELL_EACH == TELL_EACH - 1)
			tell_progress(naming, TELL_EACH);
	}
	tell_progress(naming, group->count % TELL_EACH);
	/* The next object needs the memory. */
	if (naming->spans)
		module_release_inlines(module);
	return r < 0 ? r : name_recorded(naming, group);
}

static int compare_unnamed(const void *a, const void *b)
{
	const struct unnamed *x = a, *y = b;

	if (x->dso != y->dso)
		return x->dso < y->dso ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

static int make_groups(struct naming *naming, size_t count)
{
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++) {
		if (naming->list[i].dso == 0)
			continue;
		if (naming->groups.len > 0 && naming->list[i - 1].dso == naming->list[i].dso)
			naming->groups.data[naming->groups.len - 1].count++;
		else
			r = vec_push(&naming->groups, ((struct group){.first = i, .count = 1}));
	}
	return r;
}

static int make_line(struct profile *profile, const char *name, const char *raw_name,
		     const struct inline_frame *place, struct profile_line *ret)
{
	struct profile_function function = {0};
	int r = strtab_intern_text(&profile->strings, name, &function.name);

	if (r == 0)
		r = strtab_intern_text(&profile->strings, raw_name, &function.system_name);
	if (r == 0 && place && place->file)
		r = strtab_intern_text(&profile->strings, place->file, &function.filename);
	if (place) {
		ret->line = place->line;
		ret->column = place->column;
	}
	return r < 0 ? r : profile_function(profile, &function, &ret->function);
}

/*
 * The function that has the code is called what the symbol table says; debug information names it
 * only when that has nothing.
 */
static int set_lines(struct profile *profile, uint32_t location, const char *name,
		     const char *raw_name, const struct inline_frame *frames, uint32_t count)
{
	struct profile_line lines[INLINES_MAX] = {0};
	struct profile_mapping *mapping =
		&profile->mappings.data[profile->locations.data[location].mapping];
	uint32_t used = 0;
	int r = 0;

	for (uint32_t i = 0; i < count && r == 0; i++) {
		bool last = i + 1 == count;
		const char *function = last && name ? name : frames[i].function;
		const char *raw = last && name ? raw_name : frames[i].raw_function;

		/* What has no name at all is shown by its address. */
		if (!function && last && used == 0)
			return 0;
		r = make_line(profile, function ? function : "[unknown]", raw ? raw : "[unknown]",
			      &frames[i], &lines[used++]);
		mapping->has_filenames |= frames[i].file != NULL;
		mapping->has_line_numbers |= frames[i].line != 0;
		mapping->has_inline_frames |= count > 1;
	}
	if (count == 0)
		r = make_line(profile, name, raw_name, NULL, &lines[used++]);
	return r < 0 ? r : profile_location_set_lines(profile, location, lines, used);
}

static int set_names(struct naming *naming, struct profile *profile, size_t count)
{
	const struct group *group = naming->groups.data;

	for (size_t i = 0; i < count; i++) {
		const struct unnamed *at = &naming->list[i];
		const struct symbol *symbol = &naming->found[i];
		const char *name = symbol->name, *raw = symbol->raw_name;
		struct span span = naming->spans ? naming->spans[i] : (struct span){0};
		struct inline_frame program;
		bool is_program;
		int r = 0;

		while (span.count && i >= group->first + group->count)
			group++;
		/* The running kernel may have another program there by now. */
		is_program = at->dso && at->context == FRAME_KERNEL &&
			     session_ksymbol_place(naming->session,
						   session_dso(naming->session, at->dso - 1),
						   at->address, &program);
		if (is_program)
			name = raw = program.function;
		if (at->dso && at->dso - 1 == naming->session->cut->id)
			name = raw = "[truncated]";
		if (!name && !at->dso)
			name = raw = "[unknown]";
		if (!name && span.count == 0)
			continue;
		if (at->context == FRAME_KERNEL && !is_program && symbol->name && symbol->object)
			r = collect_mapping(naming->session, profile, at->dso, at->context,
					    symbol->object,
					    &profile->locations.data[at->location].mapping);
		if (r == 0 && is_program && naming->spans && program.line)
			r = set_lines(profile, at->location, name, raw, &program, 1);
		else if (r == 0)
			r = set_lines(profile, at->location, name, raw,
				      span.count ? group->inlines.data + span.first : NULL,
				      span.count);
		if (r < 0)
			return r;
	}
	vec_for_each(&profile->mappings, mapping)
		mapping->has_functions = true;
	return 0;
}

/* Where most have names, the rest (static functions of a library) needs no words. */
static size_t group_unnamed(const struct group *group)
{
	size_t unnamed = group->count - group->named;

	return (group->status || group->stripped) && unnamed > group->named ? unnamed : 0;
}

static int compare_unnamed_groups(const void *a, const void *b)
{
	size_t x = group_unnamed(a), y = group_unnamed(b);

	return x < y ? 1 : x > y ? -1 : 0;
}

/* A status begins with the file's name where it speaks of a file: without " (deleted)". */
static bool status_has_path(const char *status, const char *path)
{
	size_t len = strcspn(status, ":");
	const char *rest;

	return str_prefix(status, path, NULL) ||
	       (strncmp(status, path, len) == 0 && str_prefix(path + len, " (deleted)", &rest));
}

/* Stripped objects are common: one line for all of them. */
static void warn_stripped(struct naming *naming, const struct collect_options *options)
{
	const struct dso *first = NULL;
	size_t objects = 0, addresses = 0;
	struct str text = {0};

	vec_for_each(&naming->groups, group) {
		if (!group->stripped || group_unnamed(group) == 0)
			continue;
		if (!first)
			first = session_dso(naming->session, naming->list[group->first].dso - 1);
		objects++;
		addresses += group_unnamed(group);
	}
	if (objects == 0)
		return;
	str_printf(&text, "%zu address%s unnamed: %s", addresses,
		   addresses == 1 ? " stays" : "es stay", first->path);
	if (objects > 1)
		str_printf(&text, " and %zu other%s", objects - 1, objects > 2 ? "s" : "");
	str_printf(&text, ": stripped: only what %s a name; install %s debug package%s",
		   objects > 1 ? "they export has" : "it exports has",
		   objects > 1 ? "their" : "its", objects > 1 ? "s" : "");
	if (str_status(&text) == 0)
		options->warn(options->warn_arg, str_text(&text));
	str_fini(&text);
}

/* The objects with the most unnamed addresses get a line each, the others one together. */
static void warn_about(struct naming *naming, const struct collect_options *options)
{
	size_t lines = 0, objects = 0, addresses = 0;
	char text[512];
	bool said;

	qsort(naming->groups.data, naming->groups.len, sizeof(*naming->groups.data),
	      compare_unnamed_groups);
	vec_for_each(&naming->groups, group) {
		const struct dso *dso =
			session_dso(naming->session, naming->list[group->first].dso - 1);

		if (group_unnamed(group) == 0)
			break;
		if (group->stripped)
			continue;
		if (lines++ >= WARN_OBJECTS_MAX) {
			objects++;
			addresses += group_unnamed(group);
			continue;
		}
		said = status_has_path(group->status, dso->path);
		snprintf(text, sizeof(text), "%zu address%s unnamed: %s%s%s", group_unnamed(group),
			 group_unnamed(group) == 1 ? " stays" : "es stay", said ? "" : dso->path,
			 said ? "" : ": ", group->status);
		options->warn(options->warn_arg, text);
	}
	warn_stripped(naming, options);
	if (objects == 0)
		return;
	snprintf(text, sizeof(text),
		 "%zu addresses of %zu other objects stay unnamed; they are shown as "
		 "object+0xoffset",
		 addresses, objects);
	options->warn(options->warn_arg, text);
}

int collect_names(struct session *session, const struct collect_options *options,
		  struct profile *profile, struct unnamed_list *list)
{
	struct naming naming = {.session = session,
				.options = options,
				.lock = PTHREAD_MUTEX_INITIALIZER,
				.count = list->all.len,
				.list = list->all.data,
				.no_demangle = options->symbols.no_demangle};
	size_t count = list->all.len;
	int r;

	if (count == 0)
		return 0;
	qsort(list->all.data, count, sizeof(*list->all.data), compare_unnamed);
	naming.found = calloc(count, sizeof(*naming.found));
	if (!options->no_inlines)
		naming.spans = calloc(count, sizeof(*naming.spans));
	r = naming.found && (naming.spans || options->no_inlines)
		    ? symbols_new(&options->symbols, &naming.symbols)
		    : -ENOMEM;
	if (r == 0)
		r = make_groups(&naming, count);
	if (r == 0) {
		compare_kernels(&naming);
		r = excerpt_kernel(&naming);
	}
	if (r == 0)
		r = parallel_for(naming.groups.len, 0, name_group, &naming);
	if (r == 0)
		r = set_names(&naming, profile, count);
	if (r == 0 && options->warn)
		warn_about(&naming, options);
	symbols_free(naming.symbols);
	str_fini(&naming.kernel_text);
	vec_for_each(&naming.groups, group) {
		vec_fini(&group->inlines);
		vec_for_each(&group->demangled, text)
			free(*text);
		vec_fini(&group->demangled);
	}
	vec_fini(&naming.groups);
	free(naming.spans);
	free(naming.found);
	return r;
}

static enum profile_kind kind_of(const struct dso *dso, uint32_t context)
{
	if (context == FRAME_KERNEL || context == FRAME_HYPERVISOR)
		return PROFILE_KERNEL;
	if (context == FRAME_GUEST_KERNEL || context == FRAME_GUEST_USER)
		return PROFILE_GUEST;
	if (dso && (dso->kind == MODULE_PERF_MAP || dso->kind == MODULE_JITDUMP))
		return PROFILE_JIT;
	if (dso && (dso->kind == MODULE_VDSO || strcmp(dso->path, "[vsyscall]") == 0))
		return PROFILE_VDSO;
	return PROFILE_USER;
}

int collect_mapping(const struct session *session, struct profile *profile, uint32_t dso_id,
		    uint32_t context, const char *object, uint32_t *ret)
{
	const struct dso *dso = dso_id ? session_dso(session, dso_id - 1) : NULL;
	struct profile_mapping mapping = {.kind = kind_of(dso, context)};
	char hex[2 * BUILD_ID_MAX + 1];
	int r = strtab_intern_text(&profile->strings,
				   object ? object
				   : dso  ? dso->path
					  : "[unknown]",
				   &mapping.filename);

	if (r == 0 && dso && dso->build_id.size && (!object || strcmp(object, dso->path) == 0)) {
		build_id_hex(&dso->build_id, hex);
		r = strtab_intern_text(&profile->strings, hex, &mapping.build_id);
	}
	if (dso && !object)
		mapping.limit = dso->limit;
	return r < 0 ? r : profile_mapping(profile, &mapping, ret);
}
