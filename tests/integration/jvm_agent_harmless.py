# SPDX-License-Identifier: Apache-2.0
"""Whatever happens around the agent, the JVM starts, does its work, and ends as if the agent were not there."""

import array
import os
import resource
import socket
import subprocess
import threading
import time
import unittest

from jvm_agent_harness import JDKS, Driver, Java, agent_path, command, new_socket, run_tests


class Listener:
    """A peer at the proxy's place that is no proxy: calls `handle` with each connection, if at all."""

    def __init__(self, path, handle=None, kind=socket.SOCK_SEQPACKET, backlog=1):
        self.socket = socket.socket(socket.AF_UNIX, kind)
        self.socket.bind(path)
        self.socket.listen(backlog)
        self.handle = handle
        self.connections = []
        self.thread = threading.Thread(target=self.serve, daemon=True)
        if handle:
            self.thread.start()

    def serve(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.connections.append(connection)
            try:
                self.handle(connection)
            except OSError:
                pass

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        for connection in self.connections:
            connection.close()


class AgentIsHarmless(unittest.TestCase):
    def test_without_a_proxy_the_jvm_runs_and_nothing_is_said(self):
        for jdk in JDKS:
            self.assertEqual(Java(jdk, 500, agent_path("socket=" + new_socket())).finish(self), [])

    def test_wrong_options_are_said_in_one_line(self):
        path = new_socket()
        for options in ("", "socket=", "slots=64", "socket=%s,slots=100" % path, "socket=%s,slots=" % path, "socket=%s,slots=-64" % path,
                        "socket=%s,slots=32" % path, "socket=%s,slots=64x" % path, "socket=%s,slots=99999999999999999999" % path,
                        "socket=%s,colour=red" % path, "socket=%s,vthreads=" % path, "socket=%s,vthreads=onn" % path, "socket=%s,collect=yes" % path, "socket=/%s" % ("x" * 108), "nonsense"):
            lines = Java(JDKS[-1], 50, agent_path(options)).finish(self)
            self.assertEqual(len(lines), 1, (options, lines))
            self.assertRegex(lines[0], r"^tailor-agent: .*; the JVM runs on without it$")
        self.assertEqual(Java(JDKS[0], 50, "-agentpath:" + os.environ["TAILOR_AGENT"]).finish(self),
                         ["tailor-agent: option socket=PATH of the proxy is missing; the JVM runs on without it"])

    def test_smallest_and_longest_allowed_options_work(self):
        path = new_socket()
        path += "x" * (107 - len(path))
        driver = Driver(path)
        java = Java(JDKS[0], 300, agent_path("slots=64,socket=" + path))
        self.assertEqual(driver.wait_for("attached")[1:], [str(java.pid), str(java.pid), "64"])
        self.assertEqual(java.finish(self), [])
        driver.wait_for("detached")
        driver.end()

    def test_without_memory_or_descriptors_the_jvm_runs(self):
        def no_memory():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

        # The agent's shared memory is a file to this limit, and too big for it.
        run = subprocess.run(command(JDKS[0], 50, agent_path("socket=%s,slots=65536" % new_socket())), capture_output=True, text=True,
                             preexec_fn=no_memory, timeout=60)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("done", run.stdout.splitlines())
        self.assertEqual(run.stderr, "tailor-agent: reserving shared memory: File too large; the JVM runs on without it\n")

        def few_descriptors():
            resource.setrlimit(resource.RLIMIT_NOFILE, (18, 18))

        run = subprocess.run(command(JDKS[0], 50, agent_path("socket=" + new_socket())), capture_output=True, text=True,
                             preexec_fn=few_descriptors, timeout=60)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("done", run.stdout.splitlines())
        self.assertIn("tailor-agent: eventfd: Too many open files; the JVM runs on without it", run.stderr)

    def test_a_second_load_changes_nothing(self):
        path = new_socket()
        driver = Driver(path)
        java = Java(JDKS[0], 400, agent_path("socket=" + path), agent_path("socket=" + path))
        self.assertEqual(java.finish(self), [])
        driver.wait_for("detached")
        driver.end()
        self.assertEqual(len(driver.of("attached")), 1)
        counts = [event.arg0 for event in driver.events("gc-start")]
        self.assertGreater(len(counts), 2)
        self.assertEqual(counts, list(range(1, len(counts) + 1)))

        lines = Java(JDKS[0], 50, agent_path("socket=" + path), agent_path("socket=/elsewhere")).finish(self)
        self.assertEqual(lines, ["tailor-agent: already loaded with socket=%s, which stays" % path])

    def test_attaching_to_a_running_jvm_works_and_twice_is_once(self):
        for jdk in JDKS:
            path = new_socket()
            driver = Driver(path)
            java = Java(jdk, 4000, "-XX:+EnableDynamicAgentLoading")
            time.sleep(0.5)
            for _ in range(2):
                load = subprocess.run([os.path.join(jdk.home, "bin", "jcmd"), str(java.pid), "JVMTI.agent_load", os.environ["TAILOR_AGENT"],
                                       '"socket=%s"' % path], capture_output=True, text=True, timeout=60)
                self.assertIn("return code: 0", load.stdout)
            self.assertEqual(java.finish(self, attached=True), [])
            driver.wait_for("detached")
            driver.end()
            self.assertEqual(len(driver.of("attached")), 1)
            finished = driver.events("gc-finish")
            self.assertGreater(len(finished), 5)
            self.assertRegex(finished[0].text, r"^Serial (young|full|young \+ Serial full)\t(Allocation Failure|System\.gc\(\))$")
            self.assertEqual([event.arg0 for event in finished], list(range(1, len(finished) + 1)))

    def test_killed_proxies_are_followed_by_new_ones(self):
        path = new_socket()
        java = Java(JDKS[-1], 5000, agent_path("socket=" + path))
        descriptors, last = [], 0
        for round_number in range(4):
            driver = Driver(path)
            driver.wait_for("attached")
            descriptors.append(java.descriptors())
            driver.wait_for("wake", count=6)
            driver.end(kill=round_number % 2 == 0)
            counts = [event.arg0 for event in driver.events("gc-start")]
            self.assertGreater(counts[-1], last)
            last = counts[-1]
        self.assertEqual(java.finish(self), [])
        self.assertLessEqual(max(descriptors[1:]), descriptors[0] + 2, descriptors)

    def test_a_killed_jvm_is_reported_at_once(self):
        path = new_socket()
        driver = Driver(path)
        java = Java(JDKS[0], 60000, agent_path("socket=" + path))
        driver.wait_for("wake", count=3)
        java.process.kill()
        killed = time.monotonic()
        java.process.communicate()
        self.assertEqual(driver.wait_for("detached", timeout=5)[1], str(java.pid))
        self.assertLess(time.monotonic() - killed, 2)
        driver.end()

    def test_a_proxy_that_never_accepts_or_never_reads_blocks_nothing(self):
        for handle in (None, lambda connection: None):
            path = new_socket()
            listener = Listener(path, handle)
            java = Java(JDKS[0], 1500, agent_path("socket=" + path))
            time.sleep(1)
            self.assertLess(java.agent_cpu_seconds(), 0.2)
            self.assertEqual(java.finish(self), [])
            listener.close()

    def test_garbage_from_the_proxy_is_no_work_and_leaks_nothing(self):
        def garbage(connection):
            fd = os.open("/dev/null", os.O_RDONLY)
            for _ in range(20):
                connection.sendmsg([b"x" * 3000], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd] * 10))])
            os.close(fd)

        path = new_socket()
        listener = Listener(path, garbage, backlog=64)
        java = Java(JDKS[0], 2500, agent_path("socket=" + path))
        time.sleep(0.8)
        early = java.descriptors()
        time.sleep(1)
        late = java.descriptors()
        self.assertLessEqual(late, early + 1)
        self.assertLess(java.agent_cpu_seconds(), 0.3)
        self.assertGreater(len(listener.connections), 3)
        self.assertLess(len(listener.connections), 40)
        self.assertEqual(java.finish(self), [])
        listener.close()

    def test_a_socket_of_another_kind_is_said_once(self):
        path = new_socket()
        listener = Listener(path, kind=socket.SOCK_STREAM)
        lines = Java(JDKS[0], 600, agent_path("socket=" + path)).finish(self)
        self.assertEqual(len(lines), 1)
        self.assertIn("cannot reach the proxy at %s" % path, lines[0])
        listener.close()

    def test_a_full_stderr_does_not_stop_the_jvm(self):
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        try:
            while True:
                os.write(writer, b"x" * 4096)
        except BlockingIOError:
            os.set_blocking(writer, True)
        run = subprocess.run(command(JDKS[0], 50, agent_path("nonsense")), stdout=subprocess.PIPE, stderr=writer, text=True, timeout=60)
        self.assertEqual(run.returncode, 0)
        self.assertIn("done", run.stdout.splitlines())
        os.close(reader)
        os.close(writer)


if __name__ == "__main__":
    run_tests()
