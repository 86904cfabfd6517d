# SPDX-License-Identifier: Apache-2.0
"""A group of three JVMs that collect all the time, of which one is killed: who asked gets one right answer."""
import time

import harness
from harness import check
from reader import Reader, answers_of

SECONDS = 10
RATE = 150


def three_servers_share_the_load_and_stand_in_for_each_other(scene):
    harness.need_search_server()
    servers = [scene.server(name, jvm=harness.SERIAL, options=harness.COLLECTING, agent_socket=scene.agent_socket) for name in "abc"]
    addresses = [(server.name, server.wait_ready().address) for server in servers]
    expected = answers_of(servers)
    proxy = scene.proxy("proxy", addresses, failover=True, more="mode: balanced\n").wait_serving(agents=3)
    reader = Reader(proxy.port, expected)
    reader.start()
    load = scene.start_load("load", proxy.port, rate=RATE, seconds=SECONDS)
    time.sleep(SECONDS * 0.7)
    before = proxy.status()
    reader.ended.set()
    reader.join(15)
    check(reader.count > 100 and not reader.wrong, f"of {reader.count}, wrong: {reader.wrong[:5]}")
    check(reader.servers == {"a", "b", "c"}, f"answers came from {reader.servers} only")
    shares = [server["requests"] for server in before["servers"]]
    check(before["active"] is None and min(shares) > sum(shares) / 6, f"the servers' shares are {shares}")
    check(all(server["pauses"] > 0 for server in before["servers"]), f"a server has not collected: {before['servers']}")
    check(before["failed_over"] > 0, f"no request was moved: {before}")

    servers[0].kill()
    result = scene.finish_load(load, 40)
    after = proxy.status()
    # In flight at the killed one were a few; while the machine stands still, those that become due all are.
    lost = result["requests"] - result["good"]
    stall_ms = result["host_stall"]["longest_ms"] if result["host_stall"] else 0
    check(lost <= 5 + RATE * stall_ms / 1000, f"a killed server cost more than what was in flight: {result}")
    check(after["servers"][0]["in_flight"] == 0 and after["servers"][0]["agent"] is False, f"{after['servers'][0]}")
    # What servers were asked beyond what clients asked was moved or tried again, and counted.
    asked = sum(server["requests"] for server in after["servers"])
    moved = sum(server["moved_here"] for server in after["servers"])
    check(moved == sum(server["moved_away"] for server in after["servers"]), f"moved away and here differ: {after['servers']}")
    check(asked <= after["requests"] + moved + 5, f"the servers were asked {asked} times for {after['requests']} requests, {moved} of them moved")
    print(f"{after['requests']} requests, shares {shares}, {moved} moved, {lost} lost, not moved: {after['not_moved']}", flush=True)
    for _ in range(30):
        status, headers, _ = harness.get(proxy.port, "/search?q=stone")
        check(status == 200 and headers["X-Server"] in "bc", f"{status} from {headers.get('X-Server')}")
    check(proxy.stop() == 0, f"the proxy failed:\n{proxy.log()}")


harness.run(three_servers_share_the_load_and_stand_in_for_each_other)
