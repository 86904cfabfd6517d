# SPDX-License-Identifier: Apache-2.0
"""Two real JVMs with the agent behind the whole proxy."""
import json
import os
import shutil
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from whole_proxy import Proxy

AGENT = os.environ["TAILOR_AGENT"]
JAVA = Path(os.environ["TAILOR_SOURCE"]) / "tests/integration/java"


class JvmPair(unittest.TestCase):
    """Of a program that prints the port at which it listens."""
    program = None  # the name of its class

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="tailor-pair-")
        subprocess.run(["javac", "-d", cls.directory, JAVA / f"{cls.program}.java"], check=True)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.directory, ignore_errors=True)

    def start_server(self, jvm, arguments, agent=""):
        command = ["java", f"-agentpath:{AGENT}=socket={self.directory}/agent.sock{agent}", *jvm, "-Dsun.net.httpserver.nodelay=true",
                   "-cp", self.directory, self.program, *map(str, arguments)]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end, server)
        return server

    @staticmethod
    def end(server):
        if server.poll() is None:
            server.kill()
        server.wait()
        server.stdout.close()

    def start_proxy(self, servers, more, kernel="off"):
        """In front of these; their agents have connected when it returns."""
        self.servers = servers
        self.ports = [int(server.stdout.readline()) for server in servers]
        self.proxy = Proxy(self.directory, list(zip("ab", self.ports)), f"agent: {{socket: {self.directory}/agent.sock}}\n{more}", kernel=kernel)
        self.addCleanup(self.stop)
        self.until(lambda: all(server["agent"] for server in self.status()["servers"]), "both agents connect")

    def stop(self):
        if self.proxy.process.poll() is None:
            self.proxy.stop()

    def status(self):
        return json.loads(self.proxy.ask("/status"))

    def until(self, condition, what, seconds=15):
        deadline = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.002)
