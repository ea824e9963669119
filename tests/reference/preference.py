"""Ranking by preferences, by the definitions: every way is enumerated, in exact fractions."""

from fractions import Fraction
from functools import cache
from itertools import combinations, product


def quicksort_orders(h, items):
    """Probability of each order that QuickSort may give; h[u][v] is that of u before pivot v."""

    @cache
    def orders(items):
        if len(items) < 2:
            return {items: Fraction(1)}
        found = {}
        for pivot in items:
            others = [u for u in items if u != pivot]
            for sides in product([True, False], repeat=len(others)):
                p = Fraction(1, len(items))
                for u, left in zip(others, sides, strict=True):
                    p *= h[u][pivot] if left else 1 - h[u][pivot]
                if not p:
                    continue
                left = tuple(u for u, side in zip(others, sides, strict=True) if side)
                right = tuple(u for u, side in zip(others, sides, strict=True) if not side)
                for a, pa in orders(left).items():
                    for b, pb in orders(right).items():
                        order = (*a, pivot, *b)
                        found[order] = found.get(order, 0) + p * pa * pb
        return found

    return orders(tuple(items))


def quicksort_calls(h, items):
    """Return the expected number of comparisons, for degrees that are 0 or 1."""

    @cache
    def calls(items):
        total = Fraction(0)
        for pivot in items:
            left = tuple(u for u in items if u != pivot and h[u][pivot])
            right = tuple(u for u in items if u != pivot and not h[u][pivot])
            total += len(items) - 1 + calls(left) + calls(right)
        return total / len(items) if items else total

    return calls(tuple(items))


def positions(labels):
    """1 for the maximum label, shared by equal ones."""
    return [1 + sum(other > label for other in labels) for label in labels]


def order_loss(order, labels, w=lambda i, j: 1):
    """L_w, pair by pair."""
    n, place = len(labels), positions(labels)
    total = (
        Fraction(0)
        if n < 2
        else sum(
            Fraction(w(place[v], place[u]))
            for a, u in enumerate(order)
            for v in order[a + 1 :]
            if labels[v] > labels[u]
        )
    )
    return total * Fraction(2, n * (n - 1)) if n > 1 else total


def preference_loss(h, labels, w=lambda i, j: 1):
    """Return the expected number of comparisons with degrees in place of 0 and 1."""
    n, place = len(labels), positions(labels)
    total = sum(
        (
            Fraction(w(place[v], place[u])) * h[u][v]
            for u in range(n)
            for v in range(n)
            if labels[v] > labels[u]
        ),
        Fraction(0),
    )
    return total * Fraction(2, n * (n - 1)) if n > 1 else total


def degree_order(h):
    """By sums of degrees, ties as they came."""
    n = len(h)
    degree = [sum((h[u][v] for v in range(n) if v != u), Fraction(0)) for u in range(n)]
    return sorted(range(n), key=lambda u: (-degree[u], u))


def preferences(n, degrees=(0, 1)):
    """All consistent preferences between n items with these degrees."""
    pairs = list(combinations(range(n), 2))
    for answers in product(degrees, repeat=len(pairs)):
        h = [[Fraction(0)] * n for _ in range(n)]
        for (u, v), degree in zip(pairs, answers, strict=True):
            h[u][v], h[v][u] = Fraction(degree), 1 - Fraction(degree)
        yield h


def two_levels(n):
    """All targets that part n items in two."""
    return [labels for labels in product([0, 1], repeat=n) if 0 < sum(labels) < n]


def bubble(order, passes, precedes):
    """Make passes from the bottom to the top; return the pairs that were compared."""
    order, asked = list(order), []
    for p in range(passes):
        for lower in range(len(order) - 1, p, -1):
            u, v = order[lower - 1], order[lower]
            asked.append((u, v))
            if not precedes(u, v):
                order[lower - 1], order[lower] = v, u
    return order, asked
