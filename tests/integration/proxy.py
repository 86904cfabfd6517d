#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The data path over real sockets: requests and responses of every kind pass through."""
import contextlib
import random
import re
import socket
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


def a_server_can_tell_which_request_it_works_for():
    backend = Backend()
    own = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n"
    with Proxy(backend) as proxy:
        # Where the client has a trace of its own, the field beside it says so; nobody else may.
        for headers in (own, own + "X-Tailor-Request-Id: 1111111111111111\r\n"):
            response = proxy.get(headers=headers)
            said = [value for key, value in backend.requests[-1].fields if key.lower() == "x-tailor-request-id"]
            assert said == [response.field("X-Tailor-Request-Id")], backend.requests[-1].fields
        for headers in ("", "X-Tailor-Request-Id: 1111111111111111\r\n"):
            response = proxy.get(headers=headers)
            assert backend.requests[-1].field("X-Tailor-Request-Id") is None
            assert backend.requests[-1].field("traceparent").split("-")[2] == response.field("X-Tailor-Request-Id")


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


def idle_clients_hold_no_memory():
    backend = Backend(lambda r, c: ok(bytes(3000)))
    with Proxy(backend) as proxy, contextlib.ExitStack() as clients:
        def ask():
            client = clients.enter_context(proxy.connect())
            client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert len(client.response().body) == 3000

        for _ in range(300):
            ask()
        before = proxy.resident_kib()
        for _ in range(1000):
            ask()
        if "asan" not in DRIVER and "tsan" not in DRIVER:
            assert proxy.resident_kib() < before + 2000, f"{proxy.resident_kib() - before} KiB for 1000 idle clients"


def who_does_not_read_takes_no_receive_buffer_from_others():
    # More than the ring has, of each kind: answers of one piece, answers of many, and requests behind one that waits.
    release = threading.Event()

    def answer(request, connection):
        if request.target == "/wait":
            release.wait(20)
        return ok(bytes({"/one": 16384, "/many": 400000}.get(request.target, 5)))

    backend = Backend(answer)
    with Proxy(backend) as proxy, contextlib.ExitStack() as clients:
        for target, behind in (("/one", b""), ("/many", b""), ("/wait", b"GET /behind HTTP/1.1\r\nHost: x\r\n\r\n" * 1500)):
            for _ in range(300):
                client = clients.enter_context(contextlib.closing(socket.socket()))
                # Small windows, so that what is not read stays in the proxy.
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
                client.connect(("127.0.0.1", proxy.port))
                client.setblocking(False)
                client.send(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                with contextlib.suppress(BlockingIOError):
                    client.send(behind)
        time.sleep(0.5)
        began = time.monotonic()
        with proxy.connect() as client:
            for size in (1, 16384, 100000):
                client.send(f"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n".encode() + bytes(size))
                assert len(client.response().body) == 5
        assert time.monotonic() - began < 5
        if "asan" not in DRIVER and "tsan" not in DRIVER:
            assert proxy.resident_kib() < 100 << 10, f"{proxy.resident_kib()} KiB for 900 clients"
        release.set()


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


run([value for name, value in list(globals().items()) if callable(value) and getattr(value, "__module__", "") == "__main__"])
