# SPDX-License-Identifier: Apache-2.0
"""`priority.busy_poll`: a worker that spins between two requests, and sleeps when there are none."""
import os
import tempfile
import time
import unittest
from pathlib import Path

from load_harness import load_json, server
from whole_proxy import Proxy

TICKS = os.sysconf("SC_CLK_TCK")


class BusyPoll(unittest.TestCase):
    def serve(self, more):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        backend = server()
        port = backend.__enter__().port
        self.addCleanup(backend.__exit__, None, None, None)
        proxy = Proxy(directory.name, [("a", port)], more)
        self.addCleanup(proxy.stop)
        return proxy

    def cpu_s(self, proxy):
        """What the worker's thread has used."""
        for task in Path(f"/proc/{proxy.process.pid}/task").glob("*"):
            if (task / "comm").read_text().strip() == "tailor-worker":
                fields = (task / "stat").read_text().rsplit(")", 1)[1].split()
                return (int(fields[11]) + int(fields[12])) / TICKS
        raise AssertionError("there is no worker")

    def used(self, proxy, act):
        """CPU seconds a second while `act` goes on."""
        before, began = self.cpu_s(proxy), time.monotonic()
        result = act()
        return (self.cpu_s(proxy) - before) / (time.monotonic() - began), result

    def requests(self, proxy):
        return load_json("--rate", "200", "--duration", "2s", "--warm", "0s", "--connections", "4", proxy.url + "/ok")[0]

    def test_it_spins_between_requests_and_not_when_there_are_none(self):
        figures = {}
        for name, more in (("off", ""), ("on", "priority: {busy_poll: 50ms}\n")):
            proxy = self.serve(more)
            busy, report = self.used(proxy, lambda: self.requests(proxy))
            self.assertEqual((report["good"], report["requests"]), (400, 400))
            time.sleep(0.2)
            idle, _ = self.used(proxy, lambda: time.sleep(1.5))
            self.assertLess(idle, 0.1, "an idle worker sleeps")
            figures[name] = busy
            print(f"busy_poll {name}: {busy:.2f} of a CPU at 200 requests/s, {idle:.2f} without; p50 {report['response']['p50_ms']:.3f} ms",
                  flush=True)
        # Others want the CPUs, too: it need not get a whole one.
        self.assertGreater(figures["on"], 0.5)
        self.assertLess(figures["off"], 0.3)

    def test_too_few_cpus_are_said(self):
        proxy = self.serve(f"workers: {min(16, len(os.sched_getaffinity(0)))}\npriority: {{busy_poll: 1ms}}\n")
        self.assertEqual(load_json("--rate", "50", "--duration", "1s", "--warm", "0s", proxy.url + "/ok")[0]["good"], 50)
        self.assertIn("workers spin, and this process may use", proxy.before)


if __name__ == "__main__":
    unittest.main(verbosity=2)
