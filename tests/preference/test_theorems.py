"""The theorems of ranking by preferences, by enumeration of every pivot, answer and target."""

from fractions import Fraction
from itertools import permutations, product
from math import log

import numpy as np
import pytest

from rankcore.metrics.weighted_loss import weight_table
from rankcore.preference import (
    call_plan,
    order_loss,
    preference_regret,
    quicksort_rank,
    ranking_regret,
    sort_by_degree,
)
from rankcore.preference.methods import QuickSort
from reference import preference as plain

CYCLE = [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
FULL = {n: list(permutations(range(n))) for n in (3, 4)}


class Shuffle:
    """Random numbers that give one permutation, and no others."""

    def __init__(self, order):
        self.order = order

    def permutation(self, n):
        assert n == len(self.order)
        return np.array(self.order)

    def random(self, size):
        raise AssertionError("answers of 0 or 1 need no draws")


def run(method, h, counts=None):
    """Return the order that a method finds, all its pairs answered from a table."""
    h = np.array(h, dtype=float)
    while (pairs := method.pending()) is not None:
        if counts is not None:
            counts.append(pairs[0].size)
        method.receive(h[pairs])
    return tuple(method.order().tolist())


def quicksorts(h, top_k=None):
    """Return the frequency of each order over all shuffles, and the mean number of pairs."""
    n, orders, counts = len(h), {}, []
    shuffles = list(permutations(range(n)))
    for shuffle in shuffles:
        order = run(QuickSort(n, Shuffle(shuffle), top_k=top_k), h, counts)
        orders[order] = orders.get(order, 0) + Fraction(1, len(shuffles))
    return orders, Fraction(sum(counts), len(shuffles))


def expected(distribution, loss):
    return sum(p * loss(order) for order, p in distribution.items())


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_quicksort_has_the_distribution_of_the_definition(n):
    for h in plain.preferences(n):
        orders, calls = quicksorts(h)
        assert orders == plain.quicksort_orders(h_as_tuple(h), range(n))
        assert calls == plain.quicksort_calls(h_as_tuple(h), range(n))


def h_as_tuple(h):
    return tuple(map(tuple, h))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "degrees"), [(3, (0, Fraction(1, 3), Fraction(1, 2), 1)), (4, (0, 1))]
)
def test_quicksort_on_two_levels_has_the_expected_loss_of_the_preference(n, degrees):
    for h in plain.preferences(n, degrees):
        distribution = plain.quicksort_orders(h_as_tuple(h), range(n))
        floats = np.array(h, dtype=float)
        for labels in plain.two_levels(n):
            loss = plain.preference_loss(h, labels)
            assert expected(distribution, lambda o, y=labels: plain.order_loss(o, y)) == loss
            found = ranking_regret("quicksort", floats, labels)
            assert found.loss == pytest.approx(float(loss), abs=1e-15)
            assert preference_regret(floats, labels).loss == pytest.approx(float(loss), abs=1e-15)
            assert found.value <= preference_regret(floats, labels).value + 1e-15


@pytest.mark.slow
def test_quicksort_on_two_levels_for_all_tournaments_of_five():
    targets = np.array(plain.two_levels(5))
    better = targets[:, None, :] > targets[:, :, None]  # row is worse than column
    for h in plain.preferences(5):
        before = np.zeros((5, 5))
        for order, p in plain.quicksort_orders(h_as_tuple(h), range(5)).items():
            for k, u in enumerate(order):
                before[u, list(order[k + 1 :])] += float(p)
        direct = np.array(h, dtype=float)
        np.testing.assert_allclose(
            (better * before).sum(axis=(1, 2)), (better * direct).sum(axis=(1, 2)), atol=1e-12
        )


@pytest.mark.parametrize("n", [3, 4])
def test_quicksort_on_full_orders_loses_at_most_twice(n):
    worst = Fraction(0)
    for h in plain.preferences(n):
        distribution = plain.quicksort_orders(h_as_tuple(h), range(n))
        for labels in FULL[n]:
            loss = plain.preference_loss(h, labels)
            quicksort = expected(distribution, lambda o, y=labels: plain.order_loss(o, y))
            assert quicksort <= 2 * loss
            if loss:
                worst = max(worst, quicksort / loss)
    assert worst > 1  # the bound of two levels does not hold here


def test_quicksort_on_a_cycle_loses_four_ninths():
    distribution = plain.quicksort_orders(h_as_tuple(CYCLE), range(3))
    labels = [3, 2, 1]
    assert plain.preference_loss(CYCLE, labels) == Fraction(1, 3)
    assert expected(distribution, lambda o: plain.order_loss(o, labels)) == Fraction(4, 9)
    assert ranking_regret("quicksort", CYCLE, labels).value == pytest.approx(4 / 9)
    assert preference_regret(CYCLE, labels).value == pytest.approx(1 / 3)


