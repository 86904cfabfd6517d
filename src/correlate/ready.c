/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/ready.h"

#include <stdio.h>

#include "base/units.h"

int ready_throttled(const struct stretch *stretch)
{
	if (stretch->state == STRETCH_PREEMPTED)
		return stretch->out && TAILOR_SWITCH_STATE(stretch->out->extra) == TAILOR_TASK_THROTTLED;
	return stretch->state == STRETCH_RUN_QUEUE && stretch->wakeup && (stretch->wakeup->extra & TAILOR_WAKEUP_THROTTLED);
}

static void describe_idle(const struct tailor_event *in, uint64_t woken_ns, char *buffer, size_t size)
{
	uint64_t left_ns = in->arg[1], state = in->arg[2];
	char duration[32];

	if (state == 0 || left_ns == 0 || left_ns > in->time_ns) {
		snprintf(buffer, size, "CPU %u was idle and had to wake up", in->cpu);
		return;
	}
	if (left_ns <= woken_ns) {
		snprintf(buffer, size, "CPU %u had left its idle state %u before", in->cpu, (unsigned int)(state - 1));
		return;
	}
	tailor_format_duration(duration, sizeof(duration), left_ns - woken_ns);
	snprintf(buffer, size, "CPU %u was idle in state %u and needed %s to wake up", in->cpu, (unsigned int)(state - 1), duration);
}

const char *ready_describe(const struct tailor_window *window, const struct stretch *stretch, char *buffer, size_t size)
{
	int preempted = stretch->state == STRETCH_PREEMPTED;
	const struct tailor_event *event = preempted ? stretch->out : stretch->in;
	const char *name = event ? thread_name(window, TAILOR_TASK_TID(event->arg[0])) : NULL;
	char comm[COMM_BYTES];

	buffer[0] = '\0';
	if (ready_throttled(stretch))
		snprintf(buffer, size, "its cgroup had used up its CPU quota");
	else if (event && TAILOR_TASK_TID(event->arg[0]) == 0 && preempted)
		snprintf(buffer, size, "pushed out, and CPU %u went idle", event->cpu);
	else if (event && TAILOR_TASK_TID(event->arg[0]) == 0)
		describe_idle(event, stretch->start_ns, buffer, size);
	else if (event && preempted)
		snprintf(buffer, size, "by %s (pid %u)", name && name[0] ? name : event_comm(event, comm), TAILOR_TASK_PID(event->arg[0]));
	else if (event)
		snprintf(buffer, size, "CPU %u had %s (pid %u)", event->cpu, name && name[0] ? name : event_comm(event, comm),
		         TAILOR_TASK_PID(event->arg[0]));
	return buffer;
}
