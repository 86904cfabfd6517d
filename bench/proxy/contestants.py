# SPDX-License-Identifier: Apache-2.0
"""The proxies that are compared: how each is started on one CPU and stopped, what CPU time and what memory it has used.

Each is started anew for each of its runs, so that none runs while another one is measured: Tailor's kernel events
would be paid for by all.
"""
import functools
import getpass
import http.client
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rounds import RELEASE, SOURCE, TAILOR, family, free_port, say, start_pinned

HERE = Path(__file__).resolve().parent
PYTHON = SOURCE / "build/bench-proxy"
ENVOY = PYTHON / "lib/python{}.{}/site-packages/envoy/_bin/envoy".format(*sys.version_info[:2])
START_S = 15
DIRECT, FLOOR, NGINX, HAPROXY, ENVOY_NAME = "direct", "floor", "nginx", "haproxy", "envoy"
TAILOR_NAME, UNTRACED = "tailor", "tailor-untraced"
ALL = (DIRECT, FLOOR, TAILOR_NAME, UNTRACED, NGINX, HAPROXY, ENVOY_NAME)
TITLES = {FLOOR: "floor (relay)", UNTRACED: "tailor, trace.kernel: off"}


class NotStarted(Exception):
    pass


def prepare_envoy():
    """Installs Envoy from PyPI, once. Without it the benchmark goes on."""
    wanted, stamp = HERE / "requirements.txt", PYTHON / "requirements.txt"
    if stamp.exists() and stamp.read_bytes() == wanted.read_bytes():
        return
    say(f"installing {wanted.relative_to(SOURCE)} into {PYTHON.relative_to(SOURCE)}")
    shutil.rmtree(PYTHON, ignore_errors=True)
    commands = ([sys.executable, "-m", "venv", PYTHON],
                [PYTHON / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1", "--timeout", "15",
                 "-r", wanted])
    if all(subprocess.run(command, stdout=sys.stderr).returncode == 0 for command in commands):
        shutil.copy(wanted, stamp)
    else:
        say("that failed, perhaps for want of a network")


def program(name):
    """Where a peer's program is; None if it is not here. Debian's are in /usr/sbin, which is not in every user's PATH."""
    if name == ENVOY_NAME:
        return ENVOY if ENVOY.exists() else None
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


@functools.lru_cache
def version(name):
    command = {NGINX: ["-v"], HAPROXY: ["-v"], ENVOY_NAME: ["--version"]}[name]
    text = subprocess.run([program(name), *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    found = re.search(r"\d+\.\d+\.\d+[\w.+-]*", text)
    return found[0] if found else text.strip()


def files_max():
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def configuration(directory, template, values, templates=HERE):
    text = (Path(templates) / f"{template}.in").read_text()
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    path = Path(directory) / template
    path.write_text(text)
    return path


def command_of(name, directory, values):
    if name == FLOOR:
        buffers = max(64, 1 << (2 * values["CONNECTIONS"] - 1).bit_length())
        return [RELEASE / "bench/bench_relay", values["SERVER"], values["PORT"], buffers]
    if name in (TAILOR_NAME, UNTRACED):
        trace = "required" if name == TAILOR_NAME else "off"
        return [TAILOR, "proxy", "-c", configuration(directory, "tailor.yaml", {**values, "TRACE": trace})]
    if name == NGINX:
        return [program(name), "-p", directory, "-e", "stderr", "-c", configuration(directory, "nginx.conf", values)]
    if name == HAPROXY:
        return [program(name), "-db", "-f", configuration(directory, "haproxy.cfg", values)]
    return [program(name), "--concurrency", 1, "--disable-hot-restart", "--log-level", "warning", "-c",
            configuration(directory, "envoy.yaml", values)]


def resident_bytes(pid):
    pages = sum(int(Path(f"/proc/{process}/statm").read_text().split()[1]) for process in family(pid))
    return pages * resource.getpagesize()


class Proxy:
    """One contestant at work, as a context. `connections` is what it is configured for."""

    def __init__(self, name, cpu, server_port, backup_port, connections):
        self.name = name
        self.directory = tempfile.TemporaryDirectory(prefix="tailor-bench-")
        self.port = free_port()
        values = {"PORT": self.port, "SERVER": server_port, "BACKUP": backup_port, "CONNECTIONS": connections,
                  "DIRECTORY": self.directory.name, "FILES": files_max(), "USER": getpass.getuser()}
        self.log = open(Path(self.directory.name) / "log", "w+")
        # A session of its own: Ctrl-C is for this program, which then stops them.
        self.process = start_pinned(cpu, command_of(name, self.directory.name, values), stdin=subprocess.DEVNULL,
                                    stdout=self.log, stderr=self.log, start_new_session=True)

    def __enter__(self):
        try:
            self.wait_until_it_serves()
        except BaseException:
            self.__exit__()
            raise
        return self

    def has_started(self):
        """Tailor serves a moment before it has found the servers' processes to trace; then it says so."""
        if self.name not in (TAILOR_NAME, UNTRACED):
            return True
        return "serving" in (Path(self.directory.name) / "log").read_text()

    def wait_until_it_serves(self):
        until = time.monotonic() + START_S
        while True:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
                connection.request("GET", "/")
                if connection.getresponse().status == 200 and self.has_started():
                    connection.close()
                    return
            except (OSError, http.client.HTTPException):
                pass
            if self.process.poll() is not None or time.monotonic() > until:
                self.log.seek(0)
                raise NotStarted(f"{self.name} does not serve: {self.log.read().strip()[-500:] or 'it said nothing'}")
            time.sleep(0.01)

    def __exit__(self, *_):
        pids = family(self.process.pid)[1:]
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        self.log.close()
        self.directory.cleanup()
