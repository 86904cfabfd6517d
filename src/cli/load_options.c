/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/load_options.h"

#include <argp.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"

#define CONNECTIONS_MAX 100000
#define THREADS_MAX 64
#define RATE_MAX 1e6
#define SPEED_MAX 1000
#define REQUESTS_MAX 1e12
/* From this many requests a second on, a thread's next request is due before it could sleep and wake up: they go together. */
#define SLACK_RATE 20000
#define SLACK_NS (200 * TAILOR_NS_PER_US)
#define SLACK_MAX_NS (10 * TAILOR_NS_PER_MS)
#define UNSET UINT64_MAX

enum option_key {
	OPTION_INTERVAL = 256,
	OPTION_POISSON,
	OPTION_CLOSED,
	OPTION_REPLAY,
	OPTION_SPEED,
	OPTION_CATCH_UP,
	OPTION_SLACK,
	OPTION_WARM,
	OPTION_TIMEOUT,
	OPTION_NO_KEEPALIVE,
	OPTION_PATHS,
	OPTION_ORDER,
	OPTION_SEED,
	OPTION_BODY,
	OPTION_BODY_FILE,
	OPTION_EXPECT_STATUS,
	OPTION_SAME_BODY,
	OPTION_IN_TIME,
	OPTION_FAIL_IF,
	OPTION_ALLOW_LATE,
	OPTION_FORMAT,
	OPTION_JSON,
	OPTION_CSV,
	OPTION_HDR,
	OPTION_TIMELINES,
};

static const struct argp_option options[] = {
	{0, 0, 0, 0, "When requests are due:", 1},
	{"rate", 'r', "R", 0, "Requests a second, all threads together (100)", 0},
	{"poisson", OPTION_POISSON, 0, 0, "Random gaps, as of many independent clients, instead of equal ones", 0},
	{"closed", OPTION_CLOSED, 0, 0, "Not open-loop: each of the --connections sends its next request when the one before has ended", 0},
	{"replay", OPTION_REPLAY, "FILE", 0, "Requests and their times from an access log in common log format, or of lines \"TIME METHOD /path [body]\"", 0},
	{"speed", OPTION_SPEED, "X", 0, "Of the replay: 2 is twice as fast (1)", 0},
	{"catch-up", OPTION_CATCH_UP, "full|bounded|none", 0, "What of a late schedule is still sent: all, what came due in the last second, or nothing over 10 ms late (full)", 0},
	{"slack", OPTION_SLACK, "TIME", 0, "A request may be sent this late if several can go together; saves CPU at high rates (200us from 20000 requests/s a thread on, else 0s)", 0},
	{0, 0, 0, 0, "Load:", 2},
	{"duration", 'd', "TIME", 0, "How long requests become due, or \"forever\" (30s; with --replay to the log's end)", 0},
	{"warm", OPTION_WARM, "TIME", 0, "Same load before that, not counted (2s; with --replay 0s)", 0},
	{"timeout", OPTION_TIMEOUT, "TIME", 0, "A request not answered this long after it was due has failed (10s)", 0},
	{"connections", 'c', "N", 0, "Open at most N connections, as they are needed (64)", 0},
	{"no-keepalive", OPTION_NO_KEEPALIVE, 0, 0, "A new connection for each request", 0},
	{"threads", 't', "N", 0, "Threads that share the load (1)", 0},
	{0, 0, 0, 0, "Requests:", 3},
	{"paths", OPTION_PATHS, "FILE", 0, "Take requests from FILE: a \"/path\" or \"METHOD /path [body]\" a line", 0},
	{"order", OPTION_ORDER, "random|round", 0, "How they are chosen (random, the same sequence for the same --seed)", 0},
	{"seed", OPTION_SEED, "N", 0, "Of the random order, and of --poisson (1)", 0},
	{"method", 'X', "METHOD", 0, "Of requests that name none (GET; POST with a body)", 0},
	{"header", 'H', "NAME: VALUE", 0, "Add a header field to each request; may be repeated", 0},
	{"body", OPTION_BODY, "TEXT", 0, "Body of requests that have none of their own", 0},
	{"body-file", OPTION_BODY_FILE, "FILE", 0, "The same, from a file", 0},
	{0, 0, 0, 0, "Checks:", 4},
	{"expect-status", OPTION_EXPECT_STATUS, "LIST", 0, "Statuses of good answers, like 200,404 or 2xx,3xx (2xx,3xx)", 0},
	{"same-body", OPTION_SAME_BODY, "N%", 0, "Compare the bodies of N% of the answers with the first one to the same request; another body is bad", 0},
	{"in-time", OPTION_IN_TIME, "TIME", 0, "A good answer this long after its request was due is in time (100ms)", 0},
	{"fail-if", OPTION_FAIL_IF, "LIMIT", 0, "Exit code 1 if it holds of the whole load, like \"p99.9>20ms\", \"bad>0\", \"in-time<99.9%\"; may be repeated", 0},
	{"allow-late", OPTION_ALLOW_LATE, 0, 0, "A schedule that was not kept is no failure", 0},
	{0, 0, 0, 0, "Output:", 5},
	{"interval", OPTION_INTERVAL, "TIME", 0, "One line of figures for each (10s)", 0},
	{"format", OPTION_FORMAT, "table|classic", 0, "Of the interval lines; classic has slow_cooker's columns (table)", 0},
	{"json", OPTION_JSON, 0, 0, "One JSON object on standard output at the end; interval lines go to standard error", 0},
	{"csv", OPTION_CSV, "FILE", 0, "Write a row for each interval to FILE", 0},
	{"hdr", OPTION_HDR, "FILE", 0, "Write a HdrHistogram log of the response times to FILE, an interval a line", 0},
	{"timelines", OPTION_TIMELINES, "PATH", 0, "Tell the causes of the slowest requests from this store of `tailor proxy`", 0},
	{0},
};

