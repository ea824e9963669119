"""Row caches: directories of plain array files, written once and memory-mapped.

``rows.json`` describes the cache, with a CRC-32 of itself and of each small array; ``values.npy``,
``columns.npy``, ``starts.npy`` and ``labels.npy`` are a CSR matrix and its labels, ``queries.npy``
has the first row of each query, ``blocks.npy`` the first row, value and query of each block and
``checksums.npy`` the CRC-32 of its part of the first four. The arrays are in NumPy's format.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import weakref
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.disk_arrays import release
from rankcore._core.kernels import csr_in_place
from rankcore._core.numbers import power_of_two
from rankcore._core.opened import opened
from rankcore._core.replacing import Workshop
from rankcore._core.sources import Facts, RowBlocks, Window
from rankcore._ext.rows import Rows, csr_rows

FORMAT, VERSION = "rankcore row cache", 4
DESCRIPTION = "rows.json"
# Arrays that are divided into blocks, in the order of their checksums.
PARTS = ("values", "columns", "starts", "labels")
DTYPES = {
    "values": ("float32", "float64"),
    "columns": ("int32",),
    "starts": ("int64",),
    "labels": ("float64",),
    "queries": ("int64",),
    "blocks": ("int64",),
    "checksums": ("uint32",),
    "magnitudes": ("float64",),
    "deviations": ("float64",),
    "distinct": ("float64",),
    "counts": ("int64",),
}
# Facts about the rows in the description.
KINDS = {
    "n_rows": int,
    "n_features": int,
    "n_values": int,
    "n_nonzero": int,
    "in_queries": bool,
    "mean_square": float,
}
# Mapped bytes above which pages are released after reading.
RELEASED = 1 << 26
# Rows whose checked blocks are kept between passes, at 8 bytes per row.
KEPT_ROWS = 1 << 22


def own_checksum(description: dict[str, Any]) -> int:
    """CRC-32 of a description without its checksum."""
    content = {name: value for name, value in description.items() if name != "checksum"}
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())


class _Mapped:
    """A memory-mapped array file."""

    def __init__(self, path: Path, dtypes: Sequence[str]) -> None:
        if not path.is_file():  # opening a pipe would block
            raise ValueError(f"{path} is missing or not a file: create the cache again")
        with opened(path) as file:
            try:
                if np.lib.format.read_magic(file) != (1, 0):
                    raise ValueError("it has another version of NumPy's format")
                shape, by_column, dtype = np.lib.format.read_array_header_1_0(file)
                begin, size = file.tell(), os.fstat(file.fileno()).st_size
                if by_column or dtype.name not in dtypes or len(shape) > 2:
                    raise ValueError(f"it has dtype {dtype} and shape {shape}")
                if min(shape) < 0 or size != begin + math.prod(shape) * dtype.itemsize:
                    raise ValueError("it does not have the length in its header")
            except Exception as error:  # the header parser may raise almost any exception
                raise ValueError(f"{path} is damaged: {error}") from error
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.array = np.frombuffer(self._map, dtype, offset=begin).reshape(shape)

    def checksum(self) -> int:
        """The CRC-32 of the file."""
        return zlib.crc32(self._map)


class CachedRows(RowBlocks):
    """Rows of a row cache, a directory made by `write_cache`; ``temporary`` is removed with it.

    Raises ValueError if it is not a row cache, of a newer version, or damaged. The checksum of a
    block is compared on its first read. Column indices and values are checked whenever a block is
    read, but only once for the first `KEPT_ROWS` rows if there is no order.

    Memory: a window, 40 bytes per block of 3 MiB, and 8 per kept row.
    """

    surveyed = True

    def __init__(
        self, path: str | os.PathLike[str], window: int, temporary: Workshop | None = None
    ) -> None:
        self.path, self.window = Path(path), window
        if temporary is not None:
            weakref.finalize(self, temporary.close)
        self.description = about = read_description(self.path)
        self._arrays = {name: _Mapped(self.path / f"{name}.npy", DTYPES[name]) for name in PARTS}
        small = {name: self._small(name) for name in DTYPES if name not in PARTS}
        self._blocks, self._sums = small["blocks"], small["checksums"]
        self._queries = small["queries"]
        labels = small["distinct"]
        if (labels == np.floor(labels)).all() and np.abs(labels).max(initial=0) < 2**53:
            labels = labels.astype(np.int64)
        self._facts: Facts = Facts(
            labels=labels,
            counts=small["counts"],
            magnitudes=small["magnitudes"],
            deviations=small["deviations"],
            **{name: about[name] for name in KINDS},
        )
        self.n_features: int | None = self._facts.n_features
        self.dtype = self._arrays["values"].array.dtype
        if about["feature_names"] is not None:
            self.feature_names = np.array(about["feature_names"], dtype=object)
        self.size = sum(one.array.nbytes for one in self._arrays.values())
        self._known = np.zeros(len(self._sums), dtype=bool)
        self._kept: dict[int, Rows] = {}
        self._check_form()

    def __repr__(self) -> str:
        known = self._facts
        return f"<rows of {self.path}: {known.n_rows} x {known.n_features}>"

    def facts(self) -> Facts:
        """As `RowBlocks.facts`, from the cache."""
        return self._facts

    def windows(
        self, n_features: int, order: tuple[int, int] | None, first: int
    ) -> Iterator[Window]:
        """As `RowBlocks.windows`; with an order, blocks are shuffled, then the rows of windows."""
        if n_features != self.n_features:
            raise ValueError(
                f"{self.path} has {self.n_features} features; found a model of {n_features}"
            )
        n_blocks, size = len(self._sums), 1
        blocks = np.arange(n_blocks)
        if order is not None:
            blocks, size = np.random.default_rng(order).permutation(n_blocks), self.window
        n_windows = -(-n_blocks // size)
        per_window = self.size / n_windows
        for number in range(first, n_windows):
            chosen = np.sort(blocks[number * size : (number + 1) * size]).tolist()
            labels, queries = self._labels(chosen)
            done = round((number + 1) * per_window)
            yield Window(self._rows(chosen), labels, queries, number, done)
            if self.size > RELEASED:
                for block in chosen:
                    self._release(block)

    def outline(self) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
        """As `RowBlocks.outline`; checksums of labels are compared, as for rows."""
        labels: NDArray[Any] = self._arrays["labels"].array
        if self._facts.labels.dtype.kind == "i":
            labels = labels.astype(np.int64)
        queries = None
        if self._facts.in_queries:
            sizes = np.diff(self._queries, append=self._facts.n_rows)
            queries = np.repeat(np.arange(sizes.size), sizes)
        return labels, queries

    def whole(self) -> tuple[Any, NDArray[Any], NDArray[np.int64] | None]:
        """As `RowBlocks.whole`: a CSR matrix of the memory-mapped arrays, labels and queries."""
        self.check()
        data, columns, starts = (
            self._arrays[name].array for name in ("values", "columns", "starts")
        )
        X = csr_in_place(data, columns, starts, self._facts.n_features, one_type=False)
        return X, *self.outline()

    def check(self) -> None:
        """Compare all checksums; raise ValueError if a block is damaged."""
        for block in range(len(self._sums)):
            self._check(block)
            if self.size > RELEASED:
                self._release(block)

    def _small(self, name: str) -> NDArray[Any]:
        file = self.path / f"{name}.npy"
        mapped = _Mapped(file, DTYPES[name])
        if mapped.checksum() != self.description["checksums"].get(name):
            raise ValueError(f"{file} is damaged: its checksum differs; make the cache again")
        return mapped.array

    def _check_form(self) -> None:
        about, arrays = self.description, self._arrays
        sizes = [arrays[name].array.shape for name in PARTS]
        n_rows, n_values = about["n_rows"], about["n_values"]
        steps = np.diff(self._blocks, axis=0)
        if (
            n_rows < 1
            or sizes != [(n_values,), (n_values,), (n_rows + 1,), (n_rows,)]
            or self._blocks.shape != (len(self._sums) + 1, 3)
            or self._sums.shape[1:] != (len(PARTS),)
            or self._queries.ndim != 1
            or self._blocks[-1].tolist() != [n_rows, n_values, self._queries.size]
            or self._blocks[0].any()
            or arrays["starts"].array[0] != 0  # of empty blocks
            or (steps < 0).any()
            or (steps[:, 0] < 1).any()
            or not self._has_whole_queries()
        ):
            raise ValueError(f"{self.path} is damaged: its arrays do not fit together")
        self._check_survey()

    def _has_whole_queries(self) -> bool:
        """Whether queries are nonempty, and each block starts with a query."""
        if not self._facts.in_queries:
            return self._queries.size == 0
        if self._queries.size == 0 or self._queries[0] or (np.diff(self._queries) < 1).any():
            return False
        starts, places = self._blocks[:-1, 0], self._blocks[:-1, 2]
        if self._queries[-1] >= self._facts.n_rows or places[-1] >= self._queries.size:
            return False
        return bool((self._queries[places] == starts).all())

    def _check_survey(self) -> None:
        known = self._facts
        if (
            known.labels.ndim != 1
            or known.counts.shape != known.labels.shape
            or not np.isfinite(known.labels).all()
            or (np.diff(known.labels) <= 0).any()
            or (known.counts < 1).any()
            or sum(known.counts.tolist()) != known.n_rows  # in Python, without overflow
            or not 0 <= known.n_nonzero <= known.n_values
            or known.magnitudes.shape != (known.n_features,)
            or not (known.magnitudes >= 0).all()
            or known.deviations.shape != (known.n_features,)
            or not ((known.deviations >= 0) & np.isfinite(known.deviations)).all()
            or known.mean_square != power_of_two(known.mean_square)
        ):
            raise ValueError(
                f"{self.path} is damaged: its statistics of labels and magnitudes are inconsistent"
            )

    def _spans(self, block: int) -> list[tuple[int, int]]:
        """Start and end of the parts of a block, in the order of `PARTS`."""
        (row, value, _), (row_stop, value_stop, _) = self._blocks[block : block + 2].tolist()
        rows, values = (row, row_stop), (value, value_stop)
        return [values, values, (row + 1, row_stop + 1), rows]  # the leading 0 belongs to no block

    def _check(self, block: int) -> None:
        if self._known[block]:
            return
        for name, (first, last), expected in zip(
            PARTS, self._spans(block), self._sums[block].tolist(), strict=True
        ):
            if zlib.crc32(self._arrays[name].array[first:last].data) != expected:
                raise ValueError(
                    f"{self.path / name}.npy is damaged in block {block}: make the cache again"
                )
        row, row_stop = self._blocks[block : block + 2, 0].tolist()
        if not np.isin(self._arrays["labels"].array[row:row_stop], self._facts.labels).all():
            raise ValueError(
                f"{self.path / 'labels'}.npy is damaged in block {block}: it has labels that "
                "distinct.npy lacks; make the cache again"
            )
        self._known[block] = True

    def _release(self, block: int) -> None:
        for name, span in zip(PARTS, self._spans(block), strict=True):
            release(self._arrays[name].array[slice(*span)])

    def _rows(self, chosen: list[int]) -> Rows:
        if len(chosen) == 1 and chosen[0] in self._kept:
            return self._kept[chosen[0]]
        values, columns, starts = [], [], [np.zeros(1, np.int64)]
        n_values = 0
        for block in chosen:
            self._check(block)
            of_values, _, of_starts, _ = self._spans(block)
            values.append(self._arrays["values"].array[slice(*of_values)])
            columns.append(self._arrays["columns"].array[slice(*of_values)])
            starts.append(self._arrays["starts"].array[slice(*of_starts)] + n_values - of_values[0])
            n_values += of_values[1] - of_values[0]
        parts = _joined(values), _joined(columns), np.concatenate(starts)
        rows = csr_rows(*parts, self._facts.n_features, "X")
        if not rows.canonical:
            raise ValueError(f"{self.path} is damaged: columns of a row do not ascend")
        if len(chosen) == 1 and self._blocks[chosen[0] + 1, 0] <= KEPT_ROWS:
            self._kept[chosen[0]] = rows
        return rows

    def _labels(self, chosen: list[int]) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
        """Labels of some blocks, and an index of each row's query."""
        labels, queries, n_queries = [], [], 0
        for block in chosen:
            self._check(block)
            (row, _, query), (stop, _, query_stop) = self._blocks[block : block + 2].tolist()
            labels.append(self._arrays["labels"].array[row:stop])
            if self._facts.in_queries:
                sizes = np.diff(self._queries[query:query_stop], append=stop)
                queries.append(np.repeat(np.arange(sizes.size) + n_queries, sizes))
                n_queries += sizes.size
        return _joined(labels), _joined(queries) if self._facts.in_queries else None


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def read_description(path: Path) -> dict[str, Any]:
    """Contents of ``rows.json``; raise ValueError unless it is that of a row cache."""
    try:
        if not (path / DESCRIPTION).is_file():  # opening a pipe would block
            raise ValueError("there is no such file")
        about = json.loads((path / DESCRIPTION).read_text(encoding="utf-8"))
        if about["format"] != FORMAT:
            raise ValueError(f"its format is {about['format']!r}")
        if about["version"] != VERSION:
            raise ValueError(
                f"it has version {about['version']!r}; this rankcore reads {VERSION}: make it again"
            )
        if about["checksum"] != own_checksum(about):
            raise ValueError("its checksum does not match its content")
        for name, kind in {**KINDS, "checksums": dict, "sources": list}.items():
            if type(about[name]) is not kind:
                raise ValueError(f"its {name} is {about[name]!r}")
        names = about["feature_names"]
        named = type(names) is list and all(type(name) is str for name in names)
        if names is not None and not (named and len(names) == about["n_features"]):
            raise ValueError(f"its feature_names are not those of {about['n_features']} features")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{path} is not a row cache, or it is damaged: {DESCRIPTION}: {error}"
        ) from error
    return about


def is_cache(source: Any) -> bool:
    """Whether a source of rows is the path of a row cache."""
    return not hasattr(source, "read") and os.path.isfile(os.path.join(source, DESCRIPTION))
