/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an agent shares with the proxy: a sealed memfd that holds a page with the JVM's state, then the
 * JVM's channel. And how it is handed over.
 *
 *   offset 0                        struct tailor_jvm_page
 *   offset page.head_offset         struct tailor_channel_head
 *   offset page.slots_offset        page.slots events
 *
 * Hand-over: the proxy listens on a Unix socket (SOCK_SEQPACKET). The agent connects and sends one
 * message, struct tailor_jvm_hello, with SCM_RIGHTS: the memfd, then TAILOR_JVM_WAKERS non-blocking
 * eventfds, waker i for worker i. The connection then stays open and silent in both directions; its
 * end tells the proxy that the JVM is gone, and the agent that the proxy is gone (it reconnects every
 * TAILOR_JVM_RECONNECT_MS). The agent creates memory and eventfds once and hands the same ones to
 * every proxy; it never closes them, so a callback can use them without a lock.
 *
 * Trust: whoever may connect to the socket or listen on it is trusted (file permissions). Still, the
 * proxy checks every size and offset before it maps, and the agent never waits for anything a proxy
 * does: of the proxy's writable words it reads `sleeping` and `wants`, bit by bit, and `wish`, which it grants only where the
 * agent's own options allow it.
 */
#ifndef TAILOR_JVM_PAGE_H
#define TAILOR_JVM_PAGE_H

#include <stdint.h>

#define TAILOR_JVM_MAGIC UINT64_C(0x314d564a4c494154) /* "TAILJVM1" in memory on little endian */
#define TAILOR_JVM_VERSION 2
/* The memfd's name; behind it stands the socket's path, as the agent's options have it. */
#define TAILOR_JVM_MEMORY "tailor-jvm:"
#define TAILOR_JVM_WAKERS 16
#define TAILOR_JVM_RECONNECT_MS 100
#define TAILOR_JVM_HEARTBEAT_MS 5
/* Without a heartbeat for so long the process stands still, unless whoever looks has stood still himself. */
#define TAILOR_JVM_STALL_MS 25
#define TAILOR_JVM_CAUSE_BYTES 40

enum tailor_jvm_state {
	TAILOR_JVM_RUNNING = 0,
	TAILOR_JVM_COLLECTING = 1, /* between GarbageCollectionStart and Finish */
	TAILOR_JVM_GONE = 2,       /* VMDeath was reported */
};

/* A state and since when, in one word, so that both are read together: ns << 2 | state. */
#define TAILOR_JVM_STATE(state, since_ns) (((uint64_t)(since_ns) << 2) | (uint64_t)(state))
#define TAILOR_JVM_STATE_OF(word) ((enum tailor_jvm_state)((word) & 3))
#define TAILOR_JVM_SINCE_NS(word) ((uint64_t)(word) >> 2)

/* What the agent was allowed to by its options, in page.can. */
#define TAILOR_JVM_CAN_HEAP 1          /* it has a thread that asks how full the heap is */
#define TAILOR_JVM_CAN_COLLECT_YOUNG 2 /* and may bring a collection about (option collect=young), */
#define TAILOR_JVM_CAN_COLLECT_FULL 4  /* a full one (collect=full) */

/* In page.wants: the agent keeps page.heap current, every TAILOR_JVM_HEAP_MS. */
#define TAILOR_JVM_WANTS_HEAP 1
#define TAILOR_JVM_HEAP_MS 2

/*
 * A wish for a collection: what, and until when it is one, in one word. A new wish is another word than the one before it. The agent
 * stores it to page.granted when the collection that it brought about is over, or when it will bring about none. 0 in its place takes
 * it back, if that is not too late.
 */
enum tailor_jvm_wish {
	TAILOR_JVM_WISH_NONE = 0,
	TAILOR_JVM_WISH_YOUNG = 1,
	TAILOR_JVM_WISH_FULL = 2,
};
#define TAILOR_JVM_WISH(what, until_ns) (((uint64_t)(until_ns) << 2) | (uint64_t)(what))
#define TAILOR_JVM_WISH_OF(word) ((enum tailor_jvm_wish)((word) & 3))
#define TAILOR_JVM_WISH_UNTIL_NS(word) ((uint64_t)(word) >> 2)

/*
 * How full the heap is. `version` is odd while it is written: a reader that found it odd, or another one after its copy, has a mix.
 * Bytes; 0 where the collector has no such part.
 */
