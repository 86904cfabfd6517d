/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP/1.1 load generator, open-loop unless asked otherwise: each request is due at a moment that a schedule fixes
 * beforehand, whatever the server does. Its response time counts from then, its service time from the moment it was
 * sent, so that a server that stops for a second shows in every request that was due in that second. One that finds
 * no free connection waits, and goes on counting; what is not sent at all is counted as dropped.
 */
#ifndef TAILOR_LOAD_LOAD_H
#define TAILOR_LOAD_LOAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "base/clock.h"
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

/* One request of a recorded log. */
struct tailor_load_recorded {
	uint64_t offset_ns; /* since the first one */
	uint32_t request;   /* of the plan */
	uint32_t order;     /* in the log */
};

/* What to send. Zeroed before first use; read-only while a load runs. */
struct tailor_load_plan {
	struct tailor_load_request *requests;
	size_t count;
	size_t room;
	/* Only with TAILOR_LOAD_RECORDED: what is due when, in the order of time. */
	struct tailor_load_recorded *recorded;
	size_t recorded_count;
	size_t recorded_skipped; /* lines of the log that hold no request that can be sent */
};

/* What all requests of a plan have in common. */
struct tailor_load_common {
	const char *host;           /* for Host, unless one of the headers is it */
	const char *method;         /* where a path comes without one */
	const char *const *headers; /* "Name: value" */
	size_t header_count;
	const char *body; /* where a path comes without one; may be NULL */
	size_t body_bytes;
	int close; /* each request asks for the connection to be closed after it */
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
/*
 * Reads a recorded access log into plan->requests (equal requests once) and plan->recorded. A line is one of
 *
 *   ... [10/Oct/2000:13:55:36 -0700] "GET /path HTTP/1.1" ...    common and combined log format
 *   TIME METHOD /path [body]                                     TIME: seconds with any fraction, or RFC 3339
 *
 * The times of a log that has whole seconds only are spread evenly over each second. Empty lines and lines that begin
 * with '#' are passed over; so are lines of the first form that hold no valid request ("-" of a client that sent none),
 * but counted in plan->recorded_skipped. Requests are put into the order of their times. Returns 0, or a negative errno as
 * tailor_load_plan_read() does.
 */
int tailor_load_plan_record(struct tailor_load_plan *plan, const struct tailor_load_common *common,
                            const char *file_name, char error[TAILOR_LOAD_ERROR_BYTES]);
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

/*
 * What happened to requests. Each that came due ends up in exactly one of good, bad, failed and dropped.
 * Percentiles are of answered ones, good and bad.
 */
struct tailor_load_result {
	uint64_t wanted;    /* came due */
	uint64_t good;      /* complete, and as expected */
	uint64_t in_time;   /* of the good ones: at most options.in_time_ns after they were due */
	uint64_t bad;       /* complete, with another status or body */
	uint64_t different; /* of the bad ones: the body was not the same as at first */
	uint64_t failed[TAILOR_LOAD_FAILURES];
	uint64_t dropped;    /* never sent: too late for options.catch_up */
	uint64_t opened;     /* connections */
	uint64_t body_bytes; /* of the answers, as transferred */
	int connect_error; /* errno of the last connection that could not be made; 0 when all could */
	struct tailor_histogram *response; /* since due */
	struct tailor_histogram *service;  /* since sent */
	struct tailor_histogram *late;     /* the generator's own fault: when it took up the request, since due */
	struct tailor_histogram *sent;     /* when it was sent, since due: also waited for a connection */
	struct tailor_load_slow slowest[TAILOR_LOAD_SLOWEST]; /* slowest first */
	size_t slow_count;
	uint64_t from_ns, until_ns; /* CLOCK_MONOTONIC; intervals only */
	double cpu_share;    /* of one CPU, by the busiest thread; totals only */
	uint64_t cpu_ns;     /* by all threads, warm-up not counted; totals only */
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

/* When requests are due. */
enum tailor_load_arrival {
	TAILOR_LOAD_UNIFORM,  /* request i at start + i / rate */
	TAILOR_LOAD_POISSON,  /* independent of each other: exponential gaps of 1 / rate on average */
	TAILOR_LOAD_CLOSED,   /* not open-loop: on each connection when the one before has ended */
	TAILOR_LOAD_RECORDED, /* plan->recorded, at `speed` */
};

/* What happens to requests that could not be sent when they were due. */
enum tailor_load_catch_up {
	TAILOR_LOAD_CATCH_UP_FULL,    /* all of them are sent, as soon as that is possible */
	TAILOR_LOAD_CATCH_UP_BOUNDED, /* those of the last second */
	TAILOR_LOAD_CATCH_UP_NONE,    /* none: dropped when 10 ms late */
};

#define TAILOR_LOAD_FOREVER UINT64_MAX
#define TAILOR_LOAD_STATUS_MIN 100
#define TAILOR_LOAD_STATUS_MAX 599
#define TAILOR_LOAD_STATUSES (TAILOR_LOAD_STATUS_MAX - TAILOR_LOAD_STATUS_MIN + 1)

struct tailor_load_options {
	struct tailor_address address;
	const struct tailor_load_plan *plan;
	enum tailor_load_arrival arrival;
	double rate;  /* requests a second, all threads together; with uniform and Poisson arrivals */
	double speed; /* of a recorded log: 2 is twice as fast */
	enum tailor_load_catch_up catch_up;
	uint64_t warm_ns;     /* the same load before that, not counted */
	uint64_t duration_ns; /* or TAILOR_LOAD_FOREVER; a recorded log may end before */
	uint64_t interval_ns;
	uint64_t tick_ns;         /* how often on_tick is called within an interval; 0: never */
	uint64_t timeout_ns;      /* since due: then the request has failed */
	uint64_t in_time_ns;      /* what counts as in time */
	uint64_t slack_ns;        /* a request may be sent this late so that one wake-up, best an answer's, sends several */
	unsigned int connections; /* at most, all threads together; >= threads */
	unsigned int threads;
	uint64_t seed;
	int in_order;      /* round-robin; else the seed and the request's number choose */
	int close;         /* a new connection for each request; the plan's requests must say so, too */
	double same_body;  /* part (0..1) of the answers of which the body is compared with the first one */
	uint8_t expect[TAILOR_LOAD_STATUSES]; /* [status - TAILOR_LOAD_STATUS_MIN]: good */
	/* Called on the caller's thread after each interval. wall_ns: CLOCK_REALTIME of its end. */
	void (*on_interval)(void *context, uint64_t wall_ns, const struct tailor_load_result *interval);
	/* The same with what an interval has come to so far. */
	void (*on_tick)(void *context, uint64_t wall_ns, const struct tailor_load_result *so_far);
	void *context;
};

/*
 * Runs the load on threads of its own and returns when every request has ended; one at a time in a process. SIGINT and
 * SIGTERM, caught here meanwhile, end it early: what is under way gets one more second, and a signal after that ends the
 * process. Memory does not grow with time. Returns 0 with *total (initialised by the caller) filled, or a negative errno
 * with one line in error.
 */
int tailor_load_run(const struct tailor_load_options *options, struct tailor_load_result *total,
                    char error[TAILOR_LOAD_ERROR_BYTES]);

/* Sent later than this, a hundredth of the requests is too much for a schedule that is said to have been kept. */
#define TAILOR_LOAD_LATE_NS (10 * TAILOR_NS_PER_MS)
/* A thread of the generator that uses more of its CPU may be what limits the load. */
#define TAILOR_LOAD_CPU_SHARE_HIGH 0.8

/*
 * Whether the load was the one that was asked for: nothing dropped, and 99% sent within TAILOR_LOAD_LATE_NS of their due
 * time. Returns 1, or 0 with one line in reason that says what was not, whose fault it was (this machine's, the
 * generator's, or the server's, which left no connection free) and the remedy. Requests without a connection come first.
 */
int tailor_load_schedule_kept(const struct tailor_load_options *options, const struct tailor_load_result *total,
                              char reason[TAILOR_LOAD_ERROR_BYTES]);

/* "127.0.0.1:9 refused connections: 400 of 400 requests failed so", or what else became of the connections; cut to size. */
void tailor_load_say_unconnected(char *buffer, size_t size, const struct tailor_load_options *options,
                                 const struct tailor_load_result *total);

/* What to do about an errno of connecting that is this machine's own doing; NULL for those that the server caused. */
const char *tailor_load_own_remedy(int connect_error);

#endif /* TAILOR_LOAD_LOAD_H */
