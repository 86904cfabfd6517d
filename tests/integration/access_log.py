# SPDX-License-Identifier: Apache-2.0
"""The access log and the latency histogram of `tailor proxy`, with real servers and a real load."""
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from load_harness import TAILOR, FastServer, Server, load_json, server
from whole_proxy import Proxy

LINE = re.compile(
    r'127\.0\.0\.1 - - \[[^]]+\] "(?P<request>[^"]*)" (?P<status>\d+) (?P<bytes>\d+) id=(?P<id>[0-9a-f]{16}) server=(?P<server>\S+)'
    r' end=(?P<end>\S+) attempts=(?P<attempts>\d) failover=(?P<failover>\S+) ms=(?P<ms>[\d.]+) head_ms=(?P<head>[\d.]+)'
    r' connect_ms=(?P<connect>[\d.]+) server_ms=(?P<server_ms>[\d.]+) response_ms=(?P<response>[\d.]+) client_ms=(?P<client>[\d.]+)'
    r'(?: refused=(?P<refused>\S+))?$')


@contextlib.contextmanager
def proxy(log_format="text", name="access.log", kind=Server, more=""):
    with tempfile.TemporaryDirectory() as directory, server(kind=kind) as backend:
        log = Path(directory) / name
        running = Proxy(directory, [("a", backend.port)], f"access_log: {{path: {log}, format: {log_format}}}\n{more}")
        try:
            yield running, log
        finally:
            if running.process.poll() is None:
                running.stop()


def get(port, path, method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response


def wait_for(what, seconds=5):
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)


