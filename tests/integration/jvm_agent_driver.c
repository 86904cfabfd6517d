/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A proxy that only watches: opens the hub at argv[1] and prints one line per thing that happens, fields separated by
 * '|', for jvm_agent.py to judge. Ends at the end of its standard input, which may say "wants BITS" and
 * "wish WHAT MILLISECONDS", as a proxy does through the page. Uses waker 0 as a worker would.
 *
 *   listening | attached PID OWN_PID SLOTS | detached PID | refused PID REASON | lost FROM COUNT
 *   event POSITION KIND TIME CPU PID TID ARG0 ARG1 ARG2 REQUEST TEXT
 *   wake TIME STATE SINCE              the state as it was seen just after the eventfd woke us
 *   can BITS                           after attached
 *   cause STATE SINCE TEXT             with each wake and each page
 *   heap TIME YOUNG_USED YOUNG_SIZE OLD_USED OLD_SIZE COLLECTED_YOUNG COLLECTED_OLD NOW    with each page, once it was filled
 *   wished WORD NOW | granted WORD NOW PAUSES
 *   page STATE SINCE PAUSES TOTAL LAST MAX HEARTBEAT NOW      every 50 ms, in a pause 5, and when a JVM leaves
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <tailor/event_names.h>
#include "base/clock.h"
#include "base/listen.h"
#include "collect/jvm.h"

static struct {
	struct tailor_jvm *jvm; /* the latest one */
	uint64_t position;
	uint64_t wish; /* not granted yet; 0: none */
} watched;

static void print_cause(const struct tailor_jvm_page *page, uint64_t state)
{
	printf("cause|%d|%" PRIu64 "|%.*s\n", (int)TAILOR_JVM_STATE_OF(state), TAILOR_JVM_SINCE_NS(state), TAILOR_JVM_CAUSE_BYTES,
	       page->cause);
}

