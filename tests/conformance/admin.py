#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The admin interface tells a wrong method from a wrong path (RFC 9110, 15.5.5 and 15.5.6)."""
import http.client
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time

CASES = [  # method, path, status, Allow
    ("GET", "/status", 200, None), ("HEAD", "/status", 200, None), ("GET", "/metrics", 200, None),
    ("POST", "/status", 405, "GET, HEAD"), ("DELETE", "/status", 405, "GET, HEAD"), ("POST", "/metrics", 405, "GET, HEAD"),
    ("GET", "/swap", 405, "POST"), ("PUT", "/swap", 405, "POST"), ("POST", "/swap", 409, None),
    ("GET", "/", 404, None), ("POST", "/nothing", 404, None), ("GET", "/status/", 404, None), ("GET", "/statusx", 404, None),
]


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=5)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def ask(path, method, target, body=None):
    deadline = time.monotonic() + 10
    while True:
        connection = UnixConnection(path)
        try:
            connection.request(method, target, body)
            response = connection.getresponse()
            return response.status, response.getheader("Allow"), response.read()
        except (FileNotFoundError, ConnectionRefusedError):
            assert time.monotonic() < deadline, "the admin interface does not come up"
            time.sleep(0.02)
        finally:
            connection.close()


with tempfile.TemporaryDirectory() as name:
    directory = pathlib.Path(name)
    admin = directory / "admin.sock"
    (directory / "tailor.yaml").write_text(
        "listen: 127.0.0.1:0\nservers:\n  - {name: a, address: 127.0.0.1:1}\n"
        f'timelines: {{path: {directory}/timelines}}\nadmin: {{listen: "unix:{admin}"}}\ntrace: {{kernel: "off"}}\n')
    proxy = subprocess.Popen([os.environ["TAILOR"], "proxy", "-c", directory / "tailor.yaml"], stderr=subprocess.PIPE, text=True)
    try:
        for method, target, status, allow in CASES:
            for body in (None, b"x=y") if method in ("POST", "PUT") else (None,):
                got = ask(admin, method, target, body)
                assert got[:2] == (status, allow), f"{method} {target}: {got}"
                assert bool(got[2]) == (method != "HEAD"), f"{method} {target}: {got}"
        print(f"{len(CASES)} cases passed")
    finally:
        proxy.send_signal(signal.SIGTERM)
        try:
            proxy.wait(10)
        except subprocess.TimeoutExpired:
            proxy.kill()
    assert proxy.returncode == 0, proxy.stderr.read()
