/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The libjvm.so of a traced process, which is anybody's file. Proves: any file ends in one verdict, soon, and each place that is found is
 * a `nop` of that file, of one of the four kinds; the same file gives the same places.
 *
 * The input: the file. Where it is shorter than the places that it names, the rest of it is `nop`s.
 */
#include <errno.h>
#include <tailor/event.h>

#include "fuzz.h"
#include "collect/kernel_usdt.h"

#define NOP 0x90
#define FILE_BYTES (1u << 20)
#define CODE_BYTES (1u << 14)

static int file_of(const uint8_t *data, size_t size)
{
	static uint8_t rest[CODE_BYTES];
	static int fd = -1;

	if (fd < 0) {
		fd = memfd_create("libjvm.so", MFD_CLOEXEC);
		memset(rest, NOP, sizeof(rest));
	}
	require(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
	if (size < CODE_BYTES)
		require(pwrite(fd, rest, CODE_BYTES - size, (off_t)size) == (ssize_t)(CODE_BYTES - size));
	return fd;
}

static void check_place(int fd, const struct tailor_usdt *place)
{
	uint8_t kind = (uint8_t)place->cookie, instruction;

	require(kind == TAILOR_EVENT_SAFEPOINT_BEGIN || kind == TAILOR_EVENT_SAFEPOINT_END || kind == TAILOR_EVENT_VM_OPERATION_BEGIN ||
	        kind == TAILOR_EVENT_VM_OPERATION_END);
	require(place->offset <= INT64_MAX && pread(fd, &instruction, 1, (off_t)place->offset) == 1 && instruction == NOP);
	/* Only operations have arguments. */
	require((place->cookie >> 8) == 0 || kind == TAILOR_EVENT_VM_OPERATION_BEGIN || kind == TAILOR_EVENT_VM_OPERATION_END);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tailor_usdt places[TAILOR_USDT_MAX] = {0}, again[TAILOR_USDT_MAX] = {0};
	unsigned int kinds = 0;
	int fd, count;

	if (size > FILE_BYTES)
		return 0;
	fd = file_of(data, size);
	count = tailor_usdt_find(fd, places);
	require(count == -ENOENT || count == -ENOEXEC || (count >= 4 && count <= TAILOR_USDT_MAX));
	for (int i = 0; i < count; i++) {
		check_place(fd, &places[i]);
		for (int j = 0; j < i; j++)
			kinds += (uint8_t)places[j].cookie == (uint8_t)places[i].cookie;
	}
	require(tailor_usdt_find(fd, again) == count);
	require(count < 0 || memcmp(places, again, (size_t)count * sizeof(places[0])) == 0);
	/* Each kind is there: what is twice is not more than what is left. */
	require(count < 0 || count - 4 <= (int)kinds);
	return 0;
}
