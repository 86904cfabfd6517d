/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's reading of perf-data, with files written here: what JDK 17 and 25 really write is tested with real ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jvmagent/perfdata.h"

#define FILE_BYTES 8192
#define HEAD_BYTES 32
#define VALUE_BYTES 40

static char directory[] = "/tmp/tailor-perf-XXXXXX";
static char path[64];
static char *file; /* mapped as a JVM maps its own */
static int32_t used, entries;

static void put(int offset, int32_t value)
{
	memcpy(file + offset, &value, sizeof(value));
}

/* Appends an entry and returns its value's address. */
static char *append(const char *name, char type, int vector_length)
{
	char *entry = file + used;
	int32_t head[3] = {20 + 60 + VALUE_BYTES, 20, vector_length}, data_offset = 80;

	memcpy(entry, head, sizeof(head));
	entry[12] = type;
	memcpy(entry + 16, &data_offset, sizeof(data_offset));
	strcpy(entry + 20, name);
	used += head[0];
	entries++;
	put(8, used);
	put(28, entries);
	return entry + 80;
}

static int make_file(void **state)
{
	int fd;

	(void)state;
	used = HEAD_BYTES;
	entries = 0;
	fd = open(path, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, FILE_BYTES) < 0)
		return -1;
	file = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	memcpy(file, "\xca\xfe\xc0\xc0\x01\x02\x00\x01", 8);
	put(24, HEAD_BYTES);
	return file == MAP_FAILED ? -1 : 0;
}

static int unmap_file(void **state)
{
	(void)state;
	return munmap(file, FILE_BYTES);
}

static int make_directory(void **state)
{
	char sub[48];

	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(sub, sizeof(sub), "%s/hsperfdata_me", directory);
	snprintf(path, sizeof(path), "%s/4711", sub);
	return mkdir(sub, 0700);
}

static int remove_directory(void **state)
{
	char sub[48];

	(void)state;
	snprintf(sub, sizeof(sub), "%s/hsperfdata_me", directory);
	unlink(path);
	rmdir(sub);
	return rmdir(directory);
}

static const char *describe(void)
{
	static char text[208];
	size_t length = perfdata_describe(text, sizeof(text));

	assert_int_equal(length, strlen(text));
	return text;
}

/* Two collectors and their counters. */
static struct {
	char *cause, *last;
	int64_t *first, *second;
} jvm;

static void write_jvm(const char *first, const char *second)
{
	jvm.cause = append("sun.gc.cause", 'B', VALUE_BYTES);
	jvm.last = append("sun.gc.lastCause", 'B', VALUE_BYTES);
	strcpy(append("sun.gc.collector.0.name", 'B', VALUE_BYTES), first);
	jvm.first = (int64_t *)(void *)append("sun.gc.collector.0.invocations", 'J', 0);
	strcpy(append("sun.gc.collector.2.name", 'B', VALUE_BYTES), second);
	jvm.second = (int64_t *)(void *)append("sun.gc.collector.2.invocations", 'J', 0);
	strcpy(jvm.cause, "No GC");
	strcpy(jvm.last, "No GC");
	*jvm.first = 7;
	assert_int_equal(perfdata_open(), 0);
}

static void the_collector_whose_counter_rose_did_the_work(void **state)
{
	(void)state;
	write_jvm("Serial young collection pauses", "Serial full collection pauses");
	strcpy(jvm.cause, "Allocation Failure");
	++*jvm.first;
	assert_string_equal(describe(), "Serial young\tAllocation Failure");
	strcpy(jvm.cause, "System.gc()");
	++*jvm.second;
	assert_string_equal(describe(), "Serial full\tSystem.gc()");
	++*jvm.first;
	++*jvm.second;
	assert_string_equal(describe(), "Serial young + Serial full\tSystem.gc()");
	assert_string_equal(describe(), "unknown\tunknown");
}

static void a_cause_taken_back_before_the_end_stands_in_the_last_cause(void **state)
{
	(void)state;
	write_jvm("Serial young collection pauses", "Serial full collection pauses");
	strcpy(jvm.last, "Allocation Failure");
	++*jvm.first;
	assert_string_equal(describe(), "Serial young\tAllocation Failure");
}

