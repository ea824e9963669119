"""Dask collections as shards: neighbouring blocks of rows, which a worker checks and joins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankcore._core.frames import frame_of, names_of
from rankcore._core.ids import joined
from rankcore._core.inputs import frame_matrix
from rankcore._core.labels import as_labels, kind_of_label, sortable
from rankcore._core.numbers import as_vector
from rankcore._core.queries import kind_of_ids

try:
    import dask
    import distributed
    from distributed import Client as Client
except ModuleNotFoundError as error:
    if error.name not in ("dask", "distributed"):
        raise
    raise ModuleNotFoundError(
        f"rankcore.dask requires {error.name}: pip install 'rankcore[dask]'", name=error.name
    ) from error

# Without types.
_dask: Any = dask
_distributed: Any = distributed
delayed, is_dask_collection = _dask.delayed, _dask.is_dask_collection
gathered, cluster = _dask.compute, _distributed


@dataclass(frozen=True)
class Shard:
    """Rows of one task."""

    X: Any  # dense or sparse
    y: NDArray[Any]
    qid: NDArray[Any] | None = None
    weights: NDArray[np.float64] | None = None
    order: NDArray[Any] | None = None  # categories of an ordered categorical y, lowest first
    names: list[Any] | None = None  # of the columns, if X was a data frame

    def take(self, rows: NDArray[np.int64]) -> Shard:
        """Return some rows."""
        qid = None if self.qid is None else self.qid[rows]
        weights = None if self.weights is None else self.weights[rows]
        return Shard(self.X[rows], self.y[rows], qid, weights, self.order, self.names)

    def forms(self) -> dict[str, Any]:
        """Return the properties that all shards of a fit share, by their names in errors."""
        return {
            "number of features": self.X.shape[-1],
            "names and order of columns": self.names,
            "kind of rows": "sparse" if sp.issparse(self.X) else "dense",
            "kind of labels": kind_of_label(self.y[0]),
            "ordered categories of y": None if self.order is None else self.order.tolist(),
            "kind of query ids": "none" if self.qid is None else kind_of_ids(self.qid),
            "kind of weights": "none" if self.weights is None else "numbers",
        }


def delayed_shards(X: Any, y: Any, qid: Any, sample_weight: Any, n_shards: int) -> list[Any]:
    """Return delayed shards of neighbouring blocks of the arguments of ``fit``."""
    if y is None:
        raise ValueError("this learner requires y to be passed, but the target y is None")
    columns = {"X": X, "y": y, "qid": qid, "sample_weight": sample_weight}
    if is_dask_collection(X) and hasattr(type(X), "columns"):  # Delayed seems to have any attribute
        named = {key: name for key, name in columns.items() if isinstance(name, str)}
        columns |= {key: X[name] for key, name in named.items()}
        columns["X"] = X.drop(columns=[*named.values()])
    blocks = {key: blocks_of(one, key, X) for key, one in columns.items() if one is not None}
    n_blocks = len(blocks["X"])
    for key, parts in blocks.items():
        if len(parts) != n_blocks:
            raise ValueError(
                f"X and {key} must have the same blocks; got {n_blocks} of X and {len(parts)} of "
                f"{key}"
            )
    rows = [dict(zip(blocks, parts, strict=True)) for parts in zip(*blocks.values(), strict=True)]
    n = min(n_shards, n_blocks)
    ends = pairwise(n_blocks * i // n for i in range(n + 1))
    return [delayed(join)(rows[first:last], number) for number, (first, last) in enumerate(ends)]


def blocks_of(collection: Any, name: str, X: Any) -> list[Any]:
    """Return the delayed blocks of a collection; those of an array have the rows of X's."""
    if isinstance(collection, list | tuple) and collection:
        return list(collection)
    if not hasattr(type(collection), "to_delayed"):
        raise TypeError(
            f"{name} must be a dask array or dataframe, or a list of delayed blocks; got "
            f"{collection if isinstance(collection, list | tuple) else type(collection).__name__}"
        )
    if hasattr(type(collection), "chunks"):
        if collection.ndim == 2 and len(collection.chunks[1]) > 1:
            collection = collection.rechunk({1: -1})
        rows = X.chunks[0] if hasattr(type(X), "chunks") else collection.chunks[0]
        if not np.isnan([*rows, *collection.chunks[0]]).any():
            collection = collection.rechunk({0: rows})
    return np.ravel(np.asarray(collection.to_delayed(), dtype=object)).tolist()


# ------------------------------------------------------------------------------ on a worker


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Prefix errors of rows with the name of their shard."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise ValueError(f"{what}: {error}") from error


def join(blocks: Sequence[dict[str, Any]], number: int) -> Shard | None:
    """Check blocks, and join them to a shard; None if all are empty."""
    with naming(f"shard {number}"):
        parts = [part for part in (as_shard(**block) for block in blocks) if part.y.size]
        if not parts:
            return None
        check_alike([part.forms() for part in parts])
        first, rows = parts[0], [part.X for part in parts]
        queries = [part.qid for part in parts if part.qid is not None]
        weights = [part.weights for part in parts if part.weights is not None]
        return Shard(
            sp.vstack(rows, format="csr") if sp.issparse(first.X) else np.concatenate(rows),
            join_labels([part.y for part in parts]),
            joined(queries, "qid") if queries else None,
            np.concatenate(weights) if weights else None,
            first.order,
            first.names,
        )


def as_shard(X: Any, y: Any, qid: Any = None, sample_weight: Any = None) -> Shard:
    """Check a block."""
    if not hasattr(X, "shape"):
        raise TypeError(
            "blocks of rows must be arrays, sparse matrices or data frames; got "
            f"{type(X).__name__}: of LETOR files pass the parts of "
            "dask.delayed(rankcore.datasets.load_letor)(path), such as its X"
        )
    labels, order = as_labels(y, X.shape[0])
    ids = None if qid is None else np.asarray(qid)
    weights = None if sample_weight is None else as_vector(sample_weight, "sample_weight")
    for name, column in (("qid", ids), ("sample_weight", weights)):
        if column is not None and column.shape != labels.shape:
            raise ValueError(
                f"{name} must have one value per row; got {labels.size} rows and {column.size} "
                "values"
            )
    if weights is not None and not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("sample_weight must be finite and not negative")
    frame = frame_of(X)
    rows = X if sp.issparse(X) else np.asarray(X) if frame is None else frame_matrix(frame, "X")
    return Shard(rows, labels, ids, weights, order, names_of(X))


def check_alike(forms: Sequence[dict[str, Any]]) -> None:
    """Raise ValueError unless all blocks, or shards, have the same forms."""
    for name, expected in forms[0].items():
        for other in forms:
            if other[name] != expected:
                files = ": LETOR files are read alike by load_letor(path, n_features=...)"
                raise ValueError(
                    f"the {name} must be the same in all blocks; got {expected} in some and "
                    f"{other[name]} in others" + (files if name == "number of features" else "")
                )


def join_labels(labels: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Join labels of one kind; raise ValueError if they would change."""
    return sortable(joined(labels, "y"), "y")
