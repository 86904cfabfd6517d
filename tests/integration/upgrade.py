# SPDX-License-Identifier: Apache-2.0
"""`tailor proxy --take-over`: one process after another serves on the same sockets, and no client notices."""
import json
import os
import signal
import socket
import subprocess
import threading
import time
import unittest
from pathlib import Path

from load_harness import TAILOR
from upgrade_harness import TakeOver


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


class Upgrade(TakeOver):
    def judge(self, clients):
        clients.end()
        self.assertEqual(clients.bad, [])
        paths = [entry["path"] for entry in self.backend.log()["requests"]]
        echoed = sorted(int(path.split("?")[1]) for path in paths if path.startswith("/echo?"))
        self.assertEqual(echoed, list(range(1, clients.sent + 1)), "each request exactly once")

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


if __name__ == "__main__":
    unittest.main(verbosity=2)
