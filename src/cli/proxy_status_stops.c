/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/proxy_status_stops.h"

#include <tailor/stop_names.h>

#include "base/clock.h"
#include "cli/metric.h"

static const char *kind_name(int kind)
{
	return tailor_stop_kind_name((enum tailor_stop_kind)kind);
}

void status_stops_server_json(json_t *server, const struct tailor_proxy_server_status *status)
{
	json_t *stops = json_object();

	for (int kind = TAILOR_STOP_NONE + 1; kind < TAILOR_STOP_KINDS; kind++)
		json_object_set_new(stops, kind_name(kind), json_integer((json_int_t)status->stops[kind]));
	json_object_set_new(server, "stops", stops);
	json_object_set_new(server, "stands_still", status->stop == TAILOR_STOP_NONE ? json_null() : json_string(kind_name(status->stop)));
	json_object_set_new(server, "service_ms",
	                    status->service_ns ? json_real((double)status->service_ns / TAILOR_NS_PER_MS) : json_null());
}

/* The replays by how long it took to send them; buckets that are empty are left out. le_us null: longer than all limits. */
static json_t *reactions_json(const struct tailor_reaction_times *times)
{
	json_t *buckets = json_array();
	uint64_t count = 0;

	for (size_t i = 0; i <= TAILOR_REACTION_BUCKETS; i++) {
		count += times->count[i];
		if (times->count[i])
			json_array_append_new(buckets, json_pack("{s:o, s:I}", "le_us",
			                                         i < TAILOR_REACTION_BUCKETS
			                                                 ? json_real((double)tailor_reaction_bucket_ns[i] / TAILOR_NS_PER_US)
			                                                 : json_null(),
			                                         "count", (json_int_t)times->count[i]));
	}
	return json_pack("{s:I, s:o, s:o}", "count", (json_int_t)count, "mean_us",
	                 count ? json_real((double)times->ns_total / (double)count / TAILOR_NS_PER_US) : json_null(), "buckets",
	                 buckets);
}

void status_stops_json(json_t *object, const struct tailor_proxy_status *proxy, const struct tailor_observer_status *observer)
{
	json_object_set_new(object, "reactions", reactions_json(&proxy->reaction[TAILOR_REACTION_STOP]));
	json_object_set_new(object, "reactions_to_returns", reactions_json(&proxy->reaction[TAILOR_REACTION_RETURN]));
	json_object_set_new(object, "workers_urgent", json_integer((json_int_t)proxy->urgent));
	json_object_set_new(object, "switches", json_integer((json_int_t)proxy->switches));
	json_object_set_new(object, "switch_backs", json_integer((json_int_t)proxy->switch_backs));
	json_object_set_new(object, "failovers",
	                    json_pack("{s:I, s:I, s:I}", "stored", (json_int_t)observer->failovers, "not_stored",
	                              (json_int_t)observer->failovers_not_stored, "over_budget",
	                              (json_int_t)observer->failovers_over_budget));
}

static void counter(FILE *out, const char *name, const char *help, uint64_t value)
{
	metric(out, name, "counter", help);
	fprintf(out, "tailor_%s %llu\n", name, (unsigned long long)value);
}

static void reaction_metrics(FILE *out, const struct tailor_proxy_status *proxy)
{
	metric(out, "reaction_seconds", "histogram",
	       "To a moved request's bytes being the kernel's: from the word that its server stands still, or from when that was judged to last too "
	       "long (to=stop); or, where all stood still, from when another one went on (to=return).");
	for (int i = 0; i < TAILOR_REACTIONS; i++)
		metric_histogram(out, "reaction_seconds", "to", tailor_reaction_name((enum tailor_reaction)i), tailor_reaction_bucket_ns,
		                 proxy->reaction[i].count, TAILOR_REACTION_BUCKETS, proxy->reaction[i].ns_total);
}

static void server_metrics(FILE *out, const struct proxy_run *run, const struct tailor_proxy_status *proxy)
{
	metric(out, "server_stops_total", "counter", "Times that the server stood still, as far as the proxy saw, by what it was.");
	for (size_t i = 0; i < run->config.servers; i++) {
		for (int kind = TAILOR_STOP_NONE + 1; kind < TAILOR_STOP_KINDS; kind++)
			fprintf(out, "tailor_server_stops_total{server=\"%s\",kind=\"%s\"} %llu\n", run->config.server[i].name, kind_name(kind),
			        (unsigned long long)proxy->server[i].stops[kind]);
	}
	metric(out, "server_stopped", "gauge", "1 while the server stands still.");
	for (size_t i = 0; i < run->config.servers; i++)
		fprintf(out, "tailor_server_stopped{server=\"%s\"} %d\n", run->config.server[i].name, proxy->server[i].stop != TAILOR_STOP_NONE);
	metric(out, "server_service_seconds", "gauge", "What half of the server's answers lately took at most; 0: not known.");
	for (size_t i = 0; i < run->config.servers; i++)
		fprintf(out, "tailor_server_service_seconds{server=\"%s\"} %.9f\n", run->config.server[i].name,
		        (double)proxy->server[i].service_ns / TAILOR_NS_PER_S);
}

void status_stops_metrics(FILE *out, const struct proxy_run *run, const struct tailor_proxy_status *proxy,
                          const struct tailor_observer_status *observer)
{
	reaction_metrics(out, proxy);
	metric(out, "workers_urgent", "gauge", "Workers that get a CPU at once when they wake up, as they use little of one.");
	fprintf(out, "tailor_workers_urgent %u\n", proxy->urgent);
	counter(out, "switches_total", "Times that another server became the active one because that one stood still.", proxy->switches);
	counter(out, "switch_backs_total", "Of them, to the one that had been it shortly before.", proxy->switch_backs);
	counter(out, "failovers_stored_total", "Stops of servers with requests in flight there that were written beside the timelines.",
	        observer->failovers);
	counter(out, "failovers_not_stored_total", "Those that could not be written.", observer->failovers_not_stored);
	counter(out, "failovers_over_budget_total", "Those that were only counted, as there were too many.", observer->failovers_over_budget);
	server_metrics(out, run, proxy);
}
