/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "judge.h"

/* Small, since AddressSanitizer clears what it knows of a stack at each switch. */
#define STACK_BYTES (128 * 1024)
#define PATTERN_BYTES (1u << 20)
#define FIBERS_MAX 8

struct event {
	uint64_t time_ns;
	uint64_t order; /* what was asked for first happens first */
	void (*run)(void *object, uint64_t value);
	void *object;
	uint64_t value;
};

struct fiber {
	ucontext_t context;
	void *stack;
	void *(*start)(void *);
	void *argument;
	uint64_t sleep; /* number of the sleep; 0: awake */
	uint64_t sleeps;
	bool finished;
};

struct world world;

static struct event *heap;
static size_t heap_count, heap_size;
static uint64_t next_order;
static char pattern[PATTERN_BYTES];
static struct fiber fibers[FIBERS_MAX];
static unsigned int fiber_count;
static struct fiber *current;
static ucontext_t main_context;

static uint64_t mix(uint64_t value)
{
	value = (value ^ (value >> 31)) * UINT64_C(0x7fb5d329728ea185);
	value = (value ^ (value >> 27)) * UINT64_C(0x81dadef4bc2dd44d);
	return value ^ (value >> 33);
}

void world_say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fprintf(stderr, "%12.6f  ", (double)world.now_ns / 1e9);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
}

void world_fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fflush(stdout);
	fprintf(stderr, "simulation: at %.9f s, step %" PRIu64 ": ", (double)world.now_ns / 1e9, world.steps);
	vfprintf(stderr, format, arguments);
	fprintf(stderr, "\nAgain, in every detail: simulation --seed %" PRIu64 " --exchanges %" PRIu64 "%s%s%s%s%s --verbose\n",
	        world.seed, world.exchanges_max, world.limits ? " --limits" : "", world.groups ? " --groups" : "", world.stops ? " --stops" : "",
	        world.heaps ? " --heaps" : "", world.slow_turns ? " --slow-turns" : "");
	va_end(arguments);
	fflush(stderr);
	_Exit(1);
}

uint64_t world_random(void)
{
	return mix(world.random += UINT64_C(0x9e3779b97f4a7c15));
}

uint64_t world_below(uint64_t below)
{
	return world_random() % below;
}

uint64_t world_between(uint64_t from, uint64_t to)
{
	return from + world_below(to - from + 1);
}

bool world_chance(unsigned int per_mille)
{
	return world_below(1000) < per_mille;
}

uint64_t world_delay(void)
{
	uint64_t kind = world_below(256);

	if (kind < 224)
		return world_between(1, 40) * US;
	if (kind < 250)
		return world_between(40, 1000) * US;
	if (kind < 255)
		return world_between(1, 10) * MS;
	return world_between(10, 60) * MS;
}

size_t world_size(void)
{
	uint64_t kind = world_below(256);

	if (kind < 40)
		return 0;
	if (kind < 170)
		return world_between(1, 300);
	if (kind < 230)
		return world_between(300, 8000);
	if (kind < 252)
		return world_between(8000, 70000);
	return world_between(70000, 400000);
}

void world_pattern(uint64_t key, uint64_t offset, char *to, size_t length)
{
	size_t at = (size_t)((mix(key) + offset) % PATTERN_BYTES);

	while (length > 0) {
		size_t run = length < PATTERN_BYTES - at ? length : PATTERN_BYTES - at;

		memcpy(to, pattern + at, run);
		to += run;
		length -= run;
		at = 0;
	}
}

bool world_pattern_is(uint64_t key, uint64_t offset, const char *data, size_t length)
{
	size_t at = (size_t)((mix(key) + offset) % PATTERN_BYTES);

	while (length > 0) {
		size_t run = length < PATTERN_BYTES - at ? length : PATTERN_BYTES - at;

		if (memcmp(data, pattern + at, run) != 0)
			return false;
		data += run;
		length -= run;
		at = 0;
	}
	return true;
}

uint64_t world_hash(const void *data, size_t length)
{
	const char *at = data;
	uint64_t hash = length * UINT64_C(0x9e3779b97f4a7c15), word;

	for (; length >= 8; at += 8, length -= 8) {
		memcpy(&word, at, 8);
		hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
		hash ^= hash >> 29;
	}
	word = 0;
	memcpy(&word, at, length);
	hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
	return hash ^ (hash >> 32);
}

