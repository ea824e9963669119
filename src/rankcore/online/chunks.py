"""Chunks of a stream: rows that arrive together, also hashed from dictionaries or JSON lines."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from numbers import Real
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.feature_extraction import FeatureHasher

from rankcore._core.arguments import RowsLike
from rankcore._core.params import check_count
from rankcore.datasets.streams import open_lines


@dataclass(frozen=True, eq=False)
class Chunk:
    """Rows of a stream that arrive together.

    Parameters
    ----------
    X : array-like or scipy sparse, shape (n_rows, n_features)
        Rows.
    y : array-like, shape (n_rows,)
        Labels.
    qid : array-like, shape (n_rows,), optional
        Query of each row, for rankers. A query must be within one chunk. None: all rows belong to
        one query.
    sample_weight : array-like, shape (n_rows,), optional
        Weights in learning; measures have none.
    """

    X: RowsLike
    y: ArrayLike
    qid: ArrayLike | None = None
    sample_weight: ArrayLike | None = None


class LabelledRows(Protocol):
    """Rows with labels and queries, such as the batches of `rankcore.datasets.iter_letor`."""

    @property
    def X(self) -> RowsLike:
        """Rows."""

    @property
    def y(self) -> ArrayLike:
        """Labels."""


Stream: TypeAlias = Iterable[tuple[RowsLike, ArrayLike] | LabelledRows]


def as_chunks(stream: Stream) -> Iterator[Chunk]:
    """Yield the chunks of a stream; raise TypeError for an item of another form."""
    for item in stream:
        if isinstance(item, Chunk):
            yield item
        elif isinstance(item, tuple) and len(item) == 2:
            X, y = item
            yield Chunk(X, y)
        elif hasattr(item, "X") and hasattr(item, "y"):
            yield Chunk(item.X, item.y, getattr(item, "qid", None))
        else:
            raise TypeError(
                "stream must yield pairs (X, y), or objects with X, y and qid, such as "
                "rankcore.online.Chunk and the batches of rankcore.datasets.iter_letor; got "
                f"{item!r:.60}"
            )


def hash_records(
    records: Iterable[Mapping[str, Any] | str | bytes] | str | os.PathLike[str],
    label: str,
    *,
    n_features: int = 2**18,
    rows_per_chunk: int = 1000,
    qid: str | None = None,
) -> Iterator[Chunk]:
    """Hash dictionaries or JSON lines to chunks of sparse rows, by scikit-learn's FeatureHasher.

    The names of features need not be known: each is hashed to one of ``n_features`` columns, so
    that new ones may appear at any time.

    Parameters
    ----------
    records : iterable of dict, str or bytes, or path
        Dictionaries, or texts with one JSON object each, such as an open file of JSON lines. A path
        is a file of JSON lines, which may be compressed by gzip, bzip2 or Zstandard.
    label : str
        Key of the label.
    n_features : int, default=2**18
        Number of columns. Features that share a column disturb each other: it should be several
        times the number of features that occur.
    rows_per_chunk : int, default=1000
        Rows of a chunk; the last one may have fewer. With ``qid`` a chunk ends with the first query
        that brings it to this many, and the rows of a query must be contiguous.
    qid : str, optional
        Key of the query.

    Yields
    ------
    Chunk
        X is a CSR matrix. A number or boolean is the value of the feature of its key; a text, and
        each item of a list, is a feature of its own with the value 1, named "key=text"; keys of an
        inner dictionary are preceded by those above it and a dot; None is left out, also in lists.

    Raises
    ------
    ValueError
        If a line is not a JSON object, a value is of another type, NaN or infinite, or a record
        lacks the label or the query, or has a text where the first record has a number.

    Examples
    --------
    >>> from rankcore.online import hash_records
    >>> lines = ['{"stars": 4, "shop": "ACME", "price": 9.5}', '{"stars": 1, "tags": ["late"]}']
    >>> chunk = next(hash_records(lines, "stars", n_features=16))
    >>> chunk.y.tolist(), chunk.X.shape, chunk.X.nnz
    ([4, 1], (2, 16), 3)
    """
    check_count(n_features, "n_features")
    check_count(rows_per_chunk, "rows_per_chunk")
    hasher = FeatureHasher(n_features, input_type="pair")
    for batch in _batches(_examples(records, label, qid), rows_per_chunk, qid is None):
        X = hasher.transform([one.features for one in batch])
        queries = None if qid is None else np.array([one.query for one in batch])
        yield Chunk(X, np.array([one.label for one in batch]), queries)


@dataclass(frozen=True)
class _Example:
    """A record, with the names and values of its features."""

    features: list[tuple[str, float]]
    label: Any
    query: Any


def _batches(
    examples: Iterator[_Example], n_rows: int, without_queries: bool
) -> Iterator[list[_Example]]:
    """Divide examples into lists of at least ``n_rows``, of whole queries."""
    batch: list[_Example] = []
    for one in examples:
        whole = without_queries or (batch and one.query != batch[-1].query)
        if len(batch) >= n_rows and whole:
            yield batch
            batch = []
        batch.append(one)
    if batch:
        yield batch


def _examples(records: Any, label: str, qid: str | None) -> Iterator[_Example]:
    """Yield an example for each record."""
    keys = [label] if qid is None else [label, qid]
    texts: dict[str, bool] = {}  # whether the values of a key are texts, as in the first record
    for number, record in enumerate(_dictionaries(records)):
        for key in keys:
            value = record.get(key)
            if value is None:
                raise ValueError(
                    f"record {number} must have a value of {key!r}; it has "
                    f"{', '.join(map(str, islice(record, 10)))}"
                )
            if not isinstance(value, str) and not (isinstance(value, Real) and _is_finite(value)):
                raise ValueError(
                    f"record {number}: {key} must be a finite number or a text; got {value!r:.60}"
                )
            if isinstance(value, str) != texts.setdefault(key, isinstance(value, str)):
                kind = "texts" if texts[key] else "numbers"
                raise ValueError(
                    f"record {number}: {key} must be one of {kind}, as in the first record; got "
                    f"{value!r:.60}"
                )
        try:
            features = [*_features({key: record[key] for key in record if key not in keys})]
        except ValueError as error:
            raise ValueError(f"record {number}: {error}") from None
        yield _Example(features, record[label], None if qid is None else record[qid])


def _dictionaries(records: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the records."""
    if isinstance(records, str | os.PathLike):
        with open_lines(records) as blocks:
            lines = (line for block, _ in blocks for line in bytes(block).splitlines())
            yield from _dictionaries(lines)
        return
    for number, record in enumerate(records):
        if isinstance(record, str | bytes):
            if not record.strip():
                continue
            try:
                record = json.loads(record)
            except ValueError as error:
                raise ValueError(f"record {number} must be a JSON object: {error}") from None
        if not isinstance(record, Mapping):
            raise ValueError(f"record {number} must be a dictionary; got {record!r:.60}")
        yield record


