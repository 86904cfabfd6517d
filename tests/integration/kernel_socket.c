/* SPDX-License-Identifier: Apache-2.0 */
/* Which events of sockets carry which request: the tag, and what is not joined by it. */
#include "tests/integration/kernel_connection.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

static struct tailor_kernel *kernel;

static size_t count_socket_events(const struct recording *recording)
{
	size_t count = 0;

	for (size_t i = 0; i < recording->count; i++)
		count += recording->events[i].kind >= TAILOR_EVENT_RECEIVE &&
		         recording->events[i].kind <= TAILOR_EVENT_TCP_RETRANSMIT;
	return count;
}

/* The request that the server's thread was bound to when it last went to sleep. */
static uint64_t bound_request(const struct connection *connection)
{
	const struct tailor_event *event, *last = NULL;
	struct recording recording;
	uint64_t request;
	size_t index = 0;

	recording_begin(&recording, kernel);
	child_ask(&connection->server, DO_NAP);
	recording_end(&recording);
	while ((event = recording_next(&recording, &index, TAILOR_EVENT_SWITCH_OUT, connection->server.pid)))
		last = event;
	assert_non_null(last);
	request = last->request;
	recording_free(&recording);
	return request;
}

static void assert_exchange_recorded(const struct connection *connection, uint64_t request, size_t bytes, size_t answer)
{
	const struct tailor_event *received, *written, *sent, *asked;
	struct recording recording;
	uint64_t begin_ns = tailor_clock_ns();

	set_request(connection, request);
	recording_begin(&recording, kernel);
	exchange(connection, bytes, answer);
	recording_end(&recording);
	assert_int_equal(recording.lost, 0);
	asked = find(&recording, TAILOR_EVENT_TCP_TRANSMIT, proxy_ports(connection), request);
	received = find(&recording, TAILOR_EVENT_RECEIVE, server_ports(connection), request);
	written = find(&recording, TAILOR_EVENT_SYSCALL_WRITE, server_ports(connection), request);
	sent = find(&recording, TAILOR_EVENT_TCP_TRANSMIT, server_ports(connection), request);
	assert_non_null(asked);
	assert_non_null(received);
	assert_non_null(written);
	assert_non_null(sent);

	assert_int_equal(received->pid, connection->server.pid);
	assert_int_equal(received->tid, connection->server.pid);
	assert_int_equal(received->arg[1], bytes);
	assert_int_equal(asked->arg[0], received->arg[0]); /* the same bytes, seen at both ends */
	assert_int_equal(asked->arg[1], bytes);
	assert_int_equal(written->pid, connection->server.pid);
	assert_int_equal(written->tid, connection->server.pid);
	assert_int_equal(written->arg[1], answer);
	assert_int_equal(written->arg[2], 0);
	assert_int_equal(sent->arg[0], written->arg[0]);
	assert_int_equal(sent->arg[1], answer);
	assert_in_range(asked->time_ns, begin_ns, received->time_ns);
	assert_in_range(received->time_ns, asked->time_ns, written->time_ns);
	assert_in_range(sent->time_ns, received->time_ns, written->time_ns); /* loopback sends within the write */
	assert_in_range(written->time_ns, sent->time_ns, tailor_clock_ns());
	/* A pure acknowledgement is no transmit: each byte shows once. */
	assert_int_equal(count_socket_events(&recording), 4);
	recording_free(&recording);
	assert_int_equal(bound_request(connection), request);
}

static void assert_nothing_recorded(const struct connection *connection)
{
	struct recording recording;

	recording_begin(&recording, kernel);
	exchange(connection, 10, 20);
	recording_end(&recording);
	assert_true(recording.count > 0); /* the server is traced all the same */
	assert_int_equal(recording.lost, 0);
	assert_int_equal(count_socket_events(&recording), 0);
	recording_free(&recording);
}

static void a_tagged_exchange_shows_its_receive_write_and_transmit_with_matching_bytes(void **state)
{
	struct connection connection;

	(void)state;
	connection_open(&connection, kernel, "127.0.0.1:0", "127.0.0.1:0");
	assert_exchange_recorded(&connection, 0x1234567890abcdef, 100, 300);
	assert_exchange_recorded(&connection, 2, 1, 1);
	assert_exchange_recorded(&connection, 3, 5000, 20000);
	connection_close(&connection);
}

