/*
 * Growable arrays. VEC(T) declares an anonymous struct { T *data; size_t len, cap; },
 * zero-initialized is empty. The owner frees with vec_fini(). Growth doubles; failure is -ENOMEM,
 * and changes nothing.
 *
 *	VEC(uint64_t) ips = {0};
 *	r = vec_push(&ips, ip);
 *	vec_fini(&ips);
 */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#define VEC(T)                   \
	struct {                 \
		T *data;         \
		size_t len, cap; \
	}

/* Makes room for at least need elements of elem_bytes each in *data (a pointer to the data
 * pointer). */
int vec_grow(void *data, size_t *cap, size_t need, size_t elem_bytes);

#define vec_reserve(v, need) vec_grow(&(v)->data, &(v)->cap, (need), sizeof(*(v)->data))

#define vec_push(v, value)                                          \
	((v)->len < (v)->cap || vec_reserve((v), (v)->len + 1) == 0 \
		 ? ((v)->data[(v)->len++] = (value), 0)             \
		 : -ENOMEM)

#define vec_fini(v)                      \
	do {                             \
		free((v)->data);         \
		(v)->data = NULL;        \
		(v)->len = (v)->cap = 0; \
	} while (0)

#define vec_for_each(v, it) \
	for (__typeof__((v)->data + 0) it = (v)->data; it && it < (v)->data + (v)->len; it++)
