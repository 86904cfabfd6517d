# SPDX-License-Identifier: Apache-2.0
"""What connections cost in memory that have been used once and are kept for later."""
import contextlib
import socket
import time

from contestants import HAPROXY, NGINX, TAILOR_NAME, resident_bytes
from rounds import cpu_between, cpu_ns

IDLE_CONNECTIONS = 10000
IDLE_LIMIT_MIB = 64
IDLE_CONTESTANTS = (TAILOR_NAME, NGINX, HAPROXY)
REST_S = 1
REQUEST = b"GET / HTTP/1.1\r\nHost: bench\r\n\r\n"


def ask(connection):
    """One request with its whole answer."""
    connection.sendall(REQUEST)
    answer = b""
    while not answer.endswith(b"\r\n\r\nxx"):
        part = connection.recv(4096)
        if not part:
            raise OSError(f"the connection was closed after {answer!r}")
        answer += part
    if not answer.startswith(b"HTTP/1.1 200 "):
        raise OSError(f"not served: {answer!r}")


def measure_idle(bench, name):
    with bench.proxy(name, 2, IDLE_CONNECTIONS + 100) as proxy, contextlib.ExitStack() as stack:
        pid = proxy.process.pid
        before = resident_bytes(pid)
        connections = []
        for _ in range(IDLE_CONNECTIONS):
            connections.append(stack.enter_context(socket.create_connection(("127.0.0.1", proxy.port), timeout=5)))
            ask(connections[-1])
        rested = cpu_ns(pid)
        time.sleep(REST_S)
        used_us = sum(cpu_between(rested, cpu_ns(pid)).values())
        resident = resident_bytes(pid)
        # They were all kept, and serve.
        for connection in connections:
            ask(connection)
        return {"what": name, "connections": len(connections), "resident_before_mib": before / 2**20,
                "resident_mib": resident / 2**20, "cpu_us_per_s": used_us / REST_S}
