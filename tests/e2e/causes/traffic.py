# SPDX-License-Identifier: Apache-2.0
"""The client: a few requests a second on keep-alive connections, each numbered, with the times that a client sees."""
import heapq
import itertools
import random
import re
import selectors
import socket
import time

from harness import check

GAP_NS = 33_000_000
GIVE_UP_NS = 8_000_000_000


def now_ns():
    return time.monotonic_ns()


class Request:
    def __init__(self, number, target, sent_ns):
        self.number = number
        self.target = target
        self.sent_ns = sent_ns
        self.done_ns = 0
        self.status = 0

    def ns(self):
        return self.done_ns - self.sent_ns

    def overlap_ns(self, begin_ns, end_ns):
        return max(0, min(self.done_ns, end_ns) - max(self.sent_ns, begin_ns))


class Connection:
    def __init__(self, port, receive_buffer=0):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.request = None
        self.shared = False
        self.pace_ns = 0  # between two looks at what has come

    def close(self):
        self.socket.close()

    def begin(self, request):
        self.request = request
        self.head = b""
        self.left = None
        self.socket.send(f"GET {request.target} HTTP/1.1\r\nHost: victim\r\n\r\n".encode())

    def read(self):
        """Reads what is there; True at the end of the response."""
        while True:
            try:
                data = self.socket.recv(1 << 18)
            except BlockingIOError:
                return False
            check(data, f"the connection was closed during {self.request.target}")
            if self.left is None:
                self.head += data
                end = self.head.find(b"\r\n\r\n")
                if end < 0:
                    continue
                self.request.status = int(self.head[9:12])
                length = int(re.search(rb"(?i)\r\ncontent-length: *(\d+)", self.head)[1])
                self.left = length - (len(self.head) - end - 4)
            else:
                self.left -= len(data)
            if self.left <= 0:
                check(self.left == 0, f"more than one response to {self.request.target}")
                return True


class Traffic:
    """An event loop in one thread: time passes only in run()."""

    def __init__(self, port, seed):
        self.port = port
        self.random = random.Random(seed)
        self.selector = selectors.DefaultSelector()
        self.idle = []
        self.requests = {}
        self.open = 0
        self.later = []
        self.order = itertools.count()
        self.next_ns = now_ns()
        self.background = True

    def send(self, target, connection=None):
        """Sends it now, on a connection that is idle unless one is given, which the caller closes. Returns the request."""
        number = len(self.requests) + 1
        mark = "&" if "?" in target else "?"
        if connection is None:
            # By turns, so that none is idle for so long that the proxy closes it.
            connection = self.idle.pop(0) if self.idle else Connection(self.port)
            connection.shared = True
        request = Request(number, f"{target}{mark}n={number}", now_ns())
        self.requests[number] = request
        self.open += 1
        connection.begin(request)
        self.selector.register(connection.socket, selectors.EVENT_READ, connection)
        return request

    def at(self, time_ns, function):
        heapq.heappush(self.later, (time_ns, next(self.order), function))

    def pause_reading(self, connection, until_ns):
        self.selector.unregister(connection.socket)
        self.at(until_ns, lambda: self.selector.register(connection.socket, selectors.EVENT_READ, connection))

    def _due(self, time_ns):
        while self.later and self.later[0][0] <= time_ns:
            heapq.heappop(self.later)[2]()
        if self.background and time_ns >= self.next_ns:
            self.next_ns = time_ns + round(GAP_NS * self.random.uniform(0.5, 1.5))
            self.send("/work")

    def _turn(self, until_ns):
        self._due(now_ns())
        wake_ns = until_ns
        if self.later:
            wake_ns = min(wake_ns, self.later[0][0])
        if self.background:
            wake_ns = min(wake_ns, self.next_ns)
        if not self.selector.get_map():
            time.sleep(max(0, wake_ns - now_ns()) / 1e9)
            return
        for key, _ in self.selector.select(max(0, wake_ns - now_ns()) / 1e9):
            connection = key.data
            if not connection.read():
                if connection.pace_ns:
                    self.pause_reading(connection, now_ns() + connection.pace_ns)
                continue
            connection.request.done_ns = now_ns()
            check(connection.request.status == 200, f"{connection.request.target} was answered {connection.request.status}")
            self.selector.unregister(connection.socket)
            if connection.shared:
                self.idle.append(connection)
            self.open -= 1

    def run(self, ms):
        until_ns = now_ns() + round(ms * 1e6)
        while now_ns() < until_ns:
            self._turn(until_ns)

    def finish(self):
        """Until every request has been answered; meanwhile none are sent."""
        background, self.background = self.background, False
        give_up_ns = now_ns() + GIVE_UP_NS
        while self.open or self.later:
            self._turn(give_up_ns)
            check(now_ns() < give_up_ns, "no answer in 8 s: " + ", ".join(r.target for r in self.requests.values() if not r.done_ns))
        self.background = background
