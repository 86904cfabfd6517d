/* SPDX-License-Identifier: Apache-2.0 */
#include "load/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"

#define RETRY_FIRST_NS (10 * TAILOR_NS_PER_MS)
#define RETRY_MAX_NS (100 * TAILOR_NS_PER_MS)

int load_worker_open(struct worker *worker)
{
	const struct tailor_load_options *options = worker->options;
	unsigned int connections = options->connections / options->threads;

	if (worker->index < options->connections % options->threads)
		connections++;
	worker->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (worker->stop_fd < 0)
		return -errno;
	for (int i = 0; i < 2; i++)
		if (tailor_load_result_init(&worker->results[i]) < 0)
			return -ENOMEM;
	worker->current = &worker->results[0];
	atomic_store(&worker->spare, &worker->results[1]);
	worker->connections = calloc(connections, sizeof(*worker->connections));
	worker->buffers = calloc(connections, LOAD_BUFFER_BYTES);
	if (!worker->connections || !worker->buffers)
		return -ENOMEM;
	for (unsigned int i = connections; i-- > 0;) {
		worker->connections[i].fd = -1;
		worker->connections[i].buffer = worker->buffers + (size_t)i * LOAD_BUFFER_BYTES;
		load_connection_list_append(&worker->lists[CONNECTION_FREE], &worker->connections[i]);
	}
	return 0;
}

void load_worker_close(struct worker *worker)
{
	unsigned int connections = 0;

	for (int state = 0; state < CONNECTION_STATES; state++)
		connections += worker->lists[state].count;
	for (unsigned int i = 0; i < connections; i++)
		if (worker->connections[i].fd >= 0)
			close(worker->connections[i].fd);
	free(worker->connections);
	free(worker->buffers);
	for (int i = 0; i < 2; i++)
		tailor_load_result_free(&worker->results[i]);
	if (worker->stop_fd >= 0)
		close(worker->stop_fd);
}

/* The request's number among those of all threads. */
static uint64_t global_number(const struct worker *worker, uint64_t number)
{
	return number * worker->options->threads + worker->index;
}

static uint64_t due_ns(const struct worker *worker, uint64_t number)
{
	return worker->start_ns + (uint64_t)((double)global_number(worker, number) * 1e9 / worker->options->rate);
}

static bool is_measured(const struct worker *worker, uint64_t number)
{
	return global_number(worker, number) >= worker->measured_from;
}

/* Depends on the request's number alone: the same requests in the same order with any number of threads. */
static const struct tailor_load_request *choose_request(const struct worker *worker, uint64_t number)
{
	const struct tailor_load_plan *plan = worker->options->plan;
	uint64_t mixed = global_number(worker, number);

	if (!worker->options->in_order) {
		mixed += worker->options->seed * UINT64_C(0x9e3779b97f4a7c15) + UINT64_C(0x9e3779b97f4a7c15);
		mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
		mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
		mixed ^= mixed >> 31;
	}
	return &plan->requests[mixed % plan->count];
}

void load_worker_answered(struct worker *worker, const struct connection *connection, uint64_t now_ns)
{
	struct tailor_load_result *result = worker->current;
	struct tailor_load_slow slow = {
	        .response_ns = now_ns > connection->due_ns ? now_ns - connection->due_ns : 0,
	        .path = connection->request->path,
	        .status = connection->status,
	};

	if (!is_measured(worker, connection->number))
		return;
	if (connection->status < 400)
		result->good++;
	else
		result->bad++;
	tailor_histogram_record(result->response, slow.response_ns);
	tailor_histogram_record(result->service, now_ns > connection->sent_ns ? now_ns - connection->sent_ns : 0);
	memcpy(slow.request_id, connection->request_id, sizeof(slow.request_id));
	tailor_load_result_add_slow(result, &slow);
}

void load_worker_failed(struct worker *worker, uint64_t number, enum tailor_load_failure failure)
{
	if (is_measured(worker, number))
		worker->current->failed[failure]++;
}

static bool has_queue(const struct worker *worker)
{
	return worker->queue_head < worker->due_next;
}

