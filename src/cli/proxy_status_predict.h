/* SPDX-License-Identifier: Apache-2.0 */
/* What the status and the metrics say of collections that were predicted, and of what requests met. */
#ifndef TAILOR_CLI_PROXY_STATUS_PREDICT_H
#define TAILOR_CLI_PROXY_STATUS_PREDICT_H

#include <jansson.h>
#include <stdio.h>

#include "cli/proxy_run.h"

/* Adds a server's to its object. */
void status_predict_server_json(json_t *server, const struct tailor_proxy_server_status *status);

/* The same as metrics, of all servers. */
void status_predict_metrics(FILE *out, const struct proxy_run *run, const struct tailor_proxy_status *proxy);

#endif /* TAILOR_CLI_PROXY_STATUS_PREDICT_H */
