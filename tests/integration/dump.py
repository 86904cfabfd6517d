#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tailor dump` from the outside: exit codes, one-line errors with a remedy, text and JSON of a store that is read."""
import json
import os
import re
import subprocess
import tempfile

from stored import failover, timeline, write

TAILOR = os.environ["TAILOR"]


def dump(*arguments, code=0):
    done = subprocess.run([TAILOR, "dump", *arguments], capture_output=True, text=True, timeout=30)
    assert done.returncode == code, (arguments, done)
    return done.stdout, done.stderr


def one_line(text, *parts):
    assert text.count("\n") == 1, text
    for part in parts:
        assert part in text, (part, text)


with tempfile.TemporaryDirectory() as base:
    store = os.path.join(base, "timelines")
    _, error = dump(store, code=1)
    one_line(error, "no slow request has been recorded yet")
    os.mkdir(store)
    _, error = dump(store, code=1)
    one_line(error, "no slow request has been recorded yet")

    for mode in ([], ["--by-cause"], ["--what-if", "no-gc"]):
        nothing = json.loads(dump(store, "--json", *mode, code=1)[0])
        assert not any(nothing.get(key) for key in ("timelines", "causes", "slow_requests", "held_up")), nothing
    with open(os.path.join(store, "00000000000000000001.tailor"), "wb") as out:
        out.write(b"TAILORTL\x63\0\0\0\0\0\0\0")  # version 99
    _, error = dump(store, code=1)
    assert "can be read" in error and "newer version" in error and "recorded yet" not in error, error
    os.remove(os.path.join(store, "00000000000000000001.tailor"))

    letter = os.path.join(base, "letter.txt")
    with open(letter, "w") as out:
        out.write("Dear all, this is no timeline at all")
    _, error = dump(letter, code=1)
    one_line(error, "is not a store of timelines")

    records = [timeline(0xA1, [(13, 5_000_000)], 1_769_860_800_000_000_000),
               timeline(0xB2, [(19, 44_000_000)], 1_769_860_900_000_000_000),
               timeline(0xC3, [(13, 9_000_000)], 1_769_860_700_000_000_000)]
    segment = write(store, records)

    def ids(*arguments):
        found = json.loads(dump(store, "--json", *arguments)[0])["timelines"]
        return [entry["request"][-2:] for entry in found]

    assert ids() == ["c3", "a1", "b2"]  # by time
    assert ids("--slowest", "2") == ["b2", "c3"]
    assert ids("--cause", "gc") == ["c3", "a1"]
    assert ids("--request", "00000000000000b2") == ["b2"]
    assert ids("--since", "2026-01-31T13:00:00+01:00") == ["a1", "b2"]
    entry = json.loads(dump(store, "--format", "json", "--slowest", "1")[0])["timelines"][0]
    assert entry["client_ns"] == 44_000_000 and entry["dominant"] == "response-buffered"
    assert entry["spans"] == [{"offset_ns": 0, "duration_ns": 44_000_000, "cause": "response-buffered",
                               "cause_name": "response buffered by TCP", "pid": 0, "tid": 0, "thread": "worker",
                               "detail": ""}]

    for mode in ([], ["--json"], ["--by-cause"], ["--what-if", "no-gc"], ["--compare", store]):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([TAILOR, "dump", *mode, store], stdout=full, stderr=subprocess.PIPE, text=True, timeout=30)
        assert done.returncode == 1, done
        one_line(done.stderr, "cannot write the output: No space left on device")

    text, error = dump(store)
    assert text.count("request 00000000000000") == 3 and error == ""
    assert "\x1b" not in text and "\\x1b[31mred" in text
    assert "because of  response buffered by TCP, 44.0 ms (100.0%)" in text
    assert all(len(line) <= 100 for line in text.splitlines())

    _, error = dump(store, "--since", "1m", code=1)
    one_line(error, "none of the 3 timelines")
    _, error = dump(store, "--request", "00000000000000ff", code=1)
    one_line(error, "request 00000000000000ff is not among the 3 timelines")
    _, error = dump(os.path.join(base, "nowhere"), code=1)
    one_line(error, "timelines.path")
    for plant in (os.mkdir, os.mkfifo):  # what is no segment hides none
        foreign = os.path.join(store, "00000000000000000002.tailor")
        plant(foreign)
        text, error = dump(store)
        assert text.count("request 00000000000000") == 3 and "skipped damaged data in 1 place" in error, error
        os.rmdir(foreign) if plant is os.mkdir else os.unlink(foreign)
    _, error = dump(store, "--cause", "bad-luck", code=2)
    assert 'there is no cause "bad-luck"' in error and "response-buffered" in error and "gc" in error
    for wrong in (["--slowest", "0"], ["--slowest", "many"], ["--request", "xyz"], ["--since", "yesterday"],
                  ["--format", "xml"], ["--nonsense"], ["one", "two"]):
        dump(*wrong, code=2)

    # Damage is told on stderr, and costs what is damaged only.
    with open(segment, "r+b") as out:
        out.seek(16 + 20)
        out.write(b"\xff\xff\xff")
        out.seek(0, 2)
        out.write(b"\x40\x00\x00\x00torn")
    text, error = dump(store)
    assert text.count("request 00000000000000") == 2
    assert "skipped damaged data in 1 place" in error and "ignored 8 bytes" in error

