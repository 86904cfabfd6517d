/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the counters behave, found by trial on JDK 17 and 25 at GarbageCollectionStart and -Finish:
 *
 * - sun.gc.collector.N.invocations of the collector at work rises by Finish, before Start for some. So the change since
 *   the previous Finish tells who worked. A Serial young collection that turns into a full one is one pause with both.
 *   Shenandoah's two collectors count phases, concurrent ones too, and say nothing about a pause.
 * - sun.gc.cause is the cause at Finish, except with Serial and Parallel of JDK 17: there the cause is taken back just
 *   before Finish and stands in sun.gc.lastCause. Parallel of JDK 17 may besides turn a young collection into a full
 *   one and call the full one's cause "Ergonomics", of which nothing is left at Finish: whether it did is unknown.
 * - During the pauses of a concurrent G1 cycle (remark, cleanup) sun.gc.cause is "No GC": the cause is unknown. G1's other
 *   pauses have theirs from before Start on.
 * - Generational ZGC's minor and major cycles overlap and share the one cause: unknown.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "perfdata.h"

#define MAGIC_BYTES "\xca\xfe\xc0\xc0" /* in this order on every machine */
#define COLLECTORS_MAX 4
#define CAUSE_BYTES_MAX 80

enum cause_rule {
	CAUSE_CURRENT,          /* sun.gc.cause */
	CAUSE_CURRENT_OR_LAST,  /* sun.gc.cause, or sun.gc.lastCause when that is taken back already */
	CAUSE_CURRENT_OR_ASKED, /* the same, but of sun.gc.lastCause only what cannot have been renamed */
	CAUSE_UNKNOWN,
};

/* The counters' names of collectors in words of the GC log. */
static const struct known_collector {
	const char *name;
	const char *label;
	enum cause_rule cause;
} known_collectors[] = {
        {"Serial young collection pauses", "Serial young", CAUSE_CURRENT_OR_LAST},
        {"Serial full collection pauses", "Serial full", CAUSE_CURRENT_OR_LAST},
        {"Parallel young collection pauses", "Parallel young", CAUSE_CURRENT_OR_LAST},
        {"Parallel full collection pauses", "Parallel full", CAUSE_CURRENT_OR_ASKED},
        {"G1 young collection pauses", "G1 young", CAUSE_CURRENT},
        {"G1 full collection pauses", "G1 full", CAUSE_CURRENT},
        {"G1 concurrent cycle pauses", "G1 remark or cleanup", CAUSE_UNKNOWN},
        {"Z concurrent cycle pauses", "ZGC", CAUSE_CURRENT},
        {"ZGC minor collection pauses", "ZGC minor", CAUSE_UNKNOWN},
        {"ZGC major collection pauses", "ZGC major", CAUSE_UNKNOWN},
};

struct prologue {
	uint8_t magic[4];
	uint8_t byte_order; /* 1: little endian */
	uint8_t major, minor;
	uint8_t accessible;
	int32_t used;
	int32_t overflow;
	int64_t modified;
	int32_t entry_offset;
	int32_t entries;
};
_Static_assert(sizeof(struct prologue) == 32, "as in perfMemory.hpp");

struct entry {
	int32_t length;
	int32_t name_offset;
	int32_t vector_length; /* 0: a scalar */
	uint8_t type;          /* as in Java signatures: 'J' long, 'B' byte */
	uint8_t flags, unit, variability;
	int32_t data_offset;
};
_Static_assert(sizeof(struct entry) == 20, "as in perfMemory.hpp");

struct text {
	const char *bytes;
	size_t size;
};

/*
 * In the order in which HotSpot raises them in a safepoint. Times are in "ticks" of sun.os.hrt.frequency, which does
 * not exist yet when the agent starts with the JVM; on Linux it is the constant 10^9 (os::elapsed_frequency()).
 */
enum counter {
	COUNTER_BEGUN,
	COUNTER_STOPPING,
	COUNTER_STOPPED,
	COUNTERS,
};

static const char *const counter_names[COUNTERS] = {
        [COUNTER_BEGUN] = "sun.rt.safepoints",
        [COUNTER_STOPPING] = "sun.rt.safepointSyncTime",
        [COUNTER_STOPPED] = "sun.rt.safepointTime",
};

struct collector {
	const char *label;
	enum cause_rule cause;
	const uint64_t *invocations;
	uint64_t seen;
};

/* Set once by perfdata_open(); then only the VM Thread changes it. */
static struct {
	struct collector collector[COLLECTORS_MAX];
	const uint64_t *counter[COUNTERS];
	int shenandoah;
	const char *causeless; /* the only collector whose pauses begin without a cause, NULL where there is none */
	struct text cause, last_cause;
	char own_name[COLLECTORS_MAX][40]; /* labels of collectors that are in no table of ours */
} perfdata;

