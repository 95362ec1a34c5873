"""How far the optimiser's estimates are off: see qerrors.sh, which calls it.

Each query of a data set runs once with `explain=analyze`. The q-error of an operator is by how many
times more or fewer rows came than expected, both taken as at least one; operators that were cut
short have none. Then half of the subjects are replaced by updates, and all is asked again.
"""

import json
import os
import re
import sys
import time
from urllib.parse import urlencode
import urllib.error
import urllib.request

import answers
import engines
import queries
import wire

# A replaced subject has another name, and an eighth of its triples are gone: those whose subject and
# predicate together hash to it. Terms are replaced by the first digit of their hash, so that a
# subject and what refers to it keep together.
REPLACE = """
DELETE { ?s ?p ?o } INSERT { ?t ?p ?u }
WHERE {
  ?s ?p ?o
  BIND(isIRI(?s) && !STRENDS(STR(?s), "~") && CONTAINS("%(digits)s", SUBSTR(MD5(STR(?s)), 1, 1)) AS ?of_s)
  BIND(isIRI(?o) && !STRENDS(STR(?o), "~") && ?p NOT IN (%(kept)s)
       && CONTAINS("%(digits)s", SUBSTR(MD5(STR(?o)), 1, 1)) AS ?of_o)
  FILTER(?of_s || ?of_o)
  BIND(?of_s && CONTAINS("01", SUBSTR(MD5(CONCAT(STR(?s), STR(?p))), 1, 1)) AS ?is_lost)
  BIND(IF(?is_lost, 1/0, IF(?of_s, IRI(CONCAT(STR(?s), "~")), ?s)) AS ?t)
  BIND(IF(?of_o, IRI(CONCAT(STR(?o), "~")), ?o) AS ?u)
}
"""
# Objects of these are named by queries.
KEPT = ["http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "http://www.w3.org/2000/01/rdf-schema#subClassOf",
        "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/country"]
DIGITS = "02468ace"
WORST = 12
# These have the rows of their input, or as many as the text says.
PASSED_ON = ["project", "extend", "sort", "seed", "context", "unit", "values", "nothing"]


def analysed(endpoint, text, seconds):
    form = urlencode({"query": text, "explain": "analyze", "format": "json"}).encode()
    with urllib.request.urlopen(endpoint, form, timeout=seconds) as answer:
        return json.load(answer)


def update(endpoint, text, seconds):
    form = urlencode({"update": text}).encode()
    try:
        with urllib.request.urlopen(endpoint, form, timeout=seconds) as answer:
            answer.read()
    except urllib.error.HTTPError as error:
        sys.exit("the update failed: HTTP %d: %s" % (error.code, error.read().decode(errors="replace")))


def parameters(endpoint, folder):
    path, known = os.path.join(folder, "parameters.rq"), {}
    for parameter in queries.read(path) if os.path.exists(path) else []:
        _, body = wire.ask(endpoint, parameter.filled(known), 600)
        known[parameter.name] = answers.terms_of_json(body)
    return known


def kind_of(step, steps):
    """The class of an operator: its name, and how it restricts or joins."""
    name, detail = step["operator"], step["detail"]
    if name in ("scan", "lookup"):
        parts = [name]
        parts += ["range"] if " if " in detail else []
        parts += ["weighed"] if "× rows" in detail else ["once"] if detail.endswith("once") else []
        return " ".join(parts)
    if name == "path":
        signs = [sign for sign in ("!", "+", "*", "?") if sign in re.sub(r"<[^>]*>", "", detail)]
        return "path " + (signs[0] if signs else "steps")
    if name in PASSED_ON:
        return None
    return name


def quantile(numbers, share):
    return sorted(numbers)[min(len(numbers) - 1, int(len(numbers) * share))] if numbers else float("nan")


