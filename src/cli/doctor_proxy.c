/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/config_file.h"
#include "cli/doctor.h"
#include "cli/status_ask.h"
#include "collect/hold.h"

static json_int_t number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

/* What helps against the commonest loss: a channel that is overwritten before it is read. */
static void remedy(const json_t *loss, const struct tailor_config *config, char *text, size_t size)
{
	const char *kind = json_string_value(json_object_get(loss, "kind"));

	if (number(loss, tailor_lost_name(TAILOR_LOST_THINNED)) > number(loss, tailor_lost_name(TAILOR_LOST_OVERWRITTEN)))
		snprintf(text, size, "requests last so long that not all of it can be kept");
	else if (kind && strcmp(kind, "kernel") == 0)
		snprintf(text, size, "raise trace.events_per_cpu, which is %zu", config->events_per_cpu);
	else if (kind && strcmp(kind, "jvm") == 0)
		snprintf(text, size, "give its agent more room: -agentpath:...,slots=N");
	else
		snprintf(text, size, "the observer had too little CPU to follow");
}

static void add_loss(struct findings *findings, const json_t *loss, const struct tailor_config *config)
{
	const char *channel = json_string_value(json_object_get(loss, "channel"));
	char what[48], reasons[128] = "", help[96];

	for (int why = 0; why < TAILOR_LOST_REASONS; why++) {
		const char *name = tailor_lost_name((enum tailor_lost)why);
		size_t used = strlen(reasons);

		if (number(loss, name) > 0)
			snprintf(reasons + used, sizeof(reasons) - used, "%s%lld %s", used ? ", " : "", (long long)number(loss, name), name);
	}
	remedy(loss, config, help, sizeof(help));
	snprintf(what, sizeof(what), "events of %.32s", channel ? channel : "?");
	doctor_add(findings, STANDING_MISSING_OPTIONAL, what, "%s since it was started; %s", reasons, help);
}

static void look_at_servers(struct findings *findings, const json_t *status)
{
	const char *active = json_string_value(json_object_get(status, "active"));
	const json_t *servers = json_object_get(status, "servers"), *server;
	size_t i;

	json_array_foreach(servers, i, server)
	{
		const char *name = json_string_value(json_object_get(server, "name"));
		const char *state = json_string_value(json_object_get(server, "state"));
		const char *address = json_string_value(json_object_get(server, "address"));
		char what[48];

		if (!name || !state || strcmp(state, "down") != 0)
			continue;
		snprintf(what, sizeof(what), "server %.32s", name);
		doctor_add(findings, STANDING_MISSING, what,
		           "%s took no connection the last time%s: start it again; requests are for the others while there are any",
		           address ? address : "it", active && strcmp(active, name) == 0 ? ", though it is the active one" : "");
	}
}

/* Slow requests that have no timeline. */
static void look_at_timelines(struct findings *findings, const json_t *timelines)
{
	static const struct {
		const char *key, *text;
	} counters[] = {
		{"over_budget", "slow requests were only counted, as explaining takes 2% of a CPU at most: raise slow.threshold"},
		{"not_stored", "slow requests' timelines could not be written: see timelines.path, and what the proxy says of it"},
		{"unjudged", "requests may have been slow, as the proxy was held up when they came; there was no time to find out"},
	};

	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		if (number(timelines, counters[i].key) > 0)
			doctor_add(findings, STANDING_MISSING_OPTIONAL, "timelines", "%lld %s", (long long)number(timelines, counters[i].key),
			           counters[i].text);
	}
}

int doctor_look_at_proxy(struct findings *findings, const char *config_path)
{
	char address[TAILOR_ADDRESS_TEXT_BYTES];
	struct tailor_config config;
	json_t *status = NULL, *losses, *loss;
	size_t i;
	int error = cli_config_load(config_path, &config);

	if (error)
		return error;
	if (!config.has_admin) {
		doctor_add(findings, STANDING_INFORMATION, "proxy", "%s has no admin.listen: a proxy that runs with it cannot be asked", config_path);
		return 0;
	}
	tailor_address_format(address, &config.admin);
	error = status_ask(&config.admin, &status);
	if (error) {
		doctor_add(findings, STANDING_INFORMATION, "proxy", "none answers at %s: %s", address, strerror(-error));
		return 0;
	}
	doctor_add(findings, STANDING_GOOD, "proxy", "it runs, and answers at %s", address);
	look_at_servers(findings, status);
	losses = json_object_get(status, "losses");
	json_array_foreach(losses, i, loss)
		add_loss(findings, loss, &config);
	if (json_is_array(losses) && i == 0)
		doctor_add(findings, STANDING_GOOD, "events", "none was lost that a timeline needed");
	look_at_timelines(findings, json_object_get(status, "timelines"));
	json_decref(status);
	return 0;
}
