"""Data frames of pandas, polars and Arrow: the only module that tells them apart.

No library is imported: an object belongs to one of them only if its user has imported it.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

# What a column holds. "object" is Python objects, which may be numbers.
Kind = Literal["number", "object", "category", "text", "complex", "other"]


class Frame(ABC):
    """A data frame: its columns by position, and copies with other rows or columns.

    Parameters
    ----------
    native : object
        The frame of pandas, polars or Arrow, which is not modified.
    """

    def __init__(self, native: Any) -> None:
        self.native = native

    @cached_property
    def names(self) -> list[Any]:
        """Names of the columns: strings, or in pandas any other values."""
        return list(self.native.columns)

    @cached_property
    def dtypes(self) -> list[Any]:
        """The library's types of the columns."""
        return list(self.native.dtypes)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        n_rows, n_columns = self.native.shape
        return n_rows, n_columns

    @abstractmethod
    def column(self, j: int) -> Any:
        """Return a column as the library's series."""

    @abstractmethod
    def kind(self, j: int) -> Kind:
        """Return the kind of the values in a column."""

    @abstractmethod
    def values(self, j: int) -> NDArray[Any]:
        """Return a column as an array; missing numbers are NaN, other missing values None or NaN.

        A column of numbers that the library has as Python objects is an array of these.
        """

    @abstractmethod
    def to_list(self, j: int) -> list[Any]:
        """Return a column as Python values."""

    @abstractmethod
    def take(self, rows: Any) -> Any:
        """Return the library's frame of some rows, by number."""

    @abstractmethod
    def without(self, name: str) -> Any:
        """Return the library's frame without a column."""

    @abstractmethod
    def first(self, n: int) -> Any:
        """Return the library's frame of the first n columns."""

    @abstractmethod
    def permuted(self, columns: Sequence[int], source: NDArray[np.int64]) -> Any:
        """Return the library's frame with the rows of some columns reordered by ``source``."""

    @abstractmethod
    def with_values(self, j: int, values: Any) -> Any:
        """Return the library's frame with other values in a column, categories as objects."""

    @abstractmethod
    def categories(self, j: int) -> list[Any] | None:
        """Return the declared categories of a column in their order; None if there are none."""

    @abstractmethod
    def codes(self, j: int, places: Mapping[Any, int]) -> NDArray[np.float32]:
        """Return the place of each row's value in ``places``; -1 for missing and other values."""

    def whole(self) -> Any:
        """Return all columns as one matrix if the library has a faster way, else None."""
        return None

    def distinct(self, j: int) -> list[Any]:
        """Return the distinct values of a column, without missing ones, in any order."""
        return [*{value for value in self.to_list(j) if value is not None and value == value}]


