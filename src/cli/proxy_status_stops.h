/* SPDX-License-Identifier: Apache-2.0 */
/* What the status and the metrics say of servers that stood still, and of what was done about it. */
#ifndef TAILOR_CLI_PROXY_STATUS_STOPS_H
#define TAILOR_CLI_PROXY_STATUS_STOPS_H

#include <jansson.h>
#include <stdio.h>

#include "cli/proxy_run.h"

/* Adds a server's to its object, and everybody's to the whole status. */
void status_stops_server_json(json_t *server, const struct tailor_proxy_server_status *status);
void status_stops_json(json_t *object, const struct tailor_proxy_status *proxy, const struct tailor_observer_status *observer);

/* The same as metrics. */
void status_stops_metrics(FILE *out, const struct proxy_run *run, const struct tailor_proxy_status *proxy,
                          const struct tailor_observer_status *observer);

#endif /* TAILOR_CLI_PROXY_STATUS_STOPS_H */
