#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every conformance case against the running proxy: its verdict, what becomes of the connections, and the exact bytes that
the server and the client get. Each case is sent whole and in two random parts, twice."""
import pathlib
import random
import re
import socket
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "integration"))
import table
from proxy_harness import Proxy, run, until

PROBE = b"GET /probe HTTP/1.1\r\nHost: probe\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
PLACEHOLDERS = {b"{id}": rb"X-Tailor-Request-Id: [0-9a-f]{16}\r\n",
                b"{date}": rb"Date: [A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\r\n",
                b"{traceparent}": rb"traceparent: 00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]\r\n"}
LENGTHS = {b"{id}": 39, b"{date}": 37, b"{traceparent}": 70}
PATIENCE = 3
PART = 0.003


class Stream:
    """A socket read by lengths and delimiters, that keeps what it has read."""

    def __init__(self, connection):
        self.socket, self.buffer = connection, b""
        connection.settimeout(PATIENCE)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def more(self):
        data = self.socket.recv(65536)
        if not data:
            raise EOFError(self.buffer[:300])
        self.buffer += data

    def exactly(self, length):
        while len(self.buffer) < length:
            self.more()
        data, self.buffer = self.buffer[:length], self.buffer[length:]
        return data

    def until(self, end):
        while end not in self.buffer:
            self.more()
        return self.exactly(self.buffer.index(end) + len(end))

    def rest(self):
        """All up to the connection's end, in order or not."""
        try:
            while True:
                self.more()
        except (EOFError, ConnectionResetError):
            data, self.buffer = self.buffer, b""
            return data

    def send(self, parts):
        for number, part in enumerate(parts):
            if number:
                time.sleep(PART)
            try:
                self.socket.sendall(part)
            except (BrokenPipeError, ConnectionResetError):
                return  # refused before all of it was sent


def field(head, name):
    found = re.search(rb"\r\n" + name + rb":[ \t]*([^\r]*?)[ \t]*\r\n", head, re.IGNORECASE)
    return found[1] if found else None


class Recorder:
    """The server: keeps each whole request's bytes, and answers as the case says, then with a plain 200."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.opened = self.closed = 0
        self.begin([], False)
        threading.Thread(target=self.accept, daemon=True).start()

    def begin(self, answer, ends):
        with self.lock:
            self.answer, self.ends, self.requests = answer, ends, []

    def accept(self):
        while True:
            connection, _ = self.listener.accept()
            self.opened += 1
            threading.Thread(target=self.serve, args=(connection, self.opened), daemon=True).start()

    def serve(self, connection, number):
        stream = Stream(connection)
        connection.settimeout(None)
        try:
            while self.one(stream, number):
                pass
        except (EOFError, OSError):
            pass
        with self.lock:
            self.closed += 1
        connection.close()

    def one(self, stream, number):
        raw = stream.until(b"\r\n\r\n")
        with self.lock:
            answer, ends, self.answer = self.answer, self.ends, []
        if answer:
            stream.send(answer)
            if ends:
                # What was sent of the request is read first: a close with unread bytes would be a reset.
                raw += self.body(stream, raw)
                self.record(number, raw)
                return False
        raw += self.body(stream, raw)
        self.record(number, raw)
        if not answer:
            stream.send([OK[:-2] if raw.startswith(b"HEAD ") else OK])
        return True

    def record(self, number, raw):
        with self.lock:
            self.requests.append((number, raw))

    def body(self, stream, head):
        if field(head, b"Transfer-Encoding") == b"chunked":
            body = b""
            while True:
                line = stream.until(b"\r\n")
                size = int(re.match(rb"[0-9a-fA-F]+", line)[0], 16)
                body += line
                if size == 0:
                    break
                body += stream.exactly(size + 2)
            while not body.endswith(b"\r\n\r\n"):
                body += stream.until(b"\r\n")
            return body
        return stream.exactly(int(field(head, b"Content-Length") or 0))


def pattern(expected, server):
    parts = re.split(rb"(\{id\}|\{date\}|\{traceparent\})", expected.replace(b"{server}", server))
    return re.compile(b"".join(PLACEHOLDERS.get(part) or re.escape(part) for part in parts), re.DOTALL)


def length(expected):
    return sum(LENGTHS.get(part, len(part)) for part in re.split(rb"(\{id\}|\{date\}|\{traceparent\})", expected))


def response(stream, head_only):
    head = stream.until(b"\r\n\r\n")
    return int(head.split(b" ")[1]), head, b"" if head_only else stream.exactly(int(field(head, b"Content-Length") or 0))


def check_end(stream):
    rest = stream.rest()
    assert rest == b"", f"more than the answer: {rest[:300]!r}"


def check_cut(case, stream, whole):
    """An answer that breaks off; or a refusal, where what is wrong with it was there before any of it was passed on. Returns whether the
    client's connection is open."""
    try:
        head = stream.until(b"\r\n\r\n")
    except (EOFError, ConnectionResetError):
        head = b""
    if head.startswith(b"HTTP/1.1 502 "):
        assert not case.server_ends, f"what had begun well was refused: {head!r}"
        stream.exactly(int(field(head, b"Content-Length")))
        return True
    assert case.server_ends or not whole, f"what was wrong at once was passed on: {head!r}"
    body = stream.rest()
    if field(head, b"Transfer-Encoding"):
        assert not body.endswith(b"0\r\n\r\n"), f"looks whole: {head!r} {body!r}"
    elif head:
        assert len(body) < int(field(head, b"Content-Length")), f"looks whole: {head!r} {body!r}"
    return False


