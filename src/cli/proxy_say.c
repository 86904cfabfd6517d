/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/proxy_run.h"

/* How often the same trouble is said at most. */
#define STORE_SAID_AGAIN_NS (60 * TAILOR_NS_PER_S)

/* Of the calling thread: what the control thread said is not what the admin thread says meanwhile. */
static _Thread_local char last[512];

const char *proxy_said_last(void)
{
	return last;
}

void proxy_say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(last, sizeof(last), format, arguments);
	va_end(arguments);
	fprintf(stderr, "tailor: %s\n", last);
}

/* Says when the access log begins to be lost, and when it is written again. */
static void say_log_error(struct proxy_run *run, const struct tailor_observer_status *status)
{
	const char *path = run->config.access_log_path;

	if (status->access_log_error == run->log_error_said ||
	    (run->log_error_said_ns && tailor_clock_ns() - run->log_error_said_ns < STORE_SAID_AGAIN_NS))
		return;
	run->log_error_said = status->access_log_error;
	run->log_error_said_ns = tailor_clock_ns();
	if (status->access_log_error)
		proxy_say("access_log.path: cannot write to %s: %s; lines wait, and are lost when there are too many", path,
		          strerror(-status->access_log_error));
	else
		proxy_say("access_log.path: %s is written again; %llu lines were lost so far", path,
		          (unsigned long long)status->access_log_lost);
}

/* Says when timelines begin to be lost, and when they are kept again. */
void proxy_say_trouble(struct proxy_run *run)
{
	const char *path = run->config.timelines_path;
	struct tailor_observer_status status;

	tailor_observer_status(run->observer, &status);
	say_log_error(run, &status);
	/* On an almost full disk some still fit. */
	if (status.store_error == run->store_error_said ||
	    (run->store_error_said_ns && tailor_clock_ns() - run->store_error_said_ns < STORE_SAID_AGAIN_NS))
		return;
	run->store_error_said = status.store_error;
	run->store_error_said_ns = tailor_clock_ns();
	if (!status.store_error)
		proxy_say("timelines.path: timelines are kept again in %s", path);
	else if (status.store_error == -ENOENT)
		proxy_say("timelines.path: %s was removed, so timelines are lost; restart to make it anew", path);
	else
		proxy_say("timelines.path: cannot write to %s: %s; timelines are lost until there is space and it is writable", path,
		          strerror(-status.store_error));
}

void proxy_say_missing(const struct proxy_run *run)
{
	const struct tailor_probe *probes;
	size_t count;

	if (!run->kernel)
		proxy_say("without kernel events: %s", run->kernel_error);
	count = run->kernel ? tailor_kernel_probes(run->kernel, &probes) : 0;
	for (size_t i = 0; i < count; i++) {
		if (!probes[i].attached && !probes[i].unasked)
			proxy_say("without probe %s: %s", probes[i].name, probes[i].reason);
	}
	if (!run->hub)
		proxy_say("without JVM events and failover on GC: configure agent.socket and start the JVM with the agent");
	if (run->config.servers < 2)
		proxy_say("without a backup: requests cannot be moved during a pause; configure a second server");
}
