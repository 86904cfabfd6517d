/* SPDX-License-Identifier: Apache-2.0 */
/* What the demo shows at its end. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"
#include "cli/demo.h"

#define DUMP_MS 20000
#define SLOWEST "3"

/* Runs `tailor dump` of what was measured into a file of the demo's directory, whose path it returns. */
static int dump(struct demo *demo, const struct demo_run *run, const char *format, char ret_path[PATH_MAX])
{
	char *argv[] = {"/proc/self/exe", "dump", (char *)run->timelines, "--since", (char *)run->measured_from,
	                "--slowest", SLOWEST, "--format", (char *)format, NULL};
	uint64_t deadline_ns = tailor_clock_ns() + DUMP_MS * TAILOR_NS_PER_MS;
	struct demo_process process = {0};
	char log[PATH_MAX];
	int r;

	r = demo_path(ret_path, demo->options.dir, "slowest.out");
	r = r ?: demo_path(log, demo->options.dir, "dump.log");
	r = r
	            ?: demo_process_start(&(struct demo_start){.name = "tailor dump",
	                                                       .argv = argv,
	                                                       .out = ret_path,
	                                                       .log = log,
	                                                       .death_signal = SIGKILL},
	                                  &process);
	if (r < 0)
		return demo_fail("cannot start tailor dump: %s", strerror(-r));
	while (demo_process_running(&process)) {
		r = demo_process_wait(50);
		if (r == 0 && tailor_clock_ns() < deadline_ns)
			continue;
		demo_process_stop(&process, 1000);
		return r < 0 ? r : demo_fail("tailor dump %s does not end", run->timelines);
	}
	return WIFEXITED(process.status) && WEXITSTATUS(process.status) == 0 ? 0 : demo_fail_ended(&process);
}

static int print_file(const char *path)
{
	cleanup_fclose FILE *file = fopen(path, "re");
	char part[4096];
	size_t length;

	if (!file)
		return demo_fail("cannot read %s: %s", path, strerror(errno));
	while ((length = fread(part, 1, sizeof(part), file)) > 0)
		fwrite(part, 1, length, stdout);
	return 0;
}

static uint64_t as_ns(double ms)
{
	return (uint64_t)(ms * 1e6);
}

/* "Longest wait: 115 ms without failover, 4.4 ms with it (26 times shorter)." */
static void print_shorter(const char *what, double off_ms, double on_ms)
{
	char off[32], on[32];

	printf("%s: %s without failover, %s with it (", what, tailor_format_duration(off, sizeof(off), as_ns(off_ms)),
	       tailor_format_duration(on, sizeof(on), as_ns(on_ms)));
	if (on_ms > 0 && off_ms / on_ms >= 1.05)
		printf("%.*f times shorter).\n", off_ms / on_ms < 9.95 ? 1 : 0, off_ms / on_ms);
	else
		printf("not shorter).\n");
}

/* What no server and no proxy can help, and the longest wait may be of. */
static void print_stall(const struct demo_run *run, const char *which)
{
	if (run->repeats > 0)
		printf("The %s run is the one measured %s: the machine itself had stood still for some time before.\n", which,
		       run->repeats == 1 ? "again" : "for the third time");
	if (run->host_stall_ms < 0)
		printf("Whether the machine itself stood still during the %s run is not known: only with the right to "
		       "SCHED_FIFO can that be seen.\n",
		       which);
	else if (run->host_stall_ms > 0)
		printf("The machine itself stood still for up to %.0f ms during the %s run: its host's doing, and it may be "
		       "part of the waits.\n",
		       run->host_stall_ms, which);
}

static int print_text(struct demo *demo, const struct demo_run runs[2])
{
	char path[PATH_MAX];
	int r;

	printf("What the client saw, in ms from when each request was due (%u requests/s for %u s):\n\n",
	       demo->options.rate, demo->options.seconds);
	printf("failover       p50       p99     p99.9       max  requests   bad  collections on active  failed "
	       "over\n");
	for (int i = 0; i < 2; i++) {
		const struct demo_run *run = &runs[i];
		char collections[48];

		snprintf(collections, sizeof(collections), "%lu, up to %.0f ms", (unsigned long)run->collections,
		         run->longest_collection_ms);
		printf("%-8s %9.2f %9.2f %9.2f %9.2f %9lu %5lu %22s %12lu\n", run->failover ? "on" : "off", run->p50_ms,
		       run->p99_ms, run->p999_ms, run->max_ms, (unsigned long)run->requests, (unsigned long)run->bad,
		       collections, (unsigned long)run->failed_over);
	}
	putchar('\n');
	print_stall(&runs[0], "first");
	print_stall(&runs[1], "second");
	print_shorter("Longest wait", runs[0].max_ms, runs[1].max_ms);
	print_shorter("99th percentile", runs[0].p99_ms, runs[1].p99_ms);
	printf("\nThe slowest requests of the first run, and where their time went:\n\n");
	fflush(stdout);
	r = dump(demo, &runs[0], "text", path);
	r = r ?: print_file(path);
	if (r < 0)
		return r;
	printf("\nTimelines, logs and configs are in %s. To look further:\n"
	       "  tailor dump %s --slowest 20\n"
	       "  tailor dump %s --slowest 3\n",
	       demo->options.dir, runs[0].timelines, runs[1].timelines);
	return fflush(stdout) == 0 ? 0 : demo_fail("cannot write to stdout: %s", strerror(errno));
}

static json_t *run_json(const struct demo_run *run)
{
	return json_pack("{s:b, s:s, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:f, s:o, s:I, s:I}", "failover", run->failover, "measured_from", run->measured_from, "p50_ms",
	                 run->p50_ms, "p99_ms", run->p99_ms, "p999_ms", run->p999_ms, "max_ms", run->max_ms, "requests",
	                 (json_int_t)run->requests, "bad", (json_int_t)run->bad, "collections",
	                 (json_int_t)run->collections, "longest_collection_ms", run->longest_collection_ms,
	                 "host_stall_ms", run->host_stall_ms < 0 ? json_null() : json_real(run->host_stall_ms),
	                 "failed_over", (json_int_t)run->failed_over, "repeats", (json_int_t)run->repeats);
}

static int print_json(struct demo *demo, const struct demo_run runs[2])
{
	char path[PATH_MAX];
	json_t *slowest, *object;
	int r = dump(demo, &runs[0], "json", path);

	if (r < 0)
		return r;
	slowest = json_load_file(path, 0, NULL);
	if (!json_is_array(json_object_get(slowest, "timelines"))) {
		json_decref(slowest);
		return demo_fail("tailor dump wrote no list of timelines; see %s", path);
	}
	object = json_pack("{s:[o, o], s:O, s:s}", "runs", run_json(&runs[0]), run_json(&runs[1]), "slowest",
	                   json_object_get(slowest, "timelines"), "timelines", runs[0].timelines);
	r = object && json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) == 0 &&
	                    putchar('\n') == '\n' && fflush(stdout) == 0
	            ? 0
	            : demo_fail("cannot write to stdout: %s", strerror(errno));
	json_decref(object);
	json_decref(slowest);
	return r;
}

int demo_print(struct demo *demo, const struct demo_run runs[2])
{
	return demo->options.json ? print_json(demo, runs) : print_text(demo, runs);
}
