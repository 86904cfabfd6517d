# SPDX-License-Identifier: Apache-2.0
"""Two JVMs with the agent that are stopped, continued, collected and killed at random moments."""
import asyncio
import collections
import contextlib
import os
import signal
import subprocess
from pathlib import Path

import harness
from servers import HERE, Server, Servers

LIVE_MIB = 40  # a full collection of it takes 60 ms and more
JVM = ["-XX:+UseSerialGC", "-Xms160m", "-Xmx160m", "-XX:TieredStopAtLevel=1"]
KINDS = {"gc": 40, "stop": 35, "both": 15, "kill": 10}
BETWEEN_S = 0.2
# One time in so many the other server may be away, too.
BOTH_AWAY = 0.05


class JavaServer(Server):
    def __init__(self, name, directory, classes):
        super().__init__(name, directory)
        self.classes, self.agent_socket = classes, directory / "agent.sock"
        self.away = False

    def command(self):
        return [harness.any_java(), *JVM, f"-agentpath:{harness.AGENT}=socket={self.agent_socket}", "-cp", str(self.classes),
                "StoppingServer", str(self.port), str(self.log), str(LIVE_MIB)]

    def collect(self):
        with contextlib.suppress(ConnectionError):
            self.process.stdin.write(b"\n")

    async def stand_still(self, seconds):
        process = self.process
        for how, then in ((signal.SIGSTOP, seconds), (signal.SIGCONT, 0)):
            # It may have been killed meanwhile.
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(how)
            await asyncio.sleep(then)

    async def die(self, seconds):
        self.away = True
        await self.end(signal.SIGKILL)
        await asyncio.sleep(seconds)
        await self.start()
        self.away = False


class StoppingServers(Servers):
    def __init__(self, directory):
        classes = directory / "classes"
        java = Path(harness.any_java())
        javac = java.with_name("javac")
        try:
            made = subprocess.run([javac, "-d", classes, os.path.join(HERE, "StoppingServer.java")], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
        except OSError as error:
            raise harness.Skip(f"no javac: {error}") from None
        harness.check(made.returncode == 0, f"javac failed:\n{made.stdout}")
        self.both = [JavaServer(name, directory, classes) for name in "ab"]
        self.killed = self.stopped = 0
        self.faults = collections.Counter()
        self.under_way = []

    async def fault(self, rng, kinds):
        server, other = rng.sample(self.both, 2)
        kind, = rng.choices(list(kinds), kinds.values())
        if server.away or (kind == "kill" and other.away and rng.random() >= BOTH_AWAY):
            return
        self.faults[kind] += 1
        if kind == "kill":
            self.killed += 1
            await server.die(rng.uniform(0, 0.5))
        elif kind == "gc":
            server.collect()
        elif kind == "stop":
            await server.stand_still(rng.uniform(0.01, 0.3))
        elif rng.random() < 0.5:
            server.collect()
            other.collect()
        else:
            await asyncio.gather(*(each.stand_still(rng.uniform(0.01, 0.2)) for each in self.both))

    async def fault_now_and_then(self, rng, kinds):
        """Until cancelled; what is under way then ends in until_all_go_on()."""
        while True:
            await asyncio.sleep(rng.expovariate(1 / BETWEEN_S))
            for fault in [fault for fault in self.under_way if fault.done()]:
                self.under_way.remove(fault)
                fault.result()
            self.under_way.append(asyncio.ensure_future(self.fault(rng, kinds)))

    async def until_all_go_on(self):
        await asyncio.gather(*self.under_way)
        self.under_way.clear()
