"""Writing LETOR files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, repeat
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankcore._core.arguments import RowsLike
from rankcore._core.inputs import as_rows
from rankcore._core.numbers import as_reals, refuse_mask
from rankcore.datasets.ids import written
from rankcore.datasets.streams import Target, writable

# Rows formatted at a time.
BLOCK = 4096


def dump_letor(
    X: RowsLike,
    y: ArrayLike,
    target: Target,
    *,
    qid: ArrayLike | None = None,
    docid: ArrayLike | None = None,
    comments: Sequence[str] | None = None,
    zero_based: bool = False,
) -> None:
    r"""Write rows as a LETOR file, so that `load_letor` gives back the same numbers to the bit.

    Parameters
    ----------
    X : scipy sparse matrix or array, or array-like, shape (n_rows, n_features)
        Stored values of sparse matrices are written, and all values of dense ones, including
        zeros, as in LETOR files. float32 is written with 9 digits, which are exact.
    y : array-like of numbers, shape (n_rows,)
    target : path or binary file
        A path that ends in ``.gz`` is compressed. A file object is not closed.
    qid : array-like of integers or str, shape (n_rows,), optional
    docid : array-like of integers or str, shape (n_rows,), optional
        Written as ``#docid = id``; empty ones are omitted.
    comments : sequence of str, shape (n_rows,), optional
        Written after ``#``, instead of document ids, which they may include.
    zero_based : bool, default=False
        Whether to number features from 0.

    Raises
    ------
    OSError
        If the file cannot be written.
    ValueError
        If lengths differ, ``docid`` and ``comments`` are both given, X is malformed, a number is
        not finite, or an id or comment cannot be written: ids must be words, comments single
        lines. The message names the row.
    TypeError
        If y or X are not real numbers.

    Notes
    -----
    O(values) time; memory holds a block of rows.

    Examples
    --------
    >>> import io
    >>> from rankcore.datasets import dump_letor
    >>> file = io.BytesIO()
    >>> dump_letor([[0.5, 2]], [1], file, qid=["q7"], docid=["GX1"])
    >>> file.getvalue()
    b'1 qid:q7 1:0.5 2:2 #docid = GX1\n'
    """
    if docid is not None and comments is not None:
        raise ValueError("docid and comments are both given; pass the ids inside the comments")
    given: Any = X
    empty = np.ndim(given) == 2 and np.shape(given)[0] == 0
    examples = None if empty else as_rows(X)
    n_rows = 0 if examples is None else examples.n_rows
    labels = _column("y", as_reals(y, "y"), n_rows)
    if not np.isfinite(labels).all():
        raise ValueError(f"y must be finite; found {labels[~np.isfinite(labels)][0]}")
    columns = {
        name: None if part is None else _column(name, part, n_rows).tolist()
        for name, part in [("qid", qid), ("docid", docid), ("comments", comments)]
    }
    with writable(target) as stream:
        for start in range(0, n_rows, BLOCK):
            rows = slice(start, start + BLOCK)
            parts = {name: part and part[rows] for name, part in columns.items()}
            lines = zip(
                _labels(labels[rows]),
                _ids(" qid:", "qid", parts["qid"], start, "#"),
                _features(examples, rows, 0 if zero_based else 1),
                _ids(" #docid = ", "docid", parts["docid"], start),
                _comments(parts["comments"], start),
                strict=False,  # omitted columns are infinite iterators
            )
            text = "".join("".join(line) + "\n" for line in lines)
            stream.write(text.encode("utf-8", "surrogateescape"))


def _column(name: str, values: Any, n_rows: int) -> np.ndarray:
    refuse_mask(values, name)
    column = np.asarray(values)
    if column.shape != (n_rows,):
        raise ValueError(
            f"{name} must have shape ({n_rows},), an entry for each row of X; found {column.shape}"
        )
    return column


def _labels(labels: np.ndarray) -> Iterator[str]:
    if labels.dtype.kind == "f":
        return (repr(label).removesuffix(".0") for label in labels.astype(np.float64).tolist())
    return map(str, labels.astype(int if labels.dtype.kind == "b" else labels.dtype).tolist())


def _features(examples: Any, rows: slice, first: int) -> Iterator[str]:
    """The features of each of some rows, each after a space."""
    # Reading rounds float32 twice. Nine digits are so close that this is harmless, unlike the
    # shortest text that identifies a float32.
    pattern = "%.9g" if examples.arrays[0].dtype.itemsize == 4 else "%r"
    if examples.columns is None:
        X = examples.arrays[0][rows]
        template = "".join(f" {first + column}:{pattern}" for column in range(X.shape[1])) + " "
        texts: Iterator[str] = (template % tuple(row) for row in X.tolist())
    else:
        texts = _sparse_features(examples, rows, first, f" %d:{pattern}")
    return (text.replace(".0 ", " ").rstrip(" ") for text in texts)


def _sparse_features(examples: Any, rows: slice, first: int, pattern: str) -> Iterator[str]:
    data, indices, indptr = examples.arrays
    ends = indptr[rows.start : rows.stop + 1].tolist()
    stored = slice(ends[0], ends[-1])
    pairs: list[Any] = [None] * (2 * (ends[-1] - ends[0]))
    pairs[::2] = (indices[stored].astype(np.int64) + first).tolist()
    pairs[1::2] = data[stored].tolist()
    for start, end in pairwise(end - ends[0] for end in ends):
        yield pattern * (end - start) % tuple(pairs[2 * start : 2 * end]) + " "


def _ids(
    before: str, name: str, ids: list[Any] | None, start: int, forbidden: str = ""
) -> Iterator[str]:
    """Each id after ``before``; without ids, an infinite iterator of empty texts."""
    if ids is None:
        yield from repeat("")
    else:
        for word in written(name, ids, start, forbidden, empty=name == "docid"):
            yield before + word if word else ""


def _comments(comments: list[Any] | None, start: int) -> Iterator[str]:
    if comments is None:
        yield from repeat("")
        return
    for row, comment in enumerate(comments, start):
        if not isinstance(comment, str) or "\n" in comment or "\0" in comment:
            raise ValueError(
                f"the comment {comment!r} of row {row} cannot be written: it must be a line of str"
            )
        yield f" # {comment}" if comment else ""
