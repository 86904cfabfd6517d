# SPDX-License-Identifier: Apache-2.0
"""`tailor proxy --take-over`: one process after another serves on the same sockets, and no client notices."""
import array
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

from load_harness import TAILOR, server

HELLO, OFFER, READY, YOURS, SERVING, FAILED = range(1, 7)
MESSAGE = struct.Struct("=QIIIIII400s")  # magic, version, kind, parts, listeners, uid, pid, text
MAGIC = 0x3152564F4C494154
SEQPACKET = socket.SOCK_SEQPACKET


class Process:
    """One `tailor proxy`; what it says is collected."""

    def __init__(self, config, *more):
        self.lines, self.changed = [], threading.Condition()
        self.popen = subprocess.Popen([TAILOR, "proxy", "-c", config, *more], stderr=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.popen.stderr:
            with self.changed:
                self.lines.append(line.rstrip())
                self.changed.notify_all()
        with self.changed:
            self.lines.append("")
            self.changed.notify_all()

    def said(self, pattern, seconds=15):
        def found():
            return [match for match in (re.search(pattern, line) for line in self.lines) if match]
        with self.changed:
            self.changed.wait_for(lambda: found() or (self.lines and self.lines[-1] == ""), seconds)
            assert found(), (pattern, self.lines)
            return found()[0]

    def end(self, seconds=15):
        code = self.popen.wait(seconds)
        self.reader.join()
        self.popen.stderr.close()
        return code

    def kill(self):
        if self.popen.poll() is None:
            self.popen.kill()
        if not self.popen.stderr.closed:
            self.end()


class Clients:
    """Each request has a number of its own, which its answer repeats; a thread is a client that sends one after another."""

    def __init__(self, port, keep_alive, fresh):
        self.port, self.stop, self.bad, self.sent = port, False, [], 0
        self.lock = threading.Lock()
        self.reconnects = 0
        self.threads = [threading.Thread(target=self.run, args=(reuse,)) for reuse in [True] * keep_alive + [False] * fresh]
        for thread in self.threads:
            thread.start()

    def run(self, reuse):
        connection = None
        while not self.stop:
            with self.lock:
                self.sent += 1
                number = str(self.sent)
            try:
                if connection is None:
                    connection = socket.create_connection(("127.0.0.1", self.port), 20)
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                close = "" if reuse else "Connection: close\r\n"
                connection.sendall(f"GET /echo?{number} HTTP/1.1\r\nHost: t\r\n{close}\r\n".encode())
                answer = b""
                while b"\r\n\r\n" not in answer or not answer.endswith(number.encode()):
                    part = connection.recv(65536)
                    if not part:
                        raise EOFError(answer)
                    answer += part
                head, body = answer.split(b"\r\n\r\n", 1)
                if not head.startswith(b"HTTP/1.1 200 ") or body != number.encode():
                    raise ValueError(answer)
                if b"connection: close" in head.lower():
                    self.reconnects += reuse
                    connection.close()
                    connection = None
            except (OSError, EOFError, ValueError) as error:
                self.bad.append((number, reuse, repr(error)))
                if connection:
                    connection.close()
                connection = None
            time.sleep(0.004)
        if connection:
            connection.close()

    def end(self):
        self.stop = True
        for thread in self.threads:
            thread.join()


class Upgrade(unittest.TestCase):
    more = ""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        backend = server()
        self.backend = backend.__enter__()
        self.addCleanup(backend.__exit__, None, None, None)
        self.admin = self.directory / "admin.sock"
        self.socket = self.directory / "timelines/take-over.sock"
        self.config = self.directory / "tailor.yaml"
        self.text = (f"listen: 127.0.0.1:0\nworkers: 2\nservers: [{{name: a, address: 127.0.0.1:{self.backend.port}}}]\ntrace: {{kernel: off}}\n"
                     f"timelines: {{path: {self.directory}/timelines}}\nadmin: {{listen: 'unix:{self.admin}'}}\n"
                     f"agent: {{socket: {self.directory}/agent.sock}}\naccess_log: {{path: {self.directory}/access.log, format: json}}\n"
                     "slow: {threshold: 200ms, baseline_one_in: 0}\ntimeouts: {stop: 4s}\n")
        self.config.write_text(self.text)
        self.processes = []
        self.old = self.start()
        self.port = int(self.old.said(r"serving 127\.0\.0\.1:(\d+)")[1])

    def start(self, *more, config=None):
        process = Process(config or self.config, *more)
        self.addCleanup(process.kill)
        return process

    def take_over(self):
        """Replaces the process that serves, and returns the one before."""
        began = time.monotonic()
        new, old = self.start("--take-over"), self.old
        self.assertEqual(int(new.said(r"serving 127\.0\.0\.1:\d+, taken over from pid (\d+)")[1]), old.popen.pid)
        self.took = time.monotonic() - began
        old.said(f"pid {new.popen.pid} serves now")
        self.old = new
        return old

    def ask(self, path, method="GET", seconds=5):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(seconds)
            connection.connect(str(self.admin))
            connection.sendall(f"{method} {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n".encode())
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        return int(answer.split()[1]), answer.split(b"\r\n\r\n", 1)[1].decode()

    def get(self, path):
        with socket.create_connection(("127.0.0.1", self.port), 10) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n".encode())
            return b"".join(iter(lambda: connection.recv(65536), b""))

    def stored(self):
        dumped = subprocess.run([TAILOR, "dump", self.directory / "timelines", "--json"], capture_output=True, text=True)
        return [timeline["target"] for timeline in json.loads(dumped.stdout)["timelines"]] if dumped.stdout else []

    def wait_stored(self, count):
        """Until the process that serves has written so many timelines."""
        deadline = time.monotonic() + 10
        while json.loads(self.ask("/status")[1])["timelines"]["stored"] < count:
            self.assertLess(time.monotonic(), deadline, "timelines are not stored")
            time.sleep(0.05)

    def judge(self, clients):
        clients.end()
        self.assertEqual(clients.bad, [])
        paths = [entry["path"] for entry in self.backend.log()["requests"]]
        echoed = sorted(int(path.split("?")[1]) for path in paths if path.startswith("/echo?"))
        self.assertEqual(echoed, list(range(1, clients.sent + 1)), "each request exactly once")

    def speak(self, until, then=lambda: None):
        """A new process that gets as far as `until`, does something and ends. Returns what it was offered."""
        with socket.socket(socket.AF_UNIX, SEQPACKET) as connection:
            connection.settimeout(10)
            connection.connect(str(self.socket))
            offered = []

            def send(kind, parts=0):
                connection.send(MESSAGE.pack(MAGIC, 1, kind, parts, 0, 0, 0, b"test"))

            def hear(kind):
                data, rights, _, _ = connection.recvmsg(4096, socket.CMSG_SPACE(4 * 32))
                for _, _, fds in rights:
                    offered.extend(array.array("i", fds[:len(fds) // 4 * 4]))
                self.assertEqual(MESSAGE.unpack(data)[2], kind)

            for step, act in (("hello", lambda: send(HELLO)), ("offer", lambda: hear(OFFER)), ("ready", lambda: send(READY, 15)),
                              ("yours", lambda: hear(YOURS))):
                act()
                if step == until:
                    break
            if until == "nonsense":
                connection.send(b"nonsense")
            then()
            for fd in offered:
                os.close(fd)
            return offered

    def kill_on_the_way(self, part, ended):
        killed = self.start("--take-over")
        time.sleep(part * self.took)
        # Stopped, it gets no further, and what it has said arrives.
        killed.popen.send_signal(signal.SIGSTOP)
        while Path(f"/proc/{killed.popen.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "T":
            time.sleep(0.001)
        time.sleep(0.3)
        if any(f"pid {killed.popen.pid} serves now" in line for line in self.old.lines):
            killed.popen.send_signal(signal.SIGCONT)
            ended.append(self.old)
            self.old = killed
        else:
            killed.kill()
            self.killed += 1

    def test_no_request_is_refused_lost_or_doubled_while_one_replaces_the_other(self):
        clients = Clients(self.port, keep_alive=12, fresh=6)
        self.addCleanup(clients.end)
        load = subprocess.Popen([TAILOR, "load", "--json", "--allow-late", "--rate", "300", "--duration", "16s", "--warm", "0s",
                                 f"http://127.0.0.1:{self.port}/ok"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(load.wait)
        self.addCleanup(load.stdout.close)
        ended, self.killed = [], 0
        for turn in range(7):
            time.sleep(0.4)
            if turn == 2:  # A configuration that is not valid: nobody is even asked.
                self.config.write_text(self.text + "nonsense: 1\n")
                self.assertEqual(self.start("--take-over").end(), 2)
                # One that is valid, and cannot be taken over to: both say why.
                for old, changed, why in (("workers: 2", "workers: 1", "cannot serve the 2 listening sockets"),
                                          ("127.0.0.1:0", "127.0.0.2:0", "only a restart can change"),
                                          ("kernel: off", "kernel: off}\nuser: daemon\nlimits: {connections: 99", "only a restart can change `user`")):
                    self.config.write_text(self.text.replace(old, changed))
                    failed = self.start("--take-over")
                    self.assertEqual(failed.end(), 1)
                    failed.said(why)
                    failed.said("goes on as before")
                    self.old.said(f"pid {failed.popen.pid} has not taken over: .*{why}")
                self.config.write_text(self.text)
            if turn == 4:  # Killed at any moment on the way, and at each step.
                for part in (0.1, 0.3, 0.5, 0.7, 0.9):
                    self.kill_on_the_way(part, ended)
                for until in ("hello", "offer", "ready", "yours", "nonsense"):
                    self.speak(until)
            if turn == 5:
                self.config.write_text(self.text.replace("workers: 2", "workers: 3"))
            ended.append(self.take_over())
        self.assertEqual([process.end() for process in ended], [0] * len(ended))
        self.assertGreaterEqual(len(ended), 7)
        self.assertGreater(self.killed, 0)
        report = json.loads(load.stdout.read())
        self.assertEqual((report["good"], report["bad"], report["failed"]), (report["requests"], 0, 0))
        self.assertGreater(report["good"], 4000)
        self.judge(clients)
        self.assertGreater(clients.sent, 5000)
        self.assertGreater(clients.reconnects, 12)
        # Every process has logged what it served, each request once.
        self.old.popen.terminate()
        self.assertEqual(self.old.end(), 0)
        logged = [json.loads(line) for line in (self.directory / "access.log").read_text().splitlines()]
        self.assertEqual(len(logged), len({line["id"] for line in logged}))
        self.assertEqual(len([line for line in logged if line["request"].startswith("GET /echo?")]), clients.sent)

    def test_a_connection_that_comes_just_when_the_old_one_stops_is_accepted(self):
        """Nobody comes after it on the same socket, so that it must be accepted for its own sake."""
        for _ in range(12):
            new, waiting = self.start("--take-over"), []
            self.old.said(f"pid {new.popen.pid} .*wants to take over")
            over = None
            while over is None or time.monotonic() < over:
                if over is None and any(f"pid {new.popen.pid} serves now" in line for line in self.old.lines):
                    over = time.monotonic() + 0.004
                waiting.append(socket.create_connection(("127.0.0.1", self.port), 5))
                waiting[-1].sendall(b"GET /ok HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")
                if over is None:
                    time.sleep(0.005)
            for connection in waiting:
                self.assertIn(b"200 OK", b"".join(iter(lambda: connection.recv(65536), b"")))
                connection.close()
            self.assertEqual(self.old.end(), 0)
            self.old = new
            self.old.said("serving")

    def test_one_that_fails_leaves_the_old_one_as_it_was(self):
        self.assertEqual(len(self.speak("offer")), 2 + 4)  # two clients' sockets, admin, agents, its own, the store's lock
        for until in ("hello", "offer", "ready", "yours"):
            with self.old.changed:
                self.old.lines.clear()
            self.speak(until)
            self.old.said(f"pid {os.getpid()} has not taken over: it ended before it served")
            self.assertEqual(self.ask("/status")[0], 200)
            self.assertIn(b"200 OK", self.get("/slow?250"))
            # Whoever comes as an agent is heard again.
            with socket.socket(socket.AF_UNIX, SEQPACKET) as agent:
                agent.connect(str(self.directory / "agent.sock"))
                agent.send(b"nonsense")
                agent.settimeout(5)
                self.assertEqual(agent.recv(1), b"")
        self.wait_stored(4)
        self.assertEqual(self.stored(), ["GET /slow?250"] * 4)

    def test_one_that_hangs_is_told_of_and_stops_nobody(self):
        def wait():
            self.old.said(f"pid {os.getpid()} has not begun to serve; requests are served here meanwhile", 10)
            self.assertIn(b"200 OK", self.get("/slow?250"))
            with socket.socket(socket.AF_UNIX, SEQPACKET) as second:
                second.connect(str(self.socket))
                self.assertIn(b"another process is taking over already", second.recv(4096))
            time.sleep(1)  # the observer has given up that one's timeline

        self.speak("yours", wait)
        self.old.said("has not taken over: it ended before it served; going on as before")
        self.assertIn(b"200 OK", self.get("/slow?251"))
        self.wait_stored(1)
        self.assertEqual(self.stored(), ["GET /slow?251"])

    def test_one_that_says_nothing_is_in_nobodys_way(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
            silent.connect(str(self.socket))
            time.sleep(0.4)
            old = self.take_over()
            self.assertEqual(old.end(), 0)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
            silent.settimeout(10)
            silent.connect(str(self.socket))
            self.assertEqual(silent.recv(1), b"", "it is waited for for ever")
        self.old.said("said nothing")

    def test_one_that_is_told_to_stop_waits_for_whom_it_has_given_everything(self):
        def terminate():
            self.old.popen.terminate()
            time.sleep(0.5)
            self.assertIsNone(self.old.popen.poll())
            self.assertIn(b"200 OK", self.get("/ok"))

        self.speak("yours", terminate)
        self.assertEqual(self.old.end(), 0)

    def test_two_never_write_one_store(self):
        # A third one, which is told nothing, stays out all the time.
        def stays_out():
            other = self.directory / "other.yaml"
            other.write_text(self.text.replace("admin.sock", "b.sock").replace("agent.sock", "c.sock"))
            third = self.start(config=other)
            self.assertEqual(third.end(), 1)
            third.said("is being written by another tailor")

        stays_out()
        slow = threading.Thread(target=lambda: self.get("/slow?1500"))
        slow.start()
        time.sleep(0.3)
        self.assertIn(b"200 OK", self.get("/slow?250"))
        self.wait_stored(1)
        old = self.take_over()
        stays_out()
        self.assertIn(b"200 OK", self.get("/slow?251"))
        slow.join()
        self.assertEqual(old.end(), 0)
        old.said("slow requests that ended here since and have no timeline: 1")
        stays_out()
        self.assertIn(b"200 OK", self.get("/slow?252"))
        self.wait_stored(2)
        # What ended at the old one after it had let go has no timeline; its line in the access log is there.
        self.assertEqual(sorted(self.stored()), ["GET /slow?250", "GET /slow?251", "GET /slow?252"])
        self.assertIn("/slow?1500", (self.directory / "access.log").read_text())
        self.assertEqual(len(list((self.directory / "timelines").glob("*.tailor"))), 2)

    def test_what_is_in_flight_at_the_old_one_ends_there(self):
        answers = []
        slow = threading.Thread(target=lambda: answers.append(self.get("/slow?1500")))
        slow.start()
        time.sleep(0.3)
        old = self.take_over()
        self.assertIn(b"200 OK", self.get("/ok"))
        slow.join()
        self.assertIn(b"200 OK", answers[0])
        self.assertEqual(old.end(), 0)
        # Its files are the new one's now.
        self.assertEqual(self.ask("/status")[0], 200)
        self.assertTrue(self.socket.is_socket())
        self.assertTrue((self.directory / "agent.sock").is_socket())
        self.old.popen.terminate()
        self.assertEqual(self.old.end(), 0)
        self.assertFalse(self.admin.exists() or self.socket.exists() or (self.directory / "agent.sock").exists())

    def test_what_a_restart_would_change_changes(self):
        self.config.write_text(self.text.replace("admin.sock", "new.sock").replace("/timelines}", "/elsewhere}").replace("200ms", "1ms"))
        self.assertEqual(self.start("--take-over").end(), 1)  # looks in the new place
        new = self.start(f"--take-over={self.socket}")
        new.said("serving")
        self.assertEqual(self.old.end(), 0)
        self.old = new
        self.assertFalse(self.admin.exists())
        self.admin = self.directory / "new.sock"
        self.assertEqual(self.ask("/status")[0], 200)
        self.assertTrue((self.directory / "elsewhere/take-over.sock").is_socket())
        self.assertFalse(self.socket.exists())

    def test_it_works_without_admin_and_agents(self):
        self.config.write_text(self.text.replace(f"admin: {{listen: 'unix:{self.admin}'}}\n", "")
                               .replace(f"agent: {{socket: {self.directory}/agent.sock}}\n", "").replace("/timelines}", "/elsewhere}"))
        first = self.start()
        self.port = int(first.said(r"serving 127\.0\.0\.1:(\d+)")[1])
        # Nor does it matter how the admin interface is reached.
        self.config.write_text(self.config.read_text() + "admin: {listen: '127.0.0.1:0'}\n")
        for _ in range(2):
            second = self.start("--take-over")
            second.said("taken over from pid")
            self.assertEqual(first.end(), 0)
            self.assertIn(b"200 OK", self.get("/ok"))
            first = second

    def test_an_idle_client_is_told_in_good_order(self):
        idle = socket.create_connection(("127.0.0.1", self.port), 10)
        self.addCleanup(idle.close)
        for _ in range(2):
            idle.sendall(b"GET /ok HTTP/1.1\r\nHost: t\r\n\r\n")
            self.assertIn(b"200 OK", idle.recv(65536))
        began = time.monotonic()
        old = self.take_over()
        self.assertEqual(idle.recv(1), b"")  # an end, not a reset, and not before it had time to send another request
        self.assertGreater(time.monotonic() - began, 2.5)
        idle.close()
        self.assertEqual(old.end(), 0)
        self.assertFalse(any("were cut" in line for line in old.lines), old.lines)

    def test_it_works_for_one_that_has_given_up_roots_rights(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        os.chmod(self.directory, 0o755)
        self.config.write_text(self.text.replace("/timelines}", "/daemon}").replace("admin.sock", "a.sock").replace("agent.sock", "b.sock") +
                               "user: daemon\n")
        self.socket, self.admin = self.directory / "daemon/take-over.sock", self.directory / "a.sock"
        self.old = self.start()
        self.port = int(self.old.said(r"serving 127\.0\.0\.1:(\d+)")[1])
        self.speak("yours")
        self.assertIn(b"200 OK", self.get("/slow?250"))
        for _ in range(2):
            self.wait_stored(1)
            old = self.take_over()
            self.assertEqual(old.end(), 0)
            self.assertIn(b"200 OK", self.get("/slow?250"))
        self.wait_stored(1)
        self.assertEqual(len(list((self.directory / "daemon").glob("*.tailor"))), 3)

    def test_without_a_running_proxy_it_says_so(self):
        self.config.write_text(self.text.replace("/timelines}", "/nowhere}"))
        named = self.start(f"--take-over={self.directory}/nowhere/take-over.sock")
        self.assertEqual(named.end(), 1)
        named.said("cannot take over: .*nowhere/take-over.sock: .*start without --take-over")
        # It does not come beside one that runs, though.
        beside = self.start("--take-over")
        beside.said("nobody to take over from at .*nowhere/take-over.sock: starting as the first one")
        self.assertEqual(beside.end(), 1)
        self.config.write_text(self.config.read_text().replace("admin.sock", "b.sock").replace("agent.sock", "c.sock")
                               .replace("127.0.0.1:0", f"127.0.0.1:{self.port}"))
        beside = self.start("--take-over")
        self.assertEqual(beside.end(), 1)
        beside.said("cannot listen on .*something else listens there")
        self.old.popen.terminate()
        self.assertEqual(self.old.end(), 0)
        self.start("--take-over").said(f"serving 127.0.0.1:{self.port}$")

    def test_only_root_and_its_user_may_take_over(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        self.assertEqual(self.socket.stat().st_mode & 0o777, 0o600)
        # Even where somebody has opened the doors by hand.
        for path, mode in ((self.directory, 0o755), (self.directory / "timelines", 0o755), (self.socket, 0o666), (self.admin, 0o666)):
            os.chmod(path, mode)
        code = ("import os, socket, sys\nos.setuid(65534)\n"
                "s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.connect(sys.argv[1]); print(s.recv(4096)[32:].rstrip(b'\\0'))\n"
                "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[2]); s.sendall(b'GET /status HTTP/1.1\\r\\nHost: t\\r\\n\\r\\n'); print(s.recv(4096))")
        done = subprocess.run([sys.executable, "-c", code, self.socket, self.admin], capture_output=True, text=True, timeout=10)
        self.assertIn("only root and the proxy", done.stdout.splitlines()[0])
        self.assertIn("HTTP/1.1 403", done.stdout.splitlines()[1])
        self.old.said(r"refused pid \d+ \(user 65534\) at the take-over socket")
        self.old.said(r"refused pid \d+ \(user 65534\) at the admin socket")
        self.assertEqual(self.ask("/status")[0], 200)

    def test_one_that_is_told_to_stop_on_the_way_does_not_take_over(self):
        new = self.start("--take-over")
        new.popen.send_signal(signal.SIGTERM)
        if new.end() == 0:
            self.skipTest("it had begun to serve")
        self.assertIn(b"200 OK", self.get("/ok"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
