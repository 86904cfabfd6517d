# SPDX-License-Identifier: Apache-2.0
"""What the agent's tests share: the JDKs here, a compiled Java program, and the watching driver as an object."""

import atexit
import collections
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

AGENT = os.environ["TAILOR_AGENT"]
DRIVER = os.environ["TAILOR_JVM_DRIVER"]
SOURCES = os.path.join(os.environ["TAILOR_SOURCE"], "tests", "integration", "java")

Jdk = collections.namedtuple("Jdk", "version home classes")
Event = collections.namedtuple("Event", "position kind time_ns cpu pid tid arg0 arg1 arg2 request text")
Wake = collections.namedtuple("Wake", "time_ns state since_ns")
Cause = collections.namedtuple("Cause", "state since_ns text")
Heap = collections.namedtuple("Heap", "time_ns young_used young_size old_used old_size young old now_ns")
Page = collections.namedtuple("Page", "state since_ns pauses total_ns last_ns max_ns heartbeat_ns now_ns")

scratch = tempfile.mkdtemp(prefix="tailor-jvm-")
started = []


def end_started():
    """What a failed test left running."""
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()


atexit.register(shutil.rmtree, scratch, ignore_errors=True)
atexit.register(end_started)


def find_jdks():
    """One JDK of each major version, with the Java program compiled by its own javac."""
    found = {}
    for home in [os.environ.get("JAVA_HOME", "")] + sorted(glob.glob("/usr/lib/jvm/*")):
        release = os.path.join(home, "release")
        if not home or not os.path.exists(release) or not os.path.exists(os.path.join(home, "bin", "javac")):
            continue
        with open(release) as lines:
            version = int(re.search(r'^JAVA_VERSION="(\d+)', lines.read(), re.MULTILINE)[1])
        if version >= 17:
            found.setdefault(version, os.path.realpath(home))
    jdks = []
    for version, home in sorted(found.items()):
        classes = os.path.join(scratch, "classes-%d" % version)
        subprocess.run([os.path.join(home, "bin", "javac"), "-d", classes, os.path.join(SOURCES, "Allocate.java")], check=True)
        jdks.append(Jdk(version, home, classes))
    return jdks


def new_socket():
    new_socket.count = getattr(new_socket, "count", 0) + 1
    return os.path.join(scratch, "s%d" % new_socket.count)


def agent_path(options):
    return "-agentpath:%s=%s" % (AGENT, options)


def has_collector(jdk, collector):
    return subprocess.run([os.path.join(jdk.home, "bin", "java"), "-XX:+UnlockExperimentalVMOptions", "-XX:+Use%sGC" % collector, "-version"],
                          capture_output=True).returncode == 0


def jvms_of(collectors):
    """Each JDK with each of the collectors that it has."""
    return [(jdk, collector) for jdk in JDKS for collector in collectors if has_collector(jdk, collector)]


def command(jdk, milliseconds, *options):
    return [os.path.join(jdk.home, "bin", "java"), "-XX:+UnlockExperimentalVMOptions", "-Xmx32m", *options, "-cp", jdk.classes,
            "Allocate", str(milliseconds)]


class Java:
    """A running Java program."""

    def __init__(self, jdk, milliseconds, *options, collector="Serial"):
        self.process = subprocess.Popen(command(jdk, milliseconds, "-XX:+Use%sGC" % collector, *options), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        started.append(self.process)

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.pid))

    def agent_cpu_seconds(self):
        """CPU time of the agent's own thread."""
        for task in glob.glob("/proc/%d/task/*" % self.pid):
            with open(task + "/stat") as stat:
                name, fields = re.search(r"\((.*)\) (.*)", stat.read()).groups()
            if name == "tailor-agent":
                return sum(map(int, fields.split()[11:13])) / os.sysconf("SC_CLK_TCK")
        raise AssertionError("the agent has no thread of its own")

    def finish(self, test, timeout=60, attached=False):
        """Waits for the end, checks that nothing was harmed, and returns stderr's lines."""
        try:
            out, err = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise AssertionError("the JVM did not end")
        # JDK 24 and later warn of what their own libraries do.
        lines = [line for line in err.splitlines() if line and not line.startswith(("WARNING:", "OpenJDK 64-Bit Server VM warning"))]
        test.assertEqual(self.process.returncode, 0, err)
        output = out.splitlines()
        test.assertIn("done", output)
        test.assertIn("inherited no", output)
        before, after = [line.split()[1:] for line in output if line.startswith("descriptors ")][0]
        # The agent's one connection may have come or gone meanwhile, and the JVM looks into files of its cgroup now and then, two at a
        # time; if the agent was attached, so did its memory, 16 wakers and the JVM's own socket for attaching.
        test.assertLessEqual(int(after), int(before) + (21 if attached else 3), "descriptors grew")
        return lines


