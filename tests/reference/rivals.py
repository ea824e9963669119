"""Widrow-Hoff and the multiclass perceptron, dense NumPy, ranks 1 .. k."""

import numpy as np


def widrow_hoff(X, y, k, eta=0.1, epochs=1):
    """Return scores and weights after each example; a constant feature is a column of X."""
    w = np.zeros(X.shape[1])
    scores, weights, predictions = [], [], []
    for _ in range(epochs):
        for x, true in zip(X, y, strict=True):
            score = w @ x
            scores.append(score)
            predictions.append(int(min(max(np.floor(score + 0.5), 1), k)))
            w = w + eta * (true - score) * x
            weights.append(w)
    return np.array(scores), np.array(weights), np.array(predictions)


def multiclass(X, y, k, update="worst", epochs=1):
    W = np.zeros((k, X.shape[1]))
    total = np.zeros_like(W)
    predictions = []
    for _ in range(epochs):
        for x, true in zip(X, y, strict=True):
            # Row by row alike: a BLAS product may round equal rows of W differently, and equal
            # rows must tie.
            scores = (W * x).sum(axis=1)
            predicted = int(np.argmax(scores)) + 1
            predictions.append(predicted)
            if predicted != true:
                if update == "worst":
                    errors = [predicted - 1]
                else:
                    errors = [
                        r for r in range(k) if r != true - 1 and scores[r] >= scores[true - 1]
                    ]
                W[true - 1] += x
                for r in errors:
                    W[r] -= x / len(errors)
            total += W
    return W, total / (len(X) * epochs), np.array(predictions)