/*
 * The JVM's own mapping of the file, which HotSpot keeps until the process ends. Using it rather than mapping the file
 * again needs no path, no user name and no pid namespace, and cannot be fooled by a file put in its place.
 */
static int find_mapping(const char **ret_base, size_t *ret_size)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	int result = -ENOENT;

	if (!maps)
		return -errno;
	while (result == -ENOENT && fgets(line, sizeof(line), maps)) {
		unsigned long start, end;
		char readable, shared;

		if (!strstr(line, "/hsperfdata_"))
			continue;
		if (sscanf(line, "%lx-%lx %c%*c%*c%c", &start, &end, &readable, &shared) != 4 || readable != 'r' ||
		    shared != 's')
			continue;
		*ret_base = (const char *)start;
		*ret_size = end - start;
		result = 0;
	}
	fclose(maps);
	return result;
}

static struct text text_of(const char *base, const struct entry *entry, int32_t at)
{
	return (struct text){.bytes = base + at + entry->data_offset, .size = (size_t)entry->vector_length};
}

/* Copies a text that may change meanwhile, up to its end or to size - 1 bytes, and returns its length. */
static size_t copy_text(char *buffer, size_t size, const struct text *text)
{
	size_t length = 0;

	while (length < text->size && length < size - 1) {
		char byte = __atomic_load_n(&text->bytes[length], __ATOMIC_RELAXED);

		if (!byte)
			break;
		/* Tabs and lines are our separators. */
		buffer[length++] = byte < ' ' ? ' ' : byte;
	}
	buffer[length] = 0;
	return length;
}

static void name_collector(unsigned int index, const struct text *name)
{
	struct collector *collector = &perfdata.collector[index];
	char *own = perfdata.own_name[index];

	copy_text(own, sizeof(perfdata.own_name[index]), name);
	if (strncmp(own, "Shenandoah", 10) == 0) {
		perfdata.shenandoah = 1;
		return;
	}
	collector->label = own;
	collector->cause = CAUSE_CURRENT;
	for (size_t i = 0; i < sizeof(known_collectors) / sizeof(known_collectors[0]); i++)
		if (strcmp(own, known_collectors[i].name) == 0) {
			collector->label = known_collectors[i].label;
			collector->cause = known_collectors[i].cause;
		}
	if (strcmp(own, "G1 concurrent cycle pauses") == 0)
		perfdata.causeless = collector->label;
}

static void take_entry(const char *base, const struct entry *entry, int32_t at)
{
	const char *name = base + at + entry->name_offset;
	unsigned int index;
	int end = 0;

	if (entry->type == 'B' && entry->vector_length > 0) {
		struct text text = text_of(base, entry, at);

		if (strcmp(name, "sun.gc.cause") == 0)
			perfdata.cause = text;
		else if (strcmp(name, "sun.gc.lastCause") == 0)
			perfdata.last_cause = text;
		else if (sscanf(name, "sun.gc.collector.%u.name%n", &index, &end) == 1 && end && !name[end] &&
		         index < COLLECTORS_MAX)
			name_collector(index, &text);
	} else if (entry->type == 'J' && entry->vector_length == 0) {
		const void *value = base + at + entry->data_offset;

		for (int i = 0; i < COUNTERS; i++)
			if (strcmp(name, counter_names[i]) == 0 && ((uintptr_t)value & 7) == 0)
				perfdata.counter[i] = value;
		if (sscanf(name, "sun.gc.collector.%u.invocations%n", &index, &end) == 1 && end && !name[end] &&
		    index < COLLECTORS_MAX && ((uintptr_t)value & 7) == 0)
			perfdata.collector[index].invocations = value;
	}
}

/* An entry whose name and value lie inside its length, and whose name ends. */
static int entry_is_sound(const char *base, const struct entry *entry, int32_t at)
{
	int64_t value_bytes = entry->vector_length == 0 ? 8 : entry->vector_length;

	return entry->vector_length >= 0 && entry->name_offset >= (int32_t)sizeof(*entry) &&
	       entry->name_offset < entry->length && entry->data_offset >= (int32_t)sizeof(*entry) &&
	       entry->data_offset + value_bytes <= entry->length &&
	       memchr(base + at + entry->name_offset, 0, (size_t)(entry->length - entry->name_offset));
}

