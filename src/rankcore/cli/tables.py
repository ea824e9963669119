"""Tables of the command line as data frames: CSV, and Parquet with columns of categories."""

from __future__ import annotations

import csv
import lzma
import re
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from rankcore._core.frames import frame_of
from rankcore.cli.options import Layout
from rankcore.datasets.parquet_rows import DOCID, LABEL, QUERIES, has_words, is_parquet

# Endings of text tables, which may be followed by one of a compressed file.
TEXT = (".csv", ".tsv")
COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip")
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+(e[+-]?\d+)?\s*", re.IGNORECASE)
# Cells of numbers that are missing.
MISSING = (
    "",
    "NA",
    "N/A",
    "n/a",
    "#N/A",
    "<NA>",
    "NaN",
    "nan",
    "-NaN",
    "-nan",
    "NULL",
    "null",
    "None",
)


def row_number(row: int) -> str:
    """Return where the row of an index is in a file without lines."""
    return f"row {row + 1}"


def is_text_table(name: str) -> bool:
    """Return whether the name of a file is one of CSV or of tab-separated values."""
    path = Path(name.lower())
    return (path.with_suffix("") if path.suffix in COMPRESSED else path).suffix in TEXT


def is_table(name: str, layout: Layout) -> bool:
    """Return whether a file is read as a data frame: CSV, or Parquet with categories or words."""
    if is_text_table(name):
        return True
    if name == "-" or not is_parquet(name):
        return False
    return layout.categories is not None or has_words(name, layout.label or LABEL)


