"""Examples from svmlight and LETOR files, for the commands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from rankcore.cli.files import Columns
from rankcore.datasets.letor import load
from rankcore.datasets.letor_blocks import Options
from rankcore.datasets.parquet_rows import ParquetRows, is_parquet


def read(
    data: str,
    *,
    zero_based: bool = False,
    n_features: int | None = None,
    expected: str = "n_features",
    report: Callable[[int], None] = lambda number: None,
    docid: bool = False,
    columns: Columns | None = None,
) -> tuple[Any, np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Read labelled examples and their queries.

    Parameters
    ----------
    data : str
        Path, or ``-`` for standard input. gzip, bzip2, Zstandard and Parquet are recognised by
        their first bytes.
    zero_based : bool, default=False
        Whether the first feature has the number 0 instead of 1.
    n_features : int, optional
        Columns of the result; by default the highest number in the file.
    expected : str
        Name of the source of ``n_features`` in errors.
    report : callable
        Called with the number of lines read so far, now and then.
    docid : bool, default=False
        Whether to look for document ids in comments.
    columns : Columns, optional
        Of a Parquet file.

    Returns
    -------
    X : scipy sparse CSR of float64, shape (n_rows, n_features)
    y : ndarray, shape (n_rows,)
        int64 where all labels are whole numbers, otherwise float64.
    qid : ndarray, shape (n_rows,), or None
        None if the file has no ``qid:``.
    docid : ndarray of str, shape (n_rows,), or None
        None unless requested, and if no comment has one.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If it is malformed (says in which line), empty, or has more than ``n_features``.

    Notes
    -----
    Comments are skipped. NaN and infinity pass: the learners say whether they accept them.
    """
    if data != "-" and is_parquet(data):
        X, y, qid, ids = load_table(data, columns or Columns())
        if n_features is not None and X.shape[1] != n_features:
            raise ValueError(
                f"{data} has {X.shape[1]} columns of features; {expected} has {n_features}"
            )
        return X, _whole(y), qid, ids if docid else None
    options = Options(
        n_features=None,
        dtype=np.float64,
        dense=False,
        zero_based=zero_based,
        docid=docid,
        comments=False,
        ensure_all_finite=False,
        n_jobs=None,
    )
    source: Any = sys.stdin.buffer if data == "-" else data
    loaded = load(source, options, title(data), report)
    X, y = loaded.X, loaded.y
    if n_features is not None and X.shape[1] > n_features:
        raise ValueError(
            f"{title(data)} has {X.shape[1]} features, more than the {n_features} of {expected}"
        )
    # A file does not mention the features that are zero in all of it.
    X.resize((X.shape[0], n_features or max(1, X.shape[1])))
    return X, _whole(y), loaded.qid, loaded.docid


def _whole(y: np.ndarray) -> np.ndarray:
    """Labels as integers, if all are whole numbers."""
    if (y == np.floor(y)).all() and np.abs(y).max(initial=0) < 2**53:
        return y.astype(np.int64)
    return y


def load_table(
    path: str, columns: Columns
) -> tuple[Any, np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Rows of a Parquet file, in memory: X, y, qid and document ids, if it has them."""
    table = ParquetRows(
        [path], np.float64, 1, columns.label, columns.query, columns.features, columns.labelled
    )
    return table.load()


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
