# SPDX-License-Identifier: Apache-2.0
"""Without rights for BPF, without an agent, without a backup: it serves, and says what is missing."""
import os

import harness
from harness import check

NOBODY = 65534


def reachable_by_nobody(path):
    """Whether another user can execute the file: each directory above lets everyone through."""
    path = os.path.realpath(path)
    while path != "/":
        if not os.stat(path).st_mode & 0o001:
            return False
        path = os.path.dirname(path)
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
    server = scene.server("a").wait_ready()
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
    servers = [scene.server(name, agent_socket=scene.agent_socket) for name in "ab"]
    addresses = [(server.name, server.wait_ready().address) for server in servers]
    proxy = scene.proxy("proxy", addresses, failover=True, slow="1us").wait_serving(agents=2)
    harness.need("without kernel events" not in proxy.log(), "this kernel gives no events even to root")
    searches(proxy)
    check(proxy.stop() == 0, f"the proxy failed:\n{proxy.log()}")
    missing = missing_of(scene, proxy, 20)
    for word in ("kernel events", "JVM events", "backup", "process"):
        check(word not in missing, f"{word} is called missing, but is there: {missing}")


def without_an_agent_kernel_events_remain(scene):
    harness.need_search_server()
    harness.need_root()
    servers = [scene.server(name) for name in "ab"]
    addresses = [(server.name, server.wait_ready().address) for server in servers]
    proxy = scene.proxy("proxy", addresses, failover=True, slow="1us").wait_serving()
    harness.need("without kernel events" not in proxy.log(), "this kernel gives no events even to root")
    searches(proxy)
    check(proxy.stop() == 0, f"the proxy failed:\n{proxy.log()}")
    missing = missing_of(scene, proxy, 20)
    check("no agent connected" in missing, f"the timelines do not name the agent as missing: {missing}")
    check("kernel events" not in missing and "backup" not in missing, f"called missing, but there: {missing}")


harness.run(without_rights_agent_and_backup_it_serves_and_says_what_is_missing, with_everything_only_what_is_really_missing_is_named,
            without_an_agent_kernel_events_remain)
