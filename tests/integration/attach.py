# SPDX-License-Identifier: Apache-2.0
"""`tailor attach`: the agent comes into JVMs that run, each refusal says why, and nothing else happens to them."""

import glob
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

from jvm_agent_harness import AGENT, JDKS, Driver, Program, agent_path, compiled, new_socket, run_tests, scratch, started

TAILOR = os.environ["TAILOR"]
NOBODY = 65534
OTHER_LIBRARY = next(line.split()[-1] for line in open("/proc/self/maps") if "/libc.so" in line or "/libc-" in line)

# A process with libjvm.so in it that takes SIGQUIT and goes its own way; ARG1 "listens": to a socket of its own, and never answers.
HANGING = """
import mmap, os, signal, socket, sys, time
signal.signal(signal.SIGQUIT, lambda *_: None)
library = open(sys.argv[1], "rb")
mapped = mmap.mmap(library.fileno(), 4096, access=mmap.ACCESS_READ)
if sys.argv[2] == "listens":
    listener, path = socket.socket(socket.AF_UNIX), "/tmp/.java_pid%d" % os.getpid()
    if os.path.exists(path):  # of a JVM that was killed
        os.unlink(path)
    listener.bind(path)
    listener.listen()
print("ready", flush=True)
while True:
    time.sleep(1)
"""


def attach(*arguments, **how):
    return subprocess.run([TAILOR, "attach", *map(str, arguments)], capture_output=True, text=True, timeout=60, **how)


def has_agent(pid):
    def comm(path):
        try:
            with open(path) as name:
                return name.read().strip()
        except OSError:
            return ""

    return "tailor-agent" in [comm(path) for path in glob.glob("/proc/%d/task/*/comm" % pid)]


def open_to_all(name, *sources):
    """A directory that everybody can read, with copies of these."""
    path = os.path.join(scratch, name)
    os.makedirs(path)
    for source in sources:
        if os.path.isdir(source):
            shutil.copytree(source, path, dirs_exist_ok=True)
        else:
            shutil.copy(source, path)
    for parent, directories, files in os.walk(path):
        for entry in [parent] + [os.path.join(parent, file) for file in files]:
            os.chmod(entry, 0o755)
    return path


