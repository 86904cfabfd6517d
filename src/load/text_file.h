/* SPDX-License-Identifier: Apache-2.0 */
/* Inside src/load only: text files of requests, line by line, and the arrays they fill. */
#ifndef TAILOR_LOAD_TEXT_FILE_H
#define TAILOR_LOAD_TEXT_FILE_H

#include <stddef.h>

#include "load/load.h"

/*
 * Takes one line, which it may cut into parts. Returns 0 to go on, or a negative errno to stop; -EINVAL (a wrong line)
 * with why in error.
 */
typedef int load_take_line(void *context, char *line, char error[TAILOR_LOAD_ERROR_BYTES]);

/*
 * Hands each line of the file to take(), without its end; empty ones and those that begin with '#' are passed over.
 * Returns 0, what take() returned, -EINVAL (a line that is no text or has no end), -ENOMEM, or the error of opening or
 * reading; with one line in error, except for -ENOMEM: wrong lines are named by file and number, and with a file that
 * cannot be read it ends with the remedy.
 */
int load_read_lines(const char *file_name, const char *remedy, load_take_line *take, void *context,
                    char error[TAILOR_LOAD_ERROR_BYTES]);

/*
 * Makes room for one more than `count` items in an array that has *room of them. Returns the array, which may have
 * moved; or NULL without memory, and then it is as it was.
 */
void *load_array_grow(void *array, size_t count, size_t *room, size_t item_bytes);

#endif /* TAILOR_LOAD_TEXT_FILE_H */
