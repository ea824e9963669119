"""Pairwise differentiable gradient descent: the plain form, its lists, and what it learns."""

from collections import Counter
from dataclasses import replace
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import rankcore as rc
from rankcore import RankSVM
from rankcore.clicks.online import PairwiseGradientRanker, State
from rankcore.datasets import make_letor
from rankcore.metrics import ndcg_score
from reference import pdgd as plain
from strategies import NIGHTLY, examples

# Scores as they are.
PLAIN = {"temperature": 1.0, "spread": 0.0}


def with_scores(scores, **settings):
    """Make a ranker that samples the rows of a unit matrix by these scores."""
    ranker = PairwiseGradientRanker(**PLAIN | settings)
    weights = np.array(scores, dtype=float)
    ranker._state, ranker.n_features_in_ = State(weights, weights, 0), weights.size
    return ranker, np.eye(len(scores))


@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.sampled_from([0.1, 1.0, 5.0]))
@settings(max_examples=examples(150))
def test_steps_equal_the_plain_form(seed, n, spread):
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, spread, n)
    shown = rng.permutation(n)[: rng.integers(1, n + 1)]
    clicked = rng.random(shown.size) < 0.4
    ranker, X = with_scores(scores, learning_rate=0.5, alpha=0)
    ranker.partial_fit(X, shown, clicked)
    expected = plain.gradient(scores.tolist(), shown.tolist(), clicked.tolist())
    # Ratios of products of sums here, quotients of probabilities there.
    np.testing.assert_allclose(
        (ranker.list_coef_ - scores) / 0.5, expected, rtol=1e-9, atol=1e-14 * max(1, spread)
    )
    assert ranker.t_ == 1


def test_lists_follow_the_plackett_luce_model():
    ranker, X = with_scores([0.5, 0.0, 1.2, -0.3], length=2)
    n = 20_000
    counts = Counter(tuple(ranker.rank(X, seed=seed).tolist()) for seed in range(n))
    for shown in permutations(range(4), 2):
        p = plain.probability(ranker.list_coef_.tolist(), shown)
        assert abs(counts[shown] / n - p) <= 4 * (p * (1 - p) / n) ** 0.5
    assert sum(counts.values()) == n


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_temperature_divides_scores_and_spread_steps(form):
    rng, known = np.random.default_rng(0), 0.0
    ranker = PairwiseGradientRanker(0.5, alpha=0, temperature=0.25, spread=0.2)
    for seed in range(20):
        X = np.round(rng.normal(size=(6, 3)), 1) * (rng.random((6, 3)) < 0.7) + (seed % 2)
        before = ranker.list_coef_ if seed else np.zeros(3)
        shown = ranker.rank(form(X), seed=seed)
        noise = np.random.default_rng(seed).gumbel(size=6)
        assert shown.tolist() == np.argsort(-(X @ before / 0.25 + noise)).tolist()
        clicked = rng.random(6) < 0.4
        ranker.partial_fit(form(X), shown, clicked)
        known += max(0.2, 1 / (seed + 1)) * (X.var(axis=0).sum() - known)
        assert ranker.spread_ == pytest.approx(known, rel=1e-12)
        step = plain.gradient((X @ before / 0.25).tolist(), shown.tolist(), clicked.tolist())
        np.testing.assert_allclose(
            ranker.list_coef_ - before, 0.5 / known * (np.array(step) @ X), rtol=1e-8, atol=1e-12
        )


def test_lists_do_not_depend_on_the_scale_of_features():
    X, rng = np.random.default_rng(1).normal(size=(30, 4)), np.random.default_rng(0)
    rankers = [(PairwiseGradientRanker(), X), (PairwiseGradientRanker(), X / 64)]
    for seed in range(200):
        lists = [ranker.rank(rows, seed=seed).tolist() for ranker, rows in rankers]
        assert lists[0] == lists[1]
        clicked = rng.random(10) < 0.3
        for ranker, rows in rankers:
            ranker.partial_fit(rows, lists[0], clicked)
    first, second = (ranker.list_coef_ for ranker, _ in rankers)
    assert (64 * first).tolist() == second.tolist()  # powers of two are exact
    assert np.ptp(first) > 0


def test_low_temperature_ranks_by_score():
    ranker, X = with_scores([3.0, 2.0, 1.0, 0.0, -1.0], temperature=0.01)
    assert all(ranker.rank(X, seed=seed).tolist() == [0, 1, 2, 3, 4] for seed in range(50))
    ranker.set_params(temperature=100.0)
    firsts = Counter(int(ranker.rank(X, seed=seed)[0]) for seed in range(500))
    assert min(firsts[i] for i in range(5)) > 50  # 100 of each in expectation


