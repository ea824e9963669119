"""Every public learner declares what it is, and the docs say the same."""

import re
from inspect import isclass, signature
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator, clone

import rankcore as rc
from declared import LEARNERS, SAVED, fitted, learns_from, name_of
from rankcore._core.declaration import declaration_of
from rankcore._core.model_spec import has_description
from rankcore.cli.registry import EVERY_LEARNER

DOCS = Path(__file__).parents[2] / "docs"
needs_docs = pytest.mark.skipif(not DOCS.exists(), reason="the guides are not beside the tests")
# What the first column of the table in docs/scikit_learn.md calls each meaning of a weight.
MEANINGS = {
    "visits": "number of visits",
    "draws": "factor of the expected number of times that a member takes the row",
    "steps": "factor of perceptron steps|factor of the step|number of successive steps",
    "loss": "factor of the loss",
    "pairs": "factor of each pair of the row",
}


def estimators():
    """Public classes of estimators, but for bases of rules that users complete."""
    for name in rc.__all__:
        if name[0].isupper() and isclass(kind := getattr(rc, name)):
            methods = [getattr(kind, name) for name in dir(kind) if not name.startswith("_")]
            to_complete = any(getattr(one, "__isabstractmethod__", False) for one in methods)
            if issubclass(kind, BaseEstimator) and not to_complete:
                yield kind


every_learner = pytest.mark.parametrize("kind", LEARNERS, ids=lambda kind: kind.__name__)


def table(page, heading, columns):
    """Rows of the first table below a heading, as texts of the first columns."""
    text = (DOCS / page).read_text(encoding="utf-8").split(f"\n## {heading}\n")[1]
    rows = re.search(r"^\|---.*\n((?:\|.*\n)+)", text, re.MULTILINE)[1].splitlines()
    return [[cell.strip() for cell in row.split("|")[1 : columns + 1]] for row in rows]


def names_in(cell):
    return set(re.findall(r"`(\w+)`", cell))


@pytest.mark.parametrize("kind", [*estimators()], ids=lambda kind: kind.__name__)
def test_public_estimators_have_declarations(kind):
    assert declaration_of(kind) is not None, (
        f"{kind.__name__} is public and declares nothing: give the class a _declaration, as its "
        "siblings have one (src/rankcore/_core/declaration.py)"
    )


@every_learner
def test_instances_are_unfitted_estimators_of_the_learner(kind):
    found = declaration_of(kind).instances()
    if learns_from(kind) in ("outputs", "comparisons"):
        pytest.skip("its task or its judge is the user's")
    assert found, f"{kind.__name__}._declaration has no instances, so that no test fits it: add one"
    assert {type(one) for one in found} == {kind}
    names = [name_of(one) for one in found]
    assert len({*names}) == len(names), "instances have equal names; give them other parameters"
    for one in found:
        assert not vars(one).keys() & {"_state", "n_features_in_"}
        assert repr(clone(one)) == repr(one)


@needs_docs
@every_learner
def test_the_declared_guide_describes_the_learner(kind):
    path = DOCS / f"{declaration_of(kind).guide}.md"
    assert path.exists(), f"the guide of {kind.__name__}._declaration does not exist: {path}"
    assert kind.__name__ in path.read_text(encoding="utf-8"), f"{path} does not name the learner"


@needs_docs
@every_learner
def test_docs_table_of_weights_equals_the_declarations(kind):
    declared = declaration_of(kind).weights
    weighted = hasattr(kind, "fit") and "sample_weight" in signature(kind.fit).parameters
    assert (declared is not None) == weighted, (
        f"{kind.__name__}._declaration.weights must say what sample_weight means, if fit takes it"
    )
    rows = table("scikit_learn.md", "Weights", 2)
    found = [text for learners, text in rows if kind.__name__ in names_in(learners)]
    assert len(found) == (declared is not None), (
        f"docs/scikit_learn.md must have {kind.__name__} in one row of the table of weights"
    )
    assert declared is None or re.search(MEANINGS[declared], found[0])


@needs_docs
def test_docs_table_of_forms_equals_the_forms_of_the_instances():
    documented = {
        (form, name)
        for forms, learners, *_ in table("model_file.md", "Forms", 2)
        for form in names_in(forms)
        for name in names_in(learners)
        if form != "none"
    }
    documented = {pair for pair in documented if hasattr(rc, pair[1])}
    found = set()
    for one in SAVED:
        scoring = fitted(one)._spec().scoring
        found |= {(scoring.form, type(one).__name__)} if scoring.form != "none" else set()
    by_clicks = {pair for pair in documented if learns_from(getattr(rc, pair[1])) == "clicks"}
    assert found == documented - by_clicks


@every_learner
def test_the_command_has_a_name_for_the_learner(kind):
    if not has_description(kind) or learns_from(kind) == "clicks":
        pytest.skip("the command has no file of its model, or no file of its data")
    if "estimator" in signature(kind).parameters:
        pytest.skip("the command learns one estimator at a time")
    assert kind.__name__ in {one.estimator for one in EVERY_LEARNER}, (
        f"`rankcore train` has no name for {kind.__name__}: add a line to rankcore/cli/registry.py"
    )
