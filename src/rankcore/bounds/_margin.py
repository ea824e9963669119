"""Bounds on the misranking of unseen pairs by the margins of seen ones.

All hold with probability 1 - delta over a sample of m pairs that are drawn independently of each
other, and of whatever was fixed before: the class of functions, rho unless the bound is uniform in
it. All the pairs of n documents are not independent; count disjoint ones, of which a query of n
documents has at most n / 2.
"""

from __future__ import annotations

from math import e, isfinite, log, log2, sqrt
from numbers import Integral, Real

from numpy.typing import ArrayLike

from rankcore._core.docs import documented


def rademacher_margin_bound(
    loss: float,
    complexity: float,
    complexity_other: float,
    rho: float,
    m: int,
    delta: float = 0.05,
    *,
    empirical: bool = False,
    uniform: bool = False,
) -> float:
    """Bound misranking by the empirical margin loss and two Rademacher complexities.

    Parameters
    ----------
    loss : float
        Empirical margin loss at ``rho``, as `rankcore.metrics.margin_loss` measures it, 0 to 1.
    complexity, complexity_other : float
        Rademacher complexities of the class on the first and on the second rows of the pairs.
    rho : float
        The margin, above 0; with ``uniform`` at most 1.
    m : int
        Independent pairs.
    delta : float, default=0.05
        Chance that the bound does not hold.
    empirical : bool, default=False
        Whether the complexities are those of the sample itself, rather than expected ones.
    uniform : bool, default=False
        Whether rho may have been chosen by looking at the sample.

    Returns
    -------
    float
        May be above 1; it is then no bound on a share.

    Raises
    ------
    ValueError, TypeError
        For a number outside its range.

    Notes
    -----
    loss + (2 / rho) (R1 + R2) + sqrt(log(1 / delta) / 2m), or 3 sqrt(log(2 / delta) / 2m) with
    empirical complexities. Uniform in rho: 4 in place of 2, delta / 2 in place of delta, and
    sqrt(log log2(2 / rho) / m) more [1]_. A pair without a preference counts as one without loss.

    References
    ----------
    .. [1] M. Mohri, A. Rostamizadeh and A. Talwalkar. "Foundations of Machine Learning". 2nd
       edition, MIT Press 2018, theorems 5.9 and 10.1.

    Examples
    --------
    >>> from rankcore.bounds import rademacher_margin_bound
    >>> round(rademacher_margin_bound(0.1, 0.01, 0.01, 0.5, 10_000), 6)
    0.192239
    """
    _check_share(loss, "loss")
    check_positive(complexity, "complexity", zero=True)
    check_positive(complexity_other, "complexity_other", zero=True)
    _check(rho, m, delta, uniform)
    factor, price = 2.0, 0.0
    if uniform:
        factor, delta = 4.0, delta / 2.0
        price = sqrt(log(log2(2.0 / rho)) / m)
    if empirical:
        doubt = 3.0 * sqrt(log(2.0 / delta) / (2.0 * m))
    else:
        doubt = sqrt(log(1.0 / delta) / (2.0 * m))
    return loss + factor / rho * (complexity + complexity_other) + price + doubt


@documented(rademacher_margin_bound)
def kernel_margin_bound(
    loss: float,
    radius: float,
    norm: float,
    rho: float,
    m: int,
    delta: float = 0.05,
    *,
    uniform: bool = False,
) -> float:
    """Bound misranking by functions of bounded length, linear or in the space of a kernel.

    Parameters
    ----------
    radius : float
        Upper bound on the length of a row: the root of the maximum K(x, x), 0 or more.
    norm : float
        No function of the class is longer (|w|), 0 or more; fixed before the sample was seen. To
        bound a fitted model, divide its scores and ``rho`` by |w|, and let ``norm`` be 1.

    Notes
    -----
    loss + 4 radius norm / (rho sqrt(m)) + sqrt(log(1 / delta) / 2m): both Rademacher complexities
    are at most radius norm / sqrt(m). (The lecture that this follows writes r for the supremum of
    K(x, x), which has to be its root.)

    Examples
    --------
    >>> from rankcore.bounds import kernel_margin_bound
    >>> round(kernel_margin_bound(0.0, 1.0, 2.0, 0.5, 10_000, 0.01), 6)
    0.175174
    """
    check_positive(radius, "radius", zero=True)
    check_positive(norm, "norm", zero=True)
    _check(rho, m, delta, uniform)
    one = radius * norm / sqrt(m)
    return rademacher_margin_bound(loss, one, one, rho, m, delta, uniform=uniform)


