# SPDX-License-Identifier: Apache-2.0
"""The admin interface answers whoever asks, whatever others do on it."""
import json
import socket
import tempfile
import time
import unittest

from load_harness import server
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


unittest.main()
