/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done about a server that stands still: another one takes over what arrives from now on, what is in flight there goes to another
 * one too if the stop is expected to last, and at its end it is told what was done. A stop lasts from the first word of whoever told to the
 * last: a collection's end is not the end of the safepoint around it. All functions: the worker's thread.
 */
#ifndef TAILOR_PROXY_STOPPED_H
#define TAILOR_PROXY_STOPPED_H

#include "proxy/worker.h"

/* Who tells says that it stands still; anew, or by another word. `cause`: of a collection, "" where it is not known. */
void stopped_begin(struct worker *worker, unsigned int server, uint64_t word, const char *cause);
/* It runs again since then. What waits for it because all have stood still is for stopped_look_again(). */
void stopped_end(struct worker *worker, unsigned int server, uint64_t end_ns);
/* `servers` (bits 1 << server) run again since then: requests at others that stand still need not wait there any more. */
void stopped_look_again(struct worker *worker, uint32_t servers, uint64_t end_ns);
/* A stop that was over before it was seen. */
void stopped_missed(struct worker *worker, unsigned int server, enum tailor_stop_kind kind, const char *cause, uint64_t length_ns);

/* Whether the configuration wants something to be done about stops of that kind. */
bool stopped_matters(const struct worker *worker, enum tailor_stop_kind kind);
/* Whether it stands still, by this worker's last look, and it is known what that means for requests there. */
bool stopped_is_decided(const struct worker *worker, unsigned int server);
/* How long it takes to answer; 0: not known. */
uint64_t stopped_service_ns(const struct worker *worker, unsigned int server);

/* A request that is at that server was not moved, and why; `for_now`: it may be yet, and stayed only when the stop is over. Or it was. */
void stopped_not_moved(struct worker *worker, unsigned int server, struct attempt *attempt, enum tailor_not_moved why, bool for_now);
void stopped_moved(struct worker *worker, unsigned int server, struct attempt *attempt);
/* The attempt is at its server no longer. */
void stopped_leave(struct worker *worker, struct attempt *attempt);
/* Its response is here whole. */
void stopped_answered(struct worker *worker, const struct attempt *attempt);

/*
 * The first bytes of a replay are queued: gives them to the kernel, and notes when. Each replay's by itself, since the kernel takes some 40 us
 * to send them: the first one of many waits for none that is still to be queued, and none is said to have waited for those behind it.
 */
void stopped_hand_over(struct worker *worker, struct attempt *attempt);

/* The server's process has ended (tailor_proxy_server_gone()). */
void stopped_gone(struct worker *worker, unsigned int server, uint64_t alive_ns);

/* Once a turn: what is due; and when something will be, UINT64_MAX: nothing. */
void stopped_alarms(struct worker *worker);
uint64_t stopped_next_ns(const struct worker *worker);

#endif /* TAILOR_PROXY_STOPPED_H */
