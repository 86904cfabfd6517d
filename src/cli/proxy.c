/* SPDX-License-Identifier: Apache-2.0 */
#include <argp.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <tailor/window.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/listen.h"
#include "cli/commands.h"
#include "cli/config_file.h"
#include "cli/privileges.h"
#include "cli/proxy_reload.h"
#include "cli/proxy_run.h"
#include "collect/process.h"

/* Events a worker's channel holds: about 2,000 requests, which the observer reads every 20 ms. */
#define REQUEST_SLOTS 32768
#define REFRESH_MS 1000
#define REFRESH_SOON_MS 50
/* Listeners, rings, BPF programs and maps, the agents' wakers, the store. */
#define OTHER_FILES 200
#define STORE_SAID_AGAIN_NS (60 * TAILOR_NS_PER_S)
#define STOP_NS (5 * TAILOR_NS_PER_S)

void proxy_say(const char *format, ...)
{
	char line[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	fprintf(stderr, "tailor: %s\n", line);
}

static int open_store(struct proxy_run *run)
{
	const char *path = run->config.timelines_path;
	int error = tailor_store_writer_open(path, run->config.timelines_bytes_max, &run->store);

	switch (error) {
	case 0: return 0;
	case -EBUSY: proxy_say("timelines.path: %s is being written by another tailor; stop it or choose another path", path); break;
	case -EINVAL: proxy_say("timelines.path: %s is not a timeline store; choose an empty or new directory", path); break;
	default: proxy_say("timelines.path: cannot open %s: %s; check the path, its rights and free space", path, strerror(-error));
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
		proxy_say("access_log.path: cannot open %s: %s; check the path, its rights and free space", path, strerror(-error));
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
	char text[256];
	int error;

	if (!run->config.has_agent)
		return 0;
	error = tailor_jvm_hub_open(run->config.agent_socket, run->config.has_agent_group ? run->config.agent_group : TAILOR_LISTEN_OWNER,
	                            &events, &run->hub, text, sizeof(text));
	if (error)
		proxy_say("agent.socket: %s", text);
	return error;
}

static int open_listeners(struct proxy_run *run)
{
	char text[256];
	int error;

	run->bound = run->config.listen;
	error = tailor_proxy_listen(&run->bound, run->config.workers, run->listeners, text, sizeof(text));
	if (error)
		proxy_say("%s", text);
	run->listening = !error;
	return error;
}

static int give_up_rights(struct proxy_run *run)
{
	char text[256];
	int error = privileges_drop(&run->config, text, sizeof(text));

	if (error)
		proxy_say("%s", text);
	return error;
}

/*
 * Threads inherit how they are scheduled from the one that starts them: this one takes the workers' priority while it has
 * the right to, and goes back when they run.
 */
static int raise_priority(struct proxy_run *run)
{
	const struct tailor_config *config = &run->config;
	const struct sched_param fifo = {.sched_priority = (int)config->fifo};
	int ret = 0;

	run->own_nice = getpriority(PRIO_PROCESS, 0);
	if (config->fifo)
		ret = sched_setscheduler(0, SCHED_FIFO, &fifo);
	else if (config->priority_given || config->nice < run->own_nice)
		ret = setpriority(PRIO_PROCESS, 0, config->nice);
	if (ret == 0 || !config->priority_given)
		return 0;
	proxy_say("priority.%s: %s; start it as root or with CAP_SYS_NICE, or leave the key out", config->fifo ? "fifo" : "nice",
	          strerror(errno));
	return -errno;
}

static void restore_priority(const struct proxy_run *run)
{
	const struct sched_param normal = {0};

	if (run->config.fifo)
		(void)sched_setscheduler(0, SCHED_OTHER, &normal);
	(void)setpriority(PRIO_PROCESS, 0, run->own_nice);
}

static int start_proxy(struct proxy_run *run)
{
	const struct tailor_config *config = &run->config;
	struct tailor_proxy_options options = {
		.listen = run->bound,
		.listeners = run->listeners,
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
		.failover_on_gc = config->failover_on_gc,
		.replay_methods = config->replay_methods,
		.replay_bytes_max = config->replay_bytes,
		.replay_bytes_total = config->replay_bytes_total,
		.replay_attempts_max = TAILOR_ATTEMPTS_MAX,
		.head_bytes_max = config->head_bytes_max,
		.connect_timeout_ns = config->connect_timeout_ns,
		.response_timeout_ns = config->response_timeout_ns,
		.idle_timeout_ns = config->idle_timeout_ns,
		.head_timeout_ns = config->head_timeout_ns,
		.body_timeout_ns = config->body_timeout_ns,
		.keep_alive_timeout_ns = config->keep_alive_timeout_ns,
		.queue_timeout_ns = config->queue_timeout_ns,
		.request_timeout_ns = config->request_timeout_ns,
		.tags = run->tags,
		.channels = run->channels,
	};
	char text[256];
	int error;

	for (size_t i = 0; i < config->servers; i++) {
		memcpy(options.server[i].name, config->server[i].name, sizeof(options.server[i].name));
		options.server[i].address = config->server[i].address;
	}
	_Static_assert(sizeof(options.via) == sizeof(config->via), "a name is cut");
	memcpy(options.via, config->via, sizeof(options.via));
	_Static_assert(sizeof(options.upgrade) == sizeof(config->upgrade), "a protocol is cut");
	memcpy(options.upgrade, config->upgrade, sizeof(options.upgrade));
	options.upgrades = (unsigned int)config->upgrades;
	/* Owned by the proxy from here on, whatever comes of it. */
	run->listening = false;
	error = tailor_proxy_start(&options, &run->proxy, text, sizeof(text));
	restore_priority(run);
	if (error)
		proxy_say("%s", text);
	return error;
}

static int start_observer(struct proxy_run *run)
{
	struct tailor_observer_options options = {
		.request_channels = run->channels,
		.workers = run->config.workers,
		.connections_max = run->config.connections_max,
		.servers = run->config.servers,
		.slow = {run->config.slow_threshold_ns, run->config.baseline_one_in},
		.store = run->store,
		.access_log = run->access_log,
	};
	int error;

	if (run->kernel) {
		options.cpus = tailor_kernel_channels(run->kernel, &options.kernel_channels);
		options.missing = tailor_kernel_missing(run->kernel);
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
		proxy_say("cannot start the observer: %s", strerror(-error));
	return error;
}

static int open_admin(struct proxy_run *run)
{
	char text[256];
	int error;

	if (!run->config.has_admin)
		return 0;
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
	error = tailor_admin_start(run->admin, proxy_status_answer, run, text, sizeof(text));
	if (error)
		proxy_say("%s", text);
	return error;
}

/*
 * First what needs root, then without it the threads. Whoever connects to the listening port before the workers run waits
 * in its queue.
 */
static int start(struct proxy_run *run)
{
	int error;

	if ((error = open_store(run)) || (error = open_access_log(run)) || (error = open_channels(run)) || (error = open_kernel(run)) || (error = open_hub(run)) ||
	    (error = open_admin(run)) || (error = open_listeners(run)) || (error = raise_priority(run)) ||
	    (error = give_up_rights(run)) || (error = start_proxy(run)) || (error = start_observer(run)) || (error = start_admin(run)))
		return error;
	if (run->kernel)
		tailor_kernel_trace(run->kernel, getpid(), TAILOR_TRACED_PROXY);
	return 0;
}

static void stop(struct proxy_run *run)
{
	tailor_admin_stop(run->admin);
	if (run->proxy)
		tailor_proxy_stop(run->proxy, tailor_clock_ns() + STOP_NS);
	if (run->observer)
		tailor_observer_stop(run->observer);
	for (unsigned int i = 0; run->listening && i < run->config.workers; i++)
		close(run->listeners[i]);
	run->proxy = NULL;
	run->observer = NULL;
	proxy_servers_release(run);
	if (run->hub)
		tailor_jvm_hub_close(run->hub);
	if (run->kernel)
		tailor_kernel_close(run->kernel);
	tailor_store_writer_close(run->store);
	tailor_accesslog_close(run->access_log);
	if (run->channel_memory && run->channel_memory != MAP_FAILED)
		munmap(run->channel_memory, run->channel_bytes);
	free(run->channels);
	free(run->own_tags);
}

/* Says once, at the start, what the timelines will lack and how to get it. */
static void say_what_is_missing(const struct proxy_run *run)
{
	const struct tailor_probe *probes;
	size_t count;

	if (!run->kernel)
		proxy_say("without kernel events: %s", run->kernel_error);
	count = run->kernel ? tailor_kernel_probes(run->kernel, &probes) : 0;
	for (size_t i = 0; i < count; i++) {
		if (!probes[i].attached)
			proxy_say("without probe %s: %s", probes[i].name, probes[i].reason);
	}
	if (!run->hub)
		proxy_say("without JVM events and failover on GC: configure agent.socket and start the JVM with the agent");
	if (run->config.servers < 2)
		proxy_say("without a backup: requests cannot be moved during a pause; configure a second server");
}

/* A client takes an open file, and one more at the server: takes as many as are allowed, and says when that is too few. */
static void raise_file_limit(const struct tailor_config *config)
{
	rlim_t wanted = 2 * (rlim_t)config->connections_max + OTHER_FILES;
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

static int signals_open(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGUSR1);
	signal(SIGPIPE, SIG_IGN);
	/* Before any thread starts, so that all inherit it. */
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	return signalfd(-1, &signals, SFD_CLOEXEC);
}

/* A line of the report each. */
static void say_reload(struct proxy_run *run)
{
	char report[4096], *rest = report, *line;
	int error = proxy_reload(run, report, sizeof(report));

	while ((line = strsep(&rest, "\n")) && *line)
		proxy_say("%s", line);
	proxy_say(error ? "the configuration is not valid: nothing has changed" : "the configuration has been read again");
}

/* 1 when it is time to stop. */
static int take_signal(struct proxy_run *run, int fd)
{
	struct signalfd_siginfo information;

	if (read(fd, &information, sizeof(information)) != (ssize_t)sizeof(information))
		return 0;
	if (information.ssi_signo == SIGHUP) {
		say_reload(run);
		return 0;
	}
	if (information.ssi_signo == SIGUSR1) {
		if (run->access_log)
			tailor_accesslog_reopen(run->access_log);
		return 0;
	}
	return 1;
}

/* Says when the access log begins to be lost, and when it is written again. */
static void say_log_error(struct proxy_run *run, const struct tailor_observer_status *status)
{
	const char *path = run->config.access_log_path;

	if (status->access_log_error == run->log_error_said ||
	    (run->log_error_said_ns && tailor_clock_ns() - run->log_error_said_ns < STORE_SAID_AGAIN_NS))
		return;
	run->log_error_said = status->access_log_error;
	run->log_error_said_ns = tailor_clock_ns();
	if (status->access_log_error)
		proxy_say("access_log.path: cannot write to %s: %s; lines wait, and are lost when there are too many", path,
		          strerror(-status->access_log_error));
	else
		proxy_say("access_log.path: %s is written again; %llu lines were lost so far", path,
		          (unsigned long long)status->access_log_lost);
}

/* Says when timelines begin to be lost, and when they are kept again. */
static void say_store_error(struct proxy_run *run)
{
	const char *path = run->config.timelines_path;
	struct tailor_observer_status status;

	tailor_observer_status(run->observer, &status);
	say_log_error(run, &status);
	/* On an almost full disk some still fit. */
	if (status.store_error == run->store_error_said ||
	    (run->store_error_said_ns && tailor_clock_ns() - run->store_error_said_ns < STORE_SAID_AGAIN_NS))
		return;
	run->store_error_said = status.store_error;
	run->store_error_said_ns = tailor_clock_ns();
	if (!status.store_error)
		proxy_say("timelines.path: timelines are kept again in %s", path);
	else if (status.store_error == -ENOENT)
		proxy_say("timelines.path: %s was removed, so timelines are lost; restart to make it anew", path);
	else
		proxy_say("timelines.path: cannot write to %s: %s; timelines are lost until there is space and it is writable", path,
		          strerror(-status.store_error));
}

static void serve(struct proxy_run *run, int signals)
{
	struct pollfd fds[2 + TAILOR_CONFIG_SERVERS_MAX] = {{.fd = signals, .events = POLLIN},
	                                                    {.fd = run->hub ? tailor_jvm_hub_fd(run->hub) : -1, .events = POLLIN}};
	uint64_t refreshed_ns = tailor_clock_ns();

	for (;;) {
		int unsettled = proxy_servers_unsettled(run);
		int wait_ms = unsettled ? REFRESH_SOON_MS : REFRESH_MS;

		if (tailor_clock_ns() - refreshed_ns >= (uint64_t)wait_ms * TAILOR_NS_PER_MS) {
			proxy_servers_refresh(run);
			say_store_error(run);
			refreshed_ns = tailor_clock_ns();
		}
		for (size_t i = 0; i < TAILOR_CONFIG_SERVERS_MAX; i++)
			fds[2 + i] = (struct pollfd){.fd = run->server[i].pidfd, .events = POLLIN};
		if (poll(fds, 2 + TAILOR_CONFIG_SERVERS_MAX, wait_ms) < 0 && errno != EINTR)
			return;
		if ((fds[0].revents & POLLIN) && take_signal(run, signals))
			return;
		if (fds[1].revents & POLLIN)
			tailor_jvm_hub_dispatch(run->hub);
		/* A server has died: until its successor is found, what is sent there is not traced, and must be known not to be. */
		for (size_t i = 0; i < TAILOR_CONFIG_SERVERS_MAX; i++) {
			if (fds[2 + i].revents)
				proxy_servers_refresh(run);
		}
	}
}

struct proxy_arguments {
	const char *config;
};

static const struct argp_option options[] = {
	{"config", 'c', "FILE", 0, "The configuration (required); `tailor check -c FILE` judges it without starting anything", 0},
	{0},
};

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct proxy_arguments *arguments = state->input;

	switch (key) {
	case 'c': arguments->config = value; return 0;
	case ARGP_KEY_ARG: argp_error(state, "unexpected \"%s\"; name the configuration with -c", value); return EINVAL;
	case ARGP_KEY_END:
		if (!arguments->config)
			argp_error(state, "name the configuration: -c tailor.yaml");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

int tailor_command_proxy(int argc, char **argv)
{
	static const struct argp argp = {
		options, parse_option, "-c FILE",
		"Runs the proxy, the tracer and the observer until SIGINT or SIGTERM. SIGHUP reads the configuration again, SIGUSR1 opens "
		"the access log anew.\v"
		"It needs root (or CAP_BPF and CAP_PERFMON) for kernel events and the agent in the servers' JVMs for collections and "
		"failover; it runs without either and says what the timelines lack. `tailor doctor` tells what this host allows.\n",
		NULL, NULL, NULL,
	};
	struct proxy_arguments arguments = {0};
	char address[TAILOR_ADDRESS_TEXT_BYTES];
	struct tailor_address listening;
	cleanup_close int signals = -1;
	struct proxy_run *run;

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	run = calloc(1, sizeof(*run));
	if (!run) {
		proxy_say("not enough memory");
		return TAILOR_EXIT_FAILED;
	}
	if (cli_config_load(arguments.config, &run->config) != 0) {
		free(run);
		return TAILOR_EXIT_USAGE;
	}
	run->config_path = arguments.config;
	pthread_mutex_init(&run->lock, NULL);
	pthread_mutex_init(&run->reloading, NULL);
	proxy_servers_init(run);
	run->started_ns = tailor_clock_ns();
	raise_file_limit(&run->config);
	signals = signals_open();
	if (start(run) != 0) {
		stop(run);
		free(run);
		return TAILOR_EXIT_FAILED;
	}
	/* Before anybody is told to send requests, so that the first ones are traced, too. */
	proxy_servers_refresh(run);
	listening = tailor_proxy_listening(run->proxy);
	proxy_say("serving %s", tailor_address_format(address, &listening));
	say_what_is_missing(run);
	serve(run, signals);
	proxy_say("stopping: requests in flight may end within %d s", (int)(STOP_NS / TAILOR_NS_PER_S));
	stop(run);
	free(run);
	return TAILOR_EXIT_DONE;
}
