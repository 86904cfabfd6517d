/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/integration/kernel_harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <tailor/late.h>
#include <tailor/timeline.h>
#include <unistd.h>

#include "base/clock.h"
#include "ring/ring.h"

#define CONNECTIONS 3
#define MULTISHOT 1 /* this one has a receive that goes on */

static struct tailor_kernel *kernel;

/* A worker as the proxy has them: a child that waits for bytes of some connections with io_uring and reads them. */
struct worker {
	struct child child;
	int fds[CONNECTIONS];
	uint16_t ports[CONNECTIONS]; /* ours */
	uint16_t port;               /* the worker's */
};

static void receive(struct tailor_ring *ring, int fd, char *buffer, unsigned int i)
{
	if (i == MULTISHOT)
		tailor_ring_receive_multishot(ring, fd, TAILOR_TOKEN(i, 0, 0));
	else
		tailor_ring_receive(ring, fd, buffer, 64, TAILOR_TOKEN(i, 0, 0));
}

static void work(int control, void *context)
{
	struct tailor_ring_options options = {.entries = 64, .buffers = 16, .buffer_bytes = 256};
	int *listener = context, fds[CONNECTIONS];
	static char buffers[CONNECTIONS][64];
	struct tailor_ring *ring;
	int error = tailor_ring_open(&options, &ring);

	control_tell(control, error);
	if (error)
		return;
	for (unsigned int i = 0; i < CONNECTIONS; i++) {
		fds[i] = accept(*listener, NULL, NULL);
		receive(ring, fds[i], buffers[i], i);
		(void)tailor_ring_wait(ring, 0);
	}
	control_tell(control, 0);
	for (;;) {
		struct tailor_completion completion;

		if (tailor_ring_wait(ring, UINT64_MAX) < 0)
			return;
		while (tailor_ring_next(ring, &completion)) {
			unsigned int i = TAILOR_TOKEN_SLOT(completion.token);

			if (completion.result <= 0)
				return;
			if (completion.flags & TAILOR_RING_BUFFER)
				tailor_ring_buffer_return(ring, completion.buffer);
			if (!(completion.flags & TAILOR_RING_MORE))
				receive(ring, fds[i], buffers[i], i);
		}
	}
}

static void worker_start(struct worker *worker)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
	assert_int_equal(listen(listener, CONNECTIONS), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	worker->port = ntohs(address.sin_port);
	worker->child = child_start("worker", work, &listener);
	if (child_hear(&worker->child) != 0) {
		print_message("             no io_uring here\n");
		skip();
	}
	for (int i = 0; i < CONNECTIONS; i++) {
		struct sockaddr_in own;

		worker->fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(connect(worker->fds[i], (struct sockaddr *)&address, sizeof(address)), 0);
		length = sizeof(own);
		assert_int_equal(getsockname(worker->fds[i], (struct sockaddr *)&own, &length), 0);
		worker->ports[i] = ntohs(own.sin_port);
	}
	close(listener);
	assert_int_equal(tailor_kernel_trace(kernel, worker->child.pid, TAILOR_TRACED_PROXY), 0);
	(void)child_hear(&worker->child);
	usleep(20000); /* it waits */
}

static void worker_stop(struct worker *worker)
{
	tailor_kernel_untrace(kernel, worker->child.pid);
	for (int i = 0; i < CONNECTIONS; i++)
		close(worker->fds[i]);
	child_stop(&worker->child);
}

static void say(const struct worker *worker, int connection)
{
	assert_int_equal(send(worker->fds[connection], "x", 1, MSG_NOSIGNAL), 1);
}

/* The arrival on that connection; NULL: none is told. */
static const struct tailor_event *arrival(const struct recording *recording, const struct worker *worker, int connection)
{
	const struct tailor_event *event;
	size_t index = 0;

	while ((event = recording_next(recording, &index, TAILOR_EVENT_ARRIVAL, 0))) {
		if (event->extra == TAILOR_PORTS(worker->port, worker->ports[connection]))
			return event;
	}
	return NULL;
}

static size_t count_arrivals(const struct recording *recording)
{
	size_t index = 0, count = 0;

	while (recording_next(recording, &index, TAILOR_EVENT_ARRIVAL, 0))
		count++;
	return count;
}

static void stop_and_wait(pid_t pid)
{
	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
	usleep(5000);
}

static void what_comes_while_the_proxy_is_stopped_is_told_by_its_connection_and_time(void **state)
{
	struct recording recording;
	struct worker worker;
	uint64_t sent_ns[CONNECTIONS];

	(void)state;
	worker_start(&worker);
	recording_begin(&recording, kernel);
	stop_and_wait(worker.child.pid);
	for (int i = 0; i < 2; i++) {
		sent_ns[i] = tailor_clock_ns();
		say(&worker, i);
		usleep(2000);
	}
	assert_int_equal(kill(worker.child.pid, SIGCONT), 0);
	usleep(20000);
	say(&worker, 2); /* in time */
	usleep(20000);
	recording_end(&recording);
	for (int i = 0; i < 2; i++) {
		const struct tailor_event *event = arrival(&recording, &worker, i);

		assert_non_null(event);
		assert_in_range(event->time_ns, sent_ns[i], sent_ns[i] + 100 * TAILOR_NS_PER_MS);
		assert_int_equal(event->pid, 0);
		assert_int_equal(event->arg[0] > 0 && event->arg[0] <= UINT32_MAX, 1);
	}
	assert_int_equal(count_arrivals(&recording), 2);
	recording_free(&recording);
	worker_stop(&worker);
}

