"""Measures of pairs of documents: golden numbers, every pair in fractions, peers, bad input."""

import math
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankcore._ext import auc as auc_kernels
from rankcore._ext import concordance as kernels
from rankcore._ext import weighted_loss as position_kernels
from rankcore.metrics import auc as auc_module
from rankcore.metrics import (
    auc_score,
    evaluate,
    kendall_tau,
    margin_loss,
    pairwise_misranking,
    weighted_ranking_loss,
)
from reference import concordance as reference
from strategies import examples

# One rounded division of exact counts.
ONE_ROUNDING = 2**-52


@st.composite
def judged(draw, max_size=40):
    """Labels and scores with many ties, zeros of both signs and numbers next to each other."""
    n = draw(st.integers(1, max_size))
    labels = st.sampled_from([-1.5, -0.0, 0.0, 1.0, 2.0, 2.5])
    near = [1.0, 1.0 + 2**-52, 5e-324, -3e-300]
    scores = st.sampled_from([-0.0, 0.0, -1.0, 0.5, 7.25, *near]) | st.integers(-2000, 2000)
    return (
        draw(st.lists(labels, min_size=n, max_size=n)),
        [float(x) for x in draw(st.lists(scores, min_size=n, max_size=n))],
    )


def scattered(queries):
    """Rows of several queries, dealt out in turns: labels, scores and query ids."""
    rows = [
        (i, q, row)
        for q, (labels, scores) in enumerate(queries)
        for i, row in enumerate(zip(labels, scores, strict=True))
    ]
    rows.sort(key=lambda row: row[0])
    labels, scores = zip(*(row for _, _, row in rows), strict=True)
    return labels, scores, [f"q{q}" for _, q, _ in rows]


# ---------------------------------------------------------------- golden numbers


def test_golden_auc():
    # By hand: 8 of 12 pairs in order, 2 tied.
    labels, scores = [1, 1, 1, 1, 0, 0, 0], [0.9, 0.5, 0.5, 0.3, 0.5, 0.4, 0.1]
    assert auc_score(labels, scores, ties="pessimistic") == 8 / 12
    assert auc_score(labels, scores) == 9 / 12
    assert auc_score(labels, scores, ties="optimistic") == 10 / 12


def test_golden_margin_loss():
    values = [margin_loss([1, 0], [d, 0], 0.5) for d in (-1, 0, 0.25, 0.5, 1)]
    assert values == [1, 1, 0.5, 0, 0]


@pytest.mark.parametrize(
    ("w", "swapped", "reverse"),
    [
        ("unit", 0.2, 1),
        (("top_k", 2), 0.1, 0.7),
        (("bipartite", 2), 0, 0.6),
        ("difference", 0.2, 2.0),
        ("reciprocal", 0.058333, 0.37),
        ("dcg", 0.043839, 0.285310),
    ],
)
def test_golden_position_losses(w, swapped, reverse):
    labels = [5, 4, 3, 2, 1]
    # The documents stand at positions 2, 1, 4, 3, 5; then the other way round. Six digits given.
    assert weighted_ranking_loss(labels, [4, 5, 2, 3, 1], w) == pytest.approx(swapped, abs=5e-7)
    assert weighted_ranking_loss(labels, [1, 2, 3, 4, 5], w) == pytest.approx(reverse, abs=5e-7)


# ---------------------------------------------------------------- AUC


@pytest.mark.parametrize("ties", ["half", "optimistic", "pessimistic"])
@pytest.mark.parametrize("huge", [False, True])
@given(data=judged(), rel=st.sampled_from([-1.0, 0, 0.5, 1, 2.5]))
@settings(deadline=None)
def test_auc_pair_by_pair(huge, ties, data, rel):
    labels, scores = data
    expected = reference.auc(labels, scores, rel, ties)
    with mock.patch.multiple(auc_module, _HUGE=1 if huge else 1 << 60, _BLOCK=7):
        found = auc_score(labels, scores, rel=rel, ties=ties)
    assert math.isnan(found) if expected is None else found == float(expected)


