"""Relevances below 0: order is learned from them, gains are rejected before a fit."""

import numpy as np
import pytest
from sklearn.base import clone

import rankcore as rc
from declared import instances, walk

X, Y, QID = rc.datasets.make_letor(12, 10, random_state=0)
X, BELOW = X[:, :6], Y - 2

BY_GAIN = rc.RankBoost(3, max_leaf_nodes=4, min_samples_leaf=2, pair_weight="map")
RANKERS = [one for one in instances("queries") if hasattr(one, "eval_metric")]


@walk(RANKERS)
def test_only_the_order_of_relevances_counts(learner):
    given = {"qid": QID} if getattr(learner, "combine", "") == "rank" else {}
    expected = clone(learner).fit(X, Y, qid=QID).predict(X, **given)
    found = clone(learner).fit(X, BELOW, qid=QID).predict(X, **given)
    np.testing.assert_array_equal(found, expected)


@walk([*RANKERS, BY_GAIN])
@pytest.mark.parametrize("measure", ["ndcg@10", "ndcg"])
def test_gain_measures_reject_negative_relevances_before_the_fit(learner, measure):
    model = clone(learner).set_params(eval_metric=["map", measure])
    held = {"eval_set": (X, BELOW), "eval_qid": QID}
    started = []
    with (
        pytest.raises(ValueError, match=rf"eval_metric='{measure}' cannot .* shift the labels"),
        rc.progress.watch(started.append),
    ):
        model.fit(X, BELOW, qid=QID, **held, callbacks=[started.append])
    assert started == []


@walk([*RANKERS, BY_GAIN])
def test_order_measures_accept_negative_relevances(learner):
    model = clone(learner).set_params(eval_metric=["misranking", "kendall_tau", "map"])
    model.fit(X, BELOW, qid=QID, eval_set=(X, BELOW), eval_qid=QID)
    assert np.isfinite(model.history_["valid_misranking"]).all()


@pytest.mark.parametrize("pair_weight", ["ndcg", "ndcg@5"])
def test_gain_pair_weights_reject_negative_relevances(pair_weight):
    model = rc.RankBoost(3, max_leaf_nodes=4, min_samples_leaf=2, pair_weight=pair_weight)
    with pytest.raises(ValueError, match=r"labels from 0 to 60, .*got -2: number the levels"):
        model.fit(X, BELOW, qid=QID)
    model.fit(X, Y, qid=QID)


def test_search_for_c_rejects_negative_relevances_before_the_first_fit():
    started = []
    with (
        pytest.raises(ValueError, match="scoring='ndcg@10' cannot measure these labels"),
        rc.progress.watch(started.append),
    ):
        rc.RankSVMCV(Cs=[0.1, 1], cv=2).fit(X, BELOW, qid=QID)
    assert started == []
    model = rc.RankSVMCV(Cs=[0.1, 1], cv=2, scoring="misranking").fit(X, BELOW, qid=QID)
    assert model.C_ in (0.1, 1)
