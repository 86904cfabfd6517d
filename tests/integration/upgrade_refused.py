# SPDX-License-Identifier: Apache-2.0
"""`tailor proxy --take-over` that comes to nothing: who fails, hangs, says nothing or may not is told of, and the old one goes on."""
import os
import signal
import socket
import subprocess
import sys
import time
import unittest

from upgrade_harness import SEQPACKET, TakeOver


class Refused(TakeOver):
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

    def test_one_of_two_is_told_that_the_other_came_first(self):
        def compete():
            # Its answer may be there before it has asked.
            for _ in range(60):
                second = self.start("--take-over")
                self.assertEqual(second.end(), 1)
                second.said(f"cannot take over from pid {self.old.popen.pid}: it says: another process is taking over already")

        self.speak("offer", compete)
        self.assertIn(b"200 OK", self.get("/ok"))

    def test_one_that_says_nothing_is_in_nobodys_way(self):
        with socket.socket(socket.AF_UNIX, SEQPACKET) as silent:
            silent.connect(str(self.socket))
            time.sleep(0.4)
            old = self.take_over()
            self.assertEqual(old.end(), 0)
        with socket.socket(socket.AF_UNIX, SEQPACKET) as silent:
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
