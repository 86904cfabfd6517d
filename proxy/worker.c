/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/client.h"
#include "proxy/connection.h"
#include "proxy/exchange.h"
#include "proxy/head.h"
#include "proxy/keeper.h"
#include "proxy/pause.h"
#include "proxy/queue.h"
#include "proxy/replay.h"
#include "proxy/stopped.h"
#include "proxy/timeouts.h"
#include "proxy/upstream.h"
#include "proxy/urgency.h"
#include "proxy/warm.h"

/* After so many completions of a turn it is looked again whether a server stands still, and whether a CPU is used for long. */
#define LOOK_COMPLETIONS 4
#define URGENCY_COMPLETIONS 64
#define RING_ENTRIES 1024
#define SMALL_BODY_BYTES (16 * 1024)
#define RESPONSE_BYTES (64 * 1024)
/* Wait before accepting again when there were no descriptors. */
#define ACCEPT_RETRY_NS (100 * TAILOR_NS_PER_MS)
/* What nobody has needed for that long is a past peak's. */
#define TRIM_NS (100 * TAILOR_NS_PER_MS)

static uint32_t round_up(size_t bytes)
{
	return (uint32_t)((bytes + 4095) / 4096 * 4096);
}

int worker_open(struct worker *worker)
{
	const struct tailor_proxy_options *options = worker->options;
	/* What the ring lends fits, with some more behind it. */
	size_t in_bytes = options->head_bytes_max + INPUT_HEADROOM > INPUT_BUFFER_BYTES
	                          ? options->head_bytes_max + INPUT_HEADROOM
	                          : INPUT_BUFFER_BYTES;

	worker->limits = (struct http1_limits){.head_bytes = options->head_bytes_max, .fields = HTTP1_FIELDS_MAX};
	worker->response_limits = worker->limits;
	if (options->fields_max)
		worker->limits.fields = options->fields_max;
	worker->in_bytes = round_up(in_bytes + 4096);
	worker->forward_bytes = round_up(options->head_bytes_max + HEAD_ADDED_BYTES + SMALL_BODY_BYTES);
	worker->out_bytes = round_up(2 * (options->head_bytes_max + HEAD_ADDED_BYTES) + SMALL_BODY_BYTES);
	worker->upstream_in_bytes = round_up(in_bytes + 4096 > RESPONSE_BYTES ? in_bytes + 4096 : RESPONSE_BYTES);
	/* Which worker a connection comes to is the kernel's choice, so that each may get all. Memory is taken when
	 * used. */
	worker->client_slots = options->connections_max + WORKER_BEYOND_MAX + 1;
	/* Two at a time for each, and at each server as many as there ever were at once stay for a while. */
	worker->upstream_slots = (options->servers > 2 ? options->servers : 2) * worker->client_slots;
	worker->memory_bytes =
	        worker->client_slots * sizeof(struct client) + worker->upstream_slots * sizeof(struct upstream);
	worker->memory = mmap(NULL, worker->memory_bytes, PROT_READ | PROT_WRITE,
	                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (worker->memory == MAP_FAILED)
		worker->memory = NULL;
	worker->learned = calloc(options->servers, sizeof(*worker->learned));
	for (unsigned int i = 0; worker->learned && i < options->servers; i++)
		worker->server[i].learned = &worker->learned[i];
	if (!worker->memory || !worker->learned || pool_open(&worker->in_pool, worker->client_slots, worker->in_bytes) < 0 ||
	    pool_open(&worker->forward_pool, worker->client_slots, worker->forward_bytes) < 0 ||
	    pool_open(&worker->out_pool, worker->client_slots, worker->out_bytes) < 0 ||
	    pool_open(&worker->upstream_in_pool, worker->upstream_slots, worker->upstream_in_bytes) < 0 ||
	    replay_open(worker) < 0) {
		worker_close(worker);
		return -ENOMEM;
	}
	worker->clients = worker->memory;
	worker->upstreams = (struct upstream *)(void *)(worker->clients + worker->client_slots);
	return 0;
}

void worker_close(struct worker *worker)
{
	replay_close(worker);
	free(worker->learned);
	worker->learned = NULL;
	if (worker->memory)
		munmap(worker->memory, worker->memory_bytes);
	worker->memory = NULL;
	pool_close(&worker->in_pool);
	pool_close(&worker->forward_pool);
	pool_close(&worker->out_pool);
	pool_close(&worker->upstream_in_pool);
}

static void trim(struct worker *worker)
{
	worker->trim_ns = worker->now_ns + TRIM_NS;
	pool_trim(&worker->in_pool);
	pool_trim(&worker->forward_pool);
	pool_trim(&worker->out_pool);
	pool_trim(&worker->upstream_in_pool);
	pool_trim(&worker->replay_pool);
}

static bool trimmable(const struct worker *worker)
{
	return pool_trimmable(&worker->in_pool) || pool_trimmable(&worker->forward_pool) ||
	       pool_trimmable(&worker->out_pool) || pool_trimmable(&worker->upstream_in_pool) ||
	       pool_trimmable(&worker->replay_pool);
}

struct client *worker_take_client(struct worker *worker)
{
	struct client *client = worker->client_free;

	if (client) {
		worker->client_free = client->next;
	} else {
		if (worker->client_used == worker->client_slots)
			return NULL;
		client = &worker->clients[worker->client_used];
		client->connection.slot = worker->client_used;
		worker->client_used++;
	}
	client->next = NULL;
	client->connection.closing = false;
	input_open(&client->in, &worker->in_pool);
	worker->client_count++;
	return client;
}

struct upstream *worker_take_upstream(struct worker *worker)
{
	struct upstream *upstream = worker->upstream_free;

	if (upstream) {
		worker->upstream_free = upstream->next;
	} else {
		if (worker->upstream_used == worker->upstream_slots)
			return NULL;
		upstream = &worker->upstreams[worker->upstream_used];
		upstream->connection.slot = worker->client_slots + worker->upstream_used;
		worker->upstream_used++;
	}
	upstream->next = NULL;
	upstream->connection.closing = false;
	input_open(&upstream->in, &worker->upstream_in_pool);
	worker->upstream_count++;
	return upstream;
}

static void accept_again(struct worker *worker)
{
	worker->accepting = true;
	worker->accept_retry_ns = UINT64_MAX;
	tailor_ring_accept(worker->ring, worker->listener, TAILOR_TOKEN(SLOT_WORKER, 0, OPERATION_ACCEPT));
}

/* The listener is another process's from here on. A connection wakes one of those who wait for it, and that may have been the
 * accept that was cancelled then: nobody else would come for it. */
static void leave_listener(struct worker *worker)
{
	int fd;

	while (worker->patient && (fd = accept4(worker->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
		client_accepted(worker, fd);
	__atomic_store_n(&worker->left, true, __ATOMIC_RELEASE);
}

static void accepted(struct worker *worker, const struct tailor_completion *completion)
{
	/* Also while stopping: this one was accepted before that was said. */
	if (completion->result >= 0)
		client_accepted(worker, completion->result);
	if (completion->flags & TAILOR_RING_MORE)
		return;
	worker->accepting = false;
	if (worker->stopping) {
		leave_listener(worker);
		return;
	}
	/* Out of descriptors or memory: trying at once would spin. */
	if (completion->result < 0 && completion->result != -ECONNABORTED)
		worker->accept_retry_ns = worker->now_ns + ACCEPT_RETRY_NS;
	else
		accept_again(worker);
}

static void read_command(struct worker *worker)
{
	tailor_ring_read(worker->ring, worker->command_fd, &worker->command_value, sizeof(worker->command_value),
	                 TAILOR_TOKEN(SLOT_WORKER, 0, OPERATION_COMMAND));
}

static void stop(struct worker *worker, uint64_t deadline_ns, bool patient)
{
	worker->stopping = true;
	worker->patient = patient;
	worker->stop_deadline_ns = deadline_ns;
	worker->accept_retry_ns = UINT64_MAX;
	if (worker->accepting)
		tailor_ring_cancel(worker->ring, TAILOR_TOKEN(SLOT_WORKER, 0, OPERATION_ACCEPT),
		                   TAILOR_TOKEN(SLOT_WORKER, 0, OPERATION_CANCEL));
	else if (!worker->left)
		leave_listener(worker);
	if (!patient)
		client_close_all(worker, false);
	upstream_close_idle(worker);
	keeper_changed(worker);
}

static void apply(struct worker *worker, const struct tailor_proxy_settings *settings)
{
	tailor_proxy_set(&worker->own_options, settings);
	timeouts_complete(&worker->own_options);
	keeper_changed(worker);
}

static void run_command(struct worker *worker)
{
	struct command *command = __atomic_exchange_n(&worker->command, NULL, __ATOMIC_ACQUIRE);

	read_command(worker);
	if (!command)
		return;
	switch (command->kind) {
	case COMMAND_ACCEPT: accept_again(worker); break;
	case COMMAND_ATTACH:
		pause_attach(worker, command->server, command->page, command->wakers[worker->index]);
		break;
	case COMMAND_DETACH:
		if (!pause_detach(worker, command->server)) {
			worker->detaching = command;
			return;
		}
		break;
	case COMMAND_GONE: stopped_gone(worker, command->server, command->alive_ns); break;
	case COMMAND_APPLY: apply(worker, command->settings); break;
	case COMMAND_STOP: stop(worker, command->deadline_ns, command->patient); break;
	}
	sem_post(&command->done);
}

static void complete_own(struct worker *worker, const struct tailor_completion *completion)
{
	unsigned int operation = TAILOR_TOKEN_OPERATION(completion->token);

	switch (operation) {
	case OPERATION_ACCEPT: accepted(worker, completion); break;
	case OPERATION_COMMAND: run_command(worker); break;
	case OPERATION_TIMER: worker->timer_ns = UINT64_MAX; break;
	case OPERATION_BEAT: pause_beat(worker); break;
	case OPERATION_STOPS: pause_stops_complete(worker, completion); break;
	case OPERATION_CANCEL: break;
	default:
		if (pause_waker_complete(worker, operation - OPERATION_WAKER,
		                         TAILOR_TOKEN_GENERATION(completion->token), completion->result) &&
		    worker->detaching) {
			sem_post(&worker->detaching->done);
			worker->detaching = NULL;
		}
		break;
	}
}

static struct connection *connection_of(struct worker *worker, uint32_t slot)
{
	if (slot < worker->client_used)
		return &worker->clients[slot].connection;
	slot -= worker->client_slots;
	return slot < worker->upstream_used ? &worker->upstreams[slot].connection : NULL;
}

/* A completion that only says that the next receive may be asked for. Returns false for all others. */
static bool complete_receiving(struct worker *worker, struct connection *connection, struct input *input,
                               const struct tailor_completion *completion)
{
	switch (TAILOR_TOKEN_OPERATION(completion->token)) {
	case OPERATION_RECEIVE: return !connection_received(worker, connection, input, completion);
	case OPERATION_CANCEL:
		connection->cancels--;
		connection->stopping = false;
		return true;
	default: return false;
	}
}

static void complete(struct worker *worker, const struct tailor_completion *completion)
{
	uint32_t slot = TAILOR_TOKEN_SLOT(completion->token);
	enum operation operation = (enum operation)TAILOR_TOKEN_OPERATION(completion->token);
	struct client *client = slot < worker->client_slots ? &worker->clients[slot] : NULL;
	struct upstream *upstream = NULL;
	struct connection *connection;

	if (slot == SLOT_WORKER) {
		complete_own(worker, completion);
		return;
	}
	connection = connection_of(worker, slot);
	if (!connection || (connection->generation & 0xffffff) != TAILOR_TOKEN_GENERATION(completion->token)) {
		count(&worker->counters.stale_completions);
		if (completion->flags & TAILOR_RING_BUFFER)
			tailor_ring_buffer_return(worker->ring, completion->buffer);
		return;
	}
	if (!client)
		upstream = &worker->upstreams[slot - worker->client_slots];
	if (operation != OPERATION_CANCEL && !(completion->flags & TAILOR_RING_MORE))
		connection->operations &= (uint8_t) ~(1u << operation);
	if (complete_receiving(worker, connection, client ? &client->in : &upstream->in, completion)) {
		if (client)
			client_receive(worker, client);
		else
			upstream_receive(worker, upstream);
		connection_settle(worker, connection);
	} else if (operation == OPERATION_CLOSE) {
		connection->generation++;
		if (client)
			client_closed(worker, client);
		else
			upstream_closed(worker, upstream);
	} else if (client) {
		client_complete(worker, client, operation, completion->result);
	} else {
		upstream_complete(worker, upstream, operation, completion->result);
	}
}

static void ring_alarms(struct worker *worker)
{
	struct alarm *alarm;

	while ((alarm = wheel_run(&worker->wheel, worker->now_ns)) != NULL) {
		uint32_t slot = ((struct connection *)(void *)alarm)->slot;

		if (slot < worker->client_slots)
			client_alarm(worker, &worker->clients[slot]);
		else
			upstream_alarm(worker, &worker->upstreams[slot - worker->client_slots]);
	}
	if (worker->now_ns >= worker->accept_retry_ns)
		accept_again(worker);
	if (worker->now_ns >= worker->trim_ns)
		trim(worker);
	stopped_alarms(worker);
	keeper_turn(worker);
	if (worker->stopping && worker->now_ns >= worker->stop_deadline_ns) {
		worker->stop_deadline_ns = UINT64_MAX;
		client_close_all(worker, true);
	}
}

static uint64_t next_deadline_ns(const struct worker *worker)
{
	uint64_t deadline_ns = wheel_next_ns(&worker->wheel);
	uint64_t stopped_ns = stopped_next_ns(worker);

	if (stopped_ns < deadline_ns)
		deadline_ns = stopped_ns;
	if (worker->keeper.next_ns < deadline_ns)
		deadline_ns = worker->keeper.next_ns;
	if (worker->accept_retry_ns < deadline_ns)
		deadline_ns = worker->accept_retry_ns;
	if (worker->trim_ns < deadline_ns && trimmable(worker))
		deadline_ns = worker->trim_ns;
	if (worker->stopping && worker->stop_deadline_ns < deadline_ns)
		deadline_ns = worker->stop_deadline_ns;
	return deadline_ns;
}

static bool finished(const struct worker *worker)
{
	return worker->stopping && !worker->accepting && worker->client_count == 0 && worker->upstream_count == 0;
}

/* Looks for work for a while before it sleeps (options->busy_poll_ns): neither the network nor a JVM then has to wake this
 * thread. Returns how many completions there are, 0 when it should sleep or look at the pauses, or a negative errno. */
static int look_busily(struct worker *worker)
{
	uint64_t now_ns, until_ns = next_deadline_ns(worker);
	int ret = 0;

	if (worker->options->busy_poll_ns == 0)
		return 0;
	now_ns = tailor_clock_ns();
	if (until_ns > now_ns + worker->options->busy_poll_ns)
		until_ns = now_ns + worker->options->busy_poll_ns;
	while (ret == 0 && now_ns < until_ns && !pause_changed(worker)) {
		ret = tailor_ring_wait(worker->ring, 0);
		now_ns = tailor_clock_ns();
	}
	return ret;
}

/* Deadlines are far away and rarely come to pass, but change all the time. One timer that goes on across waits rings
 * early at times; a timer set and taken back at each wait costs a virtual machine as much as a request. */
static int wait(struct worker *worker)
{
	uint64_t deadline_ns = next_deadline_ns(worker);

	if (worker->timer_ns == UINT64_MAX && deadline_ns != UINT64_MAX) {
		worker->timer_ns = deadline_ns;
		tailor_ring_timeout(worker->ring, &worker->timer, deadline_ns,
		                    TAILOR_TOKEN(SLOT_WORKER, 0, OPERATION_TIMER));
	}
	if (worker->timer_ns <= deadline_ns)
		deadline_ns = UINT64_MAX;
	return tailor_ring_wait(worker->ring, pause_may_sleep(worker) ? deadline_ns : 0);
}

/*
 * A turn in which many have come at once takes as long as a collection may. `done`: completions of it so far. Few of them are all that a turn has
 * mostly, and cost nothing here.
 */
static void look_in_between(struct worker *worker, unsigned int done)
{
	uint64_t turn_ns = worker->now_ns;

	if (done % URGENCY_COMPLETIONS == 0)
		urgency_turn(worker, tailor_clock_ns());
	if (done % LOOK_COMPLETIONS != 0 || !pause_changed(worker))
		return;
	/* Deadlines are the turn's: what has come in time may not have been looked at yet. */
	worker->now_ns = tailor_clock_ns();
	pause_look(worker);
	worker->now_ns = turn_ns;
}

static void serve(struct worker *worker)
{
	struct tailor_completion completion;

	while (!finished(worker)) {
		int ret = look_busily(worker);

		if (ret == 0)
			ret = wait(worker);

		pause_awake(worker);
		worker->before_ns = worker->last_ns;
		worker->last_ns = worker->now_ns;
		worker->now_ns = tailor_clock_ns();
		worker->turn++;
		/* Before anything else: a stopped server's requests are the ones that cannot wait. */
		pause_look(worker);
		if (ret < 0)
			usleep(1000); /* the kernel refuses to go on for now; do not spin on it */
		for (unsigned int done = 1; tailor_ring_next(worker->ring, &completion); done++) {
			complete(worker, &completion);
			look_in_between(worker, done);
		}
		ring_alarms(worker);
		urgency_turn(worker, worker->now_ns);
		queue_run(worker);
		warm_turn(worker);
	}
}

void *worker_run(void *argument)
{
	static const struct tailor_ring_options ring_options = {.entries = RING_ENTRIES,
	                                                        .buffers = INPUT_BUFFERS,
	                                                        .buffer_bytes = INPUT_BUFFER_BYTES - INPUT_HEADROOM,
	                                                        .buffer_headroom = INPUT_HEADROOM};
	struct worker *worker = argument;
	char name[16] = "tailor-worker";

	(void)pthread_setname_np(pthread_self(), name);
	worker->pid = (uint32_t)getpid();
	worker->tid = (uint32_t)gettid();
	worker->now_ns = worker->last_ns = worker->before_ns = tailor_clock_ns();
	if (worker->options->late)
		worker->late = &worker->options->late[TAILOR_LATE_ENTRY(worker->tid)];
	worker->start_result = tailor_ring_open(&ring_options, &worker->ring);
	if (worker->start_result == 0) {
		wheel_open(&worker->wheel, worker->now_ns);
		worker->timer_ns = UINT64_MAX;
		worker->accept_retry_ns = UINT64_MAX;
		worker->warm_without = -1;
		keeper_open(worker);
		pause_open(worker);
		urgency_open(worker);
		if (!worker->options->accept_later)
			accept_again(worker);
		read_command(worker);
	}
	sem_post(&worker->started);
	if (worker->start_result < 0)
		return NULL;
	serve(worker);
	urgency_close(worker);
	tailor_ring_close(worker->ring);
	worker->ring = NULL;
	__atomic_store_n(&worker->ended, true, __ATOMIC_RELEASE);
	return NULL;
}
