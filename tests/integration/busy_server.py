# SPDX-License-Identifier: Apache-2.0
"""A server whose threads make as many scheduling events as a test wants. Prints its port.

/work?ms=M&sleep=S   works M ms, sleeps S seconds, works M ms and answers
/noise?rounds=R      two threads pass a token R times a second from now on; 0: as fast as they can; -1: nobody does
"""
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

rounds = -1


def pass_on(source, target, is_first):
    while rounds >= 0:
        os.read(source, 1)
        if is_first and rounds > 0:
            time.sleep(1 / rounds)
        os.write(target, b"t")


def make_noise(wanted):
    global rounds
    was, rounds = rounds, wanted
    if wanted < 0 or was >= 0:
        return
    there, back = os.pipe(), os.pipe()
    threading.Thread(target=pass_on, args=(there[0], back[1], True), daemon=True).start()
    threading.Thread(target=pass_on, args=(back[0], there[1], False), daemon=True).start()
    os.write(there[1], b"t")


def work(milliseconds):
    end = time.thread_time() + milliseconds / 1000
    while time.thread_time() < end:
        pass


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        parts = urlsplit(self.path)
        query = {key: float(values[0]) for key, values in parse_qs(parts.query).items()}
        if parts.path == "/noise":
            make_noise(query["rounds"])
        if parts.path == "/work":
            work(query["ms"])
            time.sleep(query["sleep"])
            work(query["ms"])
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    def log_message(self, *arguments):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_port, flush=True)
sys.stdout.close()
server.serve_forever()
