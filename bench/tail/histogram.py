# SPDX-License-Identifier: Apache-2.0
"""The logs of `tailor load --hdr` read and added up, so that percentiles of several runs together are exact.

HdrHistogram's V2 encoding, as src/load/hdr.c writes it: three significant digits from 1 on, counts as ZigZag LEB128, a run of n empty
buckets as -n.
"""
import base64
import re
import struct
import zlib
from collections import Counter

OUTER, HEADER = struct.Struct(">II"), struct.Struct(">IIIIqqd")
COOKIE, COOKIE_COMPRESSED = 0x1C849313, 0x1C849314
LINEAR = 2048  # buckets below that are a value each; from there on, 1024 more with each power of two
HALF = LINEAR // 2


def numbers(data):
    at = 0
    while at < len(data):
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            # The ninth byte has no bit that says whether more follow.
            value |= (byte if shift == 56 else byte & 0x7F) << shift
            shift += 7
            if byte < 0x80 or shift == 63:
                break
        yield (value >> 1) ^ -(value & 1)


def value_of(bucket):
    """The middle of what a bucket counts."""
    if bucket < LINEAR:
        return bucket
    power, step = divmod(bucket - HALF, HALF)
    return ((HALF + step) << power) + (1 << power) // 2


def counts_of(text):
    """{ns: how many} of one interval."""
    packed = base64.b64decode(text, validate=True)
    cookie, length = OUTER.unpack_from(packed)
    data = zlib.decompress(packed[OUTER.size:OUTER.size + length])
    plain, payload, *_ = HEADER.unpack_from(data)
    if cookie != COOKIE_COMPRESSED or plain != COOKIE or len(data) != HEADER.size + payload:
        raise ValueError("not a histogram in HdrHistogram's V2 encoding")
    counts, bucket = Counter(), 0
    for number in numbers(data[HEADER.size:]):
        if number > 0:
            counts[value_of(bucket)] += number
        bucket += 1 if number >= 0 else -number
    return counts


def read_log(path):
    """Of a whole log: (wall clock in seconds at which its first interval begins, {ns: how many})."""
    text = path.read_text()
    start = float(re.search(r"^#\[StartTime: ([\d.]+) ", text, re.M)[1])
    rows = [line.split(",") for line in text.splitlines() if line[:1].isdigit()]
    return start + float(rows[0][0]), sum((counts_of(row[3]) for row in rows), Counter())


def percentile(counts, percent):
    """The least value at or below which so many percent lie, in ns."""
    wanted, seen = sum(counts.values()) * percent / 100, 0
    for value in sorted(counts):
        seen += counts[value]
        if seen >= wanted - 1e-9:
            return value
    raise ValueError("nothing was counted")
