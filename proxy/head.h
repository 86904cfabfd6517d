/* SPDX-License-Identifier: Apache-2.0 */
/* Heads as they are sent on: without hop-by-hop fields, with the framing and the fields that the proxy adds. Pure. */
#ifndef TAILOR_PROXY_HEAD_H
#define TAILOR_PROXY_HEAD_H

#include <stdint.h>

#include "http1/http1.h"
#include "proxy/forwarded.h"
#include "proxy/worker.h"

/* Room that a forwarded head may need beyond the length of the one received. */
#define HEAD_ADDED_BYTES (512 + FORWARDED_ADDED_BYTES)

/*
 * Writes the request head for servers. A valid traceparent is passed on with its tracestate, and `id` beside it as
 * X-Tailor-Request-Id; otherwise one is made with `id` as its parent. Nobody else's X-Tailor-Request-Id gets through.
 * `host` stands in for a Host field that an HTTP/1.0 request may lack, unless its target names one; `rules` say what the
 * server is told about the way. Returns the length, or -ENOBUFS.
 */
int head_write_request(struct trace_source *trace, const struct http1_head *head, uint64_t id, const char *host,
                       const struct forwarded_rules *rules, char *to, size_t size);

/* Writes the response head for the client, framed by exchange->reframing and ->close; `via` as in struct forwarded_rules; `date` is
 * that of now, DATE_BYTES long, for where the server has said none. Returns the length, or -ENOBUFS. */
int head_write_response(const struct exchange *exchange, const struct http1_head *head, const char *via, const char *date, char *to,
                        size_t size);

/* Writes a 101 that changes to `protocol`. Returns the length, or -ENOBUFS. */
int head_write_switch(const struct exchange *exchange, const struct http1_head *head, const char *via, const char *protocol,
                      char *to, size_t size);

/* Writes an interim (1xx) response. Returns the length, or -ENOBUFS. */
int head_write_interim(const struct http1_head *head, const char *via, char *to, size_t size);

/* Writes a whole response of the proxy's own, with that Date, ended as exchange->close says; id 0: none. Returns the length, or -ENOBUFS. */
int head_write_refusal(unsigned int status, const struct exchange *exchange, const char *date, char *to, size_t size);

#endif /* TAILOR_PROXY_HEAD_H */
