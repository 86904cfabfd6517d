/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of --fail-if. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "load/print.h"

#define NAME_BYTES 32
#define VALUE_BYTES 32
#define SERVICE "service-"

enum metric {
	METRIC_MIN,
	METRIC_MEAN,
	METRIC_MAX,
	METRIC_PERCENTILE,
	METRIC_GOOD, /* from here on numbers, not times */
	METRIC_BAD,
	METRIC_DIFFERENT,
	METRIC_FAILED,
	METRIC_DROPPED,
	METRIC_REQUESTS,
	METRIC_IN_TIME,
	METRIC_WANTED,
	METRIC_RATE,
};

/* Added to a metric. */
#define OF_SERVICE 0x100
#define AS_PART 0x200

enum relation {
	RELATION_ABOVE,
	RELATION_AT_LEAST,
	RELATION_BELOW,
	RELATION_AT_MOST,
};

static const struct {
	const char *name;
	enum metric metric;
} names[] = {
        {"min", METRIC_MIN},         {"mean", METRIC_MEAN},       {"max", METRIC_MAX},
        {"good", METRIC_GOOD},       {"bad", METRIC_BAD},         {"different", METRIC_DIFFERENT},
        {"failed", METRIC_FAILED},   {"dropped", METRIC_DROPPED}, {"requests", METRIC_REQUESTS},
        {"in-time", METRIC_IN_TIME}, {"wanted", METRIC_WANTED},   {"rate", METRIC_RATE},
};

static int is_time(int metric)
{
	return (metric & 0xff) < METRIC_GOOD;
}

static int refuse(char error[TAILOR_LOAD_ERROR_BYTES], const char *text, const char *why)
{
	snprintf(error, TAILOR_LOAD_ERROR_BYTES, "\"%.100s\" is not a limit: %s", text, why);
	return -EINVAL;
}

/* Digits with at most one point among them. Returns what is behind them, or NULL when there are none. */
static const char *parse_decimal(const char *text, double *ret_value)
{
	size_t length = strspn(text, "0123456789"), fraction;
	char copy[NAME_BYTES];

	if (length == 0)
		return NULL;
	if (text[length] == '.') {
		fraction = strspn(text + length + 1, "0123456789");
		if (fraction == 0)
			return NULL;
		length += 1 + fraction;
	}
	if (length >= sizeof(copy))
		return NULL;
	memcpy(copy, text, length);
	copy[length] = '\0';
	*ret_value = strtod(copy, NULL);
	return text + length;
}

static int parse_metric(const char *name, struct tailor_load_condition *condition)
{
	int service = strncmp(name, SERVICE, strlen(SERVICE)) == 0 ? OF_SERVICE : 0;
	const char *end;

	if (service)
		name += strlen(SERVICE);
	if (name[0] == 'p' && isdigit((unsigned char)name[1])) {
		end = parse_decimal(name + 1, &condition->percent);
		condition->metric = METRIC_PERCENTILE | service;
		return end && !*end && condition->percent <= 100 ? 0 : -EINVAL;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i].name) != 0)
			continue;
		condition->metric = (int)names[i].metric | service;
		return service && !is_time(condition->metric) ? -EINVAL : 0;
	}
	return -EINVAL;
}

static int parse_value(const char *value, struct tailor_load_condition *condition)
{
	const char *end;
	uint64_t ns;

	if (is_time(condition->metric)) {
		if (tailor_parse_duration(value, &ns) != 0)
			return -EINVAL;
		condition->value = (double)ns;
		return 0;
	}
	end = parse_decimal(value, &condition->value);
	if (!end)
		return -EINVAL;
	if (condition->metric == METRIC_RATE)
		return *end && strcmp(end, "/s") != 0 ? -EINVAL : 0;
	if (strcmp(end, "%") == 0) {
		condition->metric |= AS_PART;
		return condition->value <= 100 ? 0 : -EINVAL;
	}
	return *end ? -EINVAL : 0;
}

/* Copies what is between two places without the blanks around it. Returns 0 or -EINVAL: nothing, or too long. */
static int cut(char *buffer, size_t size, const char *from, const char *to)
{
	while (from < to && isblank((unsigned char)*from))
		from++;
	while (to > from && isblank((unsigned char)to[-1]))
		to--;
	if (from == to || (size_t)(to - from) >= size)
		return -EINVAL;
	memcpy(buffer, from, (size_t)(to - from));
	buffer[to - from] = '\0';
	return 0;
}

