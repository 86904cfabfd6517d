/* SPDX-License-Identifier: Apache-2.0 */
/* A changed configuration for a running proxy. */
#ifndef TAILOR_CLI_PROXY_RELOAD_H
#define TAILOR_CLI_PROXY_RELOAD_H

#include <stddef.h>

#include "config/config.h"
#include "proxy/proxy.h"

struct proxy_run;

/* What of a configuration can change while the proxy serves. */
void proxy_settings_of(const struct tailor_config *config, struct tailor_proxy_settings *ret_settings);

/*
 * Reads the configuration file again and validates it whole. An invalid one changes nothing. Of a valid one, what can change
 * while requests are served does so at once: `mode`, `slow`, `failover` and `timeouts`; the access log is opened anew. Returns 0, or
 * -EINVAL; report then holds the complaints, a line each, else what needs another process that takes over, or a restart, or
 * that nothing has changed, or nothing. Any thread, one after the other.
 */
int proxy_reload(struct proxy_run *run, char *report, size_t report_size);

#endif /* TAILOR_CLI_PROXY_RELOAD_H */
