/* SPDX-License-Identifier: Apache-2.0 */
/* A loop and its pool, of which a worker serves the request. */
#ifndef TAILOR_TESTS_SCENE_POOL_H
#define TAILOR_TESTS_SCENE_POOL_H

#include "scene.h"

/* Another request at the server, from its receive to its write, by a thread of its own that is done 100 us later; id 0: it came past the proxy. */
static inline void other_is_there(struct scene *scene, uint64_t from_us, uint64_t to_us, uint64_t id)
{
	struct tailor_event *event = socket_event(scene, from_us, TAILOR_EVENT_RECEIVE, SECOND, 0, 1, 100, id);

	event->extra = TAILOR_PORTS(8080, PORT + 1);
	event = socket_event(scene, to_us, TAILOR_EVENT_SYSCALL_WRITE, SECOND, 0, 1, 100, id);
	event->extra = TAILOR_PORTS(8080, PORT + 1);
	sleeps_in(scene, to_us + 100, SECOND, TAILOR_TASK_SLEEPING, CALL_EPOLL + 1);
}

/* The loop reads the request and gives it to the worker, which has slept since 600 and wakes the loop at 1900. */
static inline void worker_serves(struct scene *scene)
{
	sleeps(scene, 600, WORKER);
	wake(scene, 1030, WORKER, LOOP)->request = REQUEST;
	sleeps(scene, 1035, LOOP);
	in(scene, 1040, WORKER, IDLE);
	wakes(scene, 1900, LOOP, WORKER, 1910);
	sleeps(scene, 1905, WORKER);
}

#endif /* TAILOR_TESTS_SCENE_POOL_H */
