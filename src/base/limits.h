/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TAILOR_BASE_LIMITS_H
#define TAILOR_BASE_LIMITS_H

#include <stddef.h>

/* What raises the limit that this negative errno says was met, as the end of a sentence; NULL if it says no such thing. */
const char *tailor_limits_remedy(int error);

/* Whether that many more files may be opened: opens them, and closes them again. Returns 0 or a negative errno. */
int tailor_limits_ask_for_files(size_t count);

#endif /* TAILOR_BASE_LIMITS_H */
