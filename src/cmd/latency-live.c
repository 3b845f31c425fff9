/*
 * The measurement itself: reads the engine until the time is over, a signal comes, or a threshold
 * is reached; redraws a terminal once a second; then does the actions and prints.
 *
 * Signals are held back and asked for, so that every end goes the same way: the engine is stopped,
 * what it still has is accounted, the system is put back.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/util.h"
#include "cmd/latency-live.h"

#define POLL_MS       100
#define REDRAW_NS     NSEC_PER_SEC
#define CULPRITS_LIVE 10

static bool interrupted(const struct live *live)
{
	const struct timespec now = {0};

	return sigtimedwait(&live->signals, NULL, &now) > 0;
}

/* --- the screen ---------------------------------------------------------------------------- */

/* Line by line over the old picture, so that nothing flickers; cut to the screen. */
static void draw_lines(const char *text, unsigned rows, unsigned columns, struct str *out)
{
	str_puts(out, "\033[H");
	for (unsigned row = 0; *text && row + 1 < rows; row++) {
		size_t len = strcspn(text, "\n");
		size_t shown = len;

		if (columns && len > columns)
			shown = str_utf8_cut(text, columns);
		str_append(out, text, shown);
		str_puts(out, "\033[K\n");
		text += len + (text[len] == '\n');
	}
	str_puts(out, "\033[J");
}

static void draw(struct live *live, uint64_t now_ns)
{
	struct latency_view view = live->view;
	struct str text = {0}, out = {0};
	struct winsize size = {0};

	if (now_ns - live->drawn_ns < REDRAW_NS || !live->drawing)
		return;
	live->drawn_ns = now_ns;
	live->run.duration_ns = now_ns - live->begin_ns;
	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	view.color = false;
	view.width = size.ws_col;
	latency_put_head(&view, &text);
	if (live->warming)
		str_puts(&text, "\nwarming up\n");
	latency_put_top(&view, &text);
	(void)latency_put_culprits(&view, CULPRITS_LIVE, &text);
	draw_lines(str_text(&text), size.ws_row ? size.ws_row : 24, size.ws_col, &out);
	(void)fd_write_all(STDOUT_FILENO, str_text(&out), out.len);
	str_fini(&text);
	str_fini(&out);
}

static void screen(struct live *live, bool on)
{
	const char *words = on ? "\033[?1049h\033[?25l" : "\033[?25h\033[?1049l";

	if (on == live->drawing)
		return;
	live->drawing = on;
	(void)fd_write_all(STDOUT_FILENO, words, strlen(words));
}

static bool wants_screen(const struct live *live)
{
	const struct latency_cli *cli = live->cli;

	return cli->mode != MODE_HIST && !cli->quiet && !cli->json && !cli->csv && !cli->debug &&
	       !cli->aa_only_ns && isatty(STDOUT_FILENO) == 1;
}

/* --- thresholds ---------------------------------------------------------------------------- */

static bool has_trace_action(const struct latency_actions *actions)
{
	vec_for_each(&actions->list, action) {
		if (action->kind == ACTION_TRACE)
			return true;
	}
	return false;
}

/* Everything that the engine still holds is taken in; the engine stays for its trace. */
static int stop_engine(struct live *live, struct err *err)
{
	int r = live->ops->stop(live->engine, &live->sink, &live->run, err);

	if (live->flight)
		trace_flight_freeze(live->flight);
	return r;
}

static int restart(struct live *live, struct err *err)
{
	int r = live->analysis ? latency_analysis_break(live->analysis) : 0;

	latency_live_stop_engine(live);
	live->run.stopped = false;
	return r < 0 ? r : latency_live_start_engine(live, err);
}

/* 1: measuring goes on. */
static int reached(struct live *live, struct err *err)
{
	struct latency_cli *cli = live->cli;
	bool go_on = live->warming;
	int r = stop_engine(live, err);

	if (r == 0 && !live->warming) {
		live->hit = true;
		if (cli->dump_tasks) {
			struct str tasks = {0};

			latency_dump_tasks(&live->options.cpus, &tasks);
			screen(live, false);
			fputs(str_text(&tasks), stderr);
			str_fini(&tasks);
		}
		if (cli->trace && !has_trace_action(&cli->on_threshold))
			r = latency_live_trace(live, NULL, err);
		if (r == 0)
			r = latency_actions_do(&cli->on_threshold, latency_live_trace, live, &go_on,
					       err);
	}
	if (r < 0 || !go_on)
		return r;
	r = restart(live, err);
	screen(live, wants_screen(live));
	return r < 0 ? r : 1;
}

