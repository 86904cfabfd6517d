/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TAILOR_CLI_STATUS_ASK_H
#define TAILOR_CLI_STATUS_ASK_H

#include <jansson.h>

#include "base/address.h"

/*
 * Asks a proxy's admin interface for GET /status; waits for 2 s at most. Returns 0 and *ret_status, the caller's, or a negative errno:
 * that of connecting (-ENOENT, -ECONNREFUSED, ...), -ETIMEDOUT, -EPROTO (whoever is there is no proxy, or refuses).
 */
int status_ask(const struct tailor_address *address, json_t **ret_status);

#endif /* TAILOR_CLI_STATUS_ASK_H */
