/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "load/load.h"
#include "load/stall.h"
#include "load/worker.h"

/* Long enough for the threads to be up when the first request is due. */
#define HEAD_START_NS (20 * TAILOR_NS_PER_MS)
/* How soon the end of the workers is noticed when no interval ends. */
#define LOOK_EVERY_NS (50 * TAILOR_NS_PER_MS)

struct run {
	const struct tailor_load_options *options;
	struct worker *workers;
	struct tailor_load_result line;
	uint64_t line_begin_ns;
	struct tailor_load_result *total;
	_Atomic uint64_t *first_bodies; /* for the plan's requests */
	struct load_schedule schedule;  /* of the first thread */
	atomic_bool stopped;
	uint64_t stopped_ns;
};

/* What a signal stops; NULL outside of a run. */
static struct run *_Atomic running;

static void stop_workers(struct run *run)
{
	uint64_t one = 1;

	run->stopped_ns = tailor_clock_ns();
	atomic_store(&run->stopped, true);
	for (unsigned int i = 0; i < run->options->threads; i++)
		if (write(run->workers[i].stop_fd, &one, sizeof(one)) < 0)
			continue; /* an eventfd of our own is never full */
}

/*
 * Not awaited by this thread, which may be held up where it prints: the server has its peace nonetheless. One more signal
 * after the end of what was under way is from somebody who does not want to wait for the report.
 */
static void on_signal(int number)
{
	struct run *run = atomic_load(&running);
	int before = errno;

	if (!atomic_load(&run->stopped)) {
		stop_workers(run);
	} else if (tailor_clock_ns() > run->stopped_ns + TAILOR_NS_PER_S) {
		(void)signal(number, SIG_DFL);
		(void)raise(number);
	}
	errno = before;
}

/* Sleeps until then, or until a signal has come. */
static void sleep_until(uint64_t deadline_ns)
{
	struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / TAILOR_NS_PER_S),
	                            .tv_nsec = (long)(deadline_ns % TAILOR_NS_PER_S)};

	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL);
}

static bool all_done(const struct run *run)
{
	for (unsigned int i = 0; i < run->options->threads; i++)
		if (run->workers[i].started && !atomic_load_explicit(&run->workers[i].done, memory_order_acquire))
			return false;
	return true;
}

/* Takes what the worker has handed over into the line. */
static bool take_full(struct run *run, struct worker *worker)
{
	struct tailor_load_result *full = atomic_load_explicit(&worker->full, memory_order_acquire);

	if (!full)
		return false;
	tailor_load_result_merge(&run->line, full);
	tailor_load_result_reset(full);
	atomic_store_explicit(&worker->full, NULL, memory_order_relaxed);
	atomic_store_explicit(&worker->spare, full, memory_order_release);
	return true;
}

static uint64_t wall_of(uint64_t ns)
{
	return tailor_clock_wall_ns() + ns - tailor_clock_ns();
}

static void end_line(struct run *run, uint64_t end_ns)
{
	run->line.from_ns = run->line_begin_ns;
	run->line.until_ns = end_ns;
	run->line_begin_ns = end_ns;
	tailor_load_result_merge(run->total, &run->line);
	if (run->options->on_interval)
		run->options->on_interval(run->options->context, wall_of(end_ns), &run->line);
	tailor_load_result_reset(&run->line);
}

/* A tick is whole when every worker has handed over its part. */
static void take_tick(struct run *run)
{
	for (unsigned int i = 0; i < run->options->threads; i++)
		while (!take_full(run, &run->workers[i]) &&
		       !atomic_load_explicit(&run->workers[i].done, memory_order_acquire))
			sleep_until(tailor_clock_ns() + TAILOR_NS_PER_MS);
}

static void watch(struct run *run)
{
	const struct tailor_load_options *options = run->options;
	uint64_t step_ns = load_worker_interval(options);
	uint64_t tick_ns = run->schedule.measure_ns + step_ns;
	uint64_t end_ns = run->schedule.measure_ns + options->interval_ns;

	while (!all_done(run)) {
		uint64_t look_ns = tailor_clock_ns() + LOOK_EVERY_NS;

		sleep_until(tick_ns < look_ns ? tick_ns : look_ns);
		if (tailor_clock_ns() < tick_ns)
			continue;
		take_tick(run);
		if (all_done(run))
			break;
		/* Later than expected when this thread was late (a slow terminal) and the workers went on. */
		if (run->line.until_ns > tick_ns)
			tick_ns = run->line.until_ns;
		if (tick_ns >= end_ns) {
			end_line(run, tick_ns);
			end_ns = tick_ns + options->interval_ns;
		} else {
			run->line.from_ns = run->line_begin_ns;
			options->on_tick(options->context, wall_of(tick_ns), &run->line);
		}
		tick_ns += step_ns;
	}
}

/* How long requests became due: a recorded log may end before the time that was asked for. */
static uint64_t elapsed(const struct run *run)
{
	const struct tailor_load_options *options = run->options;
	uint64_t elapsed_ns = options->duration_ns, warm_ns = run->schedule.measure_ns - run->schedule.start_ns;

	if (options->arrival == TAILOR_LOAD_RECORDED) {
		double last_ns = (double)options->plan->recorded[options->plan->recorded_count - 1].offset_ns;
		double log_ns = last_ns / options->speed - (double)warm_ns;

		if (log_ns < (double)elapsed_ns)
			elapsed_ns = log_ns > 0 ? (uint64_t)log_ns : 0;
	}
	if (atomic_load(&run->stopped)) {
		uint64_t until_ns = run->stopped_ns > run->schedule.measure_ns ? run->stopped_ns - run->schedule.measure_ns : 0;

		elapsed_ns = until_ns < elapsed_ns ? until_ns : elapsed_ns;
	}
	return elapsed_ns;
}

