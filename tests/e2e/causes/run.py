# SPDX-License-Identifier: Apache-2.0
"""Plants each cause as often as wanted, and judges."""
import os
import subprocess
import sys
import time

import harness
from harness import Skip, check, need

from . import in_server, jvm, judge, network, outside
from .freezes import Freezes
from .stage import Files, Stage, note

PLANTS = in_server.PLANTS + network.PLANTS + outside.PLANTS + jvm.PLANTS
ALONE = "TAILOR_CAUSES_ALONE"
# A freeze of the machine that makes this much of a request's time spoils the planting.
FROZEN = 0.1


def in_a_network_of_its_own():
    """Starts this program again in a network namespace: what is planted there hits nobody else."""
    need(os.geteuid() == 0, "kernel events, real-time priorities and network namespaces need root")
    if os.environ.get(ALONE):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return
    os.environ[ALONE] = "1"
    os.execvp("unshare", ["unshare", "--net", sys.executable, *sys.argv])


def spoiled(hit, freezes):
    return any(request.overlap_ns(*freeze) > FROZEN * request.ns() for request in hit for freeze in freezes)


def plant_often(stage, plant, times, freezes):
    """Returns [(plant, request)] of all requests that were hit, and how it went."""
    counts = {"wanted_times": times, "planted_times": 0, "frozen": 0, "missed": 0}
    found = []
    plant.set_up(stage)
    try:
        if plant.rehearsed:
            plant.plant(stage)
            stage.run(100)
        tries = 2 * times + 6
        while counts["planted_times"] < times and tries > 0:
            tries -= 1
            stage.run(60)
            before = len(stage.traffic.requests)
            planting = plant.plant(stage)
            stage.traffic.finish()
            time.sleep(0.01)  # the watchers' turn, and the JVM's log
            since = [request for number, request in stage.traffic.requests.items() if number > before]
            hit = planting.hit(since, plant.least_ms)
            if spoiled(hit or planting.requests, freezes.list()):
                counts["frozen"] += 1
            elif not hit or (plant.all_hit and not set(planting.requests) <= set(hit)):
                counts["missed"] += 1
                if os.environ.get("TAILOR_CAUSES_SAY"):
                    note(f"missed {plant.name}: " + ", ".join(f"{r.target} {r.ns() / 1e6:.1f} ms" for r in planting.requests)
                         + f"; {[(b - planting.requests[0].sent_ns, e - planting.requests[0].sent_ns) for b, e in planting.intervals or []]}")
            else:
                counts["planted_times"] += 1
                found += [(plant, request) for request in hit]
    finally:
        plant.tear_down(stage)
    return found, counts


def run(scene, times, names=None, seed=1):
    """Returns (summary, verdicts). names: of the plants, None for all."""
    harness.need_root()
    need(len(os.sched_getaffinity(0)) >= 2, "planting needs two CPUs")
    plants = [plant() for plant in PLANTS if names is None or plant.name in names]
    check(plants, f"there is no plant of these: {', '.join(plant.name for plant in PLANTS)}")
    files = Files(scene.directory)
    freezes = Freezes(sorted(os.sched_getaffinity(0)))
    counts, timelines, verdicts, skipped = {}, [], [], []
    try:
        for session in dict.fromkeys(plant.session for plant in plants):
            stage = Stage(scene, session, files, seed)
            found = []
            stage.act()
            try:
                for plant in (plant for plant in plants if plant.session == session):
                    try:
                        hit, counts[plant.name] = plant_often(stage, plant, times, freezes)
                        found += hit
                    except Skip as reason:
                        note(f"{plant.name} cannot be planted here: {reason}")
                        skipped.append(plant)
            finally:
                stage.rest()
            stage.end()
            stored = scene.dump(stage.proxy.timelines)
            timelines += stored
            named = judge.by_number(stored)
            verdicts += [judge.Verdict(plant, request, named.get(request.number)) for plant, request in found]
            for plant in {plant for plant, _ in found}:
                lacking = [phrase for phrase in plant.needs if any(said.startswith(phrase) for t in stored for said in t.missing)]
                if lacking:
                    note(f"{plant.name} is not judged: this host cannot tell {', '.join(lacking)}")
                    skipped.append(plant)
    finally:
        freezes.close()
    planted = [plant for plant in plants if plant not in skipped]
    need(planted, "none of the causes can be planted here")
    verdicts = [verdict for verdict in verdicts if verdict.plant in planted]
    return judge.summarize(verdicts, planted, counts, timelines), verdicts