static void a_parallel_full_collection_may_have_been_renamed(void **state)
{
	(void)state;
	write_jvm("Parallel young collection pauses", "Parallel full collection pauses");
	strcpy(jvm.last, "Allocation Failure");
	++*jvm.first;
	assert_string_equal(describe(), "Parallel young\tAllocation Failure");
	++*jvm.second;
	assert_string_equal(describe(), "Parallel full\tunknown");
	strcpy(jvm.last, "System.gc()");
	++*jvm.second;
	assert_string_equal(describe(), "Parallel full\tSystem.gc()");
	strcpy(jvm.cause, "Allocation Failure"); /* as JDK 25 leaves it */
	++*jvm.second;
	assert_string_equal(describe(), "Parallel full\tAllocation Failure");
}

static void a_cause_left_from_an_earlier_pause_is_not_used(void **state)
{
	(void)state;
	write_jvm("G1 young collection pauses", "G1 concurrent cycle pauses");
	strcpy(jvm.last, "G1 Evacuation Pause");
	++*jvm.second;
	assert_string_equal(describe(), "G1 remark or cleanup\tunknown");
	++*jvm.first;
	assert_string_equal(describe(), "G1 young\tunknown");
	strcpy(jvm.cause, "G1 Evacuation Pause");
	++*jvm.first;
	assert_string_equal(describe(), "G1 young\tG1 Evacuation Pause");
}

static void cycles_that_overlap_have_no_known_cause(void **state)
{
	(void)state;
	write_jvm("ZGC minor collection pauses", "ZGC major collection pauses");
	strcpy(jvm.cause, "Warmup");
	++*jvm.first;
	assert_string_equal(describe(), "ZGC minor\tunknown");
}

static void shenandoah_counts_what_is_no_pause(void **state)
{
	(void)state;
	write_jvm("Shenandoah partial", "Shenandoah full");
	strcpy(jvm.cause, "Concurrent GC");
	*jvm.second += 3;
	assert_string_equal(describe(), "Shenandoah\tConcurrent GC");
}

static void a_cause_is_said_while_the_collection_goes_on(void **state)
{
	char text[40] = "left over", small[8];

	(void)state;
	write_jvm("Serial young collection pauses", "Serial full collection pauses");
	assert_int_equal(perfdata_cause(text, sizeof(text)), 0);
	assert_string_equal(text, "");
	strcpy(jvm.cause, "No GC at all");
	assert_int_equal(perfdata_cause(text, sizeof(text)), 12);
	strcpy(jvm.cause, "Allocation Failure");
	assert_int_equal(perfdata_cause(text, sizeof(text)), 18);
	assert_string_equal(text, "Allocation Failure");
	assert_int_equal(perfdata_cause(small, sizeof(small)), 7);
	assert_string_equal(small, "Allocat");
}

static void a_g1_pause_without_a_cause_is_remark_or_cleanup(void **state)
{
	char text[40];

	(void)state;
	write_jvm("G1 young collection pauses", "G1 concurrent cycle pauses");
	assert_int_equal(perfdata_cause(text, sizeof(text)), 20);
	assert_string_equal(text, "G1 remark or cleanup");
	strcpy(jvm.cause, "G1 Evacuation Pause");
	assert_int_equal(perfdata_cause(text, sizeof(text)), 19);
	assert_string_equal(text, "G1 Evacuation Pause");
}

