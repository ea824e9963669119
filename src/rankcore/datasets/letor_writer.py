"""Writing LETOR files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from rankcore._core.arguments import RowsLike
from rankcore._core.ids import as_column, as_ids
from rankcore._core.inputs import as_rows
from rankcore._core.numbers import as_reals
from rankcore._ext.letor_writing import row_texts
from rankcore.datasets.ids import written
from rankcore.datasets.streams import Target, writable

# Rows formatted at a time, and values unless one row has more.
BLOCK = 4096
BLOCK_VALUES = 2**15


def dump_letor(
    X: RowsLike,
    y: ArrayLike,
    target: Target,
    *,
    qid: ArrayLike | None = None,
    docid: ArrayLike | None = None,
    comments: Sequence[str] | None = None,
    zero_based: bool = False,
    ensure_all_finite: Literal[True, "allow-nan"] = True,
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
    ensure_all_finite : True or "allow-nan", default=True
        ``"allow-nan"`` writes missing values as ``nan``, which `load_letor` reads with the same
        argument, and the command line for learners that take them.

    Raises
    ------
    OSError
        If the file cannot be written.
    ValueError
        If lengths differ, ``docid`` and ``comments`` are both given, X is malformed, a number is
        not finite (or NaN, if allowed), or an id or comment cannot be written: ids must be words,
        comments single lines. The message names the row.
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
        raise ValueError("docid and comments exclude each other: write the ids inside the comments")
    matrix: Any = X
    empty = np.ndim(matrix) == 2 and np.shape(matrix)[0] == 0
    if ensure_all_finite is not True and ensure_all_finite != "allow-nan":
        raise ValueError(
            f'ensure_all_finite must be True or "allow-nan"; got {ensure_all_finite!r}'
        )
    examples = None if empty else as_rows(X, nan=ensure_all_finite == "allow-nan")
    n_rows = 0 if examples is None else examples.n_rows
    labels = _column("y", as_reals(y, "y"), n_rows)
    if not np.isfinite(labels).all():
        raise ValueError(f"y must be finite; got {labels[~np.isfinite(labels)][0]}")
    columns = {
        name: None if part is None else _column(name, part, n_rows).tolist()
        for name, part in [("qid", qid), ("docid", docid), ("comments", comments)]
    }
    per_row = 1 if examples is None else examples.n_values // n_rows + 1
    step = max(1, min(BLOCK, BLOCK_VALUES // per_row))
    with writable(target) as stream:
        for start in range(0, n_rows, step):
            rows = slice(start, min(start + step, n_rows))
            parts = {name: part and part[rows] for name, part in columns.items()}
            lines = zip(
                _labels(labels[rows]),
                _ids(" qid:", "qid", parts["qid"], start, "#"),
                row_texts(examples, rows.start, rows.stop, 0 if zero_based else 1),
                _ids(" #docid = ", "docid", parts["docid"], start),
                _comments(parts["comments"], start),
                repeat("\n"),
                strict=False,  # omitted columns are infinite iterators
            )
            text = "".join(chain.from_iterable(lines))
            stream.write(text.encode("utf-8", "surrogateescape"))


def _column(name: str, values: Any, n_rows: int) -> np.ndarray:
    column = as_ids(values, name) if name in ("qid", "docid") else as_column(values, name)
    if column.shape != (n_rows,):
        raise ValueError(
            f"{name} must have shape ({n_rows},), an entry for each row of X; got {column.shape}"
        )
    return column


def _labels(labels: np.ndarray) -> Iterator[str]:
    if labels.dtype.kind == "f":
        return (repr(label).removesuffix(".0") for label in labels.astype(np.float64).tolist())
    return map(str, labels.astype(int if labels.dtype.kind == "b" else labels.dtype).tolist())


def _ids(
    before: str, name: str, ids: list[Any] | None, start: int, forbidden: str = ""
) -> Iterator[str]:
    """Yield each id after ``before``; without ids, yield empty texts."""
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
