/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/integration/kernel_harness.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <tailor/timeline.h>
#include <unistd.h>

#include "base/address.h"
#include "base/clock.h"

static struct tailor_kernel *kernel;

/* What the server's child does next; the number of bytes is in the lower bits. */
#define DO_RECEIVE (1 << 16)
#define DO_PEEK (2 << 16)
#define DO_WRITE (3 << 16)
#define DO_NAP (4 << 16)
#define DO_WRITE_TWICE (5 << 16) /* so many bytes, and one more than so many */
#define DO_CORK (6 << 16)        /* switches it on or off */
#define DO_NODELAY (7 << 16)
#define DO_WRITE_MORE (8 << 16) /* MSG_MORE */
#define DO_BYTES 0xffff

/* One connection between this process, which plays the proxy, and a traced child, the server. */
struct connection {
	struct child server;
	int fd;
	uint16_t server_port;
	uint16_t port;
	struct tailor_tag *tag;
};

static int set_option(int fd, int option, int value)
{
	return setsockopt(fd, IPPROTO_TCP, option, &value, sizeof(value));
}

static void serve(int control, void *context)
{
	int fd = accept(*(int *)context, NULL, NULL);
	char buffer[DO_BYTES] = "";

	if (fd < 0)
		_exit(1);
	for (;;) {
		int64_t order = control_hear(control);
		size_t bytes = (size_t)order & DO_BYTES;
		ssize_t done = 0;

		switch (order & ~DO_BYTES) {
		case DO_RECEIVE: done = read(fd, buffer, bytes); break;
		case DO_PEEK: done = recv(fd, buffer, bytes, MSG_PEEK); break;
		case DO_WRITE: done = write(fd, buffer, bytes); break;
		case DO_WRITE_TWICE: done = write(fd, buffer, bytes) + write(fd, buffer, bytes + 1); break;
		case DO_CORK: done = set_option(fd, TCP_CORK, (int)bytes); break;
		case DO_NODELAY: done = set_option(fd, TCP_NODELAY, (int)bytes); break;
		case DO_WRITE_MORE: done = send(fd, buffer, bytes, MSG_MORE); break;
		case DO_NAP: done = usleep(1000); break;
		default: _exit(1);
		}
		control_tell(control, done);
	}
}

static void fill_tag(struct tailor_tag *tag, const struct tailor_address *own, const struct tailor_address *server)
{
	uint32_t words[4];

	memset(tag, 0, sizeof(*tag));
	tailor_address_ip(server, tag->address);
	tailor_address_ip(own, (uint8_t *)words);
	tag->proxy = tailor_tag_fold(words);
	tag->server_port = tailor_address_port(server);
}

/* `listen_at` may be a wildcard, `connect_to` is the server as the proxy knows it; its port is the listener's. segment: the most bytes that
 * the server may send in one; 0: the kernel's choice. */
static void connection_open_with(struct connection *connection, const char *listen_at, const char *connect_to, int segment)
{
	struct tailor_address address, own;
	int one = 1;
	int listener;

	assert_int_equal(tailor_address_parse(listen_at, &address), 0);
	listener = socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(listener >= 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address.storage, address.length), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address.storage, &address.length), 0);
	connection->server_port = tailor_address_port(&address);
	connection->server = child_start("server", serve, &listener);

	assert_int_equal(tailor_address_parse(connect_to, &address), 0);
	if (address.storage.ss_family == AF_INET)
		((struct sockaddr_in *)&address.storage)->sin_port = htons(connection->server_port);
	else
		((struct sockaddr_in6 *)&address.storage)->sin6_port = htons(connection->server_port);
	connection->fd = socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (segment)
		assert_int_equal(set_option(connection->fd, TCP_MAXSEG, segment), 0);
	assert_int_equal(connect(connection->fd, (struct sockaddr *)&address.storage, address.length), 0);
	setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	close(listener);
	own.length = sizeof(own.storage);
	assert_int_equal(getsockname(connection->fd, (struct sockaddr *)&own.storage, &own.length), 0);
	connection->port = tailor_address_port(&own);
	connection->tag = &tailor_kernel_tags(kernel)[connection->port];
	fill_tag(connection->tag, &own, &address);
	assert_int_equal(tailor_kernel_trace(kernel, connection->server.pid, TAILOR_TRACED_SERVER), 0);
	child_ask(&connection->server, DO_NAP); /* it has accepted */
}

static void connection_open(struct connection *connection, const char *listen_at, const char *connect_to)
{
	connection_open_with(connection, listen_at, connect_to, 0);
}

static void connection_close(struct connection *connection)
{
	memset(connection->tag, 0, sizeof(*connection->tag));
	tailor_kernel_untrace(kernel, connection->server.pid);
	close(connection->fd);
	child_stop(&connection->server);
}

static void set_request(const struct connection *connection, uint64_t request)
{
	__atomic_store_n(&connection->tag->request, request, __ATOMIC_RELEASE);
}

/* Sends a request of `bytes` and has the server read it; then the server writes `answer` bytes and this reads them. */
static void exchange(const struct connection *connection, size_t bytes, size_t answer)
{
	char buffer[DO_BYTES] = "";

	assert_int_equal(send(connection->fd, buffer, bytes, 0), bytes);
	assert_int_equal(child_ask(&connection->server, DO_RECEIVE | DO_BYTES), bytes);
	if (answer == 0)
		return;
	assert_int_equal(child_ask(&connection->server, DO_WRITE | (int64_t)answer), answer);
	assert_int_equal(recv(connection->fd, buffer, answer, MSG_WAITALL), answer);
}

