/* SPDX-License-Identifier: Apache-2.0 */
#include "config/config.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/printable.h"
#include "base/units.h"
#include "config/complaint.h"
#include "config/failover.h"
#include "config/file.h"
#include "config/lines.h"
#include "config/read.h"
#include "config/shape.h"
#include "config/value.h"
#include "http1/http1.h"

static unsigned int usable_cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned int)CPU_COUNT(&set) : 1;
}

static void take_workers(struct validation *validation, const char *text, unsigned int *value)
{
	uint64_t number = usable_cpus();

	if (!text)
		return;
	if (strcmp(text, "auto") == 0)
		*value = number < TAILOR_CONFIG_WORKERS_MAX ? (unsigned int)number : TAILOR_CONFIG_WORKERS_MAX;
	else if (tailor_parse_number(text, 0, UINT32_MAX, &number) != 0)
		complain(validation, "workers", "workers: \"%s\" is not a whole number from 1 to %d, nor `auto`", text,
		         TAILOR_CONFIG_WORKERS_MAX);
	else if (number < 1 || number > TAILOR_CONFIG_WORKERS_MAX)
		complain(validation, "workers", "workers: %llu is out of range; from 1 to %d, or `auto`", (unsigned long long)number,
		         TAILOR_CONFIG_WORKERS_MAX);
	else
		*value = (unsigned int)number;
}

/* A group of this host by name, or its number. */
static void take_group(struct validation *validation, const char *path, const char *text, struct tailor_config *config)
{
	struct group entry, *found = NULL;
	char buffer[16384];
	unsigned long number;
	char *end;

	if (!text)
		return;
	if (getgrnam_r(text, &entry, buffer, sizeof(buffer), &found) == 0 && found) {
		config->agent_group = found->gr_gid;
	} else {
		errno = 0;
		number = strtoul(text, &end, 10);
		if (!isdigit((unsigned char)text[0]) || *end || errno || number >= (gid_t)-1) {
			complain(validation, path, "%s: this host has no group \"%s\"; name one that the servers' user is in (`id -Gn USER`)",
			         path, text);
			return;
		}
		config->agent_group = (gid_t)number;
	}
	config->has_agent_group = true;
}

/* A user of this host by name; its group is its primary one. */
static void take_user(struct validation *validation, const char *text, struct tailor_config *config)
{
	struct passwd entry, *found = NULL;
	char buffer[16384];

	if (!text)
		return;
	if (getpwnam_r(text, &entry, buffer, sizeof(buffer), &found) != 0 || !found) {
		complain(validation, "user", "user: this host has no user \"%s\"; make one (useradd --system %s), or leave it out", text, text);
		return;
	}
	config->has_user = true;
	config->user = found->pw_uid;
	config->user_group = found->pw_gid;
}

static void take_nice(struct validation *validation, const char *text, int *value)
{
	uint64_t number;
	bool negative = text[0] == '-';

	if (tailor_parse_number(text + negative, 0, negative ? 20 : 19, &number) != 0)
		complain(validation, "priority.nice", "priority.nice: \"%s\" is not a whole number from -20 to 19", text);
	else
		*value = negative ? -(int)number : (int)number;
}

static void take_priority(struct validation *validation, const struct file_priority *priority, struct tailor_config *config)
{
	/* Longer, a worker would use all of its CPU for next to nothing. */
	static const struct duration_bounds busy_poll = {TAILOR_NS_PER_US, 100 * TAILOR_NS_PER_MS, "1us", "100ms", true};

	if (!priority)
		return;
	/* Spinning alone says nothing about the scheduler. */
	config->priority_given = priority->nice || priority->fifo;
	if (priority->nice && priority->fifo)
		complain(validation, "priority.fifo", "priority: has both `nice` and `fifo`; a thread has one of them");
	if (priority->nice)
		take_nice(validation, priority->nice, &config->nice);
	take_number(validation, "priority.fifo", priority->fifo, 1, 99, &config->fifo);
	take_duration(validation, "priority.busy_poll", priority->busy_poll, &busy_poll, &config->busy_poll_ns);
}

