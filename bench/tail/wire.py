# SPDX-License-Identifier: Apache-2.0
"""What went over the loopback device to and from some ports: which request was sent when, and when its response began.

Neither a proxy nor a server is asked, so all contestants are judged by the same eyes. The kernel filters and stamps; what
is left is two packets a request. Small requests and responses only: one segment each, one request at a time on a connection.
"""
import ctypes
import socket
import struct
import threading
import time

ETH_P_IP, SO_ATTACH_FILTER, SO_TIMESTAMPNS = 0x0800, 26, 35
SOL_PACKET, PACKET_STATISTICS = 263, 6
HEADERS_BYTES = 40  # of IPv4 and TCP, without options: ports and flags
FIN_OR_RST = 0x05
LOAD_BYTE, LOAD_HALF, RETURN = 0x30, 0x28, 0x06
SUBTRACT, SHIFT_RIGHT, AND, TO_INDEX = 0x14, 0x74, 0x54, 0x07
IF_EQUAL, IF_EQUAL_INDEX, IF_BITS = 0x15, 0x1D, 0x45


def program(ports):
    """A classic BPF program (Documentation/networking/filter.rst): TCP, one of the ports, and either bytes or the connection's end."""
    tests = [(offset, port) for offset in (20, 22) for port in ports]
    keep = [(LOAD_HALF, 0, 0, 2), (SUBTRACT, 0, 0, 20), (TO_INDEX, 0, 0, 0),  # X: the TCP segment with its head
            (LOAD_BYTE, 0, 0, 32), (SHIFT_RIGHT, 0, 0, 2), (AND, 0, 0, 0x3C),  # A: its head
            (IF_EQUAL_INDEX, 0, 2, 0),  # bytes: keep
            (LOAD_BYTE, 0, 0, 33), (IF_BITS, 0, 1, FIN_OR_RST),
            (RETURN, 0, 0, HEADERS_BYTES), (RETURN, 0, 0, 0)]
    code = [(LOAD_BYTE, 0, 0, 9), (IF_EQUAL, 0, 2 * len(tests), socket.IPPROTO_TCP)]
    for i, (offset, port) in enumerate(tests):
        # The next instruction but the last one's is another test; a jump that is taken goes behind all of them.
        left = 2 * (len(tests) - i - 1)
        code += [(LOAD_HALF, 0, 0, offset), (IF_EQUAL, left + 1, 0, port)]
    return code + [(RETURN, 0, 0, 0)] + keep


class Request:
    def __init__(self, port, sent_ns):
        self.port, self.sent_ns, self.answered_ns = port, sent_ns, None


class Wire:
    """Watches while it is a context; afterwards `requests` has them in the order in which they were sent."""

    def __init__(self, ports):
        self.ports = set(ports)
        self.requests, self.open, self.lost = [], {}, 0
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
        code = b"".join(struct.pack("HBBI", *instruction) for instruction in program(sorted(self.ports)))
        buffer = ctypes.create_string_buffer(code)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", len(code) // 8, ctypes.addressof(buffer)))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def __enter__(self):
        # The packets' clock is the wall's; all others are CLOCK_MONOTONIC.
        self.offset_ns = time.time_ns() - time.monotonic_ns()
        self.socket.settimeout(0.1)
        # From here on, and only what comes in: a protocol of its own sees each packet of the loopback device once.
        self.socket.bind(("lo", ETH_P_IP))
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
        self.lost = struct.unpack("II", self.socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]
        self.socket.close()

    def watch(self):
        while True:
            try:
                packet, ancillary, _, _ = self.socket.recvmsg(HEADERS_BYTES, 64)
            except TimeoutError:
                if self.ended.is_set():
                    return
                continue
            seconds, nanoseconds = struct.unpack("qq", ancillary[0][2][:16])
            self.packet(packet, seconds * 10**9 + nanoseconds - self.offset_ns)

    def packet(self, packet, ns):
        source, target = struct.unpack_from(">HH", packet, 20)
        length, = struct.unpack_from(">H", packet, 2)
        has_bytes = length > 20 + (packet[32] >> 4) * 4
        connection = (source, target) if target in self.ports else (target, source)
        request = self.open.get(connection)
        if target in self.ports and has_bytes and (request is None or request.answered_ns is not None):
            self.open[connection] = request = Request(target, ns)
            self.requests.append(request)
        elif request is not None and request.answered_ns is None and (source in self.ports or packet[33] & FIN_OR_RST):
            # A response's first bytes, or the end of the wait for one.
            request.answered_ns = ns
        if packet[33] & FIN_OR_RST:
            self.open.pop(connection, None)