def check_answers(case, stream, recorder, whole):
    """What the client gets. Returns whether its connection is open."""
    words = case.words
    if words and words[-1] == "cut":
        return check_cut(case, stream, whole)
    if case.to_client is not None:
        got = stream.exactly(length(case.to_client))
        assert pattern(case.to_client, b"").fullmatch(got), f"the client got {got!r}"
    else:
        for number, word in enumerate(words):
            if word == "wait":
                break
            head_only = word == "accept" and recorder.requests[number:] and recorder.requests[number][1].startswith(b"HEAD ")
            status, head, _ = response(stream, head_only)
            assert status == (200 if word == "accept" else int(word)), f"{head!r} instead of {word}"
            assert field(head, b"X-Tailor-Request-Id"), head
            last = number == len(words) - 1
            assert (field(head, b"Connection") == b"close") == (last and (case.close or (word != "accept" and not case.server))), head
    if words and words[-1] == "wait":
        stream.socket.shutdown(socket.SHUT_WR)
        check_end(stream)
        return False
    refused = words and words[-1].isdigit() and not case.server
    if case.close or refused or (case.drips and not words):
        check_end(stream)
        return False
    return True


def check_server(case, recorder, server):
    accepted = sum(word == "accept" for word in case.words)
    got = [raw for _, raw in recorder.requests]
    if case.server:
        return
    assert len(got) == accepted, f"the server got {got!r}"
    if accepted:
        assert case.to_server, "the case does not say what the server must get"
        assert pattern(case.to_server, server).fullmatch(b"".join(got)), f"the server got {b''.join(got)!r}"


def check_next(case, proxy, recorder, stream, is_open):
    """A further request, on the same connection where it is open, shows what became of the connections."""
    before = [number for number, _ in recorder.requests]
    if not is_open:
        stream = Stream(socket.create_connection(("127.0.0.1", proxy.port)))
    with stream.socket:
        stream.send([PROBE])
        status, head, body = response(stream, False)
        assert status == 200 and body == b"ok", f"the next request: {head!r}"
    after = [number for number, raw in recorder.requests if b" /probe " in raw]
    assert len(after) == 1, recorder.requests
    if case.server and before:
        dropped = case.drop or case.words != ["accept"]
        assert (after[0] != before[0]) == dropped, "the server's connection was " + ("used again" if dropped else "dropped")


def check(case, proxy, recorder, splits):
    client_parts, server_parts = splits
    recorder.begin(server_parts, case.server_ends)
    stream = Stream(socket.create_connection(("127.0.0.1", proxy.port)))
    with stream.socket:
        stream.send(client_parts)
        is_open = check_answers(case, stream, recorder, len(server_parts) == 1)
        check_server(case, recorder, f"127.0.0.1:{recorder.port}".encode())
        # The server's side settles before the next request, so that its connection is known to be open or not.
        until(lambda: settled(case, proxy, recorder), "the proxy and the server disagree about open connections")
        check_next(case, proxy, recorder, stream, is_open)
    until(lambda: settled(case, proxy, recorder), "the proxy and the server disagree about open connections")


def settled(case, proxy, recorder):
    server = proxy.status()["server"][0]
    return server["in_flight"] == 0 and server["connections"] == recorder.opened - recorder.closed


def parts_of(case, seed):
    """Whole for seed 0, otherwise in two parts at a place that the seed decides."""
    def split(data):
        if seed == 0 or len(data) < 2:
            return [data] if data else []
        at = random.Random(f"{case.name} {seed}").randrange(1, len(data))
        return [data[:at], data[at:]]

    return ([case.client], split(case.server)) if case.server else (split(case.client), [])


def check_all(drips, seeds, **options):
    cases = [case for case in table.read() if case.drips == drips]
    configured = {tuple(sorted(case.options.items())) for case in cases}
    failed = []
    for own in sorted(configured):
        check_some([case for case in cases if case.options == dict(own)], seeds, failed, **options, **dict(own))
    print(f"{len(cases)} cases, {len(failed)} failed")
    assert not failed, "\n".join(failed)


def check_some(cases, seeds, failed, **options):
    recorder = Recorder()
    with Proxy(recorder, **options) as proxy:
        for case in cases:
            for seed in seeds:
                splits = parts_of(case, seed)
                try:
                    check(case, proxy, recorder, splits)
                except (AssertionError, EOFError, OSError) as error:
                    failed.append(f"{case.place}: {case.name}, sent as {[len(part) for part in splits[bool(case.server)]]}: "
                                  f"{type(error).__name__} {str(error)[:600]}")
                    break


def every_case_is_judged_and_forwarded_as_the_table_says():
    check_all(False, (0, 1, 2))


def what_takes_too_long_is_answered_in_time():
    check_all(True, (0, 1), idle_ms=300)


run([every_case_is_judged_and_forwarded_as_the_table_says, what_takes_too_long_is_answered_in_time])
