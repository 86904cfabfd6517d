# SPDX-License-Identifier: Apache-2.0
"""What the proxy's tests share: the driver as a child process, servers under a test's control, raw clients."""
import json
import os
import re
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback

DRIVER = os.environ.get("PROXY_DRIVER", "build/release/tests/integration/proxy_driver")

BEGIN, PARSED, ATTEMPT_BEGIN, ATTEMPT_SEND, ATTEMPT_SENT = 64, 65, 66, 67, 68
RESPONSE_BEGIN, RESPONSE_END, ATTEMPT_END, REPLY_BEGIN, END = 69, 70, 71, 72, 73
QUEUED, CLIENT_WAIT, REQUEST_LATE, SERVER_STOPPED = 74, 75, 76, 77
DONE, REFUSED, CLIENT, CUT = 0, 1, 2, 3
REFUSED_NONE, REFUSED_DEADLINE = 0, 5
REASON_GC, REASON_CONNECT, REASON_CLOSED = 1, 2, 3
LOST, END_CONNECT, END_CLOSED, END_BAD, END_CLIENT, END_TIMEOUT = 1, 2, 3, 4, 5, 6


class Event:
    def __init__(self, line):
        parts = line.split(" ", 9)
        self.kind, self.request, self.extra = int(parts[0]), parts[1], int(parts[2])
        self.time, self.pid, self.tid = int(parts[3]), int(parts[4]), int(parts[5])
        self.arg = [int(part) for part in parts[6:9]]
        self.text = parts[9]
        self.number, self.server, self.reason = self.extra >> 24, self.extra >> 16 & 255, self.extra & 65535
        self.status, self.refusal = self.extra & 65535, self.extra >> 16  # of an END
        # On an idle connection an attempt begins with its send.
        self.begins = self.kind == ATTEMPT_BEGIN or (self.kind == ATTEMPT_SEND and self.arg[1] == 1)

    def __repr__(self):
        return f"<{self.kind} {self.request} extra={self.extra:#x} arg={self.arg} {self.text}>"


