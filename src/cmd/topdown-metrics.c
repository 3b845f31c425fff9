/* --metrics: tables made of the user's vendor metrics, instead of those that are built in. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/util.h"
#include "cmd/topdown.h"
#include "events/expr-host.h"
#include "events/topdown-load.h"

struct topdown_user_tables {
	struct metrics metrics;
	struct topdown_loaded *loaded[TOPDOWN_TREES_MAX];
	unsigned len;
};

void topdown_user_tables_free(struct topdown_user_tables *user)
{
	for (unsigned i = 0; user && i < user->len; i++)
		topdown_loaded_free(user->loaded[i]);
	if (user)
		metrics_fini(&user->metrics);
	free(user);
}

static int read_metrics(struct topdown_job *job, const struct host_cpu_model *model,
			const char *cpu, struct err *err)
{
	int r;

	if (job->user_tables)
		return 0;
	job->user_tables = calloc(1, sizeof(*job->user_tables));
	if (!job->user_tables)
		return err_set(err, -ENOMEM, "out of memory");
	r = metrics_read(&job->user_tables->metrics, job->options.metrics, model, cpu, err);
	if (r < 0)
		return err_wrap(err, r, "--metrics");
	if (job->user_tables->metrics.problems.len)
		str_printf(&job->notes, "--metrics: passed over: %.300s%s\n",
			   str_text(&job->user_tables->metrics.problems),
			   job->user_tables->metrics.problems.len > 300 ? " ..." : "");
	return 0;
}

int topdown_user_table(struct topdown_job *job, const struct host_cpu_model *model, const char *cpu,
		       const struct topdown_table **ret, struct err *err)
{
	struct topdown_user_tables *user;
	int r = read_metrics(job, model, model ? NULL : cpu, err);

	if (r < 0)
		return r;
	user = job->user_tables;
	r = topdown_load(&user->metrics, cpu && cpu[0] ? cpu : NULL, &user->loaded[user->len], err);
	if (r < 0)
		return err_wrap(err, r, "--metrics");
	*ret = topdown_loaded_table(user->loaded[user->len++]);
	return 0;
}

/* What is not in the built-in tables nor in the files of metrics: the names that are known here. */
int topdown_user_encode(struct topdown_job *job, struct topdown_tree *tree, struct err *err)
{
	struct topdown_loaded *loaded = job->user_tables->loaded[job->user_tables->len - 1];
	struct event_env_options options = {.host = job->machine->host};
	const struct topdown_table *table = tree->table;
	struct event_env *env;
	struct stat st;
	int r;

	if (stat(job->options.metrics, &st) == 0 && S_ISDIR(st.st_mode) &&
	    !getenv("CULPRIT_EVENTS_DIR"))
		options.events_dir = job->options.metrics; /* events stand beside the metrics */
	r = event_env_new(&options, &env, err);
	if (r < 0)
		return r;
	(void)topdown_loaded_encode(loaded, env);
	event_env_free(env);
	if (!tree->lacking)
		tree->lacking = calloc(table->event_count + 1, sizeof(*tree->lacking));
	if (!tree->lacking)
		return err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < table->event_count; i++)
		tree->lacking[i] |= table->events[i].no_code;
	return 0;
}

/* SMT is decided by what is counted, and asked for later. */
static void constant(void *ctx, enum expr_ask ask, const char *name, struct expr_value *ret)
{
	if (ask != EXPR_LITERAL || strcasecmp(name, "smt_on") != 0)
		expr_host_constant(ctx, ask, name, ret);
}

void topdown_user_fold(const struct topdown_job *job, const struct host_cpu_model *model,
		       struct topdown_tree *tree)
{
	struct expr_host host;

	expr_host_read(job->machine->host, model, &host);
	host.system_wide = job->options.all_cpus;
	topdown_fold(tree->topdown, constant, &host);
}