static bool is_before(const struct event *a, const struct event *b)
{
	return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->order < b->order;
}

void world_later(uint64_t delay_ns, void (*run)(void *object, uint64_t value), void *object, uint64_t value)
{
	struct event event = {world.now_ns + delay_ns, next_order++, run, object, value};
	size_t at = heap_count++;

	if (heap_count > heap_size) {
		heap_size = heap_size ? heap_size * 2 : 1024;
		heap = realloc(heap, heap_size * sizeof(*heap));
		world_check(heap, "out of memory");
	}
	for (; at > 0 && is_before(&event, &heap[(at - 1) / 2]); at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = event;
}

bool world_step(void)
{
	struct event event, last;
	size_t at = 0;

	if (heap_count == 0)
		return false;
	event = heap[0];
	last = heap[--heap_count];
	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= heap_count)
			break;
		if (child + 1 < heap_count && is_before(&heap[child + 1], &heap[child]))
			child++;
		if (!is_before(&heap[child], &last))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = last;
	if (event.time_ns > world.now_ns)
		world.now_ns = event.time_ns;
	world.steps++;
	event.run(event.object, event.value);
	return true;
}

void world_open(uint64_t seed)
{
	bool verbose = world.verbose;

	world = (struct world){.seed = seed, .random = mix(seed ^ UINT64_C(0x5851f42d4c957f2d)), .verbose = verbose};
	world.now_ns = 1000 * TAILOR_NS_PER_S;
	next_order = 0;
	heap_count = 0;
	fiber_count = 0;
	current = NULL;
	for (size_t i = 0; i < PATTERN_BYTES && pattern[PATTERN_BYTES - 1] == 0; i += 8) {
		uint64_t word = mix(i + 1) | UINT64_C(0x0101010101010101);

		memcpy(pattern + i, &word, 8);
	}
}

void world_close(void)
{
	for (unsigned int i = 0; i < fiber_count; i++)
		free(fibers[i].stack);
	fiber_count = 0;
	free(heap);
	heap = NULL;
	heap_size = heap_count = 0;
}

static void fiber_run(unsigned int index)
{
	struct fiber *fiber = &fibers[index];

	(void)fiber->start(fiber->argument);
	fiber->finished = true;
	(void)swapcontext(&fiber->context, &main_context);
}

static void resume(void *object, uint64_t sleep)
{
	struct fiber *fiber = object;

	if (fiber->finished || fiber->sleep != sleep)
		return;
	world_check(!current, "a fiber resumes a fiber");
	fiber->sleep = 0;
	current = fiber;
	(void)swapcontext(&main_context, &fiber->context);
	current = NULL;
	judge_listen();
}

struct fiber *fiber_start(void *(*start)(void *), void *argument)
{
	struct fiber *fiber = &fibers[fiber_count];

	world_check(fiber_count < FIBERS_MAX, "too many fibers");
	*fiber = (struct fiber){.start = start, .argument = argument, .stack = malloc(STACK_BYTES)};
	world_check(fiber->stack && getcontext(&fiber->context) == 0, "no memory for a fiber");
	fiber->context.uc_stack.ss_sp = fiber->stack;
	fiber->context.uc_stack.ss_size = STACK_BYTES;
	makecontext(&fiber->context, (void (*)(void))fiber_run, 1, fiber_count);
	fiber_count++;
	fiber->sleep = ++fiber->sleeps;
	fiber_wake(fiber, world_delay());
	return fiber;
}

bool fiber_finished(const struct fiber *fiber)
{
	return fiber->finished;
}

struct fiber *fiber_current(void)
{
	return current;
}

void fiber_wake(struct fiber *fiber, uint64_t delay_ns)
{
	if (fiber->sleep)
		world_later(delay_ns, resume, fiber, fiber->sleep);
}

void fiber_sleep(struct fiber *fiber, uint64_t deadline_ns)
{
	world_check(fiber && fiber == current, "only a worker's fiber can sleep");
	fiber->sleep = ++fiber->sleeps;
	if (deadline_ns != UINT64_MAX)
		fiber_wake(fiber, deadline_ns > world.now_ns ? deadline_ns - world.now_ns : 0);
	(void)swapcontext(&fiber->context, &main_context);
}
