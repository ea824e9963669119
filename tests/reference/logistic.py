"""Ordinal logistic regression with all thresholds, by averaged stochastic steps."""

import numpy as np


def ordinal_logistic(X, y, k, rate=2.0, weights=None, measured=64, decreasing=True):
    """All that OrdinalLogistic learns from ranks y in 1 .. k, one row at a time.

    The loss of a row is ``sum_r log(1 + exp(-z_r (w.x - b_r)))`` with z_r = 1 if y > r, else -1
    (Rennie and Srebro 2005). A step is ``rate / sqrt(k - 1)`` divided by the mean of ``|x|**2 + 1``
    over the rows so far, which stays as it is after some rows; decreasing ones are multiplied by
    the fourth root of 256 / t in row t.
    """
    w, b = np.zeros(X.shape[1]), np.zeros(k - 1)
    all_w, all_b = [], []
    for t, (x, true) in enumerate(zip(X, y, strict=True)):
        if t < measured:
            mean = np.mean((X[: t + 1] ** 2).sum(axis=1) + 1)
        step = rate / np.sqrt(k - 1) / mean * (1 if weights is None else weights[t])
        if decreasing:
            step *= (256 / (t + 1)) ** 0.25
        above = (true > np.arange(1, k)).astype(float)
        errors = above - 1 / (1 + np.exp(-(w @ x - b)))
        w = w + step * errors.sum() * x
        b = b - step * errors
        all_w.append(w)
        all_b.append(b)
    return {
        "w": w,
        "b": b,
        "w_mean": np.mean(all_w, axis=0),
        "b_mean": np.sort(np.mean(all_b, axis=0)),
    }


def probabilities(X, w, b):
    """P(y = r | x), shape (n, k), from ascending thresholds."""
    below = 1 / (1 + np.exp(np.subtract.outer(X @ w, b)))
    table = np.diff(np.column_stack([np.zeros(len(X)), below, np.ones(len(X))]), axis=1)
    return table
