"""Probabilities of ranks from a latent score, and expected costs of predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from rankcore._core.model_spec import Field, read_fields
from rankcore._core.numbers import Floats
from rankcore._ext.calibration import probabilities

# Precision of a normal prior on thresholds and slope, around those of the shares of the ranks. Its
# effect is in the fourth digit, and separable rows have a finite solution.
PRIOR = 1e-3
# Distance of the thresholds on both sides of ranks without rows, and from the others to those of
# ranks without rows at an end: probabilities of at most 3e-7 and 2e-7 on the rows of the fit.
APART, FAR = 1e-6, 16.0
# The search stops at a Newton step that gains less than this per row.
ENOUGH, MOST_STEPS = 1e-12, 100
# The logistic function is 0 or 1 in float64 beyond this.
SATURATED = 750.0
# Weight of cumulative logits beside an isotonic regression, in rows per rank: of 10, 20, 40, 80 and
# 160 the value with the smallest mean ranked probability score and log loss on Chu's sets.
ROWS_OF_LOGITS = 80
# Minimum probability of a rank by isotonic curves.
LEAST = 1e-13


@dataclass(frozen=True)
class CumulativeLogits:
    """``P(rank <= r | s) = 1 / (1 + exp(slope * s - thresholds[r]))`` (McCullagh 1980)."""

    thresholds: Floats  # (k - 1,): ascending
    slope: float  # not negative

    def probabilities(self, scores: Floats) -> Floats:
        """Return the probability of each rank, shape (n, k)."""
        return _table(scores, self.thresholds[None], np.empty(0), self.slope)

    def turning_points(self) -> Floats:
        """Return the ends of the scores that matter: between them the predicted rank only rises."""
        if self.slope == 0:
            return np.zeros(1)
        ends = self.thresholds.min() - SATURATED, self.thresholds.max() + SATURATED
        return np.clip(np.array(ends) / self.slope, -1e300, 1e300)

    def to_arrays(self) -> dict[str, Floats]:
        """Return the arrays for a model file."""
        return {"curves": self.thresholds[None]}


@dataclass(frozen=True)
class IsotonicCurves:
    """``P(rank > r | s)`` as increasing curves, linear between knots."""

    knots: Floats  # (m,): ascending
    above: Floats  # (m, k - 1): increasing columns, each at most the previous one
    slope: ClassVar[float] = 0.0

    def probabilities(self, scores: Floats) -> Floats:
        """Return the probability of each rank, shape (n, k)."""
        return _table(scores, self.above, self.knots, self.slope)

    def turning_points(self) -> Floats:
        """Return the knots: between two of them expected costs are linear in the score."""
        return self.knots

    def to_arrays(self) -> dict[str, Floats]:
        """Return the arrays for a model file."""
        return {"curves": np.ascontiguousarray(self.above), "knots": self.knots}


Curves = CumulativeLogits | IsotonicCurves


def _table(scores: Floats, curves: Floats, knots: Floats, slope: float) -> Floats:
    """Compute the probability of each rank, (n, k), as ``rankcore_calibration.h`` does."""
    table = np.empty((scores.size, curves.shape[1] + 1))
    scores = np.ascontiguousarray(scores, dtype=np.float64)
    probabilities(scores, np.ascontiguousarray(curves), knots, slope, table)
    return table


def fit_cumulative(
    scores: Floats, ranks: NDArray[np.int32], n_ranks: int, weights: Floats | None
) -> CumulativeLogits:
    """Fit cumulative logits of ranks by scores, by maximum likelihood.

    The slope is at least 0. Ranks without rows of positive weight are left out of the likelihood;
    see `with_absent`.
    """
    occurring, places = _occurring(ranks, weights)
    curves = _most_likely(scores, places, occurring.size, weights)
    return with_absent(curves, scores, occurring, n_ranks)


def _occurring(
    ranks: NDArray[np.int32], weights: Floats | None
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the ranks of rows of positive weight, ascending, and the index of each row's rank.

    Rows of weight 0 get the index of a neighbouring rank.
    """
    occurring = np.unique(ranks if weights is None else ranks[weights > 0])
    places = np.minimum(np.searchsorted(occurring, ranks), occurring.size - 1)
    return occurring, places.astype(np.int32)


def _segments(occurring: NDArray[np.int32], n_ranks: int) -> NDArray[np.intp]:
    """Count, for each threshold between neighbouring ranks, the occurring ranks below it."""
    return np.searchsorted(occurring, np.arange(n_ranks - 1), side="right")