/* Whether a connection to `address` comes to who listens on `listener`. */
static bool reaches(const struct tailor_address *address, const struct tailor_address *listener)
{
	static const uint8_t any4[16] = {[10] = 0xff, [11] = 0xff}, any6[16];
	const size_t prefix = 12; /* bytes of an IPv6 address before the IPv4 one that it maps */
	uint8_t to[16], own[16];
	bool to_any;

	if (!address->length || !listener->length || tailor_address_port(address) == 0 ||
	    tailor_address_port(address) != tailor_address_port(listener))
		return false;
	tailor_address_ip(address, to);
	tailor_address_ip(listener, own);
	/* Linux takes a connection to no address in particular for one to 127.0.0.1 or ::1. */
	to_any = memcmp(to, any4, sizeof(to)) == 0 || memcmp(to, any6, sizeof(to)) == 0;
	if (memcmp(to, any4, sizeof(to)) == 0)
		to[12] = 127;
	if (to_any)
		to[15] = 1;
	if (memcmp(to, own, sizeof(to)) == 0)
		return true;
	if (!to_any && !tailor_address_is_local(address))
		return false;
	/* Who listens on no IPv6 address in particular gets IPv4's connections, too; not the other way round. */
	return memcmp(own, any6, sizeof(own)) == 0 || (memcmp(own, any4, sizeof(own)) == 0 && memcmp(to, any4, prefix) == 0);
}

static bool is_name(const char *text)
{
	if (!text[0] || strlen(text) >= TAILOR_CONFIG_NAME_BYTES)
		return false;
	for (; *text; text++) {
		if (!isalnum((unsigned char)*text) && !strchr("_.-", *text))
			return false;
	}
	return true;
}

static void take_servers(struct validation *validation, const struct file_config *file, struct tailor_config *config)
{
	char path[64];

	config->servers = file->servers_count;
	if (file->mode)
		config->mode = (enum tailor_config_mode)*file->mode;
	for (unsigned int i = 0; i < file->servers_count; i++) {
		struct tailor_config_server *server = &config->server[i];

		snprintf(path, sizeof(path), "servers[%u].name", i);
		if (is_name(file->servers[i].name))
			memcpy(server->name, file->servers[i].name, strlen(file->servers[i].name) + 1);
		else
			complain(validation, path, "%s: \"%s\" is no name; use 1 to %d letters, digits, '_', '.' or '-'", path,
			         file->servers[i].name, TAILOR_CONFIG_NAME_BYTES - 1);
		snprintf(path, sizeof(path), "servers[%u].address", i);
		take_address(validation, path, file->servers[i].address, false, false, &server->address);
		if (reaches(&server->address, &config->listen))
			complain(validation, path, "%s: %s is the proxy itself, which listens on %s; name the server's own port", path,
			         file->servers[i].address, file->listen);
		for (unsigned int j = 0; j < i; j++) {
			if (server->name[0] && strcmp(file->servers[j].name, file->servers[i].name) == 0)
				complain(validation, path, "servers: there are two named \"%s\"; give each its own name", server->name);
			if (server->address.length && server->address.length == config->server[j].address.length &&
			    memcmp(&server->address.storage, &config->server[j].address.storage, server->address.length) == 0)
				complain(validation, path, "servers: \"%s\" and \"%s\" have the same address %s; a backup must be another server",
				         file->servers[j].name, file->servers[i].name, file->servers[i].address);
		}
	}
}

static void take_admin(struct validation *validation, const struct file_config *file, struct tailor_config *config)
{
	const char *text = file->admin->listen;

	config->has_admin = true;
	take_address(validation, "admin.listen", text, true, true, &config->admin);
	if (config->admin.length && !tailor_address_is_local(&config->admin))
		complain(validation, "admin.listen", "admin.listen: \"%s\" is reachable from outside; use unix:PATH or a loopback address", text);
	if (reaches(&config->admin, &config->listen))
		complain(validation, "admin.listen", "admin.listen: \"%s\" is where the clients are served; choose another port or unix:PATH", text);
	/* Clients would be served there, too. */
	for (size_t i = 0; i < config->servers; i++) {
		if (reaches(&config->server[i].address, &config->admin))
			complain(validation, "admin.listen", "admin.listen: \"%s\" is the address of server \"%s\"; choose another port or unix:PATH",
			         text, config->server[i].name);
	}
	if (file->agent && strncmp(text, "unix:", 5) == 0 && strcmp(text + 5, file->agent->socket) == 0)
		complain(validation, "agent.socket", "agent.socket: \"%s\" is the socket of admin.listen; choose another path", file->agent->socket);
}

