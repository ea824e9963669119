"""Misranking, tau, margin loss and losses of positions against plain counting."""

import math
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concordance_problems import ONE_ROUNDING, hard_scores, judged
from rankcore._ext import auc as auc_kernels
from rankcore._ext import concordance as kernels
from rankcore._ext import weighted_loss as position_kernels
from rankcore.metrics import (
    auc_score,
    evaluate,
    kendall_tau,
    margin_loss,
    pairwise_misranking,
    weighted_ranking_loss,
)
from reference import concordance as reference

pytestmark = pytest.mark.kernel

# ---------------------------------------------------------------- misranking and tau


@pytest.mark.parametrize("ties", ["error", "half", "correct"])
@given(data=judged())
@settings(deadline=None)
def test_misranking_equals_a_loop_over_pairs(ties, data):
    halves, pairs = reference.misranking(*data, ties)
    found = pairwise_misranking(*data, ties=ties)
    assert math.isnan(found) if pairs == 0 else found == halves / (2 * pairs)


def test_tau_of_a_perfect_order_is_exactly_one():
    for n in range(3, 100):
        y = np.arange(n) // 2
        assert kendall_tau(y, y) == 1
        assert kendall_tau(y, -y) == -1
        assert kendall_tau(np.arange(n), np.arange(n) / 3) == 1


@given(data=judged())
@settings(deadline=None)
def test_tau_equals_a_loop_over_pairs(data):
    above, below_squared = reference.kendall(*data)
    found = kendall_tau(*data)
    if below_squared == 0:
        assert math.isnan(found)
    else:
        # A product, a root and a quotient are rounded.
        assert found == pytest.approx(above / math.sqrt(below_squared), rel=4 * ONE_ROUNDING)


@pytest.mark.parametrize("n", [15, 16, 17, 33, 1000, 40_000])
def test_tau_of_long_queries_equals_scipy(n):
    kendalltau = pytest.importorskip("scipy.stats").kendalltau
    rng = np.random.default_rng(n)
    for scores in hard_scores(rng, n):
        for labels in (rng.integers(0, 3, n), rng.normal(size=n), -scores):
            found, expected = kendall_tau(labels, scores), kendalltau(labels, scores).statistic
            # We round a product, a root and a quotient, SciPy two roots and two quotients.
            assert found == pytest.approx(expected, rel=8 * ONE_ROUNDING, nan_ok=True)
            # 1 - 2 * errors is the mean of signs over pairs that differ in their labels.
            wrong = pairwise_misranking(labels, scores, ties="half")
            assert pairwise_misranking(labels, -scores, ties="half") == pytest.approx(
                1 - wrong, abs=ONE_ROUNDING, nan_ok=True
            )


def test_pooled_misranking_counts_pairs():
    labels, scores, qid = [1, 0, 1, 1, 0, 0], [0, 1, 2, 1, 0, 1], "aabbbb"
    labels, scores, qid = [*labels, 1], [*scores, 5], [*qid, "c"]  # a query without pairs
    assert pairwise_misranking(labels, scores, qid=qid) == (1 + 1 / 4) / 2
    assert pairwise_misranking(labels, scores, qid=qid, pooled=True) == 2 / 5
    weighted = pairwise_misranking(labels, scores, qid=qid, pooled=True, query_weight=[3, 1, 9])
    assert weighted == 4 / 7
    assert math.isnan(pairwise_misranking([1, 1], [1, 2], pooled=True))
    assert math.isnan(
        pairwise_misranking(labels, scores, qid=qid, pooled=True, query_weight=[0, 0, 1])
    )
    with pytest.raises(ValueError, match="pooled and per_query exclude"):
        pairwise_misranking(labels, scores, pooled=True, per_query=True)
    with pytest.raises(ValueError, match="query_weight"):
        pairwise_misranking(labels, scores, qid=qid, pooled=True, query_weight=[1, 2])
    with pytest.raises(ValueError, match="ties must be one of"):
        pairwise_misranking([0, 1], [1, 2], ties="optimistic")


# ---------------------------------------------------------------- margin loss


