/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data path alone, with tags and channels in plain memory and JVMs played by this program, for the tests in
 * proxy*.py. Commands on stdin, one a line; every answer ends with a line "end".
 *
 *   status            counters as one line of JSON
 *   events            "KIND request extra time_ns pid tid arg0 arg1 arg2 text" of what came since the last time
 *   tags              "port server server_port request" of entries in use
 *   claim             makes all free tag entries somebody else's
 *   attach S          gives server S a JVM that runs
 *   detach S
 *   pause S, resume S
 *   blink S [US]      a pause that is over before anybody is told, and that was so long
 *   pulse S US        a pause of that length; says how many us it was
 *   cause S [WORD]    why it collects, as far as its agent knows: from the next pause on, or only in the one that goes on
 *   tell S KIND       what the kernel's table says of server S: enum tailor_stop_kind (option "table 1"); wakes who waits for it
 *   beat S, unbeat S  its agent's heartbeat, which is missing at first
 *   gone S            its process has ended
 *   swap
 *   late TID          says that this thread was kept from running for 50 ms, until now
 *   stop MS           graceful, at most MS milliseconds; then the program ends
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tailor/event_names.h>

#include "base/clock.h"
#include "http1/http1.h"
#include "proxy/proxy.h"

#define SLOTS (1u << 19)

static struct tailor_proxy *proxy;
static struct tailor_proxy_options options;
static struct tailor_channel channels[TAILOR_PROXY_WORKERS_MAX];
static uint64_t positions[TAILOR_PROXY_WORKERS_MAX];
static struct tailor_late lates[TAILOR_LATE_THREADS];
static struct tailor_jvm_page *pages[TAILOR_PROXY_SERVERS_MAX];
static int wakers[TAILOR_PROXY_SERVERS_MAX][TAILOR_JVM_WAKERS];
static struct tailor_stop stops[TAILOR_STOP_SERVERS];
static unsigned int beating; /* atomic: servers as bits */
static uint64_t beat_late_ns; /* atomic: the longest that the hearts stood still without being told to */

static void *map_memory(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return memory;
}

static void print_status(void)
{
	struct tailor_proxy_status status;

	tailor_proxy_status(proxy, &status);
	printf("{\"requests\":%" PRIu64 ",\"refused\":%" PRIu64 ",\"client_gone\":%" PRIu64 ",\"cut\":%" PRIu64
	       ",\"failed_over\":%" PRIu64 ",\"stale\":%" PRIu64 ",\"clients\":%u,\"queued\":%u,\"tunnels\":%u,\"tunnels_idle\":%" PRIu64
	       ",\"tunnel_bytes\":[%" PRIu64 ",%" PRIu64 "],\"active\":%u,\"not_moved\":{",
	       status.requests, status.refused, status.client_gone, status.cut, status.failed_over,
	       status.stale_completions, status.clients, status.queued, status.tunnels_open, status.tunnels_idle,
	       status.tunnel_bytes_to_server, status.tunnel_bytes_to_client, status.active);
	for (int i = 0; i < TAILOR_NOT_MOVED_REASONS; i++)
		printf("%s\"%s\":%" PRIu64, i ? "," : "", tailor_not_moved_name((enum tailor_not_moved)i),
		       status.not_moved[i]);
	printf("},\"refused_by\":{");
	for (int i = 1; i < TAILOR_REFUSALS; i++)
		printf("%s\"%s\":%" PRIu64, i > 1 ? "," : "", tailor_refusal_name((enum tailor_refusal)i), status.refused_by[i]);
	printf("},\"switches\":%" PRIu64 ",\"switch_backs\":%" PRIu64, status.switches, status.switch_backs);
	for (int i = 0; i < TAILOR_REACTIONS; i++) {
		printf(",\"reaction_to_%s\":{\"ns_total\":%" PRIu64 ",\"count\":[", tailor_reaction_name((enum tailor_reaction)i),
		       status.reaction[i].ns_total);
		for (unsigned int j = 0; j <= TAILOR_REACTION_BUCKETS; j++)
			printf("%s%" PRIu64, j ? "," : "", status.reaction[i].count[j]);
		printf("]}");
	}
	printf(",\"beat_late_ns\":%" PRIu64 ",\"server\":[", __atomic_load_n(&beat_late_ns, __ATOMIC_RELAXED));
	for (unsigned int i = 0; i < status.servers; i++) {
		const struct tailor_proxy_server_status *s = &status.server[i];

		printf("%s{\"requests\":%" PRIu64 ",\"responses\":%" PRIu64 ",\"connects\":%" PRIu64
		       ",\"connect_failures\":%" PRIu64 ",\"last_resorts\":%" PRIu64 ",\"pauses\":%" PRIu64 ",\"moved_away\":%" PRIu64 ",\"moved_here\":%" PRIu64
		       ",\"in_flight\":%u,\"connections\":%u,\"agent\":%u,\"paused\":%u,\"stop\":%u,\"service_ns\":%" PRIu64 ",\"stops\":[%" PRIu64 ",%" PRIu64
		       ",%" PRIu64 ",%" PRIu64 "]}",
		       i ? "," : "", s->requests, s->responses, s->connects, s->connect_failures, s->last_resorts, s->pauses,
		       s->moved_away, s->moved_here, s->in_flight, s->connections, s->agent, s->paused, s->stop, s->service_ns,
		       s->stops[TAILOR_STOP_SAFEPOINT], s->stops[TAILOR_STOP_SIGNAL], s->stops[TAILOR_STOP_GC], s->stops[TAILOR_STOP_STALL]);
	}
	printf("]}\n");
}

