"""Numbering of ids, so that logs hold integers instead of strings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core.numbers import check_lengths
from rankcore.datasets.ids import as_words


def as_ids(name: str, values: ArrayLike) -> NDArray[Any]:
    """One-dimensional ids: int64 or str; ``name`` is their name in errors."""
    array = np.asarray(values)
    if array.ndim == 1 and array.dtype.kind in "iu":
        return array.astype(np.int64)
    return as_words(name, array)


def numbered(
    qid: ArrayLike, docid: ArrayLike
) -> tuple[dict[str, Codes], NDArray[np.int32], NDArray[np.int32]]:
    """Codes of queries and documents, and the numbers of both in each row."""
    codes = {"query": Codes("query"), "document": Codes("document")}
    query = codes["query"].number(as_ids("qid", qid).tolist())
    document = codes["document"].number(as_ids("docid", docid).tolist())
    check_lengths(qid=query, docid=document)
    return codes, query, document


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
        """Numbers of ids; new ids get the next numbers. ``where`` names a row in errors."""
        known = self._known
        try:
            found = [*map(known.get, ids)]
        except TypeError:  # an array or object of JSON
            at = next(i for i, one in enumerate(ids) if type(one) not in (int, str))
            self._check(ids[at], where, at)
            raise
        if None in found:
            for at, one in enumerate(ids):
                if one not in known:
                    self._check(one, where, at)
                    known[one] = len(known)
            found = [known[one] for one in ids]
        return np.array(found, dtype=np.int32)

    def _check(self, one: Any, where: Callable[[int], str], at: int) -> None:
        kind = type(one)
        if kind not in (int, str) or one == "":
            raise ValueError(
                f"{where(at)}: ids of {self.name} must be integers or words; found {one!r}"
            )
        if self._kind not in (None, kind):
            raise ValueError(
                f"{where(at)}: ids of {self.name} must all be integers or all strings; found "
                f"{next(iter(self._known))!r} and {one!r}"
            )
        self._kind = kind

    def ids(self) -> NDArray[Any]:
        """The ids by number: int64, or str."""
        found = [*self._known]
        return np.array(found, dtype=np.int64 if self._kind is int else np.str_)

    def find(self, name: str, ids: ArrayLike) -> NDArray[np.int64]:
        """Numbers of ids, -1 if unknown; integers are equal to their strings."""
        given = as_ids(name, ids).tolist()
        known: dict[Any, int] = self._known
        if given and self._kind is not None and type(given[0]) is not self._kind:
            given = [*map(str, given)]
            known = {str(one): code for one, code in known.items()}
        return np.array([known.get(one, -1) for one in given], dtype=np.int64)
