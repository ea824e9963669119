"""Sequential test of bounded preferences by betting, valid at any time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core.numbers import Floats, as_reals, as_vector
from rankcore._core.params import check_option
from rankcore._core.warning import warn

# Shares of the wealth that are bet, with either sign: from 1/2, the maximum at which a bet on a
# preference minus a mean cannot lose more than the wealth, down to effects that require millions of
# impressions.
BETS = 0.5 ** np.arange(1.0, 8.5, 0.5)
_WITHIN = 1e-10  # tolerance of the ends of an interval


@dataclass(frozen=True)
class SequentialResult:
    """Results of a sequential test at each look.

    Attributes
    ----------
    n : ndarray of int64, shape (n_looks,)
        Number of impressions so far.
    mean : ndarray of float64, shape (n_looks,)
        Mean preference so far; positive if the second ranker is ahead.
    p_value : ndarray of float64, shape (n_looks,)
        Minimum p-value over all looks so far; below alpha, the rankers differ.
    low, high : ndarray of float64, shape (n_looks,)
        Confidence interval of the expected preference. With probability 1 - alpha it contains the
        true value at every look, if that is constant. It is the intersection of the intervals of
        all looks so far while they have one, later the interval of the look alone.
    constant : ndarray of bool, shape (n_looks,)
        Whether the intervals of all looks so far have an intersection. If not, the preference has
        changed in time (with confidence 1 - alpha).
    alpha : float
        Probability of a false alarm at any look.
    """

    n: NDArray[np.int64]
    mean: Floats
    p_value: Floats
    low: Floats
    high: Floats
    constant: NDArray[np.bool_]
    alpha: float

    @property
    def winner(self) -> int | None:
        """The better ranker, 0 or 1, at the last look; None if undecided or not constant."""
        return self.winner_at(-1)

    def winner_at(self, look: int) -> int | None:
        """Return the better ranker at a look.

        Parameters
        ----------
        look : int
            Index of the look.

        Returns
        -------
        int or None
            0 or 1; None if undecided, or if the preference has changed.
        """
        if self.p_value[look] > self.alpha or not self.constant[look]:
            return None
        return int(self.low[look] + self.high[look] > 0)  # 0 is on one side of the interval


def preference(credit: ArrayLike, *, by: str = "sign") -> Floats:
    """Return the preference of each impression, from the credits of two rankers.

    Parameters
    ----------
    credit : array-like, shape (n_impressions, 2)
        Credits of the two rankers.
    by : {"sign", "share"}
        "sign": 1 if the second ranker has more credit, -1 if the first has, 0 otherwise. "share":
        the difference divided by the sum of magnitudes.

    Returns
    -------
    ndarray of float64, shape (n_impressions,)
        Preferences from -1 to 1.

    Raises
    ------
    ValueError
        For another shape, values that are not finite and an unknown option.

    Examples
    --------
    >>> from rankcore.interleaving import preference
    >>> preference([[1, 0], [0, 0], [1, 3]]).tolist()
    [-1.0, 0.0, 1.0]
    >>> preference([[1, 0], [0, 0], [1, 3]], by="share").tolist()
    [-1.0, 0.0, 0.5]
    """
    check_option(by, "by", ("sign", "share"))
    credits = np.asarray(as_reals(credit, "credit"), dtype=np.float64)
    if credits.ndim != 2 or credits.shape[1] != 2:
        raise ValueError(f"credit must have shape (n_impressions, 2); got {credits.shape}")
    if not np.isfinite(credits).all():
        raise ValueError("credit must be finite")
    difference = credits[:, 1] - credits[:, 0]
    if by == "sign":
        return np.sign(difference)
    total = np.abs(credits).sum(axis=1)
    return np.divide(difference, total, out=np.zeros_like(difference), where=total > 0)


def sequential_test(
    preferences: ArrayLike, *, looks: ArrayLike | None = None, alpha: float = 0.05
) -> SequentialResult:
    """Test whether two rankers differ, with any number of looks at the experiment.

    The test assumes that the expected preference is constant: that rankers, users and documents do
    not change during the experiment. If the preferences contradict this it warns, and there is no
    winner.

    Parameters
    ----------
    preferences : array-like, shape (n_impressions,)
        Preferences from -1 to 1, in the order of the impressions, for example from `preference`.
        Impressions of the same user should be averaged first.
    looks : array-like of int, optional
        Numbers of impressions at which to look, in ascending order, for example at the end of each
        day; None: after the last one.
    alpha : float
        Probability of a false alarm for any number of looks, between 0 and 1.

    Returns
    -------
    SequentialResult

    Raises
    ------
    ValueError
        For preferences out of range, looks that do not ascend or are beyond the last impression,
        and alpha out of range.

    Warns
    -----
    UserWarning
        If no constant preference is in the intervals of all looks.

    Notes
    -----
    If neither ranker is better, a gambler who bets on each preference before it is observed has no
    expected gain, and multiplies the stake by 1 / alpha at any time with a probability of at most
    alpha (Ville, 1939; Waudby-Smith and Ramdas, 2024). The wealth is the mean over 30 gamblers,
    each of whom always bets the same share, between 2^-8 and 1/2, on one of the two rankers. It
    therefore does not depend on the order of impressions before a look. The interval contains the
    means for which the wealth of gamblers against them stayed below 1 / alpha. A p-value is also
    valid for preferences that change: it tests that none of them has an expectation other than 0,
    given the previous ones. Interval and winner require the same expectation for all.
    O(n distinct values * looks).
    Plain form: ``tests/reference/sequential.py``, ``wealth``.

    Examples
    --------
    >>> import numpy as np
    >>> from rankcore.interleaving import sequential_test
    >>> rng = np.random.default_rng(0)
    >>> found = sequential_test(np.sign(rng.normal(0.2, 1, 3000)), looks=[1000, 2000, 3000])
    >>> found.p_value < 0.05, found.winner
    (array([ True,  True,  True]), 1)
    """
    values = as_vector(preferences, "preferences")
    if not (np.abs(values) <= 1).all():
        raise ValueError("preferences must be from -1 to 1")
    if isinstance(alpha, bool) or not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1; got {alpha!r}")
    ends = as_reals([values.size] if looks is None else looks, "looks")
    if ends.ndim != 1 or not ends.size or ends.dtype.kind not in "iu":
        raise ValueError("looks must be one or more integers")
    ends = ends.astype(np.int64)
    if ends[0] < 0 or ends[-1] > values.size or (np.diff(ends) < 0).any():
        raise ValueError(f"looks must ascend from 0 to at most {values.size} impressions")
    p_value, low, high = np.ones(ends.size), np.empty(ends.size), np.empty(ends.size)
    mean = np.zeros(ends.size)
    constant = np.ones(ends.size, dtype=np.bool_)
    distinct, which = np.unique(values, return_inverse=True)
    counts = np.zeros(distinct.size)
    least = 1.0
    interval = (-1.0, 1.0)
    begin = 0
    for i, end in enumerate(ends.tolist()):
        counts += np.bincount(which[begin:end], minlength=distinct.size)
        begin = end
        if end:
            mean[i] = counts @ distinct / end
        seen = counts > 0
        wealth = _log_wealth(distinct[seen], counts[seen])
        least = min(least, float(np.exp(-max(wealth(0.0), 0.0))))
        current = _interval(wealth, float(mean[i]), -np.log(alpha))
        interval = max(interval[0], current[0]), min(interval[1], current[1])
        constant[i] = interval[0] <= interval[1]
        p_value[i] = least
        low[i], high[i] = interval if constant[i] else current
    if not constant[-1]:
        warn(
            "sequential_test assumes a constant preference, and these preferences changed in time: "
            f"at the look after {ends[~constant][0]} impressions the interval excludes that of an "
            "earlier look. There is no winner, and later intervals are those of one look each; "
            "test the parts of the experiment before and after the change separately"
        )
    return SequentialResult(ends, mean, p_value, low, high, constant, alpha)


def _log_wealth(values: Floats, counts: Floats) -> Callable[[float], float]:
    """Compute the log-wealth of gamblers who bet against a mean."""
    bets = np.concatenate([BETS, -BETS])

    def log_wealth(mean: float) -> float:
        with np.errstate(divide="ignore"):  # a bet that lost all
            logs = np.log1p(np.outer(bets, values - mean)) @ counts
        most = logs.max()
        return float(most + np.log(np.exp(logs - most).mean()))

    return log_wealth


def _interval(wealth: Callable[[float], float], mean: float, limit: float) -> tuple[float, float]:
    """Find the means at which wealth stays below a limit; wealth is convex."""
    from scipy.optimize import brentq

    bounds = []
    for end in (-1.0, 1.0):
        if wealth(end) < limit:
            bounds.append(end)
            continue
        # If all values are 1, or all are -1, the wealth against the mean itself is at most 1, too.
        bounds.append(float(brentq(lambda m: min(wealth(m) - limit, 1.0), mean, end, xtol=_WITHIN)))
    return bounds[0], bounds[1]
