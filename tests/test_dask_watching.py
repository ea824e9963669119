"""Held-out rows, an early end and callbacks of fits on a cluster: as in memory, at the client."""

from itertools import pairwise

import numpy as np
import pytest

import rankcore as rc
from rankcore.datasets import make_letor

pytest.importorskip("distributed", reason="needs the dask extra")

from dask import delayed

import rankcore.dask as rd


@pytest.fixture(scope="module")
def queries():
    X, y, qid = make_letor(60, 15, n_features=90, random_state=0)
    return (X - X.mean(axis=0)) / X.std(axis=0), y, qid


@pytest.fixture(scope="module")
def held_out():
    X, y, qid = make_letor(30, 15, n_features=90, random_state=1)
    return (X - X.mean(axis=0)) / X.std(axis=0), y, qid


def parts(arrays, n):
    """Lists of delayed blocks of whole queries."""
    edges = np.linspace(0, len(arrays[0]) // 15, n + 1).astype(int) * 15
    return [[delayed(one[a:b]) for a, b in pairwise(edges)] for one in arrays]


def fitted(name, params, n, queries, held_out, **more):
    X, y, qid = held_out
    bX, by, bq = parts(queries, n)
    model = getattr(rd, name)(**params)
    return model.fit(bX, by, qid=bq, n_shards=n, eval_set=(X, y), eval_qid=qid, **more)


def in_memory(name, params, queries, held_out, **more):
    X, y, qid = queries
    model = getattr(rc, name)(**params)
    held_X, held_y, held_qid = held_out
    return model.fit(X, y, qid=qid, eval_set=(held_X, held_y), eval_qid=held_qid, **more)


@pytest.mark.parametrize(
    ("name", "params", "n"),
    [
        ("RankBoost", {"n_estimators": 15, "eval_metric": ["ndcg@10", "map"]}, 3),
        ("RankBoost", {"n_estimators": 60, "early_stopping_rounds": 4}, 3),
        ("BipartiteRankBoost", {"n_estimators": 40, "early_stopping_rounds": 3}, 4),
        ("RankSVM", {"C": 10.0, "random_state": 0}, 3),
        ("PairwisePerceptron", {"max_iter": 5, "random_state": 0}, 1),
        ("PairwisePerceptron", {"max_iter": 30, "early_stopping_rounds": 2, "random_state": 0}, 1),
        ("PairwisePerceptron", {"variant": "last", "max_iter": 4, "random_state": 0}, 1),
    ],
)
def test_what_is_measured_is_that_of_memory(name, params, n, client, queries, held_out):
    seen, expected_seen = [], []

    def noting(numbers):
        return lambda one: numbers.append((one.number, one.results["valid_ndcg@10"].value))

    found = fitted(name, params, n, queries, held_out, callbacks=[noting(seen)])
    expected = in_memory(name, params, queries, held_out, callbacks=[noting(expected_seen)])
    assert set(found.history_) == set(expected.history_)
    # Sums round otherwise than in memory, RankSVM's minimiser within its `tol`; the order of the
    # held-out rows is the same.
    for key in set(expected.history_) & {"valid_ndcg@10", "valid_map"}:
        assert np.allclose(found.history_[key], expected.history_[key], rtol=1e-6)
    assert getattr(found, "best_iteration_", None) == getattr(expected, "best_iteration_", None)
    assert np.allclose(seen, expected_seen, rtol=1e-6)
    # Scores of RankSVM are as far apart as its `tol` of the objective allows for.
    X = held_out[0]
    assert np.allclose(found.to_local().predict(X), expected.predict(X), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("params", [{"max_iter": 5}, {"max_iter": 30, "early_stopping_rounds": 2}])
@pytest.mark.parametrize("name", ["PRank", "CuSumRank", "WidrowHoff", "MulticlassPerceptron"])
def test_what_is_measured_of_labels_is_that_of_memory(name, params, client, queries, held_out):
    eval_set = {"eval_set": held_out[:2]}
    expected = getattr(rc, name)(random_state=0, tol=None, **params)
    expected.fit(*queries[:2], **eval_set)
    bX, by = parts(queries[:2], 3)
    found = getattr(rd, name)(random_state=0, tol=None, **params)
    found.fit(bX, by, n_shards=1, **eval_set)
    assert found.history_ == expected.history_
    assert getattr(found, "best_iteration_", None) == getattr(expected, "best_iteration_", None)
    assert np.array_equal(found.to_local().predict(held_out[0]), expected.predict(held_out[0]))


@pytest.mark.parametrize("name", ["PRank", "PairwisePerceptron"])
def test_the_best_of_several_shards_is_kept(name, client, queries, held_out):
    X, y, qid = held_out
    labels = name == "PRank"
    predictions, held = (
        [],
        {"eval_set": (X, y)} if labels else {"eval_set": (X, y), "eval_qid": qid},
    )
    bX, by, bq = parts(queries, 3)
    model = getattr(rd, name)(max_iter=30, early_stopping_rounds=3, random_state=0)
    model.fit(
        bX,
        by,
        **({} if labels else {"qid": bq}),
        **held,
        n_shards=3,
        callbacks=lambda one: predictions.append(one.model.predict(X)),
    )
    assert len(predictions) == model.best_iteration_ + 3 < 30
    assert np.array_equal(model.to_local().predict(X), predictions[model.best_iteration_ - 1])


@pytest.mark.parametrize("name", ["PairwisePerceptron", "RankBoost", "RankSVM"])
def test_a_callback_ends_the_fit(name, client, queries, held_out):
    params = {"n_estimators": 20} if name == "RankBoost" else {"random_state": 0}
    model = fitted(name, params, 3, queries, held_out, callbacks=lambda one: bool(one.number == 2))
    measured = model.history_["valid_ndcg@10"]
    assert len(measured) == 2
    X, y, qid = held_out
    scores = model.to_local().predict(X)
    found = rc.metrics.evaluate(y, scores, qid=qid, metrics=["ndcg@10"])
    assert measured[-1] == pytest.approx(found["ndcg@10"], rel=1e-12)


@pytest.mark.parametrize("name", ["PairwisePerceptron", "RankBoost", "RankSVM"])
def test_bad_arguments_leave_the_estimator(name, client, queries, held_out):
    bX, by, bq = parts(queries, 2)
    X, y, qid = held_out
    model = getattr(rd, name)()
    for more, message in [
        ({"eval_set": (X, y)}, "eval_set requires eval_qid"),
        ({"eval_set": (X[:, :80], y), "eval_qid": qid}, "80 features"),
        ({"eval_qid": qid}, "eval_qid requires eval_set"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(bX, by, qid=bq, **more)
        assert not hasattr(model, "_state")
    with pytest.raises(TypeError, match="callbacks must be functions of an iteration"):
        model.fit(bX, by, qid=bq, callbacks=["stop"])
    with pytest.raises(TypeError, match="arrays at the client; found delayed blocks"):
        model.fit(bX, by, qid=bq, eval_set=([delayed(X)], [delayed(y)]), eval_qid=qid)
    if name != "RankSVM":
        model.set_params(early_stopping_rounds=2)
        with pytest.raises(ValueError, match="early_stopping_rounds requires eval_set"):
            model.fit(bX, by, qid=bq)


def test_ensembles_take_no_held_out_rows(client, queries):
    bX, by = parts(queries[:2], 2)
    with pytest.raises(ValueError, match=r"requires early_stopping_rounds=None; found 2"):
        rd.OAPBPM(early_stopping_rounds=2).fit(bX, by)
    with pytest.raises(ValueError, match="early_stopping_rounds requires eval_set"):
        rd.PRank(early_stopping_rounds=2).fit(bX, by)
