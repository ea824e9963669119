"""Rows of files, in memory or on disk."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import vstack

from rankcore._core.frames import frame_of
from rankcore._core.sources import RowBlocks
from rankcore.cli.options import Layout
from rankcore.cli.tables import Table, is_table, row_number
from rankcore.cli.terminal import ProgressBar
from rankcore.datasets import open_rows
from rankcore.datasets.letor import load
from rankcore.datasets.letor_blocks import Options
from rankcore.datasets.parquet_rows import ParquetRows, is_parquet

# Names of learners whose rows may have NaN.
TAKE_NAN = "ordinal-boost (of labels) or rankboost (of queries)"


@dataclass(frozen=True)
class Origin:
    """A file whose rows were read."""

    name: str
    n_rows: int
    columns: list[str] | None  # names of the features
    place: Callable[[int], str] = row_number  # where a row is, for an error


@dataclass(frozen=True)
class Rows:
    """Rows with their labels."""

    X: Any  # CSR, an array, or RowBlocks, which have their own labels and queries
    y: Any = None  # int64 if all labels are integers, otherwise float64
    qid: Any = None  # None if the file has no queries
    ids: Any = None  # document ids; None unless requested and present in some row
    weights: Any = None  # of the rows in a fit
    origin: tuple[Origin, ...] = ()  # of rows in memory that are those of files

    @property
    def on_disk(self) -> bool:
        """Whether rows are read a window at a time."""
        return isinstance(self.X, RowBlocks)

    @property
    def in_queries(self) -> bool:
        """Whether all rows have queries."""
        return self.X.stats().in_queries if self.on_disk else self.qid is not None

    @property
    def has_categories(self) -> bool:
        """Whether some feature is a column of categories."""
        frame = frame_of(self.X)
        return frame is not None and any(frame.kind(j) == "category" for j in range(frame.shape[1]))

    @property
    def has_nan(self) -> bool:
        """Whether some feature of rows in memory is NaN."""
        values = numbers_of(self.X, None)[1]
        return bool(np.isnan(values.data if hasattr(values, "indptr") else values).any())

    @property
    def origin_of_queries(self) -> str:
        """Sentence about the presence of queries, the reason for a default learner."""
        named = frame_of(self.X) is not None or (self.on_disk and self.X.feature_names is not None)
        if named:
            categories = "there are categories, and " if self.has_categories else ""
            return f"{categories}there is {'a' if self.in_queries else 'no'} column of queries"
        return f"{'every' if self.in_queries else 'no'} line has qid:"

    @property
    def n_rows(self) -> int | None:
        """Number of rows; None before a scan."""
        if self.on_disk:
            return self.X.stats().n_rows if self.X.has_stats else None
        return int(self.X.shape[0])

    def take(self, which: Any) -> Rows:
        """Return a subset of rows in memory."""
        qid, weights = (
            None if column is None else column[which] for column in (self.qid, self.weights)
        )
        return Rows(some_rows(self.X, which), self.y[which], qid, weights=weights)

    def weighted(self, path: Path | None) -> Rows:
        """Return these rows with the weights of a file, if there is one."""
        if path is None:
            return self
        if self.on_disk:
            raise ValueError(
                "--weights requires rows in memory, and these are read a window at a time: pass "
                "text files, without --stream and --cache"
            )
        from rankcore._core.queries import group_rows
        from rankcore.ranking.pairs import weights_of_rows

        try:
            with open(path, "rb") as stream:
                values = np.loadtxt(stream, ndmin=1)
            weights_by_row = weights_of_rows(values, group_rows(self.qid, self.y.size))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        return replace(self, weights=weights_by_row)

    def check_values(self, learner: str, nan: bool, *, scan: bool = False) -> None:
        """Raise ValueError, with the file, unless values are finite (or NaN).

        Of rows on disk they are read only to ``scan`` them.
        """
        if self.on_disk and not scan:
            return
        last, n_before = "", 0
        for origin, X in self._parts():
            n_before = n_before if origin.name == last else 0
            columns, X = numbers_of(X, origin.columns)
            values = X.data if hasattr(X, "indptr") else X
            wrong = np.isinf(values) if nan else ~np.isfinite(values)
            if wrong.any():
                i = int(np.flatnonzero(wrong.ravel())[0])
                row, what = _bad_value(X, i, columns, learner, nan)
                raise ValueError(f"{origin.name}, {origin.place(n_before + row)}: {what}")
            last, n_before = origin.name, n_before + X.shape[0]

    def _parts(self) -> Iterator[tuple[Origin, Any]]:
        """Return the files, and matrices of their rows."""
        if self.on_disk:
            for name, X in self.X.unchecked():
                yield Origin(name, X.shape[0], self.X.feature_names), X
        elif len(self.origin) < 2:
            origin = self.origin[0] if self.origin else Origin("the data", self.X.shape[0], None)
            yield origin, self.X
        else:
            first = 0
            for origin in self.origin:
                part = some_rows(self.X, slice(first, first + origin.n_rows))
                yield origin, part
                first += origin.n_rows

    def check_queries(self, data: str) -> None:
        """Raise ValueError if rows in memory have no queries; ``data`` is their file."""
        if self.qid is None and not self.on_disk:
            table = frame_of(self.X) is not None
            lack = "no column of queries" if table else "lines without qid:"
            hint = ": name the column with --qid" if table else ""
            raise ValueError(
                f"{title(data)} has {lack}, but a ranker compares the documents of a query{hint}"
            )


def _bad_value(
    X: Any, i: int, columns: Sequence[str] | None, learner: str, nan: bool
) -> tuple[int, str]:
    """Return the row of value i, which a learner rejects, and what is wrong with it."""
    if hasattr(X, "indptr"):
        value, column = X.data[i], int(X.indices[i])
        row = int(np.searchsorted(X.indptr, i, side="right")) - 1
    else:
        row, column = divmod(i, X.shape[1])
        value = X[row, column]
    what = "NaN" if np.isnan(value) else "infinity"
    hint = "impute it, or omit the row"
    if what == "NaN" and not nan:
        hint = f"impute it, or choose --model {TAKE_NAN}, which learn from rows with NaN"
    feature = str(column + 1) if columns is None else repr(columns[column])
    return (
        row,
        f"feature {feature} is {what}, and {learner} requires finite values: {hint}",
    )


def some_rows(X: Any, which: Any) -> Any:
    """Return some rows of a matrix or a frame, by number."""
    frame = frame_of(X)
    return X[which] if frame is None else frame.take(which)


def numbers_of(X: Any, columns: Sequence[str] | None) -> tuple[Sequence[str] | None, Any]:
    """Return the columns of numbers of a frame, with their names; a matrix as it is."""
    frame = frame_of(X)
    if frame is None:
        return columns, X
    numbers = [j for j in range(frame.shape[1]) if frame.kind(j) == "number"]
    values = [frame.values(j) for j in numbers]
    table = np.column_stack(values) if values else np.zeros((frame.shape[0], 0))
    return [frame.names[j] for j in numbers], table


def same_width(*parts: Rows) -> list[Rows]:
    """Return rows with the same features.

    Features that are 0 in all rows are added to matrices in place; frames must have the same
    columns, whose order becomes that of the first.
    """
    frames = [frame_of(part.X) for part in parts]
    tables = [frame for frame in frames if frame is not None]
    if tables:
        if len(tables) < len(frames):
            raise ValueError("pass either tables, such as CSV, or svmlight files, but not both")
        names = tables[0].names
        for other in tables[1:]:
            if set(other.names) != set(names):
                raise ValueError(
                    f"the tables have different columns: {', '.join(map(str, names))}, "
                    f"and {', '.join(map(str, other.names))}; name them with --columns"
                )
        return [replace(part, X=part.X[names]) for part in parts]
    width = max(part.X.stats().n_features if part.on_disk else part.X.shape[1] for part in parts)
    for some_rows in parts:
        if some_rows.on_disk:
            some_rows.X.widen(width)
        else:
            some_rows.X.resize((some_rows.X.shape[0], width))
    return list(parts)


def title(data: str) -> str:
    """Return the name of a data file in messages."""
    return "standard input" if data == "-" else data


def open_blocks(
    files: list[str], layout: Layout, cache: Path | None = None, dtype: str = "float64"
) -> RowBlocks:
    """Open rows on disk; write a cache of them if one is named."""
    sources: Any = [sys.stdin.buffer if name == "-" else name for name in files]
    label, qid, columns = layout.named
    width, _ = layout.width
    return open_rows(
        sources,
        n_features=width,
        zero_based=layout.zero_based,
        dtype=dtype,
        cache=cache,
        label=label,
        qid=qid,
        columns=columns,
    )


def read_many(files: list[str], layout: Layout, bar: ProgressBar) -> Rows:
    """Read files into memory and concatenate them."""
    parts = [read(path, layout, bar) for path in files]
    if len(parts) == 1:
        return parts[0]
    bare = [title(path) for path, part in zip(files, parts, strict=True) if part.qid is None]
    if bare and len(bare) < len(files):
        if frame_of(parts[0].X) is not None:
            raise ValueError(
                f"{bare[0]} has no column of queries, and other files have one: name it with --qid"
            )
        raise ValueError(f"{bare[0]} has lines without qid:, and other files have it in all lines")
    parts = same_width(*parts)
    return Rows(
        stacked([part.X for part in parts]),
        np.concatenate([part.y for part in parts]),
        None if bare else np.concatenate([part.qid for part in parts]),
        origin=tuple(origin for part in parts for origin in part.origin),
    )


def stacked(parts: list[Any]) -> Any:
    """Concatenate the rows of sparse matrices or of frames."""
    if frame_of(parts[0]) is None:
        return vstack(parts, format="csr")
    import pandas

    columns: dict[str, Any] = {}
    for name in parts[0].columns:
        values = np.concatenate([np.asarray(part[name]) for part in parts])
        by_category = any(hasattr(part[name].dtype, "categories") for part in parts)
        columns[name] = pandas.Categorical(values) if by_category else values
    return pandas.DataFrame(columns)


def read(data: str, layout: Layout, bar: ProgressBar) -> Rows:
    """Read a file, or standard input for ``-``, into memory.

    Comments are skipped. NaN and infinity are allowed here; learners check them.
    """
    if is_table(data, layout):
        layout.check_unnamed(data)
        whole = Table(data, layout)
        _check_width(data, whole.X.shape[1], layout)
        origin = Origin(data, whole.X.shape[0], list(whole.X.columns), whole.place)
        y = whole.y if whole.y.dtype.kind != "f" else _whole(whole.y)
        ids = whole.ids if layout.docid else None
        return Rows(whole.X, y, whole.qid, ids, origin=(origin,))
    if data != "-" and is_parquet(data):
        layout.check_unnamed(data)
        label, qid, columns = layout.named
        table = ParquetRows([data], np.float64, 1, label, qid, columns, layout.labelled)
        X, y, queries, ids = table.load()
        _check_width(data, X.shape[1], layout)
        origin = Origin(data, X.shape[0], table.columns)
        return Rows(X, _whole(y), queries, ids if layout.docid else None, origin=(origin,))
    options = Options(zero_based=layout.zero_based, docid=layout.docid, ensure_all_finite=False)
    source: Any = sys.stdin.buffer if data == "-" else data
    loaded = load(source, options, title(data), bar.reading)
    X = loaded.X
    width, expected = layout.width
    if width is not None and X.shape[1] > width:
        raise ValueError(
            f"{title(data)} must have at most {width} features, as {expected}; got {X.shape[1]}"
        )
    # A file lacks trailing features that are zero in all of its rows.
    X.resize((X.shape[0], width or max(1, X.shape[1])))
    origin = Origin(title(data), X.shape[0], layout.listed_names)
    return Rows(X, _whole(loaded.y), loaded.qid, loaded.docid, origin=(origin,))


def _check_width(data: str, n_features: int, layout: Layout) -> None:
    if layout.features is not None and n_features != layout.features:
        raise ValueError(
            f"{data} has {n_features} columns of features; {layout.expected} has {layout.features}"
        )


def _whole(y: np.ndarray) -> np.ndarray:
    """Convert labels to int64 if all are integers."""
    if (y == np.floor(y)).all() and np.abs(y).max(initial=0) < 2**53:
        return y.astype(np.int64)
    return y
