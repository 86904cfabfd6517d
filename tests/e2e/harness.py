# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share: servers, proxies and loads as processes, and what their files say.

A test is a function that takes a Scene; run() gives it one, and whatever happens stops what the scene started, by pid.
"""
import ctypes
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

TAILOR = os.environ["TAILOR"]
AGENT = os.environ["TAILOR_AGENT"]
SOURCE = Path(os.environ["TAILOR_SOURCE"])
JAR = SOURCE / "examples/search-server/target/search-server.jar"
INDEX = SOURCE / "var/index"
LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1

# Collections of 50-70 ms and 100-120 ms by turns, one a second at 200 searches a second: examples/search-server/README.md.
SERIAL = ["-XX:+UseSerialGC", "-Xms192m", "-Xmx192m", "-Xmn96m", "-XX:+AlwaysPreTouch"]
COLLECTING = ["--live-set", "48MiB", "--tenure", "160KiB", "--garbage", "128KiB"]
# A heap in which nothing happens for the length of a test.
QUIET = ["-XX:+UseSerialGC", "-Xms384m", "-Xmx384m", "-Xmn256m", "-XX:+AlwaysPreTouch"]

WORDS = """amber anchor arrow autumn barrel beacon blade bronze candle canvas castle chalk chimney copper coral cotton crystal dagger
desert diamond dragon eagle engine feather flame flint forest fossil garden glacier granite hammer harbor honey horizon ivory jewel
kettle kingdom ladder lantern leather lemon lever linen lizard magnet maple marble meadow mercury meteor mirror mosaic needle oasis
ocean olive orbit oxygen oyster pearl pebble pepper pillar planet pollen quartz rabbit raven ribbon river rocket saddle salmon shadow
shield silver spider spiral stone sulphur summer temple thread thunder timber tower tunnel valley velvet vessel violin volcano walnut
whistle willow window winter""".split()


class Skip(Exception):
    """The test cannot run here; the text says why."""


class Failure(Exception):
    """What was expected and what came instead."""


def check(condition, text):
    if not condition:
        raise Failure(text)


def need(condition, reason):
    if not condition:
        raise Skip(reason)


def need_search_server():
    need(JAR.is_file(), f"{JAR} is not built: mvn -q -DskipTests package in examples/search-server")
    need(shutil.which("java") or os.environ.get("JAVA_HOME"), "there is no java in PATH and no JAVA_HOME")
    need(INDEX.is_dir() or Path("/usr/share/dictd/gcide.index").exists(), "the packages dict-gcide and dict-wn are not installed")


def need_root():
    need(os.geteuid() == 0, "kernel events and changing the user need root")


def java_of(version):
    """The java of one feature release among those installed, or None."""
    candidates = [os.environ.get("JAVA_HOME", "")] + sorted(str(path) for path in Path("/usr/lib/jvm").glob("*"))
    for home in candidates:
        try:
            release = Path(home, "release").read_text()
        except OSError:
            continue
        if re.search(rf'^JAVA_VERSION="{version}[."]', release, re.M) and Path(home, "bin/java").exists():
            return str(Path(home, "bin/java"))
    return None


def any_java():
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin/java")) if home else "java"


class Process:
    """A child in a process group of its own, with stdout and stderr in files."""

    def __init__(self, name, arguments, directory, preexec=None, nice=-5):
        def prepare():
            # Before what else runs on the machine, as in tailor demo: a test measures what it started.
            try:
                os.setpriority(os.PRIO_PROCESS, 0, nice)
            except PermissionError:
                pass
            if preexec:
                preexec()
            # A test that is killed takes its processes along. To the kernel the parent is a thread: start them from one that stays.
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

        self.name = name
        self.out_path = directory / f"{name}.out"
        self.log_path = directory / f"{name}.log"
        with open(self.out_path, "wb") as out, open(self.log_path, "wb") as log:
            self.popen = subprocess.Popen(
                [str(argument) for argument in arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=log,
                start_new_session=True, preexec_fn=prepare)
        self.pid = self.popen.pid

    def out(self):
        return self.out_path.read_text(errors="replace")

    def log(self):
        return self.log_path.read_text(errors="replace")

    def running(self):
        return self.popen.poll() is None

    def wait_for(self, pattern, seconds, read=None):
        """Waits until what `read` returns (the log) matches and returns the match; fails if the process ends first."""
        read = read or self.log
        deadline = time.monotonic() + seconds
        while True:
            running = self.running()
            match = re.search(pattern, read(), re.M)
            if match:
                return match
            check(running, f"{self.name} ended with {self.popen.returncode} before it said {pattern!r}:\n{self.log()}")
            check(time.monotonic() < deadline, f"{self.name} did not say {pattern!r} in {seconds} s:\n{self.log()}")
            time.sleep(0.05)

    def wait(self, seconds):
        """Waits for its end and returns the exit code."""
        try:
            return self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name} (pid {self.pid}) still runs after {seconds} s:\n{self.log()}") from None

    def stop(self, seconds=10):
        """SIGTERM; returns the exit code."""
        if self.running():
            self.popen.send_signal(signal.SIGTERM)
        return self.wait(seconds)

    def kill(self):
        """SIGKILL to the whole group; returns when it is gone."""
        if self.running():
            os.killpg(self.pid, signal.SIGKILL)
        self.popen.wait()


class Server(Process):
    """examples/search-server. wait_ready() first; then .port and .address are known."""

    def __init__(self, scene, name, options=(), jvm=QUIET, agent_socket=None, agent_options="", java=None, port=0, warm=3, user=None):
        self.gc_log = scene.directory / f"gc-{name}.log"
        preexec = None
        if user is not None:
            self.gc_log.touch()
            os.chown(self.gc_log, user, user)

            def preexec():
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)

        arguments = [java or any_java(), *jvm, f"-Xlog:gc*,safepoint:file={self.gc_log}:time,uptime,tn:filecount=0"]
        if agent_socket:
            arguments.append(f"-agentpath:{AGENT}=socket={agent_socket}{agent_options}")
        arguments += ["-jar", JAR, "--name", name, "--index", INDEX, "--port", port, "--warm", warm, *options]
        super().__init__(name, arguments, scene.directory, preexec)
        self.port = 0

    def wait_ready(self):
        # The first start builds the index.
        match = self.wait_for(r"^listening (127\.0\.0\.1:(\d+))$", 120, self.out)
        self.address = match[1]
        self.port = int(match[2])
        return self


class Proxy(Process):
    """`tailor proxy`. Its files are in the scene's directory, under its name. `failover`: whether on collections, or on what;
    `predict`: more keys of that section."""

    def __init__(self, scene, name, servers, failover=False, more="", agent=True, user=None, slow="5ms", baseline=0, replay="GET, HEAD",
                 predict=""):
        self.directory = scene.directory / f"{name}.d"
        self.directory.mkdir(exist_ok=True)
        self.timelines = self.directory / "timelines"
        self.admin_socket = self.directory / "admin.sock"
        self.config = self.directory / "tailor.yaml"
        text = "listen: 127.0.0.1:0\nservers:\n"
        for server, address in servers:
            text += f"  - {{name: {server}, address: {address}}}\n"
        text += f"slow: {{threshold: {slow}, baseline_one_in: {baseline}}}\n"
        on = failover if isinstance(failover, str) else "gc" if failover else ""
        text += f"failover: {{on: [{on}], replay: [{replay}]{predict and ', ' + predict}}}\n"
        text += f"timelines: {{path: {self.timelines}, max_size: 64MiB}}\n"
        text += f'admin: {{listen: "unix:{self.admin_socket}"}}\n'
        if agent:
            text += f"agent: {{socket: {scene.agent_socket}}}\n"
        self.config.write_text(text + more)
        preexec = None
        if user is not None:
            os.chown(self.directory, user, user)

            def preexec():
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)

        super().__init__(name, [TAILOR, "proxy", "-c", self.config], scene.directory, preexec, nice=-10)
        self.port = 0

    def wait_serving(self, agents=0):
        """Waits until it serves and as many agents are connected."""
        self.port = int(self.wait_for(r"^tailor: serving 127\.0\.0\.1:(\d+)", 20)[1])
        deadline = time.monotonic() + 15
        while sum(server["agent"] for server in self.status()["servers"]) < agents:
            check(time.monotonic() < deadline, f"{agents} agents have not connected to {self.name}:\n{self.log()}")
            time.sleep(0.05)
        return self

    def status(self):
        """GET /status of the admin socket."""
        deadline = time.monotonic() + 10
        while True:
            try:
                connection = UnixConnection(str(self.admin_socket))
                connection.request("GET", "/status")
                response = connection.getresponse()
                body = response.read()
                connection.close()
                check(response.status == 200, f"/status answers {response.status}: {body!r}")
                return json.loads(body)
            except OSError as error:
                check(self.running() and time.monotonic() < deadline, f"/status of {self.name}: {error}\n{self.log()}")
                time.sleep(0.05)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=5)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Scene:
    """A directory (short enough for socket paths) and the processes of one test."""

    def __init__(self):
        self.directory = Path(tempfile.mkdtemp(prefix="tailor-e2e-", dir="/tmp"))
        self.directory.chmod(0o755)
        self.agent_socket = self.directory / "agent.sock"
        self.processes = []

    def keep(self, process):
        self.processes.append(process)
        return process

    def server(self, name, **options):
        return self.keep(Server(self, name, **options))

    def proxy(self, name, servers, **options):
        return self.keep(Proxy(self, name, servers, **options))

    def run(self, name, *arguments, seconds=60):
        """Runs a command to its end and returns the process; its exit code is in .popen.returncode."""
        process = self.keep(Process(name, arguments, self.directory))
        process.wait(seconds)
        return process

    def start_load(self, name, port, rate, seconds, warm=0, more=()):
        paths = self.directory / "paths.txt"
        paths.write_text("".join(f"/search?q={word}&n=10\n" for word in WORDS))
        arguments = [TAILOR, "load", "--rate", rate, "--duration", f"{seconds}s", "--paths", paths, "--json"]
        if warm:
            arguments += ["--warm", f"{warm}s"]
        return self.keep(Process(name, [*arguments, *more, f"http://127.0.0.1:{port}/"], self.directory, nice=-15))

    def finish_load(self, load, seconds):
        """The load's JSON object. It may end with 1 when responses were bad; the caller judges the counts."""
        code = load.wait(seconds)
        check(code in (0, 1), f"{load.name} ended with {code}:\n{load.log()}")
        try:
            return json.loads(load.out())
        except ValueError as error:
            raise Failure(f"{load.name} printed no JSON object ({error}):\n{load.out()[:500]}\n{load.log()}") from None

    def load(self, name, port, rate, seconds, warm=0):
        return self.finish_load(self.start_load(name, port, rate, seconds, warm), seconds + warm + 30)

    def dump(self, store, *options):
        """Timelines as `tailor dump --format json` gives them."""
        process = self.run("dump", TAILOR, "dump", store, "--format", "json", *options)
        if "no slow request has been recorded yet" in process.log():
            return []
        check(process.popen.returncode == 0, f"tailor dump ended with {process.popen.returncode}:\n{process.log()}")
        return [Timeline(timeline) for timeline in json.loads(process.out())["timelines"]]

    def close(self, failed):
        for process in reversed(self.processes):
            process.kill()
        tails = {process.log_path.name: process.log().splitlines()[-15:] for process in self.processes} if failed else {}
        shutil.rmtree(self.directory, ignore_errors=True)
        for name, tail in tails.items():
            if tail:
                print(f"--- end of {name}", *tail, sep="\n", file=sys.stderr)


