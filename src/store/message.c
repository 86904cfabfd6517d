/* SPDX-License-Identifier: Apache-2.0 */
#include "store/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/crc32c.h"
#include "store/segment.h"

int message_pack(const Tailor__Pb__Timeline *message, uint8_t **ret_record, size_t *ret_bytes)
{
	size_t length = tailor__pb__timeline__get_packed_size(message);
	uint8_t *record;

	if (length > RECORD_BYTES_MAX)
		return -EFBIG;
	record = malloc(RECORD_HEADER_BYTES + length);
	if (!record)
		return -ENOMEM;
	tailor__pb__timeline__pack(message, record + RECORD_HEADER_BYTES);
	store_u32(record, (uint32_t)length);
	store_u32(record + 4, crc32c(crc32c(0, record, 4), record + RECORD_HEADER_BYTES, length));
	*ret_record = record;
	*ret_bytes = RECORD_HEADER_BYTES + length;
	return 0;
}

struct budget {
	size_t left;
};

static void *budget_alloc(void *context, size_t size)
{
	struct budget *budget = context;

	if (size > budget->left)
		return NULL;
	budget->left -= size;
	return malloc(size);
}

static void budget_free(void *context, void *pointer)
{
	(void)context;
	free(pointer);
}

Tailor__Pb__Timeline *message_unpack(const uint8_t *bytes, size_t length)
{
	struct budget budget = {DECODE_BYTES_MAX};
	ProtobufCAllocator allocator = {budget_alloc, budget_free, &budget};

	return tailor__pb__timeline__unpack(&allocator, length, bytes);
}

void message_free(Tailor__Pb__Timeline *message)
{
	ProtobufCAllocator allocator = {budget_alloc, budget_free, NULL};

	tailor__pb__timeline__free_unpacked(message, &allocator);
}

ProtobufCBinaryData message_text(const char *text, size_t size)
{
	return (ProtobufCBinaryData){.len = strnlen(text, size), .data = (uint8_t *)(uintptr_t)text};
}

void message_copy_text(char *to, size_t size, const ProtobufCBinaryData *from)
{
	size_t length = from->len < size - 1 ? from->len : size - 1;

	if (length > 0)
		memcpy(to, from->data, length);
	memset(to + length, 0, size - length);
}