static const char documentation[] =
	"Loads an HTTP/1.1 server and tells, while it runs, the latency that its clients see."
	"\v"
	"The load is open-loop: with --rate R, request i is due at start + i/R, however slow the server is. When no connection "
	"is free and no more may be opened, a due request waits its turn and its time goes on counting; with --catch-up full "
	"none is left out. RESPONSE TIME counts from the moment a request was due: it is what a client sees. SERVICE TIME counts "
	"from the moment it was sent. Where the two differ, requests stood in line.\n\n"
	"Times are written with a unit: 500ms, 10s, 2m. Ctrl-C ends the load with its report. Each line and the report name the "
	"slowest requests by their ids; behind `tailor proxy`, `tailor dump --request ID` explains each of them.\n\n"
	"Examples:\n"
	"  tailor load --rate 200 --duration 30s http://127.0.0.1:8080/search?q=tail\n"
	"  tailor load --rate 500 --poisson --paths queries.txt \\\n"
	"    --fail-if 'p99.9>20ms' http://127.0.0.1:8080/\n"
	"  tailor load --replay access.log --speed 2 --timelines ./timelines \\\n"
	"    http://127.0.0.1:8080/\n"
	"  tailor load --body '{\"query\":{\"match_all\":{}}}' \\\n"
	"    --header 'Content-Type: application/json' http://127.0.0.1:9200/i/_search\n\n"
	"Exit code 0: done; 1: no request succeeded, the schedule was not kept (see --allow-late), a --fail-if held, or the load "
	"could not run; 2: wrong usage.\n";

static uint64_t parse_time(struct argp_state *state, const char *name, const char *value, uint64_t min_ns)
{
	const char *least = min_ns == 0 ? "0s" : min_ns == 1 ? "1ns" : "1ms";
	uint64_t ns;

	if (tailor_parse_duration(value, &ns) != 0 || ns < min_ns)
		argp_error(state, "--%s \"%s\" is not a time; write it with its unit, like 500ms, 10s or 2m, at least %s and at most 1000h",
		           name, value, least);
	return ns;
}

