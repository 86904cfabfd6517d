/* SPDX-License-Identifier: Apache-2.0 */
/* What a traced process may put in the place of its libjvm.so: it reaches nothing but its own timelines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/kernel_uprobe.h"

#define PATIENCE_NS (10 * TAILOR_NS_PER_S)

static char directory[] = "/tmp/tailor-library-XXXXXX";
static char library[64], other[64];

static void make_file(void)
{
	int fd = open(library, O_CREAT | O_RDWR | O_TRUNC | O_CLOEXEC, 0755);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	close(fd);
}

/* A process that has the library's code in its memory; `over`: and then, where it alone sees it, that in the library's place. */
static pid_t start_server(const char *over)
{
	int ready[2], fd;
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		fd = open(library, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
			_exit(1);
		if (over && (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		             mount(over, library, NULL, MS_BIND, NULL) != 0))
			_exit(1);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(0);
	}
	close(ready[1]);
	assert_true(pid > 0);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static struct tailor_uprobes *open_uprobes(void)
{
	struct tailor_uprobes *uprobes = NULL;

	/* None of these files comes so far that a program is attached. */
	assert_int_equal(tailor_uprobes_open(STDERR_FILENO, 1, &uprobes), 0);
	return uprobes;
}

static int settle(struct tailor_uprobes *uprobes, pid_t pid)
{
	uint64_t until_ns = tailor_clock_ns() + PATIENCE_NS;

	while (tailor_uprobes_state(uprobes, pid) == 0 && tailor_clock_ns() < until_ns)
		usleep(1000);
	return tailor_uprobes_state(uprobes, pid);
}

static void what_is_no_file_is_not_opened(void **state)
{
	struct tailor_uprobes *uprobes = open_uprobes();
	pid_t writer, server;
	int status;

	(void)state;
	make_file();
	assert_int_equal(mkfifo(other, 0600), 0);
	/* Goes on as soon as somebody has opened the other end, however shortly. */
	writer = fork();
	if (writer == 0)
		_exit(open(other, O_WRONLY | O_CLOEXEC) < 0);
	server = start_server(other);
	tailor_uprobes_follow(uprobes, server);
	assert_int_equal(settle(uprobes, server), -ENOEXEC);
	usleep(50000);
	assert_int_equal(waitpid(writer, &status, WNOHANG), 0);
	end(writer);
	end(server);
	tailor_uprobes_close(uprobes);
	unlink(other);
}

/* As a file system does that the process serves itself; opening is held up here by whoever may allow it. */
static void a_file_that_cannot_be_opened_in_time_keeps_nobody_from_stopping(void **state)
{
	struct fanotify_event_metadata event;
	struct fanotify_response answer;
	struct tailor_uprobes *uprobes;
	struct pollfd asked;
	uint64_t start_ns;
	pid_t server;

	(void)state;
	make_file();
	server = start_server(NULL);
	asked = (struct pollfd){.fd = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY | O_CLOEXEC), .events = POLLIN};
	if (asked.fd < 0 || fanotify_mark(asked.fd, FAN_MARK_ADD, FAN_OPEN_PERM, AT_FDCWD, library) != 0) {
		print_message("this kernel cannot hold up who opens a file: %s\n", strerror(errno));
		end(server);
		skip();
	}
	uprobes = open_uprobes();
	tailor_uprobes_follow(uprobes, server);
	assert_int_equal(poll(&asked, 1, 10000), 1);
	assert_int_equal(read(asked.fd, &event, sizeof(event)), sizeof(event));
	alarm(20); /* instead of waiting for ever */
	start_ns = tailor_clock_ns();
	tailor_uprobes_close(uprobes);
	assert_in_range(tailor_clock_ns() - start_ns, 0, PATIENCE_NS);
	alarm(0);
	answer = (struct fanotify_response){.fd = event.fd, .response = FAN_ALLOW};
	assert_int_equal(write(asked.fd, &answer, sizeof(answer)), sizeof(answer));
	close(event.fd);
	close(asked.fd);
	usleep(100000); /* the thread gives back what it has */
	end(server);
}

static int clean(void **state)
{
	(void)state;
	unlink(library);
	unlink(other);
	rmdir(directory);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_file_is_not_opened),
		cmocka_unit_test(a_file_that_cannot_be_opened_in_time_keeps_nobody_from_stopping),
	};

	if (geteuid() != 0) {
		printf("skipped: mounting takes root\n");
		return 77;
	}
	if (!mkdtemp(directory))
		return 1;
	snprintf(library, sizeof(library), "%s/libjvm.so", directory);
	snprintf(other, sizeof(other), "%s/other", directory);
	return cmocka_run_group_tests(tests, NULL, clean);
}
