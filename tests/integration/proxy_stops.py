#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Servers that stand still for other reasons than collections, or not long enough; who tells, and what is told of it."""
import os
import re
import signal
import socket
import threading
import time
from pathlib import Path

from proxy_group import *

NONE, SAFEPOINT, SIGNAL, GC, STALL = 0, 1, 2, 3, 4
PREDICTED, ALWAYS, NEVER = 0, 1, 2
REASON_SAFEPOINT, REASON_STALL = 4, 5
ALL = {"all_stops": 1, "table": 1}


def stopped_events(proxy):
    """(server, kind, requests that were in flight, moved, not moved, us until the replay) of each stop that was told."""
    return [(event.extra >> 24, event.extra >> 16 & 255, event.extra & 0xffff, event.arg[2] >> 32, event.arg[2] >> 16 & 0xffff,
             event.arg[1] & 0xffffffff)
            for event in map(Event, proxy.command("events")) if event.kind == SERVER_STOPPED]


def reason_of_second_attempt(events):
    return [event.reason for event in events if event.begins and event.number == 1]


def a_safepoint_that_the_kernel_tells_moves_what_is_in_flight_at_every_worker():
    with Pair(workers=4, **ALL) as pair:
        clients = [pair.send() for _ in range(16)]
        pair.proxy.command(f"tell 0 {SAFEPOINT}")
        pair.arrives(1, 16)
        pair.gate[1].set()
        assert all(client.response().body == b"1" for client in clients)
        pair.proxy.command("tell 0 0")
        until(lambda: not pair.proxy.status()["server"][0]["paused"], "the stop is over")
        for client in clients:
            client.socket.close()
        events = pair.proxy.events()
        assert reason_of_second_attempt(events) == [REASON_SAFEPOINT] * 16
        told = [event for event in events if event.kind == SERVER_STOPPED] + \
            [event for event in map(Event, pair.proxy.command("events")) if event.kind == SERVER_STOPPED]
        assert sum(event.extra & 0xffff for event in told) == 16 and sum(event.arg[2] >> 32 for event in told) == 16, told
        until(lambda: pair.proxy.status()["failed_over"] == 16, "they are counted")
        status = pair.proxy.status()
        assert not not_moved(status), status
        # They had to connect there: each was timed when it was sent.
        assert sum(status["reaction_to_stop"]["count"]) == 16 and status["reaction_to_stop"]["ns_total"] > 0, status
        assert status["server"][0]["stops"] == [1, 0, 0, 0], status


def the_end_of_a_collection_is_not_the_end_of_its_safepoint():
    with Pair(**ALL) as pair:
        client = pair.send()
        pair.proxy.command(f"tell 0 {SAFEPOINT}")
        pair.arrives(1)
        pair.proxy.command("pause 0")
        until(lambda: pair.proxy.status()["server"][0]["stop"] == GC, "it is known to be a collection")
        pair.proxy.command("resume 0")
        time.sleep(0.05)
        status = pair.proxy.status()
        assert status["server"][0]["paused"] and status["server"][0]["stop"] == GC, status
        assert pair.proxy.get().body == b"1"
        pair.proxy.command("tell 0 0")
        until(lambda: not pair.proxy.status()["server"][0]["paused"], "the safepoint's end is seen")
        assert pair.proxy.status()["server"][0]["stops"] == [0, 0, 1, 0]
        pair.gate[0].set()
        assert client.response().body == b"0"
        client.socket.close()


def without_the_kernel_the_end_of_a_collection_is_the_end():
    with Pair() as pair:
        pair.proxy.command("pause 0")
        until(lambda: pair.proxy.status()["server"][0]["paused"], "the pause is seen")
        pair.proxy.command("resume 0")
        until(lambda: not pair.proxy.status()["server"][0]["paused"], "its end is seen")


def a_safepoint_that_is_not_heeded_may_become_a_collection_that_is():
    with Pair(table=1) as pair:
        client = pair.send()
        pair.proxy.command(f"tell 0 {SAFEPOINT}")
        time.sleep(0.05)
        assert not pair.backend[1].requests and not not_moved(pair.proxy.status())
        assert pair.proxy.get().body == b"0"
        pair.proxy.command("pause 0")
        pair.moves(client)
        pair.proxy.command("resume 0")
        # The rest of it is the collection's.
        assert pair.proxy.get().body == b"1"
        pair.proxy.command("tell 0 0")


