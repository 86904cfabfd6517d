# SPDX-License-Identifier: Apache-2.0
"""A proxy that is replaced under load, with real JVMs and kernel events: agents and failover go over to the new one."""
import shutil
import time

import harness
from harness import TAILOR, check


class Successor(harness.Proxy):
    """A process that takes over from `old`, with its configuration and files."""

    def __init__(self, scene, name, old, prefix=()):
        self.__dict__.update({key: getattr(old, key) for key in ("directory", "timelines", "admin_socket", "config")})
        harness.Process.__init__(self, name, [*prefix, TAILOR, "proxy", "-c", self.config, "--take-over"], scene.directory, nice=-10)
        self.port = 0


def agents_and_failover_go_over_to_the_new_proxy(scene):
    harness.need_search_server()
    harness.need_root()
    servers = [scene.server(name, jvm=harness.SERIAL, options=harness.COLLECTING, agent_socket=scene.agent_socket, warm=1) for name in "ab"]
    addresses = [(server.name, server.wait_ready().address) for server in servers]
    proxy = scene.proxy("proxy0", addresses, failover=True, more="timeouts: {stop: 5s}\n").wait_serving(agents=2)
    load = scene.start_load("load", proxy.port, rate=200, seconds=9)
    time.sleep(2)
    for turn in (1, 2):
        new = scene.keep(Successor(scene, f"proxy{turn}", proxy))
        new.wait_for(r"^tailor: serving .* taken over from pid", 20)
        began = time.monotonic()
        new.wait_serving(agents=2)
        paired = time.monotonic() - began
        print(f"turn {turn}: both agents were back {paired * 1000:.0f} ms after the new one served", flush=True)
        check(paired < 3, f"agents took {paired:.1f} s")
        check(proxy.wait(10) == 0, f"the replaced proxy failed:\n{proxy.log()}")
        proxy = new
        time.sleep(2.5)
        status = proxy.status()
        check(sum(server["pauses_seen"] for server in status["servers"]) > 0, f"the new proxy saw no collection: {status}")
        check(status["failed_over"] > 0, f"the new proxy moved no request: {status}")
    result = scene.finish_load(load, 40)
    check(result["good"] == result["requests"] and result["failed"] == 0, f"requests were lost: {result}")
    check(proxy.stop() == 0, f"the proxy failed:\n{proxy.log()}")
    timelines = scene.dump(proxy.timelines)
    check(timelines, "three proxies one after the other stored no timeline")
    for timeline in timelines:
        timeline.check_whole()


def one_that_is_refused_the_kernel_leaves_the_old_one_as_it_was(scene):
    harness.need_search_server()
    harness.need_root()
    harness.need(shutil.which("setpriv"), "there is no setpriv")
    server = scene.server("a", jvm=harness.SERIAL, options=harness.COLLECTING, agent_socket=scene.agent_socket, warm=1).wait_ready()
    proxy = scene.proxy("proxy", [("a", server.address)], more="trace: {kernel: required}\n").wait_serving(agents=1)
    refused = scene.keep(Successor(scene, "refused", proxy, ["setpriv", "--bounding-set", "-bpf,-sys_admin,-perfmon"]))
    check(refused.wait(20) == 1, "it started without the kernel's events, which are required")
    check("trace.kernel is `required`" in refused.log(), refused.log())
    proxy.wait_for(rf"pid {refused.pid} has not taken over: trace.kernel is `required`.*going on as before", 5)
    check(proxy.status()["servers"][0]["agent"], "the old proxy lost its agent")
    result = scene.load("load", proxy.port, rate=100, seconds=2)
    check(result["good"] == result["requests"], f"requests were lost: {result}")
    check(proxy.stop() == 0, f"the proxy failed:\n{proxy.log()}")


harness.run(agents_and_failover_go_over_to_the_new_proxy, one_that_is_refused_the_kernel_leaves_the_old_one_as_it_was)
