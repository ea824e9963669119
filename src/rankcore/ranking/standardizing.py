"""Standardised features of rankers: factors of columns from the moments of rows.

Documents of a query are compared with each other, so that means of columns do not matter: only
their deviations do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore._core.scales import warn_of_vanishing
from rankcore._core.sources import Source, Window
from rankcore._core.standardization import LEAST_VALUE, Moments
from rankcore._ext.pair_model import PairModel
from rankcore._ext.rows import Rows
from rankcore.ranking.pairs import Pairing, row_weights

# Columns of larger deviations are an error: squares of their factors are not float64.
LARGEST_DEVIATION = 1 / LEAST_VALUE
# Rows of a stream after which those that are left alone are left alone for good, so that the
# moments of many columns need neither time nor memory.
DECIDED_ROWS = 64
# A deviation of a stream that grows by more than this was that of rows that hardly moved: converted
# from a unit that was a hundredth of the right one, a weight would be a hundred times too large.
MOST_GROWTH = 1.1


def factors_of(moments: Moments) -> Floats:
    """Return the factors of columns: 1 / deviation, or 1 for columns to leave as they are.

    It is 0 for constants: their differences are 0, and their weights would be rounding errors.
    Raises ValueError if values are so large that their squares overflow.
    """
    with np.errstate(invalid="ignore"):  # infinite moments
        deviation = moments.units().deviation
        still = moments.constant()
    if not (deviation <= LARGEST_DEVIATION).all():
        raise squares_overflowed()
    return np.where(still, 0.0, 1 / np.where(still, 1.0, deviation))


def squares_overflowed() -> ValueError:
    """Return an error for values whose squares are not finite."""
    return ValueError(
        "the squares of the values of X overflowed: scale X, for example with "
        "sklearn.preprocessing.MaxAbsScaler"
    )


def moments_of_window(window: Window, part: NDArray[np.int64] | None = None) -> Moments | None:
    """Return the moments of the weighted rows of a window; None for sparse rows.

    ``part`` are the rows to use, some with a positive weight; all by default.
    """
    moments = Moments(window.rows.n_features)
    add_window(moments, window, part)
    return None if moments.sparse else moments


def factors_of_window(window: Window, names: Sequence[str] | None, learner: str) -> Floats | None:
    """Return the factors from the weighted rows of a window; None for sparse rows.

    Warns of columns, by their names, whose squares vanish.
    """
    moments = moments_of_window(window)
    return None if moments is None else factors_of_fit(moments, names, learner)


def factors_of_fit(moments: Moments, names: Sequence[str] | None, learner: str) -> Floats | None:
    """Return the factors from the moments of all rows; None for sparse rows.

    Warns of columns, by their names, whose squares vanish.
    """
    if moments.sparse:
        return None
    warn_of_vanishing(moments.vanishing().tolist(), names, learner)
    return factors_of(moments)


def add_window(moments: Moments, window: Window, part: NDArray[np.int64] | None = None) -> None:
    """Add the weighted rows of a window, or of ``part``; some weight must be positive."""
    rows, weights = window.rows, row_weights(window)
    if part is not None:
        part_weights = np.zeros(rows.n_rows)
        part_weights[part] = 1.0 if weights is None else weights[part]
        weights = part_weights
    if weights is not None:
        weights = weights / weights.max()  # sums of large weights would overflow
    moments.add(rows, weights)


def scale_of(moments: Moments) -> Floats:
    """Return the factors of a pairwise perceptron, whose rows have about the length 1.

    A step along a row moves its score by the square of its length, and a margin is a difference of
    scores. With lengths that grow with the number of features, a step would be many margins long,
    and single hypotheses would rank by the last few pairs.
    """
    return factors_of(moments) / math.sqrt(moments.columns.shape[1])


def moments_of_fit(source: Source, n_features: int, in_memory: bool) -> Moments | None:
    """Return the weighted moments of the rows of a fit; None for sparse rows.

    ``in_memory`` is whether the source may tell, without moments, that its rows are sparse.
    """
    if in_memory and source.known_sparse():
        return None
    moments = Moments(n_features)
    for window in source.windows(n_features, None):
        add_window(moments, window)
    return None if moments.sparse else moments


def scale_by(
    model: PairModel, moments: Moments | None, names: Sequence[str] | None, learner: str
) -> None:
    """Set the factors of a new model from the moments of rows, or leave rows as they are.

    Warns of columns, by their names, whose squares vanish.
    """
    if moments is None or moments.sparse:
        model.leave_alone()
        return
    warn_of_vanishing(moments.vanishing().tolist(), names, learner)
    model["column_moments"][...], model["column_totals"][...] = moments.columns, moments.totals
    model["scale"][...] = scale_of(moments)


def parts_of_stream(
    model: PairModel, window: Window, pairing: Pairing, learner: str
) -> Iterator[tuple[int, int]]:
    """Yield ranges of queries to learn with the same factors, which are set before each.

    Factors are those of all weighted rows of queries with pairs so far. They change at the first
    query with which these are a power of two or more, a deviation has grown by more than
    `MOST_GROWTH`, or a column that was left alone is not, so that they do not depend on the cut
    into calls.
    """
    start, n_queries = 0, pairing.n_pairs.size
    if model.has_factors:
        rows, weights, alone = window.rows, row_weights(window), 1 / math.sqrt(model.n_features)
        moments = Moments(model.n_features, model["column_moments"], model["column_totals"])
        for k in range(n_queries):
            before = moments.n_rows
            _add(moments, rows, weights, pairing.docs[pairing.bounds[k] : pairing.bounds[k + 1]])
            factors, scale = scale_of(moments), model["scale"]
            moves = (scale == alone) | (scale == 0)
            late = (scale > MOST_GROWTH * factors) | (moves & (factors != scale))
            doubled = moments.n_rows.bit_length() > before.bit_length()
            if not doubled and not late.any():
                continue
            if doubled and not moments.sparse:
                warn_of_vanishing(moments.vanishing().tolist(), None, learner)
            if start < k:
                yield start, k
            start = k
            if moments.sparse and moments.n_rows >= DECIDED_ROWS:
                model.leave_alone()
                break
            _change_factors(model, factors)
    if start < n_queries:
        yield start, n_queries


def _change_factors(model: PairModel, factors: Floats) -> None:
    """Set the factors of a model; where a deviation grew much, keep the standardised weight."""
    scale = model["scale"]
    shrink, grown = np.ones(scale.size), scale > MOST_GROWTH * factors
    shrink[grown] = factors[grown] / scale[grown]
    for name in ("weights", "weights_sums", "members"):
        model[name][...] *= shrink
    scale[...] = factors


def _add(moments: Moments, rows: Rows, weights: Floats | None, docs: NDArray[np.int64]) -> None:
    """Add rows in their order; they are usually neighbours."""
    docs = np.sort(docs)
    for run in np.split(docs, np.flatnonzero(np.diff(docs) != 1) + 1):
        moments.add(rows, weights, int(run[0]), int(run[-1]) + 1)
