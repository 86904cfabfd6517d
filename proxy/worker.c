/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/worker.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/client.h"
#include "proxy/connection.h"
#include "proxy/exchange.h"
#include "proxy/head.h"
#include "proxy/pause.h"
#include "proxy/queue.h"
#include "proxy/replay.h"
#include "proxy/timeouts.h"
#include "proxy/upstream.h"

#define RING_ENTRIES 1024
#define SMALL_BODY_BYTES (16 * 1024)
#define RESPONSE_BYTES (64 * 1024)
/* Slots beyond the limit, to tell those clients so. */
#define REFUSAL_SLOTS 64
/* Wait before accepting again when there were no descriptors. */
#define ACCEPT_RETRY_NS (100 * TAILOR_NS_PER_MS)

static uint32_t round_up(size_t bytes)
{
	return (uint32_t)((bytes + 4095) / 4096 * 4096);
}

int worker_open(struct worker *worker)
{
	const struct tailor_proxy_options *options = worker->options;
	size_t client_bytes, upstream_bytes, structs;

	worker->limits = (struct http1_limits){.head_bytes = options->head_bytes_max, .fields = HTTP1_FIELDS_MAX};
	worker->response_limits = worker->limits;
	if (options->fields_max)
		worker->limits.fields = options->fields_max;
	worker->in_bytes = round_up(options->head_bytes_max + 4096);
	worker->forward_bytes = round_up(options->head_bytes_max + HEAD_ADDED_BYTES + SMALL_BODY_BYTES);
	worker->out_bytes = round_up(2 * (options->head_bytes_max + HEAD_ADDED_BYTES) + SMALL_BODY_BYTES);
	worker->upstream_in_bytes = round_up(
	        options->head_bytes_max + 4096 > RESPONSE_BYTES ? options->head_bytes_max + 4096 : RESPONSE_BYTES);
	/* Which worker a connection comes to is the kernel's choice, so that each may get all. Memory is taken when
	 * used. */
	worker->client_slots = options->connections_max + REFUSAL_SLOTS;
	worker->upstream_slots = 2 * worker->client_slots;
	client_bytes = (size_t)worker->in_bytes + worker->forward_bytes + worker->out_bytes;
	upstream_bytes = worker->upstream_in_bytes;
	structs = worker->client_slots * sizeof(struct client) + worker->upstream_slots * sizeof(struct upstream);
	structs = (structs + 4095) / 4096 * 4096;
	if (replay_open(worker) < 0)
		return -ENOMEM;
	worker->memory_bytes = structs + worker->client_slots * client_bytes + worker->upstream_slots * upstream_bytes;
	worker->memory = mmap(NULL, worker->memory_bytes, PROT_READ | PROT_WRITE,
	                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (worker->memory == MAP_FAILED) {
		worker->memory = NULL;
		return -ENOMEM;
	}
	worker->clients = worker->memory;
	worker->upstreams = (struct upstream *)(void *)(worker->clients + worker->client_slots);
	worker->buffers = (char *)worker->memory + structs;
	return 0;
}

void worker_close(struct worker *worker)
{
	replay_close(worker);
	if (worker->memory)
		munmap(worker->memory, worker->memory_bytes);
	worker->memory = NULL;
}

struct client *worker_take_client(struct worker *worker)
{
	struct client *client = worker->client_free;
	char *buffers;

	if (client) {
		worker->client_free = client->next;
	} else {
		if (worker->client_used == worker->client_slots)
			return NULL;
		client = &worker->clients[worker->client_used];
		client->connection.slot = worker->client_used;
		buffers = worker->buffers +
		          worker->client_used * ((size_t)worker->in_bytes + worker->forward_bytes + worker->out_bytes);
		client->in = buffers;
		client->forward = buffers + worker->in_bytes;
		client->out = buffers + worker->in_bytes + worker->forward_bytes;
		worker->client_used++;
	}
	client->next = NULL;
	client->connection.closing = false;
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
		upstream->in =
		        worker->buffers +
		        worker->client_slots * ((size_t)worker->in_bytes + worker->forward_bytes + worker->out_bytes) +
		        (size_t)worker->upstream_used * worker->upstream_in_bytes;
		worker->upstream_used++;
	}
	upstream->next = NULL;
	upstream->connection.closing = false;
	worker->upstream_count++;
	return upstream;
}

static void accept_again(struct worker *worker)
{
	worker->accepting = true;
	worker->accept_retry_ns = UINT64_MAX;
	tailor_ring_accept(worker->ring, worker->listener, TAILOR_TOKEN(SLOT_WORKER, 0, OPERATION_ACCEPT));
}

