# SPDX-License-Identifier: Apache-2.0
"""How workers get a CPU where the configuration does not say: at once, if they had to wait for it, as long as they use little of one."""
import contextlib
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
import unittest
from pathlib import Path

from load_harness import FastServer, finish_load, server, start_load
from whole_proxy import Proxy

LIBC = ctypes.CDLL(None)
PR_CAPBSET_DROP, CAP_SYS_NICE, CAP_SYS_RESOURCE = 24, 23, 24


class Urgency(unittest.TestCase):
    def serve(self, more=""):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        backend = server(kind=FastServer)
        port = backend.__enter__().port
        self.addCleanup(backend.__exit__, None, None, None)
        proxy = Proxy(directory.name, [("a", port)], more)
        self.addCleanup(proxy.stop)
        return proxy

    def scheduling(self, proxy):
        """(policy, nice) of its worker."""
        for task in Path(f"/proc/{proxy.process.pid}/task").glob("*"):
            if (task / "comm").read_text().strip() == "tailor-worker":
                policy = os.sched_getscheduler(int(task.name)) & ~os.SCHED_RESET_ON_FORK
                return policy, os.getpriority(os.PRIO_PROCESS, int(task.name))
        raise AssertionError("there is no worker")

    def becomes(self, proxy, expected, seconds):
        until = time.monotonic() + seconds
        while (found := self.scheduling(proxy)) != expected and time.monotonic() < until:
            time.sleep(0.01)
        self.assertEqual(found, expected)
        self.assertEqual(json.loads(proxy.ask("/status"))["workers_urgent"], int(expected[0] == os.SCHED_FIFO))

    def some_requests(self, proxy):
        finish_load(start_load("--rate", "200", "--duration", "1s", "--warm", "0s", "--connections", "4", proxy.url + "/"))

    @contextlib.contextmanager
    def others_on_its_cpu(self, proxy):
        """Its worker and they have one CPU, and they want all of it."""
        cpu = min(os.sched_getaffinity(0))
        for task in Path(f"/proc/{proxy.process.pid}/task").iterdir():
            os.sched_setaffinity(int(task.name), {cpu})
        hogs = [subprocess.Popen([sys.executable, "-c", f"import os; os.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass"],
                                 start_new_session=True) for _ in range(4)]
        try:
            yield
        finally:
            for hog in hogs:
                hog.kill()
                hog.wait()

    def test_who_had_to_wait_need_not_until_he_uses_much_of_a_cpu(self):
        for more in ("", "user: daemon\n"):
            with self.subTest(more=more):
                proxy = self.serve(more)
                with self.others_on_its_cpu(proxy):
                    until = time.monotonic() + 20
                    while self.scheduling(proxy)[0] != os.SCHED_FIFO and time.monotonic() < until:
                        self.some_requests(proxy)
                    self.becomes(proxy, (os.SCHED_FIFO, -10), 1)
                load = start_load("--closed", "--connections", "64", "--duration", "3s", "--warm", "0s", proxy.url + "/")
                try:
                    self.becomes(proxy, (os.SCHED_OTHER, -10), 2)
                finally:
                    finish_load(load)

    def test_who_may_not_waits(self):
        """As in a container without the right."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                for capability in (CAP_SYS_NICE, CAP_SYS_RESOURCE):
                    assert LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0
                proxy = self.serve()
                with self.others_on_its_cpu(proxy):
                    self.some_requests(proxy)
                self.becomes(proxy, (os.SCHED_OTHER, 0), 1)
                os.write(write, b"right")
            except BaseException:
                traceback.print_exc()
            finally:
                self.doCleanups()
                os._exit(0)
        os.close(write)
        with open(read) as told:
            self.assertEqual(told.read(), "right")
        os.waitpid(child, 0)

    def test_who_was_given_a_priority_has_that_one(self):
        for more, expected in (("priority: {nice: -3}\n", (os.SCHED_OTHER, -3)), ("priority: {fifo: 7}\n", (os.SCHED_FIFO, 0))):
            proxy = self.serve(more)
            self.some_requests(proxy)
            found = self.scheduling(proxy)
            self.assertEqual((found, json.loads(proxy.ask("/status"))["workers_urgent"]), (expected, 0))


if __name__ == "__main__":
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    except PermissionError as refused:
        print(f"a real-time priority cannot be had here: {refused}")
        sys.exit(77)
    unittest.main(verbosity=2)
