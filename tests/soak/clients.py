# SPDX-License-Identifier: Apache-2.0
"""Clients of every kind, each drawn from the seed: good, slow, and rude ones that leave in the middle."""
import asyncio
import contextlib
import hashlib
import random
import time

from connection import Connection, Request, read_response

MIB = 1 << 20
ANSWER_SECONDS = 40


class Pace:
    """Moments of an open loop: requests come at random, `rate` a second, however long the ones before take."""

    def __init__(self, rate, rng):
        self.rate, self.rng = rate, rng
        self.at = time.monotonic()
        self.late = 0

    async def turn(self):
        now = time.monotonic()
        if self.at < now - 1:
            # All clients were busy, or the machine stood still: no burst afterwards.
            self.late += 1
            self.at = now
        self.at += self.rng.expovariate(self.rate)
        if self.at > now:
            await asyncio.sleep(self.at - now)


class Closed:
    """No pace: a client asks as soon as it has its answer."""

    async def turn(self):
        pass


class Clients:
    def __init__(self, port, judge, seed):
        self.port, self.judge = port, judge
        self.pace = Closed()
        self.rng = random.Random(seed)
        self.noise = self.rng.randbytes(2 * MIB)
        self.number = 0
        self.stopping = False

    def size(self, rng):
        """Mostly small; every power of two up to 1 MiB is as likely as the next."""
        kind = rng.random()
        return rng.randrange(1000) if kind < 0.6 else MIB if kind > 0.998 else int(2 ** rng.uniform(0, 20))

    def request(self, rng, method=None):
        self.number += 1
        method = method or ("POST" if rng.random() < 0.3 else "GET")
        at, size = rng.randrange(MIB), self.size(rng) if method == "POST" else 0
        body = self.noise[at:at + size]
