"""Pair weights that follow a measure: against measures of swapped rankings."""

import numpy as np
import pytest

import rankcore as rc
from rankcore._core.queries import queries_of
from rankcore._ext import metric_weights
from rankcore.boosting._metric_weights import MetricPairWeights
from rankcore.metrics import average_precision, ndcg_score
from rankcore.ranking.pairs import pair_by_label

pytestmark = pytest.mark.kernel


def problem(seed, graded):
    rng = np.random.default_rng(seed)
    n = 24
    y = rng.integers(0, 4 if graded else 2, n).astype(float)
    qid = np.repeat([0, 1, 2], 8)
    weights = rng.integers(1, 4, n).astype(float) if seed % 2 else None
    pairing = pair_by_label(y, queries_of(qid, None, n), weights, False)
    scores = rng.normal(size=pairing.docs.size)
    steps = rng.random(pairing.bounds.size - 1) + 0.5
    return pairing, steps, scores


def swapped(labels, scores, measure):
    """By how much a measure changes if two rows swap their scores."""
    change = np.zeros((labels.size, labels.size))
    before = measure(labels, scores)
    for i in range(labels.size):
        for j in range(labels.size):
            if labels[i] > labels[j]:
                other = scores.copy()
                other[[i, j]] = scores[[j, i]]
                change[i, j] = abs(measure(labels, other) - before)
    return change


def ndcg(k):
    def measure(labels, scores):
        return ndcg_score(labels, scores, k=k)

    return measure


MEASURES = {
    "ndcg": ndcg(None),
    "ndcg@3": ndcg(3),
    "ndcg@100": ndcg(100),
    "map": lambda labels, scores: average_precision(labels > 0, scores),
}


def expected(pairing, steps, scores, change_of):
    won, lost = np.zeros((2, scores.size))
    all_weights = np.zeros((scores.size, scores.size))
    for q, (first, last) in enumerate(zip(pairing.bounds[:-1], pairing.bounds[1:], strict=True)):
        here = slice(first, last)
        s, labels = scores[here], pairing.labels[here]
        weights = steps[q] * change_of(labels, s) * np.exp(s - s[:, None])
        if pairing.doc_weights is not None:
            w = pairing.doc_weights[here]
            weights *= np.outer(w, w)
        all_weights[here, here] = weights * (labels[:, None] > labels)
    total = all_weights.sum()
    won, lost = all_weights.sum(axis=1) / total, all_weights.sum(axis=0) / total
    return won - lost, won + lost, all_weights / total


