/*
 * Distributions of times as pictures: a panel for each kind of latency, the runs laid over each
 * other in it; both axes logarithmic, so that one late wake-up in a million is as visible as the
 * million. A self-contained SVG, or the same in an HTML page with a table of percentiles.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "stats/histogram.h"

struct plot_series {
	const char *panel; /* series with the same text share a panel: "IRQ", "Thread" */
	const char *name;  /* of the run */
	unsigned run;      /* decides the colour: the same in every panel */
	const struct histogram
		*values; /* ns; buckets may be missing, then only min and max are marked */
	bool distribution;
	uint64_t resolution_ns; /* of the source, 0 exact: steps are not finer */
	uint64_t above_last;    /* values beyond the last bucket: drawn as a note */
};

struct plot_options {
	const char *title;
	const char *info; /* a line below the title, NULL none */
	unsigned width;   /* pixels, 0: 1000 */
};

/* Appends the document. 0, -ENOMEM, or -ENODATA when no series has a value. */
int distribution_plot_svg(const struct plot_series *series, unsigned count,
			  const struct plot_options *options, struct str *out);
int distribution_plot_html(const struct plot_series *series, unsigned count,
			   const struct plot_options *options, struct str *out);
