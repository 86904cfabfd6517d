# SPDX-License-Identifier: Apache-2.0
"""What `tailor proxy` may still do once it serves, and that it still does its work."""
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from load_harness import HERE, TAILOR, load_json
from whole_proxy import Proxy

KEPT = 1 << 19 | 1 << 2  # CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH


def threads(pid):
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        yield dict(re.findall(r"^(\w+):\s*(.*)$", status.read_text(), re.M))


def backend(user):
    """A server that runs as somebody else than the proxy."""
    # That user may not be able to read what this one can: everything is read first.
    code = ("import asyncio, asyncio.selector_events, json, os, sys, time; text = open(sys.argv[1]).read(); os.setuid(int(sys.argv[2])); "
            "sys.argv = ['server', '0']; exec(compile(text, 'load_server.py', 'exec'))")
    process = subprocess.Popen([sys.executable, "-c", code, os.path.join(HERE, "load_server.py"), str(pwd.getpwnam(user).pw_uid)],
                               stdout=subprocess.PIPE, text=True)
    return process, int(process.stdout.readline())


class Privileges(unittest.TestCase):
    def serve(self, more, kernel):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        os.chmod(directory.name, 0o755)
        server, port = backend("nobody")
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        proxy = Proxy(directory.name, [("a", port)], more, kernel=kernel)
        self.addCleanup(proxy.stop)
        return proxy, server, directory.name

    def judge(self, proxy, uid):
        seen = list(threads(proxy.process.pid))
        self.assertGreaterEqual(len(seen), 4)  # main, worker, observer, admin
        for status in seen:
            self.assertEqual(set(status["Uid"].split()), {str(uid)}, status["Name"])
            for name in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb"):
                self.assertEqual(int(status[name], 16) & ~KEPT, 0, (status["Name"], name, status[name]))
            self.assertEqual(status["NoNewPrivs"], "1")

    def works(self, proxy, server, directory):
        load_json("--rate", "50", "--duration", "1s", "--warm", "0s", proxy.url + "/slow?20")
        time.sleep(0.5)
        status = json.loads(proxy.ask("/status"))
        self.assertEqual(status["servers"][0]["pid"], server.pid)
        self.assertEqual(status["timelines"]["not_stored"], 0)
        dumped = subprocess.run([TAILOR, "dump", directory + "/timelines", "--json"], capture_output=True, text=True)
        timelines = json.loads(dumped.stdout)["timelines"]
        self.assertGreater(len(timelines), 40)
        return timelines

    def test_as_root_it_keeps_what_finding_servers_needs_and_nothing_else(self):
        proxy, server, directory = self.serve("", "auto")
        self.judge(proxy, 0)
        self.works(proxy, server, directory)

    def test_it_becomes_another_user_and_goes_on_tracing_and_writing(self):
        proxy, server, directory = self.serve(f"user: daemon\naccess_log: {{path: /tmp/tailor-privileges-{os.getpid()}.log}}\n", "auto")
        log = Path(f"/tmp/tailor-privileges-{os.getpid()}.log")
        self.addCleanup(log.unlink)
        self.judge(proxy, pwd.getpwnam("daemon").pw_uid)
        timelines = self.works(proxy, server, directory)
        self.assertEqual(len(log.read_text().splitlines()), 50)
        # Kernel events are there, too: the server's thread is known, and what it waited for.
        if not any("kernel" in text for text in json.loads(proxy.ask("/status"))["missing"]):
            self.assertTrue(any(timeline["join"] == "certain" for timeline in timelines), timelines[0])

    def test_workers_have_the_priority_that_was_asked_for_and_the_others_none(self):
        for more, wanted in (("", ("0", "-10")), ("priority: {nice: -3}\n", ("0", "-3")), ("priority: {fifo: 7}\n", ("1", "0"))):
            proxy, _, _ = self.serve(more, "off")
            # Fields 19 and 41 of proc_pid_stat(5), after the name: nice and policy.
            found = {}
            for stat in Path(f"/proc/{proxy.process.pid}/task").glob("*/stat"):
                name, rest = re.fullmatch(r"\d+ \((.*)\) (.*)", stat.read_text().strip()).groups()
                found[name] = (rest.split()[38], rest.split()[16])
            self.assertEqual(found["tailor-worker"], wanted)
            self.assertEqual(found["observer"], ("0", "10"))
            self.assertEqual(found["tailor"], ("0", "0"))

    def test_only_root_can_become_another_user(self):
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o777)
            config = Path(directory) / "tailor.yaml"
            config.write_text("listen: 127.0.0.1:0\nservers: [{name: a, address: 127.0.0.1:9}]\ntrace: {kernel: off}\nuser: daemon\n"
                              f"timelines: {{path: {directory}/timelines}}\n")
            binary = shutil.copy(TAILOR, directory)
            done = subprocess.run([binary, "proxy", "-c", config], stderr=subprocess.PIPE, text=True, timeout=20,
                                  preexec_fn=lambda: os.setuid(pwd.getpwnam("nobody").pw_uid))
        self.assertEqual(done.returncode, 1)
        self.assertIn("only root can become another user", done.stderr)


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("needs root: only root has rights to give up")
        sys.exit(77)
    unittest.main(verbosity=2)
