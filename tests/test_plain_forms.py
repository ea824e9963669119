"""Docstrings and guides lead to the plain forms of learners in tests/reference."""

import ast
import re
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import rankcore as rc
from rankcore._core.doc_links import GUIDES
from rankcore._core.public_names import HOME

ROOT = Path(__file__).parents[1]
FUNCTION = r"``(tests/reference/\w+\.py)``, ``(\w+)``"
# It adds probabilities to another learner, and has no loop of its own.
WITHOUT = {"CalibratedOrdinal"}
LEARNERS = [
    name
    for name in HOME
    if isinstance(getattr(rc, name), type) and issubclass(getattr(rc, name), BaseEstimator)
]


def functions(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", sorted({*LEARNERS} - WITHOUT))
def test_docstrings_name_the_plain_form(name):
    text = getattr(rc, name).__doc__
    _, said, after = text.partition("Plain form: ")
    assert said
    named = re.findall(FUNCTION, after.partition(".\n")[0] + ".")
    assert named
    for path, function in named:
        assert function in functions(path), (path, function)


def test_there_are_learners_of_every_family():
    assert len(LEARNERS) > 20
    assert {*LEARNERS} > WITHOUT


@pytest.mark.parametrize("guide", sorted({*GUIDES.values()} - {"probabilities"}))
def test_guides_name_plain_forms(guide):
    path = ROOT / "docs" / f"{guide}.md"
    if not path.exists():
        pytest.skip("the guides are not here")
    text = path.read_text(encoding="utf-8")
    linked = re.findall(r"`(\w+)` in \[(tests/reference/\w+\.py)\]\(\.\./(\S+)\)", text)
    quoted = re.findall(r"`(tests/reference/\w+\.py)`, `(\w+)`", text)
    assert linked or quoted
    for function, shown, target in linked:
        assert shown == target
        assert function in functions(target)
    for target, function in quoted:
        assert function in functions(target)


def test_every_mention_of_a_plain_form_is_a_file():
    if not (ROOT / "docs").exists():
        pytest.skip("the guides are not here")
    places = [*(ROOT / "docs").glob("*.md"), *(ROOT / "src" / "rankcore").rglob("*.py")]
    named = {
        name
        for path in [*places, ROOT / "CONTRIBUTING.md"]
        if path.exists()
        for name in re.findall(r"tests/reference/\w+\.\w+", path.read_text(encoding="utf-8"))
    }
    assert len(named) > 5
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
