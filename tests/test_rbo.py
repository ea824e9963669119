"""Rank-biased overlap: values by hand, a plain form in fractions, all orders of ties, bad input."""

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankcore.datasets import Run
from rankcore.metrics import rbo
from strategies import examples

TIES = ["average", "normalized", "together"]

# ------------------------------------------------------------------------ plain form


def included(scores, item, depth, ties):
    """Return the fraction of an item that counts within a depth, given scores by item."""
    if item not in scores:
        return Fraction(0)
    first = 1 + sum(other > scores[item] for other in scores.values())
    size = sum(other == scores[item] for other in scores.values())
    if depth < first:
        return Fraction(0)
    if ties == "together":
        return Fraction(1)
    return Fraction(min(depth - first + 1, size), size)


def plain_rbo(a, b, p, ties):
    """Extrapolated overlap by the definition: a table of items by depth, to the longer end."""
    short, long = sorted([a, b], key=len)
    s, length, items = len(short), len(long), {*a, *b}

    def column(scores, depth):
        return {item: included(scores, item, depth, ties) for item in items}

    def size(scores, depth):
        inside = column(scores, depth).values()
        if ties == "normalized":
            return depth if depth > len(scores) else sum(one**2 for one in inside)
        return depth if depth > len(scores) else sum(inside)

    def overlap(depth):
        mine, other = column(short, depth), column(long, depth)
        return sum(mine[item] * other[item] for item in items)

    def agreement(depth, common):
        sizes = size(short, depth), size(long, depth)
        if ties == "normalized":
            return float(common) / float(sizes[0] * sizes[1]) ** 0.5
        return float(2 * common / sum(sizes) if ties == "together" else Fraction(common, depth))

    at_short = agreement(s, overlap(s))
    total = 0.0
    for depth in range(1, length + 1):
        common = overlap(depth)
        if depth > s:
            others = [included(long, item, depth, ties) for item in long if item not in short]
            begun = [one for one in others if one]
            common = Fraction(common) + Fraction(at_short) * (depth - s) * sum(begun) / len(begun)
        total += (1 - p) * p ** (depth - 1) * agreement(depth, common)
    return total + p**length * (overlap(length) + (length - s) * at_short) / length


rankings = st.dictionaries(st.integers(0, 9), st.integers(0, 4).map(float), min_size=1, max_size=8)


@settings(max_examples=examples(300), deadline=None)
@given(rankings, rankings, st.floats(0.05, 0.98), st.sampled_from(TIES))
def test_values_equal_the_plain_form(a, b, p, ties):
    expected = plain_rbo(a, b, p, ties)
    assert rbo(a, b, p=p, ties=ties) == pytest.approx(expected, abs=1e-13)
    assert rbo(b, a, p=p, ties=ties) == pytest.approx(expected, abs=1e-13)


def orders(scores):
    """All orders of the items, the best first, in which ties are broken."""
    groups = [
        [item for item in scores if scores[item] == score]
        for score in sorted({*scores.values()}, reverse=True)
    ]
    for broken in product(*map(permutations, groups)):
        yield {item: -place for place, item in enumerate(sum(broken, ()))}


@settings(max_examples=examples(40), deadline=None)
@given(st.data(), st.floats(0.1, 0.95))
def test_average_is_the_mean_over_all_orders_of_ties(data, p):
    n = data.draw(st.integers(1, 5))
    scores = st.lists(st.integers(0, 2), min_size=n, max_size=n)
    a = dict(zip(range(n), data.draw(scores), strict=True))
    b = dict(zip(range(1, n + 1), data.draw(scores), strict=True))
    every = [plain_rbo(x, y, p, "together") for x, y in product(orders(a), orders(b))]
    assert rbo(a, b, p=p) == pytest.approx(np.mean(every), abs=1e-12)


# ------------------------------------------------------------------------ values by hand


def test_values_equal_those_by_hand():
    # Overlaps 1, 1/2, 1, and 1 beyond.
    assert rbo([3, 2, 1], [3, 1, 2], p=0.9) == pytest.approx(1 - 0.1 * 0.9 / 2)
    # Overlaps 0, 0, 0, and 0 beyond.
    assert rbo({"a": 2, "b": 1}, {"c": 2, "d": 1}, p=0.5) == 0
    # b is in the first position with probability 1/2; then overlaps 1.
    assert rbo([1, 1], [2, 1], p=0.5) == pytest.approx(0.5 * 0.5 + 0.5)
    # The overlap 1/2, divided by the root of 1/2 for a group of two.
    assert rbo([1, 1], [2, 1], p=0.5, ties="normalized") == pytest.approx(0.5 * 0.5**0.5 + 0.5)
    # One item in common of the two and one that share the first position.
    assert rbo([1, 1], [2, 1], p=0.5, ties="together") == pytest.approx(0.5 * 2 / 3 + 0.5)
    # The end of the shorter ranking, after x: half of the longer one's next item is expected.
    ranked = {"x": 3, "y": 2, "z": 1}, {"y": 1}
    assert rbo(*ranked, p=0.5) == pytest.approx(0.25 * 0.5 + (0.125 + 0.125) / 3)
    assert rbo({"y": 2, "x": 1}, {"y": 1}, p=0.5) == 1  # all that is known agrees


