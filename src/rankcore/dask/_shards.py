"""Conversion of Dask collections, lists of delayed blocks and paths to shards on workers."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankcore._core.equal_rows import equal_rows
from rankcore._core.inputs import as_rows
from rankcore._core.kernels import some_rows
from rankcore._core.labels import as_labels, encode
from rankcore._core.numbers import as_vector, exact_sum, extremes, scaled_from
from rankcore._core.queries import group_rows, kind_of_ids
from rankcore._core.scales import count_nonzero, square_lengths
from rankcore._ext.rows import Rows
from rankcore.dask import _ranges
from rankcore.dask._engine import delayed
from rankcore.datasets.row_files import list_sources
from rankcore.ordinal._weights import WeightFacts
from rankcore.ranking._pairs import mean_weight


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Prefix errors of rows with the name of their shard or block."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise ValueError(f"{what}: {error}") from error


@dataclass(frozen=True)
class Shard:
    """Rows of one task, with the declared order of labels, if any."""

    X: Any
    y: NDArray[Any]
    qid: NDArray[Any] | None
    weights: NDArray[np.float64] | None = None
    order: NDArray[Any] | None = None


@dataclass(frozen=True)
class Finding:
    """Facts of a shard."""

    n_rows: int
    n_features: int
    # Distinct labels in ascending order, and number of rows of each.
    labels: NDArray[Any]
    counts: NDArray[np.int64]
    # The sum of squares of all values is the first number times 4 to the power of the second.
    squares: tuple[float, int]
    queries: NDArray[Any] | None  # distinct query ids
    n_bytes: int
    heaviest: float | None = None  # the maximum weight of a row, if rows have any
    lightest: float = np.inf  # minimum non-zero weight; inf if there is none
    weight: Fraction = Fraction()  # sum of the weights of rows
    n_weighted: int = 0  # rows of positive weight
    order: NDArray[Any] | None = None  # the categories of an ordered categorical, lowest first
    n_nonzero: int = 0  # values that are not 0
    row: NDArray[Any] | None = None  # the row that all are equal to, if they are equal


# Delayed rows, labels, queries and weights of rows; or a delayed part of a file, a `Shard` or None.
Piece = Any


def pieces_of(
    columns: tuple[Any, Any, Any, Any], n_parts: int, files: tuple[int | None, bool]
) -> list[Piece]:
    """Delayed blocks of X, y, qid and weights.

    X is a dask array or dataframe, a list of delayed blocks, or paths; the others are of the same
    kind with the same divisions, or names of columns of a dataframe. All files together are divided
    into ``n_parts`` ranges, each of which is one delayed object, a `Shard` or None.
    """
    X, y, qid, sample_weight = columns
    if _are_paths(X):
        if y is not None or qid is not None:
            raise TypeError("files have their own labels and queries: omit y and qid")
        if sample_weight is not None:
            raise TypeError(
                "rows of files have no weights: omit sample_weight, or pass X as a list of "
                "delayed blocks"
            )
        paths = [os.path.abspath(os.fsdecode(path)) for path in list_sources(X)]  # type: ignore[arg-type]
        each = -(-n_parts // len(paths))
        ranges = [part for path in paths for part in _ranges.cut(path, each)]
        read = delayed(_read, pure=True)
        return [read(part, *files, np.float64) for part in ranges]
    if y is None:
        raise ValueError("this learner requires y to be passed, but the target y is None")
    if hasattr(X, "columns"):
        frame = X
        X = without_columns(X, qid, sample_weight)
        qid, sample_weight = (
            frame[one] if isinstance(one, str) else one for one in (qid, sample_weight)
        )
    blocks = _blocks(X, "X", None)
    chunks = X.chunks[0] if hasattr(X, "chunks") else None
    labels = _blocks(y, "y", chunks)
    found = [blocks, labels]
    for name, given in [("qid", qid), ("sample_weight", sample_weight)]:
        found.append([None] * len(blocks) if given is None else _blocks(given, name, chunks))
    for name, parts in zip(["y", "qid", "sample_weight"], found[1:], strict=True):
        if len(parts) != len(blocks):
            raise ValueError(f"X has {len(blocks)} blocks and {name} {len(parts)}; must be equal")
    return list(zip(*found, strict=True))


def without_columns(frame: Any, *names: Any) -> Any:
    """Remove named columns from a frame; names that are not strings are ignored."""
    named = [name for name in names if isinstance(name, str)]
    return frame.drop(columns=named) if named else frame


def _are_paths(X: Any) -> bool:
    if isinstance(X, str | os.PathLike):
        return True
    if not isinstance(X, list | tuple) or not X:
        return False
    return all(isinstance(one, str | os.PathLike) for one in X)


def _read(part: _ranges.Range, *options: Any) -> Shard | None:
    """Rows of a part of a file; None if no query starts in it."""
    found = _ranges.read(part, *options)
    return None if found is None else Shard(found.X, found.y, found.qid)


def _blocks(collection: Any, name: str, chunks: Any) -> list[Any]:
    """Delayed blocks of rows."""
    if isinstance(collection, list | tuple):
        if not collection:
            raise ValueError(f"{name} is an empty list; requires at least one block")
        return list(collection)
    if not hasattr(collection, "to_delayed"):
        raise TypeError(
            f"{name} must be a dask array or dataframe, a list of delayed blocks, or paths; found "
            f"{type(collection).__name__}"
        )
    if hasattr(collection, "chunks"):
        if collection.ndim == 2 and len(collection.chunks[1]) > 1:
            collection = collection.rechunk({1: -1})
        unknown = np.isnan(collection.chunks[0]).any() or (chunks and np.isnan(chunks).any())
        if chunks is not None and not unknown and collection.chunks[0] != chunks:
            if sum(collection.chunks[0]) != sum(chunks):
                raise ValueError(
                    f"X and y have inconsistent numbers of samples: {sum(chunks)} rows and "
                    f"{sum(collection.chunks[0])} in {name}"
                )
            collection = collection.rechunk((chunks,))
    return np.ravel(np.asarray(collection.to_delayed(), dtype=object)).tolist()


def shards_of(pieces: Sequence[Piece], n_shards: int, token: str) -> list[Any]:
    """Join neighbouring pieces to shards."""
    given = isinstance(pieces[0], tuple)
    return [
        delayed(joined_shard)(list(pieces[a:b]), number, given, dask_key_name=key_of(number, token))
        for number, (a, b) in enumerate(parts_of(len(pieces), min(n_shards, len(pieces))))
    ]


def key_of(number: int, token: str) -> str:
    return f"rankcore-shard-{number}-{token}"


def parts_of(n: int, n_parts: int) -> list[tuple[int, int]]:
    """Ends of parts of n items of about equal size."""
    return list(pairwise(n * i // n_parts for i in range(n_parts + 1)))


def as_shard(piece: Any) -> Shard | None:
    if piece is None or isinstance(piece, Shard):
        return piece
    X, y, qid, weights = piece
    if not hasattr(X, "shape"):
        raise TypeError(
            "blocks of rows must be arrays, sparse matrices or data frames; found "
            f"{type(X).__name__}"
        )
    qid = None if qid is None else np.asarray(qid)
    y, order = as_labels(y, X.shape[0])
    if qid is not None and qid.shape != y.shape:
        raise ValueError(f"a block has {y.size} rows and {qid.size} query ids")
    if weights is not None:
        weights = as_vector(weights, "sample_weight")
        if weights.shape != y.shape:
            raise ValueError(f"a block has {y.size} rows and {weights.size} weights")
    return Shard(X, y, qid, weights, order) if y.size else None


def joined_shard(pieces: Sequence[Any], number: int, given: bool) -> Shard | None:
    """Join pieces to one shard, in order; errors name it.

    ``given`` is whether pieces are blocks of the user, not parts of files.
    """
    with naming(f"shard {number}"):
        parts = [as_shard(piece) for piece in pieces]
        if given:
            check_kinds([part.qid for part in parts if part is not None])
        return join(parts)


def join(shards: Sequence[Shard | None]) -> Shard | None:
    """Join shards; None if all are empty."""
    parts = [part for part in shards if part is not None]
    if len(parts) <= 1:
        return parts[0] if parts else None
    blocks = [part.X for part in parts]
    X: Any
    if all(map(sp.issparse, blocks)):
        width = max(block.shape[1] for block in blocks)
        for block in blocks:  # files omit features that are 0 in all of their rows
            block.resize((block.shape[0], width))
        X = sp.vstack(blocks, format="csr")
    elif any(map(sp.issparse, blocks)):
        raise TypeError("some blocks are sparse and others dense; expected the same kind in all")
    elif hasattr(blocks[0], "iloc"):
        import pandas as pd

        X = pd.concat(blocks)
    else:
        X = np.concatenate([np.asarray(block) for block in blocks])
    queries = [part.qid for part in parts if part.qid is not None]
    weights = [part.weights for part in parts if part.weights is not None]
    in_all([part.qid is not None for part in parts], "query ids")
    in_all([part.weights is not None for part in parts], "weights")
    return Shard(
        X,
        join_labels([part.y for part in parts]),
        np.concatenate(queries) if queries else None,
        np.concatenate(weights) if weights else None,
        common_order(parts),
    )


def common_order(parts: Sequence[Shard | Finding]) -> NDArray[Any] | None:
    """Declared order of the labels of all parts, or None; ValueError if orders differ."""
    orders: list[Any] = [part.order for part in parts]
    if not all(np.array_equal(one, orders[0]) for one in orders):
        raise ValueError(
            "the ordered categories of y differ between blocks: use the same for all, such as by "
            "y.astype(pandas.CategoricalDtype([...], ordered=True))"
        )
    return parts[0].order


def join_labels(labels: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Join labels; NumPy would convert numbers among strings to strings."""
    if len({isinstance(one[0], str) for one in labels}) > 1:
        raise ValueError(
            "labels are numbers in some blocks and strings in others; expected the same kind in all"
        )
    return np.concatenate(labels)


