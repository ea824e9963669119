"""Ranking measures: golden numbers, every order of ties by enumeration, long queries, bad input."""

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankcore.metrics import (
    average_precision,
    dcg_score,
    evaluate,
    hit_rate,
    ndcg_score,
    phi_measure,
    precision_at_k,
    r_precision,
    recall_at_k,
    reciprocal_rank,
    weighted_ranking_loss,
)
from rankcore.metrics.registry import MEASURES
from strategies import examples

pytestmark = pytest.mark.kernel

# ---------------------------------------------------------------- plain measures of labels in order


def positions(labels):
    return [i for i, label in enumerate(labels, 1) if label >= 1]


def plain_precision(labels, k):
    return Fraction(len([p for p in positions(labels) if p <= k]), k)


def plain_recall(labels, k):
    found = positions(labels)
    return Fraction(len([p for p in found if p <= k]), len(found)) if found else Fraction(0)


def plain_r_precision(labels):
    return plain_precision(labels, len(positions(labels))) if positions(labels) else Fraction(0)


def plain_hit(labels, k):
    return Fraction(any(p <= k for p in positions(labels)))


def plain_reciprocal_rank(labels, k):
    return next((Fraction(1, p) for p in positions(labels) if p <= k), Fraction(0))


def plain_average_precision(labels, k):
    found = positions(labels)
    total = sum((Fraction(i, p) for i, p in enumerate(found, 1) if p <= k), Fraction(0))
    return total / len(found) if found else Fraction(0)


def plain_phi(labels, Z, m):
    found = positions(labels)
    if not found:
        return Fraction(0)
    terms = [Fraction(i, p) for i, p in enumerate(found[: m or None], 1)]
    return sum(terms, Fraction(0)) / (Z or len(found))


def plain_dcg(labels, k, gain, discount):
    return math.fsum(gain(label) / discount(i) for i, label in enumerate(labels[:k], 1))


def plain_ndcg(labels, k, gain, discount):
    ideal = plain_dcg(sorted(labels, key=gain, reverse=True), k, gain, discount)
    return plain_dcg(labels, k, gain, discount) / ideal if ideal > 0 else 0.0


GAINS = {"exp2": lambda label: 2.0**label - 1, "linear": float}
DISCOUNTS = {
    "log2": lambda i: math.log2(1 + i),
    "letor": lambda i: 1.0 if i <= 2 else math.log2(i),
}


def orders(labels, scores):
    """Labels in every order that the scores allow, ties first in the order of the rows."""
    places = sorted(range(len(scores)), key=lambda i: -scores[i])
    groups = [list(group) for _, group in itertools.groupby(places, key=lambda i: scores[i])]
    for parts in itertools.product(*map(itertools.permutations, groups)):
        yield tuple(labels[i] for part in parts for i in part)


def over_orders(measure, labels, scores):
    """Value of a measure in each of `orders`, many of which are equal."""
    known = functools.cache(measure)
    return [known(order) for order in orders(labels, scores)]


# What an order of ties is worth to a measure, given the values of all orders; those of the rows
# come first in `orders`, the reverse of them last.
CHOICES = {
    "average": lambda values: sum(values) / len(values),
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "optimistic": max,
    "pessimistic": min,
}


@st.composite
def judged(draw, max_size=7):
    """Labels and scores with many ties, zeros of both signs among them."""
    n = draw(st.integers(1, max_size))
    labels = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    values = st.sampled_from([-1.5, -0.0, 0.0, 2.0, 3e-300])
    return labels, draw(st.lists(values, min_size=n, max_size=n))


# Sums of a few rounded quotients of numbers below 20, in another order than the plain ones.
ROUNDING = 1e-14