@pytest.mark.parametrize("huge", [False, True])
@given(data=judged(), seed=st.integers(0, 99), scale=st.sampled_from([1.0, 1e-200, 1e200]))
@settings(deadline=None)
def test_weighted_auc_pair_by_pair(huge, data, seed, scale):
    labels, scores = data
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 3, len(labels)) * rng.random(len(labels)) * scale
    if not weights.any():
        weights[0] = scale
    expected = reference.auc(labels, scores, weights=weights.tolist())
    with mock.patch.multiple(auc_module, _HUGE=1 if huge else 1 << 60, _BLOCK=7):
        found = auc_score(labels, scores, sample_weight=weights)
    # Some roundings of sums of fewer than 40 numbers of one sign.
    assert (
        math.isnan(found)
        if expected is None
        else found == pytest.approx(float(expected), rel=1e-14)
    )


@given(data=judged())
@settings(deadline=None)
def test_identities_of_auc_and_misranking(data):
    labels, scores = data
    binary = [float(label >= 1) for label in labels]
    low, half, high = (
        auc_score(binary, scores, ties=ties) for ties in ("pessimistic", "half", "optimistic")
    )
    errors = [pairwise_misranking(binary, scores, ties=t) for t in ("error", "half", "correct")]
    if math.isnan(half):
        assert all(map(math.isnan, [low, high, *errors]))
        return
    assert half == pytest.approx((low + high) / 2, abs=ONE_ROUNDING)
    assert [1 - low, 1 - half, 1 - high] == pytest.approx(errors, abs=ONE_ROUNDING)
    turned = auc_score(binary, [-x for x in scores])
    assert turned == pytest.approx(1 - half, abs=ONE_ROUNDING)
    ones = auc_score(binary, scores, sample_weight=np.ones(len(binary)))
    assert ones == half


