"""Bounds on the misranking of unseen pairs by the margins of training pairs.

All hold with probability 1 - delta over a sample of m independent pairs. The class of functions,
and rho unless the bound is uniform in it, must be fixed before the sample is drawn. The pairs of n
documents are not independent; count disjoint pairs, of which a query of n documents has at most
n / 2.
"""

from __future__ import annotations

from math import e, isfinite, log, log2, sqrt
from numbers import Real
from typing import Any

from numpy.typing import ArrayLike

from rankcore._core.params import check_count


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
        Empirical margin loss at ``rho``, from 0 to 1; see `rankcore.metrics.margin_loss`.
    complexity, complexity_other : float
        Rademacher complexities of the class on the first and on the second rows of the pairs.
    rho : float
        Margin, above 0; with ``uniform`` at most 1.
    m : int
        Number of independent pairs.
    delta : float, default=0.05
        Probability that the bound fails.
    empirical : bool, default=False
        Whether the complexities are empirical, rather than expected.
    uniform : bool, default=False
        Whether rho may depend on the sample.

    Returns
    -------
    float
        Upper bound; vacuous if above 1.

    Raises
    ------
    ValueError, TypeError
        For a number outside its range.

    Notes
    -----
    loss + (2 / rho) (R1 + R2) + sqrt(log(1 / delta) / 2m), or 3 sqrt(log(2 / delta) / 2m) with
    empirical complexities. Uniform in rho: 4 instead of 2, delta / 2 instead of delta, and
    an additional term sqrt(log log2(2 / rho) / m) [1]_. Pairs without a preference have loss 0.

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
    check_numbers(zero=True, loss=loss, complexity=complexity, complexity_other=complexity_other)
    if loss > 1.0:
        raise ValueError(f"loss must be 0 to 1; got {loss!r}")
    _check(rho, m, delta, uniform)
    factor, price = 2.0, 0.0
    if uniform:
        factor = 4.0
        delta = delta / 2.0
        price = sqrt(log(log2(2.0 / rho)) / m)
    if empirical:
        doubt = 3.0 * sqrt(log(2.0 / delta) / (2.0 * m))
    else:
        doubt = sqrt(log(1.0 / delta) / (2.0 * m))
    return loss + factor / rho * (complexity + complexity_other) + price + doubt


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
    """Bound misranking by linear or kernel functions of bounded norm.

    Parameters
    ----------
    loss : float
        Empirical margin loss at ``rho``, from 0 to 1; see `rankcore.metrics.margin_loss`.
    radius : float
        Upper bound on the norm of a row: the square root of the maximum K(x, x), at least 0.
    norm : float
        Upper bound on the norm |w| of the functions, at least 0, fixed before the sample is seen.
        For a fitted model, divide its scores and ``rho`` by |w|, and use norm 1.
    rho : float
        Margin, above 0; with ``uniform`` at most 1.
    m : int
        Number of independent pairs.
    delta : float, default=0.05
        Probability that the bound fails.
    uniform : bool, default=False
        Whether rho may depend on the sample.

    Returns
    -------
    float
        Upper bound; vacuous if above 1.

    Raises
    ------
    ValueError, TypeError
        For a number outside its range.

    Notes
    -----
    loss + 4 radius norm / (rho sqrt(m)) + sqrt(log(1 / delta) / 2m): both Rademacher complexities
    are at most radius norm / sqrt(m). (The lecture on which this is based uses r for the supremum
    of K(x, x), instead of its square root.)

    Examples
    --------
    >>> from rankcore.bounds import kernel_margin_bound
    >>> round(kernel_margin_bound(0.0, 1.0, 2.0, 0.5, 10_000, 0.01), 6)
    0.175174
    """
    check_numbers(zero=True, radius=radius, norm=norm)
    _check(rho, m, delta, uniform)
    complexity = radius * norm / sqrt(m)
    return rademacher_margin_bound(loss, complexity, complexity, rho, m, delta, uniform=uniform)


