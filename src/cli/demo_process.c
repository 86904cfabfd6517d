/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/demo_process.h"

static sigset_t signals_before;
static int stop_asked;

void demo_process_setup(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, &signals_before);
	/* A reader of our output that goes away must not take the way past the clean-up. */
	signal(SIGPIPE, SIG_IGN);
}

int demo_process_wait(int ms)
{
	struct timespec timeout = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
	siginfo_t info;
	sigset_t set;

	if (stop_asked)
		return -EINTR;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	if (sigtimedwait(&set, &info, &timeout) > 0 && info.si_signo != SIGCHLD)
		stop_asked = 1;
	return stop_asked ? -EINTR : 0;
}

/* Between fork and exec. Returns only on failure, with errno set. */
static void become(const struct demo_start *start, int input, int out, int log, pid_t parent)
{
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, start->death_signal);
	if (getppid() != parent)
		_exit(1);                          /* it died before the line above */
	setpriority(PRIO_PROCESS, 0, start->nice); /* refused without the right: then it runs like everything else */
	if (start->directory && chdir(start->directory) < 0)
		return;
	if (dup2(input, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0)
		return;
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &signals_before, NULL);
	execvp(start->argv[0], start->argv);
}

/* fork() and exec(); a failure of exec comes back through a pipe that a successful one closes. */
static int spawn(const struct demo_start *start, int input, int out, int log, pid_t *ret_pid)
{
	cleanup_close int report_read = -1;
	int report[2], failure = 0;
	pid_t parent = getpid(), pid;

	if (pipe2(report, O_CLOEXEC) < 0)
		return -errno;
	report_read = report[0];
	pid = fork();
	if (pid == 0) {
		become(start, input, out, log, parent);
		failure = -errno;
		if (write(report[1], &failure, sizeof(failure)) < 0)
			_exit(126);
		_exit(127);
	}
	if (pid < 0)
		failure = -errno;
	close(report[1]);
	if (pid < 0)
		return failure;
	setpgid(pid, pid); /* both sides, so that it holds whoever runs first */
	if (read(report_read, &failure, sizeof(failure)) == (ssize_t)sizeof(failure)) {
		waitpid(pid, NULL, 0);
		return failure;
	}
	*ret_pid = pid;
	return 0;
}

int demo_process_start(const struct demo_start *start, struct demo_process *ret_process)
{
	cleanup_close int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
	cleanup_close int log = open(start->log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
	cleanup_close int out = start->out ? open(start->out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)
	                                   : fcntl(log, F_DUPFD_CLOEXEC, 3);
	pid_t pid = 0;
	int r;

	if (input < 0 || log < 0 || out < 0)
		return -errno;
	r = spawn(start, input, out, log, &pid);
	if (r < 0)
		return r;
	snprintf(ret_process->name, sizeof(ret_process->name), "%s", start->name);
	snprintf(ret_process->log, sizeof(ret_process->log), "%s", start->log);
	ret_process->status = 0;
	ret_process->pid = pid;
	return 0;
}

int demo_process_running(struct demo_process *process)
{
	if (process->pid == 0)
		return 0;
	if (waitpid(process->pid, &process->status, WNOHANG) == 0)
		return 1;
	process->pid = 0;
	return 0;
}

void demo_process_stop(struct demo_process *process, int grace_ms)
{
	uint64_t deadline_ns = tailor_clock_ns() + (uint64_t)grace_ms * TAILOR_NS_PER_MS;

	if (!demo_process_running(process))
		return;
	kill(-process->pid, SIGTERM);
	while (demo_process_running(process)) {
		if (tailor_clock_ns() >= deadline_ns) {
			kill(-process->pid, SIGKILL);
			waitpid(process->pid, &process->status, 0);
			process->pid = 0;
			return;
		}
		usleep(10000);
	}
}

char *demo_process_ending(const struct demo_process *process, char *buffer, size_t size)
{
	if (WIFSIGNALED(process->status))
		snprintf(buffer, size, "signal %d, %s", WTERMSIG(process->status),
		         strsignal(WTERMSIG(process->status)));
	else
		snprintf(buffer, size, "exit code %d", WEXITSTATUS(process->status));
	return buffer;
}

int demo_log_find(const char *path, const char *prefix, char *buffer, size_t size)
{
	cleanup_fclose FILE *file = fopen(path, "re");
	char line[1024];

	while (file && fgets(line, sizeof(line), file)) {
		char *found = strstr(line, prefix);
		char *end = strchr(line, '\n');

		if (!found || !end)
			continue;
		*end = '\0';
		snprintf(buffer, size, "%s", found + strlen(prefix));
		return 1;
	}
	return 0;
}

char *demo_log_last_line(const char *path, char *buffer, size_t size)
{
	cleanup_fclose FILE *file = fopen(path, "re");
	char line[1024];

	buffer[0] = '\0';
	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0])
			snprintf(buffer, size, "%s", line);
	}
	return buffer;
}
