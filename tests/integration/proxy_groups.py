#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""More than two servers, as a group or as one with several backups; routes that may be sent twice; the budget for it."""
import collections
import time

from proxy_group import *


def served(group, count):
    """How many of so many requests, one after another, each server answers."""
    return collections.Counter(int(group.proxy.get().body) for _ in range(count))


def a_group_shares_what_comes_one_after_another():
    for workers in (1, 2):
        with Group(3, balanced=1, workers=workers) as group:
            shares = served(group, 60)
            assert sorted(shares) == [0, 1, 2] and min(shares.values()) >= 60 // 3 // (3 if workers > 1 else 1), shares


def each_request_goes_to_the_server_with_the_least_in_flight():
    with Group(3, balanced=1, workers=2) as group:
        clients = [group.proxy.connect() for _ in range(9)]
        for number, client in enumerate(clients, 1):
            client.send(b"GET /gated HTTP/1.1\r\nHost: x\r\n\r\n")
            until(lambda: sum(server["in_flight"] for server in group.proxy.status()["server"]) == number, "it is in flight")
            loads = [server["in_flight"] for server in group.proxy.status()["server"]]
            assert max(loads) - min(loads) <= 1, loads
        # One of the three is done with its requests: all that come are its own until it has as many as the others.
        group.gate[1].set()
        until(lambda: group.proxy.status()["server"][1]["in_flight"] == 0, "its requests end")
        group.gate[1].clear()
        more = [group.send(at=1) for _ in range(3)]
        for gate in group.gate:
            gate.set()
        bodies = collections.Counter(client.response().body for client in clients + more)
        assert bodies == {b"0": 3, b"1": 6, b"2": 3}, bodies
        for client in clients + more:
            client.socket.close()


def a_group_keeps_away_from_those_that_stand_still():
    with Group(4, balanced=1) as group:
        group.proxy.command("pause 1")
        group.proxy.command("pause 3")
        shares = served(group, 40)
        assert sorted(shares) == [0, 2] and min(shares.values()) == 20, shares
        group.proxy.command("resume 3")
        assert sorted(served(group, 30)) == [0, 2, 3]
        # All of them: it waits at one of them, which is better than an error.
        for server in range(4):
            group.proxy.command(f"pause {server}")
        assert group.proxy.get().body in (b"0", b"1", b"2", b"3")


def a_request_moves_to_the_least_loaded_of_those_that_run():
    for balanced in (0, 1):
        with Group(4, balanced=balanced) as group:
            # Two at the second server while it is the only one that runs, then one at the first.
            for server in (0, 2, 3):
                group.proxy.command(f"pause {server}")
            loading = [group.send(at=1) for _ in range(2)]
            group.proxy.command("resume 0")
            if not balanced:
                while group.proxy.status()["active"] != 0:
                    group.proxy.command("swap")
            client = group.send(at=0)
            # The third stands still, the fourth has nothing to do.
            group.proxy.command("resume 3")
            group.proxy.command("pause 0")
            group.arrives(3)
            status = group.proxy.status()["server"]
            assert status[2]["requests"] == 0 and status[3]["moved_here"] == 1 and status[0]["moved_away"] == 1, status
            assert status[1]["moved_here"] == 0
            for gate in group.gate:
                gate.set()
            assert client.response().body in (b"0", b"3")
            for client in [client] + loading:
                client.socket.close()


def a_request_whose_new_server_fails_it_does_not_wait_for_the_one_that_stands_still():
    for refuses in (False, True):
        with Group(3, attempts=4) as group:
            failing = group.backend[1]
            failing.answer = lambda request, connection: None
            client = group.send()
            if refuses:
                failing.stop()
            group.proxy.command("pause 0")
            group.moves(client, to=2)
            until(lambda: group.proxy.status()["failed_over"] == 1, "it is counted")
            group.proxy.command("resume 0")
            assert [event.server for event in map(Event, group.proxy.command("events")) if event.begins] == [0, 1, 2]


def a_request_that_kills_servers_does_not_walk_through_all_of_them():
    with Group(4, attempts=4) as group:
        for server in (1, 2, 3):
            group.backend[server].answer = lambda request, connection: None
        client = group.send()
        group.proxy.command("pause 0")
        group.arrives(2)
        time.sleep(0.05)
        assert not group.backend[3].requests
        group.proxy.command("resume 0")
        group.gate[0].set()
        assert client.response().body == b"0"
        client.socket.close()


