"""Model files of earlier commits load, with equal predictions.

Each folder of tests/old_models is named after what its commit wrote for the first time, and was
written there by write.py: files, and predictions as hexadecimal floats or labels.
"""

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import rankcore as rc
from rankcore._core.public_names import HOME, IN_ROOMS
from rankcore._core.scoring import FORMS
from rankcore.io.parameters import learner_named

FOLDER = Path(__file__).parent / "old_models"
FILES = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.glob("*/*.rank"))
# Sums of exponentials and of kernel values are those of the platform's functions.
ROUNDED = {"kernel_prank", "kernel_oap", "kernel_svm", "calibrated"}
# Their commits gave a decision function with columns in the order of ranks, not of classes_.
BY_RANK = {"names"}


def number(value):
    return float.fromhex(value)


def rows_of(stem, written):
    """The rows that a model of this name was asked about."""
    if stem in ("texts", "kinds"):
        return written[stem]
    X = np.array([[number(value) for value in row] for row in written["X"]])
    names = written["models"][stem].get("feature_names_in_")
    return X if names is None else pd.DataFrame(X, columns=names)


def test_all_that_was_written_is_here():
    for folder in FOLDER.glob("*/"):
        if (folder / "predictions.json").exists():
            models = json.loads((folder / "predictions.json").read_text())["models"]
            assert {path.stem for path in folder.glob("*.rank")} == models.keys()
    assert {Path(name).stem for name in FILES} >= {"prank", "trees", "kernel_svm", "texts", "kinds"}


def test_every_layout_that_is_read_is_here():
    """A file of each learner, of each form of scoring, and with each parameter that is retired."""
    learners, scored, params = set(), set(), defaultdict(set)
    for name in FILES:
        content = (FOLDER / name).read_bytes()
        header = content[8 : 8 + int.from_bytes(content[:8], "little")]
        metadata = json.loads(header)["__metadata__"]
        scored.add(metadata["scoring"])
        for key, learner in metadata.items():
            if key.split(".")[-1] == "learner":
                learners.add(learner)
                of = key.removesuffix("learner") + "parameters"
                params[learner] |= json.loads(metadata[of]).keys()
    kinds = {name: learner_named(name) for name in (*HOME, *IN_ROOMS)}
    kinds = {name: kind for name, kind in kinds.items() if kind is not None}
    assert learners == kinds.keys()
    assert scored == {*FORMS, "calibrated"}
    for name, kind in kinds.items():
        # Files written by other commits than this one have them, or what reads them can go.
        assert params[name] - set(kind._get_param_names()) == set(kind._RETIRED), name


@pytest.mark.parametrize("name", FILES)
def test_an_old_file_predicts_as_it_did(name):
    path = FOLDER / name
    written = json.loads((path.parent / "predictions.json").read_text())
    model = rc.load(path)
    rows = rows_of(path.stem, written)
    expected = written["models"][path.stem]
    assert "predict" in expected
    if "feature_names_in_" in expected:
        assert model.feature_names_in_.tolist() == expected.pop("feature_names_in_")
    for method, values in expected.items():
        found = np.ravel(getattr(model, method)(rows))
        if not isinstance(found[0], np.number):
            assert [*map(str, found)] == values
            continue
        values = np.array([number(value) for value in values])
        if path.parent.name in BY_RANK and method == "decision_function":
            last = model[-1] if hasattr(model, "steps") else model
            order = [last.ranks_.tolist().index(one) for one in last.classes_.tolist()]
            values = values.reshape(len(rows), -1)[:, order].ravel()
        if (path.stem in ROUNDED and method != "predict") or path.stem == "kernel_svm":
            np.testing.assert_allclose(found, values, rtol=1e-12, atol=1e-12)
        else:
            assert found.astype(float).tolist() == values.tolist()


@pytest.mark.parametrize("name", [name for name in FILES if Path(name).stem == "prank"])
def test_an_old_file_learns_on(name, tmp_path):
    """As one written now, of the same rows, does."""
    model = rc.load(FOLDER / name)
    written = json.loads((FOLDER / name).parent.joinpath("predictions.json").read_text())
    X = rows_of("prank", written)
    rc.save(model, tmp_path / "again")
    again = rc.load(tmp_path / "again")
    y = model.classes_[np.arange(len(X)) % len(model.classes_)]
    assert np.array_equal(model.partial_fit(X, y).coef_, again.partial_fit(X, y).coef_)


@pytest.mark.parametrize(
    ("name", "n_factors"), [("first/pairwise.rank", 0), ("feature_scale/wide_averaged.rank", 4)]
)
def test_an_old_ranker_scales_features_as_it_did(name, n_factors, tmp_path):
    model = rc.load(FOLDER / name)
    assert model._state.scale.size == n_factors
    assert model.feature_scale == ("auto" if n_factors else None)
    X = np.random.default_rng(0).normal(size=(40, 4)) * [1, 500, 1, 1000]
    y, qid = np.arange(40) % 3, np.repeat(np.arange(8), 5)
    rc.save(model, tmp_path / "again")
    again = rc.load(tmp_path / "again")
    found = model.partial_fit(X, y, qid=qid).coef_
    assert np.array_equal(found, again.partial_fit(X, y, qid=qid).coef_)
    assert model._state.scale.size == n_factors
