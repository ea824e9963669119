"""The empirical margin loss as a function of the margin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core.labels import as_relevance
from rankcore._core.numbers import Floats, as_vector
from rankcore._core.queries import queries_of
from rankcore._core.threads import n_threads
from rankcore.bounds._margin import check_numbers, kernel_margin_bound
from rankcore.ranking.pairs import Pairing, check_useful, pair_by_label
from rankcore.ranking.svm.losses import PairLosses, Terms

# Default curve: number of points, and ratio of the minimum margin to the maximum distance.
POINTS = 200
DEPTH = 1e-4


@dataclass(frozen=True, repr=False)
class MarginCurve:
    """Empirical margin losses of scores.

    Attributes
    ----------
    rhos : ndarray of float64, shape (n_points,)
        Margins, ascending.
    losses : ndarray of float64, shape (n_points,)
        Mean over pairs of min(1, max(0, 1 - d / rho)), where d is the difference of the scores.
    misranking : float
        Share of pairs that are misordered or tied: the limit at margin 0.
    n_pairs : int
        Number of pairs for bounds: the maximum number of disjoint pairs.
    """

    rhos: Floats
    losses: Floats
    misranking: float
    n_pairs: int

    def __repr__(self) -> str:
        return (
            f"<MarginCurve: {self.rhos.size} margins, misranking {self.misranking:.4g}, "
            f"{self.n_pairs} independent pairs>"
        )

    def certificate(
        self, radius: float, norm: float, *, delta: float = 0.05, m: int | None = None
    ) -> Floats:
        """Bound the misranking of unseen pairs, for every margin of the curve at once.

        Parameters
        ----------
        radius : float
            Upper bound on the norm of a row.
        norm : float
            Norm of the scoring function (|w|), above 0.
        delta : float, default=0.05
            Probability that any of the bounds fails.
        m : int, optional
            Independent pairs; None: ``n_pairs``.

        Returns
        -------
        ndarray of float64, shape (n_points,)
            `kernel_margin_bound` of the scores divided by ``norm * radius``, uniform in the margin;
            NaN where that margin is above 1. The minimum is also a valid bound.

        Raises
        ------
        ValueError, TypeError
            For a number outside its range.

        Notes
        -----
        Scores divided by |w| are those of a function of norm 1 for any |w|, so
        the class is fixed before the sample is seen.
        """
        check_numbers(radius=radius, norm=norm)
        m = self.n_pairs if m is None else m
        bounds = np.full(self.rhos.size, np.nan)
        for k, rho in enumerate((self.rhos / (norm * radius)).tolist()):
            if rho <= 1.0:
                loss = min(float(self.losses[k]), 1.0)
                bounds[k] = kernel_margin_bound(loss, 1.0, 1.0, rho, m, delta, uniform=True)
        return bounds


def margin_curve(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    rhos: ArrayLike | None = None,
    balance: str | None = "query",
    n_jobs: int | None = None,
) -> MarginCurve:
    """Compute the empirical margin loss at many margins, from one sort of the scores.

    Parameters
    ----------
    y_true : array-like of numbers, shape (n,)
        Labels; all pairs of a query with different labels are compared.
    y_score : array-like of numbers, shape (n,)
        Finite scores.
    qid : array-like, shape (n,), optional
        Query of each row, of any type and in any order. None: all rows belong to one query.
    group : array-like of int, optional
        Sizes of queries with contiguous rows, instead of ``qid``.
    rhos : array-like of float, optional
        Margins, above 0. None: 200 on a logarithmic scale up to the maximum distance.
    balance : {"query"}, optional, default="query"
        "query" weighs queries equally, as in `rankcore.metrics.margin_loss`, None pairs.
    n_jobs : int, optional
        Number of threads. None: 1, -1: one per processor.

    Returns
    -------
    MarginCurve

    Raises
    ------
    ValueError, TypeError
        If input is invalid, or if no query has two rows of different label.

    Notes
    -----
    The mean of min(rho, max(0, rho - d)) is that of max(0, rho - d) minus that of max(0, -d), which
    one pass over the sorted scores sums, in O(n log L) per margin for L distinct labels. The
    rounding error of the difference is 1e-16 times the mean of max(0, -d), before division by rho.

    Examples
    --------
    >>> from rankcore.bounds import margin_curve
    >>> curve = margin_curve([1, 1, 0], [1.0, 0.25, 0.0], rhos=[0.25, 0.5, 2.0])
    >>> curve.losses, curve.misranking
    (array([0.    , 0.25  , 0.6875]), 0.0)
    """
    scores = as_vector(y_score, "y_score")
    labels = as_relevance(y_true, scores.size)
    if not np.isfinite(scores).all():
        raise ValueError("y_score must be finite")
    if balance not in (None, "query"):
        raise ValueError(f"balance must be 'query' or None; got {balance!r}")
    pairing = pair_by_label(labels, queries_of(qid, group, scores.size), None, True)
    check_useful(pairing, scores.size)
    doc_scores = scores[pairing.docs]
    grid = (
        _grid(doc_scores, pairing.bounds)
        if rhos is None
        else np.unique(np.asarray(rhos, np.float64))
    )
    if not grid.size or not np.isfinite(grid).all() or grid[0] <= 0:
        raise ValueError(f"rhos must list finite numbers above 0; got {rhos!r}")
    jobs = n_threads(n_jobs)
    with PairLosses(pairing, balance == "query", jobs) as losses:
        total = float(losses.weights.sum())

        def first(margin: float) -> tuple[float, float]:
            terms = Terms(np.array([margin]), np.array([1.0]))
            at = losses.evaluate(terms, scores=doc_scores)
            # Each pair with d < margin adds 2 to the curvature of both documents.
            return float(at.sums[0, 0]), float(at.curvatures.sum()) / 4.0

        wrong, _ = first(0.0)
        _, tied_or_wrong = first(np.nextafter(0.0, 1.0))
        values = np.array([(first(rho)[0] - wrong) / (rho * total) for rho in grid.tolist()])
    return MarginCurve(grid, np.clip(values, 0.0, 1.0), tied_or_wrong / total, _disjoint(pairing))


def _disjoint(pairing: Pairing) -> int:
    """Return the maximum number of disjoint pairs."""
    sizes = np.diff(pairing.bounds)
    of = np.repeat(np.arange(sizes.size), sizes)
    labels = pairing.labels[np.lexsort((pairing.labels, of))]
    # Runs of equal labels of a query. As np.unique(axis=1), several times as fast.
    new = np.append(True, (of[1:] != of[:-1]) | (labels[1:] != labels[:-1]))
    starts = np.flatnonzero(new)
    counts = np.diff(starts, append=labels.size)
    largest = np.maximum.reduceat(counts, np.searchsorted(starts, pairing.bounds[:-1]))
    return int(np.minimum(sizes // 2, sizes - largest).sum())


def _grid(scores: Floats, bounds: NDArray[np.int64]) -> Floats:
    starts = bounds[:-1]
    with np.errstate(over="ignore"):
        spread = np.maximum.reduceat(scores, starts) - np.minimum.reduceat(scores, starts)
    most = float(spread.max()) or 1.0
    if not np.finfo(np.float64).tiny <= DEPTH * most < np.inf:
        raise ValueError(
            f"the scores are up to {most:.3g} apart: scale y_score, so that margins are in the "
            "range of float64"
        )
    return most * np.logspace(np.log10(DEPTH), 0.0, POINTS)
