#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Connections that wait at the other server for requests that move."""
import time

from proxy_group import *


def a_request_that_moves_finds_a_connection():
    with Pair() as pair:
        client = pair.send()
        until(lambda: pair.proxy.status()["server"][1]["connections"] == 1, "a connection is there before it is needed")
        pair.proxy.command("pause 0")
        pair.arrives(1)
        pair.gate[1].set()
        assert client.response().body == b"1"
        client.socket.close()
        own, = check_events(pair.proxy.events()).values()
        assert ATTEMPT_BEGIN not in [event.kind for event in own if event.number == 1], own
        assert pair.proxy.status()["server"][1]["connects"] == 1
        pair.proxy.command("resume 0")
    # Nobody moves, and nobody connects for that.
    for options in ({"failover": 0}, {"when": 2}):
        with Pair(**options) as pair:
            assert pair.proxy.get().body == b"0"
            time.sleep(0.15)
            assert pair.proxy.get().body == b"0"
            assert pair.proxy.status()["server"][1]["connects"] == 0


def requests_that_move_together_find_a_connection_each():
    with Pair() as pair:
        clients = [pair.send()]
        until(lambda: pair.proxy.status()["server"][1]["connections"] == 1, "a connection is there before it is needed")
        time.sleep(0.15)
        clients += [pair.send() for _ in range(5)]
        time.sleep(0.15)
        clients.append(pair.send())
        until(lambda: pair.proxy.status()["server"][1]["connections"] == 7, "one is there for each request")
        pair.proxy.command("pause 0")
        pair.arrives(1, 7)
        pair.gate[1].set()
        for client in clients:
            assert client.response().body == b"1"
            client.socket.close()
        assert pair.proxy.status()["server"][1]["connects"] == 7
        pair.proxy.command("resume 0")


def pause_both(pair):
    for server in (1, 0):
        pair.proxy.command(f"pause {server}")
        until(lambda: pair.proxy.status()["server"][server]["paused"], f"it is seen that {server} stands still")


def answered_by(pair, server, clients):
    pair.gate[server].set()
    for client in clients:
        assert client.response().body == b"%d" % server
        client.socket.close()


def requests_that_wait_for_the_first_to_go_on_find_a_connection_each():
    for come_first in (True, False):
        with Pair() as pair:
            if come_first:
                # Before the second stop: nobody comes later and asks for the others, once the first connection stands.
                pair.proxy.command("pause 1")
                clients = [pair.send() for _ in range(20)]
                pair.proxy.command("pause 0")
            else:
                pause_both(pair)
                clients = [pair.send() for _ in range(20)]
            until(lambda: pair.proxy.status()["server"][1]["connections"] == 20, "one is there for each that waits")
            before = pair.proxy.status()["server"][1]["connects"]
            pair.proxy.command("resume 1")
            pair.arrives(1, 20)
            answered_by(pair, 1, clients)
            status = pair.proxy.status()
            assert status["server"][1]["connects"] == before and sum(status["reaction_to_return"]["count"]) == 20, status
            pair.proxy.command("resume 0")


def no_more_than_fit_into_the_queue_of_a_program_that_does_not_accept():
    with Pair() as pair:
        pause_both(pair)
        clients = [pair.send() for _ in range(80)]
        time.sleep(0.2)
        assert 16 <= pair.proxy.status()["server"][1]["connections"] <= 32
        answered_by(pair, 0, clients)


def that_one_cannot_be_made_to_a_server_that_stands_still_says_nothing_about_it():
    with Pair() as pair:
        pair.proxy.command("pause 1")
        clients = [pair.send()]
        pair.backend[1].stop()
        port = pair.backend[1].port
        pair.proxy.command("pause 0")
        until(lambda: pair.proxy.status()["server"][1]["connect_failures"] == 1, "one is tried")
        again = Backend(lambda request, connection: ok(b"1"), port=port)
        pair.proxy.command("resume 1")
        answered_by(pair, 1, clients)
        assert len(again.requests) == 1 and pair.proxy.status()["failed_over"] == 1, pair.proxy.status()
        pair.proxy.command("resume 0")


def a_backup_that_takes_no_connections_is_not_asked_all_the_time():
    backend, closed = Backend(), Backend()
    closed.stop()
    with Proxy(backend, closed) as proxy, proxy.connect() as client:
        began = time.monotonic()
        while time.monotonic() < began + 1.5:
            client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert client.response().status == 200
        status = proxy.status()
        assert 1 <= status["server"][1]["connects"] <= 3 and status["active"] == 0, status


run([value for name, value in list(globals().items())
     if callable(value) and getattr(value, "__module__", "") == "__main__" and name not in ("pause_both", "answered_by")])