def of_equals_a_request_moves_to_one_with_a_connection_that_stands():
    with Group(4) as group:
        for _ in range(2):
            group.proxy.command("swap")
        assert set(served(group, 1)) == {2}
        for _ in range(2):
            group.proxy.command("swap")
        client = group.send(at=0)
        group.proxy.command("pause 0")
        group.arrives(2, 2)
        status = group.proxy.status()["server"]
        assert status[2]["moved_here"] == 1 and status[2]["connects"] == 1, status
        for gate in group.gate:
            gate.set()
        assert client.response().body in (b"0", b"2")
        client.socket.close()


def the_next_backup_that_can_becomes_the_active_server():
    with Group(4) as group:
        assert set(served(group, 3)) == {0}
        group.proxy.command("pause 1")
        group.proxy.command("pause 0")
        until(lambda: group.proxy.status()["active"] == 2, "the third takes over")
        assert set(served(group, 3)) == {2}
        group.proxy.command("resume 0")
        group.proxy.command("resume 1")
        assert set(served(group, 3)) == {2}
        group.proxy.command("pause 2")
        until(lambda: group.proxy.status()["active"] == 3, "the fourth takes over")
        group.proxy.command("pause 3")
        until(lambda: group.proxy.status()["active"] == 0, "and after it the first")
        assert group.proxy.command("swap") == ["0"] and group.proxy.status()["active"] == 1
        assert set(served(group, 2)) == {1}


def a_server_that_is_gone_costs_a_group_no_request():
    for balanced in (0, 1):
        with Group(3, balanced=balanced) as group:
            assert set(served(group, 6)) == ({0, 1, 2} if balanced else {0})
            group.backend[0].stop()
            shares = served(group, 30)
            assert set(shares) == ({1, 2} if balanced else {1}), shares
            group.backend[1].stop()
            assert set(served(group, 10)) == {2}
            group.backend[2].stop()
            assert group.proxy.get().status in (502, 503)


def the_backup_of_a_server_that_is_gone_stays_the_active_one():
    with Group(3) as group:
        port = group.backend[0].port
        assert group.proxy.get().body == b"0"
        group.backend[0].stop()
        assert set(served(group, 3)) == {1}
        assert group.proxy.status()["active"] == 1
        again = Backend(lambda r, c: ok(b"0"), port=port)
        # Longer than it is believed to be down.
        time.sleep(0.25)
        assert set(served(group, 5)) == {1}
        group.backend[1].stop()
        assert set(served(group, 5)) == {2}
        group.backend[2].stop()
        assert group.proxy.get().body == b"0"
        again.stop()


def a_server_that_swallows_connections_is_tried_by_one_request_at_a_time():
    silent = socket.socket()
    silent.bind(("127.0.0.1", 0))
    silent.listen(0)
    # The queue of those that nobody accepts is full: what else comes is not answered.
    full = [socket.socket() for _ in range(4)]
    for connection in full:
        connection.setblocking(False)
        connection.connect_ex(silent.getsockname())
    backends = [Backend(lambda r, c: (time.sleep(0.05), ok(b"x"))[1]) for _ in range(2)]
    with Proxy(f"127.0.0.1:{silent.getsockname()[1]}", *backends, balanced=1, connect_ms=300) as proxy:
        def slow(count):
            times = []

            def one():
                begin = time.monotonic()
                assert proxy.get().body == b"x"
                times.append(time.monotonic() - begin)

            threads = [threading.Thread(target=one) for _ in range(count)]
            for thread in threads:
                thread.start()
                time.sleep(0.002)
            for thread in threads:
                thread.join()
            assert len(times) == count
            return sum(duration > 0.25 for duration in times)

        slow(3)
        until(lambda: proxy.status()["server"][0]["connect_failures"] > 0, "it is found out")
        for _ in range(3):
            time.sleep(0.5)
            assert slow(20) <= 2, "many requests wait for a server that does not answer"
        assert proxy.status()["server"][0]["connect_failures"] <= 8
    for connection in full + [silent]:
        connection.close()


def sixteen_servers_serve():
    with Group(16, balanced=1, workers=2) as group:
        assert len(served(group, 200)) == 16
        for server in range(15):
            group.proxy.command(f"pause {server}")
        assert set(served(group, 5)) == {15}
        for server in range(16):
            group.proxy.command(f"detach {server}")
        assert len(served(group, 200)) == 16


def the_mode_can_change_while_it_serves():
    with Group(3) as group:
        assert set(served(group, 6)) == {0}
        group.proxy.command("balanced 1")
        assert set(served(group, 12)) == {0, 1, 2}
        assert group.proxy.command("swap") != ["0"]
        group.proxy.command("balanced 0")
        assert set(served(group, 6)) == {0}
        assert group.proxy.command("swap") == ["0"] and set(served(group, 3)) == {1}