def svm_bound(slack: float, radius: float, norm: float, m: int, delta: float = 0.05) -> float:
    """Bound misranking by the mean slack of a ranking SVM.

    Parameters
    ----------
    slack : float
        Mean of max(0, 1 - d) over the pairs of the sample, at least 0.
    radius : float
        Upper bound on the norm of a row: the square root of the maximum K(x, x), at least 0.
    norm : float
        Upper bound on the norm |w| of the functions, at least 0, fixed before the sample is seen.
        For a fitted model, divide its scores and ``rho`` by |w|, and use norm 1.
    m : int
        Number of independent pairs.
    delta : float, default=0.05
        Probability that the bound fails.

    Returns
    -------
    float
        slack + 4 radius norm / sqrt(m) + sqrt(log(1 / delta) / 2m). A ranking SVM minimises the
        first two terms.

    Raises
    ------
    ValueError, TypeError
        For a number outside its range.

    Examples
    --------
    >>> from rankcore.bounds import svm_bound
    >>> round(svm_bound(0.2, 1.0, 1.0, 1000), 6)
    0.365193
    """
    check_numbers(zero=True, slack=slack)
    # The hinge is at least the margin loss at 1, as the proof requires.
    return slack + kernel_margin_bound(0.0, radius, norm, 1.0, m, delta)


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
    """Bound misranking by weighted means of any number of weak rankers.

    Parameters
    ----------
    loss : float
        Empirical margin loss at ``rho`` of scores divided by the sum of |alpha|.
    complexity, complexity_other : float
        Rademacher complexities of the weak rankers; see `vc_complexity`.
    rho : float
        Margin, above 0; with ``uniform`` at most 1.
    m : int
        Number of independent pairs.
    delta : float, default=0.05
        Probability that the bound fails.
    empirical : bool, default=False
        Whether the complexities are empirical, rather than expected.
    uniform : bool, default=False
        Whether rho may depend on the sample.

    Returns
    -------
    float
        Upper bound; vacuous if above 1.

    Raises
    ------
    ValueError, TypeError
        For a number outside its range.

    Notes
    -----
    The Rademacher complexity of weighted means of functions, or of their negatives, is that of
    the functions.

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
    """Bound the empirical Rademacher complexity of functions of bounded norm.

    Parameters
    ----------
    squares : array-like, shape (m,)
        K(x, x) of the rows of the sample, the squared norms if linear; at least 0.
    norm : float, default=1.0
        Upper bound on the norm of the functions, at least 0.

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

    check_numbers(zero=True, norm=norm)
    values = np.asarray(squares, dtype=np.float64)
    if values.ndim != 1 or not values.size or not np.isfinite(values).all() or (values < 0).any():
        raise ValueError(
            f"squares must list finite numbers >= 0, one per row; got shape {values.shape}"
        )
    return float(norm * np.sqrt(values.sum()) / values.size)


def vc_complexity(dimension: int, m: int) -> float:
    """Bound the Rademacher complexity of functions with two values of difference 1.

    Parameters
    ----------
    dimension : int
        Vapnik-Chervonenkis dimension, at least 1: 2 for threshold stumps on one feature; on d
        features it grows with log2(d).
    m : int
        Number of independent rows, at least ``dimension``.

    Returns
    -------
    float
        sqrt(2 dimension log(e m / dimension) / m) / 2: half of the bound for values -1 and 1, by
        Massart's and Sauer's lemmas.

    Raises
    ------
    ValueError, TypeError
        For a number outside its range.

    Examples
    --------
    >>> from rankcore.bounds import vc_complexity
    >>> round(vc_complexity(2, 10_000), 6)
    0.03085
    """
    check_count(dimension, "dimension")
    check_count(m, "m")
    if m < dimension:
        raise ValueError(f"m must be at least the dimension, {dimension}; got {m}")
    return sqrt(2.0 * dimension * log(e * m / dimension) / m) / 2.0


def _check(rho: float, m: int, delta: float, uniform: bool) -> None:
    check_numbers(rho=rho, delta=delta)
    if uniform and rho > 1.0:
        raise ValueError(f"a bound that is uniform in rho requires rho up to 1; got {rho!r}")
    check_count(m, "m")
    if delta >= 1.0:
        raise ValueError(f"delta must be below 1; got {delta!r}")


def check_numbers(zero: bool = False, **numbers: Any) -> None:
    """Raise unless numbers are finite and above 0 or, with ``zero``, from 0 on."""
    for name, value in numbers.items():
        if not isinstance(value, Real) or isinstance(value, bool):
            raise TypeError(f"{name} must be a number; got {value!r}")
        if not isfinite(value) or value < 0 or (value == 0 and not zero):
            bounds = "from 0 on" if zero else "above 0"
            raise ValueError(f"{name} must be {bounds}; got {value!r}")
