/* SPDX-License-Identifier: Apache-2.0 */
/* The store as a whole: its segments, its limit, its one writer and its readers. */
#include "store_directory.h"

#include "store/segment.h"

static void what_is_no_store_is_refused_and_an_empty_one_is_empty(void **state)
{
	struct tailor_store_reader *reader;
	struct tailor_store_writer *writer;
	uint64_t ids, bad, lost;
	char path[400];

	(void)state;
	assert_int_equal(read_all(directory, &ids, &bad, &lost), 0);
	path_of(path, "nothing");
	assert_int_equal(tailor_store_reader_open(path, &reader), -ENOENT);
	path_of(path, "letter.txt");
	save(path, (const uint8_t *)"Dear all, this is not a timeline", 32);
	assert_int_equal(tailor_store_reader_open(path, &reader), -EINVAL);
	assert_int_equal(tailor_store_reader_open(directory, &reader), -EINVAL);
	assert_int_equal(tailor_store_writer_open(path, 1 << 20, &writer), -EINVAL);
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &writer), -EINVAL);
	/* A foreign file under a segment's name costs only itself. */
	unlink(path);
	path_of(path, FIRST_SEGMENT);
	save(path, (const uint8_t *)"Dear all, this is not a timeline", 32);
	fill(1, 1);
	assert_int_equal(read_all(directory, &ids, &bad, &lost), 1);
	assert_int_equal(lost, 32);
}

static void a_second_writer_is_told_that_the_store_is_busy(void **state)
{
	struct tailor_store_writer *first, *second;

	(void)state;
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &first), 0);
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &second), -EBUSY);
	tailor_store_writer_close(first);
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &second), 0);
	tailor_store_writer_close(second);
}

static uint64_t store_bytes(void)
{
	DIR *stream = opendir(directory);
	struct dirent *entry;
	uint64_t sum = 0;

	while ((entry = readdir(stream)) != NULL) {
		char path[400];
		struct stat status;

		path_of(path, entry->d_name);
		if (stat(path, &status) == 0 && S_ISREG(status.st_mode))
			sum += (uint64_t)status.st_size;
	}
	closedir(stream);
	return sum;
}

static void rotation_keeps_the_store_below_its_limit_and_loses_the_oldest_first(void **state)
{
	struct tailor_store_reader *reader;
	struct tailor_store_writer *writer;
	struct tailor_timeline timeline;
	uint64_t next = 0, count = 0;

	(void)state;
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &writer), 0);
	for (uint64_t id = 0; id < 20000; id++) {
		append(writer, id);
		if (id % 500 == 0)
			assert_true(store_bytes() <= 1 << 20);
	}
	assert_true(store_bytes() > (1 << 20) * 3 / 4);
	tailor_store_writer_close(writer);
	assert_int_equal(tailor_store_reader_open(directory, &reader), 0);
	while (tailor_store_next(reader, &timeline) == 1) {
		if (count++ > 0)
			assert_int_equal(timeline.request.id, next);
		next = timeline.request.id + 1;
		tailor_timeline_free(&timeline);
	}
	assert_int_equal(next, 20000);
	assert_true(count > 1000);
	tailor_store_reader_close(reader);
}

static void a_reader_follows_a_writer_also_into_new_segments(void **state)
{
	struct tailor_store_reader *reader;
	struct tailor_store_writer *writer;
	struct tailor_timeline timeline;

	(void)state;
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &writer), 0);
	assert_int_equal(tailor_store_reader_open(directory, &reader), 0);
	for (uint64_t id = 0; id < 3000; id++) {
		assert_int_equal(tailor_store_next(reader, &timeline), 0);
		append(writer, id);
		assert_int_equal(tailor_store_next(reader, &timeline), 1);
		assert_int_equal(timeline.request.id, id);
		tailor_timeline_free(&timeline);
	}
	tailor_store_writer_close(writer);
	tailor_store_reader_close(reader);
}