@given(data=judged(), rho=st.sampled_from([1.0, 0.5, 3.0, 0.1, 1000.0, 2**-52, 1e-310]))
@settings(deadline=None)
def test_margin_loss_equals_a_loop_over_pairs(data, rho):
    expected = reference.margin_loss(*data, rho)
    found = margin_loss(*data, rho)
    if expected is None:
        assert math.isnan(found)
    else:
        # Two quotients are rounded, and differences of scores where the loss is next to 0: these
        # are as near to it as two scores of up to 2000 can be, over the margin.
        odd = 0 if rho < 1e-3 else 2000 * 2**-52 / rho
        assert found == pytest.approx(float(expected), rel=1e-15, abs=odd)


def test_margin_loss_of_long_queries_equals_a_loop_over_pairs():
    rng = np.random.default_rng(5)
    n = 1000
    for shift in (0.0, 1e9):  # sums of numbers that hardly differ
        for levels in (2, 5, n):
            labels, scores = rng.integers(0, levels, n), rng.normal(size=n) + shift
            distance = scores[:, None] - scores
            better = labels[:, None] > labels
            for rho in (0.01, 1.0, 50.0):
                losses = np.clip(1 - distance[better] / rho, 0, 1)
                # Differences of scores around 1e9 are exact: they share an exponent, nearly all.
                # NumPy rounds each loss.
                expected = math.fsum(losses) / losses.size
                assert margin_loss(labels, scores, rho) == pytest.approx(expected, rel=1e-13)


@given(data=judged(), rho=st.sampled_from([0.25, 1.0, 30.0]))
@settings(deadline=None)
def test_margin_loss_is_between_two_fractions(data, rho):
    labels, scores = data
    found = margin_loss(labels, scores, rho)
    if math.isnan(found):
        return
    pairs = reference.ordered_pairs(labels)
    short = sum(Fraction(scores[i]) - Fraction(scores[j]) <= rho for i, j in pairs) / len(pairs)
    assert pairwise_misranking(labels, scores) - ONE_ROUNDING <= found <= short + ONE_ROUNDING
    explicit = margin_loss(None, scores, rho, pairs=pairs)
    # Differences of scores that are rounded, and a mean in another order.
    assert found == pytest.approx(explicit, rel=1e-12, abs=2000 * 2**-52 / rho)


def test_margin_loss_of_listed_pairs_is_their_mean():
    scores, pairs = [1.0, 0.75, 0.0, 2.0], [[0, 1], [2, 0], [3, 2]]
    assert margin_loss(None, scores, pairs=pairs) == (0.75 + 1 + 0) / 3
    assert margin_loss(None, scores, pairs=pairs, pairs_weight=[2, 1, 1]) == 2.5 / 4
    ids, values = margin_loss(
        None, scores, pairs=[[0, 2], [3, 1]], qid=["a", "b", "a", "b"], per_query=True
    )
    assert (ids.tolist(), values.tolist()) == (["a", "b"], [0.0, 0.0])
    values = margin_loss(None, scores, pairs=pairs[:1], qid=[7, 7, 8, 8], per_query=True)[1]
    assert values[0] == 0.75
    assert math.isnan(values[1])
    assert margin_loss(None, scores, pairs=pairs[:1], qid=[7, 7, 8, 8]) == 0.75
    assert margin_loss(None, [-1e308, 1e308], pairs=[[0, 1]]) == 1
    assert margin_loss(None, [-1e308, 1e308], pairs=[[1, 0]]) == 0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"rho": 0}, ValueError, "rho must be a positive number; got 0"),
        ({"rho": math.inf}, ValueError, "rho must be a positive number"),
        ({"rho": math.nan}, ValueError, "rho must be a positive number"),
        ({"rho": "1"}, ValueError, "rho must be a positive number"),
        ({"pairs_weight": [1]}, ValueError, "pass them as pairs="),
        ({"pairs": [[0.0, 1.0]]}, TypeError, "pairs must hold integer row numbers"),
        ({"pairs": [0, 1]}, ValueError, r"pairs must have shape \(n_pairs, 2\)"),
        ({"pairs": np.zeros((0, 2), int)}, ValueError, "pairs must have shape"),
        ({"pairs": [[0, 3]]}, ValueError, "rows from 0 to 2; got 0 to 3"),
        ({"pairs": [[0, -1]]}, ValueError, "got -1 to 0"),
        ({"pairs": [[0, 1], [0, 2]], "qid": [1, 1, 2]}, ValueError, "pair 1 has rows of query 1 a"),
        ({"pairs": [[0, 1]], "pairs_weight": [1, 2]}, ValueError, "length 1 .one per pair."),
        ({"pairs": [[0, 1]], "pairs_weight": [-1]}, ValueError, "pairs_weight must be finite"),
        ({"pairs": [[0, 1]], "pairs_weight": [0]}, ValueError, "not be all zero"),
    ],
)
def test_margin_loss_rejects_bad_input(options, error, message):
    with pytest.raises(error, match=message):
        margin_loss([0, 1, 0], [1, 2, 3], **options)