@given(data=judged(), k=st.integers(1, 8), Z=st.sampled_from([None, 1, 3]))
@settings(max_examples=examples(150), deadline=None)
def test_binary_measures_are_means_over_all_orders_of_ties(data, k, Z):
    labels, scores = data
    m = k if k < 5 else None
    for measure, options, plain in [
        (precision_at_k, {"k": k}, lambda o: plain_precision(o, k)),
        (recall_at_k, {"k": k}, lambda o: plain_recall(o, k)),
        (hit_rate, {"k": k}, lambda o: plain_hit(o, k)),
        (r_precision, {}, plain_r_precision),
        (reciprocal_rank, {}, lambda o: plain_reciprocal_rank(o, 99)),
        (reciprocal_rank, {"k": k}, lambda o: plain_reciprocal_rank(o, k)),
        (average_precision, {}, lambda o: plain_average_precision(o, 99)),
        (average_precision, {"k": k}, lambda o: plain_average_precision(o, k)),
        (phi_measure, {"Z": Z, "m": m}, lambda o: plain_phi(o, Z, m)),
    ]:
        values = over_orders(plain, labels, scores)
        for ties, choice in CHOICES.items():
            found = measure(labels, scores, **options, ties=ties)
            assert found == pytest.approx(float(choice(values)), abs=ROUNDING)


@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize("gain", GAINS)
@given(data=judged(), k=st.none() | st.integers(1, 8))
@settings(max_examples=examples(60), deadline=None)
def test_gain_measures_are_means_over_all_orders_of_ties(discount, gain, data, k):
    labels, scores = data
    options = {"k": k, "gain": gain, "discount": discount}
    rule = k or 99, GAINS[gain], DISCOUNTS[discount]
    for measure, plain in [(ndcg_score, plain_ndcg), (dcg_score, plain_dcg)]:
        values = over_orders(lambda o, plain=plain: plain(o, *rule), labels, scores)
        for ties, choice in CHOICES.items():
            found = measure(labels, scores, **options, ties=ties)
            assert found == pytest.approx(choice(values), rel=1e-13, abs=ROUNDING)


def expected_phi(groups, m):
    """Phi with Z=1 over tied groups of (documents, relevant ones), by counting orders exactly."""
    total, above, before = Fraction(0), 0, 0
    for n, r in groups:
        for p in range(n):
            for j in range(min(p + 1, r, max(0, m - before))):
                orders = math.comb(p, j) * math.comb(n - p - 1, r - j - 1)
                total += Fraction(orders * (before + j + 1), math.comb(n, r) * (above + p + 1))
        above, before = above + n, before + r
    return total


@pytest.mark.parametrize(
    ("groups", "m"),
    [
        ([(400, 360)], 360),
        ([(400, 360)], 359),
        ([(200, 180)], None),
        ([(300, 3)], 2),
        ([(300, 297)], 290),
        ([(90, 80), (150, 149), (60, 1)], 200),
        ([(7, 0), (120, 60), (80, 80)], 90),
    ],
)
def test_phi_of_large_groups_equals_the_closed_form(groups, m):
    labels = [label for n, r in groups for label in [1] * r + [0] * (n - r)]
    scores = [-float(i) for i, (n, _) in enumerate(groups) for _ in range(n)]
    expected = expected_phi(groups, m or sum(labels))
    # Every chance is a product of at most 2n rounded quotients.
    assert phi_measure(labels, scores, 1, m) == pytest.approx(float(expected), rel=1e-13)
    if m is None:
        assert phi_measure(labels, scores) == average_precision(labels, scores)


# ---------------------------------------------------------------- golden numbers


def test_phi_family_has_the_golden_values():
    # Worked by hand from the positions 1, 3 and 2, 4, 5 of the relevant documents.
    first, second = [1, 0, 1], [0, 1, 0, 1, 1]
    down = [5.0, 4.0, 3.0, 2.0, 1.0]
    assert average_precision(first, down[:3]) == pytest.approx(5 / 6)
    assert reciprocal_rank(first, down[:3]) == 1
    assert phi_measure(first, down[:3], 3, 2) == pytest.approx(5 / 9)
    assert precision_at_k(first, down[:3], 3) == pytest.approx(2 / 3)
    assert average_precision(second, down) == pytest.approx(8 / 15)
    assert reciprocal_rank(second, down) == 0.5
    assert phi_measure(second, down, 3, 1) == pytest.approx(1 / 6)
    assert r_precision(second, down) == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("discount", "expected"),
    [("log2", [1, 0.649015, 0.888599]), ("letor", [1, 0.547575, 0.773787])],
)
def test_ndcg_has_the_golden_values(discount, expected):
    labels, scores = [2, 0, 1, 2, 0], [5, 4, 3, 2, 1]
    found = [ndcg_score(labels, scores, k=k, discount=discount) for k in (1, 3, 5)]
    assert found == pytest.approx(expected, abs=5e-7)  # printed with six digits


