/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/load_timelines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tailor/store.h>
#include <tailor/timeline_names.h>
#include <time.h>

#include "base/clock.h"
#include "base/units.h"

#define LOOK_AGAIN_NS (50 * TAILOR_NS_PER_MS)
#define DURATION_BYTES 32

/* What is still looked for; the index is that of the slowest requests. */
struct wanted {
	uint64_t id[TAILOR_LOAD_SLOWEST];
	int missing[TAILOR_LOAD_SLOWEST];
	size_t left;
};

/* Ids as `tailor dump --request` takes them; whoever else sets that header is not us. */
static void take_ids(struct wanted *wanted, const struct tailor_load_result *total)
{
	for (size_t i = 0; i < total->slow_count; i++) {
		const char *text = total->slowest[i].request_id;

		if (strlen(text) != 16 || strspn(text, "0123456789abcdefABCDEF") != 16)
			continue;
		wanted->id[i] = strtoull(text, NULL, 16);
		wanted->missing[i] = 1;
		wanted->left++;
	}
}

static void take_cause(struct wanted *wanted, const struct tailor_timeline *timeline, struct tailor_load_causes *causes)
{
	char part[DURATION_BYTES], whole[DURATION_BYTES];

	for (size_t i = 0; i < TAILOR_LOAD_SLOWEST; i++) {
		if (!wanted->missing[i] || wanted->id[i] != timeline->request.id)
			continue;
		snprintf(causes->text[i], sizeof(causes->text[i]), "%s, %s of %s",
		         tailor_cause_name(timeline->dominant),
		         tailor_format_duration(part, sizeof(part), timeline->dominant_ns),
		         tailor_format_duration(whole, sizeof(whole),
		                                timeline->request.end_ns - timeline->request.begin_ns));
		wanted->missing[i] = 0;
		wanted->left--;
	}
}

/* Reads what there is, once more with a reader that was at the end already. Returns 0 or a negative errno. */
static int look(struct tailor_store_reader *reader, struct wanted *wanted, struct tailor_load_causes *causes)
{
	struct tailor_timeline timeline;
	int got = 0;

	while (wanted->left > 0 && (got = tailor_store_next(reader, &timeline)) == 1) {
		take_cause(wanted, &timeline, causes);
		tailor_timeline_free(&timeline);
	}
	return got < 0 ? got : 0;
}

static int fail_to_open(const char *path, int ret, char error[TAILOR_LOAD_ERROR_BYTES])
{
	if (ret == -ENOENT)
		snprintf(error, TAILOR_LOAD_ERROR_BYTES,
		         "%.200s does not exist; give the store of timelines that `tailor proxy` writes "
		         "(`timelines.path` in tailor.yaml)",
		         path);
	else if (ret == -EINVAL)
		snprintf(error, TAILOR_LOAD_ERROR_BYTES,
		         "%.200s is not a store of timelines; give the directory that `tailor proxy` writes", path);
	else
		snprintf(error, TAILOR_LOAD_ERROR_BYTES,
		         "cannot open the timelines in %.200s: %s; run as the user that runs `tailor proxy`", path,
		         strerror(-ret));
	return ret;
}

int tailor_load_timelines_find(const char *path, const struct tailor_load_result *total,
                               struct tailor_load_causes *ret_causes, size_t *ret_found,
                               char error[TAILOR_LOAD_ERROR_BYTES])
{
	uint64_t until_ns = tailor_clock_ns() + TAILOR_LOAD_TIMELINES_WAIT_MS * TAILOR_NS_PER_MS;
	const struct timespec pause = {.tv_nsec = LOOK_AGAIN_NS};
	struct tailor_store_reader *reader;
	struct wanted wanted = {0};
	size_t all;
	int ret;

	memset(ret_causes, 0, sizeof(*ret_causes));
	*ret_found = 0;
	ret = tailor_store_reader_open(path, &reader);
	if (ret < 0)
		return fail_to_open(path, ret, error);
	take_ids(&wanted, total);
	all = wanted.left;
	while ((ret = look(reader, &wanted, ret_causes)) == 0 && wanted.left > 0 && tailor_clock_ns() < until_ns)
		nanosleep(&pause, NULL);
	tailor_store_reader_close(reader);
	*ret_found = all - wanted.left;
	if (ret < 0)
		snprintf(error, TAILOR_LOAD_ERROR_BYTES,
		         "cannot read the timelines in %.200s: %s; look at them with `tailor dump`", path,
		         strerror(-ret));
	return ret;
}
