/* SPDX-License-Identifier: Apache-2.0 */
/* A hub on a socket of its own, and what it said, as the tests of the hub need it. */
#ifndef TAILOR_TESTS_UNIT_JVM_HUB_HERE_H
#define TAILOR_TESTS_UNIT_JVM_HUB_HERE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/listen.h"
#include "collect/jvm.h"

static char directory[] = "/tmp/tailor-hub-XXXXXX";
static char path[sizeof(directory) + 8];

/* What the hub said. */
static struct {
	struct tailor_jvm *jvm;
	int attached, detached, refused;
	char reason[128];
} seen;

static inline void on_attached(void *context, struct tailor_jvm *jvm)
{
	assert_ptr_equal(context, &seen);
	seen.attached++;
	seen.jvm = jvm;
}

static inline void on_detached(void *context, struct tailor_jvm *jvm)
{
	assert_ptr_equal(context, &seen);
	assert_non_null(jvm);
	seen.detached++;
}

static pid_t other_peer __attribute__((unused)); /* the last process that connected besides this one */

static inline void on_refused(void *context, pid_t pid, const char *reason)
{
	assert_ptr_equal(context, &seen);
	assert_true(pid == getpid() || pid == other_peer);
	seen.refused++;
	snprintf(seen.reason, sizeof(seen.reason), "%s", reason);
}

static const struct tailor_jvm_events events = {
        .attached = on_attached, .detached = on_detached, .refused = on_refused, .context = &seen};

static struct tailor_jvm_hub *new_hub(void)
{
	struct tailor_jvm_hub *hub = NULL;
	char error[256] = "";

	memset(&seen, 0, sizeof(seen));
	assert_int_equal(tailor_jvm_hub_open(path, TAILOR_LISTEN_OWNER, &events, &hub, error, sizeof(error)), 0);
	return hub;
}

static inline void dispatch(struct tailor_jvm_hub *hub)
{
	struct pollfd ready = {.fd = tailor_jvm_hub_fd(hub), .events = POLLIN};

	for (int i = 0; i < 100 && poll(&ready, 1, 0) == 1; i++)
		tailor_jvm_hub_dispatch(hub);
	assert_int_equal(poll(&ready, 1, 0), 0);
}

static inline int connect_peer(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, path);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* For the whole group of tests. */
static inline int make_directory(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/socket", directory);
	return 0;
}

static inline int remove_directory(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(directory);
}

#endif /* TAILOR_TESTS_UNIT_JVM_HUB_HERE_H */
