/* Records as lines of text in the manner of the kernel's tracers, so that whatever reads those
 * reads these. */
#pragma once

#include <stdio.h>

#include "latency/record.h"

void record_text(const struct latency_record *record, FILE *out);
