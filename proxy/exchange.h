/* SPDX-License-Identifier: Apache-2.0 */
/* One request from its first byte to its end: which servers get it, and what becomes of it when they fail. */
#ifndef TAILOR_PROXY_EXCHANGE_H
#define TAILOR_PROXY_EXCHANGE_H

#include "proxy/worker.h"

/* An exchange before its beginning. */
void exchange_clear(struct exchange *exchange);

/* A request's first byte was read at read_ns: gives it an id. */
void exchange_begin(struct worker *worker, struct client *client, uint64_t read_ns);

/* Its head was not there at once: writes REQUEST_BEGIN, unless that was done. */
void exchange_tell_begin(struct worker *worker, struct client *client);

/* Its head has been parsed into worker->head. */
void exchange_start(struct worker *worker, struct client *client);

/* It has waited for a place and has one now, at that server; -1: there is no server that could be asked. */
void exchange_granted(struct worker *worker, struct client *client, int server);

/* How many attempts are under way. */
unsigned int exchange_live_attempts(const struct exchange *exchange);

/* The attempt is at its server no longer; idempotent. */
void exchange_leave_place(struct worker *worker, struct attempt *attempt);

/* More of its body may be there, or more of it may be sent. */
void exchange_feed(struct worker *worker, struct client *client);

/* Answers in the server's stead. Attempts under way are given up. */
void exchange_refuse(struct worker *worker, struct client *client, unsigned int status, enum tailor_refusal why);

/* The request has taken as long as it may: refused, or cut off when its response has begun. */
void exchange_late(struct worker *worker, struct client *client);

/* What has begun of its response is all that the client gets: ends the request, and closes so that the client notices. */
void exchange_cut(struct worker *worker, struct client *client);

/* An attempt has ended without a whole response; its connection is closed here. Another attempt, or the end. */
void exchange_attempt_failed(struct worker *worker, struct upstream *upstream, enum tailor_attempt_end end);

/* Closes all attempts but the winner's. */
void exchange_drop_attempts(struct worker *worker, struct client *client, enum tailor_attempt_end end);

/* The winner's answer begins with that head: ends the others' attempts. */
void exchange_drop_losers(struct worker *worker, struct client *client, const struct http1_head *head);

/* The server of an attempt in flight stands still; again whenever more is known about that. */
void exchange_server_paused(struct worker *worker, struct upstream *upstream);

/* Something has changed for a request that may wait for servers that stand still: it is judged anew whether it has to. */
void exchange_judge_again(struct worker *worker, struct client *client);

/* The client can get nothing any more: ends the request, if there is one, and closes. */
void exchange_client_gone(struct worker *worker, struct client *client);

/* The client's socket has accepted the last byte. */
void exchange_finish(struct worker *worker, struct client *client);

/* The client has the answer after which its connection is a tunnel: the request has ended. */
void exchange_told(struct worker *worker, struct client *client);

/* A server's send has let go of the client's buffer. */
void exchange_unheld(struct worker *worker, struct client *client);

#endif /* TAILOR_PROXY_EXCHANGE_H */
