#include "events/env.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

struct event_env {
	struct host host;
	struct host_cpu_model model;
	struct pmu_set pmus;
	struct vendor *vendor;
	struct metrics metrics;
	char *cpu, *dir;
	bool no_libpfm, have_model, have_pmus, have_metrics;
};

int event_env_new(const struct event_env_options *options, struct event_env **ret, struct err *err)
{
	static const struct event_env_options none;
	struct event_env *env = calloc(1, sizeof(*env));
	const char *dir;

	if (!options)
		options = &none;
	dir = options->events_dir ? options->events_dir : getenv("CULPRIT_EVENTS_DIR");
	if (env) {
		env->host.root = options->host && options->host->root ? options->host->root : "";
		env->no_libpfm = options->no_libpfm;
		env->cpu = options->cpu ? strdup(options->cpu) : NULL;
		env->dir = strdup(dir ? dir : "");
	}
	if (!env || !env->dir || (options->cpu && !env->cpu)) {
		event_env_free(env);
		return err_set(err, -ENOMEM, "out of memory");
	}
	*ret = env;
	return 0;
}

void event_env_free(struct event_env *env)
{
	if (!env)
		return;
	pmu_set_fini(&env->pmus);
	vendor_free(env->vendor);
	metrics_fini(&env->metrics);
	free(env->cpu);
	free(env->dir);
	free(env);
}

const struct host *event_env_host(const struct event_env *env)
{
	return &env->host;
}

const struct host_cpu_model *event_env_model(struct event_env *env)
{
	if (!env->have_model)
		host_cpu_model_read(&env->host, &env->model);
	env->have_model = true;
	return &env->model;
}

int event_env_pmus(struct event_env *env, struct pmu_set **ret, struct err *err)
{
	if (!env->have_pmus) {
		int r = pmu_set_read(&env->host, event_env_model(env), &env->pmus, err);

		if (r < 0)
			return r;
		env->have_pmus = true;
	}
	*ret = &env->pmus;
	return 0;
}

int event_env_vendor(struct event_env *env, struct vendor **ret, struct err *err)
{
	if (!env->vendor) {
		struct vendor_options options = {
			.host = &env->host,
			.model = event_env_model(env),
			.cpu = env->cpu,
			.dir = env->dir,
			.no_libpfm = env->no_libpfm,
		};
		int r = vendor_new(&options, &env->vendor);

		if (r < 0)
			return err_set(err, r, "vendor events: %s", strerrordesc_np(-r));
	}
	*ret = env->vendor;
	return 0;
}

int event_env_metrics(struct event_env *env, const struct metrics **ret, struct err *err)
{
	if (!env->have_metrics && env->dir[0]) {
		int r = metrics_read(&env->metrics, env->dir, event_env_model(env), env->cpu, err);

		if (r < 0)
			return r;
	}
	env->have_metrics = true;
	*ret = &env->metrics;
	return 0;
}
