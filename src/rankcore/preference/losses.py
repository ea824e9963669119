"""Losses of orders and preferences."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankcore._core.arguments import PairWeights
from rankcore._core.numbers import Floats
from rankcore.metrics import weighted_ranking_loss
from rankcore.metrics.weighted_loss import weight_table
from rankcore.preference.forms import Indexed, Places, as_indexed


def order_loss(order: ArrayLike, y: ArrayLike, w: PairWeights = "unit") -> float:
    """Compute the weight of the pairs in the wrong order, divided by the number of all pairs.

    Parameters
    ----------
    order : array-like of int, shape (n,)
        Positions of the items, the first item first; a permutation of 0 .. n - 1.
    y : array-like of numbers, shape (n,)
        True labels of the items, higher is better; pairs with equal labels do not count.
    w : str, (str, int), table or callable
        The weight of a pair, as in `rankcore.metrics.weighted_ranking_loss`: "unit", ("top_k", k),
        ("bipartite", m), "difference", "reciprocal", "dcg", a table or a function of positions.

    Returns
    -------
    float
        L_w of Ailon and Mohri (2010); at least 0.

    Raises
    ------
    ValueError
        If the order is not a permutation, and as `weighted_ranking_loss`.

    Notes
    -----
    O(n log n) for weights given by name.

    Examples
    --------
    >>> from rankcore.preference import order_loss
    >>> order_loss([1, 0, 3, 2, 4], [5, 4, 3, 2, 1])
    0.2
    """
    places = np.asarray(order)
    n = len(np.asarray(y))
    if places.shape != (n,) or places.dtype.kind not in "iu":
        raise ValueError(f"order must have {n} positions, one for each label; found {order!r}")
    if not (np.sort(places) == np.arange(n)).all():
        raise ValueError(f"order must have each of 0 .. {n - 1} once; found {order!r}")
    scores = np.empty(n)
    scores[places] = np.arange(n, 0, -1)
    loss: Any = weighted_ranking_loss(y, scores, w)
    return float(loss)


def preference_loss(
    preference: Indexed | ArrayLike, y: ArrayLike, w: PairWeights = "unit"
) -> float:
    """Compute the loss of a preference: the loss of an order, with degrees instead of 0 and 1.

    Parameters
    ----------
    preference : Indexed, or matrix of shape (n, n)
        Evaluated once per pair, with the earlier item first.
    y : array-like of numbers, shape (n,)
        True labels, higher is better; finite.
    w : str, (str, int), table or callable
        As in `order_loss`.

    Returns
    -------
    float
        The sum over pairs of w times the degree to which the worse item should precede the better
        one, times 2 / (n (n - 1)).

    Raises
    ------
    ValueError, TypeError
        For other forms of preferences, labels that are not finite, or unknown weights.

    Notes
    -----
    O(n^2) time and memory.

    Examples
    --------
    >>> from rankcore.preference import preference_loss
    >>> preference_loss([[0.5, 1, 0], [0, 0.5, 1], [1, 0, 0.5]], [0, 0, 1])
    0.3333333333333333
    """
    labels = np.asarray(y, dtype=np.float64)
    n = labels.size
    if labels.ndim != 1 or not np.isfinite(labels).all():
        raise ValueError("y must be a list of finite numbers")
    computed = as_indexed(preference, n)
    if computed is None:
        raise TypeError("preference must be an Indexed or a matrix")
    if n < 2:
        return 0.0
    place = label_positions(labels) - 1
    i, j = np.triu_indices(n, 1)
    apart = labels[i] != labels[j]
    i, j = i[apart], j[apart]
    degrees = computed.degrees(i, j)
    wrong = np.where(labels[j] > labels[i], degrees, 1.0 - degrees)
    return float((weight_table(w, n)[place[i], place[j]] * wrong).sum()) / (n * (n - 1) / 2)


def label_positions(labels: Floats) -> Places:
    """Return positions in the order of the labels: 1 plus the number of larger labels."""
    return np.searchsorted(np.sort(-labels), -labels) + 1
