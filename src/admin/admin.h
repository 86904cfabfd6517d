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
 * Listens; whoever connects is not answered yet. Returns 0 and *ret_admin for tailor_admin_stop(), or a negative errno with one
 * line and the remedy in `error`.
 */
int tailor_admin_open(const struct tailor_address *address, struct tailor_admin **ret_admin, char *error, size_t error_size);
/* Starts the thread that answers. Returns 0, or a negative errno with one line in `error`. */
int tailor_admin_start(struct tailor_admin *admin, tailor_admin_handler *handler, void *context, char *error, size_t error_size);
/* Ends the thread, if there is one, closes the socket and removes its file; NULL is allowed. */
void tailor_admin_stop(struct tailor_admin *admin);

#endif /* TAILOR_ADMIN_ADMIN_H */
