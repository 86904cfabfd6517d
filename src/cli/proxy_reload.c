/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/proxy_reload.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/proxy_run.h"

struct report {
	const char *path;
	char *text;
	size_t size;
	size_t length;
};

static void add(struct report *report, const char *text)
{
	int length = snprintf(report->text + report->length, report->size - report->length, "%s", text);

	report->length += (size_t)length;
	if (report->length >= report->size)
		report->length = report->size - 1;
}

static void add_complaint(void *context, unsigned int line, const char *text)
{
	struct report *report = context;
	char whole[768];

	if (line)
		snprintf(whole, sizeof(whole), "%s:%u: %s\n", report->path, line, text);
	else
		snprintf(whole, sizeof(whole), "%s: %s\n", report->path, text);
	add(report, whole);
}

static bool same_address(const struct tailor_address *one, const struct tailor_address *other)
{
	return one->length == other->length && memcmp(&one->storage, &other->storage, one->length) == 0;
}

static bool same_servers(const struct tailor_config *old, const struct tailor_config *new)
{
	bool same = old->servers == new->servers;

	for (size_t i = 0; same && i < old->servers; i++)
		same = strcmp(old->server[i].name, new->server[i].name) == 0 &&
		       same_address(&old->server[i].address, &new->server[i].address);
	return same;
}

static bool same_limits(const struct tailor_config *old, const struct tailor_config *new)
{
	return old->connections_max == new->connections_max && old->per_address_max == new->per_address_max &&
	       old->in_flight_max == new->in_flight_max && old->queue_max == new->queue_max && old->fields_max == new->fields_max &&
	       old->head_bytes_max == new->head_bytes_max && old->body_bytes_max == new->body_bytes_max &&
	       old->replay_bytes == new->replay_bytes && old->replay_bytes_total == new->replay_bytes_total;
}

struct key {
	const char *name;
	bool same;
};

static void add_keys(struct report *report, const struct key *keys, size_t count, const char *text)
{
	size_t before = report->length;

	for (size_t i = 0; i < count; i++) {
		if (keys[i].same)
			continue;
		add(report, report->length == before ? text : ", ");
		add(report, keys[i].name);
	}
	if (report->length > before)
		add(report, "\n");
}

/* What was taken at the start, and sized everything else; and what even a process that takes over goes on with (proxy_takeover.c). */
static void add_restarts(struct report *report, const struct tailor_config *old, const struct tailor_config *new)
{
	const struct key keys[] = {
		{"servers", same_servers(old, new)},
		{"workers", old->workers >= new->workers},
		{"priority", old->priority_given == new->priority_given && old->nice == new->nice && old->fifo == new->fifo &&
		                     old->busy_poll_ns == new->busy_poll_ns},
		{"timelines", strcmp(old->timelines_path, new->timelines_path) == 0 &&
		                      old->timelines_bytes_max == new->timelines_bytes_max},
		{"access_log", old->has_access_log == new->has_access_log && old->access_log_format == new->access_log_format &&
		                       strcmp(old->access_log_path, new->access_log_path) == 0},
		{"admin", old->has_admin == new->has_admin && same_address(&old->admin, &new->admin)},
		{"agent", old->has_agent == new->has_agent && old->has_agent_group == new->has_agent_group &&
		                  old->agent_group == new->agent_group && strcmp(old->agent_socket, new->agent_socket) == 0},
		{"limits", same_limits(old, new)},
		{"forwarded", strcmp(old->via, new->via) == 0 && old->x_forwarded == new->x_forwarded && old->forwarded == new->forwarded},
		{"upgrade", old->upgrades == new->upgrades && memcmp(old->upgrade, new->upgrade, sizeof(old->upgrade)) == 0},
		{"trace", old->trace == new->trace && old->events_per_cpu == new->events_per_cpu &&
		                  old->trace_interrupts == new->trace_interrupts},
	};
	const struct key kept[] = {
		{"listen", same_address(&old->listen, &new->listen)},
		{"workers", old->workers <= new->workers},
		{"user", old->has_user == new->has_user && old->user == new->user},
	};

	add_keys(report, keys, sizeof(keys) / sizeof(*keys), "takes effect once another process has taken over (tailor proxy -c FILE --take-over): ");
	add_keys(report, kept, sizeof(kept) / sizeof(*kept), "needs a restart to take effect: ");
}

