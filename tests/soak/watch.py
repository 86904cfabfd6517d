# SPDX-License-Identifier: Apache-2.0
"""What the proxy's process takes while it is soaked, and what its own counters say."""
import collections
import os
import re
import signal
import statistics
import time
from pathlib import Path

from harness import UnixConnection

# What may come and go by chance. A leak of 100 bytes a request is more than that after a few minutes at half load; smaller ones
# are LeakSanitizer's.
GROWTH_KIB = 8 * 1024
# In a short run, pools and rings are still touched for the first time.
SHORT_S, SHORT_GROWTH_KIB = 170, 32 * 1024
GROWTH_DESCRIPTORS = 16
ERRORS_KEPT = 100000


def fetch(admin_socket, path):
    connection = UnixConnection(str(admin_socket))
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def metrics(admin_socket):
    """{name or name{labels}: value}"""
    found = re.findall(r"^(tailor_\w+(?:\{[^}]*\})?) (\S+)$", fetch(admin_socket, "/metrics"), re.M)
    return {name: float(value) for name, value in found}


def total(values, name):
    """Of one name over all its labels."""
    return int(sum(value for key, value in values.items() if key == name or key.startswith(name + "{")))


class Watch:
    """Samples of a process: resident and mapped memory in KiB, descriptors, CPU seconds."""

    def __init__(self, pid):
        self.pid = pid
        self.samples = []

    def sample(self):
        status = Path(f"/proc/{self.pid}/status").read_text()
        resident, mapped = (int(re.search(rf"^{name}:\s+(\d+)", status, re.M)[1]) for name in ("VmRSS", "VmSize"))
        descriptors = len(os.listdir(f"/proc/{self.pid}/fd"))
        ticks = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        self.samples.append((time.monotonic(), resident, mapped, descriptors, sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")))
        return self.samples[-1]

    def growth(self, warm_until):
        """[(what, unit, median of the first fifth, of the last, allowed growth)] of the samples behind the warm-up."""
        samples = [sample for sample in self.samples if sample[0] >= warm_until] or self.samples[-1:]
        fifth = max(1, len(samples) // 5)
        kib = SHORT_GROWTH_KIB if samples[-1][0] - self.samples[0][0] < SHORT_S else GROWTH_KIB
        rows = []
        for column, what, unit, allowed in ((1, "resident", "KiB", kib), (2, "mapped", "KiB", kib),
                                            (3, "descriptors", "", GROWTH_DESCRIPTORS)):
            first, last = (statistics.median(sample[column] for sample in part) for part in (samples[:fifth], samples[-fifth:]))
            rows.append((what, unit, first, last, allowed))
        return rows


def target_of(line):
    """Of a line of the access log; "-" where no request was understood."""
    words = line.split('"')[1].split(" ")
    return words[1] if len(words) > 1 else "-"


class AccessLog:
    """Counts the lines by their end; what was read is deleted, so that hours of it fit on a disk."""

    def __init__(self, path):
        self.path, self.renamed = path, path.with_name("renamed.log")
        self.ends = collections.Counter()
        self.answered = 0
        self.errors = {}  # path: its line

    def count(self, path):
        if not path.exists():
            return
        with open(path, encoding="latin-1") as lines:
            for line in lines:
                end = re.search(r" id=[0-9a-f]{16} server=(\S+) end=(\S+) attempts=\d .* client_ms=[\d.]+( refused=\S+)?$", line)
                self.ends[end[2] if end else f"torn: {line!r}"] += 1
                # Of one that was refused it is the server that failed.
                self.answered += bool(end and end[1] != "-" and not end[3])
                if end and end[2] != "done" and len(self.errors) < ERRORS_KEPT:
                    self.errors[target_of(line)] = line.strip()
        path.unlink()

    def turn(self, process):
        """What was renamed the last time is no longer written to; now the present one is."""
        # The observer gives way to all others: on a busy machine it may not have opened a new one for seconds.
        if not self.path.exists():
            return
        self.count(self.renamed)
        self.path.rename(self.renamed)
        process.send_signal(signal.SIGUSR1)

    def finish(self):
        self.count(self.renamed)
        self.count(self.path)


def ends_of(values):
    """How many of the proxy's requests ended in which way."""
    ends = {end: total(values, f"tailor_{name}_total") for end, name in (("refused", "refused"), ("client-gone", "client_gone"), ("cut", "cut"))}
    ends["done"] = total(values, "tailor_requests_total") - sum(ends.values())
    return ends


def observer_is_through(values):
    """Whether it has read of all requests that were answered to their end, or will never have."""
    return (total(values, "tailor_response_seconds_count") >= ends_of(values)["done"]
            or total(values, "tailor_request_events_lost_total") > 0)


def check_counters(values, log, judge, may_lose=False):
    """
    Whether every request of the metrics ended in one way, and as the access log, the servers and the clients say. Returns complaints.
    With `may_lose`, the log is not compared if the observer did not come to read all.
    """
    ends, requests = ends_of(values), total(values, "tailor_requests_total")
    logged = {end: count for end, count in log.ends.items() if count}
    seen = judge.counts
    wrong = []
    print("the proxy counts", requests, "requests:", ", ".join(f"{count} {end}" for end, count in ends.items()))

    def same(what, one, other):
        if one != other:
            wrong.append(f"{what}: {one}, not {other}")

    def most(what, one, other):
        if one > other:
            wrong.append(f"{what}: {one}, more than {other}")

    lost = total(values, "tailor_request_events_lost_total")
    same("access_log_lost", total(values, "tailor_access_log_lost_total"), 0)
    if may_lose and (lost or not observer_is_through(values)):
        print(f"the observer had no CPU ({lost} events lost): the access log is not compared")
    else:
        same("request_events_lost", lost, 0)
        same("ends of requests in the access log", logged, {end: count for end, count in ends.items() if count})
        same("answered requests in the histogram and the access log", total(values, "tailor_response_seconds_count"), log.answered)
    same("clients of the proxy, when all have gone", total(values, "tailor_clients"), 0)
    same("requests in flight, when all have ended", total(values, "tailor_server_in_flight"), 0)
    most("good answers that clients have", seen["good"], ends["done"])
    most("refusals that clients have", seen["502"] + seen["503"], ends["refused"])
    most("requests that servers got", seen["executed"], total(values, "tailor_server_requests_total"))
    most("complete responses of servers", total(values, "tailor_server_responses_total"), seen["executed"])
    most("requests", requests, seen["begun"])
    return wrong
