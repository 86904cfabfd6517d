# SPDX-License-Identifier: Apache-2.0
"""One victim behind one proxy, with traffic: what the plants act on."""
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import harness
from harness import Skip, check, need

from .disk import own_disk
from .freezes import become_real_time
from .traffic import Traffic, now_ns

JAVA = Path(__file__).parent / "java"
DISK_BYTES = 128 << 20
CLASSES = 40
# For the jar and what the file system needs.
JAR_ROOM = 32 << 20
# Before whatever else runs here: nobody but the plants is to take its CPU.
NICE = -19
HOG_PRIORITY = 10
WORKING = ("connection-", "holder", "worker", "tailor-worker", "copier")

COMMON = ["-Xms1300m", "-Xmx1300m", "-Xmn192m", "-XX:ActiveProcessorCount=2",
          # Or classes cause collections.
          "-XX:MetaspaceSize=512m"]
SESSIONS = {
    "serial": ["-XX:+UseSerialGC", *COMMON],
    "parallel": ["-XX:+UseParallelGC", *COMMON],
    "g1": ["-XX:+UseG1GC", *COMMON],
}


def run_quietly(*command):
    result = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    check(result.returncode == 0, f"{' '.join(map(str, command))} failed: {result.stdout}")


class Files:
    """What the victims need: their classes, a file on a disk, a jar of many classes. no_disk: why these two are on no disk of their own."""

    def __init__(self, directory, until):
        """until: an ExitStack; as long as it is open, they are there."""
        self.no_disk = None
        try:
            slow = until.enter_context(own_disk(directory, DISK_BYTES + JAR_ROOM >> 20))
        except Skip as reason:
            self.no_disk, slow = str(reason), directory
        self.classes = directory / "victim"
        self.disk = slow / "disk"
        self.jar = slow / "planted.jar"
        need(Path("/usr/bin/javac").exists() or os.environ.get("JAVA_HOME"), "there is no javac")
        javac = Path(os.environ["JAVA_HOME"], "bin/javac") if os.environ.get("JAVA_HOME") else "javac"
        run_quietly(javac, "-nowarn", "-XDignore.symbol.file", "-d", self.classes, *sorted(JAVA.glob("*.java")))
        # Not zeros: nor a hole, nor anything that a file system would store more cleverly.
        with open(self.disk, "wb") as file:
            for _ in range(DISK_BYTES >> 20):
                file.write(os.urandom(1 << 20))
            file.flush()
            os.fsync(file.fileno())
        self._make_jar(javac, directory)

    def _make_jar(self, javac, directory):
        """One class under many names of the same length, which stand in its constant pool."""
        source = directory / "Planted00000.java"
        methods = "\n".join(f'int method{i}(int value) {{ return value * {i} + "text {i}".length() + new int[value][{i}].length; }}'
                            for i in range(800))
        source.write_text(f"public class Planted00000 {{\nstatic int made = 1;\n{methods}\n}}\n")
        run_quietly(javac, "-d", directory, source)
        compiled = (directory / "Planted00000.class").read_bytes()
        with zipfile.ZipFile(self.jar, "w", zipfile.ZIP_STORED) as jar:
            for i in range(CLASSES):
                name = f"Planted{i:05d}"
                jar.writestr(name + ".class", compiled.replace(b"Planted00000", name.encode()))
        with open(self.jar, "rb") as file:
            os.fsync(file.fileno())


class Victim(harness.Process):
    def __init__(self, scene, name, files, jvm):
        self.log_file = scene.directory / f"gc-{name}.log"
        super().__init__(name, [harness.any_java(), *jvm, f"-Xlog:gc*,safepoint:file={self.log_file}:time,uptime,tn:filecount=0",
                                f"-agentpath:{harness.AGENT}=socket={scene.agent_socket}", "-cp", files.classes, "Victim",
                                files.disk, files.jar], scene.directory, nice=NICE)

    def wait_ready(self):
        match = self.wait_for(r"^listening (\d+) control (\d+)$", 60, self.out)
        self.port = int(match[1])
        self.control = socket.create_connection(("127.0.0.1", int(match[2])), timeout=60)
        return self

    def begin(self, command):
        self.control.sendall((command + "\n").encode())

    def has_answered(self):
        return bool(select.select([self.control], [], [], 0)[0])

    def tell(self, command):
        """Returns when it is done."""
        self.begin(command)
        self.wait_done(command)

    def wait_done(self, command):
        answer = b""
        while not answer.endswith(b"\n"):
            data = self.control.recv(4096)
            check(data, f"the victim ended during {command!r}:\n{self.log()}")
            answer += data
        check(answer == b"done\n", f"the victim was told {command!r} and answered {answer!r}:\n{self.log()}")

    def collections(self, since_ns):
        """The collector's stops since then, by the JVM's own log."""
        return [pause[:2] for pause in harness.gc_pauses(self.log_file) if pause[0] >= since_ns]

    def safepoints(self, since_ns):
        """[(begin_ns, stopped_ns, end_ns)] of stops since then, by the JVM's own log."""
        found = []
        for match in re.finditer(r"^\[[^]]*\]\[[^]]*\]\[(\d+)ns\] Safepoint .*Reaching safepoint: (\d+) ns,.*Total: (\d+) ns",
                                 self.log_file.read_text(errors="replace"), re.M):
            end_ns = int(match[1])
            begin_ns = end_ns - int(match[3])
            if begin_ns >= since_ns:
                found.append((begin_ns, begin_ns + int(match[2]), end_ns))
        return found


