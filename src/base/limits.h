/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TAILOR_BASE_LIMITS_H
#define TAILOR_BASE_LIMITS_H

/* What raises the limit that this negative errno says was met, as the end of a sentence; NULL if it says no such thing. */
const char *tailor_limits_remedy(int error);

#endif /* TAILOR_BASE_LIMITS_H */
