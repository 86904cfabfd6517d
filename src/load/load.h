/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An open-loop HTTP/1.1 load generator: request i is due at start + i / rate, whatever the server does. Its response
 * time counts from then, its service time from the moment it was sent, so that a server that stops for a second shows
 * in every request that was due in that second. No request is left out: one that finds no free connection waits, and
 * goes on counting.
 */
#ifndef TAILOR_LOAD_LOAD_H
#define TAILOR_LOAD_LOAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "base/histogram.h"
#include "http1/http1.h"
#include "load/stall.h"

/* One request, ready to be sent. */
struct tailor_load_request {
	char *bytes;
	size_t length;
	char *path; /* for people */
	enum http1_method method;
};

/* What to send. Zeroed before first use; read-only while a load runs. */
struct tailor_load_plan {
	struct tailor_load_request *requests;
	size_t count;
	size_t room;
};

/* What all requests of a plan have in common. */
struct tailor_load_common {
	const char *host;           /* for Host, unless one of the headers is it */
	const char *method;         /* where a path comes without one */
	const char *const *headers; /* "Name: value" */
	size_t header_count;
	const char *body; /* where a path comes without one; may be NULL */
	size_t body_bytes;
};

#define TAILOR_LOAD_HOST_BYTES 64
#define TAILOR_LOAD_ERROR_BYTES 512

/*
 * Splits "http://ADDRESS[:PORT][/PATH]"; ADDRESS is numeric or "localhost" (127.0.0.1). *ret_path points into url at
 * '/' or '?', or is "/". Returns 0, or -EINVAL with one line in error that says what to write.
 */
int tailor_load_parse_url(const char *url, struct tailor_address *ret_address, char ret_host[TAILOR_LOAD_HOST_BYTES],
                          const char **ret_path, char error[TAILOR_LOAD_ERROR_BYTES]);

/*
 * Appends one request; method and body may be NULL for the common ones. Returns 0, -ENOMEM, or -EINVAL (not a valid
 * HTTP request) with one line in error.
 */
int tailor_load_plan_add(struct tailor_load_plan *plan, const struct tailor_load_common *common, const char *method,
                         const char *path, const char *body, char error[TAILOR_LOAD_ERROR_BYTES]);

/*
 * Appends one request for each line of a file: "/path" or "METHOD /path [body]"; empty lines and lines that begin with
 * '#' are passed over. Returns 0, -EINVAL (with the line number in error), -ENOMEM, or the error of reading; with one
 * line in error.
 */
int tailor_load_plan_read(struct tailor_load_plan *plan, const struct tailor_load_common *common, const char *file_name,
                          char error[TAILOR_LOAD_ERROR_BYTES]);
void tailor_load_plan_free(struct tailor_load_plan *plan);

/* Why a request has failed. */
enum tailor_load_failure {
	TAILOR_LOAD_NO_CONNECTION, /* refused, unreachable, or given up for a moment after that */
	TAILOR_LOAD_TIMEOUT,
	TAILOR_LOAD_CUT,         /* the connection ended before the response did */
	TAILOR_LOAD_INVALID,     /* what came is not an HTTP/1.1 response */
	TAILOR_LOAD_INTERRUPTED, /* not answered when the load was stopped */
	TAILOR_LOAD_FAILURES,
};

/* "no connection", "timed out", ... */
const char *tailor_load_failure_name(enum tailor_load_failure failure);

#define TAILOR_LOAD_SLOWEST 10
struct tailor_load_slow {
	uint64_t response_ns;
	const char *path; /* of the plan */
	uint16_t status;
	char request_id[46]; /* X-Tailor-Request-Id of the response; empty without */
};

/* What happened to requests. Percentiles are of answered ones, good and bad. */
struct tailor_load_result {
	uint64_t wanted; /* came due */
	uint64_t good;   /* complete, 2xx or 3xx */
	uint64_t bad;    /* complete, another status */
	uint64_t failed[TAILOR_LOAD_FAILURES];
	int connect_error; /* errno of the last connection that could not be made; 0 when all could */
	struct tailor_histogram *response; /* since due */
	struct tailor_histogram *service;  /* since sent */
	struct tailor_histogram *late;     /* the generator's own fault: when it took up the request, since due */
	struct tailor_load_slow slowest[TAILOR_LOAD_SLOWEST]; /* slowest first */
	size_t slow_count;
	uint64_t until_ns;   /* CLOCK_MONOTONIC, end of the interval; intervals only */
	double cpu_share;    /* of one CPU, by the busiest thread; totals only */
	uint64_t elapsed_ns; /* of the schedule, warm-up not counted; totals only */
	/* This machine, meanwhile; known only where the server is on it, too. Totals only. */
	struct tailor_stalls stalls;
};

/* Returns 0 or -ENOMEM; freed by tailor_load_result_free() in either case. */
int tailor_load_result_init(struct tailor_load_result *result);
void tailor_load_result_free(struct tailor_load_result *result);
void tailor_load_result_reset(struct tailor_load_result *result);
void tailor_load_result_merge(struct tailor_load_result *into, const struct tailor_load_result *from);
void tailor_load_result_add_slow(struct tailor_load_result *result, const struct tailor_load_slow *slow);
uint64_t tailor_load_result_failed(const struct tailor_load_result *result);

struct tailor_load_options {
	struct tailor_address address;
	const struct tailor_load_plan *plan;
	double rate;      /* requests a second, all threads together */
	uint64_t warm_ns; /* at the same rate, not counted */
	uint64_t duration_ns;
	uint64_t interval_ns;
	uint64_t timeout_ns;      /* since due: then the request has failed */
	unsigned int connections; /* at most, all threads together; >= threads */
	unsigned int threads;
	uint64_t seed;
	int in_order; /* round-robin; else the seed and the request's number choose */
	/* Called on the caller's thread after each interval. wall_ns: CLOCK_REALTIME of its end. */
	void (*on_interval)(void *context, uint64_t wall_ns, const struct tailor_load_result *interval);
	void *context;
};

/*
 * Runs the load on threads of its own and returns when every request has ended. SIGINT and SIGTERM, blocked and awaited
 * here, end it early: what is under way gets one more second. Returns 0 with *total (initialised by the caller)
 * filled, or a negative errno with one line in error.
 */
int tailor_load_run(const struct tailor_load_options *options, struct tailor_load_result *total,
                    char error[TAILOR_LOAD_ERROR_BYTES]);

#endif /* TAILOR_LOAD_LOAD_H */
