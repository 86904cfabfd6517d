/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where things stand in a YAML file. libcyaml checks and loads; it reports the place of an unknown
 * key as that of the key before and forgets places once loaded, so complaints take theirs from here.
 */
#ifndef TAILOR_CONFIG_LINES_H
#define TAILOR_CONFIG_LINES_H

#include <stddef.h>

struct config_lines;

/*
 * Parses text. Returns 0, -EINVAL with *ret_line and `problem` (what YAML's own parser says, or that the text is nested
 * deeper than 32 levels or longer than 5000 tokens), or -ENOMEM. Takes less than a second for any text of 1 MiB.
 */
int config_lines_open(const char *text, size_t length, struct config_lines **ret_lines, unsigned int *ret_line,
                      char *problem, size_t problem_size);
void config_lines_close(struct config_lines *lines);

/* 1 when the document is empty or its top is not a mapping. */
int config_lines_empty(const struct config_lines *lines);

/* Line (1-based) of the value at a path like "slow.threshold" or "servers[1].name"; of its nearest existing parent if it is missing; at least 1. */
unsigned int config_lines_of(const struct config_lines *lines, const char *path);

/* The single value at such a path as it is written (as long as lines live), or NULL. */
const char *config_lines_text(const struct config_lines *lines, const char *path);

/* 1 with the key that has this index in the mapping at a path ("" is the top), as long as lines live, NULL if it is no plain word, and its line; 0 behind the last. */
int config_lines_key(const struct config_lines *lines, const char *path, size_t index, const char **ret_key, unsigned int *ret_line);

/*
 * Makes the key of what stands at a path, or else of its nearest parent that has one, a key that nobody knows, in the text that the
 * lines were read from: so that the rest can be loaded. No other byte changes its place. Returns 0, -ENOENT (nothing stands there), or -EINVAL (the key is not
 * written there as it is read, or not any more).
 */
int config_lines_mask(const struct config_lines *lines, const char *path, char *text, size_t length);

/*
 * Takes out a key that stands twice in one mapping, the second one, and masks it in the text as config_lines_mask() does. Returns 1 with
 * *ret_key (as long as lines live) and *ret_line, 0 if there is none, or -EINVAL with both where it cannot be masked.
 */
int config_lines_drop_duplicate(struct config_lines *lines, char *text, size_t length, const char **ret_key, unsigned int *ret_line);

/* Whether there is something at a path: libcyaml does not tell an empty list from none. */
int config_lines_has(const struct config_lines *lines, const char *path);

#endif /* TAILOR_CONFIG_LINES_H */