def measure(endpoint, chosen, folder, seconds):
    """Operators with their errors, and families without an answer."""
    known, found, failed = parameters(endpoint, folder), [], []
    for family in chosen:
        try:
            # a plan that was made while pages were missing is of another kind
            wire.ask(endpoint, family.filled(known), seconds)
            plan = analysed(endpoint, family.filled(known), seconds)
        except KeyError as missing:
            failed.append((family.name, "no value for %s" % missing))
            continue
        except (OSError, wire.Refused, wire.TooLate) as error:
            failed.append((family.name, error.read().decode()[:200] if hasattr(error, "read") else str(error)))
            continue
        steps = plan["operators"]
        for step in steps:
            error, kind = step["measured"].get("q_error"), kind_of(step, steps)
            if error is not None and kind is not None:
                found.append({"family": family.name, "kind": kind, "error": error,
                              "operator": step["operator"] + " " + step["detail"],
                              "expected": step["estimate"]["rows"], "rows": step["measured"]["rows"]})
    return found, failed


def told(title, found, failed):
    errors = [f["error"] for f in found]
    print("\n## %s\n" % title)
    print("%d operators: median %.2f, 75th percentile %.2f, 90th %.1f, 95th %.1f, 99th %.0f, worst %.0f\n" % (
        len(errors), *(quantile(errors, q) for q in (0.5, 0.75, 0.9, 0.95, 0.99)), max(errors, default=0)))
    print("| class | operators | median | 95th percentile | worst | above 20 |\n|---|---:|---:|---:|---:|---:|")
    kinds = {}
    for f in found:
        kinds.setdefault(f["kind"], []).append(f["error"])
    weight = lambda of: -sum(error > 20 for error in of[1]) * 1e9 - quantile(of[1], 0.95)
    for kind, of in sorted(kinds.items(), key=weight):
        print("| %s | %d | %.2f | %.1f | %.0f | %d |" % (
            kind, len(of), quantile(of, 0.5), quantile(of, 0.95), max(of), sum(error > 20 for error in of)))
    print("\n| worst | family | operator | expected | rows |\n|---:|---|---|---:|---:|")
    for f in sorted(found, key=lambda f: -f["error"])[:WORST]:
        text = f["operator"].replace("|", "\\|")
        print("| %.0f | %s | `%s` | %.1f | %d |" % (
            f["error"], f["family"], text[:110], f["expected"], f["rows"]))
    for name, why in failed:
        print("\nno plan of %s: %s" % (name, " ".join(why.split())))


def replace_half(endpoint, seconds):
    """Replaces half of the subjects, digit by digit of their hashes."""
    kept = ", ".join("<%s>" % iri for iri in KEPT)
    for digit in DIGITS:
        update(endpoint, REPLACE % {"digits": digit, "kept": kept}, seconds)


def main():
    dataset, folder, data, *more = sys.argv[1:]
    settings = {
        "engines": os.path.join(folder, "engines"), "snowmelt": os.environ["SNOWMELT"],
        "threads": len(os.sched_getaffinity(0)), "memory": os.environ.get("MEMORY") or "256MiB",
        "load_memory": os.environ.get("LOAD_MEMORY") or "4GiB",
    }
    seconds, out = float(os.environ.get("TIMEOUT") or "60"), os.environ["OUT"]
    snowmelt = engines.Engine("snowmelt", os.path.join(folder, "qerrors"), settings)
    queries_of = os.path.join(engines.HERE, dataset)
    chosen = queries.read_all([queries_of, *more], os.environ.get("ONLY") or "*")
    snowmelt.load(data)
    results = {"dataset": dataset, "data_bytes": os.path.getsize(data), "version": snowmelt.find(),
               "date": time.strftime("%F", time.gmtime())}
    snowmelt.start()
    try:
        endpoint = snowmelt.fill(snowmelt.adapter["endpoint"])
        for title, step in (("After the load", None), ("After half was replaced", replace_half)):
            if step:
                if os.environ.get("REPLACE") == "no":
                    break
                begun = time.monotonic()
                step(endpoint, 3600)
                print("\n# replaced in %.0f s" % (time.monotonic() - begun))
            found, failed = measure(endpoint, chosen, queries_of, seconds)
            told(title, found, failed)
            sys.stdout.flush()
            results[title] = {"operators": found, "failed": failed}
            with open(out, "w") as file:
                json.dump(results, file, indent=1)
    finally:
        snowmelt.stop()
    print("\n# figures %s" % out)


if __name__ == "__main__":
    main()