static void ip6_and_ip4_on_a_dual_stack_listener_are_joined_too(void **state)
{
	struct connection connection;

	(void)state;
	connection_open(&connection, kernel, "[::1]:0", "[::1]:0");
	assert_exchange_recorded(&connection, 11, 100, 300);
	connection_close(&connection);
	connection_open(&connection, kernel, "[::]:0", "127.0.0.1:0");
	assert_exchange_recorded(&connection, 12, 100, 300);
	connection_close(&connection);
	connection_open(&connection, kernel, "0.0.0.0:0", "127.0.0.2:0");
	assert_exchange_recorded(&connection, 13, 100, 300);
	connection_close(&connection);
}

static void a_tag_that_names_another_server_or_no_request_joins_nothing(void **state)
{
	struct connection connection;

	(void)state;
	connection_open(&connection, kernel, "127.0.0.1:0", "127.0.0.1:0");
	set_request(&connection, 21);
	connection.tag->server_port++;
	assert_nothing_recorded(&connection);
	connection.tag->server_port = 0;
	assert_nothing_recorded(&connection);
	connection.tag->server_port = connection.server_port;
	connection.tag->address[15]++;
	assert_nothing_recorded(&connection);
	connection.tag->address[15]--;
	connection.tag->address[10] = 0;
	assert_nothing_recorded(&connection);
	connection.tag->address[10] = 0xff;
	set_request(&connection, 0);
	assert_nothing_recorded(&connection);
	assert_int_equal(bound_request(&connection), 0);
	assert_exchange_recorded(&connection, 22, 10, 20); /* and all was due to the tag */
	connection_close(&connection);
}