int tailor_load_condition_parse(const char *text, struct tailor_load_condition *ret_condition,
                                char error[TAILOR_LOAD_ERROR_BYTES])
{
	struct tailor_load_condition condition = {.text = text};
	const char *sign = strpbrk(text, "<>");
	char name[NAME_BYTES], value[VALUE_BYTES];
	int or_equal;

	if (!sign)
		return refuse(error, text,
		              "write METRIC, one of > >= < <=, and VALUE, like \"p99.9>20ms\" or \"bad>0\"");
	or_equal = sign[1] == '=';
	condition.relation = *sign == '>' ? (or_equal ? RELATION_AT_LEAST : RELATION_ABOVE)
	                                  : (or_equal ? RELATION_AT_MOST : RELATION_BELOW);
	if (cut(name, sizeof(name), text, sign) < 0 || parse_metric(name, &condition) < 0)
		return refuse(error, text,
		              "METRIC is min, mean, max or a percentile from p0 to p100 (also service-p99 and so on), or "
		              "good, bad, different, failed, dropped, requests, in-time, wanted or rate");
	sign += 1 + or_equal;
	if (cut(value, sizeof(value), sign, sign + strlen(sign)) == 0 && parse_value(value, &condition) == 0) {
		*ret_condition = condition;
		return 0;
	}
	if (is_time(condition.metric))
		return refuse(error, text, "write a time with its unit behind the sign, like 500us, 20ms or 1.5s");
	if (condition.metric == METRIC_RATE)
		return refuse(error, text, "write good answers a second behind the sign, like 450");
	return refuse(error, text, "write a number behind the sign, or a part of those that came due from 0% to 100%");
}

static double time_of(const struct tailor_load_condition *condition, const struct tailor_histogram *histogram)
{
	switch ((enum metric)(condition->metric & 0xff)) {
	case METRIC_MIN: return (double)tailor_histogram_min(histogram);
	case METRIC_MEAN: return tailor_histogram_mean(histogram);
	case METRIC_MAX: return (double)tailor_histogram_max(histogram);
	default: return (double)tailor_histogram_percentile(histogram, condition->percent);
	}
}

static uint64_t number_of(const struct tailor_load_condition *condition, const struct tailor_load_result *total)
{
	switch ((enum metric)(condition->metric & 0xff)) {
	case METRIC_GOOD: return total->good;
	case METRIC_BAD: return total->bad;
	case METRIC_DIFFERENT: return total->different;
	case METRIC_FAILED: return tailor_load_result_failed(total);
	case METRIC_DROPPED: return total->dropped;
	case METRIC_REQUESTS: return total->good + total->bad + tailor_load_result_failed(total);
	case METRIC_IN_TIME: return total->in_time;
	default: return total->wanted;
	}
}

static int compare(const struct tailor_load_condition *condition, double is)
{
	switch ((enum relation)condition->relation) {
	case RELATION_ABOVE: return is > condition->value;
	case RELATION_AT_LEAST: return is >= condition->value;
	case RELATION_BELOW: return is < condition->value;
	case RELATION_AT_MOST: return is <= condition->value;
	}
	return 0;
}

/* What precedes the sign, as given. */
static int name_bytes(const char *text)
{
	size_t length = strcspn(text, "<>");

	while (length > 0 && isblank((unsigned char)text[length - 1]))
		length--;
	return (int)length;
}

static int time_holds(const struct tailor_load_condition *condition, const struct tailor_load_result *total,
                      char reason[TAILOR_LOAD_ERROR_BYTES])
{
	const struct tailor_histogram *histogram = condition->metric & OF_SERVICE ? total->service : total->response;
	double is = time_of(condition, histogram);
	char buffer[VALUE_BYTES];

	if (tailor_histogram_count(histogram) == 0) {
		snprintf(reason, TAILOR_LOAD_ERROR_BYTES, "%s: there was no answer", condition->text);
		return condition->relation == RELATION_ABOVE || condition->relation == RELATION_AT_LEAST;
	}
	snprintf(reason, TAILOR_LOAD_ERROR_BYTES, "%s: %.*s was %s", condition->text, name_bytes(condition->text),
	         condition->text, tailor_format_duration(buffer, sizeof(buffer), (uint64_t)is));
	return compare(condition, is);
}

int tailor_load_condition_holds(const struct tailor_load_condition *condition, const struct tailor_load_result *total,
                                char reason[TAILOR_LOAD_ERROR_BYTES])
{
	double is;

	if (is_time(condition->metric))
		return time_holds(condition, total, reason);
	if (condition->metric == METRIC_RATE) {
		is = total->elapsed_ns ? (double)total->good / ((double)total->elapsed_ns / 1e9) : 0;
		snprintf(reason, TAILOR_LOAD_ERROR_BYTES, "%s: %.*s was %.6g/s", condition->text,
		         name_bytes(condition->text), condition->text, is);
	} else if (condition->metric & AS_PART) {
		is = total->wanted ? 100 * (double)number_of(condition, total) / (double)total->wanted : 0;
		snprintf(reason, TAILOR_LOAD_ERROR_BYTES, "%s: %.*s was %.4g%% (%" PRIu64 " of %" PRIu64 ")",
		         condition->text, name_bytes(condition->text), condition->text, is, number_of(condition, total),
		         total->wanted);
	} else {
		is = (double)number_of(condition, total);
		snprintf(reason, TAILOR_LOAD_ERROR_BYTES, "%s: %.*s was %" PRIu64, condition->text,
		         name_bytes(condition->text), condition->text, number_of(condition, total));
	}
	return compare(condition, is);
}
