"""Categorical features of trees: their columns, and the codes of their categories.

`Categories` finds the categorical columns of a fit, numbers the categories of data frames, and
encodes the rows of later predictions by the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankcore._core.frames import Frame, frame_of, names_of
from rankcore._core.inputs import frame_matrix
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
        """Return the names of the columns of a matrix or frame, for error messages."""
        columns = names_of(X)
        return {
            column: str(column) if columns is None else repr(columns[column])
            for column in self.numbers
        }

    @classmethod
    def of(cls, X: Any, requested: Any, previous: Categories | None) -> Categories | None:
        """Find the categorical columns of training rows; None if there are none.

        ``given`` is the parameter ``categorical_features``. Codes of ``known`` categories, from
        the fit that ``warm_start`` continues, are kept; new categories follow.
        """
        frame = frame_of(X)
        if requested is None or (
            frame is None and isinstance(requested, str) and requested == "from_dtype"
        ):
            return None
        shape = X.shape if hasattr(X, "shape") else np.shape(X)
        if len(shape) != 2:  # `as_rows` raises the error
            return None
        numbers: list[int] = np.flatnonzero(_mask(requested, shape[1], frame)).tolist()
        if not numbers:
            return None
        labels = {}
        if frame is None:
            return cls(numbers, shape[1])
        for column in numbers:
            labels_of_column = _labels(frame, column)
            if labels_of_column is None:
                continue
            before = previous.labels.get(column, []) if previous is not None else []
            labels[column] = before + [
                label for label in labels_of_column if label not in set(before)
            ]
            if len(labels[column]) > MAX_CATEGORIES:
                raise ValueError(
                    f"column {frame.names[column]!r} has {len(labels[column])} categories; at most "
                    f"{MAX_CATEGORIES} are supported"
                )
        return cls(numbers, shape[1], labels)

    def encode(self, X: Any) -> Any:
        """Return a data frame as a matrix with codes of categories; -1 (missing) if unknown.

        Other input is returned as it is.
        """
        frame = frame_of(X)
        if not self.labels or frame is None or len(frame.names) != self.n_features:
            return X
        codes = {column: _codes(frame, column, some) for column, some in self.labels.items()}
        return frame_matrix(frame, "X", codes)

    def check(self, rows: Rows, X: Any) -> None:
        """Raise ValueError unless the categorical columns of rows hold codes."""
        values, where = rows.arrays[0], rows.columns
        for column, name in self.names(X).items():
            part = values[where == column] if where is not None else values[:, column]
            bad = (part >= MAX_CATEGORIES) | ((part != np.floor(part)) & (part == part))
            if bad.any():
                raise ValueError(
                    f"categorical column {name} must hold integers from 0 to {MAX_CATEGORIES - 1} "
                    f"(NaN or below 0: missing); got {part[bad][0]:g}: number the categories, or "
                    "pass a DataFrame whose column has a categorical dtype"
                )

    def facts(self) -> dict[str, Any]:
        """Return the metadata for a model file."""
        labels = {str(column): values for column, values in self.labels.items()}
        return {"columns": self.numbers, "labels": labels}

    @classmethod
    def restored(cls, facts: Mapping[str, Any], n_features: int) -> Self:
        """Restore from metadata of a model file; raise ValueError unless valid."""
        numbers = facts["columns"]
        distinct = set(numbers)
        labels = {int(column): list(values) for column, values in facts["labels"].items()}
        whole = numbers == sorted(distinct) != [] and all(type(number) is int for number in numbers)
        whole = whole and numbers[0] >= 0 and numbers[-1] < n_features
        for column, values in labels.items():
            whole &= column in distinct and len(set(values)) == len(values)
            whole &= len(values) <= MAX_CATEGORIES and all(type(v) in LABELS for v in values)
        if not whole:
            raise ValueError(
                "the categorical features must be different columns of the model, in ascending "
                "order, and the categories of each different strings or numbers"
            )
        return cls(numbers, n_features, labels)


def _mask(requested: Any, d: int, frame: Frame | None) -> NDArray[np.bool_]:
    """Return ``categorical_features`` as a mask."""
    mask = np.zeros(d, dtype=bool)
    if isinstance(requested, str):
        if requested != "from_dtype":
            raise ValueError(
                "categorical_features must be None, 'from_dtype' or a list of columns; got "
                f"{requested!r}"
            )
        return mask if frame is None else np.array([frame.kind(j) == "category" for j in range(d)])
    columns = np.asarray(requested)
    if columns.ndim != 1 or (columns.size and columns.dtype.kind not in "biuUO"):
        raise ValueError(
            "categorical_features must be a mask, numbers or names of columns; got "
            f"{requested!r:.60}"
        )
    if columns.dtype.kind == "b":
        if columns.size != d:
            raise ValueError(
                f"categorical_features is a mask of {columns.size} columns, but X has {d}"
            )
        return columns.copy()
    for column in columns.tolist():
        if isinstance(column, str):
            if frame is None or column not in frame.names:
                raise ValueError(f"categorical_features names a column not in X: {column!r}")
            mask[frame.names.index(column)] = True
        elif isinstance(column, int) and 0 <= column < d:
            mask[column] = True
        else:
            raise ValueError(
                f"categorical_features must be numbers of columns from 0 to {d - 1}, or their "
                f"names; got {column!r}"
            )
    return mask


def _labels(frame: Frame, column: int) -> list[Any] | None:
    """Return the categories of a data frame column, in the order of its dtype, else ascending.

    None if the column holds numbers, which are the codes.
    """
    if frame.kind(column) == "number":
        return None
    labels = frame.categories(column)
    if labels is None:
        try:
            labels = sorted(frame.distinct(column))
        except TypeError:
            labels = [None]
    labels = [label.item() if isinstance(label, np.generic) else label for label in labels]
    if any(type(label) not in LABELS for label in labels):
        raise ValueError(
            f"categories must be strings or numbers; column {frame.names[column]!r} has others"
        )
    return labels


def _codes(frame: Frame, column: int, labels: list[Any]) -> NDArray[np.float32]:
    """Return the codes of the categories in one column of a data frame."""
    if frame.kind(column) == "number" and any(isinstance(label, str) for label in labels):
        raise ValueError(
            f"column {frame.names[column]!r} must hold categories such as {labels[0]!r}; got "
            f"dtype {frame.dtypes[column]}"
        )
    return frame.codes(column, {label: code for code, label in enumerate(labels)})
