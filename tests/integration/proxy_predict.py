# SPDX-License-Identifier: Apache-2.0
"""Real JVMs whose collections the whole proxy predicts: they meet servers that nobody waits for, and what ends in a drain harms nothing."""
import http.client
import mmap
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

from jvm_pair import JvmPair
from whole_proxy import TAILOR

# Of struct tailor_jvm_page (tailor/jvm_page.h).
PAGE_BYTES, WANTS = 4096, 1408
WANTS_HEAP = 1
RATE = 200
SECONDS = 8


def ask(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", "/")
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


class Asking(threading.Thread):
    """Asks one after the other until it is told to end."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.answers, self.ending = port, [], False
        self.start()

    def run(self):
        while not self.ending:
            try:
                self.answers.append(ask(self.port)[0])
            except OSError as error:
                self.answers.append(error)
            time.sleep(0.002)

    def end(self):
        self.ending = True
        self.join(30)
        return self.answers


class Predictions(JvmPair):
    program = "Garbage"

    def start(self, agent="young", collect="young", mode="active-backup", collector="Serial", garbage=(160, 60, 0), predict="on"):
        """garbage: KiB a request, MiB that are kept, KiB a millisecond without requests."""
        jvm = [f"-XX:+Use{collector}GC", "-Xms220m", "-Xmx220m", *(["-Xmn64m"] if collector != "Z" else [])]
        self.start_proxy([self.start_server(jvm, [name, *garbage], f",collect={agent}") for name in "ab"],
                         f"mode: {mode}\nfailover: {{predict: {predict}, collect: {collect}}}\n")

    def page(self, server):
        """The agent's page as the JVM has it."""
        for entry in Path(f"/proc/{self.servers[server].pid}/fd").iterdir():
            if "memfd:tailor-jvm" in os.readlink(entry):
                with open(entry, "rb") as memory:
                    return mmap.mmap(memory.fileno(), PAGE_BYTES, prot=mmap.PROT_READ)
        raise AssertionError("the JVM has no page")

    def wants(self, server):
        return struct.unpack_from("Q", self.page(server), WANTS)[0]

    def load(self, seconds=SECONDS):
        """Returns what `tailor load` says: every request must have been answered with 200."""
        done = subprocess.run([TAILOR, "load", "--rate", str(RATE), "--warm", "0s", "-d", f"{seconds}s", self.proxy.url], capture_output=True,
                              text=True)
        self.assertEqual(self.status()["refused"], 0, done.stdout)
        self.assertNotRegex(done.stdout, r"(?m)^ +[0-9.]+ m?s  [1345]\d\d ")
        return done.stdout

    def scores(self):
        return {server["name"]: {**server["prediction"], "pauses": server["pauses"], "pauses_seen": server["pauses_seen"],
                                 "requests": server["requests"]} for server in self.status()["servers"]}

    def settled(self):
        """Nobody is drained any more, and what was seen is counted."""
        self.until(lambda: not any(score["drained"] for score in self.scores().values()), "no drain is under way")
        time.sleep(0.3)
        return self.scores()

    def adds_up(self, scores, attached):
        for name, score in scores.items():
            self.assertEqual(score["pauses_predicted"] + score["pauses_missed"], score["pauses"] - attached[name]["pauses"], scores)
            self.assertEqual(score["warnings"]["count"], score["drains"] - score["false_drains"], scores)
            self.assertEqual(sum(bucket["count"] for bucket in score["warnings"]["buckets"]), score["warnings"]["count"], scores)
            self.assertLessEqual(score["wishes_granted"], score["wishes"], scores)
            self.assertLessEqual(score["pauses_met"], score["requests_met"], scores)

    def shares(self, scores):
        """The part of the collections that met a drained server, and that met no request."""
        pauses = sum(score["pauses_predicted"] + score["pauses_missed"] for score in scores.values())
        predicted = sum(score["pauses_predicted"] for score in scores.values())
        met = sum(score["pauses_met"] for score in scores.values())
        print(f"  {self.id().rsplit('.', 1)[1]}: of {pauses} collections {predicted} predicted, {pauses - met} met no request; "
              f"{sum(score['drains'] for score in scores.values())} drains, {sum(score['false_drains'] for score in scores.values())} false",
              flush=True)
        self.assertGreaterEqual(pauses, 4, "the load makes them collect")
        return predicted / pauses, 1 - met / pauses

    def meets_nobody(self, least, **options):
        """A machine that freezes servers and proxy together says nothing: it may try again."""
        for attempt in range(3):
            self.doCleanups()
            self.start(**options)
            attached = self.scores()
            self.load()
            scores = self.settled()
            self.adds_up(scores, attached)
            predicted, idle = self.shares(scores)
            if predicted >= least and idle >= least:
                return scores
        self.fail(f"predicted {predicted:.0%}, met nobody {idle:.0%}: {scores}")

    def test_collections_that_may_be_wished_for_meet_an_idle_server(self):
        scores = self.meets_nobody(0.8)
        self.assertGreater(sum(score["wishes_granted"] for score in scores.values()), 0)
        # Both have served: what was drained is not taken back only for being the first.
        self.assertTrue(all(score["requests"] > 50 for score in scores.values()), scores)
        # A drain is no switch: only what was not foreseen is.
        status = self.status()
        unforeseen = sum(count for server in status["servers"] for kind, count in server["stops"].items() if kind != "gc")
        self.assertLessEqual(status["switches"], unforeseen + sum(score["pauses_missed"] for score in scores.values()), status)

    def test_so_do_full_ones_of_a_group(self):
        self.meets_nobody(0.8, agent="full", collect="full", mode="balanced")

    def test_and_those_of_servers_that_allocate_by_themselves_without_a_wish(self):
        scores = self.meets_nobody(0.4, agent="off", collect="off", garbage=(4, 60, 24))
        self.assertEqual(sum(score["wishes"] for score in scores.values()), 0)

    def test_what_one_side_does_not_allow_is_not_wished_for(self):
        for agent, collect in (("off", "full"), ("full", "off")):
            self.doCleanups()
            self.start(agent=agent, collect=collect)
            attached = self.scores()
            self.load(4)
            scores = self.settled()
            self.adds_up(scores, attached)
            self.assertEqual(sum(score["wishes"] for score in scores.values()), 0, scores)

    def test_who_does_not_say_how_full_it_is_is_never_drained(self):
        self.start(agent="off", collect="off", collector="Z", garbage=(400, 20, 0))
        self.load(3)
        scores = self.settled()
        self.assertEqual(sum(score["drains"] for score in scores.values()), 0, scores)
        self.assertEqual([self.wants(0), self.wants(1)], [0, 0])

    def test_without_prediction_nobody_is_asked(self):
        self.start(collect="off", predict="off")
        self.load(2)
        scores = self.scores()
        self.assertEqual([self.wants(0), self.wants(1)], [0, 0])
        for score in scores.values():
            self.assertEqual(score["drains"] + score["pauses_predicted"] + score["pauses_missed"], 0, scores)

    def test_a_reload_begins_and_ends_it(self):
        self.start()
        self.until(lambda: self.wants(0) == self.wants(1) == WANTS_HEAP, "their heaps are asked for")
        config = self.proxy.directory / "tailor.yaml"
        text = config.read_text()
        config.write_text(text.replace("predict: on, collect: young", "predict: off"))
        self.assertEqual(self.proxy.answer("/reload", "POST")[0], 200)
        self.until(lambda: self.wants(0) == self.wants(1) == 0, "they are not any more")
        off = self.scores()
        self.load(3)
        before = self.settled()
        self.assertGreater(sum(before[name]["pauses"] - off[name]["pauses"] for name in off), 0, "the load makes them collect")
        config.write_text(text)
        self.assertEqual(self.proxy.answer("/reload", "POST")[0], 200)
        self.until(lambda: self.wants(0) == self.wants(1) == WANTS_HEAP, "they are again")
        self.load(4)
        after = self.settled()
        self.assertGreater(sum(score["drains"] for score in after.values()), 0)
        # What came while nobody predicted was not missed.
        for name, score in after.items():
            counted = sum(score[key] - off[name][key] for key in ("pauses_predicted", "pauses_missed"))
            self.assertEqual(counted, score["pauses"] - before[name]["pauses"], (off, before, after))

    def a_drain(self):
        """The index of a server that is drained just now."""
        found = []

        def look():
            found.extend(i for i, server in enumerate(self.status()["servers"]) if server["prediction"]["drained"])
            return found

        self.until(look, "one is drained", 30)
        return found[0]

    def test_a_jvm_that_dies_in_a_drain_harms_nobody(self):
        self.start(agent="full", collect="full")
        asking = [Asking(self.proxy.port) for _ in range(3)]
        drained = self.a_drain()
        self.servers[drained].kill()
        self.until(lambda: not self.status()["servers"][drained]["agent"], "its end is seen")
        self.assertFalse(self.status()["servers"][drained]["prediction"]["drained"])
        time.sleep(1)
        answers = [answer for one in asking for answer in one.end()]
        # It had been left; what it still had of the one or other request may be answered 502 only if that cannot be sent again.
        self.assertEqual(set(answers), {200}, [answer for answer in answers if answer != 200])
        self.assertGreater(len(answers), 100)
        # Alone, the other one is never drained.
        before = self.scores()["ab"[1 - drained]]["drains"]
        self.assertFalse(self.status()["servers"][1 - drained]["prediction"]["drained"])
        asking = Asking(self.proxy.port)
        time.sleep(2)
        self.assertEqual(set(asking.end()), {200})
        self.assertEqual(self.scores()["ab"[1 - drained]]["drains"], before)

    def test_a_proxy_that_ends_in_a_drain_leaves_nothing_behind(self):
        for how in (signal.SIGKILL, signal.SIGTERM):
            self.doCleanups()
            self.start(agent="full", collect="full")
            asking = Asking(self.proxy.port)
            self.a_drain()
            self.assertEqual([self.wants(0), self.wants(1)], [WANTS_HEAP, WANTS_HEAP])
            self.proxy.process.send_signal(how)
            self.proxy.process.wait(40)
            self.proxy.process.stderr.close()
            asking.end()
            self.until(lambda: self.wants(0) == self.wants(1) == 0, "nobody wants to know any more")
            for port, name in zip(self.ports, "ab"):
                self.assertEqual(ask(port), (200, name))

    def test_metrics_say_the_same(self):
        self.start()
        self.load(4)
        scores, metrics = self.settled(), self.proxy.ask("/metrics")
        names = {"pauses_predicted": "server_pauses_predicted_total", "pauses_missed": "server_pauses_missed_total",
                 "pauses_met": "server_pauses_met_total", "requests_met": "server_requests_met_pause_total",
                 "drains": "server_drains_total", "false_drains": "server_false_drains_total",
                 "wishes": "server_collections_wished_total", "wishes_granted": "server_collections_granted_total"}
        for name, score in scores.items():
            for key, metric in names.items():
                found = re.findall(rf'^tailor_{metric}{{server="{name}"}} (\d+)$', metrics, re.M)
                self.assertEqual(found, [str(score[key])], metric)
            self.assertIn(f'tailor_server_drained{{server="{name}"}} 0\n', metrics)
            self.assertIn(f'tailor_server_drain_warning_seconds_count{{server="{name}"}} {score["warnings"]["count"]}\n', metrics)
        self.assertGreater(sum(score["drains"] for score in scores.values()), 0)


if __name__ == "__main__":
    if not shutil.which("javac"):
        print("no JDK here")
        sys.exit(77)
    unittest.main(verbosity=2)