def test_letor_mean_over_positions_has_the_golden_values():
    labels, scores = [2, 0, 1, 2, 0], [5, 4, 3, 2, 1]
    found = [ndcg_score(labels, scores, k=k, discount="letor") for k in range(1, 6)]
    assert np.mean(found) == pytest.approx(0.719030, abs=5e-7)


@given(data=judged(12))
@settings(max_examples=examples(200), deadline=None)
def test_phi_is_a_lower_bound_of_precision_and_has_a_bound_of_its_own(data):
    labels, _ = data
    n = len(labels)
    scores = np.arange(n, 0, -1.0)
    found = positions(labels)
    for k in range(1, n + 1):
        m = len([p for p in found if p <= k])
        if m == 0:
            continue
        phi, precision = phi_measure(labels, scores, k, m), precision_at_k(labels, scores, k)
        if found[:m] == list(range(1, m + 1)):
            assert phi == pytest.approx(precision, abs=ROUNDING)
        else:
            assert phi < precision - ROUNDING
        # By Cauchy and Schwarz, from the number of pairs in the wrong order among the first m.
        inversions = sum(p - i for i, p in enumerate(found[:m], 1))
        roots = sum(math.sqrt(i) for i in range(1, m + 1))
        assert phi >= roots**2 / (k * (inversions + m * (m + 1) / 2)) - ROUNDING


@given(data=judged(12))
@settings(max_examples=examples(100), deadline=None)
def test_known_measures_are_members_of_the_phi_family(data):
    labels, scores = data
    assert phi_measure(labels, scores) == pytest.approx(
        average_precision(labels, scores), abs=ROUNDING
    )
    assert phi_measure(labels, scores, 1, 1) == pytest.approx(
        reciprocal_rank(labels, scores), abs=ROUNDING
    )


# ---------------------------------------------------------------- long queries


def hard_scores(rng, n):
    """Scores that try the sort: tied, spread over 600 powers of ten, with outliers, in order."""
    normal = rng.normal(size=n)
    yield normal
    yield rng.integers(0, 40, n).astype(float)
    yield np.exp(rng.normal(size=n) * 100)
    yield np.round(normal, 2)
    yield np.concatenate([normal[1:] * 1e-300, [1e300]])
    yield np.sort(normal)
    yield np.sort(normal)[::-1].copy()
    yield np.full(n, -0.0)
    yield np.where(normal > 0, 0.0, -0.0)
    yield 1.0 + rng.integers(0, 9, n) * np.finfo(float).eps
    # Neighbours in the last bit, far from an outlier: they part on the deepest level.
    yield np.concatenate([5e-324 * rng.integers(0, n, n - 1), [-1e308]])
    # All large ones in one lane of the search for the best, which finds a bound far below them.
    yield np.where(np.arange(n) % 32 == 5, normal + 100, np.round(normal, 1))


