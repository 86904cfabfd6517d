/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collect/text.h"
#include "observer/running.h"

/* A collection may have begun long before the request that it delays. */
#define JVM_BEFORE_NS (10 * TAILOR_NS_PER_S)
#define SCAN_NS TAILOR_NS_PER_S

int observer_answering(const struct tailor_observer *observer, const struct tailor_record *record)
{
	if (record->answered < 0 || record->attempt[record->answered].server >= observer->options.servers)
		return -1;
	return record->attempt[record->answered].server;
}

/* What a stop was for: the proxy's workers may not have been told. */
static void learn_collection(struct tailor_observer *observer, size_t server, uint64_t position, const struct tailor_event *event)
{
	char text[TAILOR_TEXT_BYTES * TAILOR_TEXTS_MAX + 1];

	tailor_text_read(&observer->watched[server].tail.channel, position, event, text, sizeof(text));
	tailor_failovers_collected(&observer->failovers, (unsigned int)server, event->arg[1], event->time_ns, text);
}

/* Takes thread names, and collections, from what the agents have written since the last time. */
static void learn_from_agents(struct tailor_observer *observer, uint64_t now_ns)
{
	for (size_t i = 0; i < observer->options.servers; i++) {
		struct watched *watched = &observer->watched[i];
		struct tailor_event event;
		uint64_t position;
		char name[TAILOR_THREAD_NAME_BYTES];

		if (!watched->jvm)
			continue;
		while (tailor_tail_next(&watched->tail, now_ns, &event, &position)) {
			if (event.kind == TAILOR_EVENT_GC_FINISH)
				learn_collection(observer, i, position, &event);
			/* Names are of use only where the JVM's thread ids are those that the kernel's events carry. */
			if (watched->jvm->own_pid != (uint32_t)watched->jvm->pid)
				continue;
			if (event.kind == TAILOR_EVENT_THREAD_END)
				tailor_threads_ended(&observer->threads, watched->jvm->own_pid, event.tid);
			else if (event.kind == TAILOR_EVENT_THREAD_START &&
			         tailor_text_read(&watched->tail.channel, position, &event, name, sizeof(name)) > 0)
				tailor_threads_learn(&observer->threads, watched->jvm->own_pid, event.tid, name);
		}
	}
}

/* Names of threads that no agent tells: the JVM's own (VM Thread, GC workers), the proxy's, those of servers without an agent. */
static void scan_names(struct tailor_observer *observer, uint64_t now_ns)
{
	if (now_ns - observer->scanned_ns < SCAN_NS)
		return;
	observer->scanned_ns = now_ns;
	tailor_threads_scan(&observer->threads, getpid());
	for (size_t i = 0; i < observer->options.servers; i++) {
		pid_t pid = tailor_presence_now(&observer->watched[i].process);

		if (pid)
			tailor_threads_scan(&observer->threads, pid);
	}
	tailor_threads_age(&observer->threads);
}

void observer_learn_names(struct tailor_observer *observer, uint64_t now_ns)
{
	learn_from_agents(observer, now_ns);
	scan_names(observer, now_ns);
}

void observer_sources_init(struct tailor_observer *observer)
{
	for (size_t i = 0; i < observer->options.cpus; i++) {
		observer->sources[i] = (struct tailor_source){
			.channel = observer->options.kernel_channels[i], .before_ns = BEFORE_NS, .earlier_ns = EARLIER_NS,
			.hold = &observer->holds[i]};
		snprintf(observer->sources[i].name, sizeof(observer->sources[i].name), "cpu%zu", i);
	}
}

size_t observer_list_sources(struct tailor_observer *observer)
{
	size_t count = observer->options.cpus;

	for (size_t i = 0; i < observer->options.servers; i++) {
		const struct tailor_jvm *jvm = observer->watched[i].jvm;
		struct tailor_source *source = &observer->sources[count];

		if (!jvm)
			continue;
		*source = (struct tailor_source){
			.channel = jvm->channel, .own_pid = jvm->own_pid, .pid = (uint32_t)jvm->pid, .before_ns = JVM_BEFORE_NS,
			.hold = observer_jvm_hold(observer, i)};
		snprintf(source->name, sizeof(source->name), "jvm:%.19s", observer->options.server[i].name);
		count++;
	}
	return count;
}

/* Whether the agent whose channel is at hand recorded what the server's JVM did from that time on. */
static int has_agent_since(const struct watched *watched, uint64_t time_ns)
{
	return watched->jvm && watched->jvm->started_ns <= time_ns && (watched->gone_ns == 0 || watched->gone_ns > time_ns);
}

static uint64_t begin_of(const struct tailor_record *record, const struct tailor_attempt *attempt)
{
	return attempt->begin_ns ? attempt->begin_ns : record->request.begin_ns;
}

uint32_t observer_describe_servers(const struct tailor_observer *observer, const struct tailor_record *record,
                                   struct tailor_window_server servers[TAILOR_OBSERVER_SERVERS_MAX])
{
	uint32_t missing = observer->options.missing;

	for (size_t i = 0; i < observer->options.servers; i++) {
		snprintf(servers[i].name, sizeof(servers[i].name), "%s", observer->options.server[i].name);
		servers[i].port = observer->options.server[i].port;
		servers[i].pid = (uint32_t)tailor_presence_at(&observer->watched[i].process, record->request.begin_ns);
	}
	for (unsigned int i = 0; i < record->attempts; i++) {
		unsigned int server = record->attempt[i].server;
		uint64_t begin_ns = begin_of(record, &record->attempt[i]);

		if (server >= observer->options.servers)
			continue;
		servers[server].pid = (uint32_t)tailor_presence_at(&observer->watched[server].process, begin_ns);
		if (!has_agent_since(&observer->watched[server], begin_ns))
			missing |= TAILOR_MISSING_AGENT;
		if (!servers[server].pid)
			missing |= TAILOR_MISSING_SERVER_PID;
		else if (observer->options.kernel)
			missing |= tailor_kernel_process_missing(observer->options.kernel, (pid_t)servers[server].pid);
	}
	return missing;
}

void tailor_observer_jvm(struct tailor_observer *observer, size_t server, struct tailor_jvm *jvm)
{
	struct watched *watched = &observer->watched[server];

	pthread_mutex_lock(&observer->lock);
	watched->gone_ns = jvm ? 0 : tailor_clock_ns();
	if (jvm) {
		for (int why = 0; why < TAILOR_LOST_REASONS && watched->jvm; why++)
			watched->lost[why] += watched->tail.lost_by[why];
		tailor_jvm_unref(watched->jvm);
		tailor_hold_drop(observer_jvm_hold(observer, server), &observer->hold_room);
		watched->jvm = tailor_jvm_ref(jvm);
		tailor_tail_open(&watched->tail, &jvm->channel, 1);
	}
	pthread_mutex_unlock(&observer->lock);
}

void tailor_observer_process(struct tailor_observer *observer, size_t server, pid_t pid)
{
	pthread_mutex_lock(&observer->lock);
	tailor_presence_note(&observer->watched[server].process, pid, tailor_clock_ns());
	observer->scanned_ns = 0;
	pthread_mutex_unlock(&observer->lock);
}
