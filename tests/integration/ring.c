/* SPDX-License-Identifier: Apache-2.0 */
/* The ring against the real kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "ring/ring.h"

static struct tailor_ring *ring;

static int open_ring(void **state)
{
	static const struct tailor_ring_options options = {
	        .entries = 8, .buffers = 4, .buffer_bytes = 16, .buffer_headroom = 8};

	(void)state;
	return tailor_ring_open(&options, &ring);
}

static int close_ring(void **state)
{
	(void)state;
	tailor_ring_close(ring);
	ring = NULL;
	return 0;
}

/* Waits at most 5 s for the next completion. */
static struct tailor_completion next_completion(void)
{
	struct tailor_completion completion;
	uint64_t deadline_ns = tailor_clock_ns() + 5 * TAILOR_NS_PER_S;

	while (!tailor_ring_next(ring, &completion)) {
		assert_true(tailor_clock_ns() < deadline_ns);
		assert_true(tailor_ring_wait(ring, deadline_ns) >= 0);
	}
	return completion;
}

static void a_token_keeps_slot_generation_and_operation_apart(void **state)
{
	uint64_t token = TAILOR_TOKEN(0xdeadbeef, 0x1abcdef, 0x7f);

	(void)state;
	assert_int_equal(TAILOR_TOKEN_SLOT(token), 0xdeadbeef);
	assert_int_equal(TAILOR_TOKEN_GENERATION(token), 0xabcdef);
	assert_int_equal(TAILOR_TOKEN_OPERATION(token), 0x7f);
}

static void bytes_travel_from_send_to_receive(void **state)
{
	char memory[16] = "";
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	tailor_ring_receive(ring, pair[0], memory, sizeof(memory), 1);
	tailor_ring_send(ring, pair[1], "hello", 5, 0, 2);
	for (int i = 0; i < 2; i++) {
		struct tailor_completion completion = next_completion();

		assert_true(completion.token == 1 || completion.token == 2);
		assert_int_equal(completion.result, 5);
	}
	assert_memory_equal(memory, "hello", 5);
	tailor_ring_receive_later(ring, pair[0], memory, sizeof(memory), 3);
	tailor_ring_close_fd(ring, pair[1], 4);
	for (int i = 0; i < 2; i++)
		assert_int_equal(next_completion().result, 0);
	close(pair[0]);
}

static void sending_to_a_closed_socket_is_an_error_and_no_signal(void **state)
{
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	close(pair[1]);
	tailor_ring_send(ring, pair[0], "x", 1, 0, 1);
	assert_int_equal(next_completion().result, -EPIPE);
	close(pair[0]);
}

static void a_whole_send_is_told_of_only_when_it_fails(void **state)
{
	char memory[16] = "";
	struct tailor_completion completion;
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	tailor_ring_receive(ring, pair[0], memory, sizeof(memory), 1);
	tailor_ring_send_whole(ring, pair[1], "hello", 5, 2);
	completion = next_completion();
	assert_int_equal(completion.token, 1);
	assert_int_equal(completion.result, 5);
	assert_memory_equal(memory, "hello", 5);
	close(pair[0]);
	tailor_ring_send_whole(ring, pair[1], "x", 1, 3);
	completion = next_completion();
	assert_int_equal(completion.token, 3);
	assert_int_equal(completion.result, -EPIPE);
	close(pair[1]);
}

static void accept_connect_and_shutdown_work_on_tcp(void **state)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	int client = socket(AF_INET, SOCK_STREAM, 0);
	int accepted = -1;
	char byte;

	(void)state;
	assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
	assert_int_equal(listen(listener, 8), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	tailor_ring_accept(ring, listener, 1);
	tailor_ring_connect(ring, client, (struct sockaddr *)&address, length, 2);
	for (int i = 0; i < 2; i++) {
		struct tailor_completion completion = next_completion();

		if (completion.token == 1) {
			accepted = completion.result;
			assert_true(completion.flags & TAILOR_RING_MORE);
		} else {
			assert_int_equal(completion.result, 0);
		}
	}
	assert_true(accepted >= 0);
	tailor_ring_shutdown(ring, client, SHUT_WR, 3);
	assert_int_equal(next_completion().result, 0);
	tailor_ring_receive(ring, accepted, &byte, 1, 4);
	assert_int_equal(next_completion().result, 0);
	tailor_ring_cancel(ring, 1, 5);
	for (int i = 0; i < 2; i++) {
		struct tailor_completion completion = next_completion();

		assert_int_equal(completion.result, completion.token == 1 ? -ECANCELED : 0);
	}
	close(accepted);
	close(client);
	close(listener);
}

