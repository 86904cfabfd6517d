/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "proxy/proxy.h"

void tailor_proxy_set(struct tailor_proxy_options *options, const struct tailor_proxy_settings *settings)
{
	options->mode = settings->mode;
	options->failover_on = settings->failover_on;
	options->replay_when = settings->replay_when;
	memcpy(options->route, settings->route, sizeof(options->route));
	options->routes = settings->routes;
	options->replay_part = settings->replay_part;
	options->replay_floor_per_s = settings->replay_floor_per_s;
	options->switch_min_ns = settings->switch_min_ns;
	options->predict = settings->predict;
	options->collect = settings->collect;
	options->connect_timeout_ns = settings->connect_timeout_ns;
	options->response_timeout_ns = settings->response_timeout_ns;
	options->idle_timeout_ns = settings->idle_timeout_ns;
	options->head_timeout_ns = settings->head_timeout_ns;
	options->body_timeout_ns = settings->body_timeout_ns;
	options->keep_alive_timeout_ns = settings->keep_alive_timeout_ns;
	options->queue_timeout_ns = settings->queue_timeout_ns;
	options->request_timeout_ns = settings->request_timeout_ns;
}
