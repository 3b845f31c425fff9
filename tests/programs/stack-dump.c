/* Every sample of a recording with the user part of its stack, as addresses in the objects, in the
 * form of perf script -F tid,time,ip --ns: stack-dump FILE. */
#include <inttypes.h>
#include <stdio.h>

#include "sample/session.h"

static int print_sample(void *arg, const struct sample *sample)
{
	(void)arg;
	printf("%d %" PRIu64 ".%09" PRIu64 ":\n", sample->tid, sample->time_ns / 1000000000,
	       sample->time_ns % 1000000000);
	for (uint32_t i = 0; i < sample->frame_count; i++) {
		const struct sample_frame *frame = &sample->frames[i];

		if (frame->context == FRAME_USER &&
		    (frame->ip || !frame->dso)) /* no mark of a cut */
			printf("\t%" PRIx64 "\n", frame->dso ? frame->address : frame->ip);
	}
	putchar('\n');
	return 0;
}

int main(int argc, char **argv)
{
	struct session *session;
	struct err err = {0};
	int r;

	if (argc != 2)
		return 2;
	r = session_open(argv[1], &session, &err);
	if (r == 0) {
		r = session_run(session, print_sample, NULL, &err);
		session_close(session);
	}
	if (r < 0)
		fprintf(stderr, "stack-dump: %s\n", err_text(&err, r));
	return r < 0;
}