class PandasFrame(Frame):
    """A frame of pandas, or of a library with its interface."""

    def column(self, j: int) -> Any:
        return self.native.iloc[:, j]

    def kind(self, j: int) -> Kind:
        dtype = self.dtypes[j]
        if hasattr(dtype, "categories"):
            return "category"
        letter = getattr(dtype, "kind", "O")
        if letter == "c":
            return "complex"
        if str(dtype).startswith("str"):
            return "text"
        if letter in "mM" or str(dtype).startswith(("period", "interval")):
            return "other"
        return "number" if letter in "fiub" else "object"

    def values(self, j: int) -> NDArray[Any]:
        column = self.column(j)
        if isinstance(column.dtype, np.dtype) or hasattr(column.dtype, "subtype"):
            return np.asarray(column)
        if self.kind(j) == "number":
            array: NDArray[Any] = column.to_numpy(dtype=np.float64, na_value=np.nan)
            return array
        return np.asarray(column.astype(object))

    def to_list(self, j: int) -> list[Any]:
        items: list[Any] = self.column(j).to_list()
        return items

    def take(self, rows: Any) -> Any:
        return self.native.iloc[rows]

    def without(self, name: str) -> Any:
        return self.native.drop(columns=[name])

    def first(self, n: int) -> Any:
        return self.native.iloc[:, :n]

    def permuted(self, columns: Sequence[int], source: NDArray[np.int64]) -> Any:
        frame = self.native.copy()
        for j in columns:
            frame.isetitem(j, self.native.iloc[source, j].array)
        return frame

    def with_values(self, j: int, values: Any) -> Any:
        frame, column = self.native.copy(), self.column(j)
        dtype = None if self.kind(j) == "number" else object
        frame.isetitem(j, type(column)(values, dtype=dtype).array)
        return frame

    def categories(self, j: int) -> list[Any] | None:
        dtype = self.dtypes[j]
        return dtype.categories.to_list() if hasattr(dtype, "categories") else None

    def codes(self, j: int, places: Mapping[Any, int]) -> NDArray[np.float32]:
        column = self.column(j)
        if self.kind(j) != "category":
            column = column.astype("category")
        return _coded(column.cat.codes.to_numpy(), column.cat.categories.to_list(), places)

    def distinct(self, j: int) -> list[Any]:
        items: list[Any] = self.column(j).dropna().unique().tolist()
        return items

    def whole(self) -> Any:
        if all(hasattr(dtype, "subtype") and hasattr(dtype, "fill_value") for dtype in self.dtypes):
            zeros = all(dtype.fill_value == 0 for dtype in self.dtypes)
            return self.native.sparse.to_coo() if self.dtypes and zeros else None
        plain = all(isinstance(dtype, np.dtype) and dtype.kind in "fiu" for dtype in self.dtypes)
        return self.native.to_numpy() if plain else None


class PolarsFrame(Frame):
    """A frame of polars."""

    def column(self, j: int) -> Any:
        return self.native.to_series(j)

    def kind(self, j: int) -> Kind:
        dtype = self.dtypes[j]
        if dtype.is_numeric() or str(dtype) in ("Boolean", "Null"):
            return "number"
        kinds: dict[str, Kind] = {
            "Object": "object",
            "String": "text",
            "Categorical": "category",
            "Enum": "category",
        }
        return kinds.get(dtype.base_type().__name__, "other")

    def values(self, j: int) -> NDArray[Any]:
        array: NDArray[Any] = self.column(j).to_numpy()
        return array

    def to_list(self, j: int) -> list[Any]:
        items: list[Any] = self.column(j).to_list()
        return items

    def take(self, rows: Any) -> Any:
        return self.native[rows]

    def without(self, name: str) -> Any:
        return self.native.drop(name)

    def first(self, n: int) -> Any:
        return self.native[:, :n]

    def permuted(self, columns: Sequence[int], source: NDArray[np.int64]) -> Any:
        return self.native.with_columns([self.column(j).gather(source) for j in columns])

    def with_values(self, j: int, values: Any) -> Any:
        return self.native.with_columns(type(self.column(j))(self.names[j], values))

    def categories(self, j: int) -> list[Any] | None:
        dtype = self.dtypes[j]
        return dtype.categories.to_list() if type(dtype).__name__ == "Enum" else None

    def whole(self) -> Any:
        plain = all(dtype.is_integer() or dtype.is_float() for dtype in self.dtypes)
        return self.native.to_numpy() if plain and self.dtypes else None

    def codes(self, j: int, places: Mapping[Any, int]) -> NDArray[np.float32]:
        column = self.column(j)
        distinct = column.unique()
        # The physical numbers of categories are global, and need not be small.
        ranks = column.replace_strict(distinct, np.arange(len(distinct)), default=-1)
        return _coded(ranks.fill_null(-1).to_numpy(), distinct.to_list(), places)

    def distinct(self, j: int) -> list[Any]:
        items: list[Any] = self.column(j).drop_nulls().unique().to_list()
        return items