def compiled(jdk, name, *sources):
    """The directory of a program of SOURCES and others, compiled by the JDK's own javac."""
    classes = os.path.join(scratch, "%s-%d" % (name, jdk.version))
    if not os.path.isdir(classes):
        subprocess.run([os.path.join(jdk.home, "bin", "javac"), "-d", classes, os.path.join(SOURCES, name + ".java"), *sources], check=True)
    return classes


class Program:
    """A running Java program that prints what it did, and "done" at last; it says "waiting" and waits for a line before it begins."""

    def __init__(self, jdk, classes, name, argument, *options, within=(), user=None):
        """`within` is a command that runs another one."""
        self.jdk = jdk
        self.process = subprocess.Popen([*within, os.path.join(jdk.home, "bin", "java"), "-Xmx64m", *options, "-cp", classes, name, argument],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        user=user, group=user, extra_groups=None if user is None else [])
        started.append(self.process)
        self.pid = self.process.pid
        if self.process.stdout.readline() != "waiting\n":
            raise AssertionError("%s does not wait" % name)

    def attach(self, test, options):
        load = subprocess.run([os.path.join(self.jdk.home, "bin", "jcmd"), str(self.pid), "JVMTI.agent_load", AGENT, '"%s"' % options],
                              capture_output=True, text=True, timeout=60)
        test.assertIn("return code: 0", load.stdout)

    def tell(self, line):
        """Gives it a line, and returns what it has printed when it has done that (java/Live.java)."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return list(iter(self.process.stdout.readline, "ok\n"))

    def finish(self, test, line="", said=""):
        """Gives it a line of input, waits for its end, and returns what it has printed. A line on stderr with `said` is expected."""
        out, err = self.process.communicate(line + "\n", timeout=60)
        lines = [line for line in err.splitlines() if line and not line.startswith(("WARNING:", "OpenJDK 64-Bit Server VM warning"))]
        lines = [line for line in lines if not said or said not in line]
        test.assertEqual((self.process.returncode, lines), (0, []), err)
        test.assertEqual(out.splitlines()[-1], "done")
        return out.splitlines()


def live(jdk, collector, mebibytes, agent_options, *options):
    """java/Live.java with that much alive, and who watches it."""
    path = new_socket()
    driver = Driver(path)
    program = Program(jdk, compiled(jdk, "Live"), "Live", str(mebibytes), "-XX:+UnlockExperimentalVMOptions", "-XX:+Use%sGC" % collector, *options,
                      agent_path("socket=%s%s" % (path, agent_options)))
    driver.wait_for("attached")
    return driver, program


class Driver:
    """The driver program; its lines are parsed as they come."""

    def __init__(self, path):
        self.path = path
        self.lines = []
        self.changed = threading.Condition()
        self.process = subprocess.Popen([DRIVER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(self.process)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.wait_for("listening")

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(line.rstrip("\n").split("|"))
                self.changed.notify_all()

    def wait_for(self, what, count=1, timeout=20):
        """The count-th line of a kind, as soon as it is there."""
        until = time.monotonic() + timeout
        with self.changed:
            while True:
                found = [line for line in self.lines if line[0] == what]
                if len(found) >= count:
                    return found[count - 1]
                if not self.changed.wait(until - time.monotonic()):
                    raise AssertionError("no line %s: %s" % (what, self.lines[-5:]))

    def end(self, kill=False):
        if kill:
            self.process.kill()
        else:
            self.process.stdin.close()
        code = self.process.wait(20)
        self.reader.join()
        self.process.stdout.close()
        if kill:
            self.process.stdin.close()
        elif code != 0:
            raise AssertionError("the driver failed with %d" % code)

    def say(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def wish(self, what, milliseconds):
        """Wishes for a collection, and returns how many ns later that was granted."""
        count = len(self.of("wished")) + 1
        self.say("wish %d %d" % (what, milliseconds))
        wished, granted = self.wait_for("wished", count), self.wait_for("granted", count)
        if wished[1] != granted[1]:
            raise AssertionError("another wish was granted: %s %s" % (wished, granted))
        return int(granted[2]) - int(wished[2])

    def causes(self):
        return [Cause(int(state), int(since), "|".join(text)) for state, since, *text in self.of("cause")]

    def heaps(self):
        return [Heap(*map(int, fields)) for fields in self.of("heap")]

    def of(self, what):
        with self.changed:
            return [line[1:] for line in self.lines if line[0] == what]

    def events(self, *kinds):
        return [Event(int(f[0]), f[1], *map(int, f[2:10]), "|".join(f[10:])) for f in self.of("event") if not kinds or f[1] in kinds]

    def wakes(self):
        return [Wake(*map(int, fields)) for fields in self.of("wake")]

    def pages(self):
        return [Page(*map(int, fields)) for fields in self.of("page")]


def run_tests():
    """Runs the calling program's tests; 77 where there is no JDK."""
    if not JDKS:
        print("skipped: no JDK 17 or later in JAVA_HOME or /usr/lib/jvm")
        sys.exit(77)
    unittest.main(module="__main__", verbosity=2)


JDKS = find_jdks()