/* --- the loop ------------------------------------------------------------------------------ */

static void end_warm_up(struct live *live, uint64_t now_ns)
{
	if (live->warming && now_ns - live->begin_ns >= live->cli->warm_up_ns) {
		live->warming = false;
		live->begin_ns = now_ns;
	}
}

static bool over(const struct live *live, uint64_t now_ns)
{
	return !live->warming && live->cli->duration_ns &&
	       now_ns - live->begin_ns >= live->cli->duration_ns;
}

static int loop(struct live *live, struct err *err)
{
	for (;;) {
		uint64_t now_ns;
		int r;

		reader_watch_alive(live->watch, true);
		r = live->ops->poll(live->engine, POLL_MS, &live->sink, err);
		reader_watch_alive(live->watch, false);
		if (r == -ECANCELED) {
			r = reached(live, err);
			if (r <= 0)
				return r;
		} else if (r < 0 && r != -EINTR) {
			return r;
		}
		now_ns = clock_monotonic_ns();
		end_warm_up(live, now_ns);
		if (interrupted(live) || over(live, now_ns))
			return stop_engine(live, err);
		draw(live, now_ns);
	}
}

static int tell_help(struct live *live)
{
	unsigned helped = reader_watch_helped(live->watch);

	if (!helped)
		return 0;
	return latency_run_warn(
		&live->run,
		"the threads that measure left the one that reads no CPU: %u times it "
		"got a real-time priority, and was in their way; a longer period (-p) "
		"or house-keeping CPUs (-H) help",
		helped);
}

static int finish(struct live *live, struct err *err)
{
	struct latency_cli *cli = live->cli;
	bool ignored;
	int r = tell_help(live);

	live->run.duration_ns = clock_monotonic_ns() - live->begin_ns;
	if (cli->mode == MODE_TRACE && !live->hit && !has_trace_action(&cli->on_end))
		r = latency_live_trace(live, NULL, err);
	if (r == 0)
		r = latency_actions_do(&cli->on_end, latency_live_trace, live, &ignored, err);
	latency_live_stop_engine(live);
	if (r == 0 && live->analysis && !cli->no_aa)
		r = latency_analysis_finish(live->analysis);
	if (r == 0 && cli->output)
		r = latency_write_run_file(&live->run, cli->output, err);
	return r;
}

/* --- the result ---------------------------------------------------------------------------- */

static void make_view(struct live *live)
{
	const struct latency_cli *cli = live->cli;
	struct latency_view *view = &live->view;

	*view = latency_view_of(&live->run);
	view->nano = cli->nano;
	view->no_irq = cli->no_irq;
	view->no_thread = cli->no_thread;
	view->no_header = cli->no_header;
	view->no_summary = cli->no_summary;
	view->no_index = cli->no_index;
	view->with_zeros = cli->with_zeros;
	view->bucket_ns = MAX(cli->bucket, 1) * (cli->nano ? 1 : NSEC_PER_USEC);
	view->entries = cli->entries ? cli->entries : 256;
}

static int print_analysis(const struct live *live)
{
	struct str out = {0};
	int status;

	latency_put_head(&live->view, &out);
	latency_put_verdicts(&live->view, 0, &out);
	latency_put_end(&live->view, &out);
	status = cmd_write_stdout(live->self, str_text(&out), out.len);
	str_fini(&out);
	return status;
}

static int print_result(const struct live *live)
{
	const struct latency_cli *cli = live->cli;

	if (cli->aa_only_ns && !cli->json && !cli->csv)
		return print_analysis(live);
	return latency_print_view(live->self, &live->view, cli->mode == MODE_HIST, cli->json,
				  cli->csv);
}

int latency_measure(const struct command *self, struct latency_cli *cli)
{
	struct live live = {.self = self, .cli = cli};
	struct err err = {0};
	int r, status = latency_live_begin(&live);

	if (status != EXIT_DONE) {
		latency_live_fini(&live);
		return status;
	}
	make_view(&live);
	screen(&live, wants_screen(&live));
	r = loop(&live, &err);
	screen(&live, false);
	if (r >= 0)
		r = finish(&live, &err);
	status = r < 0 ? cmd_fail(self, r, &err) : print_result(&live);
	if (status == EXIT_DONE)
		status = live.hit                            ? EXIT_THRESHOLD
			 : latency_run_incomplete(&live.run) ? EXIT_INCOMPLETE
							     : EXIT_DONE;
	latency_live_fini(&live);
	return status;
}