static void fail_queue(struct worker *worker, enum tailor_load_failure failure)
{
	while (has_queue(worker))
		load_worker_failed(worker, worker->queue_head++, failure);
}

void load_worker_connect_failed(struct worker *worker, int error, uint64_t now_ns)
{
	worker->current->connect_error = -error;
	if (has_queue(worker))
		load_worker_failed(worker, worker->queue_head++, TAILOR_LOAD_NO_CONNECTION);
	if (now_ns < worker->retry_at_ns)
		return; /* one of several that were under way together */
	worker->retry_wait_ns = worker->retry_wait_ns ? worker->retry_wait_ns * 2 : RETRY_FIRST_NS;
	if (worker->retry_wait_ns > RETRY_MAX_NS)
		worker->retry_wait_ns = RETRY_MAX_NS;
	worker->retry_at_ns = now_ns + worker->retry_wait_ns;
}

/* Hands the interval's result over, or goes on with it when the main thread has not yet taken the one before. */
static void cut_interval(struct worker *worker)
{
	struct tailor_load_result *spare;

	worker->current->until_ns = worker->interval_end_ns;
	worker->interval_end_ns += worker->options->interval_ns;
	if (atomic_load_explicit(&worker->full, memory_order_acquire))
		return;
	spare = atomic_exchange_explicit(&worker->spare, NULL, memory_order_acquire);
	if (!spare)
		return;
	atomic_store_explicit(&worker->full, worker->current, memory_order_release);
	worker->current = spare;
}

static uint64_t thread_cpu_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * TAILOR_NS_PER_S + (uint64_t)used.tv_nsec;
}

static void take_due(struct worker *worker, uint64_t now_ns)
{
	while (worker->due_next < worker->count) {
		uint64_t due = due_ns(worker, worker->due_next);

		if (due > now_ns)
			break;
		while (due >= worker->interval_end_ns)
			cut_interval(worker);
		if (is_measured(worker, worker->due_next)) {
			if (worker->measure_begin_ns == 0) {
				worker->measure_begin_ns = now_ns;
				worker->measure_begin_cpu_ns = thread_cpu_ns();
			}
			worker->current->wanted++;
			tailor_histogram_record(worker->current->late, now_ns - due);
		}
		worker->due_next++;
	}
	while (now_ns >= worker->interval_end_ns)
		cut_interval(worker);
}

/* The lists are in the order of their deadlines: requests are sent in the order in which they are due. */
static void expire(struct worker *worker, uint64_t now_ns)
{
	uint64_t timeout_ns = worker->options->timeout_ns;
	struct connection *connection;

	while (has_queue(worker) && due_ns(worker, worker->queue_head) + timeout_ns <= now_ns)
		load_worker_failed(worker, worker->queue_head++, TAILOR_LOAD_TIMEOUT);
	while ((connection = worker->lists[CONNECTION_BUSY].first) && connection->due_ns + timeout_ns <= now_ns)
		load_connection_fail(worker, connection, TAILOR_LOAD_TIMEOUT);
	while ((connection = worker->lists[CONNECTION_CONNECTING].first) && connection->since_ns + timeout_ns <= now_ns)
		load_connection_close(worker, connection);
}

static void dispatch(struct worker *worker, uint64_t now_ns)
{
	const struct connection_list *idle = &worker->lists[CONNECTION_IDLE], *busy = &worker->lists[CONNECTION_BUSY];
	const struct connection_list *connecting = &worker->lists[CONNECTION_CONNECTING];

	/* The one used last is the least likely to have been closed by the server in the meantime. */
	while (has_queue(worker) && idle->last) {
		uint64_t number = worker->queue_head++;

		load_connection_send(worker, idle->last, number, due_ns(worker, number), choose_request(worker, number));
	}
	while (worker->due_next - worker->queue_head > connecting->count && worker->lists[CONNECTION_FREE].first &&
	       now_ns >= worker->retry_at_ns)
		load_connection_open(worker, now_ns);
	/* Nobody is there: a request fails when it is due, and a new attempt is made now and then. */
	if (busy->count + connecting->count + idle->count == 0 && now_ns < worker->retry_at_ns)
		fail_queue(worker, TAILOR_LOAD_NO_CONNECTION);
}

