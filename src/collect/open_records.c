/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/open_records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct open_place {
	uint64_t id; /* 0: free */
	uint32_t record;
};

int open_records_init(struct open_records *open, size_t max)
{
	size_t places = 64;

	while (places < 2 * max)
		places *= 2;
	*open = (struct open_records){.mask = places - 1, .max = max};
	open->records = calloc(max, sizeof(*open->records));
	open->begin_ns = calloc(max, sizeof(*open->begin_ns));
	open->free = calloc(max, sizeof(*open->free));
	open->table = calloc(places, sizeof(*open->table));
	return open->records && open->begin_ns && open->free && open->table ? 0 : -ENOMEM;
}

void open_records_free(struct open_records *open)
{
	free(open->records);
	free(open->begin_ns);
	free(open->free);
	free(open->table);
}

static size_t home_of(const struct open_records *open, uint64_t id)
{
	return (size_t)((id * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & open->mask;
}

/* The place that has the id, or the free one where it belongs. */
static size_t place_of(const struct open_records *open, uint64_t id)
{
	size_t i = home_of(open, id);

	while (open->table[i].id != 0 && open->table[i].id != id)
		i = (i + 1) & open->mask;
	return i;
}

struct tailor_record *open_records_find(const struct open_records *open, uint64_t id)
{
	const struct open_place *place = &open->table[place_of(open, id)];

	return place->id ? &open->records[place->record] : NULL;
}

/* Frees a place and moves later ones of the same run back, so that no lookup stops early at the hole. */
static void empty_place(struct open_records *open, size_t hole)
{
	size_t i = hole;

	for (;;) {
		i = (i + 1) & open->mask;
		if (open->table[i].id == 0)
			break;
		if (((i - home_of(open, open->table[i].id)) & open->mask) < ((i - hole) & open->mask))
			continue;
		open->table[hole] = open->table[i];
		hole = i;
	}
	open->table[hole].id = 0;
}

void open_records_remove(struct open_records *open, const struct tailor_record *record)
{
	uint32_t number = (uint32_t)(record - open->records);

	empty_place(open, place_of(open, record->request.id));
	open->begin_ns[number] = 0;
	open->free[open->free_count++] = number;
}

static void forget_oldest(struct open_records *open)
{
	size_t oldest = 0;

	for (size_t i = 1; i < open->max; i++) {
		if (open->begin_ns[i] < open->begin_ns[oldest])
			oldest = i;
	}
	open_records_remove(open, &open->records[oldest]);
}

struct tailor_record *open_records_add(struct open_records *open, uint64_t id, uint64_t begin_ns)
{
	struct tailor_record *record = open_records_find(open, id);
	uint32_t number;

	if (record)
		open_records_remove(open, record);
	else if (open->free_count == 0 && open->touched == open->max)
		forget_oldest(open);
	number = open->free_count ? open->free[--open->free_count] : (uint32_t)open->touched++;
	open->table[place_of(open, id)] = (struct open_place){.id = id, .record = number};
	open->begin_ns[number] = begin_ns ? begin_ns : 1;
	record = &open->records[number];
	memset(record, 0, sizeof(*record));
	record->request.id = id;
	record->request.begin_ns = begin_ns;
	return record;
}

uint64_t open_records_oldest(const struct open_records *open, uint64_t after_ns)
{
	uint64_t oldest_ns = UINT64_MAX;

	for (size_t i = 0; i < open->touched; i++) {
		if (open->begin_ns[i] > after_ns && open->begin_ns[i] < oldest_ns)
			oldest_ns = open->begin_ns[i];
	}
	return oldest_ns;
}
