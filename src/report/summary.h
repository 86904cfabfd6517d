/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over many timelines: which causes cost what, two stores compared, and an estimate of the tail without a cause. Pure; times in ns. */
#ifndef TAILOR_REPORT_SUMMARY_H
#define TAILOR_REPORT_SUMMARY_H

#include <stdio.h>
#include <tailor/timeline.h>

/* What is kept of one timeline. */
struct tailor_summary_request {
	uint64_t id;
	uint64_t wall_ns; /* 0 unknown */
	uint64_t latency_ns;
	uint64_t omitted; /* slow ones that have no timeline, since the one stored before this */
	uint64_t causes_ns[TAILOR_CAUSES];
	enum tailor_cause dominant;
	int ordinary; /* kept as one in N, to compare with */
};

/* Zero is none. */
struct tailor_summary {
	struct tailor_summary_request *requests;
	size_t count;
	size_t capacity;
	uint64_t left_out; /* timelines that options cut out; the caller's to set, as the next */
	uint64_t omitted;  /* slow requests in the store without a timeline */
};

/* Adds what is kept of the timeline. Returns 0 or -ENOMEM. */
int tailor_summary_add(struct tailor_summary *summary, const struct tailor_timeline *timeline);

/* Leaves the `slowest` slowest; the others count as left out. */
void tailor_summary_cut(struct tailor_summary *summary, uint64_t slowest);
void tailor_summary_free(struct tailor_summary *summary);

/* The nearest-rank quantile, 0 < part <= 1, of sorted values; 0 when there are none. */
uint64_t tailor_summary_quantile(const uint64_t *sorted, size_t count, double part);

/* For qsort(). */
int tailor_summary_compare_u64(const void *a, const void *b);

/* One cause over all slow requests. */
struct tailor_cause_sum {
	enum tailor_cause cause;
	uint64_t dominant_in;
	uint64_t seen_in;
	uint64_t total_ns;
	uint64_t median_ns; /* of the requests in which it was seen */
	uint64_t max_ns;
	uint64_t worst; /* id of the request with max_ns */
};

/*
 * Sums the slow requests' time by cause, those with the most time first, into `sums`; causes that were not seen are not in
 * it. Returns how many, or -ENOMEM.
 */
int tailor_summary_by_cause(const struct tailor_summary *summary, struct tailor_cause_sum sums[TAILOR_CAUSES],
                            uint64_t *ret_requests, uint64_t *ret_total_ns);

/* Prints that table as text or JSON. Returns 0 or -ENOMEM; errors of writing stay in ferror(out). */
int tailor_report_by_cause(FILE *out, const struct tailor_summary *summary, int json);

/* What two stores are compared by. */
enum tailor_measure {
	TAILOR_MEASURE_RATE,     /* slow requests a second, from the first timeline to the last; NAN for less than ten seconds */
	TAILOR_MEASURE_SLOW,     /* a quantile of the slow requests' latencies, ns */
	TAILOR_MEASURE_ORDINARY, /* a quantile of the ordinary requests' latencies, ns */
	TAILOR_MEASURE_CAUSE,    /* a cause's time for each slow request, ns: the mean */
};

struct tailor_difference {
	enum tailor_measure measure;
	double quantile;
	enum tailor_cause cause;
	double a; /* NAN: cannot be told */
	double b;
	double low; /* 95% interval of b - a; NAN: too little is stored to tell one */
	double high;
};

#define TAILOR_DIFFERENCES_MAX (1 + 3 + 3 + TAILOR_CAUSES)
#define TAILOR_COMPARE_RESAMPLES 2000

/*
 * Compares what can be told from two stores. Intervals are of a bootstrap with a fixed seed that draws stretches of time of a second
 * or more (a thousand at most), not requests: the requests that one pause made slow are not independent of each
 * other. No interval is told for less than ten requests beyond a quantile, nor for less than ten stretches, five of them with
 * requests. Returns how many differences there are, or -ENOMEM.
 */
int tailor_compare(const struct tailor_summary *a, const struct tailor_summary *b,
                   struct tailor_difference differences[TAILOR_DIFFERENCES_MAX]);

/* Prints it, with the stores' names. Returns 0 or -ENOMEM. */
int tailor_report_compare(FILE *out, const char *name_a, const struct tailor_summary *a, const char *name_b,
                          const struct tailor_summary *b, int json);

/* The tail without a cause. Zero, with the cause set, is an empty one. */
struct tailor_what_if {
	enum tailor_cause cause;
	uint64_t left_out; /* the caller's to set, as in the summary */
	uint64_t omitted;
	struct what_if_request *requests;
	size_t request_count, request_capacity;
	struct what_if_stretch *stretches; /* of the cause, in any request */
	size_t stretch_count, stretch_capacity;
	struct what_if_wait *waits; /* behind another request in the server's queue */
	size_t wait_count, wait_capacity;
};

/*
 * Adds a timeline: all of a store are given, since a request may have waited behind any other; those `wanted` are
 * reported on, if slow. Returns 0 or -ENOMEM.
 */
int tailor_what_if_add(struct tailor_what_if *what_if, const struct tailor_timeline *timeline, int wanted);

struct tailor_what_if_result {
	uint64_t requests;
	uint64_t affected;       /* that had the cause, or waited behind one that had */
	uint64_t own_ns;         /* the cause's time in the requests */
	uint64_t behind_ns;      /* time in the server's queue while the request ahead was held up by the cause */
	uint64_t fastest_ns;     /* the fastest slow request */
	uint64_t faster;         /* that would have been faster than that */
	uint64_t left_out;       /* slow requests beyond the slowest, and what the caller has left out */
	uint64_t measured_ns[4]; /* p50, p90, p99, max */
	uint64_t estimated_ns[4];
};

/* Estimates, from the `slowest` slowest (0: all). Returns 0 or -ENOMEM. */
int tailor_what_if_estimate(struct tailor_what_if *what_if, uint64_t slowest, struct tailor_what_if_result *ret_result);

/* Prints the estimate, which every line says it is. Returns 0 or -ENOMEM. */
int tailor_report_what_if(FILE *out, struct tailor_what_if *what_if, uint64_t slowest, int json);
void tailor_what_if_free(struct tailor_what_if *what_if);

#endif /* TAILOR_REPORT_SUMMARY_H */
