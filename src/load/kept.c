/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the load was the one that was asked for, and who is to blame if not. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "load/load.h"

#define DURATION_BYTES 32

/* What was not sent in time, and how many of these the generator itself had taken up too late. */
struct lateness {
	uint64_t asked;
	uint64_t unconnected; /* never sent, as there was no connection; not of the missed ones */
	uint64_t missed;
	uint64_t own;
};

static uint64_t later_than_allowed(const struct tailor_histogram *histogram)
{
	return tailor_histogram_count(histogram) - tailor_histogram_between(histogram, 0, TAILOR_LOAD_LATE_NS + 1);
}

static struct lateness measure(const struct tailor_load_result *total)
{
	struct lateness lateness = {0};
	uint64_t in_time = tailor_histogram_between(total->sent, 0, TAILOR_LOAD_LATE_NS + 1);

	/* Whoever stops a load does not ask for the rest of it. */
	if (total->wanted > total->failed[TAILOR_LOAD_INTERRUPTED])
		lateness.asked = total->wanted - total->failed[TAILOR_LOAD_INTERRUPTED];
	if (lateness.asked > in_time)
		lateness.missed = lateness.asked - in_time;
	lateness.unconnected = total->failed[TAILOR_LOAD_NO_CONNECTION];
	lateness.missed -= lateness.unconnected < lateness.missed ? lateness.unconnected : lateness.missed;
	lateness.own = later_than_allowed(total->late);
	return lateness;
}

/* Whether the machine stood still long enough to explain most of what the generator itself was late with. */
static int stalls_explain(const struct tailor_load_result *total, const struct lateness *lateness)
{
	double due_meanwhile;

	if (!total->stalls.known || total->elapsed_ns == 0)
		return 0;
	due_meanwhile = (double)total->wanted * (double)total->stalls.total_ns / (double)total->elapsed_ns;
	return due_meanwhile * 2 >= (double)lateness->own;
}

static void blame_generator(char *buffer, size_t size, const struct tailor_load_options *options,
                            const struct tailor_load_result *total, const struct lateness *lateness)
{
	char longest[DURATION_BYTES], slack[DURATION_BYTES];

	if (options->slack_ns >= TAILOR_LOAD_LATE_NS)
		snprintf(buffer, size, "sends were grouped within %s; allow less slack",
		         tailor_format_duration(slack, sizeof(slack), options->slack_ns));
	else if (stalls_explain(total, lateness))
		snprintf(buffer, size,
		         "this machine stood still %" PRIu64 " time%s, for up to %s; repeat it, or use a machine that is not shared",
		         total->stalls.episodes, total->stalls.episodes == 1 ? "" : "s",
		         tailor_format_duration(longest, sizeof(longest), total->stalls.longest_ns));
	else if (total->cpu_share > TAILOR_LOAD_CPU_SHARE_HIGH)
		snprintf(buffer, size,
		         "the generator's busiest thread used %.0f%% of a CPU; use more --threads or a lower --rate",
		         100 * total->cpu_share);
	else
		snprintf(buffer, size,
		         "the generator did not get a CPU in time, though it needed only %.0f%% of one; "
		         "give it one of its own (taskset), or stop what else runs here",
		         100 * total->cpu_share);
}

const char *tailor_load_own_remedy(int connect_error)
{
	switch (connect_error) {
	case EADDRNOTAVAIL: return "it has no free port left; ask for fewer --connections, or widen net.ipv4.ip_local_port_range";
	case EMFILE: return "ask for fewer --connections, or raise `ulimit -n`";
	case ENFILE: return "ask for fewer --connections, or raise fs.file-max";
	case ENOMEM:
	case ENOBUFS: return "ask for fewer --connections, or use a machine with more memory";
	default: return NULL;
	}
}

