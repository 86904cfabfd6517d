# SPDX-License-Identifier: Apache-2.0
"""What the tests of `tailor load` share: servers to load, running it, reading its lines."""
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile

TAILOR = os.environ["TAILOR"]
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.dirname(HERE))
from freezes import Freezes  # noqa: E402, F401


class Server:
    """load_server.py, which answers as the path says and remembers what came."""
    command = [sys.executable, os.path.join(HERE, "load_server.py")]

    def __init__(self, port=0):
        self.process = subprocess.Popen([*self.command, str(port)], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())
        self.url = f"http://127.0.0.1:{self.port}"

    def log(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request("GET", "/log")
        text = connection.getresponse().read()
        connection.close()
        return json.loads(text)

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class FastServer(Server):
    """The benchmark's: knows one answer and no log, but takes any load."""
    command = [os.environ.get("LOAD_SERVER", "")]


@contextlib.contextmanager
def server(port=0, kind=Server):
    running = kind(port)
    try:
        yield running
    finally:
        running.stop()


@contextlib.contextmanager
def paths_file(text):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(text)
        file.flush()
        yield file.name


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def load(*words, timeout=60):
    return subprocess.run([TAILOR, "load", *words], capture_output=True, text=True, timeout=timeout)


def start_load(*words):
    """To be awaited by finish_load(). Its schedule need not be kept: this machine, shared, may stand still in any test."""
    return subprocess.Popen([TAILOR, "load", "--allow-late", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish_load(process, code=0, timeout=60):
    try:
        out, err = process.communicate(timeout=timeout)
    finally:
        process.kill()
    assert process.returncode == code, (process.returncode, err)
    return out, err


def load_json(*words, code=0):
    process = start_load("--json", *words)
    out, err = finish_load(process, code)
    return json.loads(out), subprocess.CompletedProcess(process.args, process.returncode, out, err)


def milliseconds(text):
    """"85.0us", "1.65 ms" or "5.00s"; None for "-"."""
    found = re.fullmatch(r"([\d.]+) ?(ns|us|ms|s)", text.strip())
    return float(found[1]) * {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1000}[found[2]] if found else None


TIME = r"\s*(-|[\d.]+ ?(?:ns|us|ms|s))\s*"
TABLE_LINE = re.compile(r"(?P<time>\d\d:\d\d:\d\d)\s+(?P<counts>(?:\d+\s+){4,5})(?P<in_time>[\d.]+%?|-)\s+" + TIME +
                        r"\[" + TIME * 4 + r"\]" + TIME + r"(?P<mark>.*)")


def table_lines(text):
    """The interval lines of the table format as dictionaries; times in ms."""
    lines = []
    for line in text.splitlines():
        found = TABLE_LINE.fullmatch(line)
        if not found:
            assert not re.match(r"\d\d:\d\d:\d\d ", line), line
            continue
        counts = [int(word) for word in found["counts"].split()]
        times = [milliseconds(found[group]) for group in range(4, 10)]
        lines.append({"good": counts[0], "bad": counts[1], "failed": counts[2], "dropped": counts[3] if len(counts) == 5 else 0,
                      "wanted": counts[-1], "in_time": None if found["in_time"] == "-" else float(found["in_time"].rstrip("%")),
                      **dict(zip(("min", "p50", "p95", "p99", "p999", "max"), times)), "mark": found["mark"].strip()})
    return lines


CLASSIC_LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ +(\d+)/(\d+)/(\d+) +(\d+) +(\d+)% +(\S+) +(\d+) \[ *(\d+) +(\d+) +(\d+) +(\d+) "
                          r"\] +(\d+) ?([+-]*)")


def classic_lines(text):
    """Those of the classic format; times in whole ms."""
    names = ("good", "bad", "failed", "wanted", "percent", "interval", "min", "p50", "p95", "p99", "p999", "max", "mark")
    lines = []
    for line in text.splitlines():
        found = CLASSIC_LINE.fullmatch(line)
        if not found:
            assert not re.match(r"\d{4}-", line), line
            continue
        lines.append({name: int(value) if value.isdigit() else value for name, value in zip(names, found.groups())})
    return lines


def usage_error(test, remedy, *words):
    """Wrong words: exit code 2 and one line that says what to do."""
    done = load(*words)
    test.assertEqual(done.returncode, 2, (words, done.stderr))
    test.assertEqual(done.stdout, "")
    lines = [line for line in done.stderr.splitlines() if not line.startswith("Try ")]
    test.assertEqual(len(lines), 1, (words, lines))
    test.assertTrue(lines[0].startswith("tailor load: "), lines)
    test.assertIn(remedy, lines[0])
