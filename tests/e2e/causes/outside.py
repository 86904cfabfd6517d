# SPDX-License-Identifier: Apache-2.0
"""Causes from outside of the processes: CPUs taken away, processes stopped, quotas."""
from .cgroup import Cgroup
from .plant import Plant, Planting
from .stage import Hog, pin, stopped
from .traffic import now_ns


class Hogged(Plant):
    """Somebody of higher priority on the only CPU that the server may use, or on the proxy's."""
    takes_cpu = True
    # What comes while the proxy itself has no CPU is known to two ticks of TCP's clock, 8 ms: what took less than that beyond the
    # threshold may not be known to be slow.
    least_ms = 20

    def cpu(self, stage):
        return stage.server_cpu

    def set_up(self, stage):
        pin(stage.victim.pid, {stage.server_cpu})
        self.hog = Hog(self.cpu(stage))

    def tear_down(self, stage):
        self.hog.close()
        pin(stage.victim.pid, stage.cpus)


class RunQueue(Hogged):
    name = "hog-run-queue"
    accepted = ("run-queue",)
    why = "the hog has the server's CPU when the request comes: the woken thread waits for it"

    def plant(self, stage):
        begin_ns = now_ns()
        end_ns = begin_ns + 35_000_000
        self.hog.take(end_ns)
        stage.run(3)
        request = stage.send("/work")
        stage.run(35)
        stage.traffic.finish()
        return Planting([request], [(begin_ns, end_ns)])


class Preempted(Hogged):
    name = "hog-preemption"
    accepted = ("preempted",)
    why = "the hog takes the CPU from the thread that computes for the request"

    def plant(self, stage):
        request = stage.send("/spin?us=10000")
        stage.traffic.background = False  # who comes meanwhile is not preempted, but waits
        stage.run(3)
        begin_ns = now_ns()
        end_ns = begin_ns + 35_000_000
        self.hog.take(end_ns)
        stage.traffic.finish()
        stage.traffic.background = True
        return Planting([request], [(begin_ns, end_ns)])


class ProxyHog(Hogged):
    name = "proxy-no-cpu"
    accepted = ("proxy-run-queue",)
    needs = ("what came while the proxy was held up",)
    why = "the hog has the only CPU that the proxy may use, while a request is at the server and when another one comes"

    def cpu(self, stage):
        return stage.proxy_cpu

    def plant(self, stage):
        first = stage.send("/spin?us=5000")
        stage.run(2)
        begin_ns = now_ns()
        end_ns = begin_ns + 40_000_000
        self.hog.take(end_ns)
        stage.run(6)
        second = stage.send("/work")
        stage.run(40)
        stage.traffic.finish()
        return Planting([first, second], [(begin_ns, end_ns)])


class ProxyStopped(Plant):
    name = "proxy-stopped"
    accepted = ("proxy-stopped",)
    needs = ("what came while the proxy was held up",)
    why = "SIGSTOP to the proxy, while a request is at the server and when another one comes"
    least_ms = Hogged.least_ms

    def process(self, stage):
        return stage.proxy.pid

    def plant(self, stage):
        first = stage.send("/spin?us=5000")
        stage.run(2)
        second = []
        stage.traffic.at(now_ns() + 8_000_000, lambda: second.append(stage.send("/work")))
        interval = stopped(self.process(stage), stage.run, 40)
        stage.traffic.finish()
        return Planting([first, *second], [interval])


class ServerStopped(ProxyStopped):
    name = "server-stopped"
    takes_cpu = True  # all of its threads want one at once when it goes on
    accepted = ("stopped",)
    needs = ()
    why = "SIGSTOP to the server, while a request is there and when another one comes"

    def process(self, stage):
        return stage.victim.pid


class Throttled(Plant):
    name = "quota"
    takes_cpu = True
    accepted = ("throttled",)
    why = "threads of the server use up the CPU time that its cgroup may have: 15 of 100 ms; requests that come then wait for the next period"
    least_ms = 15
    # One that comes just after a period has begun is served.
    all_hit = False

    def set_up(self, stage):
        self.group = Cgroup("cpu")
        self.group.add(stage.victim.pid)

    def plant(self, stage):
        self.group.limit_cpu(15_000, 100_000)
        stage.tell("spin 60 2")
        stage.run(30)
        requests = [stage.send("/work")]
        stage.run(30)
        requests.append(stage.send("/work"))
        stage.run(60)
        stage.traffic.finish()
        self.group.limit_cpu(0, 100_000)
        stage.run(50)
        return Planting(requests)

    def tear_down(self, stage):
        self.group.close()


PLANTS = [RunQueue, Preempted, ProxyHog, ProxyStopped, ServerStopped, Throttled]
