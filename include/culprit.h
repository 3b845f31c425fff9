/*
 * libculprit: counters for parts of a program.
 *
 *	culprit_begin("parse");
 *	...
 *	culprit_end("parse");
 *
 * Run the program under "culprit regions -- PROGRAM" and each region is shown with how often it
 * ran, its time and its counts. Without that (the environment variable CULPRIT_REGIONS unset) every
 * call returns at once. Regions nest, belong to the thread that began them, and are found by the
 * text of their names. All functions may be called from any thread, none from a signal handler. See
 * culprit(3).
 */
#ifndef CULPRIT_H
#define CULPRIT_H

#ifdef __cplusplus
extern "C" {
#endif

#define CULPRIT_API __attribute__((visibility("default")))

/* Begins a region inside the one that is running, if any. name is copied the first time. */
CULPRIT_API void culprit_begin(const char *name);

/* Ends the innermost region of this name; those begun inside it and not ended are reported. */
CULPRIT_API void culprit_end(const char *name);

/* Ends the innermost region and begins another in its place, with one reading of the counters. */
CULPRIT_API void culprit_switch(const char *name);

/* 1 when regions are measured, else 0. */
CULPRIT_API int culprit_active(void);

/* Writes the results so far, as is done at exit: for programs that end by _exit() or a signal.
 * 0, or a negative errno. */
CULPRIT_API int culprit_write(void);

#ifdef __cplusplus
}
#endif

#endif
