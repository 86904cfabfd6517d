/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The access log: a line for each request that ended, made from what the workers recorded, away from the data path. Lines
 * are collected in memory and written together; when the file (or whoever reads the pipe) does not take them, they wait in
 * bounded memory, and what does not fit is counted as lost. Nothing here ever blocks on a pipe.
 */
#ifndef TAILOR_ACCESSLOG_ACCESSLOG_H
#define TAILOR_ACCESSLOG_ACCESSLOG_H

#include <stddef.h>
#include <stdint.h>
#include <tailor/window.h>

enum tailor_accesslog_format {
	TAILOR_ACCESSLOG_TEXT = 0, /* common log format, then NAME=VALUE pairs; what `tailor load --replay` reads */
	TAILOR_ACCESSLOG_JSON = 1, /* an object a line */
};

struct tailor_accesslog;

/*
 * Opens (appending, 0640 when new) the file, pipe or terminal at `path`. Returns 0, or a negative errno: -ENXIO is a FIFO
 * that nobody reads. One thread at a time, but for tailor_accesslog_reopen() and _lost().
 */
int tailor_accesslog_open(const char *path, enum tailor_accesslog_format format, struct tailor_accesslog **ret_log);
/* Writes what it can and closes; NULL is allowed. */
void tailor_accesslog_close(struct tailor_accesslog *log);

/* Appends one request's line. wall_ns: CLOCK_REALTIME at its beginning. No I/O. */
void tailor_accesslog_add(struct tailor_accesslog *log, const struct tailor_record *record, uint64_t wall_ns);
/*
 * Writes what is waiting, and opens the file anew first if that was asked for. Returns 0, or the negative errno of what
 * went wrong (the lines stay, while there is room).
 */
int tailor_accesslog_flush(struct tailor_accesslog *log);

/* Asks for the file to be opened anew at the next flush, after it was renamed. Any thread, also a signal handler. */
void tailor_accesslog_reopen(struct tailor_accesslog *log);
/* Lines that were not written for want of room. Any thread. */
uint64_t tailor_accesslog_lost(const struct tailor_accesslog *log);

/*
 * Formats a line with its line feed. Pure. Returns its length, or 0 when it does not fit into `size`, or, as JSON, without
 * memory.
 */
#define TAILOR_ACCESSLOG_LINE_BYTES 2048
size_t tailor_accesslog_format_text(const struct tailor_record *record, uint64_t wall_ns, char *to, size_t size);
size_t tailor_accesslog_format_json(const struct tailor_record *record, uint64_t wall_ns, char *to, size_t size);

#endif /* TAILOR_ACCESSLOG_ACCESSLOG_H */
