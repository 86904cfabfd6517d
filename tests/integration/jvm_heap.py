# SPDX-License-Identifier: Apache-2.0
"""The page says how full the heap is, as the JVM's own beans do, for as long as somebody wants to know."""

import glob
import re
import time
import unittest

from jvm_agent_harness import JDKS, Driver, jvms_of, live, run_tests

MS, MIB = 1_000_000, 1 << 20
CAN_HEAP = 1
EDEN = {"Serial": "Eden Space", "Parallel": "PS Eden Space", "G1": "G1 Eden Space"}
SIZES = ("-Xms96m", "-Xmx96m")


def ticks_of(pid, name):
    """CPU time of a thread, in hundredths of a second; None if there is none of that name."""
    for path in glob.glob("/proc/%d/task/*/stat" % pid):
        with open(path) as stat:
            comm, fields = re.search(r"\((.*)\) (.*)", stat.read()).groups()
        if comm == name:
            return sum(map(int, fields.split()[11:13]))
    return None


def beans(program):
    """({pool: (used, committed, max)}, {collector: count}) as the JVM itself sees them."""
    lines = [line.rstrip("\n").split("|") for line in program.tell("heap")]
    return ({line[1]: tuple(map(int, line[2:])) for line in lines if line[0] == "pool"},
            {line[1]: int(line[2]) for line in lines if line[0] == "collector"})


def next_heap(driver):
    """What the page says from now on."""
    now_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    until = time.monotonic() + 10
    while time.monotonic() < until:
        fresh = [heap for heap in driver.heaps() if heap.time_ns > now_ns]
        if fresh:
            return fresh[-1]
        time.sleep(0.02)
    raise AssertionError("the heap is not read any more")


def at_rest(driver, program):
    """(pools, collectors) before, what the page says, and (pools, collectors) after, while no collection that runs beside the program is at work."""
    for _ in range(20):
        before, collected_before = beans(program)
        heap = next_heap(driver)
        after, collected_after = beans(program)
        moved = max(abs(before[name][0] - after[name][0]) for name in before)
        if moved <= 2 * MIB and collected_before == collected_after:
            return before, collected_before, heap, after, collected_after
        time.sleep(0.1)
    raise AssertionError("the heap does not come to rest: %s, %s" % (before, after))


