/* SPDX-License-Identifier: Apache-2.0 */
/* The admin interface's transport: HTTP on a Unix socket or loopback, on a thread of its own, far from the data path. */
#ifndef TAILOR_ADMIN_ADMIN_H
#define TAILOR_ADMIN_ADMIN_H

#include <stddef.h>

#include "base/address.h"

struct tailor_admin;

/* What to answer. body is malloc()ed by the handler and freed by the admin; content_type is static. */
struct tailor_admin_reply {
	unsigned int status;
	const char *content_type;
	char *body;
	const char *allow; /* static: the methods that a 405 names in its Allow field; NULL: no such field */
};

/* Answers one request; called on the admin's thread, one at a time. */
typedef void tailor_admin_handler(void *context, const char *method, const char *path, struct tailor_admin_reply *ret_reply);

/*
 * Listens and serves. Returns 0 and *ret_admin, or a negative errno with one line and the remedy in `error`.
 * The socket file is removed by tailor_admin_stop().
 */
int tailor_admin_start(const struct tailor_address *address, tailor_admin_handler *handler, void *context,
                       struct tailor_admin **ret_admin, char *error, size_t error_size);
void tailor_admin_stop(struct tailor_admin *admin);

#endif /* TAILOR_ADMIN_ADMIN_H */
