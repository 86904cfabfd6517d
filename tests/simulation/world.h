/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated world around the proxy: everything that it asks of the kernel and of the network is answered from here, on
 * one thread, in an order and at times that one seed decides. No time passes but the simulation's.
 *
 *   world.c      the seed's numbers, the clock, what happens next, the workers as fibers
 *   wire.c       connections: two streams of bytes between a worker's descriptor and a peer
 *   fake_ring.c  src/ring/ring.h: operations of the workers, and whose memory is whose
 *   system.c     system calls that go around the ring
 *   server*.c    the servers, their JVMs, and these' heaps
 *   client*.c    clients; reply.c what they get
 *   judge.c      what the proxy says about itself, compared with what happened
 *   simulation.c the program
 */
#ifndef TAILOR_SIMULATION_WORLD_H
#define TAILOR_SIMULATION_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "proxy/proxy.h"

#define US TAILOR_NS_PER_US
#define MS TAILOR_NS_PER_MS

/* One life of a proxy: from its start to its stop. */
struct world {
	uint64_t seed;
	uint64_t random; /* state */
	uint64_t now_ns;
	uint64_t steps; /* events that have happened */
	bool verbose;
	uint64_t exchanges_max; /* of this life */
	struct tailor_proxy_options options;
	struct tailor_proxy *proxy;
	/* How much goes wrong in this life, in 1/1000 of the occasions. */
	unsigned int kernel_faults, server_faults, client_faults;
	uint64_t last_refused_ns; /* a connect failed, which makes a server be down for a while */
	bool stopping;
	bool limits; /* are met now and then */
	bool groups; /* more than two servers, both modes */
	bool heaps; /* they fill and are collected */
	bool slow_turns; /* workers take time for what has come */
	bool stops; /* servers stand still for all kinds of reasons */
};
extern struct world world;

/* Ends the program: the seed, the time, what is wrong. */
_Noreturn void world_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define world_check(condition, ...)                                                                                    \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			world_fail(__VA_ARGS__);                                                                       \
	} while (0)
void world_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define world_log(...)                                                                                                 \
	do {                                                                                                           \
		if (world.verbose)                                                                                     \
			world_say(__VA_ARGS__);                                                                        \
	} while (0)

void world_open(uint64_t seed);
void world_close(void);

uint64_t world_random(void);
/* 0..below-1; below > 0. */
uint64_t world_below(uint64_t below);
/* from..to, both included. */
uint64_t world_between(uint64_t from, uint64_t to);
bool world_chance(unsigned int per_mille);
/* Mostly some microseconds, at times milliseconds. */
uint64_t world_delay(void);
/* Mostly small, at times some hundred KB. */
size_t world_size(void);

/* `length` bytes from `offset` on of the body that belongs to `key`: copies, or compares (true when equal). */
void world_pattern(uint64_t key, uint64_t offset, char *to, size_t length);
bool world_pattern_is(uint64_t key, uint64_t offset, const char *data, size_t length);
uint64_t world_hash(const void *data, size_t length);

/* Calls run(object, value) after delay_ns. */
void world_later(uint64_t delay_ns, void (*run)(void *object, uint64_t value), void *object, uint64_t value);
/* Lets the next thing happen. Returns false when nothing is left that ever would. */
bool world_step(void);

/* A worker's thread. */
struct fiber;
struct fiber *fiber_start(void *(*start)(void *), void *argument);
bool fiber_finished(const struct fiber *fiber);
/* Of the caller; NULL in the world itself. */
struct fiber *fiber_current(void);
/* Sleeps until fiber_wake() or deadline_ns (UINT64_MAX: none). From a fiber only. */
void fiber_sleep(struct fiber *fiber, uint64_t deadline_ns);
/* Wakes it after delay_ns if it sleeps. */
void fiber_wake(struct fiber *fiber, uint64_t delay_ns);

#endif /* TAILOR_SIMULATION_WORLD_H */
