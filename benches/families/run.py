"""Families of queries on several engines, query by query: see families.sh, which calls it.

For each family the engines are asked in turns, round after round, so that what else the machine
does meets them alike. Of each the round with the least wall time counts. Raw figures go to a file
in JSON after each family, from which report.py makes the table.
"""

import json
import os
import subprocess
import sys
import time

import answers
import engines
import queries
import report
import wire

# Answers up to so many rows are compared in each round, larger ones in the first.
FEW_ROWS = 10_000


def environment(name, otherwise):
    return os.environ.get(name) or otherwise


class Settings:
    def __init__(self, folder):
        self.rounds = int(environment("ROUNDS", "6"))
        self.timeout = float(environment("TIMEOUT", "60"))
        self.patience = float(environment("PATIENCE", "60"))
        self.only = environment("ONLY", "*")
        self.cold = environment("COLD", "") == "1"
        self.out = environment("OUT", os.path.join(folder, "families"))
        self.engines = environment("ENGINES", "snowmelt,fluree,oxigraph").split(",")
        self.values = {
            "engines": os.path.join(folder, "engines"), "snowmelt": environment("SNOWMELT", "snowmelt"),
            "threads": len(os.sched_getaffinity(0)), "memory": environment("MEMORY", "256MiB"),
            "load_memory": environment("LOAD_MEMORY", "4GiB"), "rival_memory": environment("RIVAL_MEMORY", "8GiB"),
        }


def found(settings, folder):
    """Engines that are there, loaded or not; says what is missing, and how it is had."""
    there = []
    for name in settings.engines:
        engine = engines.KINDS.get(name, engines.Engine)(name, os.path.join(folder, name), settings.values)
        try:
            engine.version = engine.find()
            there.append(engine)
        except engines.Absent as absent:
            print("# NOT MEASURED: %s is not there. To have it: %s" % (engine.title, absent))
    if not there or there[0].name != "snowmelt":
        sys.exit("Snowmelt is not there, or not the first of ENGINES")
    return there


def load(all_of_them, data):
    for engine in all_of_them:
        known = engine.loaded(data)
        how = "was loaded"
        if not known:
            known, how = engine.load(data), "loaded"
        engine.load_figures = known
        print("# %s (%s) %s in %.1f s, %.0f MB on the disk"
              % (engine.title, engine.version, how, known["seconds"], known["bytes"] / 1e6), flush=True)


def parameters(engine, folder):
    """Terms of each parameter, asked of Snowmelt."""
    path = os.path.join(folder, "parameters.rq")
    if not os.path.exists(path):
        return {}
    known = {}
    for parameter in queries.read(path):
        _, _, body = engine.ask(parameter.filled(known), 600)
        known[parameter.name] = answers.terms_of_json(body)
    return known


def ask_once(engine, family, text, settings, figures):
    """One round of one engine, added to its figures. False if it shall have no other."""
    try:
        wall, cpu, answer = engine.ask(text, settings.timeout)
    except wire.TooLate:
        figures["error"] = "no answer in %g s" % settings.timeout
        engine.again()
        return False
    except (wire.Refused, OSError) as error:
        figures["error"] = " ".join(str(error).split())[:300]
        if engine.process.ended():
            figures["error"] = "its process ended: " + figures["error"]
            engine.again()
        return False
    figures["wall_ms"].append(round(wall, 4))
    figures["cpu_ms"].append(round(cpu, 4))
    if figures.get("rows", 0) < FEW_ROWS:
        compare(figures, engine.rows(answer), family.any_rows)
    return sum(figures["wall_ms"]) < settings.patience * 1e3


def compare(figures, rows, any_rows):
    """Notes what an answer has, and whether that is new."""
    told = answers.told([] if any_rows else rows)
    told["rows"] = len(rows)
    if "rows" in figures and not answers.alike(figures, told):
        figures["unsteady"] = True
    figures.update(told, example=sorted(rows, key=str)[:3])


def cold(engine, text, settings):
    """Milliseconds of the first answer of a new process that has read nothing yet."""
    engine.process.kill()
    engine.forget_warm_list()
    engine.start()
    try:
        return round(engine.ask(text, settings.timeout)[0], 4)
    except (wire.TooLate, wire.Refused, OSError):
        engine.again()
        return None


def measure(family, known, there, settings):
    """Figures of one family, by engine."""
    there = [engine for engine in there if engine.asked(family)]
    texts = {engine.name: engine.asked(family).filled(known) for engine in there}
    figures = {engine.name: {"wall_ms": [], "cpu_ms": []} for engine in there}
    asked = list(there)
    if settings.cold:
        figures[there[0].name]["cold_ms"] = cold(there[0], texts[there[0].name], settings)
    for engine in there:
        engine.process.forget_peak()
    for turn in range(settings.rounds):
        begin = turn % len(there)
        for engine in there[begin:] + there[:begin]:
            if engine in asked and not ask_once(
                    engine, family, texts[engine.name], settings, figures[engine.name]):
                asked.remove(engine)
    for engine in there:
        figures[engine.name]["peak_bytes"] = engine.process.peak_bytes()
    return figures


def run(there, chosen, known, settings, about):
    results = {"about": about, "families": []}
    for family in chosen:
        entry = {"name": family.name, "group": family.group, "any_rows": family.any_rows}
        try:
            entry["text"] = family.filled(known)
            entry["engines"] = measure(family, known, there, settings)
            print(report.line(entry, there[0].name), flush=True)
        except KeyError as missing:
            entry["skipped"] = "the data has no value for %%%s%%" % missing.args[0]
            print("%s: %s" % (family.name, entry["skipped"]), flush=True)
        results["families"].append(entry)
        with open(settings.out + ".json", "w") as out:
            json.dump(results, out, indent=1)
    with open(settings.out + ".md", "w") as out:
        out.write(report.table(results))
    print("\n".join(report.summary(results)))
    print("# table %s.md, figures %s.json" % (settings.out, settings.out))


def machine():
    with open("/proc/cpuinfo") as cpus:
        model = next((line.split(":", 1)[1].strip() for line in cpus if line.startswith("model name")), "?")
    kernel = subprocess.run(["uname", "-sr"], capture_output=True, text=True).stdout.strip()
    return "%s, %d processors, %s, load %.2f" % (model, len(os.sched_getaffinity(0)), kernel, os.getloadavg()[0])


def main():
    dataset, folder, data, step, *more = sys.argv[1:]
    settings = Settings(folder)
    there = found(settings, folder)
    load(there, data)
    if step == "load":
        return
    queries_of = os.path.join(engines.HERE, dataset)
    chosen = queries.read_all([queries_of, *more], settings.only)
    twins = os.path.join(queries_of, "twins.sql")
    for engine in there:
        if isinstance(engine, engines.DuckDb) and os.path.exists(twins):
            engine.twins = {twin.name: twin for twin in queries.read(twins)}
    if there[1:]:
        chosen = [family for family in chosen if any(other.asked(family) for other in there[1:])]
    about = {
        "dataset": dataset, "data_bytes": os.path.getsize(data), "machine": machine(),
        "date": time.strftime("%F", time.gmtime()), "rounds": settings.rounds, "timeout": settings.timeout,
        "memory": settings.values["memory"], "rival_memory": settings.values["rival_memory"],
        "engines": [{"name": e.name, "title": e.title, "version": e.version, **e.load_figures} for e in there],
    }
    try:
        for engine in there:
            engine.start()
        run(there, chosen, parameters(there[0], queries_of), settings, about)
        about["load_average_after"] = os.getloadavg()[0]
    finally:
        for engine in there:
            engine.stop()


if __name__ == "__main__":
    main()
