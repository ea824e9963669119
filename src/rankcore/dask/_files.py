"""Text files divided into byte ranges at boundaries of queries, for reading by workers.

`cut` divides a file by its size alone, without reading it; `read` moves both ends of a range to the
next query, so that each query is in one range.
"""

from __future__ import annotations

import io
import os
import re
from itertools import pairwise
from typing import Any, BinaryIO, NamedTuple

from rankcore.datasets.letor import load
from rankcore.datasets.text_rows import reading_options

_QUERY = re.compile(rb"\s*[^\s#]+\s+qid:(\S+)")
_ROW = re.compile(rb"\s*[^\s#]")
# Magic bytes of files that cannot be read from the middle: gzip, bzip2 and Zstandard.
_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd")


class Range(NamedTuple):
    """Byte range of a file: the queries that start in it, to their ends."""

    path: str
    start: int
    stop: int


def cut(path: str, n: int) -> list[Range]:
    """Divide a file into at most n ranges of equal length; a compressed file is one range."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        whole = file.read(4).startswith(_COMPRESSED)
    edges = [size * i // n for i in range(n + 1)] if not whole else [0, size]
    return [Range(path, a, b) for a, b in pairwise(edges) if a < b]


def read(part: Range, n_features: int | None, zero_based: bool, dtype: Any) -> Any:
    """Read the rows of a range, as `load_letor` does; None if no query starts in it."""
    options = reading_options(zero_based, dtype, n_features)
    size = os.path.getsize(part.path)
    if part.start == 0 and part.stop == size:
        return load(part.path, options)
    with open(part.path, "rb") as file:
        begin, end = boundary(file, part.start, size), boundary(file, part.stop, size)
        file.seek(begin)
        text = file.read(end - begin)
    if not any(map(_ROW.match, text.splitlines())):
        return None
    # Lines are counted from the range; the name has its start.
    return load(io.BytesIO(text), options, f"{part.path} from byte {begin}")


def boundary(file: BinaryIO, at: int, size: int) -> int:
    """Return the start of the first query, or line without queries, at or after a byte."""
    if at <= 0 or at >= size:
        return max(0, min(at, size))
    file.seek(at - 1)
    file.readline()
    position = file.tell()
    before = _query_before(file, position)
    file.seek(position)
    while line := file.readline():
        found = _QUERY.match(line)
        if _ROW.match(line) and (found is None or found[1] != before):
            break
        position += len(line)
    return position


def _query_before(file: BinaryIO, position: int) -> bytes | None:
    """Return the query of the last row before a line."""
    length = 1 << 12
    while True:
        start = max(0, position - length)
        file.seek(start)
        lines = file.read(position - start).splitlines()
        for line in reversed(lines[1:] if start else lines):  # the first may be incomplete
            if _ROW.match(line):
                found = _QUERY.match(line)
                return None if found is None else found[1]
        if start == 0:
            return None
        length *= 4
