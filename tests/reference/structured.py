"""The structured perceptron as the papers state it: dense vectors, every candidate, every round."""

import numpy as np


def structured(
    X, Y, n, phi, candidates, loss, update="perceptron", C=1.0, margin=0.0, tie="first", epochs=1
):
    """All that the structured perceptron computes with n parameters.

    ``phi(x, y)`` is a dense vector, ``candidates`` a list for every input, in the order that the
    tie rule means.
    """
    pick = {"first": 0, "last": -1}[tie]
    w, total = np.zeros(n), np.zeros(n)
    losses, rival_losses, steps = [], [], []
    for _ in range(epochs):
        for x, y in zip(X, Y, strict=True):
            scores = np.array([w @ phi(x, z) for z in candidates])
            rival = candidates[np.flatnonzero(scores == scores.max())[pick]]
            losses.append(loss(y, rival))
            if margin > 0:
                scores = scores + margin * np.array([loss(y, z) for z in candidates])
                best = np.flatnonzero(scores == scores.max())
                rival = y if candidates.index(y) in best else candidates[best[pick]]
            step = 0.0
            rival_losses.append(loss(y, rival))
            if rival != y:
                delta = phi(x, y) - phi(x, rival)
                norm = delta @ delta
                deficit = loss(y, rival) - w @ delta
                if update == "perceptron":
                    step = 1.0
                elif deficit <= 0:
                    step = 0.0
                elif update == "pa2":
                    step = deficit / (norm + 1 / (2 * C))
                elif norm > 0:
                    step = deficit / norm if update == "pa" else min(C, deficit / norm)
                w = w + step * delta
            steps.append(step)
            total += w
    return {
        "w": w,
        "mean": total / len(losses),
        "losses": np.array(losses),
        "rival_losses": np.array(rival_losses),
        "steps": np.array(steps),
    }


def phi_cusum(x, y, k):
    """A copy of x for each of the tasks 2 .. y: blocks of the size of x, one a task."""
    blocks = np.zeros((k - 1, len(x)))
    blocks[: y - 1] = x
    return blocks.ravel()


def phi_prank(x, y, k):
    """``((y - 1) x, -1 for each of the first y - 1 thresholds, 0 for the others)``."""
    return np.concatenate([(y - 1) * x, -np.ones(y - 1), np.zeros(k - y)])
