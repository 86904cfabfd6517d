/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TAILOR_PROXY_STATUS_H
#define TAILOR_PROXY_STATUS_H

#include "proxy/worker.h"

/* Adds a worker's counters; status->servers must be set. Any thread. */
void status_add(struct tailor_proxy_status *status, const struct worker *worker);

#endif /* TAILOR_PROXY_STATUS_H */