def a_process_that_a_signal_stops_is_left_at_once():
    with Pair(**ALL) as pair:
        client = pair.send()
        pair.proxy.command(f"tell 0 {SIGNAL}")
        pair.arrives(1)
        pair.gate[1].set()
        assert client.response().body == b"1"
        assert pair.proxy.get().body == b"1"
        client.socket.close()
        assert REASON_STALL in reason_of_second_attempt(pair.proxy.events())


def beating(test, tries=5):
    """Runs the test with hearts that beat. Where they were late by themselves, for want of a CPU, it is repeated: that is a stall, too."""
    for last in (False,) * (tries - 1) + (True,):
        with Pair(all_stops=1) as pair:
            pair.proxy.command("beat 0")
            pair.proxy.command("beat 1")
            try:
                return test(pair)
            except AssertionError:
                late_ms = pair.proxy.status()["beat_late_ns"] / 1e6
                if last or late_ms < 15:
                    raise
                print(f"        hearts stood still for {late_ms:.1f} ms: once more", flush=True)


def a_heartbeat_that_is_missing_is_a_stall_until_it_is_back():
    def check(pair):
        client = pair.send()
        time.sleep(0.1)
        assert not pair.backend[1].requests, "a stall is seen where there is none"
        began = time.monotonic()
        pair.proxy.command("unbeat 0")
        pair.arrives(1)
        took = time.monotonic() - began
        assert took > 0.015, f"a stall after {took * 1e3:.1f} ms: a heartbeat may be that old"
        status = pair.proxy.status()
        assert status["server"][0]["stop"] == STALL, status
        assert pair.proxy.get().body == b"1"
        pair.proxy.command("beat 0")
        until(lambda: not pair.proxy.status()["server"][0]["paused"], "the heartbeat is seen again")
        pair.gate[1].set()
        assert client.response().body == b"1"
        client.socket.close()
        assert REASON_STALL in reason_of_second_attempt(pair.proxy.events())
        assert pair.proxy.status()["server"][0]["stops"] == [0, 0, 0, 1]

    beating(check)


def a_heartbeat_is_not_missed_where_nothing_is_in_flight():
    with Pair(all_stops=1) as pair:
        pair.proxy.command("beat 0")
        assert pair.proxy.get().body == b"0"
        time.sleep(0.1)
        pair.proxy.command("unbeat 0")
        time.sleep(0.2)
        assert not pair.proxy.status()["server"][0]["paused"]


def who_stood_still_himself_concludes_nothing():
    with Pair(all_stops=1, workers=2) as pair:
        pair.proxy.command("beat 0")
        pair.proxy.command("beat 1")
        clients = [pair.send() for _ in range(6)]
        # The heart of this server is in the same process, and stands still as well.
        for length in (30, 50, 100, 27, 200, 33, 61, 40):
            os.kill(pair.proxy.process.pid, signal.SIGSTOP)
            time.sleep(length / 1000)
            os.kill(pair.proxy.process.pid, signal.SIGCONT)
            time.sleep(0.04)
        assert not pair.backend[1].requests, "a stall that was its own"
        pair.gate[0].set()
        assert all(client.response().body == b"0" for client in clients)
        for client in clients:
            client.socket.close()
        assert sum(pair.proxy.status()["server"][0]["stops"]) == 0


class Silent(Backend):
    """A server whose process is gone, while somebody else still holds its connections open and says nothing."""

    def serve(self, connection):
        while data := connection.recv(65536):
            self.requests.append(data)
            if b" /begun " in data:
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")


def what_waits_for_a_process_that_has_ended_moves_or_is_answered_502():
    silent, other = Silent(), Backend(lambda request, connection: ok(b"other"))
    with Proxy(silent, other, all_stops=1) as proxy:
        clients = {}
        for name, request in (("get", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"), ("post", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"),
                              ("begun", "GET /begun HTTP/1.1\r\nHost: x\r\n\r\n")):
            clients[name] = proxy.connect()
            clients[name].send(request.encode())
        until(lambda: len(silent.requests) == 3, "they reach the server")
        clients["begun"].until(b"\r\n\r\nab")
        began = time.monotonic()
        silent.listener.shutdown(socket.SHUT_RDWR)
        silent.listener.close()
        proxy.command("gone 0")
        assert clients["get"].response().body == b"other"
        assert clients["post"].response().status == 502
        assert time.monotonic() - began < 1
        # What has been answered in part is not replaced; its connection's end is its end.
        for connection in silent.open:
            connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        assert clients["begun"].closed()
        for client in clients.values():
            client.socket.close()
        assert len(other.requests) == 1
        assert proxy.get().body == b"other"


