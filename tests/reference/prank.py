"""PRank as the paper states it: dense NumPy, one example at a time, every round averaged."""

import numpy as np


def predict(w, b, x):
    """1-based rank: the first r with w.x < b_r, the last threshold being infinite."""
    score = w @ x
    for r, threshold in enumerate(b, start=1):
        if score < threshold:
            return r
    return len(b) + 1


def threshold_steps(score, true, b, tie="crammer", margin=0.0):
    """Return the steps of the thresholds: all 0 if the score beats each by the margin."""
    sides = np.where(true > np.arange(1, len(b) + 1), 1, -1)
    edges = b + sides * margin
    short = np.where(sides == 1, score < edges, score >= edges)
    if tie == "crammer" and short.any():
        short |= score == edges
    return sides * short


def prank(X, y, k, tie="crammer", scale=1.0, epochs=1, margin=0.0):
    """All that PRank computes on ranks y in 1 .. k.

    Thresholds are integer steps times the squared scale: PRank with a constant feature ``scale``
    shared by the thresholds.
    """
    n, d = X.shape
    w, steps = np.zeros(d), np.zeros(k - 1, dtype=int)
    w_sum, b_sum = np.zeros(d), np.zeros(k - 1)
    predictions, taus = [], []
    for _ in range(epochs):
        for x, true in zip(X, y, strict=True):
            b = scale**2 * steps
            predicted = predict(w, b, x)
            predictions.append(predicted)
            tau = threshold_steps(w @ x, true, b, tie, margin)
            w = w + tau.sum() * x
            steps = steps - tau
            taus.append(tau)
            w_sum += w
            b_sum += scale**2 * steps
    T = n * epochs
    losses = np.abs(np.array(predictions) - np.tile(y, epochs))
    return {
        "w": w,
        "steps": steps,
        "b": scale**2 * steps,
        "w_mean": w_sum / T,
        "b_mean": b_sum / T,
        "predictions": np.array(predictions),
        "losses": losses,
        "taus": np.array(taus),
    }
