"""Boosted models in files, on the command line and in C."""

import ctypes
import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import rankcore as rc
from model_files import put_together, taken_apart
from rankcore.cli.registry import find_learner

MODELS = [
    rc.RankBoost(30, early_stopping_rounds=3),
    rc.RankBoost(20, missing="zero", select="normalizer"),
    rc.BipartiteRankBoost(20, max_bins=None, smoothing=0.5),
]


def ranking_data():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(120, 4)), 1) * (rng.random((120, 4)) < 0.8)
    X[rng.random((120, 4)) < 0.1] = np.nan
    z = np.nan_to_num(X[:, 0]) + rng.normal(size=120)
    return X, np.digitize(z, [0, 1]), np.repeat(np.arange(8), 15)


def fitted(learner):
    X, y, qid = ranking_data()
    return clone(learner).fit(X, y, qid=qid, eval_set=(X, y), eval_qid=qid)


@pytest.mark.parametrize("learner", MODELS, ids=str)
def test_loaded_model_equals_the_saved_one(tmp_path, learner):
    X, y, qid = ranking_data()
    model = fitted(learner)
    rc.save(model, tmp_path / "model")
    loaded = rc.load(tmp_path / "model")
    assert loaded.get_params() == model.get_params()
    assert loaded.history_ == model.history_
    assert loaded.best_iteration_ == model.best_iteration_
    np.testing.assert_array_equal(loaded.estimators_, model.estimators_)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="score requires qid"):
        loaded.score(X, y)
    for one in (model, loaded):
        one.set_params(warm_start=True, early_stopping_rounds=None, n_estimators=40)
        one.fit(X, y, qid=qid)
    np.testing.assert_array_equal(loaded.estimators_, model.estimators_)


def test_edited_files_are_rejected_or_finite(tmp_path):
    X, _, _ = ranking_data()
    rc.save(fitted(MODELS[0]), tmp_path / "model")
    document, original = taken_apart((tmp_path / "model").read_bytes())

    def load_with(document, arrays):
        (tmp_path / "edited").write_bytes(put_together(document, arrays))
        return rc.load(tmp_path / "edited")

    edits = [lambda a: a[:-1], lambda a: a.astype(np.float32), lambda a: a.reshape(*a.shape, 1)]
    edits += [lambda a: a * 0 - 1, lambda a: a + 100]
    for name in [entry for entry in original if not entry.startswith("scoring.")]:
        for edit in edits:
            try:
                model = load_with(document, {**original, name: edit(original[name])})
            except ValueError:
                continue
            assert np.isfinite(model.predict(X)).all()
        with pytest.raises(ValueError, match="damaged"):
            load_with(document, {key: array for key, array in original.items() if key != name})
    for name, value in [
        ("n_features", 0),
        ("n_features", 2),
        ("settings", {}),
        ("settings", {"zero_missing": 2}),
        ("log", np.empty((0, 5))),
        ("log", np.ones((40, 1))),
        ("log", np.ones((40, 5), dtype=np.float32)),
        ("validation.0", np.ones(1000)),
        ("validation", ["ndcg@10", "ndcg@10"]),
        ("best_iteration", 1000),
        ("n_estimators", 0),
        ("n_estimators", "auto"),
        ("learning_rate", 1.5),
        ("learning_rate", "auto"),
    ]:
        facts, arrays, n = dict(document["facts"]), dict(original), document["n_features"]
        if isinstance(value, np.ndarray):
            arrays[name] = value
        elif name == "n_features":
            n = value
        else:
            facts[name] = value
        with pytest.raises(ValueError, match="damaged"):
            load_with({**document, "facts": facts, "n_features": n}, arrays)


@pytest.mark.parametrize("name", ["rankboost", "bipartite-rankboost"])
def test_the_command_trains_and_predicts(tmp_path, name):
    from typer.testing import CliRunner

    from rankcore.cli.app import app
    from rankcore.datasets import dump_letor, make_letor

    X, y, qid = make_letor(20, 15, random_state=0)
    dump_letor(X, y, tmp_path / "data", qid=qid)

    def run(*arguments):
        result = CliRunner().invoke(app, [*map(str, arguments), "--json"], catch_exceptions=False)
        assert result.exit_code == 0
        return json.loads(result.stdout)

    made = run("train", tmp_path / "data", "-o", tmp_path / "m", "--model", name, "--epochs", 9)
    assert (made["stumps"], made["queries"]) == (9, 20)
    assert run("info", tmp_path / "m")["rounds"] == 9
    assert run("evaluate", tmp_path / "m", tmp_path / "data")["ndcg@10"] > 0.5
    lines = CliRunner().invoke(app, ["predict", str(tmp_path / "m"), str(tmp_path / "data")]).stdout
    scores = rc.load(tmp_path / "m").predict(rc.datasets.load_letor(tmp_path / "data").X)
    np.testing.assert_allclose(np.array(lines.split(), dtype=float), scores)


def test_learners_are_found_by_name():
    assert find_learner("rankboost").make(n_estimators=5).get_params()["n_estimators"] == 5
    assert isinstance(find_learner("bipartite-rankboost").make(), rc.BipartiteRankBoost)


C_STUMPS = """
#include "rankcore.h"
void scores(const rc_stumps *model, const rc_rows *X, double *out)
{
    int64_t i;
    for (i = 0; i < X->n_rows; i++)
        out[i] = rc_stumps_score(model, rc_rows_get(X, i));
}
"""


class Rows(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("indices", ctypes.c_void_p),
        ("indptr", ctypes.c_void_p),
        ("stride", ctypes.c_int64),
        ("n_rows", ctypes.c_int64),
        ("n_features", ctypes.c_int64),
        ("dtype", ctypes.c_int32),
    ]


class Stumps(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("offsets", "thresholds", "values")),
        *((name, ctypes.c_void_p) for name in ("missing", "at_zero")),
        ("base", ctypes.c_double),
        ("n_features", ctypes.c_int64),
    ]


@pytest.fixture(scope="module")
def score_in_c(tmp_path_factory):
    import shutil
    import subprocess

    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("stumps")
    source, library = folder / "stumps.c", folder / "stumps.so"
    source.write_text(C_STUMPS)
    flags = "-std=c99 -O2 -Wall -Wextra -Werror -pedantic -ffp-contract=off -shared -fPIC"
    subprocess.run(
        [compiler, *flags.split(), "-I", rc.get_include(), "-o", library, source], check=True
    )
    return ctypes.CDLL(str(library)).scores


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("learner", MODELS, ids=str)
def test_scores_in_c_equal_predictions(score_in_c, learner, dtype):
    X = ranking_data()[0].astype(dtype)
    model = fitted(learner)
    merged = model._state.model.merged()
    arrays = [np.ascontiguousarray(array) for array in merged[:5]]
    stumps = Stumps(*(array.ctypes.data for array in arrays), merged.base, 4)
    sparse = sp.csr_array(X)
    parts = [sparse.data, sparse.indices.astype(np.int32), sparse.indptr.astype(np.int64)]
    kind = int(dtype == np.float32)
    for rows in [
        Rows(X.ctypes.data, None, None, 4, 120, 4, kind),
        Rows(*(part.ctypes.data for part in parts), 0, 120, 4, kind),
    ]:
        out = np.empty(120)
        score_in_c(ctypes.byref(stumps), ctypes.byref(rows), ctypes.c_void_p(out.ctypes.data))
        np.testing.assert_array_equal(out, model.predict(X))