def what_its_successor_has_got_is_left_there():
    """The end of a process is noticed late, when the next one listens there already."""
    released = threading.Event()

    def slow(request, connection):
        if request.target == "/slow":
            released.wait(10)
        return ok(b"successor")

    successor, other = Backend(slow), Backend(lambda request, connection: ok(b"other"))
    with Proxy(successor, other, all_stops=1) as proxy, proxy.connect() as client:
        client.send(b"POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        until(lambda: len(successor.requests) == 1, "it reaches the server")
        proxy.command("gone 0 10000")  # who was alive 10 s ago
        time.sleep(0.1)
        released.set()
        assert client.response().body == b"successor"
        assert not other.requests


def a_body_that_is_still_coming_when_its_server_stops_moves_once_it_is_here():
    for chunked, moves in ((False, True), (True, True), (False, False)):
        body = os.urandom(20000)
        head, data = post(body, chunked)
        with Pair(post=1) as pair, pair.proxy.connect(timeout=5) as client:
            client.send(head.encode() + data[:10000])
            until(lambda: pair.proxy.status()["server"][0]["requests"] == 1, "it is on its way")
            pair.proxy.command("pause 0")
            until(lambda: pair.proxy.status()["server"][0]["paused"], "the pause is seen")
            time.sleep(0.05)
            assert not not_moved(pair.proxy.status()) and not pair.backend[1].requests, pair.proxy.status()
            if not moves:
                pair.proxy.command("resume 0")
                until(lambda: not_moved(pair.proxy.status()) == {"body": 1}, "that it still came is why it stayed")
            client.send(data[10000:])
            pair.arrives(moves)
            pair.gate[moves].set()
            assert client.response().body == b"%d" % moves and pair.backend[moves].requests[0].body == body
            pair.proxy.command("resume 0")
            until(lambda: not pair.proxy.status()["server"][0]["paused"], "its end is seen")
            until(lambda: pair.proxy.status()["requests"] == 1, "its end is counted")
            assert pair.proxy.status()["failed_over"] == moves and not_moved(pair.proxy.status()) == ({} if moves else {"body": 1})


def teach(pair, server, us, count=20):
    for _ in range(count):
        pair.proxy.command(f"blink {server} {us}")
        seen = pair.proxy.status()["server"][server]["pauses"]
        until(lambda: pair.proxy.status()["server"][server]["pauses"] >= seen, "it is seen")
        time.sleep(0.002)


def answers(pair, count=20, seconds=0.005):
    """So that it is known what one takes."""
    for backend in pair.backend:
        backend.answer = lambda request, connection, answer=backend.answer: \
            (time.sleep(seconds if request.target == "/" else 0), answer(request, connection))[1]
    for _ in range(count):
        pair.proxy.get()


def a_pause_that_is_expected_to_be_short_moves_nothing():
    with Pair(when=PREDICTED) as pair:
        answers(pair)
        teach(pair, 0, 50)
        client = pair.send()
        longest = 0
        for _ in range(50):
            pair.proxy.command("blink 0 50")
            longest = max(longest, int(pair.proxy.command("pulse 0 50")[0]))
            time.sleep(0.002)
        pair.gate[0].set()
        assert client.response().body in (b"0", b"1")
        client.socket.close()
        status = pair.proxy.status()
        if longest > 2000:
            print(f"  one took {longest} us: this machine kept its end from coming, which shows nothing")
            return
        assert not pair.backend[1].requests and status["failed_over"] == 0, status
        assert set(not_moved(status)) <= {"short"}, status
        assert status["active"] == 0 and status["switches"] == 0, status


def a_pause_that_is_expected_to_last_moves_at_once():
    with Pair(when=PREDICTED) as pair:
        answers(pair)
        teach(pair, 0, 100000)
        client = pair.send()
        pair.proxy.command("pause 0")
        pair.moves(client)
        pair.proxy.command("resume 0")
        until(lambda: not pair.proxy.status()["server"][0]["paused"], "its end is seen")
        until(lambda: pair.proxy.status()["failed_over"] == 1, "it is counted")
        status = pair.proxy.status()
        assert status["active"] == 1 and not not_moved(status), status
        assert sum(status["reaction_to_stop"]["count"]) == 1 and status["server"][0]["service_ns"] > 0, status
        # At once: what other threads of this machine do in between is not the worker's.
        server, kind, in_flight, moved, kept, us = stopped_events(pair.proxy)[-1]
        assert (server, kind, in_flight, moved, kept) == (0, GC, 1, 1, 0) and 0 < us < 100000, us


def a_pause_that_outlasts_what_was_expected_moves_in_the_end():
    with Pair(when=PREDICTED) as pair:
        answers(pair)
        teach(pair, 0, 50)
        client = pair.send()
        pair.proxy.command("pause 0")
        pair.moves(client)
        until(lambda: pair.proxy.status()["failed_over"] == 1, "it is counted")
        assert not not_moved(pair.proxy.status()), pair.proxy.status()
        pair.proxy.command("resume 0")


def causes(proxy):
    return [event.text for event in map(Event, proxy.command("events")) if event.kind == SERVER_STOPPED]


def moved_within(pair, limit_us):
    pair.proxy.command("resume 0")
    until(lambda: not pair.proxy.status()["server"][0]["paused"], "its end is seen")
    *_, us = stopped_events(pair.proxy)[-1]
    assert 0 < us < limit_us, f"after {us} us: it has only outlasted what was expected"


def a_cause_that_is_known_only_at_the_end_is_told_and_learned_by():
    with Pair(when=PREDICTED) as pair:
        answers(pair, seconds=0.05)
        for _ in range(3):
            client = pair.send()
            pair.proxy.command("cause 0")
            pair.proxy.command("pause 0")
            until(lambda: pair.proxy.status()["server"][0]["paused"], "the pause is seen")
            time.sleep(0.2)
            pair.proxy.command("cause 0 full")
            pair.proxy.command("resume 0")
            until(lambda: not pair.proxy.status()["server"][0]["paused"], "its end is seen")
            pair.gate[0].set()
            client.response()
            client.socket.close()
            until(lambda: all(server["in_flight"] == 0 for server in pair.proxy.status()["server"]), "it is over")
            pair.gate[0].clear()
            if pair.proxy.status()["active"]:
                pair.proxy.command("swap")
        assert causes(pair.proxy) == ["full"] * 3
        pair.proxy.command("swap")
        for _ in range(20):
            assert pair.proxy.get().body == b"1"
        pair.proxy.command("swap")
        # Of all collections together, those of that cause are forgotten.
        pair.proxy.command("cause 0 young")
        teach(pair, 0, 50, 200)
        client, before = pair.send(), len(pair.backend[1].requests)
        pair.proxy.command("cause 0 full")
        pair.proxy.command("pause 0")
        pair.moves(client, before=before)
        moved_within(pair, 40000)


def a_cause_that_becomes_known_is_heeded():
    with Pair(when=PREDICTED) as pair:
        answers(pair, seconds=0.3)
        pair.proxy.command("cause 0 full")
        teach(pair, 0, 5000000, 5)
        # Of all collections together those are forgotten, and the others take 40 ms: that is when it is looked at again.
        pair.proxy.command("cause 0 young")
        teach(pair, 0, 40000, 200)
        pair.proxy.command("cause 0")
        client, before = pair.send(), len(pair.backend[1].requests)
        pair.proxy.command("pause 0")
        until(lambda: pair.proxy.status()["server"][0]["paused"], "the pause is seen")
        pair.proxy.command("cause 0 full")
        pair.moves(client, before=before)
        moved_within(pair, 150000)


def a_pause_unlike_any_before_is_not_waited_for():
    with Pair(when=PREDICTED) as pair:
        client = pair.send()
        pair.proxy.command("pause 0")
        pair.moves(client)


def with_never_new_requests_avoid_it_and_none_moves():
    with Pair(when=NEVER) as pair:
        teach(pair, 0, 100000)
        client = pair.send()
        pair.proxy.command("pause 0")
        until(lambda: not_moved(pair.proxy.status()) == {"off": 1}, "it is judged")
        assert pair.proxy.get().body == b"1"
        pair.gate[0].set()
        assert client.response().body == b"0"
        client.socket.close()
        assert [request.target for request in pair.backend[1].requests] == ["/"]


def two_servers_that_both_collect_do_not_take_turns_faster_than_allowed():
    with Pair(switch_ms=300) as pair:
        for _ in range(4):
            for server in (0, 1):
                pair.proxy.command(f"pause {server}")
                assert pair.proxy.get().body == b"%d" % (1 - server), "a new request goes to who stands still"
                pair.proxy.command(f"resume {server}")
                until(lambda: not pair.proxy.status()["server"][server]["paused"], "its end is seen")
        status = pair.proxy.status()
        assert status["switches"] == 1 and status["switch_backs"] == 0 and status["active"] == 1, status
        # One that goes on is not put up with for longer.
        pair.proxy.command("pause 1")
        until(lambda: pair.proxy.status()["active"] == 0, "the other one takes over")
        pair.proxy.command("resume 1")
        status = pair.proxy.status()
        assert status["switches"] == 2 and status["switch_backs"] == 1, status


def a_request_at_two_servers_that_stop_goes_to_the_third():
    with Group(3, attempts=3) as group:
        client = group.send()
        group.proxy.command("pause 0")
        until(lambda: sum(len(backend.requests) for backend in group.backend[1:]) == 1, "it moves")
        second = 1 if group.backend[1].requests else 2
        group.proxy.command(f"pause {second}")
        group.arrives(3 - second)
        group.gate[3 - second].set()
        assert client.response().body == b"%d" % (3 - second)
        client.socket.close()
        group.proxy.command("resume 0")
        group.proxy.command(f"resume {second}")
        assert not sum(group.proxy.status()["reaction_to_return"]["count"]), "there was always one that ran"


def a_stop_that_nobody_meets_is_not_told():
    with Pair(**ALL) as pair:
        pair.proxy.command("pause 0")
        until(lambda: pair.proxy.status()["server"][0]["paused"], "it is seen")
        pair.proxy.command("resume 0")
        until(lambda: not pair.proxy.status()["server"][0]["paused"], "its end is seen")
        assert stopped_events(pair.proxy) == []


def sleeps(proxy):
    """How often its workers have gone to sleep."""
    tasks = Path(f"/proc/{proxy.process.pid}/task")
    return sum(int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (task / "status").read_text(), re.M)[1])
               for task in tasks.iterdir() if (task / "comm").read_text().startswith("tailor-worker"))


