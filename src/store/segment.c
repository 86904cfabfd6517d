/* SPDX-License-Identifier: Apache-2.0 */
#include "store/segment.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NUMBER_DIGITS 20

uint64_t segment_number(const char *name)
{
	unsigned long long number;

	for (int i = 0; i < NUMBER_DIGITS; i++) {
		if (!isdigit((unsigned char)name[i]))
			return 0;
	}
	if (strcmp(name + NUMBER_DIGITS, ".tailor") != 0)
		return 0;
	errno = 0;
	number = strtoull(name, NULL, 10);
	return errno || number == UINT64_MAX ? 0 : number;
}

void segment_name(char name[SEGMENT_NAME_BYTES], uint64_t number)
{
	snprintf(name, SEGMENT_NAME_BYTES, "%020" PRIu64 ".tailor", number);
}

static int by_number(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

int segment_list(int directory, uint64_t **ret_numbers, size_t *ret_foreign, int *ret_locked)
{
	uint64_t *numbers = NULL;
	size_t count = 0, capacity = 0;
	struct dirent *entry;
	int fd, error = 0;
	DIR *stream;

	*ret_numbers = NULL;
	*ret_foreign = 0;
	*ret_locked = 0;
	/* A descriptor of its own: the position of the directory is shared by duplicates. */
	fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	stream = fdopendir(fd);
	if (!stream) {
		error = -errno;
		close(fd);
		return error;
	}
	while (errno = 0, (entry = readdir(stream)) != NULL) {
		uint64_t number = segment_number(entry->d_name);

		if (number == 0) {
			if (strcmp(entry->d_name, STORE_LOCK_NAME) == 0)
				*ret_locked = 1;
			else if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
				++*ret_foreign;
			continue;
		}
		if (count == capacity) {
			uint64_t *more = reallocarray(numbers, capacity ? capacity * 2 : 16, sizeof(*more));

			if (!more) {
				error = -ENOMEM;
				break;
			}
			numbers = more;
			capacity = capacity ? capacity * 2 : 16;
		}
		numbers[count++] = number;
	}
	if (!error && errno)
		error = -errno;
	closedir(stream);
	if (error || count > INT32_MAX) {
		free(numbers);
		return error ? error : -E2BIG;
	}
	if (count > 0)
		qsort(numbers, count, sizeof(*numbers), by_number);
	*ret_numbers = numbers;
	return (int)count;
}