static void more_operations_than_entries_are_all_done(void **state)
{
	enum { OPERATIONS = 200 };
	static char memory[OPERATIONS][8];
	uint8_t seen[OPERATIONS] = {0};
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
	for (int i = 0; i < OPERATIONS; i++)
		tailor_ring_receive(ring, pair[0], memory[i], sizeof(memory[i]), (uint64_t)i);
	for (int i = 0; i < OPERATIONS; i++) {
		assert_int_equal(send(pair[1], "x", 1, 0), 1);
		if (i % 8 == 7)
			assert_true(tailor_ring_wait(ring, 0) >= 0);
	}
	for (int i = 0; i < OPERATIONS; i++) {
		struct tailor_completion completion = next_completion();

		assert_int_equal(completion.result, 1);
		assert_int_equal(seen[completion.token]++, 0);
	}
	close(pair[0]);
	close(pair[1]);
}

static void multishot_receives_take_and_give_back_shared_buffers(void **state)
{
	int pair[2];
	int buffers = 0;
	char text[64] = "";
	size_t length = 0;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	tailor_ring_receive_multishot(ring, pair[0], 1);
	assert_true(tailor_ring_wait(ring, 0) >= 0);
	/* 40 bytes need three of the four buffers of 16. */
	assert_int_equal(send(pair[1], "0123456789012345678901234567890123456789", 40, 0), 40);
	while (length < 40) {
		struct tailor_completion completion = next_completion();

		assert_true(completion.result > 0);
		assert_true(completion.flags & TAILOR_RING_BUFFER);
		assert_true(completion.flags & TAILOR_RING_MORE);
		memcpy(text + length, tailor_ring_buffer(ring, completion.buffer), (size_t)completion.result);
		length += (size_t)completion.result;
		buffers++;
		if (buffers > 1)
			tailor_ring_buffer_return(ring, completion.buffer);
	}
	assert_string_equal(text, "0123456789012345678901234567890123456789");
	/* Three are left: the fourth piece finds none. */
	assert_int_equal(send(pair[1], "0123456789012345678901234567890123456789012345678901234567890123", 64, 0), 64);
	for (int i = 0; i < 3; i++)
		assert_int_equal(next_completion().result, 16);
	for (;;) {
		struct tailor_completion completion = next_completion();

		assert_int_equal(completion.result, -ENOBUFS);
		assert_false(completion.flags & TAILOR_RING_MORE);
		break;
	}
	close(pair[0]);
	close(pair[1]);
}

static void a_receive_leaves_the_headroom_of_buffers_alone(void **state)
{
	struct tailor_completion completion;
	char *memory;
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	tailor_ring_receive_multishot(ring, pair[0], 1);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(send(pair[1], "0123456789abcdef", 16, 0), 16);
		completion = next_completion();
		assert_int_equal(completion.result, 16);
		memory = tailor_ring_buffer(ring, completion.buffer);
		assert_memory_equal(memory, "0123456789abcdef", 16);
		/* What was written there in the round before is still there: also nothing of a neighbour's. */
		if (i >= 4)
			assert_memory_equal(memory - 8, "headroom", 8);
		memcpy(memory - 8, "headroom", 8);
		tailor_ring_buffer_return(ring, completion.buffer);
	}
	close(pair[0]);
	close(pair[1]);
}

/* Returns the accepted end of a connection, *ret_peer is the other one. */
static int tcp_pair(int *ret_peer)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd;

	*ret_peer = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	assert_int_equal(connect(*ret_peer, (struct sockaddr *)&address, length), 0);
	fd = accept(listener, NULL, NULL);
	assert_true(fd >= 0);
	close(listener);
	return fd;
}

