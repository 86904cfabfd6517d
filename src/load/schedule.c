/* SPDX-License-Identifier: Apache-2.0 */
#include "load/schedule.h"

#include <math.h>

#define FAR_NS 0x1p62 /* 146 years */

/* splitmix64's finalizer: neighbours come out unrelated. */
static uint64_t mix(uint64_t value)
{
	value += UINT64_C(0x9e3779b97f4a7c15);
	value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
	return value ^ value >> 31;
}

/* In (0, 1]. */
static double fraction(uint64_t random)
{
	return (double)((random >> 11) + 1) * 0x1p-53;
}

/* A log's line of another century, replayed slowly, is never due, but nothing is added up beyond 64 bits. */
static uint64_t after(uint64_t start_ns, double offset_ns)
{
	return start_ns + (offset_ns < FAR_NS ? (uint64_t)offset_ns : (uint64_t)FAR_NS);
}

static bool has_rate(const struct tailor_load_options *options)
{
	return options->arrival == TAILOR_LOAD_UNIFORM || options->arrival == TAILOR_LOAD_POISSON;
}

void load_schedule_begin(struct load_schedule *schedule, const struct tailor_load_options *options, unsigned int index,
                         uint64_t start_ns)
{
	bool forever = options->duration_ns == TAILOR_LOAD_FOREVER;
	double warm_ns = (double)options->warm_ns;

	*schedule = (struct load_schedule){
	        .options = options, .index = index, .start_ns = start_ns, .end_ns = LOAD_NEVER, .count = UINT64_MAX};
	/* Whole requests: how many are due does not hang on how a product is rounded. */
	if (has_rate(options))
		warm_ns = (double)llround(warm_ns / 1e9 * options->rate) * 1e9 / options->rate;
	schedule->measure_ns = after(start_ns, warm_ns);
	if (options->arrival == TAILOR_LOAD_UNIFORM && !forever)
		schedule->count = (uint64_t)llround((double)options->warm_ns / 1e9 * options->rate) +
		                  (uint64_t)llround((double)options->duration_ns / 1e9 * options->rate);
	else if (!forever)
		schedule->end_ns = schedule->measure_ns + options->duration_ns;
	if (options->arrival == TAILOR_LOAD_RECORDED)
		schedule->count = options->plan->recorded_count;
}

uint64_t load_schedule_number(const struct load_schedule *schedule, uint64_t number)
{
	return number * schedule->options->threads + schedule->index;
}

/* Threads split a Poisson process into independent ones of a part of the rate. */
static void next_poisson(const struct load_schedule *schedule, struct load_cursor *cursor)
{
	const struct tailor_load_options *options = schedule->options;

	cursor->random = mix(cursor->random);
	cursor->offset_ns -= log(fraction(cursor->random)) * 1e9 * options->threads / options->rate;
	cursor->due_ns = after(schedule->start_ns, cursor->offset_ns);
}

static void set_due(const struct load_schedule *schedule, struct load_cursor *cursor)
{
	const struct tailor_load_options *options = schedule->options;
	uint64_t number = load_schedule_number(schedule, cursor->number);

	if (number >= schedule->count) {
		cursor->due_ns = LOAD_NEVER;
		return;
	}
	if (options->arrival == TAILOR_LOAD_POISSON)
		next_poisson(schedule, cursor);
	else if (options->arrival == TAILOR_LOAD_RECORDED)
		cursor->due_ns = after(schedule->start_ns,
		                       (double)options->plan->recorded[number].offset_ns / options->speed);
	else
		cursor->due_ns = after(schedule->start_ns, (double)number * 1e9 / options->rate);
	if (cursor->due_ns >= schedule->end_ns)
		cursor->due_ns = LOAD_NEVER;
}

void load_cursor_begin(const struct load_schedule *schedule, struct load_cursor *cursor)
{
	*cursor = (struct load_cursor){.random = mix(mix(schedule->options->seed) + schedule->index)};
	set_due(schedule, cursor);
}

void load_cursor_next(const struct load_schedule *schedule, struct load_cursor *cursor)
{
	if (cursor->due_ns == LOAD_NEVER)
		return;
	cursor->number++;
	set_due(schedule, cursor);
}

size_t load_schedule_request(const struct load_schedule *schedule, uint64_t number)
{
	const struct tailor_load_options *options = schedule->options;
	uint64_t all = load_schedule_number(schedule, number);

	if (options->arrival == TAILOR_LOAD_RECORDED)
		return options->plan->recorded[all].request;
	if (options->plan->count == 1)
		return 0;
	if (!options->in_order)
		all = mix(all + options->seed * UINT64_C(0x9e3779b97f4a7c15));
	return (size_t)(all % options->plan->count);
}

bool load_schedule_compares(const struct load_schedule *schedule, uint64_t number)
{
	const struct tailor_load_options *options = schedule->options;

	if (options->same_body <= 0)
		return false;
	return fraction(mix(~load_schedule_number(schedule, number) ^ mix(options->seed))) <= options->same_body;
}