class Table:
    """A table in memory, divided into features, labels, queries and ids of documents.

    Attributes
    ----------
    X : pandas.DataFrame, shape (n, n_features)
        Numbers, and columns of categorical dtype. Categories are texts, or those of a model.
    y : ndarray of float64 or object, shape (n,)
    qid, ids : ndarray, shape (n,), or None
    place : function of the index of a row
        Returns where it is in the file, for an error.
    """

    def __init__(self, path: str, layout: Layout) -> None:
        self.path = path
        file = _open(path)
        self.place = file.place
        names = file.names
        label, qid, columns = layout.named
        named = [column for column in (label, qid) if column is not None] + (columns or [])
        self._check_present([*named, *(layout.categories or [])], names)
        label = LABEL if label is None else label
        used = (label, *(layout.feature_names or []))
        qid = qid or next((name for name in QUERIES if name in names and name not in used), None)
        if layout.labelled:
            self._check_present([label], names)
        elif label in (columns or []):
            label = ""  # a feature of the model has the default name
        has_docids = DOCID in names and DOCID not in (label, *(columns or []))
        features = columns or [name for name in names if name not in (label, qid, DOCID)]
        if columns is None:
            self._check_named(file, features)
        self._check_different([label, *([] if qid is None else [qid]), *features])
        categories = self._categories(layout, features)
        text = [*categories, *([] if qid is None else [qid]), *([DOCID] if has_docids else [])]
        frame = file.read(text, label)
        if len(frame) == 0:
            raise ValueError(f"{path} has no rows below its header")
        self.y = self._labels(frame, label) if layout.labelled else np.zeros(len(frame))
        self.qid = None if qid is None else self._ids(frame, qid)
        self.ids = self._ids(frame, DOCID) if has_docids else None
        self.X = self._features(frame[features], categories, layout.known_categories or {})

    def _check_present(self, wanted: Sequence[str], names: list[str]) -> None:
        missing = [name for name in wanted if name not in names]
        if missing:
            some = names if len(names) < 9 else [*names[:4], "...", *names[-4:]]
            raise ValueError(
                f"{self.path} has no column {missing[0]!r}; its columns are {', '.join(some)}: "
                "name those of labels, queries and features with --label, --qid and --columns"
            )

    def _check_named(self, file: _Csv | _Parquet, features: list[str]) -> None:
        """Raise ValueError for a feature without a name, such as the index of a data frame."""
        for name in features:
            if name in file.unnamed:
                number = file.names.index(name) + 1
                raise ValueError(
                    f"{self.path}: the header has no name for column {number}, and an index that "
                    "pandas wrote is no feature: write the table with index=False, or name the "
                    "columns of features with --columns"
                )

    def _check_different(self, used: list[str]) -> None:
        again = next((name for name in used if used.count(name) > 1), None)
        if again is not None:
            raise ValueError(
                f"{self.path}: the columns of features, labels and queries must be different ones; "
                f"got {again!r} twice: change --label, --qid or --columns"
            )

    def _categories(self, layout: Layout, features: list[str]) -> list[str]:
        """Return the named columns of categories, which must be different features."""
        categories = layout.categories or []
        for j, name in enumerate(categories):
            if name not in features or name in categories[:j]:
                raise ValueError(
                    f"{self.path}: the columns of categories must be different features; got "
                    f"{name!r} in --categorical: change it, --label, --qid or --columns"
                )
        return categories

    def _labels(self, frame: Any, name: str) -> Any:
        column = frame[name]
        self._check_present_in_all(column, "labels")
        if column.dtype.kind not in "biuf":
            self._check_decimal_comma(column)
            return _texts(column).astype(str)
        return column.to_numpy(dtype=np.float64)

    def _check_present_in_all(self, column: Any, what: str) -> None:
        """Raise ValueError if a row has no label or id."""
        missing = column.isna().to_numpy()
        if missing.any():
            raise ValueError(
                f"{self.path}: {missing.sum()} {what} are missing in column {column.name!r}, the "
                f"first in {self.place(int(missing.argmax()))}"
            )

    def _ids(self, frame: Any, name: str) -> Any:
        column = frame[name]
        self._check_present_in_all(column, "ids")
        return _texts(column).astype(str)

    def _features(
        self, frame: Any, categories: list[str], known_categories: Mapping[str, Sequence[Any]]
    ) -> Any:
        import pandas

        if not len(frame.columns):
            raise ValueError(f"{self.path} has no columns of features")
        by_category = {}
        for name in frame.columns:
            if name in categories or hasattr(frame[name].dtype, "categories"):
                values = _as_known(_texts(frame[name]), known_categories.get(name, ()))
                by_category[name] = pandas.Categorical(values)
        frame = frame.assign(**by_category)
        table = frame_of(frame)
        assert table is not None
        for j, name in enumerate(table.names):
            if table.kind(j) == "number":
                continue
            if table.kind(j) != "category":
                self._check_decimal_comma(frame[name])
                column = frame[name].reset_index(drop=True)
                words = column[pandas.to_numeric(column, errors="coerce").isna() & column.notna()]
                row = (words if len(words) else column.dropna()).index[0]
                raise ValueError(
                    f"{self.path}: features must be numbers, and column {name!r} holds "
                    f"{column[row]!r} in {self.place(row)}: correct it, name the column with "
                    "--categorical, or name the columns of features with --columns"
                )
        numbers = [name for j, name in enumerate(table.names) if table.kind(j) == "number"]
        return frame.astype(dict.fromkeys(numbers, np.float64))

    def _check_decimal_comma(self, column: Any) -> None:
        """Raise ValueError if a text of a column is a number with a comma."""
        for row, value in enumerate(column):
            if isinstance(value, str) and DECIMAL_COMMA.fullmatch(value):
                raise ValueError(
                    f"{self.path}: column {column.name!r} holds {value!r} in {self.place(row)}, "
                    f"a number with a decimal comma: write it with a point, as "
                    f"{value.replace(',', '.')}"
                )


def _text(value: Any) -> str:
    """Return a category or an id as text; a whole number has no decimal point."""
    whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value) if whole else value)


def _texts(column: Any) -> NDArray[np.object_]:
    """Return a column as texts; missing values are None."""
    codes, values = column.factorize()
    texts = np.array([*map(_text, values), None], dtype=object)
    return texts[codes]


def _as_known(texts: NDArray[np.object_], categories: Sequence[Any]) -> NDArray[np.object_]:
    """Replace texts of a model's categories by these, which may be numbers."""
    if all(isinstance(category_value, str) for category_value in categories):
        return texts
    by_text = {_text(category_value): category_value for category_value in categories}
    by_number = {
        float(category_value): category_value
        for category_value in categories
        if type(category_value) in (int, float) and abs(category_value) < 2**53
    }

    def category(text: str | None) -> Any:
        if text is None or text in by_text:
            return text if text is None else by_text[text]
        try:
            return by_number.get(float(text), text)
        except ValueError:
            return text

    category_of = {text: category(text) for text in set(texts)}
    return np.array([*(category_of[text] for text in texts), None], dtype=object)[:-1]


