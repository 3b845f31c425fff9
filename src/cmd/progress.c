#include "cmd/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/util.h"
#include "view/text.h"

#define SHOW_AFTER_NS NSEC_PER_SEC
#define SHOW_EVERY_NS (NSEC_PER_SEC / 10)

void progress_begin(struct progress *progress, const char *path)
{
	*progress = (struct progress){
		.path = path, .start_ns = clock_monotonic_ns(), .off = isatty(STDERR_FILENO) != 1};
}

void progress_show(void *arg, const char *what, double share)
{
	struct progress *progress = arg;
	struct str line = {0};
	uint64_t now_ns;

	if (progress->off)
		return;
	now_ns = clock_monotonic_ns();
	if (now_ns - progress->start_ns < SHOW_AFTER_NS ||
	    now_ns - progress->shown_ns < SHOW_EVERY_NS)
		return;
	progress->shown_ns = now_ns;
	progress->shown = true;
	text_clean(&line, progress->path, strlen(progress->path));
	str_printf(&line, ": %s: %.0f %%", what, 100 * MIN(MAX(share, 0.0), 1.0));
	fprintf(stderr, "\r\033[K%s", str_text(&line));
	fflush(stderr);
	str_fini(&line);
}

void progress_clear(struct progress *progress)
{
	if (progress->shown)
		fputs("\r\033[K", stderr);
	progress->shown = false;
}
