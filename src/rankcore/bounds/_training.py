"""Training bounds: mistakes of online learners, training error of RankBoost."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rankcore._core.params import check_integer
from rankcore.bounds._margin import check_numbers


def pairwise_mistake_bound(radius: float, margin: float) -> float:
    """Bound the mistakes of a pairwise perceptron with steps of 1 and margin 0.

    Parameters
    ----------
    radius : float
        Upper bound on the norm of the difference of the documents of a pair.
    margin : float
        Margin by which some unit vector scores the better document of every pair higher, above 0.

    Returns
    -------
    float
        (radius / margin)^2, an upper bound for any order and any number of passes.

    Raises
    ------
    ValueError, TypeError
        For a number outside its range.

    Notes
    -----
    Novikoff 1962, on differences. With a step size per query, the sum of the steps has this bound,
    with the maximum step * radius^2 instead of radius^2.

    Examples
    --------
    >>> from rankcore.bounds import pairwise_mistake_bound
    >>> pairwise_mistake_bound(2.0, 0.5)
    16.0
    """
    check_numbers(zero=True, radius=radius)
    check_numbers(margin=margin)
    return (radius / margin) ** 2


def prank_mistake_bound(
    n_ranks: int,
    radius: float,
    margin: float,
    *,
    threshold_scale: float = 1.0,
    demanded: float = 0.0,
) -> float:
    """Bound the total rank loss of PRank over any number of passes.

    Parameters
    ----------
    n_ranks : int
        Number of ranks k, at least 2.
    radius : float
        Upper bound on the norm of a row.
    margin : float
        Minimum distance, above 0, from every row to each threshold on the correct side, for some
        weights w and thresholds b with |w|^2 + |b / s|^2 = 1.
    threshold_scale : float, default=1.0
        s, the ``threshold_scale_`` of the model; 1 in the paper.
    demanded : float, default=0.0
        The ``margin_`` of the model, at least 0; 0 in the paper.

    Returns
    -------
    float
        ((k - 1) radius^2 + s^2 + 2 demanded) / margin^2, an upper bound on the sum of
        |predicted - true rank|.

    Raises
    ------
    ValueError, TypeError
        For a number outside its range.

    Notes
    -----
    A threshold is s times the weight of a constant feature of value s. Let v be the weights and
    b / s of the learner, u those of the assumption, and m the number of thresholds that an example
    moves, which is at least its rank loss and at most k - 1. The projection is not beyond any of
    these by more than ``demanded``, so |v|^2 grows by at most 2 m demanded + m^2 radius^2 + m s^2,
    and u.v by at least m margin. After M moves in total (M margin)^2 <= (u.v)^2 <= |v|^2 <=
    M (2 demanded + (k - 1) radius^2 + s^2), which bounds M and so the rank loss. For s = 1 and
    ``demanded`` 0 Crammer and Singer state (k - 1) (radius^2 + 1) / margin^2; their proof gives the
    smaller bound.

    Examples
    --------
    >>> from rankcore.bounds import prank_mistake_bound
    >>> prank_mistake_bound(3, 1.0, 0.5)
    12.0
    >>> prank_mistake_bound(3, 1.0, 0.5, threshold_scale=4.0)
    72.0
    >>> prank_mistake_bound(3, 1.0, 0.5, demanded=1.0)
    20.0
    """
    check_integer(n_ranks, "n_ranks", 2)
    check_numbers(zero=True, radius=radius, demanded=demanded)
    check_numbers(margin=margin, threshold_scale=threshold_scale)
    return ((n_ranks - 1) * radius**2 + threshold_scale**2 + 2.0 * demanded) / margin**2


def cusum_mistake_bound(radius: float, margin: float, *, demanded: float = 0.0) -> float:
    """Bound the total rank loss of CuSum Rank over any number of passes.

    Parameters
    ----------
    radius : float
        Upper bound on the norm of a row, including the constant feature of the intercept
        (``intercept_scaling``).
    margin : float
        Margin, above 0: some weights w_2, ..., w_k of total squared norm 1 have
        sign(y - j) w_j x >= margin for every row x of rank y.
    demanded : float, default=0.0
        The parameter ``margin`` of the estimator, at least 0.

    Returns
    -------
    float
        (radius^2 + 2 demanded) / margin^2, an upper bound on the sum of |predicted - true rank|.

    Raises
    ------
    ValueError, TypeError
        For a number outside its range.

    Examples
    --------
    Four points, with the constant feature, whose maximum margin is 1 / sqrt(18):

    >>> from rankcore.bounds import cusum_mistake_bound
    >>> round(cusum_mistake_bound(3**0.5, 18**-0.5), 9)
    54.0
    """
    check_numbers(zero=True, radius=radius, demanded=demanded)
    check_numbers(margin=margin)
    return (radius**2 + 2.0 * demanded) / margin**2


def rankboost_training_bound(edges: ArrayLike) -> float:
    """Bound RankBoost's training error by the edges of its rounds.

    Parameters
    ----------
    edges : array-like, shape (n_rounds,)
        r of each round, from -1 to 1: the weight of the pairs that the weak ranker orders correctly
        minus the weight of those it orders wrongly; ``history_["edge"]``.

    Returns
    -------
    float
        exp(-sum of r^2 / 2), an upper bound on the product of the normalizers, which bounds the
        fraction of pairs that are misordered or tied.

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
        raise ValueError(f"edges must list numbers from -1 to 1; got {edges!r}")
    return float(np.exp(-0.5 * (values @ values)))
