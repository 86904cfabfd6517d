# SPDX-License-Identifier: Apache-2.0
"""Stops that the JVM makes. When they were is said by its own log, which has nothing to do with the agent."""
import os
import signal
import socket
import threading
import time
from pathlib import Path

from harness import check

from .plant import Alone, Plant, Planting
from .traffic import now_ns


class Young(Alone):
    accepted = ("gc",)
    why = "the request's allocation fills eden, in which 40 MiB of small objects are alive"

    def prepare(self, stage):
        stage.tell("fill 40")
        return "/allocate"

    def intervals(self, stage, since_ns):
        return stage.victim.collections(since_ns)

    def tear_down(self, stage):
        stage.tell("collect")


class Full(Plant):
    accepted = ("gc",)
    why = "System.gc() on another thread while the request computes, with 60 MiB of small objects alive"

    def set_up(self, stage):
        stage.tell("live 60")
        stage.tell("collect")

    def plant(self, stage):
        since_ns = now_ns()
        request = stage.send("/spin?us=8000")
        stage.run(2)
        stage.tell_meanwhile("collect")
        stage.traffic.finish()
        return Planting([request], stage.victim.collections(since_ns))

    def tear_down(self, stage):
        stage.tell("live 0")
        stage.tell("collect")


class TimeToSafepoint(Alone):
    name = "time-to-safepoint"
    accepted = ("time-to-safepoint",)
    needs = ("safepoints",)
    target = "/copy?us=8000"
    why = "a safepoint is asked for while another thread is in the middle of one long array copy, during which it cannot stop"

    def set_up(self, stage):
        stage.tell("arrays 320")

    def intervals(self, stage, since_ns):
        return [stop[:2] for stop in stage.victim.safepoints(since_ns)]

    def tear_down(self, stage):
        stage.tell("arrays 0")
        stage.tell("collect")


class ThreadDump(Plant):
    name = "thread-dump"
    accepted = ("safepoint",)
    rehearsed = True
    why = "a thread dump of 1000 threads of 100 frames stops all threads as long as it prints"

    def set_up(self, stage):
        stage.tell("threads 1000 100")
        self.socket_path = self._open_attach(stage.victim.pid)

    @staticmethod
    def _open_attach(pid):
        """The JVM's own attach protocol, which jcmd speaks: it listens once it is asked to."""
        path = f"/tmp/.java_pid{pid}"
        asked = Path(f"/proc/{pid}/cwd/.attach_pid{pid}")
        asked.touch()
        os.kill(pid, signal.SIGQUIT)
        deadline = time.monotonic() + 5
        while not os.path.exists(path) and time.monotonic() < deadline:
            time.sleep(0.02)
        asked.unlink(missing_ok=True)
        check(os.path.exists(path), "the JVM does not listen for thread dumps")
        return path

    def _dump(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(self.socket_path)
            connection.sendall(b"1\0threaddump\0\0\0\0")
            while connection.recv(1 << 20):
                pass

    def plant(self, stage):
        since_ns = now_ns()
        dump = threading.Thread(target=self._dump)
        request = stage.send("/spin?us=8000")
        stage.run(2)
        dump.start()
        stage.run(40)
        stage.traffic.finish()
        dump.join()
        return Planting([request], [stop[1:] for stop in stage.victim.safepoints(since_ns)])

    def tear_down(self, stage):
        stage.tell("threads 0 0")


def for_collector(base, session, which):
    return type(f"{base.__name__}_{session}", (base,), {"name": f"gc-{which}-{session}", "session": session})


PLANTS = [TimeToSafepoint, ThreadDump] + [for_collector(base, session, which) for session in ("serial", "parallel", "g1")
                                         for base, which in ((Young, "young"), (Full, "full"))]
