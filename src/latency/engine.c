/* Which engine measures: the best one that can, and why not a better one. */
#include "latency/engine.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

static const struct latency_engine_ops *const engines[] = {
	&engine_tracer_ops,
	&engine_bpf_ops,
	&engine_light_ops,
	&engine_user_ops,
};

static int choose_forced(const struct latency_engine_ops *const *rows, unsigned count,
			 const struct latency_options *options, char letter,
			 const struct latency_engine_ops **ret, char *reason, size_t reason_bytes,
			 struct err *err)
{
	for (unsigned i = 0; i < count; i++) {
		char have = latency_engine_letter(rows[i]->id);
		int r;

		if (have != toupper((unsigned char)letter))
			continue;
		r = rows[i]->probe(options, err);
		if (r < 0)
			return err_wrap(err, r, "engine %c (%s)", have,
					latency_engine_name(rows[i]->id));
		snprintf(reason, reason_bytes, "asked for with --engine");
		*ret = rows[i];
		return 0;
	}
	return err_set(err, -EINVAL, "there is no engine '%c': K, B, L or U", letter);
}

int latency_engine_choose_from(const struct latency_engine_ops *const *rows, unsigned count,
			       const struct latency_options *options, char forced,
			       const struct latency_engine_ops **ret, char *reason,
			       size_t reason_bytes, struct err *err)
{
	struct str failures = {0};
	int r = -ENODEV;

	if (forced)
		return choose_forced(rows, count, options, forced, ret, reason, reason_bytes, err);
	for (unsigned i = 0; i < count; i++) {
		struct err why = {0};

		r = rows[i]->probe(options, &why);
		if (r == 0) {
			snprintf(reason, reason_bytes, "%s",
				 failures.len ? str_text(&failures) : "the best there is");
			*ret = rows[i];
			break;
		}
		str_printf(&failures, "%snot %c: %s", failures.len ? "; " : "",
			   latency_engine_letter(rows[i]->id), err_text(&why, r));
	}
	if (r < 0)
		err_set(err, r, "no engine can measure this here: %s", str_text(&failures));
	str_fini(&failures);
	return r;
}

int latency_engine_choose(const struct latency_options *options, char forced,
			  const struct latency_engine_ops **ret, char *reason, size_t reason_bytes,
			  struct err *err)
{
	return latency_engine_choose_from(engines, ARRAY_LEN(engines), options, forced, ret, reason,
					  reason_bytes, err);
}
