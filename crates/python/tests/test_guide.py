"""The programs of the guide run."""

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[3] / "docs/src/guide/python.md"
PROGRAMS = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)


def test_there_are_programs():
    assert len(PROGRAMS) == 6


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_it_runs(program, tmp_path, monkeypatch, capsys):
    for name in re.findall(r"duckdb|polars|pyarrow|rdflib", program):
        pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    exec(compile(program, str(GUIDE), "exec"), {"__name__": "guide"})
    assert capsys.readouterr().out
