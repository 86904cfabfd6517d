/* SPDX-License-Identifier: Apache-2.0 */
/* The admin interface's transport: HTTP on a Unix socket or loopback, on a thread of its own, far from the data path. */
#ifndef TAILOR_ADMIN_ADMIN_H
#define TAILOR_ADMIN_ADMIN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

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

/* Tells that somebody was refused (403) who is neither root nor this process's user; on the admin's thread. */
typedef void tailor_admin_refused(void *context, pid_t pid, uid_t uid);

/*
 * Listens; whoever connects is not answered yet. Returns 0 and *ret_admin for tailor_admin_stop(), or a negative errno with one
 * line and the remedy in `error`.
 */
int tailor_admin_open(const struct tailor_address *address, struct tailor_admin **ret_admin, char *error, size_t error_size);
/* The same on a socket that another process has listened on at that address and handed over: `fd`, taken over in any case. */
int tailor_admin_adopt(const struct tailor_address *address, int fd, struct tailor_admin **ret_admin, char *error, size_t error_size);
/* The listening socket, for that. */
int tailor_admin_listener(const struct tailor_admin *admin);
/*
 * Starts the thread that answers; on a Unix socket only root and this process's user (as who connected, SO_PEERCRED). Returns 0,
 * or a negative errno with one line in `error`.
 */
int tailor_admin_start(struct tailor_admin *admin, tailor_admin_handler *handler, tailor_admin_refused *refused, void *context, char *error,
                       size_t error_size);
/* Ends the thread, once what is under way is answered, 0.2 s at most; whoever connects from now on waits for the next tailor_admin_start(), here or in another process. */
void tailor_admin_rest(struct tailor_admin *admin);
/* Whether tailor_admin_stop() leaves the socket's file, because it is another process's; so it is at first of one that was handed over. */
void tailor_admin_leave(struct tailor_admin *admin, bool leave);
/* Ends the thread, if there is one, closes the socket and removes its file; NULL is allowed. */
void tailor_admin_stop(struct tailor_admin *admin);

#endif /* TAILOR_ADMIN_ADMIN_H */