# While a server thinks, it has executed the request and not answered: a kill then is what tempts a proxy to send it again.
        thinks = rng.random()
        delay_ms = rng.randrange(300) if thinks < 0.02 else rng.randrange(80) if thinks < (0.4 if method == "POST" else 0.1) else 0
        request = Request(self.number, method, self.size(rng), rng.choice("llllppcce"), delay_ms, body, hashlib.sha256(body).digest(),
                          rng.choice(("length", "length", "chunked", "expect")))
        self.judge.begun(request)
        return request

    async def converse(self, connection, batch, send):
        """Sends by `send` and reads as many answers. Returns whether the connection goes on."""
        begin = time.monotonic()
        sending = asyncio.ensure_future(send)
        try:
            for i, request in enumerate(batch):
                try:
                    async with asyncio.timeout(ANSWER_SECONDS):
                        response = await read_response(connection)
                except (EOFError, OSError, ValueError, TimeoutError) as error:
                    self.judge.broken(request, begin, time.monotonic(), error)
                    self.judge.behind(batch[i + 1:])
                    return False
                self.judge.response(request, begin, time.monotonic(), response)
                if response.closes:
                    self.judge.behind(batch[i + 1:])
                    return False
            return True
        finally:
            # It fails or lasts when the proxy has answered early and closed.
            sending.cancel()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await sending

    async def keep_alive(self, rng):
        connection = await Connection.open(self.port)
        try:
            for _ in range(rng.randrange(1, 30)):
                await self.pace.turn()
                request = self.request(rng)
                if not await self.converse(connection, [request], connection.send(request.whole())) or self.stopping:
                    return
            if rng.random() < 0.2:
                await asyncio.sleep(0.01)
                if not connection.nothing_more():
                    self.judge.fail("something came behind the last answer")
        finally:
            connection.close()

    async def one_shot(self, rng):
        await self.pace.turn()
        connection = await Connection.open(self.port)
        try:
            how = rng.choice(({"more": "Connection: close\r\n"}, {"version": "1.0"}))
            # HTTP/1.0 knows neither chunks nor 100.
            request = self.request(rng, "GET" if "version" in how else None)
            if await self.converse(connection, [request], connection.send(request.whole(**how))):
                self.judge.fail(f"{request.path}: the answer does not close the connection as was asked")
        finally:
            connection.close()

    async def pipelined(self, rng):
        connection = await Connection.open(self.port)
        try:
            for _ in range(rng.randrange(1, 5)):
                batch = []
                for _ in range(rng.randrange(2, 8)):
                    await self.pace.turn()
                    batch.append(self.request(rng))
                data = b"".join(request.whole() for request in batch)
                if not await self.converse(connection, batch, connection.send(data)):
                    return
        finally:
            connection.close()

    async def half_closed(self, rng):
        """Says that nothing more comes, and waits for the answer."""
        await self.pace.turn()
        connection = await Connection.open(self.port)

        async def send(data):
            await connection.send(data)
            with contextlib.suppress(OSError):
                connection.half_close()

        try:
            request = self.request(rng)
            await self.converse(connection, [request], send(request.whole()))
        finally:
            connection.close()

    async def slow_reader(self, rng):
        await self.pace.turn()
        connection = await Connection.open(self.port, receive_buffer=4096, pause=rng.uniform(0, 0.02))
        try:
            for _ in range(rng.randrange(1, 3)):
                request = self.request(rng)
                # At most a hundred pieces: slow, and not for ever.
                connection.piece = max(rng.choice((1000, 5000, 20000)), len(request.expected()) // 100)
                if not await self.converse(connection, [request], connection.send(request.whole())):
                    return
        finally:
            connection.close()

    async def slow_writer(self, rng):
        await self.pace.turn()
        connection = await Connection.open(self.port)

        async def trickle(data):
            at = 0
            while at < len(data):
                size = rng.choice((1, 20, 300)) if at < 300 else rng.randrange(1, len(data) // 20 + 2)
                await connection.send(data[at:at + size])
                at += size
                await asyncio.sleep(rng.uniform(0, 0.04))

        try:
            request = self.request(rng)
            await self.converse(connection, [request], trickle(request.whole()))
        finally:
            connection.close()

    async def rude(self, rng):
        """Leaves in the head, in the body or in the response: in order, by a reset, or by half."""
        await self.pace.turn()
        connection = await Connection.open(self.port)
        where, how = rng.choice(("in head", "in body", "in response")), rng.choice(("reset", "close", "half"))
        request = self.request(rng, "POST" if where == "in body" else None)
        head, body = request.head(), request.framed_body()
        try:
            async with asyncio.timeout(5):
                if where == "in head":
                    await connection.send(head[:rng.randrange(1, len(head))])
                elif where == "in body":
                    await connection.send(head + body[:rng.randrange(len(body) + 1)])
                else:
                    await connection.send(head + body)
                    connection.piece = rng.choice((1, 100, 10000))
                    await connection.more()
                await asyncio.sleep(rng.choice((0, rng.uniform(0, 0.02), rng.uniform(0, 0.5))))
                if how == "half":
                    connection.half_close()
                    await asyncio.sleep(rng.uniform(0, 0.05))
        except (OSError, TimeoutError):
            pass
        finally:
            self.judge.left(where)
            connection.reset() if how == "reset" else connection.close()

    KINDS = ((keep_alive, 30), (one_shot, 20), (pipelined, 10), (half_closed, 8), (slow_reader, 6), (slow_writer, 6), (rude, 20))

    async def live(self, rng, kinds=KINDS):
        sessions, weights = zip(*kinds)
        while not self.stopping:
            session, = rng.choices(sessions, weights)
            asyncio.current_task().set_name(session.__name__)
            try:
                await session(self, rng)
            except ConnectionError as error:
                # Connecting is the one thing that converse() does not watch: a proxy that serves takes everybody.
                self.judge.fail(f"{session.__name__}: {error!r}")

    async def run(self, count, seconds, **options):
        """`count` clients at once for so long; then each ends what it has begun."""
        self.stopping = False
        lives = [asyncio.ensure_future(self.live(random.Random(self.rng.random()), **options)) for _ in range(count)]
        await asyncio.wait(lives, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
        self.stopping = True
        await asyncio.gather(*lives)
