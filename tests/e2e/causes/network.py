# SPDX-License-Identifier: Apache-2.0
"""Causes between the processes: what TCP keeps back or loses, and clients that take their time."""
import shutil
from pathlib import Path

from harness import need

from .plant import Alone, Plant, Planting
from .stage import run_quietly
from .traffic import Connection, now_ns

LOSE = Path(__file__).parent / "drop.bpf.c"


class Nagle(Alone):
    name = "nagle"
    target = "/nagle"
    accepted = ("response-buffered",)
    why = "head and body in two writes without TCP_NODELAY: the body waits until the proxy's kernel acknowledges the head, 40 ms later"
    least_ms = 30


class Retransmission(Plant):
    name = "retransmission"
    accepted = ("retransmission",)
    why = "the response's segment is lost after it was sent, and sent again when TCP's timer says so, 200 ms later"
    least_ms = 100

    def set_up(self, stage):
        need(shutil.which("clang") and shutil.which("tc"), "there is no clang or no tc")
        self.program = stage.directory / "lose.o"
        run_quietly("clang", "-O2", "-g", "-target", "bpf", f"-I/usr/include/{'x86_64-linux-gnu'}", f"-DPORT={stage.victim.port}", "-c", LOSE, "-o",
                    self.program)
        run_quietly("tc", "qdisc", "replace", "dev", "lo", "clsact")

    def plant(self, stage):
        request = stage.send("/sleep?ms=25")
        stage.run(5)
        run_quietly("tc", "filter", "add", "dev", "lo", "ingress", "bpf", "direct-action", "object-file", self.program, "section", "tc")
        begin_ns = now_ns()
        while now_ns() < request.sent_ns + 40_000_000:
            stage.run(5)
        run_quietly("tc", "filter", "del", "dev", "lo", "ingress")
        stage.traffic.finish()
        return Planting([request], [(begin_ns, request.done_ns)])

    def tear_down(self, stage):
        run_quietly("tc", "qdisc", "del", "dev", "lo", "clsact")


class SlowClient(Plant):
    name = "slow-client"
    covered = False
    takes_cpu = True  # server, proxy and client hand on megabytes
    accepted = ("slow-client",)
    why = "the client does not read for 50 ms, and the response does not fit into what the sockets hold"
    response_kib = 16 << 10
    receive_buffer = 64 << 10

    def begin_to_read(self, stage, connection):
        stage.traffic.pause_reading(connection, now_ns() + 50_000_000)
        stage.run(50)

    def plant(self, stage):
        connection = Connection(stage.proxy.port, self.receive_buffer)
        request = stage.send(f"/big?kib={self.response_kib}", connection)
        self.begin_to_read(stage, connection)
        stage.traffic.finish()
        connection.close()
        return Planting([request])


class SmallWindow(SlowClient):
    name = "small-window"
    why = "the client's window holds 16 KiB, and it takes 1 ms until it opens again, as on a network: hundreds of steps, and little work in each"
    response_kib = 12 << 10
    receive_buffer = 8 << 10

    def begin_to_read(self, stage, connection):
        connection.pace_ns = 1_000_000
        stage.run(10)


PLANTS = [Nagle, Retransmission, SlowClient, SmallWindow]
