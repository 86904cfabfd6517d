# SPDX-License-Identifier: Apache-2.0
"""What a worker is told of a real JVM that stands still: its safepoints as they begin, signals, and both at once."""

import collections
import os
import signal
import statistics
import subprocess
import sys
import time
import unittest

from jvm_agent_harness import JDKS, Java
from kernel_safepoint import Kernel, run_tests_with_uprobes

NONE, SAFEPOINT, SIGNAL = range(3)  # enum tailor_stop_kind

Stop = collections.namedtuple("Stop", "kind since_ns count seen_ns")


class Watched(Kernel):
    def trace(self, pid):
        until = time.monotonic() + 10
        while time.monotonic() < until:
            with open("/proc/%d/maps" % pid) as maps:
                if "/libjvm.so" in maps.read():
                    break
            time.sleep(0.01)
        super().trace(pid)

    def watch(self, java):
        self.trace(java.pid)
        self.say("tell %d" % java.pid)

    def stops(self):
        return [Stop(*map(int, fields)) for fields in self.of("stop")]

    def wait_until_last_is(self, kind, timeout=5):
        until = time.monotonic() + timeout
        with self.changed:
            while True:
                stops = self.stops()
                if stops and stops[-1].kind == kind:
                    return stops[-1]
                if not self.changed.wait(until - time.monotonic()):
                    raise AssertionError("the last is not of kind %d: %s" % (kind, stops[-3:]))


def jcmd(jdk, pid, what):
    return subprocess.run([os.path.join(jdk.home, "bin", "jcmd"), str(pid), what], capture_output=True, text=True, timeout=60)


class Stops(unittest.TestCase):
    def open_kernel(self):
        kernel = Watched()
        self.addCleanup(lambda: kernel.process.poll() is None and kernel.end())
        self.addCleanup(kernel.process.stdin.close)
        return kernel

    def test_a_worker_is_told_of_collections_and_thread_dumps_when_they_begin(self):
        for jdk in JDKS:
            for collector in "Serial", "Parallel", "G1":
                with self.subTest(jdk=jdk.version, collector=collector):
                    self.check_safepoints(jdk, collector)

    def check_safepoints(self, jdk, collector):
        kernel = self.open_kernel()
        java = Java(jdk, 2000, collector=collector)
        kernel.watch(java)
        dump = jcmd(jdk, java.pid, "Thread.print")
        self.assertEqual(dump.returncode, 0, dump.stderr)
        java.finish(self)
        time.sleep(0.1)
        kernel.end()
        self.assertEqual(kernel.of("lost"), [])
        stops, events = kernel.stops(), kernel.of_jvm(java.pid)
        begins = [e.time_ns for e in events if e.kind == "safepoint-begin"]
        told = [stop for stop in stops if stop.kind == SAFEPOINT]
        self.assertGreater(len(told), 50)
        self.check_begins(told, begins)
        # Also those that are over before the worker looks are counted.
        first, last = told[0], told[-1]
        between = [begin for begin in begins if first.since_ns <= begin < last.since_ns]
        self.assertEqual(last.count - first.count, len(between))
        self.check_ends(stops, [e.time_ns for e in events if e.kind == "safepoint-end"])
        names = {e.text for e in events if e.kind == "vm-operation-begin" and any(
            stop.since_ns < e.time_ns < stop.seen_ns + 1_000_000 for stop in told)}
        self.assertTrue(any("Collect" in name or "GC" in name for name in names), names)
        latencies = sorted(stop.seen_ns - stop.since_ns for stop in told)
        print("JDK %d, %s: %d of %d safepoints seen by the worker, after %.0f us in the median, %.0f us p90" % (
            jdk.version, collector, len(told), len(begins), statistics.median(latencies) / 1000, latencies[len(latencies) * 9 // 10] / 1000), file=sys.stderr)
        self.assertLess(statistics.median(latencies), 10_000_000)

    def check_begins(self, told, begins):
        """Each is one that the recording has, which takes the time a moment later in the same call; the JVM ends in one."""
        after = [min(begin - stop.since_ns for begin in begins if begin >= stop.since_ns) for stop in told]
        # In that moment the thread may lose its CPU to others.
        late = [ns for ns in after if ns > 1_000_000]
        self.assertLessEqual(len(late), 1 + len(told) // 50, late)

    def check_ends(self, stops, ends):
        """A worker that sees that the JVM runs sees it after the end, and is told of it soon."""
        waits = []
        for before, after in zip(stops, stops[1:]):
            if before.kind == SAFEPOINT and after.kind == NONE:
                since = [after.seen_ns - end for end in ends if before.since_ns < end < after.seen_ns + 1_000_000]
                self.assertTrue(since, (before, after))
                waits.append(since[-1])
        self.assertLess(statistics.median(waits), 10_000_000)

    def test_a_jvm_that_is_stopped_by_a_signal_is_told_of_whatever_it_does(self):
        kernel = self.open_kernel()
        java = Java(JDKS[-1], 6000)
        kernel.watch(java)
        kernel.wait_until_last_is(SAFEPOINT)  # from now on it is told
        for _ in range(40):
            before_ns = time.monotonic_ns()
            os.kill(java.pid, signal.SIGSTOP)
            # The first of its threads may leave before a safepoint of it is over: then both words are told, one after the other.
            stop = kernel.wait_until_last_is(SIGNAL)
            self.assertGreater(stop.since_ns, before_ns)
            time.sleep(0.005)
            self.assertEqual(kernel.stops()[-1].kind, SIGNAL)
            os.kill(java.pid, signal.SIGCONT)
            kernel.wait_until_last_is(NONE)
        java.finish(self)
        kernel.end()

    def test_nobody_is_told_of_a_jvm_any_more_once_it_is_another_server(self):
        kernel = self.open_kernel()
        java, other = Java(JDKS[-1], 4000), Java(JDKS[-1], 4000)
        kernel.watch(java)
        kernel.wait_until_last_is(SAFEPOINT)
        kernel.trace(other.pid)
        os.kill(java.pid, signal.SIGSTOP)
        kernel.wait_until_last_is(SIGNAL)
        kernel.say("tell %d" % other.pid)
        told = kernel.wait_until_last_is(SAFEPOINT)  # the other's
        os.kill(java.pid, signal.SIGCONT)
        other.finish(self)
        java.finish(self)
        kernel.end()
        begins = {pid: [e.time_ns for e in kernel.of_jvm(pid) if e.kind == "safepoint-begin"] for pid in (java.pid, other.pid)}
        after = [stop for stop in kernel.stops() if stop.kind == SAFEPOINT and stop.since_ns >= told.since_ns]
        self.assertGreater(len(after), 10)
        self.check_begins(after, begins[other.pid])


if __name__ == "__main__":
    run_tests_with_uprobes()