def test_random_clicks_do_not_change_the_model_on_average():
    """Where clicks fall with the place alone, steps cancel, whatever the scores."""
    scores, seen = [1.5, 0.7, 0.0, -0.4], np.array([0.9, 0.5, 0.3, 0.2])
    total, size = np.zeros(4), np.zeros(4)
    for shown in permutations(range(4)):
        p = plain.probability(scores, shown)
        for k in range(16):
            clicked = np.array([k >> i & 1 for i in range(4)], dtype=bool)
            chance = p * np.prod(np.where(clicked, seen, 1 - seen))
            ranker, X = with_scores(scores, learning_rate=1.0, alpha=0)
            step = ranker.partial_fit(X, shown, clicked).list_coef_ - scores
            total += chance * step
            size += chance * np.abs(step)
    np.testing.assert_allclose(total, 0, atol=1e-14)
    assert (size > 0.01).all()


def simulated(seed, n):
    """NDCG@10 on held-out queries: after n impressions, of labels, and of chance."""
    X, y, qid = make_letor(120, 20, random_state=seed)
    X = np.asarray(X, dtype=float)
    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    rows = [np.flatnonzero(qid == one) for one in np.unique(qid)]
    known, held_out = np.concatenate(rows[:80]), np.concatenate(rows[80:])
    ranker, rng = PairwiseGradientRanker(), np.random.default_rng(1)
    for impression in range(n):
        of = rows[rng.integers(80)]
        shown = ranker.rank(X[of], seed=impression)
        relevant = 0.1 + 0.9 * (2.0 ** y[of][shown] - 1) / (2.0 ** y.max() - 1)
        clicked = rng.random(shown.size) < relevant / np.arange(1, shown.size + 1)
        ranker.partial_fit(X[of], shown, clicked)
    labels = RankSVM(C=0.1).fit(X[known], y[known], qid=qid[known])
    scores = ranker.predict(X[held_out]), labels.predict(X[held_out]), rng.random(held_out.size)
    return [ndcg_score(y[held_out], one, qid=qid[held_out], k=10) for one in scores]


@pytest.mark.sampled
def test_gradient_ranker_learns_from_a_simulated_user():
    n, sets = (100_000, 3) if NIGHTLY else (3000, 1)
    found = np.array([simulated(seed, n) for seed in range(sets)])
    learned, labels, chance = found.mean(axis=0)
    print(f"NDCG@10 {learned:.4f}, from labels {labels:.4f}")
    assert learned > chance + 0.2
    if NIGHTLY:
        assert learned > labels - 0.01


def test_predictions_use_the_mean_of_the_weights():
    ranker, X = PairwiseGradientRanker(1.0), np.eye(3)
    rng, after = np.random.default_rng(0), []
    for seed in range(20):
        shown = ranker.rank(X, seed=seed)
        after.append(ranker.partial_fit(X, shown, rng.random(3) < 0.5).list_coef_)
    expected = np.average(after, axis=0, weights=np.arange(1, 21))
    np.testing.assert_allclose(ranker.predict(X), expected, rtol=1e-12)
    assert not np.allclose(expected, after[-1])


def test_impressions_without_information_change_nothing():
    ranker, X = with_scores([1.0, 2.0, 3.0])
    for shown, clicked in [([0, 1, 2], [0, 0, 0]), ([0, 1], [1, 1]), ([], [])]:
        ranker.partial_fit(X, np.array(shown, dtype=int), clicked)
        assert ranker.list_coef_.tolist() == [1, 2, 3]
    assert ranker.t_ == 3


def test_steps_converge():
    plain_step, X = with_scores([1.0, 2.0, 3.0], learning_rate=0.5, alpha=0)
    shrunk, _ = with_scores([1.0, 2.0, 3.0], learning_rate=0.5, alpha=0.4)
    for ranker in (plain_step, shrunk):
        ranker.partial_fit(X, [2, 0, 1], [0, 1, 0])
    np.testing.assert_allclose(shrunk.list_coef_, plain_step.list_coef_ / 1.2, rtol=1e-14)
    with pytest.raises(ValueError, match="alpha"):
        PairwiseGradientRanker(alpha=-1).partial_fit(X, [0], [1])


def test_extreme_scores_stay_finite():
    ranker, X = with_scores([2000.0, 0.0, -2000.0])
    ranker.partial_fit(X, [2, 1, 0], [0, 0, 1]).partial_fit(X, [0, 1, 2], [0, 0, 1])
    assert np.isfinite(ranker.list_coef_).all()


def test_ranker_is_cloned_and_requires_a_fit():
    given = {"learning_rate": 0.2, "length": 3, "alpha": 0.5, "temperature": 2.0, "spread": 0.1}
    ranker = PairwiseGradientRanker(**given)
    assert clone(ranker).get_params() == given
    with pytest.raises(NotFittedError):
        ranker.predict([[1.0]])
    X = np.eye(4)
    assert ranker.rank(X, seed=1).tolist() == ranker.rank(X, seed=1).tolist()
    assert ranker.rank(X, seed=1).size == 3


