/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/proxy_run.h"
#include "collect/process.h"

/* An agent whose process does not listen at a server's address for so long may belong to another server, or its server
 * takes long to start: it goes on waiting, but nobody looks for it every few milliseconds any more. */
#define UNMATCHED_NS_MAX (60 * TAILOR_NS_PER_S)
/* How long the same refusal is said only once. */
#define REFUSED_AGAIN_NS (60 * TAILOR_NS_PER_S)
/* A listener may pass to another process while the old one lives on; looking for it walks /proc. */
#define LOOK_AGAIN_NS (10 * TAILOR_NS_PER_S)

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
	struct tailor_jvm *jvm = run->unmatched[i];

	pthread_mutex_lock(&run->lock);
	run->unmatched_count--;
	memmove(&run->unmatched[i], &run->unmatched[i + 1], (run->unmatched_count - i) * sizeof(run->unmatched[0]));
	memmove(&run->unmatched_since_ns[i], &run->unmatched_since_ns[i + 1],
	        (run->unmatched_count - i) * sizeof(run->unmatched_since_ns[0]));
	pthread_mutex_unlock(&run->lock);
	tailor_jvm_unref(jvm);
}

/* Gives waiting agents to the servers whose process they are in. */
static void match(struct proxy_run *run)
{
	for (size_t j = run->unmatched_count; j-- > 0;) {
		struct tailor_jvm *jvm = run->unmatched[j];
		size_t i = 0;

		while (i < run->config.servers && run->server[i].pid != jvm->pid)
			i++;
		if (i < run->config.servers) {
			detach(run, i);
			attach(run, i, jvm);
			drop_unmatched(run, j);
		} else if (run->unmatched_since_ns[j] && tailor_clock_ns() - run->unmatched_since_ns[j] > UNMATCHED_NS_MAX) {
			proxy_say("the agent of pid %d is not used yet: that process listens at no configured server's address", (int)jvm->pid);
			run->unmatched_since_ns[j] = 0;
		}
	}
}

void proxy_servers_attached(void *context, struct tailor_jvm *jvm)
{
	struct proxy_run *run = context;

	/* One that has waited for long gives its place to the newcomer. */
	for (size_t j = 0; run->unmatched_count == UNMATCHED_MAX && j < UNMATCHED_MAX; j++) {
		if (!run->unmatched_since_ns[j]) {
			drop_unmatched(run, j);
			break;
		}
	}
	if (run->unmatched_count == UNMATCHED_MAX) {
		proxy_say("the agent of pid %d is not used: %d agents wait already for a server of theirs", (int)jvm->pid, UNMATCHED_MAX);
		return;
	}
	pthread_mutex_lock(&run->lock);
	run->unmatched[run->unmatched_count] = tailor_jvm_ref(jvm);
	run->unmatched_since_ns[run->unmatched_count++] = tailor_clock_ns();
	pthread_mutex_unlock(&run->lock);
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
		if (run->unmatched[j] == jvm)
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

static void follow(struct proxy_run *run, size_t i, pid_t pid)
{
	struct proxy_server *server = &run->server[i];

	if (server->pid == pid)
		return;
	if (run->kernel && server->pid)
		tailor_kernel_untrace(run->kernel, server->pid);
	pthread_mutex_lock(&run->lock);
	server->pid = pid;
	pthread_mutex_unlock(&run->lock);
	tailor_observer_process(run->observer, i, pid);
	if (!pid) {
		proxy_say("server %s: no process on this host listens there; its threads are not traced", run->config.server[i].name);
		return;
	}
	if (!run->kernel)
		return;
	if (tailor_kernel_trace(run->kernel, pid, TAILOR_TRACED_SERVER) == 0)
		proxy_say("server %s: tracing pid %d", run->config.server[i].name, (int)pid);
	else
		proxy_say("server %s: pid %d cannot be traced; its timelines lack kernel events", run->config.server[i].name, (int)pid);
}

static int is_alive(pid_t pid)
{
	return kill(pid, 0) == 0 || errno == EPERM;
}

void proxy_servers_refresh(struct proxy_run *run)
{
	uint64_t now_ns = tailor_clock_ns();

	for (size_t i = 0; i < run->config.servers; i++) {
		struct proxy_server *server = &run->server[i];
		pid_t pid = 0;

		if (server->pid && is_alive(server->pid) && now_ns - server->looked_ns < LOOK_AGAIN_NS)
			continue;
		server->looked_ns = now_ns;
		if (tailor_process_listening(&run->config.server[i].address, &pid) != 0)
			pid = 0;
		follow(run, i, pid);
	}
	match(run);
}

int proxy_servers_unsettled(const struct proxy_run *run)
{
	for (size_t i = 0; i < run->unmatched_count; i++) {
		if (run->unmatched_since_ns[i])
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
	}
	while (run->unmatched_count)
		tailor_jvm_unref(run->unmatched[--run->unmatched_count]);
}
