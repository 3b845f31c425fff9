#include "view/distribution-plot.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/util.h"
#include "view/text.h"

#define DEFAULT_WIDTH 1000
#define PANEL_HEIGHT  220
#define PANEL_GAP     56
#define HEAD_HEIGHT   64
#define LEFT_MARGIN   72
#define RIGHT_MARGIN  24
#define STEPS_PER_TEN 40 /* steps drawn for each power of ten */
#define DECADES_MAX   12

/* Okabe and Ito's colours: colour-blind people tell them apart. */
static const char *const colors[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
				     "#e69f00", "#56b4e9", "#000000"};

struct plot {
	const struct plot_series *series;
	unsigned count;
	unsigned width;
	double low, high; /* of the x axis, log10 ns */
	double top; /* of the y axis, log10 of samples in a step, from -0.3 (half a sample) on */
	struct str *out;
};

struct panel {
	const char *name;
	double y; /* of its top */
};

static double x_of(const struct plot *plot, double log_ns)
{
	double span = plot->width - LEFT_MARGIN - RIGHT_MARGIN;
	return LEFT_MARGIN + (log_ns - plot->low) / (plot->high - plot->low) * span;
}

static double y_of(const struct plot *plot, const struct panel *panel, double samples)
{
	double at = samples > 0 ? log10(samples) : -0.3;
	return panel->y + PANEL_HEIGHT * (1 - (at + 0.3) / (plot->top + 0.3));
}

static double log_ns(uint64_t ns)
{
	return log10((double)MAX(ns, 1));
}

/* The samples of each step of the x axis. steps has room for all of them. */
static unsigned count_steps(const struct plot *plot, const struct plot_series *series,
			    double *steps)
{
	unsigned step_count = (unsigned)ceil((plot->high - plot->low) * STEPS_PER_TEN);
	step_count = MIN(MAX(step_count, 1), DECADES_MAX * STEPS_PER_TEN);
	memset(steps, 0, step_count * sizeof(*steps));
	for (unsigned i = 0; i < series->values->bucket_count; i++) {
		uint64_t samples = series->values->buckets[i];
		if (!samples)
			continue;
		double at = (log_ns(histogram_bucket_low(i)) - plot->low) /
			    (plot->high - plot->low) * step_count;
		unsigned step = at < 0 ? 0 : MIN((unsigned)at, step_count - 1);
		steps[step] += (double)samples;
	}
	return step_count;
}

static void find_axes(struct plot *plot)
{
	double low = INFINITY, high = -INFINITY, most = 1;
	double steps[DECADES_MAX * STEPS_PER_TEN];
	for (unsigned i = 0; i < plot->count; i++) {
		const struct histogram *values = plot->series[i].values;
		if (!values->count)
			continue;
		low = fmin(low, floor(log_ns(values->min) * 2) / 2);
		high = fmax(high, ceil(log_ns(values->max) * 2 + 0.01) / 2);
	}
	plot->low = low;
	plot->high = fmin(fmax(high, low + 1), low + DECADES_MAX);
	for (unsigned i = 0; i < plot->count; i++) {
		unsigned n = count_steps(plot, &plot->series[i], steps);
		for (unsigned s = 0; s < n; s++)
			most = fmax(most, steps[s]);
	}
	plot->top = ceil(log10(most) + 0.1);
}

static void print_time(struct str *out, double ns)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	unsigned unit = 0;
	while (unit + 1 < ARRAY_LEN(units) && ns >= 999.5) {
		ns /= 1000;
		unit++;
	}
	str_printf(out, "%.3g %s", ns, units[unit]);
}

static void draw_axes(const struct plot *plot, const struct panel *panel)
{
	struct str *out = plot->out;
	double bottom = panel->y + PANEL_HEIGHT, right = plot->width - RIGHT_MARGIN;
	str_printf(out, "<text class='panel' x='%d' y='%.1f'>", LEFT_MARGIN, panel->y - 8);
	text_xml(out, panel->name, strlen(panel->name));
	str_puts(out, "</text>\n");
	for (int decade = 0; decade <= (int)plot->top; decade++) {
		double y = y_of(plot, panel, pow(10, decade));
		str_printf(out,
			   "<line class='grid' x1='%d' y1='%.1f' x2='%.1f' y2='%.1f'/>"
			   "<text class='tick' x='%d' y='%.1f' text-anchor='end'>",
			   LEFT_MARGIN, y, right, y, LEFT_MARGIN - 6, y + 4);
		text_group(out, (uint64_t)pow(10, decade));
		str_puts(out, "</text>\n");
	}
	for (int decade = (int)floor(plot->low); decade <= (int)ceil(plot->high); decade++) {
		for (int digit = 1; digit <= 5; digit += digit == 1 ? 1 : 3) {
			double at = decade + log10(digit);
			if (at < plot->low - 1e-9 || at > plot->high + 1e-9)
				continue;
			double x = x_of(plot, at);
			str_printf(out,
				   "<line class='grid' x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f'/>"
				   "<text class='tick' x='%.1f' y='%.1f' text-anchor='middle'>",
				   x, panel->y, x, bottom, x, bottom + 16);
			print_time(out, pow(10, decade) * digit);
			str_puts(out, "</text>\n");
		}
	}
}

