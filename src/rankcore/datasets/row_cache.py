"""Row caches: folders of plain array files, written once and memory-mapped.

``rows.json`` describes the cache. ``values.npy``, ``columns.npy``, ``starts.npy`` and
``labels.npy`` are a CSR matrix and its labels; ``queries.npy`` has the first row of each query, and
``blocks.npy`` the first row, value and query of each block of rows. ``distinct.npy`` and
``counts.npy`` are the labels that occur and how often, ``magnitudes.npy`` the largest magnitude of
each feature.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.disk_arrays import release
from rankcore._core.kernels import csr_in_place
from rankcore._core.sources import DatasetStats, RowBlocks, Window
from rankcore._ext.rows import Rows, csr_rows

FORMAT = "rankcore row cache"
VERSION = 1
DESCRIPTION = "rows.json"
# Arrays of the rows, which are divided into blocks.
PARTS = ("values", "columns", "starts", "labels")
DTYPES = {
    "values": ("float32", "float64"),
    "columns": ("int32",),
    "starts": ("int64",),
    "labels": ("float64",),
    "queries": ("int64",),
    "blocks": ("int64",),
    "magnitudes": ("float64",),
    "distinct": ("float64",),
    "counts": ("int64",),
}
# Statistics of the rows that are in the description.
KINDS = {
    "n_rows": int,
    "n_features": int,
    "n_values": int,
    "n_nonzero": int,
    "in_queries": bool,
    "mean_square": float,
}
# Mapped bytes above which the pages of a block are given back after reading.
RELEASED = 1 << 26


class MappedArray:
    """A memory-mapped array file, which raises if the file is changed meanwhile.

    Reading a page behind the end of a file that was truncated would end the process.
    """

    def __init__(self, path: Path, dtypes: tuple[str, ...]) -> None:
        if not path.is_file():  # opening a pipe would block
            raise ValueError(f"{path} is missing or not a file: create the cache again")
        self._path = path
        self._status = os.stat(path)
        try:
            mapped = np.load(path, mmap_mode="r")
            if mapped.dtype.name not in dtypes or not mapped.flags.c_contiguous:
                raise ValueError(f"dtype must be {' or '.join(dtypes)}; got {mapped.dtype}")
        except Exception as error:  # the parser of headers may raise almost any exception
            raise ValueError(f"{path} is damaged: {error}; create the cache again") from error
        self.array: NDArray[Any] = np.asarray(mapped)

    def check_unchanged(self) -> None:
        """Raise if the file was truncated or overwritten since it was opened."""
        try:
            now = os.stat(self._path)
        except FileNotFoundError:
            return  # the map keeps a deleted file
        same_file = (now.st_dev, now.st_ino) == (self._status.st_dev, self._status.st_ino)
        if same_file and (now.st_size, now.st_mtime_ns) != (
            self._status.st_size,
            self._status.st_mtime_ns,
        ):
            raise ValueError(f"{self._path} was changed while it was read: open the rows again")


class CachedRows(RowBlocks):
    """Rows of a row cache, a folder made by `write_cache`.

    Raises ValueError if it is not a row cache, of another version, or damaged. The columns and
    values of a block are checked whenever it is read, as those of any user's rows.
    """

    has_stats = True

    def __init__(self, path: str | os.PathLike[str], window: int) -> None:
        self.path = Path(path)
        self.window = window
        about = read_description(self.path)
        self._files = {
            name: MappedArray(self.path / f"{name}.npy", dtypes) for name, dtypes in DTYPES.items()
        }
        arrays = {name: file.array for name, file in self._files.items()}
        self._blocks, self._queries = arrays["blocks"], arrays["queries"]
        labels = arrays["distinct"]
        if (labels == np.floor(labels)).all() and np.abs(labels).max(initial=0) < 2**53:
            labels = labels.astype(np.int64)
        self._stats: DatasetStats = DatasetStats(
            labels=labels,
            counts=arrays["counts"],
            magnitudes=arrays["magnitudes"],
            **{name: about[name] for name in KINDS},
        )
        self.n_features: int | None = self._stats.n_features
        self.dtype = arrays["values"].dtype
        if about["feature_names"] is not None:
            self.feature_names = np.array(about["feature_names"], dtype=object)
        names = [source.get("name") for source in about["sources"] if isinstance(source, dict)]
        # The folder of standard input is temporary, and its name unknown to the user.
        self._name = str(names[0] if len(names) == 1 else path)
        self.size = sum(arrays[name].nbytes for name in PARTS)
        self._labels_checked = np.zeros(len(self._blocks), dtype=bool)
        if not self._arrays_fit():
            raise ValueError(
                f"{self.path} is damaged: the arrays are inconsistent; create the cache again"
            )

    def __repr__(self) -> str:
        stats = self._stats
        return f"<rows of {self.path}: {stats.n_rows} x {stats.n_features}>"

    def stats(self) -> DatasetStats:
        """Implement `RowBlocks.stats`, from the cache."""
        return self._stats

    def windows(self, n_features: int, order: tuple[int, int] | None) -> Iterator[Window]:
        """Implement `RowBlocks.windows`; an order shuffles blocks, then the rows of windows."""
        if n_features != self.n_features:
            raise ValueError(
                f"{self.path} has {self.n_features} features; got a model of {n_features}"
            )
        n_blocks = len(self._blocks) - 1
        size = 1
        blocks = np.arange(n_blocks)
        if order is not None:
            blocks = np.random.default_rng(order).permutation(n_blocks)
            size = self.window
        n_windows = -(-n_blocks // size)
        per_window = self.size / n_windows
        for number in range(n_windows):
            chosen = np.sort(blocks[number * size : (number + 1) * size]).tolist()
            self._check_unchanged()
            rows = self._rows(chosen)
            labels = self._labels(chosen)
            queries = None
            if self._stats.in_queries:
                queries = self._query_of_rows(chosen)
            yield Window(rows, labels, queries, number, round((number + 1) * per_window))
            if self.size > RELEASED:
                for block in chosen:
                    self._release(block)

    def unchecked(self) -> Iterator[tuple[str, Any]]:
        """Implement `RowBlocks.unchecked`; several files have the name of the cache."""
        X, bounds = self.whole()[0], self._blocks[:, 0].tolist()
        for first, stop in pairwise(bounds):
            yield self._name, X[first:stop]

    def outline(self) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
        """Implement `RowBlocks.outline`."""
        self._check_unchanged()
        labels: NDArray[Any] = self._files["labels"].array
        self._check_labels(labels)
        if self._stats.labels.dtype.kind == "i":
            labels = labels.astype(np.int64)
        queries = None
        if self._stats.in_queries:
            sizes = np.diff(self._queries, append=self._stats.n_rows)
            queries = np.repeat(np.arange(sizes.size), sizes)
        return labels, queries

    def whole(self) -> tuple[Any, NDArray[Any], NDArray[np.int64] | None]:
        """Implement `RowBlocks.whole` by memory-mapped arrays: CSR, labels and queries."""
        labels, queries = self.outline()
        values, columns, starts = (self._files[name].array for name in PARTS[:3])
        return csr_in_place(values, columns, starts, self._stats.n_features), labels, queries

    def _arrays_fit(self) -> bool:
        """Return whether the shapes of the arrays, and all bounds in them, are consistent."""
        stats, blocks = self._stats, self._blocks
        arrays = {name: file.array for name, file in self._files.items()}
        return bool(
            stats.n_rows >= 1
            and arrays["values"].shape == arrays["columns"].shape == (stats.n_values,)
            and arrays["starts"].shape == (stats.n_rows + 1,)
            and arrays["starts"][0] == 0
            and arrays["labels"].shape == (stats.n_rows,)
            and blocks.ndim == 2
            and blocks.shape[1] == 3
            and blocks[0].tolist() == [0, 0, 0]
            and blocks[-1].tolist() == [stats.n_rows, stats.n_values, self._queries.size]
            and (np.diff(blocks[:, 0]) >= 1).all()
            and (np.diff(blocks, axis=0) >= 0).all()
            and self._queries_fit()
            and stats.labels.ndim == 1
            and (np.diff(stats.labels) > 0).all()
            and stats.counts.shape == stats.labels.shape
            and (stats.counts >= 1).all()
            and stats.counts.sum() == stats.n_rows
            and stats.magnitudes.shape == (stats.n_features,)
            and ((stats.magnitudes >= 0) & (stats.magnitudes < np.inf)).all()
        )

    def _queries_fit(self) -> bool:
        """Return whether all queries have rows, and each block begins with a query."""
        if not self._stats.in_queries:
            return self._queries.size == 0
        if self._queries.ndim != 1 or self._queries.size == 0:
            return False
        starts, places = self._blocks[:-1, 0], self._blocks[:-1, 2]
        return bool(
            self._queries[0] == 0
            and (np.diff(self._queries) >= 1).all()
            and self._queries[-1] < self._stats.n_rows
            and places[-1] < self._queries.size
            and (self._queries[places] == starts).all()
        )

    def _check_unchanged(self) -> None:
        for name in PARTS:
            self._files[name].check_unchanged()

    def _check_labels(self, labels: NDArray[Any]) -> None:
        if not np.isin(labels, self._stats.labels).all():
            raise ValueError(
                f"{self.path / 'labels'}.npy is damaged: it has labels that distinct.npy lacks; "
                "create the cache again"
            )

    def _span(self, name: str, block: int) -> slice:
        """Return the slice of an array that belongs to a block."""
        (row, value, _), (row_stop, value_stop, _) = self._blocks[block : block + 2].tolist()
        if name in ("values", "columns"):
            return slice(value, value_stop)
        if name == "starts":
            return slice(row + 1, row_stop + 1)  # the leading 0 belongs to no block
        return slice(row, row_stop)

    def _release(self, block: int) -> None:
        for name in PARTS:
            release(self._files[name].array[self._span(name, block)])

    def _blocks_of(self, name: str, chosen: list[int]) -> NDArray[Any]:
        """Concatenate the parts of an array that belong to some blocks."""
        parts = [self._files[name].array[self._span(name, block)] for block in chosen]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _rows(self, chosen: list[int]) -> Rows:
        starts = [np.zeros(1, np.int64)]
        n_values = 0
        for block in chosen:
            span = self._span("values", block)
            block_starts = self._files["starts"].array[self._span("starts", block)]
            starts.append(block_starts + (n_values - span.start))
            n_values += span.stop - span.start
        values, columns = self._blocks_of("values", chosen), self._blocks_of("columns", chosen)
        rows = csr_rows(
            values,
            columns,
            np.concatenate(starts),
            self._stats.n_features,
            "X",
            self.allows_nan,
        )
        if not rows.canonical:
            raise ValueError(f"{self.path} is damaged: columns of a row do not ascend")
        return rows

    def _labels(self, chosen: list[int]) -> NDArray[Any]:
        labels = self._blocks_of("labels", chosen)
        if not self._labels_checked[chosen].all():
            self._check_labels(labels)
            self._labels_checked[chosen] = True
        return labels

    def _query_of_rows(self, chosen: list[int]) -> NDArray[np.int64]:
        """Return the index, within some blocks, of each row's query."""
        queries: list[NDArray[np.int64]] = []
        n_queries = 0
        for block in chosen:
            (_, _, query), (stop, _, query_stop) = self._blocks[block : block + 2].tolist()
            sizes = np.diff(self._queries[query:query_stop], append=stop)
            queries.append(np.repeat(np.arange(n_queries, n_queries + sizes.size), sizes))
            n_queries += sizes.size
        return queries[0] if len(queries) == 1 else np.concatenate(queries)


