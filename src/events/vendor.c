#include "events/vendor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "events/vendor-internal.h"

struct vendor {
	const struct host *host;
	const struct host_cpu_model *model;
	char *cpu, *dir;
	bool no_libpfm, files_tried, pfm_tried;
	int files_status, pfm_status;
	struct vendor_files files;
	struct pfm *pfm;
	struct err files_why, pfm_why;
};

int vendor_new(const struct vendor_options *options, struct vendor **ret)
{
	struct vendor *vendor = calloc(1, sizeof(*vendor));

	if (!vendor)
		return -ENOMEM;
	vendor->host = options->host;
	vendor->model = options->model;
	vendor->no_libpfm = options->no_libpfm;
	vendor->cpu = options->cpu ? strdup(options->cpu) : NULL;
	vendor->dir = strdup(options->dir ? options->dir : "");
	if (!vendor->dir || (options->cpu && !vendor->cpu)) {
		vendor_free(vendor);
		return -ENOMEM;
	}
	*ret = vendor;
	return 0;
}

void vendor_free(struct vendor *vendor)
{
	if (!vendor)
		return;
	vendor_files_fini(&vendor->files);
	pfm_close(vendor->pfm);
	free(vendor->cpu);
	free(vendor->dir);
	free(vendor);
}

static int load_files(struct vendor *vendor)
{
	if (!vendor->files_tried && vendor->dir[0])
		vendor->files_status = vendor_files_read(&vendor->files, vendor->dir, vendor->model,
							 vendor->cpu, &vendor->files_why);
	vendor->files_tried = true;
	return vendor->files_status;
}

static int load_pfm(struct vendor *vendor)
{
	if (!vendor->pfm_tried && !vendor->no_libpfm)
		vendor->pfm_status =
			pfm_open(vendor->model->uarch, vendor->cpu, &vendor->pfm, &vendor->pfm_why);
	vendor->pfm_tried = true;
	return vendor->pfm_status;
}

static void fill(const struct file_event *from, struct vendor_event *to)
{
	*to = (struct vendor_event){
		.name = from->name,
		.description = from->description,
		.counters = from->counters,
		.table = from->table,
		.pmu = from->pmu,
		.terms = from->terms,
		.deprecated = from->deprecated,
		.next = from->next,
	};
}

int vendor_find(struct vendor *vendor, const char *name, struct vendor_event *ret, struct err *err)
{
	const struct file_event *found;
	int r = load_files(vendor);

	if (r < 0)
		return err_set(err, r, "%s", vendor->files_why.text);
	found = vendor_files_find(&vendor->files, name);
	if (found) {
		fill(found, ret);
		return 0;
	}
	if (vendor->no_libpfm)
		return -ENOENT;
	r = load_pfm(vendor);
	if (r < 0)
		return err_set(err, r, "%s", vendor->pfm_why.text);
	return pfm_find(vendor->pfm, name, ret, err);
}

bool vendor_next(struct vendor *vendor, struct vendor_event *event)
{
	if (event->next == 0 || event->next > vendor->files.events.len)
		return false;
	fill(&vendor->files.events.data[event->next - 1], event);
	return true;
}

int vendor_each(struct vendor *vendor, int (*fn)(void *arg, const struct vendor_event *event),
		void *arg, struct err *err)
{
	int r = load_files(vendor);

	if (r < 0)
		return err_set(err, r, "%s", vendor->files_why.text);
	for (size_t i = 0; i < vendor->files.events.len; i++) {
		struct vendor_event event;

		fill(&vendor->files.events.data[i], &event);
		r = fn(arg, &event);
		if (r < 0)
			return r;
	}
	if (vendor->no_libpfm)
		return 0;
	r = load_pfm(vendor);
	if (r < 0)
		return vendor->files.events.len ? 0 : err_set(err, r, "%s", vendor->pfm_why.text);
	return pfm_each(vendor->pfm, fn, arg);
}
