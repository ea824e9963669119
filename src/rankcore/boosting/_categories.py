"""Categorical features: their columns, and the codes of their categories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankcore._ext.rows import Rows

# Maximum number of categories: a set of them takes one bit each.
MAX_CATEGORIES = 2**16
# Types of categories in data frames.
LABELS = (str, int, float, bool)


@dataclass(frozen=True)
class Categories:
    """The categorical columns of a feature matrix."""

    numbers: list[int]  # indices of the columns, ascending
    n_features: int
    # Categories of data frame columns, in the order of their codes. Other columns hold codes.
    labels: dict[int, list[Any]] = field(default_factory=dict)

    @property
    def columns(self) -> NDArray[np.bool_]:
        """Mask of the categorical columns, shape (n_features,)."""
        mask = np.zeros(self.n_features, dtype=bool)
        mask[self.numbers] = True
        return mask

    def names(self, X: Any) -> dict[int, str]:
        """Names of the columns of a matrix or frame, for error messages."""
        known = _names(X)
        return {
            column: str(column) if known is None else repr(known[column]) for column in self.numbers
        }

    @classmethod
    def of(cls, X: Any, given: Any, known: Categories | None) -> Categories | None:
        """The categorical columns of training rows; None if there are none.

        ``given`` is the parameter ``categorical_features``. Codes of ``known`` categories, from
        the fit that ``warm_start`` continues, are kept; new categories follow.
        """
        names = _names(X)
        if given is None or (names is None and isinstance(given, str) and given == "from_dtype"):
            return None
        shape = X.shape if hasattr(X, "shape") else np.shape(X)
        if len(shape) != 2:  # `as_rows` raises the error
            return None
        numbers: list[int] = np.flatnonzero(_mask(given, shape[1], names, X)).tolist()
        if not numbers:
            return None
        labels = {}
        if names is None:
            return cls(numbers, shape[1])
        for column in numbers:
            found = _labels(X, column)
            if found is None:
                continue
            before = known.labels.get(column, []) if known is not None else []
            labels[column] = before + [label for label in found if label not in set(before)]
            if len(labels[column]) > MAX_CATEGORIES:
                raise ValueError(
                    f"column {names[column]!r} has {len(labels[column])} categories; at most "
                    f"{MAX_CATEGORIES} are supported"
                )
        return cls(numbers, shape[1], labels)

    def encode(self, X: Any) -> Any:
        """Replace the categories of a data frame by their codes; -1 (missing) if unknown."""
        names = _names(X)
        if not self.labels or names is None or len(names) != self.n_features:
            return X
        for column, labels in self.labels.items():
            X = _encoded(X, column, labels)
        return X

    def check(self, rows: Rows, X: Any) -> None:
        """Raise ValueError unless the categorical columns of rows hold codes."""
        values, where = rows.arrays[0], rows.columns
        for column, name in self.names(X).items():
            part = values[where == column] if where is not None else values[:, column]
            bad = (part >= MAX_CATEGORIES) | ((part != np.floor(part)) & (part == part))
            if bad.any():
                raise ValueError(
                    f"categorical column {name} must hold integers from 0 to {MAX_CATEGORIES - 1} "
                    f"(NaN or below 0: missing); found {part[bad][0]:g}: number the categories, or "
                    "pass a DataFrame whose column has a categorical dtype"
                )

    def facts(self) -> dict[str, Any]:
        """Metadata for a model file."""
        labels = {str(column): values for column, values in self.labels.items()}
        return {"columns": self.numbers, "labels": labels}

    @classmethod
    def restored(cls, facts: Mapping[str, Any], n_features: int) -> Self:
        """Restore from metadata of a model file; raise ValueError unless valid."""
        numbers = facts["columns"]
        known = set(numbers)
        labels = {int(column): list(values) for column, values in facts["labels"].items()}
        whole = numbers == sorted(known) != [] and all(type(one) is int for one in numbers)
        whole = whole and numbers[0] >= 0 and numbers[-1] < n_features
        for column, values in labels.items():
            whole &= column in known and len(set(values)) == len(values)
            whole &= len(values) <= MAX_CATEGORIES and all(type(v) in LABELS for v in values)
        if not whole:
            raise ValueError("its categorical features are invalid")
        return cls(numbers, n_features, labels)


def _names(X: Any) -> list[Any] | None:
    """Names of the columns of a data frame, else None."""
    return list(X.columns) if hasattr(X, "dtypes") and hasattr(X, "columns") else None


def _mask(given: Any, d: int, names: list[Any] | None, X: Any) -> NDArray[np.bool_]:
    """``categorical_features`` as a mask."""
    mask = np.zeros(d, dtype=bool)
    if isinstance(given, str):
        if given != "from_dtype":
            raise ValueError(
                "categorical_features must be None, 'from_dtype' or a list of columns; found "
                f"{given!r}"
            )
        return np.array([_is_categorical(dtype) for dtype in X.dtypes], dtype=bool)
    columns = np.asarray(given)
    if columns.ndim != 1 or (columns.size and columns.dtype.kind not in "biuUO"):
        raise ValueError(
            f"categorical_features must be a mask, numbers or names of columns; found {given!r:.60}"
        )
    if columns.dtype.kind == "b":
        if columns.size != d:
            raise ValueError(
                f"categorical_features is a mask of {columns.size} columns, but X has {d}"
            )
        return columns.copy()
    for column in columns.tolist():
        if isinstance(column, str):
            if names is None or column not in names:
                raise ValueError(f"categorical_features names a column not in X: {column!r}")
            mask[names.index(column)] = True
        elif isinstance(column, int) and 0 <= column < d:
            mask[column] = True
        else:
            raise ValueError(
                f"categorical_features must be numbers of columns from 0 to {d - 1}, or their "
                f"names; found {column!r}"
            )
    return mask


def _is_categorical(dtype: Any) -> bool:
    """Whether a dtype is pandas' CategoricalDtype or polars' Categorical or Enum."""
    return type(dtype).__name__ in ("CategoricalDtype", "Categorical", "Enum")


def _column(X: Any, column: int) -> Any:
    return X.iloc[:, column] if hasattr(X, "iloc") else X.to_series(column)


def _is_number(dtype: Any) -> bool:
    if hasattr(dtype, "is_numeric"):  # polars
        return bool(dtype.is_numeric()) or str(dtype) == "Boolean"
    return getattr(dtype, "kind", "O") in "fiub"


def _labels(X: Any, column: int) -> list[Any] | None:
    """Categories of a data frame column, in the order of its dtype, else ascending.

    None if the column holds numbers, which are the codes.
    """
    series = _column(X, column)
    dtype = series.dtype
    if _is_categorical(dtype) and type(dtype).__name__ != "Categorical":
        found = dtype.categories.to_list()
    elif _is_number(dtype):
        return None
    else:
        try:
            present = series.dropna() if hasattr(series, "dropna") else series.drop_nulls()
            found = sorted(set(present.to_list()))
        except TypeError:
            found = [None]
    found = [one.item() if isinstance(one, np.generic) else one for one in found]
    if any(type(label) not in LABELS for label in found):
        raise ValueError(
            f"categories must be strings or numbers; column {list(X.columns)[column]!r} has others"
        )
    return found


def _encoded(X: Any, column: int, labels: list[Any]) -> Any:
    """A data frame with the codes of the categories in one column."""
    series = _column(X, column)
    if _is_number(series.dtype) and any(isinstance(label, str) for label in labels):
        raise ValueError(
            f"column {list(X.columns)[column]!r} must hold categories such as {labels[0]!r}; found "
            f"dtype {series.dtype}"
        )
    if hasattr(X, "iloc"):
        X = X.copy(deep=False)
        X.isetitem(column, _pandas_numbers(series, labels).astype(np.float32))
        return X
    import polars

    if any(isinstance(label, str) for label in labels):
        series = series.cast(polars.String)
    numbers = dict(zip(labels, range(len(labels)), strict=True))
    if numbers:
        series = series.replace_strict(numbers, default=-1, return_dtype=polars.Float32)
    else:
        series = polars.repeat(-1, len(series), dtype=polars.Float32, eager=True)
    return X.with_columns(series.fill_null(-1).alias(X.columns[column]))


def _pandas_numbers(series: Any, labels: list[Any]) -> NDArray[Any]:
    """Index of each value of a pandas Series in ``labels``; -1 if it is not there."""
    import pandas

    index = pandas.Index(labels, dtype=object)
    if not _is_categorical(series.dtype):
        return index.get_indexer(series.astype(object))
    places = np.append(index.get_indexer(series.cat.categories.astype(object)), -1)
    return places[series.cat.codes]