def read_description(path: Path) -> dict[str, Any]:
    """Return the contents of ``rows.json``; raise ValueError unless it is that of a row cache."""
    try:
        if not (path / DESCRIPTION).is_file():  # opening a pipe would block
            raise ValueError("the file is missing")
        about = json.loads((path / DESCRIPTION).read_text(encoding="utf-8"))
        if about["format"] != FORMAT or about["version"] != VERSION:
            raise ValueError(
                f"format must be {FORMAT!r} and version {VERSION}; got "
                f"{about['format']!r} and {about['version']!r}: create the cache again"
            )
        for name, kind in {**KINDS, "sources": list}.items():
            if type(about[name]) is not kind:
                raise ValueError(f"{name} must be of type {kind.__name__}; got {about[name]!r}")
        names = about["feature_names"]
        named = type(names) is list and all(type(name) is str for name in names)
        if names is not None and not (named and len(names) == about["n_features"]):
            raise ValueError(f"feature_names must name {about['n_features']} features")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{path} is not a row cache, or it is damaged: {DESCRIPTION}: {error}"
        ) from error
    return about


def is_cache(source: Any) -> bool:
    """Return whether a source of rows is the path of a row cache."""
    return not hasattr(source, "read") and os.path.isfile(os.path.join(source, DESCRIPTION))
