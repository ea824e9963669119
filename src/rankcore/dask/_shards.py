"""Rows of a fit on the workers, in shards of neighbouring blocks of Dask collections.

`Columns` are the arguments of ``fit`` that have rows, and make delayed shards of them.
`ShardedRows` are the shards on the workers, with the statistics of each, by which it is checked
that they fit together: features, labels, weights, whole queries.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankcore._core.equal_rows import equal_in_groups
from rankcore._core.frames import frame_of, names_of
from rankcore._core.ids import joined
from rankcore._core.inputs import as_rows, frame_matrix
from rankcore._core.kernels import some_rows
from rankcore._core.labels import (
    are_words,
    as_labels,
    check_ascent,
    declared_labels,
    encode,
    kind_of_label,
    ranks_among,
    sortable,
    words_among,
)
from rankcore._core.numbers import as_vector, power_of_two
from rankcore._core.queries import group_rows, kind_of_ids
from rankcore._core.scales import count_nonzero, square_lengths
from rankcore._core.sources import MemoryRows
from rankcore._core.standardization import Moments
from rankcore.dask._cluster import Shards, delayed, is_dask_collection, naming
from rankcore.ordinal.weights import WeightFacts


@dataclass(frozen=True)
class Shard:
    """Rows of one task."""

    X: Any  # dense or sparse
    y: NDArray[Any]
    qid: NDArray[Any] | None
    weights: NDArray[np.float64] | None
    order: NDArray[Any] | None  # categories of an ordered categorical y, lowest first
    names: list[Any] | None  # of the columns, if X was a data frame

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[-1])


@dataclass(frozen=True)
class ShardStats:
    """Statistics of a shard."""

    n_rows: int
    n_features: int
    names: list[Any] | None
    labels: NDArray[Any]  # distinct, ascending
    counts: NDArray[np.int64]  # number of rows of each label
    order: NDArray[Any] | None
    qid: NDArray[Any] | None  # distinct
    largest_query: int  # number of its rows
    tied: bool  # whether the rows of each query are equal
    first_row: NDArray[np.float64]
    all_equal: bool  # whether all rows equal the first
    squares: tuple[float, int]  # the sum of all squares is the first times 4 to the second
    n_nonzero: int
    weights: WeightFacts | None


@dataclass(frozen=True)
class Columns:
    """Arguments of ``fit`` that have rows."""

    X: Any
    y: Any
    qid: Any
    sample_weight: Any

    def delayed_shards(self, n_shards: int) -> list[Any]:
        """Return delayed shards of neighbouring blocks."""
        blocks = self._blocks()
        n = min(n_shards, len(blocks))
        ends = pairwise(len(blocks) * i // n for i in range(n + 1))
        return [delayed(join)(blocks[first:last], k) for k, (first, last) in enumerate(ends)]

    def form(self, stats: ShardStats) -> Any:
        """Return a small table with the features of X, given those of a shard."""
        if is_dataframe(self.X):
            return self._features()._meta
        if stats.names is None:
            return np.broadcast_to(0.0, (1, stats.n_features))
        import pandas as pd

        return pd.DataFrame(np.zeros((1, stats.n_features)), columns=stats.names)

    def _features(self) -> Any:
        """Return X without the columns of a dataframe that are named as other arguments."""
        named = [name for name in (self.qid, self.sample_weight) if isinstance(name, str)]
        return self.X.drop(columns=named) if named else self.X

    def _blocks(self) -> list[Any]:
        """Return delayed blocks of X, y, qid and weights."""
        if self.y is None:
            raise ValueError("this learner requires y to be passed, but the target y is None")
        X, others = self.X, {"y": self.y, "qid": self.qid, "sample_weight": self.sample_weight}
        if is_dataframe(X):
            others = {k: self.X[v] if isinstance(v, str) else v for k, v in others.items()}
            X = self._features()
        columns = [blocks_of(X, "X", None)]
        chunks = X.chunks[0] if hasattr(X, "chunks") else None
        for name, column in others.items():
            n_blocks = len(columns[0])
            parts = [None] * n_blocks if column is None else blocks_of(column, name, chunks)
            if len(parts) != n_blocks:
                raise ValueError(
                    f"X and {name} must have the same blocks; got {n_blocks} of X and "
                    f"{len(parts)} of {name}"
                )
            columns.append(parts)
        return list(zip(*columns, strict=True))


def is_dataframe(X: Any) -> bool:
    """Return whether X is a dask dataframe; a delayed object seems to have any attribute."""
    return is_dask_collection(X) and hasattr(type(X), "columns")


def blocks_of(collection: Any, name: str, chunks: Any) -> list[Any]:
    """Return the delayed blocks of a collection, rechunked to rows ``chunks`` unless None."""
    if isinstance(collection, list | tuple):
        if not collection:
            raise ValueError(f"{name} is an empty list; requires at least one block")
        return list(collection)
    if not hasattr(type(collection), "to_delayed"):
        raise TypeError(
            f"{name} must be a dask array or dataframe, or a list of delayed blocks; got "
            f"{type(collection).__name__}"
        )
    if hasattr(collection, "chunks"):
        if collection.ndim == 2 and len(collection.chunks[1]) > 1:
            collection = collection.rechunk({1: -1})
        sizes = collection.chunks[0]
        if chunks is not None and not np.isnan([*sizes, *chunks]).any() and sizes != chunks:
            if sum(sizes) != sum(chunks):
                raise ValueError(
                    f"X and y have inconsistent numbers of samples: {sum(chunks)} rows and "
                    f"{sum(sizes)} in {name}"
                )
            collection = collection.rechunk((chunks,))
    return np.ravel(np.asarray(collection.to_delayed(), dtype=object)).tolist()


# ------------------------------------------------------------------------------ tasks


def join(blocks: Sequence[Any], number: int) -> Shard | None:
    """Check blocks of X, y, qid and weights, and join them to a shard; None if all are empty."""
    with naming(f"shard {number}"):
        parts = [part for part in map(as_shard, blocks) if part is not None]
        if not parts:
            return None
        check_alike(parts)
        queries = [part.qid for part in parts if part.qid is not None]
        weights = [part.weights for part in parts if part.weights is not None]
        return Shard(
            join_rows([part.X for part in parts]),
            join_labels([part.y for part in parts]),
            joined(queries, "qid") if queries else None,
            np.concatenate(weights) if weights else None,
            parts[0].order,
            parts[0].names,
        )


def as_shard(block: Any) -> Shard | None:
    """Check a block; return None if it is empty."""
    X, y, qid, weights = block
    if not hasattr(X, "shape"):
        raise TypeError(
            "blocks of rows must be arrays, sparse matrices or data frames; got "
            f"{type(X).__name__}: of LETOR files pass the parts of "
            "dask.delayed(rankcore.datasets.load_letor)(path), such as its X"
        )
    qid = None if qid is None else np.asarray(qid)
    y, order = as_labels(y, X.shape[0])
    if qid is not None and qid.shape != y.shape:
        raise ValueError(f"qid must have one id per row; got {y.size} rows and {qid.size} ids")
    if weights is not None:
        weights = as_vector(weights, "sample_weight")
        if weights.shape != y.shape:
            raise ValueError(
                f"sample_weight must have one weight per row; got {y.size} rows and "
                f"{weights.size} weights"
            )
        if not np.isfinite(weights).all() or (weights < 0).any():
            raise ValueError("sample_weight must be finite and not negative")
    return Shard(as_matrix(X), y, qid, weights, order, names_of(X)) if y.size else None


def as_matrix(X: Any) -> Any:
    """Return a data frame as a matrix; ValueError if it has categories, as trees in memory take."""
    frame = frame_of(X)
    if frame is None:
        return X
    for j, name in enumerate(frame.names):
        if frame.kind(j) == "category":
            raise ValueError(
                f"column {name!r} of X has a category dtype, and a fit on shards takes numbers "
                "only: replace the column by numbers, such as with dask.dataframe.get_dummies, or "
                "fit in memory"
            )
    return frame_matrix(frame, "X")


def check_alike(parts: Sequence[Any]) -> None:
    """Raise ValueError unless parts have the same columns and kinds of values.

    Each is a `Shard` of a block, or the `ShardStats` of a shard.
    """
    widths = sorted({part.n_features for part in parts})
    if len(widths) > 1:
        raise ValueError(
            f"all blocks of X must have the same features; got {widths} features: LETOR files are "
            f"read alike by load_letor(path, n_features={widths[-1]})"
        )
    for part in parts:
        if part.names != parts[0].names:
            raise ValueError(
                "all blocks of X must have the same columns in the same order; got "
                f"{parts[0].names} and {part.names}"
            )
        if not np.array_equal(part.order, parts[0].order):
            raise ValueError(
                "the ordered categories of y differ between blocks: use the same for all, such as "
                "by y.astype(pandas.CategoricalDtype([...], ordered=True))"
            )
    for name, values in [
        ("query ids", [part.qid for part in parts]),
        ("weights", [part.weights for part in parts]),
    ]:
        if len({value is None for value in values}) > 1:
            raise ValueError(
                f"some blocks have {name} and others none; expected {name} in all or none"
            )
    kinds = sorted({kind_of_ids(part.qid) for part in parts if part.qid is not None})
    if len(kinds) > 1:
        raise ValueError(
            f"query ids are {' in some blocks and '.join(kinds)} in others; expected one kind in "
            "all: 1 and '1' are different queries"
        )


def join_rows(blocks: list[Any]) -> Any:
    """Stack blocks of rows of one kind."""
    sparse = [sp.issparse(block) for block in blocks]
    if all(sparse):
        return sp.vstack(blocks, format="csr")
    if any(sparse):
        raise TypeError("some blocks are sparse and others dense; expected the same kind in all")
    return np.concatenate([np.asarray(block) for block in blocks])


def join_labels(labels: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Join labels; raise ValueError if they are strings in some parts only, or not exact."""
    if len({kind_of_label(part[0]) for part in labels}) > 1:
        raise ValueError(
            "labels are numbers in some blocks and strings in others; expected the same kind in all"
        )
    return sortable(joined(labels, "y"), "y")


