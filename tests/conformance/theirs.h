/* SPDX-License-Identifier: Apache-2.0 */
/* The same bytes as read by libhttp-parser, a parser with another history than ours. */
#ifndef TAILOR_TESTS_CONFORMANCE_THEIRS_H
#define TAILOR_TESTS_CONFORMANCE_THEIRS_H

#include "tests/conformance/walk.h"

struct theirs {
	size_t count;
	struct walk_message message[WALK_MESSAGES_MAX]; /* .fields is not filled */
	bool waits;        /* bytes of a message that is not whole are left */
	const char *error; /* its name for why it refused; NULL: it did not */
};

/*
 * As walk_begin(), walk_feed() and walk_end() in one. An upgrade is passed over, as a server may (RFC 9110, 7.8), and
 * nothing is read behind a message that closes its connection.
 */
void theirs_read(struct theirs *theirs, bool responses, enum http1_method request_method, const char *data, size_t length,
                 bool closed);

#endif /* TAILOR_TESTS_CONFORMANCE_THEIRS_H */
