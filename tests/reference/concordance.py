"""Measures of pairs, pair by pair in exact fractions."""

from fractions import Fraction
from itertools import combinations, permutations


def ordered_pairs(labels):
    """Places of a better row and a worse one."""
    return [(i, j) for i, j in permutations(range(len(labels)), 2) if labels[i] > labels[j]]


def auc(labels, scores, rel=1, ties="half", weights=None):
    """Exact, or None if a class is missing or weighs nothing."""
    weights = [Fraction(w) for w in weights or [1] * len(labels)]
    right = tied = total = Fraction(0)
    for i, j in permutations(range(len(labels)), 2):
        if labels[i] >= rel > labels[j]:
            pair = weights[i] * weights[j]
            total += pair
            right += pair * (scores[i] > scores[j])
            tied += pair * (scores[i] == scores[j])
    share = {"half": Fraction(1, 2), "optimistic": 1, "pessimistic": 0}[ties]
    return (right + share * tied) / total if total else None


def misranking(labels, scores, ties="error"):
    """Errors in halves and the number of pairs."""
    cost = {"error": 2, "half": 1, "correct": 0}[ties]
    pairs = ordered_pairs(labels)
    halves = [
        2 if scores[i] < scores[j] else cost if scores[i] == scores[j] else 0 for i, j in pairs
    ]
    return sum(halves), len(pairs)


def kendall(labels, scores):
    """Numerator, and the square of the denominator."""

    def sign(x):
        return (x > 0) - (x < 0)

    pairs = list(combinations(range(len(labels)), 2))
    above = sum(sign(labels[i] - labels[j]) * sign(scores[i] - scores[j]) for i, j in pairs)
    by_label = sum(labels[i] != labels[j] for i, j in pairs)
    by_score = sum(scores[i] != scores[j] for i, j in pairs)
    return above, by_label * by_score


def phi(distance, rho):
    return min(Fraction(1), max(Fraction(0), 1 - distance / Fraction(rho)))


def margin_loss(labels, scores, rho):
    losses = [phi(Fraction(scores[i]) - Fraction(scores[j]), rho) for i, j in ordered_pairs(labels)]
    return sum(losses, Fraction(0)) / len(losses) if losses else None


def positions(labels):
    """One more than there are better rows."""
    return [1 + sum(other > label for other in labels) for label in labels]


def position_loss(labels, scores, weigh):
    """Sum of `weigh(i, j)` over pairs in the wrong order, over the number of all pairs."""
    n = len(labels)
    if n < 2:
        return Fraction(0)
    ranked = sorted(range(n), key=lambda i: -scores[i])  # stable
    place = {row: at for at, row in enumerate(ranked)}
    belongs = positions(labels)
    loss = 0
    for u, v in permutations(range(n), 2):
        if place[u] < place[v] and belongs[v] < belongs[u]:
            loss += weigh(belongs[v], belongs[u])
    return 2 * loss / (n * (n - 1))
