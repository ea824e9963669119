"""Pair losses by walking scores against the same pair by pair."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from rankcore._core.inputs import as_rows
from rankcore._core.queries import queries_of
from rankcore._ext import pair_loss as kernels
from rankcore.ranking.pairs import pair_by_label, pair_by_list
from rankcore.ranking.svm.losses import PairLosses, Terms
from reference import pair_loss as plain
from strategies import examples

pytestmark = pytest.mark.kernel


def problem(seed, n=40, d=3, levels=4, weights=False):
    """Rows, labels, queries and weights of eighths, so that many scores and distances tie."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-8, 9, (n, d)) / 8
    y = rng.integers(0, levels, n).astype(np.float64)
    qid = rng.integers(0, 3, n)
    return X, y, qid, rng.random(n) if weights else None, rng.integers(-8, 9, d) / 4


def losses_of(y, qid, weights=None, balanced=False, n_jobs=1, rows=None):
    queries = queries_of(qid, None, len(y))
    return PairLosses(pair_by_label(y, queries, weights, True), balanced, n_jobs, rows)


def by_row(losses, values):
    """Values of documents, which are those of queries with pairs, as values of all rows."""
    found = np.zeros(1 + losses.pairing.docs.max())
    found[losses.pairing.docs] = values
    return found


MARGINS = [
    Terms.squared_hinge(0.5),
    Terms.smooth_hinge(2.0, 0.25),
    Terms(np.array([0.0]), np.array([1.0])),
    Terms(np.array([-0.5, 3.0]), np.array([1.0, 0.25])),
]


@pytest.mark.parametrize("terms", MARGINS, ids=str)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_sum_equals_that_over_pairs(terms, form, dtype, weighted):
    for seed in range(6):
        X, y, qid, v, w = problem(seed, levels=[2, 4, 40][seed % 3], weights=weighted)
        pairs = plain.pairs_of(y, qid, v)
        if seed % 2:
            pairs = plain.balanced(pairs, qid)
        rows, scores = as_rows(form(X.astype(dtype))), X @ w
        losses = losses_of(y, qid, v, bool(seed % 2), 1, rows)
        at = losses.evaluate(terms, rows=rows, weights=w)
        for k, (margin, factor) in enumerate(zip(terms.margins, terms.factors, strict=True)):
            for power in [1, 2]:
                wanted = plain.loss_of(scores, pairs, power, margin)
                np.testing.assert_allclose(at.sums[k, power - 1], wanted, rtol=1e-13)
            assert factor  # a factor of 0 would test nothing below
        combined = list(zip(terms.factors, terms.margins, strict=True))
        slopes = sum(f * plain.slopes_of(scores, pairs, 2, m) for f, m in combined)
        H = sum(f * plain.curvature_of(scores, pairs, m) for f, m in combined)
        last = 1 + losses.pairing.docs.max()
        np.testing.assert_allclose(by_row(losses, at.slopes), slopes[:last], rtol=0, atol=1e-11)
        np.testing.assert_allclose(by_row(losses, at.curvatures), np.diag(H)[:last], atol=1e-11)
        np.testing.assert_allclose(at.pulled, X.T @ slopes, rtol=0, atol=1e-10)
        p = np.array([0.5, -1.0, 2.0])
        z, product, pulled = losses.curve(at, rows=rows, weights=p)
        np.testing.assert_allclose(by_row(losses, product), (H @ X @ p)[:last], atol=1e-10)
        np.testing.assert_allclose(pulled, X.T @ H @ X @ p, atol=1e-9)
        np.testing.assert_array_equal(losses.curve(at, z=z)[1], product)
        everything = np.arange(losses.n_queries)
        matrix = losses.curve_rows(at, rows, everything)
        np.testing.assert_allclose(matrix, X.T @ H @ X, atol=1e-9)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(st.integers(-6, 6), st.integers(0, 3)), min_size=2, max_size=30))
def test_pairs_at_the_margin_and_ties_are_distinguished(rows):
    # Scores are quarters, so that distances of exactly 1, and equal scores, abound.
    s, y = np.array([a / 4 for a, _ in rows]), np.array([float(b) for _, b in rows])
    pairs = plain.pairs_of(y, np.zeros(len(y)))
    if not pairs:
        return
    losses = losses_of(y, None)
    at = losses.evaluate(Terms.squared_hinge(1.0), scores=s[losses.pairing.docs])
    assert at.sums[0, 0] == plain.loss_of(s, pairs, 1)
    assert at.sums[0, 1] == plain.loss_of(s, pairs, 2)
    active = plain.curvature_of(s, pairs)
    np.testing.assert_array_equal(
        by_row(losses, at.curvatures), np.diag(active)[: 1 + max(losses.pairing.docs)]
    )


def test_listed_pairs_of_labels_give_the_same_result():
    for seed in range(5):
        X, y, qid, v, w = problem(seed, weights=True)
        rows, terms = as_rows(X), Terms.smooth_hinge(1.5, 0.5)
        pairs = plain.pairs_of(y, qid)
        listed = np.array([(i, j) for i, j, _ in pairs])
        queries = queries_of(qid, None, len(y))
        one = losses_of(y, qid, v, True, 1, rows)
        two = PairLosses(pair_by_list(listed, None, queries, v), True, 1, rows)
        a, b = (part.evaluate(terms, rows=rows, weights=w) for part in (one, two))
        np.testing.assert_allclose(a.loss, b.loss, rtol=1e-13)
        np.testing.assert_allclose(a.pulled, b.pulled, atol=1e-12)
        p = np.array([1.0, 2.0, -1.0])
        np.testing.assert_allclose(
            one.curve(a, rows=rows, weights=p)[2], two.curve(b, rows=rows, weights=p)[2], atol=1e-12
        )
        matrices = [
            part.curve_rows(at, rows, np.arange(part.n_queries))
            for part, at in ((one, a), (two, b))
        ]
        np.testing.assert_allclose(*matrices, atol=1e-11)


