"""Types in the signatures of public functions, as help() shows them."""

import ast
import importlib
import inspect
import re
import sys
import typing
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import rankcore
from rankcore._core.params import Options
from rankcore.ordinal.base import OnlineOrdinalClassifier

MODULES = [
    "rankcore",
    "rankcore.bounds",
    "rankcore.callbacks",
    "rankcore.clicks",
    "rankcore.clicks.online",
    "rankcore.dask",
    "rankcore.datasets",
    "rankcore.explain",
    "rankcore.exporters",
    "rankcore.interleaving",
    "rankcore.metrics",
    "rankcore.model_selection",
    "rankcore.online",
    "rankcore.plotting",
    "rankcore.preference",
    "rankcore.progress",
    "rankcore.structured",
]
# Of an extra, whose names need what may not be installed.
ABSENT = set() if find_spec("dask") else {"rankcore.dask"}
# Parameters that are passed on, or that may be any object.
ANYTHING = {"args", "params", "options", "_", "answer", "more"}
# Results of rooms above `plotting`, which may not import them.
DRAWN = {"why", "found", "path", "ratings", "ranker"}
STARS = dict.fromkeys(inspect._ParameterKind, "") | {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}
# Fields of classes that users are given and do not make.
RESULTS = {"Iteration", "LetorData", "QueryExplanation"}
ESTIMATORS = {
    name: found
    for module in map(importlib.import_module, {*MODULES} - {"rankcore.dask"})
    for name, found in ((name, getattr(module, name)) for name in getattr(module, "__all__", ()))
    if inspect.isclass(found) and issubclass(found, BaseEstimator)
}
LEARNERS = sorted(
    name
    for name in rankcore.__all__
    if name[0].isupper() and inspect.isclass(getattr(rankcore, name))
)


def functions():
    """Names and signatures of public functions, constructors and methods."""
    for module in map(importlib.import_module, sorted({*MODULES} - ABSENT)):
        for name in getattr(module, "__all__", ()):
            if f"{module.__name__}.{name}" in ABSENT:
                continue
            found = getattr(module, name)
            if inspect.isclass(found):
                yield f"{module.__name__}.{name}", found, inspect.signature(found)
                for method, value in inspect.getmembers(found, callable):
                    home = getattr(value, "__module__", None) or ""
                    if not method.startswith("_") and home.startswith("rankcore"):
                        yield f"{module.__name__}.{name}.{method}", value, inspect.signature(value)
            elif callable(found):
                yield f"{module.__name__}.{name}", found, inspect.signature(found)


def test_parameters_have_types():
    """Only inputs and outputs of structured tasks, which are the task's own, are of any type."""
    untyped = [
        f"{name}({parameter.name})"
        for name, _, signature in functions()
        for parameter in signature.parameters.values()
        if parameter.annotation in (parameter.empty, typing.Any, "Any")
        and parameter.name not in ANYTHING | {"self", "cls"}
        and not (".plot_" in name and parameter.name in DRAWN)
        and name.rsplit(".")[-1] not in RESULTS
        and not re.search(r"structured|Structured", name)
    ]
    assert untyped == []


@pytest.mark.parametrize("name", LEARNERS)
def test_annotated_options_equal_the_accepted_ones(name):
    learner = getattr(rankcore, name)
    hints = typing.get_type_hints(learner.__init__)
    constraints = {}
    for one in reversed(learner.__mro__):
        constraints |= vars(one).get("_constraints", {})
    for parameter, constraint in constraints.items():
        parts = {hints[parameter], *typing.get_args(hints[parameter])} if parameter in hints else ()
        accepted = {
            option
            for one in getattr(constraint, "constraints", (constraint,))
            if isinstance(one, Options)
            for option in one.options
        }
        if str in parts or not parts:
            continue  # other strings are accepted too, such as names of measures
        shown = {
            value
            for part in parts
            if typing.get_origin(part) is typing.Literal
            for value in typing.get_args(part)
        }
        assert shown == accepted, parameter


@pytest.mark.parametrize("name", LEARNERS)
def test_types_resolve(name):
    learner = getattr(rankcore, name)
    for method in ("__init__", "fit", "partial_fit", "predict", "score", "contributions"):
        if hasattr(learner, method):
            typing.get_type_hints(getattr(learner, method))


