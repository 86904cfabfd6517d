# SPDX-License-Identifier: Apache-2.0
"""Which virtual thread ran on which kernel thread, by the agent's events and by the threads' own notes. JDK 21 and later."""

import collections
import unittest

from jvm_agent_harness import JDKS, Driver, Java, Program, agent_path, compiled, new_socket, run_tests

WITH = [jdk for jdk in JDKS if jdk.version >= 21]


def run(test, jdk, mode, options, *flags):
    """The program's lines and the events of its virtual threads."""
    path = new_socket()
    driver = Driver(path)
    try:
        program = Program(jdk, compiled(jdk, "VirtualThreads"), "VirtualThreads", mode, agent_path("socket=%s,slots=65536%s" % (path, options)), *flags)
        driver.wait_for("attached")
        lines = program.finish(test)
        driver.wait_for("detached")
    finally:
        driver.end()
    test.assertEqual(driver.of("lost") if mode == "run" else [], [])
    return lines, driver.events("vthread-mount", "vthread-unmount")


class AgentVirtualThreads(unittest.TestCase):
    def setUp(self):
        if not WITH:
            self.skipTest("no JDK 21 or later in JAVA_HOME or /usr/lib/jvm")

    def check(self, lines, events):
        on = collections.defaultdict(list)  # kernel thread: [from, to, virtual thread]
        mounted = {}
        # One carrier after the other in the channel's order, which for one thread is the order of time.
        for event in events:
            self.assertNotEqual(event.arg0, 0)
            stays = on[event.tid]
            if event.kind == "vthread-mount":
                self.assertTrue(not stays or stays[-1][1], "two virtual threads on one carrier: %s" % (event,))
                self.assertNotIn(event.arg0, mounted, "a virtual thread on two carriers: %s" % (event,))
                mounted[event.arg0] = event.tid
                stays.append([event.time_ns, None, event.arg0])
            else:
                self.assertTrue(stays and not stays[-1][1] and stays[-1][2] == event.arg0, "an unmount without its mount: %s" % (event,))
                del mounted[event.arg0]
                stays[-1][1] = event.time_ns
        self.assertEqual(mounted, {})
        notes = [list(map(int, line.split()[1:])) for line in lines if line.startswith("ran ")]
        self.assertGreater(len(notes), 1000)
        for before, after, number, tid in notes:
            self.assertTrue(any(start <= before and after <= end and vthread == number for start, end, vthread in on[tid]),
                            "virtual thread %d ran on %d at %d unseen" % (number, tid, before))
        return {number for _, _, number, _ in notes}, {event.arg0 for event in events}

    def test_mounts_say_where_each_virtual_thread_ran(self):
        for jdk in WITH:
            with self.subTest(jdk=jdk.version):
                seen, told = self.check(*run(self, jdk, "run", ""))
                self.assertEqual(len(seen), 50)
                self.assertLessEqual(seen, told)

    def test_it_holds_where_few_carriers_are_shared_by_many(self):
        for options in (("-Djdk.virtualThreadScheduler.parallelism=1",), ("-XX:+UseZGC",)):
            self.check(*run(self, WITH[-1], "run", "", *options))

    def test_turned_off_nothing_is_written(self):
        self.assertEqual(run(self, WITH[-1], "run", ",vthreads=off")[1], [])

    def test_there_is_more_room_where_mounts_are_written(self):
        for jdk in JDKS:
            for options, slots in (("", 8192 if jdk.version < 21 else 65536), (",vthreads=off", 8192), (",slots=1024", 1024)):
                path = new_socket()
                driver = Driver(path)
                java = Java(jdk, 300, agent_path("socket=%s%s" % (path, options)))
                self.assertEqual(driver.wait_for("attached")[3], str(slots))
                self.assertEqual(java.finish(self), [])
                driver.end()

    def test_an_agent_that_comes_later_sees_them(self):
        path = new_socket()
        driver = Driver(path)
        try:
            program = Program(WITH[-1], compiled(WITH[-1], "VirtualThreads"), "VirtualThreads", "run", "-XX:+EnableDynamicAgentLoading")
            program.attach(self, "socket=%s,slots=65536" % path)
            driver.wait_for("attached")
            lines = program.finish(self)
            driver.wait_for("detached")
        finally:
            driver.end()
        self.check(lines, driver.events("vthread-mount", "vthread-unmount"))

    def test_what_they_cost_is_printed(self):
        for options in ("", ",vthreads=off"):
            lines, _ = run(self, WITH[-1], "time", options, "-Djdk.virtualThreadScheduler.parallelism=1")
            best = min(int(line.split()[1]) for line in lines if line.startswith("nanoseconds"))
            print("a yield of a virtual thread%s: %d ns" % (options or ",vthreads=on", best))
            self.assertLess(best, 20_000)


if __name__ == "__main__":
    run_tests()