static void a_collector_of_another_name_is_called_by_it(void **state)
{
	(void)state;
	write_jvm("Tomorrow's collector", "Another");
	strcpy(jvm.cause, "A\tB\n");
	++*jvm.first;
	assert_string_equal(describe(), "Tomorrow's collector\tA B ");
	memset(jvm.cause, 'x', VALUE_BYTES); /* not terminated */
	++*jvm.second;
	assert_string_equal(describe(), "Another\txxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
}

static void text_is_cut_to_the_buffer(void **state)
{
	char text[8];

	(void)state;
	write_jvm("Serial young collection pauses", "Serial full collection pauses");
	++*jvm.first;
	assert_int_equal(perfdata_describe(text, sizeof(text)), 7);
	assert_string_equal(text, "Serial ");
}

static void files_of_another_form_are_refused(void **state)
{
	static const struct {
		int offset;
		int32_t value;
	} breaks[] = {{0, 0},   {4, 0x01000201 - 1}, {4, 0x01000301}, {8, -1}, {8, FILE_BYTES + 1},
	              {24, -4}, {24, FILE_BYTES},    {24, 8},         {28, 0}, {28, -1}};

	(void)state;
	for (size_t i = 0; i < sizeof(breaks) / sizeof(breaks[0]); i++) {
		if (i)
			make_file(NULL);
		append("sun.gc.cause", 'B', VALUE_BYTES);
		assert_int_equal(perfdata_open(), 0);
		put(breaks[i].offset, breaks[i].value);
		if (perfdata_open() != -EPROTO)
			fail_msg("file %zu was taken", i);
		assert_string_equal(describe(), "unknown\tunknown");
		munmap(file, FILE_BYTES);
	}
	assert_int_equal(perfdata_open(), -ENOENT);
	make_file(NULL);
}

static void entries_that_reach_outside_are_skipped(void **state)
{
	/* Of the entry at HEAD_BYTES: offset of a word in it, and a value that must not be believed. */
	static const struct {
		int offset;
		int32_t value;
	} breaks[] = {{0, 0},  {0, -1}, {0, INT32_MAX}, {4, 0},  {4, -8},  {4, 4096}, {4, INT32_MIN},
	              {8, -1}, {8, 41}, {8, INT32_MAX}, {16, 0}, {16, -1}, {16, 119}, {16, INT32_MAX}};

	(void)state;
	for (size_t i = 0; i < sizeof(breaks) / sizeof(breaks[0]); i++) {
		if (i)
			make_file(NULL);
		append("sun.gc.cause", 'B', VALUE_BYTES);
		assert_int_equal(perfdata_open(), 0);
		put(HEAD_BYTES + breaks[i].offset, breaks[i].value);
		if (perfdata_open() != -EPROTO)
			fail_msg("entry %zu was taken", i);
		munmap(file, FILE_BYTES);
	}
	make_file(NULL);
	/* A name that does not end inside its entry. */
	append("sun.gc.cause", 'B', VALUE_BYTES);
	memset(file + HEAD_BYTES + 20, 'n', 100);
	assert_int_equal(perfdata_open(), -EPROTO);
}

static void safepoints_are_counted_only_where_all_counters_are_there(void **state)
{
	static const char *const names[] = {"sun.rt.safepointSyncTime", "sun.rt.safepoints", "sun.rt.safepointTime"};
	struct perfdata_safepoints now;

	(void)state;
	append("sun.gc.cause", 'B', VALUE_BYTES);
	append("sun.rt.applicationTime", 'J', 0);
	for (int64_t i = 0; i < 3; i++) {
		assert_int_equal(perfdata_open(), 0);
		assert_int_equal(perfdata_safepoints(&now), -ENOENT);
		*(int64_t *)(void *)append(names[i], 'J', 0) = 100 + i;
	}
	assert_int_equal(perfdata_open(), 0);
	assert_int_equal(perfdata_safepoints(&now), 0);
	assert_int_equal(now.stopping_ns, 100);
	assert_int_equal(now.begun, 101);
	assert_int_equal(now.stopped_ns, 102);
}

int main(void)
{
#define WITH_FILE(test) cmocka_unit_test_setup_teardown(test, make_file, unmap_file)
	const struct CMUnitTest tests[] = {
	        WITH_FILE(the_collector_whose_counter_rose_did_the_work),
	        WITH_FILE(a_cause_taken_back_before_the_end_stands_in_the_last_cause),
	        WITH_FILE(a_parallel_full_collection_may_have_been_renamed),
	        WITH_FILE(a_cause_left_from_an_earlier_pause_is_not_used),
	        WITH_FILE(cycles_that_overlap_have_no_known_cause),
	        WITH_FILE(shenandoah_counts_what_is_no_pause),
	        WITH_FILE(a_cause_is_said_while_the_collection_goes_on),
	        WITH_FILE(a_g1_pause_without_a_cause_is_remark_or_cleanup),
	        WITH_FILE(a_collector_of_another_name_is_called_by_it),
	        WITH_FILE(text_is_cut_to_the_buffer),
	        WITH_FILE(files_of_another_form_are_refused),
	        WITH_FILE(entries_that_reach_outside_are_skipped),
	        WITH_FILE(safepoints_are_counted_only_where_all_counters_are_there),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
