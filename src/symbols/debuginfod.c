#include "symbols/debuginfod-internal.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"

struct debuginfod_client;
typedef int (*progress_fn)(struct debuginfod_client *client, long done, long total);
typedef int (*find_fn)(struct debuginfod_client *client, const unsigned char *id, int id_len,
		       char **path);

struct debuginfod {
	pthread_mutex_t lock;
	uint64_t left_ns;     /* of the time that may be waited */
	uint64_t deadline_ns; /* of the file that is waited for */
	bool tried;
	struct debuginfod_client *client;
	struct {
		struct debuginfod_client *(*begin)(void);
		void (*end)(struct debuginfod_client *client);
		void (*set_progress)(struct debuginfod_client *client, progress_fn fn);
		void (*set_data)(struct debuginfod_client *client, void *data);
		void *(*get_data)(struct debuginfod_client *client);
		find_fn debuginfo, executable;
	} library;
};

/* The library's one way to ask: the user data of a client. It must be known without a client. */
static void *(*get_data)(struct debuginfod_client *client);

static int progress(struct debuginfod_client *client, long done, long total)
{
	const struct debuginfod *servers = get_data(client);

	(void)done;
	(void)total;
	return servers && clock_monotonic_ns() > servers->deadline_ns;
}

struct debuginfod *debuginfod_new(unsigned seconds)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	struct debuginfod *servers;

	if (!urls || !urls[0] || seconds == 0)
		return NULL;
	servers = calloc(1, sizeof(*servers));
	if (!servers)
		return NULL;
	pthread_mutex_init(&servers->lock, NULL);
	servers->left_ns = seconds * NSEC_PER_SEC;
	return servers;
}

/* dlsym() gives data pointers; both have one size on every system that has it. */
static bool find_symbol(void *library, const char *name, void *ret)
{
	void *symbol = dlsym(library, name);

	memcpy(ret, &symbol, sizeof(symbol));
	return symbol != NULL;
}

static bool load(struct debuginfod *servers)
{
	void *library;

	if (servers->tried)
		return servers->client != NULL;
	servers->tried = true;
	/* Never closed: curl below it leaves things behind that must stay. */
	library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library || !find_symbol(library, "debuginfod_begin", &servers->library.begin) ||
	    !find_symbol(library, "debuginfod_end", &servers->library.end) ||
	    !find_symbol(library, "debuginfod_set_progressfn", &servers->library.set_progress) ||
	    !find_symbol(library, "debuginfod_set_user_data", &servers->library.set_data) ||
	    !find_symbol(library, "debuginfod_get_user_data", &servers->library.get_data) ||
	    !find_symbol(library, "debuginfod_find_debuginfo", &servers->library.debuginfo) ||
	    !find_symbol(library, "debuginfod_find_executable", &servers->library.executable))
		return false;
	__atomic_store_n(&get_data, servers->library.get_data, __ATOMIC_RELEASE);
	servers->client = servers->library.begin();
	if (!servers->client)
		return false;
	servers->library.set_data(servers->client, servers);
	servers->library.set_progress(servers->client, progress);
	return true;
}

void debuginfod_free(struct debuginfod *servers)
{
	if (!servers)
		return;
	if (servers->client)
		servers->library.end(servers->client);
	pthread_mutex_destroy(&servers->lock);
	free(servers);
}

char *debuginfod_fetch(struct debuginfod *servers, const struct build_id *id, bool executable)
{
	uint64_t start;
	char *path = NULL;
	find_fn find;
	int fd = -1;

	if (!servers || id->size < 8)
		return NULL;
	pthread_mutex_lock(&servers->lock);
	if (servers->left_ns > 0 && load(servers)) {
		start = clock_monotonic_ns();
		servers->deadline_ns = start + servers->left_ns;
		find = executable ? servers->library.executable : servers->library.debuginfo;
		fd = find(servers->client, id->bytes, id->size, &path);
		servers->left_ns -= MIN(clock_monotonic_ns() - start, servers->left_ns);
	}
	pthread_mutex_unlock(&servers->lock);
	if (fd < 0) {
		free(path);
		return NULL;
	}
	close(fd);
	return path;
}
