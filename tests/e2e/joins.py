# SPDX-License-Identifier: Apache-2.0
"""Servers of five shapes say which of their threads worked for which request when; no timeline may say otherwise.

Each shape serves keep-alive connections through the proxy and, at the same time, others past it. Steps of random length make
requests overlap and overtake each other. A timeline that has a thread work for its request while, by the server's own account,
that thread worked for another one, is a wrong join: there must be none. A join that the timeline itself calls inferred, or none
at all, was refused; that may happen now and then.

    joins.py [SHAPE...] [--seconds N] [--think MS]
"""
import argparse
import bisect
import json
import math
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections import Counter

import harness
from harness import check, need

PROJECT = harness.SOURCE / "tests/e2e/java/joins"
JAR = PROJECT / "target/joins.jar"
# "told" is Netty with a server that says itself which thread works for which request (io.tailor.Tailor).
SHAPES = ["thread", "jetty", "netty", "forkjoin", "virtual", "told"]
APPLICATION = harness.SOURCE / "jvmagent/java/src/main/java/io/tailor/Tailor.java"
# By wake-ups, by the account of mounts (virtual) or by the application (told).
REFUSED_MAX = {"thread": 0.05, "jetty": 0.05, "netty": 0.05, "forkjoin": 0.05, "virtual": 0.05, "told": 0.05}
WORKING = {"on-cpu", "page-fault-minor", "page-fault-major", "class-loading"}
# How far a timeline may reach into another request's work on the same thread: what clocks and tracepoints differ by.
TOLERANCE_NS = 20_000
SHOWN_MIN = 0.1
WARM_NS = 2_000_000_000
# How often it is tried, each time with longer pauses: on a machine that is slow or does much else, more requests meet at the server,
# which is a reason to refuse, but none to be wrong.
ATTEMPTS = 4
# How unlikely it must be that so many were refused by chance, if it were not more than may be.
BY_CHANCE = 0.01
PROXIED, DIRECT = 6, 3  # connections


def build():
    sources = [PROJECT / "pom.xml", *PROJECT.glob("src/main/java/tailor/joins/*.java")]
    if JAR.is_file() and all(source.stat().st_mtime <= JAR.stat().st_mtime for source in sources):
        return
    try:
        done = subprocess.run(["mvn", "-B", "-q", "-Dstyle.color=never", "package"], cwd=PROJECT, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=150)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise harness.Skip(f"{JAR} is not built, and mvn cannot: {error}") from None
    need(done.returncode == 0 or "Could not" not in done.stdout, f"{JAR} is not built, and mvn finds no network:\n{done.stdout}")
    check(done.returncode == 0, f"mvn package failed:\n{done.stdout}")


def plan(draw):
    """Steps of a request, from none to some ms."""
    steps = []
    for _ in range(draw.choice([1, 2, 3, 5])):
        steps.append(draw.choice([f"c{draw.randrange(50, 600)}", f"c{draw.randrange(50, 600)}", f"s{draw.randrange(200, 4000)}",
                                  f"l{draw.randrange(20, 300)}", "h", f"f{draw.randrange(2, 5)}"]))
    return ",".join(steps)


