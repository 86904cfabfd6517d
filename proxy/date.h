/* SPDX-License-Identifier: Apache-2.0 */
/* The Date of the proxy's own answers, and of those that come without (RFC 9110, 6.6.1), written once a second. One thread. */
#ifndef TAILOR_PROXY_DATE_H
#define TAILOR_PROXY_DATE_H

#include <stdint.h>

/* "Sun, 06 Nov 1994 08:49:37 GMT" */
#define DATE_BYTES 29

/* Zeroed before first use. */
struct date {
	uint64_t second; /* of the epoch; that of `text` */
	uint64_t until_ns; /* CLOCK_MONOTONIC: then that second is over */
	char text[DATE_BYTES + 1];
};

/* The date of that second of the epoch; valid until the next call. */
const char *date_text(struct date *date, uint64_t second);

/* That of now, which is `now_ns` on CLOCK_MONOTONIC. Reads the clock of the wall once a second: a step of it shows a second late. */
const char *date_now(struct date *date, uint64_t now_ns);

#endif /* TAILOR_PROXY_DATE_H */