static void finish(struct run *run)
{
	uint64_t now_ns = tailor_clock_ns();

	for (unsigned int i = 0; i < run->options->threads; i++) {
		struct worker *worker = &run->workers[i];

		take_full(run, worker);
		tailor_load_result_merge(&run->line, worker->current);
		run->total->cpu_ns += worker->cpu_ns;
		if (worker->cpu_share > run->total->cpu_share)
			run->total->cpu_share = worker->cpu_share;
	}
	if (run->line.wanted + run->line.good + run->line.bad + run->line.dropped + tailor_load_result_failed(&run->line) > 0)
		end_line(run, now_ns);
	run->total->elapsed_ns = elapsed(run);
}

static int start_workers(struct run *run)
{
	const struct tailor_load_options *options = run->options;
	uint64_t start_ns = tailor_clock_ns() + HEAD_START_NS;

	load_schedule_begin(&run->schedule, options, 0, start_ns);
	run->line_begin_ns = run->schedule.measure_ns;
	for (unsigned int i = 0; i < options->threads; i++) {
		struct worker *worker = &run->workers[i];
		int ret;

		load_schedule_begin(&worker->schedule, options, i, start_ns);
		worker->first_bodies = run->first_bodies;
		worker->interval_end_ns = run->schedule.measure_ns + load_worker_interval(options);
		ret = pthread_create(&worker->thread, NULL, load_worker_run, worker);
		if (ret != 0)
			return -ret;
		worker->started = true;
	}
	return 0;
}

static int open_workers(struct run *run)
{
	int ret = 0;

	run->workers = calloc(run->options->threads, sizeof(*run->workers));
	run->first_bodies = calloc(run->options->plan->count, sizeof(*run->first_bodies));
	if (!run->workers || !run->first_bodies)
		return -ENOMEM;
	for (unsigned int i = 0; i < run->options->threads; i++)
		run->workers[i].stop_fd = -1;
	for (unsigned int i = 0; i < run->options->threads && ret == 0; i++)
		ret = load_worker_open(&run->workers[i], run->options, i);
	return ret;
}

/* Ends the threads and says what went wrong in one of them. */
static int join_workers(struct run *run, int ret, char error[TAILOR_LOAD_ERROR_BYTES])
{
	for (unsigned int i = 0; i < run->options->threads; i++) {
		struct worker *worker = &run->workers[i];

		if (!worker->started)
			continue;
		pthread_join(worker->thread, NULL);
		if (worker->error < 0 && ret == 0) {
			ret = worker->error;
			snprintf(error, TAILOR_LOAD_ERROR_BYTES, "%s", tailor_ring_explain(ret));
		}
	}
	return ret;
}

/* The signals that end a load, and what they did before. */
struct signals {
	sigset_t set, mask;
	struct sigaction interrupt, terminate;
};

/* Before the threads start: they inherit the mask, so that signals come to this thread alone. */
static void hold_signals(struct signals *signals)
{
	sigemptyset(&signals->set);
	sigaddset(&signals->set, SIGINT);
	sigaddset(&signals->set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &signals->set, &signals->mask);
}

static void take_signals(struct signals *signals, struct run *run)
{
	struct sigaction stop = {.sa_handler = on_signal, .sa_flags = SA_RESTART, .sa_mask = signals->set};

	atomic_store(&running, run);
	sigaction(SIGINT, &stop, &signals->interrupt);
	sigaction(SIGTERM, &stop, &signals->terminate);
	pthread_sigmask(SIG_UNBLOCK, &signals->set, NULL);
}

static void give_signals_back(const struct signals *signals)
{
	pthread_sigmask(SIG_BLOCK, &signals->set, NULL);
	sigaction(SIGINT, &signals->interrupt, NULL);
	sigaction(SIGTERM, &signals->terminate, NULL);
	atomic_store(&running, NULL);
}

/* Until every request has ended. */
static int run_until_done(struct run *run, struct signals *signals, char error[TAILOR_LOAD_ERROR_BYTES])
{
	struct tailor_stall_watch *stalls = NULL;
	int ret = start_workers(run);

	/* What it needs may be refused: then the load goes on without it. */
	if (ret == 0 && tailor_address_is_local(&run->options->address))
		(void)tailor_stall_watch_start(run->schedule.measure_ns, &stalls);
	if (ret < 0) {
		stop_workers(run);
		ret = join_workers(run, ret, error);
	} else {
		take_signals(signals, run);
		watch(run);
		ret = join_workers(run, ret, error);
		give_signals_back(signals);
	}
	run->total->stalls = tailor_stall_watch_stop(stalls);
	return ret;
}

int tailor_load_run(const struct tailor_load_options *options, struct tailor_load_result *total,
                    char error[TAILOR_LOAD_ERROR_BYTES])
{
	struct run run = {.options = options, .total = total};
	struct signals signals;
	int ret;

	error[0] = '\0';
	hold_signals(&signals);
	ret = tailor_load_result_init(&run.line);
	if (ret == 0)
		ret = open_workers(&run);
	if (ret == 0)
		ret = run_until_done(&run, &signals, error);
	if (ret == 0)
		finish(&run);
	else if (error[0] == '\0')
		snprintf(error, TAILOR_LOAD_ERROR_BYTES,
		         "the load could not be started: %s; ask for fewer --connections or --threads", strerror(-ret));
	for (unsigned int i = 0; run.workers && i < options->threads; i++)
		load_worker_close(&run.workers[i]);
	free(run.workers);
	free(run.first_bodies);
	tailor_load_result_free(&run.line);
	pthread_sigmask(SIG_SETMASK, &signals.mask, NULL);
	return ret;
}
