# SPDX-License-Identifier: Apache-2.0
"""What the agent reports is what the JVM itself says in its log. Real JVMs, every collector they have."""

import math
import os
import re
import signal
import statistics
import time
import unittest

from jvm_agent_harness import JDKS, Driver, Java, agent_path, has_collector, new_socket, run_tests, scratch

MS = 1_000_000
PAUSE = re.compile(r"\[(\d+)ns\] GC\(\d+\) Pause (Young|Full|Remark|Cleanup)(.*?) ([\d.]+)ms$")
SAFEPOINT = re.compile(r'\[(\d+)ns\] Safepoint "(\w+)", .*Total: +(\d+) ns')


class Run:
    """One program from start to end, with what we saw and what the JVM logged."""

    def __init__(self, test, jdk, collector, milliseconds, *options):
        path, log = new_socket(), os.path.join(scratch, "gc-%d-%s.log" % (jdk.version, collector))
        self.driver = Driver(path)
        try:
            java = Java(jdk, milliseconds, agent_path("socket=" + path), "-Xlog:gc,safepoint:file=%s:tn" % log, *options,
                        collector=collector)
            self.stderr = java.finish(test)
            self.pid = java.pid
            self.driver.wait_for("detached")
        finally:
            self.driver.end()
        with open(log) as lines:
            logged = list(lines)
        self.pauses = [(int(m[1]), m[2], m[3], float(m[4]) * MS) for m in map(PAUSE.match, logged) if m]
        self.safepoints = [(int(m[1]), m[2], int(m[3])) for m in map(SAFEPOINT.match, logged) if m]
        self.pairs = self.pair_up(test, self.driver.events("gc-start", "gc-finish"))

    @staticmethod
    def pair_up(test, events):
        pairs = list(zip(events[::2], events[1::2]))
        test.assertEqual(len(events) % 2, 0)
        for number, (start, finish) in enumerate(pairs, 1):
            test.assertEqual((start.kind, finish.kind), ("gc-start", "gc-finish"))
            test.assertEqual((start.arg0, finish.arg0, finish.arg1), (number, number, start.time_ns))
            test.assertLess(start.time_ns, finish.time_ns)
        return pairs