class Proxy:
    """The driver; `with Proxy(...)` stops it and checks that nothing was left open and nothing was stale."""

    def __init__(self, *backends, **options):
        arguments = [DRIVER]
        for backend in backends:
            arguments += ["server", backend if isinstance(backend, str) else f"127.0.0.1:{backend.port}"]
        for name, value in options.items():
            arguments += [name, str(value)]
        self.process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("listening "):
            self.process.wait()
            if self.process.returncode == 77:
                print("skipped:", line)
                sys.exit(77)
            raise RuntimeError(f"driver: {line}")
        self.port = int(line.rsplit(":", 1)[1]) if "unix:" not in line else 0

    def command(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        lines = []
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError(f"the driver died with {self.process.wait()}")
            if line == "end\n":
                return lines
            lines.append(line.rstrip("\n"))

    def status(self):
        return json.loads(self.command("status")[0])

    def resident_kib(self):
        return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{self.process.pid}/status").read())[1])

    def events(self):
        """Waits for the end of requests that have begun: a client may have its answer before the proxy knows it."""
        events = []
        deadline = time.monotonic() + 3
        while True:
            events += [Event(line) for line in self.command("events")]
            kinds = [event.kind for event in events]
            if kinds.count(BEGIN) <= kinds.count(END) or time.monotonic() > deadline:
                return events
            time.sleep(0.002)

    def tags(self):
        return {int(line.split()[0]): line.split()[1:] for line in self.command("tags")}

    def connect(self, **options):
        return Client(self.port, **options)

    def get(self, path="/", method="GET", headers="", body=b""):
        with self.connect() as client:
            client.send(f"{method} {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n".encode() + body)
            return client.response(method)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            # Clients have closed or will be closed now; afterwards the numbers must be zero again.
            until(lambda: self.status()["clients"] == 0 and
                  all(server["in_flight"] == 0 for server in self.status()["server"]), "connections are left over")
            status = self.status()
            assert status["stale"] == 0, status
            self.command("stop 0")
            self.process.stdin.close()
            assert self.process.wait(10) == 0, self.process.returncode
        else:
            self.process.kill()
            self.process.wait()


class Response:
    def __init__(self, head, body, raw):
        lines = head.decode("latin-1").split("\r\n")
        self.version, status, *_ = lines[0].split(" ", 2)
        self.status = int(status)
        self.fields = [line.split(": ", 1) for line in lines[1:] if line]
        self.body, self.raw = body, raw

    def field(self, name):
        values = [value for key, value in self.fields if key.lower() == name.lower()]
        return values[0] if values else None


class Client:
    def __init__(self, port, timeout=20, source=None):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout, source and (source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def more(self):
        data = self.socket.recv(65536)
        self.buffer += data
        return data

    def until(self, text):
        while text not in self.buffer:
            if not self.more():
                raise EOFError(f"closed before {text!r}; got {self.buffer[:200]!r}")
        head, self.buffer = self.buffer.split(text, 1)
        return head

    def exactly(self, length):
        while len(self.buffer) < length:
            if not self.more():
                raise EOFError(f"closed {length - len(self.buffer)} bytes early")
        data, self.buffer = self.buffer[:length], self.buffer[length:]
        return data

    def rest(self):
        while self.more():
            pass
        data, self.buffer = self.buffer, b""
        return data

    def response(self, method="GET", interim=False):
        head = self.until(b"\r\n\r\n")
        response = Response(head, b"", b"")
        if response.status < 200 and not interim:
            return self.response(method)
        if method == "HEAD" or response.status in (204, 304) or response.status < 200:
            return response
        if response.field("Transfer-Encoding") == "chunked":
            while True:
                size = int(self.until(b"\r\n"), 16)
                response.body += self.exactly(size)
                assert self.exactly(2) == b"\r\n" if size else True
                if size == 0:
                    while self.until(b"\r\n"):
                        pass
                    return response
        elif response.field("Content-Length") is not None:
            response.body = self.exactly(int(response.field("Content-Length")))
        else:
            response.body = self.rest()
        return response

    def closed(self):
        """True when the proxy closes in order or resets."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


class Request:
    def __init__(self, head, body, connection, number):
        text = head.decode("latin-1")
        self.line, *lines = text.split("\r\n")
        self.method, self.target, self.version = self.line.split(" ")
        self.fields = [line.split(": ", 1) for line in lines if line]
        self.body, self.connection, self.number = body, connection, number

    def field(self, name):
        values = [value for key, value in self.fields if key.lower() == name.lower()]
        return values[0] if values else None


class Backend:
    """A server with a thread a connection. `answer(request, connection)` returns the bytes to send, or None to close."""

    def __init__(self, answer=None, read_body=True, port=0):
        self.answer = answer or (lambda request, connection: ok(b"hello " + request.target.encode()))
        self.read_body = read_body
        self.requests, self.connections, self.open = [], 0, []
        self.lock = threading.Lock()
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", port))
        self.listener.listen(1024)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.connections += 1
                self.open.append(connection)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        stream = connection.makefile("rb")
        number = 0
        try:
            while True:
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    line = stream.readline()
                    if not line:
                        return
                    head += line
                request = Request(head[:-4], b"", connection, number)
                request.stream = stream
                number += 1
                if self.read_body:
                    if request.field("Expect"):
                        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                    request.body = read_body(stream, request)
                with self.lock:
                    self.requests.append(request)
                data = self.answer(request, connection)
                if data is None:
                    return
                connection.sendall(data)
        except (OSError, ValueError):  # a request that breaks off has no next size line
            pass
        finally:
            # The stream shares the descriptor: both must go before TCP says good-bye.
            stream.close()
            connection.close()

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        with self.lock:
            for connection in self.open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass


def read_body(stream, request):
    if request.field("Transfer-Encoding") == "chunked":
        body = b""
        while True:
            size = int(stream.readline(), 16)
            body += stream.read(size)
            if size == 0:
                while stream.readline() not in (b"\r\n", b""):
                    pass
                return body
            stream.readline()
    return stream.read(int(request.field("Content-Length") or 0))


def ok(body, headers="", status="200 OK"):
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


def chunked(body, sizes=(1, 7, 100, 4096), headers=""):
    data = f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{headers}\r\n".encode()
    return data + chunks(body, sizes)


def chunks(body, sizes=(1, 7, 100, 4096), last=b"0\r\n\r\n"):
    data, at, turn = [], 0, 0
    while at < len(body):
        piece = body[at:at + sizes[turn % len(sizes)]]
        data.append(b"%x\r\n" % len(piece) + piece + b"\r\n")
        at += len(piece)
        turn += 1
    return b"".join(data) + last


def until(condition, what, seconds=5):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(what)
        time.sleep(0.002)


def check_events(events, early=False):
    """Every request in the list is whole and in order; returns its events by request. `early`: servers may answer before
    they have the whole request, so that it is sent at any time after its send began."""
    by_request = {}
    for event in events:
        # What is told of servers is no request's.
        if event.kind != SERVER_STOPPED:
            by_request.setdefault(event.request, []).append(event)
    for request, own in by_request.items():
        kinds = [event.kind for event in own]
        assert request != "0" * 16, own
        assert kinds[0] == BEGIN and kinds[-1] == END, own
        assert kinds.count(BEGIN) == 1 and kinds.count(END) == 1 and kinds.count(REPLY_BEGIN) <= 1, own
        # That of many short waits is written when it is known to be the last.
        timed = [event for event in own if event.kind != CLIENT_WAIT]
        assert all(a.time <= b.time for a, b in zip(timed, timed[1:])), own
        assert all(event.pid and event.tid for event in own), own
        numbers = [event.number for event in own if event.begins]
        assert numbers == list(range(len(numbers))), own
        for number in numbers:
            steps = [event.kind for event in own if ATTEMPT_BEGIN <= event.kind <= ATTEMPT_END and event.number == number]
            order = [kind for kind in steps if kind != ATTEMPT_END]
            if early and ATTEMPT_SENT in order:
                assert order.index(ATTEMPT_SENT) > order.index(ATTEMPT_SEND), own
                order.remove(ATTEMPT_SENT)
            assert order == sorted(order) and len(set(order)) == len(order), own
            assert steps[-1] in (RESPONSE_END, ATTEMPT_END), own
        if own[-1].arg[1] == DONE:
            answered = [event for event in own if event.kind == RESPONSE_END]
            assert len(answered) == 1 and own[-1].arg[2] == answered[0].extra, own
    return by_request


def run(tests):
    failed = 0
    only = sys.argv[1:]
    for test in tests:
        if only and test.__name__ not in only:
            continue
        begin = time.monotonic()
        try:
            test()
            print(f"ok      {test.__name__} ({time.monotonic() - begin:.2f} s)", flush=True)
        except BaseException:
            failed += 1
            print(f"FAILED  {test.__name__}", flush=True)
            traceback.print_exc()
    print(f"{failed} failed" if failed else "all passed")
    sys.exit(1 if failed else 0)
