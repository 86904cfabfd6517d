#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Thousands of concurrent requests while JVMs stop at random: each gets exactly one answer, and it is its own."""
import asyncio
import hashlib
import os
import random
import resource
import time

from proxy_harness import *

SECONDS = float(os.environ.get("STORM_SECONDS", "4"))


def content(path, length):
    """What any server answers: depends on the request alone, so that either's answer is right, and a mixture is not."""
    block = hashlib.sha256(path.encode()).digest()
    return (block * (length // 32 + 1))[:length]


class Server:
    """Answers in random pieces, framings and delays; while `stopped` it answers nobody, like a JVM in a collection."""

    def __init__(self, name, rng):
        self.name, self.rng = name, rng
        self.running = asyncio.Event()
        self.running.set()
        self.requests = 0

    async def start(self):
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def serve(self, reader, writer):
        rng = self.rng
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                method, path, _ = head.split("\r\n")[0].split(" ")
                length = [int(line.split(": ")[1]) for line in head.split("\r\n") if line.lower().startswith("content-length")]
                body = await reader.readexactly(length[0]) if length else b""
                await self.running.wait()
                self.requests += 1
                if rng.random() < 0.1:
                    await asyncio.sleep(rng.random() * 0.02)
                answer = content(path, int(path.rsplit("/", 1)[1])) + hashlib.sha256(body).digest()
                style = rng.randrange(3)
                if style == 0:
                    data = ok(answer)
                elif style == 1:
                    data = chunked(answer, (rng.randrange(1, 3000), rng.randrange(1, 70000)))
                else:
                    data = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + answer
                if rng.random() < 0.3:
                    cut = rng.randrange(len(data))
                    writer.write(data[:cut])
                    await writer.drain()
                    await self.running.wait()
                    await asyncio.sleep(0)
                    data = data[cut:]
                writer.write(data)
                await writer.drain()
                if style == 2:
                    break
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()


async def read_response(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    lines = head.split("\r\n")
    fields = {line.split(": ")[0].lower(): line.split(": ", 1)[1] for line in lines[1:] if line}
    if fields.get("transfer-encoding") == "chunked":
        body = b""
        while True:
            size = int(await reader.readuntil(b"\r\n"), 16)
            body += (await reader.readexactly(size + 2))[:-2]
            if size == 0:
                break
    else:
        body = await reader.readexactly(int(fields["content-length"]))
    return int(lines[0].split(" ")[1]), fields, body


async def client(number, port, stop, results, rng):
    sequence = 0
    while time.monotonic() < stop:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(rng.randrange(1, 60)):
            if time.monotonic() > stop:
                break
            batch = []
            for _ in range(rng.choice((1, 1, 1, 3))):
                size = rng.choice((0, 10, 200, 5000, 20000, 100000))
                path = f"/{number}/{sequence}/{size}"
                sequence += 1
                body = rng.randbytes(rng.choice((1, 1000, 30000))) if rng.random() < 0.2 else b""
                method = "POST" if body else "GET"
                length = f"Content-Length: {len(body)}\r\n" if body else ""
                batch.append((path, size, body))
                writer.write(f"{method} {path} HTTP/1.1\r\nHost: x\r\n{length}\r\n".encode() + body)
            for path, size, body in batch:
                status, fields, answer = await read_response(reader)
                assert status == 200, (status, answer, path)
                assert answer == content(path, size) + hashlib.sha256(body).digest(), path
                results.append(fields["x-tailor-request-id"])
        try:
            # Exactly one answer each: nothing may follow.
            extra = await asyncio.wait_for(reader.read(1), 0.001)
            assert not extra, extra
        except asyncio.TimeoutError:
            pass
        writer.close()


async def stop_jvms(proxy, servers, stop, rng):
    """One after the other and sometimes both, as collections come."""
    loop = asyncio.get_running_loop()

    async def command(text):
        await loop.run_in_executor(None, proxy.command, text)

    while time.monotonic() < stop:
        which = rng.choice(([0], [1], [0, 1]))
        for server in which:
            servers[server].running.clear()
            await command(f"pause {server}")
        await asyncio.sleep(rng.random() * 0.06)
        for server in which:
            servers[server].running.set()
            await command(f"resume {server}")
        await asyncio.sleep(rng.random() * 0.04)


async def storm(workers, seed, clients):
    rng = random.Random(seed)
    servers = [Server(name, rng) for name in "ab"]
    listeners = [await server.start() for server in servers]
    results = []
    with Proxy(*(f"127.0.0.1:{server.port}" for server in servers), workers=workers) as proxy:
        for server in (0, 1):
            proxy.command(f"attach {server}")
        stop = time.monotonic() + SECONDS
        await asyncio.gather(stop_jvms(proxy, servers, stop, rng),
                             *(client(i, proxy.port, stop, results, random.Random(rng.random())) for i in range(clients)))
        assert len(set(results)) == len(results), "ids are unique"
        # No wait inside a coroutine may block the servers: by now all clients are done.
        # Counted it is a moment after its client has its answer, for which events() waits.
        events = check_events(proxy.events())
        status = proxy.status()
        assert set(events) == set(results), "a request's events carry the id that its client saw"
        assert all(own[-1].arg[1] == DONE for own in events.values())
        moved = sum(any(e.begins and e.reason == REASON_GC for e in own) for own in events.values())
        assert status["failed_over"] == moved and moved > 0, (status, moved)
        assert status["requests"] == len(results) == proxy.status()["requests"], status
        assert all(tag[2] in events for tag in proxy.tags().values()), "a tag names no request"
        assert status["server"][0]["pauses"] > 0 and status["cut"] == 0 and status["refused"] == 0, status
        print(f"        {len(results)} requests, {moved} moved, not moved: "
              f"{ {k: v for k, v in status['not_moved'].items() if v} }")
    for listener in listeners:
        listener.close()


async def rude_server(reader, writer, rng):
    """Dies at any point, resets, closes kept connections, answers early, stalls."""
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            _, path, _ = head.split("\r\n")[0].split(" ")
            length = [int(line.split(": ")[1]) for line in head.split("\r\n") if line.lower().startswith("content-length")]
            early = length and rng.random() < 0.2
            if length and not early:
                await reader.readexactly(length[0])
            answer = content(path, int(path.rsplit("/", 1)[1]))
            data = rng.choice((ok, chunked))(answer)
            action = rng.random()
            if action < 0.5:
                writer.write(data)
            elif action < 0.7:
                writer.write(data[:rng.randrange(len(data))])
                await writer.drain()
                break
            elif action < 0.8:
                break
            elif action < 0.9:
                writer.transport.abort()
                break
            else:
                await asyncio.sleep(rng.random() * 0.05)
                writer.write(data)
            await writer.drain()
            if early:
                break
    except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
        pass
    finally:
        writer.close()


async def rude_client(number, port, stop, outcomes, rng):
    """Leaves at any point; an answer that looks whole must be right."""
    sequence = 0
    while time.monotonic() < stop:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for _ in range(rng.randrange(1, 10)):
                size = rng.choice((0, 10, 5000, 300000))
                path = f"/{number}/{sequence}/{size}"
                sequence += 1
                body = rng.randbytes(rng.choice((10, 200000))) if rng.random() < 0.3 else b""
                length = f"Content-Length: {len(body)}\r\n" if body else ""
                data = f"{'POST' if body else 'GET'} {path} HTTP/1.1\r\nHost: x\r\n{length}\r\n".encode() + body
                action = rng.random()
                if action < 0.1:
                    writer.write(data[:rng.randrange(len(data))])
                    break
                writer.write(data)
                if action < 0.15:
                    writer.transport.abort()
                    break
                if action < 0.2:
                    await reader.read(rng.randrange(1, 100))
                    writer.transport.abort()
                    break
                if action < 0.25:
                    writer.write_eof()
                status, _, answer = await asyncio.wait_for(read_response(reader), 10)
                outcomes[status] = outcomes.get(status, 0) + 1
                assert status != 200 or answer == content(path, size), path
                if action < 0.25:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            outcomes["cut"] = outcomes.get("cut", 0) + 1
        finally:
            writer.close()


async def rude_storm(workers, seed):
    rng = random.Random(seed)
    listeners = [await asyncio.start_server(lambda r, w: rude_server(r, w, rng), "127.0.0.1", 0) for _ in "ab"]
    ports = [listener.sockets[0].getsockname()[1] for listener in listeners]
    outcomes = {}

    class Jvm:
        running = asyncio.Event()

    with Proxy(*(f"127.0.0.1:{port}" for port in ports), workers=workers, attempts=4) as proxy:
        for server in (0, 1):
            proxy.command(f"attach {server}")
        stop = time.monotonic() + SECONDS
        await asyncio.gather(stop_jvms(proxy, [Jvm, Jvm], stop, rng),
                             *(rude_client(i, proxy.port, stop, outcomes, random.Random(rng.random())) for i in range(32)))
        # All that was begun must come to an end; the harness then finds no connection left over.
        while proxy.status()["clients"] > 0:
            await asyncio.sleep(0.01)
        events = check_events(proxy.events(), early=True)
        status = proxy.status()
        assert status["requests"] == len(events), (status, len(events))
        assert outcomes.get(200, 0) > 100 and outcomes.get("cut", 0) > 10 and status["client_gone"] > 10, (outcomes, status)
        print(f"        {len(events)} requests: {outcomes}, {status['client_gone']} gone, {status['cut']} cut, "
              f"{status['failed_over']} moved")
    for listener in listeners:
        listener.close()


def nobody_is_misled_when_everybody_dies_at_random():
    asyncio.run(rude_storm(1, 3))
    asyncio.run(rude_storm(2, 4))


def one_worker_answers_each_request_once():
    asyncio.run(storm(1, 1, 48))


def two_workers_answer_a_thousand_clients_at_once():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 16384), hard))
    asyncio.run(storm(2, 2, 1000 if hard >= 8192 else 100))


run([one_worker_answers_each_request_once, two_workers_answer_a_thousand_clients_at_once,
     nobody_is_misled_when_everybody_dies_at_random])