class ArrowFrame(Frame):
    """A table of Arrow, whose columns may be in chunks."""

    @cached_property
    def names(self) -> list[Any]:
        return list(self.native.column_names)

    @cached_property
    def dtypes(self) -> list[Any]:
        return list(self.native.schema.types)

    def column(self, j: int) -> Any:
        return self.native.column(j)

    def kind(self, j: int) -> Kind:
        types, dtype = sys.modules["pyarrow"].types, self.dtypes[j]
        if types.is_dictionary(dtype):
            return "category"
        if any(
            test(dtype)
            for test in (types.is_integer, types.is_floating, types.is_boolean, types.is_null)
        ):
            return "number"
        if types.is_decimal(dtype):
            return "object"
        words = types.is_string(dtype) or types.is_large_string(dtype)
        return "text" if words or str(dtype) == "string_view" else "other"

    def values(self, j: int) -> NDArray[Any]:
        return arrow_values(self.column(j))

    def to_list(self, j: int) -> list[Any]:
        items: list[Any] = self.column(j).to_pylist()
        return items

    def take(self, rows: Any) -> Any:
        return self.native.take(np.asarray(rows))

    def without(self, name: str) -> Any:
        return self.native.drop_columns([name])

    def first(self, n: int) -> Any:
        return self.native.select([*range(n)])

    def permuted(self, columns: Sequence[int], source: NDArray[np.int64]) -> Any:
        table = self.native
        for j in columns:
            table = table.set_column(j, self.names[j], self.column(j).take(source))
        return table

    def with_values(self, j: int, values: Any) -> Any:
        return self.native.set_column(j, self.names[j], sys.modules["pyarrow"].array(values))

    def categories(self, j: int) -> list[Any] | None:
        if self.kind(j) != "category":
            return None
        return _present(_dictionary(self.column(j)))

    def codes(self, j: int, places: Mapping[Any, int]) -> NDArray[np.float32]:
        column = self.column(j)
        if self.kind(j) != "category":
            column = column.dictionary_encode()
        column = column.unify_dictionaries()
        numbers = [chunk.indices.cast("int64").fill_null(-1).to_numpy() for chunk in column.chunks]
        return _coded(np.concatenate([_NONE, *numbers]), _dictionary(column), places)

    def whole(self) -> Any:
        types = sys.modules["pyarrow"].types
        plain = all(types.is_integer(dtype) or types.is_floating(dtype) for dtype in self.dtypes)
        return np.asarray(self.native) if plain and self.dtypes else None


_NONE = np.zeros(0, dtype=np.int64)
# Types of the most frequent objects that are no frames; a check of them is fast.
_NO_FRAMES = (np.ndarray, list, type)


def _dictionary(column: Any) -> list[Any]:
    """Return the values of a dictionary column of Arrow, in the order of their codes."""
    chunks = column.unify_dictionaries().chunks
    return chunks[0].dictionary.to_pylist() if chunks else []


def _present(values: list[Any]) -> list[Any]:
    """Return the values that are not null."""
    return [value for value in values if value is not None]


def _coded(
    codes: NDArray[Any], values: Sequence[Any], places: Mapping[Any, int]
) -> NDArray[np.float32]:
    """Replace codes, -1 if missing, by the place of each code's value in ``places``, else -1."""
    table = np.full(len(values) + 1, -1, dtype=np.float32)  # the last is that of -1
    table[:-1] = [places.get(value, -1) for value in values]
    return table[codes]


def frame_of(X: Any) -> Frame | None:
    """Return a data frame of any library as a `Frame`; None for all other objects."""
    if isinstance(X, _NO_FRAMES) or hasattr(X, "tocsr"):
        return None
    if hasattr(X, "iloc"):
        return PandasFrame(X) if hasattr(X, "columns") and hasattr(X, "dtypes") else None
    if _belongs(X, "polars", "DataFrame"):
        return PolarsFrame(X)
    return ArrowFrame(X) if _belongs(X, "pyarrow", "Table") else None


def is_frame(X: Any) -> bool:
    """Return whether an object is a data frame."""
    return frame_of(X) is not None


def names_of(X: Any) -> list[Any] | None:
    """Return the names of the columns of a data frame, None for all other objects."""
    frame = frame_of(X)
    return None if frame is None else frame.names


def _belongs(value: Any, library: str, name: str) -> bool:
    """Return whether a value has a class of a library, without importing the library."""
    kind = getattr(sys.modules.get(library), name, None)
    return kind is not None and isinstance(value, kind)


