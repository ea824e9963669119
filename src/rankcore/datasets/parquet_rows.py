"""Parquet files, read in each pass in batches of their row groups."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.ids import as_names
from rankcore._core.queries import kind_of_ids
from rankcore.datasets.file_rows import BLOCK_ROWS, BLOCK_VALUES, FileRows, Part, Piece
from rankcore.datasets.letor_blocks import csr

MAGIC = b"PAR1"
LABEL = "label"
# Default names of the query column.
QUERIES = ("qid", "query", "query_id")
# Column of document ids, for runs.
DOCID = "docid"
# Values decoded together: a call per column costs as much as some thousand values.
DECODED_VALUES = 2 * BLOCK_VALUES
# Bytes of a column read from the file at a time, so that memory does not depend on the length
# of row groups.
BUFFER = 1 << 16


def is_parquet(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is that of a Parquet file, by its first bytes."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def has_words(path: str, column: str) -> bool:
    """Return whether a Parquet file has a column of this name that holds text."""
    arrow = pyarrow_of(path)
    types = arrow.types
    try:
        schema = import_module("pyarrow.parquet").read_schema(path)
    except arrow.ArrowException:  # which reading raises again, with the path
        return False
    if schema.names.count(column) != 1:
        return False
    kind = schema.field(column).type
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def parquet_files(folder: str | os.PathLike[str]) -> list[str]:
    """List Parquet files in a directory; names that begin with "." or "_" are skipped."""
    with os.scandir(folder) as entries:
        paths = [entry.path for entry in entries if entry.name[0] not in "._" and entry.is_file()]
    return sorted(os.fsdecode(path) for path in paths if is_parquet(path))


def pyarrow_of(path: str) -> Any:
    """Import pyarrow with ``pyarrow.parquet``; without it, raise ValueError that names a file."""
    try:
        import_module("pyarrow.parquet")
    except ImportError:
        raise ValueError(
            f"{path} is a Parquet file, which requires pyarrow: pip install 'rankcore[parquet]'"
        ) from None
    return import_module("pyarrow")


@dataclass(frozen=True)
class _Batch:
    """Decoded rows of a file."""

    X: NDArray[Any]
    labels: NDArray[np.float64]
    starts: NDArray[np.bool_] | None  # whether a query starts with the row
    bytes_read: int  # of all files, up to the last row

    def rows(self, first: int, stop: int) -> _Batch:
        """Return the rows first .. stop - 1."""
        starts = None if self.starts is None else self.starts[first:stop]
        return _Batch(self.X[first:stop], self.labels[first:stop], starts, self.bytes_read)


def _part(batches: list[_Batch]) -> Part:
    """Concatenate batches of whole queries."""
    X = _concatenate([batch.X for batch in batches])
    labels = _concatenate([batch.labels for batch in batches])
    starts = [batch.starts for batch in batches if batch.starts is not None]
    queries = np.cumsum(_concatenate(starts)) - 1 if starts else None
    return Part(_csr(X), labels, queries, batches[-1].bytes_read)


def _concatenate(arrays: list[NDArray[Any]]) -> NDArray[Any]:
    """Concatenate arrays; a single one is not copied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


