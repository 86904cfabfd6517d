# SPDX-License-Identifier: Apache-2.0
"""The same load with failover off and on: the longest wait shrinks, and every client gets one right answer."""
import harness
from harness import check
from reader import Reader, answers_of

SECONDS = 8
RATE = 200


def measure(scene, addresses, expected, attempt):
    """Both phases; everything but the waits is judged here. Returns both loads' results and the slowest timelines."""
    off = scene.proxy(f"off{attempt}", addresses, failover=False).wait_serving(agents=2)
    before = scene.load(f"load-off{attempt}", off.port, rate=RATE, seconds=SECONDS, warm=2)
    check(off.status()["failed_over"] == 0, "requests were moved although failover is off")
    check(off.stop() == 0, f"the proxy failed:\n{off.log()}")

    on = scene.proxy(f"on{attempt}", addresses, failover=True).wait_serving(agents=2)
    reader = Reader(on.port, expected)
    reader.start()
    after = scene.load(f"load-on{attempt}", on.port, rate=RATE, seconds=SECONDS, warm=2)
    reader.ended.set()
    reader.join(15)
    status = on.status()
    check(on.stop() == 0, f"the proxy failed:\n{on.log()}")

    for name, result in (("off", before), ("on", after)):
        check(result["requests"] == RATE * SECONDS, f"failover {name}: {result['requests']} requests instead of {RATE * SECONDS}")
        check(result["good"] == result["requests"], f"failover {name}: {result}")
    check(reader.count > 100 and not reader.wrong, f"of {reader.count}, wrong: {reader.wrong[:5]}")
    check(reader.servers == {"a", "b"}, f"answers came from {reader.servers} only")
    check(status["failed_over"] > 0, f"no request was moved: {status}")
    check(before["response"]["max_ms"] >= 40, f"no collection was met with failover off: {before['response']}")
    print(f"{status['failed_over']} moved, not moved: {status['not_moved']}", flush=True)
    return before, after, scene.dump(on.timelines, "--slowest", "3")


def failover_shortens_the_longest_wait_and_answers_each_request_once(scene):
    harness.need_search_server()
    servers = [scene.server(name, jvm=harness.SERIAL, options=harness.COLLECTING, agent_socket=scene.agent_socket) for name in "ab"]
    addresses = [(server.name, server.wait_ready().address) for server in servers]
    expected = answers_of(servers)

    waits = harness.Waits()
    done = False
    while not done:
        before, after, slowest = measure(scene, addresses, expected, waits.left)
        for timeline in slowest:
            print(f"  slow with failover on: {timeline.ms():.1f} ms, {timeline.dominant}", flush=True)
        done = waits.judge(before, after)


harness.run(failover_shortens_the_longest_wait_and_answers_each_request_once)