static uint64_t parse_count(struct argp_state *state, const char *name, const char *value, uint64_t min, uint64_t max)
{
	uint64_t number;

	if (tailor_parse_number(value, min, max, &number) != 0)
		argp_error(state, "--%s \"%s\" is not a number from %llu to %llu", name, value, (unsigned long long)min,
		           (unsigned long long)max);
	return number;
}

/* A plain decimal number; NAN for anything else that strtod() would take. */
static double parse_decimal(const char *value, const char *suffix)
{
	char *end;
	double number = strtod(value, &end);

	if (end == value || strspn(value, "0123456789.") != (size_t)(end - value) ||
	    (*end && (!suffix || strcmp(end, suffix) != 0)))
		return NAN;
	return number;
}

static double parse_rate(struct argp_state *state, const char *value)
{
	double rate = parse_decimal(value, "/s");

	if (!(rate >= 0.001 && rate <= RATE_MAX))
		argp_error(state, "--rate \"%s\" is not a rate; give requests a second from 0.001 to 1000000, like 200", value);
	return rate;
}

static void set_arrival(struct argp_state *state, enum tailor_load_arrival arrival)
{
	struct load_arguments *arguments = state->input;

	if (arguments->options.arrival != TAILOR_LOAD_UNIFORM && arguments->options.arrival != arrival)
		argp_error(state, "--poisson, --closed and --replay exclude each other; give one of them");
	arguments->options.arrival = arrival;
}

static enum tailor_load_catch_up parse_catch_up(struct argp_state *state, const char *value)
{
	if (strcmp(value, "bounded") == 0)
		return TAILOR_LOAD_CATCH_UP_BOUNDED;
	if (strcmp(value, "none") == 0)
		return TAILOR_LOAD_CATCH_UP_NONE;
	if (strcmp(value, "full") != 0)
		argp_error(state, "--catch-up \"%s\" is none of full, bounded and none", value);
	return TAILOR_LOAD_CATCH_UP_FULL;
}

/* "200,404,5xx" */
static void parse_statuses(struct argp_state *state, const char *value, uint8_t expect[TAILOR_LOAD_STATUSES])
{
	memset(expect, 0, TAILOR_LOAD_STATUSES);
	for (const char *at = value;; at += 4) {
		size_t length = strcspn(at, ",");
		bool group = length == 3 && at[1] == 'x' && at[2] == 'x';
		unsigned int first;

		if (length != 3 || at[0] < '1' || at[0] > '5' || (!group && strspn(at, "0123456789") < 3))
			argp_error(state, "--expect-status \"%s\" is no list of statuses; write it like 200,404 or 2xx,3xx", value);
		first = (unsigned int)strtoul(at, NULL, 10);
		if (group)
			first = (unsigned int)(at[0] - '0') * 100;
		memset(expect + first - TAILOR_LOAD_STATUS_MIN, 1, group ? 100 : 1);
		if (at[length] == '\0')
			return;
	}
}

static double parse_percent(struct argp_state *state, const char *name, const char *value)
{
	double percent = parse_decimal(value, "%");

	if (!(percent > 0 && percent <= 100))
		argp_error(state, "--%s \"%s\" is no part; write it like 10%%", name, value);
	return percent / 100;
}

static void add_header(struct argp_state *state, const char *value)
{
	struct load_arguments *arguments = state->input;
	const char *colon = strchr(value, ':');

	if (!colon || colon == value || strpbrk(value, "\r\n"))
		argp_error(state, "--header \"%s\" is not a header field; write it like \"Accept: text/plain\"", value);
	if (arguments->common.header_count == LOAD_HEADERS_MAX)
		argp_error(state, "more than %d --header options; leave some out", LOAD_HEADERS_MAX);
	arguments->headers[arguments->common.header_count++] = value;
}

static void add_condition(struct argp_state *state, const char *value)
{
	struct load_arguments *arguments = state->input;
	char error[TAILOR_LOAD_ERROR_BYTES];

	if (arguments->condition_count == LOAD_CONDITIONS_MAX)
		argp_error(state, "more than %d --fail-if options; leave some out", LOAD_CONDITIONS_MAX);
	if (tailor_load_condition_parse(value, &arguments->conditions[arguments->condition_count], error) < 0)
		argp_error(state, "%s", error);
	arguments->condition_count++;
}