static size_t count_timelines(void)
{
	struct tailor_store_reader *reader;
	struct tailor_timeline timeline;
	size_t count = 0;

	assert_int_equal(tailor_store_reader_open(directory, &reader), 0);
	for (; tailor_store_next(reader, &timeline) == 1; count++)
		tailor_timeline_free(&timeline);
	tailor_store_reader_close(reader);
	return count;
}

static void after_its_files_were_deleted_a_writer_goes_on_where_they_can_be_read(void **state)
{
	struct tailor_store_writer *writer;
	char path[400];

	(void)state;
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &writer), 0);
	append(writer, 1);
	path_of(path, FIRST_SEGMENT);
	assert_int_equal(unlink(path), 0);
	append(writer, 2);
	append(writer, 3);
	assert_int_equal(count_timelines(), 2);
	tailor_store_writer_close(writer);
}

static void a_store_that_was_removed_is_an_error_not_a_success(void **state)
{
	struct tailor_timeline timeline = {.request = {.id = 2}};
	struct tailor_store_writer *writer;

	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &writer), 0);
	append(writer, 1);
	assert_int_equal(remove_directory(state), 0);
	assert_int_equal(tailor_store_append(writer, &timeline), -ENOENT);
	tailor_store_writer_close(writer);
	assert_int_equal(mkdir(directory, 0700), 0);
}

/* How one process goes on with the store of another: the lock is never free meanwhile. */
static void a_store_is_handed_over_with_its_lock(void **state)
{
	struct tailor_store_writer *old, *new, *third;
	struct tailor_store_reader *reader;
	struct tailor_timeline timeline;
	char path[400];

	(void)state;
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &old), 0);
	append(old, 1);
	assert_int_equal(tailor_store_writer_take_over(directory, 1 << 20, dup(tailor_store_writer_lock(old)), &new), 0);
	/* The old one starts a segment yet after the new one is there. */
	path_of(path, FIRST_SEGMENT);
	assert_int_equal(rename(path, "/tmp/tailor-store-kept"), 0);
	assert_int_equal(unlink("/tmp/tailor-store-kept"), 0);
	append(old, 2);
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &third), -EBUSY);
	tailor_store_writer_close(old);
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &third), -EBUSY);
	append(new, 3);
	tailor_store_writer_close(new);
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &third), 0);
	tailor_store_writer_close(third);
	assert_int_equal(tailor_store_reader_open(directory, &reader), 0);
	for (uint64_t id = 2; id <= 3; id++) {
		assert_int_equal(tailor_store_next(reader, &timeline), 1);
		assert_int_equal(timeline.request.id, id);
		tailor_timeline_free(&timeline);
	}
	assert_int_equal(tailor_store_next(reader, &timeline), 0);
	tailor_store_reader_close(reader);
}

static void another_stores_lock_opens_nothing(void **state)
{
	struct tailor_store_writer *writer, *other;
	char path[400];
	int lock;

	(void)state;
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &writer), 0);
	lock = dup(tailor_store_writer_lock(writer));
	tailor_store_writer_close(writer);
	path_of(path, STORE_LOCK_NAME);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(tailor_store_writer_take_over(directory, 1 << 20, lock, &other), -ESTALE);
	assert_int_equal(close(lock), 0); /* still the caller's */
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &other), 0);
	tailor_store_writer_close(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		store_test(a_store_is_handed_over_with_its_lock),
		store_test(another_stores_lock_opens_nothing),
		store_test(what_is_no_store_is_refused_and_an_empty_one_is_empty),
		store_test(a_second_writer_is_told_that_the_store_is_busy),
		store_test(rotation_keeps_the_store_below_its_limit_and_loses_the_oldest_first),
		store_test(a_reader_follows_a_writer_also_into_new_segments),
		store_test(after_its_files_were_deleted_a_writer_goes_on_where_they_can_be_read),
		store_test(a_store_that_was_removed_is_an_error_not_a_success),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
