/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's native thread: beats the heartbeat, and what has to be looked at that often, and hands the page over to the proxy. */
#ifndef TAILOR_JVMAGENT_NATIVE_THREAD_H
#define TAILOR_JVMAGENT_NATIVE_THREAD_H

#include <stdint.h>
#include <sys/un.h>

#define NATIVE_THREAD_PATH_BYTES sizeof(((struct sockaddr_un *)0)->sun_path)

/*
 * Starts it; it connects to the proxy's socket at `path` (copied) from native_thread_offer() on, again and again, until notify_gone(). Once per
 * process, after notify_open(). Returns 0, or a negative errno with what failed in *ret_what (static text).
 */
int native_thread_start(const char *path, const char **ret_what);

/* From now on the memory is offered to the proxy; `can` is what the page says the agent can (TAILOR_JVM_CAN_...). Once. */
void native_thread_offer(uint64_t can);

#endif /* TAILOR_JVMAGENT_NATIVE_THREAD_H */