def a_post_moves_by_its_route_only():
    body = b"{\"query\": 1}" * 3000
    routes = {"route": "/*/_search", "route2": "/gated/_msearch/**"}
    for target, moves in (("/gated/_search?q=/x", True), ("/gated/_msearch/a/b", True), ("http://x/gated/_search", True), ("/gated/_doc", False),
                          ("/gated/x/_search", False), ("/gated/_msearch/../_doc", False), ("/gated/_search/", False)):
        with Group(3, balanced=1, **routes) as group:
            for server in (1, 2):
                group.proxy.command(f"pause {server}")
            group.gate[0].clear()
            client = group.send(f"POST {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n", body)
            group.proxy.command("resume 2")
            group.proxy.command("pause 0")
            if moves:
                group.arrives(2)
                assert group.backend[2].requests[0].body == body and group.backend[0].requests[0].body == body
            else:
                until(lambda: not_moved(group.proxy.status()) == {"method": 1}, target)
                time.sleep(0.02)
                assert not group.backend[1].requests and not group.backend[2].requests
            for gate in group.gate:
                gate.set()
            assert client.response().status == 200
            client.socket.close()


def the_budget_bounds_what_moves_and_says_so():
    with Group(3, balanced=0, part=0, floor=1, workers=2) as group:
        clients = [group.send() for _ in range(16)]
        group.proxy.command("pause 0")
        # Ten seconds' worth, and perhaps one more that came meanwhile.
        until(lambda: group.proxy.status()["server"][0]["moved_away"] + not_moved(group.proxy.status()).get("budget", 0) == 16, "judged")
        moved = group.proxy.status()["server"][0]["moved_away"]
        assert 10 <= moved <= 11 and group.proxy.status()["failed_over"] == 0
        until(lambda: len(group.backend[1].requests) + len(group.backend[2].requests) == moved, "those that move arrive")
        # The others wait where they are, and all are answered once.
        for gate in group.gate:
            gate.set()
        assert all(client.response().status == 200 for client in clients)
        for client in clients:
            client.socket.close()
        assert len(group.backend[0].requests) == 16 and len(group.backend[1].requests) + len(group.backend[2].requests) == moved


def a_part_of_the_requests_may_move():
    with Group(2, part=0.5, floor=0) as group:
        client = group.send()
        group.proxy.command("pause 0")
        until(lambda: not_moved(group.proxy.status()) == {"budget": 1}, "nothing was saved up")
        group.proxy.command("resume 0")
        group.gate[0].set()
        assert client.response().body == b"0"
        client.socket.close()
        assert group.proxy.command("swap") == ["0"]
        for _ in range(20):
            group.proxy.get()
        group.gate[0].clear()
        group.gate[1].clear()
        while group.proxy.status()["active"] != 0:
            group.proxy.command("swap")
        for _ in range(20):
            assert group.proxy.get().body == b"0"
        clients = [group.send() for _ in range(20)]
        group.proxy.command("pause 0")
        until(lambda: group.proxy.status()["server"][0]["moved_away"] + not_moved(group.proxy.status()).get("budget", 0) == 21, "judged")
        # Half of the 41 that this server had been sent by then.
        assert 18 <= group.proxy.status()["server"][0]["moved_away"] <= 20, group.proxy.status()
        for gate in group.gate:
            gate.set()
        assert all(client.response().status == 200 for client in clients)
        for client in clients:
            client.socket.close()


def a_place_that_comes_free_at_any_server_of_a_group_is_taken():
    with Group(3, balanced=1, in_flight=1, queue=10, workers=2) as group:
        clients = [group.proxy.connect() for _ in range(5)]
        for number, client in enumerate(clients, 1):
            client.send(b"GET /gated HTTP/1.1\r\nHost: x\r\n\r\n")
            until(lambda: sum(s["in_flight"] for s in group.proxy.status()["server"]) + group.proxy.status()["queued"] == number, "there")
        assert [s["in_flight"] for s in group.proxy.status()["server"]] == [1, 1, 1] and group.proxy.status()["queued"] == 2
        # Only the third answers: those that wait are its own, one after the other.
        group.gate[2].set()
        group.arrives(2, 3)
        until(lambda: group.proxy.status()["server"][2]["in_flight"] == 0, "answered")
        assert len(group.backend[0].requests) == len(group.backend[1].requests) == 1
        for gate in group.gate:
            gate.set()
        assert all(client.response().status == 200 for client in clients)
        for client in clients:
            client.socket.close()


run([value for name, value in list(globals().items())
     if callable(value) and getattr(value, "__module__", "") == "__main__" and name != "served"])
