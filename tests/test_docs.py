"""Docstrings of learners document every parameter, whichever class declares it."""

import inspect
import re
import subprocess
import sys
from dataclasses import KW_ONLY
from importlib import import_module
from importlib.util import find_spec
from typing import TypedDict, Unpack

import pytest
from sklearn.base import BaseEstimator

import rankcore
from rankcore._core.docs import documented, parameters

LEARNERS = sorted(
    name
    for name in rankcore.__all__
    if name != "dask"  # an extra
    and inspect.isclass(kind := getattr(rankcore, name))
    and issubclass(kind, BaseEstimator)
)


def everywhere():
    """Learners by name, in memory and, if Dask is there, on a cluster."""
    modules = [rankcore]
    if find_spec("distributed"):
        modules.append(import_module("rankcore.dask"))
    for module in modules:
        for name in sorted(set(module.__all__) - {"dask"}):  # an extra
            kind = getattr(module, name)
            if inspect.isclass(kind) and issubclass(kind, BaseEstimator):
                yield f"{module.__name__}.{name}", kind


@pytest.mark.parametrize("kind", [pytest.param(kind, id=name) for name, kind in everywhere()])
def test_what_a_docstring_cites_is_among_its_references(kind):
    text = inspect.getdoc(kind)
    cited = set(re.findall(r"\[(\d+)\]_", text))
    assert cited <= set(re.findall(r"^\.\. \[(\d+)\] ", text, re.MULTILINE))


def section(text, title):
    """Entries of a section by name: the type and the description."""
    found = re.search(rf"^{title}\n-+\n(.*?)(?=\n\n[A-Z][\w ]+\n---|\Z)", text, re.S | re.M)
    entries = {}
    for entry in re.split(r"\n(?=\S)", found[1]) if found else []:
        head, _, body = entry.partition("\n")
        names, _, kind = head.partition(" : ")
        entries |= {name.strip("* "): (kind, body) for name in names.split(",")}
    return entries


@pytest.mark.parametrize("name", LEARNERS)
def test_docstrings_have_all_parameters(name):
    learner = getattr(rankcore, name)
    entries = section(inspect.getdoc(learner), "Parameters")
    known = inspect.signature(learner).parameters
    assert known.keys() == entries.keys()
    for parameter, (kind, _) in entries.items():
        said = kind.partition("default=")[2]
        default = known[parameter].default
        if said != "PRank()":  # of an estimator, None stands for it
            assert said in ("", f'"{default}"', str(default)) or eval(said) == default, parameter


@pytest.mark.parametrize("name", sorted({*LEARNERS} - {"BipartiteRankBoost", "RankSVMCV"}))
def test_parameters_are_in_the_order_of_the_signature(name):
    learner = getattr(rankcore, name)
    entries = section(inspect.getdoc(learner), "Parameters")
    assert [*entries] == [*inspect.signature(learner).parameters]


@parameters
class Group:
    """A group.

    Parameters
    ----------
    a : int, default=1
        The first.
    b : float, default=0.5
        The second.
    """

    a: int = 1
    _: KW_ONLY
    b: float = 0.5


@parameters
class Own(Group):
    """A class of its own.

    Parameters
    ----------
    c : str
        The third.
    b
        Only here.

    Notes
    -----
    The end.
    """

    _: KW_ONLY
    c: str
    b: float = 2.0


def test_a_class_documents_only_what_differs():
    assert str(inspect.signature(Own)) == (
        "(a: 'int' = 1, *, b: 'float' = 2.0, c: 'str') -> None".replace("'", "")
    )
    entries = section(inspect.getdoc(Own), "Parameters")
    assert entries == {
        "a": ("int, default=1", "    The first."),
        "b": ("float, default=2.0", "    The second.\n    Only here."),
        "c": ("str", "    The third."),
    }
    assert section(inspect.getdoc(Group), "Parameters")["b"] == (
        "float, default=0.5",
        "    The second.",
    )
    assert inspect.getdoc(Own).endswith("Notes\n-----\nThe end.")
    one = Own(3, c="c")
    assert (one.a, one.b, one.c) == (3, 2.0, "c")
    with pytest.raises(TypeError, match="positional"):
        Own(3, 4, c="c")


def test_functions_take_entries_of_others():
    def first(a, b):
        """One.

        Parameters
        ----------
        a, b : int
            Numbers.
        """

    @documented(first)
    def second(a, c):
        """Two.

        Parameters
        ----------
        c : int
            Another.
        """

    entries = section(inspect.getdoc(second), "Parameters")
    assert [*entries] == ["a", "b", "c"]
    assert entries["c"] == ("int", "    Another.")


class Options(TypedDict, total=False):
    per_query: "bool"
    rel: "float | None"


def test_functions_take_sections_of_texts_and_keywords_of_their_options():
    text = """Shared.

    Parameters
    ----------
    rel : float
        The label.
    other : int
        Of another function.

    Returns
    -------
    float
        %s.

    Notes
    -----
    Not these."""

    @documented(text % "At least 0")
    def measure(y, **options: "Unpack[Options]"):
        """One.

        Notes
        -----
        These.
        """

    assert str(inspect.signature(measure)) == (
        "(y, *, per_query: 'bool' = False, rel: 'float | None' = None)"
    )
    assert inspect.getdoc(measure) == (
        "One.\n\nParameters\n----------\nrel : float\n    The label.\n\n"
        "Returns\n-------\nfloat\n    At least 0.\n\nNotes\n-----\nThese."
    )


@pytest.mark.slow
def test_without_docstrings():
    pytest.importorskip("dask")
    code = "import rankcore.dask as d; m = d.PRank(3, margin=1.0); print(m.__doc__, m.margin)"
    run = subprocess.run(
        [sys.executable, "-OO", "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["None", "1.0"]
