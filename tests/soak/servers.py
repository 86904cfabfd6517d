# SPDX-License-Identifier: Apache-2.0
"""Two servers that end and come back, and when they did."""
import asyncio
import math
import os
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# How much later than a server's end a client may still hear of it: this machine stands still now and then.
ENDED_GRACE_S = 1.0
# The proxy tries a server that refused again after 2 s at most.
BACK_OFF_S = 2.0


class Life:
    """From a server's end to its return. Moments of time.monotonic()."""

    def __init__(self):
        self.told = time.monotonic()
        self.ended = self.back = math.inf


class Server:
    def __init__(self, name, directory):
        self.name, self.port, self.process = name, 0, None
        self.log = directory / f"server-{name}.log"
        self.log.touch()
        self.read = open(self.log)
        self.ends = []

    def command(self):
        return [sys.executable, os.path.join(HERE, "server.py"), str(self.port), str(self.log)]

    async def start(self):
        pipe = asyncio.subprocess.PIPE
        self.process = await asyncio.create_subprocess_exec(*self.command(), stdin=pipe, stdout=pipe)
        self.port = int(await self.process.stdout.readline())
        if self.ends:
            self.ends[-1].back = time.monotonic()

    async def end(self, how):
        self.ends.append(Life())
        self.process.send_signal(how)
        await self.process.wait()
        self.ends[-1].ended = time.monotonic()

    async def kill(self):
        if self.process and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()


class Servers:
    def __init__(self, directory):
        self.both = [Server(name, directory) for name in "ab"]
        self.killed = self.stopped = 0

    async def start(self):
        for server in self.both:
            await server.start()

    async def restart(self, server, rng):
        if rng.random() < 0.5:
            self.killed += 1
            await server.end(signal.SIGKILL)
        else:
            self.stopped += 1
            await server.end(signal.SIGTERM)
        await asyncio.sleep(rng.uniform(0, 1.5))
        await server.start()

    async def restart_now_and_then(self, rng):
        """By turns, so that one serves nearly always; one time in twenty both."""
        turn = 0
        while True:
            await asyncio.sleep(rng.uniform(2, 6))
            if rng.random() < 0.05:
                await asyncio.gather(*(self.restart(server, rng) for server in self.both))
            else:
                await self.restart(self.both[turn], rng)
                turn = 1 - turn

    @staticmethod
    def has_ended(server, begin, now):
        return any(life.told <= now and begin <= life.ended + ENDED_GRACE_S for life in server.ends[-20:])

    def ended(self, begin, now):
        """Whether a server ended in that time: what was under way there may have been lost."""
        return any(self.has_ended(server, begin, now) for server in self.both)

    def both_ended(self, begin, now):
        return all(self.has_ended(server, begin, now) for server in self.both)

    def none_usable(self, begin, now):
        """Whether there was a moment at which neither server was surely usable."""
        absent = [[(max(life.told, begin), min(life.back + BACK_OFF_S + ENDED_GRACE_S, now)) for life in server.ends[-20:]]
                  for server in self.both]
        return any(max(a[0], b[0]) <= min(a[1], b[1]) for a in absent[0] for b in absent[1])

    def account(self, begin, now):
        text = []
        for server in self.both:
            for life in server.ends[-3:]:
                text.append(f"{server.name} told to end at {life.told - begin:+.3f}, ended {life.ended - begin:+.3f}, back {life.back - begin:+.3f}")
        return "; ".join(text) or "no server has ended"

    def executed(self):
        """(letter of the method, number) of what came since it was last asked."""
        for server in self.both:
            while line := server.read.readline():
                yield line[0], int(line[1:])

    async def kill(self):
        for server in self.both:
            await server.kill()
