/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/input.h"

#include <assert.h>
#include <string.h>

#include "proxy/worker.h"

void input_open(struct input *input, struct pool *pool)
{
	*input = (struct input){.pool = pool, .buffer = INPUT_NONE, .first = INPUT_NONE, .last = INPUT_NONE};
}

static void give_back(struct worker *worker, struct input *input)
{
	if (input->buffer != INPUT_NONE) {
		tailor_ring_buffer_return(worker->ring, input->buffer);
		worker->lent_count--;
	} else {
		pool_give(input->pool, input->data);
	}
	input->data = NULL;
	input->buffer = INPUT_NONE;
	input->start = input->body = input->end = input->size = 0;
}

static void take_own(struct input *input)
{
	input->data = pool_take(input->pool);
	input->size = (uint32_t)input->pool->block_bytes;
	input->start = input->body = input->end = INPUT_HEADROOM;
}

/* Out of the ring's buffer. */
static void move_to_own(struct worker *worker, struct input *input)
{
	struct input old = *input;

	assert(!input->held && input->buffer != INPUT_NONE);
	take_own(input);
	input->buffer = INPUT_NONE;
	input->end += input_length(&old);
	input->body += old.body - old.start;
	memcpy(input->data + input->start, old.data + old.start, input_length(&old));
	tailor_ring_buffer_return(worker->ring, old.buffer);
	worker->lent_count--;
}

static void move_to_front(struct input *input)
{
	uint32_t by = input->start - INPUT_HEADROOM;

	assert(!input->held);
	if (input->start <= INPUT_HEADROOM)
		return;
	memmove(input->data + INPUT_HEADROOM, input->data + input->start, input_length(input));
	input->start -= by;
	input->body -= by;
	input->end -= by;
}

static uint32_t make_room(struct worker *worker, struct input *input, uint32_t wanted)
{
	if (!input->held && input->size - input->end < wanted)
		move_to_front(input);
	if (!input->held && input->size - input->end < wanted && input->buffer != INPUT_NONE)
		move_to_own(worker, input);
	return input->size - input->end;
}

/* Takes the first waiting buffer off the list. */
static uint16_t unqueue(struct worker *worker, struct input *input)
{
	uint16_t buffer = input->first;

	input->first = worker->lent[buffer].next;
	if (input->first == INPUT_NONE)
		input->last = INPUT_NONE;
	return buffer;
}

/* Read where it is, since nothing stands before it. */
static void borrow(struct worker *worker, struct input *input)
{
	const struct input_lent *lent = &worker->lent[input->first];

	if (input->data)
		give_back(worker, input);
	input->buffer = unqueue(worker, input);
	input->data = (char *)tailor_ring_buffer(worker->ring, input->buffer) - INPUT_HEADROOM;
	input->size = INPUT_BUFFER_BYTES;
	input->start = input->body = INPUT_HEADROOM + lent->start;
	input->end = INPUT_HEADROOM + lent->end;
}

bool input_gather(struct worker *worker, struct input *input)
{
	uint32_t before = input_length(input);

	while (input_waits(input)) {
		struct input_lent *lent = &worker->lent[input->first];
		uint32_t bytes = lent->end - lent->start, room;

		if (input_length(input) == 0 && !input->held) {
			borrow(worker, input);
			continue;
		}
		room = make_room(worker, input, bytes);
		if (room == 0)
			break;
		if (bytes > room)
			bytes = room;
		memcpy(input->data + input->end,
		       (char *)tailor_ring_buffer(worker->ring, input->first) + lent->start, bytes);
		input->end += bytes;
		lent->start += bytes;
		if (lent->start == lent->end) {
			tailor_ring_buffer_return(worker->ring, unqueue(worker, input));
			worker->lent_count--;
		}
	}
	return input_length(input) > before;
}

void input_lend(struct worker *worker, struct input *input, uint16_t buffer, uint32_t bytes)
{
	worker->lent[buffer] = (struct input_lent){.end = bytes, .next = INPUT_NONE};
	worker->lent_count++;
	if (input->last == INPUT_NONE)
		input->first = buffer;
	else
		worker->lent[input->last].next = buffer;
	input->last = buffer;
	(void)input_gather(worker, input);
}

uint32_t input_room(struct worker *worker, struct input *input)
{
	assert(!input_waits(input) && !input->filling);
	if (!input->data)
		take_own(input);
	else if (!input->held && input->buffer != INPUT_NONE)
		move_to_own(worker, input);
	else if (!input->held)
		move_to_front(input);
	return input->size - input->end;
}

void input_rest(struct worker *worker, struct input *input)
{
	if (!input->data || input->held || input->filling)
		return;
	if (input_length(input) == 0)
		give_back(worker, input);
	else if (input->buffer != INPUT_NONE)
		move_to_own(worker, input);
}

static void forget_waiting(struct worker *worker, struct input *input)
{
	while (input_waits(input)) {
		tailor_ring_buffer_return(worker->ring, unqueue(worker, input));
		worker->lent_count--;
	}
}

void input_cut(struct worker *worker, struct input *input)
{
	assert(!input->filling);
	input->end = input->body;
	forget_waiting(worker, input);
}

void input_clear(struct worker *worker, struct input *input)
{
	assert(!input->held);
	if (input->filling)
		input->start = input->body = input->end;
	else if (input->data)
		give_back(worker, input);
	forget_waiting(worker, input);
}
