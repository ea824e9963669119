"""Regret, exact where it can be, and bounded where it cannot."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankcore.preference import (
    Indexed,
    order_loss,
    preference_regret,
    ranking_regret,
)
from reference import preference as plain


def random_preference(rng, n):
    h = np.triu(rng.integers(0, 5, (n, n)) / 4.0, 1)
    return h + np.tril(1 - h.T, -1)


def random_targets(rng, m, n):
    """Return labels of up to three levels, some of them missing."""
    targets = rng.integers(0, 3, (m, n)).astype(float)
    targets[rng.random((m, n)) < 0.2] = np.nan
    targets[:, :2] = [0.0, 1.0]  # so that no query is empty
    return targets


def expected_loss(targets, probability, loss):
    total = 0.0
    for labels, p in zip(targets, probability, strict=True):
        items = np.flatnonzero(~np.isnan(labels))
        total += p * loss(items, labels[items].tolist())
    return total


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("w", ["unit", "difference", ("top_k", 1)], ids=str)
def test_regret_equals_enumeration(seed, w):
    rng = np.random.default_rng(seed)
    n, m = 5, 4
    h, targets = random_preference(rng, n), random_targets(rng, m, n)
    probability = rng.dirichlet(np.ones(m))
    weigh = {
        "unit": lambda i, j: 1,
        "difference": lambda i, j: abs(i - j),
        ("top_k", 1): lambda i, j: int(min(i, j) <= 1),
    }[w]
    exact = [[Fraction(x).limit_denominator(4) for x in row] for row in h]

    def order_of(order):
        def loss(items, labels):
            inside = [list(items).index(u) for u in order if u in items]
            return float(plain.order_loss(inside, labels, weigh))

        return expected_loss(targets, probability, loss)

    def of_quicksort(items, labels):
        inside = tuple(tuple(exact[u][v] for v in items) for u in items)
        orders = plain.quicksort_orders(inside, range(len(items)))
        return float(sum(p * plain.order_loss(o, labels, weigh) for o, p in orders.items()))

    def of_degree(items, labels):
        inside = [[exact[u][v] for v in items] for u in items]
        return float(plain.order_loss(plain.degree_order(inside), labels, weigh))

    def of_preference(items, labels, h=h):
        inside = [[Fraction(float(h[u, v])) for v in items] for u in items]
        return float(plain.preference_loss(inside, labels, weigh))

    least = min(order_of(order) for order in permutations(range(n)))
    named = {"probability": probability, "w": w}
    for algorithm, loss in (("quicksort", of_quicksort), ("degree", of_degree)):
        found = ranking_regret(algorithm, h, targets, **named)
        assert found.loss == pytest.approx(expected_loss(targets, probability, loss), abs=1e-13)
        assert found.least_loss == pytest.approx(least, abs=1e-13)
        assert found.value == found.loss - found.least_loss

    found = preference_regret(h, targets, **named)
    assert found.loss == pytest.approx(
        expected_loss(targets, probability, of_preference), abs=1e-13
    )
    # Each pair is the best on its own: no degree in between does better than the best of 0 and 1.
    best = 0.0
    for u in range(n):
        for v in range(u):
            both = []
            for degree in (0.0, 1.0):
                only = np.zeros((n, n))
                only[u, v], only[v, u] = degree, 1 - degree
                both.append(
                    expected_loss(targets, probability, lambda i, y, o=only: of_preference(i, y, o))
                )
            best += min(both)
    assert found.least_loss == pytest.approx(best, abs=1e-13)


def test_best_order_of_many_items_with_one_small_cycle():
    blocks = np.concatenate([[0, 1, 2], 3 * np.arange(1, 30)])
    turned = [np.concatenate([np.roll(blocks[:3], by), blocks[3:]]) for by in range(3)]
    solved = ranking_regret("degree", np.triu(np.ones((32, 32)), 1), turned)
    pairs = len(blocks) * (len(blocks) - 1) / 2
    assert solved.least_loss == pytest.approx(4 / 3 / pairs)


def test_too_many_items_are_rejected():
    rng = np.random.default_rng(0)
    h, labels = random_preference(rng, 12), rng.permutation(12)
    with pytest.raises(ValueError, match="at most 8 items here; got a query of 12"):
        ranking_regret("quicksort", h, labels)
    with pytest.raises(ValueError, match="at most 11 items here; got a query of 12"):
        ranking_regret("quicksort", np.triu(np.ones((12, 12)), 1), labels)
    targets = np.array([rng.permutation(30) for _ in range(5)])
    with pytest.raises(ValueError, match="at most 12 items that contradict"):
        ranking_regret("degree", random_preference(rng, 30), targets)


@given(st.integers(0, 10**6), st.integers(2, 7))
@settings(max_examples=60, deadline=None)
def test_regret_of_quicksort_on_two_levels_is_at_most_that_of_the_preference(seed, n):
    """For any mixture of targets on the same items, as the best of both is the same there."""
    rng = np.random.default_rng(seed)
    h = random_preference(rng, n)
    targets = rng.integers(0, 2, (3, n))
    quicksort, direct = ranking_regret("quicksort", h, targets), preference_regret(h, targets)
    assert quicksort.loss == pytest.approx(direct.loss, abs=1e-12)
    assert quicksort.value <= direct.value + 1e-12
    assert ranking_regret("degree", h, targets).loss <= 2 * direct.loss + 1e-12


def test_loss_of_an_order_equals_that_of_its_preference():
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 60):
        y = rng.integers(0, 4, n)
        order = rng.permutation(n)
        place = np.argsort(order)
        h = Indexed(lambda i, j, place=place: place[i] < place[j])
        for w in ("unit", "dcg", lambda i, j: abs(np.sqrt(i) - np.sqrt(j))):
            loss = order_loss(order, y, w)
            assert preference_regret(h, y, w=w).loss == pytest.approx(loss, abs=1e-14)


@pytest.mark.parametrize(
    ("call", "error", "what"),
    [
        (lambda: order_loss([0, 0], [1, 2]), ValueError, "each of 0 .. 1 once"),
        (lambda: order_loss([0], [1, 2]), ValueError, "2 positions"),
        (lambda: order_loss([1, 0], [1, 2], "cubic"), ValueError, "w must be one of"),
        (lambda: preference_regret(lambda u, v: 1, [1, 2]), TypeError, "Indexed or a matrix"),
        (lambda: preference_regret(np.eye(3), [1, 2]), ValueError, r"shape \(2, 2\)"),
        (lambda: ranking_regret("bubble", np.eye(2), [1, 2]), ValueError, "algorithm must"),
        (lambda: preference_regret(np.eye(2), [1, np.inf]), ValueError, "targets must"),
        (
            lambda: preference_regret(np.eye(2), [[1, 2]], probability=[0.5]),
            ValueError,
            "add up to 1",
        ),
    ],
)
def test_wrong_arguments_are_rejected(call, error, what):
    with pytest.raises(error, match=what):
        call()
