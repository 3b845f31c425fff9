/* Shared by the files of the pprof codec. */
#pragma once

#include "profile/pprof.h"

/* Fields of the message Profile. */
enum {
	FIELD_SAMPLE_TYPE = 1,
	FIELD_SAMPLE,
	FIELD_MAPPING,
	FIELD_LOCATION,
	FIELD_FUNCTION,
	FIELD_STRING,
	FIELD_DROP_FRAMES,
	FIELD_KEEP_FRAMES,
	FIELD_TIME_NS,
	FIELD_DURATION_NS,
	FIELD_PERIOD_TYPE,
	FIELD_PERIOD,
	FIELD_COMMENT,
	FIELD_DEFAULT_TYPE,
	FIELD_DOC_URL,
};

/* A message without compression; as pprof_read(), and errors in words always. */
int pprof_decode(const void *data, size_t size, size_t max_bytes, struct profile *ret,
		 struct err *err);
