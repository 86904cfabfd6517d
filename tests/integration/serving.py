# SPDX-License-Identifier: Apache-2.0
"""What a configuration says about serving reaches those who are served: limits, what servers are told, other protocols."""
import json
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from load_harness import TAILOR
from proxy_harness import Backend, Client, ok
from whole_proxy import Proxy

CONFIG = """\
slow: {threshold: 100ms, baseline_one_in: 0}
limits: {per_address: 3, in_flight: 1, queue: 1, fields: 20, body_size: 1000, replay_buffer: 32KiB, replay_total: 1MiB}
timeouts: {head: 300ms, queue: 200ms, request: 2s}
forwarded: {via: edge-7, x_forwarded: true, forwarded: true}
upgrade: [websocket]
"""


class Serving(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.backend = Backend(self.answer, read_body=False)
        self.addCleanup(self.backend.stop)
        self.proxy = Proxy(directory.name, [("a", self.backend.port)], CONFIG)
        self.addCleanup(self.proxy.stop)

    def answer(self, request, connection):
        if request.field("Upgrade"):
            connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n")
            connection.sendall(request.stream.read1(100))
            return None
        if request.target == "/slow":
            time.sleep(0.6)
        return ok(b"x")

    def get(self, path="/", headers="", body=b"", method="GET"):
        with Client(self.proxy.port) as client:
            client.send(f"{method} {path} HTTP/1.1\r\nHost: h\r\n{headers}\r\n".encode() + body)
            return client.response()

    def refused(self, reason, number):
        deadline = time.monotonic() + 3
        while json.loads(self.proxy.ask("/status"))["refused_by"][reason] != number:
            self.assertLess(time.monotonic(), deadline, self.proxy.ask("/status"))
            time.sleep(0.01)
        self.assertIn(f'tailor_refused_by_total{{reason="{reason}"}} {number}\n', self.proxy.ask("/metrics"))

    def wait_for_no_client(self):
        """Until the proxy has seen the last one leave: it still counts until then."""
        deadline = time.monotonic() + 3
        while json.loads(self.proxy.ask("/status"))["clients"] != 0:
            self.assertLess(time.monotonic(), deadline, self.proxy.ask("/status"))
            time.sleep(0.01)

    def test_servers_and_clients_are_told_the_way(self):
        response = self.get()
        self.assertEqual(response.field("Via"), "1.1 edge-7")
        request = self.backend.requests[0]
        self.assertEqual([request.field(name) for name in ("Via", "X-Forwarded-For", "Forwarded")],
                         ["1.1 edge-7", "127.0.0.1", "for=127.0.0.1;host=h;proto=http"])

    def test_limits_hold_and_are_counted(self):
        self.assertEqual(self.get(headers="A: b\r\n" * 20).status, 431)
        self.assertEqual(self.get(method="POST", headers="Content-Length: 1001\r\n").status, 413)
        self.refused("head", 1)
        self.refused("body", 1)
        with Client(self.proxy.port) as client:
            client.send(b"GET")
            begin = time.monotonic()
            self.assertEqual(client.response().status, 408)
            self.assertLess(time.monotonic() - begin, 2)
        self.wait_for_no_client()
        clients = [socket.create_connection(("127.0.0.1", self.proxy.port)) for _ in range(4)]
        self.assertTrue(clients[3].recv(100).startswith(b"HTTP/1.1 429 "))
        for client in clients:
            client.close()
        self.refused("per-address", 1)

    def test_a_full_server_makes_requests_wait_and_the_timeline_says_so(self):
        results = []
        threads = [threading.Thread(target=lambda: results.append(self.get("/slow").status)) for _ in range(3)]
        for thread in threads:
            thread.start()
            time.sleep(0.05)
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(results), [200, 503, 503])
        self.refused("queue-full", 1)
        self.refused("queue-late", 1)
        self.assertIn("tailor_queued 0\n", self.proxy.ask("/metrics"))
        deadline = time.monotonic() + 5
        while "limits.in_flight" not in (said := self.dump()):
            self.assertLess(time.monotonic(), deadline, said)
            time.sleep(0.05)
        self.assertIn("waiting for a place at the server", said)

    def dump(self):
        return subprocess.run([TAILOR, "dump", "--cause", "limit-wait", self.proxy.directory / "timelines"], check=False,
                              stdout=subprocess.PIPE, text=True).stdout

    def test_a_protocol_that_is_allowed_passes(self):
        with Client(self.proxy.port) as client:
            client.send(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: h2c, websocket\r\n\r\nhello")
            self.assertEqual(client.response(interim=True).status, 101)
            self.assertEqual(client.exactly(5), b"hello")
            self.assertEqual(json.loads(self.proxy.ask("/status"))["tunnels"], 1)
        self.assertEqual(self.backend.requests[0].field("Upgrade"), "websocket")
        self.assertIn("tailor_tunnels_total 1\n", self.proxy.ask("/metrics"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
