/* SPDX-License-Identifier: Apache-2.0 */
#include "store/crc32c.h"

/* Four bits at a time: a table of 16 entries, checked by eye and in the tests, is fast enough for a file reader. */
static const uint32_t nibble[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
        0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t crc32c(uint32_t crc, const void *bytes, size_t length)
{
	const uint8_t *byte = bytes;

	crc = ~crc;
	while (length-- > 0) {
		crc ^= *byte++;
		crc = (crc >> 4) ^ nibble[crc & 15];
		crc = (crc >> 4) ^ nibble[crc & 15];
	}
	return ~crc;
}
