#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tailor export --format perfetto`, read by Perfetto's own message classes (perfetto of PyPI, in build/python)."""
import json
import os
import random
import shlex
import stat
import subprocess
import sys
import tempfile

from stored import timeline, write

try:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto
except ImportError as error:
    python = os.path.join(os.environ["TAILOR_SOURCE"], "build/python/bin/python")
    if os.path.exists(python) and "EXPORT_RESTARTED" not in os.environ:
        os.execve(python, [python, *sys.argv], {**os.environ, "EXPORT_RESTARTED": "1"})
    print(f"{error}: ./run test installs tests/requirements.txt into build/python, which needs a network")
    sys.exit(77)

TAILOR = os.environ["TAILOR"]
CAUSES = 31
EVENT = perfetto.TrackEvent
WALL = 1_769_860_800_000_000_000


def export(*arguments, code=0):
    done = subprocess.run([TAILOR, "export", *arguments], capture_output=True, timeout=60)
    assert done.returncode == code, (arguments, done)
    return done.stdout, done.stderr.decode()


def unknown_fields(message):
    """Whether a field was met that Perfetto does not know: a wrong number would hide there."""
    again = type(message)()
    again.CopyFrom(message)
    again.DiscardUnknownFields()
    return again.ByteSize() != message.ByteSize()


def read(trace_bytes):
    trace = perfetto.Trace()
    assert trace.ParseFromString(trace_bytes) == len(trace_bytes)
    assert trace.IsInitialized() and not unknown_fields(trace)
    # Perfetto's own reader takes a list of numbers only in the encoding that its messages declare; these classes here take both.
    assert trace.ByteSize() == len(trace_bytes), (trace.ByteSize(), len(trace_bytes))
    return trace


class Slices:
    """The trace as a viewer builds it, with what must hold asserted on the way."""

    def __init__(self, trace):
        self.tracks, self.slices, self.flows, self.clocks = {}, [], {}, []
        open_slices, latest = {}, {}
        assert trace.packet[0].HasField("clock_snapshot") and trace.packet[0].sequence_flags & 1
        for packet in trace.packet:
            assert packet.trusted_packet_sequence_id == 1
            kind = packet.WhichOneof("data")
            if kind == "clock_snapshot":
                assert packet.clock_snapshot.primary_trace_clock == perfetto.BUILTIN_CLOCK_MONOTONIC
                assert not self.clocks or packet.timestamp >= self.clocks[-1][perfetto.BUILTIN_CLOCK_MONOTONIC], "a clock that goes back"
                self.clocks.append({clock.clock_id: clock.timestamp for clock in packet.clock_snapshot.clocks})
            elif kind == "track_descriptor":
                assert packet.track_descriptor.uuid not in self.tracks and packet.track_descriptor.uuid != 0
                self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            else:
                assert kind == "track_event", kind
                event, track = packet.track_event, packet.track_event.track_uuid
                assert packet.timestamp_clock_id == perfetto.BUILTIN_CLOCK_MONOTONIC
                assert track in self.tracks, "an event before its track"
                assert packet.timestamp >= latest.get(track, 0), "time goes back on a track"
                latest[track] = packet.timestamp
                stack = open_slices.setdefault(track, [])
                if event.type == EVENT.TYPE_SLICE_BEGIN:
                    stack.append({"track": track, "name": event.name, "from": packet.timestamp, "depth": len(stack),
                                  "args": {a.name: getattr(a, a.WhichOneof("value")) for a in event.debug_annotations}})
                elif event.type == EVENT.TYPE_SLICE_END:
                    assert stack, "an end without a begin"
                    self.slices.append({**stack.pop(), "to": packet.timestamp})
                else:
                    assert event.type == EVENT.TYPE_INSTANT and stack and stack[-1]["depth"] == 0, "an answer outside its request"
                for flow in event.flow_ids:
                    self.flows.setdefault(flow, []).append((track, "step"))
                for flow in event.terminating_flow_ids:
                    self.flows.setdefault(flow, []).append((track, "end"))
        assert not any(open_slices.values()), "a begin without an end"
        for track in self.tracks.values():
            assert track.parent_uuid == 0 or track.parent_uuid in self.tracks

    def named(self, uuid):
        return self.tracks[uuid].name


