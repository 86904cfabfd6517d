/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only ring. A channel is a head counter and a power-of-two number of 64-byte slots in memory
 * that producers and one or more readers share. Producers never wait: they reserve a position,
 * write the slot and publish it; the oldest slot is overwritten. A reader copies a slot and accepts
 * it only if the slot's sequence number was the expected one before and after the copy.
 *
 * The same code is compiled for BPF (-mcpu=v3), agents and user space.
 *
 * Sequence numbers. Position n (0, 1, 2, ...) lives in slot n & mask. The slot's `sequence` is
 *   0                 never written
 *   2 * n + 3         position n is being written
 *   2 * n + 2         position n is published
 * so it only ever grows. A producer claims the slot by compare-and-swap from an older published
 * value; if another producer is still inside the slot (it was stopped there while the others went
 * once around), the event is dropped, which a reader sees as a lost position. Without the claim, the
 * late producer would write into a slot that somebody else already published, and a reader
 * could accept a mix of both. A producer that knows that nobody can be inside a slot stores its number without asking: the only one of its
 * channel (below), and those of the kernel (bpf/emit.bpf.h).
 */
#ifndef TAILOR_CHANNEL_H
#define TAILOR_CHANNEL_H

#include <tailor/event.h>

/* The counter on a cache line of its own, zero at first. Slots start zeroed. */
struct tailor_channel_head {
	uint64_t reserved_count; /* positions reserved so far */
	uint64_t writing;        /* the kernel's channels: how many producers may be inside a slot; see bpf/emit.bpf.h */
	uint64_t padding[6];
};
_Static_assert(sizeof(struct tailor_channel_head) == 64, "the counter shares its line with nothing");

/* A channel as one side sees it; the memory belongs to whoever mapped it and must outlive this. */
struct tailor_channel {
	struct tailor_channel_head *head;
	struct tailor_event *slots;
	uint64_t mask; /* number of slots - 1 */
};

#define TAILOR_SEQUENCE_PUBLISHED(position) (2 * (position) + 2)
#define TAILOR_SEQUENCE_BUSY(position) (2 * (position) + 3)
#define TAILOR_SEQUENCE_IS_BUSY(sequence) ((sequence) & 1)

#ifdef __bpf__
/* BPF atomics that return a value are fully ordered; a plain store is enough to publish on x86, whose stores
 * stay in order. Elsewhere the exchange orders it. */
#define tailor_fetch_add(pointer, value) __sync_fetch_and_add(pointer, value)
#define tailor_claim(pointer, expected, desired) (__sync_val_compare_and_swap(pointer, expected, desired) == (expected))
#define tailor_load(pointer) (*(volatile uint64_t *)(pointer))
#ifdef __TARGET_ARCH_x86
#define tailor_publish(pointer, value)                                                              \
	do {                                                                                        \
		__asm__ volatile("" ::: "memory");                                                  \
		*(volatile uint64_t *)(pointer) = (value);                                          \
	} while (0)
