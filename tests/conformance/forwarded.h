/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TAILOR_TESTS_CONFORMANCE_FORWARDED_H
#define TAILOR_TESTS_CONFORMANCE_FORWARDED_H

#include <stddef.h>

/*
 * What a server gets of a client's bytes: the requests that are valid and whole, up to the first that is not or that ends
 * the connection, each with the head that the proxy writes for it. Returns the number of bytes written, at most `size`.
 */
size_t forwarded_requests(const char *data, size_t length, char *to, size_t size);

#endif /* TAILOR_TESTS_CONFORMANCE_FORWARDED_H */