@pytest.mark.parametrize("n", [24, 25, 40, 63, 64, 100, 257, 1000, 20_000, 140_000])
def test_long_queries_are_sorted_stably(n):
    rng = np.random.default_rng(n)
    discount = 1 / np.log2(1 + np.arange(1, n + 1))
    for scores in hard_scores(rng, n):
        labels = rng.integers(0, 6, n) * rng.integers(0, 2, n)
        gains = 2.0**labels - 1
        best = np.sort(gains)[::-1] * discount
        ranked = {
            "first": np.argsort(-scores, kind="stable"),
            "last": np.lexsort([-np.arange(n), -scores]),
            "optimistic": np.lexsort([-labels, -scores]),
            "pessimistic": np.lexsort([labels, -scores]),
        }
        for ties, order in ranked.items():
            gained, relevant = gains[order] * discount, labels[order] >= 1
            # Where the sort stops early; that depends on k, but not on how long the rest is.
            some = (1, 2, 10, 16, 17, 64, 65, n // 3 + 1, None)
            for k in some if n <= 1000 else (10, 65, None):
                expected = gained[:k].sum() / best[:k].sum()
                found = ndcg_score(labels, scores, k=k, ties=ties)
                # NumPy sums pairwise, the kernel one by one: n half units of 1e-16 at most.
                assert found == pytest.approx(expected, rel=1e-16 * n + 1e-15)
                found = precision_at_k(labels, scores, k or n, ties=ties)
                assert found == np.sum(relevant[:k]) / (k or n)


@pytest.mark.parametrize("k", [1, 10, 64, 200, None])
def test_averaged_ties_equal_scikit_learn(k):
    sklearn_ndcg = pytest.importorskip("sklearn.metrics").ndcg_score
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 5, (60, 300))
    for levels in (1, 3, 40, 10_000):
        scores = rng.integers(0, levels, (60, 300)).astype(float)
        found = ndcg_score(
            labels.ravel(), scores.ravel(), qid=np.repeat(np.arange(60), 300), k=k, gain="linear"
        )
        assert found == pytest.approx(sklearn_ndcg(labels, scores, k=k), rel=1e-12)


def test_labels_that_are_not_small_integers_have_an_ideal_order_too():
    rng = np.random.default_rng(2)
    for labels in (rng.normal(size=500) ** 2, rng.integers(0, 400, 500), np.full(500, 0.5)):
        scores = rng.normal(size=500)
        order = np.argsort(-scores)
        discount = 1 / np.log2(1 + np.arange(1, 501))
        expected = (labels[order] * discount).sum() / (np.sort(labels)[::-1] * discount).sum()
        assert ndcg_score(labels, scores, gain="linear") == pytest.approx(expected, rel=1e-13)


def test_perfect_orders_score_exactly_one():
    rng = np.random.default_rng(3)
    for n in (1, 5, 60, 2000):
        labels = rng.integers(0, 5, n)
        labels[0] = 4
        for k in (1, 10, None):
            assert ndcg_score(labels, labels, k=k) == 1
            assert ndcg_score(labels, labels * 0.1, k=k, gain="linear", discount="letor") == 1
        assert average_precision(labels, labels) == 1


# ---------------------------------------------------------------- gains


def test_gains_may_be_tables_and_callables():
    labels, scores = [0, 2, 1, 2], [4.0, 3.0, 2.0, 2.0]
    expected = ndcg_score(labels, scores)
    for table in ([0, 1, 3], (0, 1, 3), np.array([0.0, 1.0, 3.0])):
        assert ndcg_score(labels, scores, gain=table) == pytest.approx(expected, rel=1e-15)
    assert ndcg_score(labels, scores, gain=lambda y: 2**y - 1) == pytest.approx(expected, rel=1e-15)
    # A table need not ascend: the ideal order is that of the gains.
    upside = ndcg_score(labels, scores, gain=[5, 1, 0], k=1, ties="optimistic")
    assert upside == 1
    with pytest.raises(ValueError, match="2 entries are for labels 0 to 1; got 2"):
        ndcg_score(labels, scores, gain=[0, 1])
    with pytest.raises(ValueError, match="got 0.5"):
        ndcg_score([0.5, 1], [1, 2], gain=[0, 1])
    with pytest.raises(ValueError, match="as many numbers"):
        ndcg_score(labels, scores, gain=lambda y: 1.0)
    with pytest.raises(ValueError, match="gain must be finite"):
        ndcg_score(labels, scores, gain=lambda y: np.where(y > 1, np.nan, y))