static void print_one(const struct tailor_event *event, const char *text)
{
	printf("%u %016" PRIx64 " %u %" PRIu64 " %u %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n", event->kind,
	       event->request, event->extra, event->time_ns, event->pid, event->tid, event->arg[0], event->arg[1],
	       event->arg[2], text);
}

/* Events that stand for others, too, as if those had been written. */
static void print_event(const struct tailor_event *event, const char *text)
{
	struct tailor_event one = *event;

	if (event->kind == TAILOR_EVENT_REQUEST_PARSED && event->arg[1]) {
		one.kind = TAILOR_EVENT_REQUEST_BEGIN;
		one.time_ns = event->arg[1];
		one.arg[0] = TAILOR_CLIENT_PORT(event->arg[2]);
		one.arg[1] = TAILOR_CLIENT_IP(event->arg[2]);
		one.arg[2] = 0;
		print_one(&one, "");
	}
	one = *event;
	one.arg[2] = 0;
	if (event->kind == TAILOR_EVENT_RESPONSE_END && (event->arg[2] & TAILOR_RESPONSE_BEGAN)) {
		one.kind = TAILOR_EVENT_RESPONSE_BEGIN;
		print_one(&one, "");
	}
	print_one(event, text);
	if (event->kind == TAILOR_EVENT_RESPONSE_END && (event->arg[2] & TAILOR_RESPONSE_REPLIED)) {
		one.kind = TAILOR_EVENT_REPLY_BEGIN;
		one.extra = 0;
		print_one(&one, "");
	}
}

static void print_events(unsigned int worker)
{
	for (;;) {
		char text[TAILOR_TEXT_BYTES * TAILOR_TEXTS_MAX + 1] = "";
		struct tailor_event event;
		uint64_t position = positions[worker];
		size_t length = 0;
		unsigned int texts;
		enum tailor_read ret = tailor_channel_read(&channels[worker], position, &event);

		if (ret == TAILOR_READ_PENDING)
			return;
		positions[worker]++;
		if (ret == TAILOR_READ_LOST) {
			printf("lost\n");
			continue;
		}
		texts = event.texts;
		for (unsigned int i = 1; i <= texts; i++) {
			struct tailor_event raw;
			struct tailor_text line;

			while ((ret = tailor_channel_read(&channels[worker], position + i, &raw)) ==
			       TAILOR_READ_PENDING)
				usleep(10);
			if (ret != TAILOR_READ_OK)
				break;
			memcpy(&line, &raw, sizeof(line));
			memcpy(text + length, line.text, line.length);
			length += line.length;
			positions[worker]++;
		}
		text[length] = '\0';
		print_event(&event, text);
	}
}

