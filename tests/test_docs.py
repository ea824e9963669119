"""Public docstrings: references, and an interpreter without docstrings."""

import inspect
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

import pytest

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
def test_citations_are_among_the_references(found):
    text = inspect.getdoc(found) or ""
    cited = set(re.findall(r"\[(\d+)\]_", text))
    assert cited <= set(re.findall(r"^\.\. \[(\d+)\] ", text, re.MULTILINE))


@pytest.mark.slow
def test_without_docstrings():
    pytest.importorskip("dask")
    code = "import rankcore.dask as d; m = d.PRank(3, margin=1.0); print(m.__doc__, m.margin)"
    run = subprocess.run(
        [sys.executable, "-OO", "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["None", "1.0"]
