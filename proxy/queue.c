/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/queue.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "proxy/exchange.h"
#include "proxy/server.h"

#define NONE UINT32_MAX

struct node {
	uint32_t previous, next;
	uint32_t client; /* slot at its worker */
	uint8_t worker;
	bool granted;
	int8_t server; /* then; -1: there is none that could be asked */
};

struct list {
	uint32_t first, last;
};

struct queue {
	pthread_mutex_t lock; /* all but the atomics */
	unsigned int in_flight_max;
	unsigned int in_flight[TAILOR_PROXY_SERVERS_MAX]; /* atomic */
	unsigned int waiting_count;                       /* atomic */
	unsigned int granted_count[TAILOR_PROXY_WORKERS_MAX]; /* atomic */
	int wake_fd[TAILOR_PROXY_WORKERS_MAX];
	uint32_t free;
	struct list waiting;
	struct list granted[TAILOR_PROXY_WORKERS_MAX];
	struct node node[];
};

int queue_open(const struct tailor_proxy_options *options, struct queue **ret_queue)
{
	struct queue *queue = calloc(1, sizeof(*queue) + options->queue_max * sizeof(struct node));

	if (!queue)
		return -ENOMEM;
	pthread_mutex_init(&queue->lock, NULL);
	queue->in_flight_max = options->in_flight_max;
	queue->waiting = (struct list){NONE, NONE};
	for (unsigned int i = 0; i < TAILOR_PROXY_WORKERS_MAX; i++)
		queue->granted[i] = (struct list){NONE, NONE};
	queue->free = NONE;
	for (uint32_t i = options->queue_max; i > 0; i--) {
		queue->node[i - 1].next = queue->free;
		queue->free = i - 1;
	}
	*ret_queue = queue;
	return 0;
}

void queue_close(struct queue *queue)
{
	if (!queue)
		return;
	pthread_mutex_destroy(&queue->lock);
	free(queue);
}

void queue_join(struct queue *queue, unsigned int index, int wake_fd)
{
	queue->wake_fd[index] = wake_fd;
}

unsigned int queue_waiting(const struct queue *queue)
{
	return queue ? __atomic_load_n(&queue->waiting_count, __ATOMIC_RELAXED) : 0;
}

static void append(struct queue *queue, struct list *list, uint32_t index)
{
	queue->node[index].next = NONE;
	queue->node[index].previous = list->last;
	*(list->last == NONE ? &list->first : &queue->node[list->last].next) = index;
	list->last = index;
}

static void unlink_node(struct queue *queue, struct list *list, uint32_t index)
{
	const struct node *node = &queue->node[index];

	*(node->previous == NONE ? &list->first : &queue->node[node->previous].next) = node->next;
	*(node->next == NONE ? &list->last : &queue->node[node->next].previous) = node->previous;
}

