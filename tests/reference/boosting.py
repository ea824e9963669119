"""RankBoost over an explicit list of pairs, plain and slow.

Freund, Iyer, Schapire, Singer: "An efficient boosting algorithm for combining preferences", JMLR 4
(2003). A stump is (feature, threshold, default): it fires where x > threshold, and where x is
missing if default is 1. Threshold -inf tells what is present from what is missing.
"""

from itertools import pairwise
from math import exp, inf, isnan, log, sqrt

import numpy as np

LIMIT = 1e-12


def label_pairs(y, qid=None, balance=True, weight=None):
    """Winner and loser rows of all pairs of a query that differ in label, and weights of sum 1."""
    n = len(y)
    qid = [0] * n if qid is None else list(qid)
    weight = [1.0] * n if weight is None else list(weight)
    pairs, weights = [], []
    for query in dict.fromkeys(qid):
        rows = [i for i in range(n) if qid[i] == query]
        here = [(i, j) for i in rows for j in rows if y[i] > y[j] and weight[i] * weight[j] > 0]
        mass = [weight[i] * weight[j] for i, j in here]
        pairs += here
        positive = [weight[i] for i in rows if weight[i] > 0]
        of_query = sum(positive) / max(len(positive), 1)
        weights += [of_query * m / sum(mass) if balance else m for m in mass]
    weights = np.array(weights)
    return np.array(pairs).reshape(-1, 2), weights / weights.sum()


def is_missing(x, zero_missing=False):
    return isnan(x) or (zero_missing and x == 0)


def fires(column, threshold, default, zero_missing=False):
    """H of each row."""
    return np.array(
        [default if is_missing(x, zero_missing) else int(x > threshold) for x in column]
    )


def midpoints(column, zero_missing=False):
    """Candidate thresholds of a feature, highest first."""
    values = sorted({float(x) for x in column if not is_missing(x, zero_missing)}, reverse=True)
    found = []
    for upper, lower in pairwise(values):
        middle = lower / 2 + upper / 2
        found.append(lower if middle >= upper else middle)
    if values and any(is_missing(x, zero_missing) for x in column):
        found.append(-inf)
    return found


def epsilons(D, pairs, h):
    """Weight of the pairs that h orders rightly, and wrongly."""
    difference = h[pairs[:, 0]] - h[pairs[:, 1]]
    return float(D[difference > 0].sum()), float(D[difference < 0].sum())


def potentials(D, pairs, n):
    """Weight that each row wins with, less what it loses with."""
    pi = np.zeros(n)
    np.add.at(pi, pairs[:, 0], D)
    np.add.at(pi, pairs[:, 1], -D)
    return pi


def stumps(X, thresholds, zero_missing=False):
    """Every stump, in the order in which the first of equally good ones is taken."""
    for feature in range(X.shape[1]):
        column = X[:, feature]
        missing = any(is_missing(x, zero_missing) for x in column)
        for threshold in thresholds[feature]:
            for default in (1, 0) if missing else (0,):
                yield (feature, threshold, default), fires(column, threshold, default, zero_missing)


def merit(D, pairs, h, select):
    plus, minus = epsilons(D, pairs, h)
    if select == "edge":
        return abs(plus - minus)
    return (sqrt(plus) - sqrt(minus)) ** 2  # 1 - Z


def best_stump(X, D, pairs, thresholds, select="edge", zero_missing=False):
    """Return the stump of maximum merit and its merit; the first within rounding of the maximum."""
    found = [
        (merit(D, pairs, h, select), stump) for stump, h in stumps(X, thresholds, zero_missing)
    ]
    maximum = max(value for value, _ in found)
    return next((stump, value) for value, stump in found if value >= maximum - 1e-13)


def step_size(rule, plus, minus, smoothing):
    if rule == "third":
        r = min(max(plus - minus, -1 + LIMIT), 1 - LIMIT)
        return 0.5 * log((1 + r) / (1 - r))
    if rule == "least":
        return bisect(plus, minus)
    return 0.5 * log((plus + smoothing) / (minus + smoothing))


def bisect(plus, minus):
    """Where the derivative of Z, -plus e^-a + minus e^a, is zero."""
    largest = 0.5 * log((2 - LIMIT) / LIMIT)
    low, high = -largest, largest
    while high - low > 1e-15 * largest:
        middle = (low + high) / 2
        if minus * exp(middle) < plus * exp(-middle):
            low = middle
        else:
            high = middle
    return (low + high) / 2


def boost(
    X,
    pairs,
    D,
    n_rounds,
    thresholds,
    step="third",
    select="edge",
    smoothing=0.0,
    zero_missing=False,
):
    """Return the rounds as dictionaries, and the scores."""
    scores, rounds = np.zeros(len(X)), []
    for _ in range(n_rounds):
        (feature, threshold, default), _ = best_stump(X, D, pairs, thresholds, select, zero_missing)
        h = fires(X[:, feature], threshold, default, zero_missing)
        plus, minus = epsilons(D, pairs, h)
        alpha = step_size(step, plus, minus, smoothing)
        D, Z = reweigh(D, pairs, h, alpha)
        scores = scores + alpha * h
        rounds.append(
            {
                "stump": (feature, threshold, default),
                "h": h,
                "plus": plus,
                "minus": minus,
                "alpha": alpha,
                "Z": Z,
                "D": D,
            }
        )
    return rounds, scores


def reweigh(D, pairs, h, alpha):
    """Weights after a step, and their sum before they are normalised."""
    D = D * np.exp(-alpha * (h[pairs[:, 0]] - h[pairs[:, 1]]))
    return D / D.sum(), float(D.sum())


def training_error(scores, pairs, D):
    """Weight of the pairs that are not ordered rightly; ties are errors."""
    return float(D[scores[pairs[:, 0]] <= scores[pairs[:, 1]]].sum())
