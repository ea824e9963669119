"""Pairs of rows to learn from, by query."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.inputs import reject_mask
from rankcore._core.labels import as_relevance
from rankcore._core.numbers import LEAST, Floats, as_weights, exact_sum, scaled
from rankcore._core.queries import Queries, group_rows, query_numbers
from rankcore._core.sources import Window, rows_of_weight
from rankcore._core.warning import warn, warn_of_small_weights
from rankcore._ext.rows import Rows

# With more pairs than this in one query, a pass takes minutes.
MANY_PAIRS = 10**9
# Searches slice arguments of the length of X.
UNSLICED = ": in a search, repeat weights of queries by row, so that folds have their own"
# Numbers of pairs are exact up to this.
MAX_PAIRS = 2**50


@dataclass(frozen=True)
class ListedPairs:
    """Listed pairs of positive weight, by query."""

    offsets: NDArray[np.int64]  # (n_queries + 1,): query q has the pairs from ``offsets[q]`` on
    # (n_pairs,): indices of the documents among those of their query.
    winners: NDArray[np.int32]
    losers: NDArray[np.int32]
    weights: Floats | None  # (n_pairs,); None if all are 1


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """Pairs of the queries that have at least one."""

    # Rows of the documents by query, each in ascending order or in descending order of label.
    docs: NDArray[np.int64]
    # (n_queries + 1,): query q has the documents ``bounds[q] : bounds[q + 1]``.
    bounds: NDArray[np.int64]
    labels: Floats  # of each of ``docs``
    doc_weights: Floats | None  # the weight of a pair is the product of its two
    listed_pairs: ListedPairs | None  # None: all pairs of different labels
    n_pairs: NDArray[np.int64]  # (n_queries,)
    weights: Floats  # (n_queries,): sum of the weights of each query's pairs
    # (n_queries,): index of each query in the input.
    queries: NDArray[np.int64]
    # (n_queries,): factor of each query's steps, positive; None if all are 1.
    query_weights: Floats | None = None

    def weigh(self, query_weights: Floats) -> Pairing:
        """Set ``query_weights``, given one weight per query of the input."""
        weights_of_queries = query_weights[self.queries]
        return (
            self
            if (weights_of_queries == 1).all()
            else replace(self, query_weights=weights_of_queries)
        )

    def steps(self, balanced: bool) -> Floats:
        """Return the step size of each query, which the weights of pairs multiply."""
        steps = 1.0 / self.weights if balanced else np.ones(self.weights.size)
        return steps if self.query_weights is None else steps * self.query_weights

    def finite_steps(self, balanced: bool) -> Floats:
        """Compute `steps`; raise ValueError if a step or a query's weight of pairs is infinite."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            steps = self.steps(balanced)
        usable = np.isfinite(self.weights) & np.isfinite(steps)
        if not usable.all():
            raise ValueError(
                "the weights are too large or too small: the weights of a query's pairs sum to "
                f"{self.weights[usable.argmin()]:.3g}; multiply all weights by one number"
            )
        return steps

    def part(self, kept: NDArray[np.bool_]) -> Pairing:
        """Return the pairs of some of the queries."""
        sizes = np.diff(self.bounds)
        docs = np.repeat(kept, sizes)
        return Pairing(
            docs=self.docs[docs],
            bounds=np.concatenate([[0], np.cumsum(sizes[kept])]).astype(np.int64),
            labels=self.labels[docs],
            doc_weights=None if self.doc_weights is None else self.doc_weights[docs],
            listed_pairs=None,
            n_pairs=self.n_pairs[kept],
            weights=self.weights[kept],
            queries=self.queries[kept],
            query_weights=None if self.query_weights is None else self.query_weights[kept],
        )


