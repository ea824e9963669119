"""Benchmarks run: nobody looks at them between two releases."""

import ast
import os
import platform
import re
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from inspect import signature
from pathlib import Path
from typing import ClassVar

import pytest

import rankcore as rc

ROOT = Path(__file__).parents[1]
NAMES = sorted(path.stem for path in (ROOT / "benchmarks").glob("[!_]*.py"))
if not NAMES:
    pytest.skip("the benchmarks are not beside the tests", allow_module_level=True)


def test_results_name_the_day_the_machine_and_the_versions(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    found = import_module("benchmarks.measure").machine("threadpoolctl", "no-such-peer")
    assert re.match(r"\d{4}-\d\d-\d\d, \S.*, \d+ cores, Python ", found)
    assert platform.machine() in found
    for name in ("numpy", "rankcore", "threadpoolctl"):
        assert f"{name} {version(name)}" in found
    assert "no-such-peer" not in found


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_benchmarks_find_what_they_import(name, monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    try:
        import_module(f"benchmarks.{name}")
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] in {"benchmarks", "rankcore"}:
            raise
        pytest.skip(f"{error.name} is not installed")


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
def test_every_path_that_is_timed_runs(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT)
    paths = import_module("benchmarks.against").paths(tmp_path)
    assert len(paths) > 30
    for run in paths.values():
        run()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_one_benchmark_prints_its_table(monkeypatch, capsys):
    monkeypatch.syspath_prepend(ROOT)
    monkeypatch.setattr("benchmarks.prank.N_TRAIN", 2000)
    import_module("benchmarks.prank").run(1)
    assert "prank" in capsys.readouterr().out.lower()


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """A copy of the benchmarks in which every size of 1,000 or more is a hundredth."""
    folder = tmp_path_factory.mktemp("small")
    for name in ("examples", "reproduce", "tests"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "benchmarks").mkdir()
    for path in (ROOT / "benchmarks").glob("*.py"):
        tree = Smaller().visit(ast.parse(path.read_text(encoding="utf-8")))
        text = ast.unparse(ast.fix_missing_locations(tree))
        (folder / "benchmarks" / path.name).write_text(text, encoding="utf-8")
    return folder


class Smaller(ast.NodeTransformer):
    """Divides sizes, and gives generators of data that are called without a size a small one."""

    DEFAULTS: ClassVar = {"make_letor": 25, "make_ordinal": 2500, "make_bipartite": 2500}

    def visit_Constant(self, node):
        if type(node.value) is int and node.value >= 1000:
            return ast.Constant(max(20, node.value // 100))
        return node

    def visit_Call(self, node):
        self.generic_visit(node)
        name = getattr(node.func, "attr", getattr(node.func, "id", None))
        sized = node.args or any(one.arg in {"n_samples", "n_queries"} for one in node.keywords)
        if name in self.DEFAULTS and not sized:
            node.args.append(ast.Constant(self.DEFAULTS[name]))
        return node


# Their sizes depend on each other otherwise than by a common factor, or take minutes all the same.
UNFIT = {"growth", "letor", "limits", "overview", "prank", "tree_scores", "pairwise", "streams"}
UNFIT |= {"trees", "service", "against", "measure"}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*NAMES} - UNFIT))
def test_benchmarks_run_small(name, small):
    sizes = {
        "RANKCORE_CACHE_MB": "2",
        "RANKCORE_STREAM_MB": "2",
        "RANKCORE_CLUSTER_ROWS": "2000",
        "RANKCORE_CLUSTER_QUERIES": "40",
        "RANKCORE_CLUSTER_ROUNDS": "5",
    }
    source = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", name, "--repeat", "1"],
        cwd=small,
        env=os.environ | sizes | {"PYTHONPATH": source},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    missing = re.search(r"ModuleNotFoundError: No module named '(\w+)", done.stderr)
    if missing and missing[1] not in {"benchmarks", "rankcore"}:
        pytest.skip(f"{missing[1]} is not installed")
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(done.stdout.splitlines()) > 1