/* More than the program asks one by one before it looks at who waits at the socket. */
#define MANY 6

static int shares_entry(const struct worker *workers, int count)
{
	for (int i = 0; i < count; i++) {
		if (TAILOR_LATE_ENTRY(workers[i].child.pid) == TAILOR_LATE_ENTRY(workers[count].child.pid))
			return 1;
	}
	return 0;
}

/* Of two workers that share an entry only the last one's lateness is known: on a busy machine their ids are that far apart now and then. */
static void worker_start_apart(struct worker *workers, int count)
{
	worker_start(&workers[count]);
	while (shares_entry(workers, count)) {
		worker_stop(&workers[count]);
		worker_start(&workers[count]);
	}
}

static void what_comes_for_one_of_many_workers_is_told(void **state)
{
	struct recording recording;
	struct worker workers[MANY];

	(void)state;
	for (int i = 0; i < MANY; i++) {
		worker_start_apart(workers, i);
		say(&workers[i], 0);
		usleep(10000);
	}
	stop_and_wait(workers[MANY - 1].child.pid);
	recording_begin(&recording, kernel);
	for (int i = 0; i < MANY; i++)
		say(&workers[i], 2);
	recording_end(&recording);
	assert_non_null(arrival(&recording, &workers[MANY - 1], 2));
	assert_int_equal(count_arrivals(&recording), 1);
	recording_free(&recording);
	assert_int_equal(kill(workers[MANY - 1].child.pid, SIGCONT), 0);
	for (int i = 0; i < MANY; i++)
		worker_stop(&workers[i]);
}

static void ordinary_traffic_and_that_of_others_is_not_told(void **state)
{
	struct recording recording;
	struct worker worker, other;

	(void)state;
	worker_start(&worker);
	worker_start(&other);
	tailor_kernel_untrace(kernel, other.child.pid);
	stop_and_wait(worker.child.pid);
	recording_begin(&recording, kernel);
	for (int i = 0; i < 100; i++) {
		say(&other, i % CONNECTIONS);
		usleep(100);
	}
	recording_end(&recording);
	assert_int_equal(count_arrivals(&recording), 0);
	recording_free(&recording);
	assert_int_equal(kill(worker.child.pid, SIGCONT), 0);
	worker_stop(&worker);
	worker_stop(&other);
}

static void spin(int control, void *context)
{
	(void)context;
	control_tell(control, 0);
	for (;;)
		;
}

/* A worker that gets its CPU only when nobody else wants it: what wakes it is in time, what comes after that is not. */
static void what_comes_while_the_proxy_waits_for_a_cpu_is_told(void **state)
{
	struct sched_param none = {0};
	struct child spinner = child_start("spinner", spin, NULL);
	struct worker worker;
	int found = 0;

	(void)state;
	(void)child_hear(&spinner);
	worker_start(&worker);
	pin(worker.child.pid, 0);
	pin(spinner.pid, 0);
	assert_int_equal(sched_setscheduler(worker.child.pid, SCHED_IDLE, &none), 0);
	for (int i = 0; i < 100 && !found; i++) {
		struct recording recording;

		usleep(30000);
		recording_begin(&recording, kernel);
		say(&worker, 0);
		usleep(1500);
		say(&worker, 1);
		usleep(1000);
		say(&worker, 2);
		recording_end(&recording);
		assert_true(!arrival(&recording, &worker, 0) || i > 0);
		found = arrival(&recording, &worker, 1) || arrival(&recording, &worker, 2);
		recording_free(&recording);
	}
	assert_true(found);
	child_stop(&spinner);
	worker_stop(&worker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_comes_while_the_proxy_is_stopped_is_told_by_its_connection_and_time),
		cmocka_unit_test(what_comes_for_one_of_many_workers_is_told),
		cmocka_unit_test(ordinary_traffic_and_that_of_others_is_not_told),
		cmocka_unit_test(what_comes_while_the_proxy_waits_for_a_cpu_is_told),
	};
	int failed;

	kernel = harness_open(16384);
	if (tailor_kernel_missing(kernel) & TAILOR_MISSING_ARRIVAL) {
		fprintf(stderr, "skipped: this kernel has no sk_data_ready tracepoint (Linux 6.3)\n");
		tailor_kernel_close(kernel);
		return 77;
	}
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	tailor_kernel_close(kernel);
	return failed;
}
