"""Predictor: model files answer as their learners do, to the bit, without importing them."""

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import rankcore as rc
from declared import QID, SAVED, X, Y, fitted, walk
from model_files import rewrite, set_in
from rankcore.io import contents

pytestmark = pytest.mark.kernel

TREES = (rc.RankBoost, rc.BipartiteRankBoost, rc.OrdinalBoost)


def rows_of(dtype, form, model):
    """Rows of few and of large values, and of missing ones where they are allowed."""
    rows = np.vstack([X, X[:20].round(1), np.zeros((2, 5)), 1e3 * X[:10]])
    rows[np.abs(rows) < 0.2] = 0
    if isinstance(model, TREES):
        rows[::7, 2] = np.nan
    return form(rows.astype(dtype))


def saved(model, tmp_path):
    rc.save(model, tmp_path / "model")
    return rc.Predictor(tmp_path / "model")


def assert_answers_as(model, found, rows):
    np.testing.assert_array_equal(found.predict(rows), model.predict(rows))
    if hasattr(model, "project"):
        np.testing.assert_array_equal(found.project(rows), model.project(rows))
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(found.predict_proba(rows), model.predict_proba(rows))
    else:
        with pytest.raises(AttributeError, match=r"has no probabilities"):
            found.predict_proba(rows)


@pytest.mark.parametrize("form", [np.ascontiguousarray, sp.csr_array])
@walk(SAVED)
def test_every_learner_predicts_from_its_file(tmp_path, learner, form):
    model = fitted(learner, form)
    if getattr(model, "combine", "score") == "rank":
        with pytest.raises(TypeError, match=r"has no scores without its learner .*rankcore\.load"):
            saved(model, tmp_path)
        return
    found = saved(model, tmp_path)
    assert found.learner == type(model).__name__
    assert found.n_features_in_ == 5
    for dtype in (np.float64, np.float32):
        assert_answers_as(model, found, rows_of(dtype, form, model))
    for attribute in ("ranks_", "classes_"):
        np.testing.assert_array_equal(getattr(found, attribute), getattr(model, attribute, None))


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(clip=True), MaxAbsScaler()])
@pytest.mark.parametrize("learner", [rc.PRank(), rc.OrdinalBoost(5)], ids=str)
def test_scaled_models_predict(tmp_path, scaler, learner):
    model = make_pipeline(scaler, learner).fit(X, Y)
    found = saved(model, tmp_path)
    assert_answers_as(model, found, X)
    if isinstance(scaler, MaxAbsScaler):
        assert_answers_as(model, found, sp.csr_array(X))
    else:
        with pytest.raises(ValueError, match=r"X must be dense, because the model centres"):
            found.predict(sp.csr_array(X))


def test_string_labels_are_predicted(tmp_path):
    words = ["poor", "fair", "good", "best"]
    labels = np.array(words)[np.digitize(X[:, 0], [-0.7, 0, 0.7])]
    model = rc.CalibratedOrdinal(rc.PRank(classes=words), method="cumulative").fit(X, labels)
    found = saved(model, tmp_path)
    assert found.ranks_.tolist() == words
    assert found.classes_.tolist() == sorted(words)
    assert_answers_as(model, found, X)
    assert found.predict(X).dtype == model.predict(X).dtype


def test_columns_of_frames_are_matched_by_name(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcde"))
    found = saved(rc.PRank().fit(frame, Y), tmp_path)
    assert found.feature_names_in_.tolist() == list("abcde")
    np.testing.assert_array_equal(found.predict(frame), found.predict(X))
    with pytest.raises(ValueError, match=r"column 0 is 'b'; expected 'a'"):
        found.predict(frame[list("bacde")])
    with pytest.raises(ValueError, match=r"column 4 is none; expected 'e'"):
        found.predict(frame[list("abcd")])
    behind = make_pipeline(MaxAbsScaler(), rc.PRank()).fit(frame, Y)
    assert saved(behind, tmp_path).feature_names_in_.tolist() == list("abcde")


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (X[:, :4], ValueError, r"X has 4 features; the model has 5"),
        (X[0], ValueError, r"X must have two dimensions"),
        (np.full((2, 5), np.nan), ValueError, r"NaN"),
        (np.full((2, 5), np.inf), ValueError, r"infinity"),
        (X.astype(complex), ValueError, r"Complex data not supported"),
        (np.full((2, 5), "a"), ValueError, r"must be numeric"),
        (X[:0], ValueError, r"Found 0 sample"),
    ],
)
def test_rows_are_checked(tmp_path, rows, error, message):
    found = saved(rc.PRank().fit(X, Y), tmp_path)
    for method in (found.predict, found.project):
        with pytest.raises(error, match=message):
            method(rows)