class Hog:
    """A process that takes a CPU from everybody but the watchers and the client, for the times that it is told."""

    def __init__(self, cpu):
        get, self.orders = os.pipe()
        self.child = os.fork()
        if self.child:
            os.close(get)
            return
        try:
            os.close(self.orders)
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(HOG_PRIORITY))
            os.sched_setaffinity(0, {cpu})
            Path("/proc/self/comm").write_text("hog")
            while True:
                order = os.read(get, 64)
                if not order:
                    os._exit(0)
                end_ns = int(order)
                while now_ns() < end_ns:
                    pass
        finally:
            os._exit(1)

    def take(self, end_ns):
        os.write(self.orders, str(end_ns).encode())

    def close(self):
        os.close(self.orders)
        os.waitpid(self.child, 0)


def pin(pid, cpus):
    """All threads that the process has; those that they start follow."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            os.sched_setaffinity(int(task.name), cpus)
        except ProcessLookupError:
            pass


class Stage:
    CLIENT_PRIORITY = 60

    def __init__(self, scene, session, name, files, seed):
        cpus = sorted(os.sched_getaffinity(0))
        self.proxy_cpu, self.server_cpu, self.cpus = cpus[0], cpus[-1], set(cpus)
        self.files = files
        self.directory = scene.directory
        self.victim = scene.keep(Victim(scene, f"victim-{name}", files, SESSIONS[session])).wait_ready()
        self.proxy = scene.proxy(f"proxy-{name}", [("a", f"127.0.0.1:{self.victim.port}")], slow="10ms").wait_serving(agents=1)
        self.traffic = Traffic(self.proxy.port, seed)
        pin(self.proxy.pid, {self.proxy_cpu})
        self.send = self.traffic.send
        self.run = self.traffic.run
        self.tell = self.victim.tell
        for _ in range(150):
            self.send("/work")
            self.run(3)
        self.traffic.finish()

    def tell_meanwhile(self, command):
        """Returns when it is done; the clients go on: one that does not read would take that for the server's slowness."""
        self.victim.begin(command)
        while not self.victim.has_answered():
            self.run(0.2)
        self.victim.wait_done(command)

    def waited_for_cpu_ns(self):
        """How long the threads that requests need have been ready without a CPU, by the kernel's own account."""
        total = 0
        for pid in (self.victim.pid, self.proxy.pid):
            for task in Path(f"/proc/{pid}/task").iterdir():
                try:
                    if (task / "comm").read_text().startswith(WORKING):
                        total += int((task / "schedstat").read_text().split()[1])
                except (FileNotFoundError, ProcessLookupError):
                    pass  # it has ended
        return total

    def act(self):
        """From now on this process is the client that nothing planted may keep from its CPU."""
        os.sched_setaffinity(0, {self.server_cpu})
        become_real_time(self.CLIENT_PRIORITY)

    def rest(self):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        os.sched_setaffinity(0, self.cpus)

    def end(self):
        """The proxy writes its last timelines. What it says that it could not explain is told."""
        said = self.proxy.status()["timelines"]
        unexplained = {name: said[name] for name in ("over_budget", "unjudged", "not_stored") if said[name]}
        if unexplained:
            note(f"{self.proxy.name} has stored {said['stored']} timelines; without one: {unexplained}")
        check(self.proxy.stop() == 0, f"the proxy failed:\n{self.proxy.log()}")
        self.victim.kill()


def note(text):
    print(text, file=sys.stderr, flush=True)


def stopped(pid, run, ms):
    """SIGSTOP for that long; returns the interval."""
    begin_ns = time.monotonic_ns()
    os.kill(pid, signal.SIGSTOP)
    try:
        run(ms)
    finally:
        os.kill(pid, signal.SIGCONT)
    return begin_ns, time.monotonic_ns()