class Timeline:
    """One timeline of `tailor dump --format json`; the only place of the tests that knows its keys."""

    def __init__(self, data):
        self.data = data
        self.dominant = data["dominant"]
        self.missing = data["missing"]  # phrases of tailor_missing_name()
        self.omitted = data["omitted"]  # slow requests before it that were only counted
        self.begin_ns = data["begin_ns"]
        self.end_ns = data["begin_ns"] + data["client_ns"]
        self.status = data["status"]
        self.spans = [{"cause": span["cause"], "detail": span["detail"], "start_ns": self.begin_ns + span["offset_ns"],
                       "end_ns": self.begin_ns + span["offset_ns"] + span["duration_ns"]} for span in data["spans"]]

    def ms(self):
        return (self.end_ns - self.begin_ns) / 1e6

    def time_of(self, cause):
        """ms that the spans of one cause take together."""
        return sum(span["end_ns"] - span["start_ns"] for span in self.spans if span["cause"] == cause) / 1e6

    def stretches(self, cause, gap_ns=1_000_000):
        """(start_ns, end_ns, [details]) of a cause, neighbours less than gap_ns apart taken together."""
        found = []
        for span in self.spans:
            if span["cause"] != cause:
                continue
            if found and span["start_ns"] - found[-1][1] < gap_ns:
                found[-1] = (found[-1][0], span["end_ns"], found[-1][2] + [span["detail"]])
            else:
                found.append((span["start_ns"], span["end_ns"], [span["detail"]]))
        return found

    def check_whole(self):
        """Spans follow each other without a gap or an overlap and fill the request."""
        at = self.begin_ns
        for span in self.spans:
            # Of thousands, each with all that there is to say, the saying alone would take minutes.
            if span["start_ns"] != at:
                raise Failure(f"a span starts at {span['start_ns']}, the one before ended at {at}: {self.data}")
            at = span["end_ns"]
        check(at == self.end_ns, f"the spans end at {at}, the request at {self.end_ns}: {self.data}")

    def __str__(self):
        return json.dumps(self.data, indent=1)


