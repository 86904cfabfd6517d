# SPDX-License-Identifier: Apache-2.0
"""`tailor load` against a real server: counts, schedule, open loop, failures, usage."""
import fcntl
import json
import os
import re
import signal
import struct
import subprocess
import termios
import threading
import time
import unittest

from load_harness import (TAILOR, finish_load, free_port, load, load_json, paths_file, server, start_load, table_lines, usage_error)


class Schedule(unittest.TestCase):
    def test_every_request_is_sent_once_and_when_it_is_due(self):
        with server() as running:
            report, _ = load_json("--rate", "200", "--duration", "2s", "--warm", "0s", running.url + "/x?y=1")
            arrivals = [request["at"] for request in running.log()["requests"]]
        self.assertEqual((report["requests"], report["good"], report["bad"], report["failed"], report["wanted"]),
                         (400, 400, 0, 0, 400))
        self.assertEqual(len(arrivals), 400)
        self.assertAlmostEqual(report["duration_s"], 2.0, places=6)
        # The machine is shared: single requests may be late, the schedule as a whole may not drift.
        begin = sorted(at - i / 200 for i, at in enumerate(arrivals))[len(arrivals) // 10]
        off = sorted(abs(at - begin - i / 200) for i, at in enumerate(arrivals))
        self.assertLess(off[len(off) // 2], 0.003)

    def test_warm_up_is_sent_but_not_counted(self):
        with server() as running:
            report, _ = load_json("--rate", "100", "--duration", "1s", "--warm", "500ms", running.url)
            self.assertEqual(len(running.log()["requests"]), 150)
        self.assertEqual(report["requests"], 100)

    def test_threads_share_one_schedule(self):
        with server() as running:
            report, _ = load_json("--rate", "301", "--duration", "1s", "--warm", "0s", "--threads", "3", running.url)
            self.assertEqual(len(running.log()["requests"]), 301)
        self.assertEqual(report["good"], 301)

    def test_the_random_order_is_the_same_for_a_seed_and_any_number_of_threads(self):
        with paths_file("\n".join(f"/{i}" for i in range(50))) as paths:
            seen = []
            for words in (["--seed", "7"], ["--seed", "7", "--threads", "2"], ["--seed", "8"]):
                with server() as running:
                    load_json("--rate", "200", "--duration", "500ms", "--warm", "0s", "--paths", paths, *words, running.url)
                    seen.append(sorted(request["path"] for request in running.log()["requests"]))
        self.assertEqual(seen[0], seen[1])
        self.assertNotEqual(seen[0], seen[2])

    def test_a_server_that_stops_for_a_second_shows_in_every_request_that_was_due_then(self):
        with server() as running:
            stopper = threading.Timer(1.2, lambda: (running.pause(), time.sleep(1), running.go_on()))
            stopper.start()
            report, _ = load_json("--rate", "200", "--duration", "4s", "--warm", "0s", "--connections", "20", running.url)
            stopper.join()
        self.assertEqual(report["good"], 800)
        self.assertGreater(report["response"]["max_ms"], 950)
        self.assertLess(report["response"]["max_ms"], 1600)
        self.assertGreater(report["response"]["p999_ms"], 950)
        # A quarter of the requests were due in that second, evenly: the 90th percentile saw about 600 ms of it.
        self.assertGreater(report["response"]["p90_ms"], 450)
        self.assertLess(report["response"]["p50_ms"], 300)
        # Only the 20 on a connection felt it while they were served; the others stood in line.
        self.assertLess(report["service"]["p95_ms"], 300)

    def test_requests_queue_for_the_only_connection_and_their_time_goes_on(self):
        with server() as running:
            report, _ = load_json("--rate", "20", "--duration", "1s", "--warm", "0s", "--connections", "1",
                                  running.url + "/slow?100")
            self.assertEqual(running.log()["most_connections"], 1)
        self.assertEqual(report["good"], 20)
        self.assertGreater(report["response"]["max_ms"], 1000)
        self.assertLess(report["service"]["max_ms"], 500)

    def test_connections_are_opened_as_needed(self):
        with server() as running:
            load_json("--rate", "100", "--duration", "1s", "--warm", "0s", running.url + "/slow?100")
            most = running.log()["most_connections"]
        self.assertGreaterEqual(most, 9)
        self.assertLess(most, 60)


class Answers(unittest.TestCase):
    def test_good_bad_and_failed_are_told_apart(self):
        paths = "# a comment\n/ok\n\n/bad\n/cut\n/garbage\n/moved\n"
        with server() as running, paths_file(paths) as file:
            report, done = load_json("--rate", "100", "--duration", "1s", "--warm", "0s", "--order", "round", "--paths",
                                     file, running.url)
        self.assertEqual((report["good"], report["bad"], report["failed"]), (40, 20, 40))
        self.assertEqual({slow["status"] for slow in report["slowest"]} - {200, 302, 503}, set())

    def test_every_kind_of_framing_is_followed(self):
        paths = "\n".join(["/chunked", "/until-close", "/closing", "/interim", "/no-content", "HEAD /head", "/big", "/ok"])
        with server() as running, paths_file(paths) as file:
            report, _ = load_json("--rate", "80", "--duration", "1s", "--warm", "0s", "--order", "round", "--paths", file,
                                  running.url)
        self.assertEqual((report["good"], report["bad"], report["failed"]), (80, 0, 0))

    def test_method_headers_and_body_arrive(self):
        with server() as running, paths_file("PUT /a some body\nDELETE /b\n/c\n") as file:
            load_json("--rate", "30", "--duration", "100ms", "--warm", "0s", "--order", "round", "--paths", file,
                      "--header", "X-One: 1", "--header", "Host: example.org", "--body", "common", running.url)
            requests = running.log()["requests"]
        self.assertEqual([(r["method"], r["path"], r["body"]) for r in requests],
                         [("PUT", "/a", "some body"), ("DELETE", "/b", "common"), ("POST", "/c", "common")])
        self.assertIn("X-One: 1", requests[0]["fields"])
        self.assertEqual([f for f in requests[0]["fields"] if f.lower().startswith("host:")], ["Host: example.org"])

    def test_a_body_file_is_sent_as_it_is(self):
        with server() as running, paths_file("x\r\ny" * 100000) as file:
            load_json("--rate", "10", "--duration", "200ms", "--warm", "0s", "--method", "PUT", "--body-file", file,
                      running.url + "/z")
            requests = running.log()["requests"]
        self.assertEqual([(r["method"], r["path"], len(r["body"])) for r in requests], [("PUT", "/z", 400000)] * 2)

    def test_the_slowest_request_is_named_by_its_id(self):
        with server() as running:
            report, done = load_json("--rate", "50", "--duration", "1s", "--warm", "0s", running.url + "/slow-once?17")
            self.assertEqual(report["slowest"][0]["request_id"], "17")
            self.assertGreater(report["slowest"][0]["ms"], 290)
            self.assertEqual(report["slowest"][0]["path"], "/slow-once?17")
            self.assertEqual(len(report["slowest"]), 10)
            text = load("--rate", "50", "--duration", "200ms", "--warm", "0s", running.url + "/slow-once?55").stdout
        self.assertRegex(text, r"slowest:\n +[3-9]\d\d ms +200 +/slow-once\?55 +request 55\b")

    def test_a_request_without_an_answer_times_out(self):
        with server() as running:
            begin = time.monotonic()
            report, _ = load_json("--rate", "20", "--duration", "500ms", "--warm", "0s", "--timeout", "300ms",
                                  running.url + "/never", code=1)
            took = time.monotonic() - begin
        self.assertEqual((report["good"], report["bad"], report["failed"]), (0, 0, 10))
        self.assertLess(took, 3)


class Failures(unittest.TestCase):
    def test_an_absent_server_is_counted_at_the_asked_rate_without_a_busy_loop(self):
        report, done = load_json("--rate", "500", "--duration", "2s", "--warm", "0s", f"http://127.0.0.1:{free_port()}/",
                                 code=1)
        self.assertEqual((report["requests"], report["failed"], report["good"]), (1000, 1000, 0))
        self.assertLess(report["cpu_share"], 0.3)
        self.assertIsNone(report["response"]["max_ms"])

    def test_who_refuses_connections_is_named_first(self):
        address = f"127.0.0.1:{free_port()}"
        for arrival in (["--rate", "200"], ["--closed"]):
            done = subprocess.run([TAILOR, "load", *arrival, "--duration", "1s", "--warm", "0s", f"http://{address}/"], capture_output=True,
                                  text=True, timeout=60)
            self.assertEqual(done.returncode, 1)
            said = rf"{re.escape(address)} refused connections: (\d+) of \1 requests failed so; "
            lines = done.stderr.splitlines()
            self.assertRegex(lines[0], "^tailor load: no request succeeded; " + said)
            for line in lines[1:]:
                self.assertRegex(line, "^tailor load: the schedule was not kept: " + said + "is a server up there")
            self.assertNotIn("generator", done.stderr)
            self.assertEqual(len(lines), 2 if "--rate" in arrival else 1)

    def test_a_server_that_comes_back_is_used_again(self):
        with server() as first:
            port = first.port
            process = start_load("--json", "--rate", "100", "--duration", "4s", "--warm", "0s", f"http://127.0.0.1:{port}/")
            time.sleep(1)
            first.stop()
            time.sleep(1)
            with server(port):
                out, _ = finish_load(process)
        report = json.loads(out)
        self.assertEqual(report["good"] + report["failed"], 400)
        self.assertGreater(report["good"], 150)
        self.assertGreater(report["failed"], 50)

    def test_an_interrupt_ends_it_with_the_report(self):
        for name in (signal.SIGINT, signal.SIGTERM):
            with server() as running:
                process = start_load("--json", "--rate", "100", "--duration", "60s", "--warm", "0s", "--interval", "60s",
                                     running.url)
                time.sleep(1)
                process.send_signal(name)
                out, _ = finish_load(process, timeout=5)
            report = json.loads(out)
            self.assertEqual(report["requests"], report["wanted"])
            self.assertEqual(report["good"], report["wanted"])
            self.assertGreater(report["wanted"], 50)
            self.assertLess(report["wanted"], 150)
            self.assertAlmostEqual(report["duration_s"], report["wanted"] / 100, delta=0.05)

    def test_an_interrupt_ends_it_even_while_nobody_reads_its_lines(self):
        with server() as running:
            process = start_load("--rate", "500", "--duration", "60s", "--warm", "0s", "--interval", "1ms", running.url)
            pipe_bytes = fcntl.fcntl(process.stdout, fcntl.F_GETPIPE_SZ)
            deadline = time.monotonic() + 20
            while waiting_bytes(process.stdout) < pipe_bytes - 4096 and time.monotonic() < deadline:
                time.sleep(0.05)
            time.sleep(0.2)
            process.send_signal(signal.SIGTERM)
            time.sleep(1.5)
            sent = len(running.log()["requests"])
            time.sleep(0.5)
            self.assertEqual(len(running.log()["requests"]), sent)
            out, _ = finish_load(process)
        self.assertIn(f"{sent} requests in ", out)

    def test_what_is_under_way_at_an_interrupt_is_not_forgotten(self):
        with server() as running:
            process = start_load("--json", "--rate", "20", "--duration", "60s", "--warm", "0s", "--interval", "60s",
                                 running.url + "/never")
            time.sleep(0.6)
            process.send_signal(signal.SIGINT)
            out, _ = finish_load(process, code=1, timeout=5)
        report = json.loads(out)
        self.assertGreater(report["wanted"], 5)
        self.assertEqual(report["failed"], report["wanted"])


def waiting_bytes(pipe):
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]


class Output(unittest.TestCase):
    def test_json_is_alone_on_standard_output_and_complete(self):
        with server() as running:
            report, done = load_json("--rate", "100", "--duration", "1s", "--warm", "0s", "--interval", "500ms", running.url)
        self.assertGreaterEqual(set(report), {
            "url", "rate", "duration_s", "requests", "good", "bad", "failed", "wanted", "in_time", "dropped", "different", "opened",
            "body_bytes", "arrival", "catch_up", "cpu_s", "cpu_share", "connections", "threads", "slack_us", "schedule_kept",
            "response", "service", "late", "sent", "histogram", "failures", "host_stall", "slowest"})
        names = ["min_ms", "p50_ms", "p90_ms", "p95_ms", "p99_ms", "p999_ms", "p9999_ms", "max_ms"]
        for part in ("response", "service"):
            self.assertEqual(set(report[part]), set(names + ["mean_ms"]))
            values = [report[part][name] for name in names]
            self.assertEqual(values, sorted(values))
            self.assertGreater(values[0], 0)
        self.assertGreaterEqual(report["response"]["min_ms"], report["service"]["min_ms"])
        self.assertEqual(set(report["late"]), {"p99_ms", "max_ms"})
        self.assertEqual(set(report["sent"]), {"p50_ms", "p99_ms", "max_ms"})
        self.assertEqual(set(report["slowest"][0]), {"ms", "request_id", "status", "path", "cause"})
        self.assertEqual(sum(row["count"] for row in report["histogram"]), 100)
        self.assertEqual(sum(report["failures"].values()), 0)
        self.assertEqual(report["body_bytes"], 200)
        self.assertGreaterEqual(report["opened"], 1)
        self.assertGreater(report["cpu_s"], 0)
        self.assertEqual(report["url"], running.url)
        # Null where the machine cannot be watched: without the right to SCHED_FIFO.
        if os.geteuid() == 0:
            stall = report["host_stall"]
            self.assertEqual(set(stall), {"longest_ms", "total_ms", "episodes"})
            self.assertLessEqual(stall["longest_ms"], stall["total_ms"])
            self.assertEqual(stall["episodes"] == 0, stall["total_ms"] == 0)
        lines = re.findall(r"^\d\d:\d\d:\d\d ", done.stderr, re.M)
        self.assertIn(len(lines), (2, 3))  # a late answer has a line of its own

    def test_an_interval_longer_than_the_load_does_not_prolong_it(self):
        with server() as running:
            begin = time.monotonic()
            done = load("--rate", "100", "--duration", "300ms", "--warm", "0s", "--interval", "1m", running.url)
        self.assertLess(time.monotonic() - begin, 5)
        self.assertEqual(len(re.findall(r"^\d\d:\d\d:\d\d +30 ", done.stdout, re.M)), 1)

    def test_a_line_an_interval_adds_up_to_the_total(self):
        with server() as running:
            done = load("--rate", "100", "--duration", "2s", "--warm", "0s", "--interval", "400ms", "--allow-late", running.url)
        self.assertEqual(done.returncode, 0)
        self.assertIn(len(re.findall(r"^\d\d:\d\d:\d\d ", done.stdout, re.M)), (5, 6))  # a late answer has a line of its own
        lines = table_lines(done.stdout)
        self.assertEqual(sum(line["good"] for line in lines), 200)
        self.assertEqual([line["wanted"] for line in lines][:5], [40] * 5)
        for line in lines[:5]:
            times = [line[name] for name in ("min", "p50", "p95", "p99", "p999", "max")]
            self.assertEqual(times, sorted(times))
        self.assertEqual(len({line.index("[") for line in done.stdout.splitlines() if re.match(r"\d\d:\d\d:\d\d ", line)}), 1)
        self.assertIn("200 good, 0 bad, 0 failed", done.stdout)
        for word in ("response time", "service time", "p99.99", "generator:", "slowest:"):
            self.assertIn(word, done.stdout)


class Usage(unittest.TestCase):
    def check(self, remedy, *words):
        usage_error(self, remedy, *words)

    def test_wrong_words_end_with_the_remedy_and_exit_code_2(self):
        good = "http://127.0.0.1:1/"
        self.check("name the server")
        self.check("not supported yet", "https://127.0.0.1/")
        self.check("write it like http://", "127.0.0.1:8080")
        self.check("write it like http://", "http:///x")
        self.check("write it like http://", "http://example.org/")
        self.check("write it like http://", "http://127.0.0.1:99999/")
        self.check("write it like http://", "http://127.0.0.1:0/")
        self.check("write it like http://", "ftp://127.0.0.1/")
        self.check("escape it", "http://127.0.0.1/a b")
        self.check("escape it", "http://127.0.0.1/\u00e4")
        self.check("leave out what begins with #", "http://127.0.0.1/#part")
        self.check("one word too many", good, "more")
        for rate in ("0", "-1", "x", "1e9", "nan", "inf", "", "5/m", "2000000"):
            self.check("requests a second", f"--rate={rate}", good)
        for time_text in ("10", "x", "-1s", "0s"):
            self.check("with its unit", f"--duration={time_text}", good)
        self.check("no request becomes due", "--duration", "1ms", "--rate", "1", good)
        self.check("1 to 100000", "--connections", "0", good)
        self.check("at least as many --connections", "--connections", "1", "--threads", "2", good)
        self.check("neither random nor round", "--order", "sorted", good)
        self.check("write it like", "--header", "nonsense", good)
        self.check("no valid request", "--header", "X Y: z", good)
        self.check("no valid request", "--header", "Content-Length: 3", good)
        self.check("no valid request", "--method", "GE T", good)
        self.check("not both", "--body", "x", "--body-file", "/dev/null", good)
        self.check("give a readable file", "--body-file", "/does/not/exist", good)
        self.check("give a readable file", "--paths", "/does/not/exist", good)
        self.check("give a readable file", "--paths", "/", good)

    def test_a_wrong_paths_file_is_told_with_its_line(self):
        good = "http://127.0.0.1:1/"
        with paths_file("") as file:
            self.check("holds no paths", "--paths", file, good)
        with paths_file("# only this\n\n") as file:
            self.check("holds no paths", "--paths", file, good)
        with paths_file("/good\nbad\n") as file:
            self.check(f"{file}:2: ", "--paths", file, good)
        with paths_file("/good\n\n/with space\n") as file:
            self.check(f"{file}:3: ", "--paths", file, good)

    def test_help_teaches(self):
        done = load("--help")
        self.assertEqual(done.returncode, 0)
        for word in ("--rate", "--paths", "open-loop", "RESPONSE TIME", "Examples:", "Exit code"):
            self.assertIn(word, done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
