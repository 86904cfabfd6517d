/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/proxy_status_predict.h"

#include <stddef.h>

#include "base/clock.h"
#include "cli/metric.h"

#define COUNTER(field) offsetof(struct tailor_proxy_server_status, field)

/* One table for both, so that they agree. */
static const struct {
	const char *key, *metric, *help;
	size_t offset;
} counters[] = {
	{"pauses_predicted", "server_pauses_predicted_total", "Collections that began while the server was drained for them.",
	 COUNTER(pauses_predicted)},
	{"pauses_missed", "server_pauses_missed_total", "Collections that began while it was not, with failover.predict on.",
	 COUNTER(pauses_missed)},
	{"pauses_met", "server_pauses_met_total", "Collections that requests in flight met.", COUNTER(pauses_met)},
	{"requests_met", "server_requests_met_pause_total", "Requests in flight at the server when a collection of its began.",
	 COUNTER(requests_met)},
	{"drains", "server_drains_total", "Times that the server got no new requests, as a collection of its was near.", COUNTER(drains)},
	{"false_drains", "server_false_drains_total", "Of them, those that ended without a collection.", COUNTER(false_drains)},
	{"wishes", "server_collections_wished_total", "Collections that the JVM of a drained server was asked for.", COUNTER(wishes)},
	{"wishes_granted", "server_collections_granted_total", "Of them, those that it brought about.", COUNTER(wishes_granted)},
};

static uint64_t value(const struct tailor_proxy_server_status *status, size_t offset)
{
	return *(const uint64_t *)(const void *)((const char *)status + offset);
}

/* How long before the collection drains began; buckets that are empty are left out. le_ms null: longer than all limits. */
static json_t *warnings_json(const struct tailor_proxy_server_status *status)
{
	json_t *buckets = json_array();
	uint64_t count = 0;

	for (size_t i = 0; i <= TAILOR_WARNING_BUCKETS; i++) {
		count += status->warning[i];
		if (status->warning[i])
			json_array_append_new(buckets, json_pack("{s:o, s:I}", "le_ms",
			                                         i < TAILOR_WARNING_BUCKETS
			                                                 ? json_real((double)tailor_warning_bucket_ns[i] / TAILOR_NS_PER_MS)
			                                                 : json_null(),
			                                         "count", (json_int_t)status->warning[i]));
	}
	return json_pack("{s:I, s:o, s:o}", "count", (json_int_t)count, "mean_ms",
	                 count ? json_real((double)status->warning_ns_total / (double)count / TAILOR_NS_PER_MS) : json_null(), "buckets",
	                 buckets);
}

void status_predict_server_json(json_t *server, const struct tailor_proxy_server_status *status)
{
	json_t *prediction = json_object();

	for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++)
		json_object_set_new(prediction, counters[i].key, json_integer((json_int_t)value(status, counters[i].offset)));
	json_object_set_new(prediction, "warnings", warnings_json(status));
	json_object_set_new(prediction, "drained", json_boolean(status->drained));
	json_object_set_new(server, "prediction", prediction);
}

void status_predict_metrics(FILE *out, const struct proxy_run *run, const struct tailor_proxy_status *proxy)
{
	for (size_t c = 0; c < sizeof(counters) / sizeof(*counters); c++) {
		metric(out, counters[c].metric, "counter", counters[c].help);
		for (size_t i = 0; i < run->config.servers; i++)
			fprintf(out, "tailor_%s{server=\"%s\"} %llu\n", counters[c].metric, run->config.server[i].name,
			        (unsigned long long)value(&proxy->server[i], counters[c].offset));
	}
	metric(out, "server_drained", "gauge", "1 while the server gets no new requests, as a collection of its is near.");
	for (size_t i = 0; i < run->config.servers; i++)
		fprintf(out, "tailor_server_drained{server=\"%s\"} %d\n", run->config.server[i].name, proxy->server[i].drained);
	metric(out, "server_drain_warning_seconds", "histogram", "How long before its collection a server was drained.");
	for (size_t i = 0; i < run->config.servers; i++)
		metric_histogram(out, "server_drain_warning_seconds", "server", run->config.server[i].name, tailor_warning_bucket_ns,
		                 proxy->server[i].warning, TAILOR_WARNING_BUCKETS, proxy->server[i].warning_ns_total);
}
