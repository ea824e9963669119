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
    "rankcore.online",
    "rankcore.preference",
    "rankcore.structured",
]
if find_spec("distributed"):
    MODULES.append("rankcore.dask")


def public(module):
    """Public classes and functions of a module, by name."""
    module = import_module(module)
    for name in sorted({*module.__all__} - {"dask"}):  # an extra
        found = getattr(module, name)
        if inspect.isclass(found) or inspect.isfunction(found):
            yield f"{module.__name__}.{name}", found


@pytest.mark.parametrize("module", MODULES)
def test_citations_are_among_the_references(module):
    for name, found in public(module):
        text = inspect.getdoc(found) or ""
        cited = set(re.findall(r"\[(\d+)\]_", text))
        assert cited <= set(re.findall(r"^\.\. \[(\d+)\] ", text, re.MULTILINE)), name


# Checks of numpydoc: sections (GL), a summary of one line that begins with a verb and ends in a
# period (SS), parameters as in the signature (PR), returned (RT) and yielded values (YD). Functions
# document all parameters and what they return; methods and results may leave out what their
# signature or class says. Not required: examples, "See Also", long summaries.
CHECKS = {
    *("GL02", "GL03", "GL05", "GL06", "GL07", "GL08", "GL09", "GL10"),
    *("SS01", "SS02", "SS03", "SS04", "SS05", "SS06"),
    *("PR03", "PR05", "PR06", "PR09", "PR10", "RT02", "RT05"),
}
OF_FUNCTIONS = {"PR01", "PR02", "RT01", "YD01"}
METHOD = re.compile(r"\.[A-Z]")  # a class, or a method of one


def documented(module):
    """Full names of public classes, functions and methods of a module."""
    for name, found in public(module):
        yield f"{found.__module__}.{found.__qualname__}" if inspect.isfunction(found) else name
        for method, member in inspect.getmembers(found, inspect.isfunction):
            inherited = not (member.__module__ or "").startswith("rankcore")
            if inspect.isclass(found) and not method.startswith("_") and not inherited:
                yield f"{name}.{method}"


@pytest.mark.parametrize("module", MODULES)
def test_docstrings_pass_the_checks_of_numpydoc(module):
    validate = pytest.importorskip("numpydoc.validate").validate
    failed = {}
    for name in documented(module):
        required = CHECKS if METHOD.search(name) else CHECKS | OF_FUNCTIONS
        errors = [error for error in validate(name)["errors"] if error[0] in required]
        failed |= {name: errors} if errors else {}
    assert not failed


@pytest.mark.slow
def test_package_runs_without_docstrings():
    pytest.importorskip("dask")
    code = "import rankcore.dask as d; m = d.PRank(3, margin=1.0); print(m.__doc__, m.margin)"
    run = subprocess.run(
        [sys.executable, "-OO", "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["None", "1.0"]