static void accepted(struct worker *worker, const struct tailor_completion *completion)
{
	if (completion->result >= 0) {
		if (worker->stopping)
			close(completion->result);
		else
			client_accepted(worker, completion->result);
	}
	if (completion->flags & TAILOR_RING_MORE)
		return;
	worker->accepting = false;
	if (worker->stopping)
		return;
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

static void stop(struct worker *worker, uint64_t deadline_ns)
{
	worker->stopping = true;
	worker->stop_deadline_ns = deadline_ns;
	worker->accept_retry_ns = UINT64_MAX;
	if (worker->accepting)
		tailor_ring_cancel(worker->ring, TAILOR_TOKEN(SLOT_WORKER, 0, OPERATION_ACCEPT),
		                   TAILOR_TOKEN(SLOT_WORKER, 0, OPERATION_CANCEL));
	client_close_all(worker, false);
	upstream_close_idle(worker);
}

static void apply(struct worker *worker, const struct tailor_proxy_settings *settings)
{
	worker->own_options.failover_on_gc = settings->failover_on_gc;
	worker->own_options.replay_methods = settings->replay_methods;
	timeouts_apply(&worker->own_options, settings);
}

static void run_command(struct worker *worker)
{
	struct command *command = __atomic_exchange_n(&worker->command, NULL, __ATOMIC_ACQUIRE);

	read_command(worker);
	if (!command)
		return;
	switch (command->kind) {
	case COMMAND_ATTACH:
		pause_attach(worker, command->server, command->page, command->wakers[worker->index]);
		break;
	case COMMAND_DETACH:
		if (!pause_detach(worker, command->server)) {
			worker->detaching = command;
			return;
		}
		break;
	case COMMAND_APPLY: apply(worker, command->settings); break;
	case COMMAND_STOP: stop(worker, command->deadline_ns); break;
	}
	sem_post(&command->done);
}

static void complete_own(struct worker *worker, const struct tailor_completion *completion)
{
	unsigned int operation = TAILOR_TOKEN_OPERATION(completion->token);

	switch (operation) {
	case OPERATION_ACCEPT: accepted(worker, completion); break;
	case OPERATION_COMMAND: run_command(worker); break;
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

static void complete(struct worker *worker, const struct tailor_completion *completion)
{
	uint32_t slot = TAILOR_TOKEN_SLOT(completion->token);
	enum operation operation = (enum operation)TAILOR_TOKEN_OPERATION(completion->token);
	struct connection *connection;
	bool is_client = slot < worker->client_slots;

	if (slot == SLOT_WORKER) {
		complete_own(worker, completion);
		return;
	}
	connection = connection_of(worker, slot);
	if (!connection || (connection->generation & 0xffffff) != TAILOR_TOKEN_GENERATION(completion->token)) {
		count(&worker->counters.stale_completions);
		return;
	}
	if (operation == OPERATION_CANCEL) {
		connection->cancels--;
		connection_settle(worker, connection);
		return;
	}
	connection->operations &= (uint8_t) ~(1u << operation);
	if (operation == OPERATION_CLOSE) {
		connection->generation++;
		if (is_client)
			client_closed(worker, &worker->clients[slot]);
		else
			upstream_closed(worker, &worker->upstreams[slot - worker->client_slots]);
	} else if (is_client) {
		client_complete(worker, &worker->clients[slot], operation, completion->result);
	} else {
		upstream_complete(worker, &worker->upstreams[slot - worker->client_slots], operation,
		                  completion->result);
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
	if (worker->stopping && worker->now_ns >= worker->stop_deadline_ns) {
		worker->stop_deadline_ns = UINT64_MAX;
		client_close_all(worker, true);
	}
}

static uint64_t next_deadline_ns(const struct worker *worker)
{
	uint64_t deadline_ns = wheel_next_ns(&worker->wheel);

	if (worker->accept_retry_ns < deadline_ns)
		deadline_ns = worker->accept_retry_ns;
	if (worker->stopping && worker->stop_deadline_ns < deadline_ns)
		deadline_ns = worker->stop_deadline_ns;
	return deadline_ns;
}

static bool finished(const struct worker *worker)
{
	return worker->stopping && !worker->accepting && worker->client_count == 0 && worker->upstream_count == 0;
}

static void serve(struct worker *worker)
{
	struct tailor_completion completion;

	while (!finished(worker)) {
		bool sleep = pause_may_sleep(worker);
		int ret = tailor_ring_wait(worker->ring, sleep ? next_deadline_ns(worker) : 0);

		pause_awake(worker);
		worker->now_ns = tailor_clock_ns();
		/* Before anything else: a stopped server's requests are the ones that cannot wait. */
		pause_look(worker);
		if (ret < 0)
			usleep(1000); /* the kernel refuses to go on for now; do not spin on it */
		while (tailor_ring_next(worker->ring, &completion))
			complete(worker, &completion);
		ring_alarms(worker);
		queue_run(worker);
	}
}

void *worker_run(void *argument)
{
	static const struct tailor_ring_options ring_options = {.entries = RING_ENTRIES};
	struct worker *worker = argument;
	char name[16] = "tailor-worker";

	(void)pthread_setname_np(pthread_self(), name);
	worker->pid = (uint32_t)getpid();
	worker->tid = (uint32_t)gettid();
	worker->now_ns = tailor_clock_ns();
	worker->start_result = tailor_ring_open(&ring_options, &worker->ring);
	if (worker->start_result == 0) {
		wheel_open(&worker->wheel, worker->now_ns);
		accept_again(worker);
		read_command(worker);
	}
	sem_post(&worker->started);
	if (worker->start_result < 0)
		return NULL;
	serve(worker);
	tailor_ring_close(worker->ring);
	worker->ring = NULL;
	return NULL;
}
