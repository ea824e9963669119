"""Judgments and runs, and their join for evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from rankcore._core.arguments import FrameLike
from rankcore._core.frames import frame_of
from rankcore._core.ids import as_words
from rankcore.datasets.ids import first_rows
from rankcore.metrics.tables import Table

if TYPE_CHECKING:
    from pandas import DataFrame


class RepeatedPairError(ValueError):
    """Raised if a query has the same document in two rows."""

    def __init__(self, message: str, row: int, first: int) -> None:
        super().__init__(message)
        self.row = row
        self.first = first


class _Pairs:
    """Base of judgments and runs: a number per query and document."""

    qid: np.ndarray
    docid: np.ndarray
    _number: ClassVar[str]  # the attribute with the numbers
    _column: ClassVar[str]  # and its name in data frames

    def __len__(self) -> int:
        return len(self.qid)

    def __repr__(self) -> str:
        n_queries = np.count_nonzero(first_rows(None, self.qid) == np.arange(len(self)))
        return f"{type(self).__name__}({len(self)} documents, {n_queries} queries)"

    def _repr_html_(self) -> str:
        """Return a table of the first rows, for notebooks."""
        numbers = getattr(self, self._number)
        rows = [
            (str(self.qid[row]), str(self.docid[row]), f"{numbers[row]:g}")
            for row in range(min(5, len(self)))
        ]
        tag = f", tag {self.tag}" if hasattr(self, "tag") else ""
        headings = ("query", "document", self._column)
        return Table(headings, rows, f"{self!r}{tag}", n_names=2).html()

    def _set(self, values: np.ndarray) -> None:
        """Check the columns and set them."""
        qid = as_words(self.qid, "qid")
        docid = as_words(self.docid, "docid")
        if not qid.shape == docid.shape == values.shape:
            raise ValueError(
                f"qid, docid and {self._number} must have the same length; got shapes {qid.shape}, "
                f"{docid.shape} and {values.shape}"
            )
        firsts = first_rows(first_rows(None, qid), docid)
        repeated = firsts != np.arange(len(qid))
        if repeated.any():
            row = int(repeated.argmax())
            raise RepeatedPairError(
                f"document {str(docid[row])!r} of query {str(qid[row])!r} is in rows "
                f"{firsts[row]} and {row}; a pair must occur once",
                row,
                int(firsts[row]),
            )
        for name, column in [("qid", qid), ("docid", docid), (self._number, values)]:
            object.__setattr__(self, name, column)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Convert to nested dicts, from query to document to number, as in pytrec_eval and ranx.

        Returns
        -------
        dict of dict
        """
        result: dict[str, dict[str, Any]] = {}
        numbers = getattr(self, self._number).tolist()
        for query, document, number in zip(
            self.qid.tolist(), self.docid.tolist(), numbers, strict=True
        ):
            result.setdefault(query, {})[document] = number
        return result

    def to_frame(self) -> DataFrame:
        """Convert to a pandas DataFrame with the columns of ir_measures.

        Returns
        -------
        pandas.DataFrame
            ``query_id``, ``doc_id``, and ``relevance`` or ``score``.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        import pandas as pd

        columns = {"query_id": self.qid.astype(object), "doc_id": self.docid.astype(object)}
        return pd.DataFrame({**columns, self._column: getattr(self, self._number)})

    @staticmethod
    def _from_dict(nested: Mapping[Any, Mapping[Any, Any]]) -> list[Any]:
        rows = [
            (query, document, number)
            for query, documents in nested.items()
            for document, number in documents.items()
        ]
        return [[row[i] for row in rows] for i in range(3)]

    @classmethod
    def _from_frame(cls, frame: Any) -> list[np.ndarray]:
        names = ["query_id", "doc_id", cls._column]
        columns = frame_of(frame)
        if columns is None:
            raise TypeError(
                "frame must be a data frame of pandas, polars or Arrow; got a "
                f"{type(frame).__name__}"
            )
        for name in names:
            if name not in columns.names:
                raise ValueError(
                    f"the frame must have the columns {', '.join(names)}; got "
                    f"{', '.join(map(str, columns.names))}"
                )
        return [columns.values(columns.names.index(name)) for name in names]


@dataclass(frozen=True, eq=False, repr=False)
class Qrels(_Pairs):
    """Relevance judgments.

    Attributes
    ----------
    qid, docid : ndarray of str, shape (n,)
        Query and document of each judgment. A pair occurs once. Integers become str.
    rel : ndarray of int64, shape (n,)
        Relevance, integers; negative in some collections.

    Raises
    ------
    TypeError, ValueError
        If the columns are invalid.

    Examples
    --------
    >>> from rankcore.datasets import Qrels
    >>> Qrels.from_dict({"q1": {"d1": 1, "d2": 0}})
    Qrels(2 documents, 1 queries)
    """

    qid: np.ndarray
    docid: np.ndarray
    rel: np.ndarray
    _number: ClassVar[str] = "rel"
    _column: ClassVar[str] = "relevance"

    def __post_init__(self) -> None:
        rel = np.asarray(self.rel)
        if rel.size and (
            rel.dtype.kind not in "fiub"
            or not ((rel > -(2**53)) & (rel < 2**53)).all()
            or (rel != np.floor(rel)).any()
        ):
            raise ValueError("rel must hold whole numbers between -2**53 and 2**53")
        self._set(rel.astype(np.int64))

    @classmethod
    def from_dict(cls, nested: Mapping[Any, Mapping[Any, Any]]) -> Qrels:
        """Build judgments from nested dicts.

        Parameters
        ----------
        nested : mapping
            From query to a mapping from document to relevance.

        Returns
        -------
        Qrels
        """
        qid, docid, rel = cls._from_dict(nested)
        return cls(qid, docid, rel)

    @classmethod
    def from_frame(cls, frame: FrameLike) -> Qrels:
        """Build judgments from a data frame with the columns of ir_measures.

        Parameters
        ----------
        frame : DataFrame of pandas or polars, or pyarrow.Table
            With the columns ``query_id``, ``doc_id`` and ``relevance``.

        Returns
        -------
        Qrels
        """
        qid, docid, rel = cls._from_frame(frame)
        return cls(qid, docid, rel)


@dataclass(frozen=True, eq=False, repr=False)
class Run(_Pairs):
    """Documents retrieved by a system, with scores.

    Attributes
    ----------
    qid, docid : ndarray of str, shape (n,)
        Query and document of each row. A pair occurs once. Integers become str.
    score : ndarray of float64, shape (n,)
        Finite scores, higher is better. As in trec_eval, the order of the rows is ignored.
    tag : str
        Name of the run.

    Raises
    ------
    TypeError, ValueError
        If the columns are invalid.

    Examples
    --------
    >>> from rankcore.datasets import Run
    >>> Run.from_dict({"q1": {"d1": 0.5, "d2": 2}}).to_dict()
    {'q1': {'d1': 0.5, 'd2': 2.0}}
    """

    qid: np.ndarray
    docid: np.ndarray
    score: np.ndarray
    tag: str = "rankcore"
    _number: ClassVar[str] = "score"
    _column: ClassVar[str] = "score"

    def __post_init__(self) -> None:
        score = np.asarray(self.score)
        if score.size and (score.dtype.kind not in "fiub" or not np.isfinite(score).all()):
            raise ValueError("score must hold finite numbers")
        self._set(score.astype(np.float64))

    @classmethod
    def from_dict(cls, nested: Mapping[Any, Mapping[Any, Any]], tag: str = "rankcore") -> Run:
        """Build a run from nested dicts.

        Parameters
        ----------
        nested : mapping
            From query to a mapping from document to score.
        tag : str

        Returns
        -------
        Run
        """
        qid, docid, score = cls._from_dict(nested)
        return cls(qid, docid, score, tag)

    @classmethod
    def from_frame(cls, frame: FrameLike, tag: str = "rankcore") -> Run:
        """Build a run from a data frame with the columns of ir_measures.

        Parameters
        ----------
        frame : DataFrame of pandas or polars, or pyarrow.Table
            With the columns ``query_id``, ``doc_id`` and ``score``.
        tag : str

        Returns
        -------
        Run
        """
        qid, docid, score = cls._from_frame(frame)
        return cls(qid, docid, score, tag)


@dataclass(frozen=True, eq=False, repr=False)
class JoinedRun:
    """A run joined with its judgments, as arguments of ``metrics.evaluate``.

    The rows of a query are contiguous: first the retrieved documents, in the order of the run, then
    the other judged ones. The latter are not ranked, but count in the number of relevant documents
    and in the ideal ranking.

    Attributes
    ----------
    y : ndarray of int64, shape (n,)
        Relevance; 0 for unjudged documents.
    s : ndarray of float64, shape (n,)
        Score; 0, without meaning, if ``retrieved`` is False.
    qid, docid : ndarray of str, shape (n,)
    retrieved : ndarray of bool, shape (n,)
        Whether the run has the document.
    unjudged : ndarray of bool, shape (n,)
        Whether the document is unjudged.
    """

    y: np.ndarray
    s: np.ndarray
    qid: np.ndarray
    docid: np.ndarray
    retrieved: np.ndarray
    unjudged: np.ndarray

    def __repr__(self) -> str:
        return f"JoinedRun({len(self.y)} rows, {np.count_nonzero(self.retrieved)} retrieved)"


def join_run(run: Run, qrels: Qrels, *, missing: Literal["zero", "skip"] = "zero") -> JoinedRun:
    """Join a run and judgments by trec_eval's rules.

    Unjudged documents count as not relevant. Relevant documents that were not retrieved count among
    the relevant ones. Unjudged queries are omitted.

    Parameters
    ----------
    run : Run
    qrels : Qrels
    missing : {"zero", "skip"}
        Judged queries without retrieved documents: "zero" keeps them, with measures of 0, as in
        ``trec_eval -c`` and ir_measures; "skip" omits them, as trec_eval does without ``-c``, which
        rewards runs that omit difficult queries.

    Returns
    -------
    JoinedRun
        Queries in the order of the run, then the other queries in the order of the qrels.

    Raises
    ------
    ValueError
        If the two have no query in common.

    Notes
    -----
    O(n) expected, O(n log n) if the rows of queries are not contiguous.

    Examples
    --------
    >>> from rankcore.datasets import Qrels, Run, join_run
    >>> qrels = Qrels.from_dict({"q1": {"d1": 1, "d2": 2}, "q2": {"d5": 1}})
    >>> run = Run.from_dict({"q1": {"d2": 0.5, "d9": 0.7}, "q3": {"d1": 1}})
    >>> joined = join_run(run, qrels)
    >>> for row in zip(joined.qid, joined.docid, joined.y, joined.s, joined.retrieved):
    ...     print(*row)
    q1 d2 2 0.5 True
    q1 d9 0 0.7 True
    q1 d1 1 0.0 False
    q2 d5 1 0.0 False
    >>> join_run(run, qrels, missing="skip").qid.tolist()
    ['q1', 'q1', 'q1']
    """
    if missing not in ("zero", "skip"):
        raise ValueError(f"missing must be 'zero' or 'skip'; got {missing!r}")
    n = len(qrels)
    qid = np.concatenate([qrels.qid, run.qid])
    docid = np.concatenate([qrels.docid, run.docid])
    y = np.concatenate([qrels.rel, np.zeros(len(run), np.int64)])
    s = np.concatenate([np.zeros(n), run.score])
    queries = first_rows(None, qid)
    pairs = first_rows(queries, docid)
    judged = np.flatnonzero(pairs[n:] < n)
    y[n + judged] = y[pairs[n + judged]]

    unjudged = np.arange(len(qid)) >= n
    unjudged[n + judged] = False

    in_run = np.zeros(len(qid), bool)  # by a query's first row
    in_run[queries[n:]] = True
    keep = queries < n
    keep[pairs[n + judged]] = False  # judgments of documents in the run
    if missing == "skip":
        keep &= in_run[queries]
    if not (in_run[:n].any() or len(run) == 0):
        example = "no query" if n == 0 else repr(str(qrels.qid[0]))
        raise ValueError(
            "the run and the qrels have no query in common: the run starts with "
            f"{str(run.qid[0])!r}, the qrels with {example}"
        )
    # The position of a query: its first row in the run, or after all rows of the run.
    place = np.arange(len(qid)) + len(run)
    place[queries[n:][::-1]] = np.arange(len(run))[::-1]
    rows = np.concatenate([np.arange(n, len(qid)), np.arange(n)])  # the run's first
    rows = rows[keep[rows]]
    rows = rows[np.argsort(place[queries[rows]], kind="stable")]
    return JoinedRun(y[rows], s[rows], qid[rows], docid[rows], rows >= n, unjudged[rows])
