/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration file. Proves: any bytes give a verdict, the same each time, with no memory lost; a refusal has a
 * complaint, every complaint is one line that a terminal can show and names a line that the file has; and what is
 * accepted keeps to the bounds that the rest of the program builds on.
 */
#include <sys/un.h>

#include "fuzz.h"
#include "config/config.h"
#include "http1/http1.h"

struct complaints {
	unsigned int count;
	uint32_t hash;
	unsigned int lines; /* of the file */
};

static void take_complaint(void *context, unsigned int line, const char *text)
{
	struct complaints *complaints = context;

	fuzz_require_line(text);
	/* libcyaml's word where it gives no reason. */
	require(strlen(text) < 10 || strcmp(text + strlen(text) - 10, "Backtrace:") != 0);
	require(line <= complaints->lines);
	complaints->count++;
	complaints->hash = complaints->hash * 31 + line + fuzz_seed((const uint8_t *)text, strlen(text));
}

static void check_accepted(const struct tailor_config *config)
{
	require(config->servers >= 1 && config->servers <= TAILOR_CONFIG_SERVERS_MAX);
	for (size_t i = 0; i < config->servers; i++) {
		require(config->server[i].name[0] && memchr(config->server[i].name, '\0', TAILOR_CONFIG_NAME_BYTES));
		require(config->server[i].address.length > 0 && tailor_address_port(&config->server[i].address) > 0);
	}
	require(config->listen.length > 0 && config->listen.storage.ss_family != AF_UNIX);
	require(config->workers >= 1 && config->workers <= TAILOR_CONFIG_WORKERS_MAX);
	require(config->slow_threshold_ns > 0 && config->connections_max > 0);
	require(config->connect_timeout_ns > 0 && config->response_timeout_ns > 0 && config->idle_timeout_ns > 0);
	require(config->head_timeout_ns > 0 && config->body_timeout_ns > 0 && config->keep_alive_timeout_ns > 0);
	require(config->queue_timeout_ns > 0 && (config->queue_max == 0 || config->in_flight_max > 0));
	require(config->mode <= TAILOR_CONFIG_BALANCED && config->replay_when <= TAILOR_CONFIG_REPLAY_NEVER);
	require(config->failover_on < 1u << TAILOR_STOP_KINDS && config->routes <= TAILOR_CONFIG_ROUTES_MAX);
	for (size_t i = 0; i < config->routes; i++) {
		require(config->route[i].methods && memchr(config->route[i].path, '\0', TAILOR_CONFIG_ROUTE_BYTES));
		require(!config->route[i].path[0] || config->route[i].path[0] == '/');
	}
	require(config->replay_part >= 0 && config->replay_part <= 1);
	require(config->fields_max >= 1 && config->fields_max <= HTTP1_FIELDS_MAX);
	require(config->replay_bytes <= config->replay_bytes_total);
	require(memchr(config->via, '\0', sizeof(config->via)) && config->upgrades <= TAILOR_CONFIG_UPGRADES_MAX);
	for (size_t i = 0; i < config->upgrades; i++)
		require(config->upgrade[i][0] && memchr(config->upgrade[i], '\0', TAILOR_CONFIG_UPGRADE_BYTES));
	require(config->timelines_path[0] && memchr(config->timelines_path, '\0', TAILOR_CONFIG_PATH_BYTES));
	require(config->timelines_bytes_max >= 1 << 20);
	require(!config->has_admin || tailor_address_is_local(&config->admin));
	require(!config->has_agent || (config->agent_socket[0] &&
	                               strlen(config->agent_socket) < sizeof(((struct sockaddr_un *)0)->sun_path)));
	require(config->head_bytes_max >= 1024 && config->head_bytes_max <= 64 << 10);
	require(config->trace <= TAILOR_CONFIG_TRACE_REQUIRED);
	require(config->events_per_cpu > 0 && (config->events_per_cpu & (config->events_per_cpu - 1)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *path = fuzz_file(data, size);
	struct complaints first = {.lines = 2}, second;
	static struct tailor_config config;
	int error;

	/* YAML's line ends, counted generously: CR, LF, and NEL, LS, PS by their last bytes. */
	for (size_t i = 0; i < size; i++)
		first.lines +=
		        data[i] == '\n' || data[i] == '\r' || data[i] == 0x85 || data[i] == 0xa8 || data[i] == 0xa9;
	second = first;
	error = tailor_config_load(path, &config, take_complaint, &first);
	require(error <= 0 && (error == 0) == (first.count == 0));
	if (error == 0)
		check_accepted(&config);
	require(tailor_config_load(path, &config, take_complaint, &second) == error);
	require(second.count == first.count && second.hash == first.hash);
	return 0;
}