static void print_heap(const struct tailor_jvm_page *page)
{
	uint64_t version = __atomic_load_n(&page->heap.version, __ATOMIC_ACQUIRE);
	const tailor_word *from = (const tailor_word *)(const void *)&page->heap;
	tailor_word words[sizeof(struct tailor_jvm_heap) / sizeof(tailor_word)];
	struct tailor_jvm_heap heap;

	/* Acquire loads keep the second look at the version behind them. */
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		words[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
	memcpy(&heap, words, sizeof(heap));
	if (!version || (version & 1) || __atomic_load_n(&page->heap.version, __ATOMIC_RELAXED) != version)
		return;
	printf("heap|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "\n", heap.time_ns,
	       heap.young_used, heap.young_size, heap.old_used, heap.old_size, heap.collected_young, heap.collected_old,
	       tailor_clock_ns());
}

static void print_page(const struct tailor_jvm *jvm)
{
	const struct tailor_jvm_page *page = jvm->page;
	uint64_t state = __atomic_load_n(&page->state, __ATOMIC_ACQUIRE);

	printf("page|%d|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "\n",
	       (int)TAILOR_JVM_STATE_OF(state), TAILOR_JVM_SINCE_NS(state), page->pauses, page->pause_ns_total,
	       page->pause_ns_last, page->pause_ns_max, page->heartbeat_ns, tailor_clock_ns());
	print_cause(page, state);
	print_heap(page);
}

static void print_event(const struct tailor_channel *channel, uint64_t position, const struct tailor_event *event)
{
	char text[TAILOR_TEXT_BYTES * TAILOR_TEXTS_MAX + 1];
	size_t length = 0;

	for (unsigned int i = 0; i < event->texts && i < TAILOR_TEXTS_MAX; i++) {
		struct tailor_text line;
		struct tailor_event slot;

		if (tailor_channel_read(channel, position + 1 + i, &slot) != TAILOR_READ_OK ||
		    slot.kind != TAILOR_EVENT_TEXT)
			break;
		memcpy(&line, &slot, sizeof(line));
		if (line.length > TAILOR_TEXT_BYTES)
			break;
		memcpy(text + length, line.text, line.length);
		length += line.length;
	}
	text[length] = 0;
	printf("event|%" PRIu64 "|%s|%" PRIu64 "|%u|%u|%u|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%s\n", position,
	       tailor_event_kind_name((enum tailor_event_kind)event->kind), event->time_ns, event->cpu, event->pid,
	       event->tid, event->arg[0], event->arg[1], event->arg[2], event->request, text);
}

static void read_channel(void)
{
	const struct tailor_channel *channel;
	uint64_t end, slots;

	if (!watched.jvm)
		return;
	channel = &watched.jvm->channel;
	slots = channel->mask + 1;
	end = tailor_channel_end(channel);
	if (end > slots && watched.position < end - slots) {
		printf("lost|%" PRIu64 "|%" PRIu64 "\n", watched.position, end - slots - watched.position);
		watched.position = end - slots;
	}
	while (watched.position < end) {
		struct tailor_event event;

		switch (tailor_channel_read(channel, watched.position, &event)) {
		case TAILOR_READ_OK:
			if (event.kind != TAILOR_EVENT_TEXT)
				print_event(channel, watched.position, &event);
			break;
		case TAILOR_READ_LOST: printf("lost|%" PRIu64 "|1\n", watched.position); break;
		case TAILOR_READ_PENDING: return;
		}
		watched.position++;
	}
}

static void attached(void *context, struct tailor_jvm *jvm)
{
	(void)context;
	printf("attached|%d|%u|%" PRIu64 "\n", (int)jvm->pid, jvm->own_pid, jvm->channel.mask + 1);
	printf("can|%" PRIu64 "\n", jvm->page->can);
	tailor_jvm_unref(watched.jvm);
	watched.jvm = tailor_jvm_ref(jvm);
	watched.position = 0;
}

static void detached(void *context, struct tailor_jvm *jvm)
{
	(void)context;
	if (jvm == watched.jvm)
		read_channel();
	print_page(jvm);
	printf("detached|%d\n", (int)jvm->pid);
}

static void refused(void *context, pid_t pid, const char *reason)
{
	(void)context;
	printf("refused|%d|%s\n", (int)pid, reason);
}

static int is_collecting(void)
{
	return watched.jvm && TAILOR_JVM_STATE_OF(__atomic_load_n(&watched.jvm->page->state, __ATOMIC_RELAXED)) == TAILOR_JVM_COLLECTING;
}

/* A line: what a proxy would write into the page. */
static void obey(const char *input)
{
	struct tailor_jvm_page *page = watched.jvm ? watched.jvm->page : NULL;
	unsigned long wants, milliseconds;
	int what;

	if (!page)
		return;
	if (sscanf(input, "wants %lu", &wants) == 1)
		__atomic_store_n(&page->wants, wants, __ATOMIC_RELAXED);
	if (sscanf(input, "wish %d %lu", &what, &milliseconds) == 2) {
		uint64_t now_ns = tailor_clock_ns();

		watched.wish = TAILOR_JVM_WISH(what, now_ns + milliseconds * TAILOR_NS_PER_MS);
		printf("wished|%" PRIu64 "|%" PRIu64 "\n", watched.wish, now_ns);
		__atomic_store_n(&page->wish, watched.wish, __ATOMIC_RELEASE);
	}
}

static void look_at_wish(void)
{
	const struct tailor_jvm_page *page = watched.jvm ? watched.jvm->page : NULL;

	if (!page || !watched.wish || __atomic_load_n(&page->granted, __ATOMIC_ACQUIRE) != watched.wish)
		return;
	printf("granted|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "\n", watched.wish, tailor_clock_ns(), page->pauses);
	watched.wish = 0;
}

/* As a worker: says that it sleeps, looks once more, sleeps, and says that it woke. */
static int sleep_as_worker(struct tailor_jvm_hub *hub)
{
	struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
	                       {.fd = tailor_jvm_hub_fd(hub), .events = POLLIN},
	                       {.fd = watched.jvm ? watched.jvm->wakers[0] : -1, .events = POLLIN}};
	uint32_t *sleeping = watched.jvm ? &watched.jvm->page->waker[0].sleeping : NULL;
	int timeout_ms = watched.wish ? 1 : is_collecting() ? 5 : 50;
	char input[64] = "";
	uint64_t wakes;

	if (sleeping) {
		uint64_t before = __atomic_load_n(&watched.jvm->page->state, __ATOMIC_RELAXED);

		__atomic_exchange_n(sleeping, 1, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&watched.jvm->page->state, __ATOMIC_SEQ_CST) != before)
			timeout_ms = 0;
	}
	poll(fds, 3, timeout_ms);
	if (sleeping)
		__atomic_store_n(sleeping, 0, __ATOMIC_RELAXED);
	if ((fds[2].revents & POLLIN) && read(fds[2].fd, &wakes, sizeof(wakes)) == sizeof(wakes)) {
		uint64_t state = __atomic_load_n(&watched.jvm->page->state, __ATOMIC_ACQUIRE);

		printf("wake|%" PRIu64 "|%d|%" PRIu64 "\n", tailor_clock_ns(), (int)TAILOR_JVM_STATE_OF(state),
		       TAILOR_JVM_SINCE_NS(state));
		print_cause(watched.jvm->page, state);
	}
	if (!fds[0].revents)
		return 1;
	if (read(STDIN_FILENO, input, sizeof(input) - 1) <= 0)
		return 0;
	for (char *line = strtok(input, "\n"); line; line = strtok(NULL, "\n"))
		obey(line);
	return 1;
}

int main(int argc, char **argv)
{
	const struct tailor_jvm_events events = {.attached = attached, .detached = detached, .refused = refused};
	struct tailor_jvm_hub *hub;
	uint64_t page_at_ns = 0;
	char error[256];

	if (argc != 2) {
		fprintf(stderr, "usage: %s SOCKET\n", argv[0]);
		return 2;
	}
	if (tailor_jvm_hub_open(argv[1], TAILOR_LISTEN_OWNER, &events, &hub, error, sizeof(error)) < 0) {
		fprintf(stderr, "%s\n", error);
		return 1;
	}
	printf("listening\n");
	fflush(stdout);
	while (sleep_as_worker(hub)) {
		tailor_jvm_hub_dispatch(hub);
		read_channel();
		look_at_wish();
		if (watched.jvm && (is_collecting() || tailor_clock_ns() > page_at_ns)) {
			print_page(watched.jvm);
			page_at_ns = tailor_clock_ns() + 50 * TAILOR_NS_PER_MS;
		}
		fflush(stdout);
	}
	read_channel();
	tailor_jvm_hub_close(hub);
	tailor_jvm_unref(watched.jvm);
	return 0;
}
