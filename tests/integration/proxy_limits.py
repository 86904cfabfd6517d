# SPDX-License-Identifier: Apache-2.0
"""The proxy's limits and timeouts, each apart: what is beyond them is told so, and nothing else suffers."""
import email.utils
import socket
import tempfile
import threading
import time

from proxy_harness import (ATTEMPT_END, CUT, END, END_TIMEOUT, PARSED, QUEUED, REFUSED, REFUSED_DEADLINE, REFUSED_NONE, Backend, Proxy,
                           check_events, ok, run, until)

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
        ends = sorted((own[-1].status, own[-1].arg[1], own[-1].refusal) for own in events.values())
        late = [(status, REFUSED, REFUSED_DEADLINE) for status in (408, 408, 504)]
        assert ends == [(200, CUT, REFUSED_NONE), *late], ends
        given_up = [event.arg[1] for own in events.values() for event in own if event.kind == ATTEMPT_END]
        assert given_up.count(END_TIMEOUT) == 2, given_up
        status = proxy.status()
        assert status["refused_by"]["deadline"] == 3 and status["cut"] == 1, status


def a_deadline_holds_after_a_body_in_pieces_whose_own_time_is_shorter():
    """Once the body is here, its time is over and must not take the others' alarm with it."""
    hang = threading.Event()

    def answer(request, connection):
        if request.target == "/hang":
            hang.wait(5)
        return ok(b"")

    def post(proxy, client):
        client.send(b"POST /hang HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n12")
        time.sleep(0.1)
        client.send(b"34")
        return time.monotonic()

    with Proxy(Backend(answer), body_ms=300, request_ms=800) as proxy, proxy.connect(timeout=3) as client:
        begin = post(proxy, client)
        response = client.response()
        assert response.status == 504 and took(begin) < 2, (response.status, took(begin))
        hang.set()
    hang.clear()
    with Proxy(Backend(answer), body_ms=300, in_flight=1, queue=1, queue_ms=800) as proxy:
        with proxy.connect(timeout=3) as first, proxy.connect(timeout=3) as second:
            first.send(b"GET /hang HTTP/1.1\r\nHost: x\r\n\r\n")
            time.sleep(0.1)
            begin = post(proxy, second)
            response = second.response()
            assert response.status == 503 and took(begin) < 2, (response.status, took(begin))
            hang.set()
            assert first.response().status == 200


def a_connection_outlives_the_deadlines_of_its_requests():
    with Proxy(Backend(), request_ms=300) as proxy, proxy.connect() as client:
        for _ in range(3):
            client.send(GET)
            assert client.response().status == 200
            time.sleep(0.4)
        client.send(GET)
        assert client.response().status == 200
        assert [event.status for event in proxy.events() if event.kind == END] == [200] * 4



def an_address_has_so_many_connections_over_all_workers():
    with Proxy(Backend(), workers=4, per_address=3) as proxy:
        def refused(source):
            with proxy.connect(source=source) as client:
                response = client.response()
                assert response.status == 429 and response.field("Retry-After") == "1" and client.closed(), response.status

        def served(client):
            client.send(GET)
            assert client.response().status == 200
            return client

        for turn in range(3):
            clients = [served(proxy.connect(source=source)) for source in ("127.0.0.2", "127.0.0.3") for _ in range(3)]
            for source in ("127.0.0.2", "127.0.0.3"):
                for _ in range(5):
                    refused(source)
            served(proxy.connect(source="127.0.0.4")).socket.close()
            # One that goes makes room for another one, however it goes.
            clients[0].socket.close()
            clients[1].reset()
            until(lambda: proxy.status()["clients"] == 4, "closed connections are counted")
            clients[:2] = [served(proxy.connect(source="127.0.0.2")) for _ in range(2)]
            refused("127.0.0.2")
            for client in clients:
                served(client).socket.close()
            until(lambda: proxy.status()["clients"] == 0, "closed connections are counted")
        status = proxy.status()
        assert status["refused"] == status["refused_by"]["per-address"] == 33, status