/* The reset has nothing behind it that would wake the receive once more. */
static void bytes_and_a_reset_that_came_before_a_multishot_receive_are_both_told(void **state)
{
	static const struct linger reset = {.l_onoff = 1};
	int peer, fd = tcp_pair(&peer);

	(void)state;
	assert_int_equal(send(peer, "0123456789", 10, 0), 10);
	assert_int_equal(setsockopt(peer, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
	close(peer);
	tailor_ring_receive_multishot(ring, fd, 1);
	assert_int_equal(next_completion().result, 10);
	assert_int_equal(next_completion().result, -ECONNRESET);
	close(fd);
}

static void a_multishot_receive_without_a_free_buffer_ends(void **state)
{
	struct tailor_completion completion;
	int pair[2], other[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, other), 0);
	tailor_ring_receive_multishot(ring, pair[0], 1);
	assert_int_equal(send(pair[1], "0123456789012345678901234567890123456789012345678901234567890123", 64, 0), 64);
	for (int i = 0; i < 4; i++)
		assert_int_equal(next_completion().token, 1);
	/* None is left. */
	tailor_ring_receive_multishot(ring, other[0], 2);
	completion = next_completion();
	assert_int_equal(completion.token, 2);
	assert_int_equal(completion.result, -ENOBUFS);
	assert_false(completion.flags & TAILOR_RING_MORE);
	close(pair[0]);
	close(pair[1]);
	close(other[0]);
	close(other[1]);
}

static void a_wait_ends_at_its_deadline(void **state)
{
	uint64_t begin_ns = tailor_clock_ns();
	struct tailor_completion completion;

	(void)state;
	assert_int_equal(tailor_ring_wait(ring, 0), 0);
	assert_int_equal(tailor_ring_wait(ring, begin_ns), 0);
	assert_int_equal(tailor_ring_wait(ring, begin_ns + 5 * TAILOR_NS_PER_MS), 0);
	assert_true(tailor_clock_ns() >= begin_ns + 5 * TAILOR_NS_PER_MS);
	assert_int_equal(tailor_ring_next(ring, &completion), 0);
}

static void a_timeout_completes_at_its_deadline(void **state)
{
	struct tailor_ring_deadline storage;
	uint64_t begin_ns = tailor_clock_ns();

	(void)state;
	tailor_ring_timeout(ring, &storage, begin_ns + 5 * TAILOR_NS_PER_MS, 7);
	assert_int_equal(next_completion().result, -ETIME);
	assert_true(tailor_clock_ns() >= begin_ns + 5 * TAILOR_NS_PER_MS);
	tailor_ring_timeout(ring, &storage, UINT64_MAX, 8);
	tailor_ring_cancel(ring, 8, 9);
	for (int i = 0; i < 2; i++) {
		struct tailor_completion completion = next_completion();

		assert_int_equal(completion.result, completion.token == 8 ? -ECANCELED : 0);
	}
}

static void *write_eventfd(void *argument)
{
	uint64_t one = 1;

	usleep(5000);
	return write(*(int *)argument, &one, sizeof(one)) == sizeof(one) ? NULL : argument;
}

static void a_read_of_a_non_blocking_eventfd_waits_for_its_writer(void **state)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	uint64_t value = 0;
	pthread_t thread;

	(void)state;
	tailor_ring_read(ring, fd, &value, sizeof(value), 1);
	assert_int_equal(tailor_ring_wait(ring, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, write_eventfd, &fd), 0);
	assert_int_equal(next_completion().result, sizeof(value));
	assert_int_equal(value, 1);
	pthread_join(thread, NULL);
	close(fd);
}

struct other {
	struct tailor_ring *ring;
	pthread_barrier_t opened, sent;
	struct tailor_completion got;
};

/* Nobody reads what is polled, as several workers poll the same. */
static void a_poll_tells_each_time_that_there_is_something_new(void **state)
{
	int fd = eventfd(0, EFD_NONBLOCK);
	uint64_t one = 1;

	(void)state;
	assert_true(fd >= 0);
	tailor_ring_poll(ring, fd, 9);
	assert_int_equal(tailor_ring_wait(ring, tailor_clock_ns() + 20 * TAILOR_NS_PER_MS), 0);
	for (int i = 0; i < 3; i++) {
		struct tailor_completion completion;

		assert_int_equal(write(fd, &one, sizeof(one)), sizeof(one));
		completion = next_completion();
		assert_int_equal(completion.token, 9);
		assert_true(completion.result & POLLIN);
		assert_true(completion.flags & TAILOR_RING_MORE);
		assert_int_equal(tailor_ring_wait(ring, tailor_clock_ns() + 20 * TAILOR_NS_PER_MS), 0);
	}
	close(fd);
}