class Client(threading.Thread):
    """One keep-alive connection that asks for one plan after the other."""

    def __init__(self, port, seed, until, think_ms, direct):
        super().__init__(daemon=True)
        self.port, self.draw, self.until, self.think_ms, self.direct = port, random.Random(seed), until, think_ms, direct
        self.served, self.error = [], None

    def run(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while time.monotonic() < self.until:
                    self.served.append(self.ask(connection))
                    time.sleep(self.draw.random() * 2 * self.think_ms / 1000)
        except Exception as error:
            self.error = error

    def ask(self, connection):
        more = ""
        if self.direct:
            self.direct += 1
            # No id that the proxy makes begins so.
            more = f"traceparent: 00-{self.draw.getrandbits(127) + 1:032x}-ffffffff{self.direct:08x}-00\r\n"
        connection.sendall(f"GET /work?plan={plan(self.draw)} HTTP/1.1\r\nHost: joins\r\n{more}\r\n".encode())
        answer = receive(connection)
        return json.loads(answer)["id"]


def receive(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        data += more(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    check(head.startswith(b"HTTP/1.1 200 "), f"bad response: {head!r}")
    length = int(re.search(rb"content-length: *(\d+)", head, re.I)[1])
    while len(body) < length:
        body += more(connection)
    check(len(body) == length, "more came than one response")
    return body


def more(connection):
    data = connection.recv(1 << 20)
    check(data, "the connection was closed")
    return data


class Truth:
    """What each thread did: for each tid, stretches (start_ns, end_ns, request) in order."""

    def __init__(self, text):
        self.threads, self.requests = {}, {}
        for line in text.splitlines():
            request, *stretches = line.split(" ")
            for stretch in stretches:
                tid, start_ns, end_ns = map(int, stretch.split(":"))
                self.threads.setdefault(tid, []).append((start_ns, end_ns, request))
                self.requests.setdefault(request, set()).add(tid)
        for stretches in self.threads.values():
            stretches.sort()

    def during(self, tid, start_ns, end_ns):
        """The stretches of a thread that overlap with an interval, cut to it."""
        stretches = self.threads.get(tid, [])
        at = max(0, bisect.bisect_left(stretches, (start_ns,)) - 1)
        for begin_ns, finish_ns, request in stretches[at:]:
            if begin_ns >= end_ns:
                break
            if finish_ns > start_ns:
                yield max(begin_ns, start_ns), min(finish_ns, end_ns), request

    def shown(self, timeline):
        """(ns of the request's work that its timeline shows on a CPU, ns of it that there are)."""
        own = timeline["request"]
        shown_ns = 0
        for span in timeline["spans"]:
            start_ns = timeline["begin_ns"] + span["offset_ns"]
            if span["cause"] in WORKING:
                shown_ns += sum(part[1] - part[0] for part in self.during(span["tid"], start_ns, start_ns + span["duration_ns"])
                                if part[2] == own)
        return shown_ns, sum(part[1] - part[0] for tid in self.requests.get(own, ()) for part in self.during(
            tid, timeline["begin_ns"], timeline["begin_ns"] + timeline["client_ns"]) if part[2] == own)

    def contradiction(self, timeline):
        """Which work of another request the timeline claims; None where there is no such."""
        own = timeline["request"]
        for span in timeline["spans"]:
            start_ns = timeline["begin_ns"] + span["offset_ns"]
            # Nothing is claimed of a thread that others waited for, nor of one that may have been at another request.
            if span["cause"] not in WORKING or "waited for it" in span["detail"] or "for this request or another" in span["detail"]:
                continue
            others = [part for part in self.during(span["tid"], start_ns, start_ns + span["duration_ns"]) if part[2] != own]
            claimed_ns = sum(part[1] - part[0] for part in others)
            if claimed_ns > TOLERANCE_NS:
                return (f"{span['thread']} ({span['tid']}) worked {claimed_ns / 1000:.1f} us for {others[0][2]} "
                        f"in the span at {span['offset_ns'] / 1000:.1f} us")
        return None


def serve_and_ask(scene, shape, seconds, think_ms):
    """Returns the timelines and the truth."""
    java = harness.java_of("25") if shape == "virtual" else harness.any_java()
    need(java, "JDK 25 is not installed")
    options = ["-Xms128m", "-Xmx128m", f"-agentpath:{harness.AGENT}=socket={scene.agent_socket}"]
    if shape == "virtual":
        options.append("-Djdk.virtualThreadScheduler.parallelism=4")
    classes = [str(JAR)]
    if shape == "told":
        need(shutil.which("javac"), "there is no javac")
        classes.append(str(scene.directory / "classes"))
        compiled = scene.run("javac", "javac", "-d", classes[1], APPLICATION)
        check(compiled.popen.returncode == 0, f"javac failed:\n{compiled.log()}")
    run = len(scene.processes)
    server = scene.keep(harness.Process(f"server{run}", [java, *options, "-cp", ":".join(classes), "tailor.joins.Main",
                                                   "netty" if shape == "told" else shape], scene.directory))
    port = int(server.wait_for(r"^listening 127\.0\.0\.1:(\d+)$", 30, server.out)[1])
    proxy = scene.proxy(f"proxy{run}", [("a", f"127.0.0.1:{port}")], slow="100us", baseline=1).wait_serving(agents=1)
    until = time.monotonic() + seconds
    clients = [Client(proxy.port, seed, until, think_ms, 0) for seed in range(PROXIED)]
    clients += [Client(port, 100 + seed, until, think_ms, 1 + seed * 0x1000000) for seed in range(DIRECT)]
    for client in clients:
        client.start()
    for client in clients:
        client.join(seconds + 60)
        check(not client.is_alive() and not client.error, f"a client failed: {client.error!r}")
    time.sleep(0.3)
    check(proxy.stop() == 0, f"the proxy failed:\n{proxy.log()}")
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(b"GET /truth HTTP/1.1\r\nHost: joins\r\n\r\n")
        truth = Truth(receive(connection).decode())
    dump = scene.run(f"dump{run}", harness.TAILOR, "dump", proxy.timelines, "--format", "json", "--slowest", 100000)
    check(dump.popen.returncode == 0, f"tailor dump failed:\n{dump.log()}")
    served = [request for client in clients[:PROXIED] for request in client.served]
    check(len(set(served)) == len(served), "two requests had the same id")
    return json.loads(dump.out())["timelines"], truth, set(served)


def no_join_is_wrong(shape, seconds):
    def test(scene):
        harness.need_root()
        build()
        for attempt in range(ATTEMPTS):
            refused, of = measure(scene, shape, seconds, (1 + attempt) * arguments.think)
            if chance_of(refused, of, REFUSED_MAX[shape]) >= BY_CHANCE:
                return
        check(False, f"{refused} of {of} joins were refused, and too many in {ATTEMPTS} attempts")

    test.__name__ = f"no_join_is_wrong_in_a_server_of_the_shape_{shape}"
    return test


def chance_of(least, of, share):
    """That so many or more of them are, if each is with that probability."""
    return 1 - sum(math.comb(of, k) * share ** k * (1 - share) ** (of - k) for k in range(least))


def measure(scene, shape, seconds, think_ms):
    """Fails when a join is wrong; returns how many were refused, and of how many."""
    timelines, truth, served = serve_and_ask(scene, shape, seconds, think_ms)
    if os.environ.get("TAILOR_JOINS_KEEP"):
        with open(f"{os.environ['TAILOR_JOINS_KEEP']}/{shape}.json", "w") as out:
            json.dump({"timelines": timelines, "truth": truth.threads}, out)
    strangers = [timeline["request"] for timeline in timelines if timeline["request"] not in served]
    check(not strangers, f"{len(strangers)} timelines are of requests that the proxy did not serve: {strangers[:3]}")
    joins = Counter(timeline["join"] for timeline in timelines)
    wrong = [(timeline, said) for timeline in timelines if (said := truth.contradiction(timeline))]
    firm = [timeline for timeline, _ in wrong if timeline["join"] in ("certain", "confirmed")]
    print(f"{'shape':10}{'requests':>10}{'timelines':>10}{'certain':>10}{'confirmed':>10}{'inferred':>10}{'none':>10}"
          f"{'wrong':>10}{'of them firm':>14}\n"
          f"{shape:10}{len(served):10}{len(timelines):10}{joins['certain']:10}{joins['confirmed']:10}{joins['inferred']:10}"
          f"{joins['none']:10}{len(wrong):10}{len(firm):14}", flush=True)
    wrong.sort(key=lambda pair: pair[0]["join"])
    for timeline, said in wrong[:3]:
        print(f"wrong, {timeline['join']}, {timeline['request']}, {timeline['target']}: {said}", file=sys.stderr)
    check(len(timelines) >= 100, f"only {len(timelines)} of {len(served)} requests got a timeline")
    check(not wrong, f"{len(wrong)} of {len(timelines)} joins are wrong")
    # A JVM that has just started serves all of them at once, slowly.
    warm_ns = min(timeline["begin_ns"] for timeline in timelines) + WARM_NS
    warm = [timeline["join"] for timeline in timelines if timeline["begin_ns"] >= warm_ns]
    refused = sum(join in ("inferred", "none") for join in warm)
    shown = [truth.shown(timeline) for timeline in timelines]
    share = sum(part[0] for part in shown) / sum(part[1] for part in shown)
    print(f"refused: {100 * refused / max(1, len(warm)):.1f}% of {len(warm)}; of the time in which threads worked, {100 * share:.0f}% is shown", flush=True)
    # Who claims nothing is never wrong.
    check(share > SHOWN_MIN, f"only {100 * share:.0f}% of the work is shown")
    return refused, len(warm)


parser = argparse.ArgumentParser()
parser.add_argument("shapes", nargs="*", metavar="SHAPE", choices=[*SHAPES, []])
parser.add_argument("--seconds", type=float, default=8, help="of load, for each shape")
parser.add_argument("--think", type=float, default=40, metavar="MS", help="between the requests of a connection, on average; less makes "
                    "for more at a time, of which more joins are refused")
arguments = parser.parse_args()
harness.run(*(no_join_is_wrong(shape, arguments.seconds) for shape in arguments.shapes or SHAPES))
