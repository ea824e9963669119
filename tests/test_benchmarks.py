"""Benchmarks run: nobody looks at them between two releases."""

import ast
import platform
import re
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from inspect import signature
from pathlib import Path

import pytest

import rankcore as rc

ROOT = Path(__file__).parents[1]
# All but the comparison of two checkouts, which has a test of its own, and what they share.
NAMES = sorted({path.stem for path in ROOT.glob("benchmarks/[!_]*.py")} - {"against", "measure"})
if not NAMES:
    pytest.skip("the benchmarks are not beside the tests", allow_module_level=True)


def test_results_include_date_machine_and_versions(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    found = import_module("benchmarks.measure").machine("threadpoolctl", "no-such-peer")
    assert re.match(r"\d{4}-\d\d-\d\d, \S.*, \d+ cores, Python ", found)
    assert platform.machine() in found
    for name in ("numpy", "rankcore", "threadpoolctl"):
        assert f"{name} {version(name)}" in found
    assert "no-such-peer" not in found


@pytest.mark.parametrize("folder", ["benchmarks", "reproduce", "examples"])
def test_learners_are_made_with_parameters_that_they_have(folder):
    unknown, n_calls = [], 0
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                name = node.func.attr
                kind = getattr(rc, name) if name in rc.__all__ else None
                if isinstance(kind, type):
                    n_calls += 1
                    given = {one.arg for one in node.keywords if one.arg}
                    unknown += [(path.name, name, *given - signature(kind).parameters.keys())]
    assert n_calls > 5
    assert [one for one in unknown if len(one) > 2] == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # made data, few passes
def test_every_timed_function_runs(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT)
    paths = import_module("benchmarks.against").paths(tmp_path)
    assert len(paths) > 30
    for run in paths.values():
        run()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_benchmarks_run_small(name):
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", name, "--small", "--repeat", "1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    missing = re.search(r"ModuleNotFoundError: No module named '(\w+)", done.stderr)
    if missing and missing[1] not in {"benchmarks", "rankcore"}:
        pytest.skip(f"{missing[1]} is not installed")
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(done.stdout.splitlines()) > 1
