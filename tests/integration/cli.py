# SPDX-License-Identifier: Apache-2.0
"""The commands that start nothing: check, doctor, --help, wrong usage."""
import json
import os
import re
import subprocess
import tempfile
import textwrap
import unittest
from pathlib import Path

TAILOR = os.environ["TAILOR"]


def tailor(*arguments):
    return subprocess.run([TAILOR, *arguments], capture_output=True, text=True, timeout=60)


class Usage(unittest.TestCase):
    def test_without_a_command_it_lists_them_and_fails_as_usage(self):
        result = tailor()
        self.assertEqual(result.returncode, 2)
        self.assertIn("doctor", result.stderr)
        self.assertEqual(result.stdout, "")

    def test_help_goes_to_stdout_and_names_every_command(self):
        result = tailor("--help")
        self.assertEqual(result.returncode, 0)
        for command in ("proxy", "check", "dump", "load", "attach", "doctor", "demo"):
            self.assertIn(command, result.stdout)

    def test_an_unknown_command_is_named(self):
        result = tailor("prxoy")
        self.assertEqual(result.returncode, 2)
        self.assertIn('"prxoy"', result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1)

    def test_every_command_explains_itself(self):
        for command in ("proxy", "check", "dump", "load", "attach", "doctor", "demo"):
            result = tailor(command, "--help")
            self.assertEqual(result.returncode, 0, command)
            self.assertIn(f"tailor {command}", result.stdout)

    def test_an_unknown_option_is_wrong_usage(self):
        for command in ("proxy", "check", "dump", "load", "attach", "doctor", "demo"):
            self.assertEqual(tailor(command, "--no-such-option").returncode, 2, command)