/* A client elsewhere that talks to the server directly, from the same port as the proxy does from its own address. */
static void a_client_with_the_proxys_port_but_another_address_is_not_joined(void **state)
{
	static const char *const addresses[][3] = {
		{"127.0.0.1:0", "127.0.0.1:0", "127.0.0.2:0"},
		{"[::]:0", "127.0.0.1:0", "127.0.0.2:0"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		struct tailor_address proxy, server;
		struct connection connection;

		connection_open(&connection, kernel, addresses[i][0], addresses[i][1]);
		assert_int_equal(tailor_address_parse(addresses[i][1], &server), 0);
		assert_int_equal(tailor_address_parse(addresses[i][2], &proxy), 0);
		((struct sockaddr_in *)&server.storage)->sin_port = htons(connection.server_port);
		/* The connection is the stranger's; the tag is of one from the same port of another address. */
		fill_tag(connection.tag, &proxy, &server);
		set_request(&connection, 5);
		assert_nothing_recorded(&connection);
		assert_int_equal(bound_request(&connection), 0);
		connection_close(&connection);
	}
}

static void a_peek_does_not_bind_and_a_receive_without_a_tag_unbinds(void **state)
{
	struct connection connection;
	struct recording recording;
	char byte = 0;

	(void)state;
	connection_open(&connection, kernel, "127.0.0.1:0", "127.0.0.1:0");
	assert_exchange_recorded(&connection, 31, 10, 20);
	set_request(&connection, 32);
	assert_int_equal(send(connection.fd, &byte, 1, 0), 1);
	recording_begin(&recording, kernel);
	assert_int_equal(child_ask(&connection.server, DO_PEEK | DO_BYTES), 1);
	recording_end(&recording);
	assert_int_equal(recording_count(&recording, TAILOR_EVENT_RECEIVE, connection.server.pid), 0);
	recording_free(&recording);
	assert_int_equal(bound_request(&connection), 31);
	assert_int_equal(child_ask(&connection.server, DO_RECEIVE | DO_BYTES), 1);
	assert_int_equal(bound_request(&connection), 32);
	set_request(&connection, 0);
	exchange(&connection, 1, 0);
	assert_int_equal(bound_request(&connection), 0);
	connection_close(&connection);
}

static void what_a_server_serves_past_the_proxy_shows_without_a_request_once_tagged_ones_came_there(void **state)
{
	struct connection connection;
	struct recording recording;

	(void)state;
	connection_open(&connection, kernel, "127.0.0.1:0", "127.0.0.1:0");
	assert_nothing_recorded(&connection);
	assert_exchange_recorded(&connection, 33, 10, 20);
	set_request(&connection, 0);
	recording_begin(&recording, kernel);
	exchange(&connection, 10, 20);
	recording_end(&recording);
	assert_non_null(find(&recording, TAILOR_EVENT_RECEIVE, server_ports(&connection), 0));
	assert_non_null(find(&recording, TAILOR_EVENT_SYSCALL_WRITE, server_ports(&connection), 0));
	assert_int_equal(count_socket_events(&recording), 2);
	recording_free(&recording);
	assert_int_equal(bound_request(&connection), 0);
	connection_close(&connection);
}

/* Wake-ups carry the waker's request: the server answers over the control socket, on which this process sleeps. */
static void a_wake_up_names_the_request_that_the_waker_is_bound_to(void **state)
{
	const struct tailor_event *event;
	struct connection connection;
	struct recording recording;
	size_t index = 0, found = 0;

	(void)state;
	connection_open(&connection, kernel, "127.0.0.1:0", "127.0.0.1:0");
	assert_exchange_recorded(&connection, 41, 10, 20);
	assert_int_equal(tailor_kernel_trace(kernel, getpid(), TAILOR_TRACED_PROXY), 0);
	recording_begin(&recording, kernel);
	for (int i = 0; i < 10; i++)
		child_ask(&connection.server, DO_NAP);
	tailor_kernel_untrace(kernel, getpid());
	recording_end(&recording);
	while ((event = recording_next(&recording, &index, TAILOR_EVENT_WAKEUP, getpid()))) {
		if (event->arg[0] != TAILOR_TASK(connection.server.pid, connection.server.pid))
			continue;
		assert_int_equal(event->request, 41);
		found++;
	}
	assert_true(found >= 5);
	recording_free(&recording);
	connection_close(&connection);
}

/* A server that is not traced, or only as a proxy, binds no thread; of what the proxy sends its transmits tell. */
static void only_a_traced_server_binds_and_what_the_proxy_sends_shows_as_it_leaves(void **state)
{
	const struct tailor_event *event;
	struct connection connection;
	struct recording recording;

	(void)state;
	connection_open(&connection, kernel, "127.0.0.1:0", "127.0.0.1:0");
	assert_int_equal(tailor_kernel_trace(kernel, connection.server.pid, TAILOR_TRACED_PROXY), 0);
	assert_int_equal(tailor_kernel_trace(kernel, getpid(), TAILOR_TRACED_PROXY), 0);
	set_request(&connection, 51);
	recording_begin(&recording, kernel);
	exchange(&connection, 10, 20);
	tailor_kernel_untrace(kernel, getpid());
	recording_end(&recording);
	assert_null(find(&recording, TAILOR_EVENT_RECEIVE, server_ports(&connection), 51));
	assert_null(find(&recording, TAILOR_EVENT_SYSCALL_WRITE, proxy_ports(&connection), 51));
	event = find(&recording, TAILOR_EVENT_TCP_TRANSMIT, proxy_ports(&connection), 51);
	assert_non_null(event);
	assert_int_equal(event->arg[1], 10);
	recording_free(&recording);
	assert_int_equal(bound_request(&connection), 0);
	connection_close(&connection);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tagged_exchange_shows_its_receive_write_and_transmit_with_matching_bytes),
		cmocka_unit_test(ip6_and_ip4_on_a_dual_stack_listener_are_joined_too),
		cmocka_unit_test(a_tag_that_names_another_server_or_no_request_joins_nothing),
		cmocka_unit_test(a_client_with_the_proxys_port_but_another_address_is_not_joined),
		cmocka_unit_test(a_peek_does_not_bind_and_a_receive_without_a_tag_unbinds),
		cmocka_unit_test(what_a_server_serves_past_the_proxy_shows_without_a_request_once_tagged_ones_came_there),
		cmocka_unit_test(a_wake_up_names_the_request_that_the_waker_is_bound_to),
		cmocka_unit_test(only_a_traced_server_binds_and_what_the_proxy_sends_shows_as_it_leaves),
	};
	int failed;

	kernel = connection_kernel();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	tailor_kernel_close(kernel);
	return failed;
}