def test_real_and_large_labels_are_measured():
    for labels in ([0.5, 2.5, 0], [60, 3, 0], [63, 64, 2], [-1, 1, 0]):
        gains = 2.0 ** np.array(labels, dtype=float) - 1
        found = dcg_score(labels, [3, 2, 1])
        assert found == pytest.approx((gains / np.log2([2, 3, 4])).sum(), rel=1e-15)
    with pytest.raises(ValueError, match="beyond float64.*query 'b'"):
        dcg_score([1, 1024], [1, 1], qid=["a", "b"])
    # The sum over a tie is beyond float64 though the ideal, which discounts, is not.
    for labels in ([1e308, 1e308, 0], [1.5e308, 1.5e308, 1.5e308]):
        with pytest.raises(ValueError, match="beyond float64"):
            ndcg_score(labels, [1, 1, 1], gain="linear")
    assert ndcg_score([1e308, 0, 0], [1, 2, 3], gain="linear") == 0.5
    with pytest.raises(ValueError, match="negative gains"):
        ndcg_score([-1, 1], [1, 2])


# ---------------------------------------------------------------- queries

LABELS = np.array([2, 0, 1, 0, 0, 1, 0, 3])
SCORES = np.array([0.3, 0.9, 0.1, 0.5, 0.2, 0.5, 0.7, 0.1])
QUERIES = ["x", "x", "y", "x", "y", "y", "z", "z"]


@pytest.mark.parametrize(
    "qid",
    [
        QUERIES,
        [{"x": 7, "y": -3, "z": 0}[q] for q in QUERIES],
        [{"x": 2.5, "y": -1.0, "z": np.inf}[q] for q in QUERIES],
        [{"x": (1, "a"), "y": None if False else "b", "z": 3}[q] for q in QUERIES],
        np.array(QUERIES, dtype="S1"),
        np.array(["2020-01-01" if q == "x" else f"202{'xyz'.index(q)}" for q in QUERIES], "M8[D]"),
    ],
)
@pytest.mark.parametrize("scattered", [False, True])
def test_queries_may_have_any_type_and_order(qid, scattered):
    if isinstance(qid[0], tuple):
        objects = np.empty(len(qid), dtype=object)
        objects[:] = qid
        qid = objects
    order = np.arange(8) if scattered else np.argsort(QUERIES, kind="stable")
    qid = np.asarray(qid)[order]
    ids, values = average_precision(LABELS[order], SCORES[order], qid=qid, per_query=True)
    assert list(ids) == list(dict.fromkeys(qid.tolist() if qid.dtype == object else list(qid)))
    for one, value in zip(ids, values, strict=True):
        rows = [i for i, q in enumerate(qid) if q == one]
        assert value == average_precision(LABELS[order][rows], SCORES[order][rows])
    assert average_precision(LABELS[order], SCORES[order], qid=qid) == pytest.approx(values.mean())


def test_rows_keep_their_order_within_scattered_queries():
    # Query 1 has rows 0, 2, 4 and query 2 rows 1, 3: ties in order of the rows, or the reverse.
    labels, qid = [1, 0, 0, 1, 0], [1, 2, 1, 2, 1]
    ids, first = reciprocal_rank(labels, np.zeros(5), qid=qid, ties="first", per_query=True)
    assert ids.tolist() == [1, 2]
    assert first.tolist() == [1, 0.5]
    assert reciprocal_rank(labels, np.zeros(5), qid=qid, ties="last") == pytest.approx(2 / 3)


def test_document_ids_break_ties():
    labels, qid = [1, 0, 0, 1, 0], [1, 2, 1, 2, 1]
    docid = ["b", "y", "a", "x", "c"]
    options = {"qid": qid, "docid": docid, "per_query": True}
    assert reciprocal_rank(labels, np.zeros(5), ties="first", **options)[1].tolist() == [0.5, 1]
    assert reciprocal_rank(labels, np.zeros(5), ties="last", **options)[1].tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="docid must have one entry for each of the 5 rows"):
        reciprocal_rank(labels, np.zeros(5), docid=["a"])


def test_query_weights_weigh_the_mean():
    options = {"qid": QUERIES, "k": 1}
    values = precision_at_k(LABELS, SCORES, per_query=True, **options)[1]
    assert precision_at_k(LABELS, SCORES, query_weight=[1, 2, 0], **options) == pytest.approx(
        (values[0] + 2 * values[1]) / 3
    )
    for weights, message in [
        ([1, 2], "length 3 .one per query."),
        ([1, 2, -1], "not negative"),
        ([0, 0, 0], "not be all zero"),
        ([1, np.nan, 1], "finite"),
    ]:
        with pytest.raises(ValueError, match=message):
            precision_at_k(LABELS, SCORES, query_weight=weights, **options)


