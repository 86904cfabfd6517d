#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The data path over real sockets: its connections, their number, their tags, and what the workers say about them."""
import contextlib
import os
import signal
import socket
import tempfile
import threading
import time

from proxy_harness import *


def connections_to_servers_are_kept_and_shared():
    backend = Backend()
    with Proxy(backend) as proxy:
        for i in range(20):
            assert proxy.get(f"/{i}").body == f"hello /{i}".encode()
        assert backend.connections == 1
        until(lambda: proxy.status()["requests"] == 20, "the last one's end is counted")
        status = proxy.status()
        assert status["server"][0]["connects"] == 1 and status["server"][0]["responses"] == 20


def a_connection_that_its_server_has_closed_meanwhile_is_not_used():
    def answer(request, connection):
        # As servers do that never say that they will close.
        threading.Timer(0.05, connection.shutdown, (socket.SHUT_RDWR,)).start()
        return ok(b"x")

    backend = Backend(answer)
    with Proxy(backend) as proxy:
        for _ in range(3):
            assert proxy.get("/", "POST", "Content-Length: 1\r\n", b"x").status == 200
            time.sleep(0.15)
        assert backend.connections == 3
        assert [event.reason for event in proxy.events() if event.begins] == [0, 0, 0]


def connections_of_a_past_peak_are_closed_when_unused():
    together = threading.Barrier(8)

    def answer(request, connection):
        if request.target == "/together":
            together.wait(5)
        return ok(b"x")

    backend = Backend(answer)
    with Proxy(backend, idle_ms=400) as proxy:
        clients = [threading.Thread(target=proxy.get, args=("/together",)) for _ in range(8)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        def sockets():
            count = 0
            for fd in os.listdir(f"/proc/{proxy.process.pid}/fd"):
                with contextlib.suppress(FileNotFoundError):  # closed since it was listed
                    count += os.readlink(f"/proc/{proxy.process.pid}/fd/{fd}").startswith("socket:")
            return count

        peak = sockets()
        for _ in range(15):
            proxy.get("/one")
            time.sleep(0.1)
        assert sockets() <= peak - 7, f"{peak} sockets at the peak, {sockets()} now"
        assert backend.connections == 8, "the one in use was closed, too"


def unix_sockets_work_on_both_sides():
    with tempfile.TemporaryDirectory() as directory:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"{directory}/server")
        listener.listen(8)

        def serve():
            for _ in range(2):
                connection, _ = listener.accept()
                connection.recv(65536)
                connection.sendall(ok(b"unix", "Connection: close\r\n"))
                connection.close()

        threading.Thread(target=serve, daemon=True).start()
        for workers in (1, 2):
            # The second proxy finds nothing of the first in its way.
            with Proxy(f"unix:{directory}/server", listen=f"unix:{directory}/proxy", workers=workers):
                client = socket.socket(socket.AF_UNIX)
                client.connect(f"{directory}/proxy")
                client.sendall(b"GET / HTTP/1.0\r\n\r\n")
                assert client.makefile("rb").read().endswith(b"unix")
                client.close()


def clients_that_reset_before_they_are_accepted_leave_nothing_behind():
    with Proxy(Backend(), connections=4096) as proxy:
        for _ in range(20):
            for _ in range(60):
                client = proxy.connect()
                client.send(b"GET / HTTP/1.1\r\nHost: ")
                client.reset()
            time.sleep(0.01)
        until(lambda: proxy.status()["clients"] == 0, "clients leave")
        assert proxy.get().status == 200


def one_connection_too_many_is_told_so():
    backend = Backend()
    with Proxy(backend, connections=2) as proxy:
        clients = [proxy.connect() for _ in range(2)]
        for client in clients:
            client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert client.response().status == 200
        with proxy.connect() as client:
            response = client.response()
            assert response.status == 503 and response.field("Retry-After") == "1" and client.closed()
        for client in clients:
            client.socket.close()
        until(lambda: proxy.status()["clients"] == 0, "clients leave")
        assert proxy.get().status == 200