static bool take(struct queue *queue, unsigned int server)
{
	unsigned int now = __atomic_load_n(&queue->in_flight[server], __ATOMIC_SEQ_CST);

	while (now < queue->in_flight_max) {
		if (__atomic_compare_exchange_n(&queue->in_flight[server], &now, now + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			return true;
	}
	return false;
}

/*
 * A place at a server for who waits longest. Returns the server; -1 when none could be asked, -EAGAIN when there is no place. One that
 * is not the active one gets none before it is, but of a group any will do.
 */
static int take_somewhere(struct worker *worker, struct queue *queue)
{
	int server = server_choose(worker);

	if (server < 0 || take(queue, (unsigned int)server))
		return server;
	for (unsigned int i = 0; worker->options->mode == TAILOR_PROXY_BALANCED && i < worker->options->servers; i++) {
		if (server_may_serve(worker, (int)i) && take(queue, i))
			return (int)i;
	}
	return -EAGAIN;
}

/* Hands places to those that wait longest, as long as there are any. */
static void hand_out(struct worker *worker, struct queue *queue)
{
	uint32_t woken = 0;
	uint64_t one = 1;

	pthread_mutex_lock(&queue->lock);
	while (queue->waiting.first != NONE) {
		uint32_t index = queue->waiting.first;
		struct node *node = &queue->node[index];
		int server = take_somewhere(worker, queue);

		if (server == -EAGAIN)
			break;
		unlink_node(queue, &queue->waiting, index);
		__atomic_fetch_sub(&queue->waiting_count, 1, __ATOMIC_SEQ_CST);
		node->granted = true;
		node->server = (int8_t)server;
		append(queue, &queue->granted[node->worker], index);
		__atomic_fetch_add(&queue->granted_count[node->worker], 1, __ATOMIC_RELEASE);
		if (node->worker != worker->index)
			woken |= 1u << node->worker;
	}
	pthread_mutex_unlock(&queue->lock);
	/* Its loop does nothing for such a write but turn once. A counter that is full is one that it has yet to read. */
	for (unsigned int i = 0; woken; i++, woken >>= 1) {
		if (woken & 1 && write(queue->wake_fd[i], &one, sizeof(one)) < 0)
			continue;
	}
}

bool queue_take_place(struct worker *worker, unsigned int server)
{
	return !worker->shared->queue || take(worker->shared->queue, server);
}

void queue_give_place(struct worker *worker, unsigned int server)
{
	struct queue *queue = worker->shared->queue;

	if (!queue)
		return;
	__atomic_fetch_sub(&queue->in_flight[server], 1, __ATOMIC_SEQ_CST);
	/* Who begins to wait counts itself before it looks at the places for the last time: one of the two sees the other. */
	if (__atomic_load_n(&queue->waiting_count, __ATOMIC_SEQ_CST) > 0)
		hand_out(worker, queue);
}

enum queue_verdict queue_enter(struct worker *worker, struct client *client, unsigned int server)
{
	struct queue *queue = worker->shared->queue;
	struct node *node;
	uint32_t index;

	if (!queue)
		return QUEUE_GO;
	if (__atomic_load_n(&queue->waiting_count, __ATOMIC_SEQ_CST) == 0 && take(queue, server))
		return QUEUE_GO;
	pthread_mutex_lock(&queue->lock);
	index = queue->free;
	if (index != NONE) {
		node = &queue->node[index];
		queue->free = node->next;
		node->client = client->connection.slot;
		node->worker = (uint8_t)worker->index;
		node->granted = false;
		append(queue, &queue->waiting, index);
		__atomic_fetch_add(&queue->waiting_count, 1, __ATOMIC_SEQ_CST);
	}
	pthread_mutex_unlock(&queue->lock);
	if (index == NONE)
		return QUEUE_FULL;
	client->exchange.queued = index + 1;
	/* A place may have become free since. */
	hand_out(worker, queue);
	return QUEUE_WAIT;
}

/* Takes the node off its list. Returns the server of the place that comes with it, or -1. */
static int release(struct worker *worker, struct client *client)
{
	struct queue *queue = worker->shared->queue;
	uint32_t index = client->exchange.queued - 1;
	struct node *node = &queue->node[index];
	int server = -1;

	pthread_mutex_lock(&queue->lock);
	assert(node->worker == worker->index && node->client == client->connection.slot);
	if (node->granted) {
		server = node->server;
		unlink_node(queue, &queue->granted[worker->index], index);
		__atomic_fetch_sub(&queue->granted_count[worker->index], 1, __ATOMIC_RELAXED);
	} else {
		unlink_node(queue, &queue->waiting, index);
		__atomic_fetch_sub(&queue->waiting_count, 1, __ATOMIC_SEQ_CST);
	}
	node->next = queue->free;
	queue->free = index;
	pthread_mutex_unlock(&queue->lock);
	client->exchange.queued = 0;
	return server;
}

void queue_leave(struct worker *worker, struct client *client)
{
	int server;

	if (!client->exchange.queued)
		return;
	server = release(worker, client);
	if (server >= 0)
		queue_give_place(worker, (unsigned int)server);
}

void queue_run(struct worker *worker)
{
	struct queue *queue = worker->shared->queue;

	if (!queue)
		return;
	if (__atomic_load_n(&queue->waiting_count, __ATOMIC_RELAXED) > 0)
		hand_out(worker, queue);
	while (__atomic_load_n(&queue->granted_count[worker->index], __ATOMIC_ACQUIRE) > 0) {
		struct client *client;

		pthread_mutex_lock(&queue->lock);
		client = &worker->clients[queue->node[queue->granted[worker->index].first].client];
		pthread_mutex_unlock(&queue->lock);
		exchange_granted(worker, client, release(worker, client));
	}
}
