# SPDX-License-Identifier: Apache-2.0
"""What an application says of its threads through io.tailor.Tailor stands in the channel, and nowhere does it do harm."""

import collections
import os
import unittest

from jvm_agent_harness import JDKS, SOURCES, Driver, Program, agent_path, compiled, new_socket, run_tests

TAILOR = os.path.join(SOURCES, "..", "..", "..", "jvmagent", "java", "src", "main", "java", "io", "tailor", "Tailor.java")


def application(jdk, mode, *options):
    return Program(jdk, compiled(jdk, "Application", TAILOR), "Application", mode, *options)


def run(test, jdk, mode, *options, more=""):
    """The program's lines, the APP events, and all of them."""
    path = new_socket()
    driver = Driver(path)
    try:
        program = application(jdk, mode, agent_path("socket=%s,slots=65536%s" % (path, more)), *options)
        driver.wait_for("attached")
        lines = program.finish(test)
        driver.wait_for("detached")
    finally:
        driver.end()
    return lines, driver.events("app-begin", "app-end"), driver


def on_each_jdk(test):
    def run_on_each(self):
        for jdk in JDKS:
            with self.subTest(jdk=jdk.version):
                test(self, jdk)
    return run_on_each


class AgentApplication(unittest.TestCase):
    @on_each_jdk
    def test_eight_threads_name_their_requests(self, jdk):
        _, events, driver = run(self, jdk, "threads")
        self.assertEqual(driver.of("lost"), [])
        names = {event.tid: event.text for event in driver.events("thread-start")}
        of = collections.defaultdict(list)
        for event in events:
            self.assertEqual(event.arg0, 0, "a platform thread has no virtual thread's number")
            of[names[event.tid]].append((event.kind, event.request))
        self.assertEqual(set(of), {"worker %d" % (number + 0xf1) for number in range(8)})
        for name, said in of.items():
            requests = [int(name.split()[1]) << 56 | 0xabcdef00 << 16 | i for i in range(1, 301)]
            self.assertEqual(said, [(kind, request) for request in requests for kind in ("app-begin", "app-end")])

    @on_each_jdk
    def test_virtual_threads_say_which_one_they_are(self, jdk):
        if jdk.version < 21:
            self.skipTest("no virtual threads")
        for more in ("", ",vthreads=off"):
            lines, events, driver = run(self, jdk, "virtual", more=more)
            number = {int(line.split()[2]): int(line.split()[1]) for line in lines if line.startswith("virtual ")}
            self.assertEqual(len(set(number.values())), 40)
            for kind in ("app-begin", "app-end"):
                self.assertEqual({event.request: event.arg0 for event in events if event.kind == kind}, number)
            self.assertEqual(len(events), 80)
            mounts = driver.events("vthread-mount")
            self.assertEqual(bool(mounts), not more)
            if mounts:
                self.check_mounted(events, driver.events("vthread-mount", "vthread-unmount"))

    def check_mounted(self, events, mounts):
        for event in events:
            before = [mount for mount in mounts if mount.tid == event.tid and mount.position < event.position]
            self.assertEqual((before[-1].kind, before[-1].arg0), ("vthread-mount", event.arg0))

    @on_each_jdk
    def test_what_is_no_request_is_nothing(self, jdk):
        good = 0x1122334455667788
        lines, events, _ = run(self, jdk, "garbage")
        self.assertEqual([int(line.split()[1]) for line in lines if line.startswith("garbage")], [0] * 20)
        # A traceparent of a later version may go on after its flags.
        self.assertEqual([int(line.split()[1]) for line in lines if line.startswith("sound")], [good] * 3)
        self.assertEqual([(event.kind, event.request) for event in events], [("app-begin", good)] * 3)

    @on_each_jdk
    def test_crossed_calls_are_passed_on_as_they_come(self, jdk):
        _, events, _ = run(self, jdk, "crossed")
        self.assertEqual([(event.kind[4:], event.request) for event in events],
                         [("begin", 1), ("begin", 2), ("end", 1), ("end", 3), ("end", 2), ("end", 2), ("begin", 2**64 - 1), ("end", 2**64 - 1)])
        self.assertEqual(len({event.tid for event in events}), 1)

    @on_each_jdk
    def test_native_code_says_the_same(self, jdk):
        lines, events, _ = run(self, jdk, "native")
        said = [("app-begin", 5, 0), ("app-end", 5, 0)]
        for number in (int(line.split()[1]) for line in lines if line.startswith("virtual ")):
            said += [("app-begin", 6, number), ("app-end", 6, number)]
        self.assertEqual([(event.kind, event.request, event.arg0) for event in events], said)
        self.assertEqual(len(said), 2 if jdk.version < 21 else 4)

    @on_each_jdk
    def test_without_an_agent_the_same_calls_do_nothing(self, jdk):
        for mode in ("threads", "garbage", "crossed", "native", "virtual")[:4 if jdk.version < 21 else 5]:
            application(jdk, mode).finish(self)

    @on_each_jdk
    def test_an_agent_that_comes_later_hears_it(self, jdk):
        path = new_socket()
        driver = Driver(path)
        try:
            program = application(jdk, "later", "-XX:+EnableDynamicAgentLoading")
            program.attach(self, "socket=" + path)
            driver.wait_for("attached")
            driver.wait_for("event")
            while not driver.events("app-end"):
                driver.wait_for("page", count=len(driver.of("page")) + 1)
            program.finish(self)
            driver.wait_for("detached")
        finally:
            driver.end()
        begun = [event.request for event in driver.events("app-begin")]
        self.assertEqual(begun, list(range(begun[0], begun[0] + len(begun))))

    @on_each_jdk
    def test_what_a_call_costs_is_printed(self, jdk):
        for options in ([agent_path("socket=" + new_socket())], []):
            lines = application(jdk, "time", *options).finish(self)
            best = min(int(line.split()[1]) for line in lines if line.startswith("nanoseconds"))
            print("a call on JDK %d, %s agent: %d ns" % (jdk.version, "with" if options else "no", best))
            self.assertLess(best, 5000 if options else 500)


if __name__ == "__main__":
    run_tests()
