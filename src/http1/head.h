/* SPDX-License-Identifier: Apache-2.0 */
/* Inside src/http1 only: what request heads and response heads have in common. */
#ifndef TAILOR_HTTP1_HEAD_H
#define TAILOR_HTTP1_HEAD_H

#include "http1/http1.h"

/* The bytes that are still to be read. */
struct http1_cursor {
	const char *at;
	const char *end;
};

/* What the field lines of a head say together. */
struct http1_facts {
	bool response; /* where Host and Expect mean nothing */
	struct http1_text host;
	uint64_t content_length;
	unsigned int hosts;
	bool has_content_length;
	bool has_transfer_encoding;
	bool chunked;        /* the last coding so far */
	bool unknown_coding; /* some other coding */
	bool close;          /* in Connection */
	bool keep_alive;     /* in Connection */
	bool upgrade_named;  /* in Connection */
	bool upgrade;        /* the field */
	bool expect_continue;
};

/*
 * Takes the next line without its CRLF. Returns 1; 0 when its end is not there yet; -400 when it ends with a bare LF.
 * A bare CR stays in the line, where no grammar has a place for it.
 */
int http1_read_line(struct http1_cursor *cursor, struct http1_text *ret_line);

/*
 * Takes "HTTP/1.x", the whole of `text`. A higher minor version counts as 1 (RFC 9110, 2.5). Returns 0, -400, or -505
 * for another major version.
 */
int http1_read_version(const char *text, size_t length, uint8_t *ret_minor);

/* Which of the known fields has this name, of 1 byte or more. */
enum http1_known http1_known_field(struct http1_text name);

/* Whether all bytes are field-vchar, SP or HTAB (RFC 9110, 5.5). */
bool http1_is_value(const char *data, size_t length);

/* Reads field lines up to and with the empty line. Returns 1, 0 (more bytes), or a negative status as for requests. */
int http1_read_fields(struct http1_cursor *cursor, size_t fields_max, struct http1_head *head,
                      struct http1_facts *facts);

/*
 * Whether the body's length is told in one way only: refuses Transfer-Encoding in HTTP/1.0 or beside Content-Length,
 * codings that do not end with chunked (-400), and others before it (-501; RFC 9112, 6.1 and 6.3). Returns 0 or those.
 */
int http1_check_framing(const struct http1_head *head, const struct http1_facts *facts);

/*
 * Looks for the end of a head that begins at `start`: an empty line, be its line ends right or wrong. Goes on where
 * search says.
 */
bool http1_find_end(const char *data, size_t length, size_t start, struct http1_search *search);

#endif /* TAILOR_HTTP1_HEAD_H */
