"""Area under the ROC curve, for one or many queries."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core.labels import as_grades
from rankcore._core.numbers import as_reals, as_vector, check_vector, scaled
from rankcore._core.queries import group_rows, query_numbers, run_blocks
from rankcore._ext import auc as kernels
from rankcore.metrics.evaluate_queries import check_rows, named
from rankcore.metrics.one_measure import PerQuery, mean_or_values

# Credit for a pair of equal scores, in halves.
_TIES = {"half": 1, "optimistic": 2, "pessimistic": 0}
# Integers may exceed the range of float64.
LARGEST = float(np.finfo(np.float64).max)
# From this number of rows, bucket sort is faster.
_HUGE = 1 << 17
# Rows per block (with its own bucket counts), and rows converted at a time.
_BLOCK = 1 << 18
_PART = 1 << 15
_SAMPLES_EACH = 16


def auc_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    rel: float = 1.0,
    ties: Literal["half", "optimistic", "pessimistic"] = "half",
    sample_weight: ArrayLike | None = None,
    empty: float | str = "skip",
    per_query: bool = False,
    query_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> float | PerQuery:
    """Compute the area under the ROC curve.

    The share of pairs of a positive and a negative row in which the positive row has the higher
    score: the statistic of Mann and Whitney (1947), divided by the number of pairs.

    Parameters
    ----------
    y_true : array-like of numbers, shape (n,)
        True labels, higher for better; any finite numbers.
    y_score : array-like of numbers, shape (n,)
        Scores, higher for a better rank; finite. Compared as float64.
    qid : array-like, shape (n,), optional
        The query of each row: any type, any order. Pairs are within queries, and the
        result is the mean over queries. None: all rows are one query.
    rel : float, default=1.0
        Smallest positive label.
    ties : {"half", "optimistic", "pessimistic"}, default="half"
        Credit for a pair of equal scores: a half, one, or zero.
    sample_weight : array-like, shape (n,), optional
        Non-negative weights of the rows; the weight of a pair is their product.
    empty : float, "skip" or "raise", default="skip"
        Value of a query in which a class has no rows or no weight; or NaN, omitted from the mean;
        or an error.
    per_query : bool, default=False
        Whether to return the value of every query instead of the mean.
    query_weight : array-like, shape (n_queries,), optional
        Non-negative weights of the queries in the mean, in order of first appearance.
    n_jobs : int, optional
        Threads; -1 for one per processor. The values do not depend on it.

    Returns
    -------
    float, or (ndarray of query ids, ndarray of values)
        Between 0 and 1. With ``per_query``, the ids and values of the queries, in order of first
        appearance.

    Raises
    ------
    ValueError
        On empty input, different lengths, NaN or infinity, bad weights or unknown options.
    TypeError
        For labels, scores or weights that are not real numbers.

    Notes
    -----
    O(n log n). Pairs are counted as integers and divided once; products of weights are summed with
    compensation. Memory beyond the inputs: for one query 9 bytes per row, 16 with weights; with
    ``qid`` 1 or 8, plus 48 per row of the longest query. Rows that are not grouped by query are
    sorted first, with up to 60 bytes per row.

    "pessimistic" is one minus the misranking of RankBoost, in which ties are errors;
    "optimistic" is one minus the share of pairs in the wrong order; "half" is their mean.

    Examples
    --------
    >>> import rankcore as rc
    >>> y, s = [1, 1, 0, 1, 0, 0], [0.9, 0.5, 0.5, 0.3, 0.4, 0.1]
    >>> round(rc.metrics.auc_score(y, s), 4)
    0.7222
    >>> round(rc.metrics.auc_score(y, s, ties="pessimistic"), 4)
    0.6667
    """
    y_true, _ = as_grades(y_true, None)
    labels, scores = _numbers(y_true, "y_true"), _numbers(y_score, "y_score")
    check_rows(labels, scores)
    if not _is_finite(labels):
        raise ValueError("y_true must be finite")
    if not isinstance(rel, Real) or rel != rel or _is_beyond(rel):
        raise ValueError(f"rel must be a number, the smallest positive label; got {rel!r}")
    if ties not in _TIES:
        raise ValueError(f"ties must be one of {sorted(_TIES)}; got {ties!r}")
    if not (
        empty in ("skip", "raise")
        if isinstance(empty, str)
        else isinstance(empty, Real) and not _is_beyond(empty)
    ):
        raise ValueError(f"empty must be a number, 'skip' or 'raise'; got {empty!r}")
    marks = _Marks(labels, float(rel), sample_weight, qid)
    if qid is None and labels.size >= _HUGE:
        ids: NDArray[Any] = np.zeros(1, dtype=np.int64)
        values = np.array([_area_of_many(scores, marks, _TIES[ties], n_jobs)])
    else:
        ids, values = _areas(scores, marks, qid, _TIES[ties], n_jobs)
    undefined = np.isnan(values)
    if empty != "skip" and undefined.any():
        if empty == "raise":
            query = "" if qid is None else f", in {named(ids[undefined][0])}"
            raise ValueError(
                f"AUC requires labels >= {rel:g} and smaller ones; one kind is missing{query}"
            )
        values[undefined] = empty
    return mean_or_values((ids, values), per_query, query_weight)


def _numbers(x: Any, name: str) -> NDArray[Any]:
    """Validate a vector of real numbers; blocks are converted to float64 later."""
    array = as_reals(x, name)
    check_vector(array, name)
    return array


def _is_beyond(number: Any) -> bool:
    """Return whether a finite number is beyond the range of float64."""
    return bool(LARGEST < abs(number) < math.inf)


def _is_finite(x: NDArray[Any]) -> bool:
    # Minimum and maximum propagate NaN: no temporary is needed.
    return bool(np.isfinite(x.min()) and np.isfinite(x.max()))


class _Marks:
    """Weights of the rows, negated for negative rows."""

    def __init__(self, labels: NDArray[Any], rel: float, sample_weight: Any, qid: Any) -> None:
        self.labels = labels
        self.rel = rel
        self.weights = None
        self.dtype: Any = np.int8
        if sample_weight is None:
            return
        self.dtype = np.float64
        self.weights = _numbers(sample_weight, "sample_weight")
        if self.weights.shape != labels.shape:
            raise ValueError(
                f"sample_weight must have one weight for each of the {labels.size} rows; got "
                f"shape {self.weights.shape}"
            )
        if not (_is_finite(self.weights) and self.weights.min() >= 0 and self.weights.any()):
            raise ValueError("sample_weight must be finite, not negative, and not all zero")
        least = self.weights[self.weights > 0].min()
        if self.weights.max() > 1e30 or least < 1e-30:
            # Avoid overflow of products. Scaling the positive rows of a query, or its negative
            # rows, by a constant does not change its AUC.
            groups = query_numbers(group_rows(qid, labels.size)) * 2 + (labels >= rel)
            self.weights = scaled(self.weights.astype(np.float64), groups)

    def of(self, start: int, stop: int) -> NDArray[Any]:
        """Return the signed weights of the rows from ``start`` to ``stop``."""
        positive = self.labels[start:stop].astype(np.float64, copy=False) >= self.rel
        if self.weights is None:
            return positive.view(np.int8) * np.int8(2) - np.int8(1)
        weights = self.weights[start:stop].astype(np.float64, copy=False)
        return np.copysign(weights, positive - 0.5)


def _areas(
    scores: NDArray[Any], marks: _Marks, qid: Any, ties: int, n_jobs: int | None
) -> PerQuery:
    """Compute the AUC of each query."""
    n = scores.size
    scores = as_vector(scores, "y_score")
    queries = group_rows(qid, n)
    mark = np.empty(n, dtype=marks.dtype)
    for start in range(0, n, _BLOCK):
        mark[start : start + _BLOCK] = marks.of(start, min(start + _BLOCK, n))
    sums = np.empty((queries.bounds.size - 1, kernels.COLUMNS))

    def run(first: int, last: int) -> None:
        odd = kernels.sum_pairs(scores, mark, queries.rows, queries.bounds, first, last, sums)
        if odd >= 0:
            raise ValueError(f"y_score must be finite, in {named(queries.ids[odd])}")

    run_blocks(run, queries.bounds, n_jobs)
    high = 2 * sums[:, kernels.GREATER] + ties * sums[:, kernels.EQUAL]
    low = 2 * sums[:, kernels.GREATER_LOW] + ties * sums[:, kernels.EQUAL_LOW]
    positive, negative = sums[:, kernels.POSITIVE], sums[:, kernels.NEGATIVE]
    with np.errstate(invalid="ignore"):  # no pairs: 0 / 0
        return queries.ids, (high + low) / (2 * positive * negative)


def _area_of_many(scores: NDArray[Any], marks: _Marks, ties: int, n_jobs: int | None) -> float:
    """Compute the AUC of one large query, by bucket sort."""
    n = scores.size
    edges = np.append(np.arange(0, n, _BLOCK, dtype=np.int64), n)
    counts = np.zeros((edges.size - 1, kernels.N_SPLITTERS + 1), dtype=np.int64)
    tied = np.zeros((edges.size - 1, kernels.N_SPLITTERS, 2))
    splitters = _sample_splitters(scores)

    def parts(i: int) -> Iterator[tuple[int, int, NDArray[np.float64]]]:
        for start in range(edges[i], edges[i + 1], _PART):
            stop = min(start + _PART, int(edges[i + 1]))
            yield start, stop, np.require(scores[start:stop], np.float64, ["C", "A"])

    def count(first: int, last: int) -> None:
        for i in range(first, last):
            for _, _, part in parts(i):
                finite = kernels.count_buckets(
                    part,
                    splitters.values,
                    splitters.starts,
                    splitters.low,
                    splitters.cells_per_unit,
                    splitters.first_step,
                    counts[i],
                )
                if not finite:
                    raise ValueError("y_score must be finite")

    run_blocks(count, edges, n_jobs)
    ends = counts.T.ravel().cumsum()
    places = np.ascontiguousarray((ends - counts.T.ravel()).reshape(counts.T.shape).T)
    bounds = np.concatenate([[0], ends[edges.size - 2 :: edges.size - 1]])
    dealt_scores = np.empty(ends[-1])
    dealt_marks = np.empty(ends[-1], dtype=marks.dtype)

    def deal(first: int, last: int) -> None:
        for i in range(first, last):
            for start, stop, part in parts(i):
                kernels.deal(
                    part,
                    marks.of(start, stop),
                    splitters.values,
                    splitters.starts,
                    splitters.low,
                    splitters.cells_per_unit,
                    splitters.first_step,
                    places[i],
                    dealt_scores,
                    dealt_marks,
                    tied[i],
                )

    run_blocks(deal, edges, n_jobs)
    sums = np.zeros((kernels.N_SPLITTERS + 1, kernels.COLUMNS))

    def sweep(first: int, last: int) -> None:
        kernels.sum_pairs(dealt_scores, dealt_marks, None, bounds, first, last, sums)

    run_blocks(sweep, bounds, n_jobs)
    return _combined(sums, tied.sum(axis=0), ties, marks.weights is None)


@dataclass(frozen=True)
class _Splitters:
    """Ascending scores between buckets of rows, with a lookup table of equal cells."""

    values: NDArray[np.float64]  # the splitters, padded with infinity
    starts: NDArray[np.uint16]  # by cell, the number of splitters in the cells before it
    low: float  # where the first cell begins
    cells_per_unit: float  # reciprocal width of a cell
    first_step: int  # of the bisection within a cell, a power of two


def _sample_splitters(scores: NDArray[Any]) -> _Splitters:
    """Sample splitters that split the rows into buckets of similar size."""
    # The result does not depend on the sample; the seed is fixed.
    n_samples = _SAMPLES_EACH * (kernels.N_SPLITTERS + 1)
    rows = np.random.default_rng(0).integers(0, scores.size, n_samples)
    sample = np.sort(scores[rows].astype(np.float64))[_SAMPLES_EACH::_SAMPLES_EACH]
    distinct = np.unique(sample[np.isfinite(sample)])
    values = np.full(2 * kernels.N_SPLITTERS, np.inf)
    values[: distinct.size] = distinct
    low = 0.0
    cells_per_unit = 0.0
    if distinct.size > 1:
        low = float(distinct[0])
        with np.errstate(over="ignore"):  # all scores are then in one cell
            cells_per_unit = float(kernels.N_CELLS / (distinct[-1] - distinct[0]))
        if not math.isfinite(cells_per_unit):
            cells_per_unit = 0.0
    starts = np.empty(kernels.N_CELLS, dtype=np.uint16)
    first_step = kernels.place_splitters(values, starts, low, cells_per_unit)
    return _Splitters(values, starts, low, cells_per_unit, first_step)


def _combined(sums: NDArray[Any], tied: NDArray[Any], ties: int, counted: bool) -> float:
    """Compute the AUC from sums by bucket and splitter; in integers if ``counted``."""
    if counted:
        sums, tied = sums.astype(np.int64), tied.astype(np.int64)
    greater: Any = 0
    equal: Any = 0
    positive: Any = 0
    negative: Any = 0
    # There is no splitter above the last bucket.
    between = [*tied.tolist(), [0, 0]]
    for bucket, (p, q) in zip(sums.tolist(), between, strict=True):
        above = bucket[kernels.POSITIVE]
        greater += bucket[kernels.GREATER] + bucket[kernels.GREATER_LOW] + above * negative
        equal += bucket[kernels.EQUAL] + bucket[kernels.EQUAL_LOW]
        positive += above
        negative += bucket[kernels.NEGATIVE]
        greater += p * negative
        equal += p * q
        positive += p
        negative += q
    pairs = positive * negative
    return float((2 * greater + ties * equal) / (2 * pairs)) if pairs else math.nan
