# SPDX-License-Identifier: Apache-2.0
"""A group of three servers as its configuration, its status and its metrics have it; what may be sent twice, by route."""
import http.client
import json
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from whole_proxy import Proxy


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with self.server.lock:
            self.server.taken.append((self.command, self.path, body))
        if self.server.dies:
            self.close_connection = True
            return
        self.send_response(200)
        self.send_header("Content-Length", "1")
        self.end_headers()
        self.wfile.write(self.server.name)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, name):
        super().__init__(("127.0.0.1", 0), Handler)
        self.name, self.lock, self.taken, self.dies = name.encode(), threading.Lock(), [], False
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()


class Groups(unittest.TestCase):
    def start(self, more):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.servers = [Server(name) for name in "abc"]
        for server in self.servers:
            self.addCleanup(server.server_close)
            self.addCleanup(server.shutdown)
        self.proxy = Proxy(directory.name, [(server.name.decode(), server.server_port) for server in self.servers], more)
        self.addCleanup(self.proxy.stop)
        self.config = Path(directory.name) / "tailor.yaml"

    def ask(self, path="/", body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy.port, timeout=10)
        connection.request("POST" if body else "GET", path, body)
        response = connection.getresponse()
        answer = response.status, response.read()
        connection.close()
        return answer

    def reload(self, old, new):
        text = self.config.read_text()
        self.assertIn(old, text)
        self.config.write_text(text.replace(old, new))
        return self.proxy.answer("/reload", "POST")

    def status(self):
        return json.loads(self.proxy.ask("/status"))

    def test_each_server_is_told_of_and_the_mode_can_change(self):
        self.start("mode: balanced\nfailover: {when: always}\n")
        self.assertEqual({self.ask()[1] for _ in range(12)}, {b"a", b"b", b"c"})
        status = self.status()
        self.assertEqual((status["mode"], status["active"]), ("balanced", None))
        self.assertEqual([(s["name"], s["requests"] > 0, s["moved_here"], s["moved_away"]) for s in status["servers"]],
                         [(name, True, 0, 0) for name in "abc"])
        metrics = self.proxy.ask("/metrics")
        for name in "abc":
            self.assertIn(f'tailor_server_active{{server="{name}"}} 1\n', metrics)
            self.assertIn(f'tailor_server_moved_here_total{{server="{name}"}} 0\n', metrics)
            self.assertIn(f'tailor_response_seconds_count{{server="{name}"}}', metrics)
        for reason in ("short", "budget", "both-paused"):
            self.assertIn(f'tailor_not_moved_total{{reason="{reason}"}} 0\n', metrics)
        self.assertEqual(self.proxy.answer("/swap", "POST"), (409, "all servers are active: mode is balanced\n"))
        self.assertEqual(self.reload("mode: balanced", "mode: active-backup"), (200, ""))
        self.assertEqual({self.ask()[1] for _ in range(6)}, {b"a"})
        self.assertEqual((self.status()["mode"], self.status()["active"]), ("active-backup", "a"))
        self.assertEqual(self.proxy.answer("/swap", "POST"), (200, "done\n"))
        self.assertEqual({self.ask()[1] for _ in range(6)}, {b"b"})
        self.assertIn('tailor_server_active{server="a"} 0\n', self.proxy.ask("/metrics"))

    def test_a_post_is_sent_again_where_a_route_allows_it(self):
        self.start('failover: {replay: [GET, "POST /*/_search"]}\n')
        body = b"x" * 40000
        self.servers[0].dies = True
        status, answer = self.ask("/books/_search?size=3", body)
        self.assertEqual(status, 200)
        self.assertIn(answer, (b"b", b"c"))
        taken = [request for server in self.servers for request in server.taken]
        self.assertEqual(taken, [("POST", "/books/_search?size=3", body)] * 2)
        for server in self.servers:
            server.taken.clear()
        while self.status()["active"] != "a":
            self.proxy.answer("/swap", "POST")
        self.assertEqual(self.ask("/books/_doc", body)[0], 502)
        self.assertEqual(sum((server.taken for server in self.servers), []), [("POST", "/books/_doc", body)])
        # The other way round.
        self.assertEqual(self.reload("/*/_search", "/*/_doc"), (200, ""))
        self.assertEqual(self.ask("/books/_doc", body)[0], 200)
        self.assertEqual(self.ask("/books/_search", body)[0], 502)
        status, text = self.reload("/*/_doc", "_doc")
        self.assertEqual(status, 409)
        self.assertRegex(text, r'tailor\.yaml:9: failover\.replay: the path "_doc" does not begin with /')
        self.assertEqual(self.ask("/books/_doc", body)[0], 200)


if __name__ == "__main__":
    unittest.main(verbosity=2)
