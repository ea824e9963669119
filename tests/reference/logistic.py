"""Ordinal logistic regression with all thresholds, by averaged stochastic steps."""

import numpy as np


def ordinal_logistic(X, y, rate=2.0, weights=None, measured=64, decreasing=True):
    """All that OrdinalLogistic learns from ranks y, one row at a time.

    The loss of a row is ``sum_r log(1 + exp(-z_r (w.x - b_r)))`` with z_r = 1 if y > r, else -1
    (Rennie and Srebro 2005), over the ranks r seen so far but for the highest one. A step is
    ``rate`` divided by the root of their number and by the mean of ``|x|**2 + 1`` over the rows so
    far, which stays as it is after some rows; decreasing ones are multiplied by the fourth root of
    256 / t in row t. Averages are over all rows; a threshold that is new has the past of its
    neighbour.
    """
    w, all_w = np.zeros(X.shape[1]), []
    paths = {}  # for each rank with a threshold above it: its value after each row
    for t, (x, true) in enumerate(zip(X, y, strict=True)):
        if t < measured:
            mean = np.mean((X[: t + 1] ** 2).sum(axis=1) + 1)
        if t and true not in y[:t]:
            add_threshold(paths, np.unique(y[:t]), true, t)
        step = rate / mean * (1 if weights is None else weights[t])
        if decreasing:
            step *= (256 / (t + 1)) ** 0.25
        errors = {r: (true > r) - 1 / (1 + np.exp(b[-1] - w @ x)) for r, b in paths.items()}
        step /= np.sqrt(max(1, len(errors)))
        w = w + step * sum(errors.values()) * x
        for r, path in paths.items():
            path.append(path[-1] - step * errors[r])
        all_w.append(w)
    return {
        "w": w,
        "b": np.sort([path[-1] for path in paths.values()]),
        "w_mean": np.mean(all_w, axis=0),
        "b_mean": np.sort([np.mean(path[1:]) for path in paths.values()]),
    }


def add_threshold(paths, known, new, t):
    """Start the threshold of a new rank after t rows: away from the others beyond the ends."""
    apart = np.log(2) * int(t).bit_length()
    start = [0.0] * (t + 1)
    if new > known[-1]:
        neighbour = paths[max(paths)] if paths else start
        paths[known[-1]] = [b + apart for b in neighbour]
    elif new < known[0]:
        neighbour = paths[min(paths)] if paths else start
        paths[new] = [b - apart for b in neighbour]
    else:
        paths[new] = [*paths[known[known < new][-1]]]


def probabilities(X, w, b):
    """P(y = r | x), shape (n, k), from ascending thresholds."""
    below = 1 / (1 + np.exp(np.subtract.outer(X @ w, b)))
    return np.diff(np.column_stack([np.zeros(len(X)), below, np.ones(len(X))]), axis=1)