class Check(unittest.TestCase):
    def check(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(text)
            file.flush()
            result = tailor("check", "-c", file.name)
            return result, file.name

    def test_a_good_file_is_called_good(self):
        result, _ = self.check("listen: 127.0.0.1:0\nservers: [{name: a, address: '127.0.0.1:1'}]\n")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("good", result.stdout)

    def test_it_says_how_the_servers_share(self):
        servers = "".join(f"  - {{name: {name}, address: 127.0.0.1:{port}}}\n" for port, name in enumerate("abc", 9201))
        for more, says in (("", "3 servers, the first is active, "), ("mode: balanced\n", "3 servers, balanced, ")):
            result, _ = self.check(f"listen: 127.0.0.1:0\nservers:\n{servers}{more}")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn(says, result.stdout)

    def test_the_readmes_configuration_is_good(self):
        readme = (Path(os.environ["TAILOR_SOURCE"]) / "README.md").read_text()
        sample = re.search(r"Write `tailor.yaml`.*?\n\n((?: {7}[^\n]*\n)+)", readme, re.S)[1]
        self.assertIn("failover:", sample)
        with tempfile.TemporaryDirectory() as run:
            result, _ = self.check(textwrap.dedent(sample).replace("/run/tailor/", run + "/"))
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_each_problem_is_a_line_with_file_and_line_number(self):
        result, name = self.check("listen: 127.0.0.1:0\nservers: [{name: a, address: '127.0.0.1:1'}]\nworkers: 99\nslow: {threshold: 5}\n")
        self.assertEqual(result.returncode, 2)
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 2)
        self.assertTrue(lines[0].startswith(f"{name}:3: workers"), lines[0])
        self.assertTrue(lines[1].startswith(f"{name}:4: slow.threshold"), lines[1])

    SERVERS = "listen: 127.0.0.1:0\nservers: [{name: a, address: '127.0.0.1:1'}, {name: b, address: '127.0.0.1:2'}]\n"

    def test_two_configurations_are_wrong_usage(self):
        for command in ("check", "proxy", "doctor"):
            result = tailor(command, "-c", "/nonexistent/a.yaml", "-c", "/nonexistent/b.yaml")
            self.assertEqual(result.returncode, 2, command)
            self.assertIn(f"tailor {command}: -c is given twice: /nonexistent/a.yaml and /nonexistent/b.yaml", result.stderr)

    def check_warnings(self, text, *warnings):
        result, name = self.check(self.SERVERS + text)
        self.assertEqual(result.returncode, 0, text)
        self.assertIn("good", result.stdout)
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), len(warnings), result.stderr)
        for line, warning in zip(lines, warnings):
            self.assertTrue(line.startswith(f"{name}: warning: {warning}"), line)

    def places(self, directory):
        return (f"timelines: {{path: {directory}/timelines}}\naccess_log: {{path: {directory}/log}}\n"
                f"admin: {{listen: 'unix:{directory}/admin'}}\nagent: {{socket: {directory}/agent}}\n")

    def test_a_directory_that_is_missing_is_a_warning_for_each_place_in_it(self):
        with tempfile.TemporaryDirectory() as directory:
            self.check_warnings(self.places(directory))
            self.assertEqual(os.listdir(directory), [])
            file = directory + "/file"
            Path(file).touch()
            for missing in (directory + "/missing", file):
                self.check_warnings(self.places(missing), *(
                    f"the proxy would not start: {key}: there is no directory to make {missing}/{name} in; make it first"
                    for key, name in (("timelines.path", "timelines"), ("access_log.path", "log"), ("admin.listen", "admin"), ("agent.socket", "agent"))))

    def test_what_is_in_the_way_of_a_place_is_a_warning(self):
        with tempfile.TemporaryDirectory() as directory:
            Path(directory, "timelines").mkdir()
            self.check_warnings(self.places(directory))
            for name in ("timelines/foreign", "admin", "agent"):
                Path(directory, name).touch()
            Path(directory, "log").mkdir()
            self.check_warnings(self.places(directory), *(f"the proxy would not start: {text}" for text in (
                f"timelines.path: {directory}/timelines is not a timeline store",
                f"access_log.path: {directory}/log is a directory",
                f"admin.listen: {directory}/admin is a file that is no socket",
                f"agent.socket: {directory}/agent is a file that is no socket")))

    def test_the_proxy_itself_does_not_start_where_it_warns(self):
        with tempfile.TemporaryDirectory() as directory:
            for line in self.places(directory + "/missing").splitlines():
                file = Path(directory, "tailor.yaml")
                timelines = "" if line.startswith("timelines") else f"timelines: {{path: {directory}/timelines}}\n"
                file.write_text(self.SERVERS + timelines + line + "\ntrace: {kernel: off}\n")
                self.assertEqual(tailor("check", "-c", file).stderr.count("the proxy would not start"), 1, line)
                result = tailor("proxy", "-c", file)
                self.assertEqual(result.returncode, 1, line)
                self.assertIn("No such file or directory", result.stderr)

    def test_a_prediction_without_agents_is_a_warning(self):
        with tempfile.TemporaryDirectory() as directory:
            self.check_warnings("failover: {predict: on}\n", "failover.predict: nothing is predicted without the servers' agents")
            self.check_warnings(f"failover: {{predict: on}}\nagent: {{socket: {directory}/agent}}\n")

    def test_hostile_bytes_are_refused_not_a_crash(self):
        for text in ("\0\0\0", "[" * 5000, "a: &x [*x, *x]\n", "{" * 2000, "\u2028: 1", "listen: !!binary aGk=\n", "- - - - -\n", "%YAML 9.9\n---\n"):
            result, _ = self.check(text)
            self.assertEqual(result.returncode, 2, repr(text[:20]))


class Doctor(unittest.TestCase):
    def test_json_and_table_say_the_same(self):
        data = json.loads(tailor("doctor", "--json").stdout)
        table = tailor("doctor").stdout
        named = {finding["what"] for finding in data["findings"]}
        self.assertLessEqual({"kernel", "io_uring", "kernel events"}, named)
        for finding in data["findings"]:
            self.assertIn(finding["standing"], ("ok", "limited", "missing", "info"))
            if finding["what"] != "JVM":
                self.assertIn(finding["what"], table)

    def test_without_rights_it_names_the_remedy(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to give rights up")
        result = subprocess.run(
            ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all", TAILOR, "doctor", "--json"],
            capture_output=True, text=True, timeout=60)
        if result.returncode == 127 or "Permission denied" in result.stderr:
            self.skipTest("another user cannot reach the binary: " + result.stderr)
        findings = {f["what"]: f for f in json.loads(result.stdout)["findings"]}
        self.assertEqual(findings["kernel events"]["standing"], "missing")
        self.assertIn("CAP_BPF", findings["kernel events"]["text"])
        self.assertEqual(result.returncode, 1)


if __name__ == "__main__":
    unittest.main()