static void draw_curve(const struct plot *plot, const struct panel *panel,
		       const struct plot_series *series)
{
	double steps[DECADES_MAX * STEPS_PER_TEN];
	unsigned count = count_steps(plot, series, steps);
	const char *color = colors[series->run % ARRAY_LEN(colors)];
	double bottom = panel->y + PANEL_HEIGHT;
	str_printf(
		plot->out,
		"<path fill='%s' fill-opacity='0.12' stroke='%s' stroke-width='1.5' d='M%.1f %.1f",
		color, color, x_of(plot, plot->low), bottom);
	for (unsigned i = 0; i < count; i++) {
		double from = plot->low + (plot->high - plot->low) * i / count;
		double to = plot->low + (plot->high - plot->low) * (i + 1) / count;
		double y = fmin(y_of(plot, panel, steps[i]), bottom);
		str_printf(plot->out, "L%.1f %.1fL%.1f %.1f", x_of(plot, from), y, x_of(plot, to),
			   y);
	}
	str_printf(plot->out, "L%.1f %.1fZ'><title>", x_of(plot, plot->high), bottom);
	text_xml(plot->out, series->name, strlen(series->name));
	str_puts(plot->out, "</title></path>\n");
}

/* Vertical marks at the 99th percentile and at the maximum, named. */
static void draw_marks(const struct plot *plot, const struct panel *panel,
		       const struct plot_series *series)
{
	const struct {
		const char *name;
		double share;
	} marks[] = {{"p99", 0.99}, {"max", 1}};
	for (unsigned i = 0; i < ARRAY_LEN(marks); i++) {
		bool is_max = marks[i].share >= 1;
		if (!is_max && (!series->distribution || series->above_last))
			continue;
		uint64_t ns = is_max ? series->values->max
				     : histogram_percentile(series->values, marks[i].share);
		double x = x_of(plot, fmin(log_ns(ns), plot->high));
		str_printf(plot->out,
			   "<line stroke='%s' stroke-dasharray='%s' x1='%.1f' y1='%.1f' x2='%.1f' "
			   "y2='%d'><title>",
			   colors[series->run % ARRAY_LEN(colors)], is_max ? "none" : "4 3", x,
			   panel->y, x, (int)panel->y + PANEL_HEIGHT);
		text_xml(plot->out, series->name, strlen(series->name));
		str_printf(plot->out, " %s ", marks[i].name);
		print_time(plot->out, (double)ns);
		str_puts(plot->out, "</title></line>\n");
	}
}

static void draw_legend(const struct plot *plot, const struct panel *panel)
{
	double y = panel->y + 14;
	for (unsigned i = 0; i < plot->count; i++) {
		const struct plot_series *series = &plot->series[i];
		if (strcmp(series->panel, panel->name) != 0)
			continue;
		const char *color = colors[series->run % ARRAY_LEN(colors)];
		str_printf(plot->out,
			   "<text class='tick' fill='%s' x='%d' y='%.1f' text-anchor='end'>", color,
			   plot->width - RIGHT_MARGIN - 6, y);
		text_xml(plot->out, series->name, strlen(series->name));
		if (!series->values->count) {
			str_puts(plot->out, ": no samples");
		} else {
			str_puts(plot->out, ": ");
			text_group(plot->out, series->values->count);
			str_puts(plot->out, " samples, max ");
			print_time(plot->out, (double)series->values->max);
			if (!series->distribution)
				str_puts(plot->out, ", distribution unknown");
			if (series->above_last) {
				str_puts(plot->out, ", ");
				text_group(plot->out, series->above_last);
				str_puts(plot->out, " beyond the last bucket");
			}
		}
		str_puts(plot->out, "</text>\n");
		y += 15;
	}
}

static void draw_panel(const struct plot *plot, const struct panel *panel)
{
	draw_axes(plot, panel);
	for (unsigned i = 0; i < plot->count; i++) {
		const struct plot_series *series = &plot->series[i];
		if (strcmp(series->panel, panel->name) != 0 || !series->values->count)
			continue;
		if (series->distribution)
			draw_curve(plot, panel, series);
		draw_marks(plot, panel, series);
	}
	draw_legend(plot, panel);
}

