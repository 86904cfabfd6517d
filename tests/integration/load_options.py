# SPDX-License-Identifier: Apache-2.0
"""What the options of `tailor load` ask for is what arrives at a real server, and what is told of it adds up."""
import csv
import json
import os
import re
import resource
import signal
import statistics
import subprocess
import tempfile
import time
import unittest

from load_harness import (TAILOR, FastServer, Freezes, finish_load, load, load_json, paths_file, server, start_load, table_lines, usage_error)
from whole_proxy import Proxy

# Of a machine that stands still, beside what a thread that sleeps sees of it.
FREEZE_S = 0.2


def told(process, code=0):
    return json.loads(finish_load(process, code)[0])


def together(*commands):
    """Reports and standard errors of loads that run at the same time; each is its words and its exit code."""
    runs = [(start_load("--json", *words), code) for words, code in commands]
    done = [finish_load(process, code) for process, code in runs]
    return [(json.loads(out), err) for out, err in done]


class Poisson(unittest.TestCase):
    def test_gaps_are_exponential(self):
        """As the server sees them: where the machine stands still arrivals bunch, which one of a few runs is spared."""
        disturbed = []
        while len(disturbed) < 5:
            try:
                self.check_gaps(500, 3)
                return
            except AssertionError as error:
                disturbed.append(str(error))
        self.fail(disturbed)

    def check_gaps(self, rate, seconds):
        with server() as running:
            report, _ = load_json("--poisson", "--rate", str(rate), "--duration", f"{seconds}s", "--warm", "0s", running.url)
            arrivals = sorted(request["at"] for request in running.log()["requests"])
        self.assertEqual(report["arrival"], "poisson")
        self.assertEqual((report["good"], report["wanted"]), (len(arrivals), len(arrivals)))
        # Four standard deviations of what a Poisson process has in that time.
        self.assertAlmostEqual(len(arrivals), rate * seconds, delta=4 * (rate * seconds) ** 0.5)
        gaps = [after - before for before, after in zip(arrivals, arrivals[1:])]
        mean = 1 / rate
        self.assertAlmostEqual(statistics.mean(gaps), mean, delta=0.15 * mean)
        variation = statistics.stdev(gaps) / statistics.mean(gaps)
        self.assertGreater(variation, 0.85)
        self.assertLess(variation, 1.2)
        for bound, share in ((0.5, 0.393), (1, 0.632), (2, 0.865)):
            self.assertAlmostEqual(sum(gap < bound * mean for gap in gaps) / len(gaps), share, delta=0.08)

    def test_the_seed_alone_decides_what_is_due(self):
        with server() as running:
            runs = [start_load("--json", "--poisson", "--rate", "200", "--duration", "1s", "--warm", "0s", "--connections", "10",
                               *words) for words in (
                ["--seed", "1", running.url], ["--seed", "1", running.url + "/slow?60"], ["--seed", "2", running.url],
                ["--seed", "3", running.url], ["--seed", "4", running.url])]
            fast, slow, *others = [told(run)["wanted"] for run in runs]
        self.assertEqual(fast, slow)
        self.assertGreater(len({fast, *others}), 1)


