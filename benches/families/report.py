"""The table and the summary of a run.

    report.py FIGURES.json      prints the table of a run anew

An answer is *alone* if two or more other engines agree on a different one. Such an answer counts as
none: its time is in the table, but in no mean and no comparison. Where two engines differ and there
is no third, both count, and the table says so.
"""

import json
import math
import statistics
import sys

import answers

# A family is lost if the best other engine is ahead by more than both.
LOST_MS, LOST_TIMES = 10, 1.25
# Processor times below this say nothing.
LEAST_CPU_MS = 5
MIB = 2**20


def short(ms):
    if ms is None:
        return ""
    return "%.2f" % ms if ms < 10 else "%.1f" % ms if ms < 100 else "{:,.0f}".format(ms)


class Outcome:
    """What one family came to: times by engine, those that count, and what differs."""

    def __init__(self, entry, ours, titles):
        self.name, self.ours, self.figures = entry["name"], ours, entry["engines"]
        self.titles = titles
        self.times = {n: min(f["wall_ms"]) for n, f in self.figures.items() if "error" not in f}
        self.answers = {n: f for n, f in self.figures.items() if n in self.times}
        groups = []
        for name, answer in self.answers.items():
            like = next((g for g in groups if answers.alike(self.answers[g[0]], answer)), None)
            like.append(name) if like else groups.append([name])
        most = max(groups, key=len, default=[])
        agreed = len(groups) > 1 and len(most) > 1 and sum(len(g) == len(most) for g in groups) == 1
        self.alone = [n for n in self.times if agreed and n not in most]
        self.differ = len(groups) > 1
        self.counts = {n: t for n, t in self.times.items() if n not in self.alone}
        others = {n: t for n, t in self.counts.items() if n != ours}
        self.best = min(others, key=others.get, default=None)

    def ratio(self, other=None):
        """Time of another engine, the best unless named, by ours; None if one does not count."""
        other = other or self.best
        if other not in self.counts or self.ours not in self.counts:
            return None
        return self.counts[other] / self.counts[self.ours]

    def lost(self):
        if self.best is None:
            return False
        if self.ours not in self.counts:
            return True
        here, there = self.counts[self.ours], self.counts[self.best]
        return here - there > LOST_MS and here > there * LOST_TIMES

    def of_best(self, key, name=None):
        """Ours, or those of another engine, in the round that counts."""
        figures = self.figures[name or self.ours]
        return figures[key][figures["wall_ms"].index(min(figures["wall_ms"]))]

    def cores(self):
        return self.of_best("cpu_ms") / self.times[self.ours]

    def shown(self, name, rounds):
        if name not in self.figures:
            return ""
        figures = self.figures[name]
        if name not in self.times:
            return "fails"
        fewer = "" if len(figures["wall_ms"]) >= rounds else " (%d×)" % len(figures["wall_ms"])
        return short(self.times[name]) + fewer + (" ≠" if name in self.alone else "")

    def same(self):
        """Whether the answers are the same, in words."""
        unsteady = [self.titles[n] for n, f in self.figures.items() if f.get("unsteady")]
        said = ["%s: changes from round to round" % n for n in unsteady]
        if len(self.answers) < 2:
            return "; ".join(said + ["alone" if self.answers else "none"])
        if not self.differ:
            return "; ".join(said + ["yes"])
        known = self.answers[self.ours if self.ours in self.counts else next(iter(self.counts))]
        for name, answer in self.answers.items():
            if not answers.alike(known, answer):
                rows = (answer["rows"], known["rows"])
                said.append("%s: %s" % (self.titles[name], "other values" if rows[0] == rows[1] else "%d rows, not %d" % rows))
        return "; ".join(said)


def outcomes(results):
    ours = results["about"]["engines"][0]["name"]
    titles = {e["name"]: e["title"] for e in results["about"]["engines"]}
    return [Outcome(entry, ours, titles) for entry in results["families"] if "engines" in entry]


def line(entry, ours):
    """One family on one line, while the run goes on."""
    outcome = Outcome(entry, ours, {n: n for n in entry["engines"]})
    times = ", ".join("%s %s" % (n, outcome.shown(n, 0)) for n in entry["engines"])
    ratio = outcome.ratio()
    return "%-28s %s%s%s; same: %s" % (
        entry["name"], times, "" if ratio is None else "; best other / ours %.2f" % ratio,
        " LOST" if outcome.lost() else "", outcome.same())


