"""Ids and labels: arrays that keep their values, and integer codes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from numbers import Number
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core.frames import plain_column
from rankcore._core.inputs import reject_mask
from rankcore._core.numbers import check_lengths
from rankcore._ext.strings import fill, measure

Name = TypeVar("Name", bound=int | str)

# All strings of a NumPy array are as wide as the longest one. An array that would take more than
# LARGEST bytes plus TIMES the bytes of the strings holds Python objects instead.
LARGEST, TIMES = 2**24, 16
# Integers from here on may change when they become floats.
_INEXACT = 2.0**53


def unboxed(values: Any) -> Any:
    """Convert an array of objects to a list; return other values as they are."""
    if isinstance(values, Sequence):
        return values
    values = plain_column(values)
    array = np.asarray(values)
    if array.dtype.kind not in "OT" or array.ndim != 1 or np.ma.isMaskedArray(values):
        return values
    ids = array.tolist()
    # NumPy would make rows of a table of lists.
    return values if ids and isinstance(ids[0], list | np.ndarray) else ids


def as_column(values: Any, name: str) -> NDArray[Any]:
    """Convert ids or labels to an array without changing any; raise ValueError for missing ones.

    NumPy turns numbers, None and NaN among strings into strings, and large integers among others
    into floats, and drops zero bytes at the end of strings. Sequences with these become arrays of
    objects, as do strings one of which is much longer than the others.
    """
    column = unchanged(values, name)
    check_missing(column, name)
    return column


def unchanged(values: Any, name: str) -> NDArray[Any]:
    """Convert as `as_column`, without the check for missing values."""
    if (
        isinstance(values, Sequence)
        and not isinstance(values, str | bytes)
        and not hasattr(values, "dtype")
    ):
        array = _of_sequence(values)
        if array.dtype.kind != "U":
            reject_mask(values, name)
        return array
    reject_mask(values, name)
    array = np.asarray(plain_column(values))
    return array.astype(object) if array.dtype.kind == "T" else array


def joined(columns: Sequence[NDArray[Any]], name: str) -> NDArray[Any]:
    """Concatenate columns; values of different types are not converted."""
    if len({column.dtype.kind for column in columns}) == 1:
        return np.concatenate(columns)
    return unchanged([value for column in columns for value in column.tolist()], name)


def check_missing(column: NDArray[Any], name: str, rows: NDArray[Any] | None = None) -> None:
    """Raise ValueError if a value is None, NaN, NaT or pandas' NA.

    ``column`` may be the distinct values of ``rows``.
    """
    row: int | None = None
    if column.dtype.kind in "fmM":
        missing = np.isnan(column)
        row = int(missing.argmax()) if missing.any() else None
    elif column.dtype.kind == "O":
        row = _first_missing(column.ravel().tolist())
    if row is not None:
        if rows is not None:
            check_missing(rows, name)
        raise ValueError(
            f"{name} contains {_name_of(column.flat[row])} in row {row}: every row requires a "
            "value; drop rows without one"
        )


def check_present(items: list[Any], name: str) -> None:
    """Raise ValueError if an item of a list is None, NaN, NaT or pandas' NA."""
    place = _first_missing(items)
    if place is not None:
        raise ValueError(
            f"{name} contains {_name_of(items[place])} at position {place}: drop missing items, or "
            "give them a name"
        )


def _of_sequence(values: Sequence[Any]) -> NDArray[Any]:
    items = values if isinstance(values, list) else list(values)
    measured = measure(items)
    if measured is None or not items:
        return _of_others(items)
    longest, total, kept = measured
    if not kept or 4 * longest * len(items) > LARGEST + TIMES * 4 * total:
        return _objects(items)
    array = np.zeros(len(items), dtype=f"U{max(1, longest)}")
    fill(items, array.view(np.uint32).reshape(len(items), max(1, longest)))
    return array


def _of_others(values: list[Any]) -> NDArray[Any]:
    kinds = set(map(type, values))
    if tuple in kinds:  # NumPy would treat tuples as rows of a table
        return _objects(values)
    array = np.asarray(values)
    if array.ndim != 1:
        return array
    kind = array.dtype.kind
    if len(kinds) > 1 and (kind in "US" or bool in kinds):
        return _objects(values)
    if kind == "S" and any(value[-1:] == b"\0" for value in values):
        return _objects(values)
    if kinds == {int} and kind in "fO" and min(values) >= 0 and max(values) < 2**64:
        return np.array(values, dtype=np.uint64)
    if kind == "f" and not kinds <= {float} and array.size and np.abs(array).max() >= _INEXACT:
        return _objects(values)
    return array


def _objects(values: list[Any]) -> NDArray[Any]:
    return np.fromiter(values, object, len(values))


def _first_missing(values: list[Any]) -> int | None:
    """Find the first None, NaN, NaT or pandas' NA; return its row, or None."""
    kinds = set(map(type, values)) - {str, int, bool, bytes, tuple, list}
    for row, value in enumerate(values if kinds else ()):
        if type(value) in kinds and (
            value is None
            or type(value).__name__ in ("NAType", "NaTType")
            # The comparison of arrays is an array.
            or (isinstance(value, Number | np.datetime64 | np.timedelta64) and value != value)
        ):
            return row
    return None


def _name_of(missing: Any) -> str:
    return "NaN" if isinstance(missing, Number) else str(missing)


