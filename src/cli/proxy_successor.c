/* SPDX-License-Identifier: Apache-2.0 */
/* The side of the process from which another one takes over. See takeover_wire.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/listen.h"
#include "base/peer.h"
#include "cli/proxy_run.h"

/* How long the new process may take from having everything to serving, before somebody is told that it hangs. */
#define SLOW_NS (5 * TAILOR_NS_PER_S)
/* Who connects says so at once. One that does not is in nobody's way after this, and is not waited for any longer than that. */
#define SILENT_OTHERS_NS (200 * TAILOR_NS_PER_MS)
#define SILENT_NS (2 * TAILOR_NS_PER_S)
/* To open all that it needs, kernel programs among it. */
#define PREPARES_NS (30 * TAILOR_NS_PER_S)
/* Until the observer has judged what ended a moment ago: it looks every 20 ms, and lets events settle for 10. */
#define OBSERVED_US 50000

int proxy_successor_open(struct proxy_run *run)
{
	struct proxy_successor *successor = &run->successor;
	struct sockaddr_un *address = (struct sockaddr_un *)&successor->address.storage;
	int error = takeover_path(&run->config, address->sun_path, sizeof(address->sun_path));

	address->sun_family = AF_UNIX;
	successor->address.length = sizeof(*address);
	if (error == 0) {
		successor->listener = proxy_takeover_take(run, TAKEOVER_SOCKET, &successor->address);
		successor->borrowed = successor->listener >= 0;
		if (successor->listener < 0)
			successor->listener = tailor_listen(&successor->address, SOCK_SEQPACKET, TAILOR_LISTEN_OWNER);
		error = successor->listener < 0 ? successor->listener : 0;
	}
	/* It serves all the same. */
	if (error)
		proxy_say("without --take-over: cannot listen in timelines.path: %s%s", strerror(-error),
		          error == -ENAMETOOLONG ? "; choose a shorter path" : "");
	return 0;
}

static void hang_up(struct proxy_successor *successor)
{
	if (successor->fd >= 0)
		close(successor->fd);
	successor->fd = -1;
}

void proxy_successor_close(struct proxy_run *run)
{
	struct proxy_successor *successor = &run->successor;

	hang_up(successor);
	if (successor->listener < 0)
		return;
	close(successor->listener);
	successor->listener = -1;
	if (!successor->borrowed)
		unlink(((const struct sockaddr_un *)&successor->address.storage)->sun_path);
}

/* Somebody is connected and has not said for so long what it wants. */
static bool is_silent(const struct proxy_successor *successor, uint64_t ns)
{
	return successor->fd >= 0 && successor->stage == SUCCESSOR_CONNECTED && tailor_clock_ns() - successor->since_ns >= ns;
}

static void give_up_silent(struct proxy_successor *successor)
{
	proxy_say("pid %d connected to the take-over socket and said nothing; not waiting for it any longer", (int)successor->pid);
	hang_up(successor);
}

