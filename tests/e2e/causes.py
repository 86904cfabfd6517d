# SPDX-License-Identifier: Apache-2.0
"""Known causes are planted one at a time; the timelines must name them. `causes.py [TIMES [PLANT...]]`; bench/truth is the long run.

With TAILOR_CAUSES_SAY in the environment each wrong timeline is printed, and each planting that missed.
"""
import os
import sys

sys.dont_write_bytecode = True
import harness  # noqa: E402
from harness import check  # noqa: E402
from causes import judge  # noqa: E402
from causes.run import Trial, in_namespaces_of_its_own  # noqa: E402

TIMES = 3
MORE = 12
# Classes, say, where the machine's host has to find memory for them first.
KEPT_FROM = 2
# bench/truth has none.
LOST_MAX = 0.02


def what_was_planted_is_what_the_timelines_name(scene):
    times = int(sys.argv[1]) if len(sys.argv) > 1 else TIMES
    trial = Trial(scene, sys.argv[2:])
    trial.run(times)
    # One wrong name of three says little: more of those, and all count.
    doubtful = trial.doubtful()
    if doubtful and times < MORE:
        trial.run(MORE, doubtful, seed=2)
    summary = trial.summary()
    print(judge.table(summary), flush=True)
    print(judge.matrix(summary), flush=True)
    if os.environ.get("TAILOR_CAUSES_SAY"):
        for verdict in trial.verdicts:
            if not verdict.right:
                print(judge.describe_wrong(verdict))
    bars = judge.bars(summary, KEPT_FROM, LOST_MAX)
    for name, holds, what in bars:
        print(f"{'ok  ' if holds else 'FAIL'} {name}: {what}", flush=True)
    check(all(holds for _, holds, _ in bars), "; ".join(f"{name}: {what}" for name, holds, what in bars if not holds))


try:
    in_namespaces_of_its_own()
except harness.Skip as reason:
    print(f"skipped: {reason}")
    sys.exit(77)
harness.run(what_was_planted_is_what_the_timelines_name)