def compare(trace, dumped):
    """All that is in the store is in the trace, to the nanosecond."""
    found = {}
    for piece in trace.slices:
        found.setdefault(piece["args"]["request"], []).append(piece)
    assert set(found) == {entry["request"] for entry in dumped}
    assert len(trace.flows) == len(dumped)
    for entry in dumped:
        pieces = found[entry["request"]]
        whole = [piece for piece in pieces if "cause" not in piece["args"]]
        spans = sorted((piece for piece in pieces if "cause" in piece["args"]), key=lambda piece: (piece["from"], piece["to"]))
        assert len(whole) == 1 and trace.named(whole[0]["track"]) == "client"
        assert whole[0]["args"].get("server_ns") == entry["server_ns"], whole[0]  # none where it is not known
        assert whole[0]["from"] == entry["begin_ns"] and whole[0]["to"] - whole[0]["from"] == entry["client_ns"]
        assert [(s["args"]["cause"], s["from"] - entry["begin_ns"], s["to"] - s["from"], s["args"].get("detail", "")) for s in spans] \
            == [(s["cause"], s["offset_ns"], s["duration_ns"], s["detail"]) for s in entry["spans"]]
        assert sum(s["to"] - s["from"] for s in spans) == entry["client_ns"]
        assert abs(sum(s["args"]["share"] for s in spans) - 1) < 1e-6
    for steps in trace.flows.values():
        assert len(steps) >= 2 and steps[-1][1] == "end" and [how for _, how in steps[:-1]] == ["step"] * (len(steps) - 1)
        assert trace.named(steps[0][0]) == "client" and steps[-1][0] == steps[0][0]


