/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collect/process.h"

/* A child that has all that this process has open. */
static pid_t copy_of_this(void)
{
	int sync[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(sync), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(sync[0]);
		if (write(sync[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(sync[1]);
	assert_int_equal(read(sync[0], &byte, 1), 1);
	close(sync[0]);
	return pid;
}

static int open_listener(const char *at, uint16_t port, uint16_t *ret_port)
{
	struct tailor_address address;
	int fd;

	assert_int_equal(tailor_address_parse(at, &address), 0);
	((struct sockaddr_in *)&address.storage)->sin_port = htons(port); /* at the same place as sin6_port */
	fd = socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address.storage, address.length), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address.storage, &address.length), 0);
	*ret_port = tailor_address_port(&address);
	return fd;
}

/* Listens in a child of its own, so that the pid is not this process's; returns the child and the port. */
static pid_t listen_in_child(const char *at, uint16_t port, uint16_t *ret_port)
{
	int fd = open_listener(at, port, ret_port);
	pid_t pid = copy_of_this();

	close(fd);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static int look_again(const char *text, uint16_t port, pid_t *pid)
{
	struct tailor_address address;

	assert_int_equal(tailor_address_parse(text, &address), 0);
	((struct sockaddr_in *)&address.storage)->sin_port = htons(port);
	return tailor_process_listening(&address, pid);
}

static int look_up(const char *text, uint16_t port, pid_t *ret_pid)
{
	*ret_pid = 0;
	return look_again(text, port, ret_pid);
}

static void the_process_behind_a_listener_is_found_whatever_it_is_bound_to(void **state)
{
	static const struct {
		const char *bound;
		const char *asked;
	} cases[] = {
		{"127.0.0.1:0", "127.0.0.1:0"}, {"0.0.0.0:0", "127.0.0.1:0"}, {"[::]:0", "127.0.0.1:0"},
		{"[::]:0", "[::1]:0"},          {"[::1]:0", "[::1]:0"},       {"[::ffff:127.0.0.1]:0", "127.0.0.1:0"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint16_t port;
		pid_t pid = listen_in_child(cases[i].bound, 0, &port);
		pid_t found;

		assert_int_equal(look_up(cases[i].asked, port, &found), 0);
		assert_int_equal(found, pid);
		end(pid);
		assert_int_equal(look_up(cases[i].asked, port, &found), -ESRCH);
	}
}

static void another_address_or_family_is_nobody(void **state)
{
	uint16_t port;
	pid_t pid = listen_in_child("127.0.0.1:0", 0, &port);
	pid_t found;

	(void)state;
	assert_int_equal(look_up("127.0.0.2:0", port, &found), -ESRCH);
	assert_int_equal(look_up("[::1]:0", port, &found), -ESRCH);
	assert_int_equal(look_up("127.0.0.1:0", 0, &found), -ESRCH);
	end(pid);
	pid = listen_in_child("0.0.0.0:0", 0, &port);
	assert_int_equal(look_up("[::1]:0", port, &found), -ESRCH);
	end(pid);
}

static void the_listener_that_fits_best_is_the_one_that_gets_the_connection(void **state)
{
	uint16_t port, same;
	pid_t wildcard, exact, found;

	(void)state;
	exact = listen_in_child("127.0.0.1:0", 0, &port);
	wildcard = listen_in_child("127.0.0.2:0", port, &same);
	assert_int_equal(look_up("127.0.0.1:0", port, &found), 0);
	assert_int_equal(found, exact);
	assert_int_equal(look_up("127.0.0.2:0", port, &found), 0);
	assert_int_equal(found, wildcard);
	end(exact);
	end(wildcard);
}

static void who_is_known_to_listen_is_found_as_long_as_it_does(void **state)
{
	uint16_t port;
	int fd = open_listener("127.0.0.1:0", 0, &port);
	pid_t first = copy_of_this(), second = copy_of_this(), pid;

	(void)state;
	close(fd);
	assert_int_equal(look_up("127.0.0.1:0", port, &pid), 0);
	assert_int_equal(pid, first < second ? first : second);
	pid = first;
	assert_int_equal(look_again("127.0.0.1:0", port, &pid), 0);
	assert_int_equal(pid, first);
	pid = second;
	assert_int_equal(look_again("127.0.0.1:0", port, &pid), 0);
	assert_int_equal(pid, second);
	/* One that lives and does not listen, and one that has ended. */
	pid = getpid();
	assert_int_equal(look_again("127.0.0.1:0", port, &pid), 0);
	assert_true(pid == first || pid == second);
	end(second);
	pid = second;
	assert_int_equal(look_again("127.0.0.1:0", port, &pid), 0);
	assert_int_equal(pid, first);
	end(first);
	assert_int_equal(look_again("127.0.0.1:0", port, &pid), -ESRCH);
}

struct seen {
	pid_t wanted;
	char comm[16];
	int threads;
};

static void see(void *context, pid_t tid, const char *comm)
{
	struct seen *seen = context;

	seen->threads++;
	if (tid == seen->wanted)
		strncpy(seen->comm, comm, sizeof(seen->comm) - 1);
}

struct named {
	pthread_barrier_t barrier;
	pid_t tid;
};

static void *be_named(void *context)
{
	struct named *named = context;

	prctl(PR_SET_NAME, "fifteen letters");
	named->tid = (pid_t)syscall(SYS_gettid);
	pthread_barrier_wait(&named->barrier);
	pthread_barrier_wait(&named->barrier);
	return NULL;
}

static void every_thread_is_told_with_its_whole_name(void **state)
{
	struct seen seen = {0};
	struct named named;
	pthread_t thread;

	(void)state;
	pthread_barrier_init(&named.barrier, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, be_named, &named), 0);
	pthread_barrier_wait(&named.barrier);
	seen.wanted = named.tid;
	assert_int_equal(tailor_process_threads(getpid(), see, &seen), 0);
	pthread_barrier_wait(&named.barrier);
	pthread_join(thread, NULL);
	assert_true(seen.threads >= 2); /* a sanitizer may have one of its own */
	assert_string_equal(seen.comm, "fifteen letters");
	assert_int_equal(tailor_process_threads(1 << 24, see, &seen), -ESRCH);
}

static void a_server_elsewhere_is_not_the_local_process_with_the_same_port(void **state)
{
	uint16_t port;
	pid_t child = listen_in_child("0.0.0.0:0", 0, &port);
	pid_t pid;

	(void)state;
	/* 192.0.2.0/24 is for documentation (RFC 5737): no host has it. */
	assert_int_equal(look_up("192.0.2.1:0", port, &pid), -ESRCH);
	assert_int_equal(look_up("127.0.0.1:0", port, &pid), 0);
	assert_int_equal(pid, child);
	end(child);
}

static void without_a_free_descriptor_nobody_is_said_to_be_gone(void **state)
{
	struct rlimit before, none;
	pid_t found = -1;
	uint16_t port;
	pid_t child = listen_in_child("127.0.0.1:0", 0, &port);
	int error, next = dup(0);

	(void)state;
	assert_true(next >= 0);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	/* One more room each time: whatever lacks its descriptor first. */
	for (rlim_t room = 0; room < 3; room++) {
		none = (struct rlimit){.rlim_cur = (rlim_t)next + room, .rlim_max = before.rlim_max};
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
		error = look_up("127.0.0.1:0", port, &found);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		if (error != 0)
			assert_int_equal(error, -EMFILE);
		else
			assert_int_equal(found, child);
		if (room == 0)
			assert_int_equal(error, -EMFILE);
	}
	end(child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_process_behind_a_listener_is_found_whatever_it_is_bound_to),
		cmocka_unit_test(another_address_or_family_is_nobody),
		cmocka_unit_test(the_listener_that_fits_best_is_the_one_that_gets_the_connection),
		cmocka_unit_test(who_is_known_to_listen_is_found_as_long_as_it_does),
		cmocka_unit_test(every_thread_is_told_with_its_whole_name),
		cmocka_unit_test(without_a_free_descriptor_nobody_is_said_to_be_gone),
		cmocka_unit_test(a_server_elsewhere_is_not_the_local_process_with_the_same_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