class Heap(unittest.TestCase):
    def test_it_is_what_the_beans_say(self):
        for jdk, collector in jvms_of(("Serial", "Parallel", "G1", "Z", "Shenandoah", "Epsilon")):
            with self.subTest(jdk=jdk.version, collector=collector):
                # Without that, Epsilon advises it.
                driver, program = live(jdk, collector, 10, "", *SIZES, "-XX:+AlwaysPreTouch")
                try:
                    self.assertEqual(driver.wait_for("can")[1], str(CAN_HEAP))
                    self.assertEqual(driver.heaps(), [])
                    driver.say("wants 1")
                    driver.wait_for("heap")
                    if collector != "Epsilon":
                        program.tell("churn 100")
                        program.tell("gc")
                    program.tell("keep 4")
                    self.compare(driver, program, collector)
                    program.finish(self)
                    driver.wait_for("detached")
                finally:
                    driver.end()

    def compare(self, driver, program, collector):
        before, collected_before, heap, after, collected_after = at_rest(driver, program)
        young = [name for name in before if name == EDEN.get(collector) or name == "ZGC Young Generation"]
        old = [name for name in before if name not in young and "Survivor" not in name]
        self.assertEqual(len(old), 1)

        def between(value, names, what):
            low, high = (sum(pools[name][what] for name in names) for pools in (before, after))
            # ZGC and the beans' own objects: a page or a TLAB more or less.
            self.assertTrue(min(low, high) - 2 * MIB <= value <= max(low, high) + 2 * MIB, (value, names, before, after))

        between(heap.young_used, young, 0)
        between(heap.old_used, old, 0)
        if collector in EDEN:
            between(heap.young_size, young, 1)
            self.assertGreater(heap.young_used, 0)
        else:
            self.assertEqual(heap.young_size, 0)
        self.assertEqual(heap.old_size, before[old[0]][2])
        for value, names in ((heap.young, ("Copy", "PS Scavenge", "G1 Young Generation", "ZGC Minor Cycles")),
                             (heap.old, ("MarkSweepCompact", "PS MarkSweep", "G1 Old Generation", "ZGC Cycles", "ZGC Major Cycles", "Shenandoah Cycles"))):
            low, high = (sum(collected.get(name, 0) for name in names) for collected in (collected_before, collected_after))
            self.assertTrue(low <= value <= high, (heap, collected_before, collected_after))
        self.assertEqual(heap.young + heap.old > 0, collector != "Epsilon", heap)

    def test_it_is_fresh_while_it_is_wanted_and_costs_nothing_otherwise(self):
        for jdk in JDKS:
            driver, program = live(jdk, "Serial", 5, "", *SIZES)
            try:
                time.sleep(1)
                self.assertLess(ticks_of(program.pid, "tailor-heap"), 2)
                driver.say("wants 1")
                driver.wait_for("heap", count=20)
                ages = sorted(heap.now_ns - heap.time_ns for heap in driver.heaps()[5:])
                self.assertLess(ages[len(ages) // 2], 10 * MS)
                driver.say("wants 0")
                time.sleep(0.3)
                last = driver.heaps()[-1].time_ns
                time.sleep(0.3)
                self.assertEqual(driver.heaps()[-1].time_ns, last)
                program.finish(self)
            finally:
                driver.end()

    def test_who_is_gone_wants_nothing_any_more(self):
        driver, program = live(JDKS[0], "Serial", 5, "", *SIZES)
        driver.say("wants 1")
        driver.wait_for("heap", count=3)
        driver.end(kill=True)
        driver = Driver(driver.path)
        try:
            driver.wait_for("heap", count=5)
            self.assertEqual(len({heap.time_ns for heap in driver.heaps()}), 1)
            driver.say("wants 1")
            next_heap(driver)
            program.finish(self)
        finally:
            driver.end()

    def test_the_jvm_ends_while_it_is_read_and_checks_of_jni_find_nothing(self):
        for jdk in JDKS:
            driver, program = live(jdk, "G1", 5, ",collect=full", *SIZES, "-Xcheck:jni")
            try:
                driver.say("wants 1")
                driver.wait_for("heap", count=3)
                for what in (1, 2):
                    driver.wish(what, 3000)
                self.assertGreater(len(driver.events("gc-finish")), 1)
                asked = time.monotonic()
                self.assertEqual(program.finish(self), ["done"])
                self.assertLess(time.monotonic() - asked, 5)
            finally:
                driver.end()

    def test_the_jvm_s_end_does_not_wait_for_the_thread(self):
        # HotSpot gives a Java thread that sleeps in native code 300 ms to come out of it.
        for jdk in JDKS:
            took = []
            for _ in range(3):
                driver, program = live(jdk, "Serial", 1, "", *SIZES)
                driver.end()
                program.process.stdin.write("\n")
                program.process.stdin.flush()
                self.assertEqual(program.process.stdout.readline(), "done\n")
                asked = time.monotonic()
                program.process.wait(10)
                took.append(time.monotonic() - asked)
                program.process.communicate()
            self.assertLess(min(took), 0.15)

    def test_without_the_module_there_is_neither_the_thread_nor_an_error(self):
        for jdk in JDKS:
            driver, program = live(jdk, "Serial", 5, ",collect=full", *SIZES, "--limit-modules=java.base")
            try:
                self.assertEqual(driver.wait_for("can")[1], "0")
                driver.say("wants 1")
                self.assertLess(driver.wish(2, 1000), 1500 * MS)
                self.assertIsNone(ticks_of(program.pid, "tailor-heap"))
                self.assertEqual(driver.events("gc-start"), [])
                program.process.stdin.write("\n")
                program.process.stdin.flush()
                self.assertEqual(program.process.wait(20), 0)
            finally:
                driver.end()


if __name__ == "__main__":
    run_tests()
