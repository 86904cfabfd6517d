/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TAILOR_TESTS_CONFORMANCE_REASON_H
#define TAILOR_TESTS_CONFORMANCE_REASON_H

#include "tests/conformance/walk.h"

/*
 * Names what is wrong with the message that ended `walk`, by its text and not by the parser's code, so that disagreements
 * can be sorted by it. A static text.
 */
const char *reason_of(const struct walk *walk, const char *data, size_t length);

#endif /* TAILOR_TESTS_CONFORMANCE_REASON_H */
