#include "events-fixture.h"

#include <stdlib.h>

void fixture_make(struct fixture *f, void (*make)(struct fake_root *), const char *cpu, bool libpfm,
		  bool with_files)
{
	struct event_env_options options = {.cpu = cpu, .no_libpfm = !libpfm, .events_dir = ""};

	*f = (struct fixture){0};
	make(&f->root);
	options.host = &f->root.host;
	if (with_files) {
		fake_root_make(&f->files);
		options.events_dir = f->files.path;
	}
	if (event_env_new(&options, &f->env, NULL) < 0)
		abort();
}

void fixture_remove(struct fixture *f)
{
	event_list_fini(&f->list);
	event_env_free(f->env);
	fake_root_remove(&f->root);
	if (f->files.path[0])
		fake_root_remove(&f->files);
}

int fixture_parse(struct fixture *f, const char *text)
{
	event_list_fini(&f->list);
	f->list = (struct event_list){0};
	f->err.text[0] = '\0';
	return events_parse(text, f->env, &f->list, &f->err);
}

const struct event *fixture_at(const struct fixture *f, size_t i)
{
	static const struct event none = {.attr.type = 999};

	return i < f->list.events.len ? &f->list.events.data[i] : &none;
}
