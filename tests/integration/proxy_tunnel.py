# SPDX-License-Identifier: Apache-2.0
"""Connections that change their protocol: bytes both ways, ends that are passed on, bounds that hold, and nothing by accident."""
import os
import socket
import threading
import time

from proxy_harness import CLIENT, DONE, END, REFUSED, Backend, Proxy, check_events, ok, run, until

ASK = b"GET /chat HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: abc\r\n\r\n"
AGREE = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: def\r\n\r\n"


class Server(Backend):
    """Agrees, then does with the connection what the test says."""

    def __init__(self, talk, agree=AGREE):
        super().__init__(self.change, read_body=False)
        self.talk, self.agree = talk, agree

    def change(self, request, connection):
        if not request.field("Upgrade"):
            return ok(b"plain")
        if self.agree:
            connection.sendall(self.agree)
        self.talk(connection, request.stream)
        return None


def echo(connection, stream):
    while True:
        data = stream.read1(65536)
        if not data:
            break
        connection.sendall(data)
    connection.sendall(b"bye")


def changed(client):
    response = client.response(interim=True)
    assert response.status == 101, response.status
    return response


def bytes_pass_both_ways_after_101():
    server = Server(echo)
    with Proxy(server, upgrade="websocket") as proxy, proxy.connect() as client:
        client.send(ASK)
        response = changed(client)
        names = [name.lower() for name, _ in response.fields]
        assert response.field("Upgrade") == "websocket" and response.field("Connection") == "upgrade", response.fields
        assert response.field("Sec-WebSocket-Accept") == "def" and names.count("upgrade") == names.count("connection") == 1
        request = server.requests[0]
        assert request.field("Upgrade") == "websocket" and request.field("Connection") == "upgrade"
        assert request.field("Sec-WebSocket-Key") == "abc"
        for size in (1, 5, 100, 30000, 200000):
            data = os.urandom(size)
            client.send(data)
            assert client.exactly(size) == data
        assert proxy.status()["tunnels"] == 1
        client.socket.shutdown(socket.SHUT_WR)
        assert client.rest() == b"bye"
        until(lambda: proxy.status()["tunnels"] == 0 and proxy.status()["clients"] == 0, "the tunnel is left")
        assert proxy.status()["tunnel_bytes"] == [230106, 230109], proxy.status()
        # The request ended with its answer; what came then is none of it.
        own, = check_events(proxy.events()).values()
        assert own[-1].kind == END and own[-1].status == 101 and own[-1].arg[1] == DONE, own
        status = proxy.status()
        assert status["requests"] == 1 and status["cut"] == status["client_gone"] == 0, status


def nobody_has_to_wait_for_the_other():
    """Bytes right behind the heads, from either side, empty lines among them."""
    data = b"\r\n\r\nGET / HTTP/1.1\r\n\r\n" * 10
    for together in (True, False):
        server = Server(echo, AGREE + b"\r\nhello")
        with Proxy(server, upgrade="websocket") as proxy, proxy.connect() as client:
            client.send(ASK + data if together else ASK)
            if not together:
                client.send(data)
            changed(client)
            assert client.exactly(7) == b"\r\nhello"
            assert client.exactly(len(data)) == data
            client.socket.shutdown(socket.SHUT_WR)
            assert client.rest() == b"bye"


def a_tunnel_is_no_request_at_its_server():
    server, other = Server(echo), Server(echo)
    with Proxy(server, other, upgrade="websocket", balanced=1) as proxy:
        clients = [proxy.connect() for _ in range(3)]
        for client in clients:
            client.send(ASK)
            changed(client)
        assert [its["in_flight"] for its in proxy.status()["server"]] == [0, 0], proxy.status()
        for client in clients:
            client.socket.shutdown(socket.SHUT_WR)
            assert client.rest() == b"bye"
            client.socket.close()


