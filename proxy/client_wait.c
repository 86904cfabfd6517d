/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/client_wait.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

#include "proxy/record.h"

/* The kernel counts the times that limit a sender in its own ticks, of up to 10 ms (CONFIG_HZ). */
#define TICK_US 10000
/* Waits that are farther apart are not told as one, unless the client was the limit in between, too. */
#define APART_NS TAILOR_NS_PER_MS

/* False for a Unix socket. It takes the socket's lock, which nobody but this thread and the network's interrupts ever takes. */
static bool ask(const struct client *client, struct tcp_info *ret_info)
{
	socklen_t length = sizeof(*ret_info);

	*ret_info = (struct tcp_info){0};
	return getsockopt(client->connection.fd, IPPROTO_TCP, TCP_INFO, ret_info, &length) == 0 &&
	       length >= offsetof(struct tcp_info, tcpi_sndbuf_limited) + sizeof(ret_info->tcpi_sndbuf_limited);
}

/* There is something to send, and less than a segment of room for it at the client: what the kernel calls limited by the window. */
static bool is_window_closed(const struct tcp_info *info)
{
	uint64_t in_flight = info->tcpi_bytes_sent - info->tcpi_bytes_retrans - info->tcpi_bytes_acked;

	return info->tcpi_notsent_bytes > 0 && info->tcpi_snd_wnd < in_flight + info->tcpi_snd_mss;
}

void client_wait_begin(struct worker *worker, struct client *client)
{
	struct client_wait *wait = &client->wait;
	struct tcp_info info;

	*wait = (struct client_wait){.since_ns = worker->now_ns};
	/* Nobody will ask: a tunnel, a refused connection. */
	if (client->exchange.id == 0 || !ask(client, &info))
		return;
	wait->window_us = info.tcpi_rwnd_limited;
	wait->buffer_us = info.tcpi_sndbuf_limited;
	wait->window_closed = is_window_closed(&info);
	wait->all_sent = info.tcpi_notsent_bytes == 0;
	wait->asked = true;
}

/* Of a wait of so long. What limited it when it began did so all the time if the count allows that: that may be a tick short. */
static uint32_t limited_us(uint64_t counted_us, uint64_t waited_us, bool from_the_beginning)
{
	if (from_the_beginning && counted_us + TICK_US >= waited_us)
		counted_us = waited_us;
	if (counted_us > waited_us)
		counted_us = waited_us;
	return counted_us < UINT32_MAX ? (uint32_t)counted_us : UINT32_MAX;
}

/* What TCP counted in a stretch of so long, at least: a moment may count as a tick. */
static uint32_t counted_us(uint64_t from_us, uint64_t to_us, uint64_t all_us)
{
	uint64_t us = to_us > from_us + TICK_US ? to_us - from_us - TICK_US : 0;

	if (us > all_us)
		us = all_us;
	return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

/* The waits so far as one event. */
static void tell(struct worker *worker, struct client *client)
{
	const struct client_waits waits = client->waits;
	uint64_t all_us = (waits.until_ns - waits.since_ns) / TAILOR_NS_PER_US, sum_us = waits.sum_ns / TAILOR_NS_PER_US;
	uint32_t window_us = waits.window_us, buffer_us = waits.buffer_us;
	uint64_t arg[3];

	client->waits.count = 0;
	if (waits.sum_ns < TAILOR_PROXY_CLIENT_WAIT_NS || client->exchange.id == 0)
		return;
	if (waits.count > 1) {
		window_us = counted_us(waits.first_window_us, waits.last_window_us, all_us);
		buffer_us = counted_us(waits.first_buffer_us, waits.last_buffer_us, all_us - window_us);
	}
	arg[0] = waits.since_ns;
	arg[1] = waits.bytes;
	arg[2] = TAILOR_CLIENT_WAIT(window_us, buffer_us);
	if (waits.count == 1)
		sum_us = 0;
	record_at(worker, waits.until_ns, TAILOR_EVENT_CLIENT_WAIT, client->exchange.id,
	          sum_us < UINT32_MAX ? (uint32_t)sum_us : UINT32_MAX, arg, NULL, 0);
}

/* Whether what has passed between two moments at which TCP was asked is the client's time, too. */
static bool is_near(uint64_t from_ns, uint64_t from_us, uint64_t to_ns, uint64_t to_us)
{
	uint64_t all_us = (to_ns - from_ns) / TAILOR_NS_PER_US;

	return to_ns - from_ns <= APART_NS || 2 * (uint64_t)counted_us(from_us, to_us, all_us) >= all_us;
}

/* The first wait of a connection's first response: TCP has counted since its beginning. */
static bool waited_from_the_beginning(const struct client *client, const struct client_wait *wait)
{
	return client->waits.from_zero && wait->asked && client->exchange.reply_ns && client->exchange.reply_ns < wait->since_ns &&
	       is_near(client->exchange.reply_ns, 0, wait->since_ns, wait->window_us + wait->buffer_us);
}

static void add(struct client *client, const struct client_wait *wait, uint64_t now_ns, uint32_t window_us, uint32_t buffer_us)
{
	struct client_waits *waits = &client->waits;

	if (waits->count == 0) {
		bool whole = waited_from_the_beginning(client, wait);

		*waits = (struct client_waits){.count = whole, .since_ns = whole ? client->exchange.reply_ns : wait->since_ns};
		if (!whole) {
			waits->first_window_us = wait->window_us;
			waits->first_buffer_us = wait->buffer_us;
		}
	}
	waits->count++;
	waits->until_ns = now_ns;
	waits->sum_ns += now_ns - wait->since_ns;
	if (wait->bytes > waits->bytes)
		waits->bytes = wait->bytes;
	waits->window_us = window_us;
	waits->buffer_us = buffer_us;
	/* As of now: nobody asks again at the end of a short wait. */
	waits->last_window_us = wait->window_us + window_us;
	waits->last_buffer_us = wait->buffer_us + buffer_us;
}

void client_wait_end(struct worker *worker, struct client *client)
{
	const struct client_wait wait = client->wait;
	struct client_waits *waits = &client->waits;
	uint32_t window_us = 0, buffer_us = 0;
	struct tcp_info info;
	uint64_t waited_us;

	client->wait.since_ns = 0;
	if (wait.since_ns == 0 || client->exchange.id == 0)
		return;
	waited_us = (worker->now_ns - wait.since_ns) / TAILOR_NS_PER_US;
	if (worker->now_ns - wait.since_ns < TAILOR_PROXY_CLIENT_WAIT_NS) {
		window_us = wait.asked && wait.window_closed ? (uint32_t)waited_us : 0;
	} else if (wait.asked && ask(client, &info)) {
		window_us = limited_us(info.tcpi_rwnd_limited - wait.window_us, waited_us, wait.window_closed);
		buffer_us = limited_us(info.tcpi_sndbuf_limited - wait.buffer_us, waited_us - window_us, wait.all_sent);
	}
	if (waits->count && !is_near(waits->until_ns, waits->last_window_us + waits->last_buffer_us, wait.since_ns,
	                             wait.window_us + wait.buffer_us))
		tell(worker, client);
	add(client, &wait, worker->now_ns, window_us, buffer_us);
}

void client_wait_finish(struct worker *worker, struct client *client)
{
	client_wait_end(worker, client);
	if (client->waits.count)
		tell(worker, client);
	client->waits.from_zero = false;
}
