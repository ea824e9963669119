"""Losses of margins over pairs, pair by pair: slow, and plainly right."""

import numpy as np


def pairs_of(y, qid, weights=None):
    """Winner, loser and weight of every pair of a query that differs in label."""
    found = []
    for i in range(len(y)):
        for j in range(len(y)):
            if qid[i] == qid[j] and y[i] > y[j]:
                found.append((i, j, 1.0 if weights is None else weights[i] * weights[j]))
    return [(i, j, v) for i, j, v in found if v > 0]


def query_weights(qid, weights):
    """Mean positive weight of the rows of each query, divided by that of all rows."""
    of = {}
    for query, weight in zip(qid, weights, strict=True):
        if weight > 0:
            of.setdefault(query, []).append(float(weight))
    mean = sum(map(sum, of.values())) / sum(map(len, of.values()))
    return {query: sum(some) / len(some) / mean for query, some in of.items()}


def balanced(pairs, qid, weights=None):
    """Return the pairs with weights that sum to the weight of each query."""
    total = {}
    for i, _, v in pairs:
        total[qid[i]] = total.get(qid[i], 0.0) + v
    of = dict.fromkeys(total, 1.0) if weights is None else query_weights(qid, weights)
    return [(i, j, of[qid[i]] * v / total[qid[i]]) for i, j, v in pairs]


def loss_of(s, pairs, power, margin=1.0):
    """Sum of v * max(0, margin - d)^power."""
    return sum(v * max(0.0, margin - (s[i] - s[j])) ** power for i, j, v in pairs)


def slopes_of(s, pairs, power, margin=1.0):
    """Its derivatives by the scores; of the hinge, pairs at the margin itself cost nothing."""
    g = np.zeros(len(s))
    for i, j, v in pairs:
        if s[i] - s[j] < margin:
            by = v if power == 1 else 2 * v * (margin - (s[i] - s[j]))
            g[i] -= by
            g[j] += by
    return g


def curvature_of(s, pairs, margin=1.0):
    """Second derivatives of the squared loss."""
    H = np.zeros((len(s), len(s)))
    for i, j, v in pairs:
        if s[i] - s[j] < margin:
            H[i, i] += 2 * v
            H[j, j] += 2 * v
            H[i, j] -= 2 * v
            H[j, i] -= 2 * v
    return H


def objective(w, X, pairs, C, power):
    """|w|^2 / 2 + C * loss."""
    return w @ w / 2 + C * loss_of(X @ w, pairs, power)
