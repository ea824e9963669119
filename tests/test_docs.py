"""Public docstrings: references, copies for clusters, an interpreter without docstrings."""

import inspect
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

import pytest

import rankcore

MODULES = [
    "rankcore",
    "rankcore.bounds",
    "rankcore.clicks",
    "rankcore.datasets",
    "rankcore.explain",
    "rankcore.interleaving",
    "rankcore.metrics",
    "rankcore.model_selection",
    "rankcore.preference",
    "rankcore.structured",
]
if find_spec("distributed"):
    MODULES.append("rankcore.dask")


def public():
    """Public classes and functions, by name."""
    for module in map(import_module, MODULES):
        for name in sorted({*module.__all__} - {"dask"}):  # an extra
            found = getattr(module, name)
            if inspect.isclass(found) or inspect.isfunction(found):
                yield f"{module.__name__}.{name}", found


@pytest.mark.parametrize("found", [pytest.param(found, id=name) for name, found in public()])
def test_what_a_docstring_cites_is_among_its_references(found):
    text = inspect.getdoc(found) or ""
    cited = set(re.findall(r"\[(\d+)\]_", text))
    assert cited <= set(re.findall(r"^\.\. \[(\d+)\] ", text, re.MULTILINE))


def entries(found, title):
    """Entries of a section of a docstring, by their first lines."""
    text = re.search(rf"^{title}\n-+\n(.*?)(?=\n\n[A-Z]|\Z)", inspect.getdoc(found), re.S | re.M)
    return dict(re.findall(r"^(\S.*)\n((?: +.*\n?)*)", text[1], re.M))


@pytest.mark.parametrize("title", ["Parameters", "Attributes"])
def test_learners_on_clusters_document_what_those_in_memory_do(title):
    dask = pytest.importorskip("rankcore.dask")
    differ = [
        (name, entry)
        for name in dask.__all__
        if inspect.isclass(getattr(dask, name))
        for here in [entries(getattr(rankcore, name), title)]
        for there in [entries(getattr(dask, name), title)]
        for entry in here.keys() | there.keys()
        if not re.fullmatch(
            re.escape(here.get(entry, "").strip()) + r"(\s+On a cluster .*)?",
            there.get(entry, "").strip(),
        )
        or entry not in here
        or entry not in there
    ]
    assert differ == []


@pytest.mark.slow
def test_without_docstrings():
    pytest.importorskip("dask")
    code = "import rankcore.dask as d; m = d.PRank(3, margin=1.0); print(m.__doc__, m.margin)"
    run = subprocess.run(
        [sys.executable, "-OO", "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["None", "1.0"]
