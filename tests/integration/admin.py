# SPDX-License-Identifier: Apache-2.0
"""The admin interface answers whoever asks, whatever others do on it."""
import json
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.request

from load_harness import TAILOR, free_port, server
from whole_proxy import Proxy


class Admin(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        backend = server()
        port = backend.__enter__().port
        self.addCleanup(backend.__exit__, None, None, None)
        self.proxy = Proxy(directory.name, [("a", port)], "")
        self.addCleanup(self.proxy.stop)
        self.held = []
        self.addCleanup(lambda: [connection.close() for connection in self.held])

    def hold(self, data=b""):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(15)
        connection.connect(str(self.proxy.admin))
        self.held.append(connection)
        if data:
            connection.sendall(data)
        return connection

    def answered_soon(self):
        began = time.monotonic()
        self.assertIn("requests", json.loads(self.proxy.ask("/status")))
        self.assertLess(time.monotonic() - began, 2, "the admin interface was shut out")

    def test_who_asks_nothing_keeps_nobody_out(self):
        for _ in range(40):
            self.hold()
        self.answered_soon()

    def test_who_never_ends_his_request_keeps_nobody_out(self):
        for number in range(40):
            self.hold(b"GET /status HTTP/1.1\r\nHost: t\r\n" + b"X: y\r\n" * (number % 3))
        for _ in range(3):
            self.answered_soon()

    def test_who_does_not_read_his_answer_keeps_nobody_out(self):
        for _ in range(40):
            self.hold(b"GET /metrics HTTP/1.1\r\nHost: t\r\n\r\n" * 100)
        self.answered_soon()

    def test_many_who_ask_are_all_answered(self):
        asking = [self.hold(b"GET /status HTTP/1.1\r\nHost: t\r\n\r\n") for _ in range(12)]
        for connection in asking:
            self.assertTrue(connection.recv(65536).startswith(b"HTTP/1.1 200"))
        # And again on the same connections.
        for connection in asking:
            connection.sendall(b"GET /status HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")
        for connection in asking:
            self.assertTrue(b"".join(iter(lambda: connection.recv(65536), b"")).startswith(b"HTTP/1.1 200"))

    def test_a_silent_one_is_let_go(self):
        silent = self.hold(b"GET /sta")
        began = time.monotonic()
        while silent.recv(65536):
            pass
        self.assertLess(time.monotonic() - began, 9)


class Doctor(unittest.TestCase):
    def test_a_server_that_takes_no_connections_has_a_line(self):
        with server() as backend, tempfile.TemporaryDirectory() as directory:
            gone = free_port()
            proxy = Proxy(directory, [("gone", gone), ("there", backend.port)], "")
            self.addCleanup(proxy.stop)
            self.assertNotIn("server gone", self.found(proxy))  # nobody has tried yet
            deadline = time.monotonic() + 10
            while json.loads(proxy.ask("/status"))["servers"][0]["state"] != "down":
                self.assertLess(time.monotonic(), deadline)
                with urllib.request.urlopen(proxy.url + "/ok", timeout=10) as answer:
                    answer.read()
            found = self.found(proxy)
            self.assertEqual(found["server gone"]["standing"], "missing")
            self.assertIn(f"127.0.0.1:{gone} took no connection the last time", found["server gone"]["text"])
            is_active = json.loads(proxy.ask("/status"))["active"] == "gone"
            self.assertEqual("though it is the active one" in found["server gone"]["text"], is_active)
            self.assertNotIn("server there", found)

    def found(self, proxy):
        done = subprocess.run([TAILOR, "doctor", "--json", "-c", proxy.directory / "tailor.yaml"], capture_output=True, text=True, timeout=60)
        return {finding["what"]: finding for finding in json.loads(done.stdout)["findings"]}


unittest.main()
