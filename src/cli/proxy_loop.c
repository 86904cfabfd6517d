/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/proxy_reload.h"
#include "cli/proxy_run.h"

#define REFRESH_MS 1000
#define REFRESH_SOON_MS 50
/* While stopping: how often to look whether all has ended, and when to say what has not. */
#define DRAIN_LOOK_MS 20
#define PROGRESS_FIRST_NS (2 * TAILOR_NS_PER_S)
#define PROGRESS_NS (5 * TAILOR_NS_PER_S)

int proxy_signals_open(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGUSR1);
	signal(SIGPIPE, SIG_IGN);
	/* Before any thread starts, so that all inherit it. */
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	return signalfd(-1, &signals, SFD_CLOEXEC);
}

/* A line of the report each. */
static void say_reload(struct proxy_run *run)
{
	char report[4096], *rest = report, *line;
	int error = proxy_reload(run, report, sizeof(report));

	while ((line = strsep(&rest, "\n")) && *line)
		proxy_say("%s", line);
	proxy_say(error ? "the configuration is not valid: nothing has changed" : "the configuration has been read again");
}

/* What a signal asks for beyond what was done at once. True when it is time to stop. */
static bool take_signal(struct proxy_run *run, int fd, bool stopping)
{
	struct signalfd_siginfo information;

	if (read(fd, &information, sizeof(information)) != (ssize_t)sizeof(information))
		return false;
	switch (information.ssi_signo) {
	case SIGHUP:
		if (stopping)
			proxy_say("stopping: the configuration is not read again");
		else
			say_reload(run);
		return false;
	case SIGUSR1:
		if (run->access_log)
			tailor_accesslog_reopen(run->access_log);
		return false;
	default: return true;
	}
}

#define OTHER_FDS 4

struct watch {
	uint64_t refreshed_ns;
	struct pollfd fds[OTHER_FDS + TAILOR_CONFIG_SERVERS_MAX];
};

/*
 * Waits for at most so long, follows servers and agents meanwhile, and takes signals. True when one of them says that it is
 * time to stop.
 */
static bool wait_and_follow(struct proxy_run *run, int signals, struct watch *watch, int wait_ms, bool stopping)
{
	int refresh_ms = proxy_servers_unsettled(run) ? REFRESH_SOON_MS : REFRESH_MS;
	uint64_t now_ns = tailor_clock_ns();
	struct pollfd *fds = watch->fds;

	if (now_ns - watch->refreshed_ns >= (uint64_t)refresh_ms * TAILOR_NS_PER_MS) {
		proxy_servers_refresh(run);
		proxy_say_trouble(run);
		watch->refreshed_ns = tailor_clock_ns();
	}
	fds[0] = (struct pollfd){.fd = signals, .events = POLLIN};
	fds[1] = (struct pollfd){.fd = run->hub ? tailor_jvm_hub_fd(run->hub) : -1, .events = POLLIN};
	fds[2] = (struct pollfd){.fd = run->successor.fd, .events = POLLIN};
	fds[3] = (struct pollfd){.fd = stopping ? -1 : run->successor.listener, .events = POLLIN};
	for (size_t i = 0; i < TAILOR_CONFIG_SERVERS_MAX; i++)
		fds[OTHER_FDS + i] = (struct pollfd){.fd = run->server[i].pidfd, .events = POLLIN};
	if (poll(fds, OTHER_FDS + TAILOR_CONFIG_SERVERS_MAX, refresh_ms < wait_ms ? refresh_ms : wait_ms) < 0)
		return errno != EINTR;
	if ((fds[0].revents & POLLIN) && take_signal(run, signals, stopping))
		return true;
	if (fds[1].revents & POLLIN)
		tailor_jvm_hub_dispatch(run->hub);
	proxy_successor_dispatch(run, fds[2].revents, fds[3].revents);
	/* A server has died: until its successor is found, what is sent there is not traced, and must be known not to be. */
	for (size_t i = 0; i < TAILOR_CONFIG_SERVERS_MAX; i++) {
		if (fds[OTHER_FDS + i].revents)
			proxy_servers_refresh(run);
	}
	return false;
}

bool proxy_serve(struct proxy_run *run, int signals)
{
	struct watch watch = {.refreshed_ns = tailor_clock_ns()};

	bool told = false;

	for (;;) {
		bool tell = wait_and_follow(run, signals, &watch, REFRESH_MS, false);

		if (run->successor.stage == SUCCESSOR_SERVES)
			return true;
		/* One that is about to serve is waited for: nobody would know who is to serve. */
		if (tell && (told || !proxy_successor_is_due(run)))
			return proxy_successor_turn_away(run);
		told |= tell;
		if (told && !proxy_successor_is_due(run))
			return false;
	}
}

static void say_in_flight(const struct proxy_run *run)
{
	struct tailor_proxy_status status;
	unsigned int in_flight = 0;

	tailor_proxy_status(run->proxy, &status);
	for (unsigned int i = 0; i < status.servers; i++)
		in_flight += status.server[i].in_flight;
	proxy_say("stopping: in flight still: %u, connections open: %u, of these tunnels: %u", in_flight, status.clients, status.tunnels_open);
}

void proxy_drain(struct proxy_run *run, int signals, bool patient)
{
	struct watch watch = {.refreshed_ns = tailor_clock_ns()};
	uint64_t began_ns = tailor_clock_ns(), say_ns = began_ns + PROGRESS_FIRST_NS;
	uint64_t deadline_ns = began_ns + run->config.stop_timeout_ns, close_idle_ns = deadline_ns - run->config.stop_timeout_ns / 8;
	struct tailor_proxy_status status;

	tailor_proxy_stop_begin(run->proxy, deadline_ns, patient);
	while (!tailor_proxy_stopped(run->proxy)) {
		if (wait_and_follow(run, signals, &watch, DRAIN_LOOK_MS, true)) {
			proxy_say("ending at once");
			tailor_proxy_stop_begin(run->proxy, tailor_clock_ns(), false);
			patient = false;
		}
		/* Whose clients have not sent anything until now are told in good order that nobody listens any more. */
		if (patient && tailor_clock_ns() >= close_idle_ns) {
			tailor_proxy_stop_begin(run->proxy, deadline_ns, false);
			patient = false;
		}
		if (tailor_clock_ns() >= say_ns) {
			say_in_flight(run);
			say_ns += PROGRESS_NS;
		}
	}
	proxy_successor_say_lost(run);
	tailor_proxy_status(run->proxy, &status);
	if (status.stopped)
		proxy_say("stopped: requests that had not ended and were cut: %llu", (unsigned long long)status.stopped);
}
