/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/trace.h"

#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "proxy/proxy.h"

/* The finalizer of splitmix64: a bijection, so that distinct inputs stay distinct. */
static uint64_t mix(uint64_t value)
{
	value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
	return value ^ (value >> 31);
}

uint64_t trace_random(void)
{
	uint64_t value;

	/* Only ids depend on it: a clock will do where the system has no entropy yet. */
	if (getrandom(&value, sizeof(value), GRND_NONBLOCK) != sizeof(value))
		value = mix(tailor_clock_ns() ^ tailor_clock_wall_ns());
	return value;
}

void trace_open(struct trace_source *source, uint64_t base, unsigned int worker)
{
	source->base = base;
	source->counter = 0;
	source->worker = worker;
	source->random = trace_random();
}

uint64_t trace_next_id(struct trace_source *source)
{
	uint64_t id;

	do
		id = mix(source->base + source->counter++ * TAILOR_PROXY_WORKERS_MAX + source->worker);
	while (id == 0);
	return id;
}

void trace_write_hex(uint64_t value, char to[16])
{
	for (int i = 15; i >= 0; i--, value >>= 4)
		to[i] = "0123456789abcdef"[value & 15];
}

void trace_write_parent(struct trace_source *source, uint64_t id, char to[TRACE_PARENT_BYTES])
{
	uint64_t high = mix(source->random += UINT64_C(0x9e3779b97f4a7c15));
	uint64_t low = mix(source->random += UINT64_C(0x9e3779b97f4a7c15));

	memcpy(to, "00-", 3);
	trace_write_hex(high, to + 3);
	trace_write_hex(low | 1, to + 19); /* a trace id of zeros is invalid */
	to[35] = '-';
	trace_write_hex(id, to + 36);
	memcpy(to + 52, "-00", 3);
}

/* 1 when all are lower-case hex digits; *ret_zero says whether all are '0'. */
static bool is_hex(const char *text, size_t length, bool *ret_zero)
{
	*ret_zero = true;
	for (size_t i = 0; i < length; i++) {
		if (!(text[i] >= '0' && text[i] <= '9') && !(text[i] >= 'a' && text[i] <= 'f'))
			return false;
		if (text[i] != '0')
			*ret_zero = false;
	}
	return true;
}

bool trace_parent_valid(const char *value, size_t length)
{
	bool zero;

	if (length < TRACE_PARENT_BYTES || value[2] != '-' || value[35] != '-' || value[52] != '-')
		return false;
	if (!is_hex(value, 2, &zero) || memcmp(value, "ff", 2) == 0)
		return false;
	/* Version 00 ends here; later ones may go on after another dash. */
	if (length > TRACE_PARENT_BYTES && (zero || value[TRACE_PARENT_BYTES] != '-'))
		return false;
	if (!is_hex(value + 3, 32, &zero) || zero || !is_hex(value + 36, 16, &zero) || zero)
		return false;
	return is_hex(value + 53, 2, &zero);
}