def _features(record: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, float]]:
    """Yield the features of a record; ValueError for values that are none."""
    for key, value in record.items():
        name = f"{above}{key}"
        if isinstance(value, Mapping):
            yield from _features(value, f"{name}.")
        elif isinstance(value, str):
            yield _text(name, value)
        elif isinstance(value, Real):
            yield name, _finite(name, value)
        elif isinstance(value, list | tuple) and all(
            one is None or isinstance(one, str | Real) for one in value
        ):
            yield from (_text(name, one) for one in value if one is not None)
        elif value is not None:
            raise ValueError(
                f"{name} must be a number, a text, a list of these, a dictionary or None; got "
                f"{value!r:.60}"
            )


def _text(name: str, value: Any) -> tuple[str, float]:
    """Return the feature of a text; ValueError for half a pair of surrogates."""
    feature = f"{name}={value}"
    try:
        feature.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} must be valid Unicode; got {value!a:.60}") from None
    return feature, 1.0


def _finite(name: str, value: Any) -> float:
    """Return a number; ValueError if it is not finite."""
    if not _is_finite(value):
        raise ValueError(
            f"{name} must be a finite number, or None if it is missing; got {value!s:.60}"
        )
    return float(value)


def _is_finite(value: Any) -> bool:
    """Return whether a number, also an integer of any size, is finite as a float."""
    return bool(abs(value) <= sys.float_info.max)
