/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/proxy_run.h"
#include "collect/process.h"

/* An agent whose process does not listen at a server's address for so long probably belongs to another server. */
#define UNMATCHED_NS_MAX (60 * TAILOR_NS_PER_S)
/* How long the same refusal is said only once. */
#define REFUSED_AGAIN_NS (60 * TAILOR_NS_PER_S)
/* A listener may pass to another process while the old one lives on; looking for it walks /proc. */
#define LOOK_AGAIN_NS (10 * TAILOR_NS_PER_S)
#define LOOK_SOON_NS TAILOR_NS_PER_S

static void attach(struct proxy_run *run, size_t i, struct tailor_jvm *jvm)
{
	pthread_mutex_lock(&run->lock);
	run->server[i].jvm = tailor_jvm_ref(jvm);
	pthread_mutex_unlock(&run->lock);
	tailor_proxy_jvm_attach(run->proxy, (unsigned int)i, jvm->page, jvm->wakers);
	tailor_observer_jvm(run->observer, i, jvm);
	proxy_say("server %s: agent connected (pid %d)", run->config.server[i].name, (int)jvm->pid);
}

static void detach(struct proxy_run *run, size_t i)
{
	struct tailor_jvm *jvm = run->server[i].jvm;

	if (!jvm)
		return;
	tailor_proxy_jvm_detach(run->proxy, (unsigned int)i);
	tailor_observer_jvm(run->observer, i, NULL);
	pthread_mutex_lock(&run->lock);
	run->server[i].jvm = NULL;
	pthread_mutex_unlock(&run->lock);
	tailor_jvm_unref(jvm);
}

static void drop_unmatched(struct proxy_run *run, size_t i)
{
	struct tailor_jvm *jvm = run->unmatched[i].jvm;

	run->unmatched_count--;
	memmove(&run->unmatched[i], &run->unmatched[i + 1], (run->unmatched_count - i) * sizeof(run->unmatched[0]));
	tailor_jvm_unref(jvm);
}

static void add_unmatched(struct proxy_run *run, struct tailor_jvm *jvm)
{
	if (run->unmatched_count == UNMATCHED_MAX) {
		proxy_say("the agent of pid %d is not used: %d agents wait already for a server of theirs", (int)run->unmatched[0].jvm->pid,
		          UNMATCHED_MAX);
		drop_unmatched(run, 0);
	}
	run->unmatched[run->unmatched_count++] = (struct proxy_unmatched){tailor_jvm_ref(jvm), tailor_clock_ns(), 0};
}

static int has_waited(const struct proxy_unmatched *unmatched)
{
	return tailor_clock_ns() - unmatched->since_ns > UNMATCHED_NS_MAX;
}

/* Gives waiting agents to the servers whose process they are in. */
static void match(struct proxy_run *run)
{
	for (size_t j = run->unmatched_count; j-- > 0;) {
		struct proxy_unmatched *unmatched = &run->unmatched[j];
		size_t i = 0;

		/* 0 is no process: one that was not found, or one in a pid namespace that is hidden from this one. */
		while (i < run->config.servers && (!run->server[i].pid || run->server[i].pid != unmatched->jvm->pid))
			i++;
		if (i < run->config.servers) {
			detach(run, i);
			attach(run, i, unmatched->jvm);
			drop_unmatched(run, j);
		} else if (!unmatched->said && has_waited(unmatched)) {
			unmatched->said = 1;
			proxy_say("the agent of pid %d is not used yet: that process listens at no configured server's address",
			          (int)unmatched->jvm->pid);
		}
	}
}

void proxy_servers_init(struct proxy_run *run)
{
	for (size_t i = 0; i < TAILOR_CONFIG_SERVERS_MAX; i++)
		run->server[i].pidfd = -1;
}

void proxy_servers_attached(void *context, struct tailor_jvm *jvm)
{
	struct proxy_run *run = context;

	add_unmatched(run, jvm);
	match(run);
}

void proxy_servers_detached(void *context, struct tailor_jvm *jvm)
{
	struct proxy_run *run = context;

	for (size_t i = 0; i < run->config.servers; i++) {
		if (run->server[i].jvm != jvm)
			continue;
		detach(run, i);
		proxy_say("server %s: agent gone (pid %d)", run->config.server[i].name, (int)jvm->pid);
	}
	for (size_t j = run->unmatched_count; j-- > 0;) {
		if (run->unmatched[j].jvm == jvm)
			drop_unmatched(run, j);
	}
}