class ClosedLoop(unittest.TestCase):
    def test_each_connection_sends_when_it_has_its_answer(self):
        for threads in ("1", "2"):
            with server() as running:
                report, _ = load_json("--closed", "--connections", "4", "--threads", threads, "--duration", "1s", "--warm", "0s",
                                      running.url + "/slow?20")
                log = running.log()
            self.assertEqual(report["arrival"], "closed")
            self.assertEqual(log["most_connections"], 4)
            self.assertEqual(report["opened"], 4)
            self.assertEqual(report["requests"], len(log["requests"]))
            self.assertEqual((report["good"], report["wanted"]), (report["requests"], report["requests"]))
            # 50 a second on each at most; each waits for an answer nearly all of the time, however long that takes on a slow machine.
            self.assertLessEqual(report["requests"], 204)
            self.assertGreater(report["requests"] * report["response"]["mean_ms"], 4 * 1000 * 0.8)
            for number in range(1, 5):
                times = [request["at"] for request in log["requests"] if request["connection"] == number]
                self.assertGreater(min(after - before for before, after in zip(times, times[1:])), 0.019)

    def test_it_stops_with_the_server_and_says_what_that_hides(self):
        with server() as running:
            process = start_load("--closed", "--connections", "2", "--duration", "3s", "--warm", "0s", "--interval", "3s",
                                 running.url + "/slow?10")
            time.sleep(1)
            running.pause()
            time.sleep(1)
            running.go_on()
            out, _ = finish_load(process)
        line = table_lines(out)[0]
        # The two that were under way waited a second, and nothing else was sent meanwhile.
        self.assertLess(line["p95"], 500)
        self.assertGreater(line["max"], 900)
        self.assertLess(line["wanted"], 2 * 2.1 / 0.010)
        self.assertIn("closed", out)


class Connections(unittest.TestCase):
    def test_without_keep_alive_each_request_has_a_connection_of_its_own(self):
        with server() as running:
            report, _ = load_json("--no-keepalive", "--rate", "1500", "--duration", "2s", "--warm", "0s", running.url)
            log = running.log()
        self.assertEqual((report["good"], report["failed"], report["opened"]), (3000, 0, 3000))
        self.assertEqual(len({request["connection"] for request in log["requests"]}), 3000)
        for request in log["requests"]:
            self.assertIn("connection: close", [field.lower() for field in request["fields"]])

    def test_without_keep_alive_no_ports_are_left_waiting(self):
        with server(kind=FastServer) as running:
            report, _ = load_json("--no-keepalive", "--rate", "2000", "--duration", "2s", "--warm", "0s", running.url)
            waiting = waiting_ports(running.port)
        self.assertEqual((report["good"], report["opened"]), (4000, 4000))
        # The server ends each connection first: what waits is its side, which costs no port.
        self.assertLess(waiting, 400)

    def test_with_keep_alive_few_are_enough(self):
        with server() as running:
            report, _ = load_json("--rate", "200", "--duration", "1s", "--warm", "0s", "--connections", "4", running.url)
            log = running.log()
        self.assertEqual(report["opened"], log["most_connections"])
        self.assertLessEqual(report["opened"], 4)
        self.assertEqual([field for request in log["requests"] for field in request["fields"] if "close" in field.lower()], [])


def waiting_ports(server_port):
    """How many ports of this server's clients are in TIME_WAIT."""
    with open("/proc/net/tcp") as file:
        rows = [line.split() for line in file][1:]
    return sum(row[3] == "06" and int(row[2].split(":")[1], 16) == server_port for row in rows)


COMMON_LOG = """\
10.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /0 HTTP/1.1" 200 2326
10.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /1?a=b%20c HTTP/1.0" 404 0 "http://x/" "Agent (like \\"this\\")"
10.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "HEAD /2 HTTP/1.1" 200 -
10.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /3 HTTP/1.1" 200 1
10.0.0.1 - - [10/Oct/2000:13:55:37 -0700] "DELETE /4 HTTP/1.1" 200 1

# a comment
10.0.0.1 - - [10/Oct/2000:13:55:38 -0700] "GET /5 HTTP/1.1" 200 1
10.0.0.1 - - [10/Oct/2000:13:55:38 -0700] "GET /6 HTTP/1.1" 200 1
"""
TIMED_LOG = """\
1000.0 GET /0
1000.30 POST /1 the body of one
1000.95 PUT /3 {"query": 3}
1000.9 GET /2
1001.5 GET /0
"""


