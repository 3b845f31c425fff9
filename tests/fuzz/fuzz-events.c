/*
 * The event parser and the vendor files. The first byte chooses: event text on a machine made of
 * nothing (assumed x86 core PMU), or one vendor JSON document.
 */
#include <stdlib.h>
#include <string.h>

#include "events/names.h"
#include "events/parse.h"
#include "events/pmu.h"
#include "events/vendor-internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_text(const char *text)
{
	static const struct host host = {.root = "/proc/self/no-such-root"};
	struct event_env_options options = {.host = &host, .events_dir = "", .no_libpfm = true};
	struct event_env *env;
	struct event_list list = {0};
	struct err err;
	struct str out = {0};

	if (event_env_new(&options, &env, NULL) < 0)
		return;
	if (events_parse(text, env, &list, &err) == 0) {
		if (list.events.len == 0)
			abort();
		vec_for_each(&list.events, event) {
			if (!event->name || !event->unit || event->attr.size == 0)
				abort();
			event_describe_attr(&event->attr, &out);
		}
		(void)event_list_add_filter(&list, "pid == 1", &err);
	} else if (list.events.len != 0 || list.groups != 0) {
		abort();
	}
	str_fini(&out);
	event_list_fini(&list);
	event_env_free(env);
}

static void fuzz_format(const char *text)
{
	uint64_t mask, word = 0;
	uint8_t which;

	if (pmu_format_parse(text, &which, &mask) == 0 &&
	    (which >= PMU_CONFIG_WORDS || mask == 0 ||
	     pmu_format_deposit(mask, pmu_format_max(mask), &word) < 0 || word != mask))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (size == 0)
		return 0;
	if (data[0] == 0) {
		struct vendor_files files = {0};
		struct err err;

		(void)vendor_files_parse(&files, (const char *)data + 1, size - 1, "file", "", NULL,
					 &err);
		vendor_files_fini(&files);
		return 0;
	}
	text = strndup((const char *)data, size);
	if (!text)
		return 0;
	fuzz_text(text);
	fuzz_format(text);
	free(text);
	return 0;
}