void proxy_servers_refused(void *context, pid_t pid, const char *reason)
{
	struct proxy_run *run = context;
	uint64_t now_ns = tailor_clock_ns();
	char more[48] = "";

	/* A refused agent comes back ten times a second, and others as often as they like. */
	if (strcmp(run->refused.reason, reason) == 0 && now_ns - run->refused.said_ns < REFUSED_AGAIN_NS) {
		run->refused.unsaid++;
		return;
	}
	if (run->refused.unsaid)
		snprintf(more, sizeof(more), " (and %llu others before)", (unsigned long long)run->refused.unsaid);
	snprintf(run->refused.reason, sizeof(run->refused.reason), "%s", reason);
	run->refused.said_ns = now_ns;
	run->refused.unsaid = 0;
	proxy_say("refused pid %d at the agents' socket: %s%s", (int)pid, reason, more);
}

/* Stops tracing the server's process, unless another server's is the same. */
static void untrace(struct proxy_run *run, size_t i)
{
	for (size_t j = 0; j < run->config.servers; j++) {
		if (j != i && run->server[j].pid == run->server[i].pid)
			return;
	}
	if (run->kernel && run->server[i].pid)
		tailor_kernel_untrace(run->kernel, run->server[i].pid);
}

/* Watches for the end of the server's process: its id alone stays valid while it is a zombie, and may be another's then. */
static void watch(struct proxy_server *server)
{
	if (server->pidfd >= 0)
		close(server->pidfd);
	server->pidfd = server->pid ? pidfd_open(server->pid, 0) : -1;
}

/* Another process serves there, or none; looked_ns: before who it is was looked up. */
static void follow(struct proxy_run *run, size_t i, pid_t pid, uint64_t looked_ns)
{
	struct proxy_server *server = &run->server[i];
	int traced = 0;

	if (server->pid == pid)
		return;
	untrace(run, i);
	pthread_mutex_lock(&run->lock);
	server->pid = pid;
	pthread_mutex_unlock(&run->lock);
	server->alive_ns = looked_ns;
	watch(server);
	if (run->kernel && pid)
		traced = tailor_kernel_trace(run->kernel, pid, TAILOR_TRACED_SERVER) == 0;
	if (run->kernel && tailor_kernel_tell_stops(run->kernel, (unsigned int)i, traced ? pid : 0) != 0)
		proxy_say("server %s: what stops pid %d is not told by the kernel", run->config.server[i].name, (int)pid);
	tailor_observer_process(run->observer, i, pid);
	/* Another process serves there now: the pauses of the one before are not this server's. */
	if (pid && server->jvm && server->jvm->pid != pid) {
		add_unmatched(run, server->jvm);
		detach(run, i);
	}
	if (!pid)
		proxy_say("server %s: no process on this host listens there; its threads are not traced", run->config.server[i].name);
	else if (traced)
		proxy_say("server %s: tracing pid %d", run->config.server[i].name, (int)pid);
	else if (run->kernel)
		proxy_say("server %s: pid %d cannot be traced; its timelines lack kernel events", run->config.server[i].name, (int)pid);
}

static int is_alive(const struct proxy_server *server)
{
	struct pollfd end = {.fd = server->pidfd, .events = POLLIN};

	if (server->pidfd >= 0)
		return poll(&end, 1, 0) == 0;
	return kill(server->pid, 0) == 0 || errno == EPERM;
}

void proxy_servers_refresh(struct proxy_run *run)
{
	uint64_t now_ns = tailor_clock_ns();

	for (size_t i = 0; i < run->config.servers; i++) {
		struct proxy_server *server = &run->server[i];
		/* An agent may wait for just this server, whose listener has passed to its process. */
		uint64_t again_ns = run->unmatched_count && !server->jvm ? LOOK_SOON_NS : LOOK_AGAIN_NS;
		bool alive = server->pid && is_alive(server);
		pid_t pid = server->pid;
		int error;

		/* Before another one is looked for: who waits for this one's answer waits in vain. */
		if (server->pid && !alive)
			tailor_proxy_server_gone(run->proxy, (unsigned int)i, server->alive_ns);
		if (alive)
			server->alive_ns = now_ns;
		if (alive && now_ns - server->looked_ns < again_ns)
			continue;
		server->looked_ns = now_ns;
		error = tailor_process_listening(&run->config.server[i].address, &pid);
		/* Short of descriptors or memory, this process does not know; the server that it knew lives. */
		if (error && error != -ESRCH && error != -EACCES && server->pid && is_alive(server))
			continue;
		follow(run, i, error ? 0 : pid, now_ns);
	}
	match(run);
}

int proxy_servers_unsettled(const struct proxy_run *run)
{
	for (size_t j = 0; j < run->unmatched_count; j++) {
		if (!has_waited(&run->unmatched[j]))
			return 1;
	}
	return 0;
}

void proxy_servers_release(struct proxy_run *run)
{
	for (size_t i = 0; i < run->config.servers; i++) {
		if (run->server[i].jvm)
			tailor_jvm_unref(run->server[i].jvm);
		run->server[i].jvm = NULL;
		if (run->server[i].pidfd >= 0)
			close(run->server[i].pidfd);
		run->server[i].pidfd = -1;
	}
	while (run->unmatched_count)
		drop_unmatched(run, run->unmatched_count - 1);
}
