#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A million requests while the servers, two JVMs, stop all the time.

`tailor proxy` runs whole in front of them. At first they are collected, stopped and continued at random moments, both at once now and
then: every request gets one right answer, whose body is compared with what its path and its own body ask for. Then they are killed, too:
an answer, or an error that the end of a server explains, which is counted. The servers write down what they execute: nothing that the
configuration does not allow to be sent twice is executed twice. With a sanitized build, the sanitizers say nothing.
"""
import argparse
import asyncio
import os
import random
import subprocess
import time

from soak import CLIENTS, Soak, conclude
from clients import Clients
from harness import TAILOR, check
from judge import Judge
from stopping import KINDS, StoppingServers

# Most first; `tailor check` says which this build knows.
REACTIONS = ("gc, safepoint, stall, crash", "gc")
# POSTs of one style of answer.
ROUTE = '"POST /*/*/l/*"'
# By when of all; what is kept for a server that ended is made with the first ones, and from then on nothing may grow.
WITHOUT_KILLS, FIRST_KILLS = 0.5, 0.7


class ManyClients(Clients):
    """Smaller answers than the soak's, until as many as wanted have been asked for."""
    KINDS = ((Clients.keep_alive, 60), (Clients.pipelined, 15), (Clients.one_shot, 10), (Clients.half_closed, 5), (Clients.rude, 10))

    def size(self, rng):
        return rng.randrange(1000) if rng.random() < 0.9 else int(2 ** rng.uniform(10, 16))

    async def until(self, enough):
        """All clients at once, each asking as soon as it is answered; then each ends what it has begun."""
        self.stopping = False
        lives = [asyncio.ensure_future(self.live(random.Random(self.rng.random()), self.KINDS)) for _ in range(CLIENTS)]
        while not enough() and not any(life.done() for life in lives):
            await asyncio.sleep(0.05)
        self.stopping = True
        await asyncio.gather(*lives)


class RoutedJudge(Judge):
    def __init__(self, servers, routed):
        super().__init__(servers)
        self.routed = routed

    def replayable(self, request):
        return request.method == "GET" or (self.routed and request.style == "l")

    def may_fail(self, request, begin, now):
        """A server that has just come back counts as away until the proxy tries it again."""
        return super().may_fail(request, begin, now) or self.servers.none_usable(begin, now)


class ConstantFailover(Soak):
    agents = 2
    may_lose = True  # its clients take all there is

    def __init__(self, scene, options):
        super().__init__(scene, options)
        self.on = next(on for on in REACTIONS if self.knows(f"on: [{on}]"))
        self.routed = self.knows(f"replay: [GET, HEAD, {ROUTE}]")
        self.servers = StoppingServers(scene.directory)
        self.judge = RoutedJudge(self.servers, self.routed)

    def proxy_options(self):
        return {"failover": self.on, "replay": "GET, HEAD" + (", " + ROUTE) * self.routed}

    def knows(self, lines):
        path = self.scene.directory / "known.yaml"
        path.write_text("listen: 127.0.0.1:0\nservers: [{name: a, address: \"127.0.0.1:1\"}, {name: b, address: \"127.0.0.1:2\"}]\n"
                        f"failover: {{{lines}}}\n")
        return subprocess.run([TAILOR, "check", "-c", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    async def load(self):
        self.clients = ManyClients(self.proxy.port, self.judge, self.options.seed)
        for title, part, kinds in (("without kills", WITHOUT_KILLS, {**KINDS, "kill": 0}), ("the first kills", FIRST_KILLS, KINDS),
                                   ("with kills", 1, KINDS)):
            print(f"{title}:", flush=True)
            warm_until = time.monotonic() + 2  # all have connected anew
            load = self.clients.until(lambda part=part, kinds=kinds: self.enough(part, kinds))
            await self.soaked(load, self.servers.fault_now_and_then(self.rng, kinds))
            await self.servers.until_all_go_on()
            if not kinds["kill"]:
                self.answered_without_kills = self.judge.counts["good"]
                errors = {what: self.judge.counts[what] for what in ("502", "503", "cut")}
                check(not any(errors.values()), f"no server had ended, and there were errors: {errors}")
        return warm_until

    def enough(self, part, kinds):
        faults = self.servers.faults
        return (self.clients.number >= self.options.requests * part and faults.total() >= self.options.faults * part
                and all(faults[kind] for kind in kinds if kinds[kind]))

    def too_little(self):
        return self.moved < self.options.faults / 10

    async def until_quiet(self):
        values = await super().until_quiet()
        status = self.proxy.status()
        self.moved = status["failed_over"]
        self.not_moved = {why: count for why, count in status["not_moved"].items() if count}
        return values

    def summarize(self):
        counts, faults = self.judge.counts, self.servers.faults
        print(f"{counts['begun']} requests, {self.answered_without_kills} of them answered before the first kill: {counts['good']} answered right, "
              f"{counts['502']} times 502, {counts['503']} times 503 and {counts['cut']} cut off while a server ended, {counts['untaken']} behind "
              f"those, {counts['left']} clients left; POSTs {'by route' if self.routed else 'never'} sent twice; {self.moved} requests moved; "
              f"not moved: {self.not_moved}")
        print(f"{faults.total()} faults: {', '.join(f'{count} {kind}' for kind, count in faults.items())}; seed {self.options.seed}")


def main():
    parser = argparse.ArgumentParser(prog="./run constant-failover", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("requests", nargs="?", type=int, default=int(os.environ.get("CONSTANT_FAILOVER_REQUESTS", "1000000")))
    parser.add_argument("--faults", type=int, default=int(os.environ.get("CONSTANT_FAILOVER_FAULTS", "1000")), help="at least")
    parser.add_argument("--seed", type=int, default=1, help="of what clients and faults do; their timing is the machine's")
    options = parser.parse_args()
    # The soak's reports come as often as for so long a run.
    options.minutes = max(0.25, options.requests / 100000)
    conclude("constant failover", ConstantFailover, options)


main()