def test_no_digits_are_lost_if_scores_are_far_apart():
    # Groups of scores a million apart, in the right order: only pairs within a group cost anything,
    # and they cost little. Sums of s and s^2 would lose 12 digits.
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(50), 4)
    s = group * 1e6 + rng.integers(0, 2**20, 200) / 2**20
    y = group * 2 + rng.integers(0, 2, 200).astype(np.float64)
    losses = losses_of(y, None)
    at = losses.evaluate(Terms.squared_hinge(1.0), scores=s[losses.pairing.docs])
    exact = [Fraction(0), Fraction(0)]
    for i, j, _ in plain.pairs_of(y, np.zeros(200)):
        gap = 1 - (Fraction(s[i]) - Fraction(s[j]))
        if gap > 0:
            exact[0] += gap
            exact[1] += gap**2
    for k in range(2):
        assert abs(Fraction(at.sums[0, k]) / exact[k] - 1) < 1e-14


@pytest.mark.parametrize("n", [5, 120, 5000])
def test_the_order_of_the_last_evaluation_changes_nothing(n):
    rng = np.random.default_rng(n)
    y = rng.integers(0, 3, n).astype(np.float64)
    used = losses_of(y, None)
    terms = Terms.squared_hinge(1.0)
    s = rng.normal(size=n)
    for step in [1.0, 0.1, 0.001, 10.0, -1.0]:  # near to and far from the last order
        s = s + step * rng.normal(size=n)
        fresh = losses_of(y, None).evaluate(terms, scores=s)
        again = used.evaluate(terms, scores=s)
        assert again.loss == fresh.loss
        np.testing.assert_array_equal(again.slopes, fresh.slopes)


@pytest.mark.parametrize("n_jobs", [2, 5])
def test_threads_change_no_bit(n_jobs):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(4000, 7)), rng.integers(0, 4, 4000).astype(np.float64)
    qid = np.sort(rng.integers(0, 150, 4000))
    rows, terms, w = as_rows(X), Terms.smooth_hinge(1.0, 0.5), rng.normal(size=7)
    results = []
    for jobs in [1, n_jobs]:
        with losses_of(y, qid, None, True, jobs, rows) as losses:
            at = losses.evaluate(terms, rows=rows, weights=w)
            product = losses.curve(at, rows=rows, weights=w)[2]
            matrix = losses.curve_rows(at, rows, np.arange(20))
            results.append((at.loss, at.pulled, at.slopes, product, matrix))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_kernel_rejects_mismatched_arrays():
    good = {
        "docs": np.arange(3),
        "bounds": np.array([0, 3]),
        "levels": np.array([0, 1, 1], dtype=np.uint32),
        "n_levels": np.array([2]),
        "weights": None,
        "steps": np.ones(1),
        "pair_bounds": None,
        "winners": None,
        "losers": None,
        "pair_weights": None,
        "order": np.arange(3, dtype=np.uint32),
    }
    listed = {
        "pair_bounds": np.array([0, 1]),
        "winners": np.array([0], dtype=np.int32),
        "losers": np.array([1], dtype=np.int32),
    }
    bad = [
        {"bounds": np.array([0, 2])},
        {"bounds": np.array([1, 3])},
        {"bounds": np.array([0, 4, 3]), "n_levels": np.array([2, 2]), "steps": np.ones(2)},
        {"levels": np.array([0, 1, 2], dtype=np.uint32)},
        {"n_levels": np.array([0])},
        {"steps": np.ones(2)},
        {"weights": np.ones(2)},
        {"docs": np.array([0, 1, -1])},
        {"order": np.array([0, 1, 3], dtype=np.uint32)},
        listed | {"winners": np.array([3], dtype=np.int32)},
        listed | {"losers": np.array([-1], dtype=np.int32)},
        listed | {"pair_bounds": np.array([0, 2])},
        listed | {"losers": None},
        listed | {"pair_weights": np.ones(2)},
    ]
    for part in bad:
        with pytest.raises(ValueError):  # noqa: PT011 (which one is not for users)
            kernels.PairLoss(**{**good, **part})
    pairs = kernels.PairLoss(**good)
    ones, three = np.ones(1), np.ones(3)
    fine = [pairs, None, None, three, ones, ones, three, three, np.ones((1, 1, 2)), None, 0, 1]
    kernels.evaluate(*fine)
    for place, wrong in [
        (3, np.ones(2)),
        (4, np.ones(3)),
        (5, np.ones(2)),
        (6, np.ones(4)),
        (8, np.ones((1, 2, 2))),
        (11, 2),
        (10, -1),
        (1, as_rows(np.ones((2, 2)))),
    ]:
        arguments = list(fine)
        arguments[place] = wrong
        with pytest.raises(ValueError):  # noqa: PT011
            kernels.evaluate(*arguments)