@pytest.mark.parametrize("n", [2, 3, 4, pytest.param(5, marks=pytest.mark.slow)])
def test_degree_on_two_levels_has_the_tight_bound_of_two(n):
    worst = Fraction(0)
    for h in plain.preferences(n):
        order = sort_by_degree(range(n), np.array(h, dtype=float))
        assert order == plain.degree_order(h)
        for labels in plain.two_levels(n):
            loss = plain.preference_loss(h, labels)
            # Whatever breaks ties: the worst order among those of the same degrees.
            found = plain.order_loss(adversarial(h, labels), labels)
            assert plain.order_loss(order, labels) <= found <= 2 * loss
            if loss:
                worst = max(worst, found / loss)
    assert worst == (2 if n > 2 else 1)


def adversarial(h, labels):
    """Return the order by degree, with ties broken for the worse item."""
    return sorted(range(len(h)), key=lambda u: (-sum(h[u]), labels[u]))


def test_degree_on_full_orders_can_lose_three_times():
    worst = max(
        plain.order_loss(adversarial(h, labels), labels) / plain.preference_loss(h, labels)
        for h in plain.preferences(3)
        for labels in FULL[3]
        if plain.preference_loss(h, labels)
    )
    assert worst == 3


def test_no_deterministic_method_has_a_better_bound_than_two():
    for order in permutations(range(3)):
        # The cycle goes on, so that one item stands last that beats the first.
        labels = [0, 0, 0]
        labels[order[2]] = 1
        assert plain.order_loss(order, labels) == Fraction(2, 3)
        assert plain.preference_loss(CYCLE, labels) == Fraction(1, 3)
        assert order_loss(order, labels) == pytest.approx(2 / 3)
        assert ranking_regret("quicksort", CYCLE, labels).value == pytest.approx(1 / 3)
    thirds = {(0, 1, 2): Fraction(1, 3), (1, 2, 0): Fraction(1, 3), (2, 0, 1): Fraction(1, 3)}
    assert quicksorts(CYCLE)[0] == thirds


GOLDEN_CALLS = {3: 2.6667, 5: 7.4, 10: 24.4373, 100: 647.850, 1000: 10985.91}


@pytest.mark.parametrize(("n", "calls"), GOLDEN_CALLS.items())
def test_planned_calls_of_quicksort(n, calls):
    assert call_plan(n)["quicksort"].calls == pytest.approx(calls, abs=0.005)


@pytest.mark.parametrize("n", [3, 4, 5])
def test_transitive_preferences_need_the_maximum_of_calls(n):
    most = call_plan(n)["quicksort"].calls
    for h in plain.preferences(n):
        calls = float(plain.quicksort_calls(h_as_tuple(h), range(n)))
        out_degrees = sorted(sum(map(int, row)) for row in h)
        if out_degrees == list(range(n)):
            assert calls == pytest.approx(most, abs=1e-12)
        else:
            assert calls < most - 1e-9
    assert quicksorts(CYCLE)[1] == 2


def test_planned_calls_of_partial_quicksort_solve_its_recurrence():
    @np.vectorize
    def plan(n, k):
        return call_plan(n, k)["quicksort"].calls

    calls = {(0, 0): 0.0}
    for n in range(1, 25):
        for k in range(1, n + 1):
            total = 0.0
            for left in range(n):
                total += n - 1 + calls.get((left, min(k, left)), 0.0)
                if left + 1 < k:
                    total += calls[n - 1 - left, k - left - 1]
            calls[n, k] = total / n
    n, k = np.array([key for key in calls if key[0]]).T
    np.testing.assert_allclose(plan(n, k), [calls[a, b] for a, b in zip(n, k, strict=True)])


def test_top_k_is_the_head_of_the_whole_order_and_asks_as_planned():
    n = 5
    h = [[int(u < v) for v in range(n)] for u in range(n)]
    for k in range(1, n + 1):
        orders, calls = quicksorts(h, top_k=k)
        assert {order[:k] for order in orders} == {tuple(range(k))}
        assert float(calls) == pytest.approx(call_plan(n, k)["quicksort"].calls)
    heads, whole = {}, {}
    for order, p in quicksorts(CYCLE, top_k=1)[0].items():
        heads[order[0]] = heads.get(order[0], 0) + p
    for order, p in quicksorts(CYCLE)[0].items():
        whole[order[0]] = whole.get(order[0], 0) + p
    assert heads == whole


def test_expected_levels_are_below_the_plan():
    """By the recurrence of the heights of random binary search trees."""
    most = 400
    below = np.zeros(most + 1)  # probability that n items take at most h levels with pairs
    below[:2] = 1
    expectation = np.zeros(most + 1)
    while below[1:].min() < 1 - 1e-12:
        expectation += 1 - below
        products = np.convolve(below, below)[: most + 1]
        below = np.concatenate([[1.0, 1.0], products[1:most] / np.arange(2, most + 1)])
    for n in range(2, most + 1):
        assert expectation[n] <= call_plan(n)["quicksort"].rounds


class Draws(Shuffle):
    """Random numbers that give one permutation, and then one decision after the other."""

    def __init__(self, order, decisions):
        self.order, self.decisions = order, list(decisions)

    def random(self, size):
        taken, self.decisions = self.decisions[:size], self.decisions[size:]
        return np.where(taken, 0.0, 1.0)