@pytest.mark.parametrize("ties", TIES)
def test_equal_rankings_have_overlap_one_unless_ties_hide_their_order(ties):
    rng = np.random.default_rng(0)
    for p in (0.1, 0.9, 0.999):
        scores = rng.normal(size=40)
        assert rbo(scores, scores, p=p, ties=ties) == 1.0
        assert rbo(scores, 2 * scores + 1, p=p, ties=ties) == 1.0
        tied = np.round(scores)
        found = rbo(tied, tied, p=p, ties=ties)
        assert found == 1.0 if ties == "together" else found <= 1.0
        if ties == "normalized":
            assert found == pytest.approx(1.0, abs=1e-12)
        if ties == "average":
            assert found < 1.0


# ------------------------------------------------------------------------ queries


@pytest.mark.parametrize("ties", TIES)
def test_queries_are_compared_one_by_one(ties):
    rng = np.random.default_rng(1)
    qid = rng.permutation(np.repeat(["x", "y", "z"], [5, 1, 30]))
    a, b = rng.integers(0, 6, (2, qid.size)).astype(float)
    a[rng.random(qid.size) < 0.3] = np.nan
    a[qid == "y"] = 1.0
    ids, values = rbo(a, b, qid=qid, ties=ties, per_query=True)
    assert sorted(ids) == ["x", "y", "z"]
    for one, value in zip(ids, values, strict=True):
        rows = qid == one
        assert value == pytest.approx(rbo(a[rows], b[rows], ties=ties), abs=1e-14)
        by_item = [
            {i: x for i, x in enumerate(scores[rows].tolist()) if x == x} for scores in (a, b)
        ]
        assert value == pytest.approx(plain_rbo(*by_item, 0.9, ties), abs=1e-13)
    assert rbo(a, b, qid=qid, ties=ties) == pytest.approx(values.mean())
    weights = [1.0, 0.0, 3.0]
    found = rbo(a, b, qid=qid, ties=ties, query_weight=weights)
    assert found == pytest.approx(np.average(values, weights=weights))


def test_runs_are_joined_by_query_and_document():
    a = {"q1": {"d1": 3.0, "d2": 2.0, "d3": 2.0}, "q2": {"d1": 1.0}, "q3": {"d1": 1.0}}
    b = {"q2": {"d2": 1.0, "d1": 0.5}, "q1": {"d3": 9.0, "d9": 1.0}}
    ids, values = rbo(Run.from_dict(a), Run.from_dict(b), p=0.8, per_query=True)
    assert ids.tolist() == ["q1", "q2", "q3"]
    for one, value in zip(["q1", "q2"], values[:2], strict=True):
        assert value == pytest.approx(plain_rbo(a[one], b[one], 0.8, "average"), abs=1e-14)
    assert np.isnan(values[2])  # the other run has no document: left out of the mean
    assert rbo(Run.from_dict(a), Run.from_dict(b), p=0.8) == pytest.approx(values[:2].mean())


def test_rankings_without_items_are_undefined():
    assert np.isnan(rbo({"a": 1}, {}))
    assert np.isnan(rbo([np.nan, np.nan], [1, 2]))
    assert np.isnan(rbo({}, {}))


def test_items_of_mappings_may_be_of_any_type():
    assert rbo({1: 2.0, "a": 1.0, (2, 3): 0.0}, {"a": 1.0, (2, 3): 0.5}, p=0.5) == pytest.approx(
        plain_rbo({1: 2.0, "a": 1.0, "t": 0.0}, {"a": 1.0, "t": 0.5}, 0.5, "average")
    )


# ------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (([1, 2], [1, 2]), {"p": 1}, ValueError, r"p must be a number in \(0, 1\); got 1"),
        (([1, 2], [1, 2]), {"p": float("nan")}, ValueError, r"p must be a number in \(0, 1\)"),
        (([1, 2], [1, 2]), {"p": "0.9"}, ValueError, r"p must be a number in \(0, 1\)"),
        (([1, 2], [1, 2]), {"ties": "first"}, ValueError, "ties must be one of 'average'"),
        (([1, 2], [1]), {}, ValueError, "a and b must have the same length"),
        (([], []), {}, ValueError, "a and b are empty"),
        (([1, np.inf], [1, 2]), {}, ValueError, "a must be finite, or NaN for items without"),
        (([1, 2], [1, -np.inf]), {}, ValueError, "b must be finite"),
        ((["a", "b"], ["b", "a"]), {}, TypeError, "a must be real numbers"),
        (([1, 2], {"a": 1}), {}, TypeError, "rankings of one kind; got scores and scores by item"),
        (({"a": 1}, {"a": 1}), {"qid": [1]}, ValueError, "qid must be omitted"),
        (({"a": 1, None: 2}, {"a": 1}), {}, ValueError, "the items of a and b contains None"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bad_input_is_rejected(arguments, options, error, message):
    with pytest.raises(error, match=message):
        rbo(*arguments, **options)