int perfdata_open(void)
{
	struct prologue prologue;
	const char *base = NULL;
	int64_t at;
	size_t size = 0;
	int result;

	memset(&perfdata, 0, sizeof(perfdata));
	result = find_mapping(&base, &size);
	if (result < 0)
		return result;
	if (size < sizeof(prologue))
		return -EPROTO;
	memcpy(&prologue, base, sizeof(prologue));
	if (memcmp(prologue.magic, MAGIC_BYTES, 4) != 0 ||
	    prologue.byte_order != (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) || prologue.major != 2 ||
	    prologue.used < 0 || (size_t)prologue.used > size)
		return -EPROTO;

	/* Counters are only ever appended, so those found stay where they are. The collectors' exist since the heap
	 * does. */
	at = prologue.entry_offset;
	for (int32_t i = 0; i < prologue.entries; i++) {
		struct entry entry;

		if (at < (int64_t)sizeof(prologue) || at + (int64_t)sizeof(entry) > prologue.used)
			break;
		memcpy(&entry, base + at, sizeof(entry));
		if (entry.length < (int32_t)sizeof(entry) || at + entry.length > prologue.used)
			break;
		if (entry_is_sound(base, &entry, (int32_t)at))
			take_entry(base, &entry, (int32_t)at);
		at += entry.length;
	}
	for (int i = 0; i < COLLECTORS_MAX; i++)
		if (perfdata.collector[i].invocations)
			perfdata.collector[i].seen =
			        __atomic_load_n(perfdata.collector[i].invocations, __ATOMIC_RELAXED);
	return perfdata.cause.bytes ? 0 : -EPROTO;
}

int perfdata_safepoints(struct perfdata_safepoints *ret_now)
{
	uint64_t value[COUNTERS];

	/* Backwards, since readers rely on the order. */
	for (int i = COUNTERS - 1; i >= 0; i--) {
		if (!perfdata.counter[i])
			return -ENOENT;
		value[i] = __atomic_load_n(perfdata.counter[i], __ATOMIC_ACQUIRE);
	}
	*ret_now = (struct perfdata_safepoints){
	        .begun = value[COUNTER_BEGUN],
	        .stopping_ns = value[COUNTER_STOPPING],
	        .stopped_ns = value[COUNTER_STOPPED],
	};
	return 0;
}

static size_t append(char *buffer, size_t size, size_t length, const char *text)
{
	size_t bytes = strnlen(text, size - 1 - length);

	memcpy(buffer + length, text, bytes);
	buffer[length + bytes] = 0;
	return length + bytes;
}

size_t perfdata_cause(char *buffer, size_t size)
{
	size_t length = perfdata.cause.bytes ? copy_text(buffer, size, &perfdata.cause) : 0;

	buffer[length] = 0;
	if (strcmp(buffer, "No GC") != 0)
		return length;
	buffer[0] = 0;
	return append(buffer, size, 0, perfdata.causeless ?: "");
}

/* Causes of a Parallel young collection, which may have become a full one by "Ergonomics". */
static int starts_young(const char *cause)
{
	return strcmp(cause, "Allocation Failure") == 0 || strcmp(cause, "GCLocker Initiated GC") == 0;
}

/* "unknown" unless the rule yields a cause. */
static size_t append_cause(char *buffer, size_t size, size_t length, enum cause_rule rule)
{
	char cause[CAUSE_BYTES_MAX] = "";

	if (rule == CAUSE_UNKNOWN || !perfdata.cause.bytes)
		return append(buffer, size, length, "unknown");
	copy_text(cause, sizeof(cause), &perfdata.cause);
	if (strcmp(cause, "No GC") == 0 && rule != CAUSE_CURRENT && perfdata.last_cause.bytes) {
		copy_text(cause, sizeof(cause), &perfdata.last_cause);
		if (rule == CAUSE_CURRENT_OR_ASKED && starts_young(cause))
			cause[0] = 0;
	}
	if (!cause[0] || strcmp(cause, "No GC") == 0)
		return append(buffer, size, length, "unknown");
	return append(buffer, size, length, cause);
}

size_t perfdata_describe(char *buffer, size_t size)
{
	enum cause_rule rule = CAUSE_UNKNOWN;
	size_t length = 0;

	for (int i = 0; i < COLLECTORS_MAX; i++) {
		struct collector *collector = &perfdata.collector[i];
		uint64_t invocations;

		if (!collector->label || !collector->invocations)
			continue;
		invocations = __atomic_load_n(collector->invocations, __ATOMIC_RELAXED);
		if (invocations == collector->seen)
			continue;
		collector->seen = invocations;
		rule = collector->cause;
		if (length)
			length = append(buffer, size, length, " + ");
		length = append(buffer, size, length, collector->label);
	}
	if (!length && perfdata.shenandoah) {
		rule = CAUSE_CURRENT;
		length = append(buffer, size, length, "Shenandoah");
	}
	if (!length)
		length = append(buffer, size, length, "unknown");
	length = append(buffer, size, length, "\t");
	return append_cause(buffer, size, length, rule);
}
