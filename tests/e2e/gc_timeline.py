# SPDX-License-Identifier: Apache-2.0
"""Requests that a collection held up: the timeline says so, names the collector, and agrees with the JVM's own log."""
import harness
from harness import check

NS_PER_MS = 1_000_000
LONG_MS = 40


def overlap(timeline, pause):
    return max(0, min(timeline.end_ns, pause[1]) - max(timeline.begin_ns, pause[0]))


def is_whole_after(timelines, end_ns):
    """Nothing that ended about then was only counted: with hundreds at once, explaining each would cost too much."""
    return not any(timeline.omitted for timeline in timelines if end_ns <= timeline.end_ns < end_ns + 2000 * NS_PER_MS)


def a_collection_is_named_and_as_long_as_the_jvm_logged_it(scene):
    harness.need_search_server()
    harness.need_root()
    server = scene.server("a", jvm=harness.SERIAL, options=harness.COLLECTING, agent_socket=scene.agent_socket).wait_ready()
    proxy = scene.proxy("proxy", [("a", server.address)]).wait_serving(agents=1)
    result = scene.load("load", proxy.port, rate=200, seconds=15, warm=2)
    check(result["good"] == result["requests"], f"bad responses: {result}")
    check(proxy.stop() == 0, f"the proxy failed:\n{proxy.log()}")

    timelines = scene.dump(proxy.timelines)
    check(timelines, "no request was slow although collections stopped the server")
    for timeline in timelines:
        timeline.check_whole()
    first_ns = min(timeline.begin_ns for timeline in timelines)
    last_ns = max(timeline.end_ns for timeline in timelines)
    pauses = harness.gc_pauses(server.gc_log)
    long = [pause for pause in pauses
            if pause[1] - pause[0] >= LONG_MS * NS_PER_MS and pause[0] >= first_ns and pause[1] <= last_ns]
    check(len(long) >= 5, f"only {len(long)} collections of {LONG_MS} ms during the load; the load was meant to cause more")

    # What a collection explains by more than half is called a collection, but for what of it the whole machine stood still.
    held_up = 0
    misnamed = []
    for timeline in timelines:
        stopped_ns = sum(overlap(timeline, pause) for pause in pauses) - 1e6 * timeline.time_of("machine-stopped")
        if timeline.ms() < LONG_MS or stopped_ns < 0.6 * (timeline.end_ns - timeline.begin_ns):
            continue
        held_up += 1
        if timeline.dominant != "gc":
            misnamed.append(f"the JVM stood still for {stopped_ns / 1e6:.1f} ms of {timeline.ms():.1f} ms, but: {timeline}")
            continue
        details = " ".join(detail for stretch in timeline.stretches("gc") for detail in stretch[2])
        check("Serial" in details, f"no collector is named: {timeline}")
    check(not misnamed, f"{len(misnamed)} of {held_up} held up by a collection name another cause, for example: {misnamed[0] if misnamed else None}")
    check(held_up >= 5, f"only {held_up} of {len(timelines)} timelines were held up by a collection")

    # Nothing is called a collection that the JVM did not log. JVMTI's start and finish enclose what the log times by some
    # microseconds; a VM Thread that loses its CPU just there, or a host that freezes it there, makes that many milliseconds,
    # now and then.
    stretches = [stretch for timeline in timelines for stretch in timeline.stretches("gc")]
    wide = []
    for start_ns, end_ns, _ in stretches:
        near = [pause for pause in pauses if pause[1] > start_ns - NS_PER_MS and pause[0] < end_ns + NS_PER_MS]
        check(near, f"the log has no collection from {start_ns} to {end_ns}")
        if not any(pause[0] - NS_PER_MS <= start_ns and end_ns <= pause[1] + NS_PER_MS for pause in pauses):
            wide.append((start_ns, end_ns))
    check(len(wide) <= 0.1 * len(stretches), f"{len(wide)} of {len(stretches)} collections differ from the log by more than 1 ms: {wide}")

    # The request whose allocation starts a collection is in flight from its begin to its end: one timeline at least
    # holds the whole pause, but for one that differs from the log as above. Where the machine itself stood still, it may not be
    # one of those that could be explained.
    judged = [pause for pause in long if is_whole_after(timelines, pause[1])]
    check(len(judged) >= 5 or not result["schedule_kept"], f"only of {len(judged)} of {len(long)} collections all requests were explained")
    differing = []
    for begin_ns, end_ns, text in judged:
        best = min((abs((stretch[1] - stretch[0]) - (end_ns - begin_ns)) for stretch in stretches
                    if abs(stretch[0] - begin_ns) < NS_PER_MS and abs(stretch[1] - end_ns) < NS_PER_MS), default=None)
        if best is None or best >= NS_PER_MS:
            differing.append(f"\"{text}\" of {(end_ns - begin_ns) / 1e6:.3f} ms at {begin_ns}")
    check(len(differing) <= max(1, 0.1 * len(judged)),
          f"no timeline holds {len(differing)} of {len(judged)} collections to within 1 ms: {differing}")


harness.run(a_collection_is_named_and_as_long_as_the_jvm_logged_it)
