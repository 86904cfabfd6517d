/* SPDX-License-Identifier: Apache-2.0 */
/* The Date of the proxy's own answers (RFC 9110, 6.6.1), written once a second. One thread. */
#ifndef TAILOR_PROXY_DATE_H
#define TAILOR_PROXY_DATE_H

#include <stdint.h>

/* "Sun, 06 Nov 1994 08:49:37 GMT" */
#define DATE_BYTES 29

/* Zeroed before first use. */
struct date {
	uint64_t second; /* of the epoch; that of `text` */
	char text[DATE_BYTES + 1];
};

/* The date of that second of the epoch; valid until the next call. */
const char *date_text(struct date *date, uint64_t second);

#endif /* TAILOR_PROXY_DATE_H */
