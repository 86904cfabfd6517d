#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The data path over real sockets: what clients and servers that do wrong, die or are too slow get."""
import os
import socket
import struct
import threading
import time

from proxy_harness import *


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


def a_server_that_dies_behind_an_interim_answer_has_not_answered():
    def begin(request, connection):
        connection.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + (b"HTTP/1.1 2" if request.target == "/begun" else b""))

    first, second = Backend(begin), Backend(lambda request, connection: ok(b"second"))
    with Proxy(first, second) as proxy:
        with proxy.connect() as client:
            client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert client.response(interim=True).status == 103
            response = client.response()
            assert (response.status, response.body) == (200, b"second"), (response.status, response.body)
        # Some of its answer is there.
        assert proxy.get("/begun").status == 502
        assert (len(first.requests), len(second.requests)) == (2, 1)


def a_client_that_waits_to_go_on_hears_it_from_whoever_took_its_request():
    closed, backend = Backend(), Backend(lambda r, c: ok(r.body))
    closed.stop()
    with Proxy(closed, backend) as proxy, proxy.connect(timeout=5) as client:
        client.send(b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
        assert client.response(interim=True).status == 100
        client.send(b"12345")
        assert client.response().body == b"12345"


def a_request_that_is_still_coming_when_its_server_dies_goes_to_the_other():
    for method, size, first, status in (("POST", 5, 3, 200), ("POST", 60000, 30000, 200), ("POST", 500000, 300000, 502), ("PUT", 5, 3, 502)):
        body = os.urandom(size)
        dying, other = Backend(lambda r, c, first=first: r.stream.read(first) and None, read_body=False), Backend(lambda r, c: ok(r.body))
        with Proxy(dying, other, post=1) as proxy, proxy.connect(timeout=5) as client:
            client.send(f"{method} / HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n".encode() + body[:first])
            if status == 200:
                until(lambda: other.connections, "it goes to the other one")
                client.send(body[first:])
            response = client.response()
            assert response.status == status and (status != 200 or response.body == body), (method, size, response.status)
            assert len(other.requests) == (status == 200), (method, size)


def what_is_not_http_is_a_502():
    answers = {"/a": b"SMTP ready\r\n\r\n", "/b": b"HTTP/1.1 200 OK\r\nX: " + b"a" * 40000 + b"\r\n\r\n",
               "/c": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
               "/d": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n",
               "/e": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nonly thisXX"}
    backend = Backend(lambda r, c: answers[r.target])
    with Proxy(backend) as proxy, proxy.connect() as client:
        for target in answers:
            client.send(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert client.response().status == 502, target
        ends = [event for event in proxy.events() if event.kind == ATTEMPT_END]
        assert len(ends) == len(answers) and all(event.arg[1] == END_BAD for event in ends), ends


def a_response_that_breaks_off_never_looks_whole():
    answers = {"/length": [b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this"],
               "/chunked": [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n"],
               "/bad": [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nonly this", b"XX"]}

    begun = threading.Event()

    def answer(request, connection):
        for number, piece in enumerate(answers[request.target]):
            if number:
                begun.wait(5)
            connection.sendall(piece)

    backend = Backend(answer)
    with Proxy(backend) as proxy:
        for target in answers:
            with proxy.connect() as client:
                begun.clear()
                client.send(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                client.more()
                begun.set()
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


def a_server_that_stalls_in_mid_body_is_cut_and_one_that_does_not_read_is_a_504():
    def answer(request, connection):
        if request.target == "/stall":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n123")
        time.sleep(1)
        return None

    backend = Backend(answer, read_body=False)
    with Proxy(backend, body_ms=200) as proxy:
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


run([value for name, value in list(globals().items()) if callable(value) and getattr(value, "__module__", "") == "__main__"])
