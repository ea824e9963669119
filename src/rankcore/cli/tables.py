"""Tables of the command line as data frames: CSV, and Parquet with columns of categories."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rankcore._core.frames import frame_of
from rankcore.cli.options import Layout
from rankcore.datasets.parquet_rows import DOCID, LABEL, QUERIES, is_parquet

# Endings of text tables, which may be followed by one of a compressed file.
TEXT = (".csv", ".tsv")
COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip")


def is_text_table(name: str) -> bool:
    """Return whether the name of a file is one of CSV or of tab-separated values."""
    path = Path(name)
    return (path.with_suffix("") if path.suffix in COMPRESSED else path).suffix in TEXT


def is_table(name: str, layout: Layout) -> bool:
    """Return whether a file is read as a data frame: CSV, or Parquet with named categories."""
    return is_text_table(name) or (
        layout.categories is not None and name != "-" and is_parquet(name)
    )


class Table:
    """A table in memory, divided into features, labels, queries and ids of documents.

    Attributes
    ----------
    X : pandas.DataFrame, shape (n, n_features)
        Numbers, and columns of categorical dtype.
    y : ndarray of float64 or object, shape (n,)
    qid, ids : ndarray, shape (n,), or None
    """

    def __init__(self, path: str, layout: Layout) -> None:
        self.path = path
        label, qid, columns = layout.named
        named = [one for one in (label, qid) if one is not None] + (columns or [])
        text = [one for one in (DOCID, qid, *QUERIES) if one is not None and one != label]
        frame = _read(path, text)
        names = [str(one) for one in frame.columns]
        self._check_present([*named, *(layout.categories or [])], names)
        label = LABEL if label is None else label
        qid = qid or next((one for one in QUERIES if one in names and one != label), None)
        if label not in names and layout.labelled:
            self._check_present([label], names)
        if len(frame) == 0:
            raise ValueError(f"{path} has no rows below its header")
        self.y = np.zeros(len(frame))
        if label in names:
            self.y = self._labels(frame, label)
        self.qid = None if qid is None else self._ids(frame, qid)
        known = DOCID in names and DOCID not in (columns or [])
        self.ids = self._ids(frame, DOCID) if known else None
        others = [one for one in names if one not in (label, qid, DOCID)]
        self.X = self._features(frame[others if columns is None else columns], layout)

    def _check_present(self, wanted: Sequence[str], names: list[str]) -> None:
        missing = [one for one in wanted if one not in names]
        if missing:
            some = names if len(names) < 9 else [*names[:4], "...", *names[-4:]]
            raise ValueError(
                f"{self.path} has no column {missing[0]!r}; its columns are {', '.join(some)}: "
                "name those of labels, queries and features with --label, --qid and --columns"
            )

    def _labels(self, frame: Any, name: str) -> Any:
        column = frame[name]
        missing = int(column.isna().sum())
        if missing:
            raise ValueError(f"{self.path}: {missing} labels are missing in column {name!r}")
        if column.dtype.kind not in "biuf":
            return column.astype(str).to_numpy(dtype=object).astype(str)
        return column.to_numpy(dtype=np.float64)

    def _ids(self, frame: Any, name: str) -> Any:
        column = frame[name]
        missing = int(column.isna().sum())
        if missing:
            raise ValueError(f"{self.path}: {missing} ids are missing in column {name!r}")
        return column.astype(str).to_numpy(dtype=object).astype(str)

    def _features(self, frame: Any, layout: Layout) -> Any:
        categories = layout.categories or []
        if not len(frame.columns):
            raise ValueError(f"{self.path} has no columns of features")
        frame = frame.astype(dict.fromkeys([c for c in categories if c in frame], "category"))
        table = frame_of(frame)
        assert table is not None
        for j, name in enumerate(table.names):
            if table.kind(j) == "number":
                continue
            if table.kind(j) != "category":
                raise ValueError(
                    f"{self.path}: features must be numbers, and column {name!r} holds "
                    f"{frame[name].dropna().iloc[0]!r}: name it with --categorical, or name the "
                    "columns of features with --columns"
                )
        numbers = [name for j, name in enumerate(table.names) if table.kind(j) == "number"]
        return frame.astype(dict.fromkeys(numbers, np.float64))


def _read(path: str, text: list[str]) -> Any:
    """Read a file; the named columns are text."""
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise ValueError(f"{path} is a table, which requires pandas: pip install pandas") from error
    if is_parquet(path):
        return pandas.read_parquet(path)
    try:
        return pandas.read_csv(
            path, sep=_separator(path), dtype=dict.fromkeys(text, str), encoding="utf-8-sig"
        )
    except (pandas.errors.ParserError, pandas.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read as a table: {error}") from error


def _separator(path: str) -> str:
    """Return a tab for .tsv; for CSV a semicolon if the header has more of them than commas."""
    import pandas

    name = Path(path)
    if ".tsv" in name.suffixes[-2:]:
        return "\t"
    header = pandas.read_csv(path, sep="\0", nrows=0, encoding="utf-8-sig", engine="c").columns[0]
    return ";" if header.count(";") > header.count(",") else ","
