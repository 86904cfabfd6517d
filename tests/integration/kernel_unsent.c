/* SPDX-License-Identifier: Apache-2.0 */
/* When what was written leaves, and what keeps it back: Nagle, cork, the client's window, congestion, a lost segment. */
#include "tests/integration/kernel_connection.h"

#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

static struct tailor_kernel *kernel;

/* As one that has carried requests for a while. */
static void open_with_late_acknowledgements(struct connection *connection, uint64_t request)
{
	int off = 0;

	connection_open(connection, kernel, "127.0.0.1:0", "127.0.0.1:0");
	set_request(connection, request);
	exchange(connection, 10, 20);
	assert_int_equal(setsockopt(connection->fd, IPPROTO_TCP, TCP_QUICKACK, &off, sizeof(off)), 0);
}

/* Head and body in two writes: Nagle holds the second until the first is acknowledged, and the client delays that. */
static void a_response_held_by_nagle_and_a_delayed_acknowledgement_leaves_tens_of_ms_after_its_write(void **state)
{
	const struct tailor_event *first, *second, *event;
	struct connection connection;
	struct recording recording;
	char buffer[201];
	size_t index = 0;

	(void)state;
	open_with_late_acknowledgements(&connection, 61);
	set_request(&connection, 62);
	exchange(&connection, 10, 0);
	recording_begin(&recording, kernel);
	assert_int_equal(child_ask(&connection.server, DO_WRITE_TWICE | 100), 201);
	usleep(300000);
	recording_end(&recording);
	assert_int_equal(recv(connection.fd, buffer, sizeof(buffer), MSG_WAITALL), sizeof(buffer));
	first = recording_next(&recording, &index, TAILOR_EVENT_SYSCALL_WRITE, connection.server.pid);
	second = recording_next(&recording, &index, TAILOR_EVENT_SYSCALL_WRITE, connection.server.pid);
	assert_non_null(first);
	assert_non_null(second);
	assert_int_equal(second->arg[0], (uint32_t)(first->arg[0] + 100));
	assert_int_equal(first->arg[2], 0);
	assert_int_equal(second->arg[2], TAILOR_UNSENT(TAILOR_UNSENT_NAGLE, 101));
	index = 0;
	while ((event = recording_next(&recording, &index, TAILOR_EVENT_TCP_TRANSMIT, 0))) {
		if (event->arg[0] == first->arg[0])
			assert_true(event->time_ns < first->time_ns);
		if (event->arg[0] == second->arg[0])
			break;
	}
	assert_non_null(event);
	assert_int_equal(event->arg[1], 101);
	assert_int_equal(event->request, 62);
	assert_in_range(event->time_ns - second->time_ns, 20 * TAILOR_NS_PER_MS, 290 * TAILOR_NS_PER_MS);
	print_message("             left %.1f ms after it was written\n",
	              (double)(event->time_ns - second->time_ns) / 1e6);
	recording_free(&recording);
	connection_close(&connection);
}

/* What the server's last of one or two writes left unsent, where the client has received nothing yet. */
static uint64_t unsent_after(const struct connection *connection, int64_t order)
{
	const struct tailor_event *event, *last = NULL;
	struct recording recording;
	uint64_t unsent;
	size_t index = 0;

	recording_begin(&recording, kernel);
	assert_true(child_ask(&connection->server, order) > 0);
	recording_end(&recording);
	while ((event = recording_next(&recording, &index, TAILOR_EVENT_SYSCALL_WRITE, connection->server.pid)))
		last = event;
	assert_non_null(last);
	unsent = last->arg[2];
	recording_free(&recording);
	return unsent;
}

static void receive_all(const struct connection *connection, size_t bytes)
{
	char buffer[DO_BYTES];

	assert_int_equal(recv(connection->fd, buffer, bytes, MSG_WAITALL), bytes);
}

static void what_cork_and_more_keep_back_is_said_and_nothing_is_with_nodelay(void **state)
{
	struct connection connection;

	(void)state;
	open_with_late_acknowledgements(&connection, 81);
	assert_int_equal(child_ask(&connection.server, DO_CORK | 1), 0);
	assert_int_equal(unsent_after(&connection, DO_WRITE | 100), TAILOR_UNSENT(TAILOR_UNSENT_CORK, 100));
	assert_int_equal(unsent_after(&connection, DO_WRITE | 50), TAILOR_UNSENT(TAILOR_UNSENT_CORK, 150));
	assert_int_equal(child_ask(&connection.server, DO_CORK), 0);
	receive_all(&connection, 150);
	usleep(100000); /* all is acknowledged */
	assert_int_equal(unsent_after(&connection, DO_WRITE_MORE | 100), TAILOR_UNSENT(TAILOR_UNSENT_CORK, 100));
	assert_int_equal(child_ask(&connection.server, DO_NODELAY | 1), 0);
	receive_all(&connection, 100);
	assert_int_equal(unsent_after(&connection, DO_WRITE_TWICE | 100), 0);
	receive_all(&connection, 201);
	connection_close(&connection);
}

