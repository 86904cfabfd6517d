# SPDX-License-Identifier: Apache-2.0
"""A traced proxy whose small rings another server fills, and the timelines it stores all the same."""
import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time

import load_harness
from whole_proxy import Proxy

SLOTS = 1024


class BusyServer(load_harness.Server):
    command = [sys.executable, os.path.join(load_harness.HERE, "busy_server.py")]


def get(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    assert response.status in (200, 204), (path, response.status, body)


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


@contextlib.contextmanager
def busy_proxy(directory):
    """The proxy and the server that makes noise. Where the kernel gives no events, the test is skipped."""
    with load_harness.server(kind=BusyServer) as server, load_harness.server(kind=BusyServer) as noisy:
        proxy = Proxy(directory, [("a", server.port), ("b", noisy.port)], "slow: {threshold: 20ms, baseline_one_in: 0}\n",
                      kernel=f"auto, events_per_cpu: {SLOTS}")
        try:
            if "without kernel events" in proxy.before:
                print("no kernel events here:", proxy.before)
                sys.exit(77)
            get(noisy.port, "/noise?rounds=300")
            get(proxy.port, "/work?ms=1&sleep=0")  # the server's thread for the connection
            yield proxy, noisy
        finally:
            proxy.process.send_signal(signal.SIGCONT)
            proxy.stop()
