/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "load/print.h"

#define MEAN_OF 5
#define OUTLIER_NEEDS 5
/* Of normally distributed values the median absolute deviation is this part of the standard deviation, inverted. */
#define MAD_TO_DEVIATION 1.4826
#define WORTH_AN_EYE 0.1

static int by_value(const void *one, const void *other)
{
	double a = *(const double *)one, b = *(const double *)other;

	return (a > b) - (a < b);
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), by_value);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Powers of ten between two times, of which either may be 0. */
static int magnitude_of(double latest, double mean)
{
	double difference;

	if (mean <= 0)
		return latest > 0;
	if (latest <= 0)
		return -1;
	difference = trunc(log10(latest) - log10(mean));
	return (int)fmax(fmin(difference, 3), -3);
}

static int outlier_of(double latest, double *values, size_t count)
{
	double middle = median(values, count), off = latest - middle, deviation;
	int marks;

	if (fabs(off) < WORTH_AN_EYE * middle || off == 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		values[i] = fabs(values[i] - middle);
	deviation = MAD_TO_DEVIATION * median(values, count);
	marks = (fabs(off) > 4 * deviation) + (fabs(off) > 8 * deviation) + (fabs(off) > 16 * deviation);
	return off > 0 ? marks : -marks;
}

void tailor_load_change_add(struct tailor_load_change *change, uint64_t p99_ns, int *ret_magnitude, int *ret_outlier)
{
	size_t kept = change->count < TAILOR_LOAD_HISTORY ? change->count : TAILOR_LOAD_HISTORY;
	size_t recent = kept < MEAN_OF ? kept : MEAN_OF;
	double values[TAILOR_LOAD_HISTORY], sum = 0;

	for (size_t i = 0; i < kept; i++) {
		values[i] =
		        (double)change->p99_ns[(change->count - 1 - i) % TAILOR_LOAD_HISTORY]; /* the latest first */
		sum += i < recent ? values[i] : 0;
	}
	/* Nothing to compare with is no change. */
	*ret_magnitude = kept > 0 ? magnitude_of((double)p99_ns, sum / (double)recent) : 0;
	*ret_outlier = kept >= OUTLIER_NEEDS ? outlier_of((double)p99_ns, values, kept) : 0;
	change->p99_ns[change->count++ % TAILOR_LOAD_HISTORY] = p99_ns;
}
