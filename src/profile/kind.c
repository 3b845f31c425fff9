/*
 * What kind of code an object holds, from its name. The names are those that the kernel and the
 * writers of profiles use: perf ("[kernel.kallsyms]_text", "[vdso]", "/tmp/perf-123.map",
 * "jitted-123-4.so"), the kernel's maps files ("[vdso]", "[vsyscall]", "//anon", "[anon:name]"),
 * JVM and Node converters.
 */
#include <string.h>

#include "base/str.h"
#include "profile/profile.h"

static bool ends_with(const char *text, const char *ending)
{
	size_t len = strlen(text), ending_len = strlen(ending);

	return len >= ending_len && strcmp(text + len - ending_len, ending) == 0;
}

static bool is_module(const char *name)
{
	return ends_with(name, ".ko") || ends_with(name, ".ko.xz") || ends_with(name, ".ko.gz") ||
	       ends_with(name, ".ko.zst");
}

enum profile_kind profile_kind_of_object(const char *filename)
{
	const char *base = strrchr(filename, '/');

	base = base ? base + 1 : filename;
	if (str_prefix(filename, "[guest.", NULL))
		return PROFILE_GUEST;
	if (str_prefix(filename, "[kernel", NULL) || str_prefix(filename, "[bpf", NULL) ||
	    str_prefix(base, "bpf_prog_", NULL) || str_prefix(base, "vmlinux", NULL) ||
	    is_module(base))
		return PROFILE_KERNEL;
	if (str_prefix(base, "[vdso", NULL) || str_prefix(base, "[vsyscall", NULL) ||
	    str_prefix(base, "linux-vdso", NULL) || str_prefix(base, "linux-gate", NULL))
		return PROFILE_VDSO;
	if ((str_prefix(base, "perf-", NULL) && ends_with(base, ".map")) ||
	    (str_prefix(base, "jit-", NULL) && ends_with(base, ".dump")) ||
	    str_prefix(base, "jitted-", NULL) || str_prefix(filename, "[JIT", NULL) ||
	    str_prefix(filename, "//anon", NULL) || str_prefix(filename, "[anon:", NULL))
		return PROFILE_JIT;
	return PROFILE_USER;
}
