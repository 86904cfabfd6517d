# SPDX-License-Identifier: Apache-2.0
"""Clients that do not take their response: what the request channel says of it. See proxy_harness.py."""
import os
import socket
import tempfile
import time

from proxy_harness import (BEGIN, CLIENT, CLIENT_WAIT, DONE, END, REPLY_BEGIN, Backend, Client, Proxy, check_events, ok, run, until)

MS = 1_000_000
BODY = 8 << 20


def body_of(request, _):
    return ok(b"x" * int(request.target[1:]))


class Reader(Client):
    """A client that reads when it is told to, into a buffer of so many bytes."""

    def __init__(self, port, receive_bytes=0, path=""):
        self.socket = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(20)
        self.socket.connect(path or ("127.0.0.1", port))
        self.buffer = b""

    def ask(self, bytes):
        self.send(f"GET /{bytes} HTTP/1.1\r\nHost: x\r\n\r\n".encode())

    def stall(self, seconds):
        """Takes nothing for so long from the response's first byte on."""
        assert self.socket.recv(1, socket.MSG_PEEK)
        time.sleep(seconds)

    def take(self, bytes):
        """Reads so many bytes and forgets them."""
        while bytes > 0:
            data = self.socket.recv(min(bytes, 1 << 20))
            assert data, "closed early"
            bytes -= len(data)

    def take_response(self, bytes):
        while b"\r\n\r\n" not in self.buffer:
            self.more()
        head, rest = self.buffer.split(b"\r\n\r\n", 1)
        self.buffer = b""
        self.take(bytes - len(rest))


class Wait:
    def __init__(self, event):
        self.start, self.end, self.bytes = event.arg[0], event.time, event.arg[1]
        self.window_us, self.buffer_us = event.arg[2] >> 32, event.arg[2] & 0xffffffff
        self.ns = self.end - self.start

    def __repr__(self):
        return f"<{self.ns / 1e6:.2f} ms, {self.bytes} bytes, window {self.window_us} us, buffer {self.buffer_us} us>"


def waits_of(events):
    """The waits of the one request in the list, each checked for what must be so of any."""
    own, = check_events(events).values()
    waits = [Wait(event) for event in own if event.kind == CLIENT_WAIT]
    begin, = [event.time for event in own if event.kind == REPLY_BEGIN]
    for wait in waits:
        assert wait.start >= begin and wait.ns >= 200_000 and wait.bytes > 0, (wait, own)
        assert wait.window_us + wait.buffer_us <= wait.ns // 1000, wait
        begin = wait.end
    assert begin <= own[-1].time
    return waits, own


def a_client_that_reads_late_with_a_small_window():
    with Proxy(Backend(body_of)) as proxy, Reader(proxy.port, 4096) as client:
        client.ask(BODY)
        client.stall(0.15)
        client.take_response(BODY)
        waits, own = waits_of(proxy.events())
        assert own[-1].arg[1] == DONE
        longest = max(waits, key=lambda wait: wait.ns)
        assert 100 * MS < longest.ns < 400 * MS, waits
        # Most of it: the rest is until the proxy's side has noticed, and what the kernel's count is too coarse for.
        assert longest.window_us * 1000 > longest.ns * 0.7, longest


def short_waits_have_their_window_too():
    """Of a few ms, less than the kernel's own count of them need show."""
    with Proxy(Backend(body_of)) as proxy:
        found = []
        # On a busy machine most of them get longer.
        for _ in range(20):
            if len(found) >= 5:
                break
            with Reader(proxy.port, 4096) as client:
                client.ask(BODY)
                client.stall(0.003)
                client.take_response(BODY)
            waits, _ = waits_of(proxy.events())
            found += [wait for wait in waits if 1 * MS < wait.ns < 8 * MS]
        if not found:
            print("        (this machine is too busy for a short wait)")
        assert len([wait for wait in found if wait.window_us * 1000 > wait.ns * 0.9]) >= 0.8 * len(found), found


def read_in_small_steps(size):
    """The waits that were told, and all of the request's events."""
    with Proxy(Backend(body_of)) as proxy, Reader(proxy.port, 32768) as client:
        client.ask(size)
        while b"\r\n\r\n" not in client.buffer:
            client.more()
        left = size - len(client.buffer.split(b"\r\n\r\n", 1)[1])
        while left > 0:
            left -= len(client.socket.recv(min(left, 32768)))
            time.sleep(0.0003)
        return waits_of(proxy.events())


def a_client_that_reads_in_small_steps_waits_for_the_whole_of_it():
    """None of its waits need be worth an event alone. Where the machine is busy they may all be, and too far apart to be one."""
    for _ in range(3):
        waits, own = read_in_small_steps(12 << 20)
        begin, = [event.time for event in own if event.kind == REPLY_BEGIN]
        together = [event for event in own if event.kind == CLIENT_WAIT and event.extra]
        assert all(event.extra * 1000 <= event.time - event.arg[0] for event in together), own
        assert sum(wait.ns for wait in waits) > 0.25 * (own[-1].time - begin), waits
        assert any(wait.window_us for wait in waits), waits
        if together:
            break
    assert together, own