def an_address_is_counted_in_ipv6_too_and_a_unix_socket_has_none():
    with Proxy(Backend(), listen="[::1]:0", per_address=2) as proxy:
        clients = [socket.create_connection(("::1", proxy.port), 5) for _ in range(3)]
        assert clients[2].recv(100).startswith(b"HTTP/1.1 429 ")
        for client in clients:
            client.close()
    with tempfile.TemporaryDirectory() as directory, Proxy(Backend(), listen=f"unix:{directory}/proxy", per_address=1):
        clients = []
        for _ in range(4):
            clients.append(socket.socket(socket.AF_UNIX))
            clients[-1].connect(f"{directory}/proxy")
            clients[-1].sendall(GET)
            assert clients[-1].recv(100).startswith(b"HTTP/1.1 200 ")
        for client in clients:
            client.close()


class Counting(Backend):
    """A server that knows how many requests it has at once."""

    def __init__(self, seconds):
        super().__init__(self.count)
        self.seconds, self.now, self.most, self.order = seconds, 0, 0, []

    def count(self, request, connection):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.order.append(request.target)
        time.sleep(self.seconds)
        with self.lock:
            self.now -= 1
        return ok(b"x")


def gather(proxy, paths, gap=0):
    """Asks for all of them at once, on a connection each. Returns the responses and how long each took, in order."""
    answers = {}

    def one(path):
        begin = time.monotonic()
        answers[path] = (proxy.get(path), took(begin))

    threads = [threading.Thread(target=one, args=(path,)) for path in paths]
    for thread in threads:
        thread.start()
        time.sleep(gap)
    for thread in threads:
        thread.join()
    return [answers[path] for path in paths]


def a_server_gets_so_many_requests_at_once_and_the_others_wait_in_order():
    server = Counting(0.1)
    with Proxy(server, in_flight=2, queue=6) as proxy:
        paths = [f"/{i}" for i in range(8)]
        begin = time.monotonic()
        answers = gather(proxy, paths, gap=0.005)
        assert [answer.status for answer, _ in answers] == [200] * 8
        assert server.most == 2 and took(begin) >= 0.4, (server.most, took(begin))
        status = proxy.status()
        assert status["queued"] == 0 and status["refused"] == 0, status
        # Two that are sent at once may come to the server in either order: what the proxy did is in its events.
        events = proxy.events()
        text = {event.request: event.text for event in events if event.kind == PARSED}
        order = [text[event.request] for event in events if event.begins]
        assert order == [f"GET {path}" for path in paths], (order, server.order)
        # So is what each has waited for.
        for own in check_events(events).values():
            kinds = [event.kind for event in own]
            waited = own[1].text not in ("GET /0", "GET /1")
            assert (QUEUED in kinds) == waited and (not waited or kinds.index(QUEUED) == 2), own


def beyond_the_queue_requests_are_refused_at_once():
    server = Counting(0.5)
    with Proxy(server, in_flight=1, queue=2, queue_ms=5000) as proxy:
        answers = gather(proxy, [f"/{i}" for i in range(6)], gap=0.02)
        assert [answer.status for answer, _ in answers] == [200] * 3 + [503] * 3
        for answer, seconds in answers[3:]:
            assert answer.field("Retry-After") == "1" and seconds < 0.2, seconds
            assert answer.field("Connection") is None, "a refusal need not cost the connection"
        status = proxy.status()
        assert server.most == 1 and status["refused_by"]["queue-full"] == status["refused"] == 3, status


