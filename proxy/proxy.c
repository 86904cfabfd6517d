/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/proxy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/limits.h"
#include "proxy/addresses.h"
#include "proxy/budget.h"
#include "proxy/listen.h"
#include "proxy/queue.h"
#include "proxy/status.h"
#include "proxy/timeouts.h"
#include "proxy/worker.h"

struct tailor_proxy {
	struct tailor_proxy_options options;
	struct shared shared;
	enum tailor_proxy_mode mode; /* atomic; as the workers have it */
	struct tailor_address listening;
	int listeners[TAILOR_PROXY_WORKERS_MAX];
	unsigned int started; /* workers whose thread runs */
	bool stopping;
	bool attached[TAILOR_PROXY_SERVERS_MAX];
	pthread_mutex_t commands; /* a worker takes one at a time */
	struct worker worker[TAILOR_PROXY_WORKERS_MAX];
};

static bool has_ended(const struct worker *worker)
{
	return __atomic_load_n(&worker->ended, __ATOMIC_ACQUIRE);
}

/* Runs a command on one worker and waits until it is done. */
static void command_run(struct tailor_proxy *proxy, unsigned int index, struct command *command)
{
	struct worker *worker = &proxy->worker[index];
	uint64_t one = 1;

	sem_init(&command->done, 0, 0);
	__atomic_store_n(&worker->command, command, __ATOMIC_RELEASE);
	while (write(worker->command_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	/* One that stops may end in this moment, and then has nothing to be told any more. */
	while (proxy->stopping && sem_trywait(&command->done) != 0 && !has_ended(worker))
		usleep(100);
	while (!proxy->stopping && sem_wait(&command->done) != 0)
		;
	__atomic_store_n(&worker->command, NULL, __ATOMIC_RELAXED);
	sem_destroy(&command->done);
}

static void free_proxy(struct tailor_proxy *proxy)
{
	for (unsigned int i = 0; i < proxy->options.workers; i++) {
		if (proxy->worker[i].command_fd > 0)
			close(proxy->worker[i].command_fd);
		worker_close(&proxy->worker[i]);
	}
	addresses_close(proxy->shared.addresses);
	queue_close(proxy->shared.queue);
	listen_close(&proxy->listening, proxy->options.workers, proxy->listeners, proxy->options.shared);
	free(proxy);
}

static int check(const struct tailor_proxy_options *options, char *error, size_t error_size)
{
	if (options->servers < 1 || options->servers > TAILOR_PROXY_SERVERS_MAX)
		snprintf(error, error_size, "a proxy needs 1 to %d servers", TAILOR_PROXY_SERVERS_MAX);
	else if (options->workers < 1 || options->workers > TAILOR_PROXY_WORKERS_MAX)
		snprintf(error, error_size, "workers must be 1 to %d", TAILOR_PROXY_WORKERS_MAX);
	else if (options->connections_max < 1 || options->connections_max > 1000000)
		snprintf(error, error_size, "connections_max must be 1 to 1000000");
	else if (options->head_bytes_max < 1024 || options->head_bytes_max > 1 << 20)
		snprintf(error, error_size, "head_bytes_max must be 1 KiB to 1 MiB");
	else if (options->replay_attempts_max < 1 || options->replay_attempts_max > TAILOR_ATTEMPTS_MAX)
		snprintf(error, error_size, "replay_attempts_max must be 1 to %d", TAILOR_ATTEMPTS_MAX);
	else if (options->routes > TAILOR_PROXY_ROUTES_MAX)
		snprintf(error, error_size, "at most %d routes", TAILOR_PROXY_ROUTES_MAX);
	else if (!options->tags || !options->channels)
		snprintf(error, error_size, "tags and channels are required");
	else
		return 0;
	return -EINVAL;
}

static int start_worker(struct tailor_proxy *proxy, unsigned int index, uint64_t id_base, char *error,
                        size_t error_size)
{
	struct worker *worker = &proxy->worker[index];
	int ret;

	worker->own_options = proxy->options;
	timeouts_complete(&worker->own_options);
	worker->options = &worker->own_options;
	worker->shared = &proxy->shared;
	worker->index = index;
	worker->listener = proxy->listeners[index];
	trace_open(&worker->trace, id_base, index);
	ret = worker_open(worker);
	if (ret < 0) {
		snprintf(error, error_size, "cannot reserve memory for the connections: %s; lower limits.connections",
		         strerror(-ret));
		return ret;
	}
	worker->command_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (worker->command_fd < 0) {
		ret = -errno;
		snprintf(error, error_size, "cannot create an eventfd: %s; raise the limit of open files (ulimit -n)",
		         strerror(-ret));
		return ret;
	}
	if (proxy->shared.queue)
		queue_join(proxy->shared.queue, index, worker->command_fd);
	sem_init(&worker->started, 0, 0);
	ret = -pthread_create(&worker->thread, NULL, worker_run, worker);
	if (ret < 0) {
		snprintf(error, error_size, "cannot create a thread: %s; %s", strerror(-ret),
		         tailor_limits_remedy(ret) ?: "give this process more memory, or lower `workers`");
		return ret;
	}
	while (sem_wait(&worker->started) != 0)
		;
	if (worker->start_result < 0) {
		pthread_join(worker->thread, NULL);
		snprintf(error, error_size, "cannot set up io_uring: %s; %s", strerror(-worker->start_result),
		         tailor_ring_explain(worker->start_result));
		return worker->start_result;
	}
	proxy->started++;
	return 0;
}

int tailor_proxy_listen(struct tailor_address *address, unsigned int workers, int ret_listeners[TAILOR_PROXY_WORKERS_MAX],
                        char *error, size_t error_size)
{
	return listen_open(address, workers, ret_listeners, error, error_size);
}

int tailor_proxy_adopt(struct tailor_address *address, unsigned int workers, const int *sockets, unsigned int socket_count,
                       int ret_listeners[TAILOR_PROXY_WORKERS_MAX], char *error, size_t error_size)
{
	return listen_adopt(address, workers, sockets, socket_count, ret_listeners, error, error_size);
}

/* What the caller opened is ours, also when nothing comes of it. */
static int refuse_listeners(const struct tailor_proxy_options *options, int ret)
{
	struct tailor_address address = options->listen;
	int fds[TAILOR_PROXY_WORKERS_MAX];

	if (!options->listeners)
		return ret;
	memcpy(fds, options->listeners, options->workers * sizeof(*fds));
	listen_close(&address, options->workers, fds, options->shared);
	return ret;
}

/* What the workers share to keep to limits that are theirs together. */
static int open_limits(struct tailor_proxy *proxy)
{
	const struct tailor_proxy_options *options = &proxy->options;
	int ret = 0;

	proxy->shared.workers = proxy->worker;
	budget_open_all(&proxy->shared, options, tailor_clock_ns());
	if (options->per_address_max)
		ret = addresses_open(options->connections_max, options->per_address_max, &proxy->shared.addresses);
	if (ret == 0 && options->in_flight_max)
		ret = queue_open(options, &proxy->shared.queue);
	return ret;
}

int tailor_proxy_start(const struct tailor_proxy_options *options, struct tailor_proxy **ret_proxy, char *error,
                       size_t error_size)
{
	struct tailor_proxy *proxy;
	uint64_t id_base = trace_random();
	int ret = check(options, error, error_size);

	if (ret < 0)
		return refuse_listeners(options, ret);
	proxy = aligned_alloc(_Alignof(struct tailor_proxy), sizeof(*proxy));
	if (!proxy) {
		snprintf(error, error_size, "out of memory");
		return refuse_listeners(options, -ENOMEM);
	}
	memset(proxy, 0, sizeof(*proxy));
	proxy->options = *options;
	proxy->mode = options->mode;
	pthread_mutex_init(&proxy->commands, NULL);
	proxy->listening = options->listen;
	if (options->listeners)
		memcpy(proxy->listeners, options->listeners, options->workers * sizeof(*options->listeners));
	else
		ret = listen_open(&proxy->listening, options->workers, proxy->listeners, error, error_size);
	if (ret < 0) {
		free(proxy);
		return ret;
	}
	ret = open_limits(proxy);
	if (ret < 0) {
		snprintf(error, error_size, "out of memory for the limits; lower limits.connections or limits.queue");
		free_proxy(proxy);
		return ret;
	}
	for (unsigned int i = 0; i < options->workers; i++) {
		ret = start_worker(proxy, i, id_base, error, error_size);
		if (ret < 0) {
			tailor_proxy_stop(proxy, 0);
			return ret;
		}
	}
	*ret_proxy = proxy;
	return 0;
}

void tailor_proxy_accept(struct tailor_proxy *proxy)
{
	pthread_mutex_lock(&proxy->commands);
	for (unsigned int i = 0; i < proxy->started; i++) {
		struct command command = {.kind = COMMAND_ACCEPT};

		command_run(proxy, i, &command);
	}
	proxy->options.shared = false;
	pthread_mutex_unlock(&proxy->commands);
}

struct tailor_address tailor_proxy_listening(const struct tailor_proxy *proxy)
{
	return proxy->listening;
}

void tailor_proxy_stop_begin(struct tailor_proxy *proxy, uint64_t deadline_ns, bool patient)
{
	pthread_mutex_lock(&proxy->commands);
	/* All stop accepting before any of them is waited for. */
	for (unsigned int i = 0; i < proxy->started; i++) {
		struct command command = {.kind = COMMAND_STOP, .deadline_ns = deadline_ns, .patient = patient};

		command_run(proxy, i, &command);
	}
	proxy->stopping = true;
	for (unsigned int i = 0; patient && i < proxy->started; i++) {
		while (!__atomic_load_n(&proxy->worker[i].left, __ATOMIC_ACQUIRE))
			usleep(100);
	}
	listen_close(&proxy->listening, proxy->options.workers, proxy->listeners, patient || proxy->options.shared);
	pthread_mutex_unlock(&proxy->commands);
}

bool tailor_proxy_stopped(const struct tailor_proxy *proxy)
{
	for (unsigned int i = 0; i < proxy->started; i++) {
		if (!has_ended(&proxy->worker[i]))
			return false;
	}
	return true;
}

void tailor_proxy_stop(struct tailor_proxy *proxy, uint64_t deadline_ns)
{
	if (!proxy->stopping)
		tailor_proxy_stop_begin(proxy, deadline_ns, false);
	for (unsigned int i = 0; i < proxy->started; i++)
		pthread_join(proxy->worker[i].thread, NULL);
	free_proxy(proxy);
}

void tailor_proxy_jvm_attach(struct tailor_proxy *proxy, unsigned int server, struct tailor_jvm_page *page,
                             const int wakers[TAILOR_JVM_WAKERS])
{
	if (server >= proxy->options.servers)
		return;
	tailor_proxy_jvm_detach(proxy, server);
	pthread_mutex_lock(&proxy->commands);
	for (unsigned int i = 0; i < proxy->started; i++) {
		struct command command = {.kind = COMMAND_ATTACH, .server = server, .page = page, .wakers = wakers};

		command_run(proxy, i, &command);
	}
	pthread_mutex_unlock(&proxy->commands);
	proxy->attached[server] = true;
}

void tailor_proxy_jvm_detach(struct tailor_proxy *proxy, unsigned int server)
{
	if (server >= proxy->options.servers || !proxy->attached[server])
		return;
	pthread_mutex_lock(&proxy->commands);
	for (unsigned int i = 0; i < proxy->started; i++) {
		struct command command = {.kind = COMMAND_DETACH, .server = server};

		command_run(proxy, i, &command);
	}
	pthread_mutex_unlock(&proxy->commands);
	proxy->attached[server] = false;
}

void tailor_proxy_server_gone(struct tailor_proxy *proxy, unsigned int server, uint64_t alive_ns)
{
	if (server >= proxy->options.servers)
		return;
	pthread_mutex_lock(&proxy->commands);
	for (unsigned int i = 0; i < proxy->started; i++) {
		struct command command = {.kind = COMMAND_GONE, .server = server, .alive_ns = alive_ns};

		command_run(proxy, i, &command);
	}
	pthread_mutex_unlock(&proxy->commands);
}

void tailor_proxy_apply(struct tailor_proxy *proxy, const struct tailor_proxy_settings *settings)
{
	pthread_mutex_lock(&proxy->commands);
	__atomic_store_n(&proxy->mode, settings->mode, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < proxy->started; i++) {
		struct command command = {.kind = COMMAND_APPLY, .settings = settings};

		command_run(proxy, i, &command);
	}
	pthread_mutex_unlock(&proxy->commands);
}

int tailor_proxy_swap(struct tailor_proxy *proxy)
{
	unsigned int active = __atomic_load_n(&proxy->shared.active, __ATOMIC_RELAXED);

	if (proxy->options.servers < 2)
		return -ENODEV;
	if (__atomic_load_n(&proxy->mode, __ATOMIC_RELAXED) == TAILOR_PROXY_BALANCED)
		return -EOPNOTSUPP;
	while (!__atomic_compare_exchange_n(&proxy->shared.active, &active, (active + 1) % proxy->options.servers, 0, __ATOMIC_RELAXED,
	                                    __ATOMIC_RELAXED))
		;
	return 0;
}

void tailor_proxy_status(const struct tailor_proxy *proxy, struct tailor_proxy_status *ret_status)
{
	uint64_t drain = __atomic_load_n(&proxy->shared.drain, __ATOMIC_RELAXED);

	memset(ret_status, 0, sizeof(*ret_status));
	ret_status->servers = proxy->options.servers;
	ret_status->mode = __atomic_load_n(&proxy->mode, __ATOMIC_RELAXED);
	ret_status->active = __atomic_load_n(&proxy->shared.active, __ATOMIC_RELAXED);
	ret_status->clients = __atomic_load_n(&proxy->shared.clients, __ATOMIC_RELAXED);
	ret_status->queued = queue_waiting(proxy->shared.queue);
	for (unsigned int i = 0; i < proxy->options.workers; i++)
		status_add(ret_status, &proxy->worker[i]);
	for (unsigned int i = 0; i < proxy->options.servers; i++)
		ret_status->server[i].drained = DRAIN_LEASE_SERVER(drain) == (int)i && DRAIN_LEASE_UNTIL_NS(drain) > tailor_clock_ns();
}
