#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HTTP through the proxy: framing both ways, keep-alive, errors, and what it records."""
import contextlib
import os
import random
import re
import socket
import struct
import tempfile
import threading
import time

from proxy_harness import *


def a_request_and_its_response_pass_through():
    backend = Backend(lambda r, c: ok(b"hi", "X-Own: 1\r\nKeep-Alive: timeout=5\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\n"))
    with Proxy(backend) as proxy:
        response = proxy.get("/search?q=a", headers="X-Mine: 2\r\nConnection: X-Private\r\nX-Private: 3\r\nTE: trailers\r\nUpgrade: h2c\r\n")
        assert response.status == 200 and response.body == b"hi" and response.field("X-Own") == "1"
        assert response.field("X-Hop") is None and response.field("Keep-Alive") is None and response.field("Connection") is None
        assert re.fullmatch("[0-9a-f]{16}", response.field("X-Tailor-Request-Id"))
        request = backend.requests[0]
        assert request.line == "GET /search?q=a HTTP/1.1" and request.field("X-Mine") == "2" and request.field("Host") == "x"
        for name in ("X-Private", "TE", "Upgrade", "Connection"):
            assert request.field(name) is None, request.fields
        parent = request.field("traceparent")
        assert re.fullmatch("00-[0-9a-f]{32}-[0-9a-f]{16}-00", parent)
        assert parent.split("-")[2] == response.field("X-Tailor-Request-Id")


def a_valid_traceparent_passes_unchanged_and_an_invalid_one_is_replaced():
    backend = Backend()
    good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    bad = ["00-00000000000000000000000000000000-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
           "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
           good + "-x", good[:-1], "x"]
    with Proxy(backend) as proxy:
        for value in [good, "01" + good[2:] + "-more"]:
            proxy.get(headers=f"traceparent: {value}\r\ntracestate: a=b\r\n")
            assert backend.requests[-1].field("traceparent") == value and backend.requests[-1].field("tracestate") == "a=b"
        for value in bad:
            proxy.get(headers=f"traceparent: {value}\r\ntracestate: a=b\r\n")
            assert backend.requests[-1].field("traceparent") != value and backend.requests[-1].field("tracestate") is None
        proxy.get(headers=f"traceparent: {good}\r\ntraceparent: {good}\r\n")
        assert [key for key, _ in backend.requests[-1].fields].count("traceparent") == 1
        assert backend.requests[-1].field("traceparent") != good


def bodies_of_all_sizes_come_back_in_both_framings():
    def echo(request, connection):
        if request.target == "/chunked":
            return chunked(request.body, (1, 7, 100, 4096, 70000))
        return ok(request.body)

    backend = Backend(echo)
    with Proxy(backend) as proxy, proxy.connect() as client:
        for size in (0, 1, 2, 100, 4095, 16384, 16385, 40000, 65536, 300000):
            body = random.randbytes(size)
            for target in ("/length", "/chunked"):
                client.send(f"POST {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n".encode() + body)
                assert client.response().body == body, (size, target)
                client.send(f"POST {target} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode() +
                            chunks(body, (3, 5000, 1, 66000), b"0\r\nX-Trailer: 1\r\n\r\n"))
                assert client.response().body == body, (size, target)
        assert backend.connections == 1


def bytes_may_come_one_at_a_time():
    def answer(request, connection):
        for byte in chunked(b"slow but sure", (2, 3)):
            connection.send(bytes([byte]))
        return b""

    backend = Backend(answer)
    with Proxy(backend) as proxy, proxy.connect() as client:
        for byte in b"POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks(b"abcdefgh", (3, 2)):
            client.send(bytes([byte]))
        assert client.response().body == b"slow but sure"
        assert backend.requests[0].body == b"abcdefgh"