class AgentEvents(unittest.TestCase):
    def expected_text(self, jdk, collector, inside):
        kinds = [kind for _, kind, _, _ in inside]
        if kinds[0] in ("Remark", "Cleanup"):
            return "%s remark or cleanup\tunknown" % collector
        names = [name for name in ("young", "full") if name.capitalize() in kinds]
        # "(Normal) (G1 Evacuation Pause) (Evacuation Failure: Allocation) 24M->17M(32M)"; the line of the last pause counts.
        notes = re.findall(r"\(((?:[^()]|\(\))+)\)", re.split(r" \d+M->", inside[-1][2])[0])
        cause = [note for note in notes if note not in ("Normal", "Concurrent Start", "Prepare Mixed", "Mixed")][0]
        # JDK 17 renames the cause for Parallel's full collection only, and takes that back before anybody can see it.
        if (jdk.version, collector, cause) == (17, "Parallel", "Ergonomics"):
            cause = "unknown"
        return " + ".join("%s %s" % (collector, name) for name in names) + "\t" + cause

    def test_pauses_match_the_gc_log(self):
        for jdk in JDKS:
            for collector in ("Serial", "Parallel", "G1"):
                with self.subTest(jdk=jdk.version, collector=collector):
                    options = ["-XX:InitiatingHeapOccupancyPercent=10", "-XX:G1HeapRegionSize=1m"] if collector == "G1" else []
                    run = Run(self, jdk, collector, 1200, *options)
                    self.check_pauses(run, jdk, collector)
                    self.check_page(run)

    def check_pauses(self, run, jdk, collector):
        self.assertEqual(run.stderr, [])
        self.assertGreater(len(run.pairs), 10)
        unplaced = list(run.pauses)
        differences = []
        next_starts = [start.time_ns for start, _ in run.pairs[1:]] + [math.inf]
        for (start, finish), next_start_ns in zip(run.pairs, next_starts):
            # The thread that ends a pause logs it a moment later, before it begins another: however late it gets the CPU.
            inside = [p for p in unplaced if start.time_ns <= p[0] < next_start_ns]
            self.assertTrue(inside, "a pause that the log does not know: %s %s" % (start, finish))
            unplaced = [p for p in unplaced if p not in inside]
            self.assertEqual(finish.text, self.expected_text(jdk, collector, inside))
            # A young collection that turns into a full one is logged as two, of which one may contain the other.
            logged = inside[0][3] if len(inside) == 1 else None
            if logged is not None:
                differences.append(abs(finish.time_ns - start.time_ns - logged))
            # So with the safepoint's line, at its end.
            around = next((safepoint for safepoint in run.safepoints if safepoint[0] >= finish.time_ns), None)
            self.assertIsNotNone(around, "a pause after the last safepoint")
            self.assertGreaterEqual(around[2], finish.time_ns - start.time_ns, "a pause longer than its safepoint")
        self.assertEqual(unplaced, [], "pauses in the log that were not reported")
        close = sum(difference < MS for difference in differences)
        self.assertGreaterEqual(close, 0.95 * len(differences), sorted(differences)[-10:])
        self.assertLess(statistics.median(differences), MS // 4)

    def check_page(self, run):
        durations = [finish.time_ns - start.time_ns for start, finish in run.pairs]
        page = run.driver.pages()[-1]
        self.assertEqual(page.state, 2)  # gone
        self.assertEqual((page.pauses, page.total_ns, page.last_ns, page.max_ns),
                         (len(durations), sum(durations), durations[-1], max(durations)))

    def test_pauses_of_concurrent_collectors_are_seen(self):
        for jdk in JDKS:
            for collector, prefix, names in (("Z", "Z", ("ZGC", "ZGC minor", "ZGC major")), ("Shenandoah", "Shenandoah", ("Shenandoah",))):
                with self.subTest(jdk=jdk.version, collector=collector):
                    if not has_collector(jdk, collector):
                        self.skipTest("this JDK has no " + collector)
                    run = Run(self, jdk, collector, 1200)
                    operations = [name for _, name, _ in run.safepoints if name.startswith(prefix)]
                    self.assertGreater(len(run.pairs), 5)
                    self.assertEqual(len(run.pairs), len(operations))
                    for _, finish in run.pairs:
                        self.assertIn(finish.text.split("\t")[0], names)

    def test_without_perf_data_collector_and_cause_are_unknown(self):
        for option in ("-XX:-UsePerfData", "-XX:+PerfDisableSharedMem"):
            run = Run(self, JDKS[0], "Serial", 400, option)
            self.assertEqual(len(run.stderr), 1)
            self.assertIn("no perf-data", run.stderr[0])
            self.assertGreater(len(run.pairs), 2)
            self.assertEqual({finish.text for _, finish in run.pairs}, {"unknown\tunknown"})

    def test_a_sleeping_worker_is_woken_at_the_start_and_the_end_of_a_pause(self):
        run = Run(self, JDKS[-1], "Serial", 1000)
        wakes = run.driver.wakes()
        for state, moments in ((1, [start.time_ns for start, _ in run.pairs]), (0, [finish.time_ns for _, finish in run.pairs])):
            woken = {wake.since_ns: wake.time_ns - wake.since_ns for wake in wakes if wake.state == state}
            self.assertLessEqual(set(woken), set(moments) | {0})
            # While it prints, or waits for a CPU, it does not sleep, and then it needs no waking.
            self.assertGreater(len(woken), len(moments) // 5)
            print("state %d: woken after %.0f us (median of %d)" % (state, statistics.median(woken.values()) / 1000, len(woken)))

    def test_classes_and_threads_have_their_names_and_durations(self):
        for jdk in JDKS:
            with self.subTest(jdk=jdk.version):
                run = Run(self, jdk, "Serial", 500)
                events = {(event.kind, event.text): event for event in run.driver.events()}
                thread = events["thread-start", "search worker with a long name"]
                self.assertIn(("thread-start", "main"), events)
                self.assertEqual({event.pid for event in events.values()}, {run.pid})
                late, nested = events["class-load", "Allocate$Late"], events["class-load", "Allocate$Late$Nested"]
                self.assertEqual((late.tid, nested.tid), (thread.tid, thread.tid))
                # Its superclass was loaded while it was being defined: the inner duration lies within the outer one.
                self.assertLess(nested.time_ns - nested.arg0, late.time_ns - late.arg0)
                self.assertLess(late.time_ns, nested.time_ns)
                self.assertTrue(0 < late.arg0 < nested.arg0 < 1000 * MS)
                prepared = events["class-prepare", "Allocate$Late$Nested"]
                self.assertEqual(prepared.arg0, prepared.time_ns - nested.time_ns)
                # A hidden class, as its getName() reads.
                self.assertTrue(any(kind == "class-load" and re.fullmatch(r"Allocate\$\$Lambda(\$\d+)?/0x[0-9a-f]+", text)
                                    for kind, text in events))
                ended = [event.tid for event in run.driver.events("thread-end")]
                self.assertIn(thread.tid, ended)

    def test_the_heartbeat_stops_only_with_the_process(self):
        path = new_socket()
        driver = Driver(path)
        try:
            java = Java(JDKS[0], 2500, agent_path("socket=" + path))
            driver.wait_for("page", count=10)
            os.kill(java.pid, signal.SIGSTOP)
            time.sleep(0.6)
            stopped = driver.pages()[-1]
            os.kill(java.pid, signal.SIGCONT)
            self.assertEqual(java.finish(self), [])
        finally:
            driver.end()
        self.assertGreater(stopped.now_ns - stopped.heartbeat_ns, 400 * MS)
        ages = sorted(page.now_ns - page.heartbeat_ns for page in driver.pages() if page.now_ns < stopped.now_ns - 600 * MS)
        self.assertLess(ages[len(ages) // 2], 40 * MS)
        self.assertGreater(len({page.heartbeat_ns for page in driver.pages()}), 20)


if __name__ == "__main__":
    run_tests()