class Replay(unittest.TestCase):
    def replay(self, text, *words):
        with server() as running, paths_file(text) as log, Freezes() as freezes:
            report, _ = load_json("--replay", log, *words, running.url)
            requests = running.log()["requests"]
        self.freeze_s = FREEZE_S + freezes.total_s
        self.assertEqual((report["good"], report["wanted"]), (len(requests), len(requests)))
        self.assertEqual(report["arrival"], "recorded")
        return requests

    def check_times(self, requests, expected):
        """Against each other: when the load began is not known here."""
        off = [request["at"] - second for request, second in zip(requests, expected)]
        self.assertLess(max(off) - min(off), self.freeze_s)
        self.assertLess(sorted(abs(one - statistics.median(off)) for one in off)[len(off) // 2], 0.02)

    def test_a_common_log_is_sent_as_it_came_and_its_seconds_are_filled_evenly(self):
        requests = self.replay(COMMON_LOG)
        self.assertEqual([(request["method"], request["path"]) for request in requests], [
            ("GET", "/0"), ("GET", "/1?a=b%20c"), ("HEAD", "/2"), ("GET", "/3"), ("DELETE", "/4"), ("GET", "/5"), ("GET", "/6")])
        # Four, one and two of a second: each in the middle of its part, or at its begin.
        starts = [0, 0.25, 0.5, 0.75, 1, 2, 2.5]
        off = [request["at"] - requests[0]["at"] - second for request, second in zip(requests, starts)]
        self.assertLess(max(abs(one) for one in off), 0.25 + 0.125 + self.freeze_s)
        gaps = [after["at"] - before["at"] for before, after in zip(requests, requests[1:])]
        for gap in gaps[:3]:
            self.assertAlmostEqual(gap, 0.25, delta=self.freeze_s)
        self.assertAlmostEqual(gaps[5], 0.5, delta=self.freeze_s)

    def test_fractions_of_seconds_methods_and_bodies_are_kept_and_the_order_is_that_of_time(self):
        requests = self.replay(TIMED_LOG)
        self.assertEqual([(request["method"], request["path"], request["body"]) for request in requests], [
            ("GET", "/0", ""), ("POST", "/1", "the body of one"), ("GET", "/2", ""), ("PUT", "/3", '{"query": 3}'), ("GET", "/0", "")])
        self.check_times(requests, [0, 0.3, 0.9, 0.95, 1.5])

    def test_speed_divides_the_times(self):
        self.check_times(self.replay(TIMED_LOG, "--speed", "2"), [0, 0.15, 0.45, 0.475, 0.75])

    def test_times_may_be_dates(self):
        lines = "2024-02-29T23:59:59.9Z GET /0\n2024-03-01T01:00:00.2+01:00 GET /1\n2024-03-01T00:00:00.4Z GET /2\n"
        requests = self.replay(lines)
        self.assertEqual([request["path"] for request in requests], ["/0", "/1", "/2"])
        self.check_times(requests, [0, 0.3, 0.5])

    def test_threads_share_a_log(self):
        lines = "".join(f"{i / 100} GET /{i}\n" for i in range(100))
        requests = self.replay(lines, "--threads", "3")
        self.assertEqual(sorted(int(request["path"][1:]) for request in requests), list(range(100)))
        self.check_times(sorted(requests, key=lambda request: int(request["path"][1:])), [i / 100 for i in range(100)])


class CatchUp(unittest.TestCase):
    def test_what_is_not_sent_is_told_as_dropped(self):
        modes = ("full", "bounded", "none")
        with server() as one, server() as two, server() as three, Freezes() as freezes:
            servers = (one, two, three)
            runs = [start_load("--json", "--catch-up", mode, "--rate", "200", "--duration", "4s", "--warm", "0s", "--connections",
                               "10", running.url) for mode, running in zip(modes, servers)]
            time.sleep(1)
            for running in servers:
                running.pause()
            time.sleep(2)
            for running in servers:
                running.go_on()
            reports = dict(zip(modes, [told(run) for run in runs]))
            arrived = dict(zip(modes, [len(running.log()["requests"]) for running in servers]))
        freeze_s = FREEZE_S + freezes.total_s
        for mode, report in reports.items():
            self.assertEqual((report["catch_up"], report["wanted"]), (mode, 800))
            self.assertEqual(report["good"] + report["bad"] + report["failed"] + report["dropped"], 800, mode)
            self.assertEqual((report["requests"], arrived[mode]), (800 - report["dropped"],) * 2, mode)
            self.assertFalse(report["schedule_kept"], mode)
            # The first that was due after the stop waited for all of it, also when it was sent.
            self.assertGreater(report["response"]["max_ms"], 1900, mode)
        self.assertEqual(reports["full"]["dropped"], 0)
        # Due in the first of the two seconds, but for those on the ten connections.
        self.assertAlmostEqual(reports["bounded"]["dropped"], 190, delta=200 * 2 * freeze_s)
        self.assertAlmostEqual(reports["none"]["dropped"], 390, delta=200 * 2 * freeze_s)
        # One that waited for a connection for longer than that was not sent.
        self.assertLess(reports["bounded"]["sent"]["max_ms"], 1000 + 1000 * freeze_s)
        self.assertLess(reports["none"]["sent"]["max_ms"], 10 + 1000 * freeze_s)
        self.assertGreater(reports["full"]["sent"]["max_ms"], 1500)

    def test_the_dropped_have_a_column(self):
        with server() as running:
            out, _ = finish_load(start_load("--catch-up", "none", "--rate", "50", "--duration", "1s", "--warm", "0s", "--connections",
                                            "1", "--interval", "500ms", running.url + "/slow?100"))
        lines = table_lines(out)
        self.assertGreater(sum(line["dropped"] for line in lines), 30)
        self.assertEqual(sum(line["good"] + line["dropped"] for line in lines), 50)
        self.assertEqual(sum(line["wanted"] for line in lines), 50)


class Checks(unittest.TestCase):
    common = ("--rate", "100", "--duration", "300ms", "--warm", "0s")

    def test_expected_statuses_are_good(self):
        cases = (("404", ["--expect-status", "200,404"], 30), ("404", ["--expect-status", "4xx"], 30), ("404", [], 0), ("302", [], 30),
                 ("200", ["--expect-status", "3xx,404"], 0), ("503", ["--expect-status", "2xx,3xx"], 0))
        with server() as running:
            done = together(*[([*self.common, *words, f"{running.url}/status?{status}"], 0 if good else 1)
                              for status, words, good in cases])
        for (report, _), (status, words, good) in zip(done, cases):
            self.assertEqual((report["good"], report["bad"]), (good, 30 - good), (status, words))

    def test_another_body_than_at_first_is_told(self):
        with server() as running:
            report, _ = load_json("--rate", "400", "--duration", "500ms", "--warm", "0s", "--same-body", "100%",
                                  running.url + "/changing?10")
        self.assertEqual((report["good"], report["bad"], report["different"]), (180, 20, 20))
        with server() as running:
            report, _ = load_json("--rate", "400", "--duration", "1s", "--warm", "0s", "--same-body", "50%",
                                  running.url + "/changing?2")
        # Half of the 200 others; more than four standard deviations to both sides.
        self.assertEqual(report["different"], report["bad"])
        self.assertAlmostEqual(report["different"], 100, delta=35)
        with server() as running:
            report, _ = load_json(*self.common, running.url + "/changing?2")
        self.assertEqual((report["good"], report["different"]), (30, 0))

    def test_bodies_are_compared_with_those_of_the_same_request(self):
        paths = "\n".join(f"/echo?{word}" for word in ("one", "two", "three", "x" * 10000))
        with server() as running, paths_file(paths + "\n/chunked\n/big\n") as file:
            report, _ = load_json("--rate", "200", "--duration", "1s", "--warm", "0s", "--paths", file, "--same-body", "100%",
                                  "--threads", "2", running.url)
        self.assertEqual((report["good"], report["bad"], report["different"]), (200, 0, 0))

    def test_in_time_is_what_is_asked_for(self):
        with server() as running:
            late, _ = load_json(*self.common, "--in-time", "20ms", running.url + "/slow?50")
            early, _ = load_json(*self.common, "--in-time", "10s", running.url + "/slow?50")
        self.assertEqual((late["good"], late["in_time"]), (30, 0))
        self.assertEqual((early["good"], early["in_time"]), (30, 30))

    def test_a_limit_that_holds_fails_the_run_and_is_named(self):
        cases = ((["p50>10ms"], "p50"), (["p99.9>=10ms"], "p99.9"), (["service-p50>10ms"], "service-p50"), (["max<60s"], "max"),
                 (["good<=30"], "good"), (["in-time<=100%"], "in-time"), (["rate<1000"], "rate"), (["bad>0", "mean>1ms"], "mean"),
                 (["mean>1ms", "bad>0"], "mean"), (["p50>50s"], None), (["p99<1ms"], None), (["bad>0"], None),
                 (["failed>0%", "dropped>0", "different>0"], None), (["rate>1000"], None), (["in-time<1%"], None))
        with server() as running:
            done = together(*[([*self.common, *[word for condition in conditions for word in ("--fail-if", condition)],
                                running.url + "/slow?20"], 1 if holds else 0) for conditions, holds in cases])
        for (report, err), (conditions, holds) in zip(done, cases):
            with self.subTest(conditions=conditions):
                self.assertEqual(report["good"], 30)
                reasons = [line for line in err.splitlines() if line.startswith("tailor load: ")]
                self.assertEqual(len(reasons), 1 if holds else 0, err)
                if holds:
                    self.assertIn(next(condition for condition in conditions if condition.startswith(holds)), reasons[0])

    def test_a_limit_may_be_a_part_of_what_came_due(self):
        with server() as running, paths_file("/ok\n/bad\n") as half:
            together(*[([*self.common, "--order", "round", "--paths", half, "--fail-if", condition, running.url], code)
                       for condition, code in (("bad>40%", 1), ("bad>60%", 0), ("good<60%", 1), ("good<40%", 0))])

    def test_a_schedule_that_was_not_kept_fails_the_run_unless_that_is_allowed(self):
        words = ["--rate", "50", "--duration", "1s", "--warm", "0s", "--connections", "1"]
        with server() as running:
            done = load(*words, running.url + "/slow?60")
            self.assertEqual(done.returncode, 1)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertTrue(done.stderr.startswith("tailor load: "), done.stderr)
            self.assertIn("schedule was not kept", done.stderr)
            self.assertIn("--connections", done.stderr)
            self.assertIn("50 good", done.stdout)
            report, _ = load_json(*words, running.url + "/slow?60")
            self.assertFalse(report["schedule_kept"])
            done = load(*words, "--catch-up", "none", running.url + "/slow?60")
            self.assertEqual(done.returncode, 1)
            self.assertIn("dropped", done.stderr)


class Timelines(unittest.TestCase):
    def test_the_slowest_requests_are_told_with_their_causes(self):
        with tempfile.TemporaryDirectory() as directory, server() as backend, paths_file("/ok\n" * 9 + "/slow?40\n") as paths:
            proxy = Proxy(directory, [("a", backend.port)], "")
            try:
                words = ["--rate", "50", "--duration", "1s", "--warm", "0s", "--order", "round", "--paths", paths,
                         "--timelines", directory + "/timelines", proxy.url]
                report, _ = load_json(*words)
                text = load("--allow-late", *words).stdout
            finally:
                proxy.stop()
        slow = [sample for sample in report["slowest"] if sample["path"] == "/slow?40"]
        self.assertEqual(len(slow), 5)
        for sample in slow:
            self.assertRegex(sample["cause"], r"^in the server, ([3-9]\d(\.\d)?|\d{3}) ms of ")
        self.assertRegex(text, r"/slow\?40  request [0-9a-f]{16}  in the server, ")

    def test_a_store_that_is_not_there_is_told_before_the_load(self):
        done = load("--timelines", "/no/such/store", "http://127.0.0.1:1/")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"^tailor load: /no/such/store does not exist; ")


class Output(unittest.TestCase):
    def test_csv_rows_add_up_to_the_report(self):
        with server() as running, paths_file("/ok\n/bad\n/cut\n/slow?20\n") as paths, tempfile.NamedTemporaryFile("r", newline="") as file:
            report, _ = load_json("--rate", "200", "--duration", "2s", "--warm", "200ms", "--interval", "500ms", "--paths", paths,
                                  "--connections", "8", "--catch-up", "none", "--csv", file.name, running.url)
            text = file.read()
        self.assertEqual(text.count("\n"), text.count("\r\n"))
        rows = list(csv.DictReader(text.splitlines()))
        self.assertIn(len(rows), (4, 5))
        for name in ("good", "bad", "failed", "dropped", "wanted", "in_time"):
            self.assertEqual(sum(int(row[name]) for row in rows), report[name], name)
        self.assertGreater(report["bad"], 50)
        self.assertGreater(report["failed"], 50)
        self.assertAlmostEqual(max(float(row["max_us"]) for row in rows if row["max_us"]) / 1000, report["response"]["max_ms"], places=2)
        for row in rows:
            self.assertRegex(row["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$")

    def test_a_report_that_cannot_be_written_fails_the_run(self):
        common = ["load", "--rate", "50", "--duration", "100ms", "--warm", "0s", "--allow-late"]
        with server() as running, open("/dev/full", "w") as full:
            for words in ([], ["--json"], ["--format", "classic"]):
                done = subprocess.run([TAILOR, *common, *words, running.url], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
                with self.subTest(words=words):
                    self.assertEqual(done.returncode, 1)
                    self.assertIn("cannot write the report", done.stderr)

    def test_forever_ends_with_an_interrupt(self):
        with server() as running:
            process = start_load("--json", "--rate", "100", "--duration", "forever", "--warm", "0s", "--interval", "300ms", running.url)
            time.sleep(1)
            process.send_signal(signal.SIGINT)
            out, err = finish_load(process, timeout=5)
        report = json.loads(out)
        self.assertEqual(report["good"], report["wanted"])
        self.assertGreaterEqual(len(table_lines(err)), 3)
        self.assertEqual(sum(line["wanted"] for line in table_lines(err)), report["wanted"])

    def test_memory_does_not_grow_with_time(self):
        with server(kind=FastServer) as running:
            # What there is from the start is touched for the first time at the end of the first two intervals.
            process = start_load("--rate", "20000", "--duration", "7s", "--warm", "0s", "--interval", "500ms", running.url)
            time.sleep(2)
            early = resident_kib(process.pid)
            time.sleep(4)
            late = resident_kib(process.pid)
            out, _ = finish_load(process)
        self.assertIn("140000 good", out)
        self.assertLess(late - early, 1024)


def resident_kib(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"VmRSS:\s+(\d+) kB", file.read())[1])


class OpenFiles(unittest.TestCase):
    """Connections are open files: the few that are allowed are used, and more are refused before anything is sent."""
    def load(self, url, allowed, connections):
        words = [TAILOR, "load", "--json", "--allow-late", "--closed", "--connections", str(connections), "--threads", "2",
                 "--duration", "200ms", "--warm", "0s", "--csv", "/dev/null", "--hdr", "/dev/null", url]
        return subprocess.run(words, capture_output=True, text=True, timeout=60,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, allowed)))

    def test_a_small_limit_is_enough_for_few_connections(self):
        with server(kind=FastServer) as running:
            done = self.load(running.url, 64 + os.cpu_count(), 16)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual((report["opened"], report["failed"]), (16, 0))

    def test_too_small_a_limit_is_told_with_the_remedy(self):
        done = self.load("http://127.0.0.1:1/", 64 + os.cpu_count(), 65)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("ulimit -n", done.stderr)


