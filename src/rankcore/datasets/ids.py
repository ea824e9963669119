"""Arrays of query and document ids."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from rankcore._ext.tokens import first_equal, take

# Ids become arrays of fixed width; an overlong id would make these very large.
MAX_ID = 4096

# Characters that end a word in a file.
SPACES = " \t\n\r\v\f\0"


def words_of(text: memoryview, spans: np.ndarray, longest: int) -> np.ndarray:
    """Cut words of at most ``longest`` bytes, given by (start, stop), from a text.

    Invalid UTF-8 is kept by surrogate escapes, as in Python's file names.
    """
    words = np.empty(len(spans), f"U{max(1, longest)}")
    if take(text, spans, words.view(np.uint32).reshape(len(spans), max(1, longest))):
        return words
    return np.array([word(text, start, stop) for start, stop in spans.tolist()])


def word(text: memoryview, start: int, stop: int) -> str:
    """Decode one word of a text as `words_of` does."""
    return bytes(text[start:stop]).decode("utf-8", "surrogateescape")


def check_length(
    name: str, line: int, text: memoryview, start: int, stop: int, hint: str = ""
) -> None:
    """Raise if an id in a line of a file is too long for an array of ids."""
    if stop - start > MAX_ID:
        raise ValueError(
            f"{name}, line {line}: an id of {stop - start} bytes, which begins with "
            f"{word(text, start, start + 40)!r}; at most {MAX_ID} are supported{hint}"
        )


def first_rows(codes: np.ndarray | None, words: np.ndarray) -> np.ndarray:
    """Find each row's first row with the same word and, if given, the same code.

    O(n) expected, times the length of the longest word.
    """
    n = words.size
    if words.dtype.kind == "O":  # one word is much longer than the others
        first_by_key: dict[Any, int] = {}
        groups = [0] * n if codes is None else codes.tolist()
        keys = zip(groups, words.tolist(), strict=True)
        return np.fromiter(
            (first_by_key.setdefault(k, row) for row, k in enumerate(keys)), np.int64, n
        )
    native = np.ascontiguousarray(words, dtype=f"=U{max(1, words.itemsize // 4)}")
    first = np.empty(n, np.int64)
    first_equal(
        np.zeros(n, np.int64) if codes is None else codes,
        native.view(np.uint32).reshape(n, native.itemsize // 4),
        np.empty(1 << (2 * n).bit_length(), np.int64),
        first,
    )
    return first


def places(groups: np.ndarray) -> np.ndarray:
    """Return the index of each row within its group, for rows sorted by group."""
    rows = np.arange(groups.size)
    starts = np.ones(groups.size, dtype=bool)
    starts[1:] = groups[1:] != groups[:-1]
    return rows - np.maximum.accumulate(np.where(starts, rows, 0))


def written(
    name: str, ids: list[Any], start: int, forbidden: str = "", *, empty: bool = False
) -> Iterator[str]:
    """Yield ids from row ``start`` on as str; raise ValueError for those that no file can hold.

    They must not contain ``forbidden`` letters or spaces, nor be empty unless that is
    allowed.
    """
    strange = re.compile(f"[{re.escape(SPACES + forbidden)}]").search
    for row, value in enumerate(ids, start):
        text = str(value)
        if (
            not isinstance(value, int | str)
            or strange(text)
            or not (text or empty)
            or (len(text) > MAX_ID // 4 and len(text.encode("utf-8", "surrogateescape")) > MAX_ID)
        ):
            besides = f" and {forbidden}" if forbidden else ""
            raise ValueError(
                f"{name} {value!r} of row {row} cannot be written: it must be an integer or a str "
                f"of 1 to {MAX_ID} bytes without spaces{besides}"
            )
        yield text