void proxy_settings_of(const struct tailor_config *config, struct tailor_proxy_settings *ret_settings)
{
	*ret_settings = (struct tailor_proxy_settings){
		.mode = (enum tailor_proxy_mode)config->mode,
		.failover_on = config->failover_on,
		.replay_when = (enum tailor_proxy_replay_when)config->replay_when,
		.routes = (unsigned int)config->routes,
		.replay_part = config->replay_part,
		.replay_floor_per_s = config->replay_floor_per_s,
		.switch_min_ns = config->switch_min_ns,
		.predict = config->predict,
		.collect = (enum tailor_proxy_collect)config->collect,
		.connect_timeout_ns = config->connect_timeout_ns,
		.response_timeout_ns = config->response_timeout_ns,
		.idle_timeout_ns = config->idle_timeout_ns,
		.head_timeout_ns = config->head_timeout_ns,
		.body_timeout_ns = config->body_timeout_ns,
		.keep_alive_timeout_ns = config->keep_alive_timeout_ns,
		.queue_timeout_ns = config->queue_timeout_ns,
		.request_timeout_ns = config->request_timeout_ns,
	};
	for (size_t i = 0; i < config->routes; i++) {
		struct tailor_proxy_route *route = &ret_settings->route[i];

		_Static_assert(sizeof(route->path) == sizeof(config->route[i].path), "a path is cut");
		route->methods = config->route[i].methods;
		memcpy(route->path, config->route[i].path, sizeof(route->path));
	}
}

/* Returns whether the proxy has worked by all of that already. */
static bool apply(struct proxy_run *run, const struct tailor_config *new)
{
	const struct tailor_slow_rule slow = {new->slow_threshold_ns, new->baseline_one_in};
	struct tailor_proxy_settings settings;
	struct tailor_config before;

	proxy_settings_of(new, &settings);
	tailor_proxy_apply(run->proxy, &settings);
	tailor_observer_slow(run->observer, &slow);
	if (run->access_log)
		tailor_accesslog_reopen(run->access_log);
	/* Both were cleared before they were read: what pads them is the same. */
	memcpy(&before, &run->config, sizeof(before));
	run->config.mode = new->mode;
	run->config.failover_on = new->failover_on;
	run->config.replay_when = new->replay_when;
	memcpy(run->config.route, new->route, sizeof(run->config.route));
	run->config.routes = new->routes;
	run->config.replay_part = new->replay_part;
	run->config.replay_floor_per_s = new->replay_floor_per_s;
	run->config.switch_min_ns = new->switch_min_ns;
	run->config.predict = new->predict;
	run->config.collect = new->collect;
	run->config.connect_timeout_ns = new->connect_timeout_ns;
	run->config.response_timeout_ns = new->response_timeout_ns;
	run->config.idle_timeout_ns = new->idle_timeout_ns;
	run->config.head_timeout_ns = new->head_timeout_ns;
	run->config.body_timeout_ns = new->body_timeout_ns;
	run->config.keep_alive_timeout_ns = new->keep_alive_timeout_ns;
	run->config.queue_timeout_ns = new->queue_timeout_ns;
	run->config.request_timeout_ns = new->request_timeout_ns;
	run->config.stop_timeout_ns = new->stop_timeout_ns;
	run->config.slow_threshold_ns = new->slow_threshold_ns;
	run->config.baseline_one_in = new->baseline_one_in;
	return memcmp(&before, &run->config, sizeof(before)) == 0;
}

int proxy_reload(struct proxy_run *run, char *report_text, size_t report_size)
{
	struct report report = {.path = run->config_path, .text = report_text, .size = report_size};
	struct tailor_config new;
	int error;

	report_text[0] = '\0';
	pthread_mutex_lock(&run->reloading);
	error = tailor_config_load(run->config_path, &new, add_complaint, &report);
	if (error == 0) {
		add_restarts(&report, &run->config, &new);
		if (apply(run, &new) && report.length == 0)
			add(&report, "nothing has changed: the proxy serves by this configuration already\n");
	}
	pthread_mutex_unlock(&run->reloading);
	return error ? -EINVAL : 0;
}
