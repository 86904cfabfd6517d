# SPDX-License-Identifier: Apache-2.0
"""Every collector's pauses: the page says that the JVM stands still and why, and the heartbeat goes on."""

import statistics
import unittest

from jvm_agent_harness import jvms_of, live, run_tests

MS = 1_000_000
STOP_THE_WORLD = ("Serial", "Parallel", "G1")
COLLECTORS = STOP_THE_WORLD + ("Z", "Shenandoah")


class Pauses:
    """A JVM with 40 MiB alive that makes garbage and is collected in full, as its page showed it."""

    def __init__(self, test, jdk, collector, *options, said=""):
        self.driver, program = live(jdk, collector, 40, "", "-Xms160m", "-Xmx160m", *options)
        try:
            program.tell("churn 400")
            program.tell("gc")
            program.tell("churn 100")
            program.finish(test, said=said)
            self.driver.wait_for("detached")
        finally:
            self.driver.end()
        self.starts = self.driver.events("gc-start")
        self.finishes = self.driver.events("gc-finish")

    def forced(self):
        """The pauses of the collection that the program asked for."""
        return [finish for finish in self.finishes if finish.text.endswith("\tSystem.gc()")]


class Collectors(unittest.TestCase):
    def test_each_pause_sets_the_state(self):
        for jdk, collector in jvms_of(COLLECTORS):
            with self.subTest(jdk=jdk.version, collector=collector):
                # So low that G1 marks concurrently, too.
                pauses = Pauses(self, jdk, collector, "-XX:InitiatingHeapOccupancyPercent=10")
                self.assertEqual(len(pauses.starts), len(pauses.finishes))
                self.assertEqual(pauses.driver.pages()[-1].pauses, len(pauses.starts))
                moments = {1: {event.time_ns for event in pauses.starts}, 0: {event.time_ns for event in pauses.finishes}}
                for state, since in moments.items():
                    seen = {wake.since_ns for wake in pauses.driver.wakes() if wake.state == state}
                    self.assertLessEqual(seen, since | {0}, state)
                    # A pause of some 10 us is over when its watcher has woken.
                    self.assertTrue(seen or (state == 1 and collector not in STOP_THE_WORLD))
                self.check_cause(jdk, collector, pauses)
                if collector in STOP_THE_WORLD:
                    self.check_heartbeat(pauses)

    def check_cause(self, jdk, collector, pauses):
        known = {}
        for event, start in ((finish, finish.arg1) for finish in pauses.finishes):
            known[start] = known[event.time_ns] = event.text.split("\t")[1]
        shown = [cause for cause in pauses.driver.causes() if cause.since_ns in known]
        forced = {start for finish in pauses.forced() for start in (finish.arg1, finish.time_ns)}
        if collector == "Z" and jdk.version > 17:
            # Its minor and major collections overlap, and the event names no cause of theirs: the page has what the counters say.
            self.assertIn("System.gc()", {cause.text for cause in shown})
            return
        self.assertTrue(forced)
        for cause in shown:
            # "Ergonomics" is a full collection by Parallel of JDK 17, whose cause is gone at its end.
            unknown = {"G1": ("G1 remark or cleanup",), "Parallel": ("", "Ergonomics")}.get(collector, ("",))
            self.assertIn(cause.text, ("", known[cause.since_ns]) if known[cause.since_ns] != "unknown" else unknown, cause)
        if collector == "G1":
            self.assertIn("G1 remark or cleanup", {cause.text for cause in shown if cause.state == 1})
        # While it went on: at once, or after a heartbeat where the collector says it later.
        said = [cause.text for cause in shown if cause.state == 1 and cause.since_ns in forced]
        if collector in STOP_THE_WORLD:
            self.assertEqual(said[-1], "System.gc()", said)
        self.assertIn("System.gc()", {cause.text for cause in shown if cause.since_ns in forced})

    def check_heartbeat(self, pauses):
        (finish,) = pauses.forced()
        self.assertGreater(finish.time_ns - finish.arg1, 25 * MS, "too short a pause to see a heartbeat in it")
        inside = [page for page in pauses.driver.pages() if page.state == 1 and page.since_ns == finish.arg1]
        beats = {page.heartbeat_ns for page in inside if page.heartbeat_ns > finish.arg1}
        self.assertGreater(len(beats), 2)
        self.assertLess(statistics.median(page.now_ns - page.heartbeat_ns for page in inside), 15 * MS)

    def test_without_counters_the_cause_is_empty(self):
        jdk, collector = jvms_of(("Serial",))[-1]
        pauses = Pauses(self, jdk, collector, "-XX:-UsePerfData", said="no perf-data")
        self.assertTrue(pauses.driver.causes())
        self.assertEqual({cause.text for cause in pauses.driver.causes()}, {""})


if __name__ == "__main__":
    run_tests()