def those_who_were_refused_do_not_stand_in_others_way():
    """They may stay for a moment to read their answer, but take no connection of the limit meanwhile."""
    with Proxy(Backend(), connections=2) as proxy:
        clients = [proxy.connect() for _ in range(2)]
        until(lambda: proxy.status()["clients"] == 2, "both are there")
        refused = [proxy.connect() for _ in range(100)]
        until(lambda: proxy.status()["refused"] == 100, "all are refused")
        for client in clients:
            client.socket.close()
        until(lambda: proxy.status()["clients"] == 0, "those who were refused count", 0.5)
        clients = [proxy.connect() for _ in range(2)]
        for client in clients:
            client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert client.response().status == 200
        told = 0
        for client in refused:
            try:
                told += client.response().status == 503
            except (EOFError, ConnectionResetError):
                pass
            client.socket.close()
        assert told == 100, told
        for client in clients:
            client.socket.close()


def what_comes_on_an_idle_connection_answers_nobodys_request():
    """A server may say that it is tired of waiting, while a request is on its way to the proxy."""
    for _ in range(5):
        backend = Backend()
        with Proxy(backend) as proxy, proxy.connect() as client:
            client.send(b"GET /one HTTP/1.1\r\nHost: x\r\n\r\n")
            assert client.response().body == b"hello /one"
            server, = backend.open
            # Both are there when the proxy looks, the request first.
            os.kill(proxy.process.pid, signal.SIGSTOP)
            os.waitid(os.P_PID, proxy.process.pid, os.WSTOPPED)
            client.send(b"GET /two HTTP/1.1\r\nHost: x\r\n\r\n")
            time.sleep(0.05)
            server.sendall(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 5\r\nConnection: close\r\n\r\ntired")
            time.sleep(0.05)
            os.kill(proxy.process.pid, signal.SIGCONT)
            response = client.response()
            assert (response.status, response.body) == (200, b"hello /two"), (response.status, response.body)


def the_tag_table_names_the_request_until_the_connection_carries_another():
    seen = {}

    def answer(request, connection):
        port = connection.getpeername()[1]
        seen[port] = (proxy.tags()[port], request.field("traceparent").split("-")[2])
        return ok(b"x")

    backend = Backend(answer)
    with Proxy(backend) as proxy:
        for _ in range(3):
            proxy.get()
            (port, (tag, request)), = seen.items()
            assert tag == ["0", str(backend.port), request], (tag, request)
            # What the server does late for it, such as returning from its write, still belongs to it.
            assert proxy.tags()[port][2] == request, "the tag stays until the next request, or the connection's end"
        backend.stop()
        until(lambda: not proxy.tags(), "the entry is given back with the connection")


def a_server_that_takes_no_new_connections_is_still_reached_by_those_it_has():
    arrived, release = threading.Event(), threading.Event()

    def answer(request, connection):
        if request.target == "/wait":
            arrived.set()
            release.wait(10)
        return ok(b"x")

    backend = Backend(answer)
    with Proxy(backend) as proxy, proxy.connect() as first:
        first.send(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
        assert arrived.wait(5)
        backend.listener.shutdown(socket.SHUT_RDWR)
        backend.listener.close()
        assert proxy.get().status == 503  # and for a while no new connection is tried
        release.set()
        assert first.response().status == 200
        assert proxy.get().status == 200, "the idle connection was there"


def a_port_whose_tag_is_taken_is_not_used_with_it():
    backend = Backend()
    with Proxy(backend) as proxy:
        proxy.command("claim")
        assert proxy.get().status == 200
        # Three more tries, then without a tag: its events still name the port.
        assert proxy.status()["server"][0]["connects"] == 4
        assert all(tag[1] == "1" for tag in proxy.tags().values())
        assert [event.arg[0] for event in proxy.events() if event.kind == ATTEMPT_SEND][0] > 0


def a_stop_lets_requests_end_and_then_does_not_wait():
    backend = Backend(lambda r, c: time.sleep(0.3 if r.target == "/slow" else 3) or ok(b"done"))
    for target, limit, answered in (("/slow", 2000, True), ("/slower", 100, False)):
        proxy = Proxy(backend)
        idle, busy = proxy.connect(), proxy.connect()
        busy.send(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        until(lambda: proxy.status()["server"][0]["in_flight"] == 1, "the request is under way")
        begin = time.monotonic()
        proxy.process.stdin.write(f"stop {limit}\n")
        proxy.process.stdin.flush()
        assert idle.closed()
        if answered:
            response = busy.response()
            assert response.body == b"done" and response.field("Connection") == "close"
            busy.socket.close()
        else:
            assert busy.closed()
        assert proxy.process.wait(5) == 0
        assert time.monotonic() - begin < 1.5


def an_address_in_use_is_an_error_with_a_remedy():
    backend = Backend()
    with Proxy(backend) as proxy:
        try:
            Proxy(backend, listen=f"127.0.0.1:{proxy.port}")
            raise AssertionError("two proxies on one port")
        except RuntimeError as error:
            assert "cannot listen on" in str(error) and "choose another" in str(error), error


def several_workers_serve_one_port():
    backend = Backend()
    with Proxy(backend, workers=4) as proxy:
        for i in range(64):
            assert proxy.get(f"/{i}").body == f"hello /{i}".encode()
        events = proxy.events()
        assert len(check_events(events)) == 64
        assert len({event.tid for event in events}) > 1, "the kernel spreads connections over the workers"


def events_tell_a_requests_whole_story():
    backend = Backend(lambda r, c: ok(b"12345"))
    with Proxy(backend) as proxy:
        with proxy.connect() as client:
            client.send(b"GET /" + b"p" * 300 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
            response = client.response()
            port = client.socket.getsockname()[1]
        events = proxy.events()
        own, = check_events(events).values()
        assert own[0].request == response.field("X-Tailor-Request-Id")
        assert sorted(event.kind for event in own) == sorted(
            [BEGIN, PARSED, ATTEMPT_BEGIN, ATTEMPT_SEND, ATTEMPT_SENT, RESPONSE_BEGIN, RESPONSE_END, REPLY_BEGIN, END]), own
        assert own[0].arg[:2] == [port, 0x7f000001]
        assert own[1].text == "GET /" + "p" * (208 - 5)
        upstream_port = backend.requests[0].connection.getpeername()[1] if backend.requests[0].connection.fileno() >= 0 else None
        sent = [event.arg[0] for event in own if event.kind in (ATTEMPT_SEND, ATTEMPT_SENT, RESPONSE_BEGIN, RESPONSE_END)]
        assert len(set(sent)) == 1 and sent[0] == upstream_port
        assert own[-1].status == 200 and own[-1].arg[0] > 5 and own[-1].arg[1] == DONE


def a_request_that_the_worker_may_have_seen_late_says_since_when():
    with Proxy(Backend()) as proxy, proxy.connect() as client:
        def get():
            client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert client.response().status == 200
            own, = check_events(proxy.events()).values()
            return own, [event for event in own if event.kind == REQUEST_LATE]

        for _ in range(2):
            own, late = get()
            assert late == [], own
            worker = own[0].tid
            since = int(proxy.command(f"late {worker}")[0])
            own, late = get()
            assert [(event.arg[0], event.extra) for event in late] == [(since, own[0].arg[0])], own
            get()  # the second turn behind it is over by its end
        # Read some turns later, after others; who has been served since was not there before.
        with proxy.connect() as other:
            def other_get():
                other.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                assert other.response().status == 200

            found = 0
            for _ in range(50):
                since = int(proxy.command(f"late {worker}")[0])
                begin = time.monotonic()
                for _ in range(2):
                    other_get()
                proxy.events()
                own, late = get()
                # On a busy machine it takes longer than that is believed.
                assert [event.arg[0] for event in late] in ([], [since]), own
                if time.monotonic() - begin < 0.008:
                    assert late and get()[1] == [], own
                    found += 1
                    if found == 3:
                        break
            assert found
        time.sleep(0.02)
        # Another thread with the same entry, and one with another.
        for tid in (worker + 64, worker + 1):
            proxy.command(f"late {tid}")
            assert get()[1] == []


run([value for name, value in list(globals().items()) if callable(value) and getattr(value, "__module__", "") == "__main__"])
