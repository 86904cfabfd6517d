# SPDX-License-Identifier: Apache-2.0
"""The table of conformance cases as the Python tests read it. The format is described in cases/README.md."""
import pathlib
import re

DIRECTORY = pathlib.Path(__file__).parent / "cases"
NAMED = {"r": b"\r", "n": b"\n", "t": b"\t", "0": b"\0", "s": b" ", "\\": b"\\"}


def unescape(text):
    """Bytes of a line's rest."""
    def one(match):
        count, inner, hexadecimal, name = match.groups()
        if count:
            return (unescape(inner) * int(count)).decode("latin-1")
        return (bytes([int(hexadecimal, 16)]) if hexadecimal else NAMED[name]).decode("latin-1")

    return re.sub(r"\\(?:\*(\d+)\(([^)]*)\)|x([0-9a-fA-F]{2})|(.))", one, text).encode("latin-1")


class Case:
    def __init__(self, name, place):
        self.name, self.place, self.section, self.verdict = name, place, "", []
        self.client = self.server = b""
        self.to_server = self.to_client = None
        self.server_ends = self.drips = False
        self.options = {}

    def finish(self):
        self.client = self.client or b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        self.words = [word for word in self.verdict if word not in ("close", "drop", "nothing")]
        self.close, self.drop = "close" in self.verdict, "drop" in self.verdict
        return self


def read():
    cases = []
    for path in sorted(DIRECTORY.glob("*.cases")):
        for number, line in enumerate(path.read_text().split("\n"), 1):
            word, _, rest = line.partition(" ")
            if word == "case":
                cases.append(Case(rest, f"{path.name}:{number}"))
            elif word == "rfc":
                cases[-1].section = rest
            elif word == "verdict":
                cases[-1].verdict = rest.split()
            elif word in ("client", "server", "to-server", "to-client"):
                name = word.replace("-", "_")
                setattr(cases[-1], name, (getattr(cases[-1], name) or b"") + unescape(rest))
            elif word == "with":
                cases[-1].options = dict(option.split("=") for option in rest.split())
            elif word in ("server-ends", "drips"):
                setattr(cases[-1], word.replace("-", "_"), True)
            elif word and not word.startswith("#"):
                raise ValueError(f"{path}:{number}: unknown word {word}")
    return [case.finish() for case in cases]