def with_absent(
    curves: CumulativeLogits, scores: Floats, occurring: NDArray[np.int32], n_ranks: int
) -> CumulativeLogits:
    """Insert thresholds of ranks that do not occur, which give them probabilities of about 1e-7.

    Without rows of a rank, the likelihood increases until its two thresholds meet, or until the
    threshold at an end is infinite. Here they stay apart, so that no probability is 0.
    """
    if occurring.size == n_ranks:
        return curves
    inner = np.append(curves.thresholds, curves.slope * scores[[scores.argmin(), scores.argmax()]])
    bounds = np.concatenate([[inner.min() - FAR], curves.thresholds, [inner.max() + FAR]])
    segments = _segments(occurring, n_ranks)
    # All copies of a threshold are closer to each other than to those of the next one.
    apart = min(APART, float(np.diff(bounds).min())) / n_ranks
    copies = np.bincount(segments, minlength=bounds.size)
    firsts = np.cumsum(copies) - copies
    number = np.arange(n_ranks - 1) - firsts[segments]
    shift = apart * (number - (copies[segments] - 1) / 2)
    return CumulativeLogits(bounds[segments] + shift, curves.slope)


def _most_likely(
    scores: Floats, ranks: NDArray[np.int32], n_ranks: int, weights: Floats | None
) -> CumulativeLogits:
    """Fit cumulative logits of ranks that all occur, by maximum likelihood and Newton's method.

    The likelihood is concave in thresholds and slope (Pratt 1981); a step costs O(n + k^3).
    """
    row_weights = np.ones(scores.size) if weights is None else weights
    counts = np.bincount(ranks, row_weights, minlength=n_ranks) + 0.5
    # Start: the logits of the fractions of the ranks, with half a row added to each rank.
    fractions = np.cumsum(counts)[:-1] / counts.sum()
    prior = np.append(np.log(fractions) - np.log1p(-fractions), 0.0)
    task = _Likelihood(scores, ranks, n_ranks, row_weights, prior)
    at = prior
    value, gradient, hessian = task.look(at)
    for _ in range(MOST_STEPS):
        step = np.linalg.solve(hessian, gradient)
        if gradient @ step < ENOUGH * row_weights.sum():
            break
        length = 1.0
        while True:
            further = at + length * step
            ascending = bool((np.diff(further[:-1]) > 0).all())
            values = task.look(further) if ascending else (-np.inf, gradient, hessian)
            if values[0] > value:
                break
            length /= 2
            if length < np.finfo(float).eps:  # limit of rounding
                values, further = (value, np.zeros_like(gradient), hessian), at
                break
        at, (value, gradient, hessian) = further, values
    if at[-1] < 0:  # ranks do not increase with the scores: a constant is best
        return _most_likely(np.zeros_like(scores), ranks, n_ranks, weights)
    return CumulativeLogits(at[:-1], float(at[-1]))


@dataclass(frozen=True)
class _Likelihood:
    """Log-likelihood with its prior, as a function of thresholds and slope."""

    scores: Floats
    ranks: NDArray[np.int32]
    n_ranks: int
    weights: Floats
    prior: Floats

    def look(self, at: Floats) -> tuple[float, Floats, Floats]:
        """Return the value, the gradient, and the negated Hessian."""
        ends = np.concatenate([[-np.inf], at[:-1], [np.inf]])
        upper, lower = (ends[self.ranks + step] - at[-1] * self.scores for step in (1, 0))
        chances = np.maximum(_between_two(upper, lower), np.finfo(float).tiny)
        # Derivatives of each row's log-probability by its upper and lower threshold, and theirs.
        up, down = _density(upper) / chances, _density(lower) / chances
        up_up = up * (1 - 2 * expit(upper)) - up**2
        down_down = -down * (1 - 2 * expit(lower)) - down**2
        both, w, s = up * down, self.weights, self.scores
        d = self.n_ranks - 1

        def by_rank(x: Floats) -> Floats:
            return np.bincount(self.ranks, w * x, minlength=d + 1).astype(np.float64)

        def by_upper(x: Floats) -> Floats:  # threshold
            return by_rank(x)[:-1]

        def by_lower(x: Floats) -> Floats:
            return by_rank(x)[1:]

        away = at - self.prior
        gradient = np.append(by_upper(up) - by_lower(down), -(w @ (s * (up - down))))
        second = np.zeros((d + 1, d + 1))
        at_threshold = np.arange(d)
        second[at_threshold, at_threshold] = by_upper(up_up) + by_lower(down_down)
        neighbours = by_lower(both)[:-1]  # of thresholds r and r + 1: rows of rank r + 1
        second[at_threshold[:-1], at_threshold[1:]] = neighbours
        second[at_threshold[1:], at_threshold[:-1]] = neighbours
        with_slope = -(by_upper(s * (up_up + both)) + by_lower(s * (down_down + both)))
        second[:-1, -1] = second[-1, :-1] = with_slope
        second[-1, -1] = w @ (s**2 * (up_up + down_down + 2 * both))
        value = float(w @ np.log(chances)) - PRIOR / 2 * float(away @ away)
        return value, gradient - PRIOR * away, PRIOR * np.eye(d + 1) - second