def is_lazy(X: Any) -> bool:
    """Return whether an object is a lazy frame, whose rows are not known yet."""
    return hasattr(X, "collect_schema") and not hasattr(X, "shape")


def remedy_for(X: Any, name: str) -> str:
    """Return how to convert a lazy frame, series or the like to a frame; empty for others."""
    if is_lazy(X):
        return f"read its rows by {name}.collect()"
    if hasattr(X, "to_frame") and not is_frame(X):
        remedy = (
            "for one row take a frame of one row, as frame.iloc[[0]] (polars: frame[[0]]); for one "
            f"column pass {name}.to_frame()"
        )
        if hasattr(X, "to_list") and any(isinstance(value, str) for value in X[:1].to_list()):
            remedy += (
                "; texts require a vectorizer, as in make_pipeline(TfidfVectorizer(), PRank())"
            )
        return remedy
    if _belongs(X, "pyarrow", "RecordBatch"):
        return f"pass pyarrow.Table.from_batches([{name}])"
    if _is_arrow_column(X):
        return f'for one column pass pyarrow.table({{"name": {name}}})'
    return ""


def is_row(x: Any) -> bool:
    """Return whether an object is a row (or a column) of a pandas frame."""
    return hasattr(x, "to_frame") and hasattr(x, "iloc") and not is_frame(x)


def row_as_frame(x: Any, *, missing_as_objects: bool) -> Any:
    """Return a row of a pandas frame as a frame of one row.

    Its columns get the types of their values. With ``missing_as_objects``, missing values of a row
    of several types are objects: a missing category is not a number.
    """
    frame = x.to_frame().T
    missing = frame.columns[frame.isna().to_numpy()[0]]
    frame = frame.infer_objects()
    if missing_as_objects and frame.dtypes.nunique() > 1:
        frame = frame.astype({name: object for name in missing})
    return frame


# ------------------------------------------------------------------------ columns on their own


def as_series(y: Any) -> Any:
    """Return a pandas categorical as a series, which scikit-learn can slice; others as they are."""
    if not _belongs(y, "pandas", "Categorical"):
        return y
    return sys.modules["pandas"].Series(y)


def plain_column(values: Any) -> Any:
    """Return a column of Arrow as an array; all other objects as they are."""
    if isinstance(values, _NO_FRAMES):
        return values
    return arrow_values(values) if _is_arrow_column(values) else values


def _is_arrow_column(values: Any) -> bool:
    return _belongs(values, "pyarrow", "ChunkedArray") or _belongs(values, "pyarrow", "Array")


def arrow_values(column: Any) -> NDArray[Any]:
    """Return a column of Arrow as an array; missing numbers are NaN, other missing values None.

    Arrow's own conversion gives missing values of a dictionary column another category.
    """
    types = sys.modules["pyarrow"].types
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.null_count and not types.is_floating(column.type):
        whole = types.is_integer(column.type) or types.is_boolean(column.type)
        if not (whole or types.is_temporal(column.type)):
            return np.array(column.to_pylist(), dtype=object)
        if types.is_boolean(column.type):
            column = column.cast("float64")
    if types.is_null(column.type):
        return np.full(len(column), np.nan)
    chunked = _belongs(column, "pyarrow", "ChunkedArray")
    array: NDArray[Any] = column.to_numpy() if chunked else column.to_numpy(zero_copy_only=False)
    return array


def declared_order(y: Any) -> NDArray[Any] | None:
    """Return the categories of ordered labels, lowest first; None if labels declare no order.

    Ordered are a pandas categorical and a dictionary of Arrow that say so, and a polars Enum.
    """
    dtype: Any = getattr(y, "dtype", None)
    if getattr(dtype, "ordered", False) or type(dtype).__name__ == "Enum":
        return np.asarray(dtype.categories)
    if getattr(getattr(y, "type", None), "ordered", False):
        values = _dictionary(y) if hasattr(y, "chunks") else y.dictionary.to_pylist()
        return np.array(_present(values))
    return None