with tempfile.TemporaryDirectory() as base:
    # Failovers beside timelines: each of the two is shown by itself, in order, and damage of one costs none of the other.
    store = os.path.join(base, "both")
    records = [failover(5_000, 136_000_000, 1_769_860_900_000_000_000, b"a", b"Allocation Failure", moved=7, not_moved=1,
                        why_not=b"begun", reacted_ns=412_000, saved_ns=900_000_000),
               timeline(0xA1, [(13, 5_000_000)], 1_769_860_800_000_000_000),
               failover(9_000, 50_000_000, 1_769_860_700_000_000_000, b"\x1b[31mb", kind=4)]
    segment = write(store, records)
    text, error = dump(store)
    assert text.count("request 00000000000000") == 1 and error == "", (text, error)
    text, error = dump("--failovers", store)
    lines = text.splitlines()
    assert error == "" and "\x1b" not in text, (text, error)
    assert lines[1].startswith("2026-01-31 11:58:20.000  \\x1b[31mb  stall "), lines
    assert lines[2].split() == ["2026-01-31", "12:01:40.000", "a", "gc:", "Allocation", "Failure", "7", "of", "8", "1", "begun", "412",
                                "us", "136", "ms", "~900", "ms"], lines
    assert "2 failovers, 8 requests moved, 1 not; about 900 ms of waiting saved" in text and "an estimate" in text, text
    found = json.loads(dump("--failovers", "--json", store)[0])["failovers"]
    assert [entry["kind"] for entry in found] == ["stall", "gc"] and found[1]["reacted_ns"] == 412_000, found
    assert (found[0]["reacted_ns"], found[0]["cause"], found[1]["saved_estimate_ns"]) == (None, None, 900_000_000), found
    found = json.loads(dump("--failovers", "--json", "--since", "2026-01-31T13:00:00+01:00", store)[0])["failovers"]
    assert [entry["kind"] for entry in found] == ["gc"], found
    _, error = dump("--failovers", "--since", "1m", store, code=1)
    one_line(error, "none of the 2 failovers")
    for wrong in (["--slowest", "3"], ["--cause", "gc"], ["--request", "00000000000000a1"], ["--by-cause"], ["--compare", "one", "two"]):
        dump("--failovers", *wrong, code=2)
    done = subprocess.run([TAILOR, "dump", "--failovers", store], stdout=open("/dev/full", "wb"), stderr=subprocess.PIPE, text=True, timeout=30)
    assert done.returncode == 1, done
    one_line(done.stderr, "cannot write the output")
    with open(segment, "r+b") as out:
        out.seek(16 + 20)
        out.write(b"\xff")
    assert len(json.loads(dump("--failovers", "--json", store)[0])["failovers"]) == 1
    assert "skipped damaged data in 1 place" in dump(store)[1] and "skipped damaged data in 1 place" in dump("--failovers", store)[1]
    one = os.path.join(base, "timelines-only")
    write(one, records[1:2])
    _, error = dump("--failovers", one, code=1)
    one_line(error, "no server stood still")
    assert json.loads(dump("--failovers", "--json", one, code=1)[0]) == {"failovers": []}
    only = os.path.join(base, "failovers-only")
    write(only, records[:1])
    _, error = dump(only, code=1)
    one_line(error, "no slow request has been recorded yet")
    _, error = dump("--failovers", os.path.join(base, "nowhere"), code=1)
    one_line(error, "does not exist")

GC, QUEUE, ON_CPU = 13, 5, 7
START = 1_769_860_800_000_000_000

