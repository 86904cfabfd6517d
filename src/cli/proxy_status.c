/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tailor/event_names.h>

#include "base/clock.h"
#include "cli/metric.h"
#include "cli/proxy_reload.h"
#include "cli/proxy_run.h"
#include "cli/proxy_status_predict.h"
#include "cli/proxy_status_stops.h"

/* Of a reload. */
#define REPORT_BYTES 4096

/* Everything that is counted, read once so that one answer is consistent. */
struct snapshot {
	struct tailor_proxy_status proxy;
	struct tailor_observer_status observer;
	struct {
		pid_t pid;
		uint64_t pauses;
		uint64_t pause_ns_total;
		uint64_t pause_ns_max;
	} server[TAILOR_CONFIG_SERVERS_MAX];
};

static void take_snapshot(struct proxy_run *run, struct snapshot *snapshot)
{
	memset(snapshot, 0, sizeof(*snapshot));
	tailor_proxy_status(run->proxy, &snapshot->proxy);
	tailor_observer_status(run->observer, &snapshot->observer);
	pthread_mutex_lock(&run->lock);
	for (size_t i = 0; i < run->config.servers; i++) {
		const struct tailor_jvm *jvm = run->server[i].jvm;

		snapshot->server[i].pid = run->server[i].pid;
		if (!jvm)
			continue;
		snapshot->server[i].pauses = __atomic_load_n(&jvm->page->pauses, __ATOMIC_RELAXED);
		snapshot->server[i].pause_ns_total = __atomic_load_n(&jvm->page->pause_ns_total, __ATOMIC_RELAXED);
		snapshot->server[i].pause_ns_max = __atomic_load_n(&jvm->page->pause_ns_max, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&run->lock);
}

static bool is_balanced(const struct snapshot *snapshot)
{
	return snapshot->proxy.mode == TAILOR_PROXY_BALANCED;
}

static double to_ms(uint64_t ns)
{
	return (double)ns / TAILOR_NS_PER_MS;
}

static const char *state_of(const struct tailor_proxy_server_status *status)
{
	return status->paused ? "paused" : status->down ? "down" : "running";
}

static json_t *servers_json(const struct proxy_run *run, const struct snapshot *snapshot)
{
	json_t *servers = json_array();

	for (size_t i = 0; i < run->config.servers; i++) {
		const struct tailor_proxy_server_status *status = &snapshot->proxy.server[i];
		char address[TAILOR_ADDRESS_TEXT_BYTES];
		json_t *server;

		server = json_pack("{s:s, s:s, s:s, s:b, s:i, s:I, s:I, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f}", "name",
		                   run->config.server[i].name, "address",
		                   tailor_address_format(address, &run->config.server[i].address), "state",
		                   state_of(status), "agent", status->agent, "pid",
		                   (int)snapshot->server[i].pid, "requests", (json_int_t)status->requests, "responses",
		                   (json_int_t)status->responses, "in_flight", (int)status->in_flight, "connections",
		                   (int)status->connections, "connects", (json_int_t)status->connects, "connect_failures",
		                   (json_int_t)status->connect_failures, "last_resorts", (json_int_t)status->last_resorts, "pauses_seen", (json_int_t)status->pauses,
		                   "moved_away", (json_int_t)status->moved_away, "moved_here",
		                   (json_int_t)status->moved_here, "pauses",
		                   (json_int_t)snapshot->server[i].pauses, "pause_ms_total",
		                   to_ms(snapshot->server[i].pause_ns_total), "pause_ms_max",
		                   to_ms(snapshot->server[i].pause_ns_max));
		status_stops_server_json(server, status);
		status_predict_server_json(server, status);
		json_array_append_new(servers, server);
	}
	return servers;
}

static json_t *missing_json(const struct proxy_run *run)
{
	json_t *missing = json_array();

	if (!run->kernel)
		json_array_append_new(missing, json_sprintf("kernel events: %s", run->kernel_error));
	if (run->config.servers < 2)
		json_array_append_new(missing, json_string("a backup server: configure a second one"));
	if (!run->hub)
		json_array_append_new(missing, json_string("JVM events: no agent.socket is configured"));
	return missing;
}

/* The channels that lost anything, and how: {"channel", "kind", "overwritten", ...}. */
static json_t *losses_json(const struct proxy_run *run)
{
	json_t *list = json_array();

	for (size_t i = 0; i < tailor_observer_channels(run->observer); i++) {
		struct tailor_observer_losses losses;
		json_t *object;
		uint64_t all = 0;

		tailor_observer_losses(run->observer, i, &losses);
		object = json_pack("{s:s, s:s}", "channel", losses.channel, "kind", losses.kind);
		for (int why = 0; why < TAILOR_LOST_REASONS; why++) {
			json_object_set_new(object, tailor_lost_name((enum tailor_lost)why), json_integer((json_int_t)losses.lost[why]));
			all += losses.lost[why];
		}
		if (all)
			json_array_append(list, object);
		json_decref(object);
	}
	return list;
}

static char *status_json(struct proxy_run *run)
{
	struct snapshot snapshot;
	json_t *not_moved = json_object(), *refused_by = json_object();
	json_t *status;
	char *text;

	take_snapshot(run, &snapshot);
	for (int i = 0; i < TAILOR_NOT_MOVED_REASONS; i++)
		json_object_set_new(not_moved, tailor_not_moved_name((enum tailor_not_moved)i),
		                    json_integer((json_int_t)snapshot.proxy.not_moved[i]));
	for (int i = 1; i < TAILOR_REFUSALS; i++)
		json_object_set_new(refused_by, tailor_refusal_name((enum tailor_refusal)i),
		                    json_integer((json_int_t)snapshot.proxy.refused_by[i]));
	status = json_pack("{s:s, s:f, s:s, s:b, s:I, s:I, s:o, s:I, s:I, s:i, s:i, s:i, s:I, s:o, s:o, s:{s:I, s:I, s:I, s:I, s:I, s:I, s:I}, s:I, s:o}", "version",
	                   TAILOR_VERSION, "uptime_s", (double)(tailor_clock_ns() - run->started_ns) / TAILOR_NS_PER_S, "active",
	                   run->config.server[snapshot.proxy.active].name, "failover", run->config.failover_on != 0, "requests",
	                   (json_int_t)snapshot.proxy.requests, "refused", (json_int_t)snapshot.proxy.refused, "refused_by", refused_by, "client_gone",
	                   (json_int_t)snapshot.proxy.client_gone, "cut", (json_int_t)snapshot.proxy.cut, "clients",
	                   (int)snapshot.proxy.clients, "queued", (int)snapshot.proxy.queued, "tunnels", (int)snapshot.proxy.tunnels_open, "failed_over", (json_int_t)snapshot.proxy.failed_over, "not_moved", not_moved,
	                   "servers", servers_json(run, &snapshot), "timelines", "slow", (json_int_t)snapshot.observer.slow, "stored",
	                   (json_int_t)snapshot.observer.stored, "baseline", (json_int_t)snapshot.observer.baseline, "not_stored",
	                   (json_int_t)snapshot.observer.not_stored, "over_budget", (json_int_t)snapshot.observer.over_budget,
	                   "windows_with_loss", (json_int_t)snapshot.observer.windows_with_loss, "request_events_lost",
	                   (json_int_t)snapshot.observer.request_events_lost, "access_log_lost",
	                   (json_int_t)snapshot.observer.access_log_lost, "missing", missing_json(run));
	if (!status)
		return NULL;
	json_object_set_new(json_object_get(status, "timelines"), "unjudged", json_integer((json_int_t)snapshot.observer.unjudged));
	json_object_set_new(status, "losses", losses_json(run));
	status_stops_json(status, &snapshot.proxy, &snapshot.observer);
	json_object_set_new(status, "mode", json_string(is_balanced(&snapshot) ? "balanced" : "active-backup"));
	if (is_balanced(&snapshot))
		json_object_set_new(status, "active", json_null());
	text = json_dumps(status, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	json_decref(status);
	return text;
}

static void server_metrics(FILE *out, const struct proxy_run *run, const struct snapshot *snapshot)
{
	static const struct {
		const char *name, *help;
		size_t offset;
	} counters[] = {
		{"server_requests_total", "Attempts sent to the server.", offsetof(struct tailor_proxy_server_status, requests)},
		{"server_responses_total", "Complete responses of the server.", offsetof(struct tailor_proxy_server_status, responses)},
		{"server_connect_failures_total", "Connections that could not be made.",
		 offsetof(struct tailor_proxy_server_status, connect_failures)},
		{"server_last_resorts_total", "Times that the server was asked although it counted as down, as no other could be.",
		 offsetof(struct tailor_proxy_server_status, last_resorts)},
		{"server_pauses_total", "Pauses of the server's JVM that the proxy saw begin.", offsetof(struct tailor_proxy_server_status, pauses)},
		{"server_moved_away_total", "Requests moved to another server when this one paused.",
		 offsetof(struct tailor_proxy_server_status, moved_away)},
		{"server_moved_here_total", "Requests that another server was asked for first, which then paused.",
		 offsetof(struct tailor_proxy_server_status, moved_here)},
	};

	for (size_t c = 0; c < sizeof(counters) / sizeof(counters[0]); c++) {
		metric(out, counters[c].name, "counter", counters[c].help);
		for (size_t i = 0; i < run->config.servers; i++)
			fprintf(out, "tailor_%s{server=\"%s\"} %llu\n", counters[c].name, run->config.server[i].name,
			        *(const unsigned long long *)(const void *)((const char *)&snapshot->proxy.server[i] + counters[c].offset));
	}
	metric(out, "server_in_flight", "gauge", "Requests at the server now.");
	for (size_t i = 0; i < run->config.servers; i++)
		fprintf(out, "tailor_server_in_flight{server=\"%s\"} %u\n", run->config.server[i].name, snapshot->proxy.server[i].in_flight);
	metric(out, "server_down", "gauge", "1 while no connection to the server could be made the last time.");
	for (size_t i = 0; i < run->config.servers; i++)
		fprintf(out, "tailor_server_down{server=\"%s\"} %d\n", run->config.server[i].name, snapshot->proxy.server[i].down);
	metric(out, "server_pause_seconds_total", "counter", "Time the server's JVM stood still for collections, as its agent says.");
	for (size_t i = 0; i < run->config.servers; i++)
		fprintf(out, "tailor_server_pause_seconds_total{server=\"%s\"} %.9f\n", run->config.server[i].name,
		        (double)snapshot->server[i].pause_ns_total / TAILOR_NS_PER_S);
	metric(out, "server_active", "gauge", "1 for the server that new requests go to; for each of a balanced group.");
	for (size_t i = 0; i < run->config.servers; i++)
		fprintf(out, "tailor_server_active{server=\"%s\"} %d\n", run->config.server[i].name,
		        is_balanced(snapshot) || i == snapshot->proxy.active);
}

static void latency_metrics(FILE *out, const struct proxy_run *run, const struct snapshot *snapshot)
{
	metric(out, "response_seconds", "histogram",
	       "How long clients waited for what the server answered, from a request's first byte to the response's last.");
	for (size_t i = 0; i < run->config.servers; i++) {
		const struct tailor_observer_latency *latency = &snapshot->observer.latency[i];

		metric_histogram(out, "response_seconds", "server", run->config.server[i].name, tailor_observer_bucket_ns, latency->bucket,
		                 TAILOR_OBSERVER_BUCKETS, latency->sum_ns);
	}
}

static void loss_metrics(FILE *out, const struct proxy_run *run)
{
	metric(out, "events_lost_total", "counter",
	       "Events that could not be read: all of the workers' channels, those that a timeline needed of the kernel's and the JVMs'.");
	for (size_t i = 0; i < tailor_observer_channels(run->observer); i++) {
		struct tailor_observer_losses losses;

		tailor_observer_losses(run->observer, i, &losses);
		for (int why = 0; why < TAILOR_LOST_REASONS; why++)
			fprintf(out, "tailor_events_lost_total{channel=\"%s\",kind=\"%s\",reason=\"%s\"} %llu\n", losses.channel, losses.kind,
			        tailor_lost_name((enum tailor_lost)why), (unsigned long long)losses.lost[why]);
	}
}

static char *metrics_text(struct proxy_run *run)
{
	struct snapshot snapshot;
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	if (!out)
		return NULL;
	take_snapshot(run, &snapshot);
	const struct {
		const char *name, *help;
		uint64_t value;
	} counters[] = {
		{"requests_total", "Requests that ended.", snapshot.proxy.requests},
		{"refused_total", "Requests that the proxy answered itself.", snapshot.proxy.refused},
		{"client_gone_total", "Requests whose client went away.", snapshot.proxy.client_gone},
		{"cut_total", "Responses that broke off, by a server or by timeouts.request.", snapshot.proxy.cut},
		{"tunnels_total", "Connections that have changed their protocol.", snapshot.proxy.tunnels},
		{"tunnels_idle_total", "Tunnels that ended because nothing moved.", snapshot.proxy.tunnels_idle},
		{"tunnel_to_server_bytes_total", "Bytes of tunnels, towards servers.", snapshot.proxy.tunnel_bytes_to_server},
		{"tunnel_to_client_bytes_total", "Bytes of tunnels, towards clients.", snapshot.proxy.tunnel_bytes_to_client},
		{"failed_over_total", "Requests sent to a second server because the first one's JVM paused.", snapshot.proxy.failed_over},
		{"slow_total", "Requests judged slow.", snapshot.observer.slow},
		{"timelines_stored_total", "Timelines of slow requests written.", snapshot.observer.stored},
		{"timelines_baseline_total", "Timelines of ordinary requests written, to compare with.", snapshot.observer.baseline},
		{"timelines_not_stored_total", "Timelines of slow requests that could not be written.", snapshot.observer.not_stored},
		{"timelines_over_budget_total", "Slow requests without a timeline, as the observer had spent its CPU time.",
		 snapshot.observer.over_budget},
		{"timelines_unjudged_total", "Requests that came while the proxy was held up, and may have been slow; there was no time to find out.",
		 snapshot.observer.unjudged},
		{"windows_with_loss_total", "Timelines that lack events.", snapshot.observer.windows_with_loss},
		{"request_events_lost_total", "Events of the request channels that were overwritten before they were read.",
		 snapshot.observer.request_events_lost},
		{"access_log_lost_total", "Lines of the access log that were not written for want of room.", snapshot.observer.access_log_lost},
	};
	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		metric(out, counters[i].name, "counter", counters[i].help);
		fprintf(out, "tailor_%s %llu\n", counters[i].name, (unsigned long long)counters[i].value);
	}
	metric(out, "not_moved_total", "counter", "Requests in flight at a pausing server that were not moved, by reason.");
	for (int i = 0; i < TAILOR_NOT_MOVED_REASONS; i++)
		fprintf(out, "tailor_not_moved_total{reason=\"%s\"} %llu\n", tailor_not_moved_name((enum tailor_not_moved)i),
		        (unsigned long long)snapshot.proxy.not_moved[i]);
	metric(out, "refused_by_total", "counter", "Requests and connections that the proxy answered itself, by reason.");
	for (int i = 1; i < TAILOR_REFUSALS; i++)
		fprintf(out, "tailor_refused_by_total{reason=\"%s\"} %llu\n", tailor_refusal_name((enum tailor_refusal)i),
		        (unsigned long long)snapshot.proxy.refused_by[i]);
	metric(out, "clients", "gauge", "Client connections now.");
	fprintf(out, "tailor_clients %u\n", snapshot.proxy.clients);
	metric(out, "tunnels_open", "gauge", "Connections that have changed their protocol now.");
	fprintf(out, "tailor_tunnels_open %u\n", snapshot.proxy.tunnels_open);
	metric(out, "queued", "gauge", "Requests that wait for a server that is at limits.in_flight now.");
	fprintf(out, "tailor_queued %u\n", snapshot.proxy.queued);
	server_metrics(out, run, &snapshot);
	status_stops_metrics(out, run, &snapshot.proxy, &snapshot.observer);
	status_predict_metrics(out, run, &snapshot.proxy);
	latency_metrics(out, run, &snapshot);
	loss_metrics(out, run);
	fclose(out);
	return text;
}

#define PLAIN "text/plain; charset=utf-8"

static void answer_status(struct proxy_run *run, struct tailor_admin_reply *reply)
{
	*reply = (struct tailor_admin_reply){.status = 200, .content_type = "application/json", .body = status_json(run)};
}

static void answer_metrics(struct proxy_run *run, struct tailor_admin_reply *reply)
{
	*reply = (struct tailor_admin_reply){
		.status = 200, .content_type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics_text(run)};
}

static void answer_swap(struct proxy_run *run, struct tailor_admin_reply *reply)
{
	int error = tailor_proxy_swap(run->proxy);

	*reply = (struct tailor_admin_reply){.status = error ? 409 : 200,
	                                     .content_type = PLAIN,
	                                     .body = strdup(error == -ENODEV ? "there is no other server to make active\n"
	                                                    : error     ? "all servers are active: mode is balanced\n"
	                                                                : "done\n")};
}

static void answer_reload(struct proxy_run *run, struct tailor_admin_reply *reply)
{
	char *report = malloc(REPORT_BYTES);
	int error = report ? proxy_reload(run, report, REPORT_BYTES) : -ENOMEM;

	*reply = (struct tailor_admin_reply){.status = error ? 409 : 200, .content_type = PLAIN, .body = report};
}

void proxy_status_answer(void *context, const char *method, const char *path, struct tailor_admin_reply *ret_reply)
{
	static const struct {
		const char *path, *method, *allow;
		void (*answer)(struct proxy_run *run, struct tailor_admin_reply *reply);
	} resources[] = {
		{"/status", "GET", "GET, HEAD", answer_status},
		{"/metrics", "GET", "GET, HEAD", answer_metrics},
		{"/swap", "POST", "POST", answer_swap},
		{"/reload", "POST", "POST", answer_reload},
	};
	const char *seen = strcmp(method, "HEAD") == 0 ? "GET" : method;

	*ret_reply = (struct tailor_admin_reply){.status = 404, .content_type = PLAIN};
	for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++) {
		if (strcmp(path, resources[i].path) != 0)
			continue;
		if (strcmp(seen, resources[i].method) == 0) {
			resources[i].answer(context, ret_reply);
			return;
		}
		ret_reply->status = 405;
		ret_reply->allow = resources[i].allow;
	}
	ret_reply->body = strdup("GET /status (JSON), GET /metrics (Prometheus text), POST /swap, POST /reload\n");
}

void proxy_status_refused(void *context, pid_t pid, uid_t uid)
{
	(void)context;
	proxy_say("refused pid %d (user %u) at the admin socket: it is neither root nor this proxy's user", (int)pid, (unsigned int)uid);
}