@pytest.mark.parametrize("kind", list(MEASURES))
@pytest.mark.parametrize("seed", range(6))
def test_pair_weights_are_changes_by_swaps(kind, seed):
    pairing, steps, scores = problem(seed, graded=kind != "map")
    focus = MetricPairWeights(pairing, steps, kind, scores)
    gradients, hessians = np.empty((2, scores.size))
    assert focus.differentiate(gradients, hessians) > 0
    answers = expected(pairing, steps, scores, lambda labels, s: swapped(labels, s, MEASURES[kind]))
    np.testing.assert_allclose(gradients, answers[0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(hessians, answers[1], rtol=1e-9, atol=1e-12)
    leaf_of = np.random.default_rng(seed).integers(0, 3, scores.size).astype(np.int32)
    between = np.zeros((3, 3))
    np.add.at(between, (leaf_of[:, None], leaf_of), answers[2])
    np.testing.assert_allclose(focus.between(leaf_of, 3), between, rtol=1e-9, atol=1e-12)
    values = np.array([0.5, -1.0, 2.0])
    focus.move(leaf_of, values)
    focus.differentiate(gradients, hessians)
    moved = expected(
        pairing,
        steps,
        scores + values[leaf_of],
        lambda labels, s: swapped(labels, s, MEASURES[kind]),
    )
    np.testing.assert_allclose(gradients, moved[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_pair_weights_may_come_from_a_function(seed):
    pairing, steps, scores = problem(seed, True)

    def by_labels_and_places(labels, places):
        return np.abs(np.subtract.outer(labels, labels)) / np.minimum.outer(places, places)

    def change(labels, s):
        places = np.empty(s.size)
        places[np.argsort(-s)] = np.arange(1, s.size + 1)
        return by_labels_and_places(labels, places)

    focus = MetricPairWeights(pairing, steps, by_labels_and_places, scores)
    gradients, hessians = np.empty((2, scores.size))
    focus.differentiate(gradients, hessians)
    answers = expected(pairing, steps, scores, change)
    np.testing.assert_allclose(gradients, answers[0], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(hessians, answers[1], rtol=1e-12, atol=1e-15)
    leaf_of = np.arange(scores.size, dtype=np.int32)
    np.testing.assert_allclose(focus.between(leaf_of, scores.size), answers[2], atol=1e-15)


def ranking_data():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 4))
    y = np.digitize(X[:, 0] * np.sign(X[:, 1]) + 0.3 * rng.normal(size=300), [0, 1])
    return X, y, np.repeat(np.arange(15), 20)


@pytest.mark.parametrize("kind", ["ndcg@5", "map", lambda labels, places: np.ones((20, 20))])
def test_the_bound_holds_whatever_is_minimised(kind):
    X, y, qid = ranking_data()
    model = rc.RankBoost(15, max_leaf_nodes=6, learning_rate=0.3, pair_weight=kind)
    model.fit(X, y, qid=qid)
    for scores, bound, cap in zip(
        model.staged_predict(X), model.history_["bound"], model.history_["cap"], strict=True
    ):
        errors = []
        for q in np.unique(qid):
            s, labels = scores[qid == q], y[qid == q]
            better = labels[:, None] > labels
            errors.append((better & (s[:, None] <= s)).sum() / better.sum())
        assert np.mean(errors) <= bound + 1e-9
        assert bound <= cap + 1e-9
    assert model.score(X, y, qid=qid) > 0.9


def test_equal_weights_equal_no_weights():
    X, y, qid = ranking_data()
    plain = rc.RankBoost(5, max_leaf_nodes=6).fit(X, y, qid=qid)
    same = rc.RankBoost(5, max_leaf_nodes=6, pair_weight=lambda *_: np.ones((20, 20)))
    np.testing.assert_allclose(same.fit(X, y, qid=qid).predict(X), plain.predict(X), rtol=1e-6)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("ndcg@0", "pair_weight must be None"),
        ("auc", "pair_weight must be None"),
        (7, "pair_weight must be None"),
        (lambda *_: np.ones(3), r"must return weights of shape \(20, 20\)"),
        (lambda *_: -np.ones((20, 20)), r"non-negative"),
    ],
    ids=["cut", "name", "number", "shape", "sign"],
)
def test_bad_weights_are_rejected(kind, message):
    X, y, qid = ranking_data()
    with pytest.raises(ValueError, match=message):
        rc.RankBoost(3, max_leaf_nodes=4, pair_weight=kind).fit(X, y, qid=qid)


def test_pair_weights_reject_unsupported_learners():
    X, y, qid = ranking_data()
    with pytest.raises(ValueError, match="requires trees"):
        rc.RankBoost(3, pair_weight="map").fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="requires labels; got pairs"):
        rc.RankBoost(3, weak="tree", pair_weight="map").fit(X, pairs=[[0, 1]])
    with pytest.raises(ValueError, match="requires labels from 0 to 60"):
        rc.RankBoost(3, weak="tree", pair_weight="ndcg").fit(X, y * 100, qid=qid)
    ones = np.ones(3)
    with pytest.raises(ValueError, match="are inconsistent"):
        metric_weights.weigh(
            ones, np.array([0, 1, 3], np.int32), np.array([0, 3]), np.array([1, 2, 3]), ones, None,
            None, np.ones(1), None, None, None, None, np.empty(3, np.int64), np.empty((2, 4)),
        )  # fmt: skip
