"""PRank with a margin, dense NumPy, one example at a time, every round averaged."""

import numpy as np


def margin_prank(X, y, k, margin=1.0, scale=1.0, epochs=1):
    """Learn ranks y in 1 .. k: a threshold moves unless the projection beats it by the margin."""
    n, d = X.shape
    w, steps = np.zeros(d), np.zeros(k - 1, dtype=int)
    w_sum, steps_sum = np.zeros(d), np.zeros(k - 1, dtype=int)
    predictions = []
    for _ in range(epochs):
        for x, true in zip(X, y, strict=True):
            score, b = w @ x, scale**2 * steps
            predictions.append(1 + sum(score >= threshold for threshold in b))
            moves = np.zeros(k - 1, dtype=int)
            for r in range(1, k):
                side = 1 if true > r else -1
                if side * (score - b[r - 1]) <= margin:
                    moves[r - 1] = side
            w = w + moves.sum() * x
            steps = steps - moves
            w_sum += w
            steps_sum += steps
    T = n * epochs
    return {
        "w": w,
        "b": scale**2 * steps,
        "w_mean": w_sum / T,
        "b_mean": scale**2 * steps_sum / T,
        "predictions": np.array(predictions),
    }