static void finish(struct argp_state *state)
{
	struct load_arguments *arguments = state->input;
	struct tailor_load_options *load = &arguments->options;
	bool has_rate = load->arrival == TAILOR_LOAD_UNIFORM || load->arrival == TAILOR_LOAD_POISSON;
	char error[TAILOR_LOAD_ERROR_BYTES];

	if (!arguments->url)
		argp_error(state, "name the server: tailor load http://127.0.0.1:8080/path");
	if (tailor_load_parse_url(arguments->url, &load->address, arguments->host, &arguments->url_path, error) < 0)
		argp_error(state, "%s", error);
	if (arguments->common.body && arguments->body_file)
		argp_error(state, "give --body or --body-file, not both");
	if (!has_rate && load->rate > 0)
		argp_error(state, "--rate has no meaning with %s; leave it out",
		           load->arrival == TAILOR_LOAD_CLOSED ? "--closed: the server's speed is the rate" : "--replay: see --speed");
	if (arguments->replay && arguments->paths)
		argp_error(state, "--replay brings its own requests; leave out --paths");
	if (!arguments->replay && load->speed > 0)
		argp_error(state, "--speed is the speed of a --replay; give one, or use --rate");
	if (load->connections < load->threads)
		argp_error(state, "--threads %u needs at least as many --connections, not %u", load->threads, load->connections);
	if (has_rate && load->rate == 0)
		load->rate = 100;
	if (load->speed == 0)
		load->speed = 1;
	if (load->warm_ns == UNSET)
		load->warm_ns = arguments->replay ? 0 : 2 * TAILOR_NS_PER_S;
	if (load->duration_ns == 0)
		load->duration_ns = arguments->replay ? TAILOR_LOAD_FOREVER : 30 * TAILOR_NS_PER_S;
	if (load->slack_ns == UNSET)
		load->slack_ns = has_rate && load->rate / load->threads >= SLACK_RATE ? SLACK_NS : 0;
	if (!has_rate || load->duration_ns == TAILOR_LOAD_FOREVER)
		return;
	if (load->rate * (double)(load->warm_ns + load->duration_ns) / 1e9 > REQUESTS_MAX)
		argp_error(state, "that are more than 10^12 requests; give a shorter --duration");
	if (llround(load->rate * (double)load->duration_ns / 1e9) < 1)
		argp_error(state, "no request becomes due in that time; give a longer --duration or a higher --rate");
}