@pytest.mark.parametrize("empty", [0, 1, 0.5, "skip"])
def test_queries_without_relevant_documents_follow_the_option(empty):
    qid, labels, scores = [1, 1, 2, 2], [0, 0, 0, 1], [2, 1, 2, 1]
    for measure in (average_precision, reciprocal_rank, r_precision, ndcg_score):
        value = measure(labels, scores, qid=qid, empty=empty, per_query=True)[1]
        alone = measure(labels[2:], scores[2:])
        if empty == "skip":
            assert np.isnan(value[0])
            assert measure(labels, scores, qid=qid, empty=empty) == alone
        else:
            assert value[0] == empty
            assert measure(labels, scores, qid=qid, empty=empty) == (empty + alone) / 2
    assert math.isnan(average_precision([0, 0], [1, 2], empty="skip"))
    with pytest.raises(ValueError, match="query 1 "):
        average_precision(labels, scores, qid=qid, empty="raise")


@pytest.mark.parametrize("n_jobs", [2, 3, -1])
def test_threads_change_nothing(n_jobs):
    rng = np.random.default_rng(4)
    qid = rng.integers(0, 300, 20_000)
    labels, scores = rng.integers(0, 4, 20_000), rng.integers(0, 60, 20_000) / 7
    names = ["ndcg@10", "map", "mrr", "P@5", "recall@20", "Rprec", "hit@3", "dcg"]
    alone = evaluate(labels, scores, qid=qid, metrics=names)
    together = evaluate(labels, scores, qid=qid, metrics=names, n_jobs=n_jobs)
    for name in names:
        np.testing.assert_array_equal(alone.per_query[name], together.per_query[name])


# ---------------------------------------------------------------- documents not retrieved


def test_documents_that_were_not_retrieved_count_but_are_not_found():
    labels, scores = [1, 0, 2, 1], [0.2, 0.9, 0.5, 9.0]
    retrieved = np.array([True, True, True, False])
    names = ["map", "recall@2", "Rprec", "ndcg@3", "P@3", "mrr", "hit@1"]
    found = evaluate(labels, scores, retrieved=retrieved, metrics=names)
    gains = [0 / 1, 3 / math.log2(3), 1 / 2]
    ideal = [3, 1 / math.log2(3), 1 / 2]
    expected = {
        "map": (1 / 2 + 2 / 3) / 3,
        "recall@2": 1 / 3,
        "Rprec": 2 / 3,
        "ndcg@3": sum(gains) / sum(ideal),
        "P@3": 2 / 3,
        "mrr": 1 / 2,
        "hit@1": 0,
    }
    assert dict(found) == pytest.approx(expected, rel=1e-15)
    # Nothing retrieved at all.
    nothing = evaluate(labels, scores, retrieved=np.zeros(4, dtype=bool), metrics=names)
    assert dict(nothing) == dict.fromkeys(names, 0.0)
    # The score of a document that was not retrieved is not looked at.
    scores[3] = math.nan
    assert dict(evaluate(labels, scores, retrieved=retrieved, metrics=names)) == dict(found)
    with pytest.raises(ValueError, match="4 booleans"):
        evaluate(labels, scores, retrieved=[1, 1, 1, 0])


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize("measure", [ndcg_score, average_precision, evaluate])
def test_bad_input_is_rejected_by_name(measure):
    for y, s, options, error, message in [
        ([], [], {}, ValueError, "empty"),
        (
            [1, 2],
            [1],
            {},
            ValueError,
            "y_true and y_score must have the same length; got 2 and 1",
        ),
        ([1, math.nan], [1, 2], {}, ValueError, "y_true must be finite"),
        ([1, 2], [1, math.inf], {}, ValueError, "y_score must be finite"),
        (
            [1, 2],
            [1, math.nan],
            {"qid": ["q", "p"]},
            ValueError,
            "y_score must be finite, in query 'p'",
        ),
        ([[1, 2]], [[1, 2]], {}, ValueError, "y_true must have one dimension"),
        (["a", "b"], [1, 2], {}, ValueError, "labels.* have no order of their own"),
        ([1j, 2], [1, 2], {}, TypeError, "y_true must be real numbers"),
        ([1, 2], [1j, 2], {}, TypeError, "y_score must be real numbers"),
        ([1, 2], [1, 2], {"qid": [1]}, ValueError, "qid must name the query of each of the 2 rows"),
        ([1, 2], [1, 2], {"qid": [1, math.nan]}, ValueError, "qid contains NaN in row 1"),
        ([1, 2], [1, 2], {"qid": [1, None]}, ValueError, "qid contains None in row 1"),
        ([1, 2], [1, 2], {"n_jobs": 0}, ValueError, "n_jobs"),
        ([1, 2], [1, 2], {"convention": "trek"}, ValueError, "trec"),
    ]:
        with pytest.raises(error, match=message):
            measure(y, s, **options)


