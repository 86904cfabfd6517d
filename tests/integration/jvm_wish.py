# SPDX-License-Identifier: Apache-2.0
"""Collections that the proxy wishes for come where the agent's options allow them, and never harm the JVM."""

import time
import unittest

from jvm_agent_harness import JDKS, jvms_of, live, run_tests

MS = 1_000_000
YOUNG, FULL = 1, 2
CAN_HEAP, CAN_YOUNG, CAN_FULL = 1, 2, 4
SIZES = ("-Xms96m", "-Xmx96m")


class Wishes(unittest.TestCase):
    def setUp(self):
        self.driver = None

    def tearDown(self):
        if self.driver:
            self.driver.end()

    def start(self, jdk, collector, mebibytes, option, *options):
        """Ends the JVM before, if there was one."""
        self.tearDown()
        self.driver, program = live(jdk, collector, mebibytes, option, *options)
        return program

    def can(self):
        return int(self.driver.wait_for("can")[1])

    def collections_of(self, what, milliseconds=3000):
        """The collections that came of a wish, as their events name them, and how long it took."""
        took_ns = self.driver.wish(what, milliseconds)
        since_ns = int(self.driver.of("wished")[-1][1])
        # Events are read before it is seen that a wish was granted.
        return [event.text for event in self.driver.events("gc-finish") if event.time_ns > since_ns], took_ns

    def test_a_young_collection_comes_of_filling_eden(self):
        for jdk, collector in jvms_of(("Serial", "Parallel", "G1")):
            with self.subTest(jdk=jdk.version, collector=collector):
                program = self.start(jdk, collector, 5, ",collect=young", *SIZES)
                self.assertEqual(self.can(), CAN_HEAP | CAN_YOUNG)
                for _ in range(3):
                    came, took_ns = self.collections_of(YOUNG)
                    self.assertEqual([text.split("\t")[0] for text in came], ["%s young" % collector])
                    self.assertLess(took_ns, 3000 * MS)
                self.assertEqual(self.collections_of(FULL)[0], [], "not allowed")
                program.finish(self)

    def test_it_comes_of_filling_a_large_eden_too(self):
        for jdk, collector in jvms_of(("Serial", "Parallel")):
            with self.subTest(jdk=jdk.version, collector=collector):
                program = self.start(jdk, collector, 5, ",collect=young", "-Xms600m", "-Xmx600m", "-Xmn400m")
                came, _ = self.collections_of(YOUNG, 20000)
                self.assertEqual([text.split("\t")[0] for text in came], ["%s young" % collector])
                program.finish(self)

    def test_a_full_collection_comes_with_every_collector(self):
        for jdk, collector in jvms_of(("Serial", "Parallel", "G1", "Z", "Shenandoah")):
            with self.subTest(jdk=jdk.version, collector=collector):
                program = self.start(jdk, collector, 5, ",collect=full", *SIZES)
                has_eden = collector in ("Serial", "Parallel", "G1")
                self.assertEqual(self.can(), CAN_HEAP | CAN_FULL | (CAN_YOUNG if has_eden else 0))
                came, _ = self.collections_of(FULL)
                self.assertTrue(came)
                if has_eden:
                    self.assertTrue(came[-1].endswith(collector + " full\tJvmtiEnv ForceGarbageCollection"), came)
                elif not (collector == "Z" and jdk.version > 17):
                    self.assertIn("JvmtiEnv ForceGarbageCollection", {text.split("\t")[1] for text in came})
                if not has_eden:
                    before = self.garbage()
                    self.assertLess(self.driver.wish(YOUNG, 3000), 1000 * MS)
                    self.assertEqual(self.garbage(), before, "eden is not filled where there is none")
                program.finish(self)

    def garbage(self):
        """Collections that allocation has brought about so far."""
        return [event.text for event in self.driver.events("gc-finish") if "Alloc" in event.text]

    def test_nothing_comes_unless_it_is_allowed(self):
        for option in ("", ",collect=off"):
            program = self.start(JDKS[0], "Serial", 5, option, *SIZES)
            self.assertEqual(self.can(), CAN_HEAP)
            for what in (YOUNG, FULL, YOUNG):
                came, took_ns = self.collections_of(what)
                self.assertEqual(came, [])
                self.assertLess(took_ns, 1000 * MS)
            program.finish(self)

    def test_a_wish_ends_with_its_time(self):
        program = self.start(JDKS[-1], "Serial", 5, ",collect=full", "-Xms400m", "-Xmx400m", "-Xmn300m")
        for what, milliseconds in ((YOUNG, 0), (FULL, 0), (YOUNG, 10)):
            came, took_ns = self.collections_of(what, milliseconds)
            self.assertEqual(came, [])
            self.assertLess(took_ns, 1000 * MS)
        program.finish(self)

    def test_a_heap_that_is_nearly_full_is_left_alone(self):
        program = self.start(JDKS[0], "Serial", 54, ",collect=full", "-Xms80m", "-Xmx80m", "-Xmn20m", "-XX:+ExitOnOutOfMemoryError")
        program.tell("gc")
        self.assertEqual(self.collections_of(YOUNG)[0], [])
        program.finish(self)

    def test_what_does_not_fill_eden_is_given_up(self):
        program = self.start(JDKS[0], "Serial", 2, ",collect=young", "-Xms300m", "-Xmx300m", "-Xmn100m", "-XX:PretenureSizeThreshold=32k")
        program.tell("gc")
        before = self.tenured(program)
        came, _ = self.collections_of(YOUNG, 20000)
        self.assertEqual(came, [])
        self.assertLess(self.tenured(program) - before, 16 << 20)
        program.finish(self)

    def tenured(self, program):
        return next(int(line.split("|")[2]) for line in program.tell("heap") if line.startswith("pool|Tenured"))

    def eden(self, program):
        """How full it is, and how many collections there were."""
        lines = [line.split("|") for line in program.tell("heap")]
        return (next(int(words[2]) for words in lines if words[:2] == ["pool", "Eden Space"]),
                sum(int(words[2]) for words in lines if words[0] == "collector"))

    def test_the_wish_of_a_proxy_that_has_gone_ends_with_it(self):
        program = self.start(JDKS[0], "Serial", 5, ",collect=young", "-Xms1200m", "-Xmx1200m", "-Xmn1000m")
        # As a proxy that predicts does: the thread that grants wishes is awake.
        self.driver.say("wants 1")
        self.driver.wait_for("heap")
        self.driver.say("wish %d %d" % (YOUNG, 20000))
        self.driver.wait_for("wished")
        self.driver.end(kill=True)
        self.driver = None
        time.sleep(0.2)
        before = self.eden(program)
        time.sleep(3)
        self.assertEqual(self.eden(program), before, "eden is filled for nobody")
        program.finish(self)

    def test_the_jvm_ends_in_the_midst_of_it(self):
        for jdk in JDKS:
            program = self.start(jdk, "Serial", 5, ",collect=young", "-Xms600m", "-Xmx600m", "-Xmn500m")
            self.driver.say("wish %d %d" % (YOUNG, 5000))
            self.driver.wait_for("wished")
            program.finish(self)


if __name__ == "__main__":
    run_tests()
