/* SPDX-License-Identifier: Apache-2.0 */
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
#include <unistd.h>

#include "collect/mappings.h"

#define MS UINT64_C(1000000)

static const struct tailor_window_mapping *mapping_at(const struct tailor_window_mapping *list, size_t count, uint32_t pid, uint64_t address)
{
	for (size_t i = 0; i < count; i++) {
		if (list[i].pid == pid && list[i].start <= address && address < list[i].end)
			return &list[i];
	}
	return NULL;
}

static void a_fault_in_a_mapped_file_finds_its_name_and_one_in_plain_memory_none(void **state)
{
	char path[] = "/tmp/a-directory-whose-name-is-rather-long-for-a-test-XXXXXX", file[128];
	struct tailor_window_event events[] = {{.event = {.kind = TAILOR_EVENT_PAGE_FAULTS, .pid = (uint32_t)getpid()}}};
	struct tailor_window window = {.events = events, .event_count = 1};
	struct tailor_mappings mappings = {0};
	const struct tailor_window_mapping *found;
	void *mapped, *plain;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(path));
	snprintf(file, sizeof(file), "%s/_0_Lucene99 posting.doc", path);
	fd = open(file, O_CREAT | O_RDWR, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 8192), 0);
	mapped = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
	plain = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(mapped, MAP_FAILED);
	assert_ptr_not_equal(plain, MAP_FAILED);
	tailor_mappings_for(&mappings, &window, 1000 * MS);
	found = mapping_at(window.mappings, window.mapping_count, (uint32_t)getpid(), (uintptr_t)mapped + 4096);
	assert_non_null(found);
	assert_string_equal(found->name, "/_0_Lucene99 posting.doc");
	found = mapping_at(window.mappings, window.mapping_count, (uint32_t)getpid(), (uintptr_t)plain);
	assert_non_null(found);
	assert_string_equal(found->name, "");
	for (size_t i = 1; i < window.mapping_count; i++)
		assert_true(window.mappings[i - 1].start < window.mappings[i].start);
	/* Unmapped, but looked at only now and then; later it is seen. */
	assert_int_equal(munmap(mapped, 8192), 0);
	tailor_mappings_for(&mappings, &window, 1200 * MS);
	assert_non_null(mapping_at(window.mappings, window.mapping_count, (uint32_t)getpid(), (uintptr_t)mapped));
	tailor_mappings_for(&mappings, &window, 1301 * MS);
	found = mapping_at(window.mappings, window.mapping_count, (uint32_t)getpid(), (uintptr_t)mapped);
	assert_true(!found || found->name[0] == '\0');
	/* Nor is anything read for faults that are a small part of the request, unless they slept. */
	window.record.request = (struct tailor_request){.begin_ns = 1000 * MS, .end_ns = 1010 * MS};
	events[0].event.arg[1] = MS / 4;
	tailor_mappings_for(&mappings, &window, 5000 * MS);
	assert_int_equal(window.mapping_count, 0);
	events[0].event.arg[1] = MS / 2;
	tailor_mappings_for(&mappings, &window, 6000 * MS);
	assert_true(window.mapping_count > 0);
	events[0].event = (struct tailor_event){.kind = TAILOR_EVENT_PAGE_FAULT, .pid = (uint32_t)getpid()};
	tailor_mappings_for(&mappings, &window, 7000 * MS);
	assert_true(window.mapping_count > 0);
	/* A window without faults costs nothing, and has none. */
	events[0].event.kind = TAILOR_EVENT_SWITCH_IN;
	tailor_mappings_for(&mappings, &window, 9000 * MS);
	assert_int_equal(window.mapping_count, 0);
	munmap(plain, 8192);
	close(fd);
	unlink(file);
	rmdir(path);
	tailor_mappings_free(&mappings);
}

static void a_process_that_has_ended_is_no_error_of_the_others(void **state)
{
	struct tailor_mappings mappings = {0};
	uint32_t own = (uint32_t)getpid();
	size_t count;

	(void)state;
	assert_int_equal(tailor_mappings_read(&mappings, own, 1000 * MS), 0);
	count = mappings.count;
	assert_true(count > 5);
	for (uint32_t i = 0; i < TAILOR_MAPPINGS_PROCESSES - 1; i++)
		assert_int_equal(tailor_mappings_read(&mappings, (1u << 30) + i, 2000 * MS), -ESRCH);
	assert_int_equal(mappings.count, count);
	/* One more than are remembered. */
	assert_int_equal(tailor_mappings_read(&mappings, (1u << 30) + 100, 3000 * MS), -ESRCH);
	assert_int_equal(mappings.count, 0);
	tailor_mappings_free(&mappings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fault_in_a_mapped_file_finds_its_name_and_one_in_plain_memory_none),
		cmocka_unit_test(a_process_that_has_ended_is_no_error_of_the_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