def look(shard: Shard | None, number: int, nan: bool, lengths: bool) -> Finding | None:
    """Facts of a shard before learning; None if it is empty.

    With ``nan``, values may be missing; with ``lengths``, squares are summed.
    """
    if shard is None:
        return None
    with naming(f"shard {number}"):
        rows = as_rows(shard.X, nan=nan)
        labels, counts = np.unique(shard.y, return_counts=True)
        queries = None
        if shard.qid is not None:
            queries = np.unique(group_rows(shard.qid, rows.n_rows).ids)
        heaviest, lightest, weight, n_weighted = None, np.inf, Fraction(), 0
        if shard.weights is not None:
            if not np.isfinite(shard.weights).all() or (shard.weights < 0).any():
                raise ValueError("sample_weight must be finite and not negative")
            lightest, heaviest = extremes(shard.weights)
            weight, n_weighted = exact_sum(shard.weights), int(np.count_nonzero(shard.weights))
    return Finding(
        rows.n_rows,
        rows.n_features,
        labels,
        counts,
        square_lengths(rows) if lengths else (0.0, 0),
        queries,
        sum(array.nbytes for array in rows.arrays),
        heaviest,
        lightest,
        weight,
        n_weighted,
        shard.order,
        count_nonzero(rows) if lengths else 0,
        common_row(rows),
    )


