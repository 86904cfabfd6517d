/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (Castagnoli; RFC 3720, appendix B.4): reflected polynomial 0x82f63b78. Not the CRC-32 of zlib. */
#ifndef TAILOR_STORE_CRC32C_H
#define TAILOR_STORE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues a checksum over more bytes; start with 0. crc32c(0, "123456789", 9) is 0xe3069283. Any thread. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t length);

#endif /* TAILOR_STORE_CRC32C_H */
