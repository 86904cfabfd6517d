/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a message is told about the way it has come: Via (RFC 9110, 7.6.3), X-Forwarded-For, -Host and -Proto, Forwarded
 * (RFC 7239), and Max-Forwards (RFC 9110, 7.6.2). Pure. What clients and earlier proxies have said stays, and in front.
 */
#ifndef TAILOR_PROXY_FORWARDED_H
#define TAILOR_PROXY_FORWARDED_H

#include "proxy/output.h"

/* Bytes that all of it may add to a head. */
#define FORWARDED_ADDED_BYTES 1024

struct forwarded_rules {
	const char *via; /* this proxy's name, at most 63 bytes; NULL or "": no Via */
	bool x_forwarded;
	bool forwarded;
	const char *upgrade; /* the protocol that the server is asked to change to; NULL: none */
	uint8_t address[16]; /* the client's, as tailor_address_ip(); zeros: it has none */
};

/* Whether a field is not to be copied, since forwarded_put_request() writes it anew. */
bool forwarded_replaces(const struct forwarded_rules *rules, const struct http1_head *head, const struct http1_field *field);

/* Writes the fields. `host`: what the client has asked for, length 0: nothing. */
void forwarded_put_request(struct output *output, const struct forwarded_rules *rules, const struct http1_head *head,
                           struct http1_text host);

/* For responses: only Via. */
bool forwarded_replaces_via(const char *via, const struct http1_field *field);
void forwarded_put_via(struct output *output, const char *via, const struct http1_head *head);

/* Whether an OPTIONS or TRACE request may go on: Max-Forwards is absent, no number, or above 0. */
bool forwarded_may(const struct http1_head *head);

#endif /* TAILOR_PROXY_FORWARDED_H */
