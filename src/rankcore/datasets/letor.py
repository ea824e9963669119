"""LETOR and svmlight files: rows with labels, query ids, document ids and comments."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from rankcore._core.params import check_count
from rankcore.datasets.letor_blocks import Collected, Options, blocks
from rankcore.datasets.streams import Source, open_lines, title
from rankcore.datasets.text_rows import QueryStarts, text_blocks
from rankcore.metrics.tables import Table

if TYPE_CHECKING:
    from pandas import DataFrame

_PAIR = re.compile(r"([\w.-]+)\s*=\s*(\S+)")


@dataclass(frozen=True, eq=False)
class LetorData:
    """Rows of a LETOR or svmlight file: ``X, y, qid = load_letor(path)``.

    Attributes
    ----------
    X : scipy.sparse.csr_matrix or ndarray, shape (n_rows, n_features)
        float32 or float64. CSR is in canonical format: columns ascend without duplicates.
    y : ndarray of float64, shape (n_rows,)
        Labels.
    qid : ndarray, shape (n_rows,), or None
        Query ids: int64 if all are integers, otherwise str as written. None without ``qid:``.
    docid : ndarray of str, shape (n_rows,), or None
        Document ids from the comments, empty for rows without one. None if no row has one.
    comments : list of str or None
        Comments, empty for rows without one. None unless requested.
    """

    X: Any
    y: np.ndarray
    qid: np.ndarray | None
    docid: np.ndarray | None
    comments: list[str] | None

    def __repr__(self) -> str:
        n_rows, n_features = self.X.shape
        form = "dense" if isinstance(self.X, np.ndarray) else "CSR"
        parts = [f"{n_rows} x {n_features} {form} {self.X.dtype}"]
        for name in ["qid", "docid", "comments"]:
            if getattr(self, name) is not None:
                parts.append(name)
        return f"LetorData({', '.join(parts)})"

    def __iter__(self) -> Iterator[Any]:
        """Iterate over X, y and qid, the arguments of ``fit``."""
        return iter((self.X, self.y, self.qid))

    def _repr_html_(self) -> str:
        """Return a table of counts and of the first rows, for notebooks."""
        n_rows, n_features = self.X.shape
        facts = [f"{n_rows:,} rows", f"{n_features:,} features"]
        if self.qid is not None:
            facts.append(f"{len(np.unique(self.qid)):,} queries")
        if not isinstance(self.X, np.ndarray):
            facts.append(f"{self.X.nnz:,} stored values")
        levels, counts = np.unique(self.y, return_counts=True)
        if levels.size <= 10:
            shares = (f"{y:g}: {n:,}" for y, n in zip(levels, counts, strict=True))
            facts.append(f"labels {', '.join(shares)}")
        rows = []
        for i in range(min(5, n_rows)):
            row = self.X[i] if isinstance(self.X, np.ndarray) else self.X[[i]].toarray()[0]
            stored = [f"{j + 1}: {row[j]:g}" for j in np.flatnonzero(row)[:6]]
            ids = [str(self.qid[i])] if self.qid is not None else []
            ids += [str(self.docid[i])] if self.docid is not None else []
            more = " ..." if np.count_nonzero(row) > len(stored) else ""
            rows.append([*ids, f"{self.y[i]:g}", ", ".join(stored) + more])
        ids = ["qid"] * (self.qid is not None) + ["docid"] * (self.docid is not None)
        headings = [*ids, "label", "features, counted from 1"]
        return Table(headings, rows, "; ".join(facts), n_names=len(ids)).html()

    def to_pandas(self) -> DataFrame:
        """Convert the rows to a pandas frame.

        Returns
        -------
        pandas.DataFrame
            Columns ``label``, ``qid`` and ``docid``, if present, then the features, named by
            their numbers from 1: "1", "2" ... CSR gives sparse columns.

        Raises
        ------
        ModuleNotFoundError
            If pandas is not installed.
        """
        import pandas

        ids = {"label": self.y, "qid": self.qid, "docid": self.docid}
        frame = pandas.DataFrame({name: x for name, x in ids.items() if x is not None})
        names = [str(j) for j in range(1, self.X.shape[1] + 1)]
        if isinstance(self.X, np.ndarray):
            features = pandas.DataFrame(self.X, columns=names)
        else:
            features = pandas.DataFrame.sparse.from_spmatrix(self.X, columns=names)
        return pandas.concat([frame, features], axis=1)

    def comment_fields(self) -> dict[str, np.ndarray]:
        r"""Parse the ``key = value`` pairs in the comments.

        Returns
        -------
        dict of ndarray, shape (n_rows,)
            Columns by key, in order of first appearance. float64 if all values are numbers (NaN
            for missing ones), otherwise str (empty for missing ones); ``docid`` is always str.

        Raises
        ------
        ValueError
            If the comments were not read: pass ``comments=True``.

        Examples
        --------
        >>> import io
        >>> from rankcore.datasets import load_letor
        >>> file = io.BytesIO(b"1 qid:7 1:2 #docid = GX1 inc = 1 prob = 0.25\n")
        >>> load_letor(file, comments=True).comment_fields()
        {'docid': array(['GX1'], dtype='<U3'), 'inc': array([1.]), 'prob': array([0.25])}
        """
        if self.comments is None:
            raise ValueError("the comments were not read: pass comments=True")
        columns: dict[str, dict[int, str]] = {}
        for row, comment in enumerate(self.comments):
            for key, value in _PAIR.findall(comment):
                columns.setdefault(key, {})[row] = value
        return {key: _column(key, texts, len(self.comments)) for key, texts in columns.items()}


def _column(key: str, texts: dict[int, str], n_rows: int) -> np.ndarray:
    # Python parses 12_3 as 123; here it is an id.
    if key.lower() != "docid" and not any("_" in value for value in texts.values()):
        try:
            numbers = np.full(n_rows, np.nan)
            numbers[list(texts)] = [float(value) for value in texts.values()]
            return numbers
        except ValueError:
            pass  # not all are numbers
    return np.array([texts.get(row, "") for row in range(n_rows)])


def load_letor(
    source: Source | Sequence[Source],
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float64,
    dense: bool = False,
    zero_based: bool | Literal["auto"] = "auto",
    docid: bool = True,
    comments: bool = False,
    ensure_all_finite: bool | Literal["allow-nan"] = True,
    n_jobs: int | None = None,
) -> LetorData:
    r"""Read a LETOR or svmlight file.

    A line is ``label qid:id number:value ... # comment``; all but the label may be missing.
    Features ascend within a line, and either all rows have a query id or none. Empty lines and
    lines that only hold a comment are skipped.

    Parameters
    ----------
    source : path or binary file, or list of them
        gzip and bzip2 are recognised by the first bytes, for any file name. Rows of several files
        are concatenated in order; equal query ids are the same query in all of them.
    n_features : int, optional
        Number of columns of X; by default the maximum number in the file. Pass it for a part of
        a data set, which may lack features that are zero in all of its rows.
    dtype : float32 or float64
        Dtype of X. float64 has the nearest double of each number, float32 this double rounded
        again, as in scikit-learn.
    dense : bool, default=False
        Whether X is an ndarray instead of CSR.
    zero_based : bool or "auto"
        Whether features are numbered from 0. ``"auto"``: if 0 occurs.
    docid : bool, default=True
        Whether to parse document ids in the comments: the value of ``docid = value``, or else
        the first word unless a value is assigned to it, as in ``# 7555 rambo``.
    comments : bool, default=False
        Whether to keep the comments (see `LetorData.comment_fields`).
    ensure_all_finite : bool or "allow-nan"
        True rejects NaN and infinity. ``"allow-nan"`` accepts NaN in features, False accepts both
        in features and labels.
    n_jobs : int, optional
        Number of threads. None means 1, -1 all processors.

    Returns
    -------
    LetorData

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If the file is malformed, damaged, empty, or has more than ``n_features`` features. The
        message names file and line.

    See Also
    --------
    iter_letor : Read a file in batches, for ``partial_fit``.

    Notes
    -----
    O(bytes) time. In addition to the result, memory holds a block of text, or the longest line.

    Examples
    --------
    >>> import io
    >>> from rankcore.datasets import load_letor
    >>> file = io.BytesIO(b"2 qid:7 1:0.5 3:-1 #docid = GX1\n0 qid:7 2:4 #docid = GX2\n")
    >>> data = load_letor(file)
    >>> data
    LetorData(2 x 3 CSR float64, qid, docid)
    >>> data.X.toarray()
    array([[ 0.5,  0. , -1. ],
           [ 0. ,  4. ,  0. ]])
    >>> data.y, data.qid, data.docid
    (array([2., 0.]), array([7, 7]), array(['GX1', 'GX2'], dtype='<U3'))
    """
    options = Options(
        n_features, dtype, dense, zero_based, docid, comments, ensure_all_finite, n_jobs
    )
    if isinstance(source, str) or not isinstance(source, Sequence):
        return load(source, options)
    return _load_several(source, options)


def iter_letor(
    source: Source,
    *,
    n_features: int,
    rows_per_batch: int = 10_000,
    queries_per_batch: int | None = None,
    dtype: DTypeLike = np.float64,
    dense: bool = False,
    zero_based: bool = False,
    docid: bool = True,
    comments: bool = False,
    ensure_all_finite: bool | Literal["allow-nan"] = True,
    n_jobs: int | None = None,
) -> Iterator[LetorData]:
    r"""Read a LETOR or svmlight file in batches of whole queries, for ``partial_fit``.

    Parameters
    ----------
    source : path or binary file
        As for `load_letor`.
    n_features : int
        Number of columns of every batch.
    rows_per_batch : int
        A batch ends with the first query that brings it to at least this many rows. Without query
        ids it has exactly this many. The last one may be shorter.
    queries_per_batch : int, optional
        Number of queries per batch, instead of ``rows_per_batch``.
    dtype, dense
        As for `load_letor`.
    zero_based : bool, default=False
        Whether features are numbered from 0, which cannot be detected from a part of a file.
    docid, comments, ensure_all_finite, n_jobs
        As for `load_letor`.

    Returns
    -------
    iterator of LetorData
        Batches. Their query ids are int64 if all are integers, else str. ValueError if there are
        both words and integers such as 01, which is 1 only if all ids are integers.

    Raises
    ------
    OSError, ValueError
        As for `load_letor`, except that a file may be empty; also if the rows of a query are not
        contiguous.

    Notes
    -----
    O(bytes) time. Memory holds a batch, a block of text, and the query ids seen.

    Examples
    --------
    >>> import io
    >>> from rankcore.datasets import iter_letor
    >>> file = io.BytesIO(b"2 qid:7 1:1\n0 qid:7 2:4\n1 qid:8 1:3\n0 qid:9 2:1\n")
    >>> [batch.qid.tolist() for batch in iter_letor(file, n_features=2, rows_per_batch=2)]
    [[7, 7], [8, 9]]
    """
    if zero_based not in (True, False):
        raise ValueError(f"zero_based must be True or False; got {zero_based!r}")
    check_count(n_features, "n_features")
    check_count(rows_per_batch, "rows_per_batch")
    if queries_per_batch is not None:
        check_count(queries_per_batch, "queries_per_batch")
    options = Options(
        n_features, dtype, dense, zero_based, docid, comments, ensure_all_finite, n_jobs
    )
    return _batches(source, options, rows_per_batch, queries_per_batch)


def load(
    source: Source,
    options: Options,
    name: str | None = None,
    report: Callable[[int], None] = lambda n_lines: None,
) -> LetorData:
    """Implement `load_letor`, with a name for messages; ``report`` receives the lines read."""
    with open_lines(source, name) as lines:
        rows = Collected(options, lines.size)
        for block in blocks(lines, options):
            rows.add(block, 0, block.n_rows)
            report(lines.n_lines)
        if rows.n_rows == 0:
            raise ValueError(f"{lines.name} holds no examples")
        return _letor_data(rows)


def _letor_data(rows: Collected) -> LetorData:
    """Return the rows collected; nothing can be added to them afterwards."""
    return LetorData(
        X=rows.matrix(),
        y=rows.labels.finish(),
        qid=rows.qids(),
        docid=rows.docids(),
        comments=rows.comments if rows.options.comments else None,
    )


def _load_several(sources: Sequence[Source], options: Options) -> LetorData:
    for source in sources:
        if not (isinstance(source, str | os.PathLike) or hasattr(source, "read")):
            raise TypeError(
                "expected a path or a file opened in binary mode; got "
                f"{type(source).__name__} in a list"
            )
    rows = Collected(options)
    for block, _ in text_blocks(sources, options):
        rows.add(block, 0, block.n_rows)
    if rows.n_rows == 0:
        raise ValueError(f"{', '.join(map(title, sources)) or 'an empty list'} holds no examples")
    return _letor_data(rows)


def _batches(
    source: Source, options: Options, n_rows: int, n_queries: int | None
) -> Iterator[LetorData]:
    with open_lines(source) as lines:
        batch = Collected(options)
        queries = QueryStarts()
        in_batch = 0
        for block in blocks(lines, options):
            if block.has_qid:
                starts = queries.starts(block)
            elif n_queries is None:
                starts = iter(range(n_rows - batch.n_rows, block.n_rows, n_rows))
            else:
                raise ValueError(
                    f"{lines.name}, line {block.first_row_line}: the row has no qid:, and "
                    "queries_per_batch counts queries"
                )
            first = 0
            for row in starts:
                complete = (
                    batch.n_rows + row - first >= n_rows
                    if n_queries is None
                    else in_batch == n_queries
                )
                if complete:
                    batch.add(block, first, row)
                    yield _letor_data(batch)
                    batch = Collected(options)
                    first = row
                    in_batch = 0
                in_batch += 1
            batch.add(block, first, block.n_rows)
        if batch.n_rows:
            yield _letor_data(batch)