static void sooner(uint64_t *deadline_ns, uint64_t other_ns)
{
	if (other_ns < *deadline_ns)
		*deadline_ns = other_ns;
}

static uint64_t next_deadline(const struct worker *worker)
{
	const struct connection *busy = worker->lists[CONNECTION_BUSY].first;
	const struct connection *connecting = worker->lists[CONNECTION_CONNECTING].first;
	uint64_t deadline_ns = worker->interval_end_ns, timeout_ns = worker->options->timeout_ns;

	if (worker->due_next < worker->count)
		sooner(&deadline_ns, due_ns(worker, worker->due_next));
	if (has_queue(worker)) {
		sooner(&deadline_ns, due_ns(worker, worker->queue_head) + timeout_ns);
		if (worker->due_next - worker->queue_head > worker->lists[CONNECTION_CONNECTING].count &&
		    worker->lists[CONNECTION_FREE].first)
			sooner(&deadline_ns, worker->retry_at_ns);
	}
	if (busy)
		sooner(&deadline_ns, busy->due_ns + timeout_ns);
	if (connecting)
		sooner(&deadline_ns, connecting->since_ns + timeout_ns);
	if (worker->stopping)
		sooner(&deadline_ns, worker->give_up_ns);
	return deadline_ns;
}

/* Nothing becomes due any more; what is under way gets a second. */
static void stop(struct worker *worker, uint64_t now_ns)
{
	worker->stopping = true;
	worker->count = worker->due_next;
	worker->give_up_ns = now_ns + TAILOR_NS_PER_S;
}

static void give_up(struct worker *worker)
{
	fail_queue(worker, TAILOR_LOAD_INTERRUPTED);
	while (worker->lists[CONNECTION_BUSY].first)
		load_connection_fail(worker, worker->lists[CONNECTION_BUSY].first, TAILOR_LOAD_INTERRUPTED);
}

static bool is_finished(const struct worker *worker)
{
	return worker->due_next == worker->count && !has_queue(worker) && worker->lists[CONNECTION_BUSY].count == 0;
}

static int serve(struct worker *worker)
{
	for (;;) {
		struct tailor_completion completion;
		uint64_t now_ns = tailor_clock_ns();
		int ret;

		take_due(worker, now_ns);
		expire(worker, now_ns);
		dispatch(worker, now_ns);
		if (worker->stopping && now_ns >= worker->give_up_ns)
			give_up(worker);
		if (is_finished(worker))
			return 0;
		ret = tailor_ring_wait(worker->ring, next_deadline(worker));
		if (ret < 0)
			return ret;
		now_ns = tailor_clock_ns();
		while (tailor_ring_next(worker->ring, &completion)) {
			if (TAILOR_TOKEN_OPERATION(completion.token) == OPERATION_STOP)
				stop(worker, now_ns);
			else
				load_connection_complete(worker, &completion, now_ns);
		}
	}
}

void *load_worker_run(void *argument)
{
	static const struct tailor_ring_options ring_options = {.entries = 1024};
	struct worker *worker = argument;
	uint64_t elapsed_ns;

	(void)prctl(PR_SET_NAME, "tailor-load");
	/* A wait ends when it is due, not up to 50 us later. */
	(void)prctl(PR_SET_TIMERSLACK, 1);
	worker->error = tailor_ring_open(&ring_options, &worker->ring);
	if (worker->error == 0) {
		tailor_ring_read(worker->ring, worker->stop_fd, &worker->stop_value, sizeof(worker->stop_value),
		                 TAILOR_TOKEN(0, 0, OPERATION_STOP));
		worker->error = serve(worker);
	}
	elapsed_ns = worker->measure_begin_ns ? tailor_clock_ns() - worker->measure_begin_ns : 0;
	if (elapsed_ns > 0)
		worker->cpu_share = (double)(thread_cpu_ns() - worker->measure_begin_cpu_ns) / (double)elapsed_ns;
	/* Memory of the connections may be freed only after this. */
	tailor_ring_close(worker->ring);
	atomic_store_explicit(&worker->done, true, memory_order_release);
	return NULL;
}