def make_pairing(
    window: Window,
    *,
    balanced: bool = False,
    in_row_order: bool = True,
    relative_weights: bool = False,
    in_part: bool = False,
) -> Pairing:
    """Pair the rows of a window with different labels, or those listed.

    Weights of queries are those of their rows. With ``balanced``, the weight of a query is the mean
    of its rows' positive weights, relative to that of all rows unless the window is only a part of
    them, ``in_part``; its pairs share it in proportion to the products of their rows' weights. With
    ``relative_weights``, only the ratios of all weights matter. Documents of a query are in the
    order of rows or, unless ``in_row_order`` or pairs are listed, in descending order of label.
    `check_useful` checks that there is a pair.
    """
    n_rows, pairs, pairs_weight = window.rows.n_rows, window.pairs, window.pairs_weight
    queries = group_rows(window.queries, n_rows)
    weights = weights_of_rows(window.sample_weight, queries)
    if pairs is None and pairs_weight is not None:
        raise ValueError("pairs_weight requires pairs; got pairs=None")
    if pairs is not None:
        pairs = as_pairs(pairs, n_rows)
        pairs_weight = as_weights(pairs_weight, "pairs_weight", {"pair": len(pairs)})
    if relative_weights:
        pairs_weight = None if pairs_weight is None else scaled(pairs_weight)
    mean = 1.0
    if weights is not None and not in_part:
        relative = balanced or relative_weights
        weights = scaled(weights) if relative else weights
        mean_of_rows = mean_weight(exact_sum(weights), int(np.count_nonzero(weights)))
        if relative:
            mean = mean_of_rows
        else:
            warn_of_small_weights(mean_of_rows)
    if pairs is not None:
        return pair_by_list(pairs, pairs_weight, queries, weights, balanced, mean)
    labels = as_relevance(window.labels, n_rows)
    return pair_by_label(labels, queries, weights, in_row_order, balanced, mean)


def weights_of_rows(sample_weight: Any, queries: Queries) -> Floats | None:
    """Return weights of rows, given those of rows or of queries."""
    n_rows, n_queries = int(queries.bounds[-1]), queries.ids.size
    sizes = {"row": n_rows, "query": n_queries}
    weights = as_weights(sample_weight, "sample_weight", sizes, UNSLICED)
    if weights is None or weights.size == n_rows:
        return weights
    return weights[query_numbers(queries)]


def row_weights(window: Window) -> Floats | None:
    """Return the weights of the rows of a window, if it has any."""
    queries = group_rows(window.queries, window.rows.n_rows)
    return weights_of_rows(window.sample_weight, queries)


def weighted_rows(window: Window) -> Rows:
    """Return the rows of a window with a positive weight."""
    return rows_of_weight(window.rows, row_weights(window))


def mean_weight(total: Fraction, n_weighted: int) -> float:
    """Return the mean of the positive weights of rows, given their exact sum and number."""
    return float(total / n_weighted)


def mean_by_query(row_weights: Floats, queries: Queries, mean: float) -> Floats:
    """Average the positive weights of each query, as multiples of ``mean``; 0 without any."""
    of, n_queries = query_numbers(queries), queries.ids.size
    counts = np.bincount(of, row_weights > 0, minlength=n_queries)
    # Infinite weights raise an error where they are used.
    with np.errstate(over="ignore"):
        means = np.bincount(of, row_weights, minlength=n_queries) / np.maximum(counts, 1) / mean
    return np.where(counts > 0, np.maximum(means, LEAST), 0.0)