def test_help_names_the_types():
    text = str(inspect.signature(rankcore.PRank.fit))
    assert "X: 'RowsLike | RowBlocks', y: 'ArrayLike | None' = None" in text
    text = str(inspect.signature(rankcore.metrics.ndcg_score))
    assert text.startswith("(y_true: 'ArrayLike', y_score: 'ArrayLike', *, qid: 'ArrayLike | None'")
    text = str(inspect.signature(rankcore.PRank))
    assert "tie: \"Literal['crammer', 'strict']\" = 'crammer'" in text


def documented_parameters(doc):
    """Names and types in the section Parameters of a docstring."""
    section = re.search(
        r"^Parameters\n-+\n(.*?)(?=\n\n\w[\w ]*\n-{3,}\n|\Z)", doc, re.DOTALL | re.M
    )
    for line in re.findall(r"^\S.*", section[1] if section else "", re.MULTILINE):
        names, _, kind = line.partition(" : ")
        for name in names.split(", "):
            yield name, kind


def default_of(kind):
    """Return the default that the type of a parameter in a docstring names."""
    value = re.search(r"default=(.*)$", kind)
    if value is not None:
        return eval(value[1], {"__builtins__": {}, "numpy": np})
    return None if kind.endswith("optional") else inspect.Parameter.empty


def written_docstring(learner):
    """Return the docstring as it stands in the file of a class."""
    tree = ast.parse(inspect.getsource(sys.modules[learner.__module__]))
    (written,) = (
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == learner.__name__
    )
    return inspect.cleandoc(ast.get_docstring(written) or "")


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_docstrings_of_estimators_have_the_parameters_of_the_signature(name):
    learner = ESTIMATORS[name]
    assert "__init__" in vars(learner), "write the constructor in the class"
    shown = [
        (one.name, one.default)
        for one in list(inspect.signature(learner.__init__).parameters.values())[1:]
    ]
    written = documented_parameters(written_docstring(learner))
    assert [(parameter, default_of(kind)) for parameter, kind in written] == shown


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_at_most_three_classes_stand_above_an_estimator(name):
    above = [
        one.__name__
        for one in ESTIMATORS[name].__mro__[1:]
        if one is not object and not one.__module__.startswith("sklearn.")
    ]
    assert len(above) <= 3, above


def parameter_texts(doc):
    """Texts of the parameters in a docstring, by name, type and default."""
    section = re.search(
        r"^Parameters\n-+\n(.*?)(?=\n\n\w[\w ]*\n-{3,}\n|\Z)", doc, re.DOTALL | re.M
    )
    parts = re.split(r"^(\S.*)\n", section[1] + "\n", flags=re.MULTILINE)
    return {
        head: " ".join(text.split()) for head, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def test_learners_of_ranks_describe_a_parameter_in_the_same_words():
    """A learner may add sentences; seeds and threads differ in what they are for."""
    texts = {}
    for name in LEARNERS:
        learner = getattr(rankcore, name)
        if not issubclass(learner, OnlineOrdinalClassifier) or name.startswith("Python"):
            continue
        for head, text in parameter_texts(written_docstring(learner)).items():
            if not head.startswith(("random_state", "n_jobs")):
                texts.setdefault(head, {})[name] = text
    assert len(texts["shuffle : bool, default=True"]) >= 12
    for head, found in texts.items():
        common = min(found.values(), key=len)
        assert {n: text for n, text in found.items() if not text.startswith(common)} == {}, head


def test_docstrings_of_functions_have_the_names_of_the_signature():
    wrong = [
        (name, documented, named)
        for name, function, signature in functions()
        if (documented := [one for one, _ in documented_parameters(inspect.getdoc(function) or "")])
        and documented
        != (
            named := [
                f"{STARS[one.kind]}{one.name}"
                for one in signature.parameters.values()
                if one.name != "self"
            ]
        )
    ]
    assert wrong == []


def test_docstrings_name_the_defaults_of_the_signature():
    wrong = [
        (f"{name}({parameter})", kind, default)
        for name, function, signature in functions()
        for defaults in [{one.name: one.default for one in signature.parameters.values()}]
        for parameter, kind in documented_parameters(inspect.getdoc(function) or "")
        if (default := defaults.get(parameter)) != (said := default_of(kind))
        # Rooms other than `metrics` may leave a default to the signature.
        and (said is not inspect.Parameter.empty or name.startswith("rankcore.metrics."))
    ]
    assert wrong == []