def a_request_waits_in_the_queue_only_so_long():
    server = Counting(1)
    with Proxy(server, in_flight=1, queue=2, queue_ms=300) as proxy:
        answers = gather(proxy, ["/first", "/late", "/later"], gap=0.05)
        assert [answer.status for answer, _ in answers] == [200, 503, 503]
        for answer, seconds in answers[1:]:
            assert 0.3 <= seconds < 0.55 and answer.field("Retry-After") == "1", seconds
        assert server.order == ["/first"]
        until(lambda: proxy.status()["refused_by"]["queue-late"] == 2, "not counted")
    with Proxy(Counting(1), in_flight=1, queue=2, queue_ms=3000, request_ms=400) as proxy:
        answers = gather(proxy, ["/first", "/late"], gap=0.05)
        assert [answer.status for answer, _ in answers] == [504, 504]


def who_leaves_the_queue_leaves_its_place_to_others():
    server = Counting(0.4)
    with Proxy(server, in_flight=1, queue=2) as proxy:
        first, gone, last = (proxy.connect() for _ in range(3))
        for name, client in (("first", first), ("gone", gone), ("last", last)):
            client.send(f"GET /{name} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            time.sleep(0.05)
        assert proxy.status()["queued"] == 2
        gone.reset()
        until(lambda: proxy.status()["queued"] == 1, "a client that went still waits")
        with proxy.connect() as another:
            another.send(b"POST /another HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhe")
            time.sleep(0.05)
            another.send(b"llo")
            assert [client.response().status for client in (first, last, another)] == [200] * 3
        first.socket.close()
        last.socket.close()
        assert server.order == ["/first", "/last", "/another"] and server.requests[-1].body == b"hello", server.order


def an_early_answer_gives_its_place_back_once():
    """While the body still comes, and when the client goes away after that, or before."""
    def answer(request, connection):
        if request.method == "GET":
            time.sleep(0.3)
        return ok(b"early") if request.target != "/never" else time.sleep(0.3)

    post = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nsome"
    with Proxy(Backend(answer, read_body=False), in_flight=1) as proxy:
        for way in ("more", "reset", "half", "never"):
            with proxy.connect() as client:
                client.send(post % (b"/never" if way == "never" else b"/early"))
                if way == "never":
                    time.sleep(0.1)
                    client.reset()
                    until(lambda: proxy.status()["clients"] == 0, "the client is gone")
                else:
                    response = client.response()
                    assert response.status == 200 and response.field("Connection") == "close"
                    if way == "more":
                        try:
                            client.send(bytes(300000))
                        except OSError:
                            pass
                    elif way == "reset":
                        client.reset()
                    else:
                        client.socket.shutdown(socket.SHUT_WR)
                # One place, neither none nor two.
                statuses = sorted(response.status for response, _ in gather(proxy, ["/1", "/2"]))
                assert statuses == [200, 503], (way, statuses)


def places_are_counted_over_all_workers():
    server = Counting(0.005)
    with Proxy(server, workers=4, in_flight=3, queue=1000, queue_ms=10000) as proxy:
        answers = gather(proxy, [f"/{i}" for i in range(300)])
        assert all(answer.status == 200 for answer, _ in answers)
        assert server.most == 3, server.most
        status = proxy.status()
        assert status["queued"] == 0 and status["requests"] == 300, status


def a_pause_moves_those_that_wait_to_the_other_server_and_only_as_many_as_it_takes():
    one, other = Counting(0.6), Counting(0.2)
    with Proxy(one, other, in_flight=2, queue=4) as proxy:
        proxy.command("attach 0")
        proxy.command("attach 1")
        paths = [f"/{i}" for i in range(4)]
        answers = []
        thread = threading.Thread(target=lambda: answers.extend(gather(proxy, paths, gap=0.02)))
        thread.start()
        time.sleep(0.2)
        assert proxy.status()["queued"] == 2 and not other.order, "a full server's requests do not spill onto the backup"
        proxy.command("pause 0")
        thread.join()
        proxy.command("resume 0")
        assert [answer.status for answer, _ in answers] == [200] * 4
        # Those in flight are moved first, then those that waited get a place there; never more than two.
        assert one.order == paths[:2] and sorted(other.order) == paths and other.most == 2, (one.order, other.order, other.most)
        check_events(proxy.events())


def a_body_too_long_is_refused_before_anybody_gets_it():
    backend = Backend()
    with Proxy(backend, body=1000) as proxy:
        def post(fields, *parts):
            with proxy.connect() as client:
                client.send(b"POST / HTTP/1.1\r\nHost: x\r\n" + fields + b"\r\n")
                for part in parts:
                    time.sleep(0.02)
                    client.send(part)
                response = client.response()
                assert response.status == 200 or (client.closed() and not client.buffer and response.field("Connection") == "close")
                return response.status

        assert post(b"Content-Length: 1000\r\n", bytes(1000)) == 200
        assert post(b"Content-Length: 1001\r\n") == 413
        assert post(b"Content-Length: 1001\r\nExpect: 100-continue\r\n") == 413
        chunked = b"Transfer-Encoding: chunked\r\n"
        # The size lines are no part of it.
        assert post(chunked, b"0000001\r\na\r\n" * 1000 + b"0\r\n\r\n") == 200
        assert post(chunked, b"1\r\na\r\n" * 1000, b"1\r\n") == 413
        assert post(chunked, b"3e8\r\n" + bytes(1000) + b"\r\n", b"3e9\r\n") == 413
        assert post(chunked, b"3e9\r\n") == 413
        # Whole and at once: nothing behind the limit may be read as another request.
        assert post(chunked, b"3e9\r\n" + bytes(1001) + b"\r\n0\r\n\r\n") == 413
        assert [len(request.body) for request in backend.requests] == [1000, 1000], [len(r.body) for r in backend.requests]
        until(lambda: proxy.status()["refused_by"]["body"] == 6, "not counted")


def a_head_with_too_many_fields_is_refused_and_a_responses_is_not():
    backend = Backend(lambda r, c: ok(b"x", "A: b\r\n" * 50))
    with Proxy(backend, fields=5) as proxy:
        assert proxy.get(headers="A: b\r\n" * 4).status == 200
        assert proxy.get(headers="A: b\r\n" * 5).status == 431
        until(lambda: proxy.status()["refused_by"]["head"] == 1, "not counted")


def a_request_that_may_go_no_further_is_answered_here():
    backend = Backend()
    with Proxy(backend) as proxy, proxy.connect() as client:
        client.send(b"OPTIONS * HTTP/1.1\r\nHost: x\r\nMax-Forwards: 0\r\n\r\n")
        assert client.response().status == 200
        client.send(b"TRACE / HTTP/1.1\r\nHost: x\r\nMax-Forwards: 0\r\n\r\n")
        assert client.response().status == 501
        client.send(GET)
        assert client.response().status == 200
        assert len(backend.requests) == 1 and proxy.status()["refused_by"]["max-forwards"] == 2


def answers_without_a_date_get_one():
    dated = "Sun, 06 Nov 1994 08:49:37 GMT"

    def answer(request, _):
        return ok(b"x", {"/dated": f"dAte: {dated}\r\n", "/hidden": f"Date: {dated}\r\nConnection: date\r\n"}.get(request.target, ""))

    with Proxy(Backend(answer)) as proxy:
        for target, status in (("/a b", 400), ("/", 200), ("/hidden", 200), ("/", 200)):
            response = proxy.get(target)
            assert response.status == status
            date = email.utils.parsedate_to_datetime(response.field("Date"))
            assert abs(date.timestamp() - time.time()) < 2, response.field("Date")
            assert email.utils.format_datetime(date, usegmt=True) == response.field("Date")
        own = [value for name, value in proxy.get("/dated").fields if name.lower() == "date"]
        assert own == [dated], own


HELPERS = (took, gather, Counting)
run([value for value in list(globals().values())
     if callable(value) and getattr(value, "__module__", "") == "__main__" and value not in HELPERS])
