# SPDX-License-Identifier: Apache-2.0
"""What the tests of `tailor proxy --take-over` share: proxies that follow each other, and a new one that this process plays."""
import array
import json
import os
import re
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

from load_harness import TAILOR, server

HELLO, OFFER, READY, YOURS, SERVING, FAILED = range(1, 7)
MESSAGE = struct.Struct("=QIIIIII400s")  # magic, version, kind, parts, listeners, uid, pid, text
MAGIC = 0x3152564F4C494154
SEQPACKET = socket.SOCK_SEQPACKET


class Process:
    """One `tailor proxy`; what it says is collected."""

    def __init__(self, config, *more):
        self.lines, self.changed = [], threading.Condition()
        self.popen = subprocess.Popen([TAILOR, "proxy", "-c", config, *more], stderr=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.popen.stderr:
            with self.changed:
                self.lines.append(line.rstrip())
                self.changed.notify_all()
        with self.changed:
            self.lines.append("")
            self.changed.notify_all()

    def said(self, pattern, seconds=15):
        def found():
            return [match for match in (re.search(pattern, line) for line in self.lines) if match]
        with self.changed:
            self.changed.wait_for(lambda: found() or (self.lines and self.lines[-1] == ""), seconds)
            assert found(), (pattern, self.lines)
            return found()[0]

    def end(self, seconds=15):
        code = self.popen.wait(seconds)
        self.reader.join()
        self.popen.stderr.close()
        return code

    def kill(self):
        if self.popen.poll() is None:
            self.popen.kill()
        if not self.popen.stderr.closed:
            self.end()


class TakeOver(unittest.TestCase):
    """A proxy that serves, in self.old, and what can take over from it."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        backend = server()
        self.backend = backend.__enter__()
        self.addCleanup(backend.__exit__, None, None, None)
        self.admin = self.directory / "admin.sock"
        self.socket = self.directory / "timelines/take-over.sock"
        self.config = self.directory / "tailor.yaml"
        self.text = (f"listen: 127.0.0.1:0\nworkers: 2\nservers: [{{name: a, address: 127.0.0.1:{self.backend.port}}}]\ntrace: {{kernel: off}}\n"
                     f"timelines: {{path: {self.directory}/timelines}}\nadmin: {{listen: 'unix:{self.admin}'}}\n"
                     f"agent: {{socket: {self.directory}/agent.sock}}\naccess_log: {{path: {self.directory}/access.log, format: json}}\n"
                     "slow: {threshold: 200ms, baseline_one_in: 0}\ntimeouts: {stop: 4s}\n")
        self.config.write_text(self.text)
        self.processes = []
        self.old = self.start()
        self.port = int(self.old.said(r"serving 127\.0\.0\.1:(\d+)")[1])

    def start(self, *more, config=None):
        process = Process(config or self.config, *more)
        self.addCleanup(process.kill)
        return process

    def take_over(self):
        """Replaces the process that serves, and returns the one before."""
        began = time.monotonic()
        new, old = self.start("--take-over"), self.old
        self.assertEqual(int(new.said(r"serving 127\.0\.0\.1:\d+, taken over from pid (\d+)")[1]), old.popen.pid)
        self.took = time.monotonic() - began
        old.said(f"pid {new.popen.pid} serves now")
        self.old = new
        return old

    def ask(self, path, method="GET", seconds=5):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(seconds)
            connection.connect(str(self.admin))
            connection.sendall(f"{method} {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n".encode())
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        return int(answer.split()[1]), answer.split(b"\r\n\r\n", 1)[1].decode()

    def get(self, path):
        with socket.create_connection(("127.0.0.1", self.port), 10) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n".encode())
            return b"".join(iter(lambda: connection.recv(65536), b""))

    def stored(self):
        dumped = subprocess.run([TAILOR, "dump", self.directory / "timelines", "--json"], capture_output=True, text=True)
        return [timeline["target"] for timeline in json.loads(dumped.stdout)["timelines"]] if dumped.stdout else []

    def wait_stored(self, count):
        """Until the process that serves has written so many timelines."""
        deadline = time.monotonic() + 30
        while json.loads(self.ask("/status")[1])["timelines"]["stored"] < count:
            self.assertLess(time.monotonic(), deadline, "timelines are not stored")
            time.sleep(0.05)

    def speak(self, until, then=lambda: None):
        """A new process that gets as far as `until`, does something and ends. Returns what it was offered."""
        with socket.socket(socket.AF_UNIX, SEQPACKET) as connection:
            connection.settimeout(10)
            connection.connect(str(self.socket))
            offered = []

            def send(kind, parts=0):
                connection.send(MESSAGE.pack(MAGIC, 1, kind, parts, 0, 0, 0, b"test"))

            def hear(kind):
                data, rights, _, _ = connection.recvmsg(4096, socket.CMSG_SPACE(4 * 32))
                for _, _, fds in rights:
                    offered.extend(array.array("i", fds[:len(fds) // 4 * 4]))
                self.assertEqual(MESSAGE.unpack(data)[2], kind)

            for step, act in (("hello", lambda: send(HELLO)), ("offer", lambda: hear(OFFER)), ("ready", lambda: send(READY, 15)),
                              ("yours", lambda: hear(YOURS))):
                act()
                if step == until:
                    break
            if until == "nonsense":
                connection.send(b"nonsense")
            then()
            for fd in offered:
                os.close(fd)
            return offered