def hard_scores(rng, n):
    """Scores that buckets might get wrong: tied, one heavy value, spread, outliers, in order."""
    normal = rng.normal(size=n)
    yield normal
    yield rng.integers(0, 5, n).astype(float)
    yield np.where(rng.random(n) < 0.7, 0.25, normal)
    yield np.exp(rng.normal(size=n) * 100)
    yield np.concatenate([normal[1:] * 1e-300, [1e300]])
    yield np.concatenate([normal[: n // 2], np.abs(normal[n // 2 :]) * 1e307])
    yield 5e-324 * rng.integers(0, 10**6, n)
    yield np.sort(normal)[::-1].copy()
    yield np.full(n, -0.0)
    yield np.where(normal > 0, 0.0, -0.0)
    yield normal.astype(np.float32)
    yield rng.integers(-(2**40), 2**40, n)


def test_auc_of_many_rows_as_scikit_learn():
    roc_auc_score = pytest.importorskip("sklearn.metrics").roc_auc_score
    rng = np.random.default_rng(0)
    n = 150_000
    assert n > auc_module._HUGE
    for scores in hard_scores(rng, n):
        labels = rng.integers(0, 4, n)
        weights = rng.random(n)
        found = auc_score(labels, scores, rel=3)
        # scikit-learn adds up the areas of up to n trapezoids; ours is rounded once.
        assert found == pytest.approx(roc_auc_score(labels >= 3, scores), rel=1e-12)
        assert found == auc_score(labels, scores, rel=3, n_jobs=3)
        # Sorted by others, counted by another formula: the mean rank of the positive rows.
        ranked = np.unique(scores, return_inverse=True, return_counts=True)
        middle = 2 * np.cumsum(ranked[2]) - ranked[2] + 1
        p = int((labels >= 3).sum())
        twice = int(middle[ranked[1]][labels >= 3].sum()) - p * (p + 1)
        assert found == twice / (2 * p * (n - p))
        weighted = auc_score(labels, scores, rel=3, sample_weight=weights)
        expected = roc_auc_score(labels >= 3, scores, sample_weight=weights)
        assert weighted == pytest.approx(expected, rel=1e-11)  # as above, of rounded weights
        assert weighted == auc_score(labels, scores, rel=3, sample_weight=weights, n_jobs=2)
        counted = rng.integers(0, 3, n)
        repeated = auc_score(np.repeat(labels, counted), np.repeat(scores, counted), rel=3)
        assert auc_score(labels, scores, rel=3, sample_weight=counted) == pytest.approx(
            repeated, rel=1e-15
        )


def test_auc_takes_any_numbers():
    labels, scores = np.array([0, 1, 1, 0]), np.array([1, 3, 2, 2])
    for y_type in (bool, np.int8, np.uint64, np.float16, np.float32, ">f8"):
        for s_type in (np.int8, np.uint16, np.float32, np.longdouble, ">i4"):
            for huge in (1, 1 << 60):
                with mock.patch.object(auc_module, "_HUGE", huge):
                    found = auc_score(labels.astype(y_type), scores.astype(s_type))
                    assert found == 0.875
    assert auc_score(labels[::-1], scores[::-1]) == 0.875
    assert auc_score(labels.tolist(), tuple(scores)) == 0.875


def test_auc_without_one_of_the_classes():
    for labels in ([1, 1], [0, 0], [1]):
        scores = range(len(labels))
        assert math.isnan(auc_score(labels, scores))
        assert auc_score(labels, scores, empty=0.5) == 0.5
        assert math.isnan(auc_score(labels, scores, empty=float("nan")))
        with pytest.raises(ValueError, match="AUC compares labels >= 1 with smaller ones"):
            auc_score(labels, scores, empty="raise")
    assert math.isnan(auc_score([1, 0, 0], [1, 2, 3], sample_weight=[0, 1, 1]))
    labels, scores, qid = [1, 0, 1, 1], [1, 0, 3, 4], ["a", "a", "b", "b"]
    assert auc_score(labels, scores, qid=qid) == 1
    ids, values = auc_score(labels, scores, qid=qid, per_query=True)
    assert ids.tolist() == ["a", "b"]
    assert values[0] == 1
    assert math.isnan(values[1])
    assert auc_score(labels, scores, qid=qid, empty=0) == 0.5
    assert auc_score(labels, scores, qid=qid, empty=0, query_weight=[3, 1]) == 0.75
    with pytest.raises(ValueError, match="one is missing, in query 'b'"):
        auc_score(labels, scores, qid=qid, empty="raise")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ties": "average"}, r"ties must be one of \['half', 'optimistic', 'pessimistic'\]"),
        ({"empty": "zero"}, "empty must be a number, 'skip' or 'raise'; found 'zero'"),
        ({"empty": None}, "empty must be"),
        ({"rel": float("nan")}, "rel must be a number"),
        ({"rel": "1"}, "rel must be a number"),
        ({"sample_weight": [1, 1]}, "sample_weight must have one weight for each of the 3 rows"),
        ({"sample_weight": [1, -1, 1]}, "sample_weight must be finite, not negative"),
        ({"sample_weight": [1, math.nan, 1]}, "sample_weight must be finite"),
        ({"sample_weight": [0, 0, 0]}, "not all zero"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"qid": [1, 2]}, "qid must name"),
        ({"query_weight": [1, 1]}, "query_weight"),
    ],
)
def test_auc_refuses(options, message):
    with pytest.raises(ValueError, match=message):
        auc_score([0, 1, 0], [1, 2, 3], **options)


# ---------------------------------------------------------------- all of them

MEASURES = [
    auc_score,
    pairwise_misranking,
    kendall_tau,
    margin_loss,
    weighted_ranking_loss,
    lambda y, s, **options: weighted_ranking_loss(y, s, lambda i, j: 1, **options),
]