static void print_tags(void)
{
	for (unsigned int port = 0; port < TAILOR_TAGS; port++) {
		const struct tailor_tag *tag = &options.tags[port];
		uint16_t server_port = __atomic_load_n(&tag->server_port, __ATOMIC_ACQUIRE);

		if (server_port)
			printf("%u %u %u %016" PRIx64 "\n", port, tag->server, server_port,
			       __atomic_load_n(&tag->request, __ATOMIC_ACQUIRE));
	}
}

static void attach(unsigned int server)
{
	if (!pages[server]) {
		pages[server] = map_memory(sizeof(*pages[server]));
		for (unsigned int i = 0; i < TAILOR_JVM_WAKERS; i++)
			wakers[server][i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	}
	tailor_proxy_jvm_attach(proxy, server, pages[server], wakers[server]);
}

/* As the agent does it: the state first, then whoever sleeps. */
static void set_state(unsigned int server, enum tailor_jvm_state state)
{
	struct tailor_jvm_page *page = pages[server];
	uint64_t one = 1;

	if (state == TAILOR_JVM_COLLECTING)
		__atomic_fetch_add(&page->pauses, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&page->state, TAILOR_JVM_STATE(state, tailor_clock_ns()), __ATOMIC_SEQ_CST);
	for (unsigned int i = 0; i < TAILOR_JVM_WAKERS; i++) {
		if (__atomic_load_n(&page->waker[i].sleeping, __ATOMIC_SEQ_CST) &&
		    write(wakers[server][i], &one, sizeof(one)) != sizeof(one))
			perror("write");
	}
}

/* As the kernel does it: the word first, then whoever polls. */
static void tell(unsigned int server, unsigned int kind)
{
	uint64_t one = 1, now_ns = tailor_clock_ns(), waits[TAILOR_STOP_WAITERS / sizeof(one)], before = stops[server].word;

	if (before) {
		stops[server].last = TAILOR_STOP(TAILOR_STOP_KIND(before), now_ns - TAILOR_STOP_SINCE_NS(before));
		stops[server].end_ns = now_ns;
	}
	__atomic_store_n(&stops[server].word, kind ? TAILOR_STOP(kind, now_ns) : 0, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&stops[server].count, kind != TAILOR_STOP_NONE, __ATOMIC_SEQ_CST);
	memcpy(waits, stops[server].waits, sizeof(waits));
	if ((waits[0] | waits[1]) && write(options.stops_fd, &one, sizeof(one)) != sizeof(one))
		perror("write");
}

static void *beat(void *unused)
{
	uint64_t last_ns = tailor_clock_ns();

	(void)unused;
	for (;; usleep(TAILOR_JVM_HEARTBEAT_MS * 1000)) {
		uint64_t now_ns = tailor_clock_ns();

		for (unsigned int i = 0; i < options.servers; i++) {
			if (__atomic_load_n(&beating, __ATOMIC_RELAXED) & 1u << i)
				__atomic_store_n(&pages[i]->heartbeat_ns, now_ns, __ATOMIC_RELAXED);
		}
		if (now_ns - last_ns > __atomic_load_n(&beat_late_ns, __ATOMIC_RELAXED))
			__atomic_store_n(&beat_late_ns, now_ns - last_ns, __ATOMIC_RELAXED);
		last_ns = now_ns;
	}
	return NULL;
}

static void blink(unsigned int server, unsigned int us)
{
	pages[server]->pause_ns_last = us * TAILOR_NS_PER_US;
	__atomic_fetch_add(&pages[server]->pauses, 1, __ATOMIC_RELAXED);
	set_state(server, TAILOR_JVM_RUNNING);
}

/* Nothing else changes; timeouts that were not said are those of the start. */
static void apply_mode(enum tailor_proxy_mode mode)
{
	struct tailor_proxy_settings settings = {
	        .mode = mode,
	        .failover_on = options.failover_on,
	        .replay_when = options.replay_when,
	        .routes = options.routes,
	        .replay_part = options.replay_part,
	        .replay_floor_per_s = options.replay_floor_per_s,
	        .connect_timeout_ns = options.connect_timeout_ns,
	        .response_timeout_ns = options.response_timeout_ns,
	        .idle_timeout_ns = options.idle_timeout_ns,
	};

	memcpy(settings.route, options.route, sizeof(settings.route));
	tailor_proxy_apply(proxy, &settings);
}

/* Whatever keeps this thread from its CPU makes it longer. */
static void pulse(unsigned int server, unsigned int us)
{
	uint64_t began_ns = tailor_clock_ns();

	set_state(server, TAILOR_JVM_COLLECTING);
	while (tailor_clock_ns() < began_ns + us * TAILOR_NS_PER_US)
		;
	set_state(server, TAILOR_JVM_RUNNING);
	printf("%" PRIu64 "\n", (tailor_clock_ns() - began_ns) / TAILOR_NS_PER_US);
}

static void set_cause(unsigned int server, const char *cause)
{
	snprintf(pages[server]->cause, sizeof(pages[server]->cause), "%s", cause);
}

static void run(const char *command, unsigned int argument, unsigned int number, const char *word)
{
	if (strcmp(command, "status") == 0) {
		print_status();
	} else if (strcmp(command, "events") == 0) {
		for (unsigned int i = 0; i < options.workers; i++)
			print_events(i);
	} else if (strcmp(command, "tags") == 0) {
		print_tags();
	} else if (strcmp(command, "claim") == 0) {
		for (unsigned int port = 1; port < TAILOR_TAGS; port++) {
			uint16_t free_entry = 0;

			__atomic_compare_exchange_n(&options.tags[port].server_port, &free_entry, 1, 0,
			                            __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
		}
	} else if (strcmp(command, "swap") == 0) {
		printf("%d\n", tailor_proxy_swap(proxy));
	} else if (strcmp(command, "balanced") == 0) {
		apply_mode((enum tailor_proxy_mode)argument);
	} else if (strcmp(command, "attach") == 0) {
		attach(argument);
	} else if (strcmp(command, "detach") == 0) {
		tailor_proxy_jvm_detach(proxy, argument);
	} else if (strcmp(command, "pause") == 0) {
		set_state(argument, TAILOR_JVM_COLLECTING);
	} else if (strcmp(command, "resume") == 0) {
		set_state(argument, TAILOR_JVM_RUNNING);
	} else if (strcmp(command, "late") == 0) {
		struct tailor_late *late = &lates[TAILOR_LATE_ENTRY(argument)];

		late->tid = argument;
		late->from_ns = tailor_clock_ns() - 50 * TAILOR_NS_PER_MS;
		__atomic_store_n(&late->until_ns, tailor_clock_ns(), __ATOMIC_RELEASE);
		printf("%" PRIu64 "\n", late->from_ns);
	} else if (strcmp(command, "blink") == 0) {
		blink(argument, number);
	} else if (strcmp(command, "pulse") == 0) {
		pulse(argument, number);
	} else if (strcmp(command, "cause") == 0) {
		set_cause(argument, word);
	} else if (strcmp(command, "tell") == 0) {
		tell(argument, number);
	} else if (strcmp(command, "beat") == 0) {
		__atomic_fetch_or(&beating, 1u << argument, __ATOMIC_RELAXED);
	} else if (strcmp(command, "unbeat") == 0) {
		__atomic_fetch_and(&beating, ~(1u << argument), __ATOMIC_RELAXED);
	} else if (strcmp(command, "gone") == 0) {
		tailor_proxy_server_gone(proxy, argument, tailor_clock_ns() - number * TAILOR_NS_PER_MS);
	} else {
		printf("unknown command\n");
	}
}

static void read_options(int argc, char **argv)
{
	options.workers = 1;
	options.connections_max = 4096;
	options.failover_on = 1u << TAILOR_STOP_GC;
	options.route[0].methods = 1u << HTTP1_GET | 1u << HTTP1_HEAD;
	options.routes = 1;
	options.replay_part = 1;
	options.replay_floor_per_s = 10;
	options.replay_when = TAILOR_PROXY_REPLAY_ALWAYS;
	options.replay_attempts_max = 2;
	options.replay_bytes_max = 65536;
	options.replay_bytes_total = 64 << 20;
	options.head_bytes_max = 16384;
	options.connect_timeout_ns = TAILOR_NS_PER_S;
	options.response_timeout_ns = 30 * TAILOR_NS_PER_S;
	options.idle_timeout_ns = 30 * TAILOR_NS_PER_S;
	(void)tailor_address_parse("127.0.0.1:0", &options.listen);
	for (int i = 1; i + 1 < argc; i += 2) {
		const char *value = argv[i + 1];
		unsigned int number = (unsigned int)atoi(value);

		if (strcmp(argv[i], "server") == 0) {
			snprintf(options.server[options.servers].name, sizeof(options.server[0].name), "s%u",
			         options.servers);
			if (tailor_address_parse(value, &options.server[options.servers++].address) != 0)
				exit(2);
		} else if (strcmp(argv[i], "listen") == 0) {
			if (tailor_address_parse(value, &options.listen) != 0)
				exit(2);
		} else if (strcmp(argv[i], "workers") == 0) {
			options.workers = number;
		} else if (strcmp(argv[i], "connections") == 0) {
			options.connections_max = number;
		} else if (strcmp(argv[i], "failover") == 0) {
			options.failover_on = number << TAILOR_STOP_GC;
		} else if (strcmp(argv[i], "all_stops") == 0) {
			options.failover_on |= 1u << TAILOR_STOP_SAFEPOINT | 1u << TAILOR_STOP_STALL | 1u << TAILOR_STOP_GONE;
		} else if (strcmp(argv[i], "when") == 0) {
			options.replay_when = (enum tailor_proxy_replay_when)number;
		} else if (strcmp(argv[i], "switch_ms") == 0) {
			options.switch_min_ns = number * TAILOR_NS_PER_MS;
		} else if (strcmp(argv[i], "table") == 0) {
			options.stops = stops;
		} else if (strcmp(argv[i], "post") == 0) {
			options.route[0].methods |= number << HTTP1_POST;
		} else if (strncmp(argv[i], "route", 5) == 0) {
			options.route[options.routes].methods = 1u << HTTP1_POST;
			snprintf(options.route[options.routes++].path, sizeof(options.route[0].path), "%s", value);
		} else if (strcmp(argv[i], "balanced") == 0) {
			options.mode = (enum tailor_proxy_mode)number;
		} else if (strcmp(argv[i], "part") == 0) {
			options.replay_part = atof(value);
		} else if (strcmp(argv[i], "floor") == 0) {
			options.replay_floor_per_s = number;
		} else if (strcmp(argv[i], "attempts") == 0) {
			options.replay_attempts_max = number;
		} else if (strcmp(argv[i], "head") == 0) {
			options.head_bytes_max = number;
		} else if (strcmp(argv[i], "response_ms") == 0) {
			options.response_timeout_ns = number * TAILOR_NS_PER_MS;
		} else if (strcmp(argv[i], "connect_ms") == 0) {
			options.connect_timeout_ns = number * TAILOR_NS_PER_MS;
		} else if (strcmp(argv[i], "idle_ms") == 0) {
			options.idle_timeout_ns = number * TAILOR_NS_PER_MS;
		} else if (strcmp(argv[i], "per_address") == 0) {
			options.per_address_max = number;
		} else if (strcmp(argv[i], "in_flight") == 0) {
			options.in_flight_max = number;
		} else if (strcmp(argv[i], "queue") == 0) {
			options.queue_max = number;
		} else if (strcmp(argv[i], "fields") == 0) {
			options.fields_max = number;
		} else if (strcmp(argv[i], "body") == 0) {
			options.body_bytes_max = number;
		} else if (strcmp(argv[i], "queue_ms") == 0) {
			options.queue_timeout_ns = number * TAILOR_NS_PER_MS;
		} else if (strcmp(argv[i], "via") == 0) {
			snprintf(options.via, sizeof(options.via), "%s", value);
		} else if (strcmp(argv[i], "x_forwarded") == 0) {
			options.x_forwarded = (int)number;
		} else if (strcmp(argv[i], "forwarded") == 0) {
			options.forwarded = (int)number;
		} else if (strcmp(argv[i], "upgrade") == 0) {
			snprintf(options.upgrade[options.upgrades++], sizeof(options.upgrade[0]), "%s", value);
		} else if (strcmp(argv[i], "replay") == 0) {
			options.replay_bytes_max = number;
		} else if (strcmp(argv[i], "replay_total") == 0) {
			options.replay_bytes_total = number;
		} else if (strcmp(argv[i], "head_ms") == 0) {
			options.head_timeout_ns = number * TAILOR_NS_PER_MS;
		} else if (strcmp(argv[i], "body_ms") == 0) {
			options.body_timeout_ns = number * TAILOR_NS_PER_MS;
		} else if (strcmp(argv[i], "keep_alive_ms") == 0) {
			options.keep_alive_timeout_ns = number * TAILOR_NS_PER_MS;
		} else if (strcmp(argv[i], "request_ms") == 0) {
			options.request_timeout_ns = number * TAILOR_NS_PER_MS;
		} else {
			exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	char address[TAILOR_ADDRESS_TEXT_BYTES];
	struct tailor_address listening;
	char error[256] = "";
	pthread_t beats;
	char line[128];
	int ret;

	read_options(argc, argv);
	options.tags = map_memory(TAILOR_TAGS * sizeof(struct tailor_tag));
	for (unsigned int i = 0; i < TAILOR_PROXY_WORKERS_MAX; i++) {
		channels[i].head = map_memory(sizeof(*channels[i].head));
		channels[i].slots = map_memory(SLOTS * sizeof(struct tailor_event));
		channels[i].mask = SLOTS - 1;
	}
	options.channels = channels;
	options.late = lates;
	options.stops_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	pthread_create(&beats, NULL, beat, NULL);
	ret = tailor_proxy_start(&options, &proxy, error, sizeof(error));
	if (ret < 0) {
		printf("error %d %s\n", ret, error);
		return ret == -EPERM || ret == -ENOSYS ? 77 : 1;
	}
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	listening = tailor_proxy_listening(proxy);
	printf("listening %s\n", tailor_address_format(address, &listening));
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		char command[32] = "", word[32] = "";
		unsigned int argument = 0, number = 0;

		if (sscanf(line, "%31s %u %31s", command, &argument, word) < 1)
			continue;
		number = (unsigned int)atoi(word);
		if (strcmp(command, "stop") == 0) {
			tailor_proxy_stop(proxy, tailor_clock_ns() + argument * TAILOR_NS_PER_MS);
			printf("end\n");
			return 0;
		}
		run(command, argument, number, word);
		printf("end\n");
		fflush(stdout);
	}
	tailor_proxy_stop(proxy, 0);
	return 0;
}
