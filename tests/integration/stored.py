# SPDX-License-Identifier: Apache-2.0
"""Stores of timelines as the format's description has them, made without the program's own writer."""
import os
import struct


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


def timeline(identity, spans, wall_ns, begin_ns=1000, baseline=False, target=b"GET /search?q=\x1b[31mred", server=b"a", omitted=0):
    """A record. `spans`: (cause, duration_ns[, tid, thread, detail]) in order."""
    latency_ns = sum(span[1] for span in spans)
    request = varint(1 << 3 | 1) + struct.pack("<Q", identity) + number(2, begin_ns) + number(3, latency_ns)
    request += number(4, wall_ns) + number(5, 200) + data(10, target) + data(11, server)
    sums = {}
    for span in spans:
        sums[span[0]] = sums.get(span[0], 0) + span[1]
    dominant = max(sums, key=lambda cause: sums[cause])
    message = data(1, request) + number(2, int(baseline)) + number(3, dominant) + number(4, sums[dominant])
    offset = 0
    for cause, duration_ns, tid, thread, detail in ((*span, 0, b"worker", b"")[:5] if len(span) == 2 else span for span in spans):
        entry = number(1, offset) + number(2, duration_ns) + number(3, cause) + data(6, thread) + data(7, detail)
        if tid:
            entry += number(4, 4000) + number(5, tid)
        message += data(8, entry)
        offset += duration_ns
    return record(message + number(10, omitted))


def record(message):
    length = struct.pack("<I", len(message))
    return length + struct.pack("<I", crc32c(length + message)) + message


def failover(begin_ns, length_ns, wall_ns, server=b"a", cause=b"", kind=3, moved=1, not_moved=0, why_not=b"", reacted_ns=0, saved_ns=0):
    """A record of one. `kind` as in include/tailor/stop.h: 3 is a collection."""
    message = number(1, begin_ns) + number(2, length_ns) + number(3, wall_ns) + data(4, server) + data(5, cause)
    message += number(6, kind) + number(7, kind) + number(8, 1) + number(9, moved + not_moved) + number(10, moved) + number(11, not_moved)
    message += data(12, why_not) + number(13, 20_000) + number(14, reacted_ns) + number(15, saved_ns) + number(16, moved)
    return record(data(12, message))


def write(store, records, number_of_segment=1):
    os.makedirs(store, exist_ok=True)
    path = os.path.join(store, f"{number_of_segment:020}.tailor")
    with open(path, "wb") as out:
        out.write(b"TAILORTL" + struct.pack("<II", 1, 0) + b"".join(records))
    return path
