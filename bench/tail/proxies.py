# SPDX-License-Identifier: Apache-2.0
"""What stands between the load and the two servers, each started anew for each slice, all at the same priority."""
import http.client
import subprocess
import time
from pathlib import Path

import contestants
import harness
from contestants import ENVOY_NAME, HAPROXY, NGINX
from harness import check
from rounds import free_port

HERE = Path(__file__).resolve().parent
DIRECT, FLOOR, BESIDE, LEASTCONN = "direct", "floor", "floor-beside", "haproxy-leastconn"
OFF, REACTION, FIFO, PREDICTION = "tailor-off", "tailor-reaction", "tailor-fifo", "tailor-prediction"
ALL = (DIRECT, NGINX, HAPROXY, LEASTCONN, ENVOY_NAME, OFF, REACTION, FIFO, PREDICTION, FLOOR, BESIDE)
TITLES = {HAPROXY: "haproxy, roundrobin", LEASTCONN: "haproxy, leastconn", ENVOY_NAME: "envoy, hedge after 10 ms",
          OFF: "tailor, failover off", REACTION: "tailor, reaction", FIFO: "the same, SCHED_FIFO", PREDICTION: "tailor, and prediction",
          FLOOR: "direct, no collections", BESIDE: "the same, beside one"}
CONNECTIONS = 256
# What Tailor is told, most first; `tailor check` says which this build knows.
REACTIONS = ("gc, safepoint, stall, crash", "gc")
PREDICTIONS = ("predict: on, collect: full",)
START_S = 15


def program(name):
    return contestants.program(HAPROXY if name == LEASTCONN else name)


class Peer(harness.Process):
    """nginx, HAProxy or Envoy before both servers."""

    def __init__(self, scene, name, servers):
        self.port, directory = free_port(), scene.directory / f"{name}.d"
        directory.mkdir(exist_ok=True)
        values = {"PORT": self.port, "A": servers[0].port, "B": servers[1].port, "CONNECTIONS": CONNECTIONS, "DIRECTORY": directory,
                  "BALANCE": "leastconn" if name == LEASTCONN else "roundrobin"}
        super().__init__(name, self.command(name, directory, values), scene.directory, nice=-10)
        scene.keep(self)
        self.wait_serving()

    @staticmethod
    def command(name, directory, values):
        if name == NGINX:
            return [program(name), "-p", directory, "-e", "stderr", "-c",
                    contestants.configuration(directory, "nginx.conf", values, HERE)]
        if name in (HAPROXY, LEASTCONN):
            return [program(name), "-db", "-f", contestants.configuration(directory, "haproxy.cfg", values, HERE)]
        return [program(name), "--concurrency", 1, "--disable-hot-restart", "--log-level", "warning", "-c",
                contestants.configuration(directory, "envoy.yaml", values, HERE)]

    def wait_serving(self):
        until = time.monotonic() + START_S
        while True:
            check(self.running() and time.monotonic() < until, f"{self.name} does not serve:\n{self.log()}")
            try:
                if harness.get(self.port, "/ready", timeout=2)[0] == 200:
                    return
            except (OSError, http.client.HTTPException):
                time.sleep(0.02)

    def moved(self):
        return None


class Tailor(harness.Proxy):
    """`tailor proxy` as it comes: kernel events, timelines, agents; one server active, the other one its backup."""

    def __init__(self, scene, name, servers, failover, predict):
        super().__init__(scene, name, [(server.name, server.address) for server in servers], failover=failover, predict=predict,
                         more="priority: {fifo: 10}\n" if name == FIFO else "")
        scene.keep(self)
        self.wait_serving(agents=len(servers))

    def moved(self):
        status = self.status()
        reactions, returns = ({bucket["le_us"] or float("inf"): bucket["count"] for bucket in status[key]["buckets"]}
                              for key in ("reactions", "reactions_to_returns"))
        return {"moved": status["failed_over"], "not_moved": {reason: count for reason, count in status["not_moved"].items() if count},
                "reactions": reactions, "returns": returns}


class Abilities:
    """What this build of Tailor can be told."""

    def __init__(self, directory):
        self.config = directory / "ability.yaml"
        self.reaction = next((on for on in REACTIONS if self.takes(f"failover: {{on: [{on}]}}\n")), None)
        self.prediction = next((keys for keys in PREDICTIONS if self.takes(f"failover: {{{keys}}}\n")), None)

    def takes(self, lines):
        self.config.write_text("listen: 127.0.0.1:0\nservers: [{name: a, address: \"127.0.0.1:1\"}, {name: b, address: \"127.0.0.1:2\"}]\n"
                               + lines)
        return subprocess.run([harness.TAILOR, "check", "-c", self.config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    def why_not(self, name):
        """Why this row cannot be; None if it can."""
        if name == PREDICTION and not self.prediction:
            return "this build does not predict yet"
        if name not in (DIRECT, FLOOR, BESIDE, OFF, REACTION, FIFO, PREDICTION) and not program(name):
            return "it is not installed"
        return None


def start(scene, name, servers, abilities):
    if name == OFF:
        return Tailor(scene, name, servers, False, "")
    if name in (REACTION, FIFO, PREDICTION):
        return Tailor(scene, name, servers, abilities.reaction, abilities.prediction if name == PREDICTION else "")
    return Peer(scene, name, servers)
