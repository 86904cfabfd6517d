# SPDX-License-Identifier: Apache-2.0
"""What a plant is."""
from .traffic import now_ns


class Plant:
    """
    One known cause. `accepted`: the names that are right for it, fixed beforehand by `why`; more than one only where they
    say the same. plant() causes it once and returns a Planting.
    """
    name = ""
    accepted = ()
    why = ""
    session = "serial"
    # What timelines say is missing where they cannot know this cause: it is then planted, but not judged.
    needs = ()
    # Whether the timeline must cover what the client saw. It ends when the client's socket has taken the last byte, which a slow client
    # has not read by then.
    covered = True
    # Threads of server or proxy wait for a CPU because of it; with other plants that is something else that runs on this machine.
    takes_cpu = False
    # Once without being judged, so that the JVM has loaded what it takes.
    rehearsed = False
    # Whether a planting that hit only some of those that it was aimed at has missed.
    all_hit = True
    # A request that it hit took at least this, as the client saw it; one that took less was not hit.
    least_ms = 12
    # One that took so many times as long as the shortest of some that were tried out was held up by something else, too, and is planted again.
    usual = None
    # One that took more waited for something that nobody planted: the plant is wrong.
    most_ms = float("inf")

    def set_up(self, stage):
        """Once before its plantings."""

    def plant(self, stage):
        raise NotImplementedError

    def tear_down(self, stage):
        """Once after them."""


class Planting:
    """
    requests: those that were aimed at. intervals: when the cause was there, as the one who planted it or the JVM's own log knows;
    other requests of which it took the most were hit, too, and those aimed at of which it did not were missed. None: the cause is in
    the request itself.
    """

    def __init__(self, requests, intervals=None):
        self.requests = requests
        self.intervals = intervals

    def hit(self, since, least_ms):
        """Of the aimed at and of the requests `since`, those that were hit."""
        if self.intervals is None:
            return [request for request in self.requests if request.ns() >= least_ms * 1e6]
        return [request for request in since if request.ns() >= least_ms * 1e6
                and sum(request.overlap_ns(*interval) for interval in self.intervals) >= 0.6 * request.ns()]


class Alone(Plant):
    """One request; what it suffers it brings about itself, or is prepared before it is sent."""
    target = ""
    rehearsed = True

    def prepare(self, stage):
        """Before each planting; returns the target."""
        return self.target

    def intervals(self, stage, since_ns):
        """As in Planting, of this one."""
        return None

    def plant(self, stage):
        target = self.prepare(stage)
        since_ns = now_ns()
        request = stage.send(target)
        stage.run(10)
        stage.traffic.finish()
        return Planting([request], self.intervals(stage, since_ns))
