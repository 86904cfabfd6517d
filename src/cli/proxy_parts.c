/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <tailor/window.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/listen.h"
#include "cli/privileges.h"
#include "cli/proxy_reload.h"
#include "cli/proxy_run.h"

/* Events a worker's channel holds: about 2,000 requests, which the observer reads every 20 ms. */
#define REQUEST_SLOTS 32768
/* Listeners, rings, BPF programs and maps, the agents' wakers, the store. */
#define OTHER_FILES 200
/* It gives way to whoever serves, and gets a CPU in the end where there is hardly any. */
#define OBSERVER_NICE 10

/* A client takes an open file, and its requests one more at each server they come to: takes as many as are allowed, and says when that is too few. */
static void raise_file_limit(const struct tailor_config *config)
{
	rlim_t wanted = (1 + (rlim_t)config->servers) * (rlim_t)config->connections_max + OTHER_FILES;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
		return;
	proxy_say("limits.connections is %u, which may take %llu open files, but %llu are allowed; raise `ulimit -n` (LimitNOFILE in a "
	          "systemd unit), or lower it",
	          config->connections_max, (unsigned long long)wanted, (unsigned long long)limit.rlim_max);
}

static int open_store(struct proxy_run *run)
{
	const char *path = run->config.timelines_path;
	uint64_t bytes_max = run->config.timelines_bytes_max;
	int lock = proxy_takeover_take(run, TAKEOVER_LOCK, NULL);
	int error = lock < 0 ? -ESTALE : tailor_store_writer_take_over(path, bytes_max, lock, &run->store);

	/* The new configuration may name another store than the old one had. */
	if (error == -ESTALE) {
		if (lock >= 0)
			close(lock);
		error = tailor_store_writer_open(path, bytes_max, &run->store);
	} else if (error && lock >= 0) {
		close(lock);
	}
	switch (error) {
	case 0: return 0;
	case -EBUSY: proxy_say("timelines.path: %s is being written by another tailor; stop it or choose another path", path); break;
	case -EINVAL: proxy_say("timelines.path: %s is not a timeline store; choose an empty or new directory", path); break;
	default:
		proxy_say("timelines.path: cannot open %s: %s; %s", path, strerror(-error),
		          tailor_limits_remedy(error) ?: "check the path, its rights and free space");
	}
	return error;
}

static int open_access_log(struct proxy_run *run)
{
	const char *path = run->config.access_log_path;
	enum tailor_accesslog_format format =
		run->config.access_log_format == TAILOR_CONFIG_LOG_JSON ? TAILOR_ACCESSLOG_JSON : TAILOR_ACCESSLOG_TEXT;
	int error;

	if (!run->config.has_access_log)
		return 0;
	error = tailor_accesslog_open(path, format, &run->access_log);
	if (error == -ENXIO)
		proxy_say("access_log.path: nobody reads the pipe %s; start its reader first", path);
	else if (error)
		proxy_say("access_log.path: cannot open %s: %s; %s", path, strerror(-error),
		          tailor_limits_remedy(error) ?: "check the path, its rights and free space");
	return error;
}

