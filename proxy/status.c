/* SPDX-License-Identifier: Apache-2.0 */
/* Sums the workers' counters, which they alone write. */
#include "proxy/status.h"

#include <string.h>

static uint64_t load(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static void add_server(struct tailor_proxy_server_status *status, const struct counters *counters, unsigned int server)
{
	uint64_t pauses = load(&counters->server[server].pauses);

	status->requests += load(&counters->server[server].requests);
	status->responses += load(&counters->server[server].responses);
	status->connects += load(&counters->server[server].connects);
	status->connect_failures += load(&counters->server[server].connect_failures);
	status->last_resorts += load(&counters->server[server].last_resorts);
	status->moved_away += load(&counters->server[server].moved_away);
	status->moved_here += load(&counters->server[server].moved_here);
	status->in_flight += (uint32_t)load(&counters->server[server].in_flight);
	status->connections += (uint32_t)load(&counters->server[server].connections);
	status->pauses_met += load(&counters->server[server].pauses_met);
	status->requests_met += load(&counters->server[server].requests_met);
	status->pauses_predicted += load(&counters->server[server].predicted);
	status->pauses_missed += load(&counters->server[server].missed);
	status->drains += load(&counters->server[server].drains);
	status->false_drains += load(&counters->server[server].false_drains);
	status->wishes += load(&counters->server[server].wishes);
	status->wishes_granted += load(&counters->server[server].granted);
	status->warning_ns_total += load(&counters->server[server].warning_ns_total);
	for (unsigned int i = 0; i <= TAILOR_WARNING_BUCKETS; i++)
		status->warning[i] += load(&counters->server[server].warning[i]);
	/* Each worker sees every pause: the one that is furthest knows how many there were. */
	if (pauses > status->pauses)
		status->pauses = pauses;
	for (unsigned int i = 0; i < TAILOR_STOP_KINDS; i++) {
		uint64_t stops = load(&counters->server[server].stops[i]);

		if (stops > status->stops[i])
			status->stops[i] = stops;
	}
	if (load(&counters->server[server].service_ns))
		status->service_ns = load(&counters->server[server].service_ns);
	if (load(&counters->server[server].stop))
		status->stop = (uint8_t)load(&counters->server[server].stop);
	status->agent |= load(&counters->server[server].agent) != 0;
	status->paused |= load(&counters->server[server].paused) != 0;
}

void status_add(struct tailor_proxy_status *status, const struct worker *worker)
{
	const struct counters *counters = &worker->counters;

	status->requests += load(&counters->requests);
	status->refused += load(&counters->refused);
	status->client_gone += load(&counters->client_gone);
	status->cut += load(&counters->cut);
	status->failed_over += load(&counters->failed_over);
	for (unsigned int i = 0; i < TAILOR_REACTIONS; i++) {
		for (unsigned int j = 0; j <= TAILOR_REACTION_BUCKETS; j++)
			status->reaction[i].count[j] += load(&counters->reaction[i].count[j]);
		status->reaction[i].ns_total += load(&counters->reaction[i].ns_total);
	}
	status->urgent += (uint32_t)load(&counters->urgent);
	status->switches += load(&counters->switches);
	status->switch_backs += load(&counters->switch_backs);
	status->stopped += load(&counters->stopped);
	status->stale_completions += load(&counters->stale_completions);
	status->tunnels += load(&counters->tunnels);
	status->tunnels_idle += load(&counters->tunnels_idle);
	status->tunnels_open += (uint32_t)load(&counters->tunnels_open);
	status->tunnel_bytes_to_server += load(&counters->tunnel_bytes_to_server);
	status->tunnel_bytes_to_client += load(&counters->tunnel_bytes_to_client);
	for (unsigned int i = 1; i < TAILOR_REFUSALS; i++)
		status->refused_by[i] += load(&counters->refused_by[i]);
	for (unsigned int i = 0; i < TAILOR_NOT_MOVED_REASONS; i++)
		status->not_moved[i] += load(&counters->not_moved[i]);
	for (unsigned int i = 0; i < status->servers; i++) {
		add_server(&status->server[i], counters, i);
		status->server[i].down = __atomic_load_n(&worker->shared->server[i].down_until_ns, __ATOMIC_RELAXED) != 0;
	}
}
