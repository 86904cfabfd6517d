/* SPDX-License-Identifier: Apache-2.0 */
/* What the JVMs' shared pages say (tailor/jvm_page.h), turned into paused and usable servers. */
#ifndef TAILOR_PROXY_PAUSE_H
#define TAILOR_PROXY_PAUSE_H

#include "proxy/worker.h"

/* Looks at all pages and acts on what has changed since. Cheap: a load or two per server. */
void pause_look(struct worker *worker);

/* Whether a page says something that pause_look() has not seen. */
bool pause_changed(const struct worker *worker);

/* Announces sleep to the agents. Returns false when a page has changed meanwhile: then do not sleep. */
bool pause_may_sleep(struct worker *worker);
void pause_awake(struct worker *worker);

void pause_attach(struct worker *worker, unsigned int server, struct tailor_jvm_page *page, int waker);
/* Returns true when nothing of the JVM is in use any more; otherwise it is after pause_waker_complete() has returned
 * true. */
bool pause_detach(struct worker *worker, unsigned int server);

/* A read of a waker has completed. Returns true when that ends a detach. */
bool pause_waker_complete(struct worker *worker, unsigned int server, uint32_t generation, int result);

#endif /* TAILOR_PROXY_PAUSE_H */
