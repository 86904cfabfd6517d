# SPDX-License-Identifier: Apache-2.0
"""What `tailor proxy` may still do once it serves, and that it still does its work."""
import glob
import json
import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest.mock import ANY

from load_harness import HERE, TAILOR, load_json
from whole_proxy import Proxy

KEPT = 1 << 19 | 1 << 2  # CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH
NICE = 1 << 23           # CAP_SYS_NICE, where workers take their priority again


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


def sockets(pid):
    """How many sockets of the process listen, or receive datagrams, on the network, and at which addresses."""
    inodes = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(fd))
        if found:
            inodes.add(found[1])
    seen = []
    for kind in ("tcp", "tcp6", "udp", "udp6", "raw", "raw6"):
        for line in Path(f"/proc/{pid}/net/{kind}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[9] in inodes and (fields[3] == "0A" or not kind.startswith("tcp")):
                address = bytes.fromhex(fields[1].split(":")[0])
                seen.append(".".join(str(byte) for byte in reversed(address)) if len(address) == 4 else address.hex())
    return len(seen), set(seen)


class Privileges(unittest.TestCase):
    def serve(self, more, kernel, session=False):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        os.chmod(directory.name, 0o755)
        server, port = backend("nobody")
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        proxy = Proxy(directory.name, [("a", port)], more, kernel=kernel, session=session)
        self.addCleanup(proxy.stop)
        return proxy, server, directory.name

    def judge(self, proxy, uid, kept=KEPT | NICE):
        seen = list(threads(proxy.process.pid))
        self.assertGreaterEqual(len(seen), 4)  # main, worker, observer, admin
        for status in seen:
            self.assertEqual(set(status["Uid"].split()), {str(uid)}, status["Name"])
            for name in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb"):
                self.assertEqual(int(status[name], 16) & ~kept, 0, (status["Name"], name, status[name]))
            self.assertEqual(status["NoNewPrivs"], "1")

    def works(self, proxy, server, directory):
        # They do not overlap: what a loop that serves several at a time waits for is not certain.
        load_json("--rate", "30", "--duration", "2s", "--warm", "0s", proxy.url + "/slow?20")
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
        self.assertEqual(len(log.read_text().splitlines()), 60)
        # Kernel events are there, too: the server's thread is known, and what it waited for.
        if not any("kernel" in text for text in json.loads(proxy.ask("/status"))["missing"]):
            self.assertTrue(any(timeline["join"] == "certain" for timeline in timelines), timelines[0])

    def test_a_jvm_that_comes_later_is_listened_to_without_the_rights_that_were_given_up(self):
        found = sorted(glob.glob("/usr/lib/jvm/*/bin/jwebserver"))  # JDK 18 and later
        if not found:
            self.skipTest("no jwebserver in /usr/lib/jvm/*/bin")
        with tempfile.TemporaryDirectory() as directory, socket.socket() as unused:
            os.chmod(directory, 0o755)
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
            unused.close()
            proxy = Proxy(directory, [("a", port)], "user: daemon\nslow: {threshold: 1us}\n", kernel="auto")
            self.addCleanup(proxy.stop)
            status = json.loads(proxy.ask("/status"))
            if any("kernel" in text for text in status["missing"]):
                self.skipTest("no kernel events here")
            self.judge(proxy, pwd.getpwnam("daemon").pw_uid)
            server = subprocess.Popen([found[-1], "-b", "127.0.0.1", "-p", str(port), "-d", directory], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, preexec_fn=lambda: os.setuid(pwd.getpwnam("nobody").pw_uid))
            self.addCleanup(server.wait)
            self.addCleanup(server.kill)
            until = time.monotonic() + 30
            while json.loads(proxy.ask("/status"))["servers"][0]["pid"] != server.pid:
                self.assertLess(time.monotonic(), until, "the server was not found")
                time.sleep(0.1)
            time.sleep(1)
            load_json("--rate", "50", "--duration", "500ms", "--warm", "0s", proxy.url + "/tailor.yaml")
            time.sleep(0.5)
            dumped = subprocess.run([TAILOR, "dump", directory + "/timelines", "--json"], capture_output=True, text=True)
            timelines = json.loads(dumped.stdout)["timelines"]
            self.assertGreater(len(timelines), 10)
            for timeline in timelines:
                self.assertFalse([text for text in timeline["missing"] if "safepoint" in text], timeline)
            self.judge(proxy, pwd.getpwnam("daemon").pw_uid)

    def test_workers_have_the_priority_that_was_asked_for_and_the_others_none(self):
        for more, wanted in (("", (ANY, "-10")), ("priority: {nice: -3}\n", ("0", "-3")), ("priority: {fifo: 7}\n", ("1", "0"))):
            proxy, _, _ = self.serve(more, "off")
            self.wait_for_priorities(proxy, {"tailor-worker": wanted, "observer": ("0", "10"), "tailor": ("0", "0")})
            self.assertEqual(self.group(proxy.process.pid), self.group(os.getpid()))
            self.judge(proxy, 0, KEPT if more else KEPT | NICE)

    def test_the_session_that_it_leads_has_the_priority_that_was_asked_for_and_other_threads_none_all_the_same(self):
        self.need_groups()
        for more, group, worker, observer, other in (("", "0", (ANY, "-10"), "10", "0"), ("priority: {nice: -10}\n", "-10", ("0", "-10"), "19", "10"),
                                                     ("priority: {nice: -3}\n", "-3", ("0", "-3"), "13", "3"),
                                                     ("priority: {nice: 4}\n", "0", ("0", "4"), "10", "4"),
                                                     ("priority: {fifo: 7}\n", "0", ("1", "0"), "10", "0")):
            proxy, _, _ = self.serve(more, "off", session=True)
            self.wait_for_priorities(proxy, {"tailor-worker": worker, "observer": ("0", observer), "tailor": ("0", other)})
            self.assertEqual(self.group(proxy.process.pid)[1], group)

    def need_groups(self):
        enabled = Path("/proc/sys/kernel/sched_autogroup_enabled")
        if not enabled.exists() or enabled.read_text().strip() != "1":
            self.skipTest("this kernel does not share CPU time out by sessions")
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            above = [Path(f"/sys/fs/cgroup{path}"), *Path(f"/sys/fs/cgroup{path}").parents]
            if ("cpu" in controllers.split(",") and path != "/") or (not controllers and any((group / "cpu.weight").exists() for group in above)):
                self.skipTest("a cgroup's CPU weight decides here")

    def group(self, pid):
        """The session's group of a process, and how nice that is; None where there are none."""
        found = re.fullmatch(r"(/autogroup-\d+) nice (-?\d+)\n", Path(f"/proc/{pid}/autogroup").read_text()) \
            if Path("/proc/self/autogroup").exists() else None
        return found and found.groups()

    def wait_for_priorities(self, proxy, expected):
        # Each thread names itself, and gives way, once it has a CPU.
        until = time.monotonic() + 10
        while (found := self.priorities(proxy)) | expected != found and time.monotonic() < until:
            time.sleep(0.05)
        self.assertEqual(found | expected, found)

    def priorities(self, proxy):
        """{thread's name: (policy, nice)}: fields 41 and 19 of proc_pid_stat(5), after the name."""
        found = {}
        for stat in Path(f"/proc/{proxy.process.pid}/task").glob("*/stat"):
            name, rest = re.fullmatch(r"\d+ \((.*)\) (.*)", stat.read_text().strip()).groups()
            found[name] = (rest.split()[38], rest.split()[16])
        return found

    def test_nobody_listens_beyond_loopback(self):
        for admin in ("", "admin: {listen: '127.0.0.1:0'}\n"):
            directory = tempfile.TemporaryDirectory()
            self.addCleanup(directory.cleanup)
            config = Path(directory.name) / "tailor.yaml"
            config.write_text("listen: 127.0.0.1:0\nworkers: 2\nservers: [{name: a, address: 127.0.0.1:9}]\ntrace: {kernel: off}\n"
                              f"timelines: {{path: {directory.name}/t}}\nagent: {{socket: {directory.name}/agent.sock}}\n{admin}")
            process = subprocess.Popen([TAILOR, "proxy", "-c", config], stderr=subprocess.PIPE, text=True)
            self.addCleanup(process.stderr.close)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            for line in process.stderr:
                if "serving" in line:
                    break
            self.assertEqual(sockets(process.pid), (3 if admin else 2, {"127.0.0.1"}))
            for name in ("agent.sock", "t/take-over.sock"):
                self.assertEqual((Path(directory.name) / name).stat().st_mode & 0o777, 0o600, name)

    def test_admin_is_refused_beyond_loopback(self):
        with tempfile.TemporaryDirectory() as directory:
            config = Path(directory) / "tailor.yaml"
            config.write_text("listen: 127.0.0.1:0\nservers: [{name: a, address: 127.0.0.1:9}]\nadmin: {listen: '0.0.0.0:9000'}\n")
            done = subprocess.run([TAILOR, "proxy", "-c", config], stderr=subprocess.PIPE, text=True, timeout=20)
        self.assertEqual(done.returncode, 2)
        self.assertIn("reachable from outside", done.stderr)

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