class ParquetRows(FileRows):
    """Rows of Parquet files: columns of labels, features and possibly queries.

    ``label``, ``qid`` and ``columns`` are column names; None for the defaults, and for all other
    columns but that of document ids as features. Unless ``labelled``, missing labels are 0.

    All values of a row are stored, including zeros, so that sums have the order of a dense
    table. Memory: a window, and three times `DECODED_VALUES`.
    """

    def __init__(
        self,
        paths: Sequence[str],
        dtype: Any,
        window: int,
        label: str | None,
        qid: str | None,
        columns: Sequence[str] | None,
        labelled: bool = True,
    ) -> None:
        self._arrow = pyarrow_of(paths[0])
        with self._opened(paths[0]) as file:
            names: list[str] = file.schema_arrow.names
        self.label: str | None = LABEL if label is None else label
        if not labelled and self.label not in names:
            self.label = None
        self.qid = qid or next((name for name in QUERIES if name in names), None)
        taken = self._taken
        if columns is None:
            self.columns = [name for name in names if name not in (*taken, DOCID)]
        else:
            self.columns = as_names(columns, "columns")
        if len({*self.columns, *taken}) < len(self.columns) + len(taken):
            raise ValueError(
                "the columns of features, labels and queries must be different ones; got "
                f"{', '.join([*taken, *self.columns])}"
            )
        if not self.columns:
            raise ValueError(f"{paths[0]} has no columns of features besides {', '.join(taken)}")
        super().__init__(paths, sum(map(os.path.getsize, paths)), dtype, len(self.columns), window)
        self.feature_names = np.array(self.columns, dtype=object)

    @property
    def _taken(self) -> list[str]:
        """Columns that are not features."""
        return [name for name in (self.label, self.qid) if name is not None]

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that determine the rows; see `FileRows.settings`."""
        columns = {"label": self.label, "qid": self.qid, "features": self.columns}
        return {"zero_based": False, "dtype": self.dtype.name, "columns": columns}

    def pieces(self) -> Iterator[Piece]:
        """Implement `FileRows.pieces`."""
        d = len(self.columns)
        n = max(1, BLOCK_VALUES // d)
        numbers = np.tile(np.arange(d, dtype=np.int32), n)
        for batch in self._batches():
            for first in range(0, len(batch.X), n):
                values = batch.X[first : first + n].ravel()
                labels = batch.labels[first : first + values.size // d]
                in_queries = batch.starts is not None
                yield Piece(labels, numbers[: values.size], values, in_queries, batch.bytes_read)

    def parts(self, n_features: int | None, n_values: int, n_rows: int) -> Iterator[Part]:
        """Implement `FileRows.parts`."""
        d = len(self.columns)
        full = min(-(-n_values // d), n_rows)
        rest: list[_Batch] = []  # rows that are in no part yet
        n_rest = 0
        for batch in self._batches():
            n_rows = len(batch.X)
            first = 0
            while True:
                stop = max(first, first + full - n_rest)
                if batch.starts is not None and stop < n_rows:
                    ahead = np.flatnonzero(batch.starts[stop:])
                    stop = stop + int(ahead[0]) if ahead.size else n_rows
                if stop >= n_rows:
                    break
                yield _part([*rest, batch.rows(first, stop)])
                rest = []
                n_rest = 0
                first = stop
            rest.append(batch.rows(first, n_rows))
            n_rest += n_rows - first
        if n_rest:
            yield _part(rest)

    @contextmanager
    def _undamaged(self, path: str, *others: type[Exception]) -> Iterator[None]:
        """Convert errors in the body, such as Arrow's, to ValueError."""
        try:
            yield
        except (self._arrow.ArrowException, *others) as error:
            raise ValueError(f"{path} is damaged, or pyarrow cannot read it: {error}") from error

    def _opened(self, path: str) -> Any:
        """Open a file with a read buffer for each column."""
        parquet = import_module("pyarrow.parquet")
        with self._undamaged(path):
            return closing(
                parquet.ParquetFile(
                    path, buffer_size=BUFFER, pre_buffer=False, page_checksum_verification=True
                )
            )

    def _batches(self) -> Iterator[_Batch]:
        """Yield the rows of all files; raise ValueError if those of a query are not contiguous."""
        seen: set[Any] = set()
        last: Any = None
        kind = None
        before = 0
        n_rows = max(1, min(DECODED_VALUES // len(self.columns), BLOCK_ROWS))
        for path in map(str, self.sources):
            size = os.path.getsize(path)
            with self._opened(path) as file:
                names = file.schema_arrow.names
                wanted = self._wanted(path, names)
                total = max(file.metadata.num_rows, 1)
                n = 0
                for batch in self._decoded(file, path, n_rows, wanted):
                    X = self._features(batch, path)
                    labels = self._labels(batch, path)
                    starts = None
                    if self.qid is not None:
                        queries = self._ids(batch, self.qid, path)
                        if kind not in (None, kind_of_ids(queries)):
                            raise ValueError(
                                f"{path}: column {self.qid!r} holds {kind_of_ids(queries)}, and in "
                                f"the files before it {kind}; query ids must be of one kind"
                            )
                        kind = kind_of_ids(queries)
                        starts = np.empty(len(queries), dtype=np.bool_)
                        starts[0] = queries[0] != last
                        starts[1:] = queries[1:] != queries[:-1]
                        for row in np.flatnonzero(starts).tolist():
                            if queries[row] in seen:
                                raise ValueError(
                                    f"{path}, row {n + row}: query {queries[row]} continues after "
                                    "another one started; the rows of a query must be contiguous: "
                                    f"sort the table by {self.qid}"
                                )
                            seen.add(queries[row])
                        last = queries[-1]
                    n += len(X)
                    yield _Batch(X, labels, starts, before + size * n // total)
            before += size

    def _wanted(self, path: str, names: list[str]) -> list[str]:
        """Return the columns to read among those found."""
        wanted = [*self.columns, *self._taken]
        for name in wanted:
            if names.count(name) != 1:
                some = names if len(names) < 9 else [*names[:4], "...", *names[-4:]]
                raise ValueError(
                    f"{path} has {names.count(name) or 'no'} columns named {name!r}, of which one "
                    f"is required; it has {', '.join(some)}: name columns of labels and queries "
                    "(label=, qid=; --label, --qid)"
                )
        return wanted

    def load(self) -> tuple[Any, NDArray[np.float64], NDArray[Any] | None, NDArray[Any] | None]:
        """Read all rows of the first file: X, labels, queries and document ids."""
        path = str(self.sources[0])
        with self._opened(path) as file:
            names = file.schema_arrow.names
            wanted = self._wanted(path, names)
            has_docids = DOCID in names and DOCID not in wanted
            with self._undamaged(path, OSError):
                table = file.read([*wanted, *([DOCID] if has_docids else [])]).combine_chunks()
        if not table.num_rows:
            raise ValueError(f"{path} holds no examples")
        batch = table.to_batches()[0]
        X = self._features(batch, path)
        labels = self._labels(batch, path)
        queries = ids = None
        if self.qid is not None:
            queries = self._ids(batch, self.qid, path)
            queries = queries.astype(str) if queries.dtype == object else queries
        if has_docids:
            ids = self._ids(batch, DOCID, path).astype(str)
        return _csr(X), labels, queries, ids

    def _decoded(self, file: Any, path: str, n_rows: int, columns: list[str]) -> Iterator[Any]:
        """Yield the nonempty batches of a file."""
        with self._undamaged(path, OSError):
            batches = file.iter_batches(n_rows, columns=columns)
        while True:
            with self._undamaged(path, OSError):
                batch = next(batches, None)
            if batch is None:
                return
            if batch.num_rows:
                yield batch

    def _features(self, batch: Any, path: str) -> NDArray[Any]:
        """Return a dense table of the features; a missing value is NaN."""
        arrow = self._arrow
        types = self._arrow.types
        columns = []
        wide = arrow.int64(), arrow.uint64()
        for name in self.columns:
            column = batch.column(name)
            kind = batch.column(name).type
            if types.is_float16(kind):  # which Arrow does not cast
                column = arrow.array(column.to_numpy(zero_copy_only=False).astype(np.float32))
            elif types.is_boolean(kind) or types.is_decimal(kind) or kind in wide:
                column = _as_float64(arrow, column, name, path)
            elif not (types.is_integer(kind) or types.is_floating(kind)):
                raise ValueError(
                    f"{path}: column {name!r} is of type {kind}; features must be numbers: encode "
                    "it, or name the columns of features (columns=, --columns)"
                )
            columns.append(column)
        table = arrow.RecordBatch.from_arrays(columns, self.columns)
        dense = table.to_tensor(null_to_nan=True, row_major=True).to_numpy()
        return np.ascontiguousarray(dense, self.dtype)

    def _labels(self, batch: Any, path: str) -> NDArray[np.float64]:
        if self.label is None:
            return np.zeros(batch.num_rows)
        types = self._arrow.types
        column = batch.column(self.label)
        name = self.label
        kind = column.type
        number = types.is_integer(kind) or types.is_floating(kind)
        if not (number or types.is_boolean(kind) or types.is_decimal(kind)):
            raise ValueError(
                f"{path}: labels must be numbers; column {name!r} is of type {kind}: replace them "
                "by 0, 1, .. in their order, or read the table with pandas and fit it with "
                "classes="
            )
        if column.null_count:
            raise ValueError(f"{path}: {column.null_count} labels are missing in column {name!r}")
        cast = _as_float64(self._arrow, column, name, path)
        labels: NDArray[np.float64] = cast.to_numpy(zero_copy_only=False)
        if not np.isfinite(labels).all():
            odd = labels[~np.isfinite(labels)][0]
            raise ValueError(f"{path}: labels must be finite; column {name!r} has {odd}")
        return labels

    def _ids(self, batch: Any, name: str, path: str) -> NDArray[Any]:
        arrow = self._arrow
        column = batch.column(name)
        kind, missing = column.type, column.null_count
        if arrow.types.is_nested(kind):
            raise ValueError(
                f"{path}: ids must be numbers or text; column {name!r} is of type {kind}"
            )
        if arrow.types.is_floating(kind):
            missing = int(np.isnan(column.to_numpy(zero_copy_only=False)).sum())
        if missing:
            raise ValueError(f"{path}: {missing} queries are missing in column {name!r}")
        try:
            if arrow.types.is_dictionary(kind):
                column = column.dictionary_decode()
            ids: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        except arrow.ArrowException as error:
            raise ValueError(
                f"{path}: column {name!r} of type {column.type} cannot be read as ids: {error}"
            ) from error
        return ids


def _csr(X: NDArray[Any]) -> Any:
    """Build a sparse matrix that stores all values of a dense one."""
    n, d = X.shape
    columns = np.tile(np.arange(d, dtype=np.int32), n)
    return csr(X.ravel(), columns, np.arange(0, n * d + 1, d), d)


def _as_float64(arrow: Any, column: Any, name: str, path: str) -> Any:
    """Convert a column to float64; raise ValueError for integers that float64 cannot represent."""
    if arrow.types.is_boolean(column.type):
        column = column.cast(arrow.uint8())
    try:
        return column.cast(arrow.float64())
    except arrow.ArrowException as error:
        raise ValueError(
            f"{path}: column {name!r} of type {column.type} has numbers that float64 cannot hold, "
            f"such as integers beyond 2**53: {error}"
        ) from error