static error_t parse_when(int key, char *value, struct argp_state *state)
{
	struct load_arguments *arguments = state->input;
	struct tailor_load_options *load = &arguments->options;

	switch (key) {
	case 'r': load->rate = parse_rate(state, value); return 0;
	case OPTION_POISSON: set_arrival(state, TAILOR_LOAD_POISSON); return 0;
	case OPTION_CLOSED: set_arrival(state, TAILOR_LOAD_CLOSED); return 0;
	case OPTION_REPLAY:
		set_arrival(state, TAILOR_LOAD_RECORDED);
		arguments->replay = value;
		return 0;
	case OPTION_SPEED:
		load->speed = parse_decimal(value, NULL);
		if (!(load->speed >= 0.001 && load->speed <= SPEED_MAX))
			argp_error(state, "--speed \"%s\" is not a number from 0.001 to %d", value, SPEED_MAX);
		return 0;
	case OPTION_CATCH_UP: load->catch_up = parse_catch_up(state, value); return 0;
	case OPTION_SLACK:
		load->slack_ns = parse_time(state, "slack", value, 0);
		if (load->slack_ns > SLACK_MAX_NS)
			argp_error(state, "--slack \"%s\" is over 10ms: the schedule would not be kept", value);
		return 0;
	case 'd':
		load->duration_ns = strcmp(value, "forever") == 0 ? TAILOR_LOAD_FOREVER
		                                                  : parse_time(state, "duration", value, TAILOR_NS_PER_MS);
		return 0;
	case OPTION_WARM: load->warm_ns = parse_time(state, "warm", value, 0); return 0;
	case OPTION_TIMEOUT: load->timeout_ns = parse_time(state, "timeout", value, TAILOR_NS_PER_MS); return 0;
	case OPTION_IN_TIME: load->in_time_ns = parse_time(state, "in-time", value, 1); return 0;
	case OPTION_INTERVAL: load->interval_ns = parse_time(state, "interval", value, TAILOR_NS_PER_MS); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_what(int key, char *value, struct argp_state *state)
{
	struct load_arguments *arguments = state->input;
	struct tailor_load_options *load = &arguments->options;

	switch (key) {
	case 'c': load->connections = (unsigned int)parse_count(state, "connections", value, 1, CONNECTIONS_MAX); return 0;
	case 't': load->threads = (unsigned int)parse_count(state, "threads", value, 1, THREADS_MAX); return 0;
	case OPTION_NO_KEEPALIVE: load->close = arguments->common.close = 1; return 0;
	case 'X': arguments->common.method = value; return 0;
	case 'H': add_header(state, value); return 0;
	case OPTION_PATHS: arguments->paths = value; return 0;
	case OPTION_ORDER:
		load->in_order = strcmp(value, "round") == 0;
		if (!load->in_order && strcmp(value, "random") != 0)
			argp_error(state, "--order \"%s\" is neither random nor round", value);
		return 0;
	case OPTION_SEED: load->seed = parse_count(state, "seed", value, 0, UINT64_MAX); return 0;
	case OPTION_BODY:
		arguments->common.body = value;
		arguments->common.body_bytes = strlen(value);
		return 0;
	case OPTION_BODY_FILE: arguments->body_file = value; return 0;
	case OPTION_EXPECT_STATUS: parse_statuses(state, value, load->expect); return 0;
	case OPTION_SAME_BODY: load->same_body = parse_percent(state, "same-body", value); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct load_arguments *arguments = state->input;

	switch (key) {
	case OPTION_FAIL_IF: add_condition(state, value); return 0;
	case OPTION_ALLOW_LATE: arguments->allow_late = true; return 0;
	case OPTION_FORMAT:
		arguments->format = strcmp(value, "classic") == 0 ? TAILOR_LOAD_FORMAT_CLASSIC : TAILOR_LOAD_FORMAT_TABLE;
		if (arguments->format == TAILOR_LOAD_FORMAT_TABLE && strcmp(value, "table") != 0)
			argp_error(state, "--format \"%s\" is neither table nor classic", value);
		return 0;
	case OPTION_JSON: arguments->json = true; return 0;
	case OPTION_CSV: arguments->csv = value; return 0;
	case OPTION_HDR: arguments->hdr = value; return 0;
	case OPTION_TIMELINES: arguments->timelines = value; return 0;
	case ARGP_KEY_ARG:
		if (arguments->url)
			argp_error(state, "\"%s\" is one word too many after %s; quote the URL if it holds spaces or &", value,
			           arguments->url);
		arguments->url = value;
		return 0;
	case ARGP_KEY_END: finish(state); return 0;
	default: break;
	}
	if (parse_when(key, value, state) == 0 || parse_what(key, value, state) == 0)
		return 0;
	return ARGP_ERR_UNKNOWN;
}

void load_parse_arguments(int argc, char **argv, struct load_arguments *arguments)
{
	static const struct argp argp = {options, parse_option, "URL", documentation, NULL, NULL, NULL};

	*arguments = (struct load_arguments){
		.options = {
			.warm_ns = UNSET,
			.slack_ns = UNSET,
			.interval_ns = 10 * TAILOR_NS_PER_S,
			.timeout_ns = 10 * TAILOR_NS_PER_S,
			.in_time_ns = 100 * TAILOR_NS_PER_MS,
			.connections = 64,
			.threads = 1,
			.seed = 1,
		},
	};
	memset(arguments->options.expect + 200 - TAILOR_LOAD_STATUS_MIN, 1, 200);
	arguments->common.headers = arguments->headers;
	argp_parse(&argp, argc, argv, 0, NULL, arguments);
	arguments->common.host = arguments->host;
}