def test_drawn_decisions_have_the_distribution_of_the_definition():
    degrees = {(0, 1): Fraction(9, 10), (0, 2): Fraction(1, 4), (0, 3): Fraction(1)}
    degrees |= {(1, 2): Fraction(1, 2), (1, 3): Fraction(2, 3), (2, 3): Fraction(0)}
    h = [[Fraction(0)] * 4 for _ in range(4)]
    for (u, v), degree in degrees.items():
        h[u][v], h[v][u] = degree, 1 - degree
    table, orders = np.array(h, dtype=float), {}
    for shuffle, decisions in product(permutations(range(4)), product([True, False], repeat=6)):
        method = QuickSort(4, Draws(shuffle, decisions), draw=True)
        p, left = Fraction(1, 24), list(decisions)
        while (pairs := method.pending()) is not None:
            for u, v in zip(*pairs, strict=True):
                if 0 < h[u][v] < 1:
                    p *= h[u][v] if left.pop(0) else 1 - h[u][v]
            method.receive(table[pairs])
        if not any(left):  # decisions that are not used count once
            order = tuple(method.order().tolist())
            orders[order] = orders.get(order, 0) + p
    assert orders == plain.quicksort_orders(h_as_tuple(h), range(4))


@pytest.mark.parametrize(
    ("w", "neighbours", "reversed_"),
    [
        ("unit", 0.2, 1.0),
        (("top_k", 2), 0.1, 0.7),
        (("bipartite", 2), 0.0, 0.6),
        ("difference", 0.2, 2.0),
        ("reciprocal", 0.058333, 0.37),
        ("dcg", 0.043839, 0.285310),
    ],
)
def test_weighted_losses(w, neighbours, reversed_):
    y = [5, 4, 3, 2, 1]
    for order, loss in (([1, 0, 3, 2, 4], neighbours), ([4, 3, 2, 1, 0], reversed_)):
        assert order_loss(order, y, w) == pytest.approx(loss, abs=5e-7)
        place = np.argsort(order)
        h = (place[:, None] < place).astype(float)
        assert preference_regret(h, y, w=w).loss == pytest.approx(loss, abs=5e-7)
    table = weight_table(w, 8)  # the axioms of the theory hold
    assert (table == table.T).all()
    rows, columns = np.indices((8, 7))
    away = np.where(columns >= rows, np.diff(table, axis=1), -np.diff(table, axis=1))
    assert away[(columns > rows) | (columns < rows - 1)].min() >= -1e-12
    for i, j, k in permutations(range(8), 3):
        assert table[i, j] <= table[i, k] + table[k, j] + 1e-12


WEIGHTS = {
    "unit": lambda i, j: 1,
    ("top_k", 2): lambda i, j: int(i <= 2 or j <= 2),
    ("bipartite", 2): lambda i, j: int((i <= 2) != (j <= 2)),
    "difference": lambda i, j: abs(i - j),
    "reciprocal": lambda i, j: abs(Fraction(1, i) - Fraction(1, j)),
}


@pytest.mark.parametrize("w", WEIGHTS, ids=str)
def test_weighted_losses_equal_their_definition(w):
    # Six of the 24 orders with each labels, and the next six with the next.
    orders = list(permutations(range(4)))
    for number, labels in enumerate(product([0, 1, 2], repeat=4)):
        for order in orders[number % 4 :: 4]:
            plain_loss = plain.order_loss(order, labels, WEIGHTS[w])
            assert order_loss(order, labels, w) == pytest.approx(float(plain_loss), abs=1e-15)
        for h in (CYCLE4, HALVES):
            plain_loss = plain.preference_loss(h, labels, WEIGHTS[w])
            found = preference_regret(np.array(h, dtype=float), labels, w=w).loss
            assert found == pytest.approx(float(plain_loss), abs=1e-15)


HALVES = [[Fraction(0 if u == v else 1, 2) for v in range(4)] for u in range(4)]
CYCLE4 = [[0, 1, 1, 0], [0, 0, 1, 1], [0, 0, 0, 1], [1, 0, 0, 0]]


def test_weights_with_the_axioms_keep_the_equality_of_two_levels():
    for h in plain.preferences(4):
        floats = np.array(h, dtype=float)
        for labels in ([1, 0, 0, 1], [0, 1, 0, 0]):
            for w in ("dcg", ("top_k", 1)):
                loss = ranking_regret("quicksort", floats, labels, w=w).loss
                assert loss == pytest.approx(preference_regret(floats, labels, w=w).loss, abs=1e-15)


def test_quicksort_of_many_items_makes_about_the_expected_calls():
    n, asked = 3000, []

    def preference(pairs):
        asked.append(len(pairs))
        return [u < v for u, v in pairs]

    from rankcore.preference import Batch

    means = []
    for seed in range(20):
        asked.clear()
        assert quicksort_rank(range(n), Batch(preference), random_state=seed) == list(range(n))
        assert len(asked) <= 2 * 4.3111 * log(n)
        means.append(sum(asked))
    # The standard deviation is 0.648 n (Knuth, volume 3, section 5.2.2).
    expected_calls = call_plan(n)["quicksort"].calls
    assert abs(np.mean(means) - expected_calls) < 4 * 0.648 * n / 20**0.5