static uint32_t server_ports(const struct connection *connection)
{
	return TAILOR_PORTS(connection->server_port, connection->port);
}

static uint32_t proxy_ports(const struct connection *connection)
{
	return TAILOR_PORTS(connection->port, connection->server_port);
}

/* The first event of that kind and end of the connection that carries the request. */
static const struct tailor_event *find(const struct recording *recording, enum tailor_event_kind kind, uint32_t ports,
                                       uint64_t request)
{
	const struct tailor_event *event;
	size_t index = 0;

	while ((event = recording_next(recording, &index, kind, 0))) {
		if (event->extra == ports && event->request == request)
			return event;
	}
	return NULL;
}

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
	connection_open(&connection, "127.0.0.1:0", "127.0.0.1:0");
	assert_exchange_recorded(&connection, 0x1234567890abcdef, 100, 300);
	assert_exchange_recorded(&connection, 2, 1, 1);
	assert_exchange_recorded(&connection, 3, 5000, 20000);
	connection_close(&connection);
}

static void ip6_and_ip4_on_a_dual_stack_listener_are_joined_too(void **state)
{
	struct connection connection;

	(void)state;
	connection_open(&connection, "[::1]:0", "[::1]:0");
	assert_exchange_recorded(&connection, 11, 100, 300);
	connection_close(&connection);
	connection_open(&connection, "[::]:0", "127.0.0.1:0");
	assert_exchange_recorded(&connection, 12, 100, 300);
	connection_close(&connection);
	connection_open(&connection, "0.0.0.0:0", "127.0.0.2:0");
	assert_exchange_recorded(&connection, 13, 100, 300);
	connection_close(&connection);
}

static void a_tag_that_names_another_server_or_no_request_joins_nothing(void **state)
{
	struct connection connection;

	(void)state;
	connection_open(&connection, "127.0.0.1:0", "127.0.0.1:0");
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

		connection_open(&connection, addresses[i][0], addresses[i][1]);
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
	connection_open(&connection, "127.0.0.1:0", "127.0.0.1:0");
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
	connection_open(&connection, "127.0.0.1:0", "127.0.0.1:0");
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
	connection_open(&connection, "127.0.0.1:0", "127.0.0.1:0");
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
	connection_open(&connection, "127.0.0.1:0", "127.0.0.1:0");
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

/* Head and body in two writes: Nagle holds the second until the first is acknowledged, and the client delays that. */
static void a_response_held_by_nagle_and_a_delayed_acknowledgement_leaves_tens_of_ms_after_its_write(void **state)
{
	const struct tailor_event *first, *second, *event;
	struct connection connection;
	struct recording recording;
	char buffer[201];
	int off = 0;
	size_t index = 0;

	(void)state;
	connection_open(&connection, "127.0.0.1:0", "127.0.0.1:0");
	set_request(&connection, 61);
	exchange(&connection, 10, 20);
	/* As on a connection that has carried requests for a while. */
	assert_int_equal(setsockopt(connection.fd, IPPROTO_TCP, TCP_QUICKACK, &off, sizeof(off)), 0);
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
	int off = 0;

	(void)state;
	connection_open(&connection, "127.0.0.1:0", "127.0.0.1:0");
	set_request(&connection, 81);
	exchange(&connection, 10, 20);
	assert_int_equal(setsockopt(connection.fd, IPPROTO_TCP, TCP_QUICKACK, &off, sizeof(off)), 0);
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
	connection_open(&connection, "127.0.0.1:0", "127.0.0.1:0");
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
	connection_open_with(&connection, "127.0.0.1:0", "127.0.0.1:0", 536);
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
	connection_open(&connection, "127.0.0.1:0", "127.0.0.1:0");
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
		cmocka_unit_test(a_tagged_exchange_shows_its_receive_write_and_transmit_with_matching_bytes),
		cmocka_unit_test(ip6_and_ip4_on_a_dual_stack_listener_are_joined_too),
		cmocka_unit_test(a_tag_that_names_another_server_or_no_request_joins_nothing),
		cmocka_unit_test(a_client_with_the_proxys_port_but_another_address_is_not_joined),
		cmocka_unit_test(a_peek_does_not_bind_and_a_receive_without_a_tag_unbinds),
		cmocka_unit_test(what_a_server_serves_past_the_proxy_shows_without_a_request_once_tagged_ones_came_there),
		cmocka_unit_test(a_wake_up_names_the_request_that_the_waker_is_bound_to),
		cmocka_unit_test(only_a_traced_server_binds_and_what_the_proxy_sends_shows_as_it_leaves),
		cmocka_unit_test(
			a_response_held_by_nagle_and_a_delayed_acknowledgement_leaves_tens_of_ms_after_its_write),
		cmocka_unit_test(what_cork_and_more_keep_back_is_said_and_nothing_is_with_nodelay),
		cmocka_unit_test(a_small_window_of_the_client_is_said_to_keep_bytes_back),
		cmocka_unit_test(a_full_congestion_window_is_said_to_keep_bytes_back),
		cmocka_unit_test(a_segment_that_is_lost_shows_as_sent_again_with_the_same_bytes),
	};
	int failed;

	kernel = harness_open(16384);
	if (tailor_kernel_missing(kernel) & TAILOR_MISSING_WRITE) {
		fprintf(stderr,
			"skipped: this kernel has no sock_recv_length and sock_send_length tracepoints (Linux 6.3)\n");
		tailor_kernel_close(kernel);
		return 77;
	}
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	tailor_kernel_close(kernel);
	return failed;
}
