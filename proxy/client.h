/* SPDX-License-Identifier: Apache-2.0 */
/* The client's connection: requests one after the other, in the order they came. */
#ifndef TAILOR_PROXY_CLIENT_H
#define TAILOR_PROXY_CLIENT_H

#include "proxy/worker.h"

/* A connection was accepted; takes over the descriptor. */
void client_accepted(struct worker *worker, int fd);

/* Asks for more bytes if that makes sense in this state and there is room. */
void client_receive(struct worker *worker, struct client *client);

/* Where what is made for the client goes, worker->out_bytes long. */
char *client_out(struct worker *worker, struct client *client);

/* Gives back the memory of a request, as far as nobody sends from it. */
void client_rest(struct worker *worker, struct client *client);

/* The response is out: the next request, or the connection's end. */
void client_answered(struct worker *worker, struct client *client);

/* Ends the connection at once. The exchange must have ended. */
void client_close(struct worker *worker, struct client *client);

/* From the loop. */
void client_complete(struct worker *worker, struct client *client, enum operation operation, int result);
void client_alarm(struct worker *worker, struct client *client);
void client_closed(struct worker *worker, struct client *client);
/* For a stop: closes connections between requests in good order, or (`all`) every one at once, and counts the requests in it. */
void client_close_all(struct worker *worker, bool all);

#endif /* TAILOR_PROXY_CLIENT_H */
