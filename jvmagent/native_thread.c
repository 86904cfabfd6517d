/* SPDX-License-Identifier: Apache-2.0 */
#include "native_thread.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "events.h"
#include "java_thread.h"
#include "notify.h"
#include "safepoints.h"

#define NS_PER_MS UINT64_C(1000000)
#define THREAD_STACK_BYTES (256 * 1024)

static struct {
	struct sockaddr_un address;
	int offered; /* atomic */
} native;

/* Returns a connected descriptor over which the hello was sent, or a negative errno. */
static int connect_to_proxy(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int result;

	if (fd < 0)
		return -errno;
	/* Non-blocking: with a full backlog it is EAGAIN at once, never a connection in progress (unix(7)). */
	result = connect(fd, (const struct sockaddr *)&native.address, sizeof(native.address)) < 0 ? -errno : 0;
	if (result == 0)
		result = notify_hand_over(fd);
	if (result < 0) {
		close(fd);
		return result;
	}
	return fd;
}

/* A proxy that is not there, or not yet reading, is the normal course of things; anything else a person must mend. */
static int worth_saying(int error)
{
	return error != -ENOENT && error != -ECONNREFUSED && error != -EAGAIN && error != -EPIPE &&
	       error != -ECONNRESET && error != -EINTR;
}

static int lose_proxy(int fd)
{
	close(fd);
	/* The next one has not got the memory yet. */
	notify_forget_proxy();
	return -1;
}

static void *run(void *unused)
{
	const uint32_t tid = (uint32_t)gettid();
	uint64_t connect_at_ns = 0;
	int said = 0, fd = -1;

	(void)unused;
	while (!notify_is_gone()) {
		const int offered = __atomic_load_n(&native.offered, __ATOMIC_ACQUIRE);
		uint64_t now_ns = clock_ns();
		struct pollfd proxy;

		__atomic_store_n(&notify_page()->heartbeat_ns, now_ns, __ATOMIC_RELEASE);
		safepoints_beat(tid);
		gc_beat();
		if (fd >= 0)
			java_thread_beat();
		if (fd < 0 && now_ns >= connect_at_ns && offered) {
			connect_at_ns = now_ns + TAILOR_JVM_RECONNECT_MS * NS_PER_MS;
			fd = connect_to_proxy();
			if (fd < 0 && worth_saying(fd) && !said) {
				said = 1;
				say("cannot reach the proxy at %s: %s; %s; trying on", native.address.sun_path, strerror(-fd),
				    fd == -EACCES ? "set agent.group in the proxy's configuration to a group of this "
						    "JVM's user, who must also be able to enter the socket's directory"
						  : "check the socket");
			}
		}
		proxy = (struct pollfd){.fd = fd, .events = POLLIN | POLLRDHUP}; /* a negative fd is skipped */
		/* Without a proxy nobody looks at the heartbeat; one may be waiting while the rest of the agent still starts. */
		if (poll(&proxy, 1, fd >= 0 ? TAILOR_JVM_HEARTBEAT_MS : offered ? TAILOR_JVM_RECONNECT_MS : 1) < 0)
			clock_nanosleep(CLOCK_MONOTONIC, 0,
			                &(struct timespec){.tv_nsec = TAILOR_JVM_HEARTBEAT_MS * 1000000}, NULL);
		/* The connection is silent in both directions: what there is to read is its end, or not our proxy. */
		if (fd >= 0 && proxy.revents) {
			fd = lose_proxy(fd);
			connect_at_ns = clock_ns() + TAILOR_JVM_RECONNECT_MS * NS_PER_MS;
		}
	}
	if (fd >= 0)
		close(fd);
	return NULL;
}

/* A small thread that takes no signal: those are the JVM's. */
static int start_thread(void)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;
	int error;

	error = pthread_attr_init(&attributes);
	if (error)
		return -error;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, THREAD_STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&thread, &attributes, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	if (error)
		return -error;
	pthread_setname_np(thread, "tailor-agent");
	return 0;
}

int native_thread_start(const char *path, const char **ret_what)
{
	*ret_what = "socket path too long";
	if (strlen(path) >= sizeof(native.address.sun_path))
		return -ENAMETOOLONG;
	native.address.sun_family = AF_UNIX;
	strcpy(native.address.sun_path, path);
	*ret_what = "starting a thread";
	return start_thread();
}

void native_thread_offer(uint64_t can)
{
	notify_page()->can = can;
	__atomic_store_n(&native.offered, 1, __ATOMIC_RELEASE);
}
