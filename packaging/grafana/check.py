#!/usr/bin/env python3
"""Checks that a server has each metric and label that the dashboard uses.

    curl -s http://127.0.0.1:7878/metrics > metrics.txt
    packaging/grafana/check.py metrics.txt
    packaging/grafana/check.py --prometheus http://127.0.0.1:9090

The second form has a Prometheus evaluate each expression, and lists those that it refuses.
"""

import json
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

DASHBOARD = Path(__file__).with_name("snowmelt.json")

# Metrics that are there only while something is wrong.
ABSENT_WHEN_SOUND = {"snowmelt_journal_poisoned", "snowmelt_journal_checkpoints_stalled"}

# Labels that Prometheus adds, or functions need.
ADDED_LABELS = {"job", "instance"}


def expressions(dashboard):
    """Each expression with the title of its panel."""
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"], target["legendFormat"]


def metrics(text):
    """The labels of each metric of a /metrics text."""
    found = {}
    for line in text.splitlines():
        sample = re.match(r"([a-zA-Z_:][\w:]*)(\{.*\})? ", line)
        if sample:
            labels = re.findall(r'(\w+)="', sample[2] or "")
            found.setdefault(sample[1], set()).update(labels)
    return found


def used(expression, legend):
    """The metrics of an expression, and the labels that it and its legend name."""
    labels = set(re.findall(r"(\w+)\s*=~?", expression))
    for group in re.findall(r"\bby \(([^)]*)\)", expression):
        labels.update(name.strip() for name in group.split(","))
    labels.update(re.findall(r"\{\{(\w+)\}\}", legend))
    return re.findall(r"\bsnowmelt_\w+", expression), labels - ADDED_LABELS


def check_names(dashboard, text):
    """Problems of the dashboard with a server's metrics."""
    known = metrics(text)
    problems = []
    for panel, expression, legend in expressions(dashboard):
        names, labels = used(expression, legend)
        for name in names:
            if name not in known and name not in ABSENT_WHEN_SOUND:
                problems.append(f"{panel}: no metric {name}")
        has = set().union(*(known.get(name, set()) for name in names))
        problems += [f"{panel}: no label {label} at {', '.join(names)}" for label in labels - has]
    return problems


def evaluate(server, expression):
    """The number of series of an expression, or the error of Prometheus."""
    for variable, value in {"$__rate_interval": "1m", "$job": ".*", "$instance": ".*"}.items():
        expression = expression.replace(variable, value)
    address = f"{server}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
    try:
        with urllib.request.urlopen(address, timeout=10) as answer:
            return len(json.load(answer)["data"]["result"])
    except urllib.error.HTTPError as error:
        return error.read().decode()


def check_answers(dashboard, server):
    """Expressions that Prometheus refuses; those without a series are printed."""
    problems = []
    for panel, expression, _ in expressions(dashboard):
        answer = evaluate(server, expression)
        if isinstance(answer, str):
            problems.append(f"{panel}: {answer}")
        elif answer == 0:
            print(f"no series: {panel}: {expression}")
    return problems


def main():
    dashboard = json.loads(DASHBOARD.read_text())
    match sys.argv[1:]:
        case ["--prometheus", server]:
            problems = check_answers(dashboard, server.rstrip("/"))
        case [path]:
            problems = check_names(dashboard, Path(path).read_text())
        case _:
            sys.exit(__doc__)
    print("\n".join(problems) or f"{len(list(expressions(dashboard)))} expressions are sound")
    sys.exit(bool(problems))


main()
