/* Shared by plan.c and session.c. */
#pragma once

#include "count/set.h"

/* The attr as it is opened: sizes, times and group format filled in. */
struct perf_event_attr count_open_attr(const struct count_event *event);
/* Notes why event cannot be counted; it stays in the set without a number. */
void count_event_fail(struct count_event *event, int error);
/* After -EACCES or -EPERM: true when counting user mode alone may work; the event is changed so. */
bool count_event_to_user(struct count_event *event, int error);
