# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks share: processes on a CPU of their own, a load generator's run, medians with their spread, bars."""
import ctypes
import json
import math
import os
import platform
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
RELEASE = SOURCE / "build/release"
TAILOR = RELEASE / "src/cli/tailor"
SERVER = RELEASE / "bench/load_server"


def say(text):
    print(f"bench: {text}", file=sys.stderr)


PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


def start_pinned(cpu, command, **options):
    """Starts it on that CPU. It ends with this program, even if that is killed."""
    def prepare():
        os.sched_setaffinity(0, {cpu})
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    return subprocess.Popen([str(word) for word in command], preexec_fn=prepare, **options)


def start_server(cpu, body_bytes=2):
    """Starts the trivial server. Returns its process and its port; the caller ends it."""
    process = start_pinned(cpu, [SERVER, 0, body_bytes], stdout=subprocess.PIPE, text=True)
    return process, int(process.stdout.readline())


def run_generator(cpu, command, seconds):
    """Runs it to its end. Returns what it printed, and the CPU time of its process in us."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = start_pinned(cpu, command, stdout=out, stderr=err)
        watchdog = threading.Timer(seconds + 30, process.kill)
        watchdog.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            watchdog.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode != 0:
            sys.exit(f"bench: {' '.join(map(str, command))} failed with {process.returncode}: {err.read().strip()[-500:]}")
        return out.read(), (usage.ru_utime + usage.ru_stime) * 1e6


def run_tailor_load(cpu, url, seconds, *words):
    """`tailor load` on one thread, without a warm-up of its own. Returns its report, and the CPU time of its process in us."""
    # What it says of a schedule that was not kept is for the caller to judge.
    text, cpu_us = run_generator(cpu, [TAILOR, "load", "--json", "--allow-late", "--warm", "0s", "--duration",
                                       f"{round(seconds * 1000)}ms", "--threads", 1, *words, url], seconds)
    return json.loads(text), cpu_us


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def family(pid):
    """The process and all below it."""
    pids = [pid]
    for parent in pids:
        try:
            for task in Path(f"/proc/{parent}/task").iterdir():
                pids += map(int, (task / "children").read_text().split())
        except OSError:
            pass  # it has just ended
    return pids


def cpu_ns(pid):
    """CPU time of each thread of the process and of those below it: {thread: (name, ns)}. What has ended is left out."""
    used = {}
    for process in family(pid):
        try:
            for task in Path(f"/proc/{process}/task").iterdir():
                used[task.name] = (task / "comm").read_text().strip(), int((task / "schedstat").read_text().split()[0])
        except OSError:
            pass
    return used


def cpu_between(before, after):
    """CPU time in us of threads by their names."""
    used = {}
    for thread, (name, ns) in after.items():
        used[name] = used.get(name, 0) + (ns - before.get(thread, (name, 0))[1]) / 1000
    return used


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def spread_of_pairs(values):
    """The median, and between which two of the values the true one lies with 95% (by their ranks, whatever the distribution);
    all of them where they are too few for that."""
    values = sorted(values)
    count, below, rank = len(values), 0, 0
    while rank < (count - 1) // 2 and (below + math.comb(count, rank)) / 2 ** count <= 0.025:
        below += math.comb(count, rank)
        rank += 1
    rank = max(0, rank - 1)
    return {**spread(values), "low": values[rank], "high": values[count - 1 - rank]}


def describe_cpu():
    models = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    return {"cpu": models[0] if models else platform.machine(), "cpus": os.cpu_count(), "kernel": platform.release()}


def print_bars(bars, unknown="unknown"):
    for bar in bars:
        value = unknown if bar["value"] is None else f"{bar['value']:.2f}"
        print(f"{'ok  ' if bar['ok'] else 'FAIL'} {bar['name']}: {value} (limit {bar['limit']})")


def finish(summary, as_json, print_table):
    """Prints the summary and ends the program: 0 if each of its bars holds."""
    if as_json:
        json.dump(summary, sys.stdout, indent=1)
        print()
    else:
        print_table(summary)
    sys.exit(0 if all(bar["ok"] for bar in summary["bars"]) else 1)