def take_rows(shard: Shard, rows: NDArray[Any]) -> Shard:
    """Return some rows of a shard."""
    qid, weights = shard.qid, shard.weights
    return replace(
        shard,
        X=shard.X[rows],
        y=shard.y[rows],
        qid=None if qid is None else qid[rows],
        weights=None if weights is None else weights[rows],
    )


def shard_stats(shard: Shard | None, nan: bool) -> ShardStats | None:
    """Return the statistics of a shard before learning; None if it is empty."""
    if shard is None:
        return None
    rows = as_rows(shard.X, nan=nan)
    labels, counts = np.unique(shard.y, return_counts=True)
    queries, every = group_rows(shard.qid, rows.n_rows), np.arange(rows.n_rows)
    first = some_rows(rows, slice(0, 1))
    return ShardStats(
        rows.n_rows,
        rows.n_features,
        shard.names,
        labels,
        counts,
        shard.order,
        None if shard.qid is None else np.unique(queries.ids),
        queries.largest,
        equal_in_groups(rows, every if queries.rows is None else queries.rows, queries.bounds),
        np.ravel(first.toarray() if sp.issparse(first) else first).astype(np.float64),
        equal_in_groups(rows, every, np.array([0, rows.n_rows])),
        (0.0, 0) if nan else square_lengths(rows),
        count_nonzero(rows),
        None if shard.weights is None else WeightFacts.of(shard.weights),
    )


