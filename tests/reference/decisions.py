"""Decision values as scikit-learn wants them, of the scores of ranks, one by one."""

import numpy as np


def margins(scores, ranks):
    """By how much each rank beats the best other one; a tie is won by the predicted rank."""
    scores = np.asarray(scores, dtype=float)
    out = np.empty_like(scores)
    for i, row in enumerate(scores):
        for r in range(len(row)):
            out[i, r] = row[r] - max(value for s, value in enumerate(row) if s != r)
            if out[i, r] == 0 and ranks[i] == r:
                out[i, r] = np.finfo(float).tiny
    return out[:, 1] if out.shape[1] == 2 else out


def cumulated(tasks):
    """Return the score of each rank: the sum of the scores of the tasks below it."""
    return np.array([[sum(row[:r]) for r in range(len(row) + 1)] for row in np.asarray(tasks)])
