# SPDX-License-Identifier: Apache-2.0
"""What runs the tests: failures are repeated on a machine that stands still, and on no other."""
import contextlib
import io
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import steady  # noqa: E402
from freezes import Freezes  # noqa: E402

STANDS_STILL, RUNS = -1, 2  # limits below and above all that can be measured


class Steady(unittest.TestCase):
    def run_tests(self, limit, fails):
        """Exit code, and how often each of two tests ran, of which one fails so often."""
        steady.STOLEN = steady.LATE = limit
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as said:
            ran = {name: Path(folder, name) for name in ("good", "fails")}
            fail = f"test $(wc -l <{ran['fails']}) -gt {fails}"
            Path(folder, "CTestTestfile.cmake").write_text(
                f'add_test(good sh -c "echo ran >>{ran["good"]}")\nadd_test(fails sh -c "echo ran >>{ran["fails"]}; {fail}")\n')
            code = steady.main(["--test-dir", folder, "--quiet", "--output-log", os.devnull])
            return code, [len(path.read_text().split()) for path in ran.values()], said.getvalue().count("stood still")

    def test_what_failed_is_repeated_while_the_machine_stands_still(self):
        self.assertEqual(self.run_tests(STANDS_STILL, 0), (0, [1, 1], 0))
        self.assertEqual(self.run_tests(STANDS_STILL, 1), (0, [1, 2], 1))
        self.assertEqual(self.run_tests(STANDS_STILL, 2), (0, [1, 3], 2))

    def test_what_always_fails_fails(self):
        code, ran, said = self.run_tests(STANDS_STILL, 9)
        self.assertNotEqual(code, 0)
        self.assertEqual((ran, said), ([1, 3], 2))

    def test_a_failure_is_one_on_a_machine_that_runs(self):
        code, ran, said = self.run_tests(RUNS, 1)
        self.assertNotEqual(code, 0)
        self.assertEqual((ran, said), ([1, 1], 0))

    def test_a_thread_that_is_kept_from_its_cpu_is_seen(self):
        cpu = min(os.sched_getaffinity(0))
        code = (f"import os; os.sched_setaffinity(0, {{{cpu}}})\nos.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))\n"
                "import time; end = time.monotonic() + 0.2\nwhile time.monotonic() < end: pass")
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {cpu})
        try:
            with Freezes() as freezes:
                hog = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        finally:
            os.sched_setaffinity(0, before)
        if "PermissionError" in hog.stderr:
            self.skipTest("a real-time priority cannot be had here")
        self.assertGreater(freezes.total_s, 0.1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
