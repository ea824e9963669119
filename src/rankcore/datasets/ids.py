"""Query and document ids: arrays of words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from rankcore._ext.tokens import first_equal, take

# Ids become arrays of fixed width: one overlong id must not make these huge.
MAX_ID = 4096

# What ends a word in a file.
SPACES = " \t\n\r\v\f\0"


def as_words(name: str, values: Any) -> np.ndarray:
    """Ids as an array of str.

    Parameters
    ----------
    name : str
        Their name in errors.
    values : array-like of str or integers, shape (n,)

    Returns
    -------
    ndarray of str, shape (n,)

    Raises
    ------
    TypeError, ValueError
        If they are of another type or shape.
    """
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, found shape {array.shape}")
    if array.dtype.kind not in "Uiu":
        for kind in set(map(type, array.tolist())):
            if not issubclass(kind, str | int):
                raise TypeError(f"{name} must be str or integers, found {kind.__name__}")
    return array.astype(str, copy=False)


def words_of(text: memoryview, spans: np.ndarray, longest: int) -> np.ndarray:
    """Parts of a text as an array of str.

    Parameters
    ----------
    text : memoryview of bytes
    spans : ndarray of int64, shape (n, 2)
        Where each starts and stops.
    longest : int
        Bytes of the longest.

    Returns
    -------
    ndarray of str, shape (n,)
        Bytes that are not UTF-8 survive as in Python's file names.
    """
    words = np.empty(len(spans), f"U{max(1, longest)}")
    if take(text, spans, words.view(np.uint32).reshape(len(spans), max(1, longest))):
        return words
    return np.array([word(text, start, stop) for start, stop in spans.tolist()])


def word(text: memoryview, start: int, stop: int) -> str:
    """Part of a text as `words_of` has it.

    Parameters
    ----------
    text : memoryview of bytes
    start, stop : int

    Returns
    -------
    str
    """
    return bytes(text[start:stop]).decode("utf-8", "surrogateescape")


def first_rows(codes: np.ndarray | None, words: np.ndarray) -> np.ndarray:
    """The first row with the same code and word, for each row.

    Parameters
    ----------
    codes : ndarray of int64, shape (n,), or None
        None if the words alone count.
    words : ndarray of str, shape (n,)

    Returns
    -------
    ndarray of int64, shape (n,)

    Notes
    -----
    O(n) expected, times the length of the longest word.
    """
    n = words.size
    native = np.ascontiguousarray(words, dtype=f"=U{max(1, words.itemsize // 4)}")
    first = np.empty(n, np.int64)
    first_equal(
        np.zeros(n, np.int64) if codes is None else codes,
        native.view(np.uint32).reshape(n, native.itemsize // 4),
        np.empty(1 << (2 * n).bit_length(), np.int64),
        first,
    )
    return first


def written(
    name: str, ids: list[Any], start: int, forbidden: str = "", *, empty: bool = False
) -> Iterator[str]:
    """Check ids that will be words of a file.

    Parameters
    ----------
    name : str
        Their name in errors.
    ids : list of str or int
    start : int
        The first one's row.
    forbidden : str
        Letters that they must not have, besides spaces.
    empty : bool
        Whether they may be empty.

    Yields
    ------
    str
        Each id.

    Raises
    ------
    ValueError
        If one cannot be written.
    """
    strange = re.compile(f"[{re.escape(SPACES + forbidden)}]").search
    for row, found in enumerate(ids, start):
        text = str(found)
        if (
            not isinstance(found, int | str)
            or strange(text)
            or not (text or empty)
            or (len(text) > MAX_ID // 4 and len(text.encode("utf-8", "surrogateescape")) > MAX_ID)
        ):
            besides = f" and {forbidden}" if forbidden else ""
            raise ValueError(
                f"{name} {found!r} of row {row} cannot be written: it must be an integer or a str "
                f"of 1 to {MAX_ID} bytes without spaces{besides}"
            )
        yield text
