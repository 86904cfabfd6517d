# SPDX-License-Identifier: Apache-2.0
"""A configuration that changes under a proxy that serves."""
import http.client
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

from load_harness import TAILOR, server
from whole_proxy import Proxy

UNCHANGED = "nothing has changed: the proxy serves by this configuration already\n"


class Reload(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        backend = server()
        self.backend = backend.__enter__()
        self.addCleanup(backend.__exit__, None, None, None)
        self.proxy = Proxy(directory.name, [("a", self.backend.port)], "timeouts: {response: 20s}\nslow: {threshold: 10s, baseline_one_in: 0}\n")
        self.addCleanup(self.proxy.stop)
        self.config = Path(directory.name) / "tailor.yaml"
        self.text = self.config.read_text()

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy.port, timeout=10)
        connection.request("GET", path)
        response = connection.getresponse()
        response.read()
        connection.close()
        return response.status

    def change(self, old, new):
        self.assertIn(old, self.text)
        self.config.write_text(self.text.replace(old, new))

    def test_timeouts_and_the_slow_rule_change_at_once(self):
        self.assertEqual(self.get("/slow?300"), 200)
        time.sleep(0.1)  # the observer looks every 20 ms, and judges by the rule of that moment
        self.change("response: 20s}\nslow: {threshold: 10s", "response: 150ms}\nslow: {threshold: 1ms")
        self.proxy.process.send_signal(signal.SIGHUP)
        self.proxy.said("the configuration has been read again")
        self.assertEqual(self.get("/slow?300"), 504)
        self.assertEqual(self.get("/slow?20"), 200)
        time.sleep(0.3)
        self.assertEqual(json.loads(self.proxy.ask("/status"))["timelines"]["stored"], 2)

    def test_a_request_can_be_given_a_deadline(self):
        self.assertEqual(self.get("/slow?300"), 200)
        self.change("response: 20s", "response: 20s, request: 150ms")
        self.assertEqual(self.proxy.answer("/reload", "POST"), (200, ""))
        self.assertEqual(self.get("/slow?300"), 504)
        deadline = time.monotonic() + 3  # a client may have its answer before the proxy knows it
        while json.loads(self.proxy.ask("/status"))["refused_by"]["deadline"] != 1:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        self.assertIn('tailor_refused_by_total{reason="deadline"} 1\n', self.proxy.ask("/metrics"))

    def test_an_invalid_one_changes_nothing_and_says_why(self):
        self.change("response: 20s", "response: soon")
        status, text = self.proxy.answer("/reload", "POST")
        self.assertEqual(status, 409)
        self.assertRegex(text, r'tailor\.yaml:7: timeouts\.response: "soon" is not a duration')
        self.proxy.process.send_signal(signal.SIGHUP)
        self.assertRegex(self.proxy.said("timeouts"), "soon")
        self.proxy.said("not valid: nothing has changed")
        self.assertEqual(self.get("/slow?300"), 200)
        self.config.unlink()
        status, text = self.proxy.answer("/reload", "POST")
        self.assertEqual((status, "cannot be read" in text), (409, True))
        self.assertEqual(self.get("/ok"), 200)

    def test_a_pipe_in_its_place_stops_nothing(self):
        self.config.unlink()
        os.mkfifo(self.config)
        hangs = threading.Timer(20, self.proxy.process.kill)
        hangs.start()
        self.addCleanup(hangs.cancel)
        self.proxy.process.send_signal(signal.SIGHUP)
        self.assertRegex(self.proxy.said("tailor.yaml"), "pipe")
        self.proxy.said("not valid: nothing has changed")
        self.assertEqual(self.get("/ok"), 200)
        self.assertEqual(self.proxy.answer("/reload", "POST")[0], 409)
        # What is written into one is read, as that of a shell's <( ).
        writer = subprocess.Popen(["sh", "-c", 'sleep 0.3; printf "%s" "$1" > "$0"', self.config, self.text])
        self.assertEqual(self.proxy.answer("/reload", "POST"), (200, UNCHANGED))
        self.assertEqual(writer.wait(5), 0)
        self.proxy.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.proxy.process.wait(5), 0)

    def test_what_needs_a_restart_is_named(self):
        self.change("trace: {kernel: off}", "trace: {kernel: auto}\nlimits: {connections: 77}")
        status, text = self.proxy.answer("/reload", "POST")
        self.assertEqual((status, text), (200, "takes effect once another process has taken over (tailor proxy -c FILE --take-over): limits, trace\n"))
        # The default's nice value, which now is what was asked for.
        self.change("trace: {kernel: off}", "trace: {kernel: off}\npriority: {nice: -10}")
        status, text = self.proxy.answer("/reload", "POST")
        self.assertEqual((status, text), (200, "takes effect once another process has taken over (tailor proxy -c FILE --take-over): priority\n"))
        self.change("listen: 127.0.0.1:0", "workers: 2\nuser: daemon\nlisten: 127.0.0.1:9")
        status, text = self.proxy.answer("/reload", "POST")
        self.assertEqual((status, text), (200, "takes effect once another process has taken over (tailor proxy -c FILE --take-over): workers\n"
                                               "needs a restart to take effect: listen, user\n"))
        self.config.write_text(self.text)
        self.assertEqual(self.proxy.answer("/reload", "POST"), (200, UNCHANGED))

    def test_that_nothing_has_changed_is_said(self):
        self.assertEqual(self.proxy.answer("/reload", "POST"), (200, UNCHANGED))
        self.proxy.process.send_signal(signal.SIGHUP)
        self.proxy.said(UNCHANGED.strip())
        self.config.write_text("# only a remark\n" + self.text)
        self.assertEqual(self.proxy.answer("/reload", "POST"), (200, UNCHANGED))
        for old, new in (("response: 20s", "response: 19s"), ("threshold: 10s", "threshold: 9s"),
                         ("slow: {", "failover: {replay: [GET]}\nslow: {")):
            self.change(old, new)
            self.assertEqual(self.proxy.answer("/reload", "POST"), (200, ""), new)
            self.assertEqual(self.proxy.answer("/reload", "POST"), (200, UNCHANGED), new)

    def test_no_request_notices(self):
        load = subprocess.Popen([TAILOR, "load", "--json", "--allow-late", "--rate", "500", "--duration", "3s", "--warm", "0s",
                                 self.proxy.url + "/ok"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        reloads = 0
        while load.poll() is None:
            self.change("response: 20s", f"response: {10 + reloads % 10}s")
            self.assertEqual(self.proxy.answer("/reload", "POST")[0], 200)
            reloads += 1
        report = json.loads(load.stdout.read())
        load.stdout.close()
        self.assertGreater(reloads, 20)
        self.assertEqual((report["good"], report["failed"]), (1500, 0))


if __name__ == "__main__":
    unittest.main(verbosity=2)