class Usage(unittest.TestCase):
    def test_wrong_words_end_with_the_remedy_and_exit_code_2(self):
        good = "http://127.0.0.1:1/"
        for remedy, words in (
                ("http", ["https://127.0.0.1/"]),
                ("requests a second", ["--rate", "fast"]),
                ("--body-file", ["--body-file", "/does/not/exist"]),
                ("at most 256 MiB", ["--body-file", "/dev/zero"]),
                ("--speed", ["--speed", "2"]),
                ("--rate", ["--rate", "100", "--closed"]),
                ("--poisson", ["--poisson", "--closed"]),
                ("--closed", ["--closed", "--replay", "/dev/null"]),
                ("--duration", ["--duration", "never"]),
                ("--replay", ["--replay", "/does/not/exist"]),
                ("--catch-up", ["--catch-up", "sometimes"]),
                ("--format", ["--format", "html"]),
                ("--in-time", ["--in-time", "100"]),
                ("at least 1ns", ["--in-time", "0s"]),
                ("at least 1ms", ["--timeout", "500us"]),
                ("at most 1000h", ["--duration", "2000h"]),
                ("leave out what begins with #", ["http://127.0.0.1:1/page#part"]),
                ("--slack", ["--slack", "fast"]),
                ("--csv", ["--csv", "/does/not/exist"]),
                ("--hdr", ["--hdr", "/does/not/exist"])):
            with self.subTest(words=words):
                usage_error(self, remedy, *words, *([] if "http" in words[0] else [good]))

    def test_wrong_values_are_named(self):
        good = "http://127.0.0.1:1/"
        for option, values in (
                ("--expect-status", ("", "2", "6xx", "200-", "ok", "99", "600", "200,,404")),
                ("--same-body", ("", "x", "101%", "-1%")),
                ("--speed", ("0", "-1", "x", "")),
                ("--fail-if", ("", "p50", "p50>", ">1ms", "p50>1", "p101>1ms", "p50=1ms", "good>1ms", "goood>1", "bad>101%", "rate<x",
                               "service-good>1", "p50>1ms and more"))):
            for value in values:
                words = ["--replay", "/dev/null"] if option == "--speed" else []
                with self.subTest(option=option, value=value):
                    usage_error(self, value if option == "--fail-if" else option, f"{option}={value}", *words, good)

    def test_an_empty_or_wrong_file_is_told_with_its_line(self):
        good = "http://127.0.0.1:1/"
        for text in ("", "# nothing\n\n"):
            with paths_file(text) as file:
                usage_error(self, file, "--paths", file, good)
                usage_error(self, file, "--replay", file, good)
        for line in ("1.x GET /", "1.5 GET", "1.5 GET nowhere", "nonsense"):
            with paths_file(f"1.0 GET /\n{line}\n") as file, self.subTest(line=line):
                usage_error(self, f"{file}:2: ", "--replay", file, good)

    def test_a_file_that_is_no_text_is_refused_rather_than_sent_in_part(self):
        good = "http://127.0.0.1:1/"
        with paths_file("/good\n/one\0/two\n") as file:
            usage_error(self, f"{file}:2: it holds a NUL byte", "--paths", file, good)
        with paths_file("1.0 GET /\n2.0 POST /x body\0more\n") as file:
            usage_error(self, f"{file}:2: it holds a NUL byte", "--replay", file, good)
        for option in ("--paths", "--replay"):
            usage_error(self, "/dev/zero:1: ", option, "/dev/zero", good)  # has no lines, and no end
            with paths_file("no\x1b[2Jrequest\n") as file:
                usage_error(self, "no?[2Jrequest", option, file, good)


if __name__ == "__main__":
    if not os.environ.get("LOAD_SERVER"):
        print("LOAD_SERVER does not name the server to load")
        raise SystemExit(77)
    unittest.main(verbosity=2)
