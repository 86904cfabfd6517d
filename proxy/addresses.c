/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/addresses.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/trace.h"

struct entry {
	uint8_t ip[16];
	uint32_t count; /* 0: free */
};

/* Open addressing with linear probing, at most half full. */
struct addresses {
	pthread_mutex_t lock;
	uint64_t seed; /* nobody outside can choose addresses that fall on one another */
	uint32_t per_address;
	uint32_t mask;
	struct entry entry[];
};

int addresses_open(unsigned int connections, unsigned int per_address, struct addresses **ret_addresses)
{
	struct addresses *addresses;
	uint32_t entries = 64;

	while (entries < 2 * connections)
		entries *= 2;
	addresses = calloc(1, sizeof(*addresses) + entries * sizeof(struct entry));
	if (!addresses)
		return -ENOMEM;
	pthread_mutex_init(&addresses->lock, NULL);
	addresses->seed = trace_random() | 1;
	addresses->per_address = per_address;
	addresses->mask = entries - 1;
	*ret_addresses = addresses;
	return 0;
}

void addresses_close(struct addresses *addresses)
{
	if (!addresses)
		return;
	pthread_mutex_destroy(&addresses->lock);
	free(addresses);
}

static uint32_t home_of(const struct addresses *addresses, const uint8_t ip[16])
{
	uint64_t high, low;

	memcpy(&high, ip, sizeof(high));
	memcpy(&low, ip + sizeof(high), sizeof(low));
	high = (high ^ addresses->seed) * UINT64_C(0xbf58476d1ce4e5b9);
	low = (low ^ high ^ high >> 29) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)(low >> 32) & addresses->mask;
}

/* The entry of that address, or the free one where it belongs. */
static uint32_t find(const struct addresses *addresses, const uint8_t ip[16])
{
	uint32_t i = home_of(addresses, ip);

	while (addresses->entry[i].count && memcmp(addresses->entry[i].ip, ip, sizeof(addresses->entry[i].ip)) != 0)
		i = (i + 1) & addresses->mask;
	return i;
}

/* Moves later entries of the same run back, so that no search stops early at the hole. */
static void close_hole(struct addresses *addresses, uint32_t hole)
{
	for (uint32_t i = (hole + 1) & addresses->mask; addresses->entry[i].count; i = (i + 1) & addresses->mask) {
		uint32_t home = home_of(addresses, addresses->entry[i].ip);

		if (((i - home) & addresses->mask) < ((i - hole) & addresses->mask))
			continue;
		addresses->entry[hole] = addresses->entry[i];
		addresses->entry[i].count = 0;
		hole = i;
	}
}

bool addresses_enter(struct addresses *addresses, const uint8_t ip[16])
{
	struct entry *entry;
	bool may;

	pthread_mutex_lock(&addresses->lock);
	entry = &addresses->entry[find(addresses, ip)];
	may = entry->count < addresses->per_address;
	if (may && entry->count++ == 0)
		memcpy(entry->ip, ip, sizeof(entry->ip));
	pthread_mutex_unlock(&addresses->lock);
	return may;
}

void addresses_leave(struct addresses *addresses, const uint8_t ip[16])
{
	uint32_t i;

	pthread_mutex_lock(&addresses->lock);
	i = find(addresses, ip);
	assert(addresses->entry[i].count > 0);
	if (--addresses->entry[i].count == 0)
		close_hole(addresses, i);
	pthread_mutex_unlock(&addresses->lock);
}