class AccessLog(unittest.TestCase):
    def test_each_request_has_its_line_with_its_id_status_and_phases(self):
        with proxy() as (running, log):
            answers = [get(running.port, "/ok?1"), get(running.port, "/bad"), get(running.port, "/slow?50", "HEAD")]
            running.stop()
            lines = [LINE.match(line) for line in log.read_text().splitlines()]
        self.assertEqual([line["request"] for line in lines],
                         ["GET /ok?1 HTTP/1.1", "GET /bad HTTP/1.1", "HEAD /slow?50 HTTP/1.1"])
        self.assertEqual([int(line["status"]) for line in lines], [answer.status for answer in answers])
        self.assertEqual([line["id"] for line in lines], [answer.headers["X-Tailor-Request-Id"] for answer in answers])
        self.assertEqual({(line["server"], line["end"], line["attempts"], line["failover"]) for line in lines},
                         {("a", "done", "1", "none")})
        self.assertGreaterEqual(float(lines[2]["server_ms"]), 49)
        for line in lines:
            phases = sum(float(line[name]) for name in ("head", "connect", "server_ms", "response", "client"))
            self.assertAlmostEqual(phases, float(line["ms"]), delta=0.01)

    def test_what_the_proxy_refuses_and_whom_nobody_answers_is_there_too(self):
        with proxy() as (running, log):
            with socket.create_connection(("127.0.0.1", running.port)) as hostile:
                hostile.sendall(b"GET / HTTP/1.1\r\nHost : a\r\n\r\n")
                self.assertIn(b" 400 ", hostile.recv(4096))
            running.stop()
            lines = [LINE.match(line) for line in log.read_text().splitlines()]
        self.assertEqual([(line["request"], line["status"], line["server"], line["end"], line["refused"]) for line in lines],
                         [("-", "400", "-", "refused", "malformed")])

    def refused(self, log_format):
        """The lines of requests that were refused by the proxy and of one that was not, and how often the metric has each reason."""
        with proxy(log_format, more="timeouts: {response: 300ms}\n") as (running, log):
            with socket.create_connection(("127.0.0.1", running.port)) as hostile:
                hostile.sendall(b"GET / HTTP/1.1\r\nHost : a\r\n\r\n")
                self.assertIn(b" 400 ", hostile.recv(4096))
            self.assertEqual([get(running.port, path).status for path in ("/hang-up", "/garbage", "/never", "/bad")], [502, 502, 504, 503])
            metrics = running.ask("/metrics")
            running.stop()
            return log.read_text().splitlines(), dict(re.findall(r'tailor_refused_by_total\{reason="(\S+)"\} ([1-9]\d*)', metrics))

    def test_a_refused_request_tells_why_and_which_server_failed_for_how_long(self):
        lines, counted = self.refused("text")
        lines = [LINE.match(line) for line in lines]
        self.assertEqual([(line["status"], line["server"], line["end"], line["refused"]) for line in lines],
                         [("400", "-", "refused", "malformed"), ("502", "a", "refused", "server-failed"), ("502", "a", "refused", "server-failed"),
                          ("504", "a", "refused", "server-late"), ("503", "a", "done", None)])
        self.assertEqual(counted, {"malformed": "1", "server-failed": "2", "server-late": "1"})
        self.assertGreaterEqual(float(lines[3]["server_ms"]), 299)
        for line in lines:
            phases = sum(float(line[name]) for name in ("head", "connect", "server_ms", "response", "client"))
            self.assertAlmostEqual(phases, float(line["ms"]), delta=0.01)

    def test_a_refused_request_tells_the_same_as_json(self):
        lines = [json.loads(line) for line in self.refused("json")[0]]
        self.assertEqual([(line["status"], line["server"], line["end"], line.get("refused")) for line in lines],
                         [(400, None, "refused", "malformed"), (502, "a", "refused", "server-failed"), (502, "a", "refused", "server-failed"),
                          (504, "a", "refused", "server-late"), (503, "a", "done", None)])
        self.assertNotIn("refused", lines[4])
        self.assertGreaterEqual(lines[3]["phases_ms"]["server"], 299)

    def test_json_lines_are_objects(self):
        with proxy("json") as (running, log):
            answer = get(running.port, '/ok?"quoted')
            running.stop()
            lines = [json.loads(line) for line in log.read_text().splitlines()]
        self.assertEqual(len(lines), 1)
        self.assertEqual(lines[0]["id"], answer.headers["X-Tailor-Request-Id"])
        self.assertEqual(lines[0]["request"], 'GET /ok?"quoted')
        self.assertEqual(set(lines[0]["phases_ms"]), {"head", "connect", "server", "response", "client"})

    def test_a_renamed_log_is_opened_anew_by_a_signal_and_no_line_is_missing(self):
        with proxy() as (running, log):
            load = subprocess.Popen([TAILOR, "load", "--json", "--allow-late", "--rate", "500", "--duration", "2s", "--warm", "0s",
                                     running.url + "/ok"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            wait_for(lambda: log.exists() and log.stat().st_size > 0)
            old = log.with_suffix(".1")
            log.rename(old)
            running.process.send_signal(signal.SIGUSR1)
            report = json.loads(load.communicate(timeout=30)[0])
            running.stop()
            counts = [len(old.read_text().splitlines()), len(log.read_text().splitlines())]
        self.assertEqual(report["good"], 1000)
        self.assertEqual(sum(counts), 1000)
        self.assertGreater(min(counts), 0)

    def test_a_reader_that_does_not_read_stops_nothing_and_lost_lines_are_counted(self):
        with tempfile.TemporaryDirectory() as directory:
            os.mkfifo(directory + "/pipe")
            reader = os.open(directory + "/pipe", os.O_RDONLY | os.O_NONBLOCK)
            with proxy(name=directory + "/pipe", kind=FastServer) as (running, _):
                # Several times what may wait.
                report, _ = load_json("--rate", "20000", "--duration", "3s", "--warm", "0s", "--connections", "16", running.url)
                status = json.loads(running.ask("/status"))
                running.stop()
            os.close(reader)
        self.assertGreater(report["good"], 40000)
        self.assertGreater(status["access_log_lost"], 0)

    def test_the_log_can_be_replayed(self):
        with proxy() as (running, log):
            load_json("--rate", "100", "--duration", "1s", "--warm", "0s", running.url + "/ok?x")
            wait_for(lambda: len(log.read_text().splitlines()) == 100)
            copy = log.with_suffix(".copy")
            copy.write_bytes(log.read_bytes())
            report, _ = load_json("--replay", str(copy), running.url)
        self.assertEqual((report["requests"], report["good"]), (100, 100))

    def test_a_log_that_cannot_be_opened_is_a_line_and_no_start(self):
        with tempfile.TemporaryDirectory() as directory:
            config = Path(directory) / "tailor.yaml"
            config.write_text("listen: 127.0.0.1:0\nservers: [{name: a, address: 127.0.0.1:9}]\ntrace: {kernel: off}\n"
                              f"timelines: {{path: {directory}/t}}\naccess_log: {{path: {directory}/no/such/log}}\n")
            done = subprocess.run([TAILOR, "proxy", "-c", config], stderr=subprocess.PIPE, text=True, timeout=20)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^tailor: access_log\.path: cannot open .*/no/such/log: No such file or directory; .*\n$")


class Metrics(unittest.TestCase):
    def test_the_latency_histogram_counts_what_servers_answered(self):
        with proxy() as (running, _):
            load_json("--rate", "100", "--duration", "1s", "--warm", "0s", running.url + "/ok")
            for _ in range(5):
                get(running.port, "/slow?30")
            pattern = r'tailor_response_seconds_bucket\{server="a",le="([^"]+)"\} (\d+)'
            wait_for(lambda: 'tailor_response_seconds_count{server="a"} 105' in running.ask("/metrics"))
            text = running.ask("/metrics")
        buckets = {bound: int(count) for bound, count in re.findall(pattern, text)}
        self.assertEqual(buckets["+Inf"], 105)
        self.assertEqual(list(buckets.values()), sorted(buckets.values()))
        self.assertLessEqual(buckets["0.02"], 100)
        self.assertGreaterEqual(float(re.search(r'tailor_response_seconds_sum\{server="a"\} ([\d.]+)', text)[1]), 0.15)


if __name__ == "__main__":
    unittest.main(verbosity=2)