def gc_pauses(path):
    """(begin_ns, end_ns, text) of the stops in a GC log; pauses that follow each other at once share a safepoint and are one."""
    stops = []
    line = re.compile(r"^\[[^]]*\]\[[^]]*\]\[(\d+)ns\] GC\(\d+\) (Pause .*) (\d+\.\d+)ms$", re.M)
    for match in line.finditer(Path(path).read_text(errors="replace")):
        end_ns = int(match[1])
        begin_ns = end_ns - round(float(match[3]) * 1e6)
        if stops and begin_ns - stops[-1][1] < 1_000_000:
            stops[-1] = (stops[-1][0], end_ns, stops[-1][2] + " + " + match[2])
        else:
            stops.append((begin_ns, end_ns, match[2]))
    return stops


def get(port, path, method="GET", body=None, timeout=10):
    """One request on a connection of its own: (status, headers, body); headers are looked up in any case."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


class Waits:
    """Judges what failover promises, waits RATIO times shorter, one attempt at a time, beside what the machine did meanwhile.

    A host that freezes this machine is in everybody's waits, and is the only reason for another attempt: seen by the load's
    watch, or because the load itself came to send a request later than the waits may be. 99th percentile
    and longest wait must hold strictly in the first attempt whose second run the host left alone. When it left none alone,
    they are not judged, since the load counts only what is surely the host's, and said so; then the 95th percentile must
    have got RATIO times shorter in one attempt. Freezes don't last for a twentieth of a run; without failover, collections
    do: the 95th percentile tells a broken one in an attempt that nothing disturbed, and in the last one.
    """
    RATIO = 5
    ATTEMPTS = 3

    def __init__(self):
        self.left = self.ATTEMPTS
        self.mostly = False

    def judge(self, off, on):
        """The results of the two loads. True when that was the last attempt."""
        stall = on["host_stall"] or {"longest_ms": 0, "total_ms": 0, "episodes": 0}
        late_ms = on["late"]["max_ms"] or 0
        off, on = off["response"], on["response"]
        self.left -= 1
        text = (f"ms without and with failover: p95 {off['p95_ms']:.1f}, {on['p95_ms']:.1f}, p99 {off['p99_ms']:.1f}, "
                f"{on['p99_ms']:.1f}, longest {off['max_ms']:.1f}, {on['max_ms']:.1f}; in the second run the machine stood still "
                f"{stall['episodes']} times, longest {stall['longest_ms']:.1f} ms, together {stall['total_ms']:.1f} ms; "
                f"the load was late by {late_ms:.1f} ms at most")
        print(text, flush=True)
        held = on["p99_ms"] <= off["p99_ms"] / self.RATIO and on["max_ms"] <= off["max_ms"] / self.RATIO
        frozen = stall["episodes"] > 0 or late_ms > off["max_ms"] / self.RATIO
        # Who shares the CPUs can keep everybody from them for longer than any host does: once more, then.
        check(on["p95_ms"] <= off["p95_ms"] / 2 or (frozen and self.left > 0), f"the 95th percentile did not get shorter by half: {text}")
        check(held or frozen, f"the waits did not get {self.RATIO} times shorter: {text}")
        self.mostly = self.mostly or on["p95_ms"] <= off["p95_ms"] / self.RATIO
        if not held and self.left > 0:
            return False
        check(held or self.mostly, f"the waits did not get {self.RATIO} times shorter in any attempt, not even the 95th percentile: {text}")
        if not held:
            print("the machine's host froze it in every attempt: 99th percentile and longest wait are not judged", flush=True)
        return True


def free_port():
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run(*tests):
    """Runs each test with a scene of its own and exits: 0, 1, or 77 if one could not run and none failed."""
    results = []
    # Whoever stops the test run must not leave its servers behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for test in tests:
        name = test.__name__.replace("_", " ")
        scene = Scene()
        failed = True
        try:
            test(scene)
            failed = False
            results.append(0)
            print(f"ok: {name}", flush=True)
        except Skip as reason:
            failed = False
            results.append(77)
            print(f"skipped: {name}: {reason}", flush=True)
        except Failure as failure:
            results.append(1)
            print(f"FAILED: {name}: {failure}", file=sys.stderr, flush=True)
        except Exception:
            results.append(1)
            print(f"FAILED: {name}", file=sys.stderr, flush=True)
            traceback.print_exc()
        finally:
            scene.close(failed)
    sys.exit(1 if 1 in results else 77 if 77 in results else 0)