with tempfile.TemporaryDirectory() as base:
    # Sums: 40 ms of collection in one request, which another waited behind; an ordinary one apart; three only counted.
    store = os.path.join(base, "sums")
    write(store, [
        timeline(0xA, [(ON_CPU, 2_000_000, 7, b"w", b""), (GC, 40_000_000, 7, b"w", b"")], START, begin_ns=1_000),
        timeline(0xB, [(QUEUE, 30_000_000, 7, b"w", b"behind request 000000000000000a"), (ON_CPU, 1_000_000, 7, b"w", b"")],
                 START, begin_ns=20_000_000, omitted=3),
        timeline(0xC, [(ON_CPU, 6_000_000, 7, b"w", b"")], START, begin_ns=60_000_000),
        timeline(0xD, [(GC, 500_000)], START, baseline=True),
    ])
    sums = json.loads(dump(store, "--by-cause", "--json")[0])
    assert (sums["slow_requests"], sums["ordinary_requests"], sums["omitted"], sums["left_out"]) == (3, 1, 3, 0), sums
    assert [entry["cause"] for entry in sums["causes"]] == ["gc", "server-queue", "on-cpu"]
    gc, _, cpu = sums["causes"]
    assert sum(entry["total_ns"] for entry in sums["causes"]) == sums["total_ns"] == 79_000_000
    assert abs(sum(entry["share"] for entry in sums["causes"]) - 1) < 1e-9
    assert (gc["dominant_in"], gc["seen_in"], gc["total_ns"], gc["worst"]) == (1, 1, 40_000_000, "000000000000000a")
    assert (cpu["dominant_in"], cpu["seen_in"], cpu["median_ns"], cpu["max_ns"]) == (1, 3, 2_000_000, 6_000_000)
    assert cpu["worst"] == "000000000000000c"
    left = json.loads(dump(store, "--by-cause", "--json", "--cause", "gc")[0])
    assert (left["slow_requests"], left["left_out"]) == (1, 2), left
    text, error = dump(store, "--by-cause", "--slowest", "2")
    assert "garbage collection" in text and "2 timelines cut out by options" in text and "3 more" in error, text
    assert all(len(line) <= 100 for line in text.splitlines())

    # Those that were only counted before --since are none of the chosen time's.
    times = os.path.join(base, "times")
    write(times, [timeline(0xA, [(GC, 5_000_000)], START, omitted=5000), timeline(0xB, [(GC, 5_000_000)], START + 3600 * 10**9, omitted=2)])
    later = ["--since", "2026-01-31T12:30:00Z", times]
    out, error = dump("--by-cause", "--json", *later)
    assert (json.loads(out)["slow_requests"], json.loads(out)["omitted"]) == (1, 2) and "2 more requests" in error, (out, error)
    assert json.loads(dump("--by-cause", "--json", times)[0])["omitted"] == 5002

    # Of the 30 ms in the queue, 22.001 ms lie in the collection of the request ahead (2.001..42.001 ms, waiting from 20 ms on).
    what_if = json.loads(dump(store, "--what-if", "no-gc", "--json")[0])
    assert what_if["estimate"] is True and what_if["own_ns"] == 40_000_000 and what_if["behind_ns"] == 22_001_000, what_if
    assert what_if["measured_ns"] == {"p50": 31_000_000, "p90": 42_000_000, "p99": 42_000_000, "max": 42_000_000}
    assert what_if["estimated_ns"] == {"p50": 6_000_000, "p90": 8_999_000, "p99": 8_999_000, "max": 8_999_000}
    assert (what_if["affected"], what_if["faster_than_that"], what_if["fastest_slow_ns"]) == (2, 1, 6_000_000)
    # The one ahead counts also where the options leave it out.
    assert json.loads(dump(store, "--what-if", "gc", "--json", "--cause", "server-queue")[0])["behind_ns"] == 22_001_000
    cut = json.loads(dump(store, "--what-if", "no-gc", "--json", "--slowest", "1")[0])
    assert (cut["slow_requests"], cut["left_out"], cut["own_ns"]) == (1, 2, 40_000_000), cut
    text = dump(store, "--what-if", "no-gc")[0]
    assert all(line.startswith("estimate:") and len(line) <= 100 for line in text.splitlines()), text
    assert "Why it is one" in text

    # Half a minute each: collections of 30 ms, then of 5 ms; the rest is the same.
    def half_minute(name, gc_ns):
        records = []
        for second in range(30):
            for i in range(8):
                spans = [(ON_CPU, 6_000_000 + 10_000 * ((second * 7 + i * 3) % 11))]
                if i < 4:
                    spans.append((GC, gc_ns + 1000 * second))
                records.append(timeline(second << 8 | i | 1 << 20, spans, START + second * 10**9 + i * 10**8))
        path = os.path.join(base, name)
        write(path, records)
        return path

    before, after = half_minute("before", 30_000_000), half_minute("after", 5_000_000)

    def differences(a, b):
        return {(entry["measure"], entry.get("quantile") or entry.get("cause")): entry
                for entry in json.loads(dump("--compare", "--json", a, b)[0])["differences"]}

    found = differences(before, after)
    collections = found["cause-time", "gc"]
    assert collections["verdict"] == "less" and collections["low"] <= -12_500_000 <= collections["high"] < 0, collections
    assert found["slow-latency", 0.9]["verdict"] == "less"
    assert found["slow-latency", 0.99]["verdict"] == "too few" and found["slow-latency", 0.99]["low"] is None
    assert found["cause-time", "on-cpu"]["verdict"] == "no difference shown", found["cause-time", "on-cpu"]
    assert found["slow-per-second", None]["verdict"] == "no difference shown"
    assert found["slow-per-second", None]["a"] == 8.0
    assert found == differences(before, after)  # the seed is fixed
    assert all(entry["verdict"] in ("no difference shown", "too few") for entry in differences(before, before).values())
    assert all(entry["verdict"] == "too few" for entry in differences(before, store).values())
    # A few in a day are told by the hour.
    rare = os.path.join(base, "rare")
    often = os.path.join(base, "often")
    for path, every in (often, 16), (rare, 96):
        write(path, [timeline(i + 1, [(25, 5_000_000 + i)], START + i * every * 60 * 10**9) for i in range(14 * 96 // every)])
    rate = [line for line in dump("--compare", often, rare)[0].splitlines() if line.startswith("  slow requests a")]
    assert len(rate) == 1 and len(rate[0]) <= 97 and re.search("an hour +3[.0-9]*/h +0[.0-9]*/h +-3[.0-9]*/h .* less$", rate[0]), rate
    empty = os.path.join(base, "empty")
    os.mkdir(empty)
    for pair in (before, empty), (empty, before):
        assert all(entry["verdict"] == "too few" for entry in json.loads(dump("--compare", "--json", *pair, code=1)[0])["differences"])
        assert dump("--compare", *pair, code=1)[0] == ""
    # Also the longest name of a cause leaves the columns where they are.
    for rows in dump("--by-cause", rare)[0].splitlines(), dump("--compare", often, rare)[0].splitlines()[-20:]:
        row = next(line for line in rows if "waiting for a place at the server" in line)
        head = next(line for line in reversed(rows[:rows.index(row)]) if "mostly" in line or "B - A" in line)
        word = "share" if "share" in head else "B - A"
        assert row[head.index(word) + len(word)] == " " and row[head.index(word) + len(word) - 1] != " ", (head, row)

    # What was only counted is in the rate alone, and that is said.
    counts = json.loads(dump("--compare", "--json", times, before)[0])
    assert counts["a_requests"] == {"slow": 2, "ordinary": 0, "only_counted": 5002}, counts
    assert counts["b_requests"] == {"slow": 240, "ordinary": 0, "only_counted": 0}, counts
    text = dump("--compare", times, before)[0]
    assert "5002 more were only counted: they are in the rate, and in no latency or cause" in text and all(len(line) <= 100 for line in text.splitlines()), text
    # Of one moment nobody can say how often.
    assert [differences(before, store)["slow-per-second", None][side] for side in "ab"] == [8.0, None]
    text = dump("--compare", before, store)[0]
    assert re.search("slow requests a second +8/s +-  +-  ", text) and all(len(line) <= 100 for line in text.splitlines()), text
    text = dump("--compare", before, after)[0]
    assert "slow.threshold" in text, text
    assert "access log" in text and all(len(line) <= 100 for line in text.splitlines()), text
    for wrong in (["--compare"], ["--compare", before], ["--compare", before, after, "--slowest", "3"],
                  ["--compare", "--by-cause", before, after], ["--what-if", "no-luck"], ["--what-if", "no-gc", "--by-cause"]):
        dump(*wrong, code=2)
print("ok")