def common_row(rows: Rows) -> NDArray[Any] | None:
    """The row that all rows are equal to; None if they differ."""
    if rows.n_rows > 1 and not equal_rows(rows):
        return None
    first = some_rows(rows, slice(0, 1))
    return np.ravel(first.toarray() if sp.issparse(first) else first)


def all_equal(findings: Sequence[Finding]) -> bool:
    """Whether all rows of all shards are equal."""
    rows = [finding.row for finding in findings if finding.row is not None]
    if len(rows) < len(findings) or sum(finding.n_rows for finding in findings) == 1:
        return False
    width = max(row.size for row in rows)  # files omit features that are 0 in all of their rows
    first, *others = (np.pad(row, (0, width - row.size)) for row in rows)
    return all(np.array_equal(first, one) for one in others)


def check_kinds(blocks: Sequence[NDArray[Any] | None]) -> None:
    """Raise ValueError if query ids are numbers in some blocks and strings in others.

    Not for text files: parts of a file with string ids may have integer ids only.
    """
    kinds = sorted({kind_of_ids(one) for one in blocks if one is not None})
    if len(kinds) > 1:
        raise ValueError(
            f"query ids are {' in some blocks and '.join(kinds)} in others; expected one kind in "
            "all: 1 and '1' are different queries"
        )