def shard_moments(shard: Shard, mean: float) -> Moments:
    """Return the weighted moments of a shard, with weights divided by ``mean``."""
    rows = as_rows(shard.X)
    weights = None if shard.weights is None else shard.weights / mean
    return Moments(rows.n_features).add(rows, weights)


def grade(shard: Shard, words: NDArray[Any]) -> Shard:
    """Replace the labels of a shard by their places among words."""
    return replace(shard, y=encode(shard.y, words))


# ------------------------------------------------------------------------------ client


@dataclass(frozen=True)
class ShardedRows:
    """All rows of a fit: their shards on the workers, none of them empty, and statistics."""

    shards: Shards
    stats: list[ShardStats]
    form: Any  # a small table with the columns of X

    @classmethod
    def of(cls, shards: Shards, columns: Columns, nan: bool) -> ShardedRows:
        """Collect the statistics of shards; raise ValueError if these do not fit together."""
        of_all = shards.gather(shard_stats, nan=nan)
        shards.keep([part is not None for part in of_all])
        stats = [part for part in of_all if part is not None]
        if not stats:
            raise ValueError("Found 0 sample(s) while a minimum of 1 is required.")
        check_alike(stats)
        check_whole(stats, shards.numbers)
        rows = cls(shards, stats, columns.form(stats[0]))
        if not rows.mean_weight:
            raise ValueError("sample_weight must not be all zero")
        return rows

    @property
    def n_rows(self) -> int:
        """Number of rows of all shards."""
        return sum(part.n_rows for part in self.stats)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.form.shape[1])

    @property
    def in_queries(self) -> bool:
        """Whether rows have query ids."""
        return self.stats[0].qid is not None

    @property
    def largest_query(self) -> int:
        """Number of rows of the largest query; 0 without query ids."""
        return max(part.largest_query for part in self.stats) if self.in_queries else 0

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.stats[0].weights is not None

    @property
    def mean_weight(self) -> float:
        """Mean of the positive weights of all rows, 0 if there are none; 1 without weights."""
        of_shards = [part.weights for part in self.stats if part.weights is not None]
        if not of_shards:
            return 1.0
        facts = WeightFacts.together(of_shards)
        return float(facts.total / max(facts.n_weighted, 1))

    @property
    def mean_square(self) -> float:
        """Power of two nearest to the mean squared length of the rows, as in memory."""
        squares = [part.squares for part in self.stats]
        largest = max(exponent for _, exponent in squares)
        scaled = (math.ldexp(square, 2 * (exponent - largest)) for square, exponent in squares)
        return power_of_two(math.fsum(scaled) / self.n_rows, 2 * largest)

    @property
    def share_of_nonzero(self) -> float:
        """Fraction of the values that are not 0."""
        return sum(part.n_nonzero for part in self.stats) / (self.n_rows * self.n_features)

    @property
    def tied(self) -> bool:
        """Whether the rows of each query are equal."""
        return all(part.tied for part in self.stats)

    @property
    def all_equal(self) -> bool:
        """Whether all rows are equal."""
        first = self.stats[0].first_row
        same = all(part.all_equal and (part.first_row == first).all() for part in self.stats)
        return self.n_rows > 1 and same

    def moments(self, mean: float) -> Moments:
        """Return the moments of all rows, with weights divided by ``mean``."""
        total = Moments(self.n_features)
        for more in self.shards.gather(shard_moments, mean=mean):
            total.combine(more)
        return total

    def ranks(self, model: Any, classes: Any) -> NDArray[Any]:
        """Return all labels, lowest rank first: as declared, or those that occur."""
        labels = np.unique(join_labels([part.labels for part in self.stats]))
        order, declared = self.stats[0].order, declared_labels(model, classes)
        return ranks_among(labels, order, declared, type(model).__name__)

    def graded(
        self, declared: NDArray[Any] | None, learner: str
    ) -> tuple[ShardedRows, NDArray[Any] | None]:
        """Replace labels that are words by grades; return these words too, lowest first."""
        labels, order = join_labels([part.labels for part in self.stats]), self.stats[0].order
        if declared is None and not are_words(labels):
            check_ascent(order)
            return self, None
        words = words_among(labels, order, declared, learner)
        self.shards.transform(grade, words=words)
        stats = [replace(part, labels=np.sort(encode(part.labels, words))) for part in self.stats]
        return replace(self, stats=stats), words

    def source(self) -> MemoryRows:
        """Return a source with one window, which stands for the rows of all shards."""
        return MemoryRows(self.form, self, None, n_features=self.n_features)


def check_whole(stats: Sequence[ShardStats], numbers: Sequence[int]) -> None:
    """Raise ValueError if a query has rows in two shards; ``numbers`` are those of the shards."""
    queries = [part.qid for part in stats if part.qid is not None]
    if not queries:
        return
    ids = joined(queries, "qid")
    shards = np.repeat(np.array(numbers), [part.size for part in queries])
    order = np.argsort(ids, kind="stable")
    twice = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    if twice.size:
        first, second = order[twice[0]], order[twice[0] + 1]
        raise ValueError(
            f"query {ids[first]} has rows in shards {shards[first]} and {shards[second]}, and a "
            f"query must be whole in one ({twice.size} are not): divide blocks between queries, "
            "or group the rows of a dask dataframe, as by frame.shuffle('qid')"
        )


def check_supported(model: Any, **accepted: tuple[Any, ...]) -> None:
    """Raise ValueError for parameters with values that a fit on shards does not support."""
    for name, values in accepted.items():
        value = getattr(model, name)
        if value not in values:
            listed = " or ".join(map(repr, values))
            raise ValueError(f"a fit on shards requires {name}={listed}; got {value!r}")