#else
#define tailor_publish(pointer, value) ((void)__sync_lock_test_and_set(pointer, value))
#endif
#else
#define tailor_fetch_add(pointer, value) __atomic_fetch_add(pointer, value, __ATOMIC_RELAXED)
#define tailor_load(pointer) __atomic_load_n(pointer, __ATOMIC_ACQUIRE)
#define tailor_publish(pointer, value) __atomic_store_n(pointer, value, __ATOMIC_RELEASE)
static inline int tailor_claim(uint64_t *pointer, uint64_t expected, uint64_t desired)
{
	return __atomic_compare_exchange_n(pointer, &expected, desired, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}
#endif

/*
 * Reserves `count` (>= 1) consecutive positions and returns the first. Any thread, signal handler or
 * interrupt; never blocks.
 */
static inline __attribute__((always_inline)) uint64_t tailor_channel_reserve(struct tailor_channel_head *head, uint64_t count)
{
	return tailor_fetch_add(&head->reserved_count, count);
}

/*
 * Claims the slot of a reserved position for writing. Returns 1 when the caller may write the slot's
 * fields other than `sequence` and must then call tailor_slot_publish(); 0 when the event must be
 * dropped (a reader counts the position as lost).
 */
static inline __attribute__((always_inline)) int tailor_slot_claim(struct tailor_event *slot, uint64_t position)
{
	uint64_t sequence = tailor_load(&slot->sequence);

	if (TAILOR_SEQUENCE_IS_BUSY(sequence) || sequence >= TAILOR_SEQUENCE_PUBLISHED(position))
		return 0;
	return tailor_claim(&slot->sequence, sequence, TAILOR_SEQUENCE_BUSY(position));
}

/* Makes a claimed and written slot visible to readers. */
static inline __attribute__((always_inline)) void tailor_slot_publish(struct tailor_event *slot, uint64_t position)
{
	tailor_publish(&slot->sequence, TAILOR_SEQUENCE_PUBLISHED(position));
}

#ifndef __bpf__
#include <string.h>

/* A slot is copied in words, whatever its fields are; without this a compiler may assume that the fields did not change. */
typedef uint64_t __attribute__((may_alias)) tailor_word;

/*
 * Publishes `content` (64 bytes; its first word is ignored) at a reserved position, or drops it.
 * The words are stored with release order so that none becomes visible before the claim.
 */
static inline void tailor_slot_write(struct tailor_event *slot, uint64_t position, const void *content)
{
	uint64_t words[sizeof(*slot) / sizeof(uint64_t)];
	tailor_word *to = (tailor_word *)(void *)slot;
	unsigned int i;

	if (!tailor_slot_claim(slot, position))
		return;
	memcpy(words, content, sizeof(words));
	for (i = 1; i < sizeof(words) / sizeof(words[0]); i++)
		__atomic_store_n(&to[i], words[i], __ATOMIC_RELEASE);
	tailor_slot_publish(slot, position);
}

/*
 * The same where nobody else writes to the channel: nobody can be inside the slot. Each store is ordered behind the one before,
 * so a reader that sees a new word finds the slot busy, or newer, when it looks at the sequence again.
 */
static inline void tailor_slot_write_alone(struct tailor_event *slot, uint64_t position, const void *content)
{
	uint64_t words[sizeof(*slot) / sizeof(uint64_t)];
	tailor_word *to = (tailor_word *)(void *)slot;
	unsigned int i;

	__atomic_store_n(&slot->sequence, TAILOR_SEQUENCE_BUSY(position), __ATOMIC_RELAXED);
	memcpy(words, content, sizeof(words));
	for (i = 1; i < sizeof(words) / sizeof(words[0]); i++)
		__atomic_store_n(&to[i], words[i], __ATOMIC_RELEASE);
	tailor_slot_publish(slot, position);
}

/*
 * The same with an event's fields one by one. Who has just made the event has them in registers: a copy of it in wider words
 * would have to wait for its own stores, and those for the slot's cache line, which a reader on another CPU had.
 */
static inline __attribute__((always_inline)) void tailor_slot_write_event_alone(struct tailor_event *slot, uint64_t position,
                                                                                const struct tailor_event *event)
{
	__atomic_store_n(&slot->sequence, TAILOR_SEQUENCE_BUSY(position), __ATOMIC_RELAXED);
	__atomic_store_n(&slot->kind, event->kind, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->texts, event->texts, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->cpu, event->cpu, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->extra, event->extra, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->time_ns, event->time_ns, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->request, event->request, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->pid, event->pid, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->tid, event->tid, __ATOMIC_RELEASE);
	for (unsigned int i = 0; i < sizeof(event->arg) / sizeof(event->arg[0]); i++)
		__atomic_store_n(&slot->arg[i], event->arg[i], __ATOMIC_RELEASE);
	tailor_slot_publish(slot, position);
}

/*
 * Writes one event and, behind it, `text` (text_length bytes, cut to TAILOR_TEXTS_MAX slots; may be
 * NULL with 0). Sets event->texts. Any thread; async-signal-safe; never blocks, never allocates.
 * Writers of one channel may be in different processes.
 */
static inline void tailor_channel_write(const struct tailor_channel *channel, struct tailor_event *event,
                                        const char *text, uint64_t text_length)
{
	uint64_t texts = (text_length + TAILOR_TEXT_BYTES - 1) / TAILOR_TEXT_BYTES;
	uint64_t position, i;

	if (texts > TAILOR_TEXTS_MAX)
		texts = TAILOR_TEXTS_MAX;
	event->texts = (uint8_t)texts;
	position = tailor_channel_reserve(channel->head, 1 + texts);
	tailor_slot_write(&channel->slots[position & channel->mask], position, event);
	for (i = 0; i < texts; i++) {
		uint64_t length = text_length - i * TAILOR_TEXT_BYTES;
		struct tailor_text line = {.kind = TAILOR_EVENT_TEXT};

		line.length = (uint8_t)(length < TAILOR_TEXT_BYTES ? length : TAILOR_TEXT_BYTES);
		memcpy(line.text, text + i * TAILOR_TEXT_BYTES, line.length);
		position++;
		tailor_slot_write(&channel->slots[position & channel->mask], position, &line);
	}
}

/* About a request's events: by then the line has come. */
#define TAILOR_SLOTS_AHEAD 12

/*
 * As tailor_channel_write(), for a channel that only ever has this one writer (one thread at a time, no signal handler): no locked
 * instruction, and positions are counted once all of their slots are published, so that an event never shows without its
 * text. Readers are the same ones.
 */
static inline void tailor_channel_write_alone(const struct tailor_channel *channel, struct tailor_event *event,
                                              const char *text, uint64_t text_length)
{
	uint64_t texts = (text_length + TAILOR_TEXT_BYTES - 1) / TAILOR_TEXT_BYTES;
	uint64_t position = __atomic_load_n(&channel->head->reserved_count, __ATOMIC_RELAXED);
	uint64_t i;

	if (texts > TAILOR_TEXTS_MAX)
		texts = TAILOR_TEXTS_MAX;
	event->texts = (uint8_t)texts;
	tailor_slot_write_event_alone(&channel->slots[position & channel->mask], position, event);
	for (i = 0; i < texts; i++) {
		uint64_t length = text_length - i * TAILOR_TEXT_BYTES;
		struct tailor_text line = {.kind = TAILOR_EVENT_TEXT};

		line.length = (uint8_t)(length < TAILOR_TEXT_BYTES ? length : TAILOR_TEXT_BYTES);
		memcpy(line.text, text + i * TAILOR_TEXT_BYTES, line.length);
		position++;
		tailor_slot_write_alone(&channel->slots[position & channel->mask], position, &line);
	}
	__atomic_store_n(&channel->head->reserved_count, position + 1, __ATOMIC_RELEASE);
	/* A reader had that slot's line a lap ago. */
	__builtin_prefetch(&channel->slots[(position + TAILOR_SLOTS_AHEAD) & channel->mask], 1);
}

enum tailor_read {
	TAILOR_READ_OK,
	TAILOR_READ_LOST,    /* overwritten, dropped or torn: it will never be readable */
	TAILOR_READ_PENDING, /* reserved but not yet published, or not even reserved */
};

/* Positions reserved so far: position p may be readable if p < this and p + slots >= this. */
static inline uint64_t tailor_channel_end(const struct tailor_channel *channel)
{
	return tailor_load(&channel->head->reserved_count);
}

/*
 * Copies the event at `position` into *ret_event if it is whole. Any number of readers, any thread;
 * never blocks a producer. A position that stays PENDING was dropped by a producer that lost its
 * claim or died; the caller decides how long it waits before it counts it as lost.
 */
static inline enum tailor_read tailor_channel_read(const struct tailor_channel *channel, uint64_t position,
                                                   struct tailor_event *ret_event)
{
	const struct tailor_event *slot = &channel->slots[position & channel->mask];
	uint64_t expected = TAILOR_SEQUENCE_PUBLISHED(position);
	uint64_t before = tailor_load(&slot->sequence);
	const tailor_word *from = (const tailor_word *)(const void *)slot;
	tailor_word *to = (tailor_word *)(void *)ret_event;
	unsigned int i;

	if (before != expected) {
		/* Something newer is there; or the slot has not been reached yet. */
		if (before > TAILOR_SEQUENCE_BUSY(position))
			return TAILOR_READ_LOST;
		if (tailor_channel_end(channel) > position + channel->mask + 1)
			return TAILOR_READ_LOST;
		return TAILOR_READ_PENDING;
	}
	/* The copy may race with a producer, and is thrown away if it did. Acquire loads keep the second look at the
	 * sequence behind it (a fence would do too, but thread sanitizers do not model fences). */
	for (i = 1; i < sizeof(*slot) / sizeof(*from); i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
	if (__atomic_load_n(&slot->sequence, __ATOMIC_RELAXED) != expected)
		return TAILOR_READ_LOST;
	ret_event->sequence = expected;
	return TAILOR_READ_OK;
}
#endif /* !__bpf__ */

#endif /* TAILOR_CHANNEL_H */