def joined_ns(waits):
    """How long they were, those that follow each other at once taken together: a probe of the window may let some bytes through in between."""
    found = []
    for before, wait in zip([None, *waits], waits):
        if before and wait.start - before.end < MS:
            found[-1] += wait.ns
        else:
            found.append(wait.ns)
    return found


def each_stop_of_the_reader_is_a_wait_of_its_own():
    with Proxy(Backend(body_of)) as proxy, Reader(proxy.port, 4096) as client:
        client.ask(40 << 20)
        client.stall(0.1)
        while b"\r\n\r\n" not in client.buffer:
            client.more()
        left = (40 << 20) - len(client.buffer.split(b"\r\n\r\n", 1)[1])
        for _ in range(3):
            client.take(10 << 20)
            left -= 10 << 20
            time.sleep(0.1)
        client.take(left)
        waits, _ = waits_of(proxy.events())
        assert len([ns for ns in joined_ns(waits) if ns > 80 * MS]) >= 4, waits


def the_same_response_reframed():
    """Out of the proxy's own buffer, not the server's."""
    def until_close(request, connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * BODY)

    with Proxy(Backend(until_close)) as proxy, Reader(proxy.port, 4096) as client:
        client.ask(BODY)
        client.stall(0.1)
        assert client.response().body == b"x" * BODY
        waits, _ = waits_of(proxy.events())
        assert max(wait.ns for wait in waits) > 50 * MS, waits


def who_takes_all_at_once_waits_for_nothing():
    with Proxy(Backend(body_of)) as proxy, proxy.connect() as client:
        for _ in range(200):
            for size in (84, 3000, 9000):
                client.send(f"GET /{size} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                assert len(client.response().body) == size
        events = proxy.events()
        assert len(check_events(events)) == 600 and not [event for event in events if event.kind == CLIENT_WAIT]


def the_server_that_is_slow_is_no_wait_of_the_client():
    def slow(request, connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        for _ in range(10):
            time.sleep(0.01)
            connection.sendall(b"x" * 10000)
        return b""

    with Proxy(Backend(slow)) as proxy:
        assert len(proxy.get().body) == 100000
        assert waits_of(proxy.events())[0] == []


def a_wait_that_the_client_ends_by_going():
    with Proxy(Backend(body_of)) as proxy:
        client = Reader(proxy.port, 4096)
        client.ask(BODY)
        client.stall(0.1)
        client.reset()
        waits, own = waits_of(proxy.events())
        assert own[-1].arg[1] == CLIENT and own[-2].kind == CLIENT_WAIT and waits[-1].ns > 50 * MS, own


def a_wait_that_the_proxy_has_enough_of():
    with Proxy(Backend(body_of), body_ms=100) as proxy, Reader(proxy.port, 4096) as client:
        client.ask(BODY)
        until(lambda: proxy.status()["client_gone"] == 1, "the proxy waits for ever")
        waits, own = waits_of(proxy.events())
        assert own[-1].arg[1] == CLIENT and 80 * MS < waits[-1].ns < 1000 * MS, own


def clients_on_a_unix_socket_wait_too():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "proxy.sock")
        with Proxy(Backend(body_of), listen="unix:" + path) as proxy, Reader(0, path=path) as client:
            client.ask(BODY)
            client.stall(0.1)
            client.take_response(BODY)
            waits, _ = waits_of(proxy.events())
            assert max(wait.ns for wait in waits) > 50 * MS and not any(wait.window_us or wait.buffer_us for wait in waits), waits


def a_wait_belongs_to_its_request_alone():
    with Proxy(Backend(body_of)) as proxy, Reader(proxy.port, 4096) as client:
        client.ask(BODY)
        client.ask(10)
        client.stall(0.1)
        client.take_response(BODY)
        assert client.response().body == b"x" * 10
        first, second = check_events(proxy.events()).values()
        assert first[0].kind == BEGIN and [event for event in first if event.kind == CLIENT_WAIT]
        assert not [event for event in second if event.kind == CLIENT_WAIT] and second[-1].kind == END


run([a_client_that_reads_late_with_a_small_window, short_waits_have_their_window_too,
     a_client_that_reads_in_small_steps_waits_for_the_whole_of_it, each_stop_of_the_reader_is_a_wait_of_its_own,
     the_same_response_reframed, who_takes_all_at_once_waits_for_nothing, the_server_that_is_slow_is_no_wait_of_the_client,
     a_wait_that_the_client_ends_by_going, a_wait_that_the_proxy_has_enough_of, clients_on_a_unix_socket_wait_too,
     a_wait_belongs_to_its_request_alone])
