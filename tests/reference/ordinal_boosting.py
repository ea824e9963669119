"""Ordinal boosting, plain and slow: probabilities, the loss, and the best split of a node."""

from itertools import combinations

import numpy as np
from scipy.optimize import minimize


def probabilities(scores, biases, link):
    """Return probabilities of ranks, shape (n, k), for scores of shape (1, n) or (k - 1, n)."""
    n, tasks = scores.shape[1], scores - np.asarray(biases)[:, None]
    if link == "cumulative":
        above = np.vstack([np.ones(n), 1 / (1 + np.exp(-tasks)), np.zeros(n)])
        return (above[:-1] - above[1:]).T
    sums = np.vstack([np.zeros(n), np.cumsum(tasks, axis=0)])
    odds = np.exp(sums - sums.max(axis=0))
    return (odds / odds.sum(axis=0)).T


def loss(scores, biases, link, ranks, weights):
    """Return minus the weighted log-likelihood."""
    table = probabilities(scores, biases, link)
    return -float(weights @ np.log(table[np.arange(len(ranks)), ranks]))


def worth(slope, curvature, l2):
    return slope**2 / (curvature + l2)


def best_gain(X, rows, steep, curved, l2, least_rows, categorical=()):
    """Return the gain of the best split of some rows by any threshold or set of categories."""
    best = 0.0
    for f in range(X.shape[1]):
        x = X[rows, f]
        missing = np.isnan(x)
        known = np.unique(x[~missing])
        if f in categorical:
            groups = [x == one for one in known] + [missing] * bool(missing.any())
            cuts = [
                np.any(part, axis=0)
                for size in range(1, len(groups))
                for part in combinations(groups, size)
            ]
        else:
            cuts = [
                (x > threshold) | (missing & side)
                for threshold in [-np.inf, *known]
                for side in (False, True)
            ]
        for high in cuts:
            if min(high.sum(), (~high).sum()) < least_rows:
                continue
            parts = [rows[high], rows[~high]]
            if min(curved[part].sum() for part in parts) < 1e-3:
                continue
            gain = sum(worth(steep[part].sum(), curved[part].sum(), l2) for part in parts)
            best = max(best, gain - worth(steep[rows].sum(), curved[rows].sum(), l2))
    return best


def newton_values(leaf_of, scores, biases, ranks, weights, l2):
    """Return the Newton step of each task and leaf, shape (n_tasks, n_leaves).

    The penalty of a leaf is l2 / 2 times (mean of the values squared, over n_tasks, times n_tasks)
    plus 5 l2 / 2 times the squared distances of the values from their mean.
    """
    d, n_leaves = len(biases), leaf_of.max() + 1
    table = probabilities(scores, biases, "adjacent")
    found = np.zeros((d, n_leaves))
    for leaf in range(n_leaves):
        slope, whole = np.zeros(d), np.zeros((d, d))
        for row in np.flatnonzero(leaf_of == leaf):
            p, at_least = table[row], np.tri(d + 1, d, -1)  # (ranks, tasks): is rank >= j
            mean = p @ at_least
            slope += weights[row] * (at_least[ranks[row]] - mean)
            apart = at_least - mean
            whole += weights[row] * (apart.T * p) @ apart
        for i in range(d):
            for j in range(d):
                whole[i, j] += l2 * (5 * ((i == j) - 1 / d) + 1 / d**2)
        found[:, leaf] = np.linalg.solve(whole, slope)
    return found


def occurring_probabilities(f, biases, occurring, link):
    """Probability of each occurring rank, shape (n, k), if the other ranks have none.

    Adjacent categories of the ranks l < h, with none between: log(p_h / p_l) = (h - l) f - bias.
    """
    if link == "cumulative":
        return probabilities(f[None], biases, link)
    tasks = np.diff(occurring)[:, None] * f - np.asarray(biases)[:, None]
    return probabilities(tasks, np.zeros(len(biases)), link)


def best_biases(f, places, weights, occurring, link):
    """Biases of maximum likelihood for given f, by scipy; ``places`` are indices of occurring."""
    k = len(occurring)
    counts = np.bincount(places, weights, minlength=k)
    above = np.cumsum(counts[::-1])[::-1][1:]
    start = np.log(np.cumsum(counts)[:-1] / above)
    if link == "cumulative":  # the first one, and logarithms of distances
        start = np.append(start[:1], np.log(np.diff(start)))

    def at(free):
        if link == "adjacent":
            return free
        return free[0] + np.append(0.0, np.cumsum(np.exp(free[1:])))

    def loss(free):
        table = occurring_probabilities(f, at(free), occurring, link)
        return -float(weights @ np.log(np.maximum(table[np.arange(len(f)), places], 1e-300)))

    options = {"ftol": 1e-15, "gtol": 1e-8, "maxiter": 5000, "maxfun": 10**6}
    found = minimize(loss, start, jac="3-point", method="L-BFGS-B", options=options)
    return at(found.x)
