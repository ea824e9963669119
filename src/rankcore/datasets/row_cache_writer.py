"""Atomic writer of row caches."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rankcore.datasets.file_rows import BLOCK_ROWS, BLOCK_VALUES, FileRows, Piece, collect_stats
from rankcore.datasets.row_cache import (
    DESCRIPTION,
    DTYPES,
    FORMAT,
    KINDS,
    VERSION,
    is_cache,
)
from rankcore.datasets.streams import Source, title

# Bytes of a header of NumPy's format, for any length of the array.
HEADER = 128


class _Growing:
    """An array file whose length is known only at the end."""

    def __init__(self, path: Path, dtype: Any, width: int = 0) -> None:
        self.dtype = np.dtype(dtype)
        self.width = width
        self.n = 0
        self.file: BinaryIO = open(path, "wb")  # noqa: SIM115
        self.file.write(b"\0" * HEADER)

    def add(self, values: NDArray[Any]) -> None:
        """Append values."""
        self.file.write(np.ascontiguousarray(values, self.dtype).data.cast("B"))
        self.n += len(values)

    def finish(self) -> None:
        """Write the header and flush to disk."""
        shape = (self.n, self.width) if self.width else (self.n,)
        header = io.BytesIO()
        form = {"descr": self.dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(header, form)
        assert header.tell() == HEADER
        self.file.seek(0)
        self.file.write(header.getvalue())
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()


def source_stamps(sources: Sequence[Source]) -> list[dict[str, Any]]:
    """Return sizes and times of files, by which changes are detected."""
    stamps: list[dict[str, Any]] = []
    for source in sources:
        if hasattr(source, "read"):
            stamps.append({"name": title(source)})
            continue
        status = os.stat(source)
        path = os.path.abspath(os.fsdecode(source))
        stamps.append({"name": path, "size": status.st_size, "mtime_ns": status.st_mtime_ns})
    return stamps


def write_cache(files: FileRows, path: str | os.PathLike[str]) -> None:
    """Read files into a new row cache, a folder that is complete or absent.

    Another process may create the same cache concurrently; anything else at ``path`` is an error.
    """
    target = Path(os.path.realpath(path))
    if target.exists():
        raise FileExistsError(f"{path} exists already: choose another directory, or delete it")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be created: there is no folder {target.parent}")
    with TemporaryDirectory(prefix=".rankcore-", dir=target.parent) as folder:
        made = Path(folder, "rows")
        made.mkdir()
        try:
            _write(files, made)
            os.rename(made, target)
        except OSError as error:
            if error.filename is None:  # an error of writing
                raise OSError(error.errno, error.strerror, str(target)) from error
            if not is_cache(target):  # otherwise another process has made it meanwhile
                raise


def _append_rows(source: FileRows, files: dict[str, _Growing]) -> Iterator[Piece]:
    """Append all rows to the arrays, and yield them to collect their statistics."""
    files["starts"].add(np.zeros(1, dtype=np.int64))
    files["blocks"].add(np.zeros((1, 3), dtype=np.int64))
    n_values = 0
    parts = source.parts(source.n_features, BLOCK_VALUES, BLOCK_ROWS)
    for part in parts:
        X = part.X
        n_rows = files["labels"].n
        files["values"].add(X.data)
        files["columns"].add(X.indices)
        files["starts"].add(X.indptr[1:].astype(np.int64) + n_values)
        files["labels"].add(part.labels)
        if part.queries is not None:
            first = np.flatnonzero(np.diff(part.queries, prepend=-1))
            files["queries"].add(first + n_rows)
        n_values += X.nnz
        bounds = [n_rows + part.labels.size, n_values, files["queries"].n]
        files["blocks"].add(np.array([bounds]))
        in_queries = part.queries is not None
        yield Piece(part.labels, X.indices, X.data, in_queries, part.bytes_read)


def _write(source: FileRows, folder: Path) -> None:
    stamps = source_stamps(source.sources)
    kinds = {name: DTYPES[name][-1] for name in DTYPES} | {"values": source.dtype.name}
    widths = {"blocks": 3}
    files: dict[str, _Growing] = {}
    try:
        for name, kind in kinds.items():
            files[name] = _Growing(folder / f"{name}.npy", kind, widths.get(name, 0))
        name = title(source.sources[0])
        stats = collect_stats(_append_rows(source, files), source.n_features, source.size, name)
        files["magnitudes"].add(stats.magnitudes)
        files["distinct"].add(stats.labels)
        files["counts"].add(stats.counts)
    finally:
        for file in files.values():
            file.finish()
    names = source.feature_names
    description = {
        "format": FORMAT,
        "version": VERSION,
        **{name: getattr(stats, name) for name in KINDS},
        "feature_names": None if names is None else names.tolist(),
        **source.settings,
        "sources": stamps,
    }
    with open(folder / DESCRIPTION, "w", encoding="utf-8") as written:
        json.dump(description, written, indent=1)
        written.flush()
        os.fsync(written.fileno())