@pytest.mark.parametrize(
    ("X", "shown", "clicked", "message"),
    [
        ([[1.0, np.nan]], [0], [1], "X contains NaN at row 0, column 1"),
        ([1.0, 2.0], [0], [1], "X must have two dimensions"),
        ([[1.0], [2.0]], [0, 0], [1, 0], "shown must list different row numbers"),
        ([[1.0], [2.0]], [0, 2], [1, 0], "shown must be rows of X, 0 to 1"),
        ([[1.0], [2.0]], [0.5], [1], "shown must list different row numbers"),
        ([[1.0], [2.0]], [0, 1], [1], "clicked must be 2 values of 0 or 1"),
        ([[1.0], [2.0]], [0, 1], [1, 2], "clicked must be 2 values of 0 or 1"),
    ],
)
def test_bad_input_is_rejected(X, shown, clicked, message):
    ranker = PairwiseGradientRanker()
    with pytest.raises(ValueError, match=message):
        ranker.partial_fit(X, shown, clicked)
    assert not hasattr(ranker, "coef_")


def test_other_numbers_of_features_are_rejected():
    ranker, X = with_scores([1.0, 2.0])
    with pytest.raises(ValueError, match="X has 3 features, but Pairwise.* expecting 2"):
        ranker.rank(np.eye(3), seed=0)
    with pytest.raises(ValueError, match="learning_rate"):
        PairwiseGradientRanker(0.0).partial_fit(X, [0], [1])


def learned(X, n=20, names=None):
    """Return a ranker after some impressions of the same documents."""
    rng, ranker = np.random.default_rng(0), PairwiseGradientRanker(length=5)
    X = X if names is None else pd.DataFrame(X, columns=names)
    for seed in range(n):
        shown = ranker.rank(X, seed=seed)
        ranker.partial_fit(X, shown, rng.random(shown.size) < 0.4)
    return ranker


def test_loaded_ranker_continues(tmp_path):
    X = np.random.default_rng(1).normal(size=(12, 4))
    ranker, path = learned(X), tmp_path / "online.rankcore"
    rc.save(ranker, path)
    again = rc.load(path)
    assert (again.t_, again.get_params()) == (20, ranker.get_params())
    for one in (ranker, again):
        shown = one.rank(X, seed=99)
        one.partial_fit(X, shown, [1, 0, 0, 1, 0])
    assert again.coef_.tolist() == ranker.coef_.tolist()
    assert again.list_coef_.tolist() == ranker.list_coef_.tolist()
    assert again.spread_ == ranker.spread_ > 0
    with pytest.raises(NotFittedError):
        rc.save(PairwiseGradientRanker(), path)


def test_exported_scores_are_bit_identical(tmp_path):
    X, names = np.random.default_rng(1).normal(size=(50, 4)), ["a", "b", "c", "d"]
    ranker, path = learned(X, names=names), tmp_path / "online.rankcore"
    rc.save(ranker, path)
    rows = pd.DataFrame(X, columns=names)
    assert rc.Predictor(path).predict(rows).tolist() == ranker.predict(rows).tolist()
    assert rc.load(path).feature_names_in_.tolist() == names
    unnamed = learned(X)
    assert unnamed.coef_.tolist() == ranker.coef_.tolist()
    check = rc.export(unnamed, tmp_path / "online.sql", "sql", feature_names=names, check=X)
    np.testing.assert_allclose(X @ ranker.coef_, ranker.predict(rows), rtol=1e-12, atol=1e-12)
    assert check.n_rows == 50
    assert check.largest_difference < 1e-12


def test_sparse_documents_and_feature_names_are_accepted():
    X = np.random.default_rng(1).normal(size=(12, 4)) * (np.arange(4) != 2)
    dense, sparse = learned(X), learned(sp.csr_array(X))
    # Sums of products in another order.
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-12, atol=1e-15)
    named = learned(X, names=["a", "b", "c", "d"])
    with pytest.raises(ValueError, match="feature names"):
        named.rank(pd.DataFrame(X, columns=["a", "b", "d", "c"]), seed=0)
    with pytest.raises(ValueError, match="shown must list"):
        named.fit(X, [0, 0], [0, 1])
    assert named.t_ == 20  # a fit that fails changes nothing
    assert named.fit(X, [0, 1], [0, 1]).t_ == 1


def test_damaged_files_are_rejected():
    spec = learned(np.eye(4))._spec()
    for t in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="number of impressions must be an integer"):
            PairwiseGradientRanker()._restore(replace(spec, facts=spec.facts | {"t": t}))
    for spread in (-1.0, np.inf, np.nan, "1", None):
        with pytest.raises(ValueError, match="spread of features must be a float"):
            PairwiseGradientRanker()._restore(replace(spec, facts=spec.facts | {"spread": spread}))
