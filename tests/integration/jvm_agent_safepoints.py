# SPDX-License-Identifier: Apache-2.0
"""Times to safepoint, and safepoints of all kinds, by the agent's events and by the JVM's own log."""

import os
import re
import statistics
import subprocess
import unittest

from jvm_agent_harness import JDKS, Driver, Java, agent_path, new_socket, run_tests, scratch

US, MS = 1000, 1_000_000
LINE = re.compile(r'\[(\d+)ns\] Safepoint "(\w+)", .*Reaching safepoint: +(\d+) ns.* Total: +(\d+) ns')


class Run:
    """One program while threads are dumped, its safepoint log, and what the agent said."""

    def __init__(self, test, jdk, collector, milliseconds, *options, dumps=0):
        path, log = new_socket(), os.path.join(scratch, "safepoints-%d-%s.log" % (jdk.version, collector))
        self.driver = Driver(path)
        try:
            java = Java(jdk, milliseconds, agent_path("socket=%s,slots=65536" % path), "-Xlog:safepoint:file=%s:tn" % log, *options,
                        collector=collector)
            self.driver.wait_for("attached")
            for _ in range(dumps):
                subprocess.run([os.path.join(jdk.home, "bin", "jcmd"), str(java.pid), "Thread.print"], stdout=subprocess.DEVNULL, check=True)
            test.assertEqual([line for line in java.finish(test) if "no perf-data" not in line], [])
            self.driver.wait_for("detached")
        finally:
            self.driver.end()
        with open(log) as lines:
            self.logged = [(int(m[1]), m[2], int(m[3]), int(m[4])) for m in map(LINE.match, lines) if m]

    def starts(self):
        """(time, what the event says, what the log says) of each collection's start."""
        finishes = [event.time_ns for event in self.driver.events("gc-finish")]
        starts = self.driver.events("gc-start")
        return [(start.time_ns, start.arg1, next(line[2] for line in self.logged if line[0] >= finish)) for start, finish in zip(starts, finishes)]


class AgentSafepoints(unittest.TestCase):
    def test_the_time_to_stop_is_the_log_s(self):
        for jdk in JDKS:
            for collector in ("Serial", "Parallel", "G1", "Z"):
                with self.subTest(jdk=jdk.version, collector=collector):
                    starts = Run(self, jdk, collector, 1500).starts()
                    known = [(told, logged) for _, told, logged in starts if told]
                    self.assertGreater(len(starts), 5)
                    # A wrong one is worse than none: what is said is right.
                    for told, logged in known:
                        self.assertLess(abs(told - logged), 50 * US, (told, logged))
                    print("JDK %d %s: %d of %d known" % (jdk.version, collector, len(known), len(starts)))
                    self.assertGreater(len(known), 0.7 * len(starts))

    def test_other_safepoints_between_are_told_and_do_not_count_for_collections(self):
        for jdk in JDKS:
            with self.subTest(jdk=jdk.version):
                run = Run(self, jdk, "Serial", 4000, dumps=4)
                dumps = [line for line in run.logged if line[1] == "PrintThreads"]
                self.assertGreaterEqual(len(dumps), 2)
                for _, told, logged in run.starts():
                    self.assertTrue(told == 0 or abs(told - logged) < 50 * US, (told, logged))
                self.check_sums(run)

    def check_sums(self, run):
        events = run.driver.events("safepoints")
        self.assertGreater(len(events), 5)
        self.assertEqual(len({event.tid for event in events}), 1)
        # What was logged between two events is what the second one tells, but for what was just happening at either.
        first, last = events[0].time_ns, events[-1].time_ns
        logged = [line for line in run.logged if first < line[0] <= last]
        told = events[1:]
        self.assertAlmostEqual(sum(event.arg0 for event in told), len(logged), delta=2)
        longest = max(line[3] for line in logged)
        self.assertAlmostEqual(sum(event.arg1 for event in told), sum(line[3] for line in logged), delta=2 * longest + len(logged) * 50 * US)
        self.assertAlmostEqual(sum(event.arg2 for event in told), sum(line[2] for line in logged),
                               delta=2 * max(line[2] for line in logged) + len(logged) * 20 * US)
        late = [next((event.time_ns for event in events if event.time_ns >= line[0]), last) - line[0] for line in logged]
        self.assertLess(statistics.median(late), 40 * MS)

    def test_without_counters_nothing_is_said(self):
        run = Run(self, JDKS[-1], "Serial", 400, "-XX:-UsePerfData")
        self.assertGreater(len(run.driver.events("gc-start")), 2)
        self.assertEqual({event.arg1 for event in run.driver.events("gc-start")}, {0})
        self.assertEqual(run.driver.events("safepoints"), [])


if __name__ == "__main__":
    run_tests()
