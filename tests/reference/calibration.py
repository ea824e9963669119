"""Cumulative logits, plain and slow: the penalised likelihood, and its maximum by scipy."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

PRIOR = 1e-3  # precision of the thresholds around the logits of the fractions, and of the slope


def probabilities(scores, thresholds, slope):
    """Probability of each rank, shape (n, k)."""
    below = expit(np.asarray(thresholds) - slope * np.asarray(scores)[:, None])
    n = len(below)
    return np.diff(np.column_stack([np.zeros(n), below, np.ones(n)]), axis=1)


def prior_logits(ranks, weights, k):
    """Logits of P(rank <= r) by the fractions of the ranks, with half a row added to each rank."""
    counts = np.bincount(ranks, weights, minlength=k) + 0.5
    below = np.cumsum(counts)[:-1]
    return np.log(below / (counts.sum() - below))


def penalised_loss(free, scores, ranks, weights, k):
    """Minus the penalised log-likelihood; ``free`` are the ascending thresholds and the slope.

    log(F(u) - F(l)) = log F(u) + log(1 - F(l)) + log(1 - exp(l - u)), F the logistic distribution.
    """
    ends = np.concatenate([[-np.inf], free[:-1], [np.inf]])
    upper, lower = (ends[ranks + one] - free[-1] * scores for one in (1, 0))
    gap = ends[ranks + 1] - ends[ranks]
    each = -np.logaddexp(0, -upper) - np.logaddexp(0, lower) + np.log(-np.expm1(-gap))
    away = np.append(free[:-1] - prior_logits(ranks, weights, k), free[-1])
    return -float(weights @ each) + PRIOR / 2 * float(away @ away)


def most_likely(scores, ranks, weights):
    """Thresholds and slope >= 0 of minimum penalised loss, for ranks 0 .. k - 1 that all occur."""
    k = int(ranks.max()) + 1
    start = prior_logits(ranks, weights, k)
    # The first threshold and the logarithms of the distances of the next ones.
    start = np.concatenate([start[:1], np.log(np.diff(start)), [0.1]])

    def at(free):
        distances = np.exp(free[1:-1])
        thresholds = free[0] + np.append(0.0, np.cumsum(distances))
        return np.append(thresholds[: k - 1], free[-1])

    def loss(free):
        return penalised_loss(at(free), scores, ranks, weights, k)

    bounds = [(None, None)] * (k - 1) + [(0.0, None)]
    options = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5000, "maxfun": 10**6, "maxcor": 30}
    found = minimize(loss, start, jac="3-point", method="L-BFGS-B", bounds=bounds, options=options)
    free = at(found.x)
    return free[:-1], free[-1]
