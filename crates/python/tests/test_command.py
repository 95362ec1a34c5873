"""The command that the package installs."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from snowmelt import _native

COMMAND = Path(sys.executable).parent / "snowmelt"
pytestmark = pytest.mark.skipif(
    not hasattr(_native, "run_command"), reason="the wheel was built without the command"
)


def run(*args, **options):
    return subprocess.run([COMMAND, *map(str, args)], capture_output=True, text=True, **options)


def test_version_and_usage():
    assert run("--version").stdout == f"snowmelt {version('snowmelt')}\n"
    assert run("nonsense").returncode == 2
    failed = run("stats", "/nowhere/at/all")
    assert failed.returncode == 1 and failed.stderr.startswith("snowmelt: ")


def test_it_loads_and_answers(tmp_path):
    (tmp_path / "x.ttl").write_text("<urn:s> <urn:p> 7 .")
    assert run("load", tmp_path / "db", tmp_path / "x.ttl").returncode == 0
    answer = run("query", tmp_path / "db", "SELECT ?o { ?s ?p ?o }")
    assert answer.returncode == 0 and "7" in answer.stdout
    import snowmelt

    with snowmelt.Database.open(tmp_path / "db") as db:
        assert len(db) == 1


def test_a_closed_pipe_is_no_traceback(tmp_path):
    shell = subprocess.run(f"{COMMAND} --help | head -1", shell=True, capture_output=True, text=True)
    assert shell.stdout and "Traceback" not in shell.stderr
    assert os.path.exists(COMMAND)