with tempfile.TemporaryDirectory() as base:
    store, output = os.path.join(base, "store"), os.path.join(base, "out.pftrace")
    journey = [(1, 10_000), (4, 5_000), (6, 20_000, 71, b"qtp-1", b"CPU 1 had java"), (7, 100_000, 71, b"qtp-1", b""),
               (14, 30_000, 71, b"qtp-1", b""), (13, 9_000_000, 71, b"qtp-1", b"Serial full"), (7, 50_000, 71, b"qtp-1", b""),
               (21, 6_000), (1, 9_000), (23, 400_000)]
    write(store, [timeline(0xA1, journey, WALL, begin_ns=5_000_000_000),
                  timeline(0xB2, journey, WALL + 3_000_000, begin_ns=5_003_000_000)])  # overlaps on every track
    _, error = export(store, "-o", output)
    assert "wrote 2 timelines" in error and "ui.perfetto.dev" in error
    assert stat.S_IMODE(os.stat(output).st_mode) == 0o600
    with open(output, "rb") as trace_file:
        trace = Slices(read(trace_file.read()))
    dumped = json.loads(subprocess.run([TAILOR, "dump", "--json", store], capture_output=True, timeout=60).stdout)["timelines"]
    compare(trace, dumped)
    assert trace.clocks == [{perfetto.BUILTIN_CLOCK_MONOTONIC: 5_000_000_000, perfetto.BUILTIN_CLOCK_REALTIME: WALL}]
    assert {track.name for track in trace.tracks.values()} == {
        "client", "proxy", "kernel: TCP", "kernel: run queue", "qtp-1", "JVM: safepoint", "JVM: gc", "server a"}
    threads = [track.thread for track in trace.tracks.values() if track.HasField("thread")]
    assert [(thread.pid, thread.tid, thread.thread_name) for thread in threads] == [(4000, 71, "qtp-1")]
    processes = [track.process for track in trace.tracks.values() if track.HasField("process")]
    assert [(process.pid, process.process_name) for process in processes] == [(4000, "server a")]
    for steps in trace.flows.values():
        path = [trace.named(track) for track, _ in steps]
        assert path == ["client", "proxy", "kernel: TCP", "kernel: run queue", "qtp-1", "JVM: safepoint", "JVM: gc", "qtp-1",
                        "kernel: TCP", "proxy", "client", "client"], path
    assert [s["depth"] for s in trace.slices if s["args"].get("cause") == "slow-client"] == [1, 1]  # inside its request

    # Options choose as those of dump; stdout; JSON.
    chosen = Slices(read(export(store, "--request", "00000000000000b2", "-o", "-")[0]))
    assert {s["args"]["request"] for s in chosen.slices} == {"00000000000000b2"}
    assert json.loads(export(store, "--format", "json")[0])["timelines"] == dumped
    assert json.loads(export(store, "--format", "json", "--cause", "sleep", code=1)[0]) == {"timelines": []}
    for wrong in (["--format", "svg"], ["one", "two"], ["--slowest", "0"]):
        export(*wrong, code=2)
    assert "no slow request has been recorded yet" in export(os.path.join(base, "nowhere"), "-o", output, code=1)[1]
    assert "cannot write" in export(store, "-o", os.path.join(base, "no/such"), code=1)[1]
    helped = subprocess.run([TAILOR, "export", "--help"], capture_output=True, text=True, timeout=60)
    assert helped.returncode == 0 and "ui.perfetto.dev" in helped.stdout and "-o slow.pftrace" in helped.stdout

    # What is there already is replaced whole or not at all; a file that anybody could read is not filled, nor a link followed.
    old, aim = os.path.join(base, "old"), os.path.join(base, "aim")
    for path in (old, aim):
        with open(path, "w", encoding="ascii") as before:
            before.write("before")
        os.chmod(path, 0o644)
    os.symlink("aim", os.path.join(base, "link"))
    for path in (old, os.path.join(base, "link")):
        export(store, "-o", path)
        assert stat.S_IMODE(os.lstat(path).st_mode) == 0o600 and stat.S_ISREG(os.lstat(path).st_mode), path
    with open(aim, encoding="ascii") as kept:
        assert kept.read() == "before"
    segment = os.path.join(store, os.listdir(store)[0])
    assert "is part of a store of timelines" in export(store, "-o", segment, code=1)[1]
    assert "Is a directory" in export(store, "-o", store, code=1)[1]
    with open(segment, "rb") as kept:
        assert kept.read(8) == b"TAILORTL"
    assert "No space left on device" in export(store, "-o", "/dev/full", code=1)[1]
    small = f"ulimit -f 1; trap '' XFSZ; exec {shlex.quote(TAILOR)} export -o {shlex.quote(old)} {shlex.quote(store)}"
    before = os.stat(old).st_ino, sorted(os.listdir(base))
    done = subprocess.run(["bash", "-c", small], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "File too large" in done.stderr, done
    assert before == (os.stat(old).st_ino, sorted(os.listdir(base)))

    # Any causes in any order, many at once, on few threads, some of no length, texts that are no UTF-8.
    chance = random.Random(5)
    records, begin = [], 10**12
    for i in range(300):
        spans = [(chance.randrange(CAUSES), chance.choice((1, 1000, 50_000, chance.randrange(1, 3_000_000))), chance.randrange(3),
                  b"pool \xff" + bytes([65 + i % 3]), chance.choice((b"", b"\xc3", b"line\nbreak"))) for _ in range(chance.randrange(1, 40))]
        if i % 50 == 0:
            spans = [(1, 0)]
        records.append(timeline(i + 1, spans, WALL + begin - 10**12, begin_ns=begin, target=b"GET /\xfe\x1b"))
        begin += chance.choice((0, 0, 1000, 400_000))
    crowd = os.path.join(base, "crowd")
    write(crowd, records)
    dumped = json.loads(subprocess.run([TAILOR, "dump", "--json", crowd], capture_output=True, timeout=60).stdout)["timelines"]
    trace = Slices(read(export(crowd, "-o", "-")[0]))
    compare(trace, dumped)
    assert len(trace.clocks) == 1

    # The wall clock was set back by 5 s in between: by it they come in the other order, and the trace's clock still goes forward.
    back = os.path.join(base, "back")
    write(back, [timeline(1, journey, WALL, begin_ns=10**10), timeline(2, journey, WALL - 4 * 10**9, begin_ns=11 * 10**9)])
    trace = Slices(read(export(back, "-o", "-")[0]))
    assert trace.clocks == [{perfetto.BUILTIN_CLOCK_MONOTONIC: 10**10, perfetto.BUILTIN_CLOCK_REALTIME: WALL},
                            {perfetto.BUILTIN_CLOCK_MONOTONIC: 11 * 10**9, perfetto.BUILTIN_CLOCK_REALTIME: WALL - 4 * 10**9}]

    # By two minutes, which is no start of the machine.
    write(back, [timeline(1, journey, WALL, begin_ns=10**12), timeline(2, journey, WALL - 20 * 10**9, begin_ns=11 * 10**11)])
    data, error = export(back, "-o", "-")
    assert "left out" not in error and len({s["args"]["request"] for s in Slices(read(data)).slices}) == 2, error

    # The machine was started anew in between: one clock, one boot.
    boots = os.path.join(base, "boots")
    write(boots, [timeline(1, journey, WALL, begin_ns=9 * 10**12), timeline(2, journey, WALL + 10**12, begin_ns=10**10)])
    data, error = export(boots, "-o", "-")
    assert "left out 1 timeline from before" in error
    assert {s["args"]["request"] for s in Slices(read(data)).slices} == {f"{2:016x}"}
print("ok")
