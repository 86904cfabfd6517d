# SPDX-License-Identifier: Apache-2.0
"""How `tailor proxy` stops: what is in flight ends, what is idle is closed, and nothing waits longer than was asked for."""
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

from load_harness import server
from whole_proxy import Proxy

REQUEST = "GET {} HTTP/1.1\r\nHost: t\r\n\r\n"


class Stop(unittest.TestCase):
    def serve(self, stop="20s", more=""):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        backend = server()
        running = backend.__enter__()
        self.addCleanup(backend.__exit__, None, None, None)
        self.proxy = Proxy(directory.name, [("a", running.port)], f"timeouts: {{stop: {stop}}}\n{more}")
        self.addCleanup(self.proxy.process.wait)
        self.addCleanup(self.proxy.process.stderr.close)
        self.addCleanup(self.proxy.process.kill)

    def connect(self, *paths):
        connection = socket.create_connection(("127.0.0.1", self.proxy.port), 10)
        self.addCleanup(connection.close)
        connection.sendall("".join(REQUEST.format(path) for path in paths).encode())
        return connection

    def idle(self):
        connection = self.connect("/ok")
        self.assertIn(b"200 OK", connection.recv(65536))
        return connection

    def begin(self, *signals):
        began = time.monotonic()
        for number in signals or (signal.SIGTERM,):
            self.proxy.process.send_signal(number)
            time.sleep(0.15)
        return began

    def rest(self, connection):
        return b"".join(iter(lambda: connection.recv(65536), b""))

    def test_what_is_in_flight_ends_and_tells_the_client_to_close(self):
        self.serve()
        idle, busy = self.idle(), self.connect("/slow?700", "/ok")
        time.sleep(0.2)
        began = self.begin()
        self.assertEqual(self.rest(idle), b"")  # an end, not a reset
        idle.close()
        answer = self.rest(busy)
        busy.close()
        # The first answer says that it is the last: the second request may be sent elsewhere.
        self.assertEqual((answer.count(b"200 OK"), answer.count(b"Connection: close")), (1, 1), answer)
        self.assertEqual(self.proxy.process.wait(5), 0)
        self.assertLess(time.monotonic() - began, 2)

    def test_new_connections_are_refused_at_once(self):
        self.serve()
        busy = self.connect("/slow?1000")
        time.sleep(0.2)
        self.begin()
        with self.assertRaises(ConnectionRefusedError):
            self.connect()
        self.assertIn(b"200 OK", busy.recv(65536))

    def test_a_request_that_was_sent_before_the_stop_is_answered(self):
        for _ in range(3):
            self.serve()
            idle = self.idle()
            self.proxy.process.send_signal(signal.SIGSTOP)
            idle.sendall(REQUEST.format("/ok").encode())
            fresh = self.connect("/ok")
            self.proxy.process.send_signal(signal.SIGTERM)
            self.proxy.process.send_signal(signal.SIGCONT)
            for connection in (idle, fresh):
                answer = self.rest(connection)
                connection.close()
                self.assertIn(b"200 OK", answer)
            self.assertEqual(self.proxy.process.wait(5), 0)

    def test_it_says_what_it_waits_for_and_cuts_the_rest_at_the_deadline(self):
        self.serve("4s")
        busy = [self.connect("/never") for _ in range(3)]
        time.sleep(0.2)
        began = self.begin()
        self.assertRegex(self.proxy.said("may end within"), "within 4.00 s")
        self.assertRegex(self.proxy.said("in flight still"), "in flight still: 3, connections open: 3")
        self.assertGreater(time.monotonic() - began, 1.9)
        self.assertRegex(self.proxy.said("were cut"), "were cut: 3")
        for connection in busy:
            self.assertEqual(self.rest(connection), b"")
        self.assertEqual(self.proxy.process.wait(5), 0)
        self.assertLess(time.monotonic() - began, 7)

    def test_it_does_not_wait_for_all_timelines_of_an_observer_that_gets_no_cpu(self):
        if os.geteuid() != 0:
            self.skipTest("an observer that has more to do than it can needs root")
        self.serve(more="slow: {threshold: 1us}\n")
        pid = self.proxy.process.pid
        for task in os.listdir(f"/proc/{pid}/task"):
            if Path(f"/proc/{pid}/task/{task}/comm").read_text() == "observer\n":
                os.sched_setaffinity(int(task), {0})
                os.setpriority(os.PRIO_PROCESS, int(task), 19)
        spinners = [subprocess.Popen([sys.executable, "-c", "import os\nos.sched_setaffinity(0, {0})\nwhile 1: pass"]) for _ in range(5)]
        try:
            with socket.create_connection(("127.0.0.1", self.proxy.port), 10) as connection:
                for _ in range(40):
                    connection.sendall(REQUEST.format("/ok").encode() * 100)
                    answers = b""
                    while answers.count(b"200 OK") < 100:
                        answers += connection.recv(1 << 20)
            began = self.begin()
            # With a three hundredth of a CPU, all of them would take minutes.
            self.assertEqual(self.proxy.process.wait(60), 0)
            took = time.monotonic() - began
        finally:
            for spinner in spinners:
                spinner.kill()
                spinner.wait()
        self.assertLess(took, 40)

    def test_a_second_signal_ends_it_at_once(self):
        for second in (signal.SIGTERM, signal.SIGINT):
            self.serve()
            self.connect("/never")
            time.sleep(0.2)
            began = self.begin(signal.SIGTERM, second)
            self.assertEqual(self.proxy.process.wait(5), 0)
            self.assertLess(time.monotonic() - began, 2)
            self.proxy.said("ending at once")

    def test_a_client_that_reads_slowly_gets_all_of_its_answer(self):
        self.serve()
        slow = self.connect("/big")
        time.sleep(0.2)
        reader = threading.Timer(1, lambda: received.append(self.rest(slow)))
        received = []
        reader.start()
        self.begin()
        reader.join()
        slow.close()
        self.assertEqual(len(received[0].split(b"\r\n\r\n", 1)[1]), 1000000)
        self.assertEqual(self.proxy.process.wait(5), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
