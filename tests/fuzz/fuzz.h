/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the fuzz targets share. A target is one file with LLVMFuzzerTestOneInput(): libFuzzer feeds it in the preset
 * `fuzz` (./run fuzz), replay.c feeds it the corpus in the ordinary tests. It returns 0, or dies by require().
 */
#ifndef TAILOR_TESTS_FUZZ_H
#define TAILOR_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* assert() in every build: what a target proves. */
#define require(condition)                                                                                             \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                        \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

/*
 * Cuts a length into parts that look random and are the same for the same seed: mostly small ones, at least 1. Seed 0
 * cuts into single bytes, UINT32_MAX does not cut.
 */
static inline size_t fuzz_part(uint32_t *seed, size_t left)
{
	size_t part;

	if (*seed == UINT32_MAX || left == 0)
		return left;
	if (*seed == 0)
		return 1;
	*seed = *seed * 1664525u + 1013904223u;
	part = 1 + (*seed >> 16) % (*seed >> 31 ? 7 : 61);
	return part < left ? part : left;
}

/* A seed for fuzz_part() that depends on the input (FNV-1a): other than 0 and UINT32_MAX. */
static inline uint32_t fuzz_seed(const uint8_t *data, size_t size)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ data[i]) * 16777619u;
	return hash % (UINT32_MAX - 1) + 1;
}

/* Makes the bytes a file for functions that take a path; the same file each time, so that nothing is left behind. */
static inline const char *fuzz_file(const void *data, size_t size)
{
	static char path[32];
	static int fd = -1;

	if (fd < 0) {
		fd = memfd_create("fuzz", MFD_CLOEXEC);
		require(fd >= 0);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	require(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
	return path;
}

/* One line for a person: not empty, without a control character that could end it or move the terminal's cursor. */
static inline void fuzz_require_line(const char *text)
{
	require(text[0]);
	for (; *text; text++)
		require((uint8_t)*text >= 0x20 && *text != 0x7f);
}

#endif /* TAILOR_TESTS_FUZZ_H */