static void take_optional_sections(struct validation *validation, const struct file_config *file, struct tailor_config *config)
{
	if (file->failover)
		take_failover(validation, file->failover, config);
	if (file->timelines) {
		take_path(validation, "timelines.path", file->timelines->path, sizeof(config->timelines_path), config->timelines_path);
		take_size(validation, "timelines.max_size", file->timelines->max_size, 1 << 20, UINT64_C(256) << 30,
		          &config->timelines_bytes_max);
	}
	if (file->access_log) {
		config->has_access_log = true;
		take_path(validation, "access_log.path", file->access_log->path, sizeof(config->access_log_path), config->access_log_path);
		if (file->access_log->format)
			config->access_log_format = (enum tailor_config_log_format)*file->access_log->format;
	}
	if (file->admin)
		take_admin(validation, file, config);
	if (file->agent) {
		config->has_agent = true;
		take_path(validation, "agent.socket", file->agent->socket, sizeof(((struct sockaddr_un *)0)->sun_path),
		          config->agent_socket);
		take_group(validation, "agent.group", file->agent->group, config);
	}
}

/* Whether it is a token (RFC 9110, 5.6.2), of these characters too, shorter than max. */
static bool is_token(const char *text, const char *too, size_t max)
{
	if (!text[0] || strlen(text) >= max)
		return false;
	for (; *text; text++) {
		if (!isalnum((unsigned char)*text) && !strchr("!#$%&'*+-.^_`|~", *text) && !strchr(too, *text))
			return false;
	}
	return true;
}

static void take_timeouts(struct validation *validation, const struct file_timeouts *timeouts, struct tailor_config *config)
{
	static const struct duration_bounds bounds = {TAILOR_NS_PER_MS, 24 * 3600 * TAILOR_NS_PER_S, "1ms", "24h", false};
	static const struct duration_bounds or_none = {TAILOR_NS_PER_MS, 24 * 3600 * TAILOR_NS_PER_S, "1ms", "24h", true};
	const struct {
		const char *path, *text;
		const struct duration_bounds *bounds;
		uint64_t *value;
	} keys[] = {
		{"timeouts.head", timeouts->head, &bounds, &config->head_timeout_ns},
		{"timeouts.body", timeouts->body, &bounds, &config->body_timeout_ns},
		{"timeouts.keep_alive", timeouts->keep_alive, &bounds, &config->keep_alive_timeout_ns},
		{"timeouts.connect", timeouts->connect, &bounds, &config->connect_timeout_ns},
		{"timeouts.response", timeouts->response, &bounds, &config->response_timeout_ns},
		{"timeouts.request", timeouts->request, &or_none, &config->request_timeout_ns},
		{"timeouts.queue", timeouts->queue, &bounds, &config->queue_timeout_ns},
		{"timeouts.stop", timeouts->stop, &bounds, &config->stop_timeout_ns},
	};

	take_duration(validation, "timeouts.idle", timeouts->idle, &bounds, &config->idle_timeout_ns);
	config->head_timeout_ns = config->body_timeout_ns = config->keep_alive_timeout_ns = config->idle_timeout_ns;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		take_duration(validation, keys[i].path, keys[i].text, keys[i].bounds, keys[i].value);
}

