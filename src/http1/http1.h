/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 messages as bytes (RFC 9112): a strict, zero-copy, incremental parser. Pure: no I/O, no
 * allocation, no clock. The result does not depend on how the input was split: a head is judged when it
 * is whole or has grown past its limit.
 *
 * What two parsers could read differently is refused, not repaired.
 */
#ifndef TAILOR_HTTP1_HTTP1_H
#define TAILOR_HTTP1_HTTP1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes inside the caller's buffer; valid as long as the buffer is. */
struct http1_text {
	const char *data;
	size_t length;
};

struct http1_field {
	struct http1_text name;  /* as received, 1 byte or more */
	struct http1_text value; /* without surrounding white space */
	uint8_t known;           /* enum http1_known, by name, case-insensitive */
};

/* Fields that somebody here asks for. */
enum http1_known {
	HTTP1_OTHER = 0,
	HTTP1_CONNECTION,
	HTTP1_CONTENT_LENGTH,
	HTTP1_TRANSFER_ENCODING,
	HTTP1_HOST,
	HTTP1_EXPECT,
	HTTP1_UPGRADE,
	HTTP1_KEEP_ALIVE,
	HTTP1_PROXY_CONNECTION,
	HTTP1_TE,
	HTTP1_TRAILER,
	HTTP1_TRACEPARENT,
	HTTP1_TRACESTATE,
	HTTP1_X_REQUEST_ID,
	HTTP1_DATE,
	HTTP1_SERVER,
	HTTP1_HTTP2_SETTINGS,
};

/* The longest name among them. */
#define HTTP1_KNOWN_BYTES 17

enum http1_method {
	HTTP1_METHOD_OTHER = 0,
	HTTP1_GET,
	HTTP1_HEAD,
	HTTP1_POST,
	HTTP1_PUT,
	HTTP1_DELETE,
	HTTP1_OPTIONS,
	HTTP1_PATCH,
	HTTP1_TRACE,
	HTTP1_CONNECT,
};

/* How the end of a message's body is known (RFC 9112, 6.3). */
enum http1_framing {
	HTTP1_NO_BODY = 0,
	HTTP1_LENGTH,
	HTTP1_CHUNKED,
	HTTP1_UNTIL_CLOSE, /* responses only */
};

#define HTTP1_FIELDS_MAX 128

struct http1_head {
	/* request */
	struct http1_text method;
	struct http1_text target;
	struct http1_text authority; /* of a target in absolute-form (RFC 9112, 3.2.2), the same as Host; else empty */
	struct http1_text path;      /* the target behind its authority: path and query, possibly empty */
	enum http1_method method_known;
	/* response */
	uint16_t status;
	struct http1_text reason;
	/* both */
	uint8_t minor;   /* HTTP/1.minor, 0 or 1; a higher one counts as 1 (RFC 9110, 2.5) */
	/* What the message says about its connection (RFC 9112, 9.3); not with HTTP1_UNTIL_CLOSE nor a 204 with a body. */
	bool keep_alive;
	bool expect_continue; /* never in an HTTP/1.0 request */
	bool upgrade;    /* Upgrade present and named in Connection; never in an HTTP/1.0 request */
	enum http1_framing framing;
	uint64_t content_length; /* with HTTP1_LENGTH, then below 2^63 and possibly 0; else 0 */
	size_t head_bytes;       /* including the empty line */
	size_t field_count;
	struct http1_field field[HTTP1_FIELDS_MAX];
};

struct http1_limits {
	size_t head_bytes; /* a head longer than this is refused with 431 (request line alone: 414) */
	size_t fields;     /* at most HTTP1_FIELDS_MAX */
};

/* Where to go on looking for the end of a head when more bytes have come; zero before the first byte of a message. */
struct http1_search {
	size_t scanned;
	bool line_judged; /* the request line is whole and valid */
};

/*
 * Parses the request head at the start of data. Returns 1 and fills *ret_head; 0 when more bytes are
 * needed; or a negative HTTP status to answer with before closing (-400, -411, -414, -417, -431, -501, -505).
 * Empty lines before the request line are skipped and counted in head_bytes (RFC 9112, 2.2). A request line is judged
 * when it is whole, so that HTTP/0.9 gets its answer; the fields when all are there. A refused request leaves in
 * ret_head->method_known what its method was: the answer to HEAD has no body.
 */
int http1_parse_request(const char *data, size_t length, const struct http1_limits *limits, struct http1_search *search,
                        struct http1_head *ret_head);

/*
 * Parses a response head; request_method decides about HEAD and CONNECT. Interim responses (1xx) are
 * returned like others with HTTP1_NO_BODY. Returns 1, 0 (more bytes), or -502 when it is not a valid response.
 */
int http1_parse_response(const char *data, size_t length, const struct http1_limits *limits, struct http1_search *search,
                         enum http1_method request_method, struct http1_head *ret_head);

/*
 * Follows a chunked body (RFC 9112, 7.1) without changing it. State zeroed at the body's start. Trailer fields about
 * framing, routing or the connection make it invalid (RFC 9110, 6.5.1): a reader that merges trailers into the head
 * would see another message.
 */
struct http1_chunked {
	uint64_t left; /* in the current chunk */
	uint64_t data; /* of all chunks, taken so far */
	uint32_t line; /* bytes of the current size line, at most 4096, or of the trailer section, at most 8192 */
	uint8_t state;
	bool trailer_started;
	uint8_t name_length; /* of the trailer field at hand, as far as it matters */
	char name[HTTP1_KNOWN_BYTES];
};

/*
 * Takes `length` bytes of body. Returns how many of them belong to the body (all of them while it goes
 * on), with *ret_done when its last byte is among them; or -EPROTO when they are not a valid chunked body.
 */
int64_t http1_chunked_take(struct http1_chunked *chunked, const char *data, size_t length, bool *ret_done);
/* How many of the next bytes are a chunk's data; 0 where a size line, a chunk's end or the trailer comes next. */
uint64_t http1_chunked_data(const struct http1_chunked *chunked);

/* 1 when the comma-separated list `value` holds `token` (case-insensitive): Connection, Transfer-Encoding, TE. */
bool http1_list_has(struct http1_text value, const char *token);

/*
 * 1 when the field must not be forwarded: hop-by-hop by RFC 9110, 7.6.1 (HTTP2-Settings by RFC 7540, 3.2.1), or named
 * by a Connection field of this head.
 * Transfer-Encoding is one of them: who passes a chunked body on unchanged writes "Transfer-Encoding: chunked" himself.
 * Content-Length and Host never are, whatever Connection names.
 */
bool http1_is_hop_by_hop(const struct http1_head *head, const struct http1_field *field);

/* The reason phrase of a status that Tailor itself sends; "Error" for others. */
const char *http1_reason(unsigned int status);

#endif /* TAILOR_HTTP1_HTTP1_H */