def as_ids(values: ArrayLike, name: str) -> NDArray[Any]:
    """Convert ids to a one-dimensional array of integers or strings.

    Its dtype is object for large integers, and for strings one of which is much longer than the
    others. TypeError unless all are integers or all are strings.
    """
    column = as_column(values, name)
    if column.ndim != 1:
        raise ValueError(f"{name} must have one dimension; got shape {column.shape}")
    if column.dtype.kind in "Uiu" or not column.size:
        return column
    ids = column.tolist()
    kinds = set(map(type, ids))
    if all(issubclass(kind, str) for kind in kinds):
        if "\0" in "".join(ids):
            row = next(row for row, text in enumerate(ids) if "\0" in text)
            raise ValueError(
                f"{name} must not contain zero bytes, at which other programs end a string; "
                f"got {ids[row]!r} in row {row}"
            )
        return column
    if all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
        return column
    row = next(
        i for i, value in enumerate(ids) if not _is_id(value) or type(value) is not type(ids[0])
    )
    problem = f"{type(ids[row]).__name__} {ids[row]!r:.60} in row {row}"
    raise TypeError(f"{name} must be all integers or all str; got {problem}")


def _is_id(value: Any) -> bool:
    return isinstance(value, int | np.integer | str) and not isinstance(value, bool)


def as_words(values: Any, name: str) -> NDArray[Any]:
    """Convert ids, integers or strings, to an array of strings."""
    ids = as_ids(unboxed(values), name)
    if ids.dtype.kind != "O":
        return ids.astype(str, copy=False)
    return as_column([*map(str, ids.tolist())], name)


def as_names(names: Iterable[Name], name: str) -> list[Name]:
    """List names; raise TypeError for a single string, whose letters would be taken for names."""
    if isinstance(names, str | bytes):
        raise TypeError(f"{name} must be a list of names; got the string {names!r:.60}")
    return [*names]


def numbered(
    qid: ArrayLike, docid: ArrayLike
) -> tuple[dict[str, Codes], NDArray[np.int32], NDArray[np.int32]]:
    """Assign numbers to queries and documents; return the codes of both, and numbers by row."""
    codes = {"query": Codes("query"), "document": Codes("document")}
    query = codes["query"].number(id_list(qid, "qid"))
    document = codes["document"].number(id_list(docid, "docid"))
    check_lengths(qid=query, docid=document)
    return codes, query, document


def id_list(values: ArrayLike, name: str) -> list[Any]:
    """Convert ids to a list of int or of str; see `as_ids`."""
    if isinstance(values, list) and set(map(type, values)) in ({int}, {str}):
        return values
    ids = as_ids(values, name)
    if ids.dtype.kind != "O":
        return ids.tolist()
    kind = str if ids.size and isinstance(ids[0], str) else int
    return [*map(kind, ids.tolist())]


class Codes:
    """Ids numbered in the order of their first appearance, all int or all str."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._known: dict[Any, int] = {}
        self._kind: type | None = None

    def __len__(self) -> int:
        return len(self._known)

    def number(
        self, ids: Sequence[Any], where: Callable[[int], str] = "row {}".format
    ) -> NDArray[np.int32]:
        """Look up numbers of ids; new ids get the next ones. ``where`` names a row in errors."""
        self._kind = _common_type(ids, self.name, where, self._kind)
        numbers = self._known
        for value in dict.fromkeys(ids):
            if value not in numbers:
                if self._kind is str and (not value or "\0" in value):
                    raise ValueError(_bad(self.name, value, where(ids.index(value))))
                numbers[value] = len(numbers)
        return np.fromiter(map(numbers.__getitem__, ids), np.int32, len(ids))

    def ids(self) -> NDArray[Any]:
        """Return the ids by number, as objects if a NumPy array of text would be much larger."""
        if not self._known:
            return np.empty(0, dtype=np.int64)
        return as_column([*self._known], self.name)

    def find(self, name: str, ids: ArrayLike) -> NDArray[np.int64]:
        """Return the numbers of ids, -1 if unknown; integers are equal to their strings."""
        items = id_list(ids, name)
        numbers: dict[Any, int] = self._known
        if items and self._kind is not None and type(items[0]) is not self._kind:
            items = [*map(str, items)]
            numbers = {str(value): code for value, code in numbers.items()}
        return np.array([numbers.get(value, -1) for value in items], dtype=np.int64)


def check_ids(
    ids: Sequence[Any], name: str, where: Callable[[int], str], kind: type | None = None
) -> type | None:
    """Raise ValueError unless ids are all integers or all words, of type ``kind`` if given.

    Returns the type. ``where`` names a row in errors.
    """
    kind = _common_type(ids, name, where, kind)
    if kind is str and ("" in ids or "\0" in "".join(ids)):
        at = next(at for at, value in enumerate(ids) if not value or "\0" in value)
        raise ValueError(_bad(name, ids[at], where(at)))
    return kind


def _common_type(
    ids: Sequence[Any], name: str, where: Callable[[int], str], kind: type | None
) -> type | None:
    kinds = set(map(type, ids))
    if len(kinds) == 1 and kinds <= {int, str} and kind in (None, *kinds):
        return kinds.pop()
    for at, value in enumerate(ids):
        if type(value) not in (int, str):
            raise ValueError(_bad(name, value, where(at)))
        if kind not in (None, type(value)):
            raise ValueError(
                f"{where(at)}: ids of {name} must all be integers or all strings; got "
                f"{value!r:.60} after ids of type {kind.__name__}"
            )
        kind = type(value)
    return kind


def _bad(name: str, value: Any, where: str) -> str:
    return f"{where}: ids of {name} must be integers or words without zero bytes; got {value!r:.60}"