static void take_limits(struct validation *validation, const struct file_limits *limits, struct tailor_config *config)
{
	uint64_t head_bytes = config->head_bytes_max, replay_bytes = config->replay_bytes;
	char total[32], buffer[32];

	take_number(validation, "limits.connections", limits->connections, 1, 1000000, &config->connections_max);
	take_number(validation, "limits.per_address", limits->per_address, 0, 1 << 20, &config->per_address_max);
	take_number(validation, "limits.in_flight", limits->in_flight, 0, 1 << 20, &config->in_flight_max);
	take_number(validation, "limits.queue", limits->queue, 0, 1 << 20, &config->queue_max);
	take_number(validation, "limits.fields", limits->fields, 1, HTTP1_FIELDS_MAX, &config->fields_max);
	take_size(validation, "limits.head_size", limits->head_size, 1024, 64 << 10, &head_bytes);
	take_size(validation, "limits.body_size", limits->body_size, 0, UINT64_C(64) << 30, &config->body_bytes_max);
	take_size(validation, "limits.replay_buffer", limits->replay_buffer, 0, 16 << 20, &replay_bytes);
	take_size(validation, "limits.replay_total", limits->replay_total, 0, UINT64_C(64) << 30, &config->replay_bytes_total);
	config->head_bytes_max = head_bytes;
	config->replay_bytes = replay_bytes;
	if (config->queue_max > 0 && config->in_flight_max == 0 && !complained_about(validation, "limits.in_flight"))
		complain(validation, "limits.queue", "limits.queue: nothing waits as long as limits.in_flight is 0; set that, or leave out the queue");
	if (config->replay_bytes_total < config->replay_bytes && !complained_about(validation, "limits.replay_buffer"))
		complain(validation, "limits.replay_total", "limits.replay_total: %s is less than one request's replay_buffer of %s; raise it",
		         tailor_format_size(total, sizeof(total), config->replay_bytes_total),
		         tailor_format_size(buffer, sizeof(buffer), config->replay_bytes));
}

static void take_forwarded(struct validation *validation, const struct file_forwarded *forwarded, struct tailor_config *config)
{
	if (forwarded->via) {
		/* RFC 9110, 7.6.3: a pseudonym, or a host with or without its port. */
		if (is_token(forwarded->via, ":[]", sizeof(config->via)))
			strcpy(config->via, forwarded->via);
		else
			complain(validation, "forwarded.via", "forwarded.via: \"%s\" is no name for this proxy; use 1 to %d letters, digits, or characters like '-' and '.'",
			         forwarded->via, TAILOR_CONFIG_VIA_BYTES - 1);
	}
	take_flag(validation, "forwarded.x_forwarded", forwarded->x_forwarded, &config->x_forwarded);
	take_flag(validation, "forwarded.forwarded", forwarded->forwarded, &config->forwarded);
}

static bool is_among(const struct tailor_config *config, const char *protocol)
{
	for (size_t i = 0; i < config->upgrades; i++) {
		if (strcasecmp(config->upgrade[i], protocol) == 0)
			return true;
	}
	return false;
}

/* Protocols that a client may change to through this proxy. */
static void take_upgrades(struct validation *validation, const struct file_config *file, struct tailor_config *config)
{
	char path[32];

	for (unsigned int i = 0; i < file->upgrade_count; i++) {
		const char *name = file->upgrade[i];

		snprintf(path, sizeof(path), "upgrade[%u]", i);
		/* Requests inside it would pass unseen and unjudged. */
		if (strcasecmp(name, "h2c") == 0 || strcasecmp(name, "h2") == 0 || strncasecmp(name, "http/", 5) == 0)
			complain(validation, path, "upgrade: \"%s\" is HTTP, which this proxy would not understand inside a tunnel; remove it", name);
		else if (!is_token(name, "/", TAILOR_CONFIG_UPGRADE_BYTES))
			complain(validation, path, "upgrade: \"%s\" is no protocol; name one like websocket", name);
		else if (is_among(config, name))
			complain(validation, path, "upgrade: \"%s\" stands twice; once is enough", name);
		else
			strcpy(config->upgrade[config->upgrades++], name);
	}
}

static void take_numbers(struct validation *validation, const struct file_config *file, struct tailor_config *config)
{
	static const struct duration_bounds threshold = {TAILOR_NS_PER_US, 3600 * TAILOR_NS_PER_S, "1us", "1h", false};
	uint32_t events_per_cpu = (uint32_t)config->events_per_cpu;

	take_workers(validation, file->workers, &config->workers);
	if (file->slow) {
		take_duration(validation, "slow.threshold", file->slow->threshold, &threshold, &config->slow_threshold_ns);
		take_number(validation, "slow.baseline_one_in", file->slow->baseline_one_in, 0, UINT32_MAX, &config->baseline_one_in);
	}
	if (file->trace) {
		if (file->trace->kernel)
			config->trace = (enum tailor_config_trace)*file->trace->kernel;
		take_number(validation, "trace.events_per_cpu", file->trace->events_per_cpu, 1024, 1 << 22, &events_per_cpu);
		if (events_per_cpu & (events_per_cpu - 1))
			complain(validation, "trace.events_per_cpu", "trace.events_per_cpu: %u is not a power of two", events_per_cpu);
		take_flag(validation, "trace.interrupts", file->trace->interrupts, &config->trace_interrupts);
	}
	config->events_per_cpu = events_per_cpu;
}

