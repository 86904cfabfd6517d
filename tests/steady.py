#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs ctest with the words given; what failed while the machine stood still runs again, alone.

A virtual machine whose host gives its CPUs to others stands still at any moment, for seconds at times, and many tests judge times. What
fails then says nothing about what is tested: it is repeated, at most twice, for as long as that goes on. Where the machine runs, a failure
is one at once.
"""
import os
import signal
import subprocess
import sys
import threading
import time

REPEATS = 2
STOLEN, LATE = 0.005, 0.001  # of the time: more than this is a machine that stands still
SLEEP_S, LATE_S, PRIORITY = 0.01, 0.02, 90  # above whatever tests run


class Watch:
    """How much of the time the host took, and a thread that nobody here may keep from its CPU was kept from it."""

    def __init__(self):
        self.began, self.stolen_ticks, self.late_s, self.over = time.monotonic(), self.ticks(), 0, threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    @staticmethod
    def ticks():
        with open("/proc/stat") as stat:
            return int(stat.readline().split()[8])

    def watch(self):
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
        except PermissionError:
            return
        last = time.monotonic()
        while not self.over.wait(SLEEP_S):
            now = time.monotonic()
            late_s = now - last - SLEEP_S
            last = now
            self.late_s += late_s if late_s > LATE_S else 0

    def close(self):
        """The parts of the time that were stolen, of all CPUs, and in which it was late."""
        self.over.set()
        self.thread.join()
        took_s = time.monotonic() - self.began
        stolen_s = (self.ticks() - self.stolen_ticks) / os.sysconf("SC_CLK_TCK") / os.cpu_count()
        return stolen_s / took_s, self.late_s / took_s


def run(words):
    watch, tests = Watch(), subprocess.Popen(["ctest", *words])
    try:
        code = tests.wait()
    finally:
        tests.terminate()
        tests.wait()
    return code, *watch.close()


def main(words):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    code, stolen, late = run(words)
    for _ in range(REPEATS):
        if code == 0 or (stolen < STOLEN and late < LATE):
            break
        print(f"\nsteady: this machine stood still: its host took {stolen:.1%} of the CPUs' time, and nothing ran in {late:.1%} of the time. "
              "What failed runs again, alone", flush=True)
        code, stolen, late = run([*words[:words.index("--test-dir") + 2], "--rerun-failed", "--output-on-failure"])
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