static int open_channels(struct proxy_run *run)
{
	size_t bytes = sizeof(struct tailor_channel_head) + REQUEST_SLOTS * sizeof(struct tailor_event);

	run->channel_bytes = bytes * run->config.workers;
	run->channel_memory = mmap(NULL, run->channel_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	run->channels = calloc(run->config.workers, sizeof(*run->channels));
	if (run->channel_memory == MAP_FAILED || !run->channels) {
		proxy_say("not enough memory for the request channels (%zu MiB); lower `workers`", run->channel_bytes >> 20);
		return -ENOMEM;
	}
	for (unsigned int i = 0; i < run->config.workers; i++) {
		struct tailor_channel_head *head = (void *)((char *)run->channel_memory + i * bytes);

		run->channels[i] = (struct tailor_channel){head, (struct tailor_event *)(void *)(head + 1), REQUEST_SLOTS - 1};
	}
	return 0;
}

/* Kernel events if the config wants and the host gives them; else a tag table that nobody else reads. */
static int open_kernel(struct proxy_run *run)
{
	int error = -ECANCELED;

	snprintf(run->kernel_error, sizeof(run->kernel_error), "switched off by trace.kernel");
	if (run->config.trace != TAILOR_CONFIG_TRACE_OFF)
		error = tailor_kernel_open(run->config.events_per_cpu, &run->kernel, run->kernel_error, sizeof(run->kernel_error));
	if (error == 0) {
		run->tags = tailor_kernel_tags(run->kernel);
		if (run->config.trace_interrupts)
			tailor_kernel_watch_interrupts(run->kernel);
		return 0;
	}
	if (run->config.trace == TAILOR_CONFIG_TRACE_REQUIRED) {
		proxy_say("trace.kernel is `required`: %s", run->kernel_error);
		return error;
	}
	run->own_tags = calloc(TAILOR_TAGS, sizeof(*run->own_tags));
	if (!run->own_tags) {
		proxy_say("not enough memory for the tag table");
		return -ENOMEM;
	}
	run->tags = run->own_tags;
	return 0;
}

static int open_hub(struct proxy_run *run)
{
	const struct tailor_jvm_events events = {proxy_servers_attached, proxy_servers_detached, proxy_servers_refused, run};
	gid_t group = run->config.has_agent_group ? run->config.agent_group : TAILOR_LISTEN_OWNER;
	struct tailor_address address = {.storage.ss_family = AF_UNIX};
	char text[256];
	int error;

	if (!run->config.has_agent)
		return 0;
	/* Shorter than sun_path: the configuration was checked. */
	strcpy(((struct sockaddr_un *)&address.storage)->sun_path, run->config.agent_socket);
	error = tailor_jvm_hub_adopt(proxy_takeover_take(run, TAKEOVER_AGENTS, &address), run->config.agent_socket, group, &events,
	                             &run->hub, text, sizeof(text));
	if (error)
		proxy_say("agent.socket: %s", text);
	return error;
}

static int open_listeners(struct proxy_run *run)
{
	char text[256];
	int error;

	run->bound = run->config.listen;
	if (run->predecessor.fd >= 0)
		error = tailor_proxy_adopt(&run->bound, run->config.workers, run->predecessor.offered.listener,
		                           run->predecessor.offered.listeners, run->listeners, text, sizeof(text));
	else
		error = tailor_proxy_listen(&run->bound, run->config.workers, run->listeners, text, sizeof(text));
	if (error)
		proxy_say("%s", text);
	run->listening = !error;
	return error;
}

static int give_up_rights(struct proxy_run *run)
{
	unsigned int needs = (run->kernel && tailor_kernel_needs_perfmon(run->kernel) ? PRIVILEGES_PERFMON : 0) |
	                     (run->keeps_nice ? PRIVILEGES_NICE : 0);
	char text[256];
	int error = privileges_drop(&run->config, needs, text, sizeof(text));

	if (error)
		proxy_say("%s", text);
	return error;
}

static int start_proxy(struct proxy_run *run)
{
	const struct tailor_config *config = &run->config;
	struct tailor_proxy_options options = {
		.listen = run->bound,
		.listeners = run->listeners,
		.shared = run->predecessor.fd >= 0,
		.accept_later = true,
		.urgent_fifo = run->urgent_fifo,
		.busy_poll_ns = config->busy_poll_ns,
		.servers = (unsigned int)config->servers,
		.workers = config->workers,
		.connections_max = config->connections_max,
		.per_address_max = config->per_address_max,
		.in_flight_max = config->in_flight_max,
		.queue_max = config->queue_max,
		.fields_max = config->fields_max,
		.body_bytes_max = config->body_bytes_max,
		.x_forwarded = config->x_forwarded,
		.forwarded = config->forwarded,
		.upgrades = (unsigned int)config->upgrades,
		.replay_bytes_max = config->replay_bytes,
		.replay_bytes_total = config->replay_bytes_total,
		.replay_attempts_max = TAILOR_ATTEMPTS_MAX,
		.head_bytes_max = config->head_bytes_max,
		.tags = run->tags,
		.late = run->kernel ? tailor_kernel_lates(run->kernel) : NULL,
		.stops = run->kernel ? tailor_kernel_stops(run->kernel) : NULL,
		.stops_fd = run->kernel ? tailor_kernel_stops_fd(run->kernel) : -1,
		.channels = run->channels,
	};
	struct tailor_proxy_settings settings;
	char text[256];
	int error;

	proxy_settings_of(config, &settings);
	tailor_proxy_set(&options, &settings);
	for (size_t i = 0; i < config->servers; i++) {
		memcpy(options.server[i].name, config->server[i].name, sizeof(options.server[i].name));
		options.server[i].address = config->server[i].address;
	}
	_Static_assert(sizeof(options.via) == sizeof(config->via) && sizeof(options.upgrade) == sizeof(config->upgrade),
	               "a name is cut");
	memcpy(options.via, config->via, sizeof(options.via));
	memcpy(options.upgrade, config->upgrade, sizeof(options.upgrade));
	/* Owned by the proxy from here on, whatever comes of it. */
	run->listening = false;
	error = tailor_proxy_start(&options, &run->proxy, text, sizeof(text));
	proxy_priority_restore(run);
	if (error)
		proxy_say("%s", text);
	return error;
}

static const char *not_moved_name(unsigned int why_not)
{
	return tailor_not_moved_name((enum tailor_not_moved)why_not);
}

static int start_observer(struct proxy_run *run)
{
	struct tailor_observer_options options = {
		.request_channels = run->channels,
		.workers = run->config.workers,
		.connections_max = run->config.connections_max,
		.servers = run->config.servers,
		.slow = {run->config.slow_threshold_ns, run->config.baseline_one_in},
		.not_moved_name = not_moved_name,
		.store = run->store,
		.access_log = run->access_log,
		.nice = proxy_priority_nice(run, OBSERVER_NICE),
	};
	int error;

	if (run->kernel) {
		options.cpus = tailor_kernel_channels(run->kernel, &options.kernel_channels);
		options.missing = tailor_kernel_missing(run->kernel);
		options.kernel = run->kernel;
	} else {
		options.missing = TAILOR_MISSING_KERNEL;
	}
	if (run->config.servers < 2)
		options.missing |= TAILOR_MISSING_BACKUP;
	for (size_t i = 0; i < run->config.servers; i++) {
		options.server[i].name = run->config.server[i].name;
		options.server[i].port = tailor_address_port(&run->config.server[i].address);
	}
	error = tailor_observer_start(&options, &run->observer);
	if (error)
		proxy_say("cannot start the observer: %s; %s", strerror(-error),
		          tailor_limits_remedy(error) ?: "give this process more memory, or lower `workers` or limits.connections");
	return error;
}

static int open_admin(struct proxy_run *run)
{
	char text[256];
	int error, fd;

	if (!run->config.has_admin)
		return 0;
	fd = proxy_takeover_take(run, TAKEOVER_ADMIN, &run->config.admin);
	if (fd >= 0)
		error = tailor_admin_adopt(&run->config.admin, fd, &run->admin, text, sizeof(text));
	else
		error = tailor_admin_open(&run->config.admin, &run->admin, text, sizeof(text));
	if (error)
		proxy_say("%s", text);
	return error;
}

static int start_admin(struct proxy_run *run)
{
	char text[256];
	int error;

	if (!run->admin)
		return 0;
	error = tailor_admin_start(run->admin, proxy_status_answer, proxy_status_refused, run, text, sizeof(text));
	if (error)
		proxy_say("%s", text);
	return error;
}

static int open_all(struct proxy_run *run)
{
	int error;

	if ((error = open_store(run)) || (error = open_access_log(run)) || (error = open_channels(run)) || (error = open_kernel(run)) ||
	    (error = open_hub(run)) || (error = open_admin(run)) || (error = proxy_successor_open(run)))
		return error;
	return open_listeners(run);
}

/*
 * First what needs root, then without it the threads. Whoever connects to the listening port before the workers accept waits
 * in its queue: so that the first requests are traced, too, and so that a process that takes over has answered for nobody before
 * nothing can go wrong any more.
 */
int proxy_start(struct proxy_run *run)
{
	int error;

	raise_file_limit(&run->config);
	if (run->predecessor.path && (error = proxy_takeover_begin(run)))
		return error;
	if ((error = open_all(run)) || (error = proxy_priority_raise(run)) || (error = give_up_rights(run)) || (error = start_proxy(run)) ||
	    (error = proxy_takeover_claim(run)) || (error = start_observer(run)) || (error = start_admin(run)) ||
	    (error = proxy_takeover_check(run)))
		return error;
	if (run->kernel)
		tailor_kernel_trace(run->kernel, getpid(), TAILOR_TRACED_PROXY);
	proxy_servers_refresh(run);
	tailor_proxy_accept(run->proxy);
	proxy_takeover_finish(run);
	return 0;
}

void proxy_stop(struct proxy_run *run)
{
	tailor_admin_stop(run->admin);
	if (run->proxy)
		tailor_proxy_stop(run->proxy, tailor_clock_ns());
	if (run->observer)
		tailor_observer_stop(run->observer);
	for (unsigned int i = 0; run->listening && i < run->config.workers; i++)
		close(run->listeners[i]);
	run->proxy = NULL;
	run->observer = NULL;
	proxy_servers_release(run);
	if (run->hub)
		tailor_jvm_hub_close(run->hub);
	proxy_successor_close(run);
	if (run->kernel)
		tailor_kernel_close(run->kernel);
	tailor_store_writer_close(run->store);
	tailor_accesslog_close(run->access_log);
	if (run->channel_memory && run->channel_memory != MAP_FAILED)
		munmap(run->channel_memory, run->channel_bytes);
	free(run->channels);
	free(run->own_tags);
	proxy_takeover_give_up(run);
}