def test_infinity_is_rejected_where_values_may_be_missing(tmp_path):
    found = saved(rc.RankBoost(5).fit(X, Y, qid=QID), tmp_path)
    rows = X[:3].copy()
    rows[1, 1] = np.nan
    found.predict(rows)
    rows[1, 1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        found.predict(rows)


def test_python_only_steps_are_rejected(tmp_path):
    model = make_pipeline(TfidfVectorizer(), rc.PRank()).fit(
        ["bad one", "good one"] * 5, [1, 2] * 5
    )
    with pytest.raises(TypeError, match=r"\(TfidfVectorizer\).*: use rankcore\.load"):
        saved(model, tmp_path)


def test_other_files_are_rejected_as_models(tmp_path):
    path = tmp_path / "file"
    with pytest.raises(FileNotFoundError):
        rc.Predictor(path)
    for content in (b"", b"{}", b"\x08" + bytes(7) + b"{}      "):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is not a rankcore model file"):
            rc.Predictor(path)


@pytest.mark.parametrize(
    "edit",
    [
        set_in("labels", value={"classes": "datetime64[nothing]"}),
        set_in("labels", value={"classes": "U-1"}),
        set_in("labels", value={"classes": "str"}),
        set_in("labels", value={"classes": 3}),
        set_in("n_features", value=7),
        lambda document: document.pop("learner"),
        lambda document: document.pop("scoring.weights"),
    ],
)
def test_crafted_documents_are_rejected(tmp_path, edit):
    saved(rc.PRank().fit(pd.DataFrame(X, columns=list("abcde")), Y), tmp_path)
    rewrite(tmp_path / "model", edit)
    with pytest.raises(ValueError, match="model is damaged: "):
        rc.Predictor(tmp_path / "model")


def test_damaged_bytes_never_change_predictions(tmp_path):
    found = saved(rc.RankBoost(5, max_leaf_nodes=4).fit(X, Y, qid=QID), tmp_path)
    expected = found.predict(X)
    content = (tmp_path / "model").read_bytes()
    rng = np.random.default_rng(0)
    for at in rng.choice(len(content), size=300):
        damaged = bytearray(content)
        damaged[at] ^= 1 << rng.integers(8)
        (tmp_path / "damaged").write_bytes(damaged)
        with pytest.raises(ValueError, match="damaged|not a rankcore model|version"):
            rc.Predictor(tmp_path / "damaged")
    np.testing.assert_array_equal(found.predict(X), expected)


def test_large_files_are_mapped(tmp_path, monkeypatch):
    model = rc.KernelPRank().fit(X, Y)
    rc.save(model, tmp_path / "model")
    monkeypatch.setattr(contents, "LARGE", 100)
    assert_answers_as(model, rc.Predictor(tmp_path / "model"), X)


def test_predictor_is_pickled_as_its_path(tmp_path):
    found = saved(rc.PRank().fit(X, Y), tmp_path)
    again = pickle.loads(pickle.dumps(found))
    assert repr(again) == repr(found) == f"Predictor({str(tmp_path / 'model')!r})"
    np.testing.assert_array_equal(again.predict(X), found.predict(X))


def test_threads_share_a_predictor(tmp_path):
    model = rc.OAPBPM(20, random_state=0).fit(X, Y)
    found, expected = saved(model, tmp_path), model.predict(X)
    with ThreadPoolExecutor(8) as pool:
        for answer in pool.map(lambda _: found.predict(X), range(100)):
            np.testing.assert_array_equal(answer, expected)


def test_nothing_but_numpy_is_imported(tmp_path):
    rc.save(rc.OrdinalBoost(3).fit(X, Y), tmp_path / "model")
    program = (
        "import sys, rankcore as rc\n"
        f"found = rc.Predictor({str(tmp_path / 'model')!r})\n"
        f"found.predict({X[:2].tolist()}), found.predict_proba({X[:2].tolist()})\n"
        "print(*({'sklearn', 'scipy', 'pandas'} & sys.modules.keys()))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == ""


def test_the_command_predicts_without_scikit_learn(tmp_path):
    rc.save(make_pipeline(StandardScaler(), rc.PRank()).fit(X, Y), tmp_path / "model")
    rc.datasets.dump_letor(sp.csr_array(X), Y, tmp_path / "rows")
    program = (
        "import sys\nfrom rankcore.cli.app import main\n"
        f"sys.argv[1:] = 'predict', {str(tmp_path / 'model')!r}, {str(tmp_path / 'rows')!r}\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "assert 'sklearn' not in sys.modules"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    expected = rc.load(tmp_path / "model").predict(X)
    assert ran.stdout.split() == [str(one) for one in expected]