def check_queries(queries: Sequence[Any]) -> None:
    """Raise ValueError if one of the distinct queries of each shard is in another shard, too."""
    ids = np.concatenate(queries)
    shards = np.repeat(np.arange(len(queries)), [one.size for one in queries])
    order = np.argsort(ids, kind="stable")
    same = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    if same.size:
        one, other = shards[order[same[0]]], shards[order[same[0] + 1]]
        raise ValueError(
            f"query {ids[order[same[0]]]} has rows in shards {one} and {other}, and a query must "
            f"be whole in one ({same.size} are not): divide it between queries, or pass "
            "regroup=True, which moves rows between workers"
        )


def in_queries(findings: Sequence[Finding]) -> bool:
    """Whether shards have query ids; ValueError if only some have, or a query is in two shards."""
    queries = [finding.queries for finding in findings]
    found = in_all([one is not None for one in queries], "query ids")
    if found:
        check_queries(queries)
    return found


def in_all(given: Sequence[bool], what: str) -> bool:
    """Whether all blocks have something; raise ValueError if only some have."""
    if any(given) and not all(given):
        raise ValueError(f"some blocks have {what} and others none; expected {what} in all or none")
    return all(given)


def check_supported(model: Any, **accepted: tuple[Any, ...]) -> None:
    """Raise ValueError for parameters with values that a fit on shards does not support."""
    for name, values in accepted.items():
        found = getattr(model, name)
        if found not in values:
            listed = " or ".join(map(repr, values))
            raise ValueError(f"a fit on shards requires {name}={listed}; found {found!r}")


@dataclass(frozen=True)
class PairWeights:
    """Weights of the rows of a ranker's fit, as `make_pairing` scales them in memory."""

    lightest: float  # minimum positive weight
    heaviest: float  # maximum weight; 0 if rows have no weights
    mean: float  # of the positive weights, after scaling

    @classmethod
    def of(cls, findings: Sequence[Finding]) -> PairWeights:
        """Summarise the weights of all shards."""
        lightest = min(finding.lightest for finding in findings)
        heaviest = max(finding.heaviest or 0.0 for finding in findings)
        if lightest >= heaviest:
            return cls(lightest, heaviest, 1.0)
        total = sum((finding.weight for finding in findings), Fraction())
        mean = mean_weight(total, sum(finding.n_weighted for finding in findings))
        return cls(lightest, heaviest, math.ldexp(mean, -math.frexp(heaviest)[1]))

    def scaled(self, shard: Shard) -> NDArray[np.float64] | None:
        """Scaled weights of the rows of a shard."""
        if shard.weights is None:
            return None
        return scaled_from(shard.weights, self.lightest, self.heaviest)


@dataclass(frozen=True)
class Weighing:
    """Weights of the rows of all shards, by sample and by class, as in memory."""

    known: NDArray[Any]  # the classes
    of_classes: NDArray[np.float64] | None  # factors of the weights of rows
    divisor: float = 1.0  # of relative weights

    def of(self, shard: Shard) -> NDArray[np.float64]:
        """Weights of the rows of a shard, as computed by `row_weights`."""
        weights = shard.weights
        if self.of_classes is not None:
            of_rows = self.of_classes[encode(shard.y, self.known)]
            weights = of_rows if weights is None else weights * of_rows
        assert weights is not None
        return weights / self.divisor


def facts_of(shard: Shard, weighing: Weighing) -> WeightFacts:
    """Facts about the weights of a shard."""
    return WeightFacts.of(weighing.of(shard))
