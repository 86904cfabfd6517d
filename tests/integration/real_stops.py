# SPDX-License-Identifier: Apache-2.0
"""Real JVMs behind the whole proxy that are stopped, frozen, killed or made to collect: what is in flight there moves where it may."""
import http.client
import os
import shutil
import signal
import sys
import threading
import time
import unittest
from pathlib import Path

from jvm_pair import JvmPair

FREEZER = Path("/sys/fs/cgroup/freezer")
# So many that a full collection of them takes some 10 ms and more.
LIVE = 200000
WAIT_MS = 700
STOP_S = 2


def skip(reason):
    print(reason)
    sys.exit(77)


def ask(port, path, method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path, b"x" if method == "POST" else None)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


class Asking(threading.Thread):
    def __init__(self, port, path, method="GET"):
        super().__init__(daemon=True)
        self.arguments = (port, path, method)
        self.start()

    def run(self):
        began = time.monotonic()
        self.answer = ask(*self.arguments)
        self.took = time.monotonic() - began

    def result(self):
        self.join(20)
        return self.answer


class RealStops(JvmPair):
    program = "Waiting"
    kernel = "off"

    def setUp(self):
        self.start_proxy([self.start_server(["-XX:+UseSerialGC", "-Xmx400m"], [name, LIVE]) for name in "ab"],
                         f"timeouts: {{stop: {STOP_S}s}}\n", kernel=self.kernel)
        for _ in range(50):
            self.assertEqual(ask(self.proxy.port, "/wait/1")[0], 200)
        self.make_first_active()

    def make_first_active(self):
        """Which it is not if it has stood still meanwhile."""
        if self.status()["active"] != "a":
            self.proxy.ask("/swap", "POST")

    def count(self, server):
        return int(ask(self.ports[server], "/count")[1])

    def send(self, gets=3):
        """Requests that the first server has begun to answer: GETs, and one that may not be sent twice."""
        before = self.count(0)
        asking = [Asking(self.proxy.port, f"/wait/{WAIT_MS}") for _ in range(gets)]
        asking.append(Asking(self.proxy.port, f"/wait/{WAIT_MS}", "POST"))
        self.until(lambda: self.count(0) == before + gets + 1, "the first server has them")
        return asking

    def stopped(self, stop, go_on):
        """Stopped for a second: the GETs have their answers before it is over, the POST when it is; neither is sent more often."""
        before = self.status()["failed_over"]
        asking = self.send()
        others = self.count(1)
        stop()
        try:
            for one in asking[:-1]:
                self.assertEqual(one.result(), (200, "b"))
            self.assertEqual(ask(self.proxy.port, "/wait/1"), (200, "b"), "a new request goes where it is answered")
            self.assertTrue(asking[-1].is_alive())
        finally:
            go_on()
        self.assertEqual(asking[-1].result(), (200, "a"))
        self.assertEqual(self.count(1), others + len(asking))
        status = self.status()
        self.assertEqual(status["failed_over"] - before, len(asking) - 1, status)
        self.until(lambda: all(server["state"] == "running" for server in self.status()["servers"]), "it runs again")

    def test_a_process_that_a_signal_stops(self):
        self.stopped(lambda: self.servers[0].send_signal(signal.SIGSTOP), lambda: self.servers[0].send_signal(signal.SIGCONT))

    def test_a_frozen_control_group(self):
        group = FREEZER / f"tailor-test-{os.getpid()}"
        if not os.access(FREEZER, os.W_OK) or not (FREEZER / "tasks").exists():
            self.skipTest("there is no freezer of control groups here")
        group.mkdir()
        self.addCleanup(group.rmdir)
        self.addCleanup(lambda: (self.servers[0].kill(), self.servers[0].wait()))
        self.addCleanup(lambda: (group / "freezer.state").write_text("THAWED"))
        (group / "cgroup.procs").write_text(str(self.servers[0].pid))
        self.stopped(lambda: (group / "freezer.state").write_text("FROZEN"), lambda: (group / "freezer.state").write_text("THAWED"))

    def test_the_proxy_ends_while_a_server_stands_still(self):
        """Which owes it answers that nobody waits for any more: those that came first were the other server's."""
        asking = self.send()[:-1]
        self.servers[0].send_signal(signal.SIGSTOP)
        try:
            for one in asking:
                self.assertEqual(one.result(), (200, "b"))
            began = time.monotonic()
            self.proxy.process.send_signal(signal.SIGTERM)
            # The POST is in flight there still, and is cut when a stop has lasted so long.
            self.assertEqual(self.proxy.process.wait(15), 0)
            took = time.monotonic() - began
            self.assertLess(took, STOP_S + 3)
        finally:
            self.servers[0].send_signal(signal.SIGCONT)

    def test_a_killed_process(self):
        asking = self.send()
        self.servers[0].kill()
        for one in asking[:-1]:
            self.assertEqual(one.result(), (200, "b"))
        self.assertEqual(asking[-1].result()[0], 502)
        self.assertLess(asking[-1].took, WAIT_MS / 1000 + 0.5)
        self.assertEqual(ask(self.proxy.port, "/wait/1"), (200, "b"))
        # What asks for it again finds that out: a's turn comes, as nothing else is known of it.
        self.until(lambda: ask(self.proxy.port, "/wait/1") and self.status()["servers"][0]["state"] == "down", "it is known to be down")
        self.assertEqual(self.status()["servers"][1]["state"], "running")

    def test_a_collection(self):
        for _ in range(5):
            ask(self.ports[0], "/collect")
        self.until(lambda: self.status()["servers"][0]["state"] == "running", "they are over")
        self.make_first_active()
        before = self.status()
        asking = self.send()
        ask(self.ports[0], "/collect")
        for one in asking:
            self.assertEqual(one.result()[0], 200)
        # An answer takes longer than what it takes to collect: who knows that leaves them where they are.
        status = self.status()
        more = {name: status["not_moved"][name] - before["not_moved"][name] for name in ("short", "method")}
        self.assertGreaterEqual(status["failed_over"] - before["failed_over"] + more["short"], len(asking) - 1, status)
        self.assertGreaterEqual(more["method"], 1, status)


class RealStopsByTheKernel(RealStops):
    """The same when the kernel tells of signals and safepoints."""

    kernel = "auto"

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("kernel events need root")
        super().setUp()


if __name__ == "__main__":
    if not shutil.which("javac"):
        skip("there is no javac in PATH")
    unittest.main(verbosity=2)
