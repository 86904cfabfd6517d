# SPDX-License-Identifier: Apache-2.0
"""A watch for times in which this machine stands still. Which CPU did, and when exactly, is known to e2e/causes/freezes.py."""
import os
import threading
import time

SLEEP_S, LATE_S = 0.005, 0.01


class Freezes:
    """For how long, in all, a thread that only sleeps was kept from its CPU while this is entered: by anybody; or, with a priority that is
    above all others', by the machine alone. Where that priority is not allowed, nothing is seen.
    """

    def __init__(self, priority=0):
        self.priority, self.total_s, self.over = priority, 0, threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.over.set()
        self.thread.join()

    def watch(self):
        try:
            if self.priority:
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(self.priority))
        except PermissionError:
            return
        last, over = time.monotonic(), False
        while not over:
            over = self.over.wait(SLEEP_S)
            now = time.monotonic()
            late_s = now - last - SLEEP_S
            last = now
            self.total_s += late_s if late_s > LATE_S else 0
