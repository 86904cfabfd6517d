/* SPDX-License-Identifier: Apache-2.0 */
/* Inside src/store only: protobuf messages to and from the bytes of a record, whatever the message says. */
#ifndef TAILOR_STORE_MESSAGE_H
#define TAILOR_STORE_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "timeline.pb-c.h"

/* What decoding one record may allocate in all. A message of two-byte spans would otherwise take a hundred times its
 * size. */
#define DECODE_BYTES_MAX (96u << 20)

/* 100 days. No request takes as long; and what is printed of one has its columns. */
#define LATENCY_NS_MAX (UINT64_C(100) * 86400 * 1000000000)

/* Returns 0 with the whole record in *ret_record (to be freed) and *ret_bytes, -ENOMEM or -EFBIG. */
int message_pack(const Tailor__Pb__Timeline *message, uint8_t **ret_record, size_t *ret_bytes);

/* NULL: the bytes are no message, or one that would take more than DECODE_BYTES_MAX. Freed by the caller, with the second. */
Tailor__Pb__Timeline *message_unpack(const uint8_t *bytes, size_t length);
void message_free(Tailor__Pb__Timeline *message);

/* A field of text, which points to `text`; and one copied to `to`, cut to its size and filled up with zeros. */
ProtobufCBinaryData message_text(const char *text, size_t size);
void message_copy_text(char *to, size_t size, const ProtobufCBinaryData *from);

#endif /* TAILOR_STORE_MESSAGE_H */
