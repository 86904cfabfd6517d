/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/pause.h"

#include <string.h>

#include "proxy/keeper.h"
#include "proxy/stopped.h"

/* A heartbeat that is so old is looked at once more before it counts as missing: only who has looked in time twice knows that it was
 * not he who stood still. */
#define SUSPECT_NS (TAILOR_JVM_STALL_MS * TAILOR_NS_PER_MS - SURE_NS)
#define SURE_NS ((TAILOR_JVM_HEARTBEAT_MS + 1) * TAILOR_NS_PER_MS)
/* A timer that rang so late says that this thread had no CPU, or the machine did not run. */
#define LATE_NS (3 * TAILOR_NS_PER_MS)
/* How often a process that stands still is looked at, at first and at last. */
#define STALLED_NS_MIN (TAILOR_JVM_HEARTBEAT_MS * TAILOR_NS_PER_MS)
#define STALLED_NS_MAX (100 * TAILOR_NS_PER_MS)
/* Of stops that nobody has seen: enough of them to learn from. */
#define MISSED_MAX 4

static uint64_t load_state(const struct server *server)
{
	return __atomic_load_n(&server->page->state, __ATOMIC_SEQ_CST);
}

static uint64_t load_told(const struct worker *worker, unsigned int index)
{
	const struct tailor_stop *stops = worker->options->stops;

	return stops ? __atomic_load_n(&stops[index].word, __ATOMIC_SEQ_CST) : 0;
}

static uint64_t load_beat(const struct server *server)
{
	return __atomic_load_n(&server->page->heartbeat_ns, __ATOMIC_RELAXED);
}

static bool is_collecting(const struct server *server, uint64_t state)
{
	return server->page && TAILOR_JVM_STATE_OF(state) == TAILOR_JVM_COLLECTING;
}

/* One word of all. Who knows more about it comes first; a process that a signal stops does not even collect. */
static uint64_t choose_word(const struct server *server, uint64_t state, uint64_t told, uint64_t beat_ns)
{
	if (TAILOR_STOP_KIND(told) == TAILOR_STOP_SIGNAL)
		return told;
	if (is_collecting(server, state))
		return TAILOR_STOP(TAILOR_STOP_GC, TAILOR_JVM_SINCE_NS(state));
	if (TAILOR_STOP_KIND(told) != TAILOR_STOP_NONE)
		return told;
	if (server->page && server->stalled && beat_ns == server->beat_ns)
		return TAILOR_STOP(TAILOR_STOP_STALL, beat_ns);
	return 0;
}

uint64_t pause_word(const struct worker *worker, unsigned int index)
{
	const struct server *server = &worker->server[index];
	uint64_t state = server->page ? load_state(server) : 0;

	return choose_word(server, state, load_told(worker, index), server->stalled && server->page ? load_beat(server) : 0);
}

