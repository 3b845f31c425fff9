/* culprit latency plot: the runs' histograms as an SVG or an HTML page. */
#include <errno.h>
#include <string.h>

#include "base/file.h"
#include "base/util.h"
#include "cmd/latency.h"
#include "view/distribution-plot.h"

#define PANELS (LATENCY_CONTEXTS + 1) /* the contexts and the gaps */

static const char *panel_name(const struct latency_run *run, unsigned panel)
{
	static const char *const names[] = {"IRQ: from expiry to the timer's interrupt",
					    "Thread: from expiry to the woken thread",
					    "User: from expiry to user space"};
	if (panel == LATENCY_CONTEXTS)
		return "Gaps of the sampling loop";
	if (run->tool == LATENCY_CYCLIC)
		return "Latency of the wake-up, seen in user space";
	return names[panel];
}

static int collect(const struct latency_run *run, unsigned panel, struct latency_series *into)
{
	int r = 0;
	if (panel < LATENCY_CONTEXTS)
		return latency_run_total(run, (enum latency_context)panel, into);
	vec_for_each(&run->cpus, cpu) {
		if (r == 0)
			r = latency_series_merge(into, &cpu->gaps);
	}
	return r;
}

static int draw(const struct latency_args *args, const struct latency_input *inputs, unsigned count,
		const struct latency_series *totals, struct err *err)
{
	VEC(struct plot_series) series = {0};
	struct str out = {0}, info = {0};
	const char *ending = strrchr(args->output, '.');
	int r = 0;
	for (unsigned panel = 0; panel < PANELS; panel++) {
		for (unsigned i = 0; i < count; i++) {
			const struct latency_series *total = &totals[i * PANELS + panel];
			struct plot_series one = {.panel = panel_name(&inputs[i].run, panel),
						  .name = inputs[i].path,
						  .run = i,
						  .values = &total->values,
						  .distribution = total->distribution,
						  .resolution_ns = total->resolution_ns,
						  .above_last = total->above_last};
			if (r == 0 && total->values.count)
				r = vec_push(&series, one);
		}
	}
	str_printf(&info, "%s; both axes logarithmic; dashed p99, solid maximum",
		   latency_tool_name(inputs[0].run.tool));
	struct plot_options options = {.title = "Latency", .info = str_text(&info)};
	if (r == 0)
		r = ending && strcmp(ending, ".svg") == 0
			    ? distribution_plot_svg(series.data, (unsigned)series.len, &options,
						    &out)
			    : distribution_plot_html(series.data, (unsigned)series.len, &options,
						     &out);
	if (r < 0)
		err_set(err, r, "%s: %s", args->output,
			r == -ENODATA ? "no sample to draw" : strerrordesc_np(-r));
	else
		r = file_write_atomic(args->output, out.data, out.len, 0644, err);
	vec_fini(&series);
	str_fini(&info);
	str_fini(&out);
	return r;
}

int latency_plot_verb(const struct command *self, const struct latency_args *args,
		      struct latency_input *inputs, unsigned count)
{
	struct err err = {0};
	if (!args->output)
		return cmd_failf(self, "plot needs -o FILE.svg or -o FILE.html");
	struct latency_series *totals = calloc((size_t)count * PANELS, sizeof(*totals));
	int r = totals ? 0 : -ENOMEM;
	for (unsigned i = 0; r == 0 && i < count * PANELS; i++)
		r = collect(&inputs[i / PANELS].run, i % PANELS, &totals[i]);
	if (r == 0)
		r = draw(args, inputs, count, totals, &err);
	for (unsigned i = 0; totals && i < count * PANELS; i++)
		latency_series_fini(&totals[i]);
	free(totals);
	return r < 0 ? cmd_fail(self, r, &err) : EXIT_DONE;
}