static void admit(struct proxy_run *run)
{
	struct proxy_successor *successor = &run->successor;
	int fd = accept4(successor->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct tailor_peer peer;

	if (fd < 0)
		return;
	if (tailor_peer_get(fd, &peer) != 0 || !tailor_peer_is_trusted(&peer)) {
		proxy_say("refused pid %d (user %u) at the take-over socket: it is neither root nor this proxy's user", (int)peer.pid,
		          (unsigned int)peer.uid);
		(void)takeover_send(fd, TAKEOVER_FAILED, 0, "only root and the proxy's own user may take over", NULL);
		close(fd);
	} else if (successor->fd >= 0 && !is_silent(successor, SILENT_OTHERS_NS)) {
		(void)takeover_send(fd, TAKEOVER_FAILED, 0, "another process is taking over already", NULL);
		close(fd);
	} else {
		if (successor->fd >= 0)
			give_up_silent(successor);
		successor->fd = fd;
		successor->pid = peer.pid;
		successor->stage = SUCCESSOR_CONNECTED;
		successor->since_ns = tailor_clock_ns();
	}
}

static int offer(struct proxy_run *run)
{
	struct takeover_descriptors descriptors;
	bool is_unix = run->bound.storage.ss_family == AF_UNIX;

	takeover_descriptors_init(&descriptors);
	descriptors.listeners = is_unix ? 1 : run->config.workers;
	memcpy(descriptors.listener, run->listeners, descriptors.listeners * sizeof(*run->listeners));
	if (run->admin)
		descriptors.part[TAKEOVER_ADMIN] = tailor_admin_listener(run->admin);
	if (run->hub)
		descriptors.part[TAKEOVER_AGENTS] = tailor_jvm_hub_listener(run->hub);
	descriptors.part[TAKEOVER_SOCKET] = run->successor.listener;
	descriptors.part[TAKEOVER_LOCK] = tailor_store_writer_lock(run->store);
	return takeover_send(run->successor.fd, TAKEOVER_OFFER, 0, TAILOR_VERSION, &descriptors);
}

/* What two must not do at once. Requests are served, and their lines go to the access log, as before. */
static void let_go(struct proxy_run *run)
{
	struct tailor_observer_status status;

	tailor_observer_status(run->observer, &status);
	run->successor.not_stored = status.not_stored;
	if (run->admin)
		tailor_admin_rest(run->admin);
	if (run->hub)
		tailor_jvm_hub_rest(run->hub);
	tailor_observer_store(run->observer, NULL);
}

static void take_back(struct proxy_run *run)
{
	char text[256];

	tailor_observer_store(run->observer, run->store);
	if (run->hub && tailor_jvm_hub_resume(run->hub) != 0)
		proxy_say("agents cannot come back: restart");
	if (run->admin && tailor_admin_start(run->admin, proxy_status_answer, proxy_status_refused, run, text, sizeof(text)) != 0)
		proxy_say("%s", text);
}

/* The new one will not come. */
static void go_on(struct proxy_run *run, const char *why)
{
	struct proxy_successor *successor = &run->successor;

	if (successor->stage == SUCCESSOR_HAS_ALL)
		take_back(run);
	proxy_say("pid %d has not taken over: %s; going on as before", (int)successor->pid, why);
	hang_up(successor);
}

/* Its files are the new one's to remove. */
static void leave(struct proxy_run *run)
{
	struct proxy_successor *successor = &run->successor;

	if (successor->taken & 1u << TAKEOVER_ADMIN)
		tailor_admin_leave(run->admin, true);
	if (successor->taken & 1u << TAKEOVER_AGENTS)
		tailor_jvm_hub_leave(run->hub, true);
	successor->borrowed = successor->taken & 1u << TAKEOVER_SOCKET;
}

/* Hears one message; false when there is none. */
static bool hear(struct proxy_run *run)
{
	struct proxy_successor *successor = &run->successor;
	struct takeover_message message;
	int error = takeover_receive(successor->fd, &message, NULL);

	if (error == -EAGAIN)
		return false;
	if (error) {
		go_on(run, error == -EPROTO ? "it is of a version that this one does not understand" : "it ended before it served");
	} else if (message.kind == TAKEOVER_FAILED) {
		go_on(run, message.text[0] ? message.text : "it does not say why");
	} else if (message.kind == TAKEOVER_HELLO && successor->stage == SUCCESSOR_CONNECTED) {
		proxy_say("pid %d (tailor %.40s) wants to take over", (int)successor->pid, message.text);
		successor->stage = SUCCESSOR_PREPARES;
		successor->since_ns = tailor_clock_ns();
		if (offer(run) != 0)
			go_on(run, "it does not listen");
	} else if (message.kind == TAKEOVER_READY && successor->stage == SUCCESSOR_PREPARES) {
		let_go(run);
		successor->taken = message.parts;
		successor->stage = SUCCESSOR_HAS_ALL;
		successor->since_ns = tailor_clock_ns();
		/* That it has gone is heard next. */
		(void)takeover_send(successor->fd, TAKEOVER_YOURS, 0, NULL, NULL);
	} else if (message.kind == TAKEOVER_SERVING && successor->stage == SUCCESSOR_HAS_ALL) {
		successor->stage = SUCCESSOR_SERVES;
		leave(run);
		hang_up(successor);
	} else {
		go_on(run, "it does not keep to the order of things");
	}
	return true;
}

void proxy_successor_dispatch(struct proxy_run *run, int connection, int listener)
{
	struct proxy_successor *successor = &run->successor;

	/* All that there is: one that has gone must not be in the way of the next. */
	while ((connection || listener) && successor->fd >= 0 && hear(run))
		;
	if (listener && successor->listener >= 0)
		admit(run);
	if (is_silent(successor, SILENT_NS))
		give_up_silent(successor);
	if (successor->stage == SUCCESSOR_PREPARES && successor->fd >= 0 && tailor_clock_ns() - successor->since_ns >= PREPARES_NS)
		go_on(run, "it has not opened all that it needs for half a minute");
	/* Nothing is taken back while it lives: it may be about to write. */
	if (successor->stage == SUCCESSOR_HAS_ALL && successor->fd >= 0 && tailor_clock_ns() - successor->since_ns > SLOW_NS) {
		proxy_say("pid %d has not begun to serve; requests are served here meanwhile, without timelines; end it, and this one goes on",
		          (int)successor->pid);
		successor->since_ns = tailor_clock_ns();
	}
}

void proxy_successor_say_lost(struct proxy_run *run)
{
	struct tailor_observer_status status;

	if (run->successor.stage != SUCCESSOR_SERVES)
		return;
	usleep(OBSERVED_US);
	tailor_observer_status(run->observer, &status);
	if (status.not_stored > run->successor.not_stored)
		proxy_say("slow requests that ended here since and have no timeline: %llu",
		          (unsigned long long)(status.not_stored - run->successor.not_stored));
}

bool proxy_successor_is_due(const struct proxy_run *run)
{
	return run->successor.fd >= 0 && run->successor.stage == SUCCESSOR_HAS_ALL;
}

bool proxy_successor_turn_away(struct proxy_run *run)
{
	struct proxy_successor *successor = &run->successor;

	if (successor->fd < 0)
		return false;
	if (successor->stage == SUCCESSOR_HAS_ALL) {
		leave(run);
		return true;
	}
	(void)takeover_send(successor->fd, TAKEOVER_FAILED, 0, "it was told to stop", NULL);
	hang_up(successor);
	return false;
}
