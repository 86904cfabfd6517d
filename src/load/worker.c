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
#define LINGER_NS TAILOR_NS_PER_S
#define CATCH_UP_BOUNDED_NS TAILOR_NS_PER_S
#define CATCH_UP_NONE_NS (10 * TAILOR_NS_PER_MS)

static uint64_t late_max(enum tailor_load_catch_up catch_up)
{
	switch (catch_up) {
	case TAILOR_LOAD_CATCH_UP_FULL: break;
	case TAILOR_LOAD_CATCH_UP_BOUNDED: return CATCH_UP_BOUNDED_NS;
	case TAILOR_LOAD_CATCH_UP_NONE: return CATCH_UP_NONE_NS;
	}
	return 1000 * 3600 * TAILOR_NS_PER_S;
}

int load_worker_open(struct worker *worker, const struct tailor_load_options *options, unsigned int index)
{
	unsigned int connections = options->connections / options->threads;

	worker->options = options;
	worker->late_max_ns = late_max(options->catch_up);
	if (index < options->connections % options->threads)
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

static bool is_closed_loop(const struct worker *worker)
{
	return worker->options->arrival == TAILOR_LOAD_CLOSED;
}

static bool is_measured(const struct worker *worker, uint64_t due_ns)
{
	return due_ns >= worker->schedule.measure_ns;
}

/* Whether the body is the one that came first; that one counts as the same. */
static bool is_same_body(const struct worker *worker, const struct connection *connection)
{
	_Atomic uint64_t *first = &worker->first_bodies[connection->request - worker->options->plan->requests];
	uint64_t expected = 0;

	return atomic_compare_exchange_strong(first, &expected, connection->hash) || expected == connection->hash;
}

void load_worker_answered(struct worker *worker, const struct connection *connection, uint64_t now_ns)
{
	struct tailor_load_result *result = worker->current;
	struct tailor_load_slow slow = {
	        .response_ns = now_ns > connection->due_ns ? now_ns - connection->due_ns : 0,
	        .path = connection->request->path,
	        .status = connection->status,
	};
	bool good = connection->status <= TAILOR_LOAD_STATUS_MAX &&
	            worker->options->expect[connection->status - TAILOR_LOAD_STATUS_MIN];
	bool different = good && connection->compared && !is_same_body(worker, connection);

	if (!is_measured(worker, connection->due_ns))
		return;
	result->good += good && !different;
	result->bad += !good || different;
	result->different += different;
	result->in_time += good && !different && slow.response_ns <= worker->options->in_time_ns;
	result->body_bytes += connection->body_bytes;
	tailor_histogram_record(result->response, slow.response_ns);
	tailor_histogram_record(result->service, now_ns > connection->sent_ns ? now_ns - connection->sent_ns : 0);
	memcpy(slow.request_id, connection->request_id, sizeof(slow.request_id));
	tailor_load_result_add_slow(result, &slow);
}

void load_worker_sent(struct worker *worker, const struct connection *connection)
{
	if (is_measured(worker, connection->due_ns))
		tailor_histogram_record(worker->current->sent, connection->sent_ns > connection->due_ns
		                                                       ? connection->sent_ns - connection->due_ns
		                                                       : 0);
}

void load_worker_failed(struct worker *worker, uint64_t due_ns, enum tailor_load_failure failure)
{
	if (is_measured(worker, due_ns))
		worker->current->failed[failure]++;
}

static bool has_queue(const struct worker *worker)
{
	return worker->head.number < worker->next.number;
}

static void fail_first(struct worker *worker, enum tailor_load_failure failure)
{
	load_worker_failed(worker, worker->head.due_ns, failure);
	load_cursor_next(&worker->schedule, &worker->head);
}

static void fail_queue(struct worker *worker, enum tailor_load_failure failure)
{
	while (has_queue(worker))
		fail_first(worker, failure);
}

void load_worker_connect_failed(struct worker *worker, int error, uint64_t now_ns)
{
	worker->current->connect_error = -error;
	if (has_queue(worker)) {
		fail_first(worker, TAILOR_LOAD_NO_CONNECTION);
	} else if (is_closed_loop(worker) && is_measured(worker, now_ns)) {
		worker->current->wanted++;
		load_worker_failed(worker, now_ns, TAILOR_LOAD_NO_CONNECTION);
	}
	if (now_ns < worker->retry_at_ns)
		return; /* one of several that were under way together */
	worker->retry_wait_ns = worker->retry_wait_ns ? worker->retry_wait_ns * 2 : RETRY_FIRST_NS;
	if (worker->retry_wait_ns > RETRY_MAX_NS)
		worker->retry_wait_ns = RETRY_MAX_NS;
	worker->retry_at_ns = now_ns + worker->retry_wait_ns;
}

uint64_t load_worker_interval(const struct tailor_load_options *options)
{
	return options->on_tick && options->tick_ns && options->tick_ns < options->interval_ns ? options->tick_ns : options->interval_ns;
}

/* Hands the interval's result over, or goes on with it when the main thread has not yet taken the one before. */
static void cut_interval(struct worker *worker)
{
	struct tailor_load_result *spare;

	worker->current->until_ns = worker->interval_end_ns;
	worker->interval_end_ns += load_worker_interval(worker->options);
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

static void begin_measuring(struct worker *worker, uint64_t now_ns)
{
	if (worker->measure_begin_ns || now_ns < worker->schedule.measure_ns)
		return;
	worker->measure_begin_ns = now_ns;
	worker->measure_begin_cpu_ns = thread_cpu_ns();
}

static void take_due(struct worker *worker, uint64_t now_ns)
{
	begin_measuring(worker, now_ns);
	while (worker->next.due_ns <= now_ns) {
		uint64_t due_ns = worker->next.due_ns;

		while (due_ns >= worker->interval_end_ns)
			cut_interval(worker);
		if (is_measured(worker, due_ns)) {
			worker->current->wanted++;
			tailor_histogram_record(worker->current->late, now_ns - due_ns);
		}
		load_cursor_next(&worker->schedule, &worker->next);
	}
	while (now_ns >= worker->interval_end_ns)
		cut_interval(worker);
}

/* The lists are in the order of their deadlines: requests are sent in the order in which they are due. */
static void expire(struct worker *worker, uint64_t now_ns)
{
	uint64_t timeout_ns = worker->options->timeout_ns;
	struct connection *connection;

	while (has_queue(worker) && worker->head.due_ns + timeout_ns <= now_ns)
		fail_first(worker, TAILOR_LOAD_TIMEOUT);
	while (has_queue(worker) && worker->head.due_ns + worker->late_max_ns < now_ns) {
		worker->current->dropped += is_measured(worker, worker->head.due_ns);
		load_cursor_next(&worker->schedule, &worker->head);
	}
	while ((connection = worker->lists[CONNECTION_BUSY].first) && connection->due_ns + timeout_ns <= now_ns)
		load_connection_fail(worker, connection, TAILOR_LOAD_TIMEOUT);
	while ((connection = worker->lists[CONNECTION_CONNECTING].first) && connection->since_ns + timeout_ns <= now_ns)
		load_connection_close(worker, connection);
	while ((connection = worker->lists[CONNECTION_LINGERING].first) && connection->since_ns + LINGER_NS <= now_ns)
		load_connection_close(worker, connection);
}

/* How many more connections could be used now. */
static uint64_t missing_connections(const struct worker *worker)
{
	uint64_t connecting = worker->lists[CONNECTION_CONNECTING].count;
	uint64_t waiting = worker->next.number - worker->head.number;

	if (is_closed_loop(worker))
		return worker->stopping ? 0 : worker->lists[CONNECTION_FREE].count;
	return waiting > connecting ? waiting - connecting : 0;
}

static void dispatch(struct worker *worker, uint64_t now_ns)
{
	const struct connection_list *lists = worker->lists;

	/* The one used last is the least likely to have been closed by the server in the meantime. */
	while (has_queue(worker) && lists[CONNECTION_IDLE].last) {
		load_connection_send(worker, lists[CONNECTION_IDLE].last, worker->head.number, worker->head.due_ns);
		load_cursor_next(&worker->schedule, &worker->head);
	}
	for (uint64_t missing = missing_connections(worker); missing > 0 && now_ns >= worker->retry_at_ns; missing--) {
		if (!lists[CONNECTION_FREE].first && lists[CONNECTION_LINGERING].first)
			load_connection_close(worker, lists[CONNECTION_LINGERING].first);
		if (!lists[CONNECTION_FREE].first)
			break;
		load_connection_open(worker, now_ns);
	}
	/* Nobody is there: a request fails when it is due, and a new attempt is made now and then. */
	if (lists[CONNECTION_BUSY].count + lists[CONNECTION_CONNECTING].count + lists[CONNECTION_IDLE].count == 0 &&
	    now_ns < worker->retry_at_ns)
		fail_queue(worker, TAILOR_LOAD_NO_CONNECTION);
}

/* A request is due as soon as a connection has nothing else to do. */
static void dispatch_closed_loop(struct worker *worker, uint64_t now_ns)
{
	const struct connection_list *idle = &worker->lists[CONNECTION_IDLE];

	if (now_ns >= worker->schedule.end_ns)
		worker->stopping = true;
	while (idle->last && !worker->stopping && now_ns >= worker->schedule.start_ns) {
		worker->current->wanted += is_measured(worker, now_ns);
		load_connection_send(worker, idle->last, worker->sent++, now_ns);
	}
	dispatch(worker, now_ns);
}

static void sooner(uint64_t *deadline_ns, uint64_t other_ns)
{
	if (other_ns < *deadline_ns)
		*deadline_ns = other_ns;
}

/* While answers are outstanding, one of them is likely to wake the thread up before the slack is used. */
static uint64_t send_slack(const struct worker *worker)
{
	return worker->lists[CONNECTION_BUSY].count ? worker->options->slack_ns : worker->options->slack_ns / 5;
}

static uint64_t next_deadline(const struct worker *worker, uint64_t now_ns)
{
	const struct connection *busy = worker->lists[CONNECTION_BUSY].first;
	const struct connection *connecting = worker->lists[CONNECTION_CONNECTING].first;
	const struct connection *lingering = worker->lists[CONNECTION_LINGERING].first;
	uint64_t deadline_ns = worker->interval_end_ns, timeout_ns = worker->options->timeout_ns;

	if (worker->next.due_ns != LOAD_NEVER)
		sooner(&deadline_ns, worker->next.due_ns + send_slack(worker));
	if (has_queue(worker)) {
		sooner(&deadline_ns, worker->head.due_ns + timeout_ns);
		sooner(&deadline_ns, worker->head.due_ns + worker->late_max_ns + 1);
	}
	if (missing_connections(worker) > 0 && worker->lists[CONNECTION_FREE].first)
		sooner(&deadline_ns, worker->retry_at_ns);
	if (is_closed_loop(worker) && !worker->stopping)
		sooner(&deadline_ns, now_ns < worker->schedule.start_ns ? worker->schedule.start_ns : worker->schedule.end_ns);
	if (busy)
		sooner(&deadline_ns, busy->due_ns + timeout_ns);
	if (connecting)
		sooner(&deadline_ns, connecting->since_ns + timeout_ns);
	if (lingering)
		sooner(&deadline_ns, lingering->since_ns + LINGER_NS);
	if (worker->give_up_ns)
		sooner(&deadline_ns, worker->give_up_ns);
	return deadline_ns;
}

/* Nothing becomes due any more; what is under way gets a second. */
static void stop(struct worker *worker, uint64_t now_ns)
{
	worker->stopping = true;
	worker->next.due_ns = LOAD_NEVER;
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
	bool due = is_closed_loop(worker) ? !worker->stopping : worker->next.due_ns != LOAD_NEVER;

	return !due && !has_queue(worker) && worker->lists[CONNECTION_BUSY].count == 0;
}

/*
 * With slack, the ring's own timer stays set while answers wake the thread up, and rings once for all of them: setting a
 * timer at each wait costs a virtual machine about as much as a request.
 */
static int wait(struct worker *worker, uint64_t now_ns)
{
	uint64_t deadline_ns = next_deadline(worker, now_ns);

	if (worker->options->slack_ns == 0)
		return tailor_ring_wait(worker->ring, deadline_ns);
	if (worker->timer_ns == 0) {
		worker->timer_ns = deadline_ns;
		tailor_ring_timeout(worker->ring, &worker->timer, deadline_ns, TAILOR_TOKEN(0, 0, OPERATION_TIMER));
	}
	return tailor_ring_wait(worker->ring, worker->timer_ns <= deadline_ns ? UINT64_MAX : deadline_ns);
}

static int serve(struct worker *worker)
{
	for (;;) {
		struct tailor_completion completion;
		uint64_t now_ns = tailor_clock_ns();
		int ret;

		take_due(worker, now_ns);
		expire(worker, now_ns);
		if (is_closed_loop(worker))
			dispatch_closed_loop(worker, now_ns);
		else
			dispatch(worker, now_ns);
		if (worker->give_up_ns && now_ns >= worker->give_up_ns)
			give_up(worker);
		if (is_finished(worker))
			return 0;
		ret = wait(worker, now_ns);
		if (ret < 0)
			return ret;
		now_ns = tailor_clock_ns();
		while (tailor_ring_next(worker->ring, &completion)) {
			if (TAILOR_TOKEN_OPERATION(completion.token) == OPERATION_STOP)
				stop(worker, now_ns);
			else if (TAILOR_TOKEN_OPERATION(completion.token) == OPERATION_TIMER)
				worker->timer_ns = 0;
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
	worker->next.due_ns = worker->head.due_ns = LOAD_NEVER;
	if (!is_closed_loop(worker)) {
		load_cursor_begin(&worker->schedule, &worker->next);
		worker->head = worker->next;
	}
	worker->error = tailor_ring_open(&ring_options, &worker->ring);
	if (worker->error == 0) {
		tailor_ring_read(worker->ring, worker->stop_fd, &worker->stop_value, sizeof(worker->stop_value),
		                 TAILOR_TOKEN(0, 0, OPERATION_STOP));
		worker->error = serve(worker);
	}
	elapsed_ns = worker->measure_begin_ns ? tailor_clock_ns() - worker->measure_begin_ns : 0;
	if (elapsed_ns > 0) {
		worker->cpu_ns = thread_cpu_ns() - worker->measure_begin_cpu_ns;
		worker->cpu_share = (double)worker->cpu_ns / (double)elapsed_ns;
	}
	/* Memory of the connections may be freed only after this. */
	tailor_ring_close(worker->ring);
	atomic_store_explicit(&worker->done, true, memory_order_release);
	return NULL;
}