def table(results):
    about = results["about"]
    names = [e["name"] for e in about["engines"]]
    has_cold = any("cold_ms" in f for entry in results["families"] for f in entry.get("engines", {}).values())
    out = [
        "%s: %s, %s" % (about["dataset"], about["machine"], about["date"]), "",
        *("* %s (%s): loaded in %.1f s, %.0f MB" % (e["title"], e["version"], e["seconds"], e["bytes"] / 1e6)
          for e in about["engines"]), "",
        "Milliseconds, the best of %d rounds; fewer are in brackets. CPU, memory and cores are ours." % about["rounds"], "",
        "| family | %s | best other ÷ ours | CPU ms | MiB | cores |%s same answers |"
        % (" | ".join(e["title"] for e in about["engines"]), " cold ms |" if has_cold else ""),
        "|---|%s---|---|---|---|---|" % ("---|" * (len(names) + has_cold)),
    ]
    for outcome in outcomes(results):
        ratio = outcome.ratio()
        used = outcome.ours in outcome.times
        cold = " %s |" % short(outcome.figures[outcome.ours].get("cold_ms")) if has_cold else ""
        out.append("| %s | %s | %s | %s | %.0f | %s |%s %s |" % (
            outcome.name, " | ".join(outcome.shown(n, about["rounds"]) for n in names),
            ("" if ratio is None else "%.2f" % ratio) + (" **lost**" if outcome.lost() else ""),
            short(outcome.of_best("cpu_ms")) if used else "", outcome.figures[outcome.ours]["peak_bytes"] / MIB,
            "%.2f" % outcome.cores() if used else "", cold, outcome.same()))
    return "\n".join([*out, "", *summary(results), "", *details(results)]) + "\n"


def mean(ratios):
    return math.exp(statistics.fmean(math.log(r) for r in ratios)) if ratios else float("nan")


def summary(results):
    about, all_of_them = results["about"], outcomes(results)
    ours, *others = about["engines"]
    limit = about["timeout"] * 1e3
    out = []
    for other in others:
        ratios = [r for r in (o.ratio(other["name"]) for o in all_of_them) if r is not None]
        failing = [o.counts.get(other["name"], limit) / o.counts.get(ours["name"], limit)
                   for o in all_of_them if other["name"] in o.figures]
        out.append("* %s ÷ %s: geometric mean %.2f over %d families that both answer; %.2f over all %d, "
                   "those without an answer taken as %g s"
                   % (other["title"], ours["title"], mean(ratios), len(ratios), mean(failing), len(failing), about["timeout"]))
        out.append(processor_times(all_of_them, other))
    ratios = [r for r in (o.ratio() for o in all_of_them) if r is not None]
    out.append("* best other ÷ %s: geometric mean %.2f over %d" % (ours["title"], mean(ratios), len(ratios)))
    lost = [o for o in all_of_them if o.lost()]
    out.append("* lost by more than %d ms and %g ×: %d of %d%s" % (
        LOST_MS, LOST_TIMES, len(lost), len(all_of_them), "".join("\n  * " + loss(o) for o in lost)))
    out.append("* most resident at %s: %.0f MiB" % (
        about["memory"], max((o.figures[o.ours]["peak_bytes"] for o in all_of_them), default=0) / MIB))
    cores = [o.cores() for o in all_of_them if o.times.get(o.ours, 0) > 100]
    if cores:
        out.append("* cores in use, median of the %d families over 100 ms: %.2f" % (len(cores), statistics.median(cores)))
    return out


def processor_times(all_of_them, other):
    """How many times another engine's processor time is ours, where it answers."""
    both = [o for o in all_of_them if {o.ours, other["name"]} <= o.counts.keys()]
    times = {o.name: max(o.of_best("cpu_ms"), LEAST_CPU_MS) / max(o.of_best("cpu_ms", other["name"]), LEAST_CPU_MS)
             for o in both}
    above = sorted((n for n in times if times[n] > 2), key=times.get, reverse=True)
    return "* processor time of ours ÷ %s's, each at least %d ms: geometric mean %.2f; above 2: %d of %d%s" % (
        other["title"], LEAST_CPU_MS, mean(list(times.values())), len(above), len(times),
        "".join("\n  * %s %.2f" % (name, times[name]) for name in above))


def loss(outcome):
    best = "%s %s" % (outcome.titles[outcome.best], short(outcome.counts[outcome.best]))
    return "%s: %s, %s" % (outcome.name, short(outcome.counts.get(outcome.ours)) or "no answer that counts", best)


def details(results):
    """What fails, and where answers differ: rows and examples of each."""
    out = []
    for outcome in outcomes(results):
        failures = [(n, f["error"]) for n, f in outcome.figures.items() if "error" in f]
        out += ["* %s: %s fails: %s" % (outcome.name, outcome.titles[n], why) for n, why in failures]
        if outcome.differ:
            out += ["* %s: %s has %d rows, like %s" % (
                outcome.name, outcome.titles[n], outcome.answers[n]["rows"], json.dumps(outcome.figures[n]["example"][:2], ensure_ascii=False)[:200])
                for n in outcome.answers]
    skipped = ["* %s: not run, %s" % (f["name"], f["skipped"]) for f in results["families"] if "skipped" in f]
    return ["What fails and what differs:", "", *out, *skipped] if out or skipped else []


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        print(table(json.load(file)), end="")