void tailor_load_say_unconnected(char *buffer, size_t size, const struct tailor_load_options *options,
                                 const struct tailor_load_result *total)
{
	const char *cause = total->connect_error ? strerror(total->connect_error) : "it is not known why";
	char address[TAILOR_ADDRESS_TEXT_BYTES], what[128];

	tailor_address_format(address, &options->address);
	if (tailor_load_own_remedy(total->connect_error))
		snprintf(what, sizeof(what), "this machine could not make a connection (%s)", cause);
	else if (total->connect_error == ECONNREFUSED)
		snprintf(what, sizeof(what), "%s refused connections", address);
	else
		snprintf(what, sizeof(what), "%s could not be connected to (%s)", address, cause);
	snprintf(buffer, size, "%s: %" PRIu64 " of %" PRIu64 " requests failed so", what,
	         total->failed[TAILOR_LOAD_NO_CONNECTION], total->wanted);
}

static void blame_server(char *buffer, size_t size, const struct tailor_load_options *options,
                         const struct tailor_load_result *total)
{
	double rate = total->elapsed_ns ? (double)total->wanted / ((double)total->elapsed_ns / 1e9) : 0;
	double needed = ceil(rate * tailor_histogram_mean(total->service) / 1e9 * 1.5);

	if (needed > options->connections)
		snprintf(buffer, size,
		         "the server left no connection free, of %u; raise --connections to %.0f or more, or lower --rate",
		         options->connections, needed);
	else
		snprintf(buffer, size,
		         "the server stood still at times and left no connection free, of %u; "
		         "raise --connections, or lower --rate",
		         options->connections);
}

/* A hundredth is not too much. */
static int is_too_much(const struct lateness *lateness, uint64_t missed)
{
	return (double)missed > 0.01 * (double)lateness->asked;
}

static void blame_connecting(char *buffer, size_t size, const struct tailor_load_options *options,
                             const struct tailor_load_result *total)
{
	const char *own = tailor_load_own_remedy(total->connect_error);
	char failed[256];

	tailor_load_say_unconnected(failed, sizeof(failed), options, total);
	snprintf(buffer, size, "%s; %s", failed, own ? own : "is a server up there, and is its backlog large enough?");
}

static void blame_late(char *buffer, size_t size, const struct tailor_load_options *options,
                       const struct tailor_load_result *total, const struct lateness *lateness)
{
	char what[160], whose[256], allowed[DURATION_BYTES];

	if (total->dropped > 0)
		snprintf(what, sizeof(what), "%" PRIu64 " of %" PRIu64 " requests were dropped", total->dropped,
		         total->wanted);
	else
		snprintf(what, sizeof(what), "%.1f%% of the requests were sent more than %s late, or not at all",
		         100 * (double)lateness->missed / (double)lateness->asked,
		         tailor_format_duration(allowed, sizeof(allowed), TAILOR_LOAD_LATE_NS));
	if (lateness->own * 2 >= lateness->missed)
		blame_generator(whose, sizeof(whose), options, total, lateness);
	else
		blame_server(whose, sizeof(whose), options, total);
	snprintf(buffer, size, "%s: %s", what, whose);
}

int tailor_load_schedule_kept(const struct tailor_load_options *options, const struct tailor_load_result *total,
                              char reason[TAILOR_LOAD_ERROR_BYTES])
{
	struct lateness lateness = measure(total);
	char unconnected[384] = "", missed[448] = "";

	reason[0] = '\0';
	/* In a closed loop there is no schedule but the answers. */
	if (options->arrival == TAILOR_LOAD_CLOSED) {
		lateness.unconnected = 0;
		lateness.missed = total->dropped;
	}
	if (total->dropped == 0 && !is_too_much(&lateness, lateness.missed + lateness.unconnected))
		return 1;
	/* Who refuses connections is to blame before whoever was late with the rest. */
	if (lateness.unconnected > 0)
		blame_connecting(unconnected, sizeof(unconnected), options, total);
	if (lateness.unconnected == 0 || total->dropped > 0 || is_too_much(&lateness, lateness.missed))
		blame_late(missed, sizeof(missed), options, total, &lateness);
	snprintf(reason, TAILOR_LOAD_ERROR_BYTES, "the schedule was not kept: %s%s%s", unconnected,
	         unconnected[0] && missed[0] ? "; besides, " : "", missed);
	return 0;
}