def who_has_nothing_at_a_server_is_not_woken_by_its_stops_and_learns_of_them_when_he_is():
    with Pair(when=PREDICTED, **ALL) as pair:
        answers(pair, 6, seconds=0.3)
        until(lambda: pair.proxy.status()["clients"] == 0, "all are idle")
        before, since = sleeps(pair.proxy), time.monotonic()
        while time.monotonic() < since + 0.3:
            time.sleep(0.01)
            if sleeps(pair.proxy) != before:
                before, since = sleeps(pair.proxy), time.monotonic()
        for _ in range(20):
            pair.proxy.command(f"tell 0 {SAFEPOINT}")
            time.sleep(0.002)
            pair.proxy.command("tell 0 0")
            time.sleep(0.002)
        woken = sleeps(pair.proxy) - before
        assert woken < 3, f"{woken} times were idle workers woken"
        for _ in range(5):
            pair.proxy.command(f"tell 0 {SAFEPOINT}")
            time.sleep(0.5)
            pair.proxy.command("tell 0 0")
        # By whoever has had a turn in one.
        if pair.proxy.status()["active"]:
            pair.proxy.command("swap")
        client = pair.send()
        pair.proxy.command(f"tell 0 {SAFEPOINT}")
        began = time.monotonic()
        pair.arrives(1)
        took = time.monotonic() - began
        pair.gate[1].set()
        assert client.response().body == b"1"
        client.socket.close()
        status = pair.proxy.status()
        assert status["server"][0]["stops"][0] >= 3, status
        assert took < 0.2, f"after {took:.3f} s: it was not known how long they are"
        pair.proxy.command("tell 0 0")


run([value for name, value in list(globals().items())
     if callable(value) and getattr(value, "__module__", "") == "__main__" and name.islower() and
     name not in ("stopped_events", "beating", "reason_of_second_attempt", "teach", "answers", "causes", "sleeps", "moved_within")])
