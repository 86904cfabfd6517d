# SPDX-License-Identifier: Apache-2.0
"""The HdrHistogram log of `tailor load --hdr`, read by another implementation: hdrhistogram of PyPI, in build/python."""
import os
import re
import sys
import tempfile
import time
import unittest

try:
    from hdrh.histogram import HdrHistogram
    from hdrh.log import HistogramLogReader
except ImportError as error:
    python = os.path.join(os.environ["TAILOR_SOURCE"], "build/python/bin/python")
    if os.path.exists(python) and "LOAD_HDR_RESTARTED" not in os.environ:
        os.execve(python, [python, *sys.argv], {**os.environ, "LOAD_HDR_RESTARTED": "1"})
    print(f"{error}: ./run test installs tests/requirements.txt into build/python, which needs a network")
    sys.exit(77)

from load_harness import load_json, paths_file, server

# A thousand answers: then no percentile below falls between two of them, where readers round differently.
RATE, SECONDS, INTERVAL_S = 250, 4, 1
HIGHEST_NS = 3600 * 10**9


def read_log(name):
    reader = HistogramLogReader(name, HdrHistogram(1, HIGHEST_NS, 3))
    histograms = []
    while (histogram := reader.get_next_interval_histogram()) is not None:
        histograms.append(histogram)
    reader.close()
    return histograms


class Log(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with server() as running, tempfile.NamedTemporaryFile(suffix=".hlog") as file, \
             paths_file("/ok\n/bad\n/slow?30\n/slow?3\n") as paths:
            cls.begin = time.time()
            cls.report, _ = load_json("--rate", str(RATE), "--duration", f"{SECONDS}s", "--warm", "500ms", "--interval",
                                      f"{INTERVAL_S}s", "--hdr", file.name, "--paths", paths, running.url)
            cls.end = time.time()
            cls.text = file.read().decode()
            cls.histograms = read_log(file.name)
            cls.sum = HdrHistogram(1, HIGHEST_NS, 3)
            for histogram in cls.histograms:
                cls.sum.add(histogram)

    def test_it_holds_every_answer_once(self):
        self.assertEqual(self.report["requests"], RATE * SECONDS)
        self.assertGreater(self.report["bad"], 100)
        self.assertEqual(self.sum.get_total_count(), self.report["good"] + self.report["bad"])

    def test_percentiles_are_those_of_the_report(self):
        for percent, name in ((0, "min_ms"), (50, "p50_ms"), (90, "p90_ms"), (95, "p95_ms"), (99, "p99_ms"), (99.9, "p999_ms"),
                              (100, "max_ms")):
            ours = self.report["response"][name]
            self.assertAlmostEqual(self.sum.get_value_at_percentile(percent) / 1e6, ours, delta=0.002 * ours, msg=name)
        self.assertAlmostEqual(self.sum.get_max_value() / 1e6, self.report["response"]["max_ms"],
                               delta=0.002 * self.report["response"]["max_ms"])
        self.assertAlmostEqual(self.sum.get_mean_value() / 1e6, self.report["response"]["mean_ms"],
                               delta=0.002 * self.report["response"]["mean_ms"])

    def test_there_is_a_row_for_each_interval_with_its_own_answers(self):
        # One more for answers after the last interval.
        self.assertIn(len(self.histograms), (SECONDS // INTERVAL_S, SECONDS // INTERVAL_S + 1))
        for histogram in self.histograms[:SECONDS // INTERVAL_S]:
            # What is answered late, as where this machine stood still, is another one's.
            late = RATE * self.report["response"]["max_ms"] / 1000
            self.assertAlmostEqual(histogram.get_total_count(), RATE * INTERVAL_S, delta=RATE * INTERVAL_S / 3 + late)

    def test_times_are_those_of_the_intervals(self):
        starts = [histogram.get_start_time_stamp() / 1000 for histogram in self.histograms]
        ends = [histogram.get_end_time_stamp() / 1000 for histogram in self.histograms]
        # The warm-up is not in it.
        self.assertGreater(starts[0], self.begin + 0.45)
        self.assertLess(starts[0], self.begin + 1.5)
        self.assertLess(ends[-1], self.end + 0.05)
        for i in range(SECONDS // INTERVAL_S):
            # An interval's line is printed by a thread that must wake up for it.
            self.assertAlmostEqual(starts[i], starts[0] + i * INTERVAL_S, delta=0.3)
            self.assertAlmostEqual(ends[i] - starts[i], INTERVAL_S, delta=0.3)
            if i > 0:
                self.assertAlmostEqual(starts[i], ends[i - 1], delta=0.005)

    def test_other_readers_find_what_they_look_for(self):
        self.assertIn("#[Histogram log format version 1.3]", self.text)
        found = re.search(r"^#\[StartTime: ([\d.]+) \(seconds since epoch\), .*\]$", self.text, re.M)
        self.assertGreater(float(found[1]), self.begin - 0.005)
        self.assertLess(float(found[1]), self.begin + 1.5)
        self.assertIn('\n"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n', self.text)
        rows = re.findall(r"^([\d.]+),([\d.]+),([\d.]+),HISTFAAA[A-Za-z0-9+/]+=*$", self.text, re.M)
        self.assertEqual(len(rows), len(self.histograms))
        # In ms, as is the custom of logs in ns.
        self.assertAlmostEqual(max(float(row[2]) for row in rows), self.report["response"]["max_ms"], delta=0.01)


if __name__ == "__main__":
    unittest.main(verbosity=2)
