# SPDX-License-Identifier: Apache-2.0
"""`tailor demo --json`: its promise (the longest wait shrinks, the slowest requests are explained), and that it leaves nothing."""
import datetime
import json
import os
import signal
import time

import harness
from harness import check

SECONDS = 8
RUN_KEYS = {"failover", "measured_from", "p50_ms", "p99_ms", "p999_ms", "max_ms", "requests", "bad", "collections", "longest_collection_ms",
            "host_stall_ms", "failed_over", "repeats"}


def command(scene, *options):
    return [harness.TAILOR, "demo", "--json", "--server-jar", harness.JAR, "--agent", harness.AGENT, "--index", harness.INDEX,
            "--dir", scene.directory / "demo", *options]


def running_with(text):
    """Pids of processes whose command line holds the text."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if any(text.encode() in word for word in words) and int(pid) != os.getpid():
            found.append(int(pid))
    return found


def nothing_is_left(scene):
    deadline = time.monotonic() + 5
    while running_with(str(scene.directory)) and time.monotonic() < deadline:
        time.sleep(0.1)
    check(not running_with(str(scene.directory)), f"left running: {running_with(str(scene.directory))}")
    sockets = [path for path in scene.directory.rglob("*") if path.is_socket()]
    check(not sockets, f"left: {sockets}")


def run_demo(scene, attempt):
    """A whole demo; everything but the waits is judged here. Returns its two runs."""
    demo = scene.run(f"demo{attempt}", *command(scene, "--seconds", SECONDS), seconds=150)
    check(demo.popen.returncode == 0, f"the demo ended with {demo.popen.returncode}:\n{demo.log()}")
    result = json.loads(demo.out())
    check(set(result) == {"runs", "slowest", "timelines"}, f"keys: {sorted(result)}")
    off, on = result["runs"]
    check(off["failover"] is False and on["failover"] is True, f"runs: {result['runs']}")
    for run in (off, on):
        check(set(run) == RUN_KEYS, f"keys of a run: {sorted(run)}")
        check(run["requests"] == 200 * SECONDS and run["bad"] == 0, f"{run}")
        check(run["collections"] >= 3 and run["longest_collection_ms"] >= 40, f"too few or too short collections: {run}")
        check(0 < run["p50_ms"] <= run["p99_ms"] <= run["p999_ms"] <= run["max_ms"], f"{run}")
    check(off["failed_over"] == 0 and on["failed_over"] > 0, f"runs: {result['runs']}")
    # A request waits for the rest of a collection, and the longest wait is about the longest collection.
    check(off["max_ms"] >= 0.8 * off["longest_collection_ms"], f"{off}")

    check(len(result["slowest"]) == 3, f"{len(result['slowest'])} slowest timelines")
    slowest = [harness.Timeline(timeline) for timeline in result["slowest"]]
    if off["host_stall_ms"]:
        # The slowest requests may be those that a freeze of the machine held up, and these are no collection's.
        stored = sorted(scene.dump(result["timelines"], "--since", off["measured_from"]), key=harness.Timeline.ms, reverse=True)
        check([t.ms() for t in stored[:3]] == [t.ms() for t in slowest], f"the slowest of the store are others: {result['slowest']}")
        slowest = [timeline for timeline in stored if timeline.dominant == "gc"][:3]
        check(len(slowest) == 3, f"only {len(slowest)} of {len(stored)} timelines name a collection")
    # None of the time in which everything warmed up: the client saw none that took longer.
    since = datetime.datetime.fromisoformat(off["measured_from"].replace("Z", "+00:00")).timestamp()
    for timeline in slowest:
        timeline.check_whole()
        check(timeline.data["wall_ns"] >= since * 1e9 - 1e6, f"since {off['measured_from']}: {timeline}")
        # A client on the same machine that is woken by the answer may push the worker out before that notes its end.
        check(timeline.ms() <= off["max_ms"] + 1 + timeline.time_of("proxy-run-queue"), f"{off['max_ms']} ms at most: {timeline}")
        check(timeline.ms() >= 40 and timeline.dominant == "gc", f"{timeline}")
        details = " ".join(detail for stretch in timeline.stretches("gc") for detail in stretch[2])
        check("Serial" in details, f"no collector is named: {timeline}")
    check(len(scene.dump(result["timelines"])) >= 3, f"{result['timelines']} holds no timelines")
    nothing_is_left(scene)
    return off, on


def the_demo_shows_both_promises(scene):
    harness.need_search_server()
    harness.need_root()
    waits = harness.Waits()
    done = False
    while not done:
        off, on = run_demo(scene, waits.left)
        loads = []
        for run, name in ((off, "failover-off"), (on, "failover-on")):
            load = json.loads((scene.directory / "demo" / (f"{name}-{run['repeats'] + 1}" if run["repeats"] else name) / "load.json").read_text())
            stall = load["host_stall"]
            check(run["host_stall_ms"] == (stall and stall["longest_ms"]), f"{run['host_stall_ms']} is not of {stall}")
            check(run["p99_ms"] == load["response"]["p99_ms"] and run["max_ms"] == load["response"]["max_ms"], f"{run}, but {load}")
            loads.append(load)
        done = waits.judge(*loads)


def asked_to_stop_it_stops_what_it_started(scene):
    harness.need_search_server()
    for delay in (1, 8):
        demo = scene.keep(harness.Process(f"demo{delay}", command(scene), scene.directory))
        time.sleep(delay)
        demo.popen.send_signal(signal.SIGINT)
        check(demo.wait(20) == 1 and demo.out() == "", f"ended with {demo.popen.returncode}, printed {demo.out()[:100]}")
        nothing_is_left(scene)


def killed_it_takes_its_children_along(scene):
    harness.need_search_server()
    demo = scene.keep(harness.Process("demo", command(scene), scene.directory))
    time.sleep(2)
    check(len(running_with(str(scene.directory))) >= 3, "the servers do not run")
    # This one process only: its children have groups of their own.
    os.kill(demo.pid, signal.SIGKILL)
    demo.wait(5)
    nothing_is_left(scene)


harness.run(the_demo_shows_both_promises, asked_to_stop_it_stops_what_it_started, killed_it_takes_its_children_along)
