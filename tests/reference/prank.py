"""PRank as the paper states it: dense NumPy, one example at a time, every round averaged."""

import numpy as np


def predict(w, b, x):
    """1-based rank: the first r with w.x < b_r, the last threshold being infinite."""
    score = w @ x
    for r, threshold in enumerate(b, start=1):
        if score < threshold:
            return r
    return len(b) + 1


def prank(X, y, k, tie="crammer", scale=1.0, epochs=1):
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
            tau = np.zeros(k - 1, dtype=int)
            if predicted != true:
                score = w @ x
                for r in range(1, k):
                    sign = 1 if true > r else -1
                    if tie == "crammer":
                        wrong = (score - b[r - 1]) * sign <= 0
                    else:
                        wrong = score < b[r - 1] if sign == 1 else score >= b[r - 1]
                    tau[r - 1] = sign * wrong
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