def fit_isotonic(
    scores: Floats, ranks: NDArray[np.int32], n_ranks: int, weights: Floats | None
) -> IsotonicCurves:
    """Average cumulative logits and one isotonic regression per threshold.

    The regressions are those of the events that the rank is above the threshold. In the mean,
    logits have a weight of `ROWS_OF_LOGITS` rows per rank, so that no probability is 0, however few
    rows a step has. The curves are in the order of the thresholds, and rows of equal score have
    equal values.
    """
    from sklearn.isotonic import IsotonicRegression

    occurring, places = _occurring(ranks, weights)
    fitted = [
        IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(
            scores, (places > r).astype(np.float64), sample_weight=weights
        )
        for r in range(occurring.size - 1)
    ]
    knots = np.unique(np.concatenate([scores[[0]], *(curve.X_thresholds_ for curve in fitted)]))
    certain, never = np.ones(knots.size), np.zeros(knots.size)
    above = np.column_stack([certain, *(curve.predict(knots) for curve in fitted), never])
    above = above[:, _segments(occurring, n_ranks)]
    logits = fit_cumulative(scores, ranks, n_ranks, weights)
    # Summed from the highest rank down, so that small probabilities keep their precision.
    smooth = np.cumsum(logits.probabilities(knots)[:, :0:-1], axis=1)[:, ::-1]
    rows = scores.size if weights is None else weights.sum()
    logit_weight = ROWS_OF_LOGITS * occurring.size
    # Exactly increasing with the score, and decreasing with the rank, despite rounding.
    mean = np.minimum(above + logit_weight / (rows + logit_weight) * (smooth - above), 1.0)
    # Close to 1, small probabilities of low ranks round to 0.
    mean = (1 - n_ranks * LEAST) * mean + LEAST * np.arange(n_ranks - 1, 0, -1)
    rising = np.maximum.accumulate(mean, axis=0)
    return IsotonicCurves(knots, np.minimum.accumulate(rising, axis=1))


def restored_curves(arrays: Mapping[str, NDArray[Any]], k: int, slope: float) -> Curves:
    """Restore the curves of k ranks of a model file; raise ValueError for invalid ones."""
    if "knots" not in arrays:
        thresholds = read_fields(arrays, {"curves": Field((1, k - 1))})["curves"][0]
        if (np.diff(thresholds) < 0).any():
            raise ValueError("the array curves must ascend from rank to rank")
        return CumulativeLogits(thresholds, slope)
    forms = {"knots": Field(("knots",)), "curves": Field(("knots", k - 1))}
    knots, above = read_fields(arrays, forms).values()
    if knots.size == 0 or not (np.diff(knots) > 0).all():
        raise ValueError("the array knots must ascend")
    return IsotonicCurves(knots, above)


def _between_two(upper: Floats, lower: Floats) -> Floats:
    """Compute the logistic distribution between two bounds, exact in both tails."""
    # Differences of small numbers, not of numbers close to 1.
    high = np.where(lower > 0, expit(-lower), expit(upper))
    low = np.where(lower > 0, expit(-upper), expit(lower))
    return high - low


def _density(x: Floats) -> Floats:
    return expit(x) * expit(-x)


def _without_absent(costs: Floats, occurring: NDArray[Any]) -> Floats:
    """Return costs by which no rank without rows is predicted, whatever the score of a row.

    Rows to predict may lie far beyond those that were learned, where a rank at an end without rows
    would be the most probable one: its probability counts as that of the nearest rank with rows.
    """
    absent = np.setdiff1d(np.arange(len(costs)), occurring)
    if 0 < absent.size < len(costs):
        costs = costs[np.clip(np.arange(len(costs)), occurring.min(), occurring.max())]
        costs[:, absent] += np.ptp(costs) + 1.0
    return costs


def expected_costs(loss: str, probabilities: Floats, occurring: NDArray[Any]) -> Floats:
    """Return the cost of a prediction (column) for a true rank (row).

    ``probabilities`` are those of the training rows, for kappa, and ``occurring`` their ranks, the
    only ones that are predicted.
    """
    ranks = np.arange(probabilities.shape[1], dtype=np.float64)
    distance = np.abs(ranks[:, None] - ranks)
    if loss == "absolute":
        return _without_absent(distance, occurring)
    if loss == "zero_one":
        return _without_absent((distance > 0).astype(np.float64), occurring)
    if loss == "squared":
        return _without_absent(distance**2, occurring)
    # One minus kappa is a ratio of two sums over rows: the squared distances, and their expectation
    # by chance. Dinkelbach (1967): the minimum ratio is the number for which the minimum of the
    # first minus that multiple of the second is 0; rows are then independent.
    mean = probabilities.mean(axis=0) @ ranks
    spread = probabilities.mean(axis=0) @ (ranks - mean) ** 2
    by_chance = (ranks - mean) ** 2 + spread
    quotient = 0.0
    for _ in range(100):
        costs = _without_absent(distance**2 - quotient * by_chance, occurring)
        chosen = (probabilities @ costs).argmin(axis=1)
        squared = np.take_along_axis(probabilities @ distance**2, chosen[:, None], axis=1)
        chance = by_chance[chosen].sum()
        ratio = float(squared.sum() / chance) if chance > 0 else 1.0
        if ratio == quotient:
            break
        quotient = ratio
    return _without_absent(distance**2 - quotient * by_chance, occurring)
