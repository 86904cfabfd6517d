/* SPDX-License-Identifier: Apache-2.0 */
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"
#include "cli/commands.h"
#include "load/load.h"
#include "load/print.h"

#define HEADERS_MAX 64
#define CONNECTIONS_MAX 100000
#define THREADS_MAX 64
#define RATE_MAX 1e6
#define REQUESTS_MAX 1e12
/* Standard streams, rings and event descriptors. */
#define OTHER_FILES (16 + 4 * THREADS_MAX)

enum option_key {
	OPTION_INTERVAL = 256,
	OPTION_PATHS,
	OPTION_ORDER,
	OPTION_SEED,
	OPTION_BODY,
	OPTION_BODY_FILE,
	OPTION_WARM,
	OPTION_TIMEOUT,
	OPTION_JSON,
};

struct load_arguments {
	struct tailor_load_options options;
	struct tailor_load_common common;
	const char *headers[HEADERS_MAX];
	const char *url;
	const char *paths;
	const char *body_file;
	int json;
};

static const struct argp_option options[] = {
	{0, 0, 0, 0, "Load:", 1},
	{"rate", 'r', "R", 0, "Requests a second, all threads together (100)", 0},
	{"duration", 'd', "TIME", 0, "How long requests become due (10s)", 0},
	{"warm", OPTION_WARM, "TIME", 0, "Same load before that, not counted (2s)", 0},
	{"interval", OPTION_INTERVAL, "TIME", 0, "One line of figures for each (1s)", 0},
	{"timeout", OPTION_TIMEOUT, "TIME", 0, "A request not answered this long after it was due has failed (10s)", 0},
	{"connections", 'c', "N", 0, "Open at most N connections, as they are needed (64)", 0},
	{"threads", 't', "N", 0, "Threads that share the load (1)", 0},
	{0, 0, 0, 0, "Requests:", 2},
	{"paths", OPTION_PATHS, "FILE", 0, "Take requests from FILE: a \"/path\" or \"METHOD /path [body]\" a line", 0},
	{"order", OPTION_ORDER, "random|round", 0, "How they are chosen (random, the same sequence for the same --seed)", 0},
	{"seed", OPTION_SEED, "N", 0, "Of the random order (1)", 0},
	{"method", 'X', "METHOD", 0, "Of requests that name none (GET; POST with a body)", 0},
	{"header", 'H', "NAME: VALUE", 0, "Add a header field to each request; may be repeated", 0},
	{"body", OPTION_BODY, "TEXT", 0, "Body of requests that have none of their own", 0},
	{"body-file", OPTION_BODY_FILE, "FILE", 0, "The same, from a file", 0},
	{0, 0, 0, 0, "Output:", 3},
	{"json", OPTION_JSON, 0, 0, "One JSON object on standard output at the end; interval lines go to standard error", 0},
	{0},
};

static const char documentation[] =
	"Loads an HTTP/1.1 server at a fixed rate and tells the latency that its clients see."
	"\v"
	"The load is open-loop: request i is due at start + i/rate, however slow the server is. When no connection is "
	"free and no more may be opened, a due request waits its turn and its time goes on counting; none is left out. "
	"RESPONSE TIME counts from the moment a request was due: it is what a client sees. SERVICE TIME counts from the "
	"moment it was sent. Where the two differ, requests stood in line.\n\n"
	"Times are written with a unit: 500ms, 10s, 2m. Ctrl-C ends the load with its report. The report names the ten "
	"slowest requests; behind `tailor proxy`, `tailor dump --request ID` explains each of them.\n\n"
	"Examples:\n"
	"  tailor load --rate 200 --duration 30s http://127.0.0.1:8080/search?q=tail\n"
	"  tailor load --rate 500 --paths queries.txt --header 'Accept: application/json' http://127.0.0.1:8080/\n"
	"  tailor load --body '{\"query\":{\"match_all\":{}}}' --header 'Content-Type: application/json' "
	"http://127.0.0.1:9200/i/_search\n\n"
	"Exit code 0: done, 1: no request succeeded, or the load could not run, 2: wrong usage.\n";