@pytest.mark.parametrize("k", [0, -1, 2.0, "10", True])
def test_bad_cutoffs_are_rejected(k):
    for measure in (ndcg_score, average_precision):
        with pytest.raises(ValueError, match="k must be an integer of at least 1"):
            measure([1, 0], [2, 1], k=k)
    with pytest.raises(ValueError, match="k must be an integer"):
        precision_at_k([1, 0], [2, 1], k)


def test_cutoffs_of_64_bits_are_accepted():
    assert ndcg_score([1, 0], [2, 1], k=2**63 - 1) == 1
    assert precision_at_k([1, 0], [2, 1], np.uint64(2**63 - 1)) == 2.0**-63
    assert phi_measure([1, 0], [2, 1], 2**63 - 1, 2**63 - 1) == 2.0**-63
    assert weighted_ranking_loss([1, 0], [1, 2], ("top_k", 2**63 - 1)) == 1
    for k in (2**63, np.uint64(2**64 - 1)):
        with pytest.raises(ValueError, match=r"k must be below 2\*\*63"):
            ndcg_score([1, 0], [2, 1], k=k)
        with pytest.raises(ValueError, match=r"Z must be below 2\*\*63"):
            phi_measure([1, 0], [2, 1], k)
        with pytest.raises(ValueError, match=r"the number must be below 2\*\*63"):
            weighted_ranking_loss([1, 0], [1, 2], ("bipartite", k))


def test_names_of_measures_are_unique():
    names = [name for kind in MEASURES.values() for name in kind.names]
    assert sorted({*names}) == sorted(names)
    assert all(name == name.lower() for name in names)


def test_kernel_rejects_mismatched_arrays():
    from rankcore._ext import measures, relevance_measures

    plan = np.zeros(1, dtype=np.asarray(measures.layout()).dtype)
    functions = [relevance_measures.precision]
    s, out, one = np.zeros(3), np.zeros((1, 1)), np.ones(1)
    good = np.array([0, 3])
    for arguments in [
        (s, s[:2], None, None, None, good, 0, 1),
        (s, s, s[:1], None, None, good, 0, 1),
        (s, s, None, np.arange(2), None, good, 0, 1),
        (s, s, None, None, np.ones(4, np.uint8), good, 0, 1),
        (s, s, None, None, None, np.array([0, 4]), 0, 1),
        (s, s, None, None, None, np.array([2, 1]), 0, 1),
        (s, s, None, None, None, good, 0, 2),
        (s, s, None, None, None, good, -1, 1),
    ]:
        with pytest.raises(ValueError, match="match|wrong length|bounds"):
            measures.measure(*arguments, plan, functions, one, 0, out)
    rows = np.array([0, 1, 3])
    status, _ = measures.measure(s, s, None, rows, None, good, 0, 1, plan, functions, one, 0, out)
    assert status == measures.Status.ROW
    for wrong in ([], functions * 2, ["precision"]):
        with pytest.raises(ValueError, match="wrong length|PyCapsule"):
            measures.measure(s, s, None, None, None, good, 0, 1, plan, wrong, one, 0, out)