class Attach(unittest.TestCase):
    def setUp(self):
        self.programs = []

    def tearDown(self):
        for program in self.programs:
            if program.process.poll() is None:
                program.process.send_signal(signal.SIGCONT)
                program.process.kill()
                program.process.communicate()
            left = glob.glob("/tmp/.attach_pid%d" % program.pid)
            self.assertEqual(left, [])

    def start(self, jdk, *options):
        program = Program(jdk, compiled(jdk, "Live"), "Live", "1", *options)
        self.programs.append(program)
        return program

    def refused(self, result, *words):
        self.assertEqual((result.returncode, result.stdout), (1, ""), result.stderr)
        self.assertRegex(result.stderr, r"^tailor attach: [^\n]+\n$")
        for word in words:
            self.assertIn(word, result.stderr)

    def unharmed(self, program):
        """It goes on, has printed no thread dump, and has no agent."""
        self.assertFalse(has_agent(program.pid))
        self.assertEqual(program.tell("gc"), [])
        self.assertEqual(program.finish(self), ["done"])

    def test_the_agent_comes_in_and_a_second_time_changes_nothing(self):
        for jdk in JDKS:
            with self.subTest(jdk=jdk.version):
                path = new_socket()
                driver = Driver(path)
                try:
                    program = self.start(jdk)
                    result = attach(program.pid, "--socket", path)
                    self.assertEqual((result.returncode, result.stderr), (0, ""))
                    self.assertIn("has the agent now; it connects to %s\n" % path, result.stdout)
                    self.assertEqual(driver.wait_for("attached")[1], str(program.pid))
                    other = path + ".other"
                    os.symlink(path, other)
                    for same in ([], ["--socket", path], ["--socket", other]):
                        result = attach(program.pid, *same)
                        self.assertEqual((result.returncode, result.stderr), (0, ""))
                        self.assertIn("has the agent already; nothing was changed: it keeps its socket %s and" % path, result.stdout)
                    for _ in range(2):
                        result = attach(program.pid, "--socket", "/elsewhere")
                        self.refused(result, "has the agent already, which connects to %s, not to /elsewhere" % path, "nothing was changed")
                    program.tell("gc")
                    self.assertIn("System.gc()", driver.wait_for("event", timeout=5) and [event.text for event in self.finishes(driver)][0])
                    program.finish(self)
                    driver.wait_for("detached")
                    self.assertEqual(len(driver.of("attached")), 1)
                finally:
                    driver.end()

    def finishes(self, driver):
        until = time.monotonic() + 10
        while not driver.events("gc-finish") and time.monotonic() < until:
            time.sleep(0.01)
        return driver.events("gc-finish")

    def test_who_was_started_with_the_agent_is_left_as_it_is(self):
        for jdk in JDKS:
            program = self.start(jdk, agent_path("socket=" + new_socket()))
            self.refused(attach(program.pid, "--socket", "/elsewhere"), "not to /elsewhere")
            result = attach(program.pid)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn("has the agent already", result.stdout)
            self.assertFalse(os.path.exists("/tmp/.java_pid%d" % program.pid))
            self.assertEqual(program.finish(self), ["done"])

    def test_what_is_no_jvm_is_named(self):
        child = subprocess.Popen([sys.executable, "-c", "import threading, time; threading.Thread(target=time.sleep, args=(30,)).start(); print(1, flush=True)"],
                                 stdout=subprocess.PIPE)
        started.append(child)
        child.stdout.readline()
        self.refused(attach(child.pid), "not a JVM")
        thread = max(map(int, os.listdir("/proc/%d/task" % child.pid)))
        self.refused(attach(thread), "thread")
        child.kill()
        child.wait()
        child.stdout.close()
        self.refused(attach(child.pid), "there is no process %d" % child.pid)

    def test_wrong_usage_is_said(self):
        for arguments in ((), ("x",), ("0",), ("-1",), ("1", "2"), ("99999999999",), ("1", "--timeout", "1"), ("1", "--socket", "/" + "x" * 110),
                          ("1", "--socket", "/a,b"), ("1", "--agent", "")):
            result = attach(*arguments)
            self.assertEqual(result.returncode, 2, (arguments, result))
            self.assertNotEqual(result.stderr, "")

    def test_a_jvm_that_forbids_it_is_left_alone(self):
        for jdk in JDKS:
            for option in ("-XX:-EnableDynamicAgentLoading", "-XX:+DisableAttachMechanism"):
                program = self.start(jdk, option)
                self.refused(attach(program.pid), option, "-agentpath")
                self.unharmed(program)

    def test_a_jvm_without_signals_is_attached_to_by_its_socket_and_never_ended(self):
        for jdk in JDKS:
            program = self.start(jdk, "-Xrs")
            self.assertTrue(os.path.exists("/tmp/.java_pid%d" % program.pid))
            self.assertEqual(attach(program.pid, "--socket", new_socket()).returncode, 0)
            self.assertTrue(has_agent(program.pid))
            program.finish(self)
            program = self.start(jdk, "-Xrs")
            os.unlink("/tmp/.java_pid%d" % program.pid)
            self.refused(attach(program.pid), "SIGQUIT", "-Xrs")
            self.unharmed(program)

    def test_a_stopped_jvm_is_said_at_once(self):
        program = self.start(JDKS[0])
        os.kill(program.pid, signal.SIGSTOP)
        time.sleep(0.2)
        began = time.monotonic()
        self.refused(attach(program.pid), "is stopped", "kill -CONT")
        self.assertLess(time.monotonic() - began, 5)
        os.kill(program.pid, signal.SIGCONT)
        self.unharmed(program)

    def test_one_that_hangs_costs_no_more_than_the_time_given(self):
        library = glob.glob(os.path.join(JDKS[0].home, "lib", "server", "libjvm.so"))[0]
        for how, words in (("silent", ("did not begin to listen", "DisableAttachMechanism")), ("listens", ("did not answer",))):
            child = subprocess.Popen([sys.executable, "-c", HANGING, library, how], stdout=subprocess.PIPE)
            started.append(child)
            try:
                self.assertEqual(child.stdout.readline(), b"ready\n")
                began = time.monotonic()
                self.refused(attach(child.pid, "--timeout", "500ms"), *words)
                self.assertTrue(0.4 < time.monotonic() - began < 8)
                self.assertFalse(os.path.exists("/tmp/.attach_pid%d" % child.pid))
            finally:
                child.kill()
                child.wait()
                child.stdout.close()
                if how == "listens":
                    os.unlink("/tmp/.java_pid%d" % child.pid)

    def test_somebody_else_s_socket_is_not_trusted(self):
        program = self.start(JDKS[0])
        path = "/tmp/.java_pid%d" % program.pid
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen()
        try:
            self.refused(attach(program.pid), "belongs to process %d" % os.getpid())
            self.unharmed(program)
        finally:
            listener.close()
            if os.path.exists(path):
                os.unlink(path)

    def test_a_dead_socket_of_an_earlier_process_is_no_hindrance(self):
        program = self.start(JDKS[0])
        dead = socket.socket(socket.AF_UNIX)
        dead.bind("/tmp/.java_pid%d" % program.pid)
        dead.close()
        self.assertEqual(attach(program.pid, "--socket", new_socket()).returncode, 0)
        program.finish(self)

    def test_what_the_agent_or_the_jvm_refuses_is_said_and_can_be_mended(self):
        for jdk in JDKS:
            program = self.start(jdk)
            self.refused(attach(program.pid, "--options", "colour=red"), "could not start", "stderr")
            self.assertFalse(has_agent(program.pid))
            text = os.path.join(scratch, "no-library-%d" % jdk.version)
            with open(text, "w") as file:
                file.write("text")
            self.refused(attach(program.pid, "--agent", text), "no shared library")
            self.refused(attach(program.pid, "--agent", scratch), "no shared library")
            self.refused(attach(program.pid, "--agent", OTHER_LIBRARY), "says:", "Agent_OnAttach")
            self.refused(attach(program.pid, "--agent", text + "x"), "does not see")
            self.assertEqual(attach(program.pid, "--socket", new_socket(), "--options", "collect=young,vthreads=off").returncode, 0)
            self.assertTrue(has_agent(program.pid))
            program.finish(self, said="colour=red")

    def test_as_another_user_it_is_refused_and_root_becomes_the_jvm_s(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to become others")
        os.chmod(scratch, 0o755)
        for jdk in JDKS:
            place = open_to_all("user-%d" % jdk.version, AGENT, TAILOR, compiled(jdk, "Live"))
            agent = os.path.join(place, os.path.basename(AGENT))
            own = self.start(jdk)
            nobody = dict(user=NOBODY, group=NOBODY, extra_groups=[])
            result = subprocess.run([os.path.join(place, "tailor"), "attach", str(own.pid), "--agent", agent], capture_output=True, text=True, timeout=60, **nobody)
            self.refused(result, "belongs to user root", "as root")
            self.unharmed(own)

            theirs = Program(jdk, place, "Live", "1", user=NOBODY)
            self.programs.append(theirs)
            hidden = os.path.join(scratch, "hidden-%d" % jdk.version)
            os.makedirs(hidden, mode=0o700)
            shutil.copy(AGENT, hidden)
            self.refused(attach(theirs.pid, "--agent", os.path.join(hidden, os.path.basename(AGENT))), "cannot read", "copy it")
            result = attach(theirs.pid, "--agent", agent, "--socket", new_socket())
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn("as soon as the proxy is there", result.stdout)
            self.assertTrue(has_agent(theirs.pid))
            theirs.finish(self)

            theirs = Program(jdk, place, "Live", "1", user=NOBODY)
            self.programs.append(theirs)
            result = subprocess.run([os.path.join(place, "tailor"), "attach", str(theirs.pid), "--agent", agent, "--socket", "/nowhere"], capture_output=True,
                                    text=True, timeout=60, **nobody)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            theirs.finish(self)

    def test_a_jvm_in_a_container_has_its_own_pid_and_files(self):
        self.attach_in_container([])

    def test_root_in_a_container_may_be_somebody_else_outside(self):
        self.attach_in_container(["setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups"], "--user", "--map-root-user")

    def attach_in_container(self, begin, *namespaces):
        unshare = [*begin, "unshare", *namespaces, "--mount", "--pid", "--fork", "--kill-child"]
        if os.geteuid() != 0 or subprocess.run([*unshare, "true"], capture_output=True).returncode != 0:
            self.skipTest("needs root and namespaces")
        os.chmod(scratch, 0o755)
        for jdk in JDKS:
            hidden = open_to_all("container-%d-%d" % (jdk.version, len(namespaces)), AGENT, compiled(jdk, "Live"))
            outside = os.path.join(hidden, os.path.basename(AGENT))
            inside = "/mnt/agent/" + os.path.basename(AGENT)
            # Its /tmp is empty but for itself: what is in ours, it does not see.
            script = ("mount -t tmpfs none /mnt && mkdir /mnt/agent && cp -r %s/. /mnt/agent && mount -t tmpfs none /tmp && mount -t proc none /proc && cd / && "
                      'exec "$@"' % hidden)
            program = Program(jdk, "/mnt/agent", "Live", "1", within=[*unshare, "sh", "-c", script, "sh"])
            self.programs.append(program)
            with open("/proc/%d/task/%d/children" % (program.pid, program.pid)) as children:
                pid = int(children.read())
            with open("/proc/%d/status" % pid) as status:
                self.assertRegex(status.read(), r"NSpid:\t%d\t1\n" % pid)
            self.refused(attach(pid, "--agent", outside), "does not see %s" % outside, "container")
            result = attach(pid, "--agent", inside, "--socket", "/run/nowhere.sock")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertTrue(has_agent(pid))
            self.assertTrue(os.path.exists("/proc/%d/root/tmp/.java_pid1" % pid))
            self.assertFalse(os.path.exists("/proc/%d/root/tmp/.attach_pid1" % pid))
            self.assertIn("has the agent already", attach(pid, "--agent", inside).stdout)
            self.assertIn("has the agent already", attach(pid, "--agent", inside, "--socket", "/run/nowhere.sock").stdout)
            self.refused(attach(pid, "--agent", inside, "--socket", "/run/elsewhere.sock"), "connects to /run/nowhere.sock, not to /run/elsewhere.sock")
            program.finish(self)


if __name__ == "__main__":
    run_tests()