static void *wait_for_message(void *argument)
{
	static const struct tailor_ring_options options = {.entries = 8};
	struct other *other = argument;

	if (tailor_ring_open(&options, &other->ring) != 0)
		other->ring = NULL;
	pthread_barrier_wait(&other->opened);
	if (other->ring) {
		tailor_ring_wait(other->ring, tailor_clock_ns() + 5 * TAILOR_NS_PER_S);
		tailor_ring_next(other->ring, &other->got);
		/* Who sends must know that it is there until it has sent. */
		pthread_barrier_wait(&other->sent);
		tailor_ring_close(other->ring);
	}
	return NULL;
}

static void a_message_completes_on_the_other_ring(void **state)
{
	struct other other = {0};
	struct tailor_completion completion;
	pthread_t thread;

	(void)state;
	pthread_barrier_init(&other.opened, NULL, 2);
	pthread_barrier_init(&other.sent, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_message, &other), 0);
	pthread_barrier_wait(&other.opened);
	assert_non_null(other.ring);
	tailor_ring_message(ring, other.ring, 42, 7);
	assert_int_equal(tailor_ring_wait(ring, 0), 0);
	assert_int_equal(tailor_ring_next(ring, &completion), 0);
	pthread_barrier_wait(&other.sent);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&other.opened);
	pthread_barrier_destroy(&other.sent);
	assert_int_equal(other.got.token, 42);
	assert_int_equal(other.got.result, 7);
}

static void closing_takes_memory_back_from_operations_under_way(void **state)
{
	static const struct tailor_ring_options options = {.entries = 8};
	struct tailor_ring *short_lived;
	char memory[8] = "before";
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(tailor_ring_open(&options, &short_lived), 0);
	tailor_ring_receive(short_lived, pair[0], memory, sizeof(memory), 1);
	assert_int_equal(tailor_ring_wait(short_lived, 0), 0);
	tailor_ring_close(short_lived);
	assert_int_equal(send(pair[1], "after", 5, 0), 5);
	usleep(1000);
	assert_string_equal(memory, "before");
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_token_keeps_slot_generation_and_operation_apart),
	        cmocka_unit_test_setup_teardown(bytes_travel_from_send_to_receive, open_ring, close_ring),
	        cmocka_unit_test_setup_teardown(a_whole_send_is_told_of_only_when_it_fails, open_ring, close_ring),
	        cmocka_unit_test_setup_teardown(sending_to_a_closed_socket_is_an_error_and_no_signal, open_ring,
	                                        close_ring),
	        cmocka_unit_test_setup_teardown(accept_connect_and_shutdown_work_on_tcp, open_ring, close_ring),
	        cmocka_unit_test_setup_teardown(more_operations_than_entries_are_all_done, open_ring, close_ring),
	        cmocka_unit_test_setup_teardown(multishot_receives_take_and_give_back_shared_buffers, open_ring,
	                                        close_ring),
	        cmocka_unit_test_setup_teardown(a_receive_leaves_the_headroom_of_buffers_alone, open_ring, close_ring),
	        cmocka_unit_test_setup_teardown(bytes_and_a_reset_that_came_before_a_multishot_receive_are_both_told, open_ring,
	                                        close_ring),
	        cmocka_unit_test_setup_teardown(a_multishot_receive_without_a_free_buffer_ends, open_ring,
	                                        close_ring),
	        cmocka_unit_test_setup_teardown(a_wait_ends_at_its_deadline, open_ring, close_ring),
	        cmocka_unit_test_setup_teardown(a_timeout_completes_at_its_deadline, open_ring, close_ring),
	        cmocka_unit_test_setup_teardown(a_read_of_a_non_blocking_eventfd_waits_for_its_writer, open_ring,
	                                        close_ring),
	        cmocka_unit_test_setup_teardown(a_poll_tells_each_time_that_there_is_something_new, open_ring, close_ring),
	        cmocka_unit_test_setup_teardown(a_message_completes_on_the_other_ring, open_ring, close_ring),
	        cmocka_unit_test(closing_takes_memory_back_from_operations_under_way),
	};
	int ret = open_ring(NULL);

	if (ret != 0) {
		fprintf(stderr, "skipped: %s\n", tailor_ring_explain(ret));
		return 77;
	}
	close_ring(NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
