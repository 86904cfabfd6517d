# SPDX-License-Identifier: Apache-2.0
"""A server that stands still every other five seconds shows in the printed lines, as it must: in half of what was due.

A closed-loop tester would send next to nothing meanwhile, and print one slow answer a connection: p99.9 of a few ms.
"""
import os
import sys
import threading
import time
import unittest

from load_harness import FastServer, Freezes, classic_lines, finish_load, server, start_load, table_lines

RATE = 500
INTERVAL_S = 10
STOP_S = 5
BEFORE_STOP_S = 2.5  # in each interval: as long before the stop as after it
# A machine that stands still makes more of an interval late, and a stop longer, than the stop is: that is measured, as far as one thread
# that sleeps sees all of it; starting a load takes some ms of the first one.
UNSEEN_S = 0.3


def stop_in_each_interval(servers, begin, count, stops):
    """Appends to stops how long each one was: at most, and at least."""
    for number in range(count):
        time.sleep(max(0, begin + number * INTERVAL_S + BEFORE_STOP_S - time.monotonic()))
        before = time.monotonic()
        for running in servers:
            running.pause()
        stopped = time.monotonic()
        time.sleep(STOP_S)
        resumed = time.monotonic()
        for running in servers:
            running.go_on()
        stops.append((resumed - stopped, time.monotonic() - before))


class Stops(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        common = ["--rate", str(RATE), "--warm", "0s", "--interval", f"{INTERVAL_S}s"]
        cls.stops = []
        with server(kind=FastServer) as one, server(kind=FastServer) as other, Freezes() as freezes:
            table = start_load(*common, "--duration", f"{3 * INTERVAL_S}s", one.url)
            classic = start_load(*common, "--duration", f"{2 * INTERVAL_S}s", "--format", "classic", "--catch-up", "none", other.url)
            stopper = threading.Thread(target=stop_in_each_interval, args=([one, other], time.monotonic(), 3, cls.stops))
            stopper.start()
            try:
                cls.classic = classic_lines(finish_load(classic)[0])
            finally:
                cls.table = table_lines(finish_load(table)[0])
                stopper.join()
        cls.freezes_s = UNSEEN_S + freezes.total_s

    def check_longest(self, p999_ms, number):
        least, most = self.stops[number]
        # One in a thousand of the answers: the fifth longest wait, of requests that are due every 2 ms. Three digits are printed.
        self.assertGreater(p999_ms, least * 1000 - 50)
        self.assertLess(p999_ms, (most + self.freezes_s) * 1000)

    def test_every_interval_shows_half_in_time_and_the_whole_stop(self):
        self.assertGreaterEqual(len(self.table), 3)  # an answer after the end has a line of its own
        for number, line in enumerate(self.table[:3]):
            with self.subTest(line=line):
                self.assertEqual((line["wanted"], line["bad"], line["failed"], line["dropped"]), (RATE * INTERVAL_S, 0, 0, 0))
                # Those that were due in the last 100 ms of the stop were still answered in time.
                share = 100 * (1 - (STOP_S - 0.1) / INTERVAL_S)
                self.assertGreater(line["in_time"], share - 100 * self.freezes_s / INTERVAL_S)
                self.assertLess(line["in_time"], share + 100 * self.freezes_s / INTERVAL_S)
                self.check_longest(line["p999"], number)
                # Half of them did not wait, and the waits of the others were spread evenly.
                self.assertLess(line["p50"], 400)
                self.assertAlmostEqual(line["p95"], 4500, delta=1000 * self.freezes_s)
        self.assertEqual(sum(line["good"] for line in self.table), 3 * RATE * INTERVAL_S)

    def test_classic_lines_show_half_answered_when_nothing_is_caught_up(self):
        self.assertGreaterEqual(len(self.classic), 2)
        for number, line in enumerate(self.classic[:2]):
            with self.subTest(line=line):
                self.assertEqual((line["wanted"], line["bad"], line["failed"], line["interval"]), (RATE * INTERVAL_S, 0, 0, "10s"))
                # Besides those due while it ran, one on each of the 64 connections when it stopped.
                share = 100 * (1 - STOP_S / INTERVAL_S) + 100 * 64 / (RATE * INTERVAL_S)
                self.assertGreater(line["percent"], share - 100 * self.freezes_s / INTERVAL_S - 1)
                self.assertLess(line["percent"], share + 100 * self.freezes_s / INTERVAL_S)
                self.check_longest(line["p999"], number)
                self.assertLess(line["p50"], 20)


if __name__ == "__main__":
    if not os.environ.get("LOAD_SERVER"):
        print("LOAD_SERVER does not name the server to load")
        sys.exit(77)
    unittest.main(verbosity=2)
