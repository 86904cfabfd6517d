# SPDX-License-Identifier: Apache-2.0
"""The search servers: heaps that each collector stops for 100 ms or longer about once a second, and one that is never collected.

examples/search-server/README.md says how the sizes act. Garbage comes with requests: a server that gets all of them stops that
often, of two that share them each half as often, and one without any not at all.
"""
import contextlib
import socket
import subprocess
import threading
from pathlib import Path

import harness
from harness import check

RATE = 250  # requests a second that the sizes below are for
PRETOUCHED = "-XX:+AlwaysPreTouch"
HEAPS = {
    # A heap so narrow that each collection is a full one: live data is marked and moved.
    "serial": (["-XX:+UseSerialGC", "-Xms184m", "-Xmx184m", "-Xmn96m"], ["--live-set", "68MiB", "--tenure", "96KiB", "--garbage", "128KiB"]),
    "parallel": (["-XX:+UseParallelGC", "-Xms256m", "-Xmx256m", "-Xmn96m"],
                 ["--live-set", "120MiB", "--tenure", "96KiB", "--garbage", "128KiB"]),
    # Young collections that copy much, by one thread, and take no longer than G1 was told they may.
    "g1": (["-XX:+UseG1GC", "-XX:ParallelGCThreads=1", "-XX:ConcGCThreads=1", "-XX:MaxGCPauseMillis=1000", "-Xms900m", "-Xmx900m", "-Xmn160m"],
           ["--live-set", "128MiB", "--tenure", "448KiB", "--garbage", "128KiB"]),
}
# What a slice allocates fits; between slices it is collected by hand. Serial's barriers and allocation are the cheapest there are.
FLOOR_HEAP = ["-XX:+UseSerialGC", "-Xms4g", "-Xmx4g", "-Xmn3584m"]
WARM_S = 8
COLLECT_S = 1
ATTACH_COMMAND = b"1\0jcmd\0GC.run\0\0\0"  # HotSpot's attach protocol, version 1: a command and three arguments


class Servers:
    """a and b, which collect, and `floor`, which does not."""

    def __init__(self, scene, collector, agent_options):
        heap, load = HEAPS[collector]
        self.pair = [scene.server(name, jvm=[*heap, PRETOUCHED], options=load, agent_socket=scene.agent_socket, agent_options=agent_options)
                     for name in "ab"]
        self.floor = scene.server("floor", jvm=[*FLOOR_HEAP, PRETOUCHED], options=load)
        for server in self.all():
            server.wait_ready()
        # What the compiler has left to do is done before anything is measured.
        for server in self.all():
            scene.load(f"warm-{server.name}", server.port, RATE, WARM_S)
        self.collect_floor()

    def all(self):
        return [*self.pair, self.floor]

    @contextlib.contextmanager
    def collecting(self):
        """Meanwhile a, which gets no requests, is collected once a second: what its collections do to the machine, and nothing else."""
        # The first command, which jcmd brings, is what makes a JVM listen for others.
        self.collect(self.pair[0])
        over = threading.Event()

        def collect():
            while not over.wait(COLLECT_S):
                with socket.socket(socket.AF_UNIX) as attached:
                    attached.connect(f"/tmp/.java_pid{self.pair[0].pid}")
                    attached.sendall(ATTACH_COMMAND)
                    while attached.recv(4096):
                        pass

        thread = threading.Thread(target=collect)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def collect_floor(self):
        self.collect(self.floor)

    @staticmethod
    def collect(server):
        done = subprocess.run([Path(harness.any_java()).with_name("jcmd"), str(server.pid), "GC.run"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        check(done.returncode == 0, f"jcmd GC.run: {done.stdout}")

    def stops(self, from_ns, to_ns):
        """{port: [(begin, end)]} of the collections that had to do with that time."""
        return {server.port: [(begin, end) for begin, end, _ in harness.gc_pauses(server.gc_log) if begin < to_ns and end > from_ns]
                for server in self.all()}
