# SPDX-License-Identifier: Apache-2.0
"""Watches, one process for each CPU, for times in which the machine itself stood still.

A watcher has a real-time priority above all that is planted, and sleeps for short times: who then wakes up late on a CPU that nobody
may hold from it saw that CPU, or the whole machine, stop.
"""
import mmap
import os
import signal
import struct
import time

from harness import LIBC, PR_SET_PDEATHSIG

SLEEP_NS = 3_000_000
LATE_NS = 4_000_000
PRIORITY = 80
ROOM = 4096


class Freezes:
    def __init__(self, cpus):
        self.children = []
        for cpu in cpus:
            shared = mmap.mmap(-1, 8 + 16 * ROOM)
            child = os.fork()
            if child == 0:
                try:
                    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
                    os.setsid()
                    os.sched_setaffinity(0, {cpu})
                    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
                    self._watch(shared)
                finally:
                    os._exit(1)
            self.children.append((child, shared))

    @staticmethod
    def _watch(shared):
        count = 0
        before = time.monotonic_ns()
        while count < ROOM:
            time.sleep(SLEEP_NS / 1e9)
            now = time.monotonic_ns()
            if now - before > SLEEP_NS + LATE_NS:
                struct.pack_into("QQ", shared, 8 + 16 * count, before + SLEEP_NS, now)
                count += 1
                struct.pack_into("Q", shared, 0, count)
            before = now
        signal.pause()

    def list(self):
        """[(begin_ns, end_ns)] of all CPUs."""
        found = []
        for _, shared in self.children:
            count = struct.unpack_from("Q", shared, 0)[0]
            found += [struct.unpack_from("QQ", shared, 8 + 16 * i) for i in range(count)]
        return sorted(found)

    def close(self):
        for child, _ in self.children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        self.children = []


def become_real_time(priority):
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(priority))
