"""The area under the ROC curve against plain counting."""

import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concordance_problems import ONE_ROUNDING, hard_scores, judged
from rankcore.metrics import auc as auc_module
from rankcore.metrics import (
    auc_score,
    kendall_tau,
    margin_loss,
    pairwise_misranking,
    weighted_ranking_loss,
)
from reference import concordance as reference
from strategies import examples

pytestmark = pytest.mark.kernel


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


def test_auc_has_the_golden_values():
    # By hand: 8 of 12 pairs in order, 2 tied.
    labels, scores = [1, 1, 1, 1, 0, 0, 0], [0.9, 0.5, 0.5, 0.3, 0.5, 0.4, 0.1]
    assert auc_score(labels, scores, ties="pessimistic") == 8 / 12
    assert auc_score(labels, scores) == 9 / 12
    assert auc_score(labels, scores, ties="optimistic") == 10 / 12


def test_margin_loss_has_the_golden_values():
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
def test_position_losses_have_the_golden_values(w, swapped, reverse):
    labels = [5, 4, 3, 2, 1]
    # The documents stand at positions 2, 1, 4, 3, 5; then the other way round. Six digits given.
    assert weighted_ranking_loss(labels, [4, 5, 2, 3, 1], w) == pytest.approx(swapped, abs=5e-7)
    assert weighted_ranking_loss(labels, [1, 2, 3, 4, 5], w) == pytest.approx(reverse, abs=5e-7)


# ---------------------------------------------------------------- AUC


@pytest.mark.parametrize("ties", ["half", "optimistic", "pessimistic"])
@pytest.mark.parametrize("huge", [False, True])
@given(data=judged(), rel=st.sampled_from([-1.0, 0, 0.5, 1, 2.5]))
@settings(deadline=None)
def test_auc_equals_a_loop_over_pairs(huge, ties, data, rel):
    labels, scores = data
    expected = reference.auc(labels, scores, rel, ties)
    with mock.patch.multiple(auc_module, _HUGE=1 if huge else 1 << 60, _BLOCK=7):
        found = auc_score(labels, scores, rel=rel, ties=ties)
    assert math.isnan(found) if expected is None else found == float(expected)


@pytest.mark.parametrize("huge", [False, True])
@given(data=judged(), seed=st.integers(0, 99), scale=st.sampled_from([1.0, 1e-200, 1e200]))
@settings(deadline=None)
def test_weighted_auc_equals_a_loop_over_pairs(huge, data, seed, scale):
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
def test_auc_and_misranking_are_consistent(data):
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


def test_auc_of_many_rows_equals_scikit_learn():
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


def test_auc_accepts_any_numbers():
    labels, scores = np.array([0, 1, 1, 0]), np.array([1, 3, 2, 2])
    for y_type in (bool, np.int8, np.uint64, np.float16, np.float32, ">f8"):
        for s_type in (np.int8, np.uint16, np.float32, np.longdouble, ">i4"):
            for huge in (1, 1 << 60):
                with mock.patch.object(auc_module, "_HUGE", huge):
                    found = auc_score(labels.astype(y_type), scores.astype(s_type))
                    assert found == 0.875
    assert auc_score(labels[::-1], scores[::-1]) == 0.875
    assert auc_score(labels.tolist(), tuple(scores)) == 0.875


def test_auc_with_one_class_is_undefined():
    for labels in ([1, 1], [0, 0], [1]):
        scores = range(len(labels))
        assert math.isnan(auc_score(labels, scores))
        assert auc_score(labels, scores, empty=0.5) == 0.5
        assert math.isnan(auc_score(labels, scores, empty=float("nan")))
        with pytest.raises(ValueError, match="AUC requires labels >= 1 and smaller ones"):
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
    with pytest.raises(ValueError, match="one kind is missing, in query 'b'"):
        auc_score(labels, scores, qid=qid, empty="raise")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ties": "average"}, r"ties must be one of \['half', 'optimistic', 'pessimistic'\]"),
        ({"empty": "zero"}, "empty must be a number, 'skip' or 'raise'; got 'zero'"),
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
def test_auc_rejects_bad_input(options, message):
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
        ValueError, match="y_true and y_score must have the same length; got 2 and 3"
    ):
        measure([1, 0], [1, 2, 3])
    with pytest.raises(ValueError, match="y_true and y_score are empty"):
        measure(np.zeros(0), np.zeros(0))
    with pytest.raises(ValueError, match="y_score must have one dimension"):
        measure([1, 0], [[1, 2]])
    with pytest.raises(ValueError, match="words have no order of their own"):
        measure(["a", "b"], [1, 2])
    with pytest.raises(TypeError, match="y_true must be real numbers"):
        measure([1j, 2], [1, 2])
    with pytest.raises(TypeError, match="y_score must be real numbers"):
        measure([1, 0], [1j, 2])


@pytest.mark.parametrize("measure", MEASURES)
@given(queries=st.lists(judged(15), min_size=1, max_size=5))
@settings(max_examples=examples(30), deadline=None)
def test_each_query_is_measured_as_if_alone(measure, queries):
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
def test_weights_of_queries_weigh_their_values(measure):
    labels, scores, qid = [1, 0, 1, 0, 2, 1, 0], [1, 0, 0, 1, 1, 3, 2], [1, 1, 2, 2, 3, 3, 3]
    values = measure(labels, scores, qid=qid, per_query=True)[1]
    found = measure(labels, scores, qid=qid, query_weight=[1, 0, 3])
    assert found == pytest.approx((values[0] + 3 * values[2]) / 4)
    with pytest.raises(ValueError, match="query_weight"):
        measure(labels, scores, qid=qid, query_weight=[1, -1, 0])