static uint64_t parse_time(struct argp_state *state, const char *name, const char *value, uint64_t min_ns)
{
	uint64_t ns;

	if (tailor_parse_duration(value, &ns) != 0 || ns < min_ns)
		argp_error(state, "--%s \"%s\" is not a time; write it with its unit%s, like 500ms, 10s or 2m", name, value,
		           min_ns ? ", at least 1ms" : "");
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

static double parse_rate(struct argp_state *state, const char *value)
{
	char *end;
	double rate = strtod(value, &end);

	if (strcmp(end, "/s") == 0)
		end += 2;
	if (end == value || *end || !(rate >= 0.001 && rate <= RATE_MAX) || strspn(value, "0123456789./s") != strlen(value))
		argp_error(state, "--rate \"%s\" is not a rate; give requests a second from 0.001 to 1000000, like 200", value);
	return rate;
}

static void add_header(struct argp_state *state, struct load_arguments *arguments, const char *value)
{
	const char *colon = strchr(value, ':');

	if (!colon || colon == value || strpbrk(value, "\r\n"))
		argp_error(state, "--header \"%s\" is not a header field; write it like \"Accept: text/plain\"", value);
	if (arguments->common.header_count == HEADERS_MAX)
		argp_error(state, "more than %d --header options; leave some out", HEADERS_MAX);
	arguments->headers[arguments->common.header_count++] = value;
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct load_arguments *arguments = state->input;
	struct tailor_load_options *load = &arguments->options;

	switch (key) {
	case 'r': load->rate = parse_rate(state, value); return 0;
	case 'd': load->duration_ns = parse_time(state, "duration", value, TAILOR_NS_PER_MS); return 0;
	case 'c': load->connections = (unsigned int)parse_count(state, "connections", value, 1, CONNECTIONS_MAX); return 0;
	case 't': load->threads = (unsigned int)parse_count(state, "threads", value, 1, THREADS_MAX); return 0;
	case 'X': arguments->common.method = value; return 0;
	case 'H': add_header(state, arguments, value); return 0;
	case OPTION_WARM: load->warm_ns = parse_time(state, "warm", value, 0); return 0;
	case OPTION_INTERVAL: load->interval_ns = parse_time(state, "interval", value, TAILOR_NS_PER_MS); return 0;
	case OPTION_TIMEOUT: load->timeout_ns = parse_time(state, "timeout", value, TAILOR_NS_PER_MS); return 0;
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
	case OPTION_JSON: arguments->json = 1; return 0;
	case ARGP_KEY_ARG:
		if (arguments->url)
			argp_error(state, "\"%s\" is one word too many after %s; quote the URL if it holds spaces or &", value,
			           arguments->url);
		arguments->url = value;
		return 0;
	case ARGP_KEY_END:
		if (!arguments->url)
			argp_error(state, "name the server: tailor load http://127.0.0.1:8080/path");
		if (arguments->common.body && arguments->body_file)
			argp_error(state, "give --body or --body-file, not both");
		if (load->connections < load->threads)
			argp_error(state, "--threads %u needs at least as many --connections, not %u", load->threads, load->connections);
		if (load->rate * (double)(load->warm_ns + load->duration_ns) / 1e9 > REQUESTS_MAX)
			argp_error(state, "that are more than 10^12 requests; give a shorter --duration");
		if (llround(load->rate * (double)load->duration_ns / 1e9) < 1)
			argp_error(state, "no request becomes due in that time; give a longer --duration or a higher --rate");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

/* One line, as for wrong options. */
static int usage_error(const char *message)
{
	fprintf(stderr, "tailor load: %s\n", message);
	return -EINVAL;
}

static int read_body(const char *file_name, char **ret_body, size_t *ret_bytes)
{
	cleanup_fclose FILE *file = fopen(file_name, "re");
	char message[TAILOR_LOAD_ERROR_BYTES], part[65536];
	FILE *memory;
	size_t count;

	if (!file) {
		snprintf(message, sizeof(message), "cannot open %.300s: %m; give a readable file to --body-file", file_name);
		return usage_error(message);
	}
	memory = open_memstream(ret_body, ret_bytes);
	if (!memory)
		return -ENOMEM;
	while ((count = fread(part, 1, sizeof(part), file)) > 0)
		fwrite(part, 1, count, memory);
	if (fclose(memory) != 0)
		return -ENOMEM;
	if (ferror(file)) {
		snprintf(message, sizeof(message), "cannot read %.300s; give a readable file to --body-file", file_name);
		return usage_error(message);
	}
	return 0;
}

/* A connection is an open file: takes as many as are allowed, and says when that is not enough. */
static int raise_file_limit(unsigned int connections)
{
	struct rlimit limit;
	char message[TAILOR_LOAD_ERROR_BYTES];

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return 0;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= connections + OTHER_FILES)
		return 0;
	snprintf(message, sizeof(message),
	         "--connections %u needs more open files than the %llu allowed here; raise `ulimit -n` or ask for fewer",
	         connections, (unsigned long long)limit.rlim_max);
	return usage_error(message);
}

static int make_plan(struct load_arguments *arguments, const char *path, struct tailor_load_plan *plan)
{
	char error[TAILOR_LOAD_ERROR_BYTES] = "no memory for the requests";
	int ret;

	if (!arguments->common.method)
		arguments->common.method = arguments->common.body_bytes > 0 ? "POST" : "GET";
	if (arguments->paths)
		ret = tailor_load_plan_read(plan, &arguments->common, arguments->paths, error);
	else
		ret = tailor_load_plan_add(plan, &arguments->common, NULL, path, NULL, error);
	return ret < 0 ? usage_error(error) : 0;
}

static void on_interval(void *context, uint64_t wall_ns, const struct tailor_load_result *interval)
{
	tailor_load_print_interval(context, wall_ns, interval);
}

static int run_load(struct load_arguments *arguments)
{
	struct tailor_load_options *load = &arguments->options;
	char error[TAILOR_LOAD_ERROR_BYTES] = "no memory for the results";
	FILE *lines = arguments->json ? stderr : stdout;
	struct tailor_load_result total;
	int result = TAILOR_EXIT_FAILED;

	load->on_interval = on_interval;
	load->context = lines;
	if (tailor_load_result_init(&total) < 0)
		goto end;
	tailor_load_print_header(lines);
	if (tailor_load_run(load, &total, error) < 0)
		goto end;
	error[0] = '\0';
	if (!arguments->json)
		tailor_load_print_total(stdout, arguments->url, load, &total);
	else if (tailor_load_print_json(stdout, arguments->url, load, &total) < 0)
		snprintf(error, sizeof(error), "cannot write the report to standard output");
	if (total.good == 0 && error[0] == '\0')
		snprintf(error, sizeof(error), "no request succeeded%s%s; is the right server there? try: curl -v '%.200s'",
		         total.connect_error ? ", last answer: " : "", total.connect_error ? strerror(total.connect_error) : "",
		         arguments->url);
	else if (error[0] == '\0')
		result = TAILOR_EXIT_DONE;
end:
	if (error[0])
		fprintf(stderr, "tailor load: %s\n", error);
	tailor_load_result_free(&total);
	return result;
}

int tailor_command_load(int argc, char **argv)
{
	static const struct argp argp = {options, parse_option, "URL", documentation, NULL, NULL, NULL};
	struct load_arguments arguments = {
		.options = {
			.rate = 100,
			.warm_ns = 2 * TAILOR_NS_PER_S,
			.duration_ns = 10 * TAILOR_NS_PER_S,
			.interval_ns = TAILOR_NS_PER_S,
			.timeout_ns = 10 * TAILOR_NS_PER_S,
			.connections = 64,
			.threads = 1,
			.seed = 1,
		},
	};
	char host[TAILOR_LOAD_HOST_BYTES], error[TAILOR_LOAD_ERROR_BYTES];
	cleanup_free char *body = NULL;
	struct tailor_load_plan plan = {0};
	int result = TAILOR_EXIT_USAGE;
	const char *path;

	arguments.common.headers = arguments.headers;
	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	if (tailor_load_parse_url(arguments.url, &arguments.options.address, host, &path, error) < 0) {
		usage_error(error);
		return TAILOR_EXIT_USAGE;
	}
	if (arguments.body_file && read_body(arguments.body_file, &body, &arguments.common.body_bytes) < 0)
		return TAILOR_EXIT_USAGE;
	if (body)
		arguments.common.body = body;
	arguments.common.host = host;
	arguments.options.plan = &plan;
	if (raise_file_limit(arguments.options.connections) == 0 && make_plan(&arguments, path, &plan) == 0)
		result = run_load(&arguments);
	tailor_load_plan_free(&plan);
	return result;
}
