# SPDX-License-Identifier: Apache-2.0
"""Plants each cause as often as wanted, and judges."""
import contextlib
import os
import subprocess
import sys
import time

import harness
from harness import Skip, check, need

from . import in_server, jvm, judge, network, outside
from .cgroup import remove_leftovers
from .freezes import Freezes
from .stage import Files, Stage, note

PLANTS = in_server.PLANTS + network.PLANTS + outside.PLANTS + jvm.PLANTS
ALONE = "TAILOR_CAUSES_ALONE"
# A freeze of the machine that makes this much of a request's time spoils the planting; waits for CPUs that others had, this much.
FROZEN = 0.1
DISTURBED = 0.35
# Between two plantings, and more for each request that the last one made slow: explaining may take 2% of a CPU, no more.
REST_MS, REST_EACH_MS = 60, 40
TRIALS = 5


def in_namespaces_of_its_own():
    """Starts this program again with a network and mounts that nobody else has: what is planted there hits nobody else."""
    need(os.geteuid() == 0, "kernel events, real-time priorities and namespaces need root")
    if os.environ.get(ALONE):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return
    os.environ[ALONE] = "1"
    os.execvp("unshare", ["unshare", "--net", "--mount", sys.executable, *sys.argv])


def spoiled(hit, freezes):
    """Also by many short ones."""
    return any(frozen_ns(request, freezes) > FROZEN * request.ns() for request in hit)


def frozen_ns(request, freezes):
    """For how long any CPU stood still during the request; of several at once, that is once. freezes: sorted."""
    total_ns, until_ns = 0, 0
    for begin_ns, end_ns in freezes:
        total_ns += request.overlap_ns(max(begin_ns, until_ns), end_ns) if end_ns > until_ns else 0
        until_ns = max(until_ns, end_ns)
    return total_ns


def try_out(stage, plant):
    """Until when a request of it is a usual one on this machine, in ns."""
    if plant.usual is None:
        return float("inf")
    took_ns = []
    for _ in range(TRIALS):
        planting = plant.plant(stage)
        stage.traffic.finish()
        took_ns += [request.ns() for request in planting.requests]
        stage.run(REST_MS)
    return plant.usual * min(took_ns)


def plant_often(stage, plant, times, freezes):
    """Returns [(plant, request)] of all requests that were hit, and how it went."""
    counts = {"wanted_times": times, "planted_times": 0, "frozen": 0, "disturbed": 0, "missed": 0}
    found = []
    plant.set_up(stage)
    try:
        if plant.rehearsed:
            plant.plant(stage)
            stage.run(100)
        usual_ns = try_out(stage, plant)
        tries = 4 * times + 20
        hit = []
        while counts["planted_times"] < times and tries > 0:
            tries -= 1
            stage.run(REST_MS + REST_EACH_MS * len(hit))
            before = len(stage.traffic.requests)
            waited_ns = stage.waited_for_cpu_ns()
            planting = plant.plant(stage)
            stage.traffic.finish()
            waited_ns = stage.waited_for_cpu_ns() - waited_ns
            time.sleep(0.01)  # the watchers' turn, and the JVM's log
            since = [request for number, request in stage.traffic.requests.items() if number > before]
            hit = planting.hit(since, plant.least_ms)
            if spoiled(hit or planting.requests, freezes.list()):
                counts["frozen"] += 1
            elif not plant.takes_cpu and waited_ns > DISTURBED * max(request.ns() for request in planting.requests):
                counts["disturbed"] += 1
            elif any(request.ns() > usual_ns for request in hit):
                counts["disturbed"] += 1
            elif not hit or (plant.all_hit and not set(planting.requests) <= set(hit)):
                counts["missed"] += 1
                if os.environ.get("TAILOR_CAUSES_SAY"):
                    note(f"missed {plant.name}: " + ", ".join(f"{r.target} {r.ns() / 1e6:.1f} ms" for r in planting.requests)
                         + f"; {[(b - planting.requests[0].sent_ns, e - planting.requests[0].sent_ns) for b, e in planting.intervals or []]}")
            else:
                longest = max(hit, key=lambda request: request.ns())
                check(longest.ns() <= plant.most_ms * 1e6, f"{plant.name}: {longest.target} took {longest.ns() / 1e6:.0f} ms, more than was planted")
                counts["planted_times"] += 1
                found += [(plant, request) for request in hit]
    finally:
        plant.tear_down(stage)
    return found, counts


