# SPDX-License-Identifier: Apache-2.0
"""Servers that wait for their test's permission to answer, and a proxy before them that is told when they stand still."""
import threading

from proxy_harness import *


class Group:
    """So many of them, with their JVMs attached."""

    def __init__(self, count, **options):
        self.gate = [threading.Event() for _ in range(count)]
        self.backend = [Backend(lambda r, c, i=i: self.answer(r, c, i)) for i in range(count)]
        self.proxy = Proxy(*self.backend, **options)
        for server in range(count):
            self.proxy.command(f"attach {server}")

    def answer(self, request, connection, server):
        if request.target.startswith("/gated"):
            assert self.gate[server].wait(10)
        if request.target.startswith("/begun"):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n" + b"%d" % server * 5)
            assert self.gate[server].wait(10)
            return b"%d" % server * 5
        if request.target.startswith("/headless"):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Le")
            assert self.gate[server].wait(10)
            return b"ngth: 1\r\n\r\n%d" % server
        return ok(b"%d" % server)

    def send(self, text="GET /gated HTTP/1.1\r\nHost: x\r\n\r\n", body=b"", at=0):
        before = len(self.backend[at].requests)
        client = self.proxy.connect()
        client.send(text.encode() + body)
        until(lambda: len(self.backend[at].requests) > before, f"the request reaches server {at}")
        return client

    def arrives(self, server, count=1):
        until(lambda: len(self.backend[server].requests) >= count, f"the request reaches server {server}")

    def moves(self, client, to=1, before=0):
        """The client's request goes to that server, too, which had so many `before`, and answers it."""
        self.arrives(to, before + 1)
        self.gate[to].set()
        assert client.response().body == b"%d" % to
        client.socket.close()

    def __enter__(self):
        self.proxy.__enter__()
        return self

    def __exit__(self, *error):
        for gate in self.gate:
            gate.set()
        self.proxy.__exit__(*error)


class Pair(Group):
    """One that is active and its backup."""

    def __init__(self, **options):
        super().__init__(2, **options)


def not_moved(status):
    return {name: number for name, number in status["not_moved"].items() if number}


def post(body, chunked=False):
    """A request's head and its body as they are sent."""
    head = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(body)}"
    return f"POST /gated HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n", chunks(body, (1000, 1)) if chunked else body
