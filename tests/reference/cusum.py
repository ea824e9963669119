"""CuSum Rank as the paper states it, with the corrections of its update and bounds; dense NumPy.

Ranks are 1 .. k; W has a row for each of the tasks 2 .. k ("rank at least j"); the constant -1
that stands for the thresholds is appended here.
"""

import numpy as np

from reference.decisions import cumulated


def augment(X):
    return np.hstack([X, -np.ones((len(X), 1))])


def scores(W, x):
    """Cumulative sums: score of rank 1 is 0."""
    return np.concatenate([[0.0], np.cumsum(W @ x)])


def argmax(values, tie):
    best = np.flatnonzero(values == values.max())
    return int(best[-1] if tie == "high" else best[0]) + 1


def cusum(
    X,
    y,
    k,
    update="perceptron",
    C=1.0,
    delta=1.0,
    pa_loss="absolute",
    margin=0.0,
    tie="high",
    epochs=1,
    intercept=True,
):
    X = augment(X) if intercept else X
    W = np.zeros((k - 1, X.shape[1]))
    total = np.zeros_like(W)
    predictions, steps = [], []
    for _ in range(epochs):
        for x, true in zip(X, y, strict=True):
            s = scores(W, x)
            predictions.append(argmax(s, tie))
            augmented = s + margin * np.abs(np.arange(1, k + 1) - true)
            rival = true if augmented[true - 1] == augmented.max() else argmax(augmented, tie)
            if margin == 0:
                rival = predictions[-1]
            step = 0.0
            if rival != true:
                low, high = min(true, rival), max(true, rival)
                sign = 1 if true > rival else -1
                if update == "perceptron":
                    step = float(sign)
                else:
                    loss = delta * (high - low if pa_loss == "absolute" else 1)
                    norm = (high - low) * (x @ x)
                    deficit = loss - sign * W[low - 1 : high - 1].dot(x).sum()
                    if deficit <= 0:
                        size = 0.0
                    elif update == "pa":
                        size = deficit / norm if norm else 0.0
                    elif update == "pa1":
                        size = min(C, deficit / norm) if norm else C
                    else:
                        size = deficit / (norm + 1 / (2 * C))
                    step = sign * size
                W[low - 1 : high - 1] += step * x
            steps.append(step)
            total += W
    losses = np.abs(np.array(predictions) - np.tile(y, epochs))
    return {
        "W": W,
        "mean": total / (len(X) * epochs),
        "predictions": np.array(predictions),
        "losses": losses,
        "steps": np.array(steps),
    }


def clear_cut(model, X, y, k, margin):
    """Whether no decision in learning from the rows in turn hung on the rounding of a score."""
    for i in range(len(y)):
        if i:
            scores = cumulated(X[[i]] @ model.coef_.T + model.intercept_)[0]
            for extra in [0, margin]:
                augmented = scores + extra * np.abs(np.arange(1, k + 1) - y[i])
                first, second = np.sort(augmented)[:-3:-1]
                # Where every product is 0, scores are exact however they are summed.
                if first - second < 1e-9 and (
                    model.coef_[:, X[i] != 0].any() or model.intercept_.any()
                ):
                    return False
        model.partial_fit(X[[i]], y[[i]], classes=range(1, k + 1))
    return True
