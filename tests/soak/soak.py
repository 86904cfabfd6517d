#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Half an hour of what production does to a proxy: clients of every kind, servers that die and come back, reloads.

`tailor proxy` runs whole (tracing, timelines, access log, admin) in front of two small servers, at about half of the load that this
machine has just been seen to carry. Every request of a client that keeps to the rules has exactly one right answer, or an error that the
end of a server explains; nothing that must not be sent twice is executed twice; memory and descriptors do not grow; the counters
agree with each other and with what clients and servers have counted; with a sanitized build, the sanitizers say nothing.
"""
import argparse
import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "integration"), str(HERE.parent / "e2e")]

from clients import Clients, Pace
from harness import TAILOR, Failure, Scene, Skip, check
from judge import Judge
from servers import Servers
from watch import AccessLog, Watch, check_counters, metrics, observer_is_through, total

CLIENTS = 64
CALIBRATING_CLIENTS = 16
# It gives way to all others, and what they leave of a busy machine may be little.
OBSERVER_SECONDS = 30
# A small quarantine is soon full: what grows afterwards is not the sanitizer's.
ASAN = "detect_leaks=1:quarantine_size_mb=16:thread_local_quarantine_size_kb=256:exitcode=99"
TSAN = f"suppressions={HERE}/tsan.supp:"


def configuration(directory, response_s=10, threshold_ms=50):
    trace = "required" if os.geteuid() == 0 else "auto"
    return (f"workers: 2\ntrace: {{kernel: {trace}}}\naccess_log: {{path: {directory}/access.log, format: text}}\n"
            f"timeouts: {{connect: 2s, response: {response_s}s, idle: 30s}}\n", f"{threshold_ms}ms")


class Soak:
    def __init__(self, scene, options):
        self.scene, self.options = scene, options
        self.rng = random.Random(options.seed)
        self.servers = Servers(scene.directory)
        self.judge = Judge(self.servers)
        self.seconds = options.minutes * 60
        self.interval = min(60, max(5, self.seconds / 5))
        self.reloads = self.invalid = 0

    agents = 0  # how many servers have one
    may_lose = False  # half of what the machine can carry leaves the observer its share

    def proxy_options(self):
        return {"agent": False}

    def start_proxy(self):
        for name, own in (("ASAN_OPTIONS", f"{ASAN}:"), ("UBSAN_OPTIONS", "print_stacktrace=1:"), ("TSAN_OPTIONS", TSAN)):
            os.environ[name] = f"{own}log_path={self.scene.directory}/sanitizer:{os.environ.get(name, '')}"
        more, slow = configuration(self.scene.directory)
        self.proxy = self.scene.proxy("proxy", [(server.name, f"127.0.0.1:{server.port}") for server in self.servers.both],
                                      more=more, slow=slow, baseline=100, **self.proxy_options())
        self.text = self.proxy.config.read_text()
        self.proxy.wait_serving(self.agents)
        self.watch = Watch(self.proxy.pid)
        self.log = AccessLog(self.scene.directory / "access.log")

    async def calibrate(self):
        """Requests a second of clients that ask at once after each answer. Servers, clients and proxy share this machine."""
        seconds = min(8, self.seconds / 8)
        begin = time.monotonic()
        await self.clients.run(CALIBRATING_CLIENTS, seconds, kinds=((Clients.keep_alive, 1),))
        most = self.judge.counts["good"] / (time.monotonic() - begin)
        print(f"{CALIBRATING_CLIENTS} clients without a pause got {most:.0f} answers a second; from here on {most / 2:.0f} requests a second "
              f"come to {CLIENTS} clients", flush=True)
        self.clients.pace = Pace(most / 2, self.rng)

    async def reload_now_and_then(self):
        """Mostly a valid configuration with other timeouts, sometimes an invalid one, which must change nothing."""
        while True:
            await asyncio.sleep(self.rng.uniform(5, 15))
            text = self.text.replace("response: 10s", f"response: {self.rng.randrange(8, 13)}s").replace(
                "threshold: 50ms", f"threshold: {self.rng.choice((20, 50, 80))}ms")
            if self.rng.random() < 0.25:
                self.invalid += 1
                text += "workers: many\n"
            else:
                self.reloads += 1
            self.proxy.config.write_text(text)
            self.proxy.popen.send_signal(signal.SIGHUP)

    async def look_every_second(self):
        while True:
            self.watch.sample()
            check(self.proxy.running(), f"the proxy ended with {self.proxy.popen.poll()}")
            await asyncio.sleep(1)

    async def report_now_and_then(self):
        print("    time   begun    good   502   503   cut  left  restarts  reloads  resident   mapped  fds   CPU  failed", flush=True)
        before = self.watch.sample()
        while True:
            await asyncio.sleep(self.interval)
            self.judge.count_executed()
            self.log.turn(self.proxy.popen)
            sample, counts = self.watch.sample(), self.judge.counts
            cpu = (sample[4] - before[4]) / (sample[0] - before[0])
            before = sample
            print(f"{time.strftime('%H:%M:%S'):>8}{counts['begun']:>8}{counts['good']:>8}{counts['502']:>6}{counts['503']:>6}{counts['cut']:>6}"
                  f"{counts['left']:>6}{self.servers.killed + self.servers.stopped:>10}{self.reloads + self.invalid:>9}"
                  f"{sample[1] / 1024:>7.1f}MiB{(sample[2] - self.mapped_first) / 1024:>+6.1f}MiB{sample[3]:>5}{cpu:>5.0%}{self.judge.failed:>8}",
                  flush=True)

    async def until_quiet(self):
        """All clients have gone: the proxy must notice, and the observer be through with what happened."""
        deadline = time.monotonic() + 20
        while True:
            values = metrics(self.proxy.admin_socket)
            if total(values, "tailor_clients") == total(values, "tailor_server_in_flight") == 0:
                break
            if time.monotonic() > deadline:
                # How the kernel sees the connections that the proxy still holds: CLOSE-WAIT is one whose end it has not noticed.
                print(subprocess.run(["ss", "-tno", f"sport = :{self.proxy.port}"], capture_output=True, text=True).stdout)
                break
            await asyncio.sleep(0.1)
        deadline = time.monotonic() + OBSERVER_SECONDS
        while not observer_is_through(values) and time.monotonic() < deadline:
            await asyncio.sleep(0.2)
            values = metrics(self.proxy.admin_socket)
        await asyncio.sleep(1)
        return metrics(self.proxy.admin_socket)

    async def descriptors_at_first(self):
        """Once all that the proxy looks for once a second has been found."""
        for _ in range(10):
            before = self.watch.sample()[3]
            await asyncio.sleep(1.5)
            if self.watch.sample()[3] == before:
                break
        return before

    async def descriptors_left(self, expected):
        """Besides connections to servers; asking opens one for a moment."""
        for _ in range(10):
            kept = sum(server["connections"] for server in self.proxy.status()["servers"])
            await asyncio.sleep(0.3)
            left = self.watch.sample()[3] - kept
            if left <= expected:
                break
        return left

    async def soaked(self, load, *troubles):
        """Until the load has ended."""
        helpers = [asyncio.ensure_future(helper) for helper in (*troubles, self.look_every_second(), self.report_now_and_then())]
        done, _ = await asyncio.wait([asyncio.ensure_future(load), *helpers], return_when=asyncio.FIRST_COMPLETED)
        for helper in helpers:
            helper.cancel()
        await asyncio.gather(*helpers, return_exceptions=True)
        for task in done:
            task.result()

    async def load(self):
        """Returns from when on what the proxy takes must not grow."""
        self.clients = Clients(self.proxy.port, self.judge, self.options.seed)
        await self.calibrate()
        warm_until = time.monotonic() + min(60, self.seconds / 4)
        await self.soaked(self.clients.run(CLIENTS, self.seconds), self.servers.restart_now_and_then(self.rng), self.reload_now_and_then())
        return warm_until

    async def run(self):
        await self.servers.start()
        self.start_proxy()
        descriptors_first = await self.descriptors_at_first()
        self.mapped_first = self.watch.samples[0][2]
        warm_until = await self.load()
        values = await self.until_quiet()
        left = await self.descriptors_left(descriptors_first + 1)
        code = self.proxy.stop(30)
        self.log.finish()
        self.judge.finish()
        return self.verdict(values, warm_until, descriptors_first, left, code)

    def verdict(self, values, warm_until, descriptors_first, descriptors_left, code):
        wrong = check_counters(values, self.log, self.judge, self.may_lose)
        for what, unit, first, last, allowed in self.watch.growth(warm_until):
            print(f"{what}: {first:.0f} {unit} in the first fifth, {last:.0f} {unit} in the last (median, after warming up)")
            # What ThreadSanitizer remembers of memory grows with it.
            if last - first > allowed and "/tsan/" not in TAILOR:
                wrong.append(f"{what} grew by {last - first:.0f} {unit}, more than {allowed}")
        # The store's segment may have been opened since.
        if descriptors_left > descriptors_first + 1:
            wrong.append(f"{descriptors_left} descriptors are open besides connections to servers, {descriptors_first} at the start")
        if code != 0:
            wrong.append(f"the proxy ended with {code}")
        said = self.proxy.log()
        for text, expected in (("has been read again", self.reloads), ("nothing has changed", self.invalid)):
            if said.count(text) != expected:
                wrong.append(f'the proxy said "{text}" {said.count(text)} times, not {expected}')
        for path in sorted(self.scene.directory.glob("sanitizer*")):
            wrong.append(f"a sanitizer reports:\n{path.read_text()[:4000]}")
        if self.judge.failed:
            wrong.append(f"{self.judge.failed} times a request went wrong:")
            for path, text in self.judge.failures:
                wrong.append(text + (f"\n  access log: {self.log.errors[path]}" if path in self.log.errors else ""))
        if self.too_little():
            wrong.append("there was too little to soak in")
        self.summarize()
        for text in wrong:
            print("FAILED:", text)
        return not wrong

    def too_little(self):
        return (self.judge.counts["good"] < self.seconds * 10 or self.servers.killed + self.servers.stopped == 0
                or self.reloads + self.invalid == 0)

    def summarize(self):
        counts, late = self.judge.counts, self.clients.pace.late
        print(f"{counts['begun']} requests: {counts['good']} answered right, {counts['502']} times 502, {counts['503']} times 503 and {counts['cut']} "
              f"cut off while a server ended, {counts['untaken']} behind those, {counts['left']} clients left; "
              f"{self.servers.killed} kills, {self.servers.stopped} stops, {self.reloads} reloads, {self.invalid} invalid ones; seed {self.options.seed}"
              + (f"; {late} times all clients were busy" if late else ""))


async def supervise(soak):
    try:
        return await soak.run()
    finally:
        await soak.servers.kill()


def main():
    parser = argparse.ArgumentParser(prog="./run soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("minutes", nargs="?", type=float, default=float(os.environ.get("SOAK_MINUTES", "30")))
    parser.add_argument("--seed", type=int, default=1, help="of what clients, servers and reloads do; their timing is the machine's")
    conclude("soak", Soak, parser.parse_args())


def conclude(name, make, options):
    """Runs it in a scene of its own, says how it ended, and ends the program."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    scene = Scene()
    code = 1
    try:
        code = 0 if asyncio.run(supervise(make(scene, options))) else 1
    except Skip as reason:
        print(f"skipped: {reason}")
        code = 77
    except Failure as failure:
        print("FAILED:", failure)
    finally:
        for process in scene.processes:
            process.kill()
        if code == 1:
            print(f"what it left to look at is in {scene.directory}")
        else:
            shutil.rmtree(scene.directory)
    if code != 77:
        print(f"{name} FAILED" if code else f"{name} passed")
    sys.exit(code)


if __name__ == "__main__":
    main()
