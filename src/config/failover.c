/* SPDX-License-Identifier: Apache-2.0 */
#include "config/failover.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "config/value.h"
#include "http1/http1.h"

static const struct {
	const char *name;
	enum http1_method method;
} methods[] = {
	{"GET", HTTP1_GET}, {"HEAD", HTTP1_HEAD},     {"POST", HTTP1_POST},
	{"PUT", HTTP1_PUT}, {"DELETE", HTTP1_DELETE}, {"OPTIONS", HTTP1_OPTIONS},
};

/* The bit of a method, 0 for what is none of those that can be named. */
static uint32_t method_bit(const char *text, size_t length)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (strlen(methods[i].name) == length && memcmp(methods[i].name, text, length) == 0)
			return 1u << methods[i].method;
	}
	return 0;
}

/* What is wrong with a pattern of a path; NULL: nothing. */
static const char *judge_path(const char *path)
{
	const char *twice = strstr(path, "**");

	if (strlen(path) >= TAILOR_CONFIG_ROUTE_BYTES)
		return "is longer than 127 bytes";
	if (path[0] != '/')
		return "does not begin with /";
	if (strpbrk(path, "?#"))
		return "has a ? or #; a route is a path, with whatever query";
	if (strchr(path, '\\'))
		return "has a \\, which no route matches";
	for (const char *at = path; *at; at++) {
		if (*at <= ' ' || *at > '~')
			return "has characters that no path has";
	}
	if (twice && twice[2])
		return "has ** before its end; a * there stands for anything but /";
	return NULL;
}

/* The route with that path, a new one if there is none yet; NULL when there are as many as there can be. */
static struct tailor_config_route *route_of(struct tailor_config *config, const char *path)
{
	struct tailor_config_route *route = config->route;

	while (route < config->route + config->routes && strcmp(route->path, path) != 0)
		route++;
	if (route == config->route + TAILOR_CONFIG_ROUTES_MAX)
		return NULL;
	if (route == config->route + config->routes) {
		memset(route, 0, sizeof(*route));
		strcpy(route->path, path);
		config->routes++;
	}
	return route;
}

static void take_route(struct validation *validation, const char *place, const char *text, struct tailor_config *config)
{
	size_t length = strcspn(text, " ");
	const char *path = text + length + strspn(text + length, " ");
	uint32_t method = method_bit(text, length);
	struct tailor_config_route *route;
	const char *wrong;

	if (!method) {
		complain(validation, place, "failover.replay: \"%.*s\" is not one of: GET, HEAD, POST, PUT, DELETE, OPTIONS", (int)length, text);
		return;
	}
	wrong = *path ? judge_path(path) : NULL;
	if (wrong) {
		complain(validation, place, "failover.replay: the path \"%s\" %s; write it like /*/_search", path, wrong);
		return;
	}
	route = route_of(config, path);
	if (route)
		route->methods |= method;
	else
		complain(validation, place, "failover.replay: has more than %d different paths; let a * stand for what differs",
		         TAILOR_CONFIG_ROUTES_MAX);
}

static void take_routes(struct validation *validation, const struct file_failover *failover, struct tailor_config *config)
{
	char place[64];

	config->routes = 0;
	for (unsigned int i = 0; i < failover->replay_count; i++) {
		snprintf(place, sizeof(place), "failover.replay[%u]", i);
		take_route(validation, place, failover->replay[i], config);
	}
}

static void take_prediction(struct validation *validation, const struct file_failover *failover, struct tailor_config *config)
{
	if (failover->predict)
		config->predict = *failover->predict;
	if (failover->collect)
		config->collect = (enum tailor_config_collect)*failover->collect;
	/* None: they could not be read. */
	if (config->predict && config->servers == 1)
		complain(validation, "failover.predict", "failover.predict: there is no other server that requests could go to; name a second one, or leave it out");
	if (config->collect != TAILOR_CONFIG_COLLECT_OFF && !config->predict && !complained_about(validation, "failover.predict"))
		complain(validation, "failover.collect", "failover.collect: collections are brought about only with `predict: on`; add that, or leave it out");
}

void take_failover(struct validation *validation, const struct file_failover *failover, struct tailor_config *config)
{
	static const struct duration_bounds switch_after = {TAILOR_NS_PER_MS, 3600 * TAILOR_NS_PER_S, "1ms", "1h", true};

	if (failover->on)
		config->failover_on = *failover->on;
	if (config_lines_has(validation->lines, "failover.replay"))
		take_routes(validation, failover, config);
	if (failover->when)
		config->replay_when = (enum tailor_config_replay_when)*failover->when;
	if (failover->budget) {
		take_part(validation, "failover.budget.fraction", failover->budget->fraction, &config->replay_part);
		take_number(validation, "failover.budget.floor", failover->budget->floor, 0, 1000000, &config->replay_floor_per_s);
	}
	take_duration(validation, "failover.switch_after", failover->switch_after, &switch_after, &config->switch_min_ns);
	take_prediction(validation, failover, config);
}