class Trial:
    """What was planted and named so far."""

    def __init__(self, scene, names=None):
        harness.need_root()
        need(len(os.sched_getaffinity(0)) >= 2, "planting needs two CPUs")
        remove_leftovers()
        self.scene = scene
        self.plants = [plant() for plant in PLANTS if not names or plant.name in names]
        unknown = set(names or []) - {plant.name for plant in self.plants}
        check(not unknown, f"no plant is called {', '.join(unknown)}; there are {', '.join(plant.name for plant in PLANTS)}")
        self.rounds = 0
        self.counts, self.timelines, self.verdicts = {}, [], []
        self.frozen = {}

    def run(self, times, plants=None, seed=1):
        """Plants each so often, all of them or those given, which were planted before."""
        plants = plants or self.plants
        self.rounds += 1
        with contextlib.ExitStack() as until:
            files = Files(self.scene.directory, until)
            freezes = until.enter_context(contextlib.closing(Freezes(sorted(os.sched_getaffinity(0)))))
            for session in dict.fromkeys(plant.session for plant in plants):
                self._play(session, [plant for plant in plants if plant.session == session], times, files, freezes, seed)
        need(self.plants, "none of the causes can be planted and told here")

    def _play(self, session, plants, times, files, freezes, seed):
        stage = Stage(self.scene, session, f"{session}-{self.rounds}", files, seed)
        found = []
        stage.act()
        try:
            for plant in plants:
                note(f"{plant.name}, {times} times ({self.plants.index(plant) + 1} of {len(self.plants)}, on {session})")
                try:
                    hit, counts = plant_often(stage, plant, times, freezes)
                    found += hit
                    before = self.counts.setdefault(plant.name, dict.fromkeys(counts, 0))
                    for key in counts:
                        before[key] += counts[key]
                except Skip as reason:
                    self._leave_out(plant, f"cannot be planted here: {reason}")
        finally:
            stage.rest()
        stage.end()
        stored = self.scene.dump(stage.proxy.timelines)
        self.timelines += stored
        named = judge.by_number(stored)
        self.verdicts += [judge.Verdict(plant, request, named.get(request.number)) for plant, request in found]
        self._see_frozen(stage.traffic.requests.values(), freezes.list(), named)
        for plant in plants:
            lacking = [phrase for phrase in plant.needs if any(said.startswith(phrase) for t in stored for said in t.missing)]
            if lacking:
                self._leave_out(plant, f"is not judged: timelines say that this host cannot tell {', '.join(lacking)}")

    def _see_frozen(self, requests, freezes, named):
        """What requests are called that the machine's host held up. Nobody planted that, so it is told and not judged."""
        for request in requests:
            if any(request.overlap_ns(*freeze) >= 0.6 * request.ns() >= 12e6 for freeze in freezes):
                timeline = named.get(request.number)
                name = timeline.dominant if timeline else "no timeline"
                self.frozen[name] = self.frozen.get(name, 0) + 1

    def _leave_out(self, plant, why):
        note(f"{plant.name} {why}")
        self.plants.remove(plant)
        self.verdicts = [verdict for verdict in self.verdicts if verdict.plant is not plant]

    def summary(self):
        return judge.summarize(self.verdicts, self.plants, self.counts, self.timelines, self.frozen)

    def doubtful(self):
        """Plants that are below what is promised for each, so far."""
        return [plant for plant, row in zip(self.plants, self.summary()["rows"]) if row["right"] < judge.RIGHT_OF_EACH * row["requests"]]