static void set_defaults(struct tailor_config *config)
{
	memset(config, 0, sizeof(*config));
	config->workers = 1;
	config->nice = -10;
	config->slow_threshold_ns = 5 * TAILOR_NS_PER_MS;
	config->baseline_one_in = 1000;
	config->failover_on = 1u << TAILOR_STOP_GC | 1u << TAILOR_STOP_SAFEPOINT | 1u << TAILOR_STOP_STALL | 1u << TAILOR_STOP_SIGNAL |
	                      1u << TAILOR_STOP_GONE;
	config->route[0].methods = 1u << HTTP1_GET | 1u << HTTP1_HEAD;
	config->routes = 1;
	config->replay_part = 0.1;
	config->replay_floor_per_s = 10;
	config->switch_min_ns = 100 * TAILOR_NS_PER_MS;
	strcpy(config->timelines_path, "./timelines");
	config->timelines_bytes_max = UINT64_C(256) << 20;
	config->connect_timeout_ns = TAILOR_NS_PER_S;
	config->response_timeout_ns = 30 * TAILOR_NS_PER_S;
	config->idle_timeout_ns = 60 * TAILOR_NS_PER_S;
	config->head_timeout_ns = config->body_timeout_ns = config->keep_alive_timeout_ns = config->idle_timeout_ns;
	config->queue_timeout_ns = TAILOR_NS_PER_S;
	config->stop_timeout_ns = 30 * TAILOR_NS_PER_S;
	config->connections_max = 1024;
	config->fields_max = 100;
	config->head_bytes_max = 16 << 10;
	config->replay_bytes = 64 << 10;
	config->replay_bytes_total = UINT64_C(64) << 20;
	config->trace = TAILOR_CONFIG_TRACE_AUTO;
	config->events_per_cpu = 65536;
}

static void validate(struct validation *validation, struct config_lines *lines, char *text, size_t length, struct tailor_config *config)
{
	struct file_config *file = NULL;

	if (shape_read(validation, lines, text, length, &file) != 0)
		return;
	take_address(validation, "listen", file->listen, false, true, &config->listen);
	take_user(validation, file->user, config);
	take_priority(validation, file->priority, config);
	take_servers(validation, file, config);
	take_numbers(validation, file, config);
	take_optional_sections(validation, file, config);
	if (file->timeouts)
		take_timeouts(validation, file->timeouts, config);
	if (file->limits)
		take_limits(validation, file->limits, config);
	if (file->forwarded)
		take_forwarded(validation, file->forwarded, config);
	take_upgrades(validation, file, config);
	file_config_free(file);
}

int tailor_config_load(const char *path, struct tailor_config *ret_config, tailor_config_complaint *complaint, void *context)
{
	struct validation validation = {.complain = complaint, .context = context};
	struct config_lines *lines = NULL;
	cleanup_free char *text = NULL;
	char problem[256];
	unsigned int line = 0;
	size_t length = 0;
	int error = config_read(path, &text, &length);

	if (error) {
		if (error == -EFBIG)
			snprintf(problem, sizeof(problem), "is larger than 1 MiB; is it the right file?");
		else if (error == -ETIMEDOUT)
			snprintf(problem, sizeof(problem), "is a pipe whose end did not come within 2 s; name a file");
		else
			snprintf(problem, sizeof(problem), "cannot be read: %s", strerror(-error));
		complaint(context, 0, problem);
		return error;
	}
	set_defaults(ret_config);
	error = config_lines_open(text, length, &lines, &line, problem, sizeof(problem));
	if (error) {
		complaint(context, line, error == -ENOMEM ? "not enough memory" : tailor_printable_line(problem));
		return error;
	}
	validation.lines = lines;
	if (config_lines_empty(lines)) {
		complaint(context, 1, "has no settings; the least is `listen: ADDRESS` and `servers: [{name: NAME, address: ADDRESS}]`");
		config_lines_close(lines);
		return -EINVAL;
	}
	validate(&validation, lines, text, length, ret_config);
	complaints_tell(&validation);
	config_lines_close(lines);
	return validation.complaints ? -EINVAL : 0;
}
