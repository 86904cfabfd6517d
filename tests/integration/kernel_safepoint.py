# SPDX-License-Identifier: Apache-2.0
"""A JVM's safepoints as the kernel's probes see them are what the JVM itself says in its log, and its code is as it was afterwards."""

import collections
import os
import re
import signal
import subprocess
import sys
import time
import unittest

import jvm_agent_harness
from jvm_agent_harness import JDKS, Driver, Java, agent_path, command, new_socket, run_tests, scratch

KERNEL_DRIVER = os.environ["TAILOR_KERNEL_DRIVER"]
NO_SAFEPOINTS = 1 << 7  # TAILOR_MISSING_SAFEPOINTS
KEPT = "2,19"  # what `tailor proxy` keeps: CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE
SAFEPOINT = re.compile(r'\[(\d+)ns\] Safepoint "(\w+)"')
NOP, BREAKPOINT = 0x90, 0xcc

KernelEvent = collections.namedtuple("KernelEvent", "position kind time_ns cpu pid tid arg0 extra text")
Stop = collections.namedtuple("Stop", "begin_ns operation begun_ns ended_ns end_ns")


class Kernel(Driver):
    """The kernel's recording, opened as root and without root's rights from then on."""

    def __init__(self, capabilities=KEPT):
        self.path = None
        self.lines = []
        self.changed = jvm_agent_harness.threading.Condition()
        self.process = subprocess.Popen([KERNEL_DRIVER, capabilities], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        jvm_agent_harness.started.append(self.process)
        self.reader = jvm_agent_harness.threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.missing = int(self.wait_for("ready")[1])

    def say(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def wait_for_state(self, pid, missing, timeout=10):
        self.say("state %d" % pid)
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            states = self.of("state")
            if states and states[-1] == [str(pid), str(missing)]:
                return
            time.sleep(0.01)
        raise AssertionError("pid %d is not %d: %s" % (pid, missing, self.of("state")))

    def trace(self, pid):
        self.say("trace %d" % pid)
        self.wait_for_state(pid, 0)

    def listeners(self):
        """Links of programs to uprobes that the process holds."""
        count = 0
        for fd in os.listdir("/proc/%d/fdinfo" % self.process.pid):
            with open("/proc/%d/fdinfo/%s" % (self.process.pid, fd)) as info:
                count += bool(re.search(r"^link_type:\s*(uprobe_multi|perf)", info.read(), re.MULTILINE))
        return count

    def of_jvm(self, pid):
        """Its events in the order of their times."""
        events = [KernelEvent(int(f[0]), f[1], *map(int, f[2:8]), f[8]) for f in self.of("event")]
        return sorted((e for e in events if e.pid == pid and e.kind.startswith(("safepoint-", "vm-operation-"))), key=lambda e: e.time_ns)


class Code:
    """The JVM's probes in its memory."""

    def __init__(self, pid):
        self.pid = pid
        with open("/proc/%d/maps" % pid) as maps:
            path, start, offset = next((m[4], int(m[1], 16), int(m[3], 16)) for m in
                                       (re.match(r"(\w+)-\w+ (..x.) (\w+) .* (/.*/libjvm\.so)$", line) for line in maps) if m)
        notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
        # In both builds' code segments address and place in the file are the same.
        self.places = [start + int(place, 16) - offset for place in
                       re.findall(r"Name: (?:safepoint__|vmops__)(?:begin|end)\n\s+Location: 0x(\w+)", notes)]

    def bytes(self):
        with open("/proc/%d/mem" % self.pid, "rb") as memory:
            found = set()
            for place in self.places:
                memory.seek(place)
                found.add(memory.read(1)[0])
        return found

    def wait_for(self, byte, timeout=5):
        until = time.monotonic() + timeout
        while self.bytes() != {byte}:
            if time.monotonic() > until:
                raise AssertionError("the JVM's probes are %s" % self.bytes())
            time.sleep(0.02)


class Safepoints(unittest.TestCase):
    def open_kernel(self):
        kernel = Kernel()
        self.addCleanup(lambda: kernel.process.poll() is None and kernel.end())
        self.addCleanup(kernel.process.stdin.close)
        return kernel

    def stops_of(self, events):
        """Whole safepoints; what is within one stands in this order and says the same at begin and end."""
        stops, at = [], 0
        events = [e for e in events if not e.extra]
        while at < len(events) and events[at].kind != "safepoint-begin":
            at += 1
        while at + 3 < len(events):
            four = events[at:at + 4]
            self.assertEqual([e.kind for e in four], ["safepoint-begin", "vm-operation-begin", "vm-operation-end", "safepoint-end"])
            self.assertEqual(four[1].text, four[2].text)
            self.assertEqual(len({e.tid for e in four}), 1)
            stops.append(Stop(four[0].time_ns, four[1].text, four[1].time_ns, four[2].time_ns, four[3].time_ns))
            at += 4
        return stops

    def check_operations_beside_the_threads(self, events):
        for begin, end in zip(*[[e for e in events if e.extra and e.kind == "vm-operation-" + which] for which in ("begin", "end")]):
            self.assertEqual(begin.text, end.text)
            self.assertLess(begin.time_ns, end.time_ns)

    def test_stops_are_what_the_jvm_logs_and_collections_lie_in_their_operations(self):
        for jdk in JDKS:
            for collector in ("Serial", "G1"):
                with self.subTest(jdk=jdk.version, collector=collector):
                    self.check_run(jdk, collector)

    def check_run(self, jdk, collector):
        log = os.path.join(scratch, "safepoints-%d-%s.log" % (jdk.version, collector))
        hub, kernel = Driver(new_socket()), self.open_kernel()
        java = Java(jdk, 3000, agent_path("socket=" + hub.path), "-Xlog:safepoint:file=%s:tn" % log, collector=collector)
        hub.wait_for("attached")
        kernel.trace(java.pid)
        dump = subprocess.run([os.path.join(jdk.home, "bin", "jcmd"), str(java.pid), "Thread.print"], capture_output=True, text=True)
        self.assertEqual(dump.returncode, 0, dump.stderr)
        java.finish(self)
        hub.wait_for("detached")
        time.sleep(0.1)
        kernel.end()
        hub.end()
        self.assertEqual(kernel.of("lost"), [])
        events = kernel.of_jvm(java.pid)
        stops = self.stops_of(events)
        self.check_operations_beside_the_threads(events)
        with open(log) as lines:
            logged = [(int(m[1]), m[2]) for m in map(SAFEPOINT.match, lines) if m]
        # All that ended from the first whole one on; each is logged just after its end.
        self.assertGreater(len(stops), 100)
        self.assertEqual([stop.operation for stop in stops], [name for _, name in logged[-len(stops):]])
        for stop, (logged_ns, _) in zip(stops, logged[-len(stops):]):
            self.assertLess(stop.end_ns, logged_ns + 50_000_000)
        self.assertIn("PrintThreads", [stop.operation for stop in stops])
        self.check_pauses(hub.events("gc-start", "gc-finish"), stops)

    def check_pauses(self, pauses, stops):
        within = 0
        for start, finish in zip(pauses[::2], pauses[1::2]):
            if start.time_ns < stops[0].begin_ns or finish.time_ns > stops[-1].end_ns:
                continue
            around = [stop for stop in stops if stop.begun_ns <= start.time_ns and finish.time_ns <= stop.ended_ns]
            self.assertEqual(len(around), 1, (start, finish))
            within += 1
        self.assertGreater(within, 100)

    def test_only_a_traced_jvm_has_breakpoints_and_none_when_it_is_not_traced_any_more(self):
        kernel = self.open_kernel()
        traced, other = Java(JDKS[0], 2500), Java(JDKS[0], 2500)
        time.sleep(0.3)
        codes = Code(traced.pid), Code(other.pid)
        self.assertEqual(len(codes[0].places), 4)
        kernel.trace(traced.pid)
        self.assertEqual((codes[0].bytes(), codes[1].bytes()), ({BREAKPOINT}, {NOP}))
        self.assertEqual(kernel.listeners() > 0, True)
        kernel.say("untrace %d" % traced.pid)
        codes[0].wait_for(NOP)
        kernel.wait_for_state(traced.pid, NO_SAFEPOINTS)
        kernel.say("trace %d" % traced.pid)  # and once more
        codes[0].wait_for(BREAKPOINT)
        traced.finish(self)
        other.finish(self)
        self.assertEqual(kernel.of_jvm(other.pid), [])
        kernel.end()

    def test_a_proxy_that_is_killed_leaves_the_jvm_as_it_was(self):
        kernel = self.open_kernel()
        java = Java(JDKS[0], 2000)
        time.sleep(0.3)
        code = Code(java.pid)
        kernel.trace(java.pid)
        self.assertEqual(code.bytes(), {BREAKPOINT})
        kernel.end(kill=True)
        code.wait_for(NOP)
        java.finish(self)

    def test_a_jvm_that_is_killed_leaves_nothing_in_the_proxy(self):
        kernel = self.open_kernel()
        for _ in range(3):
            java = Java(JDKS[-1], 5000)
            time.sleep(0.3)
            kernel.trace(java.pid)
            time.sleep(0.1)
            os.kill(java.pid, signal.SIGKILL)
            java.process.communicate()
            kernel.say("untrace %d" % java.pid)
            kernel.wait_for_state(java.pid, NO_SAFEPOINTS)
        until = time.monotonic() + 5
        while kernel.listeners() and time.monotonic() < until:
            time.sleep(0.02)
        self.assertEqual(kernel.listeners(), 0)
        kernel.end()

    def test_a_jvm_in_a_container_is_found_by_its_own_root(self):
        place = os.path.join(scratch, "container-jdk")
        os.makedirs(place, exist_ok=True)
        arguments = command(JDKS[0], 2000)
        arguments[0] = os.path.join(place, "bin", "java")
        java = subprocess.Popen(["unshare", "--mount", "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"', JDKS[0].home, place, *arguments],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(java.stderr.close)
        self.addCleanup(java.wait)
        self.addCleanup(java.kill)
        kernel = self.open_kernel()
        time.sleep(0.7)
        if java.poll() is not None:
            self.skipTest("no mount namespaces here: " + java.stderr.read())
        self.assertEqual(os.listdir(place), [])  # here that name stands for something else
        kernel.trace(java.pid)
        java.wait(20)
        time.sleep(0.1)
        kernel.end()
        self.assertGreater(len(self.stops_of(kernel.of_jvm(java.pid))), 10)

    def test_a_process_without_the_probes_is_said_to_have_none(self):
        kernel = self.open_kernel()
        sleeper = subprocess.Popen(["sleep", "5"])
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        kernel.say("trace %d" % sleeper.pid)
        time.sleep(0.3)
        kernel.wait_for_state(sleeper.pid, NO_SAFEPOINTS)
        kernel.end()


def run_tests_with_uprobes():
    """Runs the calling program's tests; 77 where the kernel does not tell of safepoints."""
    ready = subprocess.run([KERNEL_DRIVER, "all"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if ready.returncode == 77:
        print("skipped: " + ready.stderr)
        sys.exit(77)
    found = re.match(r"ready\|(\d+)", ready.stdout)
    if found and int(found[1]) & NO_SAFEPOINTS:
        print("skipped: this kernel has no uprobes")
        sys.exit(77)
    run_tests()


if __name__ == "__main__":
    run_tests_with_uprobes()
