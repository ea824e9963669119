"""Shards of rows from Dask collections, lists of delayed blocks and text files.

`Columns` are the arguments of ``fit`` that have rows, and make delayed shards of them.
`ShardedRows` are the shards on the workers, with the statistics of each, by which it is checked
that they fit together: features, labels, weights, whole queries.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Real
from operator import getitem
from typing import Any
from zlib import crc32

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankcore._core.equal_rows import equal_in_groups
from rankcore._core.frames import Frame, frame_of, names_of
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
from rankcore.dask._files import cut, read
from rankcore.datasets.row_files import list_sources


@dataclass(frozen=True)
class Shard:
    """Rows of one task."""

    X: Any
    y: NDArray[Any]
    qid: NDArray[Any] | None
    weights: NDArray[np.float64] | None = None
    order: NDArray[Any] | None = None  # categories of an ordered categorical y, lowest first
    names: list[Any] | None = None  # of the columns, if X was a data frame


@dataclass(frozen=True)
class Columns:
    """Arguments of ``fit`` that have rows."""

    X: Any
    y: Any
    qid: Any = None
    sample_weight: Any = None
    n_features: int | None = None  # of files
    zero_based: bool = False

    @property
    def are_files(self) -> bool:
        """Whether X is a path, or a list of paths."""
        each = [self.X] if isinstance(self.X, str | os.PathLike) else self.X
        listed = isinstance(each, list | tuple) and len(each) > 0
        return listed and all(isinstance(one, str | os.PathLike) for one in each)

    def delayed_shards(self, n_shards: int, regroup: bool) -> list[Any]:
        """Return delayed shards of neighbouring blocks, or of whole queries if ``regroup``."""
        pieces = self._files(n_shards) if self.are_files else self._blocks()
        if regroup:
            split = delayed(split_by_query, nout=n_shards)
            parts = [split(piece, number, n_shards) for number, piece in enumerate(pieces)]
            groups = [[delayed(getitem)(one, k) for one in parts] for k in range(n_shards)]
        else:
            n = min(n_shards, len(pieces))
            edges = pairwise(len(pieces) * i // n for i in range(n + 1))
            groups = [pieces[first:last] for first, last in edges]
        one_kind = not self.are_files  # a part of a file of string ids may have integers only
        return [delayed(join)(group, k, one_kind) for k, group in enumerate(groups)]

    def form(self, stats: Sequence[ShardStats]) -> Any:
        """Return a small table with the columns of X, except those that are other arguments."""
        if is_dataframe(self.X):
            return self._features()._meta
        widths = [one.n_features for one in stats]
        if not self.are_files:
            check_features(widths, [one.names for one in stats])
        names = stats[0].names
        if names is not None:
            import pandas as pd

            return pd.DataFrame(np.zeros((1, len(names))), columns=names)
        return np.broadcast_to(0.0, (1, self.n_features or max(widths)))

    def _features(self) -> Any:
        """Return X without the columns of a dataframe that are named as other arguments."""
        named = [one for one in (self.qid, self.sample_weight) if isinstance(one, str)]
        return self.X.drop(columns=named) if named else self.X

    def _files(self, n_parts: int) -> list[Any]:
        """Return delayed parts of all files."""
        if self.y is not None or self.qid is not None:
            raise TypeError("files have their own labels and queries: omit y and qid")
        if self.sample_weight is not None:
            raise TypeError(
                "rows of files have no weights: omit sample_weight, or pass X as a list of "
                "delayed blocks"
            )
        paths = [os.path.abspath(os.fsdecode(path)) for path in list_sources(self.X)]  # type: ignore[arg-type]
        ranges = [part for path in paths for part in cut(path, -(-n_parts // len(paths)))]
        parse = delayed(read_shard, pure=True)
        return [parse(part, self.n_features, self.zero_based) for part in ranges]

    def _blocks(self) -> list[Any]:
        """Return delayed blocks of X, y, qid and weights."""
        if self.y is None:
            raise ValueError("this learner requires y to be passed, but the target y is None")
        X, columns = self.X, {"y": self.y, "qid": self.qid, "sample_weight": self.sample_weight}
        if is_dataframe(X):
            columns = {k: self.X[v] if isinstance(v, str) else v for k, v in columns.items()}
            X = self._features()
        blocks = blocks_of(X, "X", None)
        chunks = X.chunks[0] if hasattr(X, "chunks") else None
        found = [blocks]
        for name, column in columns.items():
            parts = [None] * len(blocks) if column is None else blocks_of(column, name, chunks)
            if len(parts) != len(blocks):
                raise ValueError(
                    f"X and {name} must have the same blocks; got {len(blocks)} of X and "
                    f"{len(parts)} of {name}"
                )
            found.append(parts)
        return list(zip(*found, strict=True))


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
            f"{name} must be a dask array or dataframe, a list of delayed blocks, or paths; got "
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


def read_shard(part: Any, n_features: int | None, zero_based: bool) -> Shard | None:
    """Read a part of a file; None if no query starts in it."""
    found = read(part, n_features, zero_based, np.float64)
    return None if found is None else Shard(found.X, found.y, found.qid)


def as_shard(piece: Any) -> Shard | None:
    """Check a block of the user, or return a part of a file; None if it is empty."""
    if piece is None or isinstance(piece, Shard):
        return piece
    X, y, qid, weights = piece
    if not hasattr(X, "shape"):
        raise TypeError(
            f"blocks of rows must be arrays, sparse matrices or data frames; got {type(X).__name__}"
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
    return Shard(X, y, qid, weights, order, names_of(X)) if y.size else None


def split_by_query(piece: Any, number: int, n_shards: int) -> list[Shard | None]:
    """Divide the rows of a block among shards by the hash of their query."""
    with naming(f"block {number}"):
        shard = as_shard(piece)
        if shard is None:
            return [None] * n_shards
        if shard.qid is None:
            raise ValueError("regroup=True requires query ids; got none")
    ids, query = np.unique(shard.qid, return_inverse=True)
    home = np.array([hash_of(one) % n_shards for one in ids.tolist()])[query]
    parts = [np.flatnonzero(home == k) for k in range(n_shards)]
    return [take_rows(shard, rows) if rows.size else None for rows in parts]


def hash_of(query: Any) -> int:
    """Hash a query id: the same in all processes, and for equal numbers of different types."""
    whole = isinstance(query, Real) and query == query // 1
    return crc32(str(int(query) if whole else query).encode())


def take_rows(shard: Shard, rows: NDArray[Any]) -> Shard:
    """Return some rows of a shard."""
    frame = frame_of(shard.X)
    X = shard.X[rows] if frame is None else frame.take(rows)
    qid, weights = shard.qid, shard.weights
    return replace(
        shard,
        X=X,
        y=shard.y[rows],
        qid=None if qid is None else qid[rows],
        weights=None if weights is None else weights[rows],
    )


def join(pieces: Sequence[Any], number: int, one_kind: bool) -> Shard | None:
    """Join blocks to a shard, in order; None if all are empty.

    ``one_kind`` requires query ids of one kind.
    """
    with naming(f"shard {number}"):
        parts = [part for part in map(as_shard, pieces) if part is not None]
        if not parts:
            return None
        queries = [part.qid for part in parts if part.qid is not None]
        weights = [part.weights for part in parts if part.weights is not None]
        check_all_or_none(parts, queries, "query ids")
        check_all_or_none(parts, weights, "weights")
        if one_kind:
            check_kinds(queries)
            widths = [part.X.shape[1] for part in parts if len(part.X.shape) > 1]
            check_features(widths, [part.names for part in parts])
        return Shard(
            join_rows([part.X for part in parts]),
            join_labels([part.y for part in parts]),
            join_ids(queries) if queries else None,
            np.concatenate(weights) if weights else None,
            common_order([part.order for part in parts]),
            parts[0].names,
        )


def join_rows(blocks: list[Any]) -> Any:
    """Stack blocks of rows of one kind; data frames of any library to one of pandas."""
    frames = [frame for frame in map(frame_of, blocks) if frame is not None]
    if len(frames) == len(blocks):
        import pandas as pd

        return pd.concat([as_pandas(frame) for frame in frames])
    sparse = [sp.issparse(block) for block in blocks]
    if all(sparse):
        width = max(block.shape[1] for block in blocks)  # files omit features that are all 0
        return sp.vstack([widened(block, width) for block in blocks], format="csr")
    if any(sparse):
        raise TypeError("some blocks are sparse and others dense; expected the same kind in all")
    return np.concatenate([np.asarray(block) for block in blocks])


def as_pandas(frame: Frame) -> Any:
    """Return a data frame of any library as one of pandas."""
    if hasattr(frame.native, "iloc"):
        return frame.native
    import pandas as pd

    return pd.DataFrame(frame_matrix(frame, "X"), columns=frame.names)


def widened(X: Any, n_features: int) -> Any:
    """Extend sparse rows to a number of features."""
    if X.shape[1] == n_features:
        return X
    X = X.copy()
    X.resize((X.shape[0], n_features))
    return X


def widen(shard: Shard, n_features: int) -> Shard:
    """Extend a shard of a file to all features, of which its part may lack the last."""
    return replace(shard, X=widened(shard.X, n_features))


# ------------------------------------------------------------------------------ statistics


@dataclass(frozen=True)
class ShardStats:
    """Statistics of a shard."""

    n_rows: int
    n_features: int
    names: list[Any] | None  # of the columns of data frames
    # Distinct labels, ascending, and the number of rows of each.
    labels: NDArray[Any]
    counts: NDArray[np.int64]
    order: NDArray[Any] | None
    queries: NDArray[Any] | None  # distinct query ids
    largest_query: int  # number of its rows
    tied: bool  # whether the rows of each query are equal
    first: NDArray[np.float64]  # the first row
    all_equal: bool  # whether all rows equal it
    squares: tuple[float, int]  # the sum of all squares is the first times 4 to the second
    n_nonzero: int
    # Of the weights: sum, number and maximum of the positive ones.
    weights: tuple[float, int, float] | None


def shard_stats(shard: Shard | None, nan: bool) -> ShardStats | None:
    """Return the statistics of a shard before learning; None if it is empty."""
    if shard is None:
        return None
    check_numbers(shard.X)
    rows = as_rows(shard.X, nan=nan)
    labels, counts = np.unique(shard.y, return_counts=True)
    queries = group_rows(shard.qid, rows.n_rows)
    every = np.arange(rows.n_rows)
    docs, ends = every if queries.rows is None else queries.rows, np.array([0, rows.n_rows])
    first = some_rows(rows, slice(0, 1))
    weights = None
    if shard.weights is not None:
        positive = shard.weights[shard.weights > 0]
        weights = math.fsum(positive), positive.size, float(positive.max(initial=0.0))
    return ShardStats(
        rows.n_rows,
        rows.n_features,
        shard.names,
        labels,
        counts,
        shard.order,
        None if shard.qid is None else np.unique(queries.ids),
        queries.largest,
        equal_in_groups(rows, docs, queries.bounds),
        np.ravel(first.toarray() if sp.issparse(first) else first).astype(np.float64),
        equal_in_groups(rows, every, ends),
        (0.0, 0) if nan else square_lengths(rows),
        count_nonzero(rows),
        weights,
    )


@dataclass(frozen=True)
class ShardedRows:
    """All rows of a fit: their shards on the workers, none of them empty, and statistics."""

    shards: Shards
    stats: list[ShardStats]
    form: Any  # a small table with the columns of X

    @classmethod
    def of(cls, shards: Shards, columns: Columns, nan: bool) -> ShardedRows:
        """Survey the shards; raise ValueError if they do not fit together."""
        found = shards.gather(shard_stats, nan=nan)
        shards.keep([one is not None for one in found])
        stats = [one for one in found if one is not None]
        if not stats:
            raise ValueError("Found 0 sample(s) while a minimum of 1 is required.")
        weights = [one.weights for one in stats if one.weights is not None]
        check_all_or_none(stats, weights, "weights")
        if weights and not any(n for _, n, _ in weights):
            raise ValueError("sample_weight must not be all zero")
        queries = [one.queries for one in stats if one.queries is not None]
        check_all_or_none(stats, queries, "query ids")
        form = columns.form(stats)
        if columns.are_files:
            shards.transform(widen, n_features=form.shape[1])
        else:
            check_kinds(queries)
        if queries:
            check_whole(queries, shards.numbers)
        return cls(shards, stats, form)

    @property
    def n_rows(self) -> int:
        """Number of rows of all shards."""
        return sum(one.n_rows for one in self.stats)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.form.shape[1])

    @property
    def in_queries(self) -> bool:
        """Whether rows have query ids."""
        return self.stats[0].queries is not None

    @property
    def largest_query(self) -> int:
        """Number of rows of the largest query; 0 without query ids."""
        return max(one.largest_query for one in self.stats) if self.in_queries else 0

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.stats[0].weights is not None

    @property
    def mean_weight(self) -> float:
        """Mean of the positive weights of all rows; 1 without weights."""
        found = [one.weights for one in self.stats if one.weights is not None]
        if not found:
            return 1.0
        return math.fsum(total for total, _, _ in found) / sum(n for _, n, _ in found)

    @property
    def mean_square(self) -> float:
        """Power of two nearest to the mean squared length of the rows, as in memory."""
        squares = [one.squares for one in self.stats]
        shift = max(of_shard for _, of_shard in squares)
        total = math.fsum(math.ldexp(one, 2 * (of_shard - shift)) for one, of_shard in squares)
        return power_of_two(total / self.n_rows, 2 * shift)

    @property
    def share_of_nonzero(self) -> float:
        """Fraction of the values that are not 0."""
        return sum(one.n_nonzero for one in self.stats) / (self.n_rows * self.n_features)

    @property
    def all_equal(self) -> bool:
        """Whether all rows are equal."""
        heads = [np.pad(one.first, (0, self.n_features - one.first.size)) for one in self.stats]
        same = all(np.array_equal(heads[0], one) for one in heads)
        return self.n_rows > 1 and same and all(one.all_equal for one in self.stats)

    def ranks(self, model: Any, classes: Any) -> NDArray[Any]:
        """Return all labels, lowest rank first: as declared, or those that occur."""
        found = np.unique(join_labels([one.labels for one in self.stats]))
        order = common_order([one.order for one in self.stats])
        return ranks_among(found, order, declared_labels(model, classes), type(model).__name__)

    def graded(
        self, declared: NDArray[Any] | None, learner: str
    ) -> tuple[ShardedRows, NDArray[Any] | None]:
        """Replace labels that are words by grades; return these words too, lowest first."""
        found = join_labels([one.labels for one in self.stats])
        order = common_order([one.order for one in self.stats])
        if declared is None and not are_words(found):
            check_ascent(order)
            return self, None
        words = words_among(found, order, declared, learner)
        self.shards.transform(grade, words=words)
        stats = [replace(one, labels=np.sort(encode(one.labels, words))) for one in self.stats]
        return replace(self, stats=stats), words

    def source(self) -> MemoryRows:
        """Return a source with one window, which stands for the rows of all shards."""
        return MemoryRows(self.form, self, None, n_features=self.n_features)


def grade(shard: Shard, words: NDArray[Any]) -> Shard:
    """Replace the labels of a shard by their places among words."""
    return replace(shard, y=encode(shard.y, words))


def check_numbers(X: Any) -> None:
    """Raise ValueError if a data frame has columns of categories, which trees in memory accept."""
    frame = frame_of(X)
    for j, name in enumerate(frame.names if frame is not None else []):
        if frame is not None and frame.kind(j) == "category":
            raise ValueError(
                f"column {name!r} of X has a category dtype, and a fit on shards takes numbers "
                "only: replace the column by numbers, such as with dask.dataframe.get_dummies, or "
                "fit in memory"
            )


def check_features(widths: Sequence[int], names: Sequence[list[Any] | None]) -> None:
    """Raise ValueError unless blocks have equally many columns, in one order."""
    if len({*widths}) > 1:
        raise ValueError(
            f"all blocks of X must have the same features; got {sorted({*widths})} features"
        )
    for other in names:
        if other != names[0]:
            raise ValueError(
                "all blocks of X must have the same columns in the same order; got "
                f"{names[0]} and {other}"
            )


def check_all_or_none(parts: Sequence[Any], found: Sequence[Any], what: str) -> None:
    """Raise ValueError if only some parts have something."""
    if found and len(found) < len(parts):
        raise ValueError(f"some blocks have {what} and others none; expected {what} in all or none")


def check_kinds(queries: Sequence[NDArray[Any]]) -> None:
    """Raise ValueError if query ids are numbers in some blocks and strings in others."""
    kinds = sorted({kind_of_ids(one) for one in queries})
    if len(kinds) > 1:
        raise ValueError(
            f"query ids are {' in some blocks and '.join(kinds)} in others; expected one kind in "
            "all: 1 and '1' are different queries"
        )


def check_whole(queries: Sequence[NDArray[Any]], numbers: Sequence[int]) -> None:
    """Raise ValueError if a query is in two shards, given the distinct queries of each."""
    ids = join_ids(queries)
    shards = np.repeat(numbers, [one.size for one in queries])
    order = np.argsort(ids, kind="stable")
    same = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    if same.size:
        one, other = shards[order[same[0]]], shards[order[same[0] + 1]]
        raise ValueError(
            f"query {ids[order[same[0]]]} has rows in shards {one} and {other}, and a query must "
            f"be whole in one ({same.size} are not): divide it between queries, or pass "
            "regroup=True, which moves rows between workers"
        )


def shard_moments(shard: Shard, mean: float) -> Moments:
    """Return the weighted moments of a shard; ``mean`` is that of the weights of all rows."""
    rows = as_rows(shard.X)
    weights = None if shard.weights is None else shard.weights / mean
    return Moments(rows.n_features).add(rows, weights)


def common_order(orders: Sequence[Any]) -> NDArray[Any] | None:
    """Return the declared order of labels in all parts, or None; ValueError if orders differ."""
    if not all(np.array_equal(one, orders[0]) for one in orders):
        raise ValueError(
            "the ordered categories of y differ between blocks: use the same for all, such as by "
            "y.astype(pandas.CategoricalDtype([...], ordered=True))"
        )
    return orders[0]


def join_ids(queries: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Join query ids of one kind; if some are of files, all are texts."""
    if any(one.dtype.kind == "U" for one in queries):
        return np.concatenate([one.astype(str) for one in queries])
    return joined(queries, "qid")


def join_labels(labels: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Join labels; raise ValueError if they are strings in some parts only, or not exact."""
    if len({kind_of_label(one[0]) for one in labels}) > 1:
        raise ValueError(
            "labels are numbers in some blocks and strings in others; expected the same kind in all"
        )
    return sortable(joined(labels, "y"), "y")


def check_supported(model: Any, **accepted: tuple[Any, ...]) -> None:
    """Raise ValueError for parameters with values that a fit on shards does not support."""
    for name, values in accepted.items():
        found = getattr(model, name)
        if found not in values:
            listed = " or ".join(map(repr, values))
            raise ValueError(f"a fit on shards requires {name}={listed}; got {found!r}")
