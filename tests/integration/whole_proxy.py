# SPDX-License-Identifier: Apache-2.0
"""`tailor proxy` without kernel tracing, for tests that need a proxy rather than test it."""
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

from load_harness import TAILOR


class Proxy:
    def __init__(self, directory, servers, more, kernel="off", session=False):
        self.directory = Path(directory)
        self.admin = self.directory / "admin.sock"
        config = self.directory / "tailor.yaml"
        listed = "".join(f"  - {{name: {name}, address: 127.0.0.1:{port}}}\n" for name, port in servers)
        config.write_text(f"listen: 127.0.0.1:0\nservers:\n{listed}trace: {{kernel: {kernel}}}\n"
                          f"timelines: {{path: {self.directory}/timelines}}\nadmin: {{listen: 'unix:{self.admin}'}}\n{more}")
        self.process = subprocess.Popen([TAILOR, "proxy", "-c", config], stderr=subprocess.PIPE, text=True, start_new_session=session)
        self.port = None
        self.before = ""  # what it said before it served
        for line in self.process.stderr:
            found = re.match(r"tailor: serving 127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found[1])
                break
            self.before += line
        assert self.port, "the proxy did not start"
        self.url = f"http://127.0.0.1:{self.port}"

    def said(self, pattern, seconds=5):
        """Reads what it says until a line matches."""
        deadline = time.monotonic() + seconds
        for line in self.process.stderr:
            if re.search(pattern, line):
                return line
            assert time.monotonic() < deadline, f"it did not say {pattern}"
        raise AssertionError(f"it ended without saying {pattern}")

    def ask(self, path, method="GET"):
        return self.answer(path, method)[1]

    def answer(self, path, method="GET"):
        """Status and body of the admin interface."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.admin))
            connection.sendall(f"{method} {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n".encode())
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        return int(answer.split()[1]), answer.split(b"\r\n\r\n", 1)[1].decode()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)
        self.process.stderr.close()