def ten_megabytes_pass_both_ways_with_bounded_memory():
    body = random.randbytes(10 << 20)
    backend = Backend(lambda r, c: ok(r.body) if r.target == "/length" else chunked(r.body, (100000, 1, 65536)))
    with Proxy(backend) as proxy:
        for target in ("/length", "/chunked"):
            with proxy.connect() as client:
                sender = threading.Thread(target=client.send, args=(
                    f"PUT {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body,))
                sender.start()
                assert client.response().body == body
                sender.join()
        memory = int(re.search(r"VmHWM:\s+(\d+)", open(f"/proc/{proxy.process.pid}/status").read())[1])
        if "asan" not in DRIVER and "tsan" not in DRIVER:
            assert memory < 40 << 10, f"{memory} KiB for a 10 MiB body"


def a_slow_client_holds_the_server_back():
    sent = []

    def answer(request, connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 33554432\r\n\r\n")
        for _ in range(512):
            connection.sendall(bytes(65536))
            sent.append(65536)
        return b""

    backend = Backend(answer)
    with Proxy(backend) as proxy, proxy.connect() as client:
        client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(0.5)
        assert sum(sent) < 24 << 20, sum(sent)
        assert len(client.response().body) == 32 << 20


def responses_without_a_body_end_with_their_head():
    def answer(request, connection):
        if request.method == "HEAD":
            return b"HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n"
        return {"/304": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\nETag: \"x\"\r\n\r\n",
                "/204": b"HTTP/1.1 204 No Content\r\n\r\n"}.get(request.target, ok(b"x"))

    backend = Backend(answer)
    with Proxy(backend) as proxy, proxy.connect() as client:
        for method, target in (("HEAD", "/"), ("GET", "/304"), ("GET", "/204"), ("GET", "/")):
            client.send(f"{method} {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            response = client.response(method)
            if method == "HEAD":
                assert response.field("Content-Length") == "12345"
            if target == "/304":
                assert response.field("Content-Length") == "77" and response.field("ETag") == '"x"'
            if target == "/204":
                assert response.field("Content-Length") is None and response.field("Transfer-Encoding") is None
        assert response.body == b"x" and backend.connections == 1


def expect_100_continue_is_the_servers_to_answer():
    backend = Backend(lambda r, c: ok(b"got " + r.body))
    with Proxy(backend) as proxy, proxy.connect() as client:
        client.send(b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
        assert client.response(interim=True).status == 100
        client.send(b"12345")
        assert client.response().body == b"got 12345"
        client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.response().body == b"got "
    backend = Backend(lambda r, c: ok(b"no", "Connection: close\r\n", "413 Content Too Large"), read_body=False)
    with Proxy(backend) as proxy, proxy.connect() as client:
        client.send(b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
        response = client.response()
        assert response.status == 413 and response.body == b"no" and response.field("Connection") == "close"
        assert client.closed()


def interim_responses_pass_to_clients_that_know_them():
    backend = Backend(lambda r, c: b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" + ok(b"end"))
    with Proxy(backend) as proxy:
        with proxy.connect() as client:
            client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            early = client.response(interim=True)
            assert early.status == 103 and early.field("Link") == "</a>"
            assert client.response(interim=True).status == 102
            assert client.response().body == b"end"
        with proxy.connect() as client:
            client.send(b"GET / HTTP/1.0\r\n\r\n")
            assert client.response(interim=True).status == 200


def until_close_is_chunked_for_http_1_1_and_closed_for_http_1_0():
    body = random.randbytes(200000)

    def answer(request, connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + body)
        return None

    backend = Backend(answer)
    with Proxy(backend) as proxy:
        with proxy.connect() as client:
            for _ in range(3):
                client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                response = client.response()
                assert response.field("Transfer-Encoding") == "chunked" and response.body == body
        with proxy.connect() as client:
            client.send(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            response = client.response()
            assert response.field("Transfer-Encoding") is None and response.field("Connection") == "close"
            assert response.body == body


def http_1_0_clients_get_what_they_understand():
    body = random.randbytes(100000)
    backend = Backend(lambda r, c: chunked(body, (10, 60000), "") if r.target == "/chunked" else ok(b"plain"))
    with Proxy(backend) as proxy:
        with proxy.connect() as client:
            client.send(b"GET /chunked HTTP/1.0\r\n\r\n")
            response = client.response()
            assert response.field("Transfer-Encoding") is None and response.body == body
        assert backend.requests[0].field("Host") == f"127.0.0.1:{backend.port}" and backend.requests[0].version == "HTTP/1.1"
        with proxy.connect() as client:
            for _ in range(2):
                client.send(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
                response = client.response()
                assert response.field("Connection") == "keep-alive" and response.body == b"plain"
            client.send(b"GET / HTTP/1.0\r\n\r\n")
            assert client.response().field("Connection") == "close" and client.closed()


def http_1_0_servers_are_not_asked_twice_on_a_connection():
    backend = Backend(lambda r, c: b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nold")
    with Proxy(backend) as proxy, proxy.connect() as client:
        for _ in range(3):
            client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert client.response().body == b"old"
        assert backend.connections == 3


def pipelined_requests_are_answered_in_order():
    def answer(request, connection):
        time.sleep(0.02 if request.target == "/0" else 0)
        return ok(request.target.encode() + request.body)

    backend = Backend(answer)
    with Proxy(backend) as proxy:
        with proxy.connect() as client:
            data = b""
            for i in range(100):
                body = b"b" * (i * 50 % 700)
                data += f"POST /{i} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
            client.send(data)
            for i in range(100):
                assert client.response().body == f"/{i}".encode() + b"b" * (i * 50 % 700), i
        by_request = check_events(proxy.events())
        assert len(by_request) == 100
        # The second one was read with the first: its time begins there, and it has waited for it.
        second = next(own for own in by_request.values() if own[1].text == "POST /1")
        assert second[1].time - second[0].time > 15_000_000, second


def a_half_closed_client_is_answered():
    backend = Backend(lambda r, c: time.sleep(0.05) or ok(b"still here"))
    with Proxy(backend) as proxy, proxy.connect() as client:
        client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        client.socket.shutdown(socket.SHUT_WR)
        assert client.response().body == b"still here" and client.closed()


def early_responses_reach_the_client_before_its_body_is_through():
    def answer(request, connection):
        return ok(b"enough", "", "401 Unauthorized")

    backend = Backend(answer, read_body=False)
    with Proxy(backend) as proxy, proxy.connect() as client:
        client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + bytes(1000))
        response = client.response()
        assert response.status == 401 and response.body == b"enough" and response.field("Connection") == "close"
        client.send(bytes(100000))
        assert client.closed()
        check_events(proxy.events(), early=True)


def bad_requests_are_refused_and_the_connection_closed():
    backend = Backend()
    cases = [(b"GARBAGE\r\n\r\n", 400), (b"GET / HTTP/1.1\r\n\r\n", 400), (b"GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505),
             (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
             (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 20000 + b"\r\n\r\n", 431),
             (b"GET /" + b"a" * 20000, 414), (b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", 501),
             (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400)]
    with Proxy(backend) as proxy:
        for data, status in cases:
            with proxy.connect() as client:
                client.send(data)
                response = client.response()
                assert response.status == status, (data[:40], response.status)
                assert response.field("Connection") == "close" and response.field("X-Tailor-Request-Id")
                assert client.closed()
        until(lambda: proxy.status()["requests"] == len(cases), "a refused request has an end too")
        assert proxy.status()["refused"] == len(cases)
        for own in check_events(proxy.events()).values():
            assert own[-1].arg[1] == REFUSED, own
        assert backend.requests == [] or backend.requests[-1].method == "POST"


def a_server_that_dies_before_its_head_is_a_502():
    backend = Backend(lambda r, c: c.sendall(b"HTTP/1.1 200 OK\r\nContent-Le") if r.target == "/half" else None)
    with Proxy(backend, attempts=1) as proxy, proxy.connect() as client:
        for target in ("/half", "/none"):
            client.send(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            response = client.response()
            assert response.status == 502 and response.field("Connection") is None, response.fields
        assert all(own[-1].arg[1] == REFUSED for own in check_events(proxy.events()).values())


def what_is_not_http_is_a_502():
    answers = {"/a": b"SMTP ready\r\n\r\n", "/b": b"HTTP/1.1 200 OK\r\nX: " + b"a" * 40000 + b"\r\n\r\n",
               "/c": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
               "/d": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n"}
    backend = Backend(lambda r, c: answers[r.target])
    with Proxy(backend) as proxy, proxy.connect() as client:
        for target in answers:
            client.send(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert client.response().status == 502, target
        ends = [event for event in proxy.events() if event.kind == ATTEMPT_END]
        assert len(ends) == 4 and all(event.arg[1] == END_BAD for event in ends), ends


def a_response_that_breaks_off_never_looks_whole():
    answers = {"/length": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this",
               "/chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n",
               "/bad": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nonly thisXX"}
    backend = Backend(lambda r, c: c.sendall(answers[r.target]))
    with Proxy(backend) as proxy:
        for target in answers:
            with proxy.connect() as client:
                client.send(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                try:
                    client.response()
                    raise AssertionError(f"{target} looked whole")
                except (EOFError, ConnectionResetError):
                    pass
        # Until-close to an HTTP/1.0 client: only a reset tells it.
        with proxy.connect() as client:
            client.send(b"GET /chunked HTTP/1.0\r\n\r\n")
            try:
                client.response()
                raise AssertionError("looked whole")
            except ConnectionResetError:
                pass
        until(lambda: proxy.status()["cut"] == 4, proxy.status())
        assert all(own[-1].arg[1] == CUT for own in check_events(proxy.events()).values())


def a_server_reset_in_an_until_close_body_is_not_an_end():
    def answer(request, connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nsome of it")
        time.sleep(0.05)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return None

    backend = Backend(answer)
    with Proxy(backend) as proxy, proxy.connect() as client:
        client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        try:
            client.response()
            raise AssertionError("looked whole")
        except (EOFError, ConnectionResetError):
            pass


def a_client_that_vanishes_ends_its_attempt():
    release = threading.Event()
    gone = threading.Event()

    def answer(request, connection):
        if request.target == "/wait":
            connection.settimeout(5)
            if connection.recv(1) == b"":
                gone.set()
            return None
        return ok(bytes(32 << 20)) if request.target == "/big" else ok(b"x")

    backend = Backend(answer)
    with Proxy(backend) as proxy:
        client = proxy.connect()
        client.send(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
        until(lambda: backend.requests, "the request arrives")
        client.reset()
        assert gone.wait(5), "the server's connection stays open"
        client = proxy.connect()
        client.send(b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n")
        client.socket.recv(1000)
        client.reset()
        client = proxy.connect()
        client.send(b"GET /half")
        client.socket.close()
        client = proxy.connect()
        client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n123")
        client.socket.close()
        until(lambda: proxy.status()["client_gone"] == 4, proxy.status())
        by_request = check_events(proxy.events())
        assert len(by_request) == 4 and all(own[-1].arg[1] == CLIENT for own in by_request.values())
        assert proxy.get().body == b"x"


def connections_to_servers_are_kept_and_shared():
    backend = Backend()
    with Proxy(backend) as proxy:
        for i in range(20):
            assert proxy.get(f"/{i}").body == f"hello /{i}".encode()
        assert backend.connections == 1
        until(lambda: proxy.status()["requests"] == 20, "the last one's end is counted")
        status = proxy.status()
        assert status["server"][0]["connects"] == 1 and status["server"][0]["responses"] == 20


def a_dead_kept_connection_is_made_good_for_a_get_only():
    def answer(request, connection):
        return ok(b"first") if request.number == 0 else None

    backend = Backend(answer)
    with Proxy(backend, attempts=2) as proxy, proxy.connect() as client:
        for _ in range(5):
            client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert client.response().status == 200
        reasons = [event.reason for event in proxy.events() if event.begins]
        assert reasons == [0] + [0, REASON_CLOSED] * 4, reasons
        client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx")
        assert client.response().status == 502


def timeouts_are_answered():
    backend = Backend(lambda r, c: time.sleep(1.5) or ok(b"late"))
    with Proxy(backend, response_ms=100, idle_ms=400) as proxy:
        begin = time.monotonic()
        assert proxy.get().status == 504
        assert 0.1 <= time.monotonic() - begin < 0.4
        with proxy.connect() as client:
            assert client.closed() and time.monotonic() - begin < 1.5
        with proxy.connect() as client:
            client.send(b"GET / HT")
            assert client.response().status == 408 and client.closed()
        with proxy.connect() as client:
            client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12")
            assert client.response().status == 408 and client.closed()
        ends = [event.arg[1] for event in proxy.events() if event.kind == ATTEMPT_END]
        assert ends == [END_TIMEOUT, END_CLIENT], ends


def a_head_that_drips_in_is_given_up():
    backend = Backend()
    with Proxy(backend, idle_ms=300) as proxy, proxy.connect() as client:
        begun = time.monotonic()
        client.send(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        client.socket.settimeout(0.1)
        answer = b""
        while not answer:
            assert time.monotonic() - begun < 3, "a byte each 100 ms holds a connection for ever"
            try:
                client.send(b"a")
                answer = client.socket.recv(4096)
            except TimeoutError:
                pass
        assert answer.startswith(b"HTTP/1.1 408 "), answer
        assert not backend.requests


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


def a_server_that_stalls_in_mid_body_is_cut_and_one_that_does_not_read_is_a_504():
    def answer(request, connection):
        if request.target == "/stall":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n123")
        time.sleep(1)
        return None

    backend = Backend(answer, read_body=False)
    with Proxy(backend, idle_ms=200) as proxy:
        with proxy.connect() as client:
            client.send(b"GET /stall HTTP/1.1\r\nHost: x\r\n\r\n")
            try:
                client.response()
                raise AssertionError("looked whole")
            except EOFError:
                pass
        with proxy.connect() as client:
            def send():
                try:
                    client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n" + bytes(50000000))
                except OSError:
                    pass
            sender = threading.Thread(target=send)
            sender.start()
            assert client.response().status == 504
            sender.join()
        ends = [event.arg[1] for event in proxy.events() if event.kind == ATTEMPT_END]
        assert ends == [END_TIMEOUT, END_TIMEOUT], ends
        assert proxy.status()["cut"] == 1


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
        assert own[-1].extra == 200 and own[-1].arg[0] > 5 and own[-1].arg[1] == DONE


run([value for name, value in list(globals().items()) if callable(value) and getattr(value, "__module__", "") == "__main__"])
