# SPDX-License-Identifier: Apache-2.0
"""What every request came to, and whether a server's end explains it."""
import asyncio
import collections

SHOWN = 20  # failures that are told in full


class Judge:
    def __init__(self, servers):
        self.servers = servers
        self.counts = collections.Counter()
        self.failures = []      # (path or None, text)
        self.failed = 0
        self.ids = set()
        self.answered = []      # numbers of requests with a right answer
        self.untaken = []       # of requests behind an answer that closed the connection: no server may have got them
        self.posts, self.not_replayable = set(), set()
        self.executed = collections.Counter()

    def fail(self, text, path=None):
        """`path`: of a request, called by the task of its client."""
        self.failed += 1
        if path:
            text = f"{asyncio.current_task().get_name()}: {text}"
        if len(self.failures) < SHOWN:
            self.failures.append((path, text))

    def replayable(self, request):
        """Whether the proxy may send it twice."""
        return request.method == "GET"

    def begun(self, request):
        self.counts["begun"] += 1
        if request.method == "POST":
            self.posts.add(request.number)
        if not self.replayable(request):
            self.not_replayable.add(request.number)

    def response(self, request, begin, now, response):
        """Of a client that has kept to the rules and read to the end."""
        if response.id is None or response.id in self.ids:
            self.fail(f"{request.path}: the response's id {response.id} is none or another response's")
        self.ids.add(response.id)
        if response.status == 200:
            self.body(request, begin, now, response)
        elif response.status == 502 and self.may_fail(request, begin, now):
            self.counts["502"] += 1
        elif response.status == 503 and self.servers.none_usable(begin, now):
            self.counts["503"] += 1
        else:
            self.fail(f"{request.method} {request.path}: {response.status} after {now - begin:.3f} s, and {self.servers.account(begin, now)}",
                      request.path)

    def may_fail(self, request, begin, now):
        """What is replayable goes to the other server, unless its response has begun: only an answer in pieces has half a head."""
        saved = self.replayable(request) and request.style != "p"
        return self.servers.both_ended(begin, now) if saved else self.servers.ended(begin, now)

    def body(self, request, begin, now, response):
        expected = request.expected()
        if response.body == expected:
            self.counts["good"] += 1
            self.answered.append(request.number)
        elif request.style == "e" and expected.startswith(response.body) and self.servers.ended(begin, now):
            # A server that is killed closes in order, too: where its close is the body's end, nobody can know.
            self.counts["cut"] += 1
        else:
            same = next((i for i, (a, b) in enumerate(zip(response.body, expected)) if a != b), min(len(response.body), len(expected)))
            self.fail(f"{request.method} {request.path}: {len(response.body)} of {len(expected)} bytes, wrong from {same} on")

    def broken(self, request, begin, now, error):
        """The connection ended before the response did."""
        if self.servers.ended(begin, now) and isinstance(error, (EOFError, ConnectionError)):
            self.counts["cut"] += 1
        else:
            self.fail(f"{request.method} {request.path}: lost after {now - begin:.3f} s, {error!r}, and {self.servers.account(begin, now)}",
                      request.path)

    def behind(self, requests):
        """They stood behind one whose answer was the connection's last."""
        self.counts["untaken"] += len(requests)
        self.untaken += [request.number for request in requests]

    def left(self, how):
        """A client went away on purpose."""
        self.counts["left"] += 1
        self.counts[f"left {how}"] += 1

    def count_executed(self):
        for method, number in self.servers.executed():
            self.executed[number] += 1
            self.counts["executed"] += 1
            if (method == "P") != (number in self.posts):
                self.fail(f"a server got {method}{number}, which nobody sent")
            if number in self.not_replayable and self.executed[number] > 1:
                self.fail(f"{method}{number} was executed {self.executed[number]} times")

    def finish(self):
        """When servers and clients have ended."""
        self.count_executed()
        for number in self.answered:
            if self.executed[number] == 0:
                self.fail(f"request {number} has an answer and no server got it")
        for number in self.untaken:
            if self.executed[number]:
                self.fail(f"request {number} was executed behind an answer that closed the connection")