static bool seen_panel(const struct plot_series *series, unsigned before)
{
	for (unsigned i = 0; i < before; i++) {
		if (strcmp(series[i].panel, series[before].panel) == 0)
			return true;
	}
	return false;
}

static int draw_svg(const struct plot_series *series, unsigned count,
		    const struct plot_options *options, struct str *out)
{
	struct plot plot = {.series = series,
			    .count = count,
			    .width = options->width ? options->width : DEFAULT_WIDTH,
			    .out = out};
	uint64_t values = 0;
	unsigned panels = 0;
	for (unsigned i = 0; i < count; i++) {
		values |= series[i].values->count;
		panels += !seen_panel(series, i);
	}
	if (!values)
		return -ENODATA;
	find_axes(&plot);
	str_printf(out,
		   "<svg xmlns='http://www.w3.org/2000/svg' width='%u' height='%u' viewBox='0 0 %u "
		   "%u' "
		   "font-family='system-ui,sans-serif'>\n<style>.grid{stroke:#8884;stroke-width:1}."
		   "tick{font-size:11px}"
		   ".panel{font-size:14px;font-weight:600}.title{font-size:17px;font-weight:600}</"
		   "style>\n"
		   "<rect width='100%%' height='100%%' fill='#fff'/>\n",
		   plot.width, HEAD_HEIGHT + panels * (PANEL_HEIGHT + PANEL_GAP), plot.width,
		   HEAD_HEIGHT + panels * (PANEL_HEIGHT + PANEL_GAP));
	str_printf(out, "<text class='title' x='%d' y='24'>", LEFT_MARGIN);
	text_xml(out, options->title, strlen(options->title));
	str_puts(out, "</text>\n");
	if (options->info) {
		str_printf(out, "<text class='tick' x='%d' y='42'>", LEFT_MARGIN);
		text_xml(out, options->info, strlen(options->info));
		str_puts(out, "</text>\n");
	}
	struct panel panel = {.y = HEAD_HEIGHT + 14};
	for (unsigned i = 0; i < count; i++) {
		if (seen_panel(series, i))
			continue;
		panel.name = series[i].panel;
		draw_panel(&plot, &panel);
		panel.y += PANEL_HEIGHT + PANEL_GAP;
	}
	str_puts(out, "</svg>\n");
	return str_status(out);
}

int distribution_plot_svg(const struct plot_series *series, unsigned count,
			  const struct plot_options *options, struct str *out)
{
	return draw_svg(series, count, options, out);
}

static void print_row(const struct plot_series *series, struct str *out)
{
	static const double shares[] = {0, 0.5, 0.99, 0.999, 0.9999, 1};
	str_printf(out, "<tr><td>");
	text_xml(out, series->panel, strlen(series->panel));
	str_printf(out, "</td><td style='color:%s'>", colors[series->run % ARRAY_LEN(colors)]);
	text_xml(out, series->name, strlen(series->name));
	str_puts(out, "</td><td>");
	text_group(out, series->values->count);
	str_puts(out, "</td>");
	for (unsigned i = 0; i < ARRAY_LEN(shares); i++) {
		bool edge = shares[i] <= 0 || shares[i] >= 1;
		bool known = series->values->count &&
			     (edge || (series->distribution && !series->above_last));
		str_puts(out, "<td>");
		if (known)
			print_time(out, (double)histogram_percentile(series->values, shares[i]));
		else
			str_puts(out, "-");
		str_puts(out, "</td>");
	}
	str_puts(out, "</tr>\n");
}

int distribution_plot_html(const struct plot_series *series, unsigned count,
			   const struct plot_options *options, struct str *out)
{
	str_puts(out, "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>\n"
		      "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; "
		      "style-src 'unsafe-inline'\">\n<title>");
	text_xml(out, options->title, strlen(options->title));
	str_puts(out, "</"
		      "title>\n<style>body{font-family:system-ui,sans-serif;margin:16px}table{"
		      "border-collapse:collapse}"
		      "td,th{padding:3px 10px;text-align:right;border-bottom:1px solid "
		      "#ddd;font-variant-numeric:tabular-nums}"
		      "td:nth-child(-n+2),th:nth-child(-n+2){text-align:left}svg{max-width:100%;"
		      "height:auto}</style></head><body>\n");
	int r = draw_svg(series, count, options, out);
	if (r < 0)
		return r;
	str_puts(out, "<table><thead><tr><th>latency</th><th>run</th><th>samples</th><th>min</"
		      "th><th>p50</th><th>p99</th>"
		      "<th>p99.9</th><th>p99.99</th><th>max</th></tr></thead><tbody>\n");
	for (unsigned i = 0; i < count; i++)
		print_row(&series[i], out);
	str_puts(out, "</tbody></table>\n</body></html>\n");
	return str_status(out);
}
