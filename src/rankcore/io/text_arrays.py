"""Arrays of text and dates in a format for numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Suffix of the array with the end of each string.
ENDS = ".ends"
# The kind of an array of Python strings, which may end in zero bytes.
STRINGS = "str"
# Width of NumPy strings that may exceed the longest string.
WIDEST = 1024
# An array of NumPy strings, all as wide as the longest, has at most LARGEST bytes plus TIMES its
# bytes in the file.
LARGEST, TIMES = 2**20, 16


def encode(arrays: Mapping[str, NDArray[Any]]) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Encode arrays of text and dates as numbers; also return the kinds of the encoded arrays.

    Text becomes the concatenated strings in UTF-8 and an array with the end of each; its kind is
    "str" or a NumPy type such as "U10". Dates and timedeltas become int64, of a kind such as
    "datetime64[D]".
    """
    encoded, kinds = {}, {}
    for name, array in arrays.items():
        values = array.reshape(-1).tolist() if array.dtype.kind in "USO" else []
        if array.dtype.kind in "US" or (values and all(isinstance(value, str) for value in values)):
            longest, width = max(map(len, values), default=0), array.dtype.str.lstrip("<>|=")
            kinds[name] = STRINGS
            strings = [value.encode() if isinstance(value, str) else value for value in values]
            encoded[name] = np.frombuffer(b"".join(strings), dtype=np.uint8)
            encoded[name + ENDS] = np.cumsum([len(text) for text in strings], dtype=np.int64)
            if array.dtype.kind != "O":  # keeps its width, unless that is out of proportion
                wide = int(width[1:]) <= WIDEST and _fits(array.nbytes, encoded[name], values)
                kinds[name] = width if wide else f"{width[0]}{longest}"
        elif array.dtype.kind in "mM":
            kinds[name] = array.dtype.newbyteorder("=").name
            encoded[name] = array.astype(array.dtype.newbyteorder("=")).view(np.int64)
        elif array.dtype.kind in "biuf":
            encoded[name] = array
        else:
            raise TypeError(f"the array {name} of dtype {array.dtype} cannot be written to a file")
    return encoded, kinds


def decode(name: str, kind: str, read: Callable[[str], NDArray[Any]]) -> NDArray[Any]:
    """Decode an array from the result of `encode`; ``read`` returns an array by name."""
    array = read(name)
    if kind != STRINGS and kind[:1] not in ("U", "S"):
        if array.dtype != np.int64 or not kind.startswith(("datetime64", "timedelta64")):
            raise ValueError(f"the array {name} cannot be of the type {kind!r}")
        return array.view(np.dtype(kind))
    ends = read(name + ENDS)
    lists = array.dtype == np.uint8 and ends.dtype == np.int64 and array.ndim == ends.ndim == 1
    ascend = lists and (ends[:1] >= 0).all() and (ends[1:] >= ends[:-1]).all()
    if not ascend or (ends[-1:] != array.size).any():
        raise ValueError(f"the strings {name} must end within their bytes, in ascending order")
    content, places = array.tobytes(), [0, *ends.tolist()]
    parts = (content[first:last] for first, last in pairwise(places))
    texts: list[Any] = list(parts) if kind[:1] == "S" else [part.decode() for part in parts]
    if kind == STRINGS:
        return np.array(texts, dtype=object)
    longest, width = max(map(len, texts), default=0), int(kind[1:])
    if not longest <= width <= max(longest, WIDEST):
        raise ValueError(
            f"the strings {name} have up to {longest} characters; got a width of {width}"
        )
    size = len(texts) * np.dtype(kind).itemsize
    if not _fits(size, array, texts):
        raise ValueError(
            f"the {len(texts)} strings {name} of up to {longest} characters take {size} bytes in "
            "one array of NumPy: shorten the longest"
        )
    return np.array(texts, dtype=kind)


def _fits(size: int, content: NDArray[np.uint8], strings: list[Any]) -> bool:
    """Return whether an array of NumPy strings is not much larger than its bytes in the file."""
    return size <= LARGEST + TIMES * (content.nbytes + 8 * len(strings))
