# SPDX-License-Identifier: Apache-2.0
"""`priority.busy_poll`: a worker that spins between two requests, and sleeps when there are none."""
import os
import tempfile
import time
import unittest
from pathlib import Path

from load_harness import load_json, server
from whole_proxy import Proxy


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

    def awake_s(self, proxy):
        """How long the worker's thread has had a CPU, and how long it has waited for one."""
        for task in Path(f"/proc/{proxy.process.pid}/task").glob("*"):
            if (task / "comm").read_text().strip() == "tailor-worker":
                return [int(field) / 1e9 for field in (task / "schedstat").read_text().split()[:2]]
        raise AssertionError("there is no worker")

    def awake(self, proxy, act):
        """The parts of the time in which it has a CPU, and in which it has one or waits for it, while `act` goes on."""
        before, began = self.awake_s(proxy), time.monotonic()
        result = act()
        on_cpu, waits = ((now - then) / (time.monotonic() - began) for now, then in zip(self.awake_s(proxy), before))
        return on_cpu, on_cpu + waits, result

    def requests(self, proxy):
        return load_json("--rate", "200", "--duration", "2s", "--warm", "0s", "--connections", "4", proxy.url + "/ok")[0]

    def test_it_spins_between_requests_and_not_when_there_are_none(self):
        figures = {}
        for name, more in (("off", ""), ("on", "priority: {busy_poll: 50ms}\n")):
            proxy = self.serve(more)
            busy, figures[name], report = self.awake(proxy, lambda: self.requests(proxy))
            self.assertEqual((report["good"], report["requests"]), (400, 400))
            time.sleep(0.2)
            idle, _, _ = self.awake(proxy, lambda: time.sleep(1.5))
            self.assertLess(idle, 0.1, "an idle worker sleeps")
            print(f"busy_poll {name}: {busy:.2f} of a CPU at 200 requests/s, {figures[name]:.2f} wanted, {idle:.2f} without; "
                  f"p50 {report['response']['p50_ms']:.3f} ms", flush=True)
            if name == "off":
                self.assertLess(busy, 0.3)
        # Others want the CPUs, too: it need not get a whole one, but it does not sleep.
        self.assertGreater(figures["on"], 0.8)

    def test_too_few_cpus_are_said(self):
        proxy = self.serve(f"workers: {min(16, len(os.sched_getaffinity(0)))}\npriority: {{busy_poll: 1ms}}\n")
        self.assertEqual(load_json("--rate", "50", "--duration", "1s", "--warm", "0s", proxy.url + "/ok")[0]["good"], 50)
        self.assertIn("workers spin, and this process may use", proxy.before)


if __name__ == "__main__":
    unittest.main(verbosity=2)
