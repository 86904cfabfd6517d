#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A request of seconds over rings that go around many times meanwhile has as whole a timeline as one of milliseconds.

Another server, which is traced, too, fills the rings: it has an interpreter lock of its own.
"""
import tempfile

from busy_proxy import busy_proxy, get, timeline_of

SECONDS = 6


def check_whole(timeline):
    said = {key: timeline[key] for key in ("causes", "join", "losses", "missing")}
    print(said)
    assert not timeline["losses"], said
    assert not any("lost" in text for text in timeline["missing"]), said
    assert timeline["join"] in ("certain", "confirmed"), said
    # Its first 10 ms of work are told, too, however long ago they were when it ended.
    begin = [span for span in timeline["spans"] if span["offset_ns"] < 200e6 and span["cause"] in ("on-cpu", "preempted", "run-queue")]
    assert sum(span["duration_ns"] for span in begin) > 9e6, said


def main():
    with tempfile.TemporaryDirectory() as directory, busy_proxy(directory) as (proxy, noisy):
        get(proxy.port, "/work?ms=10&sleep=0.03")
        get(proxy.port, f"/work?ms=10&sleep={SECONDS}")
        get(noisy.port, "/noise?rounds=-1")
        short, long = timeline_of(proxy, "sleep=0.03"), timeline_of(proxy, f"sleep={SECONDS}")
        check_whole(short)
        check_whole(long)


main()
