/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies from one framing to another (RFC 9112, 7). Pure but for the exchange's framing state. */
#ifndef TAILOR_PROXY_REFRAME_H
#define TAILOR_PROXY_REFRAME_H

#include "proxy/worker.h"

/*
 * Both read `length` bytes of body, write behind exchange->out_end into out (out_bytes in all), move out_end, and
 * return how many bytes they used up: fewer than `length` when out is full.
 */

/* Adds the last chunk, once, when exchange->response_complete and everything was used up. */
uint32_t reframe_to_chunked(struct exchange *exchange, const char *data, uint32_t length, char *out,
                            uint32_t out_bytes);

/* The bytes must have passed http1_chunked_take(): they are known to be valid. Trailers are dropped. */
uint32_t reframe_from_chunked(struct exchange *exchange, const char *data, uint32_t length, char *out,
                              uint32_t out_bytes);

#endif /* TAILOR_PROXY_REFRAME_H */
