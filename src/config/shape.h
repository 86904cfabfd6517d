/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a config file has the keys and the kinds of values that it may have. */
#ifndef TAILOR_CONFIG_SHAPE_H
#define TAILOR_CONFIG_SHAPE_H

#include "config/complaint.h"

/*
 * Complains about keys that nobody knows, that stand twice or are missing, and about values of a wrong kind, all of them, and reads
 * what is left of the text, which changes on the way. `lines` are validation->lines. Returns 0 and *ret_file (file_config_free() it), or -EINVAL after a
 * complaint when nothing can be read.
 */
int shape_read(struct validation *validation, struct config_lines *lines, char *text, size_t length, struct file_config **ret_file);

#endif /* TAILOR_CONFIG_SHAPE_H */