def pair_by_label(
    labels: Floats,
    queries: Queries,
    row_weights: Floats | None,
    lexicographic: bool,
    balanced: bool = False,
    mean: float = 1.0,
) -> Pairing:
    """Pair the documents of a query that differ in label and have positive weights.

    If ``balanced``, queries have weights relative to ``mean``, as in `make_pairing`. O(n_rows log
    n_rows), for any number of pairs.
    """
    n_queries = queries.ids.size
    rows, of = _places(queries)
    query_weights = None
    if row_weights is not None:
        if balanced:
            query_weights = mean_by_query(row_weights, queries, mean)
            row_weights = scaled(row_weights, query_numbers(queries))
        kept = row_weights[rows] > 0
        rows, of = rows[kept], of[kept]
        if (row_weights[rows] == 1).all():
            row_weights = None
    by_label = np.lexsort((-labels[rows], of))
    lower, level_stop, query_stop = _lower(labels[rows[by_label]], of[by_label], n_queries)
    n_pairs = _sum_by(of, lower, n_queries)
    if n_pairs.size and n_pairs.max() > MAX_PAIRS:
        raise ValueError(
            f"a query must have at most 2**50 pairs; got {n_pairs.max():.3g}: split it"
        )
    weights = n_pairs
    if row_weights is not None:
        # Infinite sums raise an error where they are used.
        with np.errstate(over="ignore"):
            weights_by_label = row_weights[rows[by_label]]
            below = np.append(_suffix_sums(weights_by_label, query_stop), 0.0)[level_stop]
            below[level_stop == query_stop] = 0.0
            weights = _sum_by(of, weights_by_label * below, n_queries)
    useful = n_pairs > 0
    order = np.arange(rows.size) if lexicographic else by_label
    order = order[useful[of]]
    docs = rows[order]
    counts = np.bincount(of[order], minlength=n_queries)[useful]
    pairing = Pairing(
        docs=docs,
        bounds=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        labels=labels[docs],
        doc_weights=None if row_weights is None else row_weights[docs],
        listed_pairs=None,
        n_pairs=n_pairs[useful].astype(np.int64),
        weights=weights[useful],
        queries=np.flatnonzero(useful),
    )
    return pairing if query_weights is None else pairing.weigh(query_weights)


def check_useful(pairing: Pairing, n_rows: int) -> None:
    """Raise ValueError unless there is a pair to learn from."""
    if pairing.n_pairs.size:
        return
    if n_rows == 1:
        raise ValueError("learning to rank requires at least 2 rows; got 1 sample")
    if pairing.listed_pairs is not None:
        raise ValueError("nothing to learn from: all pairs have weight 0")
    raise nothing_to_learn()


def nothing_to_learn() -> ValueError:
    """Return the error for queries without pairs."""
    return ValueError(
        "nothing to learn from: no query has two documents of different labels (and positive "
        "weights); check qid"
    )


def warn_of_pairs(n_pairs: int) -> None:
    """Warn if a query has so many pairs that passes are very slow."""
    if n_pairs > MANY_PAIRS:
        warn(
            f"a query has {n_pairs:.2g} pairs, all of which each pass visits: time grows with the "
            "square of the number of rows. Pass a random sample of pairs as pairs=, or of rows; "
            "RankSVM and RankBoost use all pairs without visiting each",
        )