@pytest.mark.parametrize("measure", MEASURES)
def test_bad_labels_and_scores_are_named(measure):
    for odd in (math.nan, math.inf, -math.inf):
        with pytest.raises(ValueError, match="y_score must be finite.* query 'b'"):
            measure([1, 0, 1], [1, 2, odd], qid=["a", "a", "b"])
        with pytest.raises(ValueError, match="y_true must be finite"):
            measure([1, 0, odd], [1, 2, 3])
        with (
            mock.patch.object(auc_module, "_HUGE", 1),
            pytest.raises(ValueError, match="y_score must be finite"),
        ):
            measure([1, 0, 1], [1, 2, odd])
    with pytest.raises(
        ValueError, match="y_true and y_score must have the same length; found 2 and 3"
    ):
        measure([1, 0], [1, 2, 3])
    with pytest.raises(ValueError, match="y_true and y_score are empty"):
        measure(np.zeros(0), np.zeros(0))
    with pytest.raises(ValueError, match="y_score must have one dimension"):
        measure([1, 0], [[1, 2]])
    with pytest.raises(TypeError, match="y_true must be real numbers"):
        measure(["a", "b"], [1, 2])
    with pytest.raises(TypeError, match="y_score must be real numbers"):
        measure([1, 0], [1j, 2])


@pytest.mark.parametrize("measure", MEASURES)
@given(queries=st.lists(judged(15), min_size=1, max_size=5))
@settings(max_examples=examples(30), deadline=None)
def test_each_query_as_if_alone(measure, queries):
    labels, scores, qid = scattered(queries)
    ids, values = measure(labels, scores, qid=qid, per_query=True)
    assert ids.tolist() == list(dict.fromkeys(qid))
    for query, value in zip(ids, values, strict=True):
        alone = measure(*queries[int(query[1:])])
        np.testing.assert_array_equal(value, alone)
    for n_jobs in (2, -1):
        again = measure(labels, scores, qid=qid, per_query=True, n_jobs=n_jobs)[1]
        np.testing.assert_array_equal(again, values)
    order = np.argsort(qid, kind="stable")
    together = measure(
        np.array(labels)[order], np.array(scores)[order], qid=np.array(qid)[order], per_query=True
    )
    np.testing.assert_array_equal(together[1], values[np.argsort(ids)])
    mean = measure(labels, scores, qid=qid)
    counted = values[~np.isnan(values)]
    if counted.size == 0:
        assert math.isnan(mean)
    else:
        assert mean == pytest.approx(counted.mean(), rel=1e-15)  # the same sum


@pytest.mark.parametrize("measure", MEASURES)
def test_weights_of_queries(measure):
    labels, scores, qid = [1, 0, 1, 0, 2, 1, 0], [1, 0, 0, 1, 1, 3, 2], [1, 1, 2, 2, 3, 3, 3]
    values = measure(labels, scores, qid=qid, per_query=True)[1]
    found = measure(labels, scores, qid=qid, query_weight=[1, 0, 3])
    assert found == pytest.approx((values[0] + 3 * values[2]) / 4)
    with pytest.raises(ValueError, match="query_weight"):
        measure(labels, scores, qid=qid, query_weight=[1, -1, 0])


# ---------------------------------------------------------------- misranking and tau


@pytest.mark.parametrize("ties", ["error", "half", "correct"])
@given(data=judged())
@settings(deadline=None)
def test_misranking_pair_by_pair(ties, data):
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
def test_tau_pair_by_pair(data):
    above, below_squared = reference.kendall(*data)
    found = kendall_tau(*data)
    if below_squared == 0:
        assert math.isnan(found)
    else:
        # A product, a root and a quotient are rounded.
        assert found == pytest.approx(above / math.sqrt(below_squared), rel=4 * ONE_ROUNDING)


@pytest.mark.parametrize("n", [15, 16, 17, 33, 1000, 40_000])
def test_long_queries_as_scipy(n):
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
    with pytest.raises(ValueError, match="choose one"):
        pairwise_misranking(labels, scores, pooled=True, per_query=True)
    with pytest.raises(ValueError, match="query_weight"):
        pairwise_misranking(labels, scores, qid=qid, pooled=True, query_weight=[1, 2])
    with pytest.raises(ValueError, match="ties must be one of"):
        pairwise_misranking([0, 1], [1, 2], ties="optimistic")


# ---------------------------------------------------------------- margin loss


