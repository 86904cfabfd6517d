# SPDX-License-Identifier: Apache-2.0
"""The JDK's HTTP server without nodelay: its bodies wait for the acknowledgement of their heads."""
import http.client

import harness
from harness import check

REQUESTS = 60


def a_response_that_tcp_held_back_is_named(scene):
    harness.need_search_server()
    harness.need_root()
    # Later releases send head and body together.
    java = harness.java_of(17)
    harness.need(java, "there is no JDK 17 in /usr/lib/jvm; later ones do not stall")
    server = scene.server("a", java=java, options=["--http", "jdk"], agent_socket=scene.agent_socket).wait_ready()
    proxy = scene.proxy("proxy", [("a", server.address)]).wait_serving(agents=1)
    # One after the other on one connection, so that the connection to the server is reused, too.
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=10)
    for i in range(REQUESTS):
        connection.request("GET", f"/search?q={harness.WORDS[i % len(harness.WORDS)]}")
        response = connection.getresponse()
        response.read()
        check(response.status == 200, f"status {response.status}")
    connection.close()
    check(proxy.stop() == 0, f"the proxy failed:\n{proxy.log()}")

    timelines = scene.dump(proxy.timelines)
    stalled = [timeline for timeline in timelines if timeline.ms() >= 35]
    # The kernel acknowledges the first segments of a connection at once.
    check(len(stalled) >= REQUESTS // 2, f"only {len(stalled)} of {REQUESTS} requests stalled; is the connection reused?")
    for timeline in timelines:
        timeline.check_whole()
    named = [timeline for timeline in stalled if timeline.dominant == "response-buffered"]
    check(len(named) >= 0.9 * len(stalled), f"{len(named)} of {len(stalled)} stalls are called response-buffered, for example: "
          f"{next((t for t in stalled if t.dominant != 'response-buffered'), None)}")
    # The kernel delays an acknowledgement by 40 ms. It counts from the head; what the machine did between head and
    # body is missing here, and what it did after the 40 ms is added.
    buffered_ms = sorted(timeline.time_of("response-buffered") for timeline in named)
    usual = [ms for ms in buffered_ms if 35 <= ms <= 50]
    check(len(usual) >= 0.7 * len(buffered_ms), f"called buffered, in ms: {buffered_ms}")


harness.run(a_response_that_tcp_held_back_is_named)
