#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two servers whose JVMs stop: who answers, who does not, and what is counted."""
import os
import threading
import time

from proxy_group import *


def a_request_in_flight_moves_and_the_first_answer_wins():
    with Pair() as pair:
        client = pair.send()
        pair.proxy.command("pause 0")
        pair.arrives(1)
        pair.gate[1].set()
        assert client.response().body == b"1"
        # The loser answers too, later; nobody hears of it, not even the next request on this connection.
        pair.proxy.command("resume 0")
        pair.gate[0].set()
        client.send(b"GET /next HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.response().body == b"1"
        client.socket.settimeout(0.1)
        try:
            assert not client.more(), "a second answer"
            raise AssertionError("closed")
        except TimeoutError:
            pass
        client.socket.close()
        events = check_events(pair.proxy.events())
        own = next(own for own in events.values() if own[1].text == "GET /gated")
        assert [(event.number, event.server, event.reason) for event in own if event.begins] == \
            [(0, 0, 0), (1, 1, REASON_GC)]
        assert [(event.number, event.arg[1]) for event in own if event.kind == ATTEMPT_END] == [(0, LOST)]
        assert own[-1].arg[2] == 1 << 24 | 1 << 16 | REASON_GC
        status = pair.proxy.status()
        assert status["failed_over"] == 1 and status["active"] == 1 and not not_moved(status), status
        assert status["server"][0]["moved_away"] == 1 and status["server"][0]["pauses"] == 1
        # The backup stays the backup: the JVM that went on is not made active again.
        assert pair.proxy.get().body == b"1"


def the_stopped_server_may_still_answer_first():
    with Pair() as pair:
        client = pair.send()
        pair.proxy.command("pause 0")
        pair.arrives(1)
        pair.proxy.command("resume 0")
        pair.gate[0].set()
        assert client.response().body == b"0"
        client.socket.close()
        own, = check_events(pair.proxy.events()).values()
        assert [(event.number, event.arg[1]) for event in own if event.kind == ATTEMPT_END] == [(1, LOST)]
        # What the loser answers is thrown away; then its connection carries another request.
        pair.gate[1].set()
        time.sleep(0.05)
        assert pair.proxy.get().body == b"1"
        assert pair.proxy.status()["server"][1]["connects"] == 1
        assert own[-1].arg[2] == 0


def a_head_that_is_not_complete_has_not_won():
    with Pair() as pair:
        client = pair.send("GET /headless HTTP/1.1\r\nHost: x\r\n\r\n")
        until(lambda: RESPONSE_BEGIN in [event.kind for event in [Event(line) for line in pair.proxy.command("events")]],
              "the head's beginning is read")
        pair.proxy.command("pause 0")
        pair.moves(client)


def a_response_that_has_begun_is_not_moved():
    with Pair() as pair:
        client = pair.send("GET /begun HTTP/1.1\r\nHost: x\r\n\r\n")
        client.until(b"\r\n\r\n")
        pair.proxy.command("pause 0")
        time.sleep(0.05)
        assert not pair.backend[1].requests
        pair.proxy.command("resume 0")
        pair.gate[0].set()
        assert client.exactly(10) == b"0" * 10
        client.socket.close()
        assert not_moved(pair.proxy.status()) == {"begun": 1}


def a_post_is_not_moved_unless_the_policy_says_so():
    request = post(b"12345")
    with Pair() as pair:
        client = pair.send(*request)
        pair.proxy.command("pause 0")
        time.sleep(0.05)
        assert not pair.backend[1].requests
        pair.gate[0].set()
        assert client.response().body == b"0"
        client.socket.close()
        assert not_moved(pair.proxy.status()) == {"method": 1}
    with Pair(post=1) as pair:
        client = pair.send(*request)
        pair.proxy.command("pause 0")
        pair.arrives(1)
        assert pair.backend[1].requests[0].body == b"12345"
        pair.gate[1].set()
        assert client.response().body == b"1"
        client.socket.close()


def a_body_too_big_for_the_replay_buffer_is_not_moved():
    with Pair(post=1) as pair:
        client = pair.send("POST /gated HTTP/1.1\r\nHost: x\r\nContent-Length: 500000\r\n\r\n", bytes(500000))
        pair.proxy.command("pause 0")
        until(lambda: not_moved(pair.proxy.status()) == {"body": 1}, pair.proxy.status())
        pair.gate[0].set()
        assert client.response().body == b"0"
        client.socket.close()


def a_long_body_is_kept_whole_and_moved_in_either_framing():
    for chunked in (False, True):
        for size in (16383, 16384, 20000, 33500, 60000, 65000):
            body = os.urandom(size - (size // 100 if chunked else 0))
            with Pair(post=1, replay=65536) as pair:
                client = pair.send(*post(body, chunked))
                pair.proxy.command("pause 0")
                pair.arrives(1)
                assert pair.backend[0].requests[0].body == body and pair.backend[1].requests[0].body == body
                pair.gate[1].set()
                assert client.response().body == b"1"
                client.socket.close()
                assert not_moved(pair.proxy.status()) == {}


def beyond_the_buffer_a_body_streams_and_is_not_moved():
    for chunked in (False, True):
        # What of the buffer a short head leaves is the body's, too, if its length is not known before.
        for size, options in ((90000 if chunked else 65537, {}), (200000, {}), (40000, {"replay": 0})):
            body = os.urandom(size)
            with Pair(post=1, **options) as pair:
                client = pair.send(*post(body, chunked))
                pair.proxy.command("pause 0")
                until(lambda: not_moved(pair.proxy.status()) == {"body": 1}, pair.proxy.status())
                pair.gate[0].set()
                assert client.response().body == b"0" and pair.backend[0].requests[0].body == body
                client.socket.close()


def all_bodies_together_have_so_much_memory_to_be_kept_in():
    body = os.urandom(50000)
    with Pair(post=1, replay=65536, replay_total=3 * 65536, workers=2) as pair:
        for turn in range(2):
            clients = [pair.send(*post(body)) for _ in range(5)]
            pair.proxy.command("pause 0")
            pair.arrives(1, 3 * (turn + 1))
            # All were answered, and those that could not be kept were streamed.
            until(lambda: not_moved(pair.proxy.status()) == {"replay-full": 2 * (turn + 1)}, pair.proxy.status())
            pair.gate[0].set()
            pair.gate[1].set()
            assert sorted(client.response().body for client in clients) in ([b"0"] * n + [b"1"] * (5 - n) for n in range(2, 6))
            for client in clients:
                client.socket.close()
            pair.proxy.command("resume 0")
            if pair.proxy.status()["active"] == 1:
                pair.proxy.command("swap")
            for gate in pair.gate:
                gate.clear()
            until(lambda: pair.proxy.status()["clients"] == 0, "gone")
        assert all(request.body == body for backend in pair.backend for request in backend.requests)


def new_requests_go_to_the_server_that_runs():
    with Pair() as pair:
        assert pair.proxy.get().body == b"0"
        pair.proxy.command("pause 0")
        assert pair.proxy.get().body == b"1"
        pair.proxy.command("resume 0")
        assert pair.proxy.get().body == b"1"
        pair.proxy.command("pause 1")
        assert pair.proxy.get().body == b"0"
        pair.proxy.command("resume 1")
        assert pair.proxy.status()["active"] == 0


def when_both_stop_requests_wait_and_the_first_to_go_on_gets_them():
    with Pair() as pair:
        pair.proxy.command("pause 1")
        client = pair.send()
        pair.proxy.command("pause 0")
        until(lambda: not_moved(pair.proxy.status()) == {"both-paused": 1}, pair.proxy.status())
        assert not pair.backend[1].requests
        # The other one is back first: no need to wait for the longer pause.
        pair.proxy.command("resume 1")
        pair.moves(client)
        status = pair.proxy.status()
        assert status["active"] == 1 and sum(status["reaction_to_return"]["count"]) == 1 and not sum(status["reaction_to_stop"]["count"]), status
        pair.proxy.command("resume 0")


def failover_off_only_counts():
    with Pair(failover=0) as pair:
        client = pair.send()
        pair.proxy.command("pause 0")
        until(lambda: not_moved(pair.proxy.status()) == {"off": 1}, pair.proxy.status())
        assert pair.proxy.status()["active"] == 0 and pair.proxy.get().body == b"0"
        pair.gate[0].set()
        assert client.response().body == b"0"
        client.socket.close()


def one_server_alone_waits():
    gate = threading.Event()
    backend = Backend(lambda r, c: gate.wait(10) and ok(b"0"))
    with Proxy(backend) as proxy:
        proxy.command("attach 0")
        client = proxy.connect()
        client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        until(lambda: backend.requests, "the request arrives")
        proxy.command("pause 0")
        until(lambda: not_moved(proxy.status()) == {"no-backup": 1}, proxy.status())
        gate.set()
        assert client.response().body == b"0"
        client.socket.close()


def attempts_are_limited():
    with Pair(attempts=1) as pair:
        client = pair.send()
        pair.proxy.command("pause 0")
        until(lambda: not_moved(pair.proxy.status()) == {"attempts": 1}, pair.proxy.status())
        pair.gate[0].set()
        assert client.response().body == b"0"
        client.socket.close()


def a_moved_request_survives_the_death_of_either_server():
    for dead in (0, 1):
        with Pair() as pair:
            client = pair.send()
            pair.proxy.command("pause 0")
            pair.arrives(1)
            pair.backend[dead].stop()
            pair.gate[1 - dead].set()
            assert client.response().body == b"%d" % (1 - dead)
            client.socket.close()
            own, = check_events(pair.proxy.events()).values()
            assert own[-1].arg[1] == DONE


def a_refused_connection_goes_to_the_other_server():
    backend = Backend()
    closed = Backend()
    closed.stop()
    with Proxy(closed, backend) as proxy:
        for method, body in (("GET", b""), ("POST", b"12345")):
            response = proxy.get("/a", method, f"Content-Length: {len(body)}\r\n", body)
            assert response.body == b"hello /a", response.status
        own = list(check_events(proxy.events()).values())
        assert [(event.server, event.reason) for event in own[0] if event.begins] == [(0, 0), (1, REASON_CONNECT)]
        # Down for a while: the second request does not even try.
        assert [(event.server, event.reason) for event in own[1] if event.begins] == [(1, 0)]
        assert proxy.status()["server"][0]["connect_failures"] == 1
        revived = Backend(lambda r, c: ok(b"revived"), port=closed.port)
        # The backup serves well, and stays the active one; the first is its backup now.
        time.sleep(0.25)
        assert proxy.get("/b").body == b"hello /b" and proxy.status()["active"] == 1
        backend.stop()
        until(lambda: proxy.get().body == b"revived", "it is tried again")
        revived.stop()


def a_server_whose_connections_die_before_its_listener_is_left():
    # A killed process: the kernel may reset its connections first, and take a new one until it comes to the listening socket.
    dying = threading.Event()
    first = Backend(lambda r, c: None if dying.is_set() else ok(b"a"))
    second = Backend(lambda r, c: ok(b"b"))
    with Proxy(first, second) as proxy, proxy.connect() as client:
        for body in (b"a", b"b"):
            client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            response = client.response()
            assert (response.status, response.body) == (200, body), (response.status, response.body)
            dying.set()


def a_dying_server_is_left_for_one_that_stands_still():
    dying = threading.Event()
    first = Backend(lambda r, c: None if dying.is_set() else ok(b"a"))
    second = Backend(lambda r, c: ok(b"b"))
    with Proxy(first, second, attempts=3) as proxy, proxy.connect() as client:
        proxy.command("attach 1")
        for body in (b"a", b"b"):
            client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            response = client.response()
            assert (response.status, response.body) == (200, body), (response.status, response.body)
            dying.set()
            proxy.command("pause 1")
        # The connection that was kept died, then a new one: only then is it surer to wait.
        assert len(first.requests) == 3 and len(second.requests) == 1, (len(first.requests), len(second.requests))


def with_all_servers_down_the_answer_is_503():
    closed = [Backend(), Backend()]
    for backend in closed:
        backend.stop()
    with Proxy(*closed) as proxy, proxy.connect() as client:
        for _ in range(2):
            client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            response = client.response()
            assert response.status == 503 and response.field("Retry-After") == "1"
        revived = Backend(port=closed[0].port)
        until(lambda: proxy.get().status == 200, "it is tried again")
        revived.stop()


def a_server_that_is_back_is_asked_where_all_count_as_down():
    closed = [Backend(), Backend()]
    for backend in closed:
        backend.stop()
    with Proxy(*closed) as proxy:
        # Four times found down: for 800 ms more by now.
        began = time.monotonic()
        while time.monotonic() < began + 0.85:
            assert proxy.get().status == 503
            time.sleep(0.005)
        revived = Backend(port=closed[1].port)
        began = time.monotonic()
        until(lambda: proxy.get().status == 200, "it is tried")
        took = time.monotonic() - began
        assert took < 0.25, f"after {took:.3f} s"
        assert proxy.status()["server"][1]["last_resorts"] > 0, proxy.status()
        for _ in range(3):
            assert proxy.get().status == 200
        revived.stop()


def a_dying_server_is_left_for_one_that_counts_as_down():
    dying = threading.Event()
    first = Backend(lambda r, c: None if dying.is_set() else ok(b"a"))
    second = Backend()
    second.stop()
    with Proxy(first, second, attempts=3) as proxy:
        assert proxy.get().body == b"a"
        dying.set()
        assert proxy.get().status in (502, 503)
        second = Backend(lambda r, c: ok(b"b"), port=second.port)
        time.sleep(0.02)
        response = proxy.get()
        assert (response.status, response.body) == (200, b"b"), (response.status, response.body)
        second.stop()


def all_that_a_dying_server_leaves_behind_try_one_that_counts_as_down():
    dying, waiting = threading.Event(), threading.Event()

    def answer(request, connection):
        if request.target == "/wait":
            waiting.wait(5)
        return None if dying.is_set() else ok(b"a")

    first = Backend(answer)
    second = Backend()
    second.stop()
    with Proxy(first, second, attempts=3) as proxy:
        clients = [proxy.connect() for _ in range(20)]
        for client in clients:
            client.send(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
        until(lambda: len(first.requests) == 20, "all are there")
        dying.set()
        # It is found down.
        assert proxy.get().status in (502, 503)
        second = Backend(lambda r, c: ok(b"b"), port=second.port)
        time.sleep(0.02)
        waiting.set()
        answers = [client.response() for client in clients]
        assert [(answer.status, answer.body) for answer in answers] == [(200, b"b")] * 20, [answer.status for answer in answers]
        for client in clients:
            client.socket.close()
        second.stop()


def servers_that_are_down_are_not_stormed():
    closed = [Backend(), Backend()]
    for backend in closed:
        backend.stop()
    with Proxy(*closed, workers=4) as proxy:
        began, refused = time.monotonic(), []

        def ask():
            with proxy.connect() as client:
                while time.monotonic() < began + 0.5:
                    client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                    refused.append(client.response().status)

        clients = [threading.Thread(target=ask) for _ in range(8)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        seconds = time.monotonic() - began
        assert len(refused) > 500 and set(refused) == {503}, len(refused)
        for server in proxy.status()["server"]:
            # One in 10 ms; and whoever came before the first had failed, or when it might be back.
            assert server["connects"] <= seconds / 0.01 + 8 * 5, server


def a_pause_that_nobody_saw_is_counted():
    with Pair() as pair:
        for _ in range(3):
            pair.proxy.command("blink 0")
        until(lambda: pair.proxy.status()["server"][0]["pauses"] == 3, pair.proxy.status())
        assert pair.proxy.status()["active"] == 0


def a_jvm_can_go_and_come_back():
    with Pair(workers=2) as pair:
        pair.proxy.command("pause 0")
        until(lambda: pair.proxy.status()["server"][0]["paused"] == 1, "the pause is seen")
        pair.proxy.command("detach 0")
        status = pair.proxy.status()["server"][0]
        assert status["paused"] == 0 and status["agent"] == 0, status
        pair.proxy.command("attach 0")
        until(lambda: pair.proxy.status()["server"][0]["paused"] == 1, "the page says so from the start")
        pair.proxy.command("resume 0")
        until(lambda: pair.proxy.status()["server"][0]["paused"] == 0, "the waker wakes")
        pair.proxy.command("attach 0")
        assert pair.proxy.status()["server"][0]["agent"] == 1
        pair.proxy.command("detach 0")
        pair.proxy.command("detach 0")


def a_swap_by_hand_moves_new_requests_only():
    with Pair() as pair:
        client = pair.send()
        assert pair.proxy.command("swap") == ["0"]
        assert pair.proxy.get().body == b"1"
        pair.gate[0].set()
        assert client.response().body == b"0"
        client.socket.close()


def an_idle_worker_sees_a_pause_within_a_moment():
    with Pair() as pair:
        delays = []
        for _ in range(50):
            client = pair.send()
            begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            count = len(pair.backend[1].requests)
            pair.proxy.command("pause 0")
            pair.arrives(1, count + 1)
            delays += [event.time - begin for event in map(Event, pair.proxy.command("events"))
                       if event.begins and event.reason == REASON_GC]
            pair.gate[1].set()
            assert client.response().body == b"1"
            client.socket.close()
            pair.gate[1].clear()
            pair.proxy.command("resume 0")
            pair.proxy.command("swap")
            until(lambda: pair.proxy.status()["server"][0]["in_flight"] == 0, "the request ends")
            pair.proxy.command("events")
        assert len(delays) == 50
        # A machine under load may be late; asleep until a timer would be 16 ms and more, every time.
        assert sorted(delays)[len(delays) // 2] < 5_000_000, sorted(delays)


run([value for name, value in list(globals().items())
     if callable(value) and getattr(value, "__module__", "") == "__main__"])
