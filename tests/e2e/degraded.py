# SPDX-License-Identifier: Apache-2.0
"""Without rights for BPF, without an agent, without a backup: it serves, and says what is missing."""
import os
import shutil

import harness
from harness import check

NOBODY = 65534


def reachable_by_nobody(path, bits=0o001):
    """Whether another user can execute the file (or what the bits say): each directory above lets everyone through."""
    path = os.path.realpath(path)
    while path != "/":
        if os.stat(path).st_mode & bits != bits:
            return False
        path = os.path.dirname(path)
        bits = 0o001
    return True


def missing_of(scene, proxy, count):
    """The missing phrases of every timeline, checked to be on each of them."""
    timelines = scene.dump(proxy.timelines)
    check(len(timelines) >= count, f"{len(timelines)} timelines for {count} requests, each of which counts as slow")
    for timeline in timelines:
        timeline.check_whole()
    common = set(timelines[0].missing)
    for timeline in timelines:
        check(set(timeline.missing) >= common - {"some events (lost, see below)"}, f"missing differs: {timeline}")
    return " | ".join(sorted(common))


def searches(proxy, count=20):
    for word in harness.WORDS[:count]:
        status, _, body = harness.get(proxy.port, f"/search?q={word}")
        check(status == 200 and b'"hits"' in body, f"{status}: {body[:80]!r}")


def without_rights_agent_and_backup_it_serves_and_says_what_is_missing(scene):
    harness.need_search_server()
    harness.need_root()
    harness.need(reachable_by_nobody(harness.TAILOR), f"the user nobody cannot reach {harness.TAILOR}")
    server = scene.server("a", warm=1).wait_ready()
    proxy = scene.proxy("proxy", [("a", server.address)], agent=False, user=NOBODY, slow="1us").wait_serving()
    check(os.stat(f"/proc/{proxy.pid}").st_uid == NOBODY, "the proxy runs with rights it should not have")
    searches(proxy)
    log = proxy.log()
    check(proxy.stop() == 0, f"the proxy failed:\n{proxy.log()}")
    for word in ("kernel events", "JVM events", "backup"):
        check(word in log, f"the start does not say that it is without {word}:\n{log}")
    missing = missing_of(scene, proxy, 20)
    for word in ("kernel events", "JVM events", "backup"):
        check(word in missing, f"the timelines do not name {word} as missing: {missing}")


def with_everything_only_what_is_really_missing_is_named(scene):
    harness.need_search_server()
    harness.need_root()
    servers = [scene.server(name, agent_socket=scene.agent_socket, warm=1) for name in "ab"]
    addresses = [(server.name, server.wait_ready().address) for server in servers]
    proxy = scene.proxy("proxy", addresses, failover=True, slow="1us").wait_serving(agents=2)
    harness.need("without kernel events" not in proxy.log(), "this kernel gives no events even to root")
    searches(proxy)
    check(proxy.stop() == 0, f"the proxy failed:\n{proxy.log()}")
    missing = missing_of(scene, proxy, 20)
    for word in ("kernel events", "JVM events", "backup", "process", "safepoints", "fault durations"):
        check(word not in missing, f"{word} is called missing, but is there: {missing}")


def without_an_agent_kernel_events_remain(scene):
    harness.need_search_server()
    harness.need_root()
    servers = [scene.server(name, warm=1) for name in "ab"]
    addresses = [(server.name, server.wait_ready().address) for server in servers]
    proxy = scene.proxy("proxy", addresses, failover=True, slow="1us").wait_serving()
    harness.need("without kernel events" not in proxy.log(), "this kernel gives no events even to root")
    searches(proxy)
    check(proxy.stop() == 0, f"the proxy failed:\n{proxy.log()}")
    missing = missing_of(scene, proxy, 20)
    check("no agent connected" in missing, f"the timelines do not name the agent as missing: {missing}")
    check("kernel events" not in missing and "backup" not in missing, f"called missing, but there: {missing}")


def a_jvm_of_another_user_connects_once_its_group_may(scene):
    harness.need_search_server()
    harness.need_root()
    scene.server("index", warm=0).wait_ready().stop()  # makes the index, which nobody may only read
    for path, bits in ((harness.AGENT, 0o4), (harness.JAR, 0o4), (harness.INDEX, 0o5), (shutil.which(harness.any_java()), 0o1)):
        harness.need(reachable_by_nobody(path, bits), f"the user nobody cannot reach {path}")
    server = scene.server("a", agent_socket=scene.agent_socket, warm=1, user=NOBODY).wait_ready()
    check(os.stat(f"/proc/{server.pid}").st_uid == NOBODY, "the server runs as somebody else")
    closed = scene.proxy("closed", [("a", server.address)]).wait_serving()
    server.wait_for(r"^tailor-agent: cannot reach the proxy .*set agent.group", 5)
    check(not closed.status()["servers"][0]["agent"], "the agent connected through a socket that only root may use")
    check(closed.stop() == 0, f"the proxy failed:\n{closed.log()}")
    agent = f"agent: {{socket: {scene.agent_socket}, group: {NOBODY}}}\n"
    opened = scene.proxy("opened", [("a", server.address)], agent=False, more=agent).wait_serving(agents=1)
    searches(opened, 3)
    check(opened.stop() == 0, f"the proxy failed:\n{opened.log()}")


harness.run(a_jvm_of_another_user_connects_once_its_group_may, without_rights_agent_and_backup_it_serves_and_says_what_is_missing, with_everything_only_what_is_really_missing_is_named,
            without_an_agent_kernel_events_remain)
