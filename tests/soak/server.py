# SPDX-License-Identifier: Apache-2.0
"""A small real server for the soak: server.py PORT LOG.

A path is /NUMBER/SIZE/STYLE/DELAY: which request it is, how much to answer, how (l: a length, p: a length and in pieces, c: chunked,
e: ended by the connection's end), and after how many ms. Every request that is here whole is written to LOG before anything else is done
about it, a letter of the method and the number, with a write of its own: a server that is killed has still counted. SIGTERM: nothing new
is accepted, what is under way is finished.
"""
import asyncio
import ctypes
import hashlib
import os
import signal
import sys

from content import answer_to

STOP_SECONDS = 2
PIECE = 65536
PR_SET_PDEATHSIG = 1


async def digest_of_body(reader, fields):
    digest = hashlib.sha256()

    async def take(size):
        while size > 0:
            data = await reader.read(min(size, PIECE))
            if not data:
                raise asyncio.IncompleteReadError(b"", size)
            digest.update(data)
            size -= len(data)

    if fields.get("transfer-encoding") == "chunked":
        while size := int(await reader.readuntil(b"\r\n"), 16):
            await take(size)
            await reader.readexactly(2)
        while await reader.readuntil(b"\r\n") != b"\r\n":
            pass
    else:
        await take(int(fields.get("content-length", 0)))
    return digest.digest()


async def in_pieces(writer, data, pieces):
    size = len(data) // pieces + 1
    for at in range(0, len(data), size):
        writer.write(data[at:at + size])
        await writer.drain()
        await asyncio.sleep(0.002)


async def write_answer(writer, style, data):
    """Returns whether the connection goes on."""
    if style == "e":
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + data)
    elif style == "c":
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for at in range(0, len(data), 10000):
            piece = data[at:at + 10000]
            writer.write(b"%x\r\n" % len(piece) + piece + b"\r\n")
            await writer.drain()
        writer.write(b"0\r\n\r\n")
    else:
        data = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data) + data
        if style == "p":
            await in_pieces(writer, data, 5)
        else:
            writer.write(data)
    await writer.drain()
    return style != "e"


class Server:
    def __init__(self, log):
        self.log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self.idle = set()
        self.connections = 0
        self.stopping = False
        self.ended = asyncio.Event()

    async def answer(self, head, reader, writer):
        line, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
        method, path, _ = line.split(" ")
        fields = {name.lower(): value for name, value in (field.split(": ", 1) for field in lines)}
        _, number, _, style, delay = path.split("/")
        if fields.get("expect"):
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        digest = await digest_of_body(reader, fields)
        os.write(self.log, f"{method[0]}{number}\n".encode())
        if delay != "0":
            await asyncio.sleep(int(delay) / 1000)
        return await write_answer(writer, style, answer_to(path, digest))

    async def serve(self, reader, writer):
        self.connections += 1
        try:
            while not self.stopping:
                self.idle.add(writer)
                head = await reader.readuntil(b"\r\n\r\n")
                self.idle.discard(writer)
                if not await self.answer(head, reader, writer):
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.idle.discard(writer)
            writer.close()
            self.connections -= 1
            if self.stopping and self.connections == 0:
                self.ended.set()

    def stop(self):
        self.stopping = True
        self.listener.close()
        for writer in self.idle:
            writer.close()
        if self.connections == 0:
            self.ended.set()

    async def run(self, port):
        self.listener = await asyncio.start_server(self.serve, "127.0.0.1", port, backlog=1024)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.stop)
        print(self.listener.sockets[0].getsockname()[1], flush=True)
        while not self.stopping:
            await asyncio.sleep(0.05)
        try:
            await asyncio.wait_for(self.ended.wait(), STOP_SECONDS)
        except asyncio.TimeoutError:
            pass
        # What is left belongs to clients that do not read; the kernel closes it.
        os._exit(0)


async def main():
    await Server(sys.argv[2]).run(int(sys.argv[1]))


# A soak that is killed takes its servers along.
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
asyncio.run(main())
