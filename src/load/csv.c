/* SPDX-License-Identifier: Apache-2.0 */
/* Intervals as CSV (RFC 4180): records end with CRLF; a time of no answers is an empty field. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "load/lines.h"

static int end_record(FILE *out)
{
	fputs("\r\n", out);
	return fflush(out) != 0 || ferror(out) ? -EIO : 0;
}

int tailor_load_csv_begin(FILE *out)
{
	fputs("time,good,bad,failed,dropped,wanted,in_time,"
	      "min_us,p50_us,p90_us,p95_us,p99_us,p999_us,p9999_us,max_us,mean_us,"
	      "service_p50_us,service_p99_us,service_max_us,late_p99_us,slowest_request_id",
	      out);
	return end_record(out);
}

static void put_time(FILE *out, const struct tailor_histogram *histogram, double ns)
{
	if (tailor_histogram_count(histogram) > 0)
		fprintf(out, ",%.3f", ns / 1e3);
	else
		fputc(',', out);
}

static void put_percentile(FILE *out, const struct tailor_histogram *histogram, double percent)
{
	put_time(out, histogram, (double)tailor_histogram_percentile(histogram, percent));
}

/* In quotes where it must be: it is the server's text. */
static void put_text(FILE *out, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		fputs(text, out);
		return;
	}
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

int tailor_load_csv_add(FILE *out, uint64_t wall_ns, const struct tailor_load_result *interval)
{
	static const double percents[] = {50, 90, 95, 99, 99.9, 99.99};
	const struct tailor_histogram *response = interval->response, *service = interval->service;
	char time[TAILOR_LOAD_TIME_BYTES];

	fprintf(out, "%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
	        tailor_load_format_time(time, wall_ns, 3), interval->good, interval->bad,
	        tailor_load_result_failed(interval), interval->dropped, interval->wanted, interval->in_time);
	put_time(out, response, (double)tailor_histogram_min(response));
	for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++)
		put_percentile(out, response, percents[i]);
	put_time(out, response, (double)tailor_histogram_max(response));
	put_time(out, response, tailor_histogram_mean(response));
	put_percentile(out, service, 50);
	put_percentile(out, service, 99);
	put_time(out, service, (double)tailor_histogram_max(service));
	put_percentile(out, interval->late, 99);
	fputc(',', out);
	if (interval->slow_count > 0)
		put_text(out, interval->slowest[0].request_id);
	return end_record(out);
}