@documented(kernel_margin_bound)
def svm_bound(slack: float, radius: float, norm: float, m: int, delta: float = 0.05) -> float:
    """Bound misranking by the mean slack of a ranking SVM.

    Parameters
    ----------
    slack : float
        Mean of max(0, 1 - d) over the sample's pairs, 0 or more.

    Returns
    -------
    float
        slack + 4 radius norm / sqrt(m) + sqrt(log(1 / delta) / 2m): its first two parts are what a
        ranking SVM minimises.

    Examples
    --------
    >>> from rankcore.bounds import svm_bound
    >>> round(svm_bound(0.2, 1.0, 1.0, 1000), 6)
    0.365193
    """
    check_positive(slack, "slack", zero=True)
    # The hinge is no less than the margin loss at 1, which is all that the proof requires.
    return slack + kernel_margin_bound(0.0, radius, norm, 1.0, m, delta)


@documented(rademacher_margin_bound)
def ensemble_margin_bound(
    loss: float,
    complexity: float,
    complexity_other: float,
    rho: float,
    m: int,
    delta: float = 0.05,
    *,
    empirical: bool = False,
    uniform: bool = False,
) -> float:
    """Bound misranking by weighted means of weak rankers, for any number of them.

    Parameters
    ----------
    loss : float
        Empirical margin loss at ``rho`` of scores divided by the sum of |alpha|.
    complexity, complexity_other : float
        Rademacher complexities of the weak rankers; see `vc_complexity`.

    Notes
    -----
    Weighted means of functions, or of their negatives, are no more complex than the functions: the
    bound is theirs.

    Examples
    --------
    >>> from rankcore.bounds import ensemble_margin_bound, vc_complexity
    >>> stumps = vc_complexity(2, 1_000_000)
    >>> round(ensemble_margin_bound(0.1, stumps, stumps, 0.5, 1_000_000), 4)
    0.1313
    """
    return rademacher_margin_bound(
        loss, complexity, complexity_other, rho, m, delta, empirical=empirical, uniform=uniform
    )


def linear_complexity(squares: ArrayLike, norm: float = 1.0) -> float:
    """Bound the empirical Rademacher complexity of functions of bounded length.

    Parameters
    ----------
    squares : array-like, shape (m,)
        K(x, x) of the sample's rows: squared lengths, if linear; 0 or more.
    norm : float, default=1.0
        No function of the class is longer, 0 or more.

    Returns
    -------
    float
        norm * sqrt(sum of squares) / m.

    Raises
    ------
    ValueError, TypeError
        For numbers outside their range, or none.

    Examples
    --------
    >>> from rankcore.bounds import linear_complexity
    >>> linear_complexity([4.0, 4.0, 4.0, 4.0], norm=3.0)
    3.0
    """
    import numpy as np

    check_positive(norm, "norm", zero=True)
    values = np.asarray(squares, dtype=np.float64)
    if values.ndim != 1 or not values.size or not np.isfinite(values).all() or (values < 0).any():
        raise ValueError(
            f"squares must list finite numbers from 0 on, one per row; found shape {values.shape}"
        )
    return float(norm * np.sqrt(values.sum()) / values.size)


@documented(rademacher_margin_bound)
def vc_complexity(dimension: int, m: int) -> float:
    """Bound the Rademacher complexity of functions with two values a unit apart.

    Parameters
    ----------
    dimension : int
        Vapnik-Chervonenkis dimension, at least 1: 2 for threshold stumps on one feature; on d
        features it grows with log2(d).
    m : int
        Independent rows, at least ``dimension``.

    Returns
    -------
    float
        sqrt(2 dimension log(e m / dimension) / m) / 2: half of what holds for values -1 and 1, by
        Massart's and Sauer's lemmas.

    Examples
    --------
    >>> from rankcore.bounds import vc_complexity
    >>> round(vc_complexity(2, 10_000), 6)
    0.03085
    """
    check_count(dimension, "dimension")
    check_count(m, "m")
    if m < dimension:
        raise ValueError(f"m must be at least the dimension, {dimension}; found {m}")
    return sqrt(2.0 * dimension * log(e * m / dimension) / m) / 2.0


def _check(rho: float, m: int, delta: float, uniform: bool) -> None:
    check_positive(rho, "rho")
    if uniform and rho > 1.0:
        raise ValueError(f"a bound that is uniform in rho is for rho up to 1; found {rho!r}")
    check_count(m, "m")
    check_positive(delta, "delta")
    if delta >= 1.0:
        raise ValueError(f"delta must be below 1; found {delta!r}")


def _check_share(value: float, name: str) -> None:
    check_positive(value, name, zero=True)
    if value > 1.0:
        raise ValueError(f"{name} must be 0 to 1; found {value!r}")


def check_count(value: int, name: str) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer; found {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1; found {value!r}")


def check_positive(value: float, name: str, zero: bool = False) -> None:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number; found {value!r}")
    if not isfinite(value) or value < 0 or (value == 0 and not zero):
        raise ValueError(f"{name} must be {'from 0 on' if zero else 'above 0'}; found {value!r}")
