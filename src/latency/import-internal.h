/* What the importers of one text share. */
#pragma once

#include "base/scan.h"
#include "base/str.h"
#include "latency/import.h"

/* A kind of table that one file may hold. */
enum import_part {
	PART_TIMERLAT_TOP,
	PART_TIMERLAT_HIST,
	PART_OSNOISE_TOP,
	PART_OSNOISE_HIST,
	PART_HWNOISE_TOP,
	PART_ANALYSIS, /* rtla's automatic analysis */
	PART_CYCLICTEST,
	PART_OSLAT,
	PART_HWLATDETECT,
	PARTS,
};

/* A column of a histogram: one context (or the gaps) of one CPU, and its footer. */
struct import_column {
	unsigned cpu;
	int context; /* enum latency_context, -1: gaps */
	struct histogram rows;
	uint64_t over, count, min, max; /* samples, samples, and the table's unit */
	uint64_t avg_ns;
	bool has_over, has_count, has_min, has_avg, has_max;
	bool over_in_rows;       /* the last row holds everything from there on */
	bool count_without_over; /* count is of the rows alone */
};

struct importer {
	struct latency_run *run;
	struct scan_lines lines;
	uint64_t first_line[PARTS]; /* where the part begins, 0 absent */
	struct str refusal;         /* what the text holds instead of a measurement */
	uint64_t unit_ns;           /* of rtla's tables */
	/* histogram */
	VEC(struct import_column) columns;
	uint64_t bucket_step; /* greatest common divisor of the rows' indices */
	bool in_table;
	/* automatic analysis */
	struct latency_verdict *verdict; /* open; an element of run->verdicts */
	unsigned section;
	/* cyclictest */
	bool cyclic_histogram;
	VEC(int) thread_pids;
};

/* Each takes a line when it is one of its own: 1; 0 it is not; -ENOMEM. */
int import_rtla_line(struct importer *importer, struct scan line);
int import_rtla_analysis_line(struct importer *importer, struct scan line);
int import_rt_tests_line(struct importer *importer, struct scan line);
/* Draws the conclusions that rtla leaves to its reader; drops headings without values. 0 or
 * -ENOMEM. */
int import_analysis_finish(struct latency_run *run);
/* Moves the columns of a finished histogram into the run. */
int import_columns_finish(struct importer *importer, enum latency_tool tool);
/* cyclictest and oslat with --json. */
int import_rt_tests_json(const char *text, size_t size, const char *name, struct latency_run *run,
			 struct err *err);

void import_begin(struct importer *importer, enum import_part part);
struct import_column *import_column_add(struct importer *importer, unsigned cpu, int context);
/* Passes over the label that the text starts with: its index, or -1 when it is none of them. */
int import_label(struct scan *text, const char *const *labels, unsigned count);
/* A cell of a histogram's footer, in the table's unit. */
enum import_cell {
	CELL_OVER,
	CELL_COUNTED,
	CELL_MIN,
	CELL_AVG,
	CELL_MAX
};
void import_cell(const struct importer *importer, struct import_column *column,
		 enum import_cell cell, uint64_t value, bool known);
void import_columns_clear(struct importer *importer);
/* count, min, avg and max of a series whose distribution nobody told. */
void import_summary(struct latency_series *series, uint64_t count, int64_t min_ns, int64_t avg_ns,
		    int64_t max_ns);