void pause_cause(const struct server *server, uint64_t pauses, char ret_cause[TAILOR_JVM_CAUSE_BYTES])
{
	uint64_t words[TAILOR_JVM_CAUSE_BYTES / sizeof(uint64_t)];
	const tailor_word *from;

	_Static_assert(TAILOR_JVM_CAUSE_BYTES % sizeof(*words) == 0 && offsetof(struct tailor_jvm_page, cause) % sizeof(*words) == 0, "whole words");
	ret_cause[0] = '\0';
	if (!server->page)
		return;
	from = (const tailor_word *)(const void *)server->page->cause;
	/* Acquire loads keep the second look at the count behind them. */
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		words[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
	memcpy(ret_cause, words, TAILOR_JVM_CAUSE_BYTES);
	ret_cause[TAILOR_JVM_CAUSE_BYTES - 1] = '\0';
	/* Another one has begun meanwhile: it may be that one's. */
	if (__atomic_load_n(&server->page->pauses, __ATOMIC_RELAXED) != pauses)
		ret_cause[0] = '\0';
}

/* Counts and learns what was over before anybody looked. Returns whether there was something. */
static bool take_missed(struct worker *worker, unsigned int index, bool collecting, bool known)
{
	struct server *server = &worker->server[index];
	uint64_t pauses = __atomic_load_n(&server->page->pauses, __ATOMIC_RELAXED);
	uint64_t missed = pauses > server->pauses_seen ? pauses - server->pauses_seen : 0;
	char cause[TAILOR_JVM_CAUSE_BYTES];

	count_add(&worker->counters.server[index].pauses, missed);
	server->pauses_seen = pauses;
	/* The one that goes on is not among them. Whose lengths are not the last one's are taken to be like it. */
	if (collecting && !known && missed > 0)
		missed--;
	if (collecting || missed == 0)
		return missed > 0;
	pause_cause(server, pauses, cause);
	for (uint64_t i = 0; i < missed && i < MISSED_MAX; i++)
		stopped_missed(worker, index, TAILOR_STOP_GC, cause, __atomic_load_n(&server->page->pause_ns_last, __ATOMIC_RELAXED));
	return true;
}

/* The same of what the kernel has told, which does not wake who has nothing there. */
static void take_untold(struct worker *worker, unsigned int index, uint64_t told, bool collected)
{
	const struct tailor_stop *stop = &worker->options->stops[index];
	struct server *server = &worker->server[index];
	uint64_t stops = __atomic_load_n(&stop->count, __ATOMIC_RELAXED), last = __atomic_load_n(&stop->last, __ATOMIC_RELAXED);
	uint64_t missed = stops > server->told_stops ? stops - server->told_stops : 0;

	server->told_stops = stops;
	if (missed > 0 && TAILOR_STOP_KIND(told) != TAILOR_STOP_NONE && told != server->told)
		missed--;
	if (collected && TAILOR_STOP_KIND(last) == TAILOR_STOP_SAFEPOINT)
		return;
	for (uint64_t i = 0; last && i < missed && i < MISSED_MAX; i++)
		stopped_missed(worker, index, TAILOR_STOP_KIND(last), "", TAILOR_STOP_SINCE_NS(last));
}

/* The latest of those who tell when it went on. */
static uint64_t end_ns_of(const struct worker *worker, unsigned int index)
{
	const struct server *server = &worker->server[index];
	uint64_t end_ns = 0, told_ns = 0;

	if (server->page && !is_collecting(server, server->state))
		end_ns = TAILOR_JVM_SINCE_NS(server->state);
	if (worker->options->stops && TAILOR_STOP_KIND(server->told) == TAILOR_STOP_NONE)
		told_ns = __atomic_load_n(&worker->options->stops[index].end_ns, __ATOMIC_RELAXED);
	if (told_ns > end_ns)
		end_ns = told_ns;
	/* Nobody has said so of a process that has only begun to beat again. */
	return end_ns > server->standing.since_ns && end_ns < worker->now_ns ? end_ns : worker->now_ns;
}

/* Whether the word is about the stop that is known already: several collections can share one safepoint. */
static bool is_same_stop(const struct server *server, uint64_t word)
{
	const struct standing *standing = &server->standing;

	if (word == standing->word || TAILOR_STOP_SINCE_NS(word) <= standing->since_ns)
		return true;
	if (TAILOR_STOP_KIND(server->told) != TAILOR_STOP_NONE)
		return TAILOR_STOP_SINCE_NS(server->told) <= TAILOR_STOP_SINCE_NS(standing->word) ||
		       TAILOR_STOP_KIND(standing->word) == TAILOR_STOP_STALL;
	return TAILOR_STOP_KIND(standing->word) != TAILOR_STOP_KIND(word);
}

static void begin_or_change(struct worker *worker, unsigned int index, uint64_t word)
{
	struct server *server = &worker->server[index];
	char cause[TAILOR_JVM_CAUSE_BYTES] = "";

	if (server->standing.kind != TAILOR_STOP_NONE && !is_same_stop(server, word))
		stopped_end(worker, index, TAILOR_STOP_SINCE_NS(word));
	if (TAILOR_STOP_KIND(word) == TAILOR_STOP_GC)
		pause_cause(server, server->pauses_seen, cause);
	stopped_begin(worker, index, word, cause);
}

void pause_look(struct worker *worker)
{
	uint64_t words[TAILOR_PROXY_SERVERS_MAX];
	uint64_t end_ns, ended_ns = 0;
	uint32_t ended = 0;

	/* All of them first: what is done about one depends on the others. */
	for (unsigned int i = 0; i < worker->options->servers; i++) {
		struct server *server = &worker->server[i];
		uint64_t state = server->page ? load_state(server) : 0, told = load_told(worker, i);
		bool missed = false;

		words[i] = choose_word(server, state, told, server->stalled && server->page ? load_beat(server) : 0);
		if (server->page)
			missed = take_missed(worker, i, is_collecting(server, state), state == server->state);
		if (worker->options->stops)
			take_untold(worker, i, told, missed);
		server->state = state;
		server->told = told;
	}
	for (unsigned int i = 0; i < worker->options->servers; i++) {
		if (worker->server[i].standing.kind == TAILOR_STOP_NONE || TAILOR_STOP_KIND(words[i]) != TAILOR_STOP_NONE)
			continue;
		end_ns = end_ns_of(worker, i);
		stopped_end(worker, i, end_ns);
		ended |= 1u << i;
		if (end_ns > ended_ns)
			ended_ns = end_ns;
	}
	for (unsigned int i = 0; i < worker->options->servers; i++) {
		if (TAILOR_STOP_KIND(words[i]) != TAILOR_STOP_NONE && words[i] != worker->server[i].standing.word)
			begin_or_change(worker, i, words[i]);
	}
	/* Those stops may be over, too, and only have been noticed after this one's end. */
	if (ended_ns)
		stopped_look_again(worker, ended, ended_ns);
}

bool pause_changed(const struct worker *worker)
{
	for (unsigned int i = 0; i < worker->options->servers; i++) {
		const struct server *server = &worker->server[i];

		if ((server->page && load_state(server) != server->state) || load_told(worker, i) != server->told)
			return true;
	}
	return false;
}

/*
 * Tells the kernel which servers' changes are to wake this worker: where it has requests, and where it waits for a server to go on. It would
 * cost each idle worker some 30 us at each safepoint. Store, full fence, load, as below.
 */
static void tell_who_waits(struct worker *worker)
{
	for (unsigned int i = 0; i < worker->options->servers; i++) {
		struct server *server = &worker->server[i];
		bool waits = server->in_flight || server->standing.kind != TAILOR_STOP_NONE;

		if (waits == server->waits)
			continue;
		/* The fence, as below, where the word is looked at again. */
		__atomic_store_n(&worker->options->stops[i].waits[worker->index], waits, waits ? __ATOMIC_SEQ_CST : __ATOMIC_RELAXED);
		server->waits = waits;
	}
}

bool pause_may_sleep(struct worker *worker)
{
	bool unchanged = true;

	if (worker->options->stops)
		tell_who_waits(worker);
	for (unsigned int i = 0; i < worker->options->servers; i++) {
		struct server *server = &worker->server[i];

		if (load_told(worker, i) != server->told)
			unchanged = false;
		if (!server->page)
			continue;
		/* Store, full fence, load, against the agent's store of the state, fence, and load of `sleeping`: one
		 * of the two sees the other. Both accesses being sequentially consistent is that fence. */
		__atomic_store_n(&server->page->waker[worker->index].sleeping, 1, __ATOMIC_SEQ_CST);
		if (load_state(server) != server->state)
			unchanged = false;
	}
	return unchanged;
}

void pause_awake(struct worker *worker)
{
	for (unsigned int i = 0; i < worker->options->servers; i++) {
		if (worker->server[i].page)
			__atomic_store_n(&worker->server[i].page->waker[worker->index].sleeping, 0, __ATOMIC_RELAXED);
	}
}

static void poll_stops(struct worker *worker)
{
	tailor_ring_poll(worker->ring, worker->options->stops_fd, TAILOR_TOKEN(SLOT_WORKER, 0, OPERATION_STOPS));
}

void pause_open(struct worker *worker)
{
	worker->beat_timer_ns = UINT64_MAX;
	for (unsigned int i = 0; i < worker->options->servers; i++) {
		worker->server[i].standing.again_ns = UINT64_MAX;
		if (worker->options->stops)
			worker->server[i].told_stops = __atomic_load_n(&worker->options->stops[i].count, __ATOMIC_RELAXED);
	}
	if (worker->options->stops)
		poll_stops(worker);
}

void pause_stops_complete(struct worker *worker, const struct tailor_completion *completion)
{
	/* One that cannot be polled would spin here; the table is then looked at on every turn of the loop only. */
	if (!(completion->flags & TAILOR_RING_MORE) && completion->result >= 0 && !worker->stopping)
		poll_stops(worker);
}

static uint64_t waker_token(const struct server *server, unsigned int index)
{
	return TAILOR_TOKEN(SLOT_WORKER, server->waker_generation, OPERATION_WAKER + index);
}

static void read_waker(struct worker *worker, unsigned int index)
{
	struct server *server = &worker->server[index];

	server->waker_reading = true;
	tailor_ring_read(worker->ring, server->waker, &server->waker_value, sizeof(server->waker_value),
	                 waker_token(server, index));
}

void pause_attach(struct worker *worker, unsigned int index, struct tailor_jvm_page *page, int waker)
{
	struct server *server = &worker->server[index];

	server->page = page;
	server->waker = waker;
	server->waker_generation++;
	server->pauses_seen = __atomic_load_n(&page->pauses, __ATOMIC_RELAXED);
	server->state = load_state(server);
	server->beat_ns = 0;
	server->suspected = server->stalled = false;
	__atomic_store_n(&worker->counters.server[index].agent, 1, __ATOMIC_RELAXED);
	read_waker(worker, index);
	/* It may be in a collection already, and would wake nobody until that ends. */
	pause_look(worker);
	if (server->in_flight)
		pause_watch(worker, index);
	keeper_attached(worker, index);
}

bool pause_detach(struct worker *worker, unsigned int index)
{
	struct server *server = &worker->server[index];

	if (!server->page)
		return true;
	__atomic_store_n(&server->page->waker[worker->index].sleeping, 0, __ATOMIC_RELAXED);
	keeper_detaching(worker, index);
	server->page = NULL;
	server->stalled = server->suspected = false;
	__atomic_store_n(&worker->counters.server[index].agent, 0, __ATOMIC_RELAXED);
	pause_look(worker);
	if (!server->waker_reading)
		return true;
	tailor_ring_cancel(worker->ring, waker_token(server, index), TAILOR_TOKEN(SLOT_WORKER, 0, OPERATION_CANCEL));
	return false;
}

bool pause_waker_complete(struct worker *worker, unsigned int index, uint32_t generation, int result)
{
	struct server *server = &worker->server[index];

	if (generation != (server->waker_generation & 0xffffff)) {
		count(&worker->counters.stale_completions);
		return false;
	}
	server->waker_reading = false;
	if (!server->page)
		return true;
	/* A waker that cannot be read would spin here; the state is then looked at on every turn of the loop only. */
	if (result > 0)
		read_waker(worker, index);
	return false;
}

/* Looks at one heartbeat. Returns when to look again. `late`: the clock cannot be trusted to say for how long it has been missing. */
static uint64_t look_at_beat(const struct worker *worker, struct server *server, bool late)
{
	uint64_t beat_ns = load_beat(server), now_ns = worker->now_ns;

	/* It has not begun to. */
	if (beat_ns == 0)
		return now_ns + SUSPECT_NS;
	if (beat_ns != server->beat_ns) {
		server->beat_ns = beat_ns;
		server->suspected = server->stalled = false;
		server->beat_due_ns = beat_ns + SUSPECT_NS;
	}
	if (now_ns < server->beat_due_ns)
		return server->beat_due_ns;
	if (server->stalled) {
		uint64_t stalled_ns = (now_ns - beat_ns) / 4;

		stalled_ns = stalled_ns < STALLED_NS_MIN ? STALLED_NS_MIN : stalled_ns > STALLED_NS_MAX ? STALLED_NS_MAX : stalled_ns;
		server->beat_due_ns = now_ns + stalled_ns;
	} else if (late) {
		/* Whoever stood still with it needs a CPU, too, before its heart can beat. */
		server->suspected = false;
		server->beat_due_ns = now_ns + SUSPECT_NS;
	} else if (!server->suspected) {
		server->suspected = true;
		server->beat_due_ns = now_ns + SURE_NS;
	} else {
		server->stalled = true;
		server->beat_due_ns = now_ns + STALLED_NS_MIN;
	}
	return server->beat_due_ns;
}

static void set_beat_timer(struct worker *worker, bool late)
{
	uint64_t due_ns = UINT64_MAX;

	for (unsigned int i = 0; i < worker->options->servers; i++) {
		struct server *server = &worker->server[i];
		uint64_t its_ns;

		if (!server->page || (!server->in_flight && !server->stalled))
			continue;
		its_ns = look_at_beat(worker, server, late);
		if (its_ns < due_ns)
			due_ns = its_ns;
	}
	worker->beat_timer_ns = due_ns;
	if (due_ns != UINT64_MAX)
		tailor_ring_timeout(worker->ring, &worker->beat_timer, due_ns, TAILOR_TOKEN(SLOT_WORKER, 0, OPERATION_BEAT));
}

void pause_watch_beat(struct worker *worker)
{
	/* Nobody has looked for a while, so that nothing can be concluded yet. */
	for (unsigned int i = 0; i < worker->options->servers; i++)
		worker->server[i].suspected = false;
	set_beat_timer(worker, false);
}

void pause_beat(struct worker *worker)
{
	set_beat_timer(worker, worker->now_ns > worker->beat_timer_ns + LATE_NS);
	pause_look(worker);
}
