/*
 * Which namespaces a task was in, as NAMESPACES records tell: when a task begins, and when it goes
 * into others. They tell containers apart where nothing else does.
 */
#include <stdlib.h>

#include "base/util.h"
#include "sample/session-internal.h"

int session_namespaces_add(struct session *session, const uint8_t *body, size_t size, uint64_t key)
{
	struct perfdata_namespaces told;

	if (!perfdata_namespaces_decode(body, size, session->header.swap, &told))
		return 0;
	return vec_push(&session->namespaces,
			((struct namespaces_version){.key = key,
						     .tid = told.tid,
						     .order = (uint32_t)session->namespaces.len,
						     .pid_ns = told.pid_ns,
						     .cgroup_ns = told.cgroup_ns}));
}

static int compare_versions(const void *a, const void *b)
{
	const struct namespaces_version *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

void session_namespaces_finish(struct session *session)
{
	if (session->namespaces.len > 1)
		qsort(session->namespaces.data, session->namespaces.len,
		      sizeof(*session->namespaces.data), compare_versions);
}

bool session_has_namespaces(const struct session *session)
{
	return session->namespaces.len > 0;
}

static const struct namespaces_version *find(const struct session *session, int32_t tid,
					     uint64_t key)
{
	const struct namespaces_version *all = session->namespaces.data;
	struct namespaces_version want = {.tid = tid, .key = key, .order = UINT32_MAX};
	size_t behind =
		partition_point(session->namespaces.len, i, compare_versions(&all[i], &want) <= 0);

	return behind > 0 && all[behind - 1].tid == tid ? &all[behind - 1] : NULL;
}

const struct namespaces_version *session_namespaces_at(const struct session *session, int32_t pid,
						       int32_t tid, uint64_t key)
{
	const struct namespaces_version *found = find(session, tid, key);

	return found || tid == pid ? found : find(session, pid, key);
}