def _places(queries: Queries) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows in the order of queries, and the query number of each."""
    of = np.repeat(np.arange(queries.ids.size), np.diff(queries.bounds))
    return (np.arange(of.size) if queries.rows is None else queries.rows), of


def _lower(labels: Any, of: Any, n_queries: int) -> tuple[Any, Any, Any]:
    """Count the lower documents of each document in its query; return ends of levels, too."""
    n = labels.size
    change = np.ones(n + 1, dtype=bool)
    change[1:-1] = (of[1:] != of[:-1]) | (labels[1:] != labels[:-1])
    starts = np.flatnonzero(change)
    level_stop = np.repeat(starts[1:], np.diff(starts))
    query_stop = np.cumsum(np.bincount(of, minlength=n_queries))[of]
    return query_stop - level_stop, level_stop, query_stop


def _suffix_sums(values: Floats, stop: Any) -> Floats:
    """Return, for each value, the sum from it to the end of its part.

    Differences of cumulative sums would have rounding errors of all previous queries. Each pass
    doubles the length of the sums: O(n log n) for parts of n values.
    """
    sums, length = values.astype(np.float64), 1
    places = np.arange(values.size)
    while (inside := np.flatnonzero(places + length < stop)).size:
        sums[inside] += sums[inside + length]
        length *= 2
    return sums


def _sum_by(of: Any, values: Any, n_queries: int) -> Floats:
    # `of` ascends, so it is the same in both orders of the documents.
    return np.bincount(of, weights=values, minlength=n_queries).astype(np.float64)


def as_pairs(pairs: Any, n_rows: int) -> NDArray[np.int64]:
    """Check pairs; return winner and loser rows, int64 of shape (n_pairs, 2)."""
    reject_mask(pairs, "pairs")
    array = np.asarray(pairs)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise ValueError(
            "pairs must be integers of shape (n_pairs, 2), winner and loser row; got "
            f"shape {array.shape} and dtype {array.dtype}"
        )
    if not array.size:
        raise ValueError("pairs must not be empty")
    outside = ((array < 0) | (array >= n_rows)).any(axis=1)
    if outside.any():
        at = int(outside.argmax())
        raise ValueError(
            f"pairs must have row numbers from 0 to {n_rows - 1}; got pairs[{at}] = "
            f"{array[at].tolist()}"
        )
    same = array[:, 0] == array[:, 1]
    if same.any():
        at = int(same.argmax())
        raise ValueError(f"pairs[{at}] compares row {array[at, 0]} with itself")
    return array.astype(np.int64)


def pair_by_list(
    pairs: NDArray[np.int64],
    pair_weights: Floats | None,
    queries: Queries,
    row_weights: Floats | None,
    balanced: bool = False,
    mean: float = 1.0,
) -> Pairing:
    """Return the listed pairs of positive weight, by query and in the given order.

    If ``balanced``, queries have weights relative to ``mean``, as in `make_pairing`. Raises
    ValueError if a pair has rows of two queries, or the product of its weights underflows.
    """
    n_queries = queries.ids.size
    query = query_numbers(queries)
    apart = query[pairs[:, 0]] != query[pairs[:, 1]]
    if apart.any():
        at = int(apart.argmax())
        winner, other = pairs[at].tolist()
        raise ValueError(
            f"pairs[{at}] compares rows {winner} and {other} of different queries "
            f"({queries.ids[query[winner]]!r} and {queries.ids[query[other]]!r})"
        )
    weighted = pair_weights is not None or row_weights is not None
    query_weights = None
    if balanced:
        if row_weights is not None:
            query_weights = mean_by_query(row_weights, queries, mean)
        pair_weights = None if pair_weights is None else scaled(pair_weights, query[pairs[:, 0]])
        row_weights = None if row_weights is None else scaled(row_weights, query)
    total = np.ones(len(pairs)) if pair_weights is None else pair_weights
    if row_weights is not None:
        with np.errstate(over="ignore"):
            winners, losers = row_weights[pairs[:, 0]], row_weights[pairs[:, 1]]
            lost = (total > 0) & (winners > 0) & (losers > 0)
            total = total * winners * losers
        lost &= total == 0
        if lost.any():
            at = int(lost.argmax())
            winner, other = pairs[at].tolist()
            raise ValueError(
                f"the product of the weight of pairs[{at}] and those of rows {winner} and {other} "
                "underflows: use weights of similar size, or 0 to omit rows or pairs"
            )
    kept = total > 0
    pairs, total = pairs[kept], total[kept]
    order = np.argsort(query[pairs[:, 0]], kind="stable")
    pairs, total = pairs[order], total[order]
    docs = np.unique(pairs)
    docs = docs[np.argsort(query[docs], kind="stable")]
    counts = np.bincount(query[pairs[:, 0]], minlength=n_queries)
    useful = counts > 0
    n_docs = np.bincount(query[docs], minlength=n_queries)[useful]
    bounds = np.concatenate([[0], np.cumsum(n_docs)]).astype(np.int64)
    place = np.empty(query.size, dtype=np.int32)
    place[docs] = np.arange(docs.size) - np.repeat(bounds[:-1], n_docs)
    listed = ListedPairs(
        offsets=np.concatenate([[0], np.cumsum(counts[useful])]).astype(np.int64),
        winners=np.ascontiguousarray(place[pairs[:, 0]]),
        losers=np.ascontiguousarray(place[pairs[:, 1]]),
        weights=total if weighted else None,
    )
    pairing = Pairing(
        docs=docs,
        bounds=bounds,
        labels=np.zeros(docs.size),
        doc_weights=None,
        listed_pairs=listed,
        n_pairs=counts[useful].astype(np.int64),
        weights=_sum_by(query[pairs[:, 0]], total, n_queries)[useful],
        queries=np.flatnonzero(useful),
    )
    return pairing if query_weights is None else pairing.weigh(query_weights)