def the_end_of_either_side_is_passed_on_and_the_other_goes_on():
    def server_first(connection, stream):
        connection.sendall(b"last words")
        connection.shutdown(socket.SHUT_WR)
        heard.append(stream.read())

    heard = []
    with Proxy(Server(server_first), upgrade="websocket") as proxy, proxy.connect() as client:
        client.send(ASK)
        changed(client)
        assert client.rest() == b"last words"
        for _ in range(3):
            time.sleep(0.05)
            client.send(bytes(50000))
        client.socket.shutdown(socket.SHUT_WR)
        until(lambda: heard, "the server hears the client's end")
        assert heard == [bytes(150000)]

    def client_first(connection, stream):
        heard.append(stream.read())
        for _ in range(3):
            time.sleep(0.05)
            connection.sendall(bytes(50000))

    heard = []
    with Proxy(Server(client_first), upgrade="websocket") as proxy, proxy.connect() as client:
        client.send(ASK + b"question")
        client.socket.shutdown(socket.SHUT_WR)
        changed(client)
        assert client.rest() == bytes(150000) and heard == [b"question"]


def a_slow_reader_holds_the_other_back_either_way():
    total = 30_000_000
    sent = []

    def send(to):
        at = 0
        while at < total:
            at += to.send(bytes(min(65536, total - at)))
            sent.append(at)

    def memory(proxy):
        with open(f"/proc/{proxy.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

    gate = threading.Event()

    def slow_server(connection, stream):
        gate.wait(10)
        rest = total
        while rest:
            rest -= len(stream.read1(65536))
        connection.sendall(b"all")

    for talk in (slow_server, lambda connection, stream: send(connection)):
        sent.clear()
        gate.clear()
        with Proxy(Server(talk), upgrade="websocket") as proxy, proxy.connect() as client:
            client.send(ASK)
            changed(client)
            before = memory(proxy)
            if talk is slow_server:
                thread = threading.Thread(target=send, args=(client.socket,))
                thread.start()
            time.sleep(0.5)
            stood = sent[-1]
            time.sleep(0.3)
            assert sent[-1] == stood < total, "it was not held back"
            assert memory(proxy) - before < 2000, f"{memory(proxy) - before} KiB more"
            gate.set()
            if talk is slow_server:
                assert client.exactly(3) == b"all"
                thread.join()
            else:
                got = len(client.buffer)
                while got < total:
                    got += len(client.socket.recv(1 << 20))


def a_tunnel_in_which_nothing_moves_ends_and_one_in_which_something_does_not():
    with Proxy(Server(echo), upgrade="websocket", idle_ms=400, body_ms=100, request_ms=300, keep_alive_ms=100) as proxy:
        with proxy.connect() as client:
            client.send(ASK)
            changed(client)
            for _ in range(5):
                time.sleep(0.2)
                client.send(b"x")
                assert client.exactly(1) == b"x"
            begin = time.monotonic()
            assert client.closed() and 0.3 <= time.monotonic() - begin < 0.7, time.monotonic() - begin
        status = proxy.status()
        assert status["tunnels_idle"] == 1 and status["tunnels"] == 0 and status["cut"] == 0, status


def a_request_ends_though_its_client_never_takes_the_101():
    def hint(connection, stream):
        for _ in range(600):
            connection.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: " + b"x" * 8000 + b"\r\n\r\n")
            time.sleep(0.0005)
        connection.sendall(AGREE)
        stream.read()

    with Proxy(Server(hint, agree=None), upgrade="websocket", idle_ms=1500) as proxy:
        with proxy.connect() as client:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.send(ASK)
            until(lambda: proxy.status()["tunnels"] == 1, "the server has agreed")
            until(lambda: proxy.status()["tunnels"] == 0, "it ends")
        own, = check_events(proxy.events()).values()
        assert own[-1].status == 101 and own[-1].arg[1] == CLIENT, own
        status = proxy.status()
        assert status["requests"] == status["client_gone"] == 1 and status["tunnels_idle"] == 0, status


def a_server_that_breaks_off_does_not_look_as_if_it_had_ended():
    def reset(connection, stream):
        connection.sendall(b"half")
        time.sleep(0.1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    with Proxy(Server(reset), upgrade="websocket") as proxy, proxy.connect() as client:
        client.send(ASK)
        changed(client)
        try:
            assert client.rest() != b"half", "it looks like an end"
        except ConnectionResetError:
            pass


def a_client_that_waits_for_room_learns_that_the_server_has_gone():
    """Its bytes have filled all there is, so that nothing more of it comes by which that would be noticed."""
    for half in (False, True):
        gate = threading.Event()

        def leave(connection, stream):
            if half:
                connection.shutdown(socket.SHUT_WR)
            gate.wait(10)
            # With bytes unread, this is a reset.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

        with Proxy(Server(leave), upgrade="websocket") as proxy, proxy.connect() as client:
            client.send(ASK)
            changed(client)
            client.socket.settimeout(0.5)
            try:
                while True:
                    client.socket.send(bytes(65536))
            except TimeoutError:
                pass
            gate.set()
            client.socket.settimeout(3)
            try:
                while True:
                    client.socket.send(bytes(65536))
            except (ConnectionResetError, BrokenPipeError):
                pass
            until(lambda: proxy.status()["tunnels"] == 0, "the tunnel is left")


def only_what_is_allowed_is_asked_for():
    def asked(wanted, **options):
        server = Server(echo, agree=None)
        server.answer = lambda request, connection: ok(b"plain")
        with Proxy(server, **options) as proxy, proxy.connect() as client:
            # A refusal costs nothing: the connection carries the next request.
            for _ in range(2):
                client.send(f"GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade, http2-settings\r\nUpgrade: {wanted}\r\n"
                            "HTTP2-Settings: AAA\r\n\r\n".encode())
                assert client.response().body == b"plain"
            assert not server.requests[0].field("HTTP2-Settings")
        return server.requests[0].field("Upgrade"), server.requests[0].field("Connection")

    assert asked("websocket") == (None, None)
    assert asked("h2c", upgrade="websocket") == (None, None)
    assert asked("h2c, websocket", upgrade="websocket") == ("websocket", "upgrade")
    assert asked("WebSocket", upgrade="websocket") == ("websocket", "upgrade")
    assert asked("websocket-but-not-quite", upgrade="websocket") == (None, None)


def a_server_may_change_only_to_what_it_was_asked_for():
    for agree in (AGREE.replace(b"WebSocket", b"h2c"), AGREE.replace(b"Connection: Upgrade\r\n", b"")):
        with Proxy(Server(echo, agree), upgrade="websocket") as proxy:
            with proxy.connect() as client:
                client.send(ASK)
                assert client.response(interim=True).status == 502
    # With a body, or of HTTP/1.0, it is not asked.
    with Proxy(Server(echo), upgrade="websocket") as proxy:
        assert proxy.get("/", "POST", "Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n", b"x").body == b"plain"
        with proxy.connect() as client:
            client.send(b"GET / HTTP/1.0\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
            assert client.response().body == b"plain"


def it_is_asked_of_one_server_only():
    gate = threading.Event()
    one = Server(lambda connection, stream: gate.wait(5), agree=None)
    other = Server(echo)
    with Proxy(one, other, upgrade="websocket") as proxy:
        proxy.command("attach 0")
        proxy.command("attach 1")
        with proxy.connect() as client:
            client.send(ASK)
            until(lambda: one.requests, "it is asked")
            proxy.command("pause 0")
            time.sleep(0.05)
            # Nor is it asked again when the server breaks off.
            gate.set()
            assert client.response().status == 502 and not other.requests
        assert proxy.status()["not_moved"]["method"] == 1
        proxy.command("resume 0")


def a_tunnel_has_no_place_among_the_requests_in_flight_and_a_pause_leaves_it_alone():
    server, other = Server(echo), Server(echo)
    with Proxy(server, other, upgrade="websocket", in_flight=1) as proxy:
        proxy.command("attach 0")
        proxy.command("attach 1")
        with proxy.connect() as client:
            client.send(ASK)
            changed(client)
            assert proxy.get().body == b"plain"
            proxy.command("pause 0")
            proxy.command("resume 0")
            client.send(b"still there")
            assert client.exactly(11) == b"still there"
            assert not any(proxy.status()["not_moved"].values())


def a_stop_waits_for_tunnels_only_so_long():
    proxy = Proxy(Server(echo), upgrade="websocket")
    client = proxy.connect()
    client.send(ASK)
    changed(client)
    begin = time.monotonic()
    proxy.command("stop 300")
    assert 0.25 < time.monotonic() - begin < 1.5 and client.closed()
    proxy.process.stdin.close()
    assert proxy.process.wait(10) == 0


HELPERS = (Server, echo, changed)
run([value for value in list(globals().values())
     if callable(value) and getattr(value, "__module__", "") == "__main__" and value not in HELPERS])
