# SPDX-License-Identifier: Apache-2.0
"""The proxy's limits and timeouts, each apart: what is beyond them is told so, and nothing else suffers."""
import time

from proxy_harness import (ATTEMPT_END, CUT, END, END_TIMEOUT, REFUSED, Backend, Proxy, check_events, ok, run)

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def took(begin):
    return time.monotonic() - begin


def an_idle_client_a_slow_head_and_a_slow_body_have_a_timeout_each():
    backend = Backend()
    with Proxy(backend, head_ms=300, body_ms=500, keep_alive_ms=800) as proxy:
        begin = time.monotonic()
        with proxy.connect() as client:
            client.send(b"GET / HT")
            response = client.response()
            assert response.status == 408 and 0.3 <= took(begin) < 0.48, took(begin)
            assert response.field("Connection") == "close" and client.closed()
        begin = time.monotonic()
        with proxy.connect() as client:
            client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
            # Each byte begins the time anew.
            for _ in range(3):
                time.sleep(0.3)
                client.send(b"1")
            begin = time.monotonic()
            assert client.response().status == 408 and 0.5 <= took(begin) < 0.75, took(begin)
        begin = time.monotonic()
        with proxy.connect() as client:
            client.send(GET)
            assert client.response().status == 200
            assert client.closed() and 0.8 <= took(begin) < 1.1, took(begin)
        status = proxy.status()
        assert status["refused_by"]["client-late"] == 2 and status["refused"] == 2, status


def a_request_has_a_deadline_whatever_it_waits_for():
    def answer(request, connection):
        if request.target == "/drip":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            for _ in range(20):
                connection.sendall(b"x")
                time.sleep(0.1)
            return None
        time.sleep(1.2)
        return ok(b"late")

    with Proxy(Backend(answer), request_ms=600) as proxy:
        begin = time.monotonic()
        response = proxy.get("/late")
        assert response.status == 504 and 0.6 <= took(begin) < 0.85, (response.status, took(begin))
        assert response.field("Connection") is None
        # What has begun cannot be taken back: it is cut, and looks so.
        begin = time.monotonic()
        with proxy.connect() as client:
            client.send(b"GET /drip HTTP/1.1\r\nHost: x\r\n\r\n")
            try:
                client.response()
                raise AssertionError("a response that was cut looks whole")
            except EOFError:
                assert 0.6 <= took(begin) < 0.85, took(begin)
        # From the first byte: a head that drips in uses it up, too.
        begin = time.monotonic()
        with proxy.connect() as client:
            client.send(b"GET / HTTP/1.1\r\nHost: x\r\nX: ")
            assert client.response().status == 408 and 0.6 <= took(begin) < 0.85, took(begin)
        begin = time.monotonic()
        with proxy.connect() as client:
            client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12")
            assert client.response().status == 408 and 0.6 <= took(begin) < 0.85, took(begin)
        # A connection may live longer than any of its requests.
        events = check_events(proxy.events(), early=True)
        ends = sorted((own[-1].extra, own[-1].arg[1]) for own in events.values())
        assert ends == [(200, CUT), (408, REFUSED), (408, REFUSED), (504, REFUSED)], ends
        given_up = [event.arg[1] for own in events.values() for event in own if event.kind == ATTEMPT_END]
        assert given_up.count(END_TIMEOUT) == 2, given_up
        status = proxy.status()
        assert status["refused_by"]["deadline"] == 3 and status["cut"] == 1, status


def a_connection_outlives_the_deadlines_of_its_requests():
    with Proxy(Backend(), request_ms=300) as proxy, proxy.connect() as client:
        for _ in range(3):
            client.send(GET)
            assert client.response().status == 200
            time.sleep(0.4)
        client.send(GET)
        assert client.response().status == 200
        assert [event.extra for event in proxy.events() if event.kind == END] == [200] * 4


run([value for name, value in list(globals().items()) if callable(value) and getattr(value, "__module__", "") == "__main__" and name != "took"])
