/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says which request a thread works for, where Tailor cannot see it: for native code in a JVM that has the agent
 * (what io.tailor.Tailor is for Java). Where there is no agent, both calls do nothing. Nothing to link but libc;
 * needs _GNU_SOURCE.
 *
 *   tailor_application_begin(request);
 *   search();
 *   tailor_application_end(request);
 *
 * The request's id is the number that servers get as X-Tailor-Request-Id or, where that is absent, as the parent id
 * of `traceparent`: 16 hexadecimal digits. A begin replaces the one before it on the same thread; an end ends only
 * what was begun with the same id.
 */
#ifndef TAILOR_APPLICATION_H
#define TAILOR_APPLICATION_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

typedef void (*tailor_application_call)(uint64_t request);

/*
 * The agent's function of that name, or NULL. The JVM loads agents for itself alone, so the agent is asked for by its
 * name among what is loaded; nothing gets loaded by this.
 */
static inline tailor_application_call tailor_application_find(const char *name)
{
	void *agent = dlopen("libtailor-agent.so", RTLD_LAZY | RTLD_NOLOAD);

	return agent ? (tailor_application_call)dlsym(agent, name) : (tailor_application_call)0;
}

struct tailor_application_link {
	const char *name;
	tailor_application_call call;
	int looked; /* atomic: `call` is set, if there is one */
};

static inline void tailor_application_say(struct tailor_application_link *link, uint64_t request)
{
	tailor_application_call call;

	/* Two threads may both look; they find the same. */
	if (!__atomic_load_n(&link->looked, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(&link->call, tailor_application_find(link->name), __ATOMIC_RELAXED);
		__atomic_store_n(&link->looked, 1, __ATOMIC_RELEASE);
	}
	call = __atomic_load_n(&link->call, __ATOMIC_RELAXED);
	if (call)
		call(request);
}

/*
 * The calling thread works for `request` from now on; 0: nothing is done. Any thread; some 100 ns, and a look at what
 * is loaded the first time in each file that uses it. Never blocks or fails. An agent that is loaded later than that
 * is not found any more. On a virtual thread, its number is known only where the agent watches virtual threads (its
 * option vthreads).
 */
static inline void tailor_application_begin(uint64_t request)
{
	static struct tailor_application_link link = {.name = "tailor_agent_begin"};

	tailor_application_say(&link, request);
}

/* It works for it no longer. As above. */
static inline void tailor_application_end(uint64_t request)
{
	static struct tailor_application_link link = {.name = "tailor_agent_end"};

	tailor_application_say(&link, request);
}

#endif /* TAILOR_APPLICATION_H */
