# SPDX-License-Identifier: Apache-2.0
"""What `tailor dump --failovers` says of a real pair: each stop once, however many workers met it, as long as the JVM itself
logged it, with what was moved; and of a stopped process that it was no collection."""
import json
import os
import re
import signal
import socket
import time

import harness
from harness import check

NS_PER_MS = 1_000_000
STOP_S = 0.4
STOPS = 3
REACTIONS = {"stop": "reactions", "return": "reactions_to_returns"}  # what the metrics call them, and the status


def failovers(scene, store):
    process = scene.run("dump", harness.TAILOR, "dump", "--failovers", "--json", store)
    check(process.popen.returncode == 0, f"tailor dump --failovers ended with {process.popen.returncode}:\n{process.log()}")
    return json.loads(process.out())["failovers"]


def check_each(found):
    """What holds for any."""
    for one in found:
        check(one["moved"] + one["not_moved"] > 0 or one["in_flight"] > 0, f"nothing was in flight: {one}")
        # The stop may be over before the bytes of a moved request go anywhere: there may be no connection yet.
        check(one["reacted_ns"] is None or one["moved"] > 0, f"it reacted, and moved nothing: {one}")
        check((one["why_not"] is not None) == (one["not_moved"] > 0), f"not moved without a reason: {one}")
        check(one["reacted_ns"] is None or one["reacted_ns"] >= one["noticed_ns"], f"it reacted before it noticed: {one}")
        check(one["saved_requests"] <= one["moved"], f"more was saved than moved: {one}")
        check((one["saved_estimate_ns"] or 0) <= one["saved_requests"] * one["length_ns"], f"more than the stop was saved: {one}")
        check(not one["incomplete"], f"events were lost: {one}")
    for name in "ab":
        own = sorted((one["begin_ns"], one["begin_ns"] + one["length_ns"]) for one in found if one["server"] == name)
        # Whoever tells of the end may be somewhat later than who tells of the next begin.
        for (begin, end), (next_begin, next_end) in zip(own, own[1:]):
            check(end - next_begin < min(end - begin, next_end - next_begin) / 2 + NS_PER_MS / 2,
                  f"one stop of {name} is told of twice, to {end} and from {next_begin}: {found}")


def check_collections(found, servers, status):
    collections = [one for one in found if one["kind"] == "gc"]
    check(len(collections) >= 5, f"only {len(collections)} collections; the load was meant to cause more: {found}")
    differing = []
    for one in collections:
        begin_ns, end_ns = one["begin_ns"], one["begin_ns"] + one["length_ns"]
        near = [pause for pause in harness.gc_pauses(servers[one["server"]].gc_log) if pause[0] < end_ns and pause[1] > begin_ns]
        check(near, f"the log of {one['server']} has no collection then: {one}")
        check(one["cause"] == "Allocation Failure", f"it was an allocation that failed: {one}")
        # It begins with the time to the safepoint, and is over when a worker that had a CPU knew. A host that freezes the
        # machine is in some.
        if not (abs(end_ns - near[-1][1]) < 3 * NS_PER_MS and -NS_PER_MS < near[0][0] - begin_ns < 30 * NS_PER_MS):
            differing.append((one, near))
    check(len(differing) <= 0.2 * len(collections), f"{len(differing)} of {len(collections)} differ from the JVM's log: {differing}")
    moved = sum(one["moved"] for one in found)
    away = sum(server["moved_away"] for server in status["servers"])
    check(moved > 0, f"nothing was moved: {found}")
    check(moved == away, f"{moved} moved by the failovers, {away} by the counters: {status}")
    sent = 0
    for reactions in (status[key] for key in REACTIONS.values()):
        check(reactions["count"] == sum(bucket["count"] for bucket in reactions["buckets"]), f"the buckets are not the count: {reactions}")
        sent += reactions["count"]
    check(moved / 2 <= sent <= moved, f"{moved} moved, of which were sent: {sent}: {status}")
    check(sum(one["saved_requests"] for one in collections) > 0, f"no moved request was answered before the end of its stop: {found}")


