/* SPDX-License-Identifier: Apache-2.0 */
/* Which server gets a request. */
#ifndef TAILOR_PROXY_SERVER_H
#define TAILOR_PROXY_SERVER_H

#include "proxy/worker.h"

/* It stands still; asks those who tell (pause_word()), so that a request never starts towards a stopped server. */
bool server_is_paused(const struct worker *worker, unsigned int server);
/* It did not take connections lately. */
bool server_is_down(const struct worker *worker, unsigned int server);
/* Connecting failed: not tried again for 100 ms, doubling to 2 s; another one becomes the active one. */
void server_mark_down(struct worker *worker, unsigned int server);
void server_mark_up(struct worker *worker, unsigned int server);

/* It is neither down nor, where that matters, stopped. False for -1. */
bool server_may_serve(const struct worker *worker, int server);

/* The server for a new request, as options->mode says, or -1 when all are down and there is no idle connection to any. */
int server_choose(const struct worker *worker);

/*
 * Where no server can be asked by the rules: one that counts as down but may take connections again, and is to be connected to now; -1:
 * none. Each is asked so by one request at a time, and 10 ms after the last one failed at the soonest; by others, too, meanwhile, whose
 * server has just failed them (`failed`; -1: none has), which are no more than were in flight there.
 */
int server_last_resort(struct worker *worker, int failed);
/* A connection was given up before it was known whether it could be made. */
void server_connect_given_up(struct worker *worker, unsigned int server);

/* The one that takes over from `server` as the active one, in the configured order; -1 when no other may serve. */
int server_next(const struct worker *worker, unsigned int server);

/*
 * The best of the others for a request that is at `server` already: the one with the least in flight of those that may serve, else of those
 * that stand still, else of those that are down; -1 only where there is no other. Of those that are equal but for their load, one of
 * `tried` (bits 1 << server) comes last: it has been there. In either mode.
 */
int server_other(const struct worker *worker, unsigned int server, uint32_t tried);

/* A connection to one is begun: if it was down, that is enough to find out whether it still is, and others had better not wait for it. */
void server_connecting(struct worker *worker, unsigned int server);

#endif /* TAILOR_PROXY_SERVER_H */
