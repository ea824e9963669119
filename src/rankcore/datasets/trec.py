"""TREC files of judgments (qrels) and runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

import numpy as np

from rankcore._ext.tokens import numbers, split
from rankcore.datasets.ids import check_length, first_rows, places, word, words_of, written
from rankcore.datasets.judgments import Qrels, RepeatedPairError, Run
from rankcore.datasets.streams import Source, Target, open_lines, writable

Pairs = TypeVar("Pairs", Qrels, Run)

# Rows formatted at a time.
BLOCK = 1 << 16


def read_qrels(source: Source) -> Qrels:
    r"""Read judgments: lines ``query iteration document relevance``.

    Parameters
    ----------
    source : path or binary file
        gzip and bzip2 are recognised by the first bytes, for any file name. Words are separated by
        spaces or tabs. Empty lines, and comments, which start with ``#``, are skipped.

    Returns
    -------
    Qrels

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If the file is malformed, or repeats a query and document. The message names file and line.

    Notes
    -----
    O(bytes) time. Iterations are not kept: they are 0 or unused.

    Examples
    --------
    >>> import io
    >>> from rankcore.datasets import read_qrels
    >>> read_qrels(io.BytesIO(b"301 0 FT911-1 1\n301 0 FT911-2 0\n")).to_dict()
    {'301': {'FT911-1': 1, 'FT911-2': 0}}
    """
    table = _Table(source, ["query", "iteration", "document", "relevance"], "relevance")
    rel = table.numbers
    bad = (rel != np.floor(rel)) | (np.abs(rel) >= 2**53)
    table.check(bad, "a whole number of absolute value below 2**53")
    return table.paired(lambda: Qrels(table.qid, table.docid, rel.astype(np.int64)))


def read_run(source: Source) -> Run:
    r"""Read a run: lines ``query Q0 document rank score tag``.

    Parameters
    ----------
    source : path or binary file
        As for `read_qrels`. Text after the tag is ignored, as in trec_eval.

    Returns
    -------
    Run
        Run with the tag of the last line; the default tag for an empty file.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If the file is malformed, or repeats a query and document. The message names file and line.

    Notes
    -----
    O(bytes) time. Ranks are ignored: as in trec_eval, scores determine the order.

    Examples
    --------
    >>> import io
    >>> from rankcore.datasets import read_run
    >>> run = read_run(io.BytesIO(b"301 Q0 FT911-1 1 9.5 bm25\n301 Q0 FT911-7 2 8 bm25\n"))
    >>> run, run.tag, run.score
    (Run(2 documents, 1 queries), 'bm25', array([9.5, 8. ]))
    """
    table = _Table(source, ["query", "Q0", "document", "rank", "score", "tag"], "score", more=True)
    return table.paired(lambda: Run(table.qid, table.docid, table.numbers, table.tag or Run.tag))


def write_qrels(qrels: Qrels, target: Target) -> None:
    """Write judgments as a TREC file.

    Parameters
    ----------
    qrels : Qrels
    target : path or binary file
        A path that ends in ``.gz`` is compressed. A file object is not closed.

    Raises
    ------
    OSError
        If the file cannot be written.
    ValueError
        If an id is not a word.

    Examples
    --------
    >>> import sys
    >>> from rankcore.datasets import Qrels, write_qrels
    >>> write_qrels(Qrels.from_dict({"q1": {"d1": 1}}), sys.stdout.buffer)  # doctest: +SKIP
    q1 0 d1 1
    """
    queries = _queries(qrels.qid.tolist())
    documents = written("docid", qrels.docid.tolist(), 0)
    rows = zip(queries, documents, qrels.rel.tolist(), strict=True)
    _write(target, (f"{query} 0 {document} {rel}\n" for query, document, rel in rows))


def write_run(run: Run, target: Target) -> None:
    """Write a run as a TREC file, from which `read_run` reads back exactly the same scores.

    Parameters
    ----------
    run : Run
        Queries are written in order of first appearance, documents by descending score, from
        rank 1; equal scores in the order of the rows.
    target : path or binary file
        As for `write_qrels`.

    Raises
    ------
    OSError
        If the file cannot be written.
    ValueError
        If an id or the tag is not a word.

    Examples
    --------
    >>> import io
    >>> from rankcore.datasets import Run, write_run
    >>> file = io.BytesIO()
    >>> write_run(Run.from_dict({"q1": {"d1": 0.5, "d2": 2}}, tag="mine"), file)
    >>> print(file.getvalue().decode(), end="")
    q1 Q0 d2 1 2.0 mine
    q1 Q0 d1 2 0.5 mine
    """
    (tag,) = written("tag", [run.tag], 0)
    first = first_rows(None, run.qid)
    order = np.lexsort((-run.score, first))
    ranks = places(first[order]) + 1
    queries = _queries(run.qid[order].tolist())
    documents = written("docid", run.docid[order].tolist(), 0)
    rows = zip(queries, documents, ranks.tolist(), run.score[order].tolist(), strict=True)
    _write(
        target,
        (
            f"{query} Q0 {document} {rank} {score!r} {tag}\n"
            for query, document, rank, score in rows
        ),
    )


# ---------------------------------------------------------------- lines


class _Table:
    """Query, document and a number of each line of a file.

    ``fields`` names the words of a line, among them "query", "document" and ``number``; ``more``
    allows further words.
    """

    def __init__(
        self, source: Source, fields: Sequence[str], number: str, *, more: bool = False
    ) -> None:
        self.fields = fields
        self.number = number
        self.more = more
        self.tag = ""
        qid = [np.empty(0, "U1")]
        docid = [np.empty(0, "U1")]
        values = [np.empty(0)]
        numbers_of_lines = [np.empty(0, np.int64)]
        with open_lines(source) as lines:
            self.name = lines.name
            for text, first_line in lines:
                spans, line = self._split(text, first_line)
                qid.append(self._ids(text, spans[:, fields.index("query")], line))
                docid.append(self._ids(text, spans[:, fields.index("document")], line))
                values.append(self._numbers(text, spans[:, fields.index(number)], line))
                numbers_of_lines.append(line)
                if len(spans):
                    start, stop = spans[-1, -1].tolist()
                    self.tag = word(text, start, stop)
        self.qid = np.concatenate(qid)
        self.docid = np.concatenate(docid)
        self.numbers = np.concatenate(values)
        self.lines = np.concatenate(numbers_of_lines)

    def _split(self, text: memoryview, first_line: int) -> tuple[np.ndarray, np.ndarray]:
        """Return start and stop of the words of each row in a block, and the rows' line numbers."""
        n_words = len(self.fields)
        room = len(text) // (2 * n_words) + 1
        spans = np.empty((room, n_words, 2), np.int64)
        lines = np.empty(room, np.int64)
        form = f"{n_words}: {' '.join(self.fields)}"
        n = split(text, self.name, first_line, form, spans, lines, self.more)
        return spans[:n], lines[:n].copy()

    def _numbers(self, text: memoryview, spans: np.ndarray, lines: np.ndarray) -> np.ndarray:
        values = np.empty(len(spans))
        row = numbers(text, spans, values)
        if row < len(spans):
            start, stop = spans[row].tolist()
            raise ValueError(
                f"{self.name}, line {lines[row]}: {self.number} must be a finite number; got "
                f"{word(text, start, stop)!r}"
            )
        return values

    def _ids(self, text: memoryview, spans: np.ndarray, lines: np.ndarray) -> np.ndarray:
        lengths = spans[:, 1] - spans[:, 0]
        if lengths.size:
            longest = int(lengths.argmax())
            start, stop = spans[longest].tolist()
            check_length(self.name, lines[longest], text, start, stop)
        return words_of(text, spans, int(lengths.max(initial=1)))

    def check(self, wrong: np.ndarray, expected: str) -> None:
        """Raise ValueError for the first wrong number."""
        if wrong.any():
            row = int(wrong.argmax())
            raise ValueError(
                f"{self.name}, line {self.lines[row]}: {self.number} must be {expected}; got "
                f"{self.numbers[row].item()!r}"
            )

    def paired(self, make: Callable[[], Pairs]) -> Pairs:
        """Call ``make`` on the columns; name the line in the error for a repeated pair."""
        try:
            return make()
        except RepeatedPairError as error:
            query = str(self.qid[error.row])
            document = str(self.docid[error.row])
            raise ValueError(
                f"{self.name}, line {self.lines[error.row]}: document {document!r} of query "
                f"{query!r} is in line {self.lines[error.first]}, too; a pair must occur once"
            ) from None


def _queries(ids: list[str]) -> Iterator[str]:
    """Yield query ids, checked to be able to start a line."""
    for text in written("qid", ids, 0):
        if text.startswith("#"):
            raise ValueError(f"query {text!r} starts with #, like comments: choose another id")
        yield text


def _write(target: Target, lines: Iterator[str]) -> None:
    with writable(target) as stream:
        while block := list(islice(lines, BLOCK)):
            stream.write("".join(block).encode("utf-8", "surrogateescape"))