def check_metrics(proxy, found):
    """Prometheus gets the same reactions as the status has, as a histogram, and how many failovers are written."""
    connection = harness.UnixConnection(str(proxy.admin_socket))
    connection.request("GET", "/metrics")
    metrics = connection.getresponse().read().decode()
    connection.close()
    for label, key in REACTIONS.items():
        counts = [int(count) for count in re.findall(rf'^tailor_reaction_seconds_bucket\{{to="{label}",le="[^"]+"\}} (\d+)$', metrics, re.M)]
        reactions = proxy.status()[key]
        check(counts == sorted(counts) and counts[-1] == reactions["count"], f"{counts} are not {reactions}")
        check(label == "return" or counts[-1] > 0, f"nothing was moved upon a stop: {reactions}")
        total_s = float(re.search(rf'^tailor_reaction_seconds_sum\{{to="{label}"\}} (\S+)$', metrics, re.M)[1])
        check(abs(total_s - (reactions["mean_us"] or 0) * reactions["count"] / 1e6) < 1e-6, f"{total_s} s are not the sum of {reactions}")
    check(f"\ntailor_failovers_stored_total {len(found)}\n" in metrics, f"{len(found)} were stored:\n{metrics}")
    stops = sum(int(count) for count in re.findall(r'^tailor_server_stops_total\{server="[ab]",kind="gc"\} (\d+)$', metrics, re.M))
    # A worker that saw no more of one than its safepoint counts it as that.
    check(stops > 0, f"no collection is counted of {found}")


def stop_process(server, port):
    """Holds a request at it that may not be sent twice, stops it meanwhile, and asks for something else; the time of the stop."""
    with socket.create_connection(("127.0.0.1", port)) as held:
        held.sendall(b"POST /search HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 7\r\n\r\nq=st")
        time.sleep(0.1)
        os.kill(server.pid, signal.SIGSTOP)
        begin_ns = time.monotonic_ns()
        try:
            status, headers, _ = harness.get(port, "/search?q=stone")
            answered_s = (time.monotonic_ns() - begin_ns) / 1e9
            time.sleep(max(0, STOP_S - answered_s))
        finally:
            end_ns = time.monotonic_ns()
            os.kill(server.pid, signal.SIGCONT)
        check(status == 200 and headers["X-Server"] != server.name, f"{status} from {headers['X-Server']}, which was stopped")
        check(answered_s < STOP_S, f"the answer took {answered_s:.3f} s, as long as the stop")
        held.sendall(b"one")
        check(held.recv(65536).startswith(b"HTTP/1.1 200"), "what waited is not answered after the stop")
    return server.name, begin_ns, end_ns


def a_failover_is_told_once_with_its_cause_its_length_and_what_was_moved(scene):
    harness.need_search_server()
    servers = {name: scene.server(name, jvm=harness.SERIAL, options=harness.COLLECTING, agent_socket=scene.agent_socket) for name in "ab"}
    addresses = [(name, servers[name].wait_ready().address) for name in "ab"]
    proxy = scene.proxy("proxy", addresses, failover="gc, safepoint, stall", more="workers: 2\n").wait_serving(agents=2)
    result = scene.load("load", proxy.port, rate=200, seconds=12, warm=2)
    check(result["good"] == result["requests"], f"bad responses: {result}")
    time.sleep(1)
    check(scene.run("text", harness.TAILOR, "dump", "--failovers", proxy.timelines).popen.returncode == 0, "no text")
    found = failovers(scene, proxy.timelines)
    check_each(found)
    check_collections(found, servers, proxy.status())
    check_metrics(proxy, found)

    stops = []
    for _ in range(STOPS):
        stops.append(stop_process(servers[proxy.status()["active"]], proxy.port))
        time.sleep(0.3)
    check(proxy.stop() == 0, f"the proxy failed:\n{proxy.log()}")
    found = failovers(scene, proxy.timelines)
    check_each(found)
    for name, begin_ns, end_ns in stops:
        own = [one for one in found if one["server"] == name and one["begin_ns"] < end_ns and one["begin_ns"] + one["length_ns"] > begin_ns]
        check(len(own) == 1, f"{name} was stopped once then, and there are {len(own)} failovers: {own}")
        check(own[0]["kind"] in ("stall", "signal") and own[0]["cause"] is None, f"a stopped process is called: {own[0]}")
        check(own[0]["not_moved"] >= 1 and own[0]["why_not"] == "method", f"a POST must not be sent twice: {own[0]}")
        # Where only the heartbeat tells, since the last one: on a busy machine that was some time before.
        check(-100 * NS_PER_MS < own[0]["begin_ns"] - begin_ns < 30 * NS_PER_MS, f"stopped at {begin_ns}: {own[0]}")
        check(0 <= own[0]["begin_ns"] + own[0]["length_ns"] - end_ns < 200 * NS_PER_MS, f"stopped until {end_ns}: {own[0]}")
    text = (scene.directory / "text.out").read_text()
    check(re.search(r"^\S+ \S+ +[ab] +gc: Allocation Failure +\d+ of \d+ .* ms +~", text, re.M), text)
    print(text, flush=True)


harness.run(a_failover_is_told_once_with_its_cause_its_length_and_what_was_moved)