@given(data=judged(), rho=st.sampled_from([1.0, 0.5, 3.0, 0.1, 1000.0, 2**-52, 1e-310]))
@settings(deadline=None)
def test_margin_loss_pair_by_pair(data, rho):
    expected = reference.margin_loss(*data, rho)
    found = margin_loss(*data, rho)
    if expected is None:
        assert math.isnan(found)
    else:
        # Two quotients are rounded, and differences of scores where the loss is next to 0: these
        # are as near to it as two scores of up to 2000 can be, over the margin.
        odd = 0 if rho < 1e-3 else 2000 * 2**-52 / rho
        assert found == pytest.approx(float(expected), rel=1e-15, abs=odd)


def test_margin_loss_of_long_queries():
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
def test_margin_loss_is_between_two_shares(data, rho):
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


def test_margin_loss_of_given_pairs():
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
        ({"rho": 0}, ValueError, "rho must be a positive number; found 0"),
        ({"rho": math.inf}, ValueError, "rho must be a positive number"),
        ({"rho": math.nan}, ValueError, "rho must be a positive number"),
        ({"rho": "1"}, ValueError, "rho must be a positive number"),
        ({"pairs_weight": [1]}, ValueError, "name them in pairs="),
        ({"pairs": [[0.0, 1.0]]}, TypeError, "pairs must hold rows"),
        ({"pairs": [0, 1]}, ValueError, r"pairs must have shape \(n_pairs, 2\)"),
        ({"pairs": np.zeros((0, 2), int)}, ValueError, "pairs must have shape"),
        ({"pairs": [[0, 3]]}, ValueError, "rows from 0 to 2; found 0 to 3"),
        ({"pairs": [[0, -1]]}, ValueError, "found -1 to 0"),
        ({"pairs": [[0, 1], [0, 2]], "qid": [1, 1, 2]}, ValueError, "pair 1 has rows of query 1 a"),
        ({"pairs": [[0, 1]], "pairs_weight": [1, 2]}, ValueError, "length 1 .one per pair."),
        ({"pairs": [[0, 1]], "pairs_weight": [-1]}, ValueError, "pairs_weight must be finite"),
        ({"pairs": [[0, 1]], "pairs_weight": [0]}, ValueError, "not be all zero"),
    ],
)
def test_margin_loss_refuses(options, error, message):
    with pytest.raises(error, match=message):
        margin_loss([0, 1, 0], [1, 2, 3], **options)


def test_margin_loss_of_huge_scores():
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
def test_position_losses_pair_by_pair(name, data):
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


def test_position_losses_of_long_queries():
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


def test_equal_scores_stand_in_order_of_rows():
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
            r"w=\('top_k', number\): the number must be an integer of at least 1; found None",
        ),
        (("top_k", 0), "at least 1; found 0"),
        (("bipartite", 1.5), "at least 1; found 1.5"),
        (("unit", 3), "takes no number; found 3"),
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
def test_weights_that_are_none(w, message):
    with pytest.raises(ValueError, match=message):
        weighted_ranking_loss([0, 1, 2], [3, 2, 1], w)


# ---------------------------------------------------------------- kernels


def test_kernels_check_what_they_are_handed():
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
        trouble, _ = kernel(x, x, np.array([0, 1, 2, 4]), bounds, 0, 2, *rest)
        assert kernels.TROUBLES[trouble] == "row"
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
    with pytest.raises(IndexError, match="rows names a row"):
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
    with pytest.raises(ValueError, match="no splitters"):
        auc_kernels.place_splitters(values[1:], starts, 0.0, 0.0)


def test_evaluate_knows_these_names():
    labels, scores, qid = [2, 1, 0, 1, 0, 2], [3, 2, 1, 1, 2, 1], [1, 1, 1, 2, 2, 2]
    found = evaluate(labels, scores, qid=qid, metrics=["auc", "auc(rel=2)"])
    assert found["auc"] == auc_score(labels, scores, qid=qid)
    assert found["auc(rel=2)"] == auc_score(labels, scores, qid=qid, rel=2)