struct tailor_jvm_heap {
	uint64_t version;
	uint64_t time_ns;
	uint64_t young_used; /* where new objects go: eden, or G1's eden regions */
	uint64_t young_size; /* of it, at which a young collection comes; 0 where its filling up brings none (ZGC) */
	uint64_t old_used;   /* of the old generation; of the whole heap where there is but one (ZGC, Shenandoah) */
	uint64_t old_size;   /* the most it may have */
	uint64_t collected_young; /* collections so far, by the JVM's own beans */
	uint64_t collected_old;
};

/*
 * One waker per worker. The worker sets `sleeping` to 1, then looks at the state once more, then
 * sleeps; it clears it when awake. The agent stores the state first, then looks at `sleeping` (full
 * fence on both sides between the two), and writes the eventfd only if it is set.
 */
struct tailor_jvm_waker {
	uint32_t sleeping;
	uint32_t reserved[15];
};

struct tailor_jvm_page {
	/* Fixed before the hand-over. */
	uint64_t magic;
	uint32_t version;
	uint32_t pid; /* as the JVM sees itself */
	uint64_t bytes; /* of the whole memfd */
	uint64_t head_offset;
	uint64_t slots_offset;
	uint64_t slots; /* power of two */
	uint64_t started_ns;
	uint64_t can; /* TAILOR_JVM_CAN_... */

	/* Written by the VM Thread inside the pause; a cache line of its own. */
	uint64_t state; /* TAILOR_JVM_STATE */
	uint64_t pauses; /* begun so far */
	uint64_t pause_ns_total; /* of finished ones */
	uint64_t pause_ns_last;
	uint64_t pause_ns_max;
	uint64_t reserved1[3];

	/* Written by the agent's own native thread, which runs on during a collection. */
	uint64_t heartbeat_ns;
	uint64_t reserved2[7];

	struct tailor_jvm_waker waker[TAILOR_JVM_WAKERS];

	/* The GC cause as the JVM's own counters say it ("Allocation Failure"), terminated, of the last pause that began; "" unknown. (G1's
	 * remark and cleanup have none: "G1 remark or cleanup".)
	 * Written before `state`. Where the counters say it only later (Serial and Parallel of JDK 17), it is still "" when the pause
	 * begins, and written within a heartbeat or, in a shorter pause, before its end. Once written it stays until the next pause.
	 * What is read while it changes may be a mix: it is a name to learn lengths by, no more. */
	char cause[TAILOR_JVM_CAUSE_BYTES];
	uint64_t reserved3[3];

	/* Written by the agent's thread that is attached to the JVM, and so stands still with it. */
	struct tailor_jvm_heap heap;
	uint64_t granted; /* the last wish that is dealt with */
	uint64_t reserved4[7];

	/* Written by the proxy; the agent clears both when the proxy's connection ends. */
	uint64_t wants; /* TAILOR_JVM_WANTS_... */
	uint64_t wish;  /* TAILOR_JVM_WISH */
	uint64_t reserved5[6];
};
_Static_assert(sizeof(struct tailor_jvm_waker) == 64, "wakers share no cache line");
_Static_assert(__builtin_offsetof(struct tailor_jvm_page, state) == 64, "state starts a cache line");
_Static_assert(__builtin_offsetof(struct tailor_jvm_page, heartbeat_ns) == 128, "heartbeat starts a cache line");
_Static_assert(__builtin_offsetof(struct tailor_jvm_page, waker) == 192, "wakers start a cache line");
_Static_assert(sizeof(struct tailor_jvm_heap) == 64, "the heap's line");
_Static_assert(__builtin_offsetof(struct tailor_jvm_page, heap) % 64 == 0, "the heap starts a cache line");
_Static_assert(__builtin_offsetof(struct tailor_jvm_page, wants) % 64 == 0, "the proxy's words start a cache line");
_Static_assert(sizeof(struct tailor_jvm_page) <= 4096, "fits the first page");

/* The only message on the socket, agent to proxy, with the descriptors as SCM_RIGHTS. */
struct tailor_jvm_hello {
	uint64_t magic;
	uint32_t version;
	uint32_t pid;
	uint64_t bytes; /* of the memfd */
};
_Static_assert(sizeof(struct tailor_jvm_hello) == 24, "hello layout");

#endif /* TAILOR_JVM_PAGE_H */
