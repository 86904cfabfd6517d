#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tailor dump` from the outside: exit codes, one-line errors with a remedy, text and JSON of a store that is read."""
import json
import os
import struct
import subprocess
import tempfile

TAILOR = os.environ["TAILOR"]


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def data(field, value):
    return varint(field << 3 | 2) + varint(len(value)) + value


def timeline(identity, latency_ns, cause, wall_ns):
    """A record as the format's description has it, made without the program's own writer."""
    request = varint(1 << 3 | 1) + struct.pack("<Q", identity) + number(2, 1000) + number(3, latency_ns)
    request += number(4, wall_ns) + number(5, 200) + data(10, b"GET /search?q=\x1b[31mred") + data(11, b"a")
    span = number(1, 0) + number(2, latency_ns) + number(3, cause) + data(6, b"worker")
    message = data(1, request) + number(3, cause) + number(4, latency_ns) + data(8, span)
    length = struct.pack("<I", len(message))
    return length + struct.pack("<I", crc32c(length + message)) + message


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

    letter = os.path.join(base, "letter.txt")
    with open(letter, "w") as out:
        out.write("Dear all, this is no timeline at all")
    _, error = dump(letter, code=1)
    one_line(error, "is not a store of timelines")

    segment = os.path.join(store, "00000000000000000001.tailor")
    records = [timeline(0xA1, 5_000_000, 13, 1_769_860_800_000_000_000),
               timeline(0xB2, 44_000_000, 19, 1_769_860_900_000_000_000),
               timeline(0xC3, 9_000_000, 13, 1_769_860_700_000_000_000)]
    with open(segment, "wb") as out:
        out.write(b"TAILORTL" + struct.pack("<II", 1, 0) + b"".join(records))

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
print("ok")
