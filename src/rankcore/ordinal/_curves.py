"""From a latent score to the probability of each rank: cumulative logits or isotonic curves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats

# A normal prior of this precision on the thresholds, which are of the order of 1, and on the
# logarithm of the slope: what it changes is in the fourth digit, and separable rows stay finite.
PRIOR = 1e-3


@dataclass(frozen=True)
class CumulativeLogits:
    """``P(rank <= r | s) = 1 / (1 + exp(slope * s - thresholds[r]))`` (McCullagh 1980).

    Attributes
    ----------
    thresholds : ndarray of float64, shape (k - 1,)
        Ascending.
    slope : float
        Positive.
    """

    thresholds: Floats
    slope: float

    def probabilities(self, scores: Floats) -> Floats:
        """Of each rank, shape (n, k)."""
        upper, lower = _bounds(self.thresholds, self.slope * scores)
        return _between(upper, lower)


@dataclass(frozen=True)
class IsotonicCurves:
    """``P(rank > r | s)`` as curves that rise with s, linear between knots.

    Attributes
    ----------
    knots : ndarray of float64, shape (m,)
        Ascending.
    above : ndarray of float64, shape (m, k - 1)
        Columns rise; each is at most the one before it.
    """

    knots: Floats
    above: Floats

    def probabilities(self, scores: Floats) -> Floats:
        """Of each rank, shape (n, k)."""
        curves = [np.interp(scores, self.knots, column) for column in self.above.T]
        ends = [np.ones(scores.size), *curves, np.zeros(scores.size)]
        # Interpolation rounds: curves that meet may cross by a last digit.
        found = np.maximum(-np.diff(np.column_stack(ends), axis=1), 0.0)
        whole: Floats = found / found.sum(axis=1, keepdims=True)
        return whole


Curves = CumulativeLogits | IsotonicCurves


def fit_cumulative(
    scores: Floats, ranks: NDArray[np.int32], n_ranks: int, weights: Floats | None
) -> CumulativeLogits:
    """The most likely cumulative logits, by L-BFGS.

    Parameters
    ----------
    scores : ndarray of float64, shape (n,)
    ranks : ndarray of int32, shape (n,)
        From 0.
    n_ranks : int
    weights : ndarray of float64, shape (n,), optional

    Returns
    -------
    CumulativeLogits

    Notes
    -----
    The logarithms of the slope and of the distances of the thresholds are free, so that the slope
    is positive and the thresholds ascend. An evaluation costs O(n + n_ranks).
    """
    from scipy.optimize import minimize

    weights = np.ones(scores.size) if weights is None else weights
    counts = np.bincount(ranks, weights, minlength=n_ranks)
    # Where no score tells anything: the logits of the shares, with half a row of each rank.
    shares = np.cumsum(counts + 0.5)[:-1] / (counts + 0.5).sum()
    logits = np.log(shares) - np.log1p(-shares)
    start = np.concatenate([logits[:1], np.log(np.diff(logits)), [0.0]])

    def negative_log_likelihood(free: Floats) -> tuple[float, Floats]:
        thresholds, slope = _unpacked(free)
        ends = np.concatenate([[-np.inf], thresholds, [np.inf]])
        upper, lower = ends[ranks + 1] - slope * scores, ends[ranks] - slope * scores
        chances = np.maximum(_between_two(upper, lower), np.finfo(float).tiny)
        at_upper, at_lower = (weights * _density(one) / chances for one in (upper, lower))
        # How the likelihood changes with each threshold, then with what is free.
        by_threshold = np.bincount(ranks, at_upper, minlength=n_ranks)[:-1]
        by_threshold = by_threshold - np.bincount(ranks, at_lower, minlength=n_ranks)[1:]
        tails = np.cumsum(by_threshold[::-1])[::-1]
        gradient = np.concatenate(
            [tails[:1], tails[1:] * np.exp(free[1:-1]), [slope * scores @ (at_lower - at_upper)]]
        )
        loss = -(weights @ np.log(chances)) + PRIOR / 2 * (free @ free)
        return float(loss), PRIOR * free - gradient

    found = minimize(negative_log_likelihood, start, jac=True, method="L-BFGS-B")
    return CumulativeLogits(*_unpacked(found.x))


def fit_isotonic(
    scores: Floats, ranks: NDArray[np.int32], n_ranks: int, weights: Floats | None
) -> IsotonicCurves:
    """One isotonic regression for each threshold, of whether a rank is above it.

    The regressions of events that contain each other keep their order, and rows of equal score
    have one value.

    Parameters
    ----------
    scores, ranks, n_ranks, weights
        As for `fit_cumulative`.

    Returns
    -------
    IsotonicCurves
    """
    from sklearn.isotonic import IsotonicRegression

    fitted = [
        IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(
            scores, (ranks > r).astype(np.float64), sample_weight=weights
        )
        for r in range(n_ranks - 1)
    ]
    knots = np.unique(np.concatenate([one.X_thresholds_ for one in fitted]))
    return IsotonicCurves(knots, np.column_stack([one.predict(knots) for one in fitted]))


def _unpacked(free: Floats) -> tuple[Floats, float]:
    """Thresholds and slope."""
    gaps = np.exp(np.clip(free[1:-1], -700, 700))
    return free[0] + np.concatenate([[0.0], np.cumsum(gaps)]), float(np.exp(min(free[-1], 700)))


def _bounds(thresholds: Floats, scores: Floats) -> tuple[Floats, Floats]:
    """Each rank's upper and lower threshold, less the score, shape (n, k)."""
    ends = np.concatenate([[-np.inf], thresholds, [np.inf]])
    return ends[1:] - scores[:, None], ends[:-1] - scores[:, None]


def _between_two(upper: Floats, lower: Floats) -> Floats:
    """Logistic distribution between two bounds, exact in both tails."""
    from scipy.special import expit

    # The differences of small numbers, not of numbers close to 1.
    high = np.where(lower > 0, expit(-lower), expit(upper))
    low = np.where(lower > 0, expit(-upper), expit(lower))
    found: Floats = high - low
    return found


def _between(upper: Floats, lower: Floats) -> Floats:
    found = _between_two(upper, lower)
    whole: Floats = found / found.sum(axis=1, keepdims=True)
    return whole


def _density(x: Floats) -> Floats:
    from scipy.special import expit

    found: Floats = expit(x) * expit(-x)
    return found
