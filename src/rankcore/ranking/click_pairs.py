"""Weighted pairs from clicks: each clicked row and every other row of its query."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rankcore._core.inputs import as_rows, n_rows_of
from rankcore._core.kernels import as_matrix
from rankcore._core.labels import as_relevance
from rankcore._core.numbers import Floats
from rankcore._core.queries import Queries, queries_of, query_numbers, take_queries
from rankcore._core.sources import RowBlocks
from rankcore._ext.rows import Rows
from rankcore.ranking.data import RankingData


class PropensitiesLike(Protocol):
    """Propensities by position, as `rankcore.clicks.propensities` estimates them."""

    @property
    def theta(self) -> Floats:
        """Propensities of positions 1, 2, ...; NaN if unknown."""

    @property
    def trust(self) -> Floats | None:
        """Probabilities of a click on a document that is not relevant; None: 0."""


# Pairs of clicks beyond this are rejected before memory is allocated: about 10 GB.
MAX_PAIRS = 100_000_000
# Propensities are clipped from below at this.
TAU = 0.01


def theta_at(theta: ArrayLike, position: ArrayLike) -> Floats:
    """Return the propensities of given positions; ``theta`` has those of positions 1, 2, ..."""
    known_theta = np.asarray(theta, dtype=np.float64)
    places = np.asarray(position)
    if (
        known_theta.ndim != 1
        or not (np.isnan(known_theta) | ((known_theta >= 0) & np.isfinite(known_theta))).all()
    ):
        raise ValueError("propensities must be finite non-negative numbers, one per position")
    if places.dtype.kind not in "iu" or (places < 1).any():
        raise ValueError("positions must be integers of at least 1")
    propensities = np.append(known_theta, np.nan)[np.minimum(places, known_theta.size + 1) - 1]
    if np.isnan(propensities).any():
        at = places[np.isnan(propensities)].flat[0]
        raise ValueError(
            f"position {at} has no propensity; got those of {known_theta.size} positions"
        )
    return np.asarray(propensities)


def trust_of(propensity: Any) -> Floats | None:
    """Return the clicks by trust, if the propensities include them."""
    return getattr(propensity, "trust", None)


def check_pairs(clicked: NDArray[np.int64], sizes: NDArray[np.int64]) -> None:
    """Raise ValueError if queries have too many pairs, by their numbers of clicked and all rows."""
    n = clicked * (sizes - 1)
    if n.sum() > MAX_PAIRS:
        at = int(n.argmax())
        raise ValueError(
            f"clicks make {n.sum():,} pairs, above {MAX_PAIRS:,}; one query has {sizes[at]:,} "
            f"rows, {clicked[at]:,} of them clicked: leave out rows that were hardly shown, or "
            "learn from the labels of rankcore.clicks.to_judgments, which need no pairs"
        )


def against_others(weights: Floats, queries: Queries) -> tuple[NDArray[np.int64], Floats]:
    """Pair each row of positive weight with every other row of its query; return weights, too.

    The row wins if its weight is positive, and loses by its absolute value if it is negative.
    """
    rows = np.arange(weights.size) if queries.rows is None else queries.rows
    sizes = np.diff(queries.bounds)
    winners = np.flatnonzero(weights[rows])  # places in the order of the queries
    of = np.searchsorted(queries.bounds, winners, side="right") - 1
    check_pairs(np.bincount(of, minlength=sizes.size), sizes)
    n = sizes[of]
    ends = np.cumsum(n)
    losers = np.arange(int(n.sum())) - np.repeat(ends - n - queries.bounds[of], n)
    winners = np.repeat(winners, n)
    others = losers != winners
    pairs = np.stack([rows[winners[others]], rows[losers[others]]], axis=1).astype(np.int64)
    pair_weights = weights[pairs[:, 0]]
    lost = pair_weights < 0
    pairs[lost] = pairs[lost, ::-1]
    return pairs, np.abs(pair_weights)


def weigh_clicks(
    data: RankingData, propensity: Any, position: ArrayLike | None, weigh_queries: bool
) -> RankingData:
    """Add weighted pairs to the data of a fit whose rows are impressions and labels are clicks.

    The weight of a pair is the number of clicks of a row, less those by trust, divided by the
    propensity; in expectation it is the row's relevance, at every position (Vardasbi et al. 2020).
    If the fit weighs queries, the weight of a query is the sum of its pairs' weights, relative to
    the mean: otherwise ``balance="query"`` would cancel the propensities of sessions with one
    click.
    """
    for name in ("sample_weight", "pairs", "pairs_weight"):
        if getattr(data, name) is not None:
            raise ValueError(f"propensity sets the weights of pairs; got {name} as well: omit it")
    X, y = data.X, data.y
    qid, group = data.qid, data.group
    if isinstance(X, RowBlocks):
        raise ValueError("propensity requires rows in memory; got rows on disk")
    X, qid = take_queries(X, qid, group, data.column)
    if y is None or (qid is None and group is None):
        raise ValueError("propensity requires y, the clicks, and qid, the session of each row")
    clicks = as_relevance(y, n_rows_of(X))
    if (clicks < 0).any():
        raise ValueError("propensity requires non-negative y, the clicks")
    theta, trust = getattr(propensity, "theta", propensity), trust_of(propensity)
    if position is not None:
        theta = theta_at(theta, position)
        trust = None if trust is None else theta_at(trust, position)
    theta = np.asarray(theta, dtype=np.float64)
    if theta.shape != clicks.shape:
        raise ValueError(
            f"propensity must have shape {clicks.shape}, one per row, or requires position; "
            f"got {theta.shape}"
        )
    if not ((theta >= 0) & np.isfinite(theta)).all():
        raise ValueError("propensity must have finite non-negative numbers")
    queries = queries_of(qid, group, clicks.size)
    votes = clicks if trust is None else clicks - trust
    pairs, pair_weights = against_others(votes / np.maximum(theta, TAU), queries)
    if not len(pairs):
        raise ValueError("no pairs to learn from: no query has a click and another row")
    query_weights = None
    if weigh_queries:
        of = query_numbers(queries)[pairs[:, 0]]
        query_weights = np.bincount(of, pair_weights, queries.ids.size)
    return replace(data, pairs=pairs, pairs_weight=pair_weights, sample_weight=query_weights)


def with_positions(data: RankingData, position: ArrayLike) -> tuple[RankingData, NDArray[np.int64]]:
    """Return data with an indicator feature for each position, and the positions."""
    if isinstance(data.X, RowBlocks):
        raise ValueError("position requires rows in memory; got rows on disk")
    X, qid = take_queries(data.X, data.qid, data.group, data.column)
    rows = as_rows(X)
    positions = np.asarray(position)
    if (
        positions.shape != (rows.n_rows,)
        or positions.dtype.kind not in "iu"
        or (positions < 1).any()
    ):
        raise ValueError(
            f"position must be integers of at least 1, of shape ({rows.n_rows},); got shape "
            f"{positions.shape} and dtype {positions.dtype}"
        )
    places, column = np.unique(positions, return_inverse=True)
    wide = with_columns(rows, places.size, column)
    return replace(data, X=wide, qid=qid), places.astype(np.int64)


def with_columns(rows: Rows, n: int, ones: NDArray[np.intp] | None = None) -> Any:
    """Append n features, which are 0 except for a 1 in the column ``ones`` of each row."""
    X, every = as_matrix(rows), np.arange(rows.n_rows)
    if sp.issparse(X):
        each = np.empty(0, np.intp) if ones is None else ones
        places = (np.ones(each.size, X.dtype), (every[: each.size], each))
        more = sp.csr_array(places, shape=(rows.n_rows, n))
        return sp.hstack([X, more], format="csr")
    wide = np.zeros((rows.n_rows, rows.n_features + n), X.dtype)
    wide[:, : rows.n_features] = X
    if ones is not None:
        wide[every, rows.n_features + ones] = 1.0
    return wide
