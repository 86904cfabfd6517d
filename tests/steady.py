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
import time

from freezes import Freezes

REPEATS = 2
STOLEN, LATE = 0.005, 0.001  # of the time: more than this is a machine that stands still
PRIORITY = 90  # above whatever tests run


def stolen_s():
    """What the host has taken of the CPUs' time so far, for each."""
    with open("/proc/stat") as stat:
        return int(stat.readline().split()[8]) / os.sysconf("SC_CLK_TCK") / os.cpu_count()


def run(words):
    """Exit code, and the parts of the time that were stolen, and in which nothing ran."""
    began, before_s = time.monotonic(), stolen_s()
    with Freezes(PRIORITY) as freezes, subprocess.Popen(["ctest", *words]) as tests:
        try:
            code = tests.wait()
        finally:
            tests.terminate()
    took_s = time.monotonic() - began
    return code, (stolen_s() - before_s) / took_s, freezes.total_s / took_s


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
