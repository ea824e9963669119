"""Measures of predicted ranks."""

from __future__ import annotations

from typing import Any

import numpy as np


def rank_loss(y: Any, predicted: Any, *, sample_weight: Any = None) -> float:
    """Mean distance between true and predicted ranks (mean absolute error).

    Parameters
    ----------
    y, predicted : array-like of numbers, shape (n,)
        True and predicted ranks; predictions may be fractional.
    sample_weight : array-like, shape (n,), optional
        Non-negative weights of the rows.

    Returns
    -------
    float
        At least 0, which is perfect.

    Raises
    ------
    ValueError
        On empty input, different lengths, NaN or infinity, or weights that are negative or all 0.

    Examples
    --------
    >>> from rankcore.metrics import rank_loss
    >>> rank_loss([1, 2, 5], [1, 3, 3])
    1.0
    """
    distance = _distance(y, predicted)
    return float(np.average(distance, weights=_weights(sample_weight, distance.size)))


def accuracy_within(y: Any, predicted: Any, d: float = 1, *, sample_weight: Any = None) -> float:
    """Share of predictions at most ``d`` ranks off.

    Parameters
    ----------
    y, predicted : array-like of numbers, shape (n,)
        True and predicted ranks.
    d : float
        Distance that still counts as right; 0 is plain accuracy.
    sample_weight : array-like, shape (n,), optional
        Non-negative weights of the rows.

    Returns
    -------
    float
        Between 0 and 1.

    Raises
    ------
    ValueError
        As `rank_loss`, and for a negative ``d``.

    Examples
    --------
    >>> from rankcore.metrics import accuracy_within
    >>> accuracy_within([1, 2, 5, 4], [1, 3, 3, 4])
    0.75
    """
    if not d >= 0:
        raise ValueError(f"d must be at least 0, found {d!r}")
    distance = _distance(y, predicted)
    return float(np.average(distance <= d, weights=_weights(sample_weight, distance.size)))


def _distance(y: Any, predicted: Any) -> np.ndarray:
    y, predicted = np.asarray(y, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    if y.ndim != 1 or y.shape != predicted.shape:
        raise ValueError(
            f"y and predicted must be one-dimensional and of one length; found shapes {y.shape} "
            f"and {predicted.shape}"
        )
    if y.size == 0:
        raise ValueError("y and predicted are empty; a mean needs at least one row")
    if not (np.isfinite(y).all() and np.isfinite(predicted).all()):
        raise ValueError("y and predicted must be finite; found NaN or infinity")
    return np.abs(y - predicted)


def _weights(sample_weight: Any, n: int) -> np.ndarray | None:
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), found {weights.shape}")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise ValueError("sample_weight must be finite, not negative, and not all zero")
    return weights


ORDINAL = {"rank_loss": (rank_loss, False), "accuracy_within": (accuracy_within, True)}
