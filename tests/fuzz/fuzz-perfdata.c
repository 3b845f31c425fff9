/* A whole recording: opened, replayed, collected; one in 8 with the names that it brings itself,
 * for which the running kernel's are read first. */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "sample/collect.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int touch_sample(void *arg, const struct sample *sample)
{
	uint64_t *sum = arg;

	for (uint32_t i = 0; i < sample->frame_count; i++)
		*sum += sample->frames[i].address +
			(sample->frames[i].dso ? sample->frames[i].dso->id : 0);
	*sum += (uint64_t)sample->comm[0];
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const no_dirs[] = {NULL};
	struct collect_options options = {
		.tid = true,
		.cpu = true,
		.cgroup = true,
		.namespaces = true,
		.symbols = {.root = "/nonexistent", .debug_dirs = no_dirs},
	};
	struct session *session;
	struct profile profile;
	uint64_t sum = 0;
	char path[64];
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	options.no_symbols = hash_bytes(data, size) % 8 != 0;
	if (fd < 0 || fd_write_all(fd, data, size) < 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	/* Each by one of the two ways to come to samples. */
	if ((size & 1 ? session_open_header(path, NULL, NULL, &session, NULL)
		      : session_open(path, &session, NULL)) == 0) {
		if (!(size & 1))
			session_run(session, touch_sample, &sum, NULL);
		if (profile_init(&profile) == 0) {
			collect_profile(session, &options, &profile, NULL);
			profile_fini(&profile);
		}
		session_close(session);
	}
	close(fd);
	return 0;
}
