# SPDX-License-Identifier: Apache-2.0
"""A client's connection and what goes over it."""
import asyncio
import socket
import struct

from content import answer_to
from proxy_harness import chunks

PIECE = 65536


class Connection:
    """Bare sockets: asyncio's streams throw away what they have received when a later write fails."""

    def __init__(self, connected, piece=PIECE, pause=0):
        self.socket = connected
        self.piece, self.pause = piece, pause
        self.buffer = bytearray()
        self.loop = asyncio.get_running_loop()

    @classmethod
    async def open(cls, port, receive_buffer=None, **options):
        made = socket.socket()
        made.setblocking(False)
        if receive_buffer:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", port))
        except BaseException:
            made.close()
            raise
        return cls(made, **options)

    async def send(self, data):
        await self.loop.sock_sendall(self.socket, data)

    async def more(self):
        if self.pause:
            await asyncio.sleep(self.pause)
        data = await self.loop.sock_recv(self.socket, self.piece)
        self.buffer += data
        return len(data)

    def take(self, size):
        data = bytes(self.buffer[:size])
        del self.buffer[:size]
        return data

    async def line(self, end):
        """Up to and without `end`."""
        while (at := self.buffer.find(end)) < 0:
            if not await self.more():
                raise EOFError(f"the connection ended behind {bytes(self.buffer[:100])!r}")
        data = self.take(at)
        del self.buffer[:len(end)]
        return data

    async def exactly(self, size):
        while len(self.buffer) < size:
            if not await self.more():
                raise EOFError(f"the connection ended {size - len(self.buffer)} bytes early")
        return self.take(size)

    async def rest(self):
        while await self.more():
            pass
        return self.take(len(self.buffer))

    def nothing_more(self):
        """Whether nothing has come that nobody asked for."""
        try:
            return not self.buffer and not self.socket.recv(1)
        except BlockingIOError:
            return True
        except OSError:
            return True

    def half_close(self):
        self.socket.shutdown(socket.SHUT_WR)

    def close(self):
        self.socket.close()

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


class Response:
    def __init__(self, head):
        line, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(line.split(" ", 2)[1])
        self.fields = {name.lower(): value for name, value in (field.split(": ", 1) for field in lines)}
        self.body = b""
        self.framed = True
        self.closes = self.fields.get("connection") == "close"

    @property
    def id(self):
        return self.fields.get("x-tailor-request-id")


async def read_response(connection):
    """The final response. The client has understood it whole, or EOFError or ConnectionError is raised."""
    response = Response(await connection.line(b"\r\n\r\n"))
    while response.status < 200:
        response = Response(await connection.line(b"\r\n\r\n"))
    if response.fields.get("transfer-encoding") == "chunked":
        parts = []
        while size := int(await connection.line(b"\r\n"), 16):
            parts.append(await connection.exactly(size))
            if await connection.exactly(2) != b"\r\n":
                raise ValueError("a chunk without its end")
        while await connection.line(b"\r\n"):
            pass
        response.body = b"".join(parts)
    elif "content-length" in response.fields:
        response.body = await connection.exactly(int(response.fields["content-length"]))
    else:
        response.framed, response.closes = False, True
        response.body = await connection.rest()
    return response


class Request:
    def __init__(self, number, method, size, style, delay_ms, body, digest, framing):
        """`framing` of the body: length, chunked or expect (a length, and sent whole whether or not 100 comes)."""
        self.number, self.method, self.style, self.body, self.framing = number, method, style, body, framing
        self.path = f"/{number}/{size}/{style}/{delay_ms}"
        self.digest = digest

    def expected(self):
        return answer_to(self.path, self.digest)

    def head(self, version="1.1", more=""):
        text = f"{self.method} {self.path} HTTP/{version}\r\nHost: soak\r\n{more}"
        if self.method == "POST":
            text += "Transfer-Encoding: chunked\r\n" if self.framing == "chunked" else f"Content-Length: {len(self.body)}\r\n"
            text += "Expect: 100-continue\r\n" if self.framing == "expect" else ""
        return text.encode() + b"\r\n"

    def framed_body(self):
        if self.method != "POST":
            return b""
        return chunks(self.body, (1, 700, 4096, 60000)) if self.framing == "chunked" else self.body

    def whole(self, **options):
        return self.head(**options) + self.framed_body()
