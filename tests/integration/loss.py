#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Channels that are made to overflow: the timeline says where and how much, and so do status, metrics and doctor."""
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import load_harness
from busy_proxy import SLOTS, busy_proxy, get, timeline_of
from whole_proxy import Proxy

# What a slow request's rings hold is copied when it is 100 ms old, and on a busy machine the observer comes late to it.
COPIED_NS = 400e6
JAVA = """
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;

class Burst {
	public static void main(String[] arguments) throws Exception {
		HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
		server.createContext("/", exchange -> {
			int threads = Integer.parseInt(exchange.getRequestURI().getPath().substring(1));
			try {
				Thread.sleep(threads > 0 ? 300 : 0);
			} catch (InterruptedException end) {
				return;
			}
			for (int i = 0; i < threads; i++)
				new Thread(() -> {}, "a thread with a name of some length " + i).start();
			exchange.sendResponseHeaders(204, -1);
			exchange.close();
		});
		server.start();
		System.out.println(server.getAddress().getPort());
	}
}
"""


def said(timeline):
    return {key: timeline[key] for key in ("causes", "join", "losses", "missing", "complete")}


def metric(proxy, channel, reason):
    found = re.search(rf'^tailor_events_lost_total{{channel="{channel}",kind="[a-z]+",reason="{reason}"}} (\d+)$',
                      proxy.ask("/metrics"), re.M)
    assert found, f"no metric of {channel}, {reason}"
    return int(found[1])


def doctor(proxy):
    """What doctor finds, by what it is about."""
    done = subprocess.run([load_harness.TAILOR, "doctor", "--json", "-c", proxy.directory / "tailor.yaml"], capture_output=True, text=True,
                          timeout=60)
    return {finding["what"]: finding for finding in json.loads(done.stdout)["findings"]}


def check_counted(proxy, channel, events):
    """Status, metrics and doctor all tell of it."""
    assert metric(proxy, channel, "overwritten") >= events, proxy.ask("/metrics")
    losses = {loss["channel"]: loss for loss in json.loads(proxy.ask("/status"))["losses"]}
    assert losses[channel]["overwritten"] >= events, losses
    found = doctor(proxy)[f"events of {channel}"]
    assert found["standing"] == "limited" and "overwritten" in found["text"], found


def what_the_kernel_wrote_while_nobody_could_read_is_a_gap_at_its_place(directory):
    with busy_proxy(directory) as (proxy, noisy):
        assert "events" in doctor(proxy), "doctor does not say that nothing was lost"
        request = threading.Thread(target=get, args=(proxy.port, "/work?ms=5&sleep=1.6"))
        request.start()
        time.sleep(0.6)
        proxy.process.send_signal(signal.SIGSTOP)  # its observer cannot read now; the kernel goes on writing
        stopped_ns = time.monotonic_ns()
        get(noisy.port, "/noise?rounds=0")
        time.sleep(0.5)
        get(noisy.port, "/noise?rounds=-1")
        going_on_ns = time.monotonic_ns()
        proxy.process.send_signal(signal.SIGCONT)
        request.join()
        timeline = timeline_of(proxy, "sleep=1.6")
        print(said(timeline))
        losses = [loss for loss in timeline["losses"] if loss["channel"].startswith("cpu")]
        assert losses and any("lost" in text for text in timeline["missing"]), said(timeline)
        for loss in losses:
            # What was there at the last look before is held, but for what had just been written.
            assert stopped_ns - COPIED_NS < loss["from_ns"] < going_on_ns, (stopped_ns, going_on_ns, loss)
            assert stopped_ns < loss["to_ns"] < going_on_ns + 50e6, (stopped_ns, going_on_ns, loss)
        most = max(losses, key=lambda loss: loss["events"])
        assert most["events"] > 2 * SLOTS, losses
        assert timeline["complete"] < 1000, said(timeline)
        # Nobody saw the server's thread on a CPU then.
        for span in timeline["spans"]:
            begin = timeline["begin_ns"] + span["offset_ns"]
            inside = min(begin + span["duration_ns"], most["to_ns"]) - max(begin, most["from_ns"])
            assert inside < 100e6 or span["cause"] != "on-cpu", span
        check_counted(proxy, most["channel"], most["events"])
        get(proxy.port, "/work?ms=1&sleep=0.05")
        after = timeline_of(proxy, "sleep=0.05")
        assert not after["losses"], said(after)


def more_than_an_agents_channel_holds_is_a_gap_of_that_jvm(directory):
    agent, source = os.environ.get("TAILOR_AGENT"), Path(directory, "Burst.java")
    if not agent:
        print("the agent is not built; skipping the JVM's channel")
        return
    source.write_text(JAVA)
    java = Path(os.environ["JAVA_HOME"], "bin/java") if os.environ.get("JAVA_HOME") else "java"
    server = subprocess.Popen([java, "-Xmx64m", "-XX:+UseSerialGC", f"-agentpath:{agent}=socket={directory}/agent.sock,slots=64", source],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    proxy = None
    try:
        port = int(server.stdout.readline())
        proxy = Proxy(directory, [("a", port)], "slow: {threshold: 1us, baseline_one_in: 0}\n"
                      f"agent: {{socket: {directory}/agent.sock}}\n")
        for _ in range(100):
            if json.loads(proxy.ask("/status"))["servers"][0]["agent"]:
                break
            time.sleep(0.1)
        get(proxy.port, "/0")
        get(proxy.port, "/0")
        request = threading.Thread(target=get, args=(proxy.port, "/300"))
        request.start()
        time.sleep(0.15)
        proxy.process.send_signal(signal.SIGSTOP)
        begin_ns = time.monotonic_ns()
        time.sleep(0.6)
        end_ns = time.monotonic_ns()
        proxy.process.send_signal(signal.SIGCONT)
        request.join()
        timeline = timeline_of(proxy, "/300")
        print(said(timeline))
        losses = [loss for loss in timeline["losses"] if loss["channel"] == "jvm:a"]
        assert losses and timeline["complete"] < 1000, said(timeline)
        for loss in losses:
            assert (loss["from_ns"] or 0) < end_ns and begin_ns < loss["to_ns"] < end_ns, (begin_ns, end_ns, loss)
        # 300 threads: at least two slots each when they begin and one when they end.
        assert sum(loss["events"] for loss in losses) > 300, losses
        assert "gc" not in timeline["causes"], said(timeline)
        check_counted(proxy, "jvm:a", 300)
    finally:
        if proxy:
            proxy.process.send_signal(signal.SIGCONT)
            proxy.stop()
        server.kill()
        server.wait()
        server.stdout.close()


for test in (more_than_an_agents_channel_holds_is_a_gap_of_that_jvm, what_the_kernel_wrote_while_nobody_could_read_is_a_gap_at_its_place):
    with tempfile.TemporaryDirectory() as place:
        print(test.__name__)
        test(place)