static void a_small_window_of_the_client_is_said_to_keep_bytes_back(void **state)
{
	struct connection connection;
	uint64_t unsent;
	int small = 2304;

	(void)state;
	connection_open(&connection, kernel, "127.0.0.1:0", "127.0.0.1:0");
	assert_int_equal(setsockopt(connection.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	set_request(&connection, 91);
	exchange(&connection, 10, 20);
	/* The first may fill a window that the client has offered before. */
	(void)unsent_after(&connection, DO_WRITE | 40000);
	(void)unsent_after(&connection, DO_WRITE | 40000);
	unsent = unsent_after(&connection, DO_WRITE | 40000);
	assert_int_equal(TAILOR_UNSENT_WHY(unsent), TAILOR_UNSENT_WINDOW);
	assert_in_range(TAILOR_UNSENT_BYTES(unsent), 40000, 120000);
	receive_all(&connection, 40000);
	connection_close(&connection);
}

/* No acknowledgement comes, as the client's socket drops all; its window is open. */
static void a_full_congestion_window_is_said_to_keep_bytes_back(void **state)
{
	struct sock_filter drop[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
	const struct sock_fprog program = {.len = 1, .filter = drop};
	struct connection connection;
	uint64_t unsent;

	(void)state;
	connection_open_with(&connection, kernel, "127.0.0.1:0", "127.0.0.1:0", 536);
	set_request(&connection, 101);
	exchange(&connection, 10, 0);
	assert_int_equal(setsockopt(connection.fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)), 0);
	unsent = unsent_after(&connection, DO_WRITE | 30000);
	assert_int_equal(TAILOR_UNSENT_WHY(unsent), TAILOR_UNSENT_CONGESTION);
	assert_in_range(TAILOR_UNSENT_BYTES(unsent), 10000, 29464);
	connection_close(&connection);
}

/* A filter on the client's socket drops what arrives, as a lossy network would. */
static void a_segment_that_is_lost_shows_as_sent_again_with_the_same_bytes(void **state)
{
	struct sock_filter drop[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
	const struct sock_fprog program = {.len = 1, .filter = drop};
	const struct tailor_event *written, *again;
	struct connection connection;
	struct recording recording;
	char buffer[100];
	int unused = 0;

	(void)state;
	connection_open(&connection, kernel, "127.0.0.1:0", "127.0.0.1:0");
	set_request(&connection, 71);
	exchange(&connection, 10, 0);
	assert_int_equal(setsockopt(connection.fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)), 0);
	recording_begin(&recording, kernel);
	assert_int_equal(child_ask(&connection.server, DO_WRITE | (int64_t)sizeof(buffer)), sizeof(buffer));
	usleep(50000);
	assert_int_equal(setsockopt(connection.fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof(unused)), 0);
	assert_int_equal(recv(connection.fd, buffer, sizeof(buffer), MSG_WAITALL), sizeof(buffer));
	recording_end(&recording);
	written = find(&recording, TAILOR_EVENT_SYSCALL_WRITE, server_ports(&connection), 71);
	again = find(&recording, TAILOR_EVENT_TCP_RETRANSMIT, server_ports(&connection), 71);
	assert_non_null(written);
	assert_non_null(again);
	assert_int_equal(again->arg[0], written->arg[0]);
	assert_int_equal(again->arg[1], sizeof(buffer));
	assert_in_range(again->time_ns, written->time_ns, tailor_clock_ns());
	recording_free(&recording);
	connection_close(&connection);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_response_held_by_nagle_and_a_delayed_acknowledgement_leaves_tens_of_ms_after_its_write),
		cmocka_unit_test(what_cork_and_more_keep_back_is_said_and_nothing_is_with_nodelay),
		cmocka_unit_test(a_small_window_of_the_client_is_said_to_keep_bytes_back),
		cmocka_unit_test(a_full_congestion_window_is_said_to_keep_bytes_back),
		cmocka_unit_test(a_segment_that_is_lost_shows_as_sent_again_with_the_same_bytes),
	};
	int failed;

	kernel = connection_kernel();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	tailor_kernel_close(kernel);
	return failed;
}