class _Csv:
    """A text table: the names in its header, then its rows."""

    def __init__(self, path: str) -> None:
        self.path = path
        with _named_errors(path):
            header = self._pandas(sep="\0", nrows=1, quoting=csv.QUOTE_NONE).iloc[0, 0]
            semicolons = header.count(";") > header.count(",")
            tabs = ".tsv" in Path(path.lower()).suffixes[-2:]
            self._sep = "\t" if tabs else ";" if semicolons else ","
            cells = self._pandas(sep=self._sep, nrows=1, dtype=str).iloc[0].tolist()
        self.names = [cell or f"Unnamed: {j}" for j, cell in enumerate(cells)]
        self.unnamed = [name for name, cell in zip(self.names, cells, strict=True) if not cell]
        again = next((name for name in self.names if self.names.count(name) > 1), None)
        if again is not None:
            raise ValueError(f"{path}: the columns must be different ones; got {again!r} twice")

    def read(self, text: Sequence[str], label: str) -> Any:
        """Return the rows; in the columns of ``text`` and labels only empty cells are missing."""
        import pandas

        missing = {name: [""] if name in (*text, label) else list(MISSING) for name in self.names}
        with _named_errors(self.path):
            try:
                frame = self._pandas(
                    sep=self._sep,
                    header=0,
                    names=self.names,
                    index_col=False,
                    dtype=dict.fromkeys(text, str),
                    na_values=missing,
                    low_memory=False,
                )
            except pandas.errors.ParserWarning:  # of rows with more cells, which it cuts
                self._check_cells()
                raise
            if frame.iloc[:, -1].isna().any():  # perhaps of a row with fewer cells, which it fills
                self._check_cells()
            return frame

    def _check_cells(self) -> None:
        """Raise ValueError for the first row with more or fewer cells than the header."""
        for line, cells in self._lines():
            if len(cells) != len(self.names):
                raise ValueError(
                    f"line {line} has {len(cells)} cells, and the header has {len(self.names)}"
                )

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the last line and the cells of the header and of each row."""
        lines = self._pandas(sep="\0", quoting=csv.QUOTE_NONE, dtype=str, skip_blank_lines=False)
        rows = csv.reader((f"{line}\n" for line in lines.iloc[:, 0]), delimiter=self._sep)
        for cells in rows:
            if len(cells) > 1 or (cells and cells[0].strip()):
                yield rows.line_num, cells

    def place(self, row: int) -> str:
        """Return where a row is, for an error."""
        return f"line {next(islice(self._lines(), row + 1, None))[0]}"

    def _pandas(self, **options: Any) -> Any:
        import pandas

        settings = {"header": None, "encoding": "utf-8-sig", "keep_default_na": False, **options}
        with warnings.catch_warnings():
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            return pandas.read_csv(self.path, **settings)


class _Parquet:
    """A Parquet file: the names of its columns, and its rows."""

    def __init__(self, path: str) -> None:
        import pandas

        with _named_errors(path):
            frame = pandas.read_parquet(path)
            frame = frame.reset_index([name for name in frame.index.names if name is not None])
        self._frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
        self.names: list[str] = self._frame.columns.tolist()
        self.unnamed: list[str] = []  # an index without a name is no column

    def read(self, text: Sequence[str], label: str) -> Any:
        """Return the rows; types are those of the file."""
        return self._frame

    @staticmethod
    def place(row: int) -> str:
        """Return where a row is, for an error."""
        return row_number(row)


def _open(path: str) -> _Csv | _Parquet:
    if find_spec("pandas") is None:
        raise ValueError(f"{path} is a table, which requires pandas: pip install pandas")
    return _Parquet(path) if is_parquet(path) else _Csv(path)


@contextmanager
def _named_errors(path: str) -> Iterator[None]:
    """Name the file in errors of its content and compression, as ValueError."""
    import pandas

    try:
        yield
    except (
        ValueError,  # of parsers, encodings and Arrow
        EOFError,
        ImportError,
        BadZipFile,
        lzma.LZMAError,
        zlib.error,
        pandas.errors.ParserWarning,
    ) as error:
        cause: Exception = error
    except OSError as error:
        if error.filename is not None:
            raise
        cause = error
    else:
        return
    why = " ".join(str(cause).split())
    if isinstance(cause, pandas.errors.ParserWarning):
        why = "its rows have more cells than its header"
    raise ValueError(f"{path} cannot be read as a table: {why}") from cause
