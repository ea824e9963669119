"""Examples from svmlight and LETOR files, with errors that name the file and the line."""

from __future__ import annotations

import bz2
import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

# Lines read between two reports of progress.
LINES_A_STEP = 1000


def read(
    data: str,
    *,
    zero_based: bool = False,
    n_features: int | None = None,
    expected: str = "n_features",
    report: Callable[[int], None] = lambda number: None,
) -> tuple[Any, np.ndarray]:
    """Read labelled examples with scikit-learn's reader.

    Parameters
    ----------
    data : str
        Path, or ``-`` for standard input. gzip and bzip2 are told by their first bytes.
    zero_based : bool, default=False
        Whether the first feature has the number 0 instead of 1.
    n_features : int, optional
        Columns of the result; by default the highest number in the file.
    expected : str
        What an error calls the source of ``n_features``.
    report : callable
        Called with the number of lines read so far, now and then.

    Returns
    -------
    X : scipy sparse CSR of float64, shape (n_rows, n_features)
    y : ndarray, shape (n_rows,)
        int64 where all labels are whole numbers, otherwise float64.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If it is malformed (says in which line), empty, or has more than ``n_features``.

    Notes
    -----
    Query numbers (``qid:``) and comments are skipped.
    """
    X, y, _ = read_queries(
        data, zero_based=zero_based, n_features=n_features, expected=expected, report=report
    )
    return X, y


def read_queries(
    data: str,
    *,
    zero_based: bool = False,
    n_features: int | None = None,
    expected: str = "n_features",
    report: Callable[[int], None] = lambda number: None,
) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Read labelled examples and the queries they belong to.

    Parameters
    ----------
    data, zero_based, n_features, expected, report
        As for `read`.

    Returns
    -------
    X, y
        As of `read`.
    qid : ndarray of int64, shape (n_rows,), or None
        None unless every line has a ``qid:``.

    Raises
    ------
    OSError, ValueError
        As `read`.
    """
    from sklearn.datasets import load_svmlight_file

    name = title(data)
    with _open(data) as stream:
        lines = CountedLines(stream, report)
        try:
            X, y, qid = load_svmlight_file(lines, zero_based=zero_based, query_id=True)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{name} is damaged: {error}") from error
        except (ValueError, OverflowError) as error:
            what = _what_is_wrong(error, lines.line)
            raise ValueError(f"{name}, line {lines.number}: {what}") from error
    if X.shape[0] == 0:
        raise ValueError(f"{name} holds no examples")
    if n_features is not None:
        if X.shape[1] > n_features:
            found = X.shape[1]
            raise ValueError(
                f"{name} has {found} features, more than the {n_features} of {expected}"
            )
        # A file does not mention the features that are zero in all of it.
        X.resize((X.shape[0], n_features))
    if (y == np.floor(y)).all() and np.abs(y).max() < 2**53:
        y = y.astype(np.int64)
    return X, y, qid if qid.size == y.size else None


def title(data: str) -> str:
    """Name a data file in messages.

    Parameters
    ----------
    data : str
        Path, or ``-``.

    Returns
    -------
    str
    """
    return "standard input" if data == "-" else data


class CountedLines:
    """The lines of a stream, counted, so that an error can say where it is.

    Parameters
    ----------
    stream : iterable of bytes
    report : callable
        Called with ``number`` now and then.

    Attributes
    ----------
    number : int
        Lines handed out so far.
    line : bytes
        The last of them.
    """

    def __init__(self, stream: Iterable[bytes], report: Callable[[int], None]) -> None:
        self.stream = stream
        self.report = report
        self.number = 0
        self.line = b""

    def __iter__(self) -> Iterator[bytes]:
        """Hand out the lines."""
        for line in self.stream:
            self.line = line
            self.number += 1
            if self.number % LINES_A_STEP == 0:
                self.report(self.number)
            yield line

    def read(self) -> bytes:
        """Exist, so that scikit-learn takes this for a file; it then reads line by line."""
        raise io.UnsupportedOperation("read line by line")


@contextmanager
def _open(data: str) -> Iterator[Iterable[bytes]]:
    with ExitStack() as stack:
        raw: Any = (
            sys.stdin.buffer if data == "-" else stack.enter_context(open(data, "rb", buffering=0))
        )
        stream = io.BufferedReader(raw)
        try:
            # A stream has no file name extension, and a file may have a wrong one.
            start = stream.peek(3)
            if start.startswith(b"\x1f"):
                with gzip.open(stream) as unpacked:
                    yield unpacked
            elif start.startswith(b"BZh"):
                with bz2.open(stream) as unpacked:
                    yield unpacked
            else:
                yield stream
        finally:
            stream.detach()  # leaves standard input open


def _what_is_wrong(error: Exception, line: bytes) -> str:
    """Say what scikit-learn's reader means in words that help."""
    if "Invalid index 0" in str(error):
        return "feature 0, but features count from 1; if here they count from 0, use --zero-based"
    if "Invalid index" in str(error):
        return "a feature has a negative number"
    if "sorted and unique" in str(error):
        return "feature numbers must ascend and not repeat"
    if isinstance(error, OverflowError):
        return f"a feature number is too large; at most {2**31 - 1} is supported"
    start = line.decode(errors="replace").strip()[:60]
    return f"cannot read {start!r}; expected: label number:value number:value ..."
