"""Bounds of what happens in training: mistakes of online learners, error of boosted ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankcore.bounds._margin import check_count, check_positive


def pairwise_mistake_bound(radius: float, margin: float) -> float:
    """Bound the mistakes of a pairwise perceptron with steps of 1 and margin 0.

    Parameters
    ----------
    radius : float
        No difference of the documents of a pair is longer.
    margin : float
        Some unit vector scores the better document of every pair higher by this, above 0.

    Returns
    -------
    float
        (radius / margin)^2: no run makes more mistakes, whatever the order and the passes.

    Raises
    ------
    ValueError, TypeError
        For a number outside its range.

    Notes
    -----
    Novikoff 1962, on differences. With steps that differ from query to query the same holds for the
    sum of the steps, with the greatest step * radius^2 in place of radius^2.

    Examples
    --------
    >>> from rankcore.bounds import pairwise_mistake_bound
    >>> pairwise_mistake_bound(2.0, 0.5)
    16.0
    """
    check_positive(radius, "radius", zero=True)
    check_positive(margin, "margin")
    return (radius / margin) ** 2


def prank_mistake_bound(n_ranks: int, radius: float, margin: float) -> float:
    """Bound the rank loss that PRank suffers in all, in any number of passes.

    Parameters
    ----------
    n_ranks : int
        k, at least 2.
    radius : float
        No row is longer.
    margin : float
        Some weights w and thresholds b with |w|^2 + |b|^2 = 1 put every row on the right side of
        each threshold, by this at least; above 0.

    Returns
    -------
    float
        ((k - 1) radius^2 + 1) / margin^2, no less than the sum of |predicted - true rank|. (Crammer
        and Singer print (k - 1) (radius^2 + 1) / margin^2; their proof gives this.)

    Raises
    ------
    ValueError, TypeError
        For a number outside its range.

    Examples
    --------
    >>> from rankcore.bounds import prank_mistake_bound
    >>> prank_mistake_bound(3, 1.0, 0.5)
    12.0
    """
    check_count(n_ranks, "n_ranks")
    if n_ranks < 2:
        raise ValueError(f"n_ranks must be at least 2; found {n_ranks!r}")
    check_positive(radius, "radius", zero=True)
    check_positive(margin, "margin")
    return ((n_ranks - 1) * radius**2 + 1.0) / margin**2


def cusum_mistake_bound(radius: float, margin: float, *, demanded: float = 0.0) -> float:
    """Bound the rank loss that CuSum Rank suffers in all, in any number of passes.

    Parameters
    ----------
    radius : float
        No row is longer, the constant feature -1 of the intercept included.
    margin : float
        Some weights w_2, ..., w_k of squared length 1 together have sign(y - j) w_j x >= margin for
        every row x of rank y; above 0.
    demanded : float, default=0.0
        The estimator's ``margin``, 0 or more.

    Returns
    -------
    float
        (radius^2 + 2 demanded) / margin^2, no less than the sum of |predicted - true rank|.

    Raises
    ------
    ValueError, TypeError
        For a number outside its range.

    Examples
    --------
    Four points, with the constant appended, whose best margin is 1 / sqrt(18):

    >>> from rankcore.bounds import cusum_mistake_bound
    >>> round(cusum_mistake_bound(3**0.5, 18**-0.5), 9)
    54.0
    """
    check_positive(radius, "radius", zero=True)
    check_positive(margin, "margin")
    check_positive(demanded, "demanded", zero=True)
    return (radius**2 + 2.0 * demanded) / margin**2


def rankboost_training_bound(edges: Any) -> float:
    """Bound RankBoost's training error by the edges of its rounds.

    Parameters
    ----------
    edges : array-like, shape (n_rounds,)
        r of each round, -1 to 1: the weight of the pairs that the weak ranker orders rightly less
        that of those it orders wrongly; ``history_["edge"]``.

    Returns
    -------
    float
        exp(-sum of r^2 / 2), no less than the product of the normalizers, which is no less than the
        share of the pairs that the scores do not order rightly. (The lecture's proof says that exp
        is concave; the bound holds all the same, for 1 - p + sqrt(p^2 - r^2) grows with p.)

    Raises
    ------
    ValueError
        For edges outside their range.

    Examples
    --------
    >>> from rankcore.bounds import rankboost_training_bound
    >>> round(rankboost_training_bound([0.5, 0.4, 0.3]), 6)
    0.778801
    """
    values = np.asarray(edges, dtype=np.float64)
    if values.ndim != 1 or not (np.abs(values) <= 1.0).all():
        raise ValueError(f"edges must list numbers from -1 to 1; found {edges!r}")
    return float(np.exp(-0.5 * (values @ values)))
