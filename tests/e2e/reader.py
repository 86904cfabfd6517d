# SPDX-License-Identifier: Apache-2.0
"""A client that knows what each answer must be."""
import http.client
import threading
import time

import harness
from harness import check


def answers_of(servers):
    """What all of the servers answer to each of some searches, by path."""
    expected = {}
    for word in harness.WORDS:
        path = f"/search?q={word}&n=10"
        answers = [harness.get(server.port, path) for server in servers]
        check(answers[0][0] == 200 and len({answer[2] for answer in answers}) == 1, f"the servers differ on {path}")
        expected[path] = answers[0][2]
    return expected


class Reader(threading.Thread):
    """Searches on one connection and compares each body with what the server itself answers."""

    def __init__(self, port, expected):
        super().__init__(daemon=True)
        self.port = port
        self.expected = expected
        self.ended = threading.Event()
        self.wrong = []
        self.servers = set()
        self.count = 0

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        paths = list(self.expected)
        while not self.ended.is_set():
            path = paths[self.count % len(paths)]
            try:
                connection.request("GET", path)
                response = connection.getresponse()
                body = response.read()
                self.servers.add(response.headers["X-Server"])
                if response.status != 200 or body != self.expected[path]:
                    self.wrong.append(f"{path}: {response.status} {body[:80]!r}")
            except (OSError, http.client.HTTPException) as error:
                self.wrong.append(f"{path}: {error!r}")
                connection.close()
            self.count += 1
            time.sleep(0.02)
        connection.close()