def test_margin_loss_of_huge_scores_is_right_or_rejected():
    assert margin_loss([1, 0], [1e308, -1e308]) == 0
    assert margin_loss([0, 1], [1e308, -1e308]) == 1
    with pytest.raises(ValueError, match="too large to be summed.*query 0"):
        margin_loss([1, 1, 0], [1e308, 1.1e308, 0.9e308], rho=1e308)
    with pytest.raises(ValueError, match="y_score must be finite"):
        margin_loss(None, [1, math.nan], pairs=[[0, 1]])


# ---------------------------------------------------------------- losses of positions


def log_gain(i):
    return 1 / np.log2(1.0 + i)


WEIGHTS = {
    "unit": ("unit", lambda i, j: 1),
    "top_k": (("top_k", 3), lambda i, j: int(min(i, j) <= 3)),
    "bipartite": (("bipartite", 4), lambda i, j: int(i <= 4 < j)),
    "difference": ("difference", lambda i, j: j - i),
    "reciprocal": ("reciprocal", lambda i, j: Fraction(1, i) - Fraction(1, j)),
    "dcg": ("dcg", lambda i, j: Fraction(float(log_gain(i))) - Fraction(float(log_gain(j)))),
}


@pytest.mark.parametrize("name", WEIGHTS)
@given(data=judged())
@settings(deadline=None)
def test_position_losses_equal_a_loop_over_pairs(name, data):
    w, plain = WEIGHTS[name]
    expected = float(reference.position_loss(*data, plain))
    found = weighted_ranking_loss(*data, w)
    if name in ("reciprocal", "dcg"):
        # The value of a position is rounded, and counts up to as many times as there are pairs.
        assert found == pytest.approx(expected, abs=2 * ONE_ROUNDING)
    else:
        assert found == expected
    n = len(data[0])
    table = np.zeros((n + 2, n + 2))
    for i in range(1, n + 3):
        for j in range(i + 1, n + 3):
            table[i - 1, j - 1] = table[j - 1, i - 1] = plain(i, j)
    assert weighted_ranking_loss(*data, table) == pytest.approx(expected, rel=1e-13)

    def function(i, j):
        assert (i < j).all()
        return table[i - 1, j - 1]

    with mock.patch("rankcore.metrics.weighted_loss._PAIRS", 100):  # several blocks
        assert weighted_ranking_loss(*data, function) == pytest.approx(expected, rel=1e-13)


def test_position_losses_of_long_queries_equal_a_loop_over_pairs():
    rng = np.random.default_rng(3)
    n = 1200
    for levels in (2, 7, n):
        labels = rng.integers(0, levels, n)
        for scores in hard_scores(rng, n):
            for w, function in [
                ("unit", lambda i, j: 1.0),
                (("top_k", 40), lambda i, j: i <= 40),
                (("bipartite", 500), lambda i, j: (i <= 500) & (j > 500)),
                ("difference", lambda i, j: j - i),
                ("dcg", lambda i, j: log_gain(i) - log_gain(j)),
            ]:
                found = weighted_ranking_loss(labels, scores, w)
                # Pairs are summed one by one on one side: millions of rounded numbers.
                assert found == pytest.approx(
                    weighted_ranking_loss(labels, scores, function), rel=1e-11
                )


