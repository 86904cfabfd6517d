#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A request of seconds over rings that go around many times meanwhile has as whole a timeline as one of milliseconds.

Another server, which is traced, too, fills the rings: it has an interpreter lock of its own.
"""
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time

import load_harness
from whole_proxy import Proxy

SLOTS = 1024
SECONDS = 6


class BusyServer(load_harness.Server):
    command = [sys.executable, os.path.join(load_harness.HERE, "busy_server.py")]


def get(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    assert response.status == 200, (path, response.status, body)


def timeline_of(proxy, word):
    """The timeline of the request whose target has that word; it is stored within a second."""
    for _ in range(100):
        time.sleep(0.1)
        done = subprocess.run([load_harness.TAILOR, "dump", f"{proxy.directory}/timelines", "--format", "json"],
                              capture_output=True, text=True, timeout=30)
        found = [t for t in json.loads(done.stdout or '{"timelines": []}')["timelines"] if word in t["target"]]
        if found:
            return found[0]
    raise AssertionError(f"there is no timeline of {word}: {proxy.ask('/status')}")


def check_whole(timeline):
    said = {key: timeline[key] for key in ("causes", "join", "losses", "missing")}
    print(said)
    assert not timeline["losses"], said
    assert not any("lost" in text for text in timeline["missing"]), said
    assert timeline["join"] in ("certain", "confirmed"), said
    # Its first 10 ms of work are told, too, however long ago they were when it ended.
    begin = [span for span in timeline["spans"] if span["offset_ns"] < 200e6 and span["cause"] in ("on-cpu", "preempted", "run-queue")]
    assert sum(span["duration_ns"] for span in begin) > 9e6, said


def main():
    with tempfile.TemporaryDirectory() as directory, load_harness.server(kind=BusyServer) as server, \
            load_harness.server(kind=BusyServer) as noisy:
        proxy = Proxy(directory, [("a", server.port), ("b", noisy.port)], "slow: {threshold: 20ms, baseline_one_in: 0}\n",
                      kernel=f"auto, events_per_cpu: {SLOTS}")
        try:
            if "without kernel events" in proxy.before:
                print("no kernel events here:", proxy.before)
                sys.exit(77)
            get(noisy.port, "/noise?rounds=300")
            get(proxy.port, "/work?ms=1&sleep=0")  # the server's thread for the connection
            get(proxy.port, "/work?ms=10&sleep=0.03")
            get(proxy.port, f"/work?ms=10&sleep={SECONDS}")
            get(noisy.port, "/noise?rounds=-1")
            short, long = timeline_of(proxy, "sleep=0.03"), timeline_of(proxy, f"sleep={SECONDS}")
            check_whole(short)
            check_whole(long)
        finally:
            proxy.stop()


main()
