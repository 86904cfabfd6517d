/* SPDX-License-Identifier: Apache-2.0 */
/* A load's result as the engine would leave it, and what a printer made of it. */
#ifndef TAILOR_TESTS_LOAD_OUTPUT_H
#define TAILOR_TESTS_LOAD_OUTPUT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load/load.h"

#define MS TAILOR_NS_PER_MS

/* 1000 wanted, 980 answered after 1..980 ms, 15 of those with another status, 20 failed; 10 s. */
static inline void result_fill(struct tailor_load_result *result)
{
	assert_int_equal(tailor_load_result_init(result), 0);
	result->wanted = 1000;
	result->good = 965;
	result->in_time = 90;
	result->bad = 15;
	result->different = 4;
	result->failed[TAILOR_LOAD_TIMEOUT] = 20;
	result->opened = 12;
	result->body_bytes = 5000000;
	for (uint64_t i = 1; i <= 980; i++) {
		tailor_histogram_record(result->response, i * MS);
		tailor_histogram_record(result->service, i * MS / 2);
	}
	for (int i = 0; i < 1000; i++) {
		tailor_histogram_record(result->late, 20000);
		tailor_histogram_record(result->sent, 30000);
	}
	tailor_load_result_add_slow(result, &(struct tailor_load_slow){.response_ns = 980 * MS,
	                                                               .path = "/slow",
	                                                               .status = 200,
	                                                               .request_id = "00000000000000ab"});
	tailor_load_result_add_slow(
	        result, &(struct tailor_load_slow){.response_ns = 979 * MS, .path = "/next", .status = 503});
	result->from_ns = 5 * TAILOR_NS_PER_S;
	result->until_ns = 15 * TAILOR_NS_PER_S;
	result->cpu_share = 0.031;
	result->cpu_ns = 310 * MS;
	result->elapsed_ns = 10 * TAILOR_NS_PER_S;
}

/* Without any request. */
static inline void result_empty(struct tailor_load_result *result)
{
	assert_int_equal(tailor_load_result_init(result), 0);
	result->from_ns = 5 * TAILOR_NS_PER_S;
	result->until_ns = 15 * TAILOR_NS_PER_S;
	result->elapsed_ns = 10 * TAILOR_NS_PER_S;
}

static inline struct tailor_load_options usual_options(void)
{
	return (struct tailor_load_options){
	        .arrival = TAILOR_LOAD_UNIFORM,
	        .rate = 100,
	        .speed = 1,
	        .interval_ns = 10 * TAILOR_NS_PER_S,
	        .in_time_ns = 100 * MS,
	        .connections = 64,
	        .threads = 1,
	};
}

/* A stream of which the text is read. */
struct capture {
	FILE *out;
	char *text;
	size_t length;
};

static inline void capture_open(struct capture *capture)
{
	memset(capture, 0, sizeof(*capture));
	capture->out = open_memstream(&capture->text, &capture->length);
	assert_non_null(capture->out);
}

static inline void capture_close(struct capture *capture)
{
	fclose(capture->out);
	free(capture->text);
}

#endif /* TAILOR_TESTS_LOAD_OUTPUT_H */