@given(data=judged())
@settings(deadline=None)
def test_bipartite_weights_are_one_minus_auc(data):
    labels, scores = data
    scores = [x + 0.0 + i * 1e-9 for i, x in enumerate(scores)]
    binary = [int(label >= 1) for label in labels]
    n, m = len(binary), sum(binary)
    if 0 < m < n and len(set(scores)) == n:
        loss = weighted_ranking_loss(binary, scores, ("bipartite", m))
        share = 2 * m * (n - m) / (n * (n - 1))
        assert loss == pytest.approx(share * (1 - auc_score(binary, scores)), abs=4 * ONE_ROUNDING)


def test_equal_scores_are_ordered_by_row():
    assert weighted_ranking_loss([1, 0], [2, 2]) == 0
    assert weighted_ranking_loss([0, 1], [2, 2]) == 1
    assert weighted_ranking_loss([1, 1], [1, 2]) == 0
    assert weighted_ranking_loss([1], [2]) == 0


@pytest.mark.parametrize(
    ("w", "message"),
    [
        ("units", "w must be one of"),
        (
            "top_k",
            r"w=\('top_k', number\): the number must be an integer of at least 1; got None",
        ),
        (("top_k", 0), "at least 1; got 0"),
        (("bipartite", 1.5), "at least 1; got 1.5"),
        (("unit", 3), "takes no number; got 3"),
        (("best", 3), "w must be one of"),
        ([1, 2], "w must be a name, a square table"),
        (np.zeros((3, 2)), "w must be a name, a square table"),
        (np.zeros((2, 2)), "w is a table for 2 positions, and a query has 3 rows"),
        (np.arange(9).reshape(3, 3), "w must be symmetric"),
        (-np.ones((3, 3)), "w must be finite and not negative, in query 0"),
        (lambda i, j: np.full(i.shape, np.nan), "w must be finite"),
        (lambda i, j: np.ones(i.size + 1), "one weight for each of 3 pairs"),
    ],
)
def test_invalid_weights_are_rejected(w, message):
    with pytest.raises(ValueError, match=message):
        weighted_ranking_loss([0, 1, 2], [3, 2, 1], w)


# ---------------------------------------------------------------- kernels


def test_rows_are_counted_between_splitters():
    n, rng = auc_kernels.N_SPLITTERS, np.random.default_rng(0)
    values, starts = np.full(2 * n, np.inf), np.zeros(auc_kernels.N_CELLS, np.uint16)
    values[:10] = np.arange(10.0)
    where = (values, starts, 0.0, auc_kernels.N_CELLS / 9)
    scores = np.append(rng.uniform(-3, 12, 1000), rng.integers(-3, 12, 50))
    counts = np.zeros(n + 1, np.int64)
    assert auc_kernels.count_buckets(scores, *where, auc_kernels.place_splitters(*where), counts)
    between = scores[~np.isin(scores, values)]
    expected = np.bincount(np.searchsorted(values[:10], between), minlength=n + 1)
    np.testing.assert_array_equal(counts, expected)


