# SPDX-License-Identifier: Apache-2.0
"""Compares what was planted with what the timelines name."""
import re
import statistics

import harness

# What issue and README promise.
RIGHT_OVERALL = 0.95
RIGHT_OF_EACH = 0.85
UNEXPLAINED_MEDIAN = 0.03
# A timeline that covers less than this of what the client saw explains another request than the client's.
COVERED = 0.8


class Verdict:
    """One request that a plant hit."""

    def __init__(self, plant, request, timeline):
        self.plant = plant
        self.request = request
        self.timeline = timeline
        self.named = timeline.dominant if timeline else "no timeline"
        self.right = self.named in plant.accepted
        self.unexplained = timeline.time_of("unexplained") / timeline.ms() if timeline else 1.0
        self.covered = timeline.ms() * 1e6 / request.ns() if timeline else 0.0


def by_number(timelines):
    found = {}
    for timeline in timelines:
        match = re.search(r"[?&]n=(\d+)$", timeline.data["target"])
        if match:
            found[int(match[1])] = timeline
    return found


def first_not_exact(timelines):
    """The text of the first timeline whose spans do not fill it to the nanosecond, or None."""
    for timeline in timelines:
        try:
            timeline.check_whole()
        except harness.Failure as failure:
            return str(failure)
    return None


def summarize(verdicts, plants, counts, timelines, frozen):
    """
    Everything that was found, as plain data. counts: by plant, of plantings and of those that were repeated, by why. frozen: names of
    requests that the machine's host held up, by how many.
    """
    rows = []
    for plant in plants:
        own = [verdict for verdict in verdicts if verdict.plant is plant]
        named = {}
        for verdict in own:
            named[verdict.named] = named.get(verdict.named, 0) + 1
        rows.append({
            "planted": plant.name, "accepted": list(plant.accepted), "why": plant.why, **counts[plant.name], "requests": len(own),
            "right": sum(verdict.right for verdict in own), "named": named,
            "no_timeline": sum(verdict.timeline is None for verdict in own),
            "unexplained_median": statistics.median([v.unexplained for v in own]) if own else None,
            "covered_min": min((v.covered for v in own if v.timeline), default=None) if plant.covered else None,
        })
    return {"rows": rows, "requests": len(verdicts), "right": sum(verdict.right for verdict in verdicts), "timelines": len(timelines),
            "unexplained_median": statistics.median([v.unexplained for v in verdicts]) if verdicts else None,
            "not_exact": first_not_exact(timelines), "held_up_by_the_host": frozen}


def bars(summary, kept_from=0, lost_max=0):
    """What must hold, as (name, whether it does, what was found). So many kinds may not have been planted as often as wanted because the
    machine disturbed them each time; what was planted of them is judged all the same. That share of requests may be without a timeline: who
    comes while the proxy has no CPU, and it gets one for moments only, may be taken for one that came later.
    """
    rows = summary["rows"]
    share = summary["right"] / summary["requests"] if summary["requests"] else 0
    lacking = [row["planted"] for row in rows if row["planted_times"] < row["wanted_times"]]
    disturbed = {row["planted"] for row in rows if row["frozen"] + row["disturbed"] > row["missed"]}
    excused = len(lacking) <= kept_from and disturbed.issuperset(lacking)
    judged = [row for row in rows if row["requests"] or not excused or row["planted"] not in lacking]
    worst = min(judged, key=lambda row: row["right"] / row["requests"] if row["requests"] else 0)
    worst_share = worst["right"] / worst["requests"] if worst["requests"] else 0
    lost = sum(row["no_timeline"] for row in rows)
    short = [row for row in rows if row["covered_min"] is not None and row["covered_min"] < COVERED]
    return [
        (f"top cause right, at least {RIGHT_OVERALL:.0%}", share >= RIGHT_OVERALL, f"{share:.1%}"),
        (f"of each kind, at least {RIGHT_OF_EACH:.0%}", worst_share >= RIGHT_OF_EACH, f"{worst['planted']} {worst_share:.1%}"),
        ("planted requests without a timeline: " + (f"at most {lost_max:.0%}" if lost_max else "none"),
         lost <= lost_max * summary["requests"], str(lost)),
        ("every timeline's spans sum to its latency, to the nanosecond", summary["not_exact"] is None,
         f"{summary['timelines']} timelines" if summary["not_exact"] is None else summary["not_exact"][:500]),
        (f"median unexplained, below {UNEXPLAINED_MEDIAN:.0%}", (summary["unexplained_median"] or 0) < UNEXPLAINED_MEDIAN,
         f"{summary['unexplained_median'] or 0:.2%}"),
        (f"a timeline covers what the client saw, at least {COVERED:.0%} of it", not short,
         ", ".join(f"{row['planted']} {row['covered_min']:.0%}" for row in short) or "all"),
        ("every cause could be planted as often as wanted" + (f", but for {kept_from} that the machine disturbed" if kept_from else ""),
         not lacking or excused, ", ".join(lacking) or "all"),
    ]


def table(summary):
    lines = [f"{'planted':24} {'times':>5} {'frozen':>6} {'disturbed':>9} {'missed':>6} {'hit':>4} {'right':>5} {'unexpl.':>7}  named"]
    for row in summary["rows"]:
        named = ", ".join(f"{cause} {count}" for cause, count in sorted(row["named"].items(), key=lambda item: -item[1]))
        unexplained = "-" if row["unexplained_median"] is None else f"{row['unexplained_median']:.1%}"
        lines.append(f"{row['planted']:24} {row['planted_times']:5} {row['frozen']:6} {row['disturbed']:9} {row['missed']:6} {row['requests']:4} "
                     f"{row['right']:5} {unexplained:>7}  {named}")
    frozen = ", ".join(f"{cause} {count}" for cause, count in summary["held_up_by_the_host"].items())
    lines.append(f"held up by the machine's host, not judged: {frozen or 'none'}")
    return "\n".join(lines)


def matrix(summary):
    """Planted by named."""
    names = sorted({cause for row in summary["rows"] for cause in row["named"]})
    width = {name: max(4, len(name) + 1) for name in names}
    lines = [f"{'planted':24}" + "".join(f"{name:>{width[name]}}" for name in names)]
    for row in summary["rows"]:
        lines.append(f"{row['planted']:24}" + "".join(f"{row['named'].get(name, '.'):>{width[name]}}" for name in names))
    return "\n".join(lines)


def describe_wrong(verdict):
    return (f"planted {verdict.plant.name}, named {verdict.named}; the client waited {verdict.request.ns() / 1e6:.1f} ms "
            f"from {verdict.request.sent_ns}: {verdict.timeline}\n")
