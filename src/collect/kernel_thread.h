/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room: its own threads. */
#ifndef TAILOR_COLLECT_KERNEL_THREAD_H
#define TAILOR_COLLECT_KERNEL_THREAD_H

#include <pthread.h>
#include <signal.h>

/* Starts a thread that no signal is delivered to: those are for the threads that expect them. Returns 0 or a negative errno. */
static inline int tailor_kernel_thread_start(pthread_t *ret_thread, void *(*run)(void *context), void *context)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(ret_thread, NULL, run, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -error;
}

#endif /* TAILOR_COLLECT_KERNEL_THREAD_H */