def test_kernels_reject_mismatched_arrays():
    x, bounds = np.arange(4.0), np.array([0, 2, 4])
    kinds = {
        kernels.count_pairs: [np.empty((2, 4), np.int64)],
        kernels.margin_losses: [1.0, np.empty(2)],
        position_kernels.position_losses: [9, 0, None, np.empty(2)],
    }
    for kernel, rest in kinds.items():
        assert kernel(x, x, None, bounds, 0, 2, *rest) == (0, 2)
        for wrong in [
            (x, x[:3], None, bounds, 0, 2),
            (x, x, np.zeros(3, np.int64), bounds, 0, 2),
            (x, x, None, bounds, 0, 3),
            (x, x, None, bounds, -1, 2),
            (x, x, None, np.array([0, 2, 5]), 0, 2),
            (x, x, None, np.array([2, 0, 4]), 0, 2),
            (x[:0], x[:0], None, np.array([0, 0]), 0, 1),
        ]:
            with pytest.raises(ValueError, match="."):
                kernel(*wrong, *rest)
        with pytest.raises(ValueError, match="wrong"):
            kernel(x, x, None, bounds, 0, 2, *rest[:-1], rest[-1][:1])
        status, _ = kernel(x, x, np.array([0, 1, 2, 4]), bounds, 0, 2, *rest)
        assert kernels.ERRORS[status] == "row"
    with pytest.raises(ValueError, match="fewer values than positions"):
        position_kernels.position_losses(x, x, None, bounds, 0, 2, 9, 0, x[:1], np.empty(2))
    marks, sums = np.ones(4), np.empty((2, 6))
    for wrong in [
        (x, marks[:3], None, bounds, 0, 2, sums),
        (x, marks, np.zeros(3, np.int64), bounds, 0, 2, sums),
        (x, marks, None, bounds, 0, 2, sums[:1]),
        (x, marks, None, bounds, 0, 3, sums),
    ]:
        with pytest.raises(ValueError, match="."):
            auc_kernels.sum_pairs(*wrong)
    with pytest.raises(IndexError, match="rows has an index"):
        auc_kernels.sum_pairs(x, marks, np.array([0, 1, -2, 3]), bounds, 0, 2, sums)
    values = np.full(2 * auc_kernels.N_SPLITTERS, np.inf)
    starts = np.zeros(auc_kernels.N_CELLS, np.uint16)
    splitters = (values, starts, 0.0, 0.0, auc_kernels.place_splitters(values, starts, 0.0, 0.0))
    places = np.zeros(auc_kernels.N_SPLITTERS + 1, np.int64)
    tied = np.zeros((auc_kernels.N_SPLITTERS, 2))
    with pytest.raises(ValueError, match="more rows than were counted"):
        auc_kernels.deal(x, marks, *splitters, places, np.empty(2), np.empty(2), tied)
    for wrong in [
        (x, marks, values[1:], *splitters[1:], places, x.copy(), marks, tied),
        (x, marks, values, starts[1:], *splitters[2:], places, x.copy(), marks, tied),
        (x, marks, *splitters[:4], 1024, places, x.copy(), marks, tied),
        (x, marks[1:], *splitters, places, x.copy(), marks, tied),
        (x, marks, *splitters, places[1:], x.copy(), marks, tied),
        (x, marks, *splitters, places, x.copy(), marks, tied[1:]),
    ]:
        with pytest.raises(ValueError, match="."):
            auc_kernels.deal(*wrong)
    with pytest.raises(ValueError, match="counts has the wrong length"):
        auc_kernels.count_buckets(x, *splitters, places[1:])
    with pytest.raises(ValueError, match="splitters must be those of place_splitters"):
        auc_kernels.place_splitters(values[1:], starts, 0.0, 0.0)


def test_evaluate_accepts_names_of_pair_measures():
    labels, scores, qid = [2, 1, 0, 1, 0, 2], [3, 2, 1, 1, 2, 1], [1, 1, 1, 2, 2, 2]
    found = evaluate(labels, scores, qid=qid, metrics=["auc", "auc(rel=2)"])
    assert found["auc"] == auc_score(labels, scores, qid=qid)
    assert found["auc(rel=2)"] == auc_score(labels, scores, qid=qid, rel=2)


@pytest.mark.parametrize("tied", [False, True])
def test_sums_of_pairs_are_kept_as_two_numbers(tied):
    # Whole weights: the sum of a few terms is exact in float64, that of all, above 2**53, is not.
    n, rounded = 8000, 0
    scores = np.repeat(np.arange(n // 2.0)[::-1], 2) if tied else np.arange(float(n))[::-1].copy()
    for seed in range(8):
        weights = np.random.default_rng(seed).integers(1, 2**22 if tied else 2**17, n)
        marks, sums = weights * 1.0, np.empty((1, auc_kernels.COLUMNS))
        marks[1::2] *= -1
        auc_kernels.sum_pairs(scores, marks, None, np.array([0, n]), 0, 1, sums)
        above, below = weights[::2].astype(object), weights[1::2].astype(object)
        expected = sum(above * below) if tied else sum(np.cumsum(above) * below)
        high, low = map(int, sums[0, 2:4] if tied else sums[0, :2])
        assert expected > 2**53
        assert high + low == expected
        rounded += high != expected
    assert rounded
